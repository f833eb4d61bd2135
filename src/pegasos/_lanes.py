"""C++ solvers side by side: one for a single or joint output, one for each group of classes of a one-vs-rest fit.

The weights of up to eight classes are interleaved, so that one load of a row serves all of them: eight doubles are one
cache line. More classes make more groups, which threads can share; a group that is finished rests.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from pegasos._data import Array
from pegasos._engine import CHUNK
from pegasos._problem import Problem

#: Classes whose weights share a cache line.
GROUP = 8


class LaneGroups:
    """The C++ solvers of a problem, driven as one."""

    def __init__(self, problem: Problem, make: Callable[[int, int], Any]) -> None:
        """``make(first, count)`` builds the solver for the classes ``first`` … ``first + count − 1``."""
        K = problem.outputs
        step = K if problem.joint or K == 1 else GROUP
        self.spans = [(first, min(step, K - first)) for first in range(0, K, step)]
        self.solvers = [make(first, count) for first, count in self.spans]
        self.resting = [False] * len(self.solvers)
        entries = max(1, problem.examples.nnz // problem.examples.m)
        lanes = 1 if K == 1 else step
        self.rows_a_call = max(1, CHUNK // (entries * max(1, lanes // 4)))
        self.threads = min(problem.threads, len(self.solvers))

    def parts(self) -> list[tuple[Any, slice]]:
        """Each solver and the outputs that are its own."""
        return [(s, slice(first, first + count)) for s, (first, count) in zip(self.solvers, self.spans, strict=True)]

    @property
    def awake(self) -> list[Any]:
        """The solvers that still work."""
        return [s for s, resting in zip(self.solvers, self.resting, strict=True) if not resting]

    @property
    def epochs(self) -> float:
        """Passes over the rows, of the group that has done most."""
        return max(float(s.epochs) for s in self.solvers)

    def advance(self) -> bool:
        """A chunk of rows for every solver that is in the middle of an epoch; True when all have ended theirs."""
        awake = self.awake
        behind = [s for s in awake if not s.epoch_ended] or awake
        if self.threads > 1 and len(behind) > 1:
            with ThreadPoolExecutor(self.threads) as pool:
                list(pool.map(lambda s: s.advance(self.rows_a_call), behind))
        else:
            for solver in behind:
                solver.advance(self.rows_a_call)
        return all(s.epoch_ended for s in awake)

    def rest(self, finished: Array) -> None:
        """Let the groups rest whose parts are all finished."""
        for g, (first, count) in enumerate(self.spans):
            self.resting[g] = len(self.spans) > 1 and bool(np.all(finished[first : first + count]))

    def weights(self) -> tuple[Array, Array]:
        """Weights and biases of all outputs."""
        pairs = [s.weights() for s in self.solvers]
        return np.concatenate([W for W, _ in pairs]), np.concatenate([b for _, b in pairs])

    def duals(self) -> Array:
        """Dual variables of all outputs: (rows × outputs)."""
        parts = [s.duals() for s in self.solvers]
        return np.asarray(parts[0] if len(parts) == 1 else np.hstack(parts))

    def state(self) -> dict[str, Any]:
        """The solvers' states, keyed by group."""
        return {f"{g}.{name}": a for g, s in enumerate(self.solvers) for name, a in s.state().items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from ``state``."""
        for g, solver in enumerate(self.solvers):
            prefix = f"{g}."
            solver.restore({k[len(prefix) :]: a for k, a in state.items() if k.startswith(prefix)})
