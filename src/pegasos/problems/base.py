"""What a certification finds, of every kind of problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pegasos.rows.views import Array


@dataclass(frozen=True)
class Bounds:
    """What one certification found: per part primal and dual, the bias used, the scores, and W if it was not given.

    Of kernel machines also the dual value that is a bound only if the kernel is positive semi-definite (``formal``),
    and the largest error seen in scores that the solver proposed.
    """

    primal: Array
    dual: Array
    b: Array
    Z: Array
    W: Array | None = None
    formal: Array | None = None
    score_error: Array | None = None

    @property
    def gap(self) -> Array:
        """primal − dual; what rounding makes of a zero gap is zero."""
        return self._above(self.dual)

    @property
    def formal_gap(self) -> Array:
        """The same, with the dual value of a kernel that need not be positive semi-definite."""
        return self._above(self.dual if self.formal is None else self.formal)

    def _above(self, dual: Array) -> Array:
        gap = self.primal - dual
        return np.where(gap < 1e-12 * np.abs(self.primal), np.maximum(gap, 0.0), gap)
