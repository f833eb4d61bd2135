"""Parameters of estimators as plain data and back: numbers, text, lists, and objects out of fixed tables.

What type a parameter may have is read from its annotation, and so stated once. Whether its value makes sense is for the
estimator, solver or loss to say: they check as they are made.
"""

from __future__ import annotations

import json
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from pegasos.estimators.base import Estimator
from pegasos.estimators.nested import Table

#: Parameters that are no part of a model. A callback is code; a checkpoint is a file that the next fit would write, and
#: a model file must not choose which.
LEFT_OUT = frozenset({"callback", "checkpoint", "checkpoint_every"})


def fits(value: Any, hint: Any) -> bool:
    """Whether a plain value is what an annotation asks for."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return any(fits(value, option) for option in get_args(hint))
    if origin is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if origin is tuple:
        return isinstance(value, list) and all(fits(item, get_args(hint)[0]) for item in value)
    if hint is float:
        return type(value) in (int, float)
    if hint is bool:  # scikit-learn's users write 0 and 1 too
        return type(value) is bool or (type(value) is int and value in (0, 1))
    return type(value) is hint


def plain(value: Any) -> Any:
    """NumPy's scalars as Python's, tuples as lists; anything else as it is."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def encode_parameters(estimator: Any) -> dict[str, Any]:
    """The parameters of an estimator as plain data, but for those left out."""
    found: dict[str, Any] = {}
    table = estimator._objects
    for name, value in estimator.get_params(deep=False).items():
        if name in LEFT_OUT:
            continue
        if name == "kernel" and callable(value):
            raise ValueError(
                f"parameter kernel={value!r:.100} is code, which a model file does not hold; fit with a kernel's name "
                "or kernel='precomputed', or keep the model as a pickle of your own"
            )
        if name in table and not isinstance(value, str):
            found[name] = _encode_object(name, value, table[name])
        elif name == "class_weight" and isinstance(value, dict):
            found[name] = [[plain(label), plain(weight)] for label, weight in value.items()]
        elif name == "random_state" and isinstance(value, np.random.RandomState | np.random.Generator):
            found[name] = None  # where a generator had got to is no part of a model
        else:
            found[name] = plain(value)
        try:
            json.dumps(found[name], allow_nan=False)
        except (TypeError, ValueError):
            raise ValueError(f"parameter {name}={value!r:.100} is no plain data and cannot be saved") from None
    return found


def decode_parameters(kind: type[Estimator], found: Any) -> dict[str, Any]:
    """The keyword arguments that plain data mean for an estimator class; absent ones keep their defaults."""
    if not isinstance(found, dict):
        raise ValueError(f"parameters should be an object, not {found!r:.100}")
    hints = {name: hint for name, hint in get_type_hints(kind.__init__).items() if name not in LEFT_OUT}
    hints |= {"random_state": int | None} if "random_state" in hints else {}
    result, table = {}, kind._objects
    for name, value in found.items():
        if name not in hints or name == "return":
            raise ValueError(
                f"{kind.__name__} has no parameter {name!r:.100}; if a later version wrote the file, upgrade pegasos"
            )
        if name in table:
            result[name] = value if isinstance(value, str) else _decode_object(name, value, table[name])
        elif name == "class_weight":
            result[name] = _class_weight(value)
        elif fits(value, hints[name]):
            result[name] = value
        else:
            raise ValueError(f"parameter {name}={value!r:.100} is not of the type {_readable(hints[name])}")
    return result


def _encode_object(name: str, value: Any, table: Table) -> dict[str, Any]:
    """A loss or solver by its name in the table, and its fields."""
    key = getattr(value, "name", None)
    if not isinstance(key, str) or type(value) is not table.get(key):
        raise ValueError(f"{name}={value!r:.100} is none of the package's own ({', '.join(table)}) and cannot be saved")
    return {"name": key} | {field.name: plain(getattr(value, field.name)) for field in fields(value)}


def _decode_object(name: str, found: Any, table: Table) -> Any:
    if not isinstance(found, dict) or not isinstance(key := found.get("name"), str) or key not in table:
        raise ValueError(f"parameter {name}={found!r:.200} names none of {', '.join(table)}")
    kind = table[key]
    values = {field: value for field, value in found.items() if field != "name"}
    hints = get_type_hints(kind)
    known = {field.name for field in fields(kind)}
    for field, value in values.items():
        if field not in known:
            raise ValueError(f"{kind.__name__} has no parameter {field!r:.100}; upgrade pegasos if a later version has")
        if not fits(value, hints[field]):
            raise ValueError(f"{kind.__name__}: {field}={value!r:.100} is not of the type {_readable(hints[field])}")
    return kind(**values)


def _class_weight(found: Any) -> Any:
    if found is None or found == "balanced":
        return found
    if not isinstance(found, list):
        raise ValueError(
            f"parameter class_weight={found!r:.100} should be None, 'balanced' or pairs of label and weight"
        )
    weights: dict[Any, float] = {}
    for pair in found:
        if not isinstance(pair, list) or len(pair) != 2 or not fits(pair[0], bool | int | float | str):
            raise ValueError(f"class_weight has {pair!r:.100} in place of a label and its weight")
        label, weight = pair
        if not fits(weight, float) or weight < 0 or label in weights:
            raise ValueError(f"class_weight has {pair!r:.100}: a label comes once, with a number >= 0")
        weights[label] = weight
    return weights


def _readable(hint: Any) -> str:
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(map(_readable, get_args(hint)))
    if hint is NoneType:
        return "None"
    return hint.__name__ if isinstance(hint, type) else str(hint).removeprefix("typing.")
