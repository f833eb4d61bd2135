"""What the engines of linear machines have in common."""

from __future__ import annotations

import numpy as np

from pegasos.fit.engine import Engine
from pegasos.problems.base import Point
from pegasos.problems.linear import Weights
from pegasos.rows.views import Array


def check_after(epochs: float) -> float:
    """The epochs at which the next certificate is due: 1, 2, 3, 4, 6, 8, 12, 16, …

    The certificates cost about as many passes as they wait for.
    """
    return float(epochs + max(1.0, 2.0 ** np.floor(np.log2(max(epochs, 1.0))) / 2))


class LinearEngine(Engine[Weights]):
    """An engine that offers weights and dual variables; a subclass says which."""

    def model(self) -> tuple[Array | None, Array]:
        """The current weights (outputs × columns; None: those of ``duals``) and biases (outputs)."""
        raise NotImplementedError

    def duals(self) -> Array | None:
        """A dual point (rows × outputs), near enough to feasible; None where the method has none."""
        raise NotImplementedError

    def point(self, *, last: bool = False) -> Point[Weights]:
        """Both."""
        W, b = self.model()
        return Point(Weights(W, b), self.duals())
