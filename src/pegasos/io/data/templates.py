"""Feature templates of CRF++: which columns, of which tokens around, make the attributes of a token."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import NamedTuple

from pegasos.io.files import Source, name_of, reading

_MACRO = re.compile(r"%x\[(-?[0-9]{1,4}),([0-9]{1,4})\]")
#: Around the current token, what `Template.default` looks at: of the words, and of every other column.
_WORDS = ((-2,), (-1,), (0,), (1,), (2,), (-1, 0), (0, 1))
_OTHERS = ((-2,), (-1,), (0,), (1,), (2,), (-2, -1), (-1, 0), (0, 1), (1, 2), (-2, -1, 0), (-1, 0, 1), (0, 1, 2))


class _Macro(NamedTuple):
    """``%x[offset,column]``."""

    offset: int
    column: int

    def values(self, columns: Sequence[Sequence[str]]) -> Sequence[str]:
        """The column, shifted: of every token the entry ``offset`` tokens on, or how far outside that is."""
        values, k = columns[self.column], self.offset
        size = len(values)
        if k < 0:
            return [f"_B{k + t}" for t in range(min(-k, size))] + list(values[: max(size + k, 0)])
        if k > 0:
            return list(values[k:]) + [f"_B+{t + k - size + 1}" for t in range(max(size - k, 0), size)]
        return values


@dataclass(frozen=True)
class _Feature:
    """A line of a template: texts, and macros between them, by their position among all different macros."""

    line: int
    texts: tuple[str, ...]
    macros: tuple[int, ...]

    def values(self, shifted: Sequence[Sequence[str]], size: int) -> list[str]:
        """The attribute of every token."""
        front, *behind = self.texts
        if not self.macros:
            return [front] * size
        parts: list[Iterable[str]] = [repeat(front)]
        for macro, text in zip(self.macros, behind, strict=True):
            parts += [shifted[macro], repeat(text)] if text else [shifted[macro]]
        return list(map("".join, zip(*parts, strict=False)))  # the repeated texts have no end


@dataclass(frozen=True)
class Template:
    r"""Feature templates, written as CRF++ has them: what the attributes of a token are made of.

    A line ``U05:%x[-1,0]/%x[0,1]`` makes an attribute of every token: its text, with ``%x[offset,column]`` replaced by
    a column (counted from 0) of the token so many tokens on. In front of the sentence these are ``_B-1``, ``_B-2``, …,
    behind it ``_B+1``, ``_B+2``, …, by the distance. What is in front of the colon tells attributes of different lines
    apart. Lines that begin with ``#`` are comments. ``B`` asks for transitions between the tags of neighbours, which a
    chain always has.

    Made by :meth:`parse`, :meth:`read` or :meth:`default`.

    Attributes
    ----------
    text : str
        The lines as they were written: ``Template.parse(template.text)`` is the same template.
    name : str
        What messages call it.
    n_columns : int
        How many columns a token must have, at least.

    Examples
    --------
    >>> from pegasos.io import Template
    >>> template = Template.parse("U00:%x[-1,0]\nU01:%x[0,0]\nU02:%x[0,0]/%x[1,1]\n")
    >>> template.attributes([("He", "PRP"), ("slept", "VBD")])
    [['U00:_B-1', 'U01:He', 'U02:He/VBD'], ['U00:He', 'U01:slept', 'U02:slept/_B+1']]
    """

    text: str
    name: str = field(default="<template>", compare=False)
    n_columns: int = field(init=False, repr=False, compare=False)
    _features: tuple[_Feature, ...] = field(init=False, repr=False, compare=False)
    _macros: tuple[_Macro, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        positions: dict[_Macro, int] = {}
        features = []
        for number, line in enumerate(self.text.split("\n"), start=1):
            line = line.rstrip(" \t\r")
            if line and not line.startswith("#"):
                feature = self._feature(line, number, positions)
                features += [feature] if feature else []
        if not features:
            raise ValueError(f"{self.name}: has no line that begins with U, and so makes no attributes")
        object.__setattr__(self, "_features", tuple(features))
        object.__setattr__(self, "_macros", tuple(positions))
        object.__setattr__(self, "n_columns", max((macro.column + 1 for macro in positions), default=0))

    def _feature(self, line: str, number: int, positions: dict[_Macro, int]) -> _Feature | None:
        place = f"{self.name}: line {number}"
        if line[0] not in "UB":
            raise ValueError(f"{place}: {line!r:.60} begins neither with U nor with B nor, a comment, with #")
        parts = _MACRO.split(line)  # text, offset, column, text, …, text
        texts = tuple(parts[::3])
        if wrong := next((text for text in texts if "%" in text), None):
            rest = wrong[wrong.index("%") :]
            raise ValueError(f"{place}: {rest!r:.60} is not %x[offset,column] with whole numbers, as in %x[-1,0]")
        if line[0] == "B":
            if len(parts) > 1:
                raise ValueError(
                    f"{place}: {line!r:.60} asks for transitions that depend on a column; here they do not: B alone is "
                    "accepted, and U makes attributes of columns"
                )
            return None
        macros = [_Macro(int(a), int(b)) for a, b in zip(parts[1::3], parts[2::3], strict=True)]
        return _Feature(number, texts, tuple(positions.setdefault(macro, len(positions)) for macro in macros))

    @classmethod
    def parse(cls, text: str, name: str = "<template>") -> Template:
        """The template that a text is.

        Parameters
        ----------
        text : str
            Lines as described above.
        name : str, default="<template>"
            What messages call it.

        Raises
        ------
        ValueError
            If a line is none of a template; names it.
        """
        return cls(text, name)

    @classmethod
    def read(cls, source: Source) -> Template:
        """The template in a file, UTF-8 text.

        Parameters
        ----------
        source : path, binary file, bytes or "-"
            What to read; "-" is standard input.
        """
        name = name_of(source)
        with reading(source) as stream:
            data = stream.read()
        try:
            return cls(data.decode("utf-8-sig"), name)
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            raise ValueError(f"{name}: line {line}: is not UTF-8 text: {error.reason}") from None

    @classmethod
    def default(cls, n_columns: int) -> Template:
        """A window of two tokens to either side: words, their pairs, and of other columns triples, too.

        For two columns, words and their parts of speech, this is the template that CRF++ comes with for CoNLL-2000.

        Parameters
        ----------
        n_columns : int
            How many columns tokens have, without that of the tags. The first one is the word.

        Examples
        --------
        >>> from pegasos.io import Template
        >>> print(Template.default(1).text)
        U00:%x[-2,0]
        U01:%x[-1,0]
        U02:%x[0,0]
        U03:%x[1,0]
        U04:%x[2,0]
        U05:%x[-1,0]/%x[0,0]
        U06:%x[0,0]/%x[1,0]
        B
        """
        if isinstance(n_columns, bool) or not isinstance(n_columns, int) or n_columns < 1:
            raise ValueError(f"n_columns={n_columns!r} must be a whole number, 1 or more")
        windows = [(column, offsets) for column in range(n_columns) for offsets in (_OTHERS if column else _WORDS)]
        lines = [
            f"U{k:02}:" + "/".join(f"%x[{offset},{column}]" for offset in offsets)
            for k, (column, offsets) in enumerate(windows)
        ]
        return cls("\n".join([*lines, "B"]) + "\n", "<default template>")

    def check(self, n_columns: int) -> None:
        """Refuse tokens with so many columns, if a line asks for one that they do not have.

        Parameters
        ----------
        n_columns : int
            How many columns tokens have.

        Raises
        ------
        ValueError
            Names the line.
        """
        if n_columns >= self.n_columns:
            return
        feature, macro = next(
            (feature, self._macros[k])
            for feature in self._features
            for k in feature.macros
            if self._macros[k].column >= n_columns
        )
        raise ValueError(
            f"{self.name}: line {feature.line}: %x[{macro.offset},{macro.column}] asks for column {macro.column}, but "
            f"tokens have {n_columns}, counted from 0"
        )

    def attributes(self, sentence: Sequence[Sequence[str]]) -> list[list[str]]:
        """The attributes of every token of a sentence, one for each U line.

        Parameters
        ----------
        sentence : sequence of sequences of str
            A row of columns for each token, as :func:`~pegasos.io.read_conll` returns them.

        Raises
        ------
        ValueError
            As for :meth:`check`.
        """
        size = len(sentence)
        if not size:
            return []
        try:
            columns = list(zip(*sentence, strict=True))
        except ValueError:
            t = next(t for t, row in enumerate(sentence) if len(row) != len(sentence[0]))
            some, others = len(sentence[0]), len(sentence[t])
            raise ValueError(f"token {t} of the sentence has {others} columns, where token 0 has {some}") from None
        self.check(len(columns))
        shifted = [macro.values(columns) for macro in self._macros]
        return list(map(list, zip(*[feature.values(shifted, size) for feature in self._features], strict=True)))
