"""SMO for kernel machines so small that the whole kernel matrix of a part fits in memory.

The parts are two classes, each class against the rest, or the pairs of many classes.

The core solves part after part, in double precision (``whole_smo.hpp``), and stops by P and D of its own; what the fit
reports is computed by the problem. Parts with the same rows share one kernel matrix; for pairs of classes see
``problems/pair_visits.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from pegasos import _core
from pegasos.fit.engine import MAX_ITER, Engine, Options
from pegasos.kernels.cache import padded
from pegasos.kernels.pairs import sums_of_pairs
from pegasos.problems.base import Point
from pegasos.problems.kernel import Coefficients, KernelProblem
from pegasos.problems.pair_visits import DoubleValues, PairVisits
from pegasos.problems.pairs import PairProblem, PairTable
from pegasos.rows.views import Array
from pegasos.solvers.kernel.reasons import STALLED
from pegasos.solvers.kernel.smo_engine import (
    EAGER_STEPS_PER_VARIABLE,
    EAGER_VARIABLES,
    STEPS_PER_CALL,
    VIOLATION_TARGET_SHARE,
)
from pegasos.solvers.kernel.smo_part import MAX_STALE_ROUNDS
from pegasos.solvers.kernel.working_set import newton_steps
from pegasos.util.fields import MAX_FINITE, State, saved

#: Rows of a part, and of a pair of classes, up to which it is solved here: larger ones are solved by working sets.
MAX_ROWS, MAX_PAIR_ROWS = 1024, 2048

#: The share of the cache that the kernel matrix of several parts with the same rows may take.
MAX_CACHE_SHARE = 0.5

#: Entries of kernel matrices read in one call of ``advance``: some hundredths of a second.
WORK_PER_CALL = 1 << 25


class PartEnding(IntEnum):
    """Why a part is no longer worked on: the core's ``Over``. Saved states hold the numbers."""

    OPEN = 0
    MAX_STEPS = 1
    NO_PROGRESS = 2
    REACHED = 3


class VisitEnding(IntEnum):
    """How a visit of the core ends: its ``Visit``."""

    RESTS = 0
    STEPS_USED = 1
    NOT_FINITE = 2


class _Hard(NamedTuple):
    """A part on which SMO alone takes long: rounds without gain, least violation and largest dual value so far."""

    stale_rounds: int = 0
    least_violation: float = np.inf
    best_dual: float = -np.inf


def suits(problem: KernelProblem) -> bool:
    """Whether kernel matrices of whole parts are the fastest way to solve this problem.

    The core judges a part by its gap, so the kernel must be known to be positive semi-definite.
    """
    if isinstance(problem, PairProblem):
        two = np.sort(problem.parts.sizes)[-2:]
        small = problem.parts.loss.sides == 1 and int(two.sum()) <= MAX_PAIR_ROWS
    else:
        m, room = int(problem.X.shape[0]), MAX_CACHE_SHARE * problem.rows.megabytes * 2**20
        small = m <= MAX_ROWS or (problem.n_parts > 1 and 8 * m * padded(m) <= room)
        small = small and all(part.loss.sides == 1 and part.index is None for part in problem.parts)
    return small and problem.definiteness_of_all().known == "proven"


class WholeSMOEngine(Engine[Coefficients]):
    """Solves one part after the other; ``tol`` is the largest violation allowed, as in LIBSVM, and the gap.

    ``over`` has a :class:`PartEnding` for each part; the core reads and writes it.
    """

    #: The dual variables of all parts, signed: y_i times LIBSVM's α_i.
    alpha: Array

    def __init__(self, problem: KernelProblem, options: Options, *, rows_of_all: int) -> None:
        self.problem, self.tol, self.max_steps = problem, options.tol, options.max_steps
        tol, max_steps = self.tol, self.max_steps
        parts = problem.n_parts
        self.aim = np.full(parts, VIOLATION_TARGET_SHARE * tol)
        self.moves, self.over = np.zeros(parts, dtype=np.int64), np.zeros(parts, dtype=np.int8)
        self.core = _core.WholeSMO(
            problem.C,
            problem.lam,
            problem.total,
            tol,
            2**62 if max_steps is None else max_steps,
            STEPS_PER_CALL,
            EAGER_STEPS_PER_VARIABLE if rows_of_all <= EAGER_VARIABLES else 0,
            problem.definiteness_of_all().shift,
            problem.bias == "free",
        )
        self.kernel_values = DoubleValues(problem.kernel, problem.rows)
        self._begin()
        # Of the fit that this one goes on from: kernel values computed, and kernel values used.
        self.earlier_evaluations, self.earlier_values = 0, 0
        self.hard: dict[int, _Hard] = {}  # see _help

    # --- what the loop asks ------------------------------------------------------------------------------------------

    @property
    def steps(self) -> Array:
        """Steps, each of two variables, or without a bias of one or two, for each part."""
        return self.moves

    @property
    def evaluations(self) -> int:
        """Kernel values computed so far."""
        return self.earlier_evaluations + int(self.kernel_values.rows.evaluations)

    @property
    def values(self) -> int:
        """Kernel values used so far, whether computed for that or before."""
        return self.earlier_values + int(self.core.values)

    @property
    def epochs(self) -> float:
        """Kernel values used, divided by those of the whole kernel matrix."""
        return self.values / max(1, int(self.problem.X.shape[0])) ** 2

    def due(self, tol: float) -> bool:
        return self._current() is None

    @property
    def stuck(self) -> str | None:
        if self._current() is not None:
            return None
        return MAX_ITER if min(self.short, self._short()) == PartEnding.MAX_STEPS else STALLED

    def point(self, *, last: bool = False) -> Point[Coefficients]:
        """The dual variables, which are coefficients."""
        return Point(Coefficients(self._given().ravel()))

    def _given(self) -> Array:
        """The dual variables, for the caller to keep and change: a copy, unless all is done and nothing is saved."""
        return self.alpha if not self.resumable and self._current() is None else self.alpha.copy()

    # --- the work ----------------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """Some parts, or so many steps of a part that takes long."""
        end = self.core.work + WORK_PER_CALL
        while self.core.work < end and (k := self._current()) is not None:
            part, how = self._visit(k, end - self.core.work)
            if how == VisitEnding.NOT_FINITE:
                raise ValueError("the scores left the range of floating-point numbers; scale the features or lower C")
            if how == VisitEnding.STEPS_USED:
                self._help(part)

    def _begin(self) -> None:
        """Start with the first part, whatever is known of it."""
        self._stretches = self._all_stretches()
        self.short = int(PartEnding.REACHED)  # the least _short() of the stretches before this one
        self._look_at(*next(self._stretches))

    def _all_stretches(self) -> Iterator[tuple[int, int]]:
        """The first and last number of the parts that are worked on at a time, stretch after stretch."""
        return iter([(0, len(self.over))])

    def _look_at(self, begin: int, end: int) -> None:
        """Go on to the parts of a stretch: of others only ``aim``, ``steps`` and ``over`` are kept."""
        self.begin, self.end, self.next, n = begin, end, begin, end - begin
        self.violation, self.primal = np.full((2, n), np.inf)
        self.dual, self.bias = np.zeros((2, n))
        kept = (self.violation, self.primal, self.dual, self.bias)
        self.core.look_at(begin, self.aim[begin:end], *kept, self.steps[begin:end], self.over[begin:end])

    def _short(self) -> int:
        """The least PartEnding of this stretch's parts whose gap is too large; REACHED if there is none."""
        short = ~(self.primal - self.dual <= self.tol * self.primal)
        return int(self.over[self.begin : self.end][short].min(initial=PartEnding.REACHED))

    def _current(self) -> int | None:
        """The first part that does not rest."""
        while True:
            unknown = self.violation[self.next - self.begin :] == np.inf
            open_ = (self.over[self.next : self.end] == PartEnding.OPEN) | unknown
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

    def _set(self, k: int, alpha: Array) -> None:
        """New dual variables for part k."""
        raise NotImplementedError

    def _help(self, k: int) -> None:
        """Newton's method for a part on which SMO takes long; a part that no longer gains anything is over."""
        stale, least, best = self.hard.get(k, _Hard())
        violation, dual = float(self.violation[k - self.begin]), float(self.dual[k - self.begin])
        gains = violation < 0.9 * least or dual - best > 1e-15 * abs(dual)
        self.hard[k] = _Hard(0 if gains else stale + 1, min(least, violation), max(best, dual))
        if self.hard[k].stale_rounds >= MAX_STALE_ROUNDS:
            self.over[k] = PartEnding.NO_PROGRESS
            return
        K, y, weight, alpha = self._part(k)
        room = self.problem.C * weight
        lo, hi = np.where(y > 0, 0.0, -room), np.where(y > 0, room, 0.0)
        newton_steps(K, y - np.einsum("ij,j->i", K, alpha), alpha, lo, hi, balance=self.problem.bias == "free")
        self.primal[k - self.begin] = np.inf  # until the next visit
        self._set(k, alpha)

    # --- the state ---------------------------------------------------------------------------------------------------

    def state(self) -> State:
        hard = [(k, *values) for k, values in self.hard.items()]
        return {
            "gamma": self.alpha,
            "aim": self.aim,
            "steps": self.moves.astype(np.float64),
            "over": self.over.astype(np.float64),
            "hard": np.array(hard, dtype=np.float64).reshape(-1, 1 + len(_Hard._fields)),
            "counts": np.array([self.evaluations, self.values], dtype=np.float64),
        }

    def restore(self, state: State) -> None:
        """Go on from there; what is said of parts that are over is computed anew."""
        parts = self.problem.n_parts
        alpha = saved(state, "gamma", self.alpha.shape, low=-MAX_FINITE, high=MAX_FINITE)
        self._check_feasible(alpha)
        aim = saved(state, "aim", (parts,), low=0.0, high=MAX_FINITE)
        steps = saved(state, "steps", (parts,), low=0, high=2**62, whole=True).astype(np.int64)
        over = saved(state, "over", (parts,), low=PartEnding.OPEN, high=PartEnding.REACHED, whole=True).astype(np.int8)
        hard = saved(state, "hard", (None, 1 + len(_Hard._fields)))  # the part's number comes first
        saved({"hard": hard[:, 0].copy()}, "hard", (None,), low=0, high=parts - 1, whole=True)
        saved({"hard": hard[:, 1].copy()}, "hard", (None,), low=0, high=MAX_STALE_ROUNDS, whole=True)
        evaluations, values = saved(state, "counts", (2,), low=0, high=2**62, whole=True).astype(np.int64).tolist()
        limit = 2**62 if self.max_steps is None else self.max_steps
        over[(over == PartEnding.MAX_STEPS) & (steps < limit)] = PartEnding.OPEN
        self.alpha[...], self.aim[:], self.moves[:], self.over[:] = alpha, aim, steps, over
        self.hard = {int(k): _Hard(int(stale), float(least), float(best)) for k, stale, least, best in hard}
        self.earlier_evaluations = evaluations - int(self.kernel_values.rows.evaluations)
        self.earlier_values = values - int(self.core.values)
        self._begin()

    def _check_feasible(self, alpha: Array) -> None:
        """Refuse dual variables that no fit could have: dual values are lower bounds of feasible ones only."""
        raise NotImplementedError


class SharedSMOEngine(WholeSMOEngine):
    """Parts that have all rows: two classes, or each of several against the rest."""

    def __init__(self, problem: KernelProblem, options: Options) -> None:
        self.m = int(problem.X.shape[0])
        super().__init__(problem, options, rows_of_all=problem.n_parts * self.m)
        self.alpha = np.zeros((problem.n_parts, self.m))
        self._K: Array | None = None

    def _matrix(self) -> Array:
        if self._K is None:
            every = np.arange(self.m)
            room = _core.raw_matrix(self.m, padded(self.m))  # in huge pages: faults would take as long as values
            self._K = self.kernel_values.block(every, every, room)
        return self._K

    def _given(self) -> Array:
        given = super()._given()
        if given is self.alpha:
            self._K = None  # there are no more visits
        return given

    def _visit(self, k: int, budget: int) -> tuple[int, int]:
        part = self.problem.parts[k]
        return k, self.core.visit(self._matrix(), part.y, part.weight, self.alpha[k], k)

    def _part(self, k: int) -> tuple[Array, Array, Array, Array]:
        part = self.problem.parts[k]
        return self._matrix()[:, : self.m], part.y, part.weight, self.alpha[k].copy()

    def _set(self, k: int, alpha: Array) -> None:
        self.alpha[k] = alpha

    def _check_feasible(self, alpha: Array) -> None:
        for part, own in zip(self.problem.parts, alpha, strict=True):
            if not bool(np.all((own >= part.lo) & (own <= part.hi))):
                raise ValueError("state: 'gamma' has a value outside its bounds")
        if self.problem.bias == "free":
            _check_sums(alpha.sum(axis=1), np.abs(alpha).sum(axis=1))


class PairSMOEngine(WholeSMOEngine):
    """Pairs of classes. Their dual variables stand in a table as :mod:`pegasos.kernels.pairs` says."""

    problem: PairProblem

    def __init__(self, problem: PairProblem, options: Options) -> None:
        parts = problem.parts
        k, m = parts.classes, len(parts.codes)
        super().__init__(problem, options, rows_of_all=(k - 1) * m)
        self.alpha = np.zeros((k - 1, m))
        self.visits = PairVisits(problem.parts, self.kernel_values)

    def point(self, *, last: bool = False) -> Point[Coefficients]:
        return Point(PairTable(self._given()))

    def _all_stretches(self) -> Iterator[tuple[int, int]]:
        return self.problem.parts.stretches()

    def _visit(self, k: int, budget: int) -> tuple[int, int]:
        return self.visits.visit(self.core, self.alpha, k, budget)

    def _part(self, k: int) -> tuple[Array, Array, Array, Array]:
        i, j = self.problem.parts.pair(k)
        first, second = self.problem.parts.of_pair(self.alpha, k)
        parts, weight = self.problem.parts, self.problem.parts.sorted_weight
        n = len(first) + len(second)
        y = np.concatenate([np.ones(len(first)), -np.ones(len(second))])
        weights = [weight[parts.starts[c] : parts.starts[c + 1]] for c in (i, j)]
        return self.visits.matrix(i, j)[:, :n], y, np.concatenate(weights), np.concatenate([first, second])

    def _set(self, k: int, alpha: Array) -> None:
        first, second = self.problem.parts.of_pair(self.alpha, k)
        first[:], second[:] = alpha[: len(first)], alpha[len(first) :]

    def _check_feasible(self, alpha: Array) -> None:
        parts = self.problem.parts
        k, room = parts.classes, parts.C * parts.sorted_weight
        for line, own in enumerate(alpha):  # classes up to this one are the first of their pairs
            first = np.arange(len(own)) < parts.starts[line + 1]
            if not bool(np.all((own >= np.where(first, 0, -room)) & (own <= np.where(first, room, 0)))):
                raise ValueError("state: 'gamma' has a value outside its bounds")

        if self.problem.bias != "free":
            return

        def totals(table: Array) -> Array:
            of_class: Array = np.add.reduceat(table, parts.starts[:-1], axis=1)
            return sums_of_pairs(k, 1, lambda i: of_class[:, i, None])[:, 0]

        _check_sums(totals(alpha), totals(np.abs(alpha)))


def _check_sums(sums: Array, sizes: Array) -> None:
    """Refuse dual variables of parts whose sums are not zero, but for rounding."""
    if not bool(np.all(np.abs(sums) <= 1e-12 * sizes)):
        raise ValueError("state: 'gamma' does not add up to zero")


def whole_engine(problem: KernelProblem, options: Options) -> WholeSMOEngine:
    """The engine for a problem that it suits."""
    if isinstance(problem, PairProblem):
        return PairSMOEngine(problem, options)
    return SharedSMOEngine(problem, options)
