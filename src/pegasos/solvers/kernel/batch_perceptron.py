"""The stochastic batch perceptron on the slack-constrained problem (Cotter, Shalev-Shwartz & Srebro 2012).

    ℓ* = max_{‖w‖ ≤ 1, b} max_{ξ ≥ 0, Σ c_i ξ_i ≤ Mν} min_i (y_i(⟨w, φ(x_i)⟩ + b) + ξ_i)

ℓ is γ in the paper. A step finds the best level and bias for the margins of w (``slack_level.py``), draws a row of each
class from those below the level, adds η/2 of both to w and scales w back into the ball ‖w‖ ≤ 1. Averages over the last
half to three quarters of the steps are returned: w̄ of level ℓ̄ means

    w = w̄/ℓ̄:   mean hinge loss ≤ ν/ℓ̄,   ‖w‖ ≤ 1/ℓ̄,

and the average p of the distributions that were drawn from, for which Σ p_i y_i = 0, bounds what is possible,

    ℓ̄ ≤ ℓ* ≤ ‖Σ p_i y_i φ(x_i)‖ + Mν max_i p_i/c_i.

Without a bias, the paper's own form, one row is drawn from all below the level, η of it is added, and p is balanced by
nothing.

ν = (mean hinge loss of w*)/‖w*‖ makes the solution that of the machine with weights w*, and ℓ* = 1/‖w*‖. y_i p_i,
scaled, is a dual point of that machine: from it comes the lower bound of the estimator's own objective.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar, NamedTuple

import numpy as np

from pegasos.fit.engine import MAX_ITER, Engine, Options
from pegasos.losses import Which
from pegasos.problems.base import Bounds, Point
from pegasos.problems.kernel import INDEFINITE, Coefficients, KernelProblem
from pegasos.rows.views import Array
from pegasos.solvers.base import KernelSolver, check_count
from pegasos.solvers.kernel.batch_perceptron_part import (
    CERTIFICATE_STEPS,
    LEVEL_REACHED,
    Numbers,
    PartState,
    SBPEnding,
    SBPResult,
    Window,
)
from pegasos.solvers.kernel.reasons import DUAL_MET
from pegasos.solvers.kernel.smo_engine import SMOEngine
from pegasos.util.fields import State, saved
from pegasos.util.threads import dot, one_blas_thread

#: The tolerance of the quick solution that ν is taken from.
SCOUT_TOL = 0.01

#: Steps in one call of ``advance``.
STEPS_PER_CALL = 32


class _Counts(NamedTuple):
    """The numbers of the engine in a saved state, in their order."""

    evaluations: float
    work: float
    scouting: float
    indefinite: float


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
        self.scout = SMOEngine(problem, Options(tol=SCOUT_TOL)) if nu is None else None
        self.bias = problem.bias == "free"
        self.states = [PartState(part, 0.0 if nu is None else nu, bias=self.bias) for part in problem.parts]
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
        endings = [state.ending or self._limit(state) for state in self.states]
        if SBPEnding.OPEN in endings or self.scout is not None:
            return None
        doubt = INDEFINITE if self.indefinite and self.problem.doubt else self.problem.doubt
        reason = next((ending.reason for ending in endings if ending is not SBPEnding.REACHED), None)
        return f"{reason or DUAL_MET}; {doubt}" if doubt and reason != MAX_ITER else reason

    @property
    def goals(self) -> tuple[str, ...]:
        """The solution for a ν that was given; where there is no lower bound, the same words with the reason added."""
        doubts = {self.problem.doubt, INDEFINITE}
        return LEVEL_REACHED, *(
            f"{reached}; {doubt}" for reached in (LEVEL_REACHED, DUAL_MET) for doubt in sorted(doubts)
        )

    def due(self, tol: float) -> bool:
        if self.scout is not None:
            return False
        current = next((state for state in self.states if not state.ending), None)
        return current is None or current.steps >= current.due or self._limit(current) is not SBPEnding.OPEN

    def point(self, *, last: bool = False) -> Point[Coefficients]:
        """The average weights of all parts, which need not be those of feasible dual variables, and p as such."""
        for k, state in enumerate(self.states):
            if not state.measured:
                self._measure(k, state)
        coefs, duals = [state.coef for state in self.states], [state.u for state in self.states]
        return Point(Coefficients(np.concatenate(coefs)), np.concatenate(duals), separate=True)

    def _measure(self, k: int, state: PartState) -> None:
        """The level of the average weights and its upper bound, in float64; weights of zero where they are no worse."""
        part, y, slack = state.part, state.part.y, state.slack
        alpha, p = state.averages()
        state.coef, state.level = np.zeros(part.m), state.levels.best(np.zeros(part.m), slack).level
        if alpha.any():
            F = self.problem.scores(k, y * alpha)
            length = max(1.0, float(np.sqrt(max(dot(y * alpha, F), 0.0))))  # above 1 by rounding only
            level = state.levels.best(y * F / length, slack).level
            if level > state.level:
                state.coef, state.level = y * alpha / (length * level), level
        # y p as dual variables, as large as the box allows: the certificate finds the best multiple.
        share = np.divide(p, part.weight, out=np.zeros(part.m), where=part.weight > 0)
        state.u = part.feasible_duals(y * share / max(float(share.max()), np.finfo(float).tiny), balance=self.bias)
        q = part.shares * state.u
        if size := float(np.abs(q).sum()):
            square = self.problem.square(k, q)
            self._check_square(square / size**2, float(self._diagonal_of(k).max()))
            steepest = float(np.abs(state.u).max()) * part.C / size
            state.upper = min(state.upper, float(np.sqrt(max(square, 0.0))) / size + slack * steepest)
        state.measured = True

    def learn(self, bounds: Bounds[Coefficients]) -> None:
        """Go over to the next part where this one is good enough."""
        for k, state in enumerate(self.states):
            if not state.ending:
                if float(bounds.formal_gap[k]) <= self.tol * float(bounds.primal[k]):
                    state.ending = SBPEnding.REACHED
                else:
                    state.ending = self._limit(state)
                    alpha, p = (int(np.count_nonzero(numbers)) for numbers in state.averages())
                    cost = alpha * state.part.m + p**2
                    state.due = state.steps + max(CERTIFICATE_STEPS, state.steps // 2, cost // (4 * state.part.m))
                return

    def _limit(self, state: PartState) -> SBPEnding:
        """Why no more steps are taken: a limit, or the solution for a ν that was given; OPEN if there is no reason."""
        if self.max_steps is not None and state.steps >= self.max_steps:
            return SBPEnding.MAX_STEPS
        if self.given and state.measured and state.upper - state.level <= self.tol * state.upper:
            return SBPEnding.LEVEL_CLOSE
        return SBPEnding.OWN_STEPS_DONE if state.steps >= self.own_steps else SBPEnding.OPEN

    def attributes(self) -> dict[str, object]:
        """The guarantees of each part as of its last certificate; the upper bound needs a space of features."""
        proven = [self.problem.definiteness(k).known == "proven" for k in range(self.problem.n_parts)]
        results = tuple(
            SBPResult(float(s.nu), float(s.level), float(s.upper) if sure else np.inf, s.steps)
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
                if not state.ending:
                    for _ in range(STEPS_PER_CALL):
                        if state.steps >= state.due or self._limit(state):
                            return
                        self._step(k, state)
                    return

    def _take_slack(self, scout: SMOEngine) -> None:
        """ν of each part from its quick solution: the mean hinge loss over the norm."""
        for k, (mine, its) in enumerate(zip(self.states, scout.states, strict=True)):
            part = mine.part
            scores = np.ascontiguousarray(its.F + (part.best_bias(its.F) if self.bias else 0.0))
            loss = float(part.weight @ part.core.value(scores, part.y)) / mine.total
            square = float(its.alpha @ its.F)
            # Weights of zero have no ratio; the norm of the longest row is a slack that allows other weights.
            mine.nu = loss / np.sqrt(square) if square > 0 else float(np.sqrt(max(self._diagonal_of(k).max(), 0.0)))
        self.indefinite |= scout.indefinite
        self.work += scout.work
        self.scout = None

    def _step(self, k: int, state: PartState) -> None:
        part, y, diagonal = state.part, state.part.y, self._diagonal_of(k)
        state.measured = False
        state.steps += 1
        level = state.levels.best(y * state.F, state.slack)
        largest = float(diagonal.max())
        eta = 1.0 / np.sqrt(state.steps * (largest if largest > 0 else 1.0))
        share = eta / len(level.rows)  # of each that is drawn: a row of each class, or one of all
        draw = np.random.default_rng([self.seed, k, state.steps]).random(len(level.rows))
        drawn = np.array([_drawn(*side) for side in zip(level.rows, level.chances, draw, strict=True)])
        state.alpha[drawn] += share
        i, j = int(drawn[0]), int(drawn[-1])
        before = float(state.F[j])
        self.problem.rows(k).add(drawn, share * y[drawn], state.F)
        self.work += len(drawn) * part.m
        bend = float(diagonal[i])
        if i != j:  # F_j has grown by (η/2)(K_ij − K_jj): that gives K_ii + K_jj − 2K_ij.
            bend = float(diagonal[i] - diagonal[j]) - 2.0 * (float(state.F[j]) - before) / share
        self._check_square(bend, float(max(diagonal[i], diagonal[j])))
        square = float(state.alpha @ (y * state.F))
        if not np.isfinite(square):
            raise ValueError("the scores left the range of floating-point numbers; scale the features or lower gamma")
        if square > 1:
            state.alpha /= np.sqrt(square)
            state.F /= np.sqrt(square)
        if state.steps & (state.steps - 1) == 0:  # a power of two
            state.older, state.newer = state.newer, Window(part.m)
        new = state.newer
        new.sums[0] += state.alpha
        for rows, chances in zip(level.rows, level.chances, strict=True):
            new.sums[1][rows] += share * chances
        new.steps += 1
        new.eta += eta

    def _check_square(self, square: float, scale: float) -> None:
        """Remember a squared length below zero: then there is no feature space, and no lower bound."""
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

    def state(self) -> State:
        states = self.states
        tables = [np.vstack([s.alpha, s.F, s.older.sums, s.newer.sums]) for s in states]
        counts = _Counts(self.evaluations, self.work, self.scout is not None, self.indefinite)
        own = {
            "table": np.concatenate(tables, axis=1),
            "numbers": np.array([s.numbers() for s in states], dtype=np.float64),
            "counts": np.array(counts, dtype=np.float64),
        }
        return own if self.scout is None else own | {f"scout.{n}": a for n, a in self.scout.state().items()}

    def restore(self, state: State) -> None:
        sizes = [part.m for part in self.problem.parts]
        table = saved(state, "table", (6, sum(sizes)))
        numbers = saved(state, "numbers", (len(sizes), len(Numbers._fields)), low=0, high=np.inf)
        for column, high in zip(numbers.T, (2**53, max(SBPEnding), 2**53, 2**53, 2**53), strict=False):
            saved({"numbers": column.copy()}, "numbers", (len(sizes),), low=0, high=high, whole=True)
        if not np.isfinite(table).all() or not np.isfinite(numbers[:, :-1]).all():
            raise ValueError("state: 'table' or 'numbers' has a value that is not finite")
        counts = _Counts(*saved(state, "counts", (len(_Counts._fields),), low=0, high=2**62, whole=True))
        if counts.scouting:
            if self.scout is None:
                raise ValueError("state: 'counts' says that a quick solution is under way, but nu is given")
            prefix = "scout."
            self.scout.restore({n.removeprefix(prefix): a for n, a in state.items() if n.startswith(prefix)})
        else:
            self.scout = None
        for mine, part, row in zip(self.states, np.split(table, np.cumsum(sizes)[:-1], axis=1), numbers, strict=True):
            mine.alpha, mine.F = part[0].copy(), part[1].copy()
            mine.older.sums, mine.newer.sums = part[2:4].copy(), part[4:6].copy()
            mine.set_numbers(Numbers(*row))
            mine.measured = False
            if mine.ending in (SBPEnding.MAX_STEPS, SBPEnding.OWN_STEPS_DONE) and not self._limit(mine):
                mine.ending = SBPEnding.OPEN
        self.before = int(counts.evaluations) - self.problem.rows.evaluations
        self.work, self.indefinite = int(counts.work), bool(counts.indefinite)
        self.problem.rows.at = None
        self._diagonal = None


def _drawn(rows: Array, chances: Array, at: float) -> int:
    """The row that the number ``at`` between 0 and 1 draws."""
    ends = np.cumsum(chances)
    return int(rows[min(int(np.searchsorted(ends, at * ends[-1], side="right")), len(rows) - 1)])


@dataclass(frozen=True)
class SBP(KernelSolver):
    """The stochastic batch perceptron, for classification: the largest margin that a given amount of slack allows.

    Maximises the level ℓ (γ in the paper) to which all margins can be lifted,

    .. math:: \\ell^* = \\max_{\\|w\\| \\le 1,\\, b}\\; \\max_{\\xi \\ge 0,\\, \\sum_i c_i \\xi_i \\le M\\nu}\\;
        \\min_i\\; y_i(\\langle w, \\phi(x_i)\\rangle + b) + \\xi_i,

    by steps along rows drawn from those below the level (Cotter, Shalev-Shwartz & Srebro 2012): one of each class, or
    with ``fit_intercept=False``, b = 0 and the form of the paper, one of all. The model is w/ℓ for
    the w and ℓ reached, of norm at most 1/ℓ and mean hinge loss at most ν/ℓ. What the method knows of its own problem,
    ℓ and an upper bound, is in the fitted attribute ``sbp_``, for each pair of classes. The certificate is that of the
    estimator's objective at its ``C``, and the fit stops where that gap is at most ``tol``, or for a given ν where ℓ is
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
    intercepts: ClassVar[tuple[str, ...]] = ("unregularized", "none")
    losses: ClassVar[Which] = Which(lambda loss: loss.sides == 1)

    def __post_init__(self) -> None:
        nu = self.nu
        if nu is not None and (not isinstance(nu, Real) or isinstance(nu, bool) or not 0 <= float(nu) < np.inf):
            raise ValueError(f"SBP: nu={nu!r} must be None or a number >= 0")
        check_count(self, "max_steps")

    def engine(self, problem: KernelProblem, options: Options) -> Engine[Coefficients]:
        nu = None if self.nu is None else float(self.nu)
        return SBPEngine(problem, options, nu=nu, own_steps=int(self.max_steps))
