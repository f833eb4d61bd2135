"""Labels as text files and people write them."""

from __future__ import annotations


def label_text(label: object) -> str:
    """A label as LIBLINEAR prints it: whole numbers without ``.0``, other numbers so that they read back exactly."""
    if hasattr(label, "item"):
        label = label.item()
    if isinstance(label, float) and label.is_integer() and abs(label) < 2**53:
        return str(int(label))
    return repr(label) if isinstance(label, float) else str(label)


def label_from_text(text: str) -> int | float | str:
    """The label that a text names: a whole number, a number, or the text itself."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
