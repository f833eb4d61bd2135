"""Solvers and losses as the command line writes them: ``pegasos:batch_size=64,projection=true``."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TypeVar

from pegasos.cli._labels import label_from_text
from pegasos.util.suggest import did_you_mean

Found = TypeVar("Found")
_WORDS = {"true": True, "false": False, "none": None}


def parse(text: str, table: Mapping[str, type[Found]], what: str) -> Found:
    """The object of ``table`` that a text describes.

    Raises ValueError naming what is unknown or out of range.
    """
    name, colon, rest = text.partition(":")
    if name not in table:
        raise ValueError(f"{what} {name!r} is unknown{did_you_mean(name, table)}; it can be {', '.join(table)}")
    kind = table[name]
    known = list(inspect.signature(kind).parameters)
    values: dict[str, object] = {}
    for item in rest.split(",") if colon else ():
        key, equals, value = item.partition("=")
        if not equals:
            raise ValueError(f"{what} {text!r}: {item!r} must be written {name}:parameter=value")
        if key not in known:
            accepted = f"it has {', '.join(known)}" if known else "it has none"
            raise ValueError(f"{what} {name!r} has no parameter {key!r}{did_you_mean(key, known)}; {accepted}")
        if key in values:
            raise ValueError(f"{what} {text!r} gives {key!r} twice")
        values[key] = _WORDS[value.lower()] if value.lower() in _WORDS else label_from_text(value)
    return kind(**values)
