"""Parquet, by batches of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

import numpy as np

from pegasos.io.data.columns import Wanted, choose_columns
from pegasos.io.data.dataset_writer import Block
from pegasos.util.arrays import Array

if TYPE_CHECKING:
    import pyarrow


class ParquetSource:
    """A Parquet file: its columns, and its blocks."""

    def __init__(self, path: IO[bytes], name: str, *, target: Wanted, weight: Wanted, memory: int) -> None:
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            raise ImportError("reading Parquet needs pyarrow: pip install 'pegasos[parquet]'") from None
        self.pa, self.name = pyarrow, name
        try:
            self.file = parquet.ParquetFile(path)
        except (pyarrow.ArrowException, OSError) as error:
            raise ValueError(f"{name}: is no readable Parquet file: {error}") from None
        schema = self.file.schema_arrow
        names = list(schema.names)
        if (twice := next((n for n in names if names.count(n) > 1), None)) is not None:
            raise ValueError(f"{name}: two columns are called {twice!r}")
        self.columns = choose_columns(names, target, weight, name)
        for j in (*self.columns.features, self.columns.weight):
            if j is not None:
                self._check_number(schema.field(j))
        single = all(pyarrow.types.is_float32(schema.field(j).type) for j in self.columns.features)
        self.dtype = np.dtype(np.float32 if single else np.float64)
        self.rows_at_once = max(1, memory // (24 * len(schema.names)))

    @property
    def feature_names(self) -> list[str]:
        """The features' names."""
        return [self.columns.names[j] for j in self.columns.features]

    @property
    def guesses(self) -> list[str]:
        """What was not told, in words."""
        return self.columns.guesses

    def _check_number(self, field: pyarrow.Field) -> None:
        types = self.pa.types
        checks = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
        if not any(check(field.type) for check in checks):
            raise ValueError(
                f"{self.name}: column {field.name!r} holds {field.type}, not numbers; encode the column, leave it "
                "out, or make it the target"
            )

    def blocks(self) -> Iterator[Block]:
        """Batches of rows within the memory bound."""
        row, columns = 0, self.columns
        try:
            for batch in self.file.iter_batches(batch_size=self.rows_at_once):
                X = np.empty((batch.num_rows, len(columns.features)), dtype=self.dtype)
                for k, j in enumerate(columns.features):
                    X[:, k] = self._numbers(batch, j, row)
                weight = None if columns.weight is None else self._numbers(batch, columns.weight, row)
                y = None if columns.target is None else self._targets(batch, columns.target, row)
                yield Block(X, y, weight)
                row += batch.num_rows
        except (self.pa.ArrowException, OSError) as error:
            raise ValueError(f"{self.name}: cannot be read after row {row}: {error}") from None

    def _column(self, batch: pyarrow.RecordBatch, j: int, row: int) -> pyarrow.Array:
        column = batch.column(j)
        if column.null_count:
            first = row + int(column.is_null().to_numpy(zero_copy_only=False).argmax())
            raise ValueError(
                f"{self.name}: row {first}, column {self.columns.names[j]!r}: is null; impute or drop it first"
            )
        return column

    def _numbers(self, batch: pyarrow.RecordBatch, j: int, row: int) -> Array:
        column = self._column(batch, j, row)
        if self.pa.types.is_decimal(column.type):
            column = column.cast(self.pa.float64())
        return np.asarray(column.to_numpy(zero_copy_only=False))

    def _targets(self, batch: pyarrow.RecordBatch, j: int, row: int) -> Array:
        column, types = self._column(batch, j, row), self.pa.types
        if types.is_dictionary(column.type):
            column = column.dictionary_decode()
        kind = column.type
        if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
            return np.array(column.to_pylist(), dtype=object)
        if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
            return np.asarray(column.to_numpy(zero_copy_only=False))
        raise ValueError(f"{self.name}: the target {self.columns.names[j]!r} holds {kind}, neither numbers nor text")
