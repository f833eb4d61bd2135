"""Column files: a token a line, its columns beside each other, and a blank line between sentences."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, TypeAlias

from pegasos.io.files import Source, Target, name_of, reading, writing

#: A token is a row of columns.
Sentence: TypeAlias = list[tuple[str, ...]]

#: A line beyond this many characters is refused, lest a file without line ends fill the memory.
_LONGEST_LINE = 1 << 22
_BLANKS = " \t"


@dataclass(frozen=True)
class Corpus:
    """A column file that was read: what :func:`read_conll` returns.

    Attributes
    ----------
    sentences : list of list of tuple of str
        Every sentence, every token of it, every column of that.
    n_columns : int
        How many columns every token has.
    first_lines : list of int
        The line, counted from 1, on which each sentence begins.
    name : str
        The file's name, ``"<stdin>"`` or ``"<bytes>"``.

    Examples
    --------
    >>> from pegasos.io import read_conll
    >>> corpus = read_conll(b"He PRP B-NP\\nslept VBD B-VP\\n\\nYes UH B-INTJ\\n")
    >>> len(corpus.sentences), corpus.n_columns, corpus.first_lines
    (2, 3, [1, 4])
    >>> corpus.column(-1)
    [['B-NP', 'B-VP'], ['B-INTJ']]
    """

    sentences: list[Sentence] = field(repr=False)
    n_columns: int
    first_lines: list[int] = field(repr=False)
    name: str

    def column(self, position: int) -> list[list[str]]:
        """One column of every sentence, counted from 0; −1 is the last, which has the tags in most files.

        Parameters
        ----------
        position : int
            Which one.
        """
        if not -self.n_columns <= position < self.n_columns:
            raise IndexError(f"{self.name}: there is no column {position} among {self.n_columns}, counted from 0")
        return [[row[position] for row in sentence] for sentence in self.sentences]


def read_conll(
    source: Source,
    *,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    comments: str | Sequence[str] | None = None,
) -> Corpus:
    r"""Read a column file: a token a line, blank lines between sentences.

    Only spaces and tabs separate columns: other white space, such as the no-break space, occurs inside words. A line is
    blank if it has nothing but spaces and tabs. Lines end in ``\n`` or ``\r\n``.

    Parameters
    ----------
    source : path, binary file, bytes or "-"
        What to read; "-" is standard input. Data compressed with gzip, bzip2, xz or zstd (extra ``zstd`` before
        Python 3.14) are recognised by their content.
    delimiter : str, default=None
        One character, each of which separates two columns, so that columns may be empty or have spaces in them. None:
        any run of spaces and tabs.
    encoding : str, default="utf-8"
        Of the text. A byte order mark in front is left out.
    comments : str or sequence of str, default=None
        Lines that begin like this are left out: ``"#"`` in CoNLL-U, ``"-DOCSTART-"`` in CoNLL-2003. None: there are
        none; in CoNLL-2000 ``#`` is a token.

    Returns
    -------
    Corpus
        The sentences as lists of tuples, and where they begin.

    Raises
    ------
    ValueError
        If lines differ in their number of columns, or the text is not in the encoding (both name the line), or there
        are no sentences.

    Examples
    --------
    >>> from pegasos.io import read_conll
    >>> corpus = read_conll(b"He PRP\nslept VBD\n\nYes UH\n")
    >>> corpus.sentences
    [[('He', 'PRP'), ('slept', 'VBD')], [('Yes', 'UH')]]
    """
    found = list(iter_conll(source, delimiter=delimiter, encoding=encoding, comments=comments))
    sentences = [sentence for _, sentence in found]
    return Corpus(sentences, len(sentences[0][0]), [line for line, _ in found], name_of(source))


def iter_conll(
    source: Source,
    *,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    comments: str | Sequence[str] | None = None,
) -> Iterator[tuple[int, Sentence]]:
    r"""Read a column file sentence by sentence, in the memory of one, however long the file is.

    Parameters
    ----------
    source, delimiter, encoding, comments
        As for :func:`read_conll`; the same files are refused, once their sentences before the offence are handed out.

    Yields
    ------
    line, sentence : int, list of tuple of str
        The line, counted from 1, on which the sentence begins, and its tokens.

    Examples
    --------
    >>> from pegasos.io import iter_conll
    >>> for line, sentence in iter_conll(b"He PRP\nslept VBD\n\nYes UH\n"):
    ...     print(line, sentence)
    1 [('He', 'PRP'), ('slept', 'VBD')]
    4 [('Yes', 'UH')]
    """
    _check_delimiter(delimiter)
    prefixes = (comments,) if isinstance(comments, str) else tuple(comments or ())
    if not all(isinstance(prefix, str) and prefix for prefix in prefixes):
        raise ValueError(f"comments={comments!r:.60} must be None, or how lines begin that are left out: '#'")
    return _sentences(source, delimiter, _codec(encoding), prefixes)


def write_conll(
    sentences: Iterable[Sequence[Sequence[str]]],
    target: Target,
    *,
    tags: Iterable[Sequence[str]] | None = None,
    delimiter: str = " ",
    encoding: str = "utf-8",
) -> None:
    r"""Write a column file, with a further column if there are tags.

    Parameters
    ----------
    sentences : iterable of sentences
        Sequences of rows of columns, such as ``corpus.sentences``. Taken one by one.
    target : path, binary file or "-"
        Where to write; "-" is standard output. A path ending in ``.gz``, ``.bz2``, ``.xz`` or ``.zst`` is compressed.
        A file is replaced when all is written, and left as it was by an error.
    tags : iterable of sequences of str, default=None
        What to append, a tag to each row. Taken one by one, too.
    delimiter : str, default=" "
        What to write between columns.
    encoding : str, default="utf-8"
        Of the text.

    Raises
    ------
    ValueError
        If sentences and tags differ in number or length, or if :func:`read_conll` would not read what was to be
        written: rows that differ in their number of columns, a column that has the delimiter in it. Names the sentence.

    Examples
    --------
    >>> import io
    >>> from pegasos.io import read_conll, write_conll
    >>> corpus = read_conll(b"He PRP\nslept VBD\n\nYes UH\n")
    >>> file = io.BytesIO()
    >>> write_conll(corpus.sentences, file, tags=[["B-NP", "B-VP"], ["B-INTJ"]])
    >>> print(file.getvalue().decode())
    He PRP B-NP
    slept VBD B-VP
    <BLANKLINE>
    Yes UH B-INTJ
    <BLANKLINE>
    """
    _check_delimiter(delimiter)
    encoder = codecs.getincrementalencoder(_codec(encoding))()
    # What is written with spaces in between must be read, too, where runs of spaces and tabs are one delimiter.
    writable = re.compile(r"[^ \t\r\n\0]+" if delimiter == " " else rf"[^{re.escape(delimiter)}\r\n\0]*")
    with writing(target) as file:
        for i, rows in enumerate(_with_tags(sentences, tags)):
            if i == 0:
                width = len(rows[0]) if rows else 0
            text = _text(rows, width, delimiter, writable, i)
            try:
                file.write(encoder.encode(text))
            except UnicodeEncodeError as error:
                raise ValueError(f"sentence {i}: {text[error.start]!r} cannot be written in {encoding}") from None


def _check_delimiter(delimiter: str | None) -> None:
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in "\r\n"):
        raise ValueError(f"delimiter={delimiter!r:.60} must be one character, and no line end")


def _codec(encoding: str) -> str:
    try:
        "".encode(encoding)  # codecs that are not of text, such as rot13, are refused here
        return codecs.lookup(encoding).name
    except LookupError:
        raise ValueError(f"encoding={encoding!r} is not known; 'utf-8' and 'latin-1' are") from None


def _fields(line: str, delimiter: str | None) -> list[str]:
    if delimiter is not None:
        return line.split(delimiter)
    fields = line.replace("\t", " ").split(" ")
    return [field for field in fields if field] if "" in fields else fields


def _sentences(
    source: Source, delimiter: str | None, codec: str, comments: tuple[str, ...]
) -> Iterator[tuple[int, Sentence]]:
    name = name_of(source)
    sentence: Sentence = []
    first = width = first_width = 0  # the sentence's first line; the number of columns, and the line it is known from
    with reading(source) as stream:
        for number, line in _lines(stream, name, codec):
            if comments and line.startswith(comments):
                continue
            if not line.strip(_BLANKS):
                if sentence:
                    yield first, sentence
                    sentence = []
                continue
            fields = _fields(line, delimiter)
            if len(fields) != width:
                if width:
                    spaces = delimiter is None and "\t" in line and " " in line.strip(_BLANKS)
                    raise ValueError(
                        f"{name}: line {number}: {len(fields)} columns, where line {first_width} has {width}"
                        f"{'; if there are spaces inside of columns, pass the delimiter, a tab' if spaces else ''}"
                    )
                width, first_width = len(fields), number
            if not sentence:
                first = number
            sentence.append(tuple(fields))
    if sentence:
        yield first, sentence
    if not width:
        raise ValueError(f"{name}: holds no sentences")


def _lines(stream: IO[bytes], name: str, codec: str) -> Iterator[tuple[int, str]]:
    """Lines without their ends, and their numbers."""
    marked = "utf-8-sig" if codec == "utf-8" else codec  # leaves a byte order mark out
    text, number = io.TextIOWrapper(stream, encoding=marked, newline="\n"), 0
    while True:
        try:
            line = text.readline(_LONGEST_LINE)
        except UnicodeDecodeError as error:
            # Bytes are decoded in pieces, the next one when no line end is left of the one before.
            before = error.object[: error.start].decode(codec, "ignore").count("\n")
            place = f"{name}: line {number + 1 + before}"
            raise ValueError(f"{place}: is not {codec} text: {error.reason}; pass the encoding that it has") from None
        if not line:
            return
        number += 1
        if len(line) == _LONGEST_LINE and not line.endswith("\n"):
            raise ValueError(f"{name}: line {number} is longer than {_LONGEST_LINE} characters")
        line = line.removesuffix("\n").removesuffix("\r")
        if "\r" in line:
            raise ValueError(f"{name}: line {number}: there is a carriage return inside; lines end in \\n or \\r\\n")
        if "\0" in line:
            raise ValueError(f"{name}: line {number}: there is a NUL character; pass the encoding that the text has")
        yield number, line


def _with_tags(
    sentences: Iterable[Sequence[Sequence[str]]], tags: Iterable[Sequence[str]] | None
) -> Iterator[list[list[str]]]:
    """Rows of each sentence, with the tag behind them."""
    if tags is None:
        yield from ([list(row) for row in sentence] for sentence in sentences)
        return
    columns, i = iter(tags), -1
    for i, sentence in enumerate(sentences):
        column = next(columns, None)
        if column is None:
            raise ValueError(f"there are tags for {i} sentences, but sentence {i} follows")
        if len(column) != len(sentence):
            raise ValueError(f"sentence {i}: it has {len(sentence)} rows, and tags[{i}] {len(column)} tags")
        yield [[*row, tag] for row, tag in zip(sentence, column, strict=True)]
    if next(columns, None) is not None:
        raise ValueError(f"there are {i + 1} sentences, but tags[{i + 1}] follows")


def _text(rows: list[list[str]], width: int, delimiter: str, writable: re.Pattern[str], i: int) -> str:
    """The lines of a sentence and a blank one, if they are read again as what they are."""
    if not rows:
        raise ValueError(f"sentence {i}: it has no rows; blank lines separate sentences, so that none can be empty")
    lines = []
    for t, row in enumerate(rows):
        if len(row) != width:
            raise ValueError(f"sentence {i}, row {t}: {len(row)} columns, where the first row has {width}")
        if (other := next((column for column in row if not isinstance(column, str)), None)) is not None:
            raise TypeError(f"sentence {i}, row {t}: columns and tags are texts, got {other!r:.60}")
        if not all(map(writable.fullmatch, row)):
            wrong = next(column for column in row if not writable.fullmatch(column))
            raise ValueError(f"sentence {i}, row {t}: {wrong!r:.60} is no column where delimiter={delimiter!r}")
        lines.append(delimiter.join(row))
        if not lines[-1].strip(_BLANKS):
            raise ValueError(f"sentence {i}, row {t}: {row!r:.60} would be a blank line, which separates sentences")
    return "\n".join(lines) + "\n\n"
