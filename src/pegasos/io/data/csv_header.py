"""Whether the first line of a CSV file names the columns or is a row."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from pegasos.io.data.columns import TARGET_NAMES

NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

#: Words that stand where a number is missing: they make a line neither a row nor a header.
MISSING = frozenset({"", "?", "-", "na", "n/a", "nan", "null", "none", "inf", "+inf", "-inf", "infinity", "-infinity"})


def is_number(field: str) -> bool:
    """Whether a field reads as a finite decimal number (one too large for float64 is found out when it is read)."""
    return NUMBER.fullmatch(field.strip()) is not None


def guess_header(
    first: Sequence[str], second: Sequence[str] | None, wanted: Collection[str], *, auto: bool
) -> bool | None:
    """Whether ``first`` is a header, seen beside the line below it; None where it could be either.

    Features are numbers, so a line without a number is a header, and so is a line with a word above a number. A line of
    numbers is a row, unless it counts 0, 1, 2 … as the columns of pandas do. Words above words leave it open whether
    the column is a text target from its first row on: it is, unless the line has a name that the target is looked for
    by (``auto``). ``wanted`` are names that must be in the header.
    """
    fields = [field.strip() for field in first]
    if any(name in fields for name in wanted):
        return True
    numbers = [field for field in fields if is_number(field)]
    words = [j for j, field in enumerate(fields) if not is_number(field) and field.lower() not in MISSING]
    if len(numbers) >= 3 and numbers in ([str(j + start) for j in range(len(numbers))] for start in (0, 1)):
        return True if words or fields[0] == "" else None
    if not numbers:
        return True
    if second is not None and any(is_number(field) for j, field in enumerate(second) if j in words):
        return True
    return None if auto and any(fields[j].lower() in TARGET_NAMES for j in words) else False
