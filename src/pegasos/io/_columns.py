"""Which columns of a table are features, which is the target, which the weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: Names that a target column may have without being pointed out.
TARGET_NAMES = ("y", "target", "label", "class")


@dataclass(frozen=True)
class Columns:
    """Positions of the columns, and all names."""

    names: list[str]
    features: list[int]
    target: int | None
    weight: int | None


def choose_columns(names: list[str], target: Any, weight: Any, source: str, *, named: bool = True) -> Columns:
    """Find target and weight by name or position; all others are features."""
    if isinstance(target, str) and target == "auto":
        found = [j for j, name in enumerate(names) if named and name.lower() in TARGET_NAMES]
        if len(found) != 1:
            what = "more than one column could be" if found else "no column is called"
            raise ValueError(
                f"{source}: which column is the target? {what} {', '.join(TARGET_NAMES)}; pass target=name, its "
                f"position, or None for no target. The columns: {_few(names)}"
            )
        target = found[0]
    t = _position(names, target, "target", source, named)
    w = _position(names, weight, "sample_weight", source, named)
    if t is not None and t == w:
        raise ValueError(f"{source}: target and sample_weight are the same column, {names[t]!r}")
    features = [j for j in range(len(names)) if j not in (t, w)]
    if not features:
        raise ValueError(f"{source}: no column is left for the features, of {_few(names)}")
    return Columns(names, features, t, w)


def _position(names: list[str], wanted: Any, parameter: str, source: str, named: bool) -> int | None:
    if wanted is None:
        return None
    if isinstance(wanted, str):
        if not named:
            raise ValueError(f"{source}: has no header, so {parameter}={wanted!r} must be a position")
        if names.count(wanted) != 1:
            raise ValueError(f"{source}: no column is called {parameter}={wanted!r}; there are {_few(names)}")
        return names.index(wanted)
    if isinstance(wanted, int) and not isinstance(wanted, bool):
        if -len(names) <= wanted < len(names):
            return wanted % len(names)
        raise ValueError(f"{source}: {parameter}={wanted} is no position among {len(names)} columns")
    raise TypeError(f"{parameter}={wanted!r:.40} must be a column's name or position, or None")


def _few(names: list[str]) -> str:
    return ", ".join(map(repr, names[:12])) + (" …" if len(names) > 12 else "")
