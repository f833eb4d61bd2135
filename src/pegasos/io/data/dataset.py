"""Folders of plain ``.npy`` files and a small JSON: how a :class:`~pegasos.io.Dataset` lies on disk.

``dataset.json`` says what there is, and every count, dtype and shape in it is checked against the others, the headers
and the sizes of the files when the folder is opened::

    {"format": "pegasos dataset", "version": 1,
     "layout": "csr", "rows": 2, "columns": 5, "entries": 3,
     "arrays": {"values":  {"dtype": "<f4", "shape": [3]}, "indices": {"dtype": "<i4", "shape": [3]},
                "indptr":  {"dtype": "<i4", "shape": [3]}, "y":       {"dtype": "<f8", "shape": [2]}},
     "classes": null, "feature_names": null}

The layout "dense" has one array, ``X``. ``y`` and ``sample_weight`` may be missing. Where ``classes`` lists labels,
``y`` holds positions in that list.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from pegasos.io.data.npy import map_array
from pegasos.rows.dataset import Dataset, file_stamp, mapped_csr
from pegasos.util.arrays import DType, Matrix

META = "dataset.json"
FORMAT, VERSION = "pegasos dataset", 1
FIELDS = ("format", "version", "layout", "rows", "columns", "entries", "arrays", "classes", "feature_names")
#: The arrays of each layout, and the types they may have.
LAYOUTS: dict[str, dict[str, tuple[str, ...]]] = {
    "csr": {"values": ("<f4", "<f8"), "indices": ("<i4", "<i8"), "indptr": ("<i4", "<i8")},
    "dense": {"X": ("<f4", "<f8")},
}
OPTIONAL: dict[str, tuple[str, ...]] = {"y": ("<f8", "<i8", "<i4"), "sample_weight": ("<f8",)}
#: A JSON beyond this many bytes is not one of ours.
LARGEST_META = 1 << 28


def open_dataset(folder: str | os.PathLike[str]) -> Dataset:
    """Open a folder that :func:`convert` or :func:`write_dataset` wrote; no row is read yet.

    Every count, dtype and shape of its ``dataset.json`` is checked against the headers and sizes of the files. Values
    and column indices are checked by what uses them: every fit, prediction and score. No code of the files runs. The
    files must not be changed while they are open: what uses them then refuses them, and says so.

    Parameters
    ----------
    folder : str or path
        The folder.

    Returns
    -------
    Dataset
        Rows, targets and weights as read-only memory maps.

    Raises
    ------
    FileNotFoundError
        If there is no such folder, or a file of it is missing.
    ValueError
        If the folder is not what it says it is; names the file and the field.

    Examples
    --------
    >>> import tempfile
    >>> from pegasos import io
    >>> place = tempfile.TemporaryDirectory()
    >>> _ = io.write_dataset([[0.0, 1.0], [2.0, 3.0]], [-1, 1], place.name + "/small")
    >>> data = io.open_dataset(place.name + "/small")
    >>> data.shape, data.y.tolist()
    ((2, 2), [-1, 1])
    >>> del data
    >>> place.cleanup()
    """
    folder = Path(folder)
    meta = _Meta(folder / META)
    stamps = {f"{name}.npy": file_stamp(folder / f"{name}.npy") for name in meta.names()}
    arrays = {name: map_array(folder / f"{name}.npy", *meta.array(name)) for name in meta.names()}
    if meta.layout == "csr":
        ends = arrays["indptr"]
        if ends[0] != 0 or ends[-1] != meta.entries:
            raise ValueError(
                f"{folder / 'indptr.npy'}: runs from {ends[0]} to {ends[-1]}, not from 0 to {meta.entries}"
            )
        X: Matrix = mapped_csr(arrays["values"], arrays["indices"], ends, (meta.rows, meta.columns))
    else:
        X = arrays["X"]
    weight = arrays.get("sample_weight")
    return Dataset(X, arrays.get("y"), weight, meta.classes, meta.feature_names, folder, stamps)


class _Meta:
    """The checked contents of ``dataset.json``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fields = _read_json(path)
        if self.fields.get("format") != FORMAT:
            raise self.wrong("format", f"is not {FORMAT!r}")
        if self.fields.get("version") != VERSION:
            raise self.wrong("version", f"is {self.fields.get('version')!r}; this version of pegasos reads {VERSION}")
        for name in FIELDS:
            if name not in self.fields:
                raise self.wrong(name, "is missing")
        if unknown := sorted(set(self.fields) - set(FIELDS)):
            raise self.wrong(unknown[0], "is not known")
        self.layout = self.fields["layout"]
        if not isinstance(self.layout, str) or self.layout not in LAYOUTS:
            raise self.wrong("layout", f"is none of {', '.join(LAYOUTS)}: {self.layout!r}")
        self.rows, self.columns = self.count("rows", 1), self.count("columns", 1)
        self.entries = self.count("entries", 0)
        if self.layout == "dense" and self.entries != self.rows * self.columns:
            raise self.wrong("entries", f"is {self.entries}, not rows * columns = {self.rows * self.columns}")
        self.shapes: dict[str, tuple[int, ...]] = {
            "values": (self.entries,),
            "indices": (self.entries,),
            "indptr": (self.rows + 1,),
            "X": (self.rows, self.columns),
            "y": (self.rows,),
            "sample_weight": (self.rows,),
        }
        arrays = self.fields["arrays"]
        if not isinstance(arrays, dict):
            raise self.wrong("arrays", "is no object")
        if missing := sorted(set(LAYOUTS[self.layout]) - set(arrays)):
            raise self.wrong(f"arrays.{missing[0]}", "is missing")
        if unknown := sorted(set(arrays) - set(LAYOUTS[self.layout]) - set(OPTIONAL)):
            raise self.wrong(f"arrays.{unknown[0]}", f"does not belong to the layout {self.layout!r}")
        if self.layout == "csr" and self.array("indices")[0] != self.array("indptr")[0]:
            raise self.wrong("arrays.indptr.dtype", "differs from that of the indices")
        self.classes = self.strings("classes")
        self.feature_names = self.strings("feature_names")
        if self.feature_names is not None and len(self.feature_names) != self.columns:
            raise self.wrong("feature_names", f"has {len(self.feature_names)} names for {self.columns} columns")
        if self.classes is not None and ("y" not in arrays or self.array("y")[0] != np.dtype("<i4")):
            raise self.wrong("classes", "needs targets of type <i4, the labels' positions")
        if self.classes is None and "y" in arrays and self.array("y")[0] == np.dtype("<i4"):
            raise self.wrong("classes", "is null, but the targets are positions of labels")

    def wrong(self, field: str, what: str) -> ValueError:
        return ValueError(f"{self.path}: field {field!r} {what}")

    def count(self, name: str, low: int) -> int:
        value = self.fields[name]
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value < 2**62:
            raise self.wrong(name, f"must be a whole number >= {low}, not {value!r:.40}")
        return value

    def strings(self, name: str) -> tuple[str, ...] | None:
        value = self.fields[name]
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.wrong(name, "is neither null nor a list of strings")
        if len(set(value)) != len(value):
            raise self.wrong(name, "names something twice")
        return tuple(value)

    def names(self) -> list[str]:
        return list(self.fields["arrays"])

    def array(self, name: str) -> tuple[DType, tuple[int, ...]]:
        """The dtype and shape of an array, checked against the counts."""
        about = self.fields["arrays"][name]
        if not isinstance(about, dict) or set(about) != {"dtype", "shape"}:
            raise self.wrong(f"arrays.{name}", "must have a dtype and a shape, and nothing else")
        accepted = (LAYOUTS[self.layout] | OPTIONAL)[name]
        if about["dtype"] not in accepted:
            raise self.wrong(f"arrays.{name}.dtype", f"is none of {', '.join(accepted)}: {about['dtype']!r:.40}")
        shape = about["shape"]
        if shape != list(self.shapes[name]) or any(isinstance(length, bool) for length in shape):
            raise self.wrong(f"arrays.{name}.shape", f"must be {list(self.shapes[name])}, not {shape!r:.60}")
        return np.dtype(about["dtype"]), self.shapes[name]


def _read_json(path: Path) -> dict[str, Any]:
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent}: no such folder")
    if not path.is_file():
        raise FileNotFoundError(f"{path.parent}: not a dataset, it has no {META}; make one with pegasos.io.convert")
    if (size := path.stat().st_size) > LARGEST_META:
        raise ValueError(f"{path}: has {size} bytes, too many for a description")
    try:
        fields = json.loads(path.read_bytes().decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: is not valid JSON: {error}") from None
    if not isinstance(fields, dict):
        raise ValueError(f"{path}: is not a JSON object")
    return fields


def write_meta(
    folder: Path,
    layout: str,
    shape: tuple[int, int],
    arrays: dict[str, tuple[DType, tuple[int, ...]]],
    classes: list[str] | None,
    feature_names: list[str] | None,
) -> None:
    """Write ``dataset.json``, to the disk."""
    first = arrays["values"][1] if layout == "csr" else arrays["X"][1]
    fields = {
        "format": FORMAT,
        "version": VERSION,
        "layout": layout,
        "rows": shape[0],
        "columns": shape[1],
        "entries": int(np.prod(first, dtype=object)),
        "arrays": {name: {"dtype": dtype.str, "shape": list(size)} for name, (dtype, size) in arrays.items()},
        "classes": classes,
        "feature_names": feature_names,
    }
    with (folder / META).open("x", encoding="utf-8") as file:
        json.dump(fields, file, indent=1, ensure_ascii=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())


def is_dataset_folder(folder: Path) -> bool:
    """Whether a folder holds a dataset and nothing else, so that it may be replaced."""
    known = {META, *(f"{name}.npy" for arrays in (*LAYOUTS.values(), OPTIONAL) for name in arrays)}
    names = {path.name for path in folder.iterdir()}
    return not names or (META in names and names <= known)
