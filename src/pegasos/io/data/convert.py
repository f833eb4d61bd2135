"""Files and arrays to a folder of memory maps, in bounded memory."""

from __future__ import annotations

import io
import os
import stat
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from numbers import Real
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy import sparse

from pegasos.io.data.columns import Wanted, Word, is_auto
from pegasos.io.data.csv_source import CsvSource, default_delimiter
from pegasos.io.data.dataset import open_dataset
from pegasos.io.data.dataset_writer import Block, DatasetWriter, new_folder
from pegasos.io.data.npz_source import npz_blocks
from pegasos.io.data.parquet_source import ParquetSource
from pegasos.io.data.svmlight import iter_svmlight
from pegasos.io.files import Source, name_of, reading
from pegasos.rows.dataset import Dataset
from pegasos.util.arrays import Array, DType
from pegasos.util.suggest import did_you_mean

Format = Literal["svmlight", "csv", "parquet", "npz"]
FORMATS = ("svmlight", "csv", "parquet", "npz")
SUFFIXES = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet", ".npz": "npz"}
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
#: The smallest memory bound that makes sense.
LEAST_MEMORY = 1 << 16


def convert(
    source: Source,
    folder: str | os.PathLike[str],
    *,
    format: Format | None = None,
    target: Wanted | ArrayLike = "auto",
    sample_weight: Wanted | ArrayLike = None,
    dtype: DTypeLike | None = None,
    n_features: int | None = None,
    zero_based: bool = False,
    header: bool | None = None,
    delimiter: str | None = None,
    text_target: bool | None = None,
    memory: int = 1 << 26,
    overwrite: bool = False,
    tell: Callable[[str], object] | None = None,
) -> Dataset:
    """Turn a file into a folder that :func:`open_dataset` opens, without ever holding all of it in memory.

    The folder is written under another name beside its place and renamed at the end: it is there whole, or not at all.

    Parameters
    ----------
    source : path, binary file or bytes
        svmlight text or CSV (also compressed, or "-" for standard input), Parquet, or ``.npz``: an archive of
        ``scipy.sparse.save_npz`` (CSR), or of ``numpy.savez(X=..., y=...)``.
    folder : str or path
        What to write. The folder above it must exist.
    format : {"svmlight", "csv", "parquet", "npz"}, default=None
        None: by name and first bytes; what is none of the others is svmlight.
    target : "auto", str, int, array or None, default="auto"
        CSV and Parquet: the target column's name (a text) or position (a whole number from 0; −1 is the last); "auto"
        is the column called y, target, label or class. ``.npz``: the member's name ("auto" is ``y``), or the targets
        themselves. svmlight files begin each line with it. None: there are none, or they are left out.
    sample_weight : str, int, array or None, default=None
        Likewise for weights of the rows.
    dtype : {"float32", "float64"}, default=None
        Of the entries. None: float32 where the source says so, else float64.
    n_features : int, default=None
        Columns of an svmlight file, where it must be more than the largest index found.
    zero_based : bool, default=False
        Whether the indices of an svmlight file begin with 0.
    header : bool, default=None
        Whether the first line of a CSV file names the columns. None: it does if it has no number, if it has a word
        above a number, or if ``target`` or ``sample_weight`` is a name in it. A first line that could as well be a row
        is refused.
    delimiter : str, default=None
        Of a CSV file. None: a tab for ``.tsv``, else a comma.
    text_target : bool, default=None
        Whether a CSV file's targets are labels even if they look like numbers. None: if one of the first ones does not.
    memory : int, default=67108864
        Bytes a block of rows may take while it is converted, roughly; a single row may take more.
    overwrite : bool, default=False
        Whether an earlier dataset in this place may be replaced. Nothing else is ever replaced.
    tell : callable, default=None
        Called with a sentence for each thing that was guessed: whether there is a header, which column is the target,
        which are left out. None: columns left out are a UserWarning, and the rest is not told.

    Returns
    -------
    Dataset
        The new folder, opened.

    Raises
    ------
    ValueError
        If the source is malformed; names file, line or row, and column. Nothing is left behind.
    FileExistsError
        If there is something in the folder's place.

    Notes
    -----
    Columns in front of a table that have no name number the rows, as pandas and R write them: they are left out, and
    so is the index that pandas keeps in Parquet files.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from pegasos import io
    >>> place = tempfile.TemporaryDirectory()
    >>> table = pathlib.Path(place.name, "points.csv")
    >>> _ = table.write_text("height,width,label\\n1,2,cat\\n3,4,dog\\n")
    >>> data = io.convert(table, place.name + "/points")
    >>> data.feature_names, data.y.tolist()
    (('height', 'width'), ['cat', 'dog'])
    >>> del data
    >>> place.cleanup()
    """
    kind = _value_type(dtype)
    if format is not None and format not in FORMATS:
        raise ValueError(f"format={format!r} is none of {', '.join(FORMATS)}{did_you_mean(format, FORMATS)}")
    if not isinstance(memory, int) or memory < LEAST_MEMORY:
        raise ValueError(f"memory={memory!r} must be a whole number >= {LEAST_MEMORY}, in bytes")
    if n_features is not None and (not isinstance(n_features, int) or n_features < 1):
        raise ValueError(f"n_features={n_features!r} must be a whole number >= 1")
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ValueError(f"delimiter={delimiter!r} must be one character, and no quote or line end")
    name = name_of(source)
    if isinstance(source, str | os.PathLike) and Path(source).is_dir():
        raise IsADirectoryError(f"{name}: is a folder; a dataset's folder is opened with open_dataset")
    form = format or format_of(source)
    _refuse_foreign(form, "svmlight", n_features=n_features, zero_based=zero_based or None)
    _refuse_foreign(form, "csv", header=header, delimiter=delimiter, text_target=text_target)
    if form == "npz":
        with _opened(source) as file:
            blocks = npz_blocks(file, name, target=_member(target), weight=_member(sample_weight), memory=memory)
            return _write(blocks, Path(folder), name, kind, None, None, overwrite)
    if not isinstance(target, str | int | Word | None) or not isinstance(sample_weight, str | int | Word | None):
        raise ValueError(f"targets and weights given as arrays are for .npz archives, not for {form}")
    if form == "svmlight":
        for option, wanted in (("target", None if is_auto(target) else target), ("sample_weight", sample_weight)):
            if wanted is not None:
                raise ValueError(
                    f"{name}: {option}={_member(wanted)!r} is for tables, but svmlight files have their targets in "
                    f"front and no weights{'' if format else '; if this is CSV, pass format=' + repr('csv')}"
                )
        pairs = iter_svmlight(
            source, dtype=kind or np.float64, n_features=n_features, zero_based=zero_based, memory=memory
        )
        blocks = (Block(X, None if target is None else y) for X, y in pairs)
        return _write(blocks, Path(folder), name, kind, n_features, None, overwrite)
    with reading(source) if form == "csv" else _opened(source) as file:
        table: CsvSource | ParquetSource
        if form == "csv":
            table = CsvSource(
                file,
                name,
                target=target,
                weight=sample_weight,
                header=header,
                delimiter=delimiter or default_delimiter(name),
                text_target=text_target,
                memory=memory,
            )
        else:
            table = ParquetSource(file, name, target=target, weight=sample_weight, memory=memory)
        _tell_guesses(table, name, tell)
        return _write(table.blocks(), Path(folder), name, kind, None, table.feature_names, overwrite)


def _value_type(dtype: DTypeLike | None) -> DType | None:
    kind = None if dtype is None else np.dtype(dtype)
    if kind is not None and kind not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r} must be 'float32' or 'float64'")
    return kind


def _refuse_foreign(form: str, home: str, **options: object) -> None:
    """Refuse options that are for another format, ``home``, than the source has."""
    for option, value in options.items():
        if value is not None and form != home:
            raise ValueError(f"{option}={value!r} is for {home} files, not for {form}")


def _member(wanted: Wanted | ArrayLike) -> int | ArrayLike | None:
    return wanted.text if isinstance(wanted, Word) else wanted


def _tell_guesses(table: CsvSource | ParquetSource, name: str, tell: Callable[[str], object] | None) -> None:
    columns = table.columns
    if table.guesses and tell is not None:
        tell(f"{name}: {'; '.join(table.guesses)}")
    for j in columns.left_out:
        what = f"called {columns.names[j]!r}" if columns.names[j] else "without a name"
        said = f"{name}: column {j + 1}, {what}, is left out: it seems to number the rows"
        if tell is not None:
            tell(said)
        else:
            warnings.warn(f"{said}; name it in the header if it is a feature", UserWarning, stacklevel=3)


def write_dataset(
    X: Any,
    y: ArrayLike | None,
    folder: str | os.PathLike[str],
    *,
    sample_weight: ArrayLike | None = None,
    feature_names: Iterable[str] | None = None,
    dtype: DTypeLike | None = None,
    overwrite: bool = False,
) -> Dataset:
    """Write arrays that are in memory as a folder that :func:`open_dataset` opens.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (rows, columns)
        The rows.
    y : array of shape (rows,) or None
        Targets: numbers, or labels as text.
    folder : str or path
        What to write; see :func:`convert`.
    sample_weight : array of shape (rows,), default=None
        Weights ≥ 0.
    feature_names : list of str, default=None
        The columns' names. None: those of a data frame, else none.
    dtype : {"float32", "float64"}, default=None
        Of the entries. None: float32 where ``X`` is, else float64.
    overwrite : bool, default=False
        Whether an earlier dataset in this place may be replaced.

    Returns
    -------
    Dataset
        The new folder, opened.

    Examples
    --------
    >>> import tempfile
    >>> from pegasos import io
    >>> place = tempfile.TemporaryDirectory()
    >>> io.write_dataset([[0.0, 1.0], [2.0, 3.0]], [-1, 1], place.name + "/small").shape
    (2, 2)
    >>> place.cleanup()
    """
    if feature_names is None and hasattr(X, "columns"):
        feature_names = [str(column) for column in X.columns]
    kind = _value_type(dtype)
    if sparse.issparse(X):
        X = X.tocsr()
        X.check_format(full_check=True)
    elif hasattr(X, "columns"):
        X = _frame_numbers(X)
    else:
        X = np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise ValueError(f"X must be a matrix of numbers, but is {X.dtype} of shape {X.shape}")
    m, n = X.shape
    names = None if feature_names is None else list(map(str, feature_names))
    if names is not None and (len(names) != n or len(set(names)) != n):
        raise ValueError(f"feature_names must be {n} different names, one for each column")
    given = {"y": y, "sample_weight": sample_weight}
    columns = {key: None if column is None else np.asarray(column) for key, column in given.items()}
    for key, column in columns.items():
        if column is not None and column.shape != (m,):
            raise ValueError(f"{key} has the shape {column.shape}, but X has {m} rows")
    step = max(1, (1 << 20) // max(1, n if not sparse.issparse(X) else X.nnz // max(m, 1)))

    def blocks() -> Iterator[Block]:
        for first in range(0, m, step):
            rows = slice(first, first + step)
            y, weight = (None if column is None else column[rows] for column in columns.values())
            yield Block(X[rows], y, weight)

    return _write(blocks(), Path(folder), "X", kind, n, names, overwrite)


def _frame_numbers(frame: Any) -> Array:
    """A data frame as one array of numbers; refuses a column that holds anything else by its name."""
    X = np.asarray(frame)
    if X.dtype.kind in "biuf" or X.ndim != 2:
        return X
    for j, name in enumerate(frame.columns):
        try:
            np.asarray(X[:, j], dtype=np.float64)
        except (TypeError, ValueError):
            wrong = next(i for i, value in enumerate(X[:, j].tolist()) if not isinstance(value, Real))
            raise ValueError(
                f"X: column {name!r} has {X[wrong, j]!r:.40} at row {wrong}, which is no number; encode the column, or "
                "leave it out"
            ) from None
    return np.asarray(X, dtype=np.float64)


def _write(
    blocks: Iterable[Block],
    folder: Path,
    name: str,
    kind: DType | None,
    columns: int | None,
    names: list[str] | None,
    overwrite: bool,
) -> Dataset:
    with new_folder(folder, overwrite) as fresh, closing(DatasetWriter(fresh, name, kind, columns, names)) as writer:
        for block in blocks:
            writer.append(block)
        writer.finish()
    return open_dataset(folder)


@contextmanager
def _opened(source: Source) -> Iterator[IO[bytes]]:
    """The source as a binary file that can be read at any place."""
    if isinstance(source, bytes | bytearray | memoryview):
        yield io.BytesIO(source)
    elif isinstance(source, str | os.PathLike) and source != "-":
        with open(source, "rb") as file:
            yield file
    elif isinstance(source, str | os.PathLike) or not source.seekable():
        raise ValueError(f"{name_of(source)}: only svmlight and CSV can be read from a pipe; save it to a file first")
    else:
        yield source


def format_of(source: Source) -> str:
    """The format of a source: by the first bytes where the source can be looked into, else by the name."""
    start = _start(source)
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith((b"PK\3\4", b"PK\5\6")):
        return "npz"
    path = Path(name_of(source))
    while path.suffix.lower() in COMPRESSED:
        path = path.with_suffix("")
    return SUFFIXES.get(path.suffix.lower(), "svmlight")


def _start(source: Source) -> bytes:
    """The first bytes of a source, which are still there afterwards."""
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source[:8])
    if isinstance(source, str | os.PathLike) and source != "-":
        if not stat.S_ISREG(os.stat(source).st_mode):  # looking into a pipe would take from it
            return b""
        with open(source, "rb") as opened:
            return opened.read(8)
    file = sys.stdin.buffer if isinstance(source, str | os.PathLike) else source
    if hasattr(file, "peek"):
        return bytes(file.peek(8)[:8])
    if not file.seekable():
        return b""
    at = file.tell()
    start = bytes(file.read(8))
    file.seek(at)
    return start
