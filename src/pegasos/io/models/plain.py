"""Parameters of estimators as plain data and back: numbers, text, lists, and objects out of fixed tables.

What type a parameter may have is read from its annotation, and so stated once. Whether its value makes sense is for the
estimator, solver or loss to say: they check as they are made.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Set
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

import numpy as np

from pegasos.estimators.base import Estimator
from pegasos.estimators.nested import Table

#: What a label can be in a model file.
Label: TypeAlias = bool | int | float | str

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
        elif name in _OF_LABELS:
            found[name] = _OF_LABELS[name][0](value)
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
        elif name in _OF_LABELS:
            result[name] = _OF_LABELS[name][1](value)
        elif fits(value, hints[name]):
            result[name] = value
        else:
            raise ValueError(f"parameter {name}={value!r:.100} is not of the type {_readable(hints[name])}")
    return result


def _encode_object(name: str, value: Any, table: Table) -> dict[str, Any]:
    """A loss or solver by its name in the table, and its fields."""
    if getattr(value, "own", False):
        raise ValueError(
            f"parameter {name}={value!r:.100} is code, which a model file does not hold; keep coef_ and intercept_, or "
            "the model as a pickle of your own"
        )
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


# --- parameters that have labels in them -----------------------------------------------------------------------------


def _encode_class_weight(value: Any) -> Any:
    if isinstance(value, Mapping):
        return [[plain(label), plain(weight)] for label, weight in value.items()]
    return plain(value)


def _class_weight(found: Any) -> Any:
    if found is None or found == "balanced":
        return found
    if not isinstance(found, list):
        raise ValueError(
            f"parameter class_weight={found!r:.100} should be None, 'balanced' or pairs of label and weight"
        )
    weights: dict[Any, float] = {}
    for pair in found:
        if not isinstance(pair, list) or len(pair) != 2 or not fits(pair[0], Label):
            raise ValueError(f"class_weight has {pair!r:.100} in place of a label and its weight")
        label, weight = pair
        if not fits(weight, float) or weight < 0 or label in weights:
            raise ValueError(f"class_weight has {pair!r:.100}: a label comes once, with a number >= 0")
        weights[label] = weight
    return weights


def _encode_cost(value: Any) -> Any:
    """Costs of pairs as triples; a table as its rows."""
    if isinstance(value, Mapping):
        if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in value):
            raise ValueError(f"parameter cost={value!r:.100} should have pairs (label, other label)")
        return {"pairs": [[plain(a), plain(b), plain(price)] for (a, b), price in value.items()]}
    return value.tolist() if isinstance(value, np.ndarray) else plain(value)


def _cost(found: Any) -> Any:
    if found is None:
        return None
    if isinstance(found, dict) and set(found) == {"pairs"} and isinstance(found["pairs"], list):
        costs: dict[tuple[Any, Any], float] = {}
        for entry in found["pairs"]:
            if not isinstance(entry, list) or len(entry) != 3 or not all(fits(label, Label) for label in entry[:2]):
                raise ValueError(f"cost has {entry!r:.100} in place of two labels and a number")
            a, b, price = entry
            if not fits(price, float) or price < 0 or (a, b) in costs:
                raise ValueError(f"cost has {entry!r:.100}: a pair of labels comes once, with a number >= 0")
            costs[a, b] = price
        return costs
    if not fits(found, tuple[tuple[float, ...], ...]) or any(len(row) != len(found) for row in found):
        raise ValueError(f"parameter cost={found!r:.100} should be None, a square table of numbers, or pairs of labels")
    if any(price < 0 for row in found for price in row):
        raise ValueError("parameter cost has numbers below 0")
    return np.array(found, dtype=np.float64).reshape(len(found), len(found))


def _encode_grammar(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return plain(value)
    if not isinstance(value, Collection):
        raise ValueError(f"parameter grammar={value!r:.100} can be read only once, and so cannot be saved; use a list")
    pairs = sorted(value, key=repr) if isinstance(value, Set) else value  # sets have another order in each process
    return [plain(pair) for pair in pairs]


def _grammar(found: Any) -> Any:
    if found is None or isinstance(found, str):
        return found
    if not isinstance(found, list):
        raise ValueError(f"parameter grammar={found!r:.100} should be None, a name or pairs of labels")
    for pair in found:
        if not isinstance(pair, list) or len(pair) != 2 or not all(fits(label, Label | None) for label in pair):
            raise ValueError(f"grammar has {pair!r:.100} in place of a pair of labels")
    return [tuple(pair) for pair in found]


#: Parameters that JSON has no form for: how they are written and read.
_OF_LABELS = {
    "class_weight": (_encode_class_weight, _class_weight),
    "cost": (_encode_cost, _cost),
    "grammar": (_encode_grammar, _grammar),
}


def _readable(hint: Any) -> str:
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(map(_readable, get_args(hint)))
    if hint is NoneType:
        return "None"
    return hint.__name__ if isinstance(hint, type) else str(hint).removeprefix("typing.")
