"""C++ solvers side by side: one for a single or joint output, one for each group of classes of a one-vs-rest fit.

The weights of up to eight classes are interleaved (sixteen in single precision), so that one load of a row serves all
of them: eight doubles are one cache line. More classes make more groups, which threads can share; a group that is
finished is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

import numpy as np

from pegasos import _core
from pegasos.fit.engine import ENTRIES_PER_CALL
from pegasos.problems.linear import LinearProblem
from pegasos.rows.views import Array
from pegasos.solvers.linear.engine import LinearEngine
from pegasos.util.fields import State, saved

#: Multiplications of an epoch below which threads are not used: it is over before they have started.
MIN_THREADED_WORK = 1 << 23

#: Classes whose weights share a cache line, in double and in single precision.
GROUP, SINGLE_GROUP = 8, 16

#: Fields of a C++ solver's state that are lists of rows, those that say yes or no, and those that count something.
ROW_LISTS = ("active", "order")
FLAGS = ("restart", "settled")
WINDOW_COUNTS = ("window_visits", "next_window_visits", "window_steps", "next_window_steps")
COUNTS = ("epoch", "at", "steps", "visits", "draws", "next0", "next1", *WINDOW_COUNTS)

#: Whole numbers up to this are exact in float64.
MAX_EXACT = 2.0**53

#: The C++ solver of an engine.
S = TypeVar("S", _core.Pegasos, _core.Sdca)


class LaneGroups(Generic[S]):
    """The C++ solvers of a problem, driven as one."""

    def __init__(self, problem: LinearProblem, make: Callable[[int, int], S], group: int = GROUP) -> None:
        """``make(first, count)`` builds the solver for the classes ``first`` … ``first + count − 1``."""
        K, self.rows, self.columns = problem.outputs, problem.examples.m, problem.examples.n
        self.outputs = K
        step = K if problem.joint or K == 1 else group
        self.spans = [(first, min(step, K - first)) for first in range(0, K, step)]
        self.solvers: list[S] = [make(first, count) for first, count in self.spans]
        self.resting = [False] * len(self.solvers)
        entries = max(1, problem.examples.nnz // problem.examples.m)
        lanes = 1 if K == 1 else step
        self.rows_a_call = max(1, ENTRIES_PER_CALL // (entries * max(1, lanes // 4)))
        self.threads = min(problem.threads, len(self.solvers)) if problem.examples.nnz * K >= MIN_THREADED_WORK else 1

    def parts(self) -> list[tuple[S, slice]]:
        """Each solver and the outputs that are its own."""
        return [(s, slice(first, first + count)) for s, (first, count) in zip(self.solvers, self.spans, strict=True)]

    @property
    def working(self) -> list[S]:
        """The solvers that still work."""
        return [s for s, resting in zip(self.solvers, self.resting, strict=True) if not resting]

    @property
    def epochs(self) -> float:
        """Passes over the rows, of the group that has done most."""
        return max(s.epochs for s in self.solvers)

    def advance(self, most: int | None = None) -> bool:
        """A chunk of rows for every solver that is in the middle of an epoch; True when all have ended theirs.

        ``most``: rows at most, but that a step is made as a whole.
        """
        rows, working = min(self.rows_a_call, most or self.rows_a_call), self.working
        behind = [s for s in working if not s.epoch_ended] or working
        if self.threads > 1 and len(behind) > 1:
            with ThreadPoolExecutor(self.threads) as pool:
                list(pool.map(lambda s: s.advance(rows), behind))
        else:
            for solver in behind:
                solver.advance(rows)
        return self.ended

    @property
    def ended(self) -> bool:
        """Whether every solver that still works is at the end of an epoch."""
        return all(s.epoch_ended for s in self.working)

    def rest(self, finished: Array) -> None:
        """Let the groups rest whose parts are all finished."""
        for g, (first, count) in enumerate(self.spans):
            self.resting[g] = len(self.spans) > 1 and bool(np.all(finished[first : first + count]))

    def weights(self) -> tuple[Array, Array]:
        """Weights and biases of all outputs."""
        W, b = np.empty((self.outputs, self.columns)), np.empty(self.outputs)
        for solver, part in self.parts():
            solver.write_weights(W[part], b[part])
        return W, b

    def duals(self) -> Array:
        """Dual variables of all outputs: (rows × outputs)."""
        return self._collect(lambda solver, u, first: solver.write_duals(u, first))

    def averages(self: LaneGroups[_core.Sdca]) -> Array:
        """Their means over the last epoch, which SDCA keeps."""
        return self._collect(lambda solver, u, first: solver.write_averages(u, first))

    def scores(self: LaneGroups[_core.Pegasos], early: int) -> Array:
        """The rows' scores when they were visited, if Pegasos was to keep them; NaN for an epoch's ``early`` rows."""
        return self._collect(lambda solver, z, first: solver.write_scores(z, first, early))

    def _collect(self, write: Callable[[S, Array, int], None]) -> Array:
        """What ``write`` has the solvers write into an array of rows × outputs, each from its first output on."""
        numbers = np.empty((self.rows, self.outputs))
        for solver, part in self.parts():
            write(solver, numbers, part.start)
        return numbers

    def state(self) -> State:
        """The solvers' states, keyed by group."""
        return {f"{g}.{name}": a for g, s in enumerate(self.solvers) for name, a in s.state().items()}

    def restore(self, state: State) -> None:
        """Continue from ``state``."""
        for g, solver in enumerate(self.solvers):
            prefix = f"{g}."
            own = {k.removeprefix(prefix): a for k, a in state.items() if k.startswith(prefix)}
            solver.restore(self._checked(own, solver.state()))

    def _checked(self, state: State, like: State) -> State:
        """The fields of a state, checked against those of a fresh solver: the core trusts rows and counts."""
        last = self.rows - 1
        fields = {}
        for name, fresh in like.items():
            if name in ROW_LISTS:
                fields[name] = saved(state, name, (None,), low=0, high=last, whole=True)
            elif name in FLAGS:
                fields[name] = saved(state, name, fresh.shape, low=0, high=1, whole=True)
            elif name in COUNTS:
                fields[name] = saved(state, name, (1,), low=0, high=MAX_EXACT, whole=True)
            else:
                fields[name] = saved(state, name, fresh.shape)
        saved(state, "epoch", (1,), high=MAX_EXACT / self.rows)
        # Without an order: in mini-batches that may run over the end of an epoch; the core looks closer.
        saved(state, "at", (1,), high=len(fields["order"]) if "order" in fields else 2 * self.rows)
        if "active" in fields and (not len(fields["active"]) or bool(np.any(np.diff(fields["active"]) <= 0))):
            raise ValueError("state: the active rows are not in order")
        return fields


def common_arguments(
    problem: LinearProblem, first: int, count: int
) -> tuple[_core.Rows, _core.Loss | _core.JointLoss, Array, Array | None, float, int, int]:
    """The arguments all C++ solvers begin with."""
    return (
        problem.examples.rows,
        problem.core,
        problem.target,
        problem.weight,
        problem.total,
        first,
        count,
    )


class LaneEngine(LinearEngine, Generic[S]):
    """What the engines on :class:`LaneGroups` share."""

    lanes: LaneGroups[S]
    ended: bool

    @property
    def epochs(self) -> float:
        return self.lanes.epochs

    def advance(self) -> None:
        self.ended = self.lanes.advance()

    def model(self) -> tuple[Array | None, Array]:
        return self.lanes.weights()

    def duals(self) -> Array | None:
        return self.lanes.duals()

    def state(self) -> State:
        return self.lanes.state()

    def restore(self, state: State) -> None:
        self.lanes.restore(state)
        self.ended = self.lanes.ended
