"""Model files of every format, by content when reading and by ending or name when writing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pegasos.cli import _startup
from pegasos.cli._exit import Failure
from pegasos.util.devices import open_special
from pegasos.util.suggest import did_you_mean

if TYPE_CHECKING:
    from pegasos.estimators.linear import LinearSVC, LinearSVR
    from pegasos.estimators.sequence import SequenceSVC
    from pegasos.estimators.svc import SVC
    from pegasos.estimators.svr import SVR
    from pegasos.util.arrays import Array

#: An estimator of rows.
AnyModel: TypeAlias = "LinearSVC | LinearSVR | SVC | SVR"
#: An estimator that model files hold.
SavedModel: TypeAlias = "AnyModel | SequenceSVC"

_ENDINGS = {
    ".model": "pegasos",
    ".safetensors": "pegasos",
    ".liblinear": "liblinear",
    ".libsvm": "libsvm",
    ".onnx": "onnx",
}


def format_of(path: str, asked: str | None) -> str:
    """The format to write: what was asked for, or else what the ending says; a name without ending is ours.

    Raises Failure for an ending that promises something else. A number behind a dot is no ending but a version.
    """
    ending = Path(path).suffix.lower()
    if asked is not None:
        return asked
    if not ending or ending[1:].isdigit():
        return "pegasos"
    if ending not in _ENDINGS:
        raise Failure(
            f"{path}: no format of models has the ending {ending}{did_you_mean(ending, _ENDINGS)}; there are "
            f"{', '.join(f'{end} ({form})' for end, form in _ENDINGS.items())}. Choose one of them, or give the "
            "format with --format"
        )
    return _ENDINGS[ending]


def check_classes(form: str, y: Array, *, kernel: bool) -> None:
    """Refuse labels that a format cannot hold before a model of them is trained; ValueError."""
    if form not in ("liblinear", "libsvm"):
        return
    import numpy as np

    from pegasos.io.models.text import whole_labels

    classes = np.unique(y)
    whole_labels(classes, f"{form} model")
    if form == "libsvm" and len(classes) > 2 and not kernel:
        raise ValueError(
            f"a libsvm model of {len(classes)} classes compares them in pairs, which linear machines do not; use "
            "--format liblinear or pegasos"
        )


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


def load(path: str) -> SavedModel:
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

    model: SavedModel = {"pegasos": io.load, "liblinear": io.read_liblinear, "libsvm": io.read_libsvm}[kind](path)
    return model


def save(model: SavedModel, path: str, form: str, dtype: str | None = None) -> None:
    """Write a model: a file whole or not at all, to a device or a pipe as it is. ``dtype``: of numbers in ONNX."""
    special = open_special(path)
    if special is None:
        _save_file(model, path, form, dtype)
        return
    from tempfile import TemporaryDirectory

    with special, TemporaryDirectory() as folder:
        whole = Path(folder) / "model"
        _save_file(model, str(whole), form, dtype)
        special.write(whole.read_bytes())


def _save_file(model: SavedModel, path: str, form: str, dtype: str | None) -> None:
    from pegasos import io
    from pegasos.util.atomic import replace_file

    if form == "onnx":
        replace_file(path, io.to_onnx(model, dtype=dtype or "float32").SerializeToString())
    else:
        {"pegasos": io.save, "liblinear": io.write_liblinear, "libsvm": io.write_libsvm}[form](model, path)
