"""The optimisation problem of a kernel machine, frozen; ``_kernel_certificate.py`` certifies its solutions.

Over the reproducing space of the kernel, for each part (a pair of classes, or all rows)

    P(w, b) = (λ/2)‖w‖² + (1/M) Σ_i c_i ℓ(y_i, ⟨w, φ(x_i)⟩ + b),   λ = 1/(C M),

with a bias that is not regularised (``bias="free"``), the weight of a constant feature ("feature"), or none. For the
hinge and the ε-insensitive loss and a free bias the dual, in units of λ, is one concave quadratic program,

    D/λ = max Σ_v t_v γ_v − ½ Σ_uv γ_u γ_v K(x_r(u), x_r(v)),   lo ≤ γ ≤ hi,  Σγ = 0,

with a variable v for each row (hinge: t = y, γ between 0 and y C c) or two (ε-insensitive: t = y − ε and γ in [0, C c],
t = y + ε and γ in [−C c, 0]); w = Σ_v γ_v φ(x_r(v)). For all losses there are dual variables u_i in the loss's unit
domain too, as for linear machines: w = Σ_i C c_i u_i φ(x_i).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from pegasos._data import Array
from pegasos._definite import BY_KIND, PROVABLE, UNKNOWN, Definiteness, check
from pegasos._kernel_rows import PartRows
from pegasos._kernels import Kernel
from pegasos._problem import Bias
from pegasos._threads import dot
from pegasos.losses import EpsilonInsensitive, Loss

#: Why there is no lower bound: there is no duality without a space of features.
UNBOUNDED = "so there is no lower bound"
INDEFINITE = f"the kernel is not positive semi-definite, {UNBOUNDED}"

#: What is left of the balance Σ c u = 0 of dual variables by rounding, relative to their sums.
BALANCED = 1e-13


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

    def forget(self) -> None:
        """Give up what can be made again: of a thousand parts it fills the memory."""
        for name in ("row", "t", "lo", "hi", "_box"):
            vars(self).pop(name, None)

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
        if abs(up - down) > BALANCED * max(up, down):
            heavy = gamma > 0 if up > down else gamma < 0
            gamma[heavy] *= min(up, down) / max(up, down)
        return gamma

    def flat(self, scores: Array, reach: Array) -> Array:
        """Rows whose loss is zero, and stays so if their score moves by ``reach``."""
        if isinstance(self.loss, EpsilonInsensitive):
            return np.asarray((np.abs(self.y - scores) <= self.loss.epsilon - reach) | (self.weight == 0))
        return np.asarray((self.y * scores >= 1 + reach) | (self.weight == 0))

    @property
    def shares(self) -> Array:
        """What multiplies the dual variables u in w."""
        return self.C * self.weight

    def feasible_duals(self, u: Array, *, balanced: bool) -> Array:
        """u within the loss's domain and, for a free bias, Σ c u = 0: the heavier sign is scaled down."""
        u = np.asarray(self.core.clip(np.ascontiguousarray(u), self.y))
        if balanced:
            up, down = float(self.weight @ np.maximum(u, 0)), float(self.weight @ np.maximum(-u, 0))
            if abs(up - down) > BALANCED * max(up, down):
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
    pieces: Sequence[Part]
    lam: float
    total: float
    rows: PartRows
    bias: Bias = "free"
    feature: float = 1.0
    _proofs: dict[bytes, Definiteness] = field(default_factory=dict, repr=False, compare=False)
    _kept: dict[tuple[str, int], tuple[Array, Any]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def parts(self) -> int:
        """Independent problems."""
        return len(self.pieces)

    @property
    def loss(self) -> Loss:
        """That of all parts."""
        return self.pieces[0].loss

    @property
    def C(self) -> float:
        """1/(λM), of all parts."""
        return self.pieces[0].C

    @property
    def outputs(self) -> int:
        """Biases: one for each part."""
        return self.parts

    @property
    def model_shape(self) -> tuple[int, ...]:
        """The shape of a model: a coefficient for each row of each part."""
        return (sum(p.m for p in self.pieces),)

    def choose(self, first: Array, W: Array, other: Array) -> Array:
        """The numbers in W of the parts in ``first``, and the other ones of the rest."""
        pairs = zip(first, self.split(W), self.split(other), strict=True)
        return np.concatenate([mine if chosen else rest for chosen, mine, rest in pairs])

    def mean_squared_norm(self, k: int) -> float:
        """(1/M) Σ c_i K(x_i, x_i) over the rows of part k; a kernel that is not positive semi-definite has none."""
        return max(float(self.pieces[k].weight @ self.rows(k).diagonal()) / self.total, 0.0)

    def at_zero(self) -> Array:
        """P(0, 0) of each part."""
        return np.array([p.weight @ p.core.value(np.zeros(p.m), p.y) / self.total for p in self.pieces])

    def split(self, flat: Array) -> list[Array]:
        """Views of numbers of the rows of each part."""
        ends = accumulate(part.m for part in self.pieces)
        return [flat[end - part.m : end] for end, part in zip(ends, self.pieces, strict=True)]

    def targets(self) -> list[Array]:
        """All that is to be learnt."""
        return [part.y for part in self.pieces]

    def weights(self) -> list[Array]:
        """Those of the rows."""
        return [part.weight for part in self.pieces]

    def scores(self, k: int, coef: Array) -> Array:
        """K coef on the rows of part k, in float64; those computed last are kept, and serve for multiples of coef."""
        return np.asarray(self._multiple("scores", k, coef, self._computed_scores, 1))

    def square(self, k: int, coef: Array) -> float:
        """‖Σ coef_i φ(x_i)‖² in part k, in float64; kept in the same way."""
        return float(self._multiple("square", k, coef, self._computed_square, 2))

    def _multiple(self, what: str, k: int, coef: Array, compute: Callable[[int, Array], Any], power: int) -> Any:
        before, found = self._kept.get((what, k), (np.zeros(0), None))
        at = int(np.argmax(np.abs(before))) if before.any() else -1
        if at >= 0 and len(before) == len(coef):
            factor = float(coef[at] / before[at])
            if np.allclose(coef, factor * before, rtol=1e-15, atol=0.0):
                return found * factor**power
        found = compute(k, coef)
        self._kept[what, k] = coef.copy(), found
        return found

    def _computed_scores(self, k: int, coef: Array) -> Array:
        support, m = np.flatnonzero(coef), self.pieces[k].m
        return np.asarray(self.rows(k).exact(support, coef[support], np.arange(m))) if len(support) else np.zeros(m)

    def _computed_square(self, k: int, coef: Array) -> float:
        support = np.flatnonzero(coef)
        if not len(support):
            return 0.0
        own = coef[support]
        return dot(own, self.rows(k).exact(support, own, support))

    def definiteness(self, k: int) -> Definiteness:
        """What is known of the kernel matrix of part k; rows without weight are no part of the problem.

        Kernels that need not be positive semi-definite by their kind are checked, if the rows are not too many.
        """
        if self.kernel.definite:
            return BY_KIND
        if (of_all := self._proofs.get(b"all", UNKNOWN)).known == "proven":
            return of_all
        part = self.pieces[k]
        rows = np.flatnonzero(part.weight > 0)
        if len(rows) > PROVABLE:
            return UNKNOWN
        key = rows.tobytes() if part.index is None else part.index[rows].tobytes()
        if key not in self._proofs:
            self._proofs[key] = check(self.rows(k).matrix(rows))
        return self._proofs[key]

    def definiteness_of_all(self) -> Definiteness:
        """The same for all rows: what is proven of them holds for each part."""
        if self.kernel.definite:
            return BY_KIND
        m = int(self.X.shape[0])
        if m > PROVABLE:
            return UNKNOWN
        if b"all" not in self._proofs:
            self._proofs[b"all"] = check(self.rows.of_all().matrix(np.arange(m)))
        return self._proofs[b"all"]

    @property
    def doubt(self) -> str:
        """Why there is no lower bound, if there is none."""
        if self.kernel.definite:
            return ""
        known = {self.definiteness(k).known for k in range(self.parts)}
        if "refuted" in known:
            return INDEFINITE
        return f"the kernel is not known to be positive semi-definite, {UNBOUNDED}" if "unknown" in known else ""

    def numbers(self, k: int, rows: Array) -> Array:
        """The numbers in X of rows of part k."""
        index = self.pieces[k].index
        return rows if index is None else np.asarray(index[rows])


def check_values(K: Array, numbers: Array, others: Array | None = None) -> None:
    """Refuse kernel values that are not finite, of rows with these numbers among themselves or with others."""
    if not np.isfinite(K).all():
        i, j = np.argwhere(~np.isfinite(K))[0]
        other = (numbers if others is None else others)[j]
        raise ValueError(
            f"the kernel of rows {numbers[i]} and {other} is {K[i, j]}: scale the features, or lower gamma or degree"
        )
