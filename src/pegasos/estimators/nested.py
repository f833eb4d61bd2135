"""Parameters of solvers and losses by name, ``solver__batch_size`` or ``loss__epsilon``, as scikit-learn writes them.

Solvers and losses are frozen: where a parameter of one is set, the estimator gets another object, made and checked by
``dataclasses.replace``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from pegasos.util.suggest import did_you_mean

#: The objects that a parameter can be, by the names that stand for them.
Table = Mapping[str, type[Any]]


def inner_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """``solver__batch_size`` and so on, of every parameter that is an object with fields.

    A name, such as ``solver="pegasos"``, has none: what it stands for is not a choice of the user's.
    """
    return {
        f"{name}__{field}": getattr(value, field) for name, value in parameters.items() for field in _field_names(value)
    }


def outer_parameters(
    given: Mapping[str, Any], current: Mapping[str, Any], tables: Mapping[str, Table]
) -> dict[str, Any]:
    """The parameters that ``given`` ones mean, where those with ``__`` in their names have gone into objects.

    What they go into is the object in ``given`` itself, if there is one, else that in ``current``; a name becomes the
    object that it stands for. ValueError says what is unknown or wrong.
    """
    outer: dict[str, Any] = {}
    inner: dict[str, dict[str, Any]] = {}
    for key, value in given.items():
        name, inside, field = key.partition("__")
        if inside and name in tables and name in current:
            inner.setdefault(name, {})[field] = value
        else:
            outer[key] = value
    for name, changes in inner.items():
        outer[name] = _replaced(name, outer.get(name, current[name]), changes, tables[name])
    return outer


def _replaced(name: str, value: Any, changes: dict[str, Any], table: Table) -> Any:
    """The object ``value``, or that of this name, with some of its fields changed."""
    what = repr(value)
    if isinstance(value, str) and value in table:
        value = table[value]()
    elif isinstance(value, str) or not _is_object(value):
        hint = did_you_mean(value, table) if isinstance(value, str) else ""
        asked = ", ".join(f"{name}__{field}" for field in changes)
        names = f" or one of {', '.join(table)}" if table else " that is a dataclass"
        raise ValueError(
            f"{asked}: {name}={what} has no parameters of its own{hint}; set {name} as well, to an object{names}"
        )
    known = _field_names(value)
    for field in changes:
        if field not in known:
            raise ValueError(f"{name}__{field}: {_unknown(name, field, what, known, table)}")
    return replace(value, **changes)


def _unknown(name: str, field: str, what: str, known: list[str], table: Table) -> str:
    """Why there is no such field, and what might have been meant."""
    has = f"it has {', '.join(known)}" if known else "it has none"
    owners = [repr(other) for other, kind in table.items() if field in _field_names(kind)]
    if owners:
        few = f"{', '.join(owners)} {'has' if len(owners) == 1 else 'have'} it: set {name} as well"
        return f"{name}={what} has no parameter {field!r}; {has}. {few}"
    everywhere: Iterable[str] = known or dict.fromkeys(f for kind in table.values() for f in _field_names(kind))
    return f"{name}={what} has no parameter {field!r}{did_you_mean(field, everywhere)}; {has}"


def _is_object(value: object) -> bool:
    return is_dataclass(value) and not isinstance(value, type)


def _field_names(value: object) -> list[str]:
    """The names of the fields of an object, or of a class; none of anything else."""
    return [field.name for field in fields(value) if field.init] if is_dataclass(value) else []
