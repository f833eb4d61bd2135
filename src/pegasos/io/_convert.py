"""Files and arrays to a folder of memory maps, in bounded memory."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from scipy import sparse

from pegasos._dataset import Dataset
from pegasos.io._csv_source import CsvSource, default_delimiter
from pegasos.io._dataset import open_dataset
from pegasos.io._dataset_writer import Block, DatasetWriter, new_folder
from pegasos.io._npz_source import npz_blocks
from pegasos.io._parquet_source import ParquetSource

Format = Literal["svmlight", "csv", "parquet", "npz"]
FORMATS = ("svmlight", "csv", "parquet", "npz")
SUFFIXES = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet", ".npz": "npz"}
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
#: The smallest memory bound that makes sense.
LEAST_MEMORY = 1 << 16


def convert(
    source: str | os.PathLike[str] | IO[bytes],
    folder: str | os.PathLike[str],
    *,
    format: Format | None = None,
    target: Any = "auto",
    sample_weight: Any = None,
    dtype: Any = None,
    n_features: int | None = None,
    zero_based: bool = False,
    header: bool | None = None,
    delimiter: str | None = None,
    text_target: bool | None = None,
    memory: int = 1 << 26,
    overwrite: bool = False,
) -> Dataset:
    """Turn a file into a folder that :func:`open_dataset` opens, without ever holding all of it in memory.

    The folder is written under another name beside its place and renamed at the end: it is there whole, or not at all.

    Parameters
    ----------
    source : str, path or binary file
        svmlight text or CSV (also compressed, or "-" for standard input), Parquet, or ``.npz``: an archive of
        ``scipy.sparse.save_npz`` (CSR), or of ``numpy.savez(X=..., y=...)``.
    folder : str or path
        What to write. The folder above it must exist.
    format : {"svmlight", "csv", "parquet", "npz"}, default=None
        None: by name and first bytes; what is none of the others is svmlight.
    target : "auto", str, int, array or None, default="auto"
        CSV and Parquet: the target column's name or position; "auto" is the one called y, target, label or class.
        ``.npz``: the member's name ("auto" is ``y``), or the targets themselves. None: there are none. svmlight files
        begin each line with it.
    sample_weight : str, int, array or None, default=None
        Likewise for weights of the rows.
    dtype : {"float32", "float64"}, default=None
        Of the entries. None: float32 where the source says so, else float64.
    n_features : int, default=None
        Columns of an svmlight file, where it must be more than the largest index found.
    zero_based : bool, default=False
        Whether the indices of an svmlight file begin with 0.
    header : bool, default=None
        Whether the first line of a CSV file names the columns. None: it does if none of it is a number.
    delimiter : str, default=None
        Of a CSV file. None: a tab for ``.tsv``, else a comma.
    text_target : bool, default=None
        Whether a CSV file's targets are labels even if they look like numbers. None: if one of the first ones does not.
    memory : int, default=67108864
        Bytes a block of rows may take while it is converted, roughly; a single row may take more.
    overwrite : bool, default=False
        Whether an earlier dataset in this place may be replaced. Nothing else is ever replaced.

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
    kind = None if dtype is None else np.dtype(dtype)
    if kind is not None and kind not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r} must be 'float32' or 'float64'")
    if format is not None and format not in FORMATS:
        raise ValueError(f"format={format!r} is none of {', '.join(FORMATS)}")
    if not isinstance(memory, int) or memory < LEAST_MEMORY:
        raise ValueError(f"memory={memory!r} must be a whole number >= {LEAST_MEMORY}, in bytes")
    if n_features is not None and (not isinstance(n_features, int) or n_features < 1):
        raise ValueError(f"n_features={n_features!r} must be a whole number >= 1")
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ValueError(f"delimiter={delimiter!r} must be one character, and no quote or line end")
    name = _name(source)
    with _opened(source, name) as file, ExitStack() as stack:
        form = format or _format(file, name)
        if form != "svmlight" and n_features is not None:
            raise ValueError(f"n_features is for svmlight files, not for {form}")
        if form in ("csv", "svmlight") and not isinstance(target, str | int | None):
            raise ValueError(f"targets given as an array are for .npz archives, not for {form}")
        names: list[str] | None = None
        blocks: Iterable[Block]
        if form == "svmlight":
            if not (isinstance(target, str) and target == "auto") or sample_weight is not None:
                raise ValueError("svmlight files have their targets in front and no weights: leave both parameters out")
            blocks = _svmlight(source, n_features, zero_based, kind, memory)
        elif form == "csv":
            wanted = {"target": target, "weight": sample_weight, "header": header, "text_target": text_target}
            text = stack.enter_context(_text(file, name))
            table = CsvSource(text, name, delimiter=delimiter or default_delimiter(name), memory=memory, **wanted)
            names, blocks = table.feature_names, table.blocks()
        elif form == "parquet":
            frame = ParquetSource(file, name, target=target, weight=sample_weight, memory=memory)
            names, blocks = frame.feature_names, frame.blocks()
        else:
            blocks = npz_blocks(file, name, target=target, weight=sample_weight, memory=memory)
        return _write(blocks, Path(folder), name, kind, n_features, names, overwrite)


def write_dataset(
    X: Any,
    y: Any,
    folder: str | os.PathLike[str],
    *,
    sample_weight: Any = None,
    feature_names: Iterable[str] | None = None,
    dtype: Any = None,
    overwrite: bool = False,
) -> Dataset:
    """Write arrays that are in memory as a folder that :func:`open_dataset` opens.

    Parameters
    ----------
    X : array or sparse matrix of shape (rows, columns)
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
    kind = None if dtype is None else np.dtype(dtype)
    if kind is not None and kind not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r} must be 'float32' or 'float64'")
    if sparse.issparse(X):
        X = X.tocsr()
        X.check_format(full_check=True)
    else:
        X = np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise ValueError(f"X must be a matrix of numbers, but is {X.dtype} of shape {X.shape}")
    m, n = X.shape
    names = None if feature_names is None else list(map(str, feature_names))
    if names is not None and (len(names) != n or len(set(names)) != n):
        raise ValueError(f"feature_names must be {n} different names, one for each column")
    columns = {"y": y, "sample_weight": sample_weight}
    columns = {key: None if column is None else np.asarray(column) for key, column in columns.items()}
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


def _write(
    blocks: Iterable[Block],
    folder: Path,
    name: str,
    kind: np.dtype[Any] | None,
    columns: int | None,
    names: list[str] | None,
    overwrite: bool,
) -> Dataset:
    with new_folder(folder, overwrite=overwrite) as fresh, closing(DatasetWriter(fresh, name, kind, columns)) as writer:
        for block in blocks:
            writer.append(block)
        writer.finish(names)
    return open_dataset(folder)


def _svmlight(source: Any, n_features: int | None, zero_based: bool, kind: Any, memory: int) -> Iterator[Block]:
    from pegasos.io import iter_svmlight

    options: dict[str, Any] = {} if kind is None else {"dtype": kind}
    for X, y in iter_svmlight(source, n_features=n_features, zero_based=zero_based, memory=memory, **options):
        yield Block(X, y)


def _name(source: Any) -> str:
    if isinstance(source, str | os.PathLike):
        return "standard input" if source == "-" else str(source)
    return str(getattr(source, "name", None) or "the file")


@contextmanager
def _opened(source: Any, name: str) -> Iterator[Any]:
    """The source as a binary file; one that the caller opened stays open."""
    if isinstance(source, str | os.PathLike) and source != "-":
        path = Path(source)
        if path.is_dir():
            raise IsADirectoryError(f"{name}: is a folder; a dataset's folder is opened with open_dataset")
        with path.open("rb") as file:
            yield file
    else:
        yield sys.stdin.buffer if isinstance(source, str) else source


def _format(file: Any, name: str) -> str:
    """By the first bytes where the file can be looked into, else by the name."""
    start = _peek(file)
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith((b"PK\3\4", b"PK\5\6")):
        return "npz"
    path = Path(name)
    while path.suffix.lower() in COMPRESSED:
        path = path.with_suffix("")
    return SUFFIXES.get(path.suffix.lower(), "svmlight")


def _peek(file: Any) -> bytes:
    if hasattr(file, "peek"):
        return bytes(file.peek(8)[:8])
    if not file.seekable():
        return b""
    at = file.tell()
    start = bytes(file.read(8))
    file.seek(at)
    return start


@contextmanager
def _text(file: Any, name: str) -> Iterator[io.TextIOWrapper]:
    """The text of a file that may be compressed; the file itself stays open."""
    text = io.TextIOWrapper(_decompressed(file, name), encoding="utf-8-sig", newline="")
    try:
        yield text
    finally:
        text.detach()


def _decompressed(file: Any, name: str) -> Any:
    """What a file says, which may be compressed: known by its first bytes."""
    start = _peek(file)
    if start.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file)
    if start.startswith(b"BZh"):
        return bz2.BZ2File(file)
    if start.startswith(b"\xfd7zXZ\x00"):
        return lzma.LZMAFile(file)
    if start.startswith(b"\x28\xb5\x2f\xfd"):
        try:
            import zstandard
        except ImportError:
            raise ImportError(f"{name}: is compressed with zstandard: pip install zstandard") from None
        return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    return file
