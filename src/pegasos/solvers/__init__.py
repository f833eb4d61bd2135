"""The solvers a user can pick: small frozen objects that hold what is particular to an algorithm.

Estimators take a name (``solver="sdca"``) for the defaults, or an object
(``solver=Pegasos(batch_size=64, projection=True)``). ``solver="auto"`` chooses by the size and hardness of the problem.
"""

from typing import Any, Literal, get_args, overload

from pegasos.problems.kernel import KernelProblem
from pegasos.solvers.base import KernelSolver, Solver
from pegasos.solvers.kernel.batch_perceptron import SBP
from pegasos.solvers.kernel.lasvm import LASVM
from pegasos.solvers.kernel.low_rank import LowRankInteriorPoint
from pegasos.solvers.kernel.newton import PrimalNewton
from pegasos.solvers.kernel.nystroem import Nystroem, NystroemWarning
from pegasos.solvers.kernel.pegasos import KernelPegasos
from pegasos.solvers.kernel.sdca import KernelSDCA
from pegasos.solvers.kernel.smo import SMO
from pegasos.solvers.linear.auto import Auto
from pegasos.solvers.linear.cutting_plane import CuttingPlane
from pegasos.solvers.linear.dual_averaging import DualAveraging
from pegasos.solvers.linear.interior_point import InteriorPoint
from pegasos.solvers.linear.lbfgs import LBFGS
from pegasos.solvers.linear.passive_aggressive import PassiveAggressive
from pegasos.solvers.linear.proximal import Proximal
from pegasos.solvers.linear.sdca import SDCA
from pegasos.solvers.linear.smoothed_newton import SmoothedNewton
from pegasos.solvers.linear.subgradient import SGD, Norma, Pegasos
from pegasos.solvers.structured.auto import OracleAuto
from pegasos.solvers.structured.base import OracleSolver
from pegasos.solvers.structured.block_frank_wolfe import BlockFrankWolfe, OracleBlockFrankWolfe
from pegasos.solvers.structured.chain_auto import ChainAuto
from pegasos.solvers.structured.chain_base import ChainSolver
from pegasos.solvers.structured.chain_cutting_plane import ChainCuttingPlane
from pegasos.solvers.structured.chain_lbfgs import ChainLBFGS
from pegasos.solvers.structured.chain_planes import ChainBlockFrankWolfe
from pegasos.solvers.structured.chain_steps import (
    AveragedPerceptron,
    ChainPassiveAggressive,
    ChainPegasos,
    ChainPerceptron,
)
from pegasos.solvers.structured.cutting_plane import OracleCuttingPlane
from pegasos.solvers.structured.lbfgs import OracleLBFGS
from pegasos.solvers.structured.pegasos import OraclePegasos
from pegasos.util.suggest import did_you_mean

__all__ = [
    "KERNEL_SOLVERS",
    "LASVM",
    "LBFGS",
    "SBP",
    "SDCA",
    "SGD",
    "SMO",
    "SOLVERS",
    "Auto",
    "AveragedPerceptron",
    "BlockFrankWolfe",
    "CuttingPlane",
    "DualAveraging",
    "InteriorPoint",
    "KernelSolver",
    "LowRankInteriorPoint",
    "Norma",
    "Nystroem",
    "NystroemWarning",
    "PassiveAggressive",
    "Pegasos",
    "PrimalNewton",
    "Proximal",
    "SmoothedNewton",
    "Solver",
]

Kind = Literal["linear", "kernel", "oracle", "log_oracle", "chain"]

#: What solves problems of each kind, in words.
ESTIMATORS: dict[Kind, str] = {
    "linear": "the linear estimators",
    "kernel": "the kernel estimators",
    "oracle": "StructuredSVC with the hinge loss",
    "log_oracle": "StructuredSVC with the log loss",
    "chain": "SequenceSVC",
}

#: (solver, kind of problem) → what makes its engines: the solver itself, or what holds it and knows kernels.
METHODS: dict[tuple[type[Any], Kind], type[Any]] = {
    (Auto, "linear"): Auto,
    (Pegasos, "linear"): Pegasos,
    (Norma, "linear"): Norma,
    (SGD, "linear"): SGD,
    (Proximal, "linear"): Proximal,
    (DualAveraging, "linear"): DualAveraging,
    (PassiveAggressive, "linear"): PassiveAggressive,
    (SDCA, "linear"): SDCA,
    (CuttingPlane, "linear"): CuttingPlane,
    (InteriorPoint, "linear"): InteriorPoint,
    (SmoothedNewton, "linear"): SmoothedNewton,
    (LBFGS, "linear"): LBFGS,
    (SMO, "kernel"): SMO,
    (Pegasos, "kernel"): KernelPegasos,
    (SDCA, "kernel"): KernelSDCA,
    (LASVM, "kernel"): LASVM,
    (SBP, "kernel"): SBP,
    (Nystroem, "kernel"): Nystroem,
    (PrimalNewton, "kernel"): PrimalNewton,
    (LowRankInteriorPoint, "kernel"): LowRankInteriorPoint,
    (Pegasos, "oracle"): OraclePegasos,
    (BlockFrankWolfe, "oracle"): OracleBlockFrankWolfe,
    (CuttingPlane, "oracle"): OracleCuttingPlane,
    (LBFGS, "log_oracle"): OracleLBFGS,
    (Pegasos, "chain"): ChainPegasos,
    (BlockFrankWolfe, "chain"): ChainBlockFrankWolfe,
    (CuttingPlane, "chain"): ChainCuttingPlane,
    (LBFGS, "chain"): ChainLBFGS,
    (PassiveAggressive, "chain"): ChainPassiveAggressive,
    (AveragedPerceptron, "chain"): ChainPerceptron,
}

#: Every solver of a kind of problem by its name.
TABLES: dict[Kind, dict[str, type[Any]]] = {
    kind: {cls.name: cls for cls, its in METHODS if its == kind} for kind in get_args(Kind)
}
SOLVERS: dict[str, type[Solver]] = TABLES["linear"]
KERNEL_SOLVERS: dict[str, type[KernelSolver | Solver]] = TABLES["kernel"]

#: What ``solver="auto"`` is where the problem is not known yet, and what every method of the kind is.
_AUTO: dict[Kind, type[Any]] = {
    "linear": Auto,
    "kernel": SMO,
    "oracle": OracleAuto,
    "log_oracle": OracleLBFGS,
    "chain": ChainAuto,
}
_BASES: dict[Kind, type[Any]] = {
    "linear": Solver,
    "kernel": KernelSolver,
    "oracle": OracleSolver,
    "log_oracle": OracleLBFGS,
    "chain": ChainSolver,
}


@overload
def resolve(solver: object, kind: Literal["linear"] = "linear") -> Solver: ...
@overload
def resolve(solver: object, kind: Literal["kernel"]) -> KernelSolver: ...
@overload
def resolve(solver: object, kind: Literal["oracle"]) -> OracleSolver: ...
@overload
def resolve(solver: object, kind: Literal["log_oracle"]) -> OracleLBFGS: ...
@overload
def resolve(solver: object, kind: Literal["chain"]) -> ChainSolver: ...
@overload
def resolve(solver: object, kind: Kind) -> Any: ...
def resolve(solver: Any, kind: Kind = "linear") -> Any:
    """What solves problems of a kind for a user's ``solver``: a name, or an object."""
    table = TABLES[kind]
    names = ("auto", *(name for name in table if name != "auto"))
    found = solver
    if isinstance(solver, str) and solver in names:
        found = _AUTO[kind]() if solver == "auto" else table[solver]()
    if isinstance(found, _BASES[kind]):
        return found
    if (method := METHODS.get((type(found), kind))) is not None:
        return method(found)
    what = "a pegasos.solvers object" + " for kernels" * (kind == "kernel")
    hint = _hint(solver, kind, names)
    raise ValueError(f"solver={solver!r} is unknown; it can be {', '.join(names)} or {what}{hint}")


def _hint(solver: Any, kind: Kind, names: tuple[str, ...]) -> str:
    """What may have been meant by a solver that is none of this kind."""
    if isinstance(solver, type) and (solver, kind) in METHODS:
        return f" (did you mean {solver.__name__}(), with parentheses?)"
    for other, table in TABLES.items():
        if (type(solver), other) in METHODS or (isinstance(solver, str) and solver in table):
            return f"; that one is for {ESTIMATORS[other]}"
    return did_you_mean(solver, names) if isinstance(solver, str) else ""


def kernel_solver(solver: str | Solver | KernelSolver, problem: KernelProblem, intercept: str) -> KernelSolver:
    """The solver for a problem, refused if it cannot do it; "auto" is SMO where that can, else SDCA, or Pegasos."""
    found = resolve(solver, "kernel")
    able = problem.loss.name in found.losses and intercept in found.intercepts
    if isinstance(solver, str) and solver == "auto" and not able:
        found = KernelPegasos(Pegasos()) if intercept == "subgradient" else KernelSDCA(SDCA())
    found.check(problem, intercept)
    return found
