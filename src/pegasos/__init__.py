"""Support vector machines that train fast and say how far from the optimum they stopped."""

from typing import TYPE_CHECKING

from pegasos.util import lazy

if TYPE_CHECKING:
    from pegasos import datasets, experiments, io, losses, metrics, plots, solvers, theory
    from pegasos.estimators.class_oracle import MulticlassOracle
    from pegasos.estimators.linear import LinearSVC, LinearSVR
    from pegasos.estimators.pystruct import PystructOracle
    from pegasos.estimators.sequence import SequenceSVC
    from pegasos.estimators.structured import StructuredSVC
    from pegasos.estimators.svc import SVC
    from pegasos.estimators.svr import SVR
    from pegasos.fit.certificate import Certificate
    from pegasos.fit.trace import Checkpoint, Trace
    from pegasos.io import load, save
    from pegasos.solvers import (
        LASVM,
        LBFGS,
        SBP,
        SDCA,
        SGD,
        SMO,
        AveragedPerceptron,
        BlockFrankWolfe,
        CuttingPlane,
        DualAveraging,
        InteriorPoint,
        LowRankInteriorPoint,
        Norma,
        Nystroem,
        PassiveAggressive,
        Pegasos,
        PrimalNewton,
        Proximal,
        SmoothedNewton,
    )
    from pegasos.sparse import Guarantee, RandomizedClassifier, SparsePath, SparseSVC, sparsify

__version__ = "0.1.0"

__all__ = [
    "LASVM",
    "LBFGS",
    "SBP",
    "SDCA",
    "SGD",
    "SMO",
    "SVC",
    "SVR",
    "AveragedPerceptron",
    "BlockFrankWolfe",
    "Certificate",
    "Checkpoint",
    "CuttingPlane",
    "DualAveraging",
    "Guarantee",
    "InteriorPoint",
    "LinearSVC",
    "LinearSVR",
    "LowRankInteriorPoint",
    "MulticlassOracle",
    "Norma",
    "Nystroem",
    "PassiveAggressive",
    "Pegasos",
    "PrimalNewton",
    "Proximal",
    "PystructOracle",
    "RandomizedClassifier",
    "SequenceSVC",
    "SmoothedNewton",
    "SparsePath",
    "SparseSVC",
    "StructuredSVC",
    "Trace",
    "datasets",
    "experiments",
    "io",
    "load",
    "losses",
    "metrics",
    "plots",
    "save",
    "solvers",
    "sparsify",
    "theory",
]

__getattr__, __dir__ = lazy.names(
    __name__,
    {
        "estimators.linear": ("LinearSVC", "LinearSVR"),
        "estimators.class_oracle": ("MulticlassOracle",),
        "estimators.pystruct": ("PystructOracle",),
        "estimators.sequence": ("SequenceSVC",),
        "estimators.structured": ("StructuredSVC",),
        "estimators.svc": ("SVC",),
        "estimators.svr": ("SVR",),
        "fit.certificate": ("Certificate",),
        "fit.trace": ("Checkpoint", "Trace"),
        "io": ("load", "save"),
        "solvers": (
            "LASVM",
            "LBFGS",
            "SBP",
            "SDCA",
            "SGD",
            "SMO",
            "AveragedPerceptron",
            "BlockFrankWolfe",
            "CuttingPlane",
            "DualAveraging",
            "InteriorPoint",
            "LowRankInteriorPoint",
            "Norma",
            "Nystroem",
            "PassiveAggressive",
            "Pegasos",
            "PrimalNewton",
            "Proximal",
            "SmoothedNewton",
        ),
        "sparse": ("Guarantee", "RandomizedClassifier", "SparsePath", "SparseSVC", "sparsify"),
    },
    modules=("datasets", "experiments", "io", "losses", "metrics", "plots", "solvers", "theory"),
)
