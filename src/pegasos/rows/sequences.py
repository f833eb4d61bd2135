"""Sequences of tokens to flat arrays, as the core takes them, and their tags to numbers.

Two kinds of input. *Attributes* have names, which a vocabulary numbers in order of first use: tokens are dicts, lists
of strings or single strings. *Columns* have numbers: each token is a row, in one sparse or dense matrix for each
sequence. Either also comes flat, the tokens of all sequences one after the other, with the ``lengths`` of these.

A dict means what it means to python-crfsuite:

============================  =====================================================
``{"w": "the"}``              attribute ``w:the``, value 1
``{"len": 3.0}``              attribute ``len``, value 3
``{"cap": True}``             attribute ``cap``, value 1; False, like 0, is left out
``{"w": ["a", "b"]}``         attributes ``w:a`` and ``w:b``; the same for sets
``{"w": {"-1": "a"}}``        attribute ``w:-1:a``, and so on
============================  =====================================================
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set, Sized
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pegasos import _core
from pegasos.rows.stacks import Columns, from_zero, is_nothing, is_rows, place, stacked
from pegasos.util.arrays import CSR, Array, first_true

Kind: TypeAlias = Literal["attributes", "columns"]
#: Sequences of tokens, or all tokens.
Input: TypeAlias = Iterable[Any] | CSR


@dataclass(frozen=True, eq=False)
class Sequences:
    """Encoded sequences.

    Parameters
    ----------
    offsets : int64 array
        The tokens of sequence i are ``offsets[i]`` … ``offsets[i + 1] - 1``.
    indptr : int64 array
        The attributes of token t are at ``indptr[t]`` … ``indptr[t + 1] - 1``.
    ids : int32 array
        Their numbers. One that comes twice counts twice.
    values : float64 array or None
        Their values, finite and not 0; None if all are 1.
    n_attributes : int
        Numbers are below it.

    Examples
    --------
    >>> encoder, sequences = Encoder.fitted([[["w=the", "p=DT"], ["w=dog"]], [["p=DT"]]])
    >>> len(sequences), sequences.tokens, sequences.n_attributes
    (2, 3, 3)
    >>> sequences.ids
    array([0, 1, 2, 1], dtype=int32)
    >>> sequences.take([1]).ids
    array([1], dtype=int32)
    >>> sequences.lists(["DT", "NN", "DT"])
    [['DT', 'NN'], ['DT']]
    """

    offsets: Array
    indptr: Array
    ids: Array
    values: Array | None
    n_attributes: int

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def tokens(self) -> int:
        """Tokens of all sequences."""
        return int(self.offsets[-1])

    def place(self, token: int) -> str:
        """Where a token is, in words."""
        return place(self.offsets, token)

    def take(self, indices: ArrayLike) -> Sequences:
        """Some of the sequences, by their numbers or a mask."""
        chosen = np.arange(len(self))[np.asarray(indices, dtype=None if np.size(indices) else np.int64)]
        tokens, offsets = _stretches(self.offsets, chosen)
        uses, indptr = _stretches(self.indptr, tokens)
        values = None if self.values is None else self.values[uses]
        return Sequences(offsets, indptr, self.ids[uses], values, self.n_attributes)

    def lists(self, flat: Array | Sequence[Any]) -> list[list[Any]]:
        """One entry a token to one list a sequence."""
        entries = flat.tolist() if isinstance(flat, np.ndarray) else list(flat)
        return [entries[begin:end] for begin, end in pairwise(self.offsets.tolist())]


def _stretches(begins: Array, chosen: Array) -> tuple[Array, Array]:
    """The numbers in some of the stretches ``begins[i] … begins[i + 1] - 1``, and where each begins among them."""
    sizes = np.diff(begins)[chosen]
    ends = np.cumsum(sizes)
    return np.repeat(begins[:-1][chosen] - (ends - sizes), sizes) + np.arange(sizes.sum()), from_zero(ends)


class Encoder:
    """What a tagger keeps of its input: its kind, and the names of attributes or columns.

    Made by :meth:`fitted`. Pickles, and takes itself apart for model files (:meth:`arrays`, :meth:`of_arrays`).

    Examples
    --------
    >>> encoder, sequences = Encoder.fitted([[{"w": "the", "cap": True}, {"w": "dog", "len": 3.0}]])
    >>> encoder.kind, encoder.names
    ('attributes', ['w:the', 'cap', 'w:dog', 'len'])
    >>> sequences.values
    array([1., 1., 1., 3.])
    >>> encoder.encode([[{"w": "dog"}, {"w": "unheard of"}], []]).ids
    array([2], dtype=int32)
    """

    __slots__ = ("_vocabulary", "kind")

    def __init__(self, kind: Kind, vocabulary: _core.Vocabulary) -> None:
        self.kind, self._vocabulary = kind, vocabulary

    @classmethod
    def fitted(cls, X: Input, lengths: ArrayLike | None = None, min_freq: float = 0) -> tuple[Encoder, Sequences]:
        """Learn the attributes of ``X``: an encoder, and ``X`` encoded.

        Attributes that fewer than ``min_freq`` tokens use are left out. Sequences of no tokens are refused.
        """
        if not isinstance(min_freq, Real) or isinstance(min_freq, bool) or not 0 <= min_freq < np.inf:
            raise ValueError(f"min_freq must be a number >= 0, not {min_freq!r}")
        begins = None if lengths is None else _begins(lengths)
        if begins is not None:
            _refuse_empty(begins)
        kind, items = _looked_at(X, begins)
        if kind == "columns":
            if min_freq > 1:
                raise ValueError("min_freq is for attributes with names; of columns, pass those that are wanted")
            columns = Columns()
            arrays = stacked(items, begins, columns)
            vocabulary = _named(columns.names())
        else:
            vocabulary, arrays = _core.Vocabulary.learn(items, begins, float(min_freq))
        _refuse_empty(arrays[0])
        return cls(kind, vocabulary), Sequences(*arrays, len(vocabulary))

    def encode(self, X: Input, lengths: ArrayLike | None = None) -> Sequences:
        """Encode ``X`` of the same kind: attributes that are not known are passed over, columns must be as many.

        Sequences may have no tokens.
        """
        begins = None if lengths is None else _begins(lengths)
        kind, items = _looked_at(X, begins, self.kind)
        if kind != self.kind:
            wanted = "dicts or strings" if self.kind == "attributes" else "arrays of numbers"
            raise TypeError(f"the sequences of X should be {wanted}, as in fit")
        if kind == "columns":
            return Sequences(*stacked(items, begins, Columns(self._vocabulary)), len(self))
        return Sequences(*self._vocabulary.encode(items, begins), len(self))

    @property
    def names(self) -> list[str]:
        """Names of the attributes; of the columns those of a data frame, or "0", "1", …"""
        return self._vocabulary.names()

    def __len__(self) -> int:
        return len(self._vocabulary)

    def arrays(self) -> tuple[Array, Array]:
        """The names in UTF-8 one after the other (uint8), and where each begins and the last ends (int64)."""
        return self._vocabulary.arrays()

    @classmethod
    def of_arrays(cls, kind: Kind, text: Array, offsets: Array) -> Encoder:
        """An encoder of :meth:`arrays`, which may come from a file and are believed in nothing."""
        if kind not in ("attributes", "columns"):
            raise ValueError(f"kind must be 'attributes' or 'columns', not {kind!r}")
        for array, name, dtype in ((text, "text", np.uint8), (offsets, "offsets", np.int64)):
            if array.ndim != 1 or array.dtype != dtype:
                raise ValueError(f"{name} of the names must be a 1-d array of {np.dtype(dtype).name}")
        return cls(kind, _core.Vocabulary(np.ascontiguousarray(text), np.ascontiguousarray(offsets)))

    def __reduce__(self) -> tuple[Callable[..., Encoder], tuple[str, Array, Array]]:
        return Encoder.of_arrays, (self.kind, *self.arrays())


def _named(names: list[str]) -> _core.Vocabulary:
    """A vocabulary of these names, which should differ."""
    if len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise ValueError(f"two columns of X have the name {twice!r}")
    encoded = [name.encode() for name in names]
    ends = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)))
    return _core.Vocabulary(np.frombuffer(b"".join(encoded), dtype=np.uint8), from_zero(ends))


def _refuse_empty(offsets: Array) -> None:
    if len(offsets) == 1:
        raise ValueError("X has no sequences")
    if (k := first_true(np.diff(offsets) == 0)) is not None:
        raise ValueError(f"sequence {k} has no tokens; leave it out")


def _begins(lengths: ArrayLike) -> Array:
    """Where sequences of these lengths begin, and where the last one ends."""
    if np.ndim(given := np.asarray(lengths)) != 1:
        raise ValueError(f"lengths must be a list of integers, one for each sequence, not of shape {given.shape}")
    if len(given) and given.dtype.kind not in "iu":
        raise TypeError(f"lengths must be integers, not {given.dtype.name}")
    if (k := first_true(given < 0)) is not None:
        raise ValueError(f"lengths[{k}] is negative: {given[k]}")
    if (total := sum(given.tolist())) > np.iinfo(np.int64).max:
        raise ValueError(f"lengths add up to {total} tokens, more than there can be")
    return from_zero(np.cumsum(given.astype(np.int64)))


def _looked_at(X: Any, begins: Array | None, fitted: Kind | None = None) -> tuple[Kind, Iterator[Any]]:
    """The kind of the input, by its first item, and its items. What is empty is of the kind that it should be."""
    if is_rows(X):
        if begins is None:
            raise ValueError(
                f"X is one matrix of shape {X.shape}: pass one for each sequence, or say in lengths how many "
                "of its rows each sequence has"
            )
        return "columns", iter([X])
    if isinstance(X, str | bytes | Mapping | Set) or not (hasattr(X, "__iter__") or hasattr(X, "__getitem__")):
        what = "a list of sequences" if begins is None else "a list of tokens"
        raise TypeError(f"X is of type {type(X).__name__}, but should be {what}")
    if begins is not None and isinstance(X, Sized) and len(X) != begins[-1]:
        raise ValueError(f"lengths add up to {begins[-1]} tokens, but X has {len(X)}")
    items = iter(X)
    first = list(islice(items, 1))
    if not first or (begins is None and is_nothing(first[0])):
        if first and fitted is None:
            raise ValueError("sequence 0 has no tokens; leave it out")
        kind: Kind = fitted or "attributes"
    else:
        kind = "columns" if begins is None and is_rows(first[0], any_shape=True) else "attributes"
    return kind, chain(first, items)


def encode_tags(
    y: Iterable[Any], sequences: Sequences, classes: Sequence[Hashable] | None = None
) -> tuple[Array, list[Hashable]]:
    """The number of each token's tag (int32), and the tags that the numbers mean.

    Parameters
    ----------
    y : iterable of iterables of hashables, or iterable of hashables
        Tags in a list for each sequence, or of all tokens one after the other.
    sequences : Sequences
        The tokens.
    classes : sequence of hashables or None
        All tags there may be. None: those in ``y``, sorted if they are all strings or all numbers, else as they come.

    Examples
    --------
    >>> _, sequences = Encoder.fitted([["the", "dog"], ["barks"]])
    >>> encode_tags([["DT", "NN"], ["VB"]], sequences)
    (array([0, 1, 2], dtype=int32), ['DT', 'NN', 'VB'])
    """
    flat = _flat_tags(y, sequences)
    try:
        codes: dict[Any, int] = dict.fromkeys(flat, 0)
    except TypeError:
        bad = next((t for t, tag in enumerate(flat) if not _is_hashable(tag)), None)
        if bad is None:
            raise
        what = f"the tag is of type {type(flat[bad]).__name__}, which cannot be hashed"
        raise TypeError(f"{sequences.place(bad)}: {what}") from None

    def refuse(tag: Any, why: str) -> ValueError:
        first = next(t for t, other in enumerate(flat) if other is tag)
        return ValueError(f"{sequences.place(first)}: {why}")

    for tag in codes:
        if _is_missing(tag):
            raise refuse(tag, f"the tag is {tag}; every token needs one")
    if classes is None:
        classes = [tag.item() if isinstance(tag, np.bool | np.number | np.character) else tag for tag in codes]
        if all(isinstance(tag, str) for tag in classes) or all(isinstance(tag, Real) for tag in classes):
            classes = sorted(classes)  # type: ignore[type-var]
    numbers = {tag: k for k, tag in enumerate(classes)}
    if len(numbers) < len(classes):
        raise ValueError(f"classes has a tag twice: {list(classes)}")
    for tag in codes:
        if tag not in numbers:
            raise refuse(tag, f"the tag {tag!r} is none of {_shortened(list(classes))}")
        codes[tag] = numbers[tag]
    return np.fromiter(map(codes.__getitem__, flat), np.int32, len(flat)), list(classes)


def _flat_tags(y: Any, sequences: Sequences) -> list[Any]:
    """The tags of all tokens, as many as there should be."""
    tags = _tag_list(y, "y is", "a list of tags for each sequence")
    if not tags or not _is_tag_list(tags[0]):
        if len(tags) != sequences.tokens:
            raise ValueError(
                f"X has {sequences.tokens} tokens in {len(sequences)} sequences, but y has {len(tags)} tags"
            )
        return tags
    if len(tags) != len(sequences):
        raise ValueError(f"X has {len(sequences)} sequences, but y has {len(tags)}")
    nested = [_tag_list(mine, f"sequence {k} of y is", "a list of tags") for k, mine in enumerate(tags)]
    for k, (mine, length) in enumerate(zip(nested, np.diff(sequences.offsets).tolist(), strict=True)):
        if len(mine) != length:
            raise ValueError(f"sequence {k} has {length} tokens but {len(mine)} tags")
    return list(chain.from_iterable(nested))


def _tag_list(tags: Any, what: str, wanted: str) -> list[Any]:
    if isinstance(tags, list):
        return tags
    if isinstance(tags, np.ndarray) and tags.ndim:
        return tags.tolist() if tags.ndim == 1 else list(tags)
    if isinstance(tags, str | bytes | Mapping | Set) or not isinstance(tags, Iterable):
        raise TypeError(f"{what} of type {type(tags).__name__}, but should be {wanted}")
    return list(tags)


def _is_tag_list(item: Any) -> bool:
    """Whether an item of y is the tags of a sequence, and not a tag: tuples are, too."""
    if isinstance(item, Sequence | Iterator):
        return not isinstance(item, str | bytes)
    return isinstance(item, Iterable) and not _is_hashable(item)


def _is_hashable(tag: Any) -> bool:
    try:
        hash(tag)
    except TypeError:
        return False
    return True


def _is_missing(tag: Any) -> bool:
    if tag is None or type(tag).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(tag, float | complex | np.generic) and bool(tag != tag)


def _shortened(tags: list[Any], most: int = 10) -> str:
    shown = ", ".join(map(repr, tags[:most]))
    return f"[{shown}]" if len(tags) <= most else f"[{shown}, …] ({len(tags)} tags)"
