"""Newton's method on the primal problem of a kernel machine (Chapelle 2007), for smooth losses.

With w = Σ β_i φ(x_i) the primal is a function of β and the bias. A step solves for the rows whose loss is curved at
their score, the active ones; for the squared hinge those of margin below 1. The formulas are in ``newton_part.py``.

The number of active rows n_A is what a step costs, O(n_A³) beside the kernel values. It is small at the optimum, where
the active rows are the support vectors, and large at zero weights. So half of the rows are solved first, roughly, and
before them half of these, down to a thousand: Chapelle's recursion. The loss of a row weighs the same at each level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from pegasos.fit.engine import MAX_ITER, Engine, Options
from pegasos.kernels.leading import LeadingBlocks
from pegasos.losses import Which
from pegasos.problems.base import Bounds, Point
from pegasos.problems.kernel import Coefficients, KernelProblem
from pegasos.problems.part import check_values
from pegasos.rows.views import Array
from pegasos.solvers.base import KernelSolver, check_count
from pegasos.solvers.kernel.newton_part import NewtonEnding, NewtonPart
from pegasos.solvers.kernel.reasons import DUAL_MET, STALLED
from pegasos.util.fields import MAX_FINITE, State, saved
from pegasos.util.threads import one_blas_thread

#: The goal of a part whose gap is too wide all the same is lowered to this share of it, but not below rounding.
LOWER_GOAL, MIN_GOAL = 0.1, 1e-17


class _Numbers(NamedTuple):
    """The numbers of a part in a saved state, in the order of its columns."""

    b: float
    level: float
    steps: float
    gap: float
    goal: float
    ending: float
    at_rest: float


class _Counts(NamedTuple):
    """The numbers of the engine in a saved state, in their order."""

    evaluations: float
    visits: float


class PrimalNewtonEngine(Engine[Coefficients]):
    """Newton steps on one part after the other."""

    def __init__(self, problem: KernelProblem, options: Options, *, first_rows: int, max_active: int) -> None:
        self.problem, self.max_steps = problem, options.max_steps
        rng, free = np.random.default_rng(options.seed), problem.bias == "free"
        self.states = [
            NewtonPart(p, rng.permutation(p.m), first_rows, free=free, goal=options.tol, max_active=max_active)
            for p in problem.parts
        ]
        self.before, self.visits = 0, 0
        self._blocks: tuple[int, LeadingBlocks] | None = None

    # --- what the loop asks ------------------------------------------------------------------------------------------

    @property
    def current(self) -> int | None:
        """The part that is worked on, None if all rest."""
        return next((k for k, state in enumerate(self.states) if not state.at_rest and not state.ending), None)

    @property
    def evaluations(self) -> int:
        """Kernel values computed so far, but for certificates."""
        return self.before + (0 if self._blocks is None else self._blocks[1].evaluations)

    @property
    def epochs(self) -> float:
        """Rows of the steps so far, in units of the rows there are."""
        return self.visits / max(1, int(self.problem.X.shape[0]))

    @property
    def steps(self) -> list[int]:
        """Newton steps on each part."""
        return [state.steps for state in self.states]

    @property
    def indefinite(self) -> bool:  # type: ignore[override]
        """Whether the equations of a step had no solution that a positive semi-definite kernel could have."""
        return any(state.ending is NewtonEnding.INDEFINITE for state in self.states)

    @property
    def stuck(self) -> str | None:
        if self.current is not None:
            return None
        endings, doubt = {state.ending for state in self.states}, self.problem.doubt
        if NewtonEnding.MAX_STEPS in endings:
            return MAX_ITER
        if doubt and endings == {NewtonEnding.OPEN}:
            return f"{DUAL_MET}; {doubt}"
        worst = max(endings)
        reason = worst.reason if doubt or worst is not NewtonEnding.INDEFINITE else STALLED
        return f"{reason}; {doubt}" if doubt and reason != doubt else reason

    @property
    def goals(self) -> tuple[str, ...]:
        """Where there is no lower bound: that the dual value comes within ``tol`` of the primal one all the same."""
        return (f"{DUAL_MET}; {self.problem.doubt}",)

    def due(self, tol: float) -> bool:
        """After every step on all rows of a single part, and when all parts rest."""
        state = self.states[0]
        return self.current is None or (len(self.states) == 1 and state.n == state.m)

    def point(self, *, last: bool = False) -> Point[Coefficients]:
        """Coefficients, and the slopes of the losses as dual variables."""
        coef = np.concatenate([state.coefficients() for state in self.states])
        return Point(Coefficients(coef), np.concatenate([state.duals() for state in self.states]))

    def learn(self, bounds: Bounds[Coefficients]) -> None:
        """Lower the goal of parts at rest whose gap is too wide."""
        for state, gap, primal in zip(self.states, bounds.formal_gap, bounds.primal, strict=True):
            if state.at_rest and not gap <= state.goal * primal:
                state.goal *= LOWER_GOAL
                state.at_rest = False
                if state.goal < MIN_GOAL:
                    state.ending = NewtonEnding.STALLED

    # --- the work ----------------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """A step on a part."""
        if (k := self.current) is None:
            return
        state, before = self.states[k], self.states[k].steps
        with one_blas_thread():  # the bits of its products depend on their number
            state.step(self._kernel(k, state))
        self.visits += state.n * (state.steps - before)
        if self.max_steps is not None and state.steps >= self.max_steps and not (state.at_rest or state.ending):
            state.ending = NewtonEnding.MAX_STEPS

    def _kernel(self, k: int, state: NewtonPart) -> LeadingBlocks:
        if self._blocks is None or self._blocks[0] != k:
            self.before, problem = self.evaluations, self.problem
            extra = problem.feature**2 if problem.bias == "feature" else 0.0

            def check(K: Array, rows: Array, cols: Array) -> None:
                check_values(K, problem.numbers(k, rows), problem.numbers(k, cols))

            self._blocks = None  # of the part before, to make room
            self._blocks = k, LeadingBlocks(problem.rows(k), state.order, problem.rows.megabytes, extra, check)
        return self._blocks[1]

    # --- the state ---------------------------------------------------------------------------------------------------

    def state(self) -> State:
        numbers = [_Numbers(s.b, s.level, s.steps, s.gap, s.goal, s.ending, s.at_rest) for s in self.states]
        arrays: State = {}
        for name in ("beta", "F"):
            padded = [np.pad(getattr(s, name), (0, s.m - s.n)) for s in self.states]
            arrays[name] = np.concatenate(padded)
        return arrays | {
            "numbers": np.array(numbers, dtype=np.float64),
            "counts": np.array(_Counts(self.evaluations, self.visits), dtype=np.float64),
        }

    def restore(self, state: State) -> None:
        rows, parts = sum(s.m for s in self.states), len(self.states)
        beta, F = (saved(state, name, (rows,), low=-MAX_FINITE, high=MAX_FINITE) for name in ("beta", "F"))
        table = saved(state, "numbers", (parts, len(_Numbers._fields)))
        counts = _Counts(*saved(state, "counts", (len(_Counts._fields),), low=0, high=2**62, whole=True))
        pieces = zip(self.states, self.problem.split(beta), self.problem.split(F), table, strict=True)
        for mine, own, scores, row in pieces:
            known = {name: np.array([number]) for name, number in _Numbers(*row)._asdict().items()}
            mine.level = int(saved(known, "level", (1,), low=0, high=len(mine.sizes) - 1, whole=True)[0])
            mine.steps = int(saved(known, "steps", (1,), low=0, high=2**53, whole=True)[0])
            mine.ending = NewtonEnding(int(saved(known, "ending", (1,), low=0, high=max(NewtonEnding), whole=True)[0]))
            mine.at_rest = bool(saved(known, "at_rest", (1,), low=0, high=1, whole=True)[0])
            mine.b = float(saved(known, "b", (1,), low=-MAX_FINITE, high=MAX_FINITE)[0])
            mine.goal = float(saved(known, "goal", (1,), low=0, high=MAX_FINITE)[0])
            mine.gap = float(row[_Numbers._fields.index("gap")])
            mine.beta, mine.F = own[: mine.n].copy(), scores[: mine.n].copy()
            if mine.ending is NewtonEnding.MAX_STEPS and (self.max_steps is None or mine.steps < self.max_steps):
                mine.ending = NewtonEnding.OPEN
        self._blocks, self.before, self.visits = None, int(counts.evaluations), int(counts.visits)


@dataclass(frozen=True)
class PrimalNewton(KernelSolver):
    """Newton's method on the primal problem, for smooth losses: few steps, each as dear as its active rows cubed.

    With w = Σ β_i φ(x_i) a step for the squared hinge is β = (K + I/(2C))⁻¹(y − b) on the rows whose margin is below 1,
    and zero on the others (Chapelle, *Training a support vector machine in the primal*, Neural Computation 19, 2007);
    other smooth losses are linearised at their scores. Where a full step does not decrease the objective it is
    halved. The active rows are kept few by solving half of the rows first, and before them half of these, down to
    ``first_rows``. The bias is not regularised, or that of a constant feature, or there is none. A gap of 1e-9
    takes a step or two more than one of 1e-3.

    Parameters
    ----------
    first_rows : int, default=1000
        Rows of the first level at most; with at least as many as there are, there are no levels.
    max_active : int, default=20000
        Active rows beyond which a fit ends, with the reason in its certificate: the equations of a step take
        8 · active² bytes beside the kernel values that are kept. For losses that are curved everywhere, as the log loss
        is, all rows are active.

    Examples
    --------
    >>> from pegasos import SVC
    >>> model = SVC(solver="newton", loss="squared_hinge", gamma=1.0, tol=1e-9)
    >>> model.fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 1, 0]).certificate_.converged
    True
    """

    first_rows: int = 1000
    max_active: int = 20_000
    name: ClassVar[str] = "newton"
    intercepts: ClassVar[tuple[str, ...]] = ("unregularized", "feature", "none")
    losses: ClassVar[Which] = Which(lambda loss: loss.smooth and loss.kind != "joint")

    def __post_init__(self) -> None:
        check_count(self, "first_rows")
        check_count(self, "max_active")

    def engine(self, problem: KernelProblem, options: Options) -> Engine[Coefficients]:
        return PrimalNewtonEngine(problem, options, first_rows=int(self.first_rows), max_active=int(self.max_active))
