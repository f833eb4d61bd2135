"""How well sequences are tagged: tokens, whole sequences, and entities counted as conlleval counts them.

``y_true`` and ``y_pred`` are lists of sequences of tags (lists, tuples, arrays). A flat list of tags is one sequence. A
tuple is always taken for a sequence, never for a tag. What is divided by zero is 0.0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import eq
from typing import Any, Literal, TypeAlias

from pegasos.util.suggest import did_you_mean

__all__ = [
    "EntityCounts",
    "EntityScores",
    "entities",
    "entity_f1_score",
    "entity_scores",
    "sequence_accuracy",
    "token_accuracy",
]

Scheme: TypeAlias = Literal["bio", "bioes"]
#: Type, first token, and the token behind the last one.
Entity: TypeAlias = tuple[str, int, int]
#: Tags of one sequence, or of many.
Tags: TypeAlias = "Iterable[Any]"

#: Prefixes of neighbours between which a new entity begins, though both have the same type.
_BORDERS: dict[str, frozenset[tuple[str, str]]] = {
    "bio": frozenset([("B", "B"), ("I", "B"), ("E", "E"), ("E", "I")]),
    "bioes": frozenset((a, b) for a in "BIES" for b in "BIES" if b in "BS" or a in "ES"),
}
_PREFIXES = {"bio": ("O", "B", "I", "E"), "bioes": ("O", "B", "I", "E", "S")}


@dataclass(frozen=True)
class EntityCounts:
    """How many entities there are, were found, and were found rightly.

    .. math:: P = \\frac{\\mathrm{correct}}{\\mathrm{found}}, \\quad R = \\frac{\\mathrm{correct}}{\\mathrm{support}},
        \\quad F_1 = \\frac{2PR}{P + R}

    Attributes
    ----------
    support : int
        Entities of ``y_true``.
    found : int
        Entities of ``y_pred``.
    correct : int
        Those found whose type, beginning and end are right.
    precision, recall, f1 : float
        As above; 0.0 where nothing is divided by nothing.

    Examples
    --------
    >>> from pegasos.metrics import EntityCounts
    >>> counts = EntityCounts(support=4, found=2, correct=1)
    >>> counts.precision, counts.recall, round(counts.f1, 3)
    (0.5, 0.25, 0.333)
    """

    support: int
    found: int
    correct: int

    @property
    def precision(self) -> float:
        """Share of those found that are right."""
        return _share(self.correct, self.found)

    @property
    def recall(self) -> float:
        """Share of those there that were found."""
        return _share(self.correct, self.support)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return _share(2 * self.correct, self.support + self.found)

    def to_dict(self) -> dict[str, Any]:
        """Counts and scores by name."""
        return {
            "precision": self.precision,
            "recall": self.recall,
            "f1": self.f1,
            "support": self.support,
            "found": self.found,
            "correct": self.correct,
        }

    def _columns(self) -> str:
        """The scores as conlleval prints them: percentages, rounded after the same operations as its own."""
        precision, recall = (100 * self.correct / n if n else 0.0 for n in (self.found, self.support))
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        return f"precision: {precision:6.2f}%; recall: {recall:6.2f}%; FB1: {f1:6.2f}"


@dataclass(frozen=True)
class EntityScores(EntityCounts):
    """What :func:`entity_scores` returns: the counts and scores of all entities together, and of each type.

    ``str`` gives the text that conlleval prints.

    Attributes
    ----------
    support, found, correct : int
        Of all entities, see :class:`EntityCounts`; likewise ``precision``, ``recall`` and ``f1``.
    tokens, correct_tokens : int
        How many tokens there are, and how many have the right tag.
    accuracy : float
        The share of these.
    types : mapping of str to EntityCounts
        The same for each type of ``y_true`` or ``y_pred``, sorted by name. Tags without a type have the type ``""``.

    Examples
    --------
    >>> from pegasos.metrics import entity_scores
    >>> scores = entity_scores([["B-NP", "I-NP", "O", "B-VP"]], [["B-NP", "I-NP", "O", "B-NP"]])
    >>> scores.f1, scores.types["NP"].recall
    (0.5, 1.0)
    >>> scores.to_dict()["types"]["VP"]["support"]
    1
    """

    tokens: int
    correct_tokens: int
    types: Mapping[str, EntityCounts] = field(hash=False)

    @property
    def accuracy(self) -> float:
        """Share of the tokens whose tag is right."""
        return _share(self.correct_tokens, self.tokens)

    def to_dict(self) -> dict[str, Any]:
        """Counts and scores by name, and under ``types`` those of each type: plain numbers, as JSON has them."""
        return {
            "tokens": self.tokens,
            "correct_tokens": self.correct_tokens,
            "accuracy": self.accuracy,
            **super().to_dict(),
            "types": {name: counts.to_dict() for name, counts in self.types.items()},
        }

    def __str__(self) -> str:
        counts = f"with {self.support} phrases; found: {self.found} phrases; correct: {self.correct}."
        lines = [f"processed {self.tokens} tokens {counts}"]
        if self.tokens:
            lines.append(f"accuracy: {100 * self.correct_tokens / self.tokens:6.2f}%; {self._columns()}")
        lines += [f"{name:>17}: {each._columns()}  {each.found}" for name, each in self.types.items()]
        return "\n".join(lines)


def token_accuracy(y_true: Tags, y_pred: Tags) -> float:
    """Share of tokens whose tag is right, over all sequences together.

    Parameters
    ----------
    y_true, y_pred : lists of sequences of tags, or one sequence of tags
        What is right, and what was predicted. Tags can be anything that can be compared.

    Examples
    --------
    >>> from pegasos.metrics import token_accuracy
    >>> token_accuracy([["D", "N", "V"], ["N"]], [["D", "N", "N"], ["N"]])
    0.75
    """
    pairs = _pairs(y_true, y_pred)
    return _share(sum(int(sum(map(eq, true, found))) for true, found in pairs), sum(len(true) for true, _ in pairs))


def sequence_accuracy(y_true: Tags, y_pred: Tags) -> float:
    """Share of sequences all of whose tags are right.

    Parameters
    ----------
    y_true, y_pred : lists of sequences of tags, or one sequence of tags
        What is right, and what was predicted.

    Examples
    --------
    >>> from pegasos.metrics import sequence_accuracy
    >>> sequence_accuracy([["D", "N", "V"], ["N"]], [["D", "N", "N"], ["N"]])
    0.5
    """
    pairs = _pairs(y_true, y_pred)
    return _share(sum(all(map(eq, true, found)) for true, found in pairs), len(pairs))


def entities(tags: Iterable[str], scheme: Scheme = "bio") -> list[Entity]:
    """Entities of one sequence of tags, from left to right.

    Parameters
    ----------
    tags : sequence of str
        Of one sequence, well-formed or not.
    scheme : {"bio", "bioes"}, default="bio"
        What the prefixes mean.

    Returns
    -------
    list of (str, int, int)
        Type, first token, and the token behind the last one: ``tokens[start:end]``. Tags without a type give ``""``.

    Raises
    ------
    ValueError
        If a tag has a prefix that the scheme does not have.

    Notes
    -----
    A tag such as ``B-NP`` is a prefix and, behind the first hyphen, a type, which may have hyphens of its own. ``O`` is
    outside of every entity. An entity is a stretch of tokens of one type without ``O``; a new one begins where the type
    changes, and

    - with ``scheme="bio"`` (IOB1, IOB2, also IOE) at B after B or I, and at I or E after E;
    - with ``scheme="bioes"`` at B and S, and after E and S.

    The first are the rules of conlleval, the script of the CoNLL-2000 shared task. They read BIOES wrongly where
    entities of one type touch; the second, as ports of the script have them, do not. The two agree on tags with B, I
    and O.

    Examples
    --------
    >>> from pegasos.metrics import entities
    >>> entities(["B-PER", "I-PER", "O", "I-LOC", "B-LOC"])
    [('PER', 0, 2), ('LOC', 3, 4), ('LOC', 4, 5)]
    >>> entities(["S-PER", "B-LOC", "E-LOC"], scheme="bioes")
    [('PER', 0, 1), ('LOC', 1, 3)]
    """
    if isinstance(tags, str | bytes):
        raise TypeError("tags must be a sequence of tags, got a single text")
    return _Reader(scheme).entities(list(tags), "tags")


def entity_scores(y_true: Tags, y_pred: Tags, *, scheme: Scheme = "bio") -> EntityScores:
    """Precision, recall and F1 of entities, all together and for each type: the numbers of conlleval.

    An entity is correct if its type, its beginning and its end are. See :func:`entities` for what an entity is.

    Parameters
    ----------
    y_true, y_pred : lists of sequences of str, or one sequence of str
        What is right, and what was predicted.
    scheme : {"bio", "bioes"}, default="bio"
        What the prefixes of the tags mean.

    Returns
    -------
    EntityScores

    Raises
    ------
    ValueError
        If the sequences differ in number or length, or a tag has a prefix that the scheme does not have.

    Notes
    -----
    The text differs from conlleval's in two oddities: the type ``"0"`` is a type here, and the line of tags without a
    type is printed once.

    Examples
    --------
    >>> from pegasos.metrics import entity_scores
    >>> y_true = [["B-NP", "I-NP", "O", "B-VP"], ["B-NP", "B-NP", "I-NP"]]
    >>> y_pred = [["B-NP", "I-NP", "O", "B-VP"], ["B-NP", "I-NP", "I-NP"]]
    >>> print(entity_scores(y_true, y_pred))
    processed 7 tokens with 4 phrases; found: 3 phrases; correct: 2.
    accuracy:  85.71%; precision:  66.67%; recall:  50.00%; FB1:  57.14
                   NP: precision:  50.00%; recall:  33.33%; FB1:  40.00  2
                   VP: precision: 100.00%; recall: 100.00%; FB1: 100.00  1
    """
    reader = _Reader(scheme)
    pairs = _pairs(y_true, y_pred)
    support: Counter[str] = Counter()
    found: Counter[str] = Counter()
    correct: Counter[str] = Counter()
    right = 0
    for i, (true, guess) in enumerate(pairs):
        there, proposed = reader.entities(true, f"y_true[{i}]"), reader.entities(guess, f"y_pred[{i}]")
        support.update(kind for kind, _, _ in there)
        found.update(kind for kind, _, _ in proposed)
        correct.update(kind for kind, _, _ in set(there) & set(proposed))
        right += sum(map(eq, map(reader.parts.get, true), map(reader.parts.get, guess)))
    return EntityScores(
        support.total(),
        found.total(),
        correct.total(),
        sum(len(true) for true, _ in pairs),
        right,
        {kind: EntityCounts(support[kind], found[kind], correct[kind]) for kind in sorted(support | found)},
    )


def entity_f1_score(y_true: Tags, y_pred: Tags, *, scheme: Scheme = "bio") -> float:
    """F1 of all entities together: ``entity_scores(y_true, y_pred).f1``, for ``sklearn.metrics.make_scorer``.

    Parameters
    ----------
    y_true, y_pred, scheme
        As for :func:`entity_scores`.

    Examples
    --------
    >>> from sklearn.metrics import make_scorer
    >>> from pegasos.metrics import entity_f1_score
    >>> entity_f1_score([["B-NP", "I-NP", "O", "B-VP"]], [["B-NP", "I-NP", "O", "B-NP"]])
    0.5
    >>> scorer = make_scorer(entity_f1_score, scheme="bioes")
    """
    return entity_scores(y_true, y_pred, scheme=scheme).f1


class _Reader:
    """Tags taken apart, each different one once."""

    def __init__(self, scheme: str) -> None:
        if scheme not in _BORDERS:
            raise ValueError(f"scheme={scheme!r} is none of {', '.join(_BORDERS)}{did_you_mean(scheme, _BORDERS)}")
        self.scheme, self.borders = scheme, _BORDERS[scheme]
        self.parts: dict[str, tuple[str, str]] = {}

    def entities(self, tags: Sequence[str], where: str) -> list[Entity]:
        """Entities of one sequence, which messages call ``where``."""
        result: list[Entity] = []
        before, kind, start = "O", "", 0  # of the last token, and where the entity began that it belongs to
        for i, tag in enumerate(tags):
            prefix, new = (isinstance(tag, str) and self.parts.get(tag)) or self._part(tag, where, i)
            if before != "O" and (prefix == "O" or new != kind or (before, prefix) in self.borders):
                result.append((kind, start, i))
                before = "O"
            if before == "O":
                start = i
            before, kind = prefix, new
        if before != "O":
            result.append((kind, start, len(tags)))
        return result

    def _part(self, tag: str, where: str, position: int) -> tuple[str, str]:
        """Prefix and type, split at the first hyphen."""
        if not isinstance(tag, str):
            raise TypeError(f"{where}[{position}] is {tag!r:.60}, but tags of entities are texts such as 'B-NP' or 'O'")
        prefix, _, kind = tag.partition("-")
        known = _PREFIXES[self.scheme]
        if prefix not in known:
            other = "; scheme='bioes' has it" if prefix in _PREFIXES["bioes"] else ""
            raise ValueError(
                f"{where}[{position}] is {tag!r:.60}, which is not O and does not begin with one of "
                f"{', '.join(known[1:])}, the prefixes of scheme={self.scheme!r}{other}"
            )
        return self.parts.setdefault(tag, (prefix, kind))


def _pairs(y_true: Tags, y_pred: Tags) -> list[tuple[list[Any], list[Any]]]:
    """The sequences beside each other, as many and as long."""
    true, found = _sequences(y_true, "y_true"), _sequences(y_pred, "y_pred")
    if len(true) != len(found):
        raise ValueError(f"y_true has {_counted(len(true))} and y_pred {_counted(len(found))}")
    pairs = list(zip(true, found, strict=True))
    for i, (a, b) in enumerate(pairs):
        if len(a) != len(b):
            raise ValueError(f"sequence {i}: y_true[{i}] has {len(a)} tags and y_pred[{i}] {len(b)}")
    return pairs


def _sequences(y: Tags, name: str) -> list[list[Any]]:
    if isinstance(y, str | bytes):
        raise TypeError(f"{name} must be a list of sequences of tags, or one sequence of tags, got a single text")
    items = list(y)
    nested = [isinstance(item, Iterable) and not isinstance(item, str | bytes) for item in items]
    if not any(nested):
        return [items] if items else []
    if not all(nested):
        i, j = nested.index(False), nested.index(True)
        raise ValueError(f"{name}[{i}] is {items[i]!r:.60}, but {name}[{j}] is a sequence of tags; they must be alike")
    return [list(item) for item in items]


def _counted(n: int) -> str:
    return f"{n} sequence{'' if n == 1 else 's'}"


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
