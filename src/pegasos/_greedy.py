"""Bases chosen greedily for the squared hinge (Keerthi, Chapelle & DeCoste 2006).

    F(u, b) = ½‖u‖² + C Σ max(0, 1 − y_i(⟨u, Φ_i⟩ + b))²

Each step draws some candidates and takes the one along whose φ(x_j) F would fall most; all coefficients are found anew,
by Newton's method, whenever the basis has grown by a tenth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import linalg

from pegasos._basis import Basis, Fitted
from pegasos._data import Array

#: Growth of a basis after which all coefficients are found anew.
GROWTH = 1.1

#: Newton steps at most, and the relative gain that ends them.
STEPS, GAIN = 50, 1e-7


class SquaredHingeOnBasis:
    """The machine on a basis that grows, and its scores of all rows."""

    def __init__(self, basis: Basis, y: Array, C: float) -> None:
        self.basis, self.y, self.C = basis, y, C
        self.u, self.bias, self.scores = np.zeros(basis.size), 0.0, np.zeros(basis.m)
        self.newton()

    @property
    def slack(self) -> Array:
        """max(0, 1 − y_i f_i)."""
        return np.maximum(0.0, 1.0 - self.y * (self.scores + self.bias))

    def value(self, u: Array, bias: float, scores: Array) -> float:
        """F."""
        slack = np.maximum(0.0, 1.0 - self.y * (scores + bias))
        return float(0.5 * u @ u + self.C * slack @ slack)

    @property
    def objective(self) -> float:
        """F here."""
        return self.value(self.u, self.bias, self.scores)

    def fitted(self) -> Fitted:
        """As it stands."""
        return Fitted(self.u.copy(), self.bias, self.objective)

    def newton(self) -> None:
        """Minimise over all coordinates and the bias."""
        before = self.objective
        for _ in range(STEPS):
            self._step(0)
            after = self.objective
            if before - after <= GAIN * before:
                return
            before = after

    def grow(self) -> None:
        """Take in what the basis has gained, and minimise over its coordinates and the bias alone."""
        first = len(self.u)
        self.u = np.append(self.u, np.zeros(self.basis.size - first))
        for _ in range(3):
            self._step(first)

    def _step(self, first: int) -> None:
        """A Newton step on the bias and the coordinates from ``first`` on; halved until F falls."""
        slack = self.slack
        active = np.flatnonzero(slack)
        Phi = self.basis.features[:, first:].T[:, active].T
        pull = 2 * self.C * (self.y * slack)[active]
        gradient = np.append(self.u[first:] - pull.astype(Phi.dtype) @ Phi, -pull.sum()).astype(np.float64)
        n = Phi.shape[1]
        H = np.empty((n + 1, n + 1))
        H[:n, :n] = 2 * self.C * (Phi.T @ Phi).astype(np.float64)
        H[np.arange(n), np.arange(n)] += 1.0
        H[:n, n] = H[n, :n] = 2 * self.C * Phi.sum(axis=0, dtype=np.float64)
        H[n, n] = max(2 * self.C * len(active), 1e-12) * (1 + 1e-9)
        move = -linalg.solve(H, gradient, assume_a="pos")
        along = (self.basis.features[:, first:] @ move[:n].astype(Phi.dtype)).astype(np.float64)
        start, length = self.objective, 1.0
        u = self.u.copy()
        while length > 1e-6:
            u[first:] = self.u[first:] + length * move[:n]
            bias, scores = self.bias + length * float(move[n]), self.scores + length * along
            if self.value(u, bias, scores) < start:
                self.u, self.bias, self.scores = u, bias, scores
                return
            length *= 0.5

    def promise(self, candidates: Array) -> Array:
        """The fall of F along each φ(x_j), by its first and second derivative: g²/2h."""
        slack = self.slack
        active = np.flatnonzero(slack)
        K = self.basis.rows.block(candidates, active)[:, : len(active)]
        pull = (2 * self.C * (self.y * slack)[active]).astype(K.dtype)
        g = self.scores[candidates] - K @ pull
        h = self.basis.diagonal[candidates] + 2 * self.C * np.einsum("ij,ij->i", K, K)
        return np.asarray(0.5 * g * g / np.maximum(h, 1e-300), dtype=np.float64)


def greedy_path(
    basis: Basis, y: Array, C: float, sizes: Sequence[int], candidates: Array, pool: int, rng: Any
) -> Iterator[tuple[int, Fitted]]:
    """Grow a basis by rows, and yield the optimum on it at each of ``sizes``.

    Each step looks at ``pool`` of the ``candidates`` (59: with probability 0.95 one is among the best twentieth). Where
    no candidates are left, what there is comes last.
    """
    machine = SquaredHingeOnBasis(basis, y, C)
    left = np.array(candidates, dtype=np.int64)
    rng.shuffle(left)
    due = 1
    for size in sorted(set(sizes)):
        while basis.size < size and len(left):
            at = rng.choice(len(left), min(pool, len(left)), replace=False)
            best = at[int(np.argmax(machine.promise(left[at])))]
            row, left[best] = left[best], left[-1]
            left = left[:-1]
            if len(basis.add_rows(np.array([row]))):
                machine.grow()
                if basis.size >= due:
                    machine.newton()
                    due = max(basis.size + 1, int(basis.size * GROWTH))
        machine.newton()
        yield basis.size, machine.fitted()
        if basis.size < size:
            return
