"""``pegasos predict``: labels, scores or probabilities for rows or sentences that need not fit in memory."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import TYPE_CHECKING

from pegasos.cli import _models, _output
from pegasos.cli._exit import OK, Failure
from pegasos.cli._progress import Progress

if TYPE_CHECKING:
    from pegasos.cli._models import AnyModel
    from pegasos.util.arrays import Array, Matrix


def run(args: argparse.Namespace) -> int:
    """Predict as the arguments say; the exit code."""
    if args.output != "-":
        _output.check_target(args.output, "the predictions")
    _output.check_distinct({"the data": args.data, "the model": args.model}, {"the predictions": args.output})
    with Progress(quiet=args.quiet) as progress:
        progress.stage(f"loading {args.model}")
        model = _models.load(args.model)
        from pegasos.cli import _match, _rows
        from pegasos.estimators.sequence import SequenceSVC

        if isinstance(model, SequenceSVC):
            from pegasos.cli import _tagger

            return _tagger.predict(model, args, progress)
        lines = _lines(model, args)
        blocks = _rows.blocks(args.data, zero_based=args.zero_based, threads=args.threads, memory=args.memory)
        match, done = _match.Match.with_model(blocks.source, blocks.names, model, progress.say), 0
        with _output.writing(args.output) as file:
            if (header := _header(model, args)) is not None:
                file.write(header)
            for X, _ in blocks.pieces:
                file.writelines(lines(match(X)))
                done += X.shape[0]
                progress.stage(f"{done:,} rows predicted")
    return OK


def _header(model: AnyModel, args: argparse.Namespace) -> str | None:
    """LIBLINEAR's first line, which says which column belongs to which label."""
    if not (args.probabilities or args.scores) or not hasattr(model, "classes_"):
        return None
    from pegasos.cli._labels import label_text

    shown = model.classes_[1:] if args.scores and len(model.classes_) == 2 else model.classes_
    names = list(map(label_text, shown))
    if len(names) > 2 and getattr(model, "decision_function_shape", "ovr") == "ovo":
        names = [f"{a}/{b}" for a, b in combinations(names, 2)]
    return " ".join(["labels", *names]) + "\n"


def _lines(model: AnyModel, args: argparse.Namespace) -> Callable[[Matrix], Iterator[str]]:
    """What turns rows into lines of text."""
    import numpy as np

    from pegasos.cli._judge import called
    from pegasos.cli._labels import label_text
    from pegasos.losses import LOSSES

    if not hasattr(model, "classes_"):
        if args.probabilities or args.scores:
            raise Failure(f"{args.model}: a regression model predicts numbers; it has no scores or probabilities")
        return lambda X: (f"{value!r}\n" for value in called(model.predict, X).tolist())
    names = np.array([label_text(label) for label in model.classes_], dtype=object)

    kernel = hasattr(model, "kernel")

    def labels(X: Matrix, beside: Array | None) -> Iterable[str]:
        if beside is None or (kernel and beside.ndim == 2):  # of pairs of classes the votes count, not the scores
            index = np.searchsorted(model.classes_, called(model.predict, X))
        else:
            index = (beside > 0).astype(int) if beside.ndim == 1 else beside.argmax(axis=1)
        return map(str, names[index])

    if args.probabilities and not hasattr(model, "predict_proba"):
        able = " or ".join(f"--loss {name}" for name, cls in LOSSES.items() if cls.link)
        remedy = "use --scores" if kernel else f"train with {able}, or use --scores"
        raise Failure(f"{args.model}: has no probabilities; {remedy}")

    def lines(X: Matrix) -> Iterator[str]:
        alone = kernel and not args.scores and len(names) > 2
        scores = None if alone else called(model.decision_function, X)
        if not (args.probabilities or args.scores):
            yield from (f"{label}\n" for label in labels(X, scores))
            return
        beside = called(model.predict_proba, X) if args.probabilities else scores
        assert beside is not None
        for label, values in zip(labels(X, scores), beside.reshape(len(beside), -1).tolist(), strict=True):
            yield f"{label} {' '.join(map(repr, values))}\n"

    return lines
