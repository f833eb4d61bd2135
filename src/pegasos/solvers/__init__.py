"""The solvers a user can pick: small frozen objects that hold what is particular to an algorithm.

Estimators take a name (``solver="sdca"``) for the defaults, or an object
(``solver=Pegasos(batch_size=64, projection=True)``). ``solver="auto"`` chooses by the size and hardness of the problem.
"""

from typing import Any, Literal, overload

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

Kind = Literal["linear", "kernel"]

#: (solver, kind of problem) → what makes its engines: the solver itself, or what holds it and knows kernels.
METHODS: dict[tuple[type[Any], Kind], type[Any]] = {
    (Auto, "linear"): Auto,
    (Pegasos, "linear"): Pegasos,
    (Norma, "linear"): Norma,
    (SGD, "linear"): SGD,
    (SDCA, "linear"): SDCA,
    (CuttingPlane, "linear"): CuttingPlane,
    (InteriorPoint, "linear"): InteriorPoint,
    (SmoothedNewton, "linear"): SmoothedNewton,
    (SMO, "kernel"): SMO,
    (Pegasos, "kernel"): KernelPegasos,
    (SDCA, "kernel"): KernelSDCA,
    (LASVM, "kernel"): LASVM,
    (SBP, "kernel"): SBP,
    (Nystroem, "kernel"): Nystroem,
}

#: Every solver by its name, of linear and of kernel machines.
SOLVERS: dict[str, type[Solver]] = {cls.name: cls for cls, kind in METHODS if kind == "linear"}
KERNEL_SOLVERS: dict[str, type[KernelSolver | Solver]] = {cls.name: cls for cls, kind in METHODS if kind == "kernel"}

#: What ``solver="auto"`` is where the problem is not known yet.
_AUTO: dict[Kind, type[Any]] = {"linear": Auto, "kernel": SMO}


@overload
def resolve(solver: str | Solver | KernelSolver, kind: Literal["linear"] = "linear") -> Solver: ...
@overload
def resolve(solver: str | Solver | KernelSolver, kind: Literal["kernel"]) -> KernelSolver: ...
def resolve(solver: Any, kind: Kind = "linear") -> Any:
    """What solves problems of a kind for a user's ``solver``: a name, or an object."""
    names = ("auto", *(name for name in (SOLVERS if kind == "linear" else KERNEL_SOLVERS) if name != "auto"))
    found = solver
    if isinstance(solver, str) and solver in names:
        found = _AUTO[kind]() if solver == "auto" else (SOLVERS if kind == "linear" else KERNEL_SOLVERS)[solver]()
    if isinstance(found, Solver if kind == "linear" else KernelSolver):
        return found
    if (method := METHODS.get((type(found), kind))) is not None:
        return method(found)
    hint = did_you_mean(solver, names) if isinstance(solver, str) else ""
    if isinstance(solver, type) and (solver, kind) in METHODS:
        hint = f" (did you mean {solver.__name__}(), with parentheses?)"
    elif (type(found), "linear") in METHODS or (isinstance(solver, str) and solver in SOLVERS):
        hint = "; that one is for the linear estimators"
    elif (type(found), "kernel") in METHODS or (isinstance(solver, str) and solver in KERNEL_SOLVERS):
        hint = "; that one is for the kernel estimators"
    what = "a pegasos.solvers object" + " for kernels" * (kind == "kernel")
    raise ValueError(f"solver={solver!r} is unknown; it can be {', '.join(names)} or {what}{hint}")


def kernel_solver(solver: str | Solver | KernelSolver, problem: KernelProblem, intercept: str) -> KernelSolver:
    """The solver for a problem, refused if it cannot do it; "auto" is SMO where that can, else SDCA, or Pegasos."""
    found = resolve(solver, "kernel")
    able = problem.loss.name in found.losses and intercept in found.intercepts
    if isinstance(solver, str) and solver == "auto" and not able:
        found = KernelPegasos(Pegasos()) if intercept == "subgradient" else KernelSDCA(SDCA())
    found.check(problem, intercept)
    return found
