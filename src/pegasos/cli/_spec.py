"""Solvers and losses as the command line writes them: ``pegasos:batch_size=64,projection=true``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from pegasos.util.suggest import did_you_mean

_WORDS: dict[str, Any] = {"true": True, "false": False, "none": None}


def parse(text: str, table: Mapping[str, type], what: str) -> Any:
    """The object of ``table`` that a text describes.

    Raises ValueError naming what is unknown or out of range.
    """
    name, colon, rest = text.partition(":")
    if name not in table:
        raise ValueError(f"{what} {name!r} is unknown{did_you_mean(name, table)}; it can be {', '.join(table)}")
    kind = table[name]
    known = [field.name for field in dataclasses.fields(kind)]
    values: dict[str, Any] = {}
    for item in rest.split(",") if colon else ():
        key, equals, value = item.partition("=")
        if not equals:
            raise ValueError(f"{what} {text!r}: {item!r} must be written {name}:parameter=value")
        if key not in known:
            accepted = f"it has {', '.join(known)}" if known else "it has none"
            raise ValueError(f"{what} {name!r} has no parameter {key!r}{did_you_mean(key, known)}; {accepted}")
        if key in values:
            raise ValueError(f"{what} {text!r} gives {key!r} twice")
        values[key] = _value(value)
    return kind(**values)


def _value(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
