"""Sequential minimal optimisation with a batched working set, for kernel machines.

Each round takes the variables that violate the optimality conditions most, half of them kept from the round before,
computes their k × k part of the kernel matrix, solves the dual over them by pairs of second-order choice (Fan, Chen &
Lin 2005), and adds the rows of what has changed to the scores: the rows are computed together, as fast as a matrix
product, and added up in float64. ThunderSVM (Wen et al. 2018) and oneDAL work so.

Without a bias there is no Σα = 0: each variable violates the conditions by itself, and the two of a step need not make
up for each other (Steinwart, Hush & Scovel 2011).
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from pegasos import _core
from pegasos.fit.engine import MAX_ITER, Engine, Options
from pegasos.kernels.cache import padded
from pegasos.kernels.gram import Provider
from pegasos.kernels.rounding import Drift
from pegasos.problems.base import Bounds, Point, RunningScores
from pegasos.problems.kernel import FULL_CERTIFICATE_VALUES, INDEFINITE, Coefficients, KernelProblem
from pegasos.problems.part import Part, check_values
from pegasos.rows.views import Array
from pegasos.solvers.kernel.reasons import CONDITIONS, SINGLE_CONDITIONS, Ending
from pegasos.solvers.kernel.smo_part import MAX_STALE_ROUNDS, SMOPart, saved_scalars
from pegasos.solvers.kernel.working_set import newton_steps, select
from pegasos.util.fields import MAX_FINITE, State, saved

#: Variables of the first working set, and of the largest.
FIRST_WORKING_SET, MAX_WORKING_SET = 1024, 4096

#: Where there are several parts: the smallest first working set, and its variables for each row of the rarer class.
MIN_WORKING_SET, VARIABLES_PER_RARE_ROW = 128, 16

#: The violation that is aimed at, in units of ``tol``. Below 1: LIBSVM, which moves a pair at a time, leaves few
#: violations as large as ``tol``, a batch of pairs may leave many.
VIOLATION_TARGET_SHARE = 0.5

#: Share of free variables in a working set above which the next one is twice as large.
MAX_FREE_SHARE = 0.9

#: The violation that the solution of a working set leaves, as a share of what it began with.
INNER_VIOLATION_SHARE = 0.03

#: A certificate may cost this share of the kernel values used since the last one.
CERTIFICATE_COST_SHARE = 1 / 40

#: Kernel values used between two certificates at least: about half a second of work.
CERTIFICATE_SPACING = 1 << 27

#: No certificate is due between these violations, LIBSVM's default tolerance and a larger one: the gap would often be
#: small enough already, and the fit would end before LIBSVM's does.
LIBSVM_VIOLATION, LIKELY_VIOLATION = 1e-3, 0.1

#: Up to so many variables of all parts, and steps for each variable, a problem is solved beyond its tolerance.
EAGER_VARIABLES, EAGER_STEPS_PER_VARIABLE = 4000, 20

#: Pair steps on a working set in one call of the core; after so many, Newton's method is tried on the set.
STEPS_PER_CALL = 20_000


class _Counts(NamedTuple):
    """The numbers of the engine in a saved state, in their order."""

    evaluations: float
    work: float
    certified_at: float
    indefinite: float


class SMOEngine(Engine[Coefficients]):
    """Solves one part after the other; ``tol`` is the largest violation allowed, as in LIBSVM, and then the gap."""

    #: How a part can end.
    endings: ClassVar[tuple[Ending, ...]] = (Ending.OPEN, Ending.MAX_STEPS, Ending.STALLED, Ending.INDEFINITE)

    def __init__(self, problem: KernelProblem, options: Options, *, working_set: int | None = None) -> None:
        self.problem, self.fixed, tol = problem, working_set is not None, options.tol
        self.tol, self.max_steps = tol, options.max_steps
        self.balance = problem.bias == "free"  # which means Σα = 0
        self.states = [
            SMOPart(part, working_set or self._start(part), VIOLATION_TARGET_SHARE * tol) for part in problem.parts
        ]
        self.indefinite = False
        self.whole = True  # whether the scores are those of the dual variables: not after an interrupt in a round
        self.before, self.work, self.certified_at, self.first = 0, 0, 0, 0
        self.errors = np.zeros(problem.n_parts)
        self.good = np.zeros(problem.n_parts, dtype=bool)  # whose last certificate was within the tolerance
        self._diagonal: tuple[int, Array] | None = None
        self._block: tuple[int, Array, Array] | None = None
        self._room = np.empty(0)  # memory for the blocks, used again: to allocate it for each would cost time

    def _start(self, part: Part) -> int:
        """Variables of a part's first working set; where one class has few rows, few variables end up above zero."""
        if self.problem.n_parts == 1 or part.loss.sides == 2:
            return FIRST_WORKING_SET
        rarer = min(int(np.count_nonzero(part.y > 0)), int(np.count_nonzero(part.y < 0)))
        return int(np.clip(VARIABLES_PER_RARE_ROW * rarer, MIN_WORKING_SET, FIRST_WORKING_SET))

    # --- what the loop asks ------------------------------------------------------------------------------------------

    @property
    def evaluations(self) -> int:
        """Kernel values computed so far, but for certificates."""
        return self.before + self.problem.rows.evaluations

    @property
    def epochs(self) -> float:
        """Kernel values used, whether computed or found in the cache, by those of the whole kernel matrix."""
        return self.work / max(1, int(self.problem.X.shape[0])) ** 2

    @property
    def steps(self) -> list[int]:
        """Steps, each of two variables, or without a bias of one or two, for each part."""
        return [state.steps for state in self.states]

    @property
    def eager(self) -> bool:
        """Small problems, solved as a whole, are solved to rounding errors while that takes few steps."""
        if sum(state.part.size for state in self.states) > EAGER_VARIABLES:
            return False
        return all(state.whole and state.steps <= EAGER_STEPS_PER_VARIABLE * state.part.size for state in self.states)

    @property
    def stuck(self) -> str | None:
        if self._current is not None:
            return None
        doubt = self._doubt
        if doubt and all(state.violation <= self.tol for state in self.states):
            return f"{self._conditions}; {doubt}"
        if doubt:
            endings = [state.ending for state in self.states]
            return MAX_ITER if Ending.MAX_STEPS in endings else f"{max(endings).reason}; {doubt}"
        wanting = [state.ending for state, good in zip(self.states, self.good, strict=True) if not good]
        return min(wanting).reason if wanting else None

    @property
    def goals(self) -> tuple[str, ...]:
        """Where there is no lower bound LIBSVM's criterion is what counts."""
        return (f"{self._conditions}; {self._doubt}",)

    @property
    def _conditions(self) -> str:
        return CONDITIONS if self.balance else SINGLE_CONDITIONS

    @property
    def _doubt(self) -> str:
        """Why there is no lower bound, if there is none; a step may have shown that the kernel is indefinite."""
        doubt = self.problem.doubt
        return INDEFINITE if doubt and self.indefinite else doubt

    def due(self, tol: float) -> bool:
        if self._current is None:
            return True
        # A fit with the tolerance of LIBSVM, whatever its gap, is to end no earlier than LIBSVM's would.
        if LIBSVM_VIOLATION < self.states[self.first].violation <= LIKELY_VIOLATION:
            return False
        if self.work - self.certified_at <= CERTIFICATE_SPACING:
            return False
        cost = sum(np.count_nonzero(state.alpha) ** 2 for state in self.states)
        return bool(CERTIFICATE_COST_SHARE * (self.work - self.certified_at) > cost)

    def point(self, *, last: bool = False) -> Point[Coefficients]:
        """Feasible coefficients, which are dual variables, too, and the scores kept up to date."""
        coefs = []
        for state in self.states:
            coefs.append(state.part.coefficients(state.part.feasible(state.alpha, balance=self.balance)))
            state.part.forget()
        kept = [RunningScores(s.F, s.part.coefficients(s.alpha), s.drift) for s in self.states]
        return Point(Coefficients(np.concatenate(coefs)), scores=kept if self.whole else None)

    def judged(self, bounds: Bounds[Coefficients]) -> None:
        """Remember which parts are good enough, and the errors of the scores."""
        self.certified_at = self.work
        self.good = bounds.within(self.tol)
        if bounds.score_error is not None:
            self.errors = bounds.score_error

    def learn(self, bounds: Bounds[Coefficients]) -> None:
        """Lower the goal where the gap is too wide; change to double precision where single precision is not enough."""
        self.first = 0
        for k, state in enumerate([] if self.problem.doubt else self.states):
            gap, primal = float(bounds.gap[k]), float(bounds.primal[k])
            if not state.rests or state.ending:
                continue
            if gap > self.tol * primal:
                state.goal *= float(np.clip(0.5 * self.tol * primal / gap, 1e-3, 0.5)) if gap < np.inf else 0.1
            elif self.eager:
                state.goal *= 1e-3
            else:
                continue
            if self.errors[k] > 0.1 * state.goal:
                self.problem.rows.widen(k)
                self._refresh(k, state)
            # Violations below the rounding of the scores, and of the terms that make them up, mean nothing.
            term = float(np.abs(state.alpha).max() * np.abs(self._diagonal_of(k, self.problem.rows(k))).max())
            least = 4 * np.finfo(float).eps * max(float(np.abs(state.part.t).max()), float(np.abs(state.F).max()), term)
            state.goal = max(state.goal, least)
            if state.violation <= least:
                state.ending = Ending.STALLED

    def _refresh(self, k: int, state: SMOPart) -> None:
        """Recompute the scores in double precision, after making the variables feasible."""
        state.alpha = state.part.feasible(state.alpha, balance=self.balance)
        coef = state.part.coefficients(state.alpha)
        support = np.flatnonzero(coef)
        if len(support):
            state.F = self.problem.rows(k).exact(support, coef[support], np.arange(state.part.m))
        state.drift = Drift()
        self._added(k, state, support, coef[support], single=False)
        self._block = None

    def _added(self, k: int, state: SMOPart, rows: Array, changes: Array, *, single: bool) -> None:
        """Add to the bound of the scores' rounding errors what changes of some coefficients have contributed.

        Certificates of parts with few kernel values use no running scores, and need no bound.
        """
        if state.part.m**2 <= FULL_CERTIFICATE_VALUES:
            return
        of_single, of_double = self.problem.rows(k).value_errors()
        state.drift.add(rows, changes, state.part.C * state.part.weight[rows], of_single if single else None, of_double)

    # --- the work ----------------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """A round of one part."""
        if (k := self._current) is not None:
            self.whole = False
            self._round(k, self.states[k])
            self.whole = True

    @property
    def _current(self) -> int | None:
        """The part that is worked on: the first that does not rest. Those before it wait for ``learn``."""
        while self.first < len(self.states) and self.states[self.first].rests:
            self.states[self.first].part.forget()
            self.first += 1
        return self.first if self.first < len(self.states) else None

    def _round(self, k: int, state: SMOPart) -> None:
        part = state.part
        g = part.t - state.F[part.row]
        up, low = state.alpha < part.hi, state.alpha > part.lo
        top = float(g[up].max(initial=-np.inf))
        bottom = float(g[low].min(initial=np.inf))
        state.violation = top - bottom if self.balance else max(top, -bottom)
        if state.rests:
            return
        if not np.isfinite(state.violation):
            raise ValueError("the scores left the range of floating-point numbers; scale the features or lower C")
        whole, ends = state.whole, (top, bottom) if self.balance else (0.0, 0.0)
        working = np.flatnonzero(part.lo < part.hi) if whole else select(state.working, state.size, g, up, low, *ends)
        self._solve(k, state, working, g, whole)
        free = np.count_nonzero((state.alpha[working] > part.lo[working]) & (state.alpha[working] < part.hi[working]))
        if not self.fixed and free > MAX_FREE_SHARE * state.size and state.size < MAX_WORKING_SET:
            state.size *= 2
        state.working = working

    def _solve(self, k: int, state: SMOPart, working: Array, g: Array, whole: bool) -> None:
        """Solve the dual over a working set, and bring the scores up to date."""
        part, rows = state.part, self.problem.rows(k)
        K, count = self._values(k, working, rows), len(working)
        local = np.zeros((5, K.shape[1]))
        diagonal, slope, alpha, lo, hi = local
        of_all = self._diagonal_of(k, rows)[part.row], g, state.alpha, part.lo, part.hi
        for to, values in zip(local, of_all, strict=True):
            to[:count] = values[working]
        left = 2**62 if self.max_steps is None else max(self.max_steps - state.steps, 0)
        steps, _, _, indefinite = _core.smo_block(
            K,
            diagonal,
            slope,
            alpha,
            lo,
            hi,
            count,
            0.0 if whole else INNER_VIOLATION_SHARE,
            0.5 * state.goal,
            min(left, STEPS_PER_CALL),
            self.balance,
        )
        state.steps += steps
        self.indefinite |= indefinite
        if steps == STEPS_PER_CALL and not self.indefinite:
            newton_steps(K[:, :count], slope[:count], alpha[:count], lo[:count], hi[:count], balance=self.balance)
        change = alpha[:count] - state.alpha[working]
        # D(α + δ) − D(α) = δ·(g − Kδ/2), and Kδ is what the slopes have lost.
        gain = 0.5 * float(change @ (g[working] + slope[:count]))
        state.alpha[working] = alpha[:count]
        moved, back = np.unique(part.row[working[change != 0]], return_inverse=True)
        changes = np.bincount(back, weights=change[change != 0], minlength=len(moved))
        rows.add(moved, changes, state.F)
        self._added(k, state, moved, changes, single=rows.single)
        self.work += len(working) ** 2 + len(moved) * part.m
        state.objective += gain
        if gain > 1e-15 * abs(state.objective) or state.violation < 0.9 * state.best:
            state.stale_rounds, state.best = 0, min(state.best, state.violation)
        else:
            state.stale_rounds += 1
        if state.stale_rounds >= MAX_STALE_ROUNDS:
            state.ending = Ending.STALLED
        if self.max_steps is not None and state.steps >= self.max_steps:
            state.ending = Ending.MAX_STEPS

    def _values(self, k: int, working: Array, rows: Provider) -> Array:
        """The kernel values of a working set; those of the last one are kept."""
        if self._block is not None and self._block[0] == k and np.array_equal(self._block[1], working):
            return self._block[2]
        at = self.states[k].part.row[working]
        shape = len(at), padded(len(at))
        if self._room.dtype != rows.dtype or self._room.size < shape[0] * shape[1]:
            self._room = np.empty(shape[0] * shape[1], dtype=rows.dtype)
        K = rows.block(at, at, self._room[: shape[0] * shape[1]].reshape(shape))
        check_values(K, self.problem.numbers(k, at))
        self._block = k, working, K
        return np.asarray(K)

    def _diagonal_of(self, k: int, rows: Provider) -> Array:
        if self._diagonal is None or self._diagonal[0] != k:
            self._diagonal = k, rows.diagonal()
        return self._diagonal[1]

    # --- the state ---------------------------------------------------------------------------------------------------

    def state(self) -> State:
        working = [state.working.astype(np.float64) for state in self.states]
        counts = _Counts(self.evaluations, self.work, self.certified_at, self.indefinite)
        return {
            "gamma": np.concatenate([state.alpha for state in self.states]),
            "F": np.concatenate([state.F for state in self.states]),
            "working": np.concatenate(working),
            "lengths": np.array([float(len(w)) for w in working]),
            "scalars": np.array([state.scalars() for state in self.states]),
            "wide": np.array([float(k in self.problem.rows.wide) for k in range(self.problem.n_parts)]),
            "counts": np.array(counts, dtype=np.float64),
        }

    def restore(self, state: State) -> None:
        parts, sizes = self.problem.n_parts, [part.size for part in self.problem.parts]
        lo, hi = (np.concatenate([getattr(part, side) for part in self.problem.parts]) for side in ("lo", "hi"))
        alpha = saved(state, "gamma", (sum(sizes),))
        if not bool(np.all((alpha >= lo) & (alpha <= hi))):
            raise ValueError("state: 'gamma' has a value outside its bounds")
        F = saved(state, "F", (sum(part.m for part in self.problem.parts),), low=-MAX_FINITE, high=MAX_FINITE)
        lengths = saved(state, "lengths", (parts,), low=0, high=max(sizes), whole=True).astype(np.int64)
        working = saved(state, "working", (int(lengths.sum()),), low=0, high=max(sizes), whole=True).astype(np.int64)
        scalars = saved_scalars(state, parts, max(self.endings))
        wide = saved(state, "wide", (parts,), low=0, high=1, whole=True)
        counts = _Counts(*saved(state, "counts", (len(_Counts._fields),), low=0, high=2**62, whole=True))
        kept = np.split(working, np.cumsum(lengths)[:-1])
        if any(len(w) and w.max() >= size for w, size in zip(kept, sizes, strict=True)):
            raise ValueError("state: 'working' names a variable that is not there")
        if any(len(np.unique(w)) < len(w) for w in kept):
            raise ValueError("state: 'working' names a variable twice")
        scores = np.split(F, np.cumsum([part.m for part in self.problem.parts])[:-1])
        alphas = np.split(alpha, np.cumsum(sizes)[:-1])
        for mine, a, f, w, numbers in zip(self.states, alphas, scores, kept, scalars, strict=True):
            mine.alpha, mine.F, mine.working = a.copy(), f.copy(), w
            mine.set_scalars(numbers)
            if mine.ending is Ending.MAX_STEPS and (self.max_steps is None or mine.steps < self.max_steps):
                mine.ending = Ending.OPEN
        self.problem.rows.wide = set(np.flatnonzero(wide).tolist())
        self.problem.rows.at = None
        self.before = int(counts.evaluations) - self.problem.rows.evaluations
        self.work, self.certified_at = int(counts.work), int(counts.certified_at)
        self.indefinite = bool(counts.indefinite)
        self._block = self._diagonal = None
        self.first = 0
