"""How column files become sequences of attributes: a template, and how their lines are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pegasos.io.data.conll import Sentence, iter_conll
from pegasos.io.data.templates import Template
from pegasos.io.files import Source


@dataclass(frozen=True)
class ColumnReader:
    r"""What a tagger that was trained on a column file needs to read another one like it.

    Parameters
    ----------
    template : Template
        Makes attributes of columns.
    delimiter, comments, encoding
        As for :func:`~pegasos.io.read_conll`.

    Examples
    --------
    >>> from pegasos.io import Template
    >>> reader = ColumnReader(Template.parse("U00:%x[0,0]\nU01:%x[1,0]"), comments=("#",))
    >>> [reader.attributes(sentence) for _, sentence in reader.sentences(b"# text\nHe PRP\nslept VBD\n")]
    [[['U00:He', 'U01:slept'], ['U00:slept', 'U01:_B+1']]]
    """

    template: Template
    delimiter: str | None = None
    comments: tuple[str, ...] = ()
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        self.sentences(b"")  # checks its arguments when it is called

    def sentences(self, source: Source) -> Iterator[tuple[int, Sentence]]:
        """The sentences of a column file one by one, with the lines on which they begin."""
        return iter_conll(source, delimiter=self.delimiter, encoding=self.encoding, comments=self.comments)

    def attributes(self, sentence: Sequence[Sequence[str]]) -> list[list[str]]:
        """The attributes of every token of a sentence."""
        return self.template.attributes(sentence)
