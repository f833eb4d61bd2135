"""``.npz`` archives, block by block: SciPy's CSR matrices and NumPy's arrays, never a whole member at once."""

from __future__ import annotations

import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from pegasos.io.data.dataset_writer import Block
from pegasos.io.data.npy import read_header
from pegasos.util.arrays import CSR, Array, Matrix, first_true
from pegasos.util.suggest import did_you_mean


class Member:
    """One array of an archive, read from front to back."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self.file, self.name = file, name
        self.dtype, self.shape, self.fortran = read_header(file, name)
        if self.fortran and len(self.shape) > 1:
            raise ValueError(
                f"{name} is in Fortran order, which cannot be read row by row; save numpy.ascontiguousarray(X)"
            )

    def take(self, rows: int) -> Array:
        """The next rows."""
        count = rows * int(np.prod(self.shape[1:], dtype=object))
        size = count * self.dtype.itemsize
        pieces, got = [], 0
        while got < size and (piece := self.file.read(size - got)):
            pieces.append(piece)
            got += len(piece)
        if got != size:
            raise ValueError(f"{self.name} ends too early: {got} of {size} bytes")
        return np.frombuffer(b"".join(pieces), self.dtype).reshape(rows, *self.shape[1:])

    def end(self) -> None:
        """See that nothing follows; this also checks the archive's checksum."""
        if self.file.read(1):
            raise ValueError(f"{self.name} is longer than its header says")


@contextmanager
def open_npz(path: IO[bytes], name: str) -> Iterator[zipfile.ZipFile]:
    """The archive, with its errors named."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"{name}: is no readable .npz archive: {error}") from None
    except (zlib.error, lzma.LZMAError) as error:
        raise ValueError(f"{name}: is damaged: {error}") from None


def npz_blocks(
    path: IO[bytes], name: str, *, target: ArrayLike | None, weight: ArrayLike | None, memory: int
) -> Iterator[Block]:
    """Rows of ``memory`` bytes or less at a time (or single rows). A text names a member of the archive."""
    with open_npz(path, name) as archive, ExitStack() as stack:
        members = [entry.removesuffix(".npy") for entry in archive.namelist()]

        def member(key: str) -> Member:
            if key not in members:
                near = did_you_mean(key, members)
                raise ValueError(f"{name}: has no member {key!r}{near}, only {', '.join(sorted(members))}")
            return Member(stack.enter_context(archive.open(f"{key}.npy")), f"{name}: {key}.npy")

        extra: dict[str, Member | _Given] = {}
        if isinstance(target, str) and target == "auto":
            if "y" not in members:
                raise ValueError(
                    f"{name}: has no member 'y', only {', '.join(sorted(members))}; pass target='member', or "
                    "target=None if there are no targets"
                )
            target = "y"
        for key, wanted in (("y", target), ("sample_weight", weight)):
            if isinstance(wanted, str):
                extra[key] = member(wanted)
            elif wanted is not None:
                extra[key] = _Given(np.asarray(wanted))
        is_csr = {"data", "indices", "indptr", "shape"} <= set(members)
        if not is_csr and "format" in members:
            raise ValueError(f"{name}: holds a sparse matrix that is not CSR; save X.tocsr()")
        rows: Iterator[Matrix] = (
            _csr_rows(member, name, members, memory) if is_csr else _dense_rows(member, name, members, target, memory)
        )
        for key, column in extra.items():
            if len(column.shape) == 2 and column.shape[1] == 1:
                column.shape = column.shape[:1]  # a matrix of one column counts as a vector
            if len(column.shape) != 1:
                raise ValueError(f"{name}: {key} must be a vector, but has the shape {column.shape}")
        total = 0
        for X in rows:
            total += X.shape[0]
            for key, column in extra.items():
                if column.shape[0] < total:
                    raise ValueError(f"{name}: {key} has {column.shape[0]} entries, fewer than there are rows")
            columns = {key: column.take(X.shape[0]) for key, column in extra.items()}
            yield Block(X, columns.get("y"), columns.get("sample_weight"))
        for key, column in extra.items():
            if column.shape[0] != total:
                raise ValueError(f"{name}: {key} has {column.shape[0]} entries for {total} rows")
            if isinstance(column, Member):
                column.end()


class _Given:
    """Targets that the caller has in memory, taken as if read."""

    def __init__(self, values: Array) -> None:
        self.values, self.at = values.reshape(-1) if values.ndim == 2 and values.shape[1] == 1 else values, 0
        self.shape = self.values.shape

    def take(self, rows: int) -> Array:
        self.at += rows
        return self.values[self.at - rows : self.at]


def _dense_rows(
    member: Callable[[str], Member], name: str, members: list[str], target: ArrayLike | None, memory: int
) -> Iterator[Array]:
    keys = ["X"] if "X" in members else [key for key in members if not isinstance(target, str) or key != target]
    if len(keys) != 1:
        raise ValueError(f"{name}: has no member 'X', only {', '.join(sorted(members)) or 'nothing'}")
    X = member(keys[0])
    if len(X.shape) != 2 or X.dtype.kind not in "biuf":
        raise ValueError(f"{X.name} must be a matrix of numbers, but is {X.dtype} of shape {X.shape}")
    step = max(1, memory // max(1, X.shape[1] * max(8, X.dtype.itemsize) * 2))
    for first in range(0, X.shape[0], step):
        block = X.take(min(step, X.shape[0] - first))
        yield block.astype(np.float32 if block.dtype == np.float32 else np.float64, copy=False)
    X.end()


def _csr_rows(member: Callable[[str], Member], name: str, members: list[str], memory: int) -> Iterator[CSR]:
    if "format" in members:
        kind = _scalar(member("format"))
        if kind not in ("csr", b"csr"):
            text = kind.decode("ascii", "replace") if isinstance(kind, bytes) else kind
            raise ValueError(f"{name}: holds a sparse matrix of format {text!r}; save X.tocsr()")
    shape = member("shape")
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise ValueError(f"{shape.name} must be two whole numbers")
    m, n = (int(k) for k in shape.take(2))
    values, indices, indptr = member("data"), member("indices"), member("indptr")
    for array, kinds in ((values, "biuf"), (indices, "iu"), (indptr, "iu")):
        if len(array.shape) != 1 or array.dtype.kind not in kinds:
            raise ValueError(f"{array.name} must be a vector of numbers, but is {array.dtype} of shape {array.shape}")
    if indptr.shape != (m + 1,) or values.shape != indices.shape:
        raise ValueError(f"{name}: data {values.shape}, indices {indices.shape} and indptr {indptr.shape} do not fit")
    entries = max(1, memory // 32)
    at, row = int(indptr.take(1)[0]), 0
    if at != 0:
        raise ValueError(f"{indptr.name} begins with {at}, not 0")
    while row < m:
        ends = indptr.take(min(entries, m - row)).astype(np.int64)
        if (wrong := first_true(np.diff(ends, prepend=at) < 0)) is not None:
            raise ValueError(f"{indptr.name} decreases at row {row + wrong}")
        if ends[-1] > values.shape[0]:
            raise ValueError(f"{indptr.name} points beyond the {values.shape[0]} entries")
        done = 0
        while done < len(ends):  # as many rows as the memory holds, or a single one that it does not
            more = max(1, int(np.searchsorted(ends[done:], at + entries, side="right")))
            part = ends[done : done + more]
            count = int(part[-1]) - at
            yield _csr(values.take(count), indices.take(count), np.concatenate(([0], part - at)), n, name, row + done)
            at, done = int(part[-1]), done + more
        row += len(ends)
    if at != values.shape[0]:
        raise ValueError(f"{indptr.name} ends with {at}, but there are {values.shape[0]} entries")
    for array in (values, indices, indptr):
        array.end()


def _csr(values: Array, indices: Array, indptr: Array, n: int, name: str, row: int) -> CSR:
    if (wrong := first_true((indices < 0) | (indices >= n))) is not None:
        where = row + int(np.searchsorted(indptr, wrong, side="right")) - 1
        raise ValueError(f"{name}: row {where} has column index {indices[wrong]}, outside 0 … {n - 1}")
    kind = np.float32 if values.dtype == np.float32 else np.float64
    found: CSR = sparse.csr_matrix((values.astype(kind), indices, indptr), shape=(len(indptr) - 1, n))
    return found


def _scalar(member: Member) -> str | bytes:
    """The one value of a member without dimensions."""
    if member.shape != () or member.dtype.kind not in "SU":
        raise ValueError(f"{member.name} must be one string")
    value: str | bytes = np.frombuffer(member.file.read(member.dtype.itemsize), member.dtype)[0]
    return value
