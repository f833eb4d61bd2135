"""Reading svmlight text, whole or in blocks. The parser is C++ (``cpp/pegasos/text/svmlight.hpp``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from numbers import Integral
from typing import Any, NoReturn, TypedDict

import numpy as np
import numpy.typing as npt

from pegasos import _core
from pegasos.io.files import Source, SupportsReadInto, name_of, reading, text_of
from pegasos.rows.dataset import mapped_csr
from pegasos.util.arrays import Array, DType
from pegasos.util.threads import thread_count

_INT32_MAX = np.iinfo(np.int32).max
_SHARE = 20  # a block of b bytes of text takes at most 20 b bytes in all, see iter_svmlight
_LEAST_MEMORY = 1 << 16
_PART = 1 << 21  # bytes of text that a thread is given at a time

#: What is wrong, by the core's name for it. {word} is the offending text.
_REASONS = {
    "bad_label": "the label {word} is not a number",
    "label_overflow": "the label {word} is too large for float64",
    "several_labels": "{word} looks like a list of labels; a row has one label here",
    "no_label": "the line begins with {word}, not with a label; put a 0 in front where it is not known",
    "bad_query": "{word} is not qid: and a whole number",
    "query_overflow": "the number of {word} does not fit int64",
    "misplaced_query": "{word} must stand right behind the label, and once",
    "no_query": "the row has no qid, but query_id=True was asked for",
    "bad_index": "{word} is not index:value with a whole number as index",
    "index_zero": "{word} has index 0, but indices count from 1; read the file with zero_based=True if it is meant so",
    "index_repeated": "the index of {word} stands twice in the row",
    "index_decreasing": "the index of {word} comes after {previous}; indices must increase within a row",
    "index_beyond": "the index of {word} is beyond n_features={n_features}",
    "index_too_wide": "the index of {word} does not fit {index}{wider}",
    "no_colon": "{word} is not index:value, there is no colon right behind the index",
    "no_value": "{word} has no value",
    "bad_value": "the value {word} is not a number",
    "value_overflow": "the value {word} is too large for {dtype}{larger}",
    "nul_byte": "there is a NUL byte; the file is not plain text, or not in an ASCII-compatible encoding such as UTF-8",
    "lone_return": "there is a carriage return inside the line; lines end in \\n or \\r\\n",
    "too_many_entries": "there are more entries than {index} can count; read with index_dtype=np.int64",
    "long_line": "the line is longer than {limit} bytes, which is what memory={memory} allows; raise memory",
}
_NOT_FINITE = {"nan", "inf", "infinity"}


class SvmlightError(ValueError):
    """A text that is not svmlight as it was asked for: what is wrong, and where.

    Parameters
    ----------
    source : str
        The file's name, ``"<stdin>"`` or ``"<bytes>"``.
    line, column : int
        Where the offending text begins, both counted from 1; columns are bytes.
    text : str
        The offending text, cut after 60 bytes.
    reason : str
        What is wrong with it.

    Examples
    --------
    >>> from pegasos.io import SvmlightError, read_svmlight
    >>> try:
    ...     read_svmlight(b"1 2:0.5\\n-1 1:1 3:x\\n")
    ... except SvmlightError as error:
    ...     print(error)
    ...     print(error.line, error.column, error.text)
    <bytes>, line 2, column 10: the value 'x' is not a number
    2 10 x
    """

    def __init__(self, source: str, line: int, column: int, text: str, reason: str) -> None:
        super().__init__(source, line, column, text, reason)
        self.source, self.line, self.column, self.text, self.reason = source, line, column, text, reason

    def __str__(self) -> str:
        return f"{self.source}, line {self.line}, column {self.column}: {self.reason}"


class _Options(TypedDict):
    """What the core is told about every text."""

    single: bool
    zero_based: bool
    n_features: int
    query: bool
    threads: int


@dataclass(frozen=True)
class _Reader:
    """The checked parameters of a reading, and what turns text into arrays with them."""

    name: str
    n_features: int | None
    zero_based: bool
    dtype: DType
    index_dtype: DType | None
    query_id: bool
    threads: int

    @classmethod
    def of(
        cls,
        source: Source,
        n_features: int | None,
        zero_based: bool,
        dtype: npt.DTypeLike,
        index_dtype: npt.DTypeLike | None,
        query_id: bool,
        n_jobs: int | None,
    ) -> _Reader:
        if n_features is not None:
            if isinstance(n_features, bool) or not isinstance(n_features, Integral) or n_features < 0:
                raise ValueError(f"n_features={n_features!r} must be None or a whole number, 0 or more")
            if n_features > np.iinfo(np.int64).max:
                raise ValueError(f"n_features={n_features} does not fit int64")
            n_features = int(n_features)
        value = np.dtype(dtype)
        if value not in (np.float32, np.float64):
            raise ValueError(f"dtype={dtype!r} must be float32 or float64")
        index = None if index_dtype is None else np.dtype(index_dtype)
        if index is not None and index not in (np.int32, np.int64):
            raise ValueError(f"index_dtype={index_dtype!r} must be None, int32 or int64")
        if index == np.int32 and n_features is not None and n_features > _INT32_MAX:
            raise ValueError(f"n_features={n_features} does not fit index_dtype int32; use int64")
        return cls(name_of(source), n_features, bool(zero_based), value, index, bool(query_id), thread_count(n_jobs))

    def rows(self, text: memoryview | SupportsReadInto) -> _core.SvmlightRows:
        """The core's arrays for all of a text, a view or a stream.

        The text is handed over in parts that take some hundredths of a second: Ctrl-C lands in between.
        """
        total = len(text) if isinstance(text, memoryview) else getattr(text, "size", 0)
        core = _core.SvmlightReader(wide=self._wide, total=total, **self._options)
        size = _PART * self.threads
        if isinstance(text, memoryview):
            whole, begin, ahead = _bytes(text), 0, size
            while begin < len(whole):
                end = min(begin + ahead, len(whole))
                used = self._add(core, whole[begin:end], end == len(whole))
                begin, ahead = begin + used, size if used else 2 * ahead
        else:
            buffer, filled, last = np.empty(size, np.uint8), 0, False
            while not last:
                more = text.readinto(buffer.data[filled:])
                filled, last = filled + more, not more
                if last or filled == len(buffer):
                    used = self._add(core, buffer[:filled], last)
                    filled -= used
                    if not used:
                        buffer = np.append(buffer, np.empty_like(buffer))  # a line that is longer
                    buffer[:filled] = buffer[used : used + filled]
        return core.finish()

    def _add(self, core: _core.SvmlightReader, text: Array, last: bool) -> int:
        """Read what is complete; the number of bytes."""
        found = core.add(text, last=last)
        if self._needs_width(found):
            core.widen()
            found = core.add(text, last=last)
        return found if isinstance(found, int) else self._refuse(found)

    def parse(self, text: memoryview, first_line: int) -> _core.SvmlightRows:
        """The core's arrays for a text of whole lines."""
        wide = self._wide
        while True:
            found = _core.svmlight_read(_bytes(text), wide=wide, first_line=first_line, **self._options)
            if wide or not self._needs_width(found):
                return self._refuse(found) if isinstance(found, _core.SvmlightRefusal) else found
            wide = True

    @property
    def _wide(self) -> bool:
        return self.index_dtype == np.int64 or (self.n_features or 0) > _INT32_MAX

    def _needs_width(self, found: object) -> bool:
        wanted = ("index_too_wide", "too_many_entries")
        return self.index_dtype is None and isinstance(found, _core.SvmlightRefusal) and found.offence in wanted

    @property
    def _options(self) -> _Options:
        return {
            "single": self.dtype == np.float32,
            "zero_based": self.zero_based,
            "n_features": -1 if self.n_features is None else self.n_features,
            "query": self.query_id,
            "threads": self.threads,
        }

    def _refuse(self, found: _core.SvmlightRefusal) -> NoReturn:
        """Raise what the core has found wrong."""
        text = found.text.decode("utf-8", "backslashreplace")
        reason = _REASONS[found.offence].format(
            word=repr(text),
            previous=found.previous,
            n_features=self.n_features,
            index=self.index_dtype or "int64",
            wider="; read with index_dtype=np.int64" if self.index_dtype == np.int32 else "",
            dtype=self.dtype,
            larger="; read with dtype=np.float64" if self.dtype == np.float32 and _fits_float64(text) else "",
        )
        if found.offence in ("bad_value", "bad_label") and text.lstrip("+-").lower() in _NOT_FINITE:
            reason = reason.replace("a number", "a finite number; impute it, or leave the entry or the row out")
        if found.line == 1 and found.offence in ("bad_label", "several_labels") and set(",;") & set(text):
            reason += "; if this is CSV, pegasos.io.convert reads it with format='csv'"
        raise SvmlightError(self.name, found.line, found.column, text, reason)

    def result(self, found: _core.SvmlightRows, columns: int) -> tuple[Any, ...]:
        """Matrix, labels and, where asked for, query numbers."""
        y = found.label
        X = mapped_csr(found.data, found.indices, found.indptr, (len(y), columns))
        X.has_canonical_format = True
        return (X, y, found.query) if self.query_id else (X, y)


def read_svmlight(
    source: Source,
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    dtype: npt.DTypeLike = np.float64,
    index_dtype: npt.DTypeLike | None = None,
    query_id: bool = False,
    n_jobs: int | None = None,
) -> tuple[Any, ...]:
    r"""Read svmlight text: one row a line, ``label index:value index:value …``.

    Strict: whatever is not in order is refused with file, line, column and the offending text. Numbers are rounded
    correctly, to the ``dtype`` asked for. See the guide, *Files and formats*, for the format in detail.

    Parameters
    ----------
    source : path, binary file, bytes or "-"
        What to read; "-" is standard input. Data compressed with gzip, bzip2, xz or zstd (extra ``zstd`` before
        Python 3.14) are recognised by their content. A file that is cut while it is read is refused.
    n_features : int, default=None
        Number of columns; an index beyond it is refused. None takes the largest index of the file.
    zero_based : bool, default=False
        Whether indices count from 0. If not, index 0 is refused.
    dtype : {float64, float32}
        Type of the values. What overflows it is refused; what is too small for it is 0.
    index_dtype : {None, int32, int64}
        Type of the column indices and row pointers. None is int32 if they fit, else int64.
    query_id : bool, default=False
        Whether to return the ``qid`` of each row, which every row then must have. If not, it is checked and left out.
    n_jobs : int, default=None
        Threads; None is 1, -1 all processors this process may use. The result does not depend on it.

    Returns
    -------
    X : scipy.sparse.csr_matrix
        Canonical: columns sorted and unique within each row. Zeros that are written in the file are stored.
    y : ndarray of float64
        Labels.
    qid : ndarray of int64
        Only if ``query_id``.

    Raises
    ------
    SvmlightError
        A ValueError that names the first offence in the file.

    Examples
    --------
    >>> from pegasos.io import read_svmlight
    >>> X, y = read_svmlight(b"+1 1:0.5 3:2e-1  # a comment\n-1 2:1\n")
    >>> X.toarray().tolist(), y.tolist()
    ([[0.5, 0.0, 0.2], [0.0, 1.0, 0.0]], [1.0, -1.0])
    """
    reader = _Reader.of(source, n_features, zero_based, dtype, index_dtype, query_id, n_jobs)
    with text_of(source) as text:
        found = reader.rows(text)
    return reader.result(found, found.columns if reader.n_features is None else reader.n_features)


def iter_svmlight(
    source: Source,
    *,
    memory: int = 1 << 28,
    n_features: int | None = None,
    zero_based: bool = False,
    dtype: npt.DTypeLike = np.float64,
    index_dtype: npt.DTypeLike | None = None,
    query_id: bool = False,
    n_jobs: int | None = None,
) -> Iterator[tuple[Any, ...]]:
    r"""Read svmlight text block by block, in bounded memory, however long the source is.

    The blocks hold the rows that :func:`read_svmlight` returns, in order, and the same text is refused for the same
    reason at the same place; blocks before the offence have been handed out by then.

    Parameters
    ----------
    source : path, binary file, bytes or "-"
        As for :func:`read_svmlight`.
    memory : int, default=268435456
        Bytes that the text at hand, the block being made and the block handed out before may take together, 65536 at
        least. Blocks are cut after a twentieth of it, in bytes of text: a row of text can become eight times as large
        as arrays, though hardly any does. The window of a decompressor comes on top. A line longer than a twentieth
        of it is refused.
    n_features : int, default=None
        As for :func:`read_svmlight`. None makes a block as wide as the largest index up to its end: the last block is
        as wide as the whole.
    zero_based, dtype, index_dtype, query_id, n_jobs
        As for :func:`read_svmlight`; ``index_dtype=None`` decides for each block.

    Yields
    ------
    X, y : scipy.sparse.csr_matrix, ndarray
        A block of one row or more; with ``query_id`` the query numbers too. Nothing if there are no rows.

    Raises
    ------
    SvmlightError
        A ValueError that names the first offence in the file.

    Examples
    --------
    >>> from pegasos.io import iter_svmlight
    >>> text = b"1 1:1 2:1\n-1 3:1\n" * 1000
    >>> [X.shape for X, y in iter_svmlight(text, memory=100_000, n_features=3)]
    [(588, 3), (588, 3), (588, 3), (236, 3)]
    """
    reader = _Reader.of(source, n_features, zero_based, dtype, index_dtype, query_id, n_jobs)
    if isinstance(memory, bool) or not isinstance(memory, Integral) or memory < _LEAST_MEMORY:
        raise ValueError(f"memory={memory!r} must be a whole number of bytes, {_LEAST_MEMORY} at least")
    return _blocks(source, reader, int(memory))


def _blocks(source: Source, reader: _Reader, memory: int) -> Iterator[tuple[Any, ...]]:
    limit = memory // _SHARE
    line, columns = 1, 0
    with reading(source) as stream:
        text = b""
        while True:
            more = stream.read(limit - len(text))
            at_end = len(more) < limit - len(text)  # a buffered stream gives less than asked for only there
            text += more
            end = len(text) if at_end else text.rfind(b"\n") + 1  # a block ends where a line does
            if not end and not at_end:
                reason = _REASONS["long_line"].format(limit=limit, memory=memory)
                raise SvmlightError(reader.name, line, 1, text[:60].decode("utf-8", "backslashreplace"), reason)
            found = reader.parse(memoryview(text)[:end], line)
            text = text[end:]
            line += found.lines
            columns = max(columns, found.columns) if reader.n_features is None else reader.n_features
            if len(found.label):
                yield reader.result(found, columns)
            if at_end:
                return


def line_of_row(source: Source, row: int) -> int | None:
    """The number, from 1, of the line that a row (from 0) stands in; None if there are not so many."""
    with reading(source) as stream:
        lines = (number for number, text in enumerate(stream, 1) if text.partition(b"#")[0].strip())
        return next(islice(lines, row, None), None)


def _bytes(text: memoryview) -> Array:
    return np.frombuffer(text, np.uint8) if len(text) else np.empty(0, np.uint8)


def _fits_float64(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:  # a number cut off after its first 60 bytes
        return False
