"""Means of the iterates of a stream: sums that pieces are added to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from pegasos.rows.views import Array

#: The outputs of stochastic sub-gradient solvers that are means.
MEANS = ("average", "suffix")


class Sum(NamedTuple):
    """Rows and steps until some moment, and the sums of the weights and biases of all iterates before it.

    ``steps`` has an entry for each output, as ``b`` has; ``W`` has a row for each.
    """

    rows: int
    steps: Array
    W: Array
    b: Array

    def wider(self, columns: int) -> Sum:
        """With so many columns of weights, the new ones zero."""
        return self._replace(W=np.pad(self.W, ((0, 0), (0, columns - self.W.shape[1]))))


class Averages(NamedTuple):
    """The sums until now, and where the mean of the last half to three quarters begins, and will begin next."""

    now: Sum
    window: Sum
    later: Sum

    @classmethod
    def of(cls, sums: Iterable[tuple[int, Array, Array, Array]]) -> Averages:
        """Out of plain tuples."""
        return cls(*(Sum(*values) for values in sums))

    def plain(self) -> tuple[tuple[int, Array, Array, Array], ...]:
        """As plain tuples, so that pickles and skops files of models hold no types of this module."""
        return tuple((part.rows, part.steps, part.W, part.b) for part in self)

    @classmethod
    def begin(cls, rows: int, steps: Array, W: Array, b: Array) -> Averages:
        """Where earlier iterates are gone they count as the one that they led to."""
        now = Sum(rows, steps, steps[:, None] * W, steps * b)
        return cls(now, Sum(0, 0 * steps, 0 * W, 0 * b), now)

    def after(self, rows: int, steps: Array, W: Array, b: Array) -> Averages:
        """With one more piece: its rows and steps, and the sums of its iterates."""
        before = self.wider(W.shape[1])
        old = before.now
        now = Sum(old.rows + rows, old.steps + steps, old.W + W, old.b + b)
        if now.rows >= 2 * before.later.rows:
            return Averages(now, before.later, now)
        return Averages(now, before.window, before.later)

    def wider(self, columns: int) -> Averages:
        """With so many columns of weights."""
        return Averages(*(part.wider(columns) for part in self))

    def mean(self, output: str) -> tuple[Array, Array]:
        """The mean of all iterates, or of the last half to three quarters ("suffix")."""
        steps, W, b = self.now.steps, self.now.W, self.now.b
        if output == "suffix":
            steps, W, b = steps - self.window.steps, W - self.window.W, b - self.window.b
        count = np.maximum(steps, 1.0)
        return W / count[:, None], b / count
