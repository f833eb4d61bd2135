"""Scores of tagged sequences, against conlleval's rules written out."""

import json
import pickle
from dataclasses import FrozenInstanceError

import conlleval_oracle as oracle
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.metrics import make_scorer
from sklearn.model_selection import cross_val_score

from pegasos.metrics import EntityCounts, entities, entity_f1_score, entity_scores, sequence_accuracy, token_accuracy

TYPES = ["", "-X", "-Y", "-X-Y", "-", "-é", "-a rather long name of a type"]


def corpora(prefixes):
    """Two lists of sequences of any tags, the second mostly like the first."""
    tag = st.builds(str.__add__, st.sampled_from(prefixes), st.sampled_from(TYPES))
    token = st.tuples(tag, tag, st.booleans()).map(lambda t: (t[0], t[0] if t[2] else t[1]))
    return st.lists(st.lists(token, max_size=12), max_size=4).map(
        lambda corpus: tuple([[token[side] for token in sequence] for sequence in corpus] for side in (0, 1))
    )


def agree(y_true, y_pred, scheme):
    expected, scores = oracle.Counts(y_true, y_pred, scheme), entity_scores(y_true, y_pred, scheme=scheme)
    assert (scores.tokens, scores.correct_tokens) == (expected.tokens, expected.right)
    assert list(scores.types) == sorted({*expected.there, *expected.found})
    for kind, counts in scores.types.items():
        there, found, correct = (c.get(kind, 0) for c in (expected.there, expected.found, expected.correct))
        assert (counts.support, counts.found, counts.correct) == (there, found, correct)
    totals = [sum(counts.values()) for counts in (expected.there, expected.found, expected.correct)]
    assert [scores.support, scores.found, scores.correct] == totals
    assert f"{scores}\n" == expected.text


@settings(max_examples=200)
@given(corpora(["B", "I", "O", "E"]))
@example(([["O", "I-X", "I-Y", "B-Y", "O", "I"]], [["O", "I-X", "I-X", "B-Y", "I-Y", "I"]]))
@example(([["I-X", "E-X", "I-X", "E-X", "B-X", "E"]], [["I-X", "E-X", "B-X", "I-X", "E-X", "E"]]))
@example(([["B-X"], ["I-X"], []], [["B-X"], ["B-X"], []]))
@example(([["O-X", "I-X", "O-X", "I"]], [["O", "I-X", "O-Y", "O"]]))
def test_any_tags_are_counted_as_conlleval_counts_them(corpus):
    agree(*corpus, "bio")


@settings(max_examples=200)
@given(corpora(["B", "I", "O", "E", "S"]))
@example(([["B-X", "E-X", "B-X", "E-X", "S-X", "S-X"]], [["B-X", "I-X", "E-X", "E-X", "S-X", "I-X"]]))
def test_any_bioes_tags_are_counted_by_its_rules(corpus):
    agree(*corpus, "bioes")


@st.composite
def segmentations(draw):
    """Entities that may touch, and the number of tokens."""
    found, position = [], 0
    for kind in draw(st.lists(st.sampled_from(["X", "Y", "X-Y", ""]), max_size=6)):
        start = position + draw(st.integers(0, 2))
        position = start + draw(st.integers(1, 4))
        found.append((kind, start, position))
    return found, position + draw(st.integers(0, 2))


@given(segmentations())
def test_entities_come_back_from_well_formed_tags(drawn):
    segments, size = drawn
    iob2, bioes = ["O"] * size, ["O"] * size
    for kind, start, end in segments:
        ending = f"-{kind}" if kind else ""
        for i in range(start, end):
            iob2[i] = ("B" if i == start else "I") + ending
            bioes[i] = ("S" if end == start + 1 else "B" if i == start else "E" if i == end - 1 else "I") + ending
    assert entities(iob2) == entities(iob2, "bioes") == entities(bioes, "bioes") == segments
    assert entity_f1_score([iob2], [iob2]) == entity_f1_score([bioes], [bioes], scheme="bioes") == bool(segments)


def test_touching_entities_of_bioes_are_why_there_are_two_schemes():
    tags = ["B-X", "E-X", "B-X", "E-X"]
    assert entities(tags) == [("X", 0, 4)]  # as conlleval has it
    assert entities(tags, "bioes") == [("X", 0, 2), ("X", 2, 4)]


@given(st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=6), max_size=5))
def test_accuracies_are_shares(corpus):
    y_true, y_pred = ([[token[side] for token in sequence] for sequence in corpus] for side in (0, 1))
    tokens = [a == b for sequence in corpus for a, b in sequence]
    whole = [all(a == b for a, b in sequence) for sequence in corpus]
    assert token_accuracy(y_true, y_pred) == (np.mean(tokens) if tokens else 0.0)
    assert sequence_accuracy(y_true, y_pred) == (np.mean(whole) if whole else 0.0)


def test_percentages_are_rounded_as_conlleval_rounds_them():
    """23 of 160 are exactly 14.375 %, printed as 14.38; 100·(23/160) is a little less, and would be 14.37."""
    assert f"{100 * (23 / 160):.2f}" == "14.37"
    assert "recall:  14.38%" in str(entity_scores(["B-X"] * 160, ["B-X"] * 23 + ["B-Y"] * 137))


def test_a_flat_list_is_one_sequence():
    true, found = ["B-X", "I-X", "O"], ["B-X", "O", "O"]
    assert entity_scores(true, found) == entity_scores([true], [found])
    assert token_accuracy(true, found) == pytest.approx(2 / 3)
    assert sequence_accuracy(true, found) == 0.0
    assert sequence_accuracy(true, true) == 1.0
    assert token_accuracy(np.array([1, 2, 2, 1]), [1, 2, 1, 1]) == 0.75


def test_sequences_of_any_kind():
    true, found = [["B-X", "I-X"], ["O"]], [["B-X", "O"], ["O"]]
    expected = entity_scores(true, found)
    assert entity_scores([np.array(s) for s in true], [tuple(s) for s in found]) == expected
    assert entity_scores(iter(true), (iter(s) for s in found)) == expected
    assert entity_scores(np.array([["B-X", "O"]]), [["B-X", "O"]]).correct_tokens == 2


def test_nothing_divided_by_nothing_is_zero():
    empty = entity_scores([], [])
    assert (empty.precision, empty.recall, empty.f1, empty.accuracy) == (0.0, 0.0, 0.0, 0.0)
    assert str(empty) == "processed 0 tokens with 0 phrases; found: 0 phrases; correct: 0."
    assert token_accuracy([], []) == token_accuracy([[]], [[]]) == sequence_accuracy([], []) == 0.0
    missed = entity_scores([["B-X"]], [["O"]])
    assert (missed.precision, missed.recall, missed.f1) == (0.0, 0.0, 0.0)
    invented = entity_scores([["O"]], [["B-X"]]).types["X"]
    assert (invented.precision, invented.recall, invented.f1) == (0.0, 0.0, 0.0)


def test_results_are_frozen_plain_and_comparable():
    scores = entity_scores([["B-X", "O", "B-Y"]], [["B-X", "O", "O"]])
    with pytest.raises(FrozenInstanceError):
        scores.found = 3
    assert pickle.loads(pickle.dumps(scores)) == scores
    assert hash(scores) == hash(entity_scores(["B-X", "O", "B-Y"], ["B-X", "O", "O"]))
    assert json.loads(json.dumps(scores.to_dict())) == {
        "tokens": 3,
        "correct_tokens": 2,
        "accuracy": 2 / 3,
        "precision": 1.0,
        "recall": 0.5,
        "f1": 2 / 3,
        "support": 2,
        "found": 1,
        "correct": 1,
        "types": {
            "X": {"precision": 1.0, "recall": 1.0, "f1": 1.0, "support": 1, "found": 1, "correct": 1},
            "Y": {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 1, "found": 0, "correct": 0},
        },
    }
    assert scores.types["X"] == EntityCounts(1, 1, 1)


class Constant(BaseEstimator):
    """Tags everything alike."""

    def __init__(self, tag="O"):
        self.tag = tag

    def fit(self, X, y):
        return self

    def predict(self, X):
        return [[self.tag] * len(x) for x in X]


def test_cross_validation_takes_the_scorers():
    X, y = [["a", "b"], ["c"], ["d", "e", "f"], ["g"]], [["B-X", "B-X"], ["B-X"], ["B-X", "O", "O"], ["B-X"]]
    f1 = cross_val_score(Constant("B-X"), X, y, cv=2, scoring=make_scorer(entity_f1_score))
    assert f1.tolist() == [1.0, pytest.approx(2 * 2 / (2 + 4))]
    accuracy = cross_val_score(Constant("B-X"), X, y, cv=2, scoring=make_scorer(token_accuracy))
    assert accuracy.tolist() == [1.0, 0.5]


SCORES = [token_accuracy, sequence_accuracy, entity_scores, entity_f1_score]


@pytest.mark.parametrize("score", SCORES, ids=lambda f: f.__name__)
def test_ragged_input_is_refused_by_name(score):
    with pytest.raises(ValueError, match=r"sequence 1: y_true\[1\] has 2 tags and y_pred\[1\] 1$"):
        score([["O"], ["O", "O"]], [["O"], ["O"]])
    with pytest.raises(ValueError, match="y_true has 1 sequence and y_pred 2 sequences"):
        score([["O"]], [["O"], ["O"]])
    with pytest.raises(ValueError, match=r"y_pred\[1\] is 'O', but y_pred\[0\] is a sequence of tags"):
        score([["O"], ["O"]], [["O"], "O"])
    with pytest.raises(TypeError, match=r"y_true must be a list of sequences of tags, or one .* got a single text"):
        score("OOO", ["O", "O", "O"])


def test_tags_that_do_not_fit_the_scheme_are_refused_by_name():
    with pytest.raises(ValueError, match=r"y_pred\[1\]\[1\] is 'S-X', .* of scheme='bio'; scheme='bioes' has it"):
        entity_scores([["O"], ["O", "O"]], [["O"], ["O", "S-X"]])
    with pytest.raises(
        ValueError, match=r"tags\[0\] is 'NN', which is not O and does not begin with one of B, I, E, S"
    ):
        entities(["NN"], scheme="bioes")
    with pytest.raises(ValueError, match=r"tags\[1\] is '\[-X'"):
        entities(["O", "[-X"])
    with pytest.raises(TypeError, match=r"y_true\[0\]\[0\] is 3, but tags of entities are texts"):
        entity_scores([[3]], [["O"]])
    with pytest.raises(TypeError, match=r"y_pred\[0\]\[0\] is \['O'\], but tags of entities are texts"):
        entity_scores([["O"]], [[["O"]]])
    with pytest.raises(ValueError, match=r"scheme='bios' is none of bio, bioes \(did you mean 'bio"):
        entities([], scheme="bios")
    with pytest.raises(TypeError, match="tags must be a sequence of tags, got a single text"):
        entities("B-X")
