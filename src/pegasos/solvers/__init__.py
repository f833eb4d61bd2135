"""The solvers a user can pick: small frozen objects that hold what is particular to an algorithm.

Estimators take a name (``solver="sdca"``) for the defaults, or an object
(``solver=Pegasos(batch_size=64, projection=True)``). ``solver="auto"`` chooses by the size and hardness of the problem.
"""

from pegasos.problems.kernel import KernelProblem
from pegasos.solvers.base import KernelSolver, Solver
from pegasos.solvers.kernel.batch_perceptron import SBP
from pegasos.solvers.kernel.lasvm import LASVM
from pegasos.solvers.kernel.nystroem import Nystroem, NystroemWarning
from pegasos.solvers.kernel.pegasos import KernelPegasos
from pegasos.solvers.kernel.sdca import KernelSDCA
from pegasos.solvers.kernel.smo import SMO
from pegasos.solvers.linear.auto import Auto
from pegasos.solvers.linear.cutting_plane import CuttingPlane
from pegasos.solvers.linear.interior_point import InteriorPoint
from pegasos.solvers.linear.sdca import SDCA
from pegasos.solvers.linear.smoothed_newton import SmoothedNewton
from pegasos.solvers.linear.subgradient import SGD, Norma, Pegasos
from pegasos.util.suggest import did_you_mean

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

#: Every solver by its name.
SOLVERS: dict[str, type[Solver]] = {
    cls.name: cls for cls in (Auto, Pegasos, Norma, SGD, SDCA, CuttingPlane, InteriorPoint, SmoothedNewton)
}


#: Every solver of kernel machines by its name; two of them are for linear machines, too.
KERNEL_SOLVERS: dict[str, type[KernelSolver | Solver]] = {
    cls.name: cls for cls in (SMO, Pegasos, SDCA, LASVM, SBP, Nystroem)
}


def resolve(solver: str | Solver) -> Solver:
    """The solver object that a user's ``solver`` means."""
    if isinstance(solver, Solver):
        return solver
    if isinstance(solver, str) and solver in SOLVERS:
        return SOLVERS[solver]()
    hint = did_you_mean(solver, SOLVERS) if isinstance(solver, str) else ""
    if isinstance(solver, type) and issubclass(solver, Solver):
        hint = f" (did you mean {solver.__name__}(), with parentheses?)"
    raise ValueError(f"solver={solver!r} is unknown; it can be {', '.join(SOLVERS)} or a pegasos.solvers object{hint}")


def kernel_solver(solver: str | Solver | KernelSolver, problem: KernelProblem, intercept: str) -> KernelSolver:
    """The solver for a problem, refused if it cannot do it; "auto" is SMO where that can, else SDCA, or Pegasos."""
    found = resolve_kernel(solver)
    able = problem.loss.name in found.losses and intercept in found.intercepts
    if isinstance(solver, str) and solver == "auto" and not able:
        found = KernelPegasos(Pegasos()) if intercept == "subgradient" else KernelSDCA(SDCA())
    found.check(problem, intercept)
    return found


def resolve_kernel(solver: str | Solver | KernelSolver) -> KernelSolver:
    """The solver object that a user's ``solver`` means for a kernel machine; "auto" is SMO, where that can."""
    found = solver
    if isinstance(solver, str) and solver in ("auto", *KERNEL_SOLVERS):
        found = SMO() if solver == "auto" else KERNEL_SOLVERS[solver]()
    if isinstance(found, KernelSolver):
        return found
    if isinstance(found, Pegasos):
        return KernelPegasos(found)
    if isinstance(found, SDCA):
        return KernelSDCA(found)
    names = ("auto", *KERNEL_SOLVERS)
    hint = did_you_mean(solver, names) if isinstance(solver, str) else ""
    if isinstance(solver, type) and issubclass(solver, KernelSolver | Pegasos | SDCA):
        hint = f" (did you mean {solver.__name__}(), with parentheses?)"
    elif isinstance(solver, Solver) or (isinstance(solver, str) and solver in SOLVERS):
        hint = "; that one is for the linear estimators"
    raise ValueError(
        f"solver={solver!r} is unknown; it can be {', '.join(names)} or a pegasos.solvers object for kernels{hint}"
    )
