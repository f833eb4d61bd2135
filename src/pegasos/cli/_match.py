"""Columns of rows brought into the order of a model's: by name where both have names, else by position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pegasos.cli._exit import Failure
from pegasos.util.arrays import CSR, Array, Matrix
from pegasos.util.suggest import did_you_mean

if TYPE_CHECKING:
    from pegasos.cli._models import AnyModel

Say: TypeAlias = Callable[[str], object]

_MOST_NAMES = 5


class Match:
    """Rows of one source, made to fit a model; what that takes is said once.

    Raises Failure when it is made, before anything is computed, if a column of the model is missing. Features beyond
    the model's are ignored, as in LIBLINEAR.
    """

    def __init__(
        self,
        source: str,
        names: Sequence[str] | None,
        columns: int,
        known: Sequence[str] | None,
        say: Say,
    ) -> None:
        self.source, self._columns, self._tell = source, columns, say
        self._order: Array | None = None  # of each column of the model its place in the rows; None: the same
        self._said = False
        if names is not None and known is not None:
            self._by_name(list(names), list(known))
        elif names is not None:
            self._say("the model has no column names, so columns are matched by position")
        elif known is not None:
            self._say(f"has no column names, so columns are matched by position: {_few(known)}")

    @classmethod
    def with_model(
        cls, source: str, names: Sequence[str] | None, model: AnyModel, say: Callable[[str], object]
    ) -> Match:
        """The match with a fitted model, which knows names if the rows it was fitted on had any."""
        return cls(source, names, model.n_features_in_, getattr(model, "feature_names_in_", None), say)

    def __call__(self, X: Matrix) -> Matrix:
        """The rows, as wide as the model and in its order."""
        if self._order is not None:
            return self._reordered(X, self._order)
        columns = self._columns
        if X.shape[1] == columns:
            return X
        if isinstance(X, np.ndarray):
            raise Failure(f"{self.source}: has {X.shape[1]} columns, but the model was trained on {columns}")
        if X.shape[1] < columns:
            return _alike(X, (X.data, X.indices, X.indptr), columns)
        if not self._said and (X.indices >= columns).any():
            self._say(f"features beyond the model's {columns} are ignored")
            self._said = True
        narrow: CSR = X[:, :columns]
        return narrow

    def _by_name(self, names: list[str], known: list[str]) -> None:
        if names == known:
            return
        place = {name: j for j, name in enumerate(names)}
        missing = [name for name in known if name not in place]
        extra = sorted(set(names) - set(known), key=names.index)
        if missing:
            more = did_you_mean(missing[0], extra) if extra else ""
            raise Failure(
                f"{self.source}: lacks {_columns(missing)} that the model was trained on{more}; it has {_few(names)}"
            )
        if len(set(known)) < len(known):
            raise Failure(f"{self.source}: the model has two columns of one name, so they cannot be matched by name")
        order = [place[name] for name in known]
        if extra:
            are = "is" if len(extra) == 1 else "are"
            self._say(f"{_columns(extra)} {are} unknown to the model and ignored")
        if order != sorted(order):
            self._say("the columns are in another order than in training; they are matched by name")
        self._order = np.array(order)

    def _reordered(self, X: Matrix, order: Array) -> Matrix:
        if isinstance(X, np.ndarray):
            return np.ascontiguousarray(X[:, order])
        # NumPy checks every index it is given, which SciPy does not: a folder on disk may be damaged.
        indices = np.asarray(X.indices)
        place = np.full(X.shape[1], -1, dtype=indices.dtype)
        place[order] = np.arange(len(order))
        if len(indices) and (indices.min() < 0 or indices.max() >= len(place)):
            raise Failure(f"{self.source}: has a column index outside 0 … {len(place) - 1}; convert it again")
        moved = place[indices]
        kept = moved >= 0
        ends = np.concatenate(([0], np.cumsum(kept)))[np.asarray(X.indptr)]
        found = _alike(X, (np.asarray(X.data)[kept], moved[kept], ends), len(order))
        found.sort_indices()
        return found

    def _say(self, what: str) -> None:
        self._tell(f"{self.source}: {what}")


def _alike(X: CSR, arrays: tuple[Array, Array, Array], columns: int) -> CSR:
    """A matrix of the type of X, and with as many rows."""
    kind: Any = type(X)
    found: CSR = kind(arrays, shape=(X.shape[0], columns))
    return found


def _columns(names: list[str]) -> str:
    return f"the column{'s' * (len(names) > 1)} {_few(names)}"


def _few(names: Sequence[str]) -> str:
    return ", ".join(repr(str(name)) for name in names[:_MOST_NAMES]) + (" …" if len(names) > _MOST_NAMES else "")
