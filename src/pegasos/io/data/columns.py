"""Which columns of a table are features, which is the target, which the weight, and which only number the rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from pegasos.util.suggest import did_you_mean

#: Names that a target column may have without being pointed out.
TARGET_NAMES = ("y", "target", "label", "class")

#: What pandas (and R) call the numbers or names of rows that were written along: nothing, or nearly so.
_NAMELESS = re.compile(r"|Unnamed: \d\S*")
_PARQUET_INDEX = re.compile(r"__index_level_\d+__")


@dataclass(frozen=True)
class Word:
    """A column as the command line points it out: by its name, or else by its position counted from 1 (−1: the last).

    In Python the type tells names and positions apart; a word cannot.
    """

    text: str

    @property
    def number(self) -> int | None:
        """The word as a whole number, if it is one."""
        return int(self.text) if re.fullmatch(r"-?[0-9]{1,18}", self.text) else None


#: How a column is pointed out: by name, by position from 0, as a word of the command line, or not at all.
Wanted: TypeAlias = str | int | Word | None


@dataclass(frozen=True)
class Columns:
    """Positions of the columns, all names, and what should be said about the choice."""

    names: list[str]
    features: list[int]
    target: int | None
    weight: int | None
    left_out: list[int]
    guesses: list[str]


def choose_columns(names: list[str], target: Wanted, weight: Wanted, source: str, *, named: bool = True) -> Columns:
    """Find target and weight by name or position; all others are features, but for those that only number the rows."""
    guesses: list[str] = []
    t = _find_target(names, source, named) if is_auto(target) else _position(names, target, "target", source, named)
    w = _position(names, weight, "sample_weight", source, named)
    if t is not None and t == w:
        raise ValueError(f"{source}: target and sample_weight are the same column, {names[t]!r}")
    for what, wanted, j in (("target", target, t), ("weight", weight, w)):
        if j is not None and (is_auto(wanted) or (isinstance(wanted, Word) and wanted.number is not None)):
            guesses.append(f"the {what} is column {j + 1}{f', {names[j]!r}' if named else ''}")
    left_out = [j for j in _row_numbers(names) if j not in (t, w)] if named else []
    features = [j for j in range(len(names)) if j not in (t, w, *left_out)]
    if not features:
        raise ValueError(f"{source}: no column is left for the features, of {_few(names)}")
    if named and (nameless := [j for j in (*features, t, w) if j is not None and not names[j]]):
        raise ValueError(f"{source}: column {nameless[0] + 1} has no name; name it in the header, or remove it")
    return Columns(names, features, t, w, left_out, guesses)


def is_auto(wanted: object) -> bool:
    """Whether a target is to be found by its name."""
    return isinstance(wanted, str) and wanted == "auto"


def wanted_name(wanted: Wanted) -> str | None:
    """The name that points out a column, where it can be nothing but a name."""
    if isinstance(wanted, Word):
        return wanted.text if wanted.number is None else None
    return wanted if isinstance(wanted, str) and not is_auto(wanted) else None


def _find_target(names: list[str], source: str, named: bool) -> int:
    found = [j for j, name in enumerate(names) if named and name.lower() in TARGET_NAMES]
    if len(found) != 1:
        none = "no column is called" if named else "the first line is taken for a row, so no column is called"
        what = "more than one column could be" if found else none
        raise ValueError(
            f"{source}: which column is the target? {what} {', '.join(TARGET_NAMES)}; pass target='name' or its "
            f"position, or target=None if there is none. The columns: {_few(names)}"
        )
    return found[0]


def _row_numbers(names: list[str]) -> list[int]:
    """Columns in front without a name, and those that Parquet files of pandas keep the index in."""
    front = next((j for j, name in enumerate(names) if not _NAMELESS.fullmatch(name)), len(names))
    return [*range(front), *(j for j, name in enumerate(names) if _PARQUET_INDEX.fullmatch(name))]


def _position(names: list[str], wanted: Wanted, parameter: str, source: str, named: bool) -> int | None:
    if wanted is None:
        return None
    if isinstance(wanted, Word):
        if named and names.count(wanted.text) == 1:
            return names.index(wanted.text)
        number = wanted.number
        if number is None:
            return _position(names, wanted.text, parameter, source, named)
        if number and abs(number) <= len(names):
            return number - 1 if number > 0 else number + len(names)
        raise ValueError(
            f"{source}: {parameter}={wanted.text} is neither the name of a column nor a position among "
            f"{len(names)}, counted from 1"
        )
    if isinstance(wanted, str):
        if not named:
            raise ValueError(
                f"{source}: no column is called {parameter}={wanted!r}: the file has no header. Give the column's "
                "position; if the first line names the columns, pass header=True"
            )
        if names.count(wanted) != 1:
            raise ValueError(
                f"{source}: no column is called {parameter}={wanted!r}{did_you_mean(wanted, names)}; "
                f"there are {_few(names)}"
            )
        return names.index(wanted)
    if isinstance(wanted, int) and not isinstance(wanted, bool):
        if -len(names) <= wanted < len(names):
            return wanted % len(names)
        raise ValueError(f"{source}: {parameter}={wanted} is no position among {len(names)} columns")
    raise TypeError(f"{parameter}={wanted!r:.40} must be a column's name or position, or None")


def _few(names: list[str]) -> str:
    return ", ".join(map(repr, names[:12])) + (" …" if len(names) > 12 else "")
