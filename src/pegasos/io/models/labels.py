"""Class labels in model files: numbers are an array of their own type, texts go into the JSON header.

The labels of taggers are a list, of any types that JSON has, and go into the header in their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pegasos.io.models.container import DTYPES
from pegasos.io.models.plain import Label, fits
from pegasos.rows.views import Array

#: NumPy pads all texts of an array to the longest: this bounds what a short file can make of that.
TEXT_LIMIT = 64 * 2**20


def encode_labels(classes: Any) -> Array | dict[str, Any]:
    """Class labels as an array, or as plain data."""
    classes = np.asarray(classes)
    texts = classes.tolist()
    if classes.dtype.kind in "UO" and classes.ndim == 1 and all(isinstance(text, str) for text in texts):
        return {"dtype": "object" if classes.dtype.kind == "O" else "str", "values": [str(text) for text in texts]}
    native: Array = classes.astype(classes.dtype.newbyteorder("="))
    if not any(native.dtype == np.dtype(dtype) for dtype in DTYPES.values()):
        raise ValueError(f"classes_ of type {classes.dtype} cannot be saved; use texts or numbers of at most 64 bits")
    return native


def decode_labels(found: Any) -> Array:
    """Text labels out of plain data."""
    if not isinstance(found, dict) or set(found) != {"dtype", "values"} or found["dtype"] not in ("str", "object"):
        raise ValueError("classes should have dtype 'str' or 'object' and values, and nothing else")
    texts = found["values"]
    if not fits(texts, tuple[str, ...]) or not texts:
        raise ValueError("classes should have texts as values")
    if found["dtype"] == "object":
        classes = np.empty(len(texts), dtype=object)
        classes[:] = texts
        return classes
    if 4 * len(texts) * max(map(len, texts)) > TEXT_LIMIT:
        raise ValueError(f"classes are too many and too long: padded to the longest they exceed {TEXT_LIMIT} bytes")
    return np.array(texts, dtype=np.str_)


def check_labels(classes: Array | None) -> Array:
    """Refuse labels that are not two or more, finite, and increasing."""
    if classes is None:
        raise ValueError("the array classes_ is missing, and so are text labels")
    if classes.ndim != 1 or len(classes) < 2:
        raise ValueError(f"classes_ has shape {classes.shape}, but should list two labels or more")
    if classes.dtype.kind == "f" and not np.isfinite(classes).all():
        raise ValueError("classes_ has labels that are not finite")
    if not bool(np.all(classes[:-1] < classes[1:])):
        raise ValueError("classes_ should be in increasing order, each label once")
    return classes


def encode_list(classes: Sequence[Any]) -> dict[str, Any]:
    """The labels of a tagger as plain data; those of other types than texts, numbers and booleans are refused."""
    labels = [label.item() if isinstance(label, np.generic) else label for label in classes]
    for label in labels:
        if not fits(label, Label) or label in (np.inf, -np.inf):
            raise ValueError(
                f"the label {label!r:.100} of type {type(label).__name__} cannot be saved; a model file holds texts, "
                "finite numbers and booleans"
            )
    return {"dtype": "list", "values": labels}


def decode_list(found: Any) -> list[Label]:
    """The labels of a tagger out of plain data: one or more, each once."""
    if not isinstance(found, dict) or set(found) != {"dtype", "values"} or found["dtype"] != "list":
        raise ValueError("classes should have dtype 'list' and values, and nothing else")
    labels: list[Label] = found["values"]
    if not fits(labels, tuple[Label, ...]) or not labels:
        raise ValueError("classes should have texts, numbers or booleans as values")
    if len(set(labels)) < len(labels):
        raise ValueError("classes should have each label once")
    return labels
