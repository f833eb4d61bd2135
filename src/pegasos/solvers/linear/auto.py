"""``solver="auto"``: which method, and when to change it.

First-order methods need about 1/κ epochs, κ = λM/R²; second-order ones a couple of dozen iterations whatever κ, whose
cost grows with the square of the number of columns. So narrow data whose predicted epochs cost more than those
iterations go to a second-order method at once: the interior point method where the problem is tiny, for its accuracy,
Newton's method for smooth losses, and smoothed Newton for the others. Everything else begins with an epoch of Pegasos,
whose dual point, scaled by the best factor, starts SDCA. Under strong regularisation SDCA leaves out at first the rows
that Pegasos saw far from a kink. Several outputs begin with SDCA itself. If SDCA's gap then falls too slowly, narrow
data change over to a second-order method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pegasos.fit.engine import Options
from pegasos.problems.base import Bounds, Point
from pegasos.problems.linear import LinearProblem, Weights, feasible
from pegasos.rows.views import Array
from pegasos.solvers.base import Solver, check_count
from pegasos.solvers.linear.cutting_plane import CuttingPlane
from pegasos.solvers.linear.dual_ascent import DualAscentEngine, warm_bias
from pegasos.solvers.linear.engine import LinearEngine
from pegasos.solvers.linear.interior_point import InteriorPoint
from pegasos.solvers.linear.lbfgs import LBFGS
from pegasos.solvers.linear.sdca import SDCA
from pegasos.solvers.linear.smoothed_newton import SmoothedNewton
from pegasos.solvers.linear.subgradient import Pegasos, SubgradientEngine
from pegasos.util.fields import State, saved

#: Columns above which second-order methods are not considered.
MAX_COLUMNS = 3000

#: Estimated nanoseconds of an entry that a first-order method visits, and of a multiplication in a normal matrix.
ENTRY_NS, MULTIPLICATION_NS = 1.5, 0.05

#: Estimated iterations of a second-order method, and the share of rows with curvature if the loss has kinks.
SECOND_ORDER_ITERATIONS, CURVED_SHARE = 25, 0.2

#: κ above which an epoch of Pegasos ends so near the optimum that its scores tell which rows matter.
EASY_KAPPA = 10.0

#: The methods an engine can go through, in this order; a saved state holds the index.
METHODS: dict[str, type[Solver]] = {cls.name: cls for cls in (Pegasos, SDCA, SmoothedNewton, InteriorPoint)}
STAGES = tuple(METHODS)

#: Estimated nanoseconds below which a second-order method is always taken, for its accuracy.
TINY_COST_NS = 5e7


def second_order_cost(problem: LinearProblem) -> float:
    """Estimated nanoseconds of a second-order solution; infinite where there is none."""
    width = (problem.examples.n + 1) * (problem.outputs if problem.joint else 1)
    if width > MAX_COLUMNS or problem.loss.name not in InteriorPoint.losses:
        return float("inf")
    m, per_row = problem.examples.m, problem.examples.nnz / problem.examples.m
    square = min(width**2 * MULTIPLICATION_NS, per_row**2 * (problem.outputs if problem.joint else 1) ** 2)
    curved = 1.0 if problem.loss.smooth else CURVED_SHARE
    rows = m * (curved * square + 15.0 + 2 * per_row * ENTRY_NS)
    return SECOND_ORDER_ITERATIONS * problem.n_parts * (rows + width**3 * MULTIPLICATION_NS)


def epoch_cost(problem: LinearProblem) -> float:
    """Estimated nanoseconds of an epoch of SDCA for one output."""
    return problem.examples.nnz * ENTRY_NS + 20.0 * problem.examples.m


def first_order_cost(problem: LinearProblem) -> float:
    """Estimated nanoseconds of SDCA to a relative gap of 1e-3."""
    epochs = 6 + 12 / problem.hardness
    return epochs * epoch_cost(problem) * max(1.0, problem.outputs / 4)


class AutoEngine(LinearEngine):
    """Delegates to the engine of the current stage."""

    def __init__(self, problem: LinearProblem, options: Options, *, blocks: int | None) -> None:
        self.problem, self.options = problem, options
        self.sdca = SDCA(blocks=blocks)
        self.spent = 0.0
        self.history: list[tuple[float, float]] = []
        self.cost = second_order_cost(problem)
        self.tiny, self.easy = self.cost < TINY_COST_NS, problem.hardness > EASY_KAPPA
        if self.cost < max(first_order_cost(problem), TINY_COST_NS):
            self._enter_second_order()
        else:
            # Several outputs begin with SDCA itself, whose groups of classes are finished one by one.
            self._enter(Pegasos() if problem.outputs == 1 else self.sdca)
            self.pegasos_t0 = Pegasos()._t0(problem)
            if isinstance(self.engine, SubgradientEngine) and self.easy:
                self.engine.keep_scores()

    def _enter(self, solver: Solver) -> None:
        self.stage, self.engine = solver.name, solver.engine(self.problem, self.options)

    def _enter_second_order(self) -> None:
        self._enter(InteriorPoint() if self.tiny or self.problem.loss.smooth else SmoothedNewton())

    @property
    def epochs(self) -> float:
        return self.spent + self.engine.epochs

    @property
    def stuck(self) -> str | None:
        return None if self.stage == "smoothed_newton" else self.engine.stuck

    @property
    def eager(self) -> bool:
        return self.engine.eager

    def advance(self) -> None:
        if self.stage == "pegasos" and self.engine.epochs >= 1.0:
            self._to_sdca()
        elif self.stage == "smoothed_newton" and self.engine.stuck is not None:
            self.spent += self.engine.epochs
            self._enter(InteriorPoint())
        self.engine.advance()

    def due(self, tol: float) -> bool:
        # One epoch of Pegasos is rarely enough for a tight tolerance, and a certificate costs as much as an epoch.
        enough = 1e-2 if self.easy else 0.1
        return self.engine.due(tol) and (self.stage != "pegasos" or tol >= enough)

    def _to_sdca(self) -> None:
        """Hand Pegasos' dual point over, scaled by the factor that raises its dual value most."""
        problem = self.problem
        assert isinstance(self.engine, SubgradientEngine)
        (W, _), m = self.engine.model(), problem.examples.m
        u = self.engine.lanes.duals()
        # After one epoch w = (1/(λ(m + t0))) Σ c̃ u x: W(u) but for the t0 that was added to the rows visited.
        real = (m + self.pegasos_t0) / m
        # D(su) ≥ s·conjugates − s²(λ/2)‖W‖² for 0 ≤ s ≤ 1, since the conjugates are concave and 0 at 0.
        norms = np.maximum(problem.lam * real**2 * problem.squared_norms_of(W), 1e-300)
        scale = np.clip(problem.mean_conjugates(u) / norms, 0.0, 1.0)
        u, W = u * scale, W * (real * scale)[:, None]
        self.spent += self.engine.epochs
        # Scores of the first tenth of the epoch come from weights too different from those at its end.
        Z = self.engine.lanes.scores(early=m // 10) if self.easy else None
        engine = self._enter_sdca(u, warm_bias(problem, W), W)
        if Z is not None:
            engine.leave_out(Z, W)
            engine.next_check = 0.0  # an epoch after Pegasos is often enough

    def _enter_sdca(self, u: Array, b: Array, W: Array | None = None) -> DualAscentEngine:
        engine = self.sdca.engine(self.problem, self.options)
        assert isinstance(engine, DualAscentEngine)
        engine.begin_at(np.ascontiguousarray(u), b, W)
        self.stage, self.engine = "sdca", engine
        return engine

    def start(self, point: Point[Weights]) -> None:
        """Begin with SDCA at the dual variables of the point, unless a second-order method is at work."""
        if self.stage in ("pegasos", "sdca") and point.duals is not None:
            self._enter_sdca(feasible(self.problem, point.duals), point.model.b)

    def model(self) -> tuple[Array | None, Array]:
        return self.engine.model()

    def duals(self) -> Array | None:
        return self.engine.duals()

    def learn(self, bounds: Bounds[Weights]) -> None:
        if self.stage == "pegasos":
            self._to_sdca()
            return
        self.engine.learn(bounds)
        if self.stage == "sdca":
            self.history.append((self.engine.epochs, float((bounds.gap / bounds.primal).max())))
            if self._too_slow():
                self.spent += self.engine.epochs
                self._enter_second_order()

    def _too_slow(self) -> bool:
        """Whether, at the rate of the last certificates, the next factor of ten costs more than changing the method."""
        if len(self.history) < 3:
            return False
        (e0, g0), _, (e1, g1) = self.history[-3:]
        rate = np.log10(max(g0, 1e-300) / max(g1, 1e-300)) / (e1 - e0) if e1 > e0 else 0.0
        if rate <= 0:
            rate = 1e-9
        return bool(epoch_cost(self.problem) / rate > self.cost)

    def state(self) -> State:
        mine = {"auto.stage": np.array([float(STAGES.index(self.stage))]), "auto.spent": np.array([self.spent])}
        mine["auto.history"] = np.array(self.history).reshape(-1, 2)
        return mine | {f"engine.{k}": v for k, v in self.engine.state().items()}

    def restore(self, state: State) -> None:
        index = int(saved(state, "auto.stage", (1,), low=0, high=len(STAGES) - 1, whole=True)[0])
        stage = STAGES[index]
        solvable = stage in ("pegasos", "sdca") or (
            np.isfinite(self.cost) and self.problem.loss.name in METHODS[stage].losses
        )
        if index < STAGES.index(self.stage) or not solvable:
            raise ValueError(f"state: {stage!r} is no stage of this problem")
        if stage != self.stage:
            self._enter(self.sdca if stage == "sdca" else METHODS[stage]())
        self.spent = float(saved(state, "auto.spent", (1,), low=0, high=1e15)[0])
        self.history = [(float(e), float(g)) for e, g in saved(state, "auto.history", (None, 2))]
        self.engine.restore({k.removeprefix("engine."): v for k, v in state.items() if k.startswith("engine.")})


@dataclass(frozen=True)
class Auto(Solver):
    """The default: chooses by size, hardness κ = λm/R² and progress; see the guide's page on choosing a solver.

    Narrow data go to a second-order method where that is cheaper than the epochs :class:`SDCA` would need:
    :class:`InteriorPoint` (tiny problems, smooth losses) or :class:`SmoothedNewton`. All else begins with one epoch of
    :class:`Pegasos`, whose dual point starts :class:`SDCA`; if that stalls on narrow data, a second-order method takes
    over. A :class:`~pegasos.losses.CustomLoss` goes to :class:`LBFGS` if it is smooth, else to :class:`CuttingPlane`.

    Parameters
    ----------
    blocks : int or None, default=None
        As for :class:`SDCA`, where that is used.

    Examples
    --------
    >>> from pegasos import LinearSVC
    >>> LinearSVC(solver="auto").fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).certificate_.converged
    True
    """

    blocks: int | None = None
    name: ClassVar[str] = "auto"
    own_losses: ClassVar[bool] = True
    intercepts: ClassVar[tuple[str, ...]] = ("unregularized", "subgradient", "batch", "search")

    def __post_init__(self) -> None:
        check_count(self, "blocks", none=True)

    def _specialist(self, intercept: str) -> Pegasos | SDCA | None:
        """The solver for the intercepts that only one kind of solver can learn."""
        if intercept in ("subgradient", "batch"):
            return Pegasos(batch_size=64 if intercept == "batch" else 1)
        return SDCA(blocks=self.blocks) if intercept == "search" else None

    def check(self, problem: LinearProblem, intercept: str) -> None:
        super().check(problem, intercept)
        if (specialist := self._specialist(intercept)) is not None:
            specialist.check(problem, intercept)

    def engine(self, problem: LinearProblem, options: Options) -> LinearEngine:
        if (specialist := self._specialist(options.intercept)) is not None:
            return specialist.engine(problem, options)
        if problem.loss.own:
            return (LBFGS() if np.isfinite(problem.loss.smoothness) else CuttingPlane()).engine(problem, options)
        return AutoEngine(problem, options, blocks=self.blocks)
