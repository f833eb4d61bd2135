"""CSV, block by block and strictly: every refusal names the line and the column."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, Literal

import numpy as np

from pegasos._data import Array
from pegasos.io._columns import Columns, choose_columns
from pegasos.io._dataset_writer import Block

#: A line beyond this many characters is refused, lest a file without line ends fill the memory.
LONGEST_LINE = 1 << 26

NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


@dataclass
class Lines:
    """Lines of text that stay whole records, with their numbers in the file."""

    text: list[str]
    numbers: list[int]
    quoted: bool


class CsvSource:
    """A CSV file: its columns, known after the first line, and its blocks."""

    def __init__(
        self,
        stream: IO[bytes],
        name: str,
        *,
        target: Any,
        weight: Any,
        header: bool | None,
        delimiter: str,
        text_target: bool | None,
        memory: int,
    ) -> None:
        self.name, self.delimiter, self.memory = name, delimiter, memory
        self.stream = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        self.line, self.text_target = 0, text_target
        first = self._lines(1)
        if not first.text:
            raise ValueError(f"{name}: holds no rows")
        number, fields = self._records(first)[0]
        self.width = len(fields)
        self.columns = self._columns(number, fields, target, weight, header)
        self.pending = None if self.header else first
        self.features = list(self.columns.features)

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the features, where the file has a header."""
        return [self.columns.names[j] for j in self.features] if self.header else None

    def _columns(self, line: int, fields: list[str], target: Any, weight: Any, header: bool | None) -> Columns:
        named = any(isinstance(wanted, str) and wanted != "auto" for wanted in (target, weight))
        self.header = bool(header)
        if header is None:
            outside = {
                w % len(fields) for w in (target, weight) if isinstance(w, int) and -len(fields) <= w < len(fields)
            }
            words = [j for j, field in enumerate(fields) if j not in outside and not NUMBER.fullmatch(field.strip())]
            self.header = named or (bool(words) and len(words) >= len(fields) - len(outside))
            if words and not self.header:
                j = words[0]
                raise ValueError(
                    f"{self.name}: line {line}, column {j + 1}: {fields[j]!r:.40} is not a number, and the line is no "
                    "header either, since others are; pass header=True or header=False, or tell the target column"
                )
        names = [field.strip() for field in fields] if self.header else [f"column {j + 1}" for j in range(len(fields))]
        if self.header and len(set(names)) < len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise ValueError(f"{self.name}: line {line}: the header names {twice!r} twice")
        return choose_columns(names, target, weight, self.name, named=self.header)

    def blocks(self) -> Iterator[Block]:
        """Rows whose text takes an eighth of the memory bound at a time."""
        lines = self._lines(self.memory // 8)
        if self.pending is not None:  # the first line, which turned out to be a row
            first = self.pending
            lines = Lines(first.text + lines.text, first.numbers + lines.numbers, first.quoted or lines.quoted)
        while lines.text:
            block = None if lines.quoted else self._fast(lines)
            yield self._slow(lines) if block is None else block
            lines = self._lines(self.memory // 8)

    # --- reading -----------------------------------------------------------------------------------------------------

    def _next(self) -> str:
        try:
            text = self.stream.readline(LONGEST_LINE)
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.name}: is not UTF-8 text after line {self.line}: {error.reason}") from None
        self.line += bool(text)
        if len(text) == LONGEST_LINE and not text.endswith(("\n", "\r")):
            raise ValueError(f"{self.name}: line {self.line} is longer than {LONGEST_LINE} characters")
        return text

    def _lines(self, size: int) -> Lines:
        """Lines of about ``size`` characters, blank ones left out, and as many more as close the last quoted field."""
        lines, total, open_quote = Lines([], [], False), 0, False
        while (total < size or open_quote) and (text := self._next()):
            if not open_quote and not text.strip():
                continue
            if '"' in text:
                lines.quoted = True
                open_quote ^= text.count('"') % 2 == 1
            lines.text.append(text)
            lines.numbers.append(self.line)
            total += len(text)
            if open_quote and total > size + LONGEST_LINE:
                break
        if open_quote:
            raise ValueError(f"{self.name}: a quoted field is never closed; it begins before line {self.line}")
        return lines

    def _records(self, lines: Lines) -> list[tuple[int, list[str]]]:
        reader = csv.reader(lines.text, delimiter=self.delimiter, strict=True)
        records = []
        before = 0
        try:
            for fields in reader:
                records.append((lines.numbers[before], fields))
                before = reader.line_num
        except csv.Error as error:
            raise ValueError(f"{self.name}: line {lines.numbers[max(0, reader.line_num - 1)]}: {error}") from None
        return records

    # --- numbers -----------------------------------------------------------------------------------------------------

    def _fast(self, lines: Lines) -> Block | None:
        """The block by NumPy's reader; None if anything is odd, so that the slow way can say what."""
        d, columns = self.delimiter, self.columns
        if any(text.count(d) != self.width - 1 for text in lines.text):
            return None
        words = columns.target is not None and self.text_target is not False
        wanted = [*self.features]
        if columns.weight is not None:
            wanted.append(columns.weight)
        targets: list[str] = []
        if columns.target is not None:
            if words:
                targets = [text.split(d)[columns.target].strip() for text in lines.text]
            else:
                wanted.append(columns.target)
        try:
            table = np.loadtxt(lines.text, delimiter=d, comments=None, usecols=wanted, ndmin=2, dtype=np.float64)
        except ValueError:
            return None
        if len(table) != len(lines.text) or not np.isfinite(table).all():
            return None
        k = len(self.features)
        weight = table[:, k] if columns.weight is not None else None
        y = None
        if columns.target is not None:
            y = self._targets(targets, lines.numbers) if words else table[:, -1]
        return Block(np.ascontiguousarray(table[:, :k]), y, weight)

    def _slow(self, lines: Lines) -> Block:
        records = self._records(lines)
        columns = self.columns
        X = np.empty((len(records), len(self.features)))
        weight = None if columns.weight is None else np.empty(len(records))
        targets: list[str] = []
        for i, (line, fields) in enumerate(records):
            if len(fields) != self.width:
                raise ValueError(
                    f"{self.name}: line {line}: {len(fields)} fields, where the first line has {self.width}"
                )
            for k, j in enumerate(self.features):
                X[i, k] = self._number(fields[j], line, j)
            if weight is not None and columns.weight is not None:
                weight[i] = self._number(fields[columns.weight], line, columns.weight)
            if columns.target is not None:
                targets.append(fields[columns.target].strip())
        y = None if columns.target is None else self._targets(targets, [line for line, _ in records])
        return Block(X, y, weight)

    def _number(self, field: str, line: int, column: int) -> float:
        text = field.strip()
        if NUMBER.fullmatch(text) and np.isfinite(value := float(text)):
            return value
        what = "is empty" if not text else f"{field!r:.60} is not a finite number"
        name = f" ({self.columns.names[column]})" if self.header else ""
        raise ValueError(f"{self.name}: line {line}, column {column + 1}{name}: {what}")

    def _targets(self, targets: list[str], lines: list[int]) -> Array:
        """Numbers, if the first block's targets all are (or if told); else text."""
        column = self.columns.target
        assert column is not None
        if self.text_target is None:
            self.text_target = not all(NUMBER.fullmatch(text) for text in targets)
        if not self.text_target:
            try:
                return np.array([self._number(text, line, column) for text, line in zip(targets, lines, strict=True)])
            except ValueError as error:
                raise ValueError(f"{error}; if the targets are labels, pass text_target=True") from None
        for text, line in zip(targets, lines, strict=True):
            if not text:
                raise ValueError(f"{self.name}: line {line}, column {column + 1}: the target is empty")
        return np.array(targets, dtype=object)


def default_delimiter(name: str) -> Literal[",", "\t"]:
    """A tab for ``.tsv``, else a comma."""
    return "\t" if ".tsv" in name.lower() else ","
