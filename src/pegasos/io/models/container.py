"""The safetensors container: one JSON header of ours and named arrays, to bytes and back.

The ``safetensors`` package checks that the arrays cover the data without holes or overlaps. It lets pass what is
checked here: names that come twice, unknown keys, empty arrays of absurd shape, other metadata, booleans like 7.
Sizes are compared with the file's before anything is read or allocated.
"""

from __future__ import annotations

import json
import math
from typing import Any, BinaryIO

import numpy as np

from pegasos.rows.views import Array

#: The one key of the file's ``__metadata__``: several would be written in an order that changes from run to run.
KEY = "pegasos"
#: Bytes of JSON that a file may have; feature names need the most.
HEADER_LIMIT = 32 * 2**20
#: The types an array can have: safetensors' names, and NumPy's for their bytes.
DTYPES = {
    "BOOL": "|b1",
    "I8": "|i1",
    "U8": "|u1",
    "I16": "<i2",
    "U16": "<u2",
    "I32": "<i4",
    "U32": "<u4",
    "I64": "<i8",
    "U64": "<u8",
    "F16": "<f2",
    "F32": "<f4",
    "F64": "<f8",
}


def pack(header: dict[str, Any], arrays: dict[str, Array]) -> bytes:
    """The bytes of a file; the same header and arrays always give the same bytes."""
    from safetensors.numpy import save  # text formats do without

    text = json.dumps(header, sort_keys=True, separators=(",", ":"), allow_nan=False)
    if len(json.dumps(text)) + 1000 * (len(arrays) + 1) > HEADER_LIMIT:
        raise ValueError(
            f"names, labels and parameters take {len(text)} bytes, and a model file has room for {HEADER_LIMIT}; "
            "del estimator.feature_names_in_ leaves the feature names out"
        )
    return bytes(save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, metadata={KEY: text}))


def unpack(file: BinaryIO, size: int) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the arrays of a file of ``size`` bytes; ValueError says what is wrong with it."""
    from safetensors import SafetensorError, deserialize  # text formats do without

    start = _read(file, 8, size)
    length = int.from_bytes(start, "little")
    if length > HEADER_LIMIT:
        raise ValueError(f"not a model file, or a damaged one: it announces a header of {length} bytes")
    text = _read(file, length, size - 8)
    table = parse_json(text, "the safetensors header")
    if not isinstance(table, dict):
        raise ValueError("the safetensors header is no JSON object")
    metadata = table.pop("__metadata__", None)
    if not isinstance(metadata, dict) or set(metadata) != {KEY} or not isinstance(metadata[KEY], str):
        raise ValueError(f"not a model file of this package: its __metadata__ should hold {KEY!r} and nothing else")
    header = parse_json(metadata[KEY], "the model header")
    if not isinstance(header, dict):
        raise ValueError("the model header is no JSON object")
    rest = size - 8 - length
    announced = sum(_extent(name, entry, size) for name, entry in table.items())
    if announced != rest:
        what = "truncated" if announced > rest else "damaged"
        raise ValueError(f"the file is {what}: its header announces {announced} bytes of arrays, and it has {rest}")
    try:
        found = deserialize(start + text + _read(file, rest, rest))  # type: ignore[no-untyped-call,unused-ignore]
    except SafetensorError as error:
        raise ValueError(f"not a valid safetensors file: {error}") from None
    return header, {name: _array(name, tensor) for name, tensor in found}


def parse_json(text: str | bytes, what: str) -> Any:
    """JSON without duplicate keys, NaN, infinities, or whole numbers beyond 64 bits."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in pairs:
            if name in found:
                raise ValueError(f"{what} has the key {name!r:.100} twice")
            found[name] = value
        return found

    def whole(digits: str) -> int:
        if len(digits) > 20 or not -(2**63) <= int(digits) < 2**64:
            raise ValueError(f"{what} has a number beyond 64 bits: {digits[:30]}")
        return int(digits)

    def real(digits: str) -> float:
        if not math.isfinite(value := float(digits)):
            raise ValueError(f"{what} has a number out of range: {digits[:30]}")
        return value

    def constant(name: str) -> None:
        raise ValueError(f"{what} has {name}, which is no number of JSON")

    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{what} is not UTF-8: {error}") from None
    try:
        return json.loads(text, object_pairs_hook=unique, parse_int=whole, parse_float=real, parse_constant=constant)
    except json.JSONDecodeError as error:
        raise ValueError(f"{what} is not JSON: {error}") from None
    except RecursionError:
        raise ValueError(f"{what} is nested too deeply") from None


def _read(file: BinaryIO, count: int, available: int) -> bytes:
    if count > available:
        raise ValueError(f"the file is truncated: {count} bytes should follow, and there are {max(available, 0)}")
    data = file.read(count)
    if len(data) < count:
        raise ValueError("the file is truncated: it became shorter while it was read")
    return data


def _extent(name: str, entry: object, size: int) -> int:
    """The bytes of one array by its table entry, which must make sense in a file of ``size`` bytes."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"the table entry of array {name!r} should have dtype, shape and data_offsets: {entry!r:.200}")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(f"array {name!r} has the type {dtype!r:.50}, which is none of {', '.join(DTYPES)}")
    for what, numbers, lengths in (("shape", shape, (1, 2)), ("data_offsets", offsets, (2,))):
        if not isinstance(numbers, list) or len(numbers) not in lengths or not all(_within(n, size) for n in numbers):
            raise ValueError(f"array {name!r} has a {what} that cannot be: {numbers!r:.100}")
    extent = math.prod(shape) * np.dtype(DTYPES[dtype]).itemsize
    if extent != offsets[1] - offsets[0]:
        raise ValueError(f"array {name!r} of shape {shape} needs {extent} bytes, but has {offsets[1] - offsets[0]}")
    return extent


def _within(number: object, size: int) -> bool:
    return type(number) is int and 0 <= number <= size


def _array(name: str, tensor: dict[str, Any]) -> Array:
    """A native, writable array of a tensor's bytes."""
    data = tensor["data"]
    if tensor["dtype"] == "BOOL" and (np.frombuffer(data, dtype=np.uint8) > 1).any():
        raise ValueError(f"array {name!r} has a boolean that is neither 0 nor 1")
    array = np.frombuffer(data, dtype=DTYPES[tensor["dtype"]]).reshape(tensor["shape"])
    return np.array(array, dtype=array.dtype.newbyteorder("="))
