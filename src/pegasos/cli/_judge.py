"""A model against labelled rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pegasos.cli._exit import Failure
from pegasos.cli._match import Match
from pegasos.cli._metrics import tally_for
from pegasos.report.record import Evaluation
from pegasos.util.arrays import Array, Matrix

if TYPE_CHECKING:
    from pegasos.cli._models import AnyModel


def judge(model: AnyModel, blocks: Iterable[tuple[Matrix, Array | None]], match: Match) -> Evaluation:
    """How well the model predicts the targets of the rows.

    Raises Failure if there are none, or if they are of another kind than the model's.
    """
    source, tally = match.source, tally_for(model)
    text = hasattr(model, "classes_") and model.classes_.dtype.kind not in "iufb"
    for X, y in blocks:
        if y is None:
            raise Failure(f"{source}: was converted without targets; pegasos predict needs none")
        if (y.dtype.kind not in "iufb") != text:
            kinds = ("numbers", "text") if text else ("text", "numbers")
            raise Failure(f"{source}: the targets are {kinds[0]}, but those of the model are {kinds[1]}")
        tally.add(y, called(model.predict, match(X)))
    return tally.evaluation(source)


def called(method: Callable[[Matrix], Array], X: Matrix) -> Array:
    """``method(X)`` for rows whose columns are matched already."""
    with matched():
        return method(X)


@contextmanager
def matched() -> Iterator[None]:
    """Models that know names of columns are not surprised by rows without: ``Match`` has seen to the columns."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield
