"""What solvers offer to be certified, what a certification finds, and what every problem can do for the loop.

A model is what a fit returns: weights, or coefficients of the rows. To the loop it is opaque: the problem that it
belongs to chooses between models, writes them down and reads them again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from pegasos.kernels.rounding import Drift
from pegasos.rows.views import Array

M = TypeVar("M")

#: Dual variables, which only the problem that they belong to understands: an array, or planes.
Duals: TypeAlias = Any


class RunningScores(NamedTuple):
    """Scores without bias of all rows of a part, for these coefficients, and what their rounding errors came from."""

    values: Array
    coef: Array
    drift: Drift


class Point(NamedTuple, Generic[M]):
    """What a solver proposes. A certificate recomputes all of it, so that errors make it loose, never wrong.

    ``duals``, in the loss's unit domain, need only be near enough to feasible to be clipped and balanced; None: a
    linear machine has none, a kernel machine those of its coefficients. Those of a structured machine are planes.
    ``scores`` of each part, if a kernel solver keeps any: a hint that saves the certificate work.
    ``separate``: model and duals need kernel values of different rows.
    """

    model: M
    duals: Duals | None = None
    scores: list[RunningScores] | None = None
    separate: bool = False


class Estimate(NamedTuple):
    """What an objective is about: a mean over ``rows`` rows drawn at random, and its 95 % confidence interval."""

    value: float
    low: float
    high: float
    rows: int


@dataclass(frozen=True)
class Bounds(Generic[M]):
    """What one certification found: primal and dual value of each part, and the model with the bias that was judged.

    ``scores`` of all rows, where they were computed. Of kernel machines also the dual value that is a bound only if the
    kernel is positive semi-definite (``formal``), and the largest error seen in scores that the solver proposed.
    ``estimate``: where an oracle is not exact, and the objective unknown, what it is at least. ``sampled``: where it is
    unknown because only some rows were looked at, an estimate of the sum over all parts.
    """

    primal: Array
    dual: Array
    model: M
    scores: Array | None = None
    formal: Array | None = None
    score_error: Array | None = None
    estimate: Array | None = None
    sampled: Estimate | None = None

    @property
    def gap(self) -> Array:
        """primal − dual, and zero where it is negative by no more than rounding."""
        return self._above(self.dual)

    @property
    def formal_gap(self) -> Array:
        """The same, with the dual value of a kernel that need not be positive semi-definite."""
        return self._above(self.dual if self.formal is None else self.formal)

    def within(self, tol: float) -> Array:
        """Which parts have a gap of at most ``tol`` times the objective, as the loop asks of all at once."""
        return np.asarray(self.gap <= tol * self.primal)

    def _above(self, dual: Array) -> Array:
        gap = self.primal - dual
        return np.where(gap < 1e-12 * np.abs(self.primal), np.maximum(gap, 0.0), gap)


class Problem(Protocol[M]):
    """What the loop asks of every kind of problem."""

    @property
    def n_parts(self) -> int:
        """Independent problems, each with bounds of its own."""
        ...

    def at_zero(self) -> Array:
        """P(0, 0) of each part: the scale against which tiny objectives are judged."""
        ...

    def first_bounds(self) -> Array:
        """Lower bounds that hold before anything is done; −inf where there is none."""
        ...

    def trivial(self) -> tuple[M, Array] | None:
        """A model, and its objectives, that is the optimum of some part without any work; None if there is none."""
        ...

    def certify(self, point: Point[M]) -> Bounds[M]:
        """Recompute primal and dual values of each part in float64."""
        ...

    def choose(self, first: Array, one: M, other: M) -> M:
        """The model ``one`` of the parts in ``first``, and the other one of the rest."""
        ...

    def arrays(self, model: M) -> dict[str, Array]:
        """The model as named arrays, for a checkpoint file and for callbacks."""
        ...

    def model_of(self, arrays: Mapping[str, Array]) -> M:
        """The model that ``arrays`` wrote; ValueError if it cannot be one of this problem."""
        ...

    def digests(self) -> dict[str, str]:
        """What the problem is, in words and digests: equal ones are the same problem."""
        ...
