"""A slow, obvious reader of svmlight text: the judge of the fast one. Nothing here comes from the package."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
WORD = re.compile(rb"[^ \t\r]+|\r")


class Refused(Exception):
    """The text is not in order at this line and column, both from 1."""

    def __init__(self, line, column):
        super().__init__(line, column)
        self.place = line, column


@dataclass
class Table:
    """Rows as lists."""

    labels: list = field(default_factory=list)
    queries: list = field(default_factory=list)
    rows: list = field(default_factory=list)

    @property
    def columns(self):
        return max((row[-1][0] + 1 for row in self.rows if row), default=0)


def number(text, dtype):
    """The float nearest to a decimal, ties to even; None if it is none, an infinity if it is too large."""
    if not NUMBER.fullmatch(text):
        return None
    near = float(text)
    if dtype == np.float64 or near == 0 or abs(near) > 1e300 or abs(near) < 1e-300:
        with np.errstate(over="ignore"):
            return dtype(near)
    exact = Fraction(text.decode())
    limit = Fraction(2) ** 128 - Fraction(2) ** 103  # half a unit above the largest float32
    if abs(exact) >= limit:
        return np.float32(np.copysign(np.inf, near))
    with np.errstate(over="ignore"):
        guess = np.float32(near)
    if not np.isfinite(guess):
        guess = np.finfo(np.float32).max * np.float32(np.sign(near))
    with np.errstate(over="ignore"):
        options = [guess, *(np.nextafter(guess, np.float32(s * np.inf)) for s in (-1, 1))]
    options = [o for o in options if np.isfinite(o)]
    return min(options, key=lambda o: (abs(Fraction(float(o)) - exact), int(o.view(np.uint32)) & 1))


def read(text, *, zero_based=False, n_features=None, query_id=False, dtype=np.float64, widest=2**63 - 2):
    """Parse, or raise Refused where the first offence is."""
    table = Table()
    for n, line in enumerate(text.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        content, hash_, comment = line.partition(b"#")
        if not hash_ and content.endswith(b"\r"):
            content = content[:-1]
        words = [(m.start() + 1, m.group()) for m in WORD.finditer(content)]
        returns = [k for k, (_, word) in enumerate(words) if word == b"\r"]
        row(table, n, words[: returns[0]] if returns else words, zero_based, n_features, query_id, dtype, widest)
        if returns:
            raise Refused(n, words[returns[0]][0])
        if b"\0" in comment:
            raise Refused(n, len(content) + 2 + comment.index(b"\0"))
    return table


def row(table, n, words, zero_based, n_features, query_id, dtype, widest):
    def refuse(column, word=b""):
        raise Refused(n, column + max(word.find(b"\0"), 0))

    if not words:
        return
    (column, word), *words = words
    label = number(word, np.float64)
    if label is None:
        bare = re.match(rb"[^:,]*", word).group()  # labels that are lists or missing are refused as such, NUL or not
        refuse(column, word if bare == word or word.startswith(b"\0") else b"")
    if np.isinf(label):
        refuse(column)
    query = None
    if words and words[0][1].startswith(b"qid:"):
        (column, word), *words = words
        if not re.fullmatch(rb"[+-]?[0-9]+", word[4:]):
            refuse(column, word)
        query = int(word[4:])
        if abs(query) > 2**63 - 1:
            refuse(column)
    elif query_id:
        refuse(1)
    entries = []
    first = 0 if zero_based else 1
    while words:
        (column, word), *words = words
        index, colon, value = word.partition(b":")
        if not colon or not re.fullmatch(rb"[0-9]+", index):
            refuse(column, word)
        j = int(index) - first
        if j < 0 or (entries and j <= entries[-1][0]) or j > widest or (n_features is not None and j >= n_features):
            refuse(column)
        place = column + len(index) + 1
        if not value:
            if not words:
                refuse(column)
            (place, value), *words = words
        x = number(value, dtype)
        if x is None:
            refuse(place, value)
        if np.isinf(x):
            refuse(place)
        entries.append((j, x))
    table.labels.append(label)
    table.queries.append(query)
    table.rows.append(entries)
