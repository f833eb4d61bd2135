"""HTML and SVG from Python values. Text and attributes are always escaped: only what :func:`tag` made is markup."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Sequence
from typing import TypeAlias

_VOID = frozenset({"meta", "br", "hr", "col"})


class Markup(str):
    """Finished markup."""

    __slots__ = ()


Child: TypeAlias = "str | int | Sequence[Child] | None"


def text(value: object) -> Markup:
    """Escaped text; characters that show nothing or turn the writing direction become U+FFFD."""
    shown = (
        "\ufffd" if unicodedata.category(c) in ("Cc", "Cs", "Cf") and c not in "\n\t\u200d" else c for c in str(value)
    )
    return Markup(html.escape("".join(shown), quote=True))


def tag(name: str, /, *children: Child, **attributes: object) -> Markup:
    """An element. ``class_`` is class, ``aria_label`` is aria-label; attributes that are None or False are left out."""
    parts = [f"<{name}"]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        parts.append(f" {key}" if value is True else f' {key}="{text(value)}"')
    if name in _VOID:
        return Markup("".join(parts) + ">")
    return Markup("".join(parts) + ">" + join(*children) + f"</{name}>")


def join(*children: Child) -> Markup:
    """Children one after the other; None is nothing, lists are flattened."""
    return Markup("".join(map(_made, children)))


def _made(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, str | int):
        return child if isinstance(child, Markup) else text(child)
    return join(*child)
