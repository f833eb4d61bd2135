"""The solvers a user can pick: small frozen objects that hold what is particular to an algorithm.

Estimators take a name (``solver="sdca"``) for the defaults, or an object
(``solver=Pegasos(batch_size=64, projection=True)``). ``solver="auto"`` chooses by the size and hardness of the problem.
"""

from pegasos.solvers._kernel import (
    KERNEL_SOLVERS,
    LASVM,
    SBP,
    SMO,
    KernelSolver,
    Nystroem,
    NystroemWarning,
)
from pegasos.solvers._kernel import kernel_solver as kernel_solver
from pegasos.solvers._kernel import resolve_kernel as resolve_kernel
from pegasos.solvers._linear import (
    SDCA,
    SGD,
    SOLVERS,
    Auto,
    CuttingPlane,
    InteriorPoint,
    Norma,
    Pegasos,
    SmoothedNewton,
    Solver,
)
from pegasos.solvers._linear import resolve as resolve

__all__ = [
    "KERNEL_SOLVERS",
    "LASVM",
    "SBP",
    "SDCA",
    "SGD",
    "SMO",
    "SOLVERS",
    "Auto",
    "CuttingPlane",
    "InteriorPoint",
    "KernelSolver",
    "Norma",
    "Nystroem",
    "NystroemWarning",
    "Pegasos",
    "SmoothedNewton",
    "Solver",
]
