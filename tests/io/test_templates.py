"""Feature templates of CRF++, against a slow version that replaces macro by macro, token by token."""

import gzip
import os
import pickle
import re
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pegasos.io import Template, read_conll

#: As CRF++ is shipped with for CoNLL-2000.
CHUNKING = """# Unigram
U00:%x[-2,0]
U01:%x[-1,0]
U02:%x[0,0]
U03:%x[1,0]
U04:%x[2,0]
U05:%x[-1,0]/%x[0,0]
U06:%x[0,0]/%x[1,0]

U10:%x[-2,1]
U11:%x[-1,1]
U12:%x[0,1]
U13:%x[1,1]
U14:%x[2,1]
U15:%x[-2,1]/%x[-1,1]
U16:%x[-1,1]/%x[0,1]
U17:%x[0,1]/%x[1,1]
U18:%x[1,1]/%x[2,1]

U20:%x[-2,1]/%x[-1,1]/%x[0,1]
U21:%x[-1,1]/%x[0,1]/%x[1,1]
U22:%x[0,1]/%x[1,1]/%x[2,1]

# Bigram
B
"""


def slowly(lines, sentence):
    """The attributes of every token, by CRF++'s description of its macros."""

    def value(t, offset, column):
        if t + offset < 0:
            return f"_B-{-(t + offset)}"
        if t + offset >= len(sentence):
            return f"_B+{t + offset - len(sentence) + 1}"
        return sentence[t + offset][column]

    def expanded(line, t):
        return re.sub(r"%x\[(-?\d+),(\d+)\]", lambda m: value(t, int(m[1]), int(m[2])), line)

    return [[expanded(line, t) for line in lines if line.startswith("U")] for t in range(len(sentence))]


LITERALS = st.sampled_from(["", "/", "|", ":", "x[0,0]", " # ", "é", "[", "\\", "{}"])
MACROS = st.builds("%x[{},{}]".format, st.integers(-5, 5), st.integers(0, 2))
LINES = st.one_of(
    st.builds(
        lambda head, parts, tail: head + "".join(map("".join, parts)) + tail,
        st.sampled_from(["U", "U00:", "U:", "Uword="]),
        st.lists(st.tuples(LITERALS, MACROS), max_size=4),
        st.sampled_from(["", "", "!", "]"]),
    ),
    st.sampled_from(["B", "B01:", "#", "# U00:%x[9,9]", "", "  ", "U"]),
)
# Values that look like macros or like the outside are values.
WORDS = st.sampled_from(["a", "b", "the\u00a0end", "%x[0,0]", "_B-1", "", "%"])
SENTENCES = st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=7)


@given(st.lists(LINES, max_size=6), st.sampled_from(["\n", "\r\n"]), SENTENCES)
@example(CHUNKING.splitlines(), "\n", [("He", "PRP", "B-NP"), ("slept", "VBD", "B-VP"), (".", ".", "O")])
@example(["U00:%x[-3,0]%x[3,0]"], "\n", [("a", "", ""), ("b", "", "")])
def test_any_template_makes_the_attributes_of_the_slow_version(lines, end, sentence):
    lines = ["U:%x[0,0]", *lines]
    template = Template.parse(end.join(lines))
    assert template.attributes(sentence) == slowly(lines, sentence)
    assert template.attributes([list(row) for row in sentence]) == slowly(lines, sentence)
    assert Template.parse(template.text).attributes(sentence) == slowly(lines, sentence)


def test_tokens_outside_are_named_by_their_distance():
    template = Template.parse("U:%x[-2,0]\nU:%x[0,0]\nU:%x[3,0]\n")
    assert template.attributes([("a",), ("b",)]) == [["U:_B-2", "U:a", "U:_B+2"], ["U:_B-1", "U:b", "U:_B+3"]]
    assert template.attributes([]) == []


def test_the_default_for_two_columns_is_that_of_chunking():
    default, shipped = Template.default(2), Template.parse(CHUNKING)
    sentence = [("He", "PRP"), ("slept", "VBD"), ("well", "RB")]
    behind = [
        [[text.split(":", 1)[1] for text in token] for token in t.attributes(sentence)] for t in (default, shipped)
    ]
    assert behind[0] == behind[1]
    assert len(set(default.attributes(sentence)[0])) == 19


@pytest.mark.parametrize("n_columns", [1, 2, 3, 12])
def test_default_templates_use_every_column_and_tell_lines_apart(n_columns):
    template = Template.default(n_columns)
    assert template.n_columns == n_columns
    token = template.attributes([tuple("x" * n_columns)])[0]
    assert len(token) == len({text.split(":")[0] for text in token}) == 7 + 12 * (n_columns - 1)


def test_templates_are_frozen_equal_by_their_text_and_pickled():
    template = Template.parse(CHUNKING, "window.txt")
    assert template == Template.parse(CHUNKING)
    assert template != Template.default(2)
    assert (template.text, template.name, template.n_columns) == (CHUNKING, "window.txt", 2)
    with pytest.raises(FrozenInstanceError):
        template.text = ""
    again = pickle.loads(pickle.dumps(template))
    assert again.attributes([("a", "b")]) == template.attributes([("a", "b")])


def test_templates_are_read_from_files(tmp_path):
    path = tmp_path / "window.txt"
    path.write_bytes(b"\xef\xbb\xbf" + CHUNKING.encode())
    template = Template.read(path)
    assert (template, template.name) == (Template.parse(CHUNKING), str(path))
    assert Template.read(gzip.compress(CHUNKING.encode())) == template
    with path.open("rb") as file:
        assert Template.read(file) == template
    with pytest.raises(ValueError, match="<bytes>: line 2: is not UTF-8 text: invalid start byte"):
        Template.read(b"U00:%x[0,0]\nU01\xfc:%x[0,1]\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "window: has no line that begins with U"),
        ("# U00:%x[0,0]\nB\n", "window: has no line that begins with U"),
        ("U00:%x[0,0]\nX01:%x[0,0]\n", "window: line 2: 'X01:%x.*' begins neither with U nor with B nor"),
        (" U00:%x[0,0]\n", "window: line 1: ' U00:%x.*' begins neither"),
        ("U00:%x[0]\n", r"window: line 1: '%x\[0\]' is not %x\[offset,column\]"),
        ("U00:%x[0,0]/%y[0,0]\n", r"window: line 1: '%y\[0,0\]' is not"),
        ("U00:%x[0,-1]\n", r"'%x\[0,-1\]' is not"),
        ("U00:%x[+1,0]\n", r"'%x\[\+1,0\]' is not"),
        ("U00:%x[ 1,0]\n", r"'%x\[ 1,0\]' is not"),
        ("U00:%x[99999,0]\n", r"'%x\[99999,0\]' is not"),
        ("U00:%x[٣,0]\n", r"'%x\[٣,0\]' is not"),
        ("U00:50%\n", "'%' is not"),
        ("#\n\nU00:%x[0,0]\nB01:%x[0,0]\n", "window: line 4: 'B01:%x.*' asks for transitions that depend on a column"),
        ("U00:%x[0,0]\nB%\n", "window: line 2: '%' is not"),
    ],
)
def test_lines_that_are_no_template_are_named(text, message):
    with pytest.raises(ValueError, match=message):
        Template.parse(text, "window")


def test_columns_that_are_not_there_are_named():
    template = Template.parse("# window\nU00:%x[0,0]\nU01:%x[0,0]/%x[-1,2]\n", "window")
    message = r"window: line 3: %x\[-1,2\] asks for column 2, but tokens have 2, counted from 0"
    with pytest.raises(ValueError, match=message):
        template.attributes([("a", "b")])
    with pytest.raises(ValueError, match=message):
        template.check(2)
    template.check(3)
    with pytest.raises(ValueError, match="token 1 of the sentence has 2 columns, where token 0 has 3"):
        template.attributes([("a", "b", "c"), ("a", "b")])


@pytest.mark.parametrize("n_columns", [0, -1, 1.0, True, "2"])
def test_default_needs_a_column(n_columns):
    with pytest.raises(ValueError, match=r"n_columns=.* must be a whole number, 1 or more"):
        Template.default(n_columns)


@pytest.mark.skipif("PEGASOS_DATA" not in os.environ, reason="PEGASOS_DATA names no folder of real data")
def test_the_corpus_of_conll_2000():
    corpus = read_conll(Path(os.environ["PEGASOS_DATA"]) / "conll2000.test.txt.xz")
    template = Template.default(2)
    lines = template.text.splitlines()
    for sentence in corpus.sentences[::20]:
        assert template.attributes(sentence) == slowly(lines, sentence)
