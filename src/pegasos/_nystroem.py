"""Kernel machines on Nyström features: weights restricted to the span of some rows, the basis B.

With K_BB = UΣUᵀ (eigenvalues that are zero left out) the features f(x) = Σ^{-1/2} Uᵀ K(B, x) make a linear machine of
the kernel machine whose weights are Σ_i β_i φ(b_i), β = U Σ^{-1/2} w: ⟨w, f(x)⟩ = Σ_i β_i K(b_i, x) for every x, and
‖w‖² is that of the kernel's space. So the primal value is that of the exact problem, and the lower bound that of the
best weights in the span. One part after the other has its features in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos._certificate import Bounds, certify
from pegasos._data import Array, examples
from pegasos._engine import MAX_ITER, Engine, saved
from pegasos._kernel_problem import KernelProblem, check_values
from pegasos._problem import Problem
from pegasos._threads import one_blas_thread
from pegasos.solvers import Auto

#: Rows whose features are computed at a time, and entries of all features beyond which they are single precision.
PIECE, WIDE = 2048, 1 << 26

#: How a part can end; a saved state holds the index.
OVER = (None, "reached", MAX_ITER, "the linear solver came to rest above the tolerance")


class _Machine:
    """The linear machine of part k, and the way from its weights back to coefficients of the basis."""

    def __init__(self, problem: KernelProblem, k: int, basis: Array, seed: int) -> None:
        part = problem.pieces[k]
        self.basis = basis
        problem.rows.widen(k)
        values = self._values(problem, k, basis)
        sizes, vectors = np.linalg.eigh(0.5 * (values + values.T))
        kept = sizes > len(basis) * np.finfo(float).eps * max(float(sizes.max()), np.finfo(float).tiny)
        self.back = vectors[:, kept] / np.sqrt(sizes[kept]) if kept.any() else np.zeros((len(basis), 1))
        width = self.back.shape[1]
        features = np.empty((part.m, width), dtype=np.float64 if part.m * width <= WIDE else np.float32)
        for first in range(0, part.m, PIECE):
            rows = np.arange(first, min(first + PIECE, part.m))
            features[rows] = self._values(problem, k, rows) @ self.back
        weight, total = part.weight, float(part.weight.sum())
        self.problem = Problem(
            examples=examples(features, threads=problem.rows.threads, name="the Nystroem features"),
            loss=part.loss,
            target=np.ascontiguousarray(part.y),
            outputs=1,
            lam=1.0 / (part.C * total),
            weight=None if bool(np.all(weight == 1)) else np.ascontiguousarray(weight),
            bias="free",
            threads=problem.rows.threads,
        )
        self.factor = problem.lam / self.problem.lam  # both objectives are ½‖w‖² + CΣ, in different units
        self.engine: Engine = Auto().engine(self.problem, "unregularized", seed)

    def _values(self, problem: KernelProblem, k: int, rows: Array) -> Array:
        K = np.asarray(problem.rows(k).block(rows, self.basis), dtype=np.float64)[:, : len(self.basis)]
        check_values(K, problem.numbers(k, rows), problem.numbers(k, self.basis))
        return K


class _Result:
    """What is known of a part: coefficients of the basis, bounds, bias, how it ended and the passes it took."""

    def __init__(self, size: int, primal: float) -> None:
        self.gamma = np.zeros(size)
        self.primal, self.dual, self.b = primal, 0.0, 0.0
        self.over, self.epochs = 0, 0.0


class NystroemEngine:
    """Solves the linear machines of the parts, one after the other."""

    eager = False
    #: What the reason of a certificate should say.
    remark = "(of the machine on Nystroem features)"

    def __init__(
        self, problem: KernelProblem, *, tol: float, max_steps: int | None, seed: int, components: int
    ) -> None:
        self.problem, self.tol, self.max_steps, self.seed = problem, tol, max_steps, seed
        self.results = [_Result(p.size, at) for p, at in zip(problem.pieces, problem.at_zero(), strict=True)]
        self.bases = self._choose(components)
        self.machine: _Machine | None = None
        self.before = 0

    def _choose(self, components: int) -> list[Array]:
        """The rows of each part's basis: the first of one random order of all rows that have weight in the part."""
        m = int(self.problem.X.shape[0])
        rank = np.empty(m, dtype=np.int64)
        rank[np.random.default_rng(self.seed).permutation(m)] = np.arange(m)
        bases = []
        for part in self.problem.pieces:
            own = np.flatnonzero(part.weight > 0)
            ranks = rank[own if part.index is None else part.index[own]]
            bases.append(np.sort(own[np.argsort(ranks)[:components]]))
        return bases

    # --- what the loop asks ------------------------------------------------------------------------------------------

    @property
    def current(self) -> int | None:
        """The part that is worked on, None if all are over."""
        return next((k for k, result in enumerate(self.results) if not result.over), None)

    @property
    def evaluations(self) -> int:
        """Kernel values computed."""
        return self.before + self.problem.rows.evaluations

    @property
    def epochs(self) -> float:
        """Passes over the rows of the parts."""
        return sum(result.epochs for result in self.results)

    @property
    def steps(self) -> list[int]:
        """Passes over the rows of each part."""
        return [int(np.ceil(result.epochs)) for result in self.results]

    @property
    def stuck(self) -> str | None:
        k = self.current
        ends = [result.over for result in self.results]
        if k is not None:
            if k + 1 < len(ends) or self.machine is None:
                return None
            last = self.results[k]
            ends[k] = 1 if last.primal - last.dual <= self.tol * last.primal else self._spent(k)
        return next((OVER[end] for end in ends if end > 1), None) if all(ends) else None

    def due(self, tol: float) -> bool:
        k = self.current
        return k is None or self.machine is None or self._spent(k) > 0 or self.machine.engine.due(tol)

    def model(self) -> tuple[Array, Array]:
        """The coefficients of all parts, zero but for the rows of their bases."""
        k = self.current
        if k is not None and self.machine is not None:
            W, _ = self.machine.engine.model()
            assert W is not None
            self.results[k].gamma[self.machine.basis] = self.machine.back @ W[0]
        return np.concatenate([result.gamma for result in self.results]), np.zeros(len(self.results))

    def duals(self) -> Array | None:
        return None

    def lower_bound(self) -> Array | None:
        return None

    def certify(self, gamma: Array) -> Bounds:
        """The certificate of each part's linear machine; of those not at work, what is known."""
        k = self.current
        if k is not None and self.machine is not None:
            result, machine = self.results[k], self.machine
            with one_blas_thread():
                W, b = machine.engine.model()
                self.inner = certify(machine.problem, W, b, machine.engine.duals())
                own = machine.engine.lower_bound()
            dual = self.inner.dual if own is None else np.fmax(self.inner.dual, own)
            result.primal, result.b = float(self.inner.primal[0]) * machine.factor, float(self.inner.b[0])
            result.dual = float(np.fmax(result.dual, dual[0] * machine.factor))
        primal, dual, b = np.array([(result.primal, result.dual, result.b) for result in self.results]).T.copy()
        return Bounds(primal, dual, b, np.empty((0, len(self.results))))

    def learn(self, bounds: Bounds) -> None:
        """Go over to the next part where this one is solved or at its end."""
        k = self.current
        if k is None or self.machine is None:
            return
        reached = float(bounds.gap[k]) <= self.tol * float(bounds.primal[k])
        self.results[k].over = 1 if reached else self._spent(k)
        if self.results[k].over:
            self.machine = None
        else:
            with one_blas_thread():
                self.machine.engine.learn(self.inner)

    def _spent(self, k: int) -> int:
        """Why no more work is done on part k, as an index of ``OVER``."""
        if self.max_steps is not None and self.results[k].epochs >= self.max_steps:
            return 2
        return 3 if self.machine is not None and self.machine.engine.stuck is not None else 0

    # --- the work ----------------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """The features of a part, or a piece of work of its solver."""
        k = self.current
        if k is None:
            return
        with one_blas_thread():
            if self.machine is None:
                self.machine = _Machine(self.problem, k, self.bases[k], self.seed)
            elif not self._spent(k):
                self.machine.engine.advance()
                self.results[k].epochs = float(self.machine.engine.epochs)

    # --- the state ---------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        numbers = [(r.primal, r.dual, r.b, r.epochs, r.over) for r in self.results]
        own = {
            "gamma": np.concatenate([result.gamma for result in self.results]),
            "numbers": np.array(numbers, dtype=np.float64),
            "counts": np.array([self.evaluations, self.machine is not None, self.current or 0], dtype=np.float64),
        }
        inner = {} if self.machine is None else self.machine.engine.state()
        return own | {f"inner.{name}": array for name, array in inner.items()}

    def restore(self, state: dict[str, Any]) -> None:
        parts = len(self.results)
        gamma = saved(state, "gamma", (sum(len(result.gamma) for result in self.results),))
        numbers = saved(state, "numbers", (parts, 5))
        saved({"numbers": numbers[:, 3].copy()}, "numbers", (parts,), low=0, high=2**53)
        saved({"numbers": numbers[:, 4].copy()}, "numbers", (parts,), low=0, high=len(OVER) - 1, whole=True)
        if not np.isfinite(numbers).all() or not np.isfinite(gamma).all():
            raise ValueError("state: 'numbers' or 'gamma' has a value that is not finite")
        counts = saved(state, "counts", (3,), low=0, high=2**62, whole=True)
        for result, mine, row in zip(self.results, self.problem.split(gamma), numbers, strict=True):
            result.gamma = mine.copy()
            result.primal, result.dual, result.b, result.epochs = (float(v) for v in row[:4])
            result.over = int(row[4])
        self.machine, k = None, self._reopen(int(counts[2]))
        inner = {name.removeprefix("inner."): array for name, array in state.items() if name.startswith("inner.")}
        if counts[1] and k is not None and k == counts[2]:
            with one_blas_thread():
                self.machine = _Machine(self.problem, k, self.bases[k], self.seed)
                self.machine.engine.restore(inner)
        self.before = int(counts[0]) - self.problem.rows.evaluations

    def _reopen(self, at: int) -> int | None:
        """The part to go on with, now that ``max_steps`` may be higher; parts without a solver's state start anew."""
        for k, (result, primal) in enumerate(zip(self.results, self.problem.at_zero(), strict=True)):
            open_again = result.over == 2 and (self.max_steps is None or result.epochs < self.max_steps)
            if open_again or (k == at and self.current != at and not result.over):
                self.results[k] = _Result(len(result.gamma), float(primal))
        return self.current
