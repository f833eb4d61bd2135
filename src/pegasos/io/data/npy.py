"""Plain ``.npy`` files: headers checked before use, memory maps, and files that grow while they are written."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import DTypeLike

from pegasos.util.arrays import Array, DType

MAGIC = b"\x93NUMPY"

#: How NumPy writes a type. What it reads beyond that are old names, some with a warning.
DESCRIPTION = re.compile(r"[<>|=][?biufcmMOSUV]\d*(\[\w+\])?")

#: A header of plain numbers is never longer.
LONGEST_HEADER = 1 << 16

#: Bytes before the numbers of the files written here: enough for any shape, so that it can be filled in last.
HEADER_BYTES = 128

#: Bytes copied at a time.
COPIED_BYTES = 1 << 24


def read_header(file: IO[bytes], name: str) -> tuple[DType, tuple[int, ...], bool]:
    """The dtype, shape and whether in Fortran order; ``file`` then stands at the first number.

    Raises ValueError naming the file where it is no ``.npy`` file, or one of Python objects.
    """
    start = file.read(8)
    if len(start) < 8 or start[:6] != MAGIC or start[6:] not in (b"\1\0", b"\2\0"):
        raise ValueError(f"{name} is no .npy file of version 1 or 2")
    size = int.from_bytes(file.read(2 if start[6] == 1 else 4), "little")
    text = file.read(size) if size <= LONGEST_HEADER else b""
    try:
        fields = ast.literal_eval(text.decode("latin1").strip())
        descr, fortran, shape = fields["descr"], fields["fortran_order"], fields["shape"]
        good = len(fields) == 3 and isinstance(descr, str) and isinstance(fortran, bool) and isinstance(shape, tuple)
        if not good or not all(type(length) is int and 0 <= length < 2**62 for length in shape):
            raise ValueError("a field is wrong")
        if not DESCRIPTION.fullmatch(descr):
            raise ValueError(f"{descr!r:.100} is no type")
        dtype = np.dtype(descr)
    except (ValueError, SyntaxError, TypeError, KeyError, IndexError, RecursionError, MemoryError) as error:
        raise ValueError(f"{name}: the .npy header is damaged or of a type that is not read: {error}") from None
    if dtype.hasobject:
        raise ValueError(f"{name} holds Python objects, which are not loaded")
    if dtype.itemsize == 0:
        raise ValueError(f"{name} holds {dtype}, which takes no room")
    return dtype, shape, fortran


def map_array(path: Path, dtype: DType, shape: tuple[int, ...]) -> Array:
    """The read-only memory map of a file that must have this dtype and shape, to the byte."""
    with path.open("rb") as file:
        found, found_shape, fortran = read_header(file, str(path))
        if found != dtype or found_shape != shape or (fortran and len(shape) > 1):
            order = " in Fortran order" if fortran else ""
            raise ValueError(f"{path}: holds {found.str} {found_shape}{order}, not {dtype.str} {shape}")
        offset = file.tell()
        expected = offset + dtype.itemsize * int(np.prod(shape, dtype=object))
        if (size := os.fstat(file.fileno()).st_size) != expected:
            raise ValueError(f"{path}: has {size} bytes, not {expected}; it was cut short or changed")
        if expected == offset:
            return np.empty(shape, dtype)  # there is nothing to map
        return np.memmap(file, dtype=dtype, mode="r", offset=offset, shape=shape)


def header(dtype: DType, shape: tuple[int, ...]) -> bytes:
    """The first 128 bytes of a file of version 1.0."""
    text = repr({"descr": dtype.str, "fortran_order": False, "shape": shape}).encode("ascii")
    text = text.ljust(HEADER_BYTES - 11) + b"\n"
    return MAGIC + b"\1\0" + len(text).to_bytes(2, "little") + text


class NpyWriter:
    """A ``.npy`` file to which rows of a fixed ``tail`` shape are appended; the length is filled in on closing."""

    def __init__(self, path: Path, dtype: DTypeLike, tail: tuple[int, ...] = ()) -> None:
        self.path, self.dtype, self.tail = path, np.dtype(dtype).newbyteorder("<"), tail
        self.length = 0
        self.file = path.open("xb")
        self.file.write(header(self.dtype, (0, *tail)))

    @property
    def shape(self) -> tuple[int, ...]:
        """What has been written."""
        return self.length, *self.tail

    def append(self, rows: Array) -> None:
        """Write rows, in the file's dtype, behind the others."""
        self.file.write(np.ascontiguousarray(rows, dtype=self.dtype).data)
        self.length += len(rows)

    def finish(self) -> None:
        """Fill in the header and see that all is on the disk."""
        self.file.seek(0)
        self.file.write(header(self.dtype, self.shape))
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()

    def recast(self, dtype: DTypeLike) -> NpyWriter:
        """The same numbers in another dtype, in a new file of the same name, still growing."""
        self.file.close()
        old = self.path.with_name(self.path.name + ".old")
        self.path.rename(old)
        new = NpyWriter(self.path, dtype, self.tail)
        try:
            with old.open("rb") as source:
                source.seek(HEADER_BYTES)
                while piece := source.read(COPIED_BYTES):
                    new.append(np.frombuffer(piece, self.dtype).reshape(-1, *self.tail))
        except BaseException:
            new.file.close()
            raise
        old.unlink()
        return new
