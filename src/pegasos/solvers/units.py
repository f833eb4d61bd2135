"""In which units sub-gradient steps are measured, so that targets of any scale are learnt alike.

Multiplying the targets of a regression by s multiplies its best scores by s, too. The slopes of a squared loss grow
with it, but those of the absolute loss and its kin stay at ±1: unless steps are s times as long, scores of the size of
house prices are approached by ones and twos.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pegasos.losses import Loss
from pegasos.rows.views import Array

#: Targets that are looked at, of however many rows.
MAX_TARGETS_SEEN = 1024


class Units(NamedTuple):
    """Where a bias that is learnt begins, and by how much a slope of 1 should move a score."""

    start: float = 0.0
    step: float = 1.0


def centre(y: Array, weight: Array | None) -> float:
    """The median of some of the targets, in which rows count by their weight."""
    some = np.linspace(0, len(y) - 1, min(len(y), MAX_TARGETS_SEEN)).astype(np.int64)
    c = np.ones(len(some)) if weight is None else weight[some]
    order = np.argsort(y[some], kind="stable")
    share = np.cumsum(c[order])
    return float(y[some][order][np.searchsorted(share, 0.5 * share[-1])])


def step_for(loss: Loss, spread: float) -> float:
    """How far a slope of 1 should move a score, for targets at this mean distance from where learning begins."""
    if loss.kind != "regression" or not np.isfinite(loss.steepness) or not 0 < spread < np.inf:
        return 1.0
    full = spread / loss.steepness
    return (
        max(full, 1.0) if np.isfinite(loss.smoothness) else full
    )  # near its minimum a smooth loss has slopes that fit


def units_of(loss: Loss, y: Array, weight: Array | None, *, free: bool) -> Units:
    """The units for these targets; ``free``: whether there is a bias that can begin anywhere."""
    if loss.kind != "regression":
        return Units()
    start = centre(y, weight) if free else 0.0
    return Units(start, step_for(loss, spread_around(start, y, weight)))


class Seen(NamedTuple):
    """What is known of the rows and targets of a stream: sums over all pieces so far, in which rows count by weight."""

    total: float = 0.0
    squares: float = 0.0
    largest: float = 0.0
    start: float = 0.0
    apart: float = 0.0

    def and_these(self, norms: Array, weight: Array | None, y: Array, *, regression: bool, free: bool) -> Seen:
        """With the squared norms, weights and targets of one more piece."""
        total = float(len(norms) if weight is None else weight.sum())
        start = self.start
        if self.total == 0 and regression and free:
            start = centre(y, weight)
        return Seen(
            self.total + total,
            self.squares + float(norms.sum() if weight is None else weight @ norms),
            max(self.largest, float(norms.max(initial=0.0))),
            start,
            self.apart + (total * spread_around(start, y, weight) if regression else 0.0),
        )

    def units(self, loss: Loss) -> Units:
        """The units of all targets so far."""
        return Units(self.start, step_for(loss, self.apart / self.total))

    @property
    def mean(self) -> float:
        """The mean squared norm."""
        return self.squares / self.total


def spread_around(start: float, y: Array, weight: Array | None) -> float:
    """The mean distance of the targets from ``start``."""
    return float(np.average(np.abs(y - start), weights=weight))
