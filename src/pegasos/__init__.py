"""Support vector machines that train fast and say how far from the optimum they stopped."""

from pegasos import datasets, io, losses, plots, solvers, theory
from pegasos._certificate import Certificate
from pegasos._trace import Checkpoint, Trace
from pegasos.linear import LinearSVC, LinearSVR
from pegasos.solvers import SDCA, SGD, CuttingPlane, InteriorPoint, Norma, Pegasos

__version__ = "0.1.0"

__all__ = [
    "SDCA",
    "SGD",
    "Certificate",
    "Checkpoint",
    "CuttingPlane",
    "InteriorPoint",
    "LinearSVC",
    "LinearSVR",
    "Norma",
    "Pegasos",
    "Trace",
    "datasets",
    "io",
    "losses",
    "plots",
    "solvers",
    "theory",
]
