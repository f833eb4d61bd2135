"""CSV, block by block and strictly: every refusal names the line and the column."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Literal

import numpy as np

from pegasos.io.data.columns import Columns, Wanted, choose_columns, is_auto, wanted_name
from pegasos.io.data.csv_header import MISSING, NUMBER, guess_header
from pegasos.io.data.dataset_writer import Block
from pegasos.util.arrays import Array

#: A line beyond this many characters is refused, lest a file without line ends fill the memory.
LONGEST_LINE = 1 << 26


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
        target: Wanted,
        weight: Wanted,
        header: bool | None,
        delimiter: str,
        text_target: bool | None,
        memory: int,
    ) -> None:
        self.name, self.delimiter, self.memory = name, delimiter, memory
        self.stream = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        self.line, self.text_target = 0, text_target
        first, second = self._lines(1), self._lines(1)
        if not first.text:
            raise ValueError(f"{name}: holds no rows")
        number, fields = self._records(first)[0]
        self.first_line, self.width = number, len(fields)
        self.header = self._has_header(fields, second, target, weight) if header is None else bool(header)
        self.guessed = header is None
        self.pending = _joined([second] if self.header else [first, second])
        self.columns = self._columns(number, fields, target, weight)
        self.features = list(self.columns.features)

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the features, where the file has a header."""
        return [self.columns.names[j] for j in self.features] if self.header else None

    @property
    def guesses(self) -> list[str]:
        """What was not told, in words."""
        line = f"line {self.first_line}"
        header = f"{line} names the columns" if self.header else f"there is no header, {line} is a row"
        return [header, *self.columns.guesses] if self.guessed else self.columns.guesses

    def _has_header(self, fields: list[str], second: Lines, target: Wanted, weight: Wanted) -> bool:
        below = self._records(second)[0][1] if second.text else None
        names = {name for name in (wanted_name(target), wanted_name(weight)) if name is not None}
        header = guess_header(fields, below, names, auto=is_auto(target))
        if header is None:
            raise ValueError(
                f"{self.name}: line {self.first_line} could name the columns or be a row; pass header=True or "
                "header=False"
            )
        return header

    def _columns(self, line: int, fields: list[str], target: Wanted, weight: Wanted) -> Columns:
        width = len(fields)
        other = next((d for d in ";\t|" if d != self.delimiter and d in fields[0]), None) if width == 1 else None
        if other is not None:
            raise ValueError(
                f"{self.name}: line {line} has no {self.delimiter!r} but {other!r}; pass delimiter={other!r} if that "
                "separates the columns"
            )
        names = [field.strip() for field in fields] if self.header else [f"column {j + 1}" for j in range(width)]
        if self.header and (twice := next((n for n in names if n and names.count(n) > 1), None)) is not None:
            raise ValueError(f"{self.name}: line {line}: the header names {twice!r} twice")
        return choose_columns(names, target, weight, self.name, named=self.header)

    def blocks(self) -> Iterator[Block]:
        """Rows whose text takes an eighth of the memory bound at a time."""
        lines = _joined([self.pending, self._lines(self.memory // 8)])
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
        as_text = columns.target is not None and self.text_target is not False
        wanted = [*self.features, *(j for j in (columns.weight, None if as_text else columns.target) if j is not None)]
        try:
            table = np.loadtxt(lines.text, delimiter=d, comments=None, usecols=wanted, ndmin=2, dtype=np.float64)
        except ValueError:
            return None
        if len(table) != len(lines.text) or not np.isfinite(table).all():
            return None
        k = len(self.features)
        weight = table[:, k] if columns.weight is not None else None
        y = None if columns.target is None else table[:, -1]
        if as_text and columns.target is not None:
            y = self._targets([text.split(d)[columns.target].strip() for text in lines.text], lines.numbers)
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
                    f"{'; name the first column too' if self.header and len(fields) == self.width + 1 else ''}"
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
        remedy = (
            "; if the line names the columns, pass header=True"
            if self.guessed and line == self.first_line
            else "; impute it, or leave the row out"
            if text.lower() in MISSING
            else "; encode the column, leave it out, or make it the target"
            if column != self.columns.target and not NUMBER.fullmatch(text)
            else ""
        )
        name = f" ({self.columns.names[column]})" if self.header else ""
        raise ValueError(f"{self.name}: line {line}, column {column + 1}{name}: {what}{remedy}")

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
        if "" in targets:
            line = lines[targets.index("")]
            raise ValueError(f"{self.name}: line {line}, column {column + 1}: the target is empty; drop the row first")
        return np.array(targets, dtype=object)


def _joined(parts: list[Lines]) -> Lines:
    return Lines(
        [text for part in parts for text in part.text],
        [number for part in parts for number in part.numbers],
        any(part.quoted for part in parts),
    )


def default_delimiter(name: str) -> Literal[",", "\t"]:
    """A tab for ``.tsv``, else a comma."""
    return "\t" if ".tsv" in name.lower() else ","
