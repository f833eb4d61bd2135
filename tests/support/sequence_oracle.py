"""A slow, obvious encoder of sequences: the judge of the fast one. Nothing here comes from the package."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field


def text(name):
    return name.decode() if isinstance(name, bytes) else str(name)


def attributes(token):
    """Names and values of a token, in order."""
    if isinstance(token, str | bytes):
        return [(text(token), 1.0)]
    if isinstance(token, set | frozenset):
        return [(name, 1.0) for name in sorted(map(text, token))]
    if not isinstance(token, Mapping):
        return [(text(name), 1.0) for name in token]
    found = []
    for key, value in token.items():
        if isinstance(value, str | bytes):
            found.append((f"{text(key)}:{text(value)}", 1.0))
        elif isinstance(value, Mapping | list | tuple | set | frozenset):
            found += [(f"{text(key)}:{name}", x) for name, x in attributes(value)]
        elif value != 0:
            found.append((text(key), float(value)))
    return found


@dataclass
class Encoded:
    """What the arrays should hold."""

    names: list
    offsets: list = field(default_factory=lambda: [0])
    indptr: list = field(default_factory=lambda: [0])
    ids: list = field(default_factory=list)
    values: list = field(default_factory=list)


def encode(X, names=None, min_freq=0):
    """Encode sequences of tokens, which are lists here; ``names`` None: learn them."""
    read = [[attributes(token) for token in sequence] for sequence in X]
    if names is None:
        counts = Counter(name for sequence in read for token in sequence for name in {name for name, _ in token})
        used = (name for sequence in read for token in sequence for name, _ in token)
        names = [name for name in dict.fromkeys(used) if counts[name] >= min_freq]
    number = {name: k for k, name in enumerate(names)}
    out = Encoded(names)
    for sequence in read:
        for token in sequence:
            for name, value in token:
                if name in number:
                    out.ids.append(number[name])
                    out.values.append(value)
            out.indptr.append(len(out.ids))
        out.offsets.append(len(out.indptr) - 1)
    return out
