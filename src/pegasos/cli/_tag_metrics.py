"""How good predicted tags are, counted batch by batch so that the sentences need not be in memory at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pegasos import metrics
from pegasos.cli import _corpus
from pegasos.cli._exit import Failure
from pegasos.metrics import EntityCounts, EntityScores, Scheme
from pegasos.report.record import Entities, EntityCount, Evaluation

if TYPE_CHECKING:
    from pegasos.estimators.sequence import SequenceSVC
    from pegasos.io.data.column_reader import ColumnReader
    from pegasos.io.data.conll import Sentence


def scheme_of(tags: Iterable[object]) -> Scheme | None:
    """What the prefixes of tags mean; None: they have none, such as parts of speech."""
    prefixes = {str(tag).partition("-")[0] for tag in tags}
    if not prefixes <= {"O", "B", "I", "E", "S"} or not prefixes & {"B", "I"}:
        return None
    return "bioes" if "S" in prefixes or {"B", "E"} <= prefixes else "bio"


class TagTally:
    """Counts of right tags and, where tags are parts of entities, of right entities."""

    def __init__(self, tags: Iterable[object]) -> None:
        self._scheme = scheme_of(tags)
        self.scores: EntityScores | None = None if self._scheme is None else EntityScores(0, 0, 0, 0, 0, {})
        self.sequences = self.tokens = self.right = 0

    def add(self, true: list[list[str]], found: list[list[str]]) -> None:
        """Count a batch; ValueError if a tag has none of the prefixes."""
        self.sequences += len(true)
        self.tokens += sum(map(len, true))
        self.right += sum(a == b for x, y in zip(true, found, strict=True) for a, b in zip(x, y, strict=True))
        if self._scheme is not None and self.scores is not None:
            self.scores = _sum(self.scores, metrics.entity_scores(true, found, scheme=self._scheme))

    def evaluation(self, source: str) -> Evaluation:
        """What the counts say."""
        shares = {"accuracy": self.right / self.tokens if self.tokens else 0.0}
        if self.scores is None:
            return Evaluation(source, self.tokens, shares, None, self.sequences)
        s = self.scores
        shares |= {"precision": s.precision, "recall": s.recall, "f1": s.f1}
        types = tuple(EntityCount(name, c.support, c.found, c.correct) for name, c in s.types.items())
        entities = Entities(s.support, s.found, s.correct, types)
        return Evaluation(source, self.tokens, shares, None, self.sequences, entities)

    def to_dict(self) -> dict[str, object]:
        """The counts and scores by name."""
        own: dict[str, object] = {"sequences": self.sequences, "tokens": self.tokens, "correct_tokens": self.right}
        own["accuracy"] = self.right / self.tokens if self.tokens else 0.0
        return own if self.scores is None else own | self.scores.to_dict()


def _sum(a: EntityScores, b: EntityScores) -> EntityScores:
    """The counts of both."""
    none = EntityCounts(0, 0, 0)
    pairs = {name: (a.types.get(name, none), b.types.get(name, none)) for name in sorted({*a.types, *b.types})}
    return EntityScores(
        a.support + b.support,
        a.found + b.found,
        a.correct + b.correct,
        a.tokens + b.tokens,
        a.correct_tokens + b.correct_tokens,
        {
            name: EntityCounts(x.support + y.support, x.found + y.found, x.correct + y.correct)
            for name, (x, y) in pairs.items()
        },
    )


def judge(model: SequenceSVC, reader: ColumnReader, sentences: Iterable[tuple[int, Sentence]], source: str) -> TagTally:
    """Count how well the last column is predicted from the others; Failure names the line of what cannot be."""
    tally = TagTally(model.classes_)
    for lines, batch in _corpus.batches(sentences):
        if not tally.sequences:
            _corpus.check_columns(reader, source, len(batch[0][0]) - 1)
        try:
            found = model.predict(map(reader.attributes, batch))
            tally.add([[row[-1] for row in sentence] for sentence in batch], found)
        except ValueError as error:
            raise Failure(f"{source}: {_corpus.placed(str(error), lines)}") from None
    return tally
