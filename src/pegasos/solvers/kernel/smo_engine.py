"""Sequential minimal optimisation with a batched working set, for kernel machines.

Each round takes the variables that violate the optimality conditions most, half of them kept from the round before,
computes their k × k part of the kernel matrix, solves the dual over them by pairs of second-order choice (Fan, Chen &
Lin 2005), and adds the rows of what has changed to the scores: the rows are computed together, as fast as a matrix
product, and added up in float64. ThunderSVM (Wen et al. 2018) and oneDAL work so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos import _core
from pegasos.fit.engine import MAX_ITER, Engine, Options
from pegasos.kernels.gram import padded
from pegasos.kernels.rounding import Drift
from pegasos.problems.base import Bounds, Point, RunningScores
from pegasos.problems.kernel import FEW, INDEFINITE, Coefficients, KernelProblem
from pegasos.problems.part import Part, check_values
from pegasos.rows.views import Array
from pegasos.solvers.kernel.reasons import CONDITIONS
from pegasos.solvers.kernel.working_set import newton_steps, select
from pegasos.util.fields import saved

#: Variables of a working set at first, and at most.
START, LIMIT = 1024, 4096

#: The fewest at first where there are several parts, and how many for each row of the rarer class.
FIRST, SCARCE = 128, 16

#: The violation that is aimed at, in units of ``tol``: pairs of variables come to rest just below LIBSVM's, a batch of
#: them may leave as much in many places.
CLOSER = 0.5

#: Share of free variables in a working set beyond which it is doubled.
CROWDED = 0.9

#: The violation that the solution of a working set leaves, as a share of what it began with.
INNER = 0.03

#: A certificate may cost this share of the kernel values computed since the last one.
SHARE = 1 / 40

#: And there are so many between two of them: about half a second's.
APART = 1 << 27

#: The violation that LIBSVM stops at, and one below which a certificate would often do; none is due in between.
USUAL = (1e-3, 0.1)

#: Variables of all parts, and steps for each, up to which a problem is solved beyond its tolerance.
TINY, EAGER = 4000, 20

#: Steps on a working set at a time; one that needs more is helped by Newton's method.
PIECE = 20_000

#: Rounds in a row that may gain nothing but rounding errors.
PATIENCE = 10

#: Why a part can come to rest before its goal; a saved state holds the index.
REASONS = (
    None,
    MAX_ITER,
    STALLED := "no further progress in double precision",
    INDEFINITE,
)


class _State:
    """Where the solution of one part is."""

    def __init__(self, part: Part, size: int, goal: float) -> None:
        self.part = part
        self.gamma, self.F = np.zeros(part.size), np.zeros(part.m)
        self.working = np.zeros(0, dtype=np.int64)
        self.size, self.goal, self.violation, self.best = size, goal, np.inf, np.inf
        self.steps, self.idle, self.over = 0, 0, 0
        self.objective = 0.0
        self.drift = Drift()

    @property
    def whole(self) -> bool:
        """Whether a working set holds all variables that can move."""
        return bool(np.count_nonzero(self.part.lo < self.part.hi) <= self.size)

    @property
    def rests(self) -> bool:
        """Whether there is nothing to do for now."""
        return self.over > 0 or self.violation <= self.goal

    def scalars(self) -> Array:
        """All that is not an array, for a saved state."""
        own = [self.size, self.steps, self.idle, self.over, self.goal, self.violation, self.best, self.objective]
        return np.array([*own, *self.drift.numbers])


class SMOEngine(Engine[Coefficients]):
    """Solves one part after the other; ``tol`` is the largest violation allowed, as in LIBSVM, and then the gap."""

    reasons: tuple[str | None, ...] = REASONS

    def __init__(self, problem: KernelProblem, options: Options, *, working_set: int | None = None) -> None:
        self.problem, self.fixed, tol = problem, working_set is not None, options.tol
        self.tol, self.max_steps = tol, options.max_steps
        self.states = [_State(part, working_set or self._start(part), CLOSER * tol) for part in problem.pieces]
        self.indefinite = False
        self.whole = True  # whether scores and dual variables belong together: not after an interrupt between the two
        self.before, self.work, self.certified_at, self.first = 0, 0, 0, 0
        self.errors = np.zeros(problem.parts)
        self.good = np.zeros(problem.parts, dtype=bool)  # whose last certificate was within the tolerance
        self._diagonal: tuple[int, Array] | None = None
        self._block: tuple[int, Array, Array] | None = None
        self._room = np.empty(0)  # what fresh memory for every block would cost is worth avoiding

    def _start(self, part: Part) -> int:
        """Variables of a part's first working set: a class of few rows among many others has few that matter."""
        if self.problem.parts == 1 or part.loss.sides == 2:
            return START
        rarer = min(int(np.count_nonzero(part.y > 0)), int(np.count_nonzero(part.y < 0)))
        return int(np.clip(SCARCE * rarer, FIRST, START))

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
        """Pairs of variables moved, for each part."""
        return [state.steps for state in self.states]

    @property
    def eager(self) -> bool:
        """Small problems, solved as a whole, are brought to the last digits while that takes few steps."""
        if sum(state.part.size for state in self.states) > TINY:
            return False
        return all(state.whole and state.steps <= EAGER * state.part.size for state in self.states)

    @property
    def stuck(self) -> str | None:
        if self._current is not None:
            return None
        doubt = self._doubt
        if doubt and all(state.violation <= self.tol for state in self.states):
            return f"{CONDITIONS}; {doubt}"
        if doubt:
            ends = [state.over for state in self.states]
            return MAX_ITER if 1 in ends else f"{self.reasons[max(ends)]}; {doubt}"
        wanting = [state.over for state, good in zip(self.states, self.good, strict=True) if not good]
        return self.reasons[min(wanting)] if wanting else None

    @property
    def goals(self) -> tuple[str, ...]:
        """Where there is no lower bound LIBSVM's criterion is what counts."""
        return (f"{CONDITIONS}; {self._doubt}",)

    @property
    def _doubt(self) -> str:
        """Why there is no lower bound, if there is none; steps may have come across what was not known."""
        doubt = self.problem.doubt
        return INDEFINITE if doubt and self.indefinite else doubt

    def due(self, tol: float) -> bool:
        if self._current is None:
            return True
        # A fit with the tolerance of LIBSVM, whatever its gap, is to end no earlier than LIBSVM's would.
        if self.work - self.certified_at <= APART or USUAL[0] < self.states[self.first].violation <= USUAL[1]:
            return False
        cost = sum(np.count_nonzero(state.gamma) ** 2 for state in self.states)
        return bool(SHARE * (self.work - self.certified_at) > cost)

    def point(self, *, last: bool = False) -> Point[Coefficients]:
        """Feasible coefficients, which are dual variables, too, and the scores kept up to date."""
        coefs = []
        for state in self.states:
            coefs.append(state.part.coefficients(state.part.feasible(state.gamma)))
            state.part.forget()
        kept = [RunningScores(s.F, s.part.coefficients(s.gamma), s.drift) for s in self.states]
        return Point(Coefficients(np.concatenate(coefs)), scores=kept if self.whole else None)

    def judged(self, bounds: Bounds[Coefficients]) -> None:
        """Remember which parts are good enough, and the errors of the scores."""
        self.certified_at = self.work
        self.good = bounds.gap <= self.tol * bounds.primal
        if bounds.score_error is not None:
            self.errors = bounds.score_error

    def learn(self, bounds: Bounds[Coefficients]) -> None:
        """Aim closer where the gap is too wide; where single precision cannot get there, leave it."""
        self.first = 0
        for k, state in enumerate([] if self.problem.doubt else self.states):
            gap, primal = float(bounds.gap[k]), float(bounds.primal[k])
            if not state.rests or state.over:
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
            term = float(np.abs(state.gamma).max() * np.abs(self._diagonal_of(k, self.problem.rows(k))).max())
            least = 4 * np.finfo(float).eps * max(float(np.abs(state.part.t).max()), float(np.abs(state.F).max()), term)
            state.goal = max(state.goal, least)
            if state.violation <= least:
                state.over = 2

    def _refresh(self, k: int, state: _State) -> None:
        """The scores once more, in double precision, of variables that add up to zero."""
        state.gamma = state.part.feasible(state.gamma)
        coef = state.part.coefficients(state.gamma)
        support = np.flatnonzero(coef)
        if len(support):
            state.F = self.problem.rows(k).exact(support, coef[support], np.arange(state.part.m))
        state.drift = Drift()
        self._added(k, state, support, coef[support], single=False)
        self._block = None

    def _added(self, k: int, state: _State, rows: Array, changes: Array, *, single: bool) -> None:
        """Note that changes of the coefficients of some rows have been added to the scores, if those are ever used."""
        if state.part.m**2 <= FEW:
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
        """The part that is worked on: the first that does not rest. Those before it rest until ``learn`` wakes them."""
        while self.first < len(self.states) and self.states[self.first].rests:
            self.states[self.first].part.forget()
            self.first += 1
        return self.first if self.first < len(self.states) else None

    def _round(self, k: int, state: _State) -> None:
        part = state.part
        g = part.t - state.F[part.row]
        up, low = state.gamma < part.hi, state.gamma > part.lo
        top = float(g[up].max(initial=-np.inf))
        bottom = float(g[low].min(initial=np.inf))
        state.violation = top - bottom
        if state.rests:
            return
        if not np.isfinite(state.violation):
            raise ValueError("the scores left the range of floating-point numbers; scale the features or lower C")
        whole = state.whole
        working = (
            np.flatnonzero(part.lo < part.hi) if whole else select(state.working, state.size, g, up, low, top, bottom)
        )
        self._solve(k, state, working, g, whole)
        free = np.count_nonzero((state.gamma[working] > part.lo[working]) & (state.gamma[working] < part.hi[working]))
        if not self.fixed and free > CROWDED * state.size and state.size < LIMIT:
            state.size *= 2
        state.working = working

    def _solve(self, k: int, state: _State, working: Array, g: Array, whole: bool) -> None:
        """Solve the dual over a working set, and bring the scores up to date."""
        part, rows = state.part, self.problem.rows(k)
        K, count = self._values(k, working, rows), len(working)
        local = np.zeros((5, K.shape[1]))
        diagonal, slope, gamma, lo, hi = local
        of_all = self._diagonal_of(k, rows)[part.row], g, state.gamma, part.lo, part.hi
        for to, values in zip(local, of_all, strict=True):
            to[:count] = values[working]
        left = 2**62 if self.max_steps is None else max(self.max_steps - state.steps, 0)
        steps, _, _, indefinite = _core.smo_block(
            K, diagonal, slope, gamma, lo, hi, count, 0.0 if whole else INNER, 0.5 * state.goal, min(left, PIECE)
        )
        state.steps += steps
        self.indefinite |= indefinite
        if steps == PIECE and not self.indefinite:
            newton_steps(K[:, :count], slope[:count], gamma[:count], lo[:count], hi[:count])
        change = gamma[:count] - state.gamma[working]
        # D(γ + δ) − D(γ) = δ·(g − Kδ/2), and Kδ is what the slopes have lost.
        gain = 0.5 * float(change @ (g[working] + slope[:count]))
        state.gamma[working] = gamma[:count]
        moved, back = np.unique(part.row[working[change != 0]], return_inverse=True)
        changes = np.bincount(back, weights=change[change != 0], minlength=len(moved))
        rows.add(moved, changes, state.F)
        self._added(k, state, moved, changes, single=rows.single)
        self.work += len(working) ** 2 + len(moved) * part.m
        state.objective += gain
        if gain > 1e-15 * abs(state.objective) or state.violation < 0.9 * state.best:
            state.idle, state.best = 0, min(state.best, state.violation)
        else:
            state.idle += 1
        if state.idle >= PATIENCE:
            state.over = 2
        if self.max_steps is not None and state.steps >= self.max_steps:
            state.over = 1

    def _values(self, k: int, working: Array, rows: Any) -> Array:
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

    def _diagonal_of(self, k: int, rows: Any) -> Array:
        if self._diagonal is None or self._diagonal[0] != k:
            self._diagonal = k, rows.diagonal()
        return self._diagonal[1]

    # --- the state ---------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        working = [state.working.astype(np.float64) for state in self.states]
        return {
            "gamma": np.concatenate([state.gamma for state in self.states]),
            "F": np.concatenate([state.F for state in self.states]),
            "working": np.concatenate(working),
            "lengths": np.array([float(len(w)) for w in working]),
            "scalars": np.array([state.scalars() for state in self.states]),
            "wide": np.array([float(k in self.problem.rows.wide) for k in range(self.problem.parts)]),
            "counts": np.array([self.evaluations, self.work, self.certified_at, self.indefinite], dtype=np.float64),
        }

    def restore(self, state: dict[str, Any]) -> None:
        parts, sizes = self.problem.parts, [part.size for part in self.problem.pieces]
        lo, hi = (np.concatenate([getattr(part, side) for part in self.problem.pieces]) for side in ("lo", "hi"))
        gamma = saved(state, "gamma", (sum(sizes),))
        if not bool(np.all((gamma >= lo) & (gamma <= hi))):
            raise ValueError("state: 'gamma' has a value outside its bounds")
        most = float(np.finfo(float).max)
        F = saved(state, "F", (sum(part.m for part in self.problem.pieces),), low=-most, high=most)
        lengths = saved(state, "lengths", (parts,), low=0, high=max(sizes), whole=True).astype(np.int64)
        working = saved(state, "working", (int(lengths.sum()),), low=0, high=max(sizes), whole=True).astype(np.int64)
        scalars = saved(state, "scalars", (parts, 13))
        whole = ((4, 2**20), (0, 2**62), (0, PATIENCE), (0, len(self.reasons) - 1))
        # A violation not known yet is infinite; the drift comes last.
        real = [(0.0, most), (-np.inf, most), (-np.inf, most), (-most, most), *[(0.0, most)] * 5]
        for k, (column, (low, high)) in enumerate(zip(scalars.T, (*whole, *real), strict=True)):
            finite = np.where(np.isposinf(column), most, column) if k in (5, 6) else column.copy()
            saved({"scalars": finite}, "scalars", (parts,), low=low, high=high, whole=k < len(whole))
        wide = saved(state, "wide", (parts,), low=0, high=1, whole=True)
        counts = saved(state, "counts", (4,), low=0, high=2**62, whole=True)
        kept = np.split(working, np.cumsum(lengths)[:-1])
        if any(len(w) and w.max() >= size for w, size in zip(kept, sizes, strict=True)):
            raise ValueError("state: 'working' names a variable that is not there")
        if any(len(np.unique(w)) < len(w) for w in kept):
            raise ValueError("state: 'working' names a variable twice")
        scores = np.split(F, np.cumsum([part.m for part in self.problem.pieces])[:-1])
        gammas = np.split(gamma, np.cumsum(sizes)[:-1])
        for mine, g, f, w, row in zip(self.states, gammas, scores, kept, scalars, strict=True):
            mine.gamma, mine.F, mine.working = g.copy(), f.copy(), w
            mine.size, mine.steps, mine.idle, mine.over = (int(v) for v in row[:4])
            mine.goal, mine.violation, mine.best, mine.objective = (float(v) for v in row[4:8])
            mine.drift = Drift(row[8:].copy())
            if mine.over == 1 and (self.max_steps is None or mine.steps < self.max_steps):
                mine.over = 0
        self.problem.rows.wide = set(np.flatnonzero(wide).tolist())
        self.problem.rows.at = None
        self.before = int(counts[0]) - self.problem.rows.evaluations
        self.work, self.certified_at, self.indefinite = int(counts[1]), int(counts[2]), bool(counts[3])
        self._block = self._diagonal = None
        self.first = 0
