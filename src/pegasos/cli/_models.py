"""Model files of every format, by content when reading and by ending or name when writing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pegasos.cli import _startup
from pegasos.cli._exit import Failure

_ENDINGS = {".liblinear": "liblinear", ".libsvm": "libsvm", ".onnx": "onnx"}


def format_of(path: str, asked: str | None) -> str:
    """The format to write: what was asked for, or else what the ending says."""
    return asked or _ENDINGS.get(Path(path).suffix.lower(), "pegasos")


def kind_of(path: str) -> str | None:
    """The format of a model file by its first bytes, or None: it is none."""
    with open(path, "rb") as file:
        start = file.read(16)
    if start.startswith((b"solver_type ", b"solver_type\t")):
        return "liblinear"
    if start.startswith((b"svm_type ", b"svm_type\t")):
        return "libsvm"
    # A safetensors file begins with the length of its JSON header.
    if len(start) > 8 and start[8:9] == b"{" and int.from_bytes(start[:8], "little") < 2**40:
        return "pegasos"
    return None


def load(path: str) -> Any:
    """The estimator of a model file.

    Raises Failure or ValueError naming the file, or OSError.
    """
    if path == "-" or Path(path).is_dir():
        raise Failure(f"{path}: a model is a file; name one that pegasos train wrote")
    kind = kind_of(path)
    if kind is None:
        raise Failure(f"{path}: is no model of pegasos, LIBLINEAR or LIBSVM; pegasos train DATA -m MODEL writes one")
    _startup.import_sklearn()
    from pegasos import io

    readers = {"pegasos": io.load, "liblinear": io.read_liblinear, "libsvm": io.read_libsvm}
    return readers[kind](path)


def save(model: Any, path: str, form: str) -> None:
    """Write a model, whole or not at all."""
    from pegasos import io
    from pegasos._atomic import replace_file

    if form == "onnx":
        replace_file(path, io.to_onnx(model).SerializeToString())
    else:
        {"pegasos": io.save, "liblinear": io.write_liblinear, "libsvm": io.write_libsvm}[form](model, path)
