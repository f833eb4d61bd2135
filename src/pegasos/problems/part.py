"""One independent problem of a kernel machine: a pair of classes, one class against the rest, or a regression."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pegasos import _core
from pegasos.losses import Loss, RowLoss
from pegasos.problems.feasible import balanced, best_bias, sign_sums
from pegasos.rows.views import Array

#: What rounding may leave of the balance Σ c u = 0 of dual variables, relative to the sums of either sign. Coefficients
#: that were balanced once stay as they are, so that their scores serve for the primal and the dual value.
MAX_IMBALANCE = 1e-13


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
        return self.loss.sides * self.m

    @cached_property
    def row(self) -> Array:
        """The row of each variable."""
        return np.arange(self.size, dtype=np.int64) % self.m

    @cached_property
    def t(self) -> Array:
        """The linear term of the dual."""
        boxes = self.loss.boxes(self.y)
        return np.asarray(boxes.s * boxes.p).ravel()

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
        boxes, room = self.loss.boxes(self.y), self.C * self.weight
        heights = np.concatenate([height * room for height in boxes.heights])
        above = (boxes.s > 0).ravel()
        return np.where(above, 0.0, -heights), np.where(above, heights, 0.0)

    def forget(self) -> None:
        """Give up what can be made again: of a thousand parts it fills the memory."""
        for name in ("row", "t", "lo", "hi", "_box"):
            vars(self).pop(name, None)

    @cached_property
    def core(self) -> _core.Loss:
        """The C++ loss."""
        return self.loss.scalar()

    @cached_property
    def by_rows(self) -> RowLoss:
        """The loss as functions of arrays, whoever wrote them."""
        return self.loss.by_rows()

    def coefficients(self, alpha: Array) -> Array:
        """Σ α of each row: what it contributes to w."""
        return alpha if len(alpha) == self.m else alpha[: self.m] + alpha[self.m :]

    def feasible(self, alpha: Array, *, balance: bool) -> Array:
        """α within its bounds and, with ``balance``, its sum zero: the heavier sign is scaled down."""
        alpha = np.clip(alpha, self.lo, self.hi)
        if not balance:
            return alpha
        return balanced(alpha, *sign_sums(np.ones(len(alpha)), alpha), MAX_IMBALANCE)

    def flat(self, scores: Array, reach: Array) -> Array:
        """Rows whose loss is zero, and stays so if their score moves by ``reach``."""
        return np.asarray(self.loss.flat(scores, self.y, reach) | (self.weight == 0))

    @property
    def shares(self) -> Array:
        """What multiplies the dual variables u in w."""
        return self.C * self.weight

    def feasible_duals(self, u: Array, *, balance: bool) -> Array:
        """u within the loss's domain and, with ``balance``, Σ c u = 0, as a free bias asks."""
        u = self.by_rows.clip(np.ascontiguousarray(u), self.y)
        return balanced(u, *sign_sums(self.weight, u), MAX_IMBALANCE) if balance else u

    def best_bias(self, scores: Array) -> float:
        """The middle of the best biases for scores without one."""
        return best_bias(self.by_rows, scores, self.y, self.weight)


def check_values(K: Array, numbers: Array, others: Array | None = None) -> None:
    """Refuse kernel values that are not finite, of rows with these numbers among themselves or with others."""
    if not np.isfinite(K).all():
        i, j = np.argwhere(~np.isfinite(K))[0]
        other = (numbers if others is None else others)[j]
        raise ValueError(
            f"the kernel of rows {numbers[i]} and {other} is {K[i, j]}: scale the features, or lower gamma or degree"
        )
