"""Tagged sentences from column files: whole for training, in batches for predicting."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from pegasos import io
from pegasos.cli._exit import Failure
from pegasos.io.data.column_reader import ColumnReader
from pegasos.io.data.conll import Sentence
from pegasos.problems.grammar import NAMED

if TYPE_CHECKING:
    from pegasos.cli._tagger_plan import TaggerPlan
    from pegasos.estimators.sequence import SequenceSVC

_BATCH = 1000  # sentences that are tagged at a time
_PLACE = re.compile(r"(?:sequence |y_true\[)(\d+)\]?(?:(?:, position |\[)(\d+)\]?)?")
_BEGIN, _END = "<s>", "</s>"


@dataclass(frozen=True)
class Sentences:
    """Tagged sentences in memory, and how they become attributes."""

    corpus: io.Corpus
    reader: ColumnReader

    @property
    def source(self) -> str:
        """What to call them."""
        return self.corpus.name

    def __len__(self) -> int:
        return len(self.corpus.sentences)

    @cached_property
    def tags(self) -> list[list[str]]:
        """The last column."""
        return self.corpus.column(-1)

    @cached_property
    def tokens(self) -> int:
        """Tokens of all sentences."""
        return sum(map(len, self.corpus.sentences))

    def fit(self, model: SequenceSVC) -> None:
        """Fit a tagger to the sentences."""
        try:
            model.fit(map(self.reader.attributes, self.corpus.sentences), self.tags)
        except ValueError as error:
            raise Failure(f"{self.source}: {placed(str(error), self.corpus.first_lines)}") from None
        model.template_ = self.reader

    def take(self, chosen: Iterable[int]) -> Sentences:
        """Some of the sentences."""
        numbers = list(chosen)
        corpus = self.corpus
        some = [corpus.sentences[k] for k in numbers], corpus.n_columns, [corpus.first_lines[k] for k in numbers]
        return Sentences(io.Corpus(*some, corpus.name), self.reader)

    def numbered(self) -> Iterator[tuple[int, Sentence]]:
        """The sentences with the lines on which they begin."""
        return zip(self.corpus.first_lines, self.corpus.sentences, strict=True)


def read(path: str, plan: TaggerPlan) -> Sentences:
    """All sentences of a file, with the template of the plan, or else the one for so many columns.

    Raises Failure, ValueError or OSError naming the file.
    """
    template = None if plan.template is None else io.Template.read(plan.template)
    corpus = io.read_conll(path, delimiter=plan.delimiter, comments=plan.comments, encoding=plan.encoding)
    _check_tagged(corpus.name, corpus.n_columns)
    if template is None:
        template = io.Template.default(corpus.n_columns - 1)
    reader = ColumnReader(template, plan.delimiter, plan.comments, plan.encoding)
    check_columns(reader, corpus.name, corpus.n_columns - 1)
    return Sentences(corpus, reader)


def read_like(path: str, reader: ColumnReader) -> Sentences:
    """All sentences of a file that is read as another one was."""
    corpus = io.read_conll(path, delimiter=reader.delimiter, comments=reader.comments, encoding=reader.encoding)
    _check_tagged(corpus.name, corpus.n_columns)
    check_columns(reader, corpus.name, corpus.n_columns - 1)
    return Sentences(corpus, reader)


def _check_tagged(source: str, columns: int) -> None:
    if columns < 2:
        raise Failure(f"{source}: has one column; tagged sentences have two or more, and the tags in the last")


def check_columns(reader: ColumnReader, source: str, columns: int) -> None:
    """Refuse tokens of so many columns, without that of the tags, if the template asks for more."""
    try:
        reader.template.check(columns)
    except ValueError as error:
        raise Failure(f"{source}: {error}") from None


def reader_of(model: SequenceSVC, path: str) -> ColumnReader:
    """How a tagger of a model file reads sentences; Failure if it does not know."""
    if not isinstance(model.template_, ColumnReader):
        raise Failure(
            f"{path}: was trained in Python, on attributes of its own making, so that column files mean nothing to it; "
            "use it in Python, or train with pegasos train --format conll"
        )
    return model.template_


def batches(sentences: Iterable[tuple[int, Sentence]]) -> Iterator[tuple[list[int], list[Sentence]]]:
    """Sentences in batches: the lines on which they begin, and they themselves."""
    rest = iter(sentences)
    while batch := list(islice(rest, _BATCH)):
        yield [line for line, _ in batch], [sentence for _, sentence in batch]


def placed(message: str, lines: Sequence[int]) -> str:
    """A message that names a sequence by its number, with the line on which that begins."""

    def place(found: re.Match[str]) -> str:
        where = f"the sentence that begins on line {lines[int(found[1])]}"
        return where if found[2] is None else f"{where}, token {int(found[2]) + 1}"

    return _PLACE.sub(place, message, count=1)


def read_grammar(name: str) -> str | list[tuple[str | None, str | None]]:
    """A grammar by its name, or the pairs of a file: two tags a line."""
    if name in NAMED:
        return name
    if not Path(name).is_file():
        raise Failure(f"--grammar {name}: is none of {', '.join(NAMED)}, and there is no file of that name")
    pairs: list[tuple[str | None, str | None]] = []
    for line, sentence in io.iter_conll(name):
        for k, row in enumerate(sentence):
            if len(row) != 2:
                raise Failure(f"{name}: line {line + k}: has {len(row)} columns in place of two tags")
            before, after = row
            pairs.append((None if before == _BEGIN else before, None if after == _END else after))
    return pairs
