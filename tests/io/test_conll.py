"""Column files of tagged sentences: read, iterated and written, against a slow reader and everything that is wrong."""

import bz2
import gzip
import io
import lzma
import os
import re
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pegasos.io import iter_conll, read_conll, write_conll

zstandard = pytest.importorskip("zstandard") if sys.version_info < (3, 14) else None

TEXT = "He PRP B-NP\nslept VBD B-VP\n\nYes UH B-INTJ\n"
SENTENCES = [[("He", "PRP", "B-NP"), ("slept", "VBD", "B-VP")], [("Yes", "UH", "B-INTJ")]]


def slowly(text, delimiter=None, comments=()):
    """(first line, sentence) of every sentence; or the line that has another number of columns; or None if empty."""
    found, current, width = [], [], None
    for number, line in enumerate(re.split("\r?\n", text.removeprefix("\ufeff")), start=1):
        if any(line.startswith(prefix) for prefix in comments):
            continue
        if re.fullmatch("[ \t]*", line):
            current = []
            continue
        row = tuple(re.findall("[^ \t]+", line) if delimiter is None else line.split(delimiter))
        if width not in (None, len(row)):
            return number
        width = len(row)
        if not current:
            found.append((number, current))
        current.append(row)
    return found or None


# No-break, ideographic and line-separating spaces are letters here, and so is what str.splitlines takes for line ends.
WORDS = st.sampled_from(["a", "b\u00a0c", "\u3000", "#", "é", "\u2028", "\x85", "\x0b\x0c", "-DOCSTART-", "\ufeff"])
GAPS = st.sampled_from([" ", " ", " ", "\t", "  ", " \t "])
LINES = st.one_of(
    st.builds(str.join, GAPS, st.lists(WORDS, min_size=2, max_size=2)),
    st.builds(str.join, GAPS, st.lists(WORDS, min_size=1, max_size=3)),
    st.sampled_from(["", "", " ", "\t", " \t", "# a comment", " a b", "a b ", "a\t\tb"]),
)
TEXTS = st.builds(
    lambda mark, end, lines: mark + end.join(lines),
    st.sampled_from(["", "\ufeff"]),
    st.sampled_from(["\n", "\r\n"]),
    st.lists(LINES, max_size=8),
)


@given(TEXTS, st.sampled_from([None, "\t", " "]), st.sampled_from([(), ("#",), ("#", "-DOC")]))
@example(TEXT, None, ())
@example(TEXT.rstrip("\n"), None, ())
@example("\n \n" + TEXT + "\n\t\n\n", None, ())
@example("\ufeff" + TEXT.replace("\n", "\r\n"), None, ())
@example("a b\n\u00a0 c\n\u00a0\n", None, ())
@example("a b\n# c d e\nc d\n", None, ("#",))
def test_any_text_is_read_as_by_the_slow_reader(text, delimiter, comments):
    expected = slowly(text, delimiter, comments)
    options = {"delimiter": delimiter, "comments": comments}
    if isinstance(expected, list):
        assert list(iter_conll(text.encode(), **options)) == expected
        corpus = read_conll(text.encode(), **options)
        assert list(zip(corpus.first_lines, corpus.sentences, strict=True)) == expected
        assert corpus.n_columns == len(expected[0][1][0])
    else:
        message = "<bytes>: holds no sentences" if expected is None else rf"<bytes>: line {expected}: \d columns, where"
        with pytest.raises(ValueError, match=message):
            read_conll(text.encode(), **options)


def test_a_corpus_is_frozen_and_has_columns():
    corpus = read_conll(TEXT.encode())
    assert (corpus.sentences, corpus.first_lines, corpus.n_columns, corpus.name) == (SENTENCES, [1, 4], 3, "<bytes>")
    assert corpus.column(0) == corpus.column(-3) == [["He", "slept"], ["Yes"]]
    for position in (3, -4):
        with pytest.raises(IndexError, match=f"<bytes>: there is no column {position} among 3"):
            corpus.column(position)
    with pytest.raises(FrozenInstanceError):
        corpus.n_columns = 2


def compressed(kind):
    if kind == "zst":
        if zstandard is None:
            from compression import zstd

            return zstd.compress(TEXT.encode())
        return zstandard.ZstdCompressor().compress(TEXT.encode())
    return {"txt": bytes, "gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}[kind](TEXT.encode())


@pytest.mark.parametrize("kind", ["txt", "gz", "xz", "bz2", "zst"])
def test_files_compressed_or_not(tmp_path, kind):
    path = tmp_path / f"corpus.{kind}"
    path.write_bytes(compressed(kind))
    corpus = read_conll(path)
    assert (corpus.sentences, corpus.name) == (SENTENCES, str(path))
    with path.open("rb") as file:
        assert [sentence for _, sentence in iter_conll(file)] == SENTENCES
        assert not file.closed
    again = tmp_path / f"again.{kind}"
    write_conll(corpus.sentences, again)
    assert read_conll(again).sentences == SENTENCES
    assert (again.read_bytes() == (TEXT + "\n").encode()) == (kind == "txt")


def test_compressed_files_that_are_cut_are_refused(tmp_path):
    path = tmp_path / "corpus.gz"
    path.write_bytes(gzip.compress(TEXT.encode() * 1000)[:-20])
    with pytest.raises(ValueError, match=rf"{re.escape(str(path))}: the gzip data are damaged or cut off"):
        read_conll(path)


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a b\n\nc\n")))
    with pytest.raises(ValueError, match="<stdin>: line 3: 1 columns, where line 1 has 2"):
        read_conll("-")


def test_sentences_come_one_by_one():
    """The source is read as far as it is needed, and a little ahead."""

    class Endless(io.RawIOBase):
        position = 0

        def readable(self):
            return True

        def readinto(self, buffer):
            period = b"word TAG\n" * 9 + b"\n"
            rest = period[self.position % len(period) :][: len(buffer)]
            self.position += len(rest)
            buffer[: len(rest)] = rest
            return len(rest)

    source = Endless()
    found = iter_conll(source)
    for k in range(1000):
        assert next(found)[0] == 10 * k + 1
    assert source.position < 2 * 1000 * 82  # bytes of a sentence
    found.close()


def test_other_encodings():
    text = "Übung NN\nmacht VBZ\n"
    rows = [[("Übung", "NN"), ("macht", "VBZ")]]
    for encoding in ("latin-1", "utf-16", "utf-16-be", "UTF8", "utf-8-sig"):
        assert read_conll(text.encode(encoding), encoding=encoding).sentences == rows
        file = io.BytesIO()
        write_conll(rows * 2, file, encoding=encoding)
        assert file.getvalue() == ((text + "\n") * 2).encode("utf-8" if encoding == "UTF8" else encoding)


@pytest.mark.parametrize("line", [1, 2, 1000, 5001])
def test_text_in_another_encoding_is_refused_by_line(line):
    data = (
        b"\n".join(b"word TAG" for _ in range(line - 1)) + b"\n" * (line > 1) + b"w\xfcrd TAG\n" + b"word TAG\n" * 3000
    )
    with pytest.raises(ValueError, match=rf"<bytes>: line {line}: is not utf-8 text: invalid start byte; pass the enc"):
        read_conll(data)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "<bytes>: holds no sentences"),
        ("\n \n\t\n", {}, "<bytes>: holds no sentences"),
        ("# a\n", {"comments": "#"}, "<bytes>: holds no sentences"),
        ("a b c\n\nd e\n", {}, "<bytes>: line 3: 2 columns, where line 1 has 3$"),
        (
            "# x\na b\nNew York\tNP\n",
            {"comments": "#"},
            "line 3: 3 columns, where line 2 has 2; if there are spaces inside",
        ),
        ("a b\nc\rd e\n", {}, "<bytes>: line 2: there is a carriage return inside"),
        ("a b\nc\0 d\n", {}, "<bytes>: line 2: there is a NUL character; pass the encoding"),
        ("a b\n", {"encoding": "utf-9"}, "encoding='utf-9' is not known"),
        ("a b\n", {"delimiter": ""}, "delimiter='' must be one character"),
        ("a b\n", {"delimiter": "\n"}, r"delimiter='\\n' must be one character, and no line end"),
        ("a b\n", {"comments": ""}, "comments='' must be None, or how lines begin"),
        ("a b\n", {"comments": ["#", 3]}, r"comments=\['#', 3\] must be None"),
    ],
)
def test_what_is_wrong_is_named(text, options, message):
    with pytest.raises(ValueError, match=message):
        read_conll(text.encode(), **options)


def test_parameters_are_checked_before_the_first_sentence_is_asked_for():
    with pytest.raises(ValueError, match="delimiter"):
        iter_conll(b"a b\n", delimiter="ab")


def test_a_line_without_end_is_refused(monkeypatch):
    from pegasos.io.data import conll

    monkeypatch.setattr(conll, "_LONGEST_LINE", 50)
    assert read_conll(b"a " + b"b" * 47 + b"\n").n_columns == 2
    with pytest.raises(ValueError, match="<bytes>: line 2 is longer than 50 characters"):
        read_conll(b"a b\na " + b"b" * 100)


def test_text_files_and_other_things_are_refused(tmp_path):
    with pytest.raises(TypeError, match="open in text mode"):
        read_conll(io.StringIO(TEXT))
    with pytest.raises(FileNotFoundError):
        read_conll(tmp_path / "absent")


COLUMNS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0\t \ufeff"), min_size=1, max_size=5
)


@st.composite
def corpora(draw):
    width = draw(st.integers(1, 4))
    row = st.lists(COLUMNS, min_size=width, max_size=width).map(tuple)
    return draw(st.lists(st.lists(row, min_size=1, max_size=4), min_size=1, max_size=4))


@given(corpora(), st.sampled_from([" ", "\t"]), st.booleans())
def test_what_is_written_is_read_again(sentences, delimiter, given_):
    file = io.BytesIO()
    write_conll(sentences, file, delimiter=delimiter)
    assert read_conll(file.getvalue(), delimiter=delimiter if given_ else None).sentences == sentences
    tags = [[row[0] for row in sentence] for sentence in sentences]
    file = io.BytesIO()
    write_conll(iter(sentences), file, tags=iter(tags), delimiter=delimiter)
    corpus = read_conll(file.getvalue())
    assert corpus.column(-1) == tags
    assert [[row[:-1] for row in sentence] for sentence in corpus.sentences] == sentences


def test_empty_columns_and_spaces_are_written_between_tabs():
    sentences = [[("New York", ""), ("", "x")]]
    file = io.BytesIO()
    write_conll(sentences, file, delimiter="\t")
    assert read_conll(file.getvalue(), delimiter="\t").sentences == sentences


@pytest.mark.parametrize(
    ("sentences", "options", "message"),
    [
        ([[("a",)], []], {}, "sentence 1: it has no rows"),
        ([[]], {}, "sentence 0: it has no rows"),
        ([[("a", "b"), ("c",)]], {}, "sentence 0, row 1: 1 columns, where the first row has 2"),
        ([[("a", "b c")]], {}, "sentence 0, row 0: 'b c' is no column where delimiter=' '"),
        ([[("a", "b\tc")]], {}, r"'b\\tc' is no column"),
        ([[("a", "")]], {}, "'' is no column"),
        ([[("a", "b\nc")]], {"delimiter": "\t"}, r"'b\\nc' is no column where delimiter='\\t'"),
        ([[("a",)], [("", "")]], {"delimiter": "\t", "tags": [["x"], ["y"]]}, "sentence 1, row 0: 3 columns"),
        ([[("", " ")]], {"delimiter": "\t"}, r"sentence 0, row 0: \['', ' '\] would be a blank line"),
        ([[("a",)]], {"tags": [["x", "y"]]}, r"sentence 0: it has 1 rows, and tags\[0\] 2 tags"),
        ([[("a",)], [("b",)]], {"tags": [["x"]]}, "there are tags for 1 sentences, but sentence 1 follows"),
        ([[("a",)]], {"tags": [["x"], ["y"]]}, r"there are 1 sentences, but tags\[1\] follows"),
        ([[("ü",)], [("Ω",)]], {"encoding": "latin-1"}, "sentence 1: 'Ω' cannot be written in latin-1"),
        ([[("a",)]], {"delimiter": "--"}, "delimiter='--' must be one character"),
        ([[("a",)]], {"encoding": "no"}, "encoding='no' is not known"),
    ],
)
def test_what_would_not_be_read_again_is_not_written(tmp_path, sentences, options, message):
    path = tmp_path / "corpus.txt"
    path.write_text("what was there")
    with pytest.raises(ValueError, match=message):
        write_conll(sentences, path, **options)
    assert path.read_text() == "what was there"
    assert os.listdir(tmp_path) == ["corpus.txt"]


def test_columns_are_texts():
    with pytest.raises(TypeError, match="sentence 0, row 0: columns and tags are texts, got 3"):
        write_conll([[("a",)]], io.BytesIO(), tags=[[3]])


@pytest.mark.skipif("PEGASOS_DATA" not in os.environ, reason="PEGASOS_DATA names no folder of real data")
def test_the_corpus_of_conll_2000():
    corpus = read_conll(Path(os.environ["PEGASOS_DATA"]) / "conll2000.train.txt.xz")
    assert (len(corpus.sentences), sum(map(len, corpus.sentences)), corpus.n_columns) == (8936, 211_727, 3)
    assert {tag[0] for tags in corpus.column(-1) for tag in tags} == {"B", "I", "O"}
