"""What kernel Pegasos and kernel SDCA share: epochs over the rows in blocks, and an engine around them.

The next rows B of an epoch's order are taken together. Their kernel values K_BB are one block, inside which the
serial algorithm runs on the block's own scores (``cpp/pegasos/kernel/steps.hpp``); the kernel rows of what has moved
are then computed together and added to all scores. The decisions are those of the serial algorithm.

Parts that have the same rows (one-vs-rest) go through the blocks side by side and share K_BB and the kernel rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from pegasos import _core
from pegasos.fit.engine import MAX_ITER, Engine
from pegasos.kernels.cache import BATCH_ROWS
from pegasos.problems.base import Bounds, Point
from pegasos.problems.kernel import INDEFINITE, Coefficients, KernelProblem, exact_scores
from pegasos.problems.part import check_values
from pegasos.rows.views import Array
from pegasos.solvers.kernel.reasons import DUAL_MET, Ending
from pegasos.util.fields import State, saved
from pegasos.util.threads import one_blas_thread

#: Epochs of the stochastic solvers of kernel machines unless ``max_iter`` says otherwise.
MAX_EPOCHS = 1000

#: Rows of a block, unless mini-batches are longer.
BLOCK_ROWS = 256

#: Kernel values used after which a call of ``advance`` ends.
VALUES_PER_CALL = 1 << 22

#: Epochs after which sums of kernel rows are recomputed, and the most on a kernel that is not positive semi-definite.
REFRESH_EPOCHS, MAX_INDEFINITE_EPOCHS = 50, 10

#: How a group of parts can end.
ENDINGS = (Ending.OPEN, Ending.MAX_STEPS, Ending.STALLED, Ending.INDEFINITE)


def by_name(scalars: Array, names: Sequence[str]) -> Any:
    """The entries of ``scalars`` as attributes with these names: a view, so what is assigned lands in the array."""
    return scalars.view([(name, np.float64) for name in names]).view(np.recarray)[0]


class PartState(Protocol):
    """Where the solution of one part is: ``scalars``, and the arrays named in ``arrays``, an entry for each row."""

    arrays: tuple[str, ...]
    scalars: Array
    #: Sums of kernel rows, and the arrays whose entries, times ``unit``, are their coefficients.
    sums: ClassVar[dict[str, str]]
    unit: Array
    F: Array

    @property
    def primal(self) -> float:
        """The primal value last estimated."""
        ...

    def run(self, K: Array, at: Array) -> Array:
        """Visit the rows ``at``, whose kernel values are K; what is added to the coefficient of each."""
        ...

    def added(self) -> None:
        """The kernel rows of the last changes have been added to F."""
        ...

    def end_epoch(self) -> bool:
        """Whether anything has moved in the epoch that has ended."""
        ...

    def coefficients(self) -> Array:
        """Those of the model."""
        ...

    def duals(self) -> Array:
        """Dual variables in the unit domain."""
        ...

    def estimate(self) -> tuple[float, float]:
        """Gap and primal value from the running sums, without any kernel values."""
        ...

    def restore(self, arrays: dict[str, Array], scalars: Array) -> None:
        """Go on from saved arrays; ValueError if they cannot be right."""
        ...


class _Progress(NamedTuple):
    """What a saved state holds of a group, in this order."""

    epoch: int
    at: int
    ending: int


class _Counts(NamedTuple):
    """Numbers of the engine in a saved state, in their order."""

    evaluations: float
    ended: float
    indefinite: float


class _Group:
    """Parts that have the same rows. ``at``: rows visited in this epoch; ``drawn``: an epoch and its order.

    Mini-batches that an epoch cannot fill go on in the next one; the epoch ends with them.
    """

    def __init__(self, parts: list[int], m: int, batch_size: int) -> None:
        self.parts, self.m, self.batch = parts, m, min(batch_size, m)
        #: Mini-batches longer than a block see scores that stay as they are, and need no K_BB.
        self.wide = self.batch > BLOCK_ROWS
        self.block = self.batch if self.wide else BLOCK_ROWS // self.batch * self.batch
        self.epoch, self.at, self.ending = 0, 0, Ending.OPEN
        self.drawn: tuple[int, Array] | None = None

    def before(self, epoch: int) -> int:
        """Rows visited before an epoch: those of all mini-batches that have begun earlier."""
        return -(-epoch * self.m // self.batch) * self.batch

    def length(self, epoch: int) -> int:
        """Rows visited in an epoch."""
        return self.before(epoch + 1) - self.before(epoch)

    @property
    def ended(self) -> bool:
        """Whether this epoch has."""
        return self.at == self.length(self.epoch)

    @property
    def visits(self) -> int:
        """Rows visited, but for what the last mini-batch of an epoch needs of the next one."""
        return min(self.before(self.epoch) + self.at, (self.epoch + 1) * self.m)


class BlockEngine(Engine[Coefficients]):
    """Runs the parts of a problem; ``max_epochs`` is for each part."""

    def __init__(
        self,
        problem: KernelProblem,
        states: Sequence[PartState],
        *,
        tol: float,
        max_epochs: int,
        sampling: str,
        seed: int,
        batch_size: int = 1,
    ) -> None:
        self.problem, self.states, self.tol, self.max_epochs = problem, states, tol, max_epochs
        self.sampling, self.seed = sampling, seed
        shared = all(part.index is None for part in problem.parts)
        numbers = [list(range(problem.n_parts))] if shared else [[k] for k in range(problem.n_parts)]
        self.groups = [_Group(parts, problem.parts[parts[0]].m, batch_size) for parts in numbers]
        self.finished = np.zeros(problem.n_parts, dtype=bool)
        self.estimated = np.full(problem.n_parts, np.inf)
        self.best = np.full(problem.n_parts, np.inf)
        self.ended, self.indefinite = False, False
        self.before, self.next_check, self.refreshed = 0, 1.0, 0.0

    # --- what the loop asks ------------------------------------------------------------------------------------------

    @property
    def evaluations(self) -> int:
        """Kernel values computed so far, but for certificates."""
        return self.before + self.problem.rows.evaluations

    @property
    def epochs(self) -> float:
        """Rows visited, in all groups, in units of the rows there are."""
        return sum(group.visits for group in self.groups) / max(1, int(self.problem.X.shape[0]))

    @property
    def steps(self) -> list[int]:
        """Epochs of each part."""
        return [group.epoch + (group.at > 0) for group in self.groups for _ in group.parts]

    def _rests(self, group: _Group) -> bool:
        return group.ending is not Ending.OPEN or bool(self.finished[group.parts].all())

    @property
    def stuck(self) -> str | None:
        if not all(self._rests(group) for group in self.groups):
            return None
        if self.indefinite:
            return INDEFINITE
        reason, doubt = next((group.ending.reason for group in self.groups if group.ending), None), self.problem.doubt
        return f"{reason or DUAL_MET}; {doubt}" if doubt and reason != MAX_ITER else reason

    @property
    def goals(self) -> tuple[str, ...]:
        """Where there is no lower bound: that the dual value comes within ``tol`` of the primal one all the same."""
        return (f"{DUAL_MET}; {self.problem.doubt}",)

    def due(self, tol: float) -> bool:
        if all(self._rests(group) for group in self.groups):
            return True
        # A certificate goes through all parts, and drops the kernel rows of the current one unless all share theirs.
        together = len(self.groups) == 1 or self.problem.rows.whole is not None
        return self.ended and together and self.epochs >= self.next_check

    def point(self, *, last: bool = False) -> Point[Coefficients]:
        """Coefficients and dual variables of all parts."""
        return Point(Coefficients(self.coefficients()), np.concatenate([state.duals() for state in self.states]))

    def coefficients(self) -> Array:
        """Those of the model, of all parts."""
        return np.concatenate([state.coefficients() for state in self.states])

    def judged(self, bounds: Bounds[Coefficients]) -> None:
        """Remember whether the certificate has shown that the kernel is not positive semi-definite."""
        self.indefinite |= self.problem.doubt == INDEFINITE

    def learn(self, bounds: Bounds[Coefficients]) -> None:
        """Go on where the gap is too wide, and in double precision where single precision is the reason."""
        self.next_check = 2.0 * self.epochs + 1.0
        proven = np.asarray(bounds.formal_gap <= self.tol * bounds.primal)
        refused = self.finished & ~proven
        self.best[refused] = self.estimated[refused]
        self.finished = proven
        refresh = self.epochs >= self.refreshed + REFRESH_EPOCHS
        if refresh:
            self.refreshed = self.epochs
        for group in self.groups:
            if refresh or self._misled(group, bounds):
                self._refresh(group)

    def _misled(self, group: _Group, bounds: Bounds[Coefficients]) -> bool:
        """Whether single precision has falsified an estimate by a tenth of the gap; if so, go over to double."""
        first = group.parts[0]
        if not group.at or not self.problem.rows(first).single:
            return False
        for k in group.parts:
            off = abs(self.states[k].primal - bounds.primal[k])
            if not self.finished[k] and off > 0.1 * bounds.formal_gap[k]:
                self.problem.rows.widen(first)
                return True
        return False

    def _refresh(self, group: _Group) -> None:
        """Recompute all sums of kernel rows in double precision."""
        for k in group.parts:
            state = self.states[k]
            coefs = np.stack([state.unit * getattr(state, name) for name in state.sums.values()])
            for name, line in zip(state.sums, exact_scores(self.problem, k, coefs), strict=True):
                setattr(state, name, np.ascontiguousarray(line))

    # --- the work ----------------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """Some blocks of one group, up to the end of its epoch."""
        group = next((group for group in self.groups if not self._rests(group)), None)
        if group is None:
            return
        if group.ended:
            group.epoch, group.at = group.epoch + 1, 0
        work = 0
        while not group.ended and work < VALUES_PER_CALL:
            work += self._block(group)
        self.ended = group.ended
        if self.ended:
            self._end_epoch(group)

    def _block(self, group: _Group) -> int:
        """Visit the next rows of all parts that are not finished; the kernel values used."""
        if group.drawn is None or group.drawn[0] != group.epoch:
            order = _core.epoch_order(group.m, self.sampling, self.seed, group.epoch, batch=group.batch)
            group.drawn = group.epoch, order
        at = np.ascontiguousarray(group.drawn[1][group.at : group.at + group.block])
        rows = self.problem.rows(group.parts[0])
        K = np.zeros((0, 0)) if group.wide else rows.square(at)
        check_values(K, self.problem.numbers(group.parts[0], at))
        if group.epoch == 0 and not self.problem.kernel.definite and K.size and not self.indefinite:
            self.indefinite = _indefinite(K[:, : len(at)])
        active = [self.states[k] for k in group.parts if not self.finished[k]]
        changes = np.stack([state.run(K, at) for state in active])
        moved, back = np.unique(at, return_inverse=True)
        coefs = np.stack([np.bincount(back, weights=change, minlength=len(moved)) for change in changes])
        used = np.flatnonzero(coefs.any(axis=0))
        for first in range(
            0, len(used), BATCH_ROWS
        ):  # so few that they are still in the cache when the last part adds them
            some = used[first : first + BATCH_ROWS]
            for state, coef in zip(active, coefs, strict=True):
                own = some[coef[some] != 0]
                rows.add(moved[own], coef[own], state.F)
        for state in active:
            state.added()
        group.at += len(at)
        return len(at) ** 2 + int(np.count_nonzero(coefs)) * group.m

    def _end_epoch(self, group: _Group) -> None:
        moved = False
        for k in group.parts:
            if self.finished[k]:
                continue
            moved |= self.states[k].end_epoch()
            gap, primal = self.states[k].estimate()
            if not np.isfinite(primal):
                raise ValueError("the scores left the range of floating-point numbers; scale the features or lower C")
            self.estimated[k] = gap
            # After a certificate has refused a gap, the estimate must have halved before the next one.
            self.finished[k] = gap <= min(self.tol * primal, 0.5 * self.best[k])
        done = group.epoch + 1
        if self.indefinite and done >= MAX_INDEFINITE_EPOCHS:
            group.ending = Ending.INDEFINITE
        elif not moved and not self._rests(group):
            group.ending = Ending.STALLED
        elif done >= self.max_epochs:
            group.ending = Ending.MAX_STEPS

    # --- the state ---------------------------------------------------------------------------------------------------

    def state(self) -> State:
        parts = {name: [getattr(state, name) for state in self.states] for name in self.states[0].arrays}
        return {name: np.concatenate(arrays) for name, arrays in parts.items()} | {
            "scalars": np.array([state.scalars for state in self.states]),
            "groups": np.array([_Progress(g.epoch, g.at, g.ending) for g in self.groups], dtype=np.float64),
            "progress": np.array([self.finished * 1.0, self.estimated, self.best]),
            "wide": np.array([float(k in self.problem.rows.wide) for k in range(self.problem.n_parts)]),
            "counts": np.array(_Counts(self.evaluations, self.ended, self.indefinite), dtype=np.float64),
            "checks": np.array([self.next_check, self.refreshed]),
        }

    def restore(self, state: State) -> None:
        parts, rows = self.problem.n_parts, sum(state.F.shape[0] for state in self.states)
        named = self.states[0].arrays
        arrays = {name: self.problem.split(saved(state, name, (rows,))) for name in named}
        scalars = saved(state, "scalars", (parts, len(self.states[0].scalars)))
        shape = len(self.groups), len(_Progress._fields)
        groups = [_Progress(*map(int, row)) for row in saved(state, "groups", shape, low=0, high=2**53, whole=True)]
        progress = saved(state, "progress", (3, parts))
        saved({"progress": progress[0].copy()}, "progress", (parts,), low=0, high=1, whole=True)
        wide = saved(state, "wide", (parts,), low=0, high=1, whole=True)
        counts = _Counts(*saved(state, "counts", (len(_Counts._fields),), low=0, whole=True))
        checks = saved(state, "checks", (2,))
        pairs = list(zip(self.groups, groups, strict=True))
        if any(p.at > group.length(p.epoch) or p.ending > max(ENDINGS) for group, p in pairs):
            raise ValueError("state: 'groups' has a row or a reason that is not there")
        for k, mine in enumerate(self.states):
            mine.restore({name: arrays[name][k].copy() for name in named}, scalars[k])
        for group, p in pairs:
            group.epoch, group.at, group.ending, group.drawn = p.epoch, p.at, Ending(p.ending), None
            if group.ending is Ending.MAX_STEPS and group.epoch + 1 < self.max_epochs:
                group.ending = Ending.OPEN
        self.finished, self.estimated, self.best = progress[0].astype(bool), progress[1], progress[2]
        self.problem.rows.wide = set(np.flatnonzero(wide).tolist())
        self.problem.rows.at = None
        self.before = int(counts.evaluations) - self.problem.rows.evaluations
        self.ended, self.indefinite = bool(counts.ended), bool(counts.indefinite)
        self.next_check, self.refreshed = map(float, checks)


def _indefinite(K: Array) -> bool:
    """Whether a part of a kernel matrix has an eigenvalue that rounding cannot explain."""
    with one_blas_thread():  # more threads are slower on matrices of this size
        values = np.linalg.eigvalsh(K.astype(np.float64))
    return bool(values[0] < -1e-5 * max(np.abs(values).max(), np.finfo(float).tiny))
