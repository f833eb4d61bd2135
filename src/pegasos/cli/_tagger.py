"""``pegasos predict``, ``evaluate`` and ``info`` for taggers."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pegasos import io
from pegasos.cli import _corpus, _describe, _say
from pegasos.cli._exit import OK, Failure
from pegasos.cli._progress import Progress
from pegasos.cli._tag_metrics import judge
from pegasos.io.data.column_reader import ColumnReader
from pegasos.io.files import name_of

if TYPE_CHECKING:
    from pegasos.estimators.sequence import SequenceSVC


def predict(model: SequenceSVC, args: argparse.Namespace, progress: Progress) -> int:
    """Write the sentences with the predicted tag as a further column, and its probability if that is asked for."""
    reader = _reader(model, args)
    if args.scores:
        raise Failure(f"{args.model}: a tagger scores whole sentences; there are no scores of labels to write")
    if args.probabilities and not hasattr(model, "predict_marginals"):
        raise Failure(f"{args.model}: has no probabilities; train with --loss log")
    columns = _with_probabilities if args.probabilities else _with_tags
    io.write_conll(
        _tagged(model, reader, args.data, columns, progress),
        args.output,
        delimiter=reader.delimiter or " ",
        encoding=reader.encoding,
    )
    return OK


def _reader(model: SequenceSVC, args: argparse.Namespace) -> ColumnReader:
    if args.zero_based:
        raise Failure("--zero-based is for svmlight text, and the model is a tagger of sentences")
    reader = _corpus.reader_of(model, args.model)
    model.set_params(n_jobs=args.threads)
    return reader


def _tagged(
    model: SequenceSVC,
    reader: ColumnReader,
    path: str,
    columns: Callable[[SequenceSVC, list[list[list[str]]]], Iterator[list[list[str]]]],
    progress: Progress,
) -> Iterator[list[list[str]]]:
    """Sentences with further columns, batch by batch."""
    source, done = name_of(path), 0
    for lines, batch in _corpus.batches(reader.sentences(path)):
        if not done:
            _corpus.check_columns(reader, source, len(batch[0][0]))
        try:
            more = list(columns(model, list(map(reader.attributes, batch))))
        except ValueError as error:
            raise Failure(f"{source}: {_corpus.placed(str(error), lines)}") from None
        for sentence, added in zip(batch, more, strict=True):
            yield [[*row, *new] for row, new in zip(sentence, added, strict=True)]
        done += len(batch)
        progress.stage(f"{done:,} sentences tagged")


def _with_tags(model: SequenceSVC, X: list[list[list[str]]]) -> Iterator[list[list[str]]]:
    for tags in model.predict(X):
        yield [[tag] for tag in tags]


def _with_probabilities(model: SequenceSVC, X: list[list[list[str]]]) -> Iterator[list[list[str]]]:
    for tags, marginals in zip(model.predict(X), model.predict_marginals(X), strict=True):
        yield [[tag, f"{shares[tag]:.6f}"] for tag, shares in zip(tags, marginals, strict=True)]


def evaluate(model: SequenceSVC, args: argparse.Namespace) -> int:
    """Compare predicted tags with those of the last column."""
    reader, source = _reader(model, args), name_of(args.data)
    tally = judge(model, reader, reader.sentences(args.data), source)
    if args.json:
        print(json.dumps({"source": source} | tally.to_dict(), ensure_ascii=False))
        return OK
    print(_say.evaluation(tally.evaluation(source)))
    if not args.quiet and tally.scores is not None:
        print(tally.scores)
    return OK


def facts(model: SequenceSVC) -> dict[str, object]:
    """What a tagger is, beside what every model is."""
    found: dict[str, object] = {"loss": model._loss(), "attributes": int(model.n_features_in_)}
    found["labels"] = list(map(str, model.classes_))
    if model.grammar is not None:
        found["grammar"] = model.grammar if isinstance(model.grammar, str) else "pairs of labels"
    if isinstance(reader := model.template_, ColumnReader):
        found["template"] = [line for line in reader.template.text.splitlines() if line.startswith("U")]
    return found


def top(model: SequenceSVC) -> dict[str, object]:
    """The largest weights."""
    features = _describe.tagger_features(model, most=5)
    found: dict[str, object] = {"nonzero weights": features.nonzero}
    found["top transitions"] = {weight.feature: weight.weight for weight in features.transitions}
    for each in features.top[:50]:
        weights = (*each.positive, *reversed(each.negative))
        found[f"top features of {each.label}"] = {weight.feature: weight.weight for weight in weights}
    return found
