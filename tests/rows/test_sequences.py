"""Sequences of every kind are encoded as the oracle does it, and what is wrong with them is said by its place."""

from __future__ import annotations

import copy
import itertools
import pickle
import signal
import sys
from collections import Counter, OrderedDict, UserDict
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sequence_oracle as oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from pegasos import _core
from pegasos.rows.sequences import Encoder, encode_tags

several = settings(deadline=None, derandomize=True, max_examples=100)

names = st.text(max_size=12) | st.sampled_from(["a", "b", "a:b", "Ä", "词", "😀", "nul\0", ""])
spelled = names | names.map(str.encode) | names.filter(lambda name: not name.endswith("\0")).map(np.str_)
numbers = (
    st.sampled_from([0, 1, -2, 0.0, -0.0, 1.0, True, False, np.True_, np.False_, np.int64(3), np.float32(0.5), 10**300])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(-(2**70), 2**70)
)
groups = st.lists(spelled, max_size=3) | st.sets(names, max_size=4) | st.frozensets(names, max_size=3)
groups |= st.lists(names, max_size=3).map(tuple)
values = st.recursive(
    spelled | numbers | groups, lambda inner: st.dictionaries(spelled, inner, max_size=3), max_leaves=6
)
tokens = st.dictionaries(spelled, values, max_size=4) | groups | spelled
corpora = st.lists(st.lists(tokens, min_size=1, max_size=4), min_size=1, max_size=4)


def check(found, expected, n_attributes):
    assert found.offsets.tolist() == expected.offsets
    assert found.indptr.tolist() == expected.indptr
    assert found.ids.tolist() == expected.ids
    given = [1.0] * len(expected.ids) if found.values is None else found.values.tolist()
    assert given == expected.values
    assert (found.values is None) == all(x == 1 for x in expected.values)
    assert [a.dtype for a in (found.offsets, found.indptr, found.ids)] == [np.int64, np.int64, np.int32]
    assert found.n_attributes == n_attributes
    assert len(found) == len(expected.offsets) - 1
    assert found.tokens == expected.offsets[-1]


class Once:
    """Iterates once, or fails."""

    def __init__(self, items):
        self.items, self.used = items, False

    def __iter__(self):
        assert not self.used
        self.used = True
        return iter(self.items)


def lazy(X):
    """The same corpus of objects that iterate once, generators among them, down to tokens that are no dicts."""
    inner = [[t if isinstance(t, dict | str | bytes | set | frozenset) else Once(t) for t in s] for s in X]
    return ((t for t in s) if k % 2 else Once(s) for k, s in enumerate(inner))


# --- attributes ------------------------------------------------------------------------------------------------------


@several
@given(X=corpora, Z=corpora, min_freq=st.sampled_from([0, 1, 1.5, 2, 3]))
def test_attributes_as_the_oracle(X, Z, min_freq):
    expected = oracle.encode(X, min_freq=min_freq)
    encoder, found = Encoder.fitted(X, min_freq=min_freq)
    assert encoder.kind == "attributes"
    assert encoder.names == expected.names
    assert len(encoder) == len(expected.names)
    check(found, expected, len(encoder))
    check(Encoder.fitted(lazy(X), min_freq=min_freq)[1], expected, len(encoder))
    check(encoder.encode(lazy(Z)), oracle.encode(Z, expected.names), len(encoder))
    # the same tokens flat
    lengths, flat = [len(s) for s in X], list(itertools.chain(*X))
    check(Encoder.fitted(flat, lengths, min_freq)[1], expected, len(encoder))
    check(encoder.encode(iter(flat), np.array(lengths, dtype=np.uint8)), oracle.encode(X, expected.names), len(encoder))


def names_of(token):
    return Encoder.fitted([[token]])[0].names


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ({"w": "the"}, {"w:the": 1}),
        ({"cap": True, "low": False, "none": 0.0}, {"cap": 1}),
        ({"a": {"b": {"c": "d", "e": 2}}}, {"a:b:c:d": 1, "a:b:e": 2}),
        ({"a": {"y", "x"}, "b": ["z"], "c": ()}, {"a:x": 1, "a:y": 1, "b:z": 1}),
        ({"a": {}}, {}),
        ({"n": Decimal("0.5"), "f": Fraction(1, 4), "z": np.array(2.0)}, {"n": 0.5, "f": 0.25, "z": 2}),
        ({"a": np.array(["x", "y"])}, {"a:x": 1, "a:y": 1}),
        ({"a": (c for c in "xy")}, {"a:x": 1, "a:y": 1}),
        ({"a": UserDict(b=3)}, {"a:b": 3}),
        (Counter("aab"), {"a": 2, "b": 1}),
        (OrderedDict(a=1), {"a": 1}),
        (UserDict(w="the"), {"w:the": 1}),
        (pd.Series({"w": "the", "len": 3}), {"w:the": 1, "len": 3}),
        (np.array(["x", "y"]), {"x": 1, "y": 1}),
        ({"a": 1}.keys(), {"a": 1}),
        (b"\xc3\xa4", {"ä": 1}),
        ("word", {"word": 1}),
    ],
)
def test_what_a_token_means(token, expected):
    encoder, found = Encoder.fitted([[token]])
    assert encoder.names == list(expected)
    assert (found.values is None) == all(x == 1 for x in expected.values())
    if found.values is not None:
        assert found.values.tolist() == list(expected.values())


def test_a_repeated_attribute_counts_repeatedly():
    assert Encoder.fitted([[["a", "b", "a"], {"a": 1, b"a": 2.0}]])[1].ids.tolist() == [0, 1, 0, 0, 0]
    encoder, found = Encoder.fitted([[["a", "a"], ["b"], ["b"]]], min_freq=2)  # in two tokens
    assert (encoder.names, found.ids.tolist(), found.indptr.tolist()) == (["b"], [0, 0], [0, 0, 1, 2])


def test_values_that_are_left_are_ones():
    """What is left out by min_freq, or not known, does not count."""
    X = [[{"a": 2.0, "b": True}, {"b": True}]]
    assert Encoder.fitted(X, min_freq=2)[1].values is None
    assert Encoder.fitted([["b"]])[0].encode(X).values is None


def test_sets_are_taken_in_order():
    """The order of a set changes from run to run; models should not."""
    words = [f"w{k}" for k in range(100)]
    assert names_of(set(words)) == sorted(words)
    assert names_of({"a": frozenset(words)}) == sorted(f"a:{w}" for w in words)


def test_many_names():
    """The table grows, and different names of one hash stay apart: of so many there are some."""
    words = [f"{k % 7}{k}" for k in range(300_000)]
    encoder, found = Encoder.fitted([[words], [words[::-1]]])
    assert encoder.names == words
    assert found.ids.tolist() == [*range(300_000), *range(299_999, -1, -1)]
    assert encoder.encode([[["?", *words]]]).ids.tolist() == list(range(300_000))


def test_long_names_and_long_sequences():
    names = ["a" * n for n in range(70)] + ["b" + "a" * 10**6, "c" + "a" * 10**6]
    encoder, found = Encoder.fitted([[[name] for name in names * 3], itertools.repeat("a", 200_000)])
    assert encoder.names == names
    assert found.ids.tolist() == list(range(len(names))) * 3 + [1] * 200_000


# --- columns ---------------------------------------------------------------------------------------------------------

LAYOUTS = {
    "csr": sparse.csr_array,
    "csr matrix": sparse.csr_matrix,
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
    "lil": sparse.lil_array,
    "int64 indices": lambda A: wide(sparse.csr_array(A)),
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": lambda A: np.repeat(np.repeat(A, 2, axis=0), 3, axis=1)[::2, ::3],
    "pandas": lambda A: pd.DataFrame(A).rename(columns=str),
    "polars": lambda A: pl.DataFrame(A, schema=[str(j) for j in range(A.shape[1])]),
}


def wide(A):
    A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    return A


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8, bool])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_means_the_same(layout, dtype):
    """… and the same as dicts, whose attributes are numbered as they come; one row and one column are empty."""
    rng = np.random.default_rng(0)
    lengths = [3, 1, 5]
    A = np.where(rng.random((9, 5)) < 0.5, rng.integers(0, 4, (9, 5)), 0).astype(dtype)
    A[4], A[:, 2] = 0, 0
    split = [LAYOUTS[layout](part) for part in np.split(A, np.cumsum(lengths)[:-1])]
    dicts = [[{str(j): row[j] for j in range(5)} for row in part] for part in np.split(A, np.cumsum(lengths)[:-1])]
    expected = oracle.encode(dicts, [str(j) for j in range(5)])
    encoder, found = Encoder.fitted(split)
    assert (encoder.kind, encoder.names, len(encoder)) == ("columns", ["0", "1", "2", "3", "4"], 5)
    check(found, expected, 5)
    for again in (
        Encoder.fitted(iter(split))[1],
        Encoder.fitted(LAYOUTS[layout](A), lengths)[1],
        encoder.encode(split),
        encoder.encode(LAYOUTS[layout](A), lengths),
    ):
        check(again, expected, 5)
    named, by_name = Encoder.fitted(dicts)
    assert [named.names[k] for k in by_name.ids] == [str(k) for k in found.ids]
    if dtype is bool:
        assert found.values is None
        check(
            named.encode([[[str(j) for j in np.flatnonzero(row)] for row in A]]),
            oracle.encode([dicts[0] + dicts[1] + dicts[2]], named.names),
            4,
        )


def test_columns_of_an_array_of_three_dimensions():
    A = np.arange(24.0).reshape(2, 3, 4)
    check(
        Encoder.fitted(A)[1],
        oracle.encode([[dict(zip("0123", row, strict=True)) for row in s] for s in A.tolist()], list("0123")),
        4,
    )


def test_entries_of_a_sparse_matrix_as_they_are():
    """Repeated entries count repeatedly, explicit zeros do not; more may be stored than row pointers show."""
    A = sparse.csr_array((2, 3))
    A.data, A.indices, A.indptr = np.array([2.0, 0, 1, 1, 9]), np.array([1, 0, 2, 2, 7]), np.array([0, 2, 4])
    found = Encoder.fitted([A])[1]
    assert (found.indptr.tolist(), found.ids.tolist(), found.values.tolist()) == ([0, 1, 3], [1, 2, 2], [2, 1, 1])


def test_names_of_data_frames():
    frame = pd.DataFrame({"len": [3.0, 1.0], "cap": [True, False]})
    encoder, found = Encoder.fitted([frame])
    assert encoder.names == ["len", "cap"]
    check(found, oracle.encode([[{"len": 3, "cap": 1}, {"len": 1}]]), 2)
    assert encoder.encode([frame.to_numpy(dtype=float)]).tokens == 2
    with pytest.raises(ValueError, match="column 0 of sequence 1 is 'cap', not as there were in fit: 'len'"):
        encoder.encode([frame, frame[["cap", "len"]]])
    with pytest.raises(ValueError, match="column 1 of sequence 1 is 'low', not as those before have 'cap'"):
        Encoder.fitted([frame, frame.rename(columns={"cap": "low"})])
    assert Encoder.fitted([frame.to_numpy(dtype=float), frame])[0].names == ["0", "1"]
    with pytest.raises(ValueError, match="sequence 0, position 1: column 'len' is NaN"):
        encoder.encode([pd.DataFrame({"len": [3.0, None], "cap": [True, False]})])
    with pytest.raises(ValueError, match=r"two columns of X have the name 'len'"):
        Encoder.fitted([frame.set_axis(["len", "len"], axis=1)])
    with pytest.raises(ValueError, match=r"sequence 0 is not all numbers.*to_dict\('records'\)"):
        Encoder.fitted([pd.DataFrame({"w": ["the"]})])


# --- what is wrong with X --------------------------------------------------------------------------------------------


def at(item, sequence=1, position=2):
    """A corpus with an item at this place."""
    X = [["a", "b", "c"] for _ in range(3)]
    X[sequence][position] = item
    return X


class Odd:
    pass


PLACE = "sequence 1, position 2: "
BAD_TOKENS = [
    ({"x": np.nan}, ValueError, "attribute 'x' is NaN"),
    ({"a": {"x": np.float32("inf")}}, ValueError, "attribute 'a:x' is infinity"),
    ({"x": -np.inf}, ValueError, "attribute 'x' is infinity"),
    ({"x" * 70: np.nan}, ValueError, "attribute 'x{60}'… is NaN"),
    ({"x": 10**400}, ValueError, "attribute 'x' is an integer too large"),
    (
        {"x": None},
        TypeError,
        "the value of attribute 'x' is of type NoneType, but should be a string, a number, a dict",
    ),
    ({"a": {"x": Odd()}}, TypeError, "the value of attribute 'a:x' is of type Odd"),
    ({3: "x"}, TypeError, "a key is of type int, not a string"),
    ({"a": {None: 1}}, TypeError, "a key is of type NoneType, not a string"),
    (UserDict({3: "x"}), TypeError, "a key is of type int, not a string"),
    (
        ["a", 3.5],
        TypeError,
        r"an attribute is of type float, not a string; numbers have names, as in \{'length': 3.0\}",
    ),
    ([{"a": 1}], TypeError, "an attribute is of type dict, not a string"),
    ((None,), TypeError, "an attribute is of type NoneType, not a string$"),
    ({"a": [["b"]]}, TypeError, "an attribute of 'a' is of type list, not a string"),
    (np.arange(3), TypeError, "an attribute is of type int64, not a string; numbers have names"),
    (3, TypeError, "a token is of type int, but should be a dict, a string or a list of strings; numbers have"),
    (None, TypeError, "a token is of type NoneType, but should be a dict, a string or a list of strings$"),
    ("\ud800x", ValueError, r"the string '\\ud800x' has a lone surrogate"),
    ({"\udfff": 1}, ValueError, r"the string '\\udfff' has a lone surrogate"),
    ({"a": "\ud800"}, ValueError, r"the string '\\ud800' has a lone surrogate"),
    (b"\xff", ValueError, r"the bytes '\\\\xff' are not UTF-8"),
    ({"a": b"\xc3"}, ValueError, r"the bytes '\\\\xc3' are not UTF-8"),
]


@pytest.mark.parametrize(("token", "error", "message"), BAD_TOKENS, ids=[b[2][:40] for b in BAD_TOKENS])
def test_tokens_that_are_refused(token, error, message):
    X = at(token)
    with pytest.raises(error, match="^" + PLACE + message):
        Encoder.fitted(X)
    with pytest.raises(error, match="^" + PLACE + message):
        Encoder.fitted(itertools.chain(*X), [3, 3, 3])
    encoder = Encoder.fitted([["a"]])[0]
    with pytest.raises(error, match="^" + PLACE + message):
        encoder.encode([X[0], iter(X[1])])
    with pytest.raises(error, match=r"^sequence 2, position 1: "):  # sequences of no tokens count, too
        encoder.encode([*X[0], token], [2, 0, 2])


SHAPES = [
    ("the dog", TypeError, "X is of type str, but should be a list of sequences"),
    ({"w": "the"}, TypeError, "X is of type dict, but should be a list of sequences"),
    (3, TypeError, "X is of type int, but should be a list of sequences"),
    (None, TypeError, "X is of type NoneType, but should be a list of sequences"),
    (["the", "dog"], TypeError, r"sequence 0 is of type str, but should be a sequence of tokens: .* passed as \[X\]"),
    ([["the"], b"dog"], TypeError, "sequence 1 is of type bytes, but should be a sequence of tokens"),
    ([{"w": "the"}], TypeError, "sequence 0 is of type dict, but should be a sequence of tokens"),
    ([{"a", "b"}], TypeError, "sequence 0 is of type set, but should be a sequence of tokens"),
    ({("a", "b")}, TypeError, "X is of type set, but should be a list of sequences"),
    ([["a"], 3], TypeError, "sequence 1 is of type int, but should be a sequence of tokens"),
    (np.arange(3.0), TypeError, "sequence 0 is of type float64, but should be a sequence of tokens"),
    ([], ValueError, "X has no sequences"),
    (iter([]), ValueError, "X has no sequences"),
    ([[]], ValueError, "sequence 0 has no tokens"),
    ([["a"], iter([])], ValueError, "sequence 1 has no tokens"),
    ([np.ones((2, 3)), np.ones((0, 3))], ValueError, "sequence 1 has no tokens"),
    ([[], np.ones((2, 3))], ValueError, "sequence 0 has no tokens"),
    (np.ones((2, 3)), ValueError, r"X is one matrix of shape \(2, 3\): .* lengths"),
    (sparse.eye_array(3, format="csr"), ValueError, r"X is one matrix of shape \(3, 3\)"),
    ([np.ones((2, 3)), np.ones((2, 4))], ValueError, "sequence 1 has 4 columns, not as many as those before have 3"),
    ([np.ones((2, 3)), np.ones(3)], ValueError, r"sequence 1 has shape \(3,\), but should have two dimensions"),
    ([np.ones((2, 0))], ValueError, "sequence 0 has 0 columns"),
    ([sparse.csr_array((1, 2**31))], ValueError, "sequence 0 has 2147483648 columns, but should have 1 … 2147483646"),
    ([np.ones((2, 3)), ["a"]], TypeError, "sequence 1 is of type list, but should be an array of numbers"),
    ([["a"], np.ones((2, 3))], TypeError, "sequence 1, position 0: an attribute is of type float64, not a string"),
    ([np.ones((2, 3), dtype=complex)], TypeError, "sequence 0 has entries of type complex128"),
    ([np.ones((1, 2)), np.array([[1, 2], [3, np.nan]])], ValueError, "sequence 1, position 1: column 1 is NaN"),
    ([sparse.csc_array([[1, 0], [-np.inf, 0]])], ValueError, "sequence 0, position 1: column 0 is infinity"),
]


@pytest.mark.parametrize(("X", "error", "message"), SHAPES, ids=[s[2][:50] for s in SHAPES])
def test_corpora_that_are_refused(X, error, message):
    with pytest.raises(error, match="^" + message):
        Encoder.fitted(X)


@pytest.mark.parametrize(
    ("X", "lengths", "error", "message"),
    [
        (["a", "b"], [1, 2], ValueError, "lengths add up to 3 tokens, but X has 2$"),
        (["a", "b"], [1], ValueError, "lengths add up to 1 tokens, but X has 2$"),
        (iter(["a", "b"]), [1, 2], ValueError, "lengths add up to 3 tokens, but X has 2$"),
        (iter(["a", "b"]), [1], ValueError, "lengths add up to 1 tokens, but X has more$"),
        (np.ones((3, 2)), [1, 1], ValueError, "lengths add up to 2 tokens, but X has 3 rows"),
        (["a", "b"], [2, 0], ValueError, "sequence 1 has no tokens"),
        (["a", "b"], [], ValueError, "X has no sequences"),
        (["a", "b"], [3, -1], ValueError, r"lengths\[1\] is negative: -1"),
        (["a", "b"], [1.0, 1.0], TypeError, "lengths must be integers, not float64"),
        (["a", "b"], [[1, 1]], ValueError, r"lengths must be a list of integers, .* not of shape \(1, 2\)"),
        (["a", "b"], 2, ValueError, r"lengths must be a list of integers, .* not of shape \(\)"),
        (["a", "b"], [2**63 - 1, 2**63 - 1], ValueError, "lengths add up to 18446744073709551614 tokens"),
        ("ab", [2], TypeError, "X is of type str, but should be a list of tokens"),
        (np.array([[1.0], [np.nan], [1]]), [1, 2], ValueError, "sequence 1, position 0: column 0 is NaN"),
    ],
)
def test_lengths_that_are_refused(X, lengths, error, message):
    with pytest.raises(error, match="^" + message):
        Encoder.fitted(X, lengths)


@pytest.mark.parametrize("min_freq", [-1, np.nan, np.inf, "2", None, True])
def test_min_freq_is_checked(min_freq):
    with pytest.raises(ValueError, match="min_freq must be a number >= 0"):
        Encoder.fitted([["a"]], min_freq=min_freq)


def test_min_freq_is_for_attributes():
    with pytest.raises(ValueError, match="min_freq is for attributes with names"):
        Encoder.fitted([np.ones((1, 2))], min_freq=2)


@pytest.mark.parametrize(
    ("indices", "indptr"),
    [
        ([0, 5], [0, 1, 2]),
        ([0, -1], [0, 1, 2]),
        ([0, 1], [0, 2, 1]),
        ([0, 1], [0, 2]),
        ([0, 1], [1, 1, 2]),
        ([0, 1], [0, 1, 3]),
    ],
)
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array])
def test_broken_sparse_matrices(kind, indices, indptr):
    A = kind((2, 2))
    A.data, A.indices, A.indptr = np.ones(2), np.array(indices, dtype=np.int32), np.array(indptr, dtype=np.int32)
    with pytest.raises(ValueError, match="sequence 1 is not a valid sparse matrix"):
        Encoder.fitted([np.ones((1, 2)), A])


def test_limit_of_names():
    with pytest.raises(ValueError, match="more than 2 different attributes"):
        _core.Vocabulary.learn(iter([["a", "b", "a", "c"]]), None, 0.0, limit=2)


# --- what an encoder is given later ----------------------------------------------------------------------------------


def test_nothing_to_encode():
    for X in ([["a"]], [np.ones((2, 3))]):
        encoder = Encoder.fitted(X)[0]
        for nothing in ([], iter([])):
            found = encoder.encode(nothing)
            assert (len(found), found.tokens, found.n_attributes) == (0, 0, len(encoder))
        for empty in ([[], [], X[0]], [(), np.array([]), X[0]]):
            assert np.diff(encoder.encode(empty).offsets).tolist() == [0, 0, len(X[0])]
        assert len(encoder.encode([], [0, 0])) == 2


def test_another_kind():
    attributes, columns = Encoder.fitted([["a"]])[0], Encoder.fitted([np.ones((2, 3))])[0]
    with pytest.raises(TypeError, match="the sequences of X should be dicts or strings, as in fit"):
        attributes.encode([np.ones((2, 3))])
    with pytest.raises(TypeError, match="the sequences of X should be arrays of numbers, as in fit"):
        columns.encode([["a"]])
    with pytest.raises(TypeError, match="the sequences of X should be arrays of numbers, as in fit"):
        columns.encode(["a"], [1])
    with pytest.raises(ValueError, match="sequence 1 has 4 columns, not as many as there were in fit: 3"):
        columns.encode([np.ones((2, 3)), np.ones((2, 4))])


@pytest.mark.parametrize(
    "X", [[[["a", "ä😀", ""], {"n": 2.0}]], [np.ones((2, 3))], [pd.DataFrame({"len": [1.0]})], [[()]]]
)
def test_an_encoder_is_taken_apart_and_put_together(X):
    encoder = Encoder.fitted(X)[0]
    text, offsets = encoder.arrays()
    assert (text.dtype, offsets.dtype) == (np.uint8, np.int64)
    others = [Encoder.of_arrays(encoder.kind, text, offsets), copy.deepcopy(encoder), copy.copy(encoder)]
    others += [pickle.loads(pickle.dumps(encoder, protocol)) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)]
    for other in others:
        assert (other.kind, other.names) == (encoder.kind, encoder.names)
        assert other.encode(X).ids.tolist() == encoder.encode(X).ids.tolist()


@pytest.mark.parametrize(
    ("kind", "text", "offsets", "message"),
    [
        ("words", b"ab", [0, 2], "kind must be 'attributes' or 'columns', not 'words'"),
        ("attributes", b"ab", [], "no offsets"),
        ("attributes", b"ab", [0, 1], "do not run from 0 to their end"),
        ("attributes", b"ab", [1, 2], "do not run from 0 to their end"),
        ("attributes", b"abc", [0, 2, 1, 3], "decrease at name 1"),
        ("attributes", b"abc", [0, 5, 3], "decrease at name 0"),
        ("attributes", b"abc", [0, -1, 3], "decrease at name 0"),
        ("attributes", b"abab", [0, 2, 4], "name 1 is there twice"),
        ("columns", b"a\xff", [0, 1, 2], "name 1 is not UTF-8"),
        ("columns", b"\xc3\xa4", [0, 1, 2], "name 0 is not UTF-8"),
        ("columns", b"ab", [[0, 2]], "offsets of the names must be a 1-d array of int64"),
    ],
)
def test_arrays_from_a_file_are_checked(kind, text, offsets, message):
    with pytest.raises(ValueError, match=message):
        Encoder.of_arrays(kind, np.frombuffer(text, dtype=np.uint8), np.array(offsets, dtype=np.int64))
    with pytest.raises(ValueError, match="text of the names must be a 1-d array of uint8"):
        Encoder.of_arrays("columns", np.zeros(2), np.array([0, 2]))


# --- objects that do as they like ------------------------------------------------------------------------------------


class Boom(Exception):
    pass


def raising():
    yield "a"
    raise Boom


class Raises:
    """Raises wherever it is asked."""

    def __iter__(self):
        raise Boom

    def __float__(self):
        raise Boom


@pytest.mark.parametrize("token", [raising(), Raises(), {"a": Raises()}, {"a": {"b": raising()}}])
def test_what_iterators_raise_goes_through(token):
    with pytest.raises(Boom) as caught:
        Encoder.fitted(at(token))
    assert caught.value.__notes__ == ["while X was read at sequence 1, position 2"]


def test_what_iterators_of_tokens_raise_goes_through():
    with pytest.raises(Boom) as caught:
        Encoder.fitted([["a"], raising()])
    assert caught.value.__notes__ == ["while X was read at sequence 1, position 1"]
    with pytest.raises(Boom):
        Encoder.fitted(raising(), [1, 1])
    with pytest.raises(Boom):
        Encoder.fitted(Raises())


def test_dicts_that_change():
    class Grows:
        def __float__(self):
            token[f"more{len(token)}"] = 1.0
            return 1.0

    class Shrinks:
        def __iter__(self):
            token.clear()
            return iter(["x"])

    for value in (Grows(), Shrinks()):
        token = {"a": value, "b": "c", "d": "e"}
        with pytest.raises(RuntimeError, match="dictionary changed size during iteration"):
            Encoder.fitted([[token]])


def test_a_dict_whose_values_change_places():
    """Its size stays the same; what is read is still there."""

    class Replaces:
        def __init__(self):
            self.text = "x" * 1000

        def __iter__(self):
            token["a"] = token["b"] = None
            return iter([self.text])

    token = {"a": Replaces(), "b": "y" * 1000}
    with pytest.raises(TypeError, match="the value of attribute 'b' is of type NoneType"):
        Encoder.fitted([[token]])


def test_lists_that_change():
    class Clears:
        def __init__(self, victim):
            self.victim = victim

        def __iter__(self):
            self.victim.clear()
            return iter(["x"])

    tokens = []
    tokens += [Clears(tokens), "a", "b"]
    assert Encoder.fitted([tokens])[0].names == ["x"]
    X = []
    X += [[Clears(X)], ["a"]]
    assert Encoder.fitted(X)[0].names == ["x"]
    values = []
    values += ["a"]
    token = {"k": values, "l": Clears(values), "m": values}
    assert Encoder.fitted([[token]])[0].names == ["k:a", "l:x"]


def test_odd_mappings_and_lengths():
    class Items:
        def keys(self):
            return []

        def items(self):
            return ["ab", "cd"]

    with pytest.raises(TypeError, match="sequence 1, position 2: the items of a Items are no pairs"):
        Encoder.fitted(at(Items()))

    class Length(Raises):
        def __len__(self):
            raise Boom

    with pytest.raises(Boom):
        Encoder.fitted(at({"a": Length()}))


def test_dicts_that_hold_themselves():
    token = {"w": "the"}
    token["self"] = token
    with pytest.raises(ValueError, match=PLACE + "dicts are nested more than 100 deep"):
        Encoder.fitted(at(token))
    deep = "x"
    for _ in range(100):
        deep = {"a": deep}
    assert names_of(deep) == ["a:" * 100 + "x"]


def test_references_are_given_back():
    """After success and after every way to fail alike."""
    strings = [f"string {k}" for k in range(3)]
    token = {strings[0]: strings[1], "n": [strings[2]], "m": {"x": 2.5}}
    bad = [Odd(), {"a": Odd()}, {"a": "\ud800"}, {"a": [Odd()]}, {"a": {"b": np.nan}}, Raises(), UserDict({3: 4})]
    X = [[token, strings, tuple(strings), set(strings), UserDict(token), *strings]]
    watched = [*strings, token, X, X[0], *X[0], *bad, Odd]
    encoder = Encoder.fitted(X)[0]

    def counts():
        return [sys.getrefcount(thing) for thing in watched]

    before = counts()
    for _ in range(10):
        Encoder.fitted(X, min_freq=2)
        encoder.encode(X)
    assert counts() == before
    for item in bad:
        for _ in range(10):
            with pytest.raises((TypeError, ValueError, Boom)):
                Encoder.fitted([X[0], [token, item]])
            with pytest.raises((TypeError, ValueError, Boom)):
                encoder.encode([iter(X[0]), iter([token, item])])
    del item
    assert counts() == before


def test_arrays_outlive_their_encoder():
    encoder, found = Encoder.fitted([[["a", "b"], {"a": 2.0}]])
    text, offsets = encoder.arrays()
    del encoder
    assert (found.ids.tolist(), found.values.tolist()) == ([0, 1, 0], [1, 1, 2])
    assert (text.tobytes(), offsets.tolist()) == (b"ab", [0, 1, 2])


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
def test_a_signal_ends_it():
    """Nothing of Python runs in between, and the next sequence is never looked at."""
    marks = []

    def ring(*_):
        raise Boom

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(Boom):
            Encoder.fitted([itertools.repeat("a", 30_000_000), map(marks.append, "a")])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert marks == []


# --- sequences -------------------------------------------------------------------------------------------------------


@several
@given(X=corpora, seed=st.integers(0, 99))
def test_some_of_the_sequences(X, seed):
    encoder, found = Encoder.fitted([*X, ["last"]])
    X = [*X, ["last"]]
    rng = np.random.default_rng(seed)
    for chosen in (rng.integers(0, len(X), 5), [], [-1], rng.random(len(X)) < 0.5):
        expected = oracle.encode(
            [X[k] for k in np.arange(len(X))[np.asarray(chosen, dtype=None if len(chosen) else int)]], encoder.names
        )
        taken = found.take(chosen)
        values = [1.0] * len(taken.ids) if taken.values is None else taken.values.tolist()
        assert (taken.offsets.tolist(), taken.indptr.tolist()) == (expected.offsets, expected.indptr)
        assert (taken.ids.tolist(), values) == (expected.ids, expected.values)
        assert taken.n_attributes == len(encoder)
    with pytest.raises(IndexError):
        found.take([len(X)])


def test_lists_of_what_is_flat():
    found = Encoder.fitted([["a"]])[0].encode([["a", "b"], [], ["c"]])
    assert found.lists(np.array([1.5, 2.5, 3.5])) == [[1.5, 2.5], [], [3.5]]
    assert found.lists(("x", "y", "z")) == [["x", "y"], [], ["z"]]
    assert [found.place(t) for t in range(3)] == [
        "sequence 0, position 0",
        "sequence 0, position 1",
        "sequence 2, position 0",
    ]


# --- tags ------------------------------------------------------------------------------------------------------------

PAIR = Encoder.fitted([["a", "b"], ["c"]])[1]


@pytest.mark.parametrize(
    ("y", "codes", "classes"),
    [
        ([["B", "I"], ["A"]], [1, 2, 0], ["A", "B", "I"]),
        ((("B", "I"), ("A",)), [1, 2, 0], ["A", "B", "I"]),
        (["B", "I", "A"], [1, 2, 0], ["A", "B", "I"]),
        ((iter(s) for s in ("BI", "A")), [1, 2, 0], ["A", "B", "I"]),
        (np.array(["B", "I", "A"]), [1, 2, 0], ["A", "B", "I"]),
        (np.array(["B", "I", "A"], dtype=object), [1, 2, 0], ["A", "B", "I"]),
        (pd.Series(["B", "I", "A"]), [1, 2, 0], ["A", "B", "I"]),
        ([pd.Series(["B", "I"]), np.array(["A"])], [1, 2, 0], ["A", "B", "I"]),
        ([[np.str_("B"), "I"], ["B"]], [0, 1, 0], ["B", "I"]),
        ([[10, 9.5], [True]], [2, 1, 0], [True, 9.5, 10]),
        ([[np.int64(3), 2], [np.float32(2)]], [1, 0, 0], [2, 3]),
        ([[1, 1.0], [True]], [0, 0, 0], [1]),
        ([[True, 1], [0]], [1, 1, 0], [0, True]),
        ([["x", 1], [("t", 2)]], [0, 1, 2], ["x", 1, ("t", 2)]),
        ([[("b", 1), ("a", 2)], [("b", 1)]], [0, 1, 0], [("b", 1), ("a", 2)]),
        ([frozenset("b"), frozenset("a"), frozenset("b")], [0, 1, 0], [frozenset("b"), frozenset("a")]),
    ],
)
def test_tags(y, codes, classes):
    found, meaning = encode_tags(y, PAIR)
    assert (found.tolist(), meaning, found.dtype) == (codes, classes, np.int32)
    assert [type(tag) for tag in meaning] == [type(tag) for tag in classes]


def test_tags_of_given_classes():
    found, classes = encode_tags([["B", "I"], ["B"]], PAIR, ("O", "I", "B"))
    assert (found.tolist(), classes) == ([2, 1, 2], ["O", "I", "B"])
    assert encode_tags([[1, 1.0], [True]], PAIR, [0, np.int64(1)])[0].tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match=r"^sequence 1, position 0: the tag 'X' is none of \['O', 'I', 'B'\]"):
        encode_tags([["B", "I"], ["X"]], PAIR, ("O", "I", "B"))
    with pytest.raises(ValueError, match=r"none of \[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …\] \(30 tags\)"):
        encode_tags([["B", "I"], ["X"]], PAIR, range(30))
    with pytest.raises(ValueError, match="classes has a tag twice"):
        encode_tags([["B", "I"], ["B"]], PAIR, ["B", "I", "B"])


def test_tags_of_no_tokens():
    nothing = Encoder.fitted([["a"]])[0].encode([[], []])
    assert encode_tags([[], []], nothing)[0].tolist() == []
    assert encode_tags([[], []], nothing, ["B"])[1] == ["B"]


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        ([["B", "I"], ["B", "I"]], ValueError, "sequence 1 has 1 tokens but 2 tags"),
        ([["B"], ["B"]], ValueError, "sequence 0 has 2 tokens but 1 tags"),
        ([["B", "I"]], ValueError, "X has 2 sequences, but y has 1$"),
        ([["B", "I"], ["B"], ["I"]], ValueError, "X has 2 sequences, but y has 3$"),
        (["B", "I"], ValueError, "X has 3 tokens in 2 sequences, but y has 2 tags"),
        ([], ValueError, "X has 3 tokens in 2 sequences, but y has 0 tags"),
        ("BIB", TypeError, "y is of type str, but should be a list of tags for each sequence"),
        (None, TypeError, "y is of type NoneType"),
        (3, TypeError, "y is of type int"),
        ({"B": 1}, TypeError, "y is of type dict"),
        ([["B", "I"], "B"], TypeError, "sequence 1 of y is of type str, but should be a list of tags"),
        ([{"B", "I"}, ["B"]], TypeError, "sequence 0 of y is of type set"),
        ([["B", "I"], 3], TypeError, "sequence 1 of y is of type int"),
        ([["B", None], ["B"]], ValueError, "sequence 0, position 1: the tag is None"),
        ([["B", "I"], [np.nan]], ValueError, "sequence 1, position 0: the tag is nan"),
        ([["B", np.float32("nan")], ["B"]], ValueError, "sequence 0, position 1: the tag is nan"),
        ([["B", pd.NA], ["B"]], ValueError, "sequence 0, position 1: the tag is <NA>"),
        ([["B", pd.NaT], ["B"]], ValueError, "sequence 0, position 1: the tag is NaT"),
        (np.array([1.0, np.nan, 2.0]), ValueError, "sequence 0, position 1: the tag is nan"),
        ([["B", ["I"]], ["B"]], TypeError, "sequence 0, position 1: the tag is of type list, which cannot be hashed"),
        (["B", "I", {}], TypeError, "sequence 1, position 0: the tag is of type dict, which cannot be hashed"),
    ],
)
def test_tags_that_are_refused(y, error, message):
    with pytest.raises(error, match="^" + message):
        encode_tags(y, PAIR)


def test_what_iterators_of_tags_raise_goes_through():
    with pytest.raises(Boom):
        encode_tags(raising(), PAIR)
    with pytest.raises(Boom):
        encode_tags([["B", "I"], raising()], PAIR)
