"""The known word that a misspelt one may have been meant for."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """`` (did you mean 'x'?)`` for the known word nearest to ``word``; empty if none is near."""
    import difflib  # only needed when something is wrong already

    words = {name.lower(): name for name in known}
    near = difflib.get_close_matches(str(word).lower(), words, n=1)
    return f" (did you mean {words[near[0]]!r}?)" if near else ""
