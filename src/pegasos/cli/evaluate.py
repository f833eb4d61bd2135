"""``pegasos evaluate``: a model against the labels of rows."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from pegasos.cli import _models
from pegasos.cli._exit import OK, Failure
from pegasos.cli._progress import Progress

_MOST_CLASSES = 20


def run(args: argparse.Namespace) -> int:
    """Evaluate as the arguments say; the exit code."""
    with Progress(quiet=args.quiet) as progress:
        progress.stage(f"evaluating {args.model}")
        model = _models.load(args.model)
        from pegasos.cli import _judge, _match, _rows, _say
        from pegasos.estimators.sequence import SequenceSVC

        if isinstance(model, SequenceSVC):
            from pegasos.cli import _tagger

            return _tagger.evaluate(model, args)
        blocks = _rows.blocks(args.data, zero_based=args.zero_based, threads=args.threads, memory=args.memory)
        match = _match.Match.with_model(blocks.source, blocks.names, model, progress.say)
        found = _judge.judge(model, blocks.pieces, match)
    if not found.rows:
        raise Failure(f"{found.source}: there are no rows")
    if args.json:
        print(json.dumps(asdict(found), ensure_ascii=False))
        return OK
    print(_say.evaluation(found))
    if not args.quiet and found.confusion is not None and len(found.confusion.labels) <= _MOST_CLASSES:
        print(_say.confusion(found.confusion))
    return OK
