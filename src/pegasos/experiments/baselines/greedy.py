"""Bases chosen greedily for the squared hinge (Keerthi, Chapelle & DeCoste 2006).

    F(u, b) = ½‖u‖² + C Σ max(0, 1 − y_i(⟨u, Φ_i⟩ + b))²

Each step draws some candidates and takes the one along whose φ(x_j) F would fall most; all coefficients are found anew,
by Newton's method, whenever the basis has grown by a tenth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pegasos.experiments.baselines.basis import Basis, Fitted, refit_squared
from pegasos.rows.views import Array
from pegasos.solvers.squared_hinge import newton

#: Growth of a basis after which all coefficients are found anew.
REFIT_GROWTH = 1.1

#: The relative gain that ends Newton's method.
MIN_NEWTON_GAIN = 1e-7


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

    @property
    def objective(self) -> float:
        """F here."""
        slack = self.slack
        return float(0.5 * self.u @ self.u + self.C * slack @ slack)

    def fitted(self) -> Fitted:
        """As it stands."""
        return Fitted(self.u.copy(), self.bias, self.objective)

    def newton(self) -> None:
        """Minimise over all coordinates and the bias."""
        fit = refit_squared(self.basis, self.y, self.C, self.u, self.bias, MIN_NEWTON_GAIN)
        self.u, self.bias = fit.u, fit.bias
        self.scores = self._scores(self.basis.features, fit.u)

    def grow(self) -> None:
        """Take in what the basis has gained, and minimise over its coordinates and the bias alone."""
        Phi = self.basis.features[:, len(self.u) :]
        cost, start = np.full(self.basis.m, 2 * self.C), np.zeros(Phi.shape[1])
        u, self.bias = newton(
            Phi, self.y, cost, start, self.bias, True, self.basis.threads, offset=self.scores, small=MIN_NEWTON_GAIN
        )
        self.u, self.scores = np.append(self.u, u), self.scores + self._scores(Phi, u)

    def _scores(self, Phi: Array, u: Array) -> Array:
        return np.asarray(Phi @ u.astype(Phi.dtype), dtype=np.float64)

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
    basis: Basis, y: Array, C: float, sizes: Sequence[int], candidates: Array, pool: int, rng: np.random.Generator
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
                    due = max(basis.size + 1, int(basis.size * REFIT_GROWTH))
        machine.newton()
        yield basis.size, machine.fitted()
        if basis.size < size:
            return
