"""Which labellings of a sequence are allowed: what may follow what, and what may begin and end a sequence."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from pegasos.rows.sequences import Sequences
from pegasos.util.arrays import Array, first_true
from pegasos.util.suggest import did_you_mean

#: The grammars that have names.
NAMED = ("learnt", "bio", "bioes")

Pairs = Iterable[tuple[Hashable | None, Hashable | None]]


class Grammar(NamedTuple):
    """Which labels may follow each other, and begin and end a sequence: uint8 flags."""

    next: Array
    first: Array
    final: Array

    @classmethod
    def free(cls, labels: int) -> Grammar:
        """Everything is allowed."""
        return cls(np.ones((labels, labels), np.uint8), np.ones(labels, np.uint8), np.ones(labels, np.uint8))

    def of_labels(self, allowed: Array) -> Grammar:
        """The same without labels that are not ``allowed`` (flags)."""
        kept = (allowed > 0).astype(np.uint8)
        return Grammar(self.next * np.outer(kept, kept), self.first * kept, self.final * kept)


def grammar_of(wanted: str | Pairs | None, classes: Sequence[Hashable], sequences: Sequences, tags: Array) -> Grammar:
    """The grammar that a user's parameter means; ValueError if it is unknown or the tags themselves break it.

    ``wanted``: None; "learnt": what the tags have; "bio" or "bioes": those of chunks; or the pairs that are allowed, in
    which None stands for the begin or the end of a sequence. If no pair has None first, all labels may begin a
    sequence, and likewise for its end.
    """
    if wanted is None:
        return Grammar.free(len(classes))
    if isinstance(wanted, str) and wanted == "learnt":
        return _learnt(len(classes), sequences, tags)
    if isinstance(wanted, str):
        if wanted not in NAMED:
            raise ValueError(f"grammar={wanted!r} is none of {', '.join(NAMED)}{did_you_mean(wanted, NAMED)}")
        grammar = _chunks(wanted, classes)
    elif not isinstance(wanted, Iterable):
        raise TypeError(f"grammar={wanted!r} is neither a name nor a list of pairs of tags")
    else:
        grammar = _of_pairs(wanted, classes)
    _check_tags(grammar, classes, sequences, tags)
    return grammar


def seen_transitions(labels: int, sequences: Sequences, tags: Array) -> Array:
    """How often each label follows each other one."""
    inner = np.ones(len(tags), dtype=bool)
    inner[sequences.offsets[:-1]] = False
    at = np.flatnonzero(inner)
    return np.bincount(tags[at - 1].astype(np.int64) * labels + tags[at], minlength=labels**2).reshape(labels, labels)


def _learnt(labels: int, sequences: Sequences, tags: Array) -> Grammar:
    def has(at: Array) -> Array:
        return (np.bincount(tags[at], minlength=labels) > 0).astype(np.uint8)

    following = (seen_transitions(labels, sequences, tags) > 0).astype(np.uint8)
    return Grammar(following, has(sequences.offsets[:-1]), has(sequences.offsets[1:] - 1))


def _chunks(wanted: str, classes: Sequence[Hashable]) -> Grammar:
    """A grammar of tags like ``B-NP``; the begin and the end of a sequence are as good as ``O``."""
    kinds = ("B", "I") if wanted == "bio" else ("B", "I", "E", "S")
    names = []
    for tag in classes:
        kind, _, name = str(tag).partition("-")
        if not isinstance(tag, str) or not (tag == "O" or (kind in kinds and name)):
            known = ", ".join(f"{kind}-…" for kind in kinds)
            raise ValueError(f"grammar={wanted!r}: the tag {tag!r} is neither O nor one of {known}")
        names.append(tag)
    may_follow = _may_follow_bio if wanted == "bio" else _may_follow_bioes
    return Grammar(
        np.array([[may_follow(a, b) for b in names] for a in names], np.uint8).reshape(len(names), len(names)),
        np.array([may_follow("O", b) for b in names], np.uint8),
        np.array([may_follow(a, "O") for a in names], np.uint8),
    )


def _may_follow_bio(before: str, tag: str) -> bool:
    """I-X only after B-X or I-X."""
    kind, _, name = tag.partition("-")
    return kind != "I" or before in (f"B-{name}", f"I-{name}")


def _may_follow_bioes(before: str, tag: str) -> bool:
    """I-X and E-X only after B-X or I-X, and after those nothing else."""
    kind, _, name = tag.partition("-")
    open_kind, _, open_name = before.partition("-")
    inside = open_kind in ("B", "I")
    continues = kind in ("I", "E")
    return inside == continues and (not inside or open_name == name)


def _of_pairs(pairs: Pairs, classes: Sequence[Hashable]) -> Grammar:
    number = {tag: k for k, tag in enumerate(classes)}
    labels = len(classes)
    following, first, final = (
        np.zeros((labels, labels), np.uint8),
        np.zeros(labels, np.uint8),
        np.zeros(labels, np.uint8),
    )
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(f"grammar: {pair!r:.100} is no pair of tags")
        before, after = pair
        for tag in pair:
            if tag is not None and tag not in number:
                raise ValueError(f"grammar: the tag {tag!r} of {tuple(pair)!r} does not occur in y")
        if before is None and after is None:
            raise ValueError("grammar: the pair (None, None) has no tag")
        if before is None:
            first[number[after]] = 1
        elif after is None:
            final[number[before]] = 1
        else:
            following[number[before], number[after]] = 1
    every = np.ones(labels, np.uint8)
    return Grammar(following, first if first.any() else every, final if final.any() else every)


def _check_tags(grammar: Grammar, classes: Sequence[Hashable], sequences: Sequences, tags: Array) -> None:
    """Refuse tags that the grammar does not allow, by sequence and position."""
    begins, ends = sequences.offsets[:-1], sequences.offsets[1:] - 1
    if (k := first_true(grammar.first[tags[begins]] == 0)) is not None:
        raise ValueError(
            f"sequence {k}, position 0: the grammar does not let a sequence begin with {_tag(classes, tags, begins[k])}"
        )
    if (k := first_true(grammar.final[tags[ends]] == 0)) is not None:
        where = f"sequence {k}, position {int(ends[k] - begins[k])}"
        raise ValueError(f"{where}: the grammar does not let a sequence end with {_tag(classes, tags, ends[k])}")
    allowed = np.ones(len(tags), dtype=bool)
    allowed[1:] = grammar.next[tags[:-1], tags[1:]] > 0
    allowed[begins] = True
    if (t := first_true(~allowed)) is not None:
        pair = f"{_tag(classes, tags, t)} after {_tag(classes, tags, t - 1)}"
        raise ValueError(f"{sequences.place(t)}: the grammar does not allow {pair}")


def _tag(classes: Sequence[Hashable], tags: Array, t: int) -> str:
    return repr(classes[int(tags[t])])
