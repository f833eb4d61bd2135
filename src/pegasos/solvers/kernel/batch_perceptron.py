"""The stochastic batch perceptron on the slack-constrained problem (Cotter, Shalev-Shwartz & Srebro 2012).

    γ* = max_{‖w‖ ≤ 1, b} max_{ξ ≥ 0, Σ c_i ξ_i ≤ Mν} min_i (y_i(⟨w, φ(x_i)⟩ + b) + ξ_i)

A step pours the water (``_water_level``), draws a row of each class from those under it, adds η/2 of both to w and
scales w back into the ball. Averages over the last half to three quarters of the steps are returned: w̄ of level γ̄ means

    w = w̄/γ̄:   mean hinge loss ≤ ν/γ̄,   ‖w‖ ≤ 1/γ̄,

and the average p of the distributions that were drawn from, for which Σ p_i y_i = 0, bounds what is possible,

    γ̄ ≤ γ* ≤ ‖Σ p_i y_i φ(x_i)‖ + Mν max_i p_i/c_i.

ν = (mean hinge loss of w*)/‖w*‖ makes the solution that of the machine with weights w*, and γ* = 1/‖w*‖. y_i p_i,
scaled, is a dual point of that machine: from it comes the lower bound of the estimator's own objective.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from pegasos.fit.engine import MAX_ITER, Engine, Options
from pegasos.losses import Which
from pegasos.problems.base import Bounds, Point
from pegasos.problems.kernel import Coefficients, KernelProblem
from pegasos.problems.part import Part
from pegasos.rows.views import Array
from pegasos.solvers.base import KernelSolver, check_count
from pegasos.solvers.kernel.reasons import MET
from pegasos.solvers.kernel.slack_level import Basin
from pegasos.solvers.kernel.smo_engine import REASONS, SMOEngine
from pegasos.util.fields import saved
from pegasos.util.threads import dot, one_blas_thread

#: The accuracy of the quick solution that ν is taken from.
QUICK = 0.01

#: Steps of a piece of work, and between certificates; those come after half as many more steps, and cost no more kernel
#: values than twice what the steps before have used.
PIECE, FIRST = 32, 256

#: Why a part can end; a saved state holds the index.
CLOSE = "the level is within tol of its upper bound"
OVER = (None, "reached", MAX_ITER, "the steps of the solver are over", CLOSE)


@dataclass(frozen=True)
class SBPResult:
    """What the stochastic batch perceptron guarantees of its own problem, for one pair of classes.

    Attributes
    ----------
    nu : float
        ν, the slack allowed to a row on average.
    gamma : float
        γ̄, the level reached: the mean hinge loss of the returned weights is at most ν/γ̄ and their norm at most 1/γ̄.
    upper : float
        No weights of norm 1 have a level above it: γ̄ ≤ γ* ≤ upper; ∞ if the kernel is not known to be positive
        semi-definite.
    steps : int
        Steps taken.

    Examples
    --------
    >>> from pegasos import SBP, SVC
    >>> model = SVC(solver=SBP(nu=0.1), tol=0.5).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.sbp_[0].gamma <= model.sbp_[0].upper
    True
    """

    nu: float
    gamma: float
    upper: float
    steps: int


class _Window:
    """Sums over a stretch of steps: of α, and of η p; how many steps, and their η."""

    def __init__(self, m: int) -> None:
        self.sums = np.zeros((2, m))
        self.steps, self.eta = 0, 0.0


class _State:
    """Where one part is. ``alpha`` ≥ 0; F are the scores of w = Σ α_i y_i φ(x_i)."""

    def __init__(self, part: Part, nu: float) -> None:
        self.part, self.basin = part, Basin(part.y, part.weight)
        self.alpha, self.F = np.zeros(part.m), np.zeros(part.m)
        self.older, self.newer = _Window(part.m), _Window(part.m)
        self.steps, self.over, self.due = 0, 0, max(FIRST, part.m // 16)
        self.nu, self.total = nu, float(part.weight.sum())
        #: The weights last proposed as coefficients of the rows, their dual variables, and whether w has moved since.
        self.coef, self.u, self.measured = np.zeros(part.m), np.zeros(part.m), False
        self.gamma_bar, self.upper = 0.0, np.inf

    @property
    def volume(self) -> float:
        """Mν, the slack there is."""
        return self.nu * self.total

    def averages(self) -> tuple[Array, Array]:
        """ᾱ and p."""
        sums = self.older.sums + self.newer.sums
        steps, eta = self.older.steps + self.newer.steps, self.older.eta + self.newer.eta
        return (sums[0] / steps, sums[1] / eta) if steps else (sums[0], sums[1])


class SBPEngine(Engine[Coefficients]):
    """One part after the other. Where ν is not given, SMO solves all of them roughly first."""

    #: The objective is not what it minimises.
    returns_last = True

    def __init__(
        self,
        problem: KernelProblem,
        options: Options,
        *,
        nu: float | None,
        own_steps: int,
    ) -> None:
        self.problem, self.tol, self.seed = problem, options.tol, options.seed
        self.max_steps, self.own_steps = options.max_steps, own_steps
        self.given = nu is not None
        self.scout = SMOEngine(problem, Options(tol=QUICK)) if nu is None else None
        self.states = [_State(part, 0.0 if nu is None else nu) for part in problem.pieces]
        self.before, self.work, self.indefinite = 0, 0, False
        self._diagonal: tuple[int, Array] | None = None

    # --- what the loop asks ------------------------------------------------------------------------------------------

    @property
    def evaluations(self) -> int:
        """Kernel values computed so far, but for certificates."""
        return self.before + self.problem.rows.evaluations

    @property
    def epochs(self) -> float:
        """Kernel values used, whether computed or found in the cache, by those of the whole kernel matrix."""
        scouted = 0 if self.scout is None else self.scout.work
        return (self.work + scouted) / max(1, int(self.problem.X.shape[0])) ** 2

    @property
    def steps(self) -> list[int]:
        """Steps of each part."""
        return [state.steps for state in self.states]

    @property
    def stuck(self) -> str | None:
        ends = [state.over or self._spent(state) for state in self.states]
        if not all(ends) or self.scout is not None:
            return None
        doubt = REASONS[3] if self.indefinite and self.problem.doubt else self.problem.doubt
        reason = next((OVER[end] for end in ends if end > 1), None)
        return f"{reason or MET}; {doubt}" if doubt and reason != MAX_ITER else reason

    @property
    def goals(self) -> tuple[str, ...]:
        """The solution for a ν that was given; where there is no lower bound, what would be close to one."""
        doubts = {self.problem.doubt, REASONS[3]}
        return CLOSE, *(f"{reached}; {doubt}" for reached in (CLOSE, MET) for doubt in sorted(doubts))

    def due(self, tol: float) -> bool:
        if self.scout is not None:
            return False
        current = next((state for state in self.states if not state.over), None)
        return current is None or current.steps >= current.due or self._spent(current) > 0

    def point(self, *, last: bool = False) -> Point[Coefficients]:
        """The average weights of all parts, which need not be those of feasible dual variables, and p as such."""
        for k, state in enumerate(self.states):
            if not state.measured:
                self._measure(k, state)
        coefs, duals = [state.coef for state in self.states], [state.u for state in self.states]
        return Point(Coefficients(np.concatenate(coefs)), np.concatenate(duals), separate=True)

    def _measure(self, k: int, state: _State) -> None:
        """γ̄ of the average weights and its upper bound, in float64; they are zero where that is no worse."""
        part, y, volume = state.part, state.part.y, state.volume
        alpha, p = state.averages()
        state.coef, state.gamma_bar = np.zeros(part.m), state.basin.fill(np.zeros(part.m), volume).gamma
        if alpha.any():
            F = self.problem.scores(k, y * alpha)
            length = max(1.0, float(np.sqrt(max(dot(y * alpha, F), 0.0))))  # what rounding has pushed out of the ball
            level = state.basin.fill(y * F / length, volume).gamma
            if level > state.gamma_bar:
                state.coef, state.gamma_bar = y * alpha / (length * level), level
        # y p as dual variables, as large as the box allows: the certificate finds the best multiple.
        share = np.divide(p, part.weight, out=np.zeros(part.m), where=part.weight > 0)
        state.u = part.feasible_duals(y * share / max(float(share.max()), np.finfo(float).tiny), balanced=True)
        q = part.shares * state.u
        if size := float(np.abs(q).sum()):
            square = self.problem.square(k, q)
            self._look_at(square / size**2, float(self._diagonal_of(k).max()))
            steepest = float(np.abs(state.u).max()) * part.C / size
            state.upper = min(state.upper, float(np.sqrt(max(square, 0.0))) / size + volume * steepest)
        state.measured = True

    def learn(self, bounds: Bounds[Coefficients]) -> None:
        """Go over to the next part where this one is good enough."""
        for k, state in enumerate(self.states):
            if not state.over:
                if float(bounds.formal_gap[k]) <= self.tol * float(bounds.primal[k]):
                    state.over = 1
                else:
                    state.over = self._spent(state)
                    alpha, p = (int(np.count_nonzero(numbers)) for numbers in state.averages())
                    cost = alpha * state.part.m + p**2
                    state.due = state.steps + max(FIRST, state.steps // 2, cost // (4 * state.part.m))
                return

    def _spent(self, state: _State) -> int:
        """Why no more steps are taken, as an index of ``OVER``: a limit, or the solution for a ν that was given."""
        if self.max_steps is not None and state.steps >= self.max_steps:
            return 2
        if self.given and state.measured and state.upper - state.gamma_bar <= self.tol * state.upper:
            return 4
        return 3 if state.steps >= self.own_steps else 0

    def attributes(self) -> dict[str, Any]:
        """The guarantees of each part as of its last certificate; the upper bound needs a space of features."""
        proven = [self.problem.definiteness(k).known == "proven" for k in range(self.problem.parts)]
        results = tuple(
            SBPResult(float(s.nu), float(s.gamma_bar), float(s.upper) if sure else np.inf, s.steps)
            for s, sure in zip(self.states, proven, strict=True)
        )
        return {"sbp_": results}

    # --- the work ----------------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """A round of the quick solution, or some steps of one part."""
        if self.scout is not None:
            self.scout.advance()
            if all(state.rests for state in self.scout.states):
                self._take_slack(self.scout)
            return
        with one_blas_thread():
            for k, state in enumerate(self.states):
                if not state.over:
                    for _ in range(PIECE):
                        if state.steps >= state.due or self._spent(state):
                            return
                        self._step(k, state)
                    return

    def _take_slack(self, scout: SMOEngine) -> None:
        """ν of each part from its quick solution: the mean hinge loss over the norm."""
        for k, (mine, its) in enumerate(zip(self.states, scout.states, strict=True)):
            part = mine.part
            scores = np.ascontiguousarray(its.F + part.best_bias(its.F))
            loss = float(part.weight @ part.core.value(scores, part.y)) / mine.total
            square = float(its.gamma @ its.F)
            # Weights of zero say nothing; the size of the rows is a slack that leaves room for other ones.
            mine.nu = loss / np.sqrt(square) if square > 0 else float(np.sqrt(max(self._diagonal_of(k).max(), 0.0)))
        self.indefinite |= scout.indefinite
        self.work += scout.work
        self.scout = None

    def _step(self, k: int, state: _State) -> None:
        part, y, diagonal = state.part, state.part.y, self._diagonal_of(k)
        state.measured = False
        state.steps += 1
        level = state.basin.fill(y * state.F, state.volume)
        largest = float(diagonal.max())
        eta = 1.0 / np.sqrt(state.steps * (largest if largest > 0 else 1.0))
        draw = np.random.default_rng([self.seed, k, state.steps]).random(2)
        pair = np.array([_drawn(*side) for side in zip(level.rows, level.chances, draw, strict=True)])
        state.alpha[pair] += 0.5 * eta
        j = int(pair[1])
        before = float(state.F[j])
        self.problem.rows(k).add(pair, np.array([0.5 * eta, -0.5 * eta]), state.F)
        self.work += 2 * part.m
        # F_j has grown by (η/2)(K_ij − K_jj): that gives K_ii + K_jj − 2K_ij.
        bend = float(diagonal[pair[0]] - diagonal[j]) - 4.0 * (float(state.F[j]) - before) / eta
        self._look_at(bend, float(max(diagonal[pair[0]], diagonal[j])))
        square = float(state.alpha @ (y * state.F))
        if not np.isfinite(square):
            raise ValueError("the scores left the range of floating-point numbers; scale the features or lower gamma")
        if square > 1:
            state.alpha /= np.sqrt(square)
            state.F /= np.sqrt(square)
        if state.steps & (state.steps - 1) == 0:  # a power of two
            state.older, state.newer = state.newer, _Window(part.m)
        new = state.newer
        new.sums[0] += state.alpha
        for rows, chances in zip(level.rows, level.chances, strict=True):
            new.sums[1][rows] += 0.5 * eta * chances
        new.steps += 1
        new.eta += eta

    def _look_at(self, square: float, scale: float) -> None:
        """A squared length below zero: there is no feature space, and no bound."""
        self.indefinite |= square < -1e-5 * abs(scale)

    def _diagonal_of(self, k: int) -> Array:
        if self._diagonal is None or self._diagonal[0] != k:
            diagonal = self.problem.rows(k).diagonal()
            if not np.isfinite(diagonal).all():
                row = np.flatnonzero(~np.isfinite(diagonal))[0]
                number = self.problem.numbers(k, np.array([row]))[0]
                raise ValueError(
                    f"the kernel of row {number} and itself is {diagonal[row]}: scale the features, or lower gamma or "
                    "degree"
                )
            self._diagonal = k, diagonal
        return self._diagonal[1]

    # --- the state ---------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        states = self.states
        tables = [np.vstack([s.alpha, s.F, s.older.sums, s.newer.sums]) for s in states]
        numbers = [
            (s.steps, s.over, s.due, s.older.steps, s.newer.steps, s.nu, s.older.eta, s.newer.eta, s.gamma_bar, s.upper)
            for s in states
        ]
        own = {
            "table": np.concatenate(tables, axis=1),
            "numbers": np.array(numbers, dtype=np.float64),
            "counts": np.array(
                [self.evaluations, self.work, self.scout is not None, self.indefinite], dtype=np.float64
            ),
        }
        return own if self.scout is None else own | {f"scout.{n}": a for n, a in self.scout.state().items()}

    def restore(self, state: dict[str, Any]) -> None:
        sizes = [part.m for part in self.problem.pieces]
        table = saved(state, "table", (6, sum(sizes)))
        numbers = saved(state, "numbers", (len(sizes), 10), low=0, high=np.inf)
        for column, high in zip(numbers.T, (2**53, len(OVER) - 1, 2**53, 2**53, 2**53), strict=False):
            saved({"numbers": column.copy()}, "numbers", (len(sizes),), low=0, high=high, whole=True)
        if not np.isfinite(table).all() or not np.isfinite(numbers[:, :9]).all():
            raise ValueError("state: 'table' or 'numbers' has a value that is not finite")
        counts = saved(state, "counts", (4,), low=0, high=2**62, whole=True)
        if counts[2]:
            if self.scout is None:
                raise ValueError("state: 'counts' tells of a quick solution that is not wanted")
            prefix = "scout."
            self.scout.restore({n.removeprefix(prefix): a for n, a in state.items() if n.startswith(prefix)})
        else:
            self.scout = None
        for mine, part, row in zip(self.states, np.split(table, np.cumsum(sizes)[:-1], axis=1), numbers, strict=True):
            mine.alpha, mine.F = part[0].copy(), part[1].copy()
            mine.older.sums, mine.newer.sums = part[2:4].copy(), part[4:6].copy()
            mine.steps, mine.over, mine.due, mine.older.steps, mine.newer.steps = (int(v) for v in row[:5])
            mine.nu, mine.older.eta, mine.newer.eta, mine.gamma_bar, mine.upper = (float(v) for v in row[5:])
            mine.measured = False
            if mine.over in (2, 3) and not self._spent(mine):
                mine.over = 0
        self.before = int(counts[0]) - self.problem.rows.evaluations
        self.work, self.indefinite = int(counts[1]), bool(counts[3])
        self.problem.rows.at = None
        self._diagonal = None


def _drawn(rows: Array, chances: Array, at: float) -> int:
    """The row that the number ``at`` between 0 and 1 draws."""
    ends = np.cumsum(chances)
    return int(rows[min(int(np.searchsorted(ends, at * ends[-1], side="right")), len(rows) - 1)])


@dataclass(frozen=True)
class SBP(KernelSolver):
    """The stochastic batch perceptron, for classification: the largest margin that a given amount of slack allows.

    Maximises the level γ to which all margins can be lifted,

    .. math:: \\gamma^* = \\max_{\\|w\\| \\le 1,\\, b}\\; \\max_{\\xi \\ge 0,\\, \\sum_i c_i \\xi_i \\le M\\nu}\\;
        \\min_i\\; y_i(\\langle w, \\phi(x_i)\\rangle + b) + \\xi_i,

    by steps along rows drawn from those below the level (Cotter, Shalev-Shwartz & Srebro 2012). The model is w/γ for
    the w and γ reached, of norm at most 1/γ and mean hinge loss at most ν/γ. What the method knows of its own problem,
    γ and an upper bound, is in the fitted attribute ``sbp_``, for each pair of classes. The certificate is that of the
    estimator's objective at its ``C``, and the fit stops where that gap is at most ``tol``, or for a given ν where γ is
    that close to its upper bound; expect per cents, not 1e-3.

    Parameters
    ----------
    nu : float or None, default=None
        ν ≥ 0. None: the mean hinge loss divided by the norm of a quick solution by :class:`SMO`, so that the optimum
        is that of the estimator's objective.
    max_steps : int, default=20000
        Steps on each pair of classes.

    Examples
    --------
    >>> from pegasos import SBP, SVC
    >>> model = SVC(solver=SBP(), gamma=1.0, tol=0.1).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 1, 0])
    >>> model.predict([[0.0], [1.5]])
    array([0, 1])
    """

    nu: float | None = None
    max_steps: int = 20_000
    name: ClassVar[str] = "sbp"
    losses: ClassVar[Which] = Which(lambda loss: loss.sides == 1)

    def __post_init__(self) -> None:
        nu = self.nu
        if nu is not None and (not isinstance(nu, Real) or isinstance(nu, bool) or not 0 <= float(nu) < np.inf):
            raise ValueError(f"SBP: nu={nu!r} must be None or a number >= 0")
        check_count(self, "max_steps")

    def engine(self, problem: KernelProblem, options: Options) -> Engine[Coefficients]:
        nu = None if self.nu is None else float(self.nu)
        return SBPEngine(problem, options, nu=nu, own_steps=int(self.max_steps))
