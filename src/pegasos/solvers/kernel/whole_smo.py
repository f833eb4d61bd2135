"""SMO for kernel machines so small that the whole kernel matrix of a part is at hand: two classes, each class against
the rest, or the pairs of many classes.

The core solves part after part, in double precision (``whole_smo.hpp``), and stops by P and D of its own; what the fit
reports is computed by the problem. Parts with the same rows share one kernel matrix; for pairs of classes see
``problems/pair_visits.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pegasos import _core
from pegasos.fit.engine import MAX_ITER, Engine, Options
from pegasos.kernels.gram import padded
from pegasos.kernels.pairs import sums_of_pairs
from pegasos.problems.base import Point
from pegasos.problems.kernel import Coefficients, KernelProblem
from pegasos.problems.pair_visits import DoubleValues, PairVisits
from pegasos.problems.pairs import PairProblem, PairTable
from pegasos.rows.views import Array
from pegasos.solvers.kernel.smo_engine import CLOSER, EAGER, PATIENCE, PIECE, STALLED, TINY
from pegasos.solvers.kernel.working_set import newton_steps
from pegasos.util.fields import saved

#: Rows that a part may have: more are solved by way of working sets.
LARGEST, LARGEST_PAIR = 1024, 2048

#: The share of the cache that the kernel matrix of several parts with the same rows may take.
SHARED = 0.5

#: Numbers of kernel matrices looked at in one piece of work: some hundredths of a second.
WORK = 1 << 25

#: Why a part is over, by the core's numbers.
NOT_YET, MAX_STEPS, NO_PROGRESS, REACHED = range(4)

#: How a visit of the core ends.
RESTS, PIECE_USED, NOT_FINITE = range(3)


def suits(problem: KernelProblem) -> bool:
    """Whether kernel matrices of whole parts are the fastest way to solve this problem.

    Without duality a part would have to be judged by other means than its gap: that is left to others.
    """
    if isinstance(problem, PairProblem):
        two = np.sort(problem.pieces.sizes)[-2:]
        small = problem.pieces.loss.sides == 1 and int(two.sum()) <= LARGEST_PAIR
    else:
        m, room = int(problem.X.shape[0]), SHARED * problem.rows.megabytes * 2**20
        small = m <= LARGEST or (problem.parts > 1 and 8 * m * padded(m) <= room)
        small = small and all(part.loss.sides == 1 and part.index is None for part in problem.pieces)
    return small and problem.definiteness_of_all().known == "proven"


class WholeSMOEngine(Engine[Coefficients]):
    """Solves one part after the other; ``tol`` is the largest violation allowed, as in LIBSVM, and the gap."""

    #: The dual variables.
    gamma: Array

    def __init__(self, problem: KernelProblem, options: Options, *, rows_of_all: int) -> None:
        self.problem, self.tol, self.max_steps = problem, options.tol, options.max_steps
        tol, max_steps = self.tol, self.max_steps
        parts = problem.parts
        self.aim = np.full(parts, CLOSER * tol)
        self.moves, self.over = np.zeros(parts, dtype=np.int64), np.zeros(parts, dtype=np.int8)
        self.core = _core.WholeSMO(
            problem.C,
            problem.lam,
            problem.total,
            tol,
            2**62 if max_steps is None else max_steps,
            PIECE,
            EAGER if rows_of_all <= TINY else 0,
            problem.definiteness_of_all().shift,
        )
        self.kernel_values = DoubleValues(problem.kernel, problem.rows)
        self._begin()
        # Kernel values, computed and used, of the fit that this one goes on from.
        self.earlier = np.zeros(2, dtype=np.int64)
        self.hard: dict[int, tuple[int, float, float]] = {}  # parts that SMO alone takes long for: see _help

    # --- what the loop asks ------------------------------------------------------------------------------------------

    @property
    def steps(self) -> Array:
        """Pairs of variables moved, for each part."""
        return self.moves

    @property
    def evaluations(self) -> int:
        """Kernel values computed so far."""
        return int(self.earlier[0]) + int(self.kernel_values.rows.evaluations)

    @property
    def values(self) -> int:
        """Kernel values used so far, whether computed for that or before."""
        return int(self.earlier[1]) + int(self.core.values)

    @property
    def epochs(self) -> float:
        """Those, by the kernel values of all rows."""
        return self.values / max(1, int(self.problem.X.shape[0])) ** 2

    def due(self, tol: float) -> bool:
        return self._current() is None

    @property
    def stuck(self) -> str | None:
        if self._current() is not None:
            return None
        return MAX_ITER if min(self.short, self._short()) == MAX_STEPS else STALLED

    def point(self, *, last: bool = False) -> Point[Coefficients]:
        """The dual variables, which are coefficients."""
        return Point(Coefficients(self._given().ravel()))

    def _given(self) -> Array:
        """The dual variables, for others to keep and change; when all is done no copy of them is needed."""
        return self.gamma if not self.resumable and self._current() is None else self.gamma.copy()

    # --- the work ----------------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """Some parts, or a piece of a hard one."""
        end = self.core.work + WORK
        while self.core.work < end and (k := self._current()) is not None:
            part, how = self._visit(k, end - self.core.work)
            if how == NOT_FINITE:
                raise ValueError("the scores left the range of floating-point numbers; scale the features or lower C")
            if how == PIECE_USED:
                self._help(part)

    def _begin(self) -> None:
        """Start with the first part, whatever is known of it."""
        self._stretches = self._all_stretches()
        self.short = REACHED  # why, of all stretches before this one, parts rest whose gap is too large: the least
        self._look_at(*next(self._stretches))

    def _all_stretches(self) -> Iterator[tuple[int, int]]:
        """The parts, so many at a time as may be looked at."""
        return iter([(0, len(self.over))])

    def _look_at(self, begin: int, end: int) -> None:
        """Go on to the parts of a stretch: of others only ``aim``, ``steps`` and ``over`` are kept."""
        self.begin, self.end, self.next, n = begin, end, begin, end - begin
        self.violation, self.primal = np.full((2, n), np.inf)
        self.dual, self.bias = np.zeros((2, n))
        kept = (self.violation, self.primal, self.dual, self.bias)
        self.core.look_at(begin, self.aim[begin:end], *kept, self.steps[begin:end], self.over[begin:end])

    def _short(self) -> int:
        """Why the parts of this stretch rest whose gap is too large: the least."""
        short = ~(self.primal - self.dual <= self.tol * self.primal)
        return int(self.over[self.begin : self.end][short].min(initial=REACHED))

    def _current(self) -> int | None:
        """The first part that does not rest."""
        while True:
            open_ = (self.over[self.next : self.end] == NOT_YET) | (self.violation[self.next - self.begin :] == np.inf)
            if open_.any():
                self.next += int(np.argmax(open_))
                return self.next
            self.next = self.end
            if self.end == len(self.over):
                return None
            self.short = min(self.short, self._short())
            self._look_at(*next(self._stretches))

    def _visit(self, k: int, budget: int) -> tuple[int, int]:
        """Let the core solve part k, and some that follow; the last one it visited, and how that ended."""
        raise NotImplementedError

    def _part(self, k: int) -> tuple[Array, Array, Array, Array]:
        """Kernel matrix, targets, weights and a copy of the dual variables of part k."""
        raise NotImplementedError

    def _set(self, k: int, gamma: Array) -> None:
        """New dual variables for part k."""
        raise NotImplementedError

    def _help(self, k: int) -> None:
        """Newton's method for a part on which SMO takes long; a part that gains nothing any more is over."""
        idle, least, most = self.hard.get(k, (0, np.inf, -np.inf))
        violation, dual = float(self.violation[k - self.begin]), float(self.dual[k - self.begin])
        gains = violation < 0.9 * least or dual - most > 1e-15 * abs(dual)
        self.hard[k] = (0 if gains else idle + 1, min(least, violation), max(most, dual))
        if self.hard[k][0] >= PATIENCE:
            self.over[k] = NO_PROGRESS
            return
        K, y, weight, gamma = self._part(k)
        room = self.problem.C * weight
        lo, hi = np.where(y > 0, 0.0, -room), np.where(y > 0, room, 0.0)
        newton_steps(K, y - np.einsum("ij,j->i", K, gamma), gamma, lo, hi)
        self.primal[k - self.begin] = np.inf  # until the next visit
        self._set(k, gamma)

    # --- the state ---------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        hard = [(k, *values) for k, values in self.hard.items()]
        return {
            "gamma": self.gamma,
            "aim": self.aim,
            "steps": self.moves.astype(np.float64),
            "over": self.over.astype(np.float64),
            "hard": np.array(hard, dtype=np.float64).reshape(-1, 4),
            "counts": np.array([self.evaluations, self.values], dtype=np.float64),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from there; what is said of parts that are over is computed anew."""
        parts, most = self.problem.parts, float(np.finfo(float).max)
        gamma = saved(state, "gamma", self.gamma.shape, low=-most, high=most)
        self._check_feasible(gamma)
        aim = saved(state, "aim", (parts,), low=0.0, high=most)
        steps = saved(state, "steps", (parts,), low=0, high=2**62, whole=True).astype(np.int64)
        over = saved(state, "over", (parts,), low=NOT_YET, high=REACHED, whole=True).astype(np.int8)
        hard = saved(state, "hard", (None, 4))
        saved({"hard": hard[:, 0].copy()}, "hard", (None,), low=0, high=parts - 1, whole=True)
        saved({"hard": hard[:, 1].copy()}, "hard", (None,), low=0, high=PATIENCE, whole=True)
        counts = saved(state, "counts", (2,), low=0, high=2**62, whole=True).astype(np.int64)
        over[(over == MAX_STEPS) & (steps < (2**62 if self.max_steps is None else self.max_steps))] = NOT_YET
        self.gamma[...], self.aim[:], self.moves[:], self.over[:] = gamma, aim, steps, over
        self.hard = {int(k): (int(idle), float(least), float(most)) for k, idle, least, most in hard}
        self.earlier = counts - np.array([self.kernel_values.rows.evaluations, self.core.values])
        self._begin()

    def _check_feasible(self, gamma: Array) -> None:
        """Refuse dual variables that no fit could have: what is said of the optimum depends on them."""
        raise NotImplementedError


class SharedSMOEngine(WholeSMOEngine):
    """Parts that have all rows: two classes, or each of several against the rest."""

    def __init__(self, problem: KernelProblem, options: Options) -> None:
        self.m = int(problem.X.shape[0])
        super().__init__(problem, options, rows_of_all=problem.parts * self.m)
        self.gamma = np.zeros((problem.parts, self.m))
        self._K: Array | None = None

    def _matrix(self) -> Array:
        if self._K is None:
            every = np.arange(self.m)
            room = _core.raw_matrix(self.m, padded(self.m))  # in huge pages: faults would take as long as values
            self._K = self.kernel_values.block(every, every, room)
        return self._K

    def _given(self) -> Array:
        given = super()._given()
        if given is self.gamma:
            self._K = None  # there are no more visits
        return given

    def _visit(self, k: int, budget: int) -> tuple[int, int]:
        part = self.problem.pieces[k]
        return k, self.core.visit(self._matrix(), part.y, part.weight, self.gamma[k], k)

    def _part(self, k: int) -> tuple[Array, Array, Array, Array]:
        part = self.problem.pieces[k]
        return self._matrix()[:, : self.m], part.y, part.weight, self.gamma[k].copy()

    def _set(self, k: int, gamma: Array) -> None:
        self.gamma[k] = gamma

    def _check_feasible(self, gamma: Array) -> None:
        for part, own in zip(self.problem.pieces, gamma, strict=True):
            if not bool(np.all((own >= part.lo) & (own <= part.hi))):
                raise ValueError("state: 'gamma' has a value outside its bounds")
        _check_sums(gamma.sum(axis=1), np.abs(gamma).sum(axis=1))


class PairSMOEngine(WholeSMOEngine):
    """Pairs of classes. Their dual variables stand in a table as :mod:`pegasos.kernels.pairs` says."""

    problem: PairProblem

    def __init__(self, problem: PairProblem, options: Options) -> None:
        parts = problem.pieces
        k, m = parts.classes, len(parts.codes)
        super().__init__(problem, options, rows_of_all=(k - 1) * m)
        self.gamma = np.zeros((k - 1, m))
        self.visits = PairVisits(problem.pieces, self.kernel_values)

    def point(self, *, last: bool = False) -> Point[Coefficients]:
        return Point(PairTable(self._given()))

    def _all_stretches(self) -> Iterator[tuple[int, int]]:
        return self.problem.pieces.stretches()

    def _visit(self, k: int, budget: int) -> tuple[int, int]:
        return self.visits.visit(self.core, self.gamma, k, budget)

    def _part(self, k: int) -> tuple[Array, Array, Array, Array]:
        i, j = self.problem.pieces.pair(k)
        first, second = self.problem.pieces.of_pair(self.gamma, k)
        parts, weight = self.problem.pieces, self.problem.pieces.sorted_weight
        n = len(first) + len(second)
        y = np.concatenate([np.ones(len(first)), -np.ones(len(second))])
        weights = [weight[parts.starts[c] : parts.starts[c + 1]] for c in (i, j)]
        return self.visits.matrix(i, j)[:, :n], y, np.concatenate(weights), np.concatenate([first, second])

    def _set(self, k: int, gamma: Array) -> None:
        first, second = self.problem.pieces.of_pair(self.gamma, k)
        first[:], second[:] = gamma[: len(first)], gamma[len(first) :]

    def _check_feasible(self, gamma: Array) -> None:
        parts = self.problem.pieces
        k, room = parts.classes, parts.C * parts.sorted_weight
        for line, own in enumerate(gamma):  # classes up to this one are the first of their pairs
            first = np.arange(len(own)) < parts.starts[line + 1]
            if not bool(np.all((own >= np.where(first, 0, -room)) & (own <= np.where(first, room, 0)))):
                raise ValueError("state: 'gamma' has a value outside its bounds")

        def totals(table: Array) -> Array:
            of_class: Array = np.add.reduceat(table, parts.starts[:-1], axis=1)
            return sums_of_pairs(k, 1, lambda i: of_class[:, i, None])[:, 0]

        _check_sums(totals(gamma), totals(np.abs(gamma)))


def _check_sums(sums: Array, sizes: Array) -> None:
    """Refuse dual variables of parts whose sums are not zero, but for rounding."""
    if not bool(np.all(np.abs(sums) <= 1e-12 * sizes)):
        raise ValueError("state: 'gamma' does not add up to zero")


def whole_engine(problem: KernelProblem, options: Options) -> WholeSMOEngine:
    """The engine for a problem that it suits."""
    if isinstance(problem, PairProblem):
        return PairSMOEngine(problem, options)
    return SharedSMOEngine(problem, options)
