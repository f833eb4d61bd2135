"""The optimisation problem of a kernel machine, frozen, and its certificate.

Over the reproducing space of the kernel, for each part (a pair of classes, or all rows)

    P(w, b) = (λ/2)‖w‖² + (1/M) Σ_i c_i ℓ(y_i, ⟨w, φ(x_i)⟩ + b),   λ = 1/(C M),

with a bias that is not regularised (``bias="free"``), the weight of a constant feature ("feature"), or none. For the
hinge and the ε-insensitive loss and a free bias the dual, in units of λ, is one concave quadratic program,

    D/λ = max Σ_v t_v γ_v − ½ Σ_uv γ_u γ_v K(x_r(u), x_r(v)),   lo ≤ γ ≤ hi,  Σγ = 0,

with a variable v for each row (hinge: t = y, γ between 0 and y C c) or two (ε-insensitive: t = y − ε and γ in [0, C c],
t = y + ε and γ in [−C c, 0]); w = Σ_v γ_v φ(x_r(v)). For all losses there are dual variables u_i in the loss's unit
domain too, as for linear machines: w = Σ_i C c_i u_i φ(x_i); see ``_kernel_certificate.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pegasos._certificate import Bounds
from pegasos._data import Array
from pegasos._kernel_rows import PartRows
from pegasos._kernels import Kernel
from pegasos._problem import Bias
from pegasos.losses import EpsilonInsensitive, Loss

#: Scores further than this from every kink of the loss need not be recomputed in float64.
SAFE = 1e-3


@dataclass(frozen=True)
class Part:
    """One independent problem: its rows of X (None: all), their targets (±1 or real) and weights."""

    index: Array | None
    y: Array
    weight: Array
    loss: Loss
    C: float

    @property
    def m(self) -> int:
        """Rows."""
        return len(self.y)

    @property
    def size(self) -> int:
        """Variables of the quadratic program."""
        return 2 * self.m if isinstance(self.loss, EpsilonInsensitive) else self.m

    @cached_property
    def row(self) -> Array:
        """The row of each variable."""
        return np.arange(self.size, dtype=np.int64) % self.m

    @cached_property
    def t(self) -> Array:
        """The linear term of the dual."""
        if isinstance(self.loss, EpsilonInsensitive):
            return np.concatenate([self.y - self.loss.epsilon, self.y + self.loss.epsilon])
        return self.y

    @cached_property
    def lo(self) -> Array:
        """Lower bounds."""
        return self._box[0]

    @cached_property
    def hi(self) -> Array:
        """Upper bounds."""
        return self._box[1]

    @cached_property
    def _box(self) -> tuple[Array, Array]:
        room, none = self.C * self.weight, np.zeros(self.m)
        if isinstance(self.loss, EpsilonInsensitive):
            return np.concatenate([none, -room]), np.concatenate([room, none])
        return np.where(self.y > 0, none, -room), np.where(self.y > 0, room, none)

    @cached_property
    def core(self) -> Any:
        """The C++ loss."""
        return self.loss.core()

    def coefficients(self, gamma: Array) -> Array:
        """Σ γ of each row: what it contributes to w."""
        return gamma if len(gamma) == self.m else gamma[: self.m] + gamma[self.m :]

    def feasible(self, gamma: Array) -> Array:
        """γ within its bounds, and its sum zero: the heavier sign is scaled down."""
        gamma = np.clip(gamma, self.lo, self.hi)
        up, down = float(gamma[gamma > 0].sum()), float(-gamma[gamma < 0].sum())
        both = min(up, down)
        if up != down:
            heavy = gamma > 0 if up > down else gamma < 0
            gamma[heavy] *= both / max(up, down)
        return gamma

    def flat(self, scores: Array, reach: float) -> Array:
        """Rows whose loss is zero, and stays so if their score moves by ``reach``."""
        if isinstance(self.loss, EpsilonInsensitive):
            return np.asarray((np.abs(self.y - scores) <= self.loss.epsilon - reach) | (self.weight == 0))
        return np.asarray((self.y * scores >= 1 + reach) | (self.weight == 0))

    @cached_property
    def shares(self) -> Array:
        """What multiplies the dual variables u in w."""
        return self.C * self.weight

    def feasible_duals(self, u: Array, *, balanced: bool) -> Array:
        """u within the loss's domain and, for a free bias, Σ c u = 0: the heavier sign is scaled down."""
        u = np.asarray(self.core.clip(np.ascontiguousarray(u), self.y))
        if balanced:
            up, down = float(self.weight @ np.maximum(u, 0)), float(self.weight @ np.maximum(-u, 0))
            if up != down:
                heavy = u > 0 if up > down else u < 0
                u = np.where(heavy, u * (min(up, down) / max(up, down)), u)
        return u

    def best_bias(self, scores: Array) -> float:
        """The middle of the best biases for scores without one."""
        low, high, _ = self.core.best_offset(np.ascontiguousarray(scores), self.y, self.weight, 0.0)
        return float(0.5 * (low + high))


@dataclass(frozen=True)
class KernelProblem:
    """See the module's docstring. ``rows(k)`` gives the kernel rows of part k."""

    X: Any
    kernel: Kernel
    pieces: tuple[Part, ...]
    lam: float
    total: float
    rows: PartRows
    bias: Bias = "free"
    feature: float = 1.0

    @property
    def parts(self) -> int:
        """Independent problems."""
        return len(self.pieces)

    def mean_squared_norm(self, k: int) -> float:
        """(1/M) Σ c_i K(x_i, x_i) over the rows of part k; a kernel that is not positive semi-definite has none."""
        return max(float(self.pieces[k].weight @ self.rows(k).diagonal()) / self.total, 0.0)

    def at_zero(self) -> Array:
        """P(0, 0) of each part."""
        return np.array([p.weight @ p.core.value(np.zeros(p.m), p.y) / self.total for p in self.pieces])

    def split(self, flat: Array) -> list[Array]:
        """Views of the variables of each part, or of numbers of their rows."""
        sizes, rows = [p.size for p in self.pieces], [p.m for p in self.pieces]
        return np.split(flat, np.cumsum(sizes if len(flat) == sum(sizes) else rows)[:-1])

    def refuted(self, primal: Array, dual: Array) -> bool:
        """Whether lower bounds cannot be any: above an objective reached, or that of zero weights.

        Then there is no duality: the kernel is not positive semi-definite.
        """
        above = dual > primal + 1e-9 * np.abs(primal)
        return bool(np.any(above | (dual > self.at_zero() * (1 + 1e-6))))

    def numbers(self, k: int, rows: Array) -> Array:
        """The numbers in X of rows of part k."""
        index = self.pieces[k].index
        return rows if index is None else np.asarray(index[rows])

    def certify(self, gamma: Array, approximate: list[Array]) -> tuple[Bounds, Array]:
        """P and D of feasible γ, in float64, and the largest error seen in the scores of each part.

        ``approximate`` are scores without bias that somebody else has kept. They are believed of rows that they put far
        from every kink of the loss on its flat side, where the loss is zero; all others are computed anew, and
        show how far the approximation can be believed.
        """
        numbered = zip(range(self.parts), self.split(gamma), approximate, strict=True)
        found = [self.part_bounds(k, g, f) for k, g, f in numbered]
        primal, dual, b, error = (np.array(column) for column in zip(*found, strict=True))
        return Bounds(primal, dual, b, np.empty((0, self.parts))), error

    def part_bounds(self, k: int, gamma: Array, approximate: Array) -> tuple[float, float, float, float]:
        """P and D of part k, the best bias, and the largest error seen in ``approximate``."""
        part, rows = self.pieces[k], self.rows(k)
        coef = part.coefficients(gamma)
        support = np.flatnonzero(coef)
        scores, known = approximate.copy(), np.zeros(part.m, dtype=bool)
        wanted, error = coef != 0, 0.0
        while True:
            if len(new := np.flatnonzero(wanted & ~known)):
                scores[new] = rows.exact(support, coef[support], new) if len(support) else 0.0
                known[new] = True
                error = max(error, float(np.abs(scores[new] - approximate[new]).max()))
            b = part.best_bias(scores)
            # Sixteen times the worst error seen stands for the worst there is.
            wanted = ~part.flat(scores + b, max(SAFE, 16 * error))
            if not (wanted & ~known).any():
                break
        norm = float(coef[support] @ scores[support])
        loss = float(part.weight @ part.core.value(np.ascontiguousarray(scores + b), part.y)) / self.total
        primal = 0.5 * self.lam * norm + loss
        dual = self.lam * (float(part.t @ gamma) - 0.5 * norm)
        if primal < dual <= primal + 1e-12 * abs(primal):  # rounding
            dual = primal
        return primal, dual, b, error


def check_values(K: Array, numbers: Array, others: Array | None = None) -> None:
    """Refuse kernel values that are not finite, of rows with these numbers among themselves or with others."""
    if not np.isfinite(K).all():
        i, j = np.argwhere(~np.isfinite(K))[0]
        other = (numbers if others is None else others)[j]
        raise ValueError(
            f"the kernel of rows {numbers[i]} and {other} is {K[i, j]}: scale the features, or lower gamma or degree"
        )
