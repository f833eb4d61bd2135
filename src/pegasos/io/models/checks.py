"""Checks of what a model file says: numbers of its header, and arrays of a given type and shape."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from pegasos.io.models.plain import fits
from pegasos.rows.views import Array


@dataclass(frozen=True)
class Rule:
    """What an array must be. A name in the shape stands for a size: the same wherever it comes."""

    shape: tuple[str | int, ...]
    dtype: str = "float64"
    optional: bool = False


def check_names(
    what: str, found: Any, needed: Collection[str], possible: Collection[str] = (), *, others: bool = False
) -> None:
    """Refuse what is no table, lacks a name that is needed, or has one that is unknown, unless ``others`` may be there.

    What was added after a release, and has a default, is ``possible``: files that were written before lack it.
    """
    if not isinstance(found, dict):
        raise ValueError(f"{what} should have {', '.join((*needed, *possible))}")
    if missing := [name for name in needed if name not in found]:
        raise ValueError(f"{what} should have {', '.join(needed)}, but lacks {', '.join(missing)}")
    unknown = [str(name) for name in found if name not in needed and name not in possible]
    if unknown and not others:
        known = ", ".join((*needed, *possible))
        raise ValueError(
            f"{what} should have {known} and nothing else, but has {', '.join(unknown):.100}; upgrade pegasos if a "
            "later version wrote it"
        )


def as_array(value: Any, rule: Rule, name: str) -> Array:
    """An attribute as the array that a file is to hold."""
    try:
        return np.ascontiguousarray(value, dtype=rule.dtype)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is no {rule.dtype} array but {type(value).__name__}; set it to one first") from None


def whole(table: dict[str, Any], name: str, *, low: int) -> int:
    """A whole number of a table."""
    value = table.get(name)
    if type(value) is not int or not low <= value < 2**53:
        raise ValueError(f"{name}={value!r:.100} should be a whole number >= {low}")
    return value


def real(table: dict[str, Any], name: str) -> float:
    """A number >= 0 of a table."""
    value: Any = table.get(name)
    if not fits(value, float) or value < 0:
        raise ValueError(f"{name}={value!r:.100} should be a number >= 0")
    return float(value)


def checked_array(name: str, array: Array | None, rule: Rule, sizes: dict[str, int]) -> Array:
    """An array of a file, once it is known to be what the rule asks for; sizes that are new are remembered."""
    if array is None:
        raise ValueError(f"the array {name} is missing")
    if array.dtype != rule.dtype:
        raise ValueError(f"{name} is {array.dtype}, but should be {rule.dtype}")
    expected = tuple(
        side if isinstance(side, int) else sizes.setdefault(side, found)
        for side, found in zip(rule.shape, array.shape, strict=False)
    )
    if array.shape != expected or array.ndim != len(rule.shape):
        wanted = ", ".join(f"{side}={sizes[side]}" if side in sizes else str(side) for side in rule.shape)
        raise ValueError(f"{name} has shape {array.shape}, but should have ({wanted})")
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):
            square = float(np.vdot(array, array))
        # ‖w‖² < ∞ also bounds |⟨w, x⟩| ≤ ‖w‖‖x‖ for every row x that a fit would accept.
        if not np.isfinite(square):
            raise ValueError(f"{name} has values that are not finite, or so large that their squares overflow")
    return array
