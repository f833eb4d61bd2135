"""What a fit went through: one record a checkpoint."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self, overload

import numpy as np

from pegasos.fit.engine import Engine
from pegasos.problems.base import M
from pegasos.rows.views import Array


@dataclass(frozen=True)
class Checkpoint:
    """A moment of a fit, as the callback sees it and the trace keeps it.

    ``coef`` and ``intercept`` are the weights that a fit which ends there returns, ``primal`` is their objective and
    ``dual`` the best bound until then. Of a kernel machine ``coef`` is what ``dual_coef_`` would be, and ``support``
    what ``support_`` would be. The trace drops the weights.

    Examples
    --------
    >>> from pegasos import LinearSVC
    >>> def good_enough(checkpoint):
    ...     return checkpoint.relative_gap < 0.1
    >>> model = LinearSVC(callback=good_enough).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.certificate_.relative_gap < 0.1
    True
    """

    epochs: float
    seconds: float
    primal: float
    dual: float
    gap: float
    relative_gap: float
    coef: Array | None = field(default=None, repr=False, compare=False)
    intercept: Array | None = field(default=None, repr=False, compare=False)
    support: Array | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, engine: Engine[M], seconds: float, primal: float, dual: float) -> Self:
        """The record of a moment at which the best objective and bound of all parts are these."""
        gap = max(primal - dual, 0.0) if np.isfinite(primal) else float("inf")
        relative = gap / primal if 0 < primal < np.inf else float(gap) if gap == np.inf else float(gap > 0)
        return cls(engine.epochs, seconds, primal, dual, gap, relative)


#: The numbers of a checkpoint: the columns of a trace.
FIELDS = tuple(f.name for f in fields(Checkpoint) if f.type == "float")

#: The columns of files that do not name them, the first that there were. This does not change.
UNNAMED_COLUMNS = ("epochs", "seconds", "primal", "dual", "gap", "relative_gap")


class Trace(Sequence[Checkpoint]):
    """The checkpoints of a fit, oldest first.

    Examples
    --------
    >>> from pegasos import LinearSVC
    >>> trace = LinearSVC().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).trace_
    >>> len(trace) >= 1 and trace[-1].gap >= 0
    True
    """

    def __init__(self, records: Sequence[Checkpoint] = ()) -> None:
        self._records = list(records)

    def append(self, record: Checkpoint) -> None:
        """Add a checkpoint, without its weights."""
        self._records.append(Checkpoint(**{name: getattr(record, name) for name in FIELDS}))

    def append_thinned(self, record: Checkpoint, most: int = 1000) -> None:
        """Add a checkpoint; beyond ``most`` of them every other one goes, but for the first and the last.

        So the past of an endless stream gets sparser the longer it is ago.
        """
        self.append(record)
        if len(self._records) > most:
            last = self._records[-1]
            self._records = [*self._records[:-1:2], last]

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, index: int) -> Checkpoint: ...
    @overload
    def __getitem__(self, index: slice) -> Trace: ...
    def __getitem__(self, index: int | slice) -> Checkpoint | Trace:
        if isinstance(index, slice):
            return Trace(self._records[index])
        return self._records[index]

    def __iter__(self) -> Iterator[Checkpoint]:
        return iter(self._records)

    def __repr__(self) -> str:
        return f"Trace({len(self)} checkpoints)"

    def columns(self) -> dict[str, Array]:
        """An array for each number that checkpoints have, by its name."""
        return {name: np.array([getattr(r, name) for r in self], dtype=np.float64) for name in FIELDS}

    @classmethod
    def of_columns(cls, columns: Mapping[str, Array]) -> Trace:
        """The trace that has these columns, which another version may have written.

        Numbers without a column are NaN, and columns that no checkpoint has are left out; ``epochs`` must be there.
        """
        if "epochs" not in columns:
            raise ValueError("the trace lacks the column epochs")
        epochs = columns["epochs"]
        if any(column.shape != (len(epochs),) for column in columns.values()):
            raise ValueError("the columns of the trace differ in length")
        if not bool(np.all(np.isfinite(epochs) & (epochs >= 0))):
            raise ValueError("the epochs of the trace should be numbers >= 0")
        unknown = np.full(len(epochs), np.nan)
        rows = zip(*(columns.get(name, unknown).tolist() for name in FIELDS), strict=True)
        return cls([Checkpoint(**dict(zip(FIELDS, row, strict=True))) for row in rows])

    def to_frame(self) -> Any:
        """The trace as a pandas DataFrame, a row a checkpoint."""
        try:
            import pandas as pd
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "Trace.to_frame needs pandas: pip install 'pegasos[frames]'; Trace.to_csv does without", name=error.name
            ) from None

        return pd.DataFrame([[getattr(r, name) for name in FIELDS] for r in self], columns=list(FIELDS))

    def to_csv(self, path: str | Path) -> None:
        """Write the trace as a CSV file with a header; numbers read back to the same bits."""
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(FIELDS)
            writer.writerows([repr(float(getattr(r, name))) for name in FIELDS] for r in self)
