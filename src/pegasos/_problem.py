"""The optimisation problem, frozen: rows, targets, weights, loss, λ and how the bias is treated.

    P(W, b) = (λ/2)‖W‖² + (1/M) Σ_i c_i ℓ_i(W x_i + b),   M = Σ_i c_i

It has ``outputs`` weight vectors: one (binary, regression), one for each class (one-vs-rest: as many independent
problems, ``parts``), or one for each class tied together by a joint loss (a single part).

Dual variables u (rows × outputs) live in the unit domain of the loss, and W(u) = (1/(λM)) Σ_i c_i u_i x_iᵀ.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from pegasos._data import Array, Examples
from pegasos.losses import Loss

#: "none": b = 0.  "feature": a constant feature, so b is regularised.  "free": b is not regularised.
Bias = Literal["none", "feature", "free"]


@dataclass(frozen=True)
class Problem:
    """See the module's docstring. ``target``: float64 values for one output, int32 class indices for several."""

    examples: Examples
    loss: Loss
    target: Array
    outputs: int
    lam: float
    weight: Array | None = None
    bias: Bias = "none"
    feature: float = 1.0
    threads: int = 1

    @cached_property
    def core(self) -> Any:
        """The C++ loss."""
        return self.loss.core(self.outputs)

    @property
    def joint(self) -> bool:
        """Whether the outputs are tied together by the loss."""
        return self.loss.kind == "joint"

    @property
    def parts(self) -> int:
        """The number of independent problems, each with a certificate of its own."""
        return 1 if self.joint else self.outputs

    @property
    def model_shape(self) -> tuple[int, ...]:
        """The shape of the weights."""
        return self.outputs, self.examples.n

    def choose(self, first: Array, W: Array, other: Array) -> Array:
        """The weights W of the parts in ``first``, and the other ones of the rest."""
        return np.where(first[:, None], W, other)

    @property
    def constant(self) -> bool:
        """Whether the targets of some part are all equal, so that a free bias fits them without any weights."""
        if self.bias != "free" or self.joint:
            return False
        target = self.target if self.weight is None else self.target[self.weight > 0]
        if target.dtype == np.float64:
            return bool(target.min() == target.max())
        counts = np.bincount(target, minlength=self.outputs)
        return bool(np.any((counts == 0) | (counts == len(target))))

    @cached_property
    def c(self) -> Array:
        """The rows' weights."""
        return np.ones(self.examples.m) if self.weight is None else self.weight

    @cached_property
    def total(self) -> float:
        """M, the sum of the rows' weights."""
        return float(self.examples.m if self.weight is None else self.weight.sum())

    @cached_property
    def mean_squared_norm(self) -> float:
        """R², the weighted mean of ‖x_i‖²."""
        return float(self.c @ self.examples.squared_norms) / self.total

    @property
    def hardness(self) -> float:
        """κ = λM/R²: small means weak regularisation, where first-order methods crawl."""
        return self.lam * self.total / max(self.mean_squared_norm, 1e-300)

    def targets(self, part: int) -> Array:
        """The ±1 or real targets of one part of a problem that is not joint."""
        if self.target.dtype == np.float64:
            return self.target
        return np.where(self.target == part, 1.0, -1.0)

    @cached_property
    def signs(self) -> Array:
        """The targets of all parts of a problem that is not joint: (rows × parts)."""
        if self.target.dtype == np.float64:
            return self.target[:, None]
        signs = np.full((self.examples.m, self.outputs), -1.0)
        signs[np.arange(self.examples.m), self.target] = 1.0
        return signs

    def entrywise(self, function: Any, A: Array) -> Array:
        """A function of the C++ loss, of numbers and targets, at (rows × parts) numbers."""
        return np.asarray(function(A.ravel(), self.signs.ravel())).reshape(A.shape)

    def scores(self, W: Array, b: Array) -> Array:
        """W x_i + b for every row: (rows × outputs)."""
        return np.asarray(self.examples.rows.scores(W, b, self.threads))

    def dual_weights(self, u: Array) -> Array:
        """W(u): (outputs × columns)."""
        return np.asarray(self.examples.rows.adjoint(self._shares(u), self.threads))

    def scores_and_dual_squares(self, W: Array, b: Array, u: Array) -> tuple[Array, Array]:
        """The scores of (W, b) and ‖W(u)‖² of each part, in one pass over the rows."""
        Z, squares = self.examples.rows.scores_and_squares(W, b, self._shares(u), self.threads)
        return np.asarray(Z), self._of_parts(np.asarray(squares))

    def dual_model(self, u: Array, b: Array) -> tuple[Array, Array, Array]:
        """W(u), ‖W(u)‖² of each part, and the scores of (W(u), b)."""
        W, squares, Z = map(np.asarray, self.examples.rows.dual_model(self._shares(u), b, self.threads))
        return W, self._of_parts(squares), Z

    def _shares(self, u: Array) -> Array:
        """What each row is multiplied by in W(u)."""
        unit = self.lam * self.total
        return np.ascontiguousarray(u / unit if self.weight is None else u * (self.c / unit)[:, None])

    def mean_losses(self, Z: Array) -> Array:
        """(1/M) Σ c_i ℓ_i at the scores Z, for each part."""
        return self._means(self.core.value, Z)

    def mean_conjugates(self, u: Array) -> Array:
        """(1/M) Σ c_i (−ℓ_i*(−u_i)), for each part."""
        return self._means(self.core.conjugate, u)

    def _means(self, function: Any, A: Array) -> Array:
        if self.joint:
            return np.array([self.c @ function(A, self.target) / self.total])
        return np.asarray(self.c @ self.entrywise(function, A)) / self.total

    def squared_norms_of(self, W: Array) -> Array:
        """‖W‖² of each part."""
        return self._of_parts(np.einsum("kj,kj->k", W, W))

    def _of_parts(self, values: Array) -> Array:
        """Of the values of all outputs, what belongs to each part."""
        return np.array([values.sum()]) if self.joint else values

    def penalty(self, squares: Array, b: Array) -> Array:
        """(λ/2)‖W‖² of each part, given ‖W‖², with the bias where it is a feature's weight."""
        if self.bias == "feature":
            squares = squares + self.squared_norms_of(b[:, None] / self.feature)
        return 0.5 * self.lam * squares

    def at_zero(self) -> Array:
        """P(0, 0) for each part: the scale against which tiny objectives are judged."""
        return self._at_zero

    @cached_property
    def _at_zero(self) -> Array:
        return self.mean_losses(np.zeros((self.examples.m, self.outputs)))
