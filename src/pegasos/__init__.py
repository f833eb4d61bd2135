"""Support vector machines that train fast and say how far from the optimum they stopped."""

from typing import TYPE_CHECKING

from pegasos import _lazy

if TYPE_CHECKING:
    from pegasos import datasets, io, losses, plots, solvers, theory
    from pegasos._certificate import Certificate
    from pegasos._trace import Checkpoint, Trace
    from pegasos.io import load, save
    from pegasos.kernel import SVC, SVR
    from pegasos.linear import LinearSVC, LinearSVR
    from pegasos.solvers import SDCA, SGD, SMO, CuttingPlane, InteriorPoint, Norma, Pegasos, SmoothedNewton
    from pegasos.sparse import Guarantee, RandomizedClassifier, SparsePath, SparseSVC, sparsify

__version__ = "0.1.0"

__all__ = [
    "SDCA",
    "SGD",
    "SMO",
    "SVC",
    "SVR",
    "Certificate",
    "Checkpoint",
    "CuttingPlane",
    "Guarantee",
    "InteriorPoint",
    "LinearSVC",
    "LinearSVR",
    "Norma",
    "Pegasos",
    "RandomizedClassifier",
    "SmoothedNewton",
    "SparsePath",
    "SparseSVC",
    "Trace",
    "datasets",
    "io",
    "load",
    "losses",
    "plots",
    "save",
    "solvers",
    "sparsify",
    "theory",
]

__getattr__, __dir__ = _lazy.names(
    __name__,
    {
        "SDCA": "solvers",
        "SGD": "solvers",
        "SMO": "solvers",
        "SVC": "kernel",
        "SVR": "kernel",
        "Certificate": "_certificate",
        "Checkpoint": "_trace",
        "CuttingPlane": "solvers",
        "Guarantee": "sparse",
        "InteriorPoint": "solvers",
        "LinearSVC": "linear",
        "LinearSVR": "linear",
        "Norma": "solvers",
        "Pegasos": "solvers",
        "RandomizedClassifier": "sparse",
        "SmoothedNewton": "solvers",
        "SparsePath": "sparse",
        "SparseSVC": "sparse",
        "Trace": "_trace",
        "datasets": "datasets",
        "io": "io",
        "load": "io",
        "losses": "losses",
        "plots": "plots",
        "save": "io",
        "solvers": "solvers",
        "sparsify": "sparse",
        "theory": "theory",
    },
)
