"""Digests of arrays, and parameter objects spelled out: what tells one fit from another."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from types import MappingProxyType

import numpy as np

from pegasos.util.arrays import Array

#: Bytes of an array that are hashed; of longer ones so many, spread evenly, and the sums of all blocks.
HASHED_BYTES, BLOCK_BYTES = 1 << 26, 1 << 12

#: Bytes looked at in one go.
BYTES_PER_PASS = 1 << 24

#: The metadata of a field that a loss or solver got after a release, with a default that means what was done before:
#: checkpoints that were written before it came then still belong to their fits.
LATER = MappingProxyType({"later": True})


def digest(*arrays: Array) -> str:
    """SHA-256 of the arrays' bytes; beyond ``HASHED_BYTES`` bytes, of a sample of them and of the sums of every block.

    The sums, of 64-bit words modulo 2⁶⁴, see every entry at the speed of memory; the sample sees what sums do not, such
    as columns changing places.
    """
    total = hashlib.sha256()
    for array in arrays:
        total.update(f"{array.shape}{array.dtype}".encode())
        pieces = _pieces(array)
        if array.nbytes <= HASHED_BYTES:
            for piece in pieces:
                total.update(piece.data)
            continue
        stride = -(-array.nbytes // HASHED_BYTES)
        for piece in pieces:
            whole = len(piece) // BLOCK_BYTES
            blocks = piece[: whole * BLOCK_BYTES].reshape(whole, BLOCK_BYTES)
            total.update(blocks.view(np.uint64).sum(axis=1, dtype=np.uint64).data)
            total.update(np.ascontiguousarray(blocks[::stride]).data)
            total.update(piece[whole * BLOCK_BYTES :].data)
    return total.hexdigest()


def _pieces(array: Array) -> Iterator[Array]:
    """The bytes of an array, some megabytes at a time; rows with gaps between them are copied piece by piece."""
    rows = max(1, BYTES_PER_PASS // max(1, array.nbytes // max(1, len(array))))
    for first in range(0, len(array), rows):
        yield np.ascontiguousarray(array[first : first + rows]).reshape(-1).view(np.uint8)


def spelled(thing: object) -> str:
    """A loss or solver with its parameters, the same for 2, np.int64(2) and np.float64(0.5) or 0.5.

    Fields that are ``LATER`` are left out where they are what they always were.
    """
    assert is_dataclass(thing)
    everything = ((f, getattr(thing, f.name)) for f in fields(thing))
    values = ((f.name, value) for f, value in everything if not f.metadata.get("later") or value != f.default)
    plain = (f"{name}={value.item() if isinstance(value, np.generic) else value!r}" for name, value in values)
    return f"{type(thing).__name__}({', '.join(plain)})"
