"""The attributes of the chunking example: against a slow version, and as many as are known of CoNLL-2000."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "examples" / "chunking.py"
spec = importlib.util.spec_from_file_location("chunking", SCRIPT)
chunking = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = chunking
spec.loader.exec_module(chunking)

COLUMNS = """\
The DT B-NP
late JJ I-NP
train NN I-NP
left VBD B-VP
Union NNP B-NP
Station NNP I-NP
. . O

It PRP B-NP
was VBD B-VP
5\N{NO-BREAK SPACE}1/2 CD B-NP
o'clock RB I-NP

Go VB B-VP
"""


def known(name):
    path = Path(os.environ.get("PEGASOS_DATA", "")) / name
    if not path.is_file():
        pytest.skip(f"{name} is not in the folder named by PEGASOS_DATA")
    return path


@pytest.fixture
def sentences(tmp_path):
    path = tmp_path / "columns.txt"
    path.write_text(COLUMNS, encoding="utf-8")
    return chunking.read_sentences(path)


def slow(words, tags):
    """The windows one by one, token by token."""
    singles, pairs, triples = (
        [[k] for k in range(-2, 3)],
        [[k, k + 1] for k in range(-2, 2)],
        [[k, k + 1, k + 2] for k in (-2, -1, 0)],
    )
    for t in range(len(words)):
        found = {"bias"}
        for name, values, windows in (("w", words, singles + pairs[1:3]), ("pos", tags, singles + pairs + triples)):
            for window in windows:
                seen = [values[t + k] if 0 <= t + k < len(words) else None for k in window]
                if None not in seen:
                    found.add("|".join(f"{name}[{k}]" for k in window) + "=" + "|".join(seen))
                elif name == "w" and len(window) == 1:
                    found.add(f"w[{window[0]}]=")
        yield found


def test_columns(sentences):
    assert sentences[1][2] == ("5\N{NO-BREAK SPACE}1/2", "CD", "B-NP")
    assert chunking.corpus(sentences).y[1] == ["B-NP", "B-VP", "B-NP", "I-NP"]


def test_two_columns_are_refused(tmp_path):
    path = tmp_path / "bad.txt"
    path.write_text("The DT\ntrain NN\n")
    with pytest.raises(ValueError, match=r"bad.txt: expected word, part of speech and chunk tag, got 2 columns"):
        chunking.read_sentences(path)


def test_attributes_are_those_of_the_slow_version(sentences):
    for sentence in [*sentences, *chunking.generated(20, seed=3), []]:
        words, tags = [word for word, _, _ in sentence], [tag for _, tag, _ in sentence]
        found = chunking.sentence_attributes(words, tags)
        assert [set(token) for token in found] == list(slow(words, tags))
        assert all(len(set(token)) == len(token) for token in found)


def test_attributes_of_a_token():
    first, second = chunking.sentence_attributes(["Stop", "!"], ["VB", "."])
    assert first == [
        *("bias", "w[-2]=", "w[-1]=", "w[0]=Stop", "w[1]=!", "w[2]=", "w[0]|w[1]=Stop|!"),
        *("pos[0]=VB", "pos[1]=.", "pos[0]|pos[1]=VB|."),
    ]
    assert "pos[-1]|pos[0]=VB|." in second


def test_generated_sentences_are_the_same_each_time():
    one, other = chunking.generated(30, seed=0), chunking.generated(30, seed=0)
    assert one == other != chunking.generated(30, seed=1)
    for tags in chunking.corpus(one).y:
        for before, tag in zip(["O", *tags], tags, strict=False):
            assert tag[0] in "BO" or tag[2:] == before[2:]  # the grammar of chunk tags


def test_counts_of_conll():
    train = chunking.corpus(chunking.read_sentences(known("conll2000.train.txt.xz")))
    assert len(train.X) == len(train.y) == 8_936
    assert sum(map(len, train.X)) == 211_727
    assert len({tag for tags in train.y for tag in tags}) == 22
    assert sum(len(token) for sentence in train.X for token in sentence) == 4_055_890
    assert len({attribute for sentence in train.X for token in sentence for attribute in token}) == 335_677


def test_counts_of_the_test_sentences():
    test = chunking.corpus(chunking.read_sentences(known("conll2000.test.txt.xz")))
    assert len(test.X) == 2_012
    assert sum(map(len, test.X)) == 47_377
