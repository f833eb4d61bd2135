"""``pegasos sparsify``: a kernel classifier compressed to few support vectors."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from pegasos.cli import _models, _output
from pegasos.cli._exit import OK, Failure
from pegasos.cli._progress import Progress

if TYPE_CHECKING:
    from pegasos.util.arrays import Array, Matrix


def run(args: argparse.Namespace) -> int:
    """Compress as the arguments say; the exit code."""
    _output.check_target(args.output, "the model")
    _output.check_distinct({"the model": args.model, "the rows": args.data}, {"the compressed model": args.output})
    form = _models.format_of(args.output, args.format)
    with Progress(quiet=args.quiet) as progress:
        progress.stage(f"compressing {args.model}")
        model = _models.load(args.model)
        from pegasos import SVC, sparsify
        from pegasos.cli import _judge, _match, _rows

        if not isinstance(model, SVC):
            raise Failure(f"{args.model}: is a {type(model).__name__}; only kernel classifiers have support vectors")

        def read(path: str) -> tuple[Matrix, Array]:
            options = {"regression": False, "zero_based": args.zero_based, "threads": args.threads}
            rows = _rows.read(path, n_features=None, **options)
            match = _match.Match.with_model(rows.source, rows.names, model, progress.say)
            return match(rows.matrix), rows.y

        X, y = read(args.data)
        with _judge.matched():
            path = sparsify(
                model,
                X,
                y,
                max_support=args.max_support,
                variant=args.variant,
                refit=not args.no_refit,
                tol=args.tol,
                validation=None if args.validation is None else read(args.validation),
                n_jobs=args.threads,
            )
            small = path.at()
            facts = {
                "model": args.output,
                "support": len(small.support_),
                "reference_support": len(model.support_),
                "training_error": 1.0 - small.score(X, y),
                "reference_training_error": 1.0 - model.score(X, y),
            }
        _models.save(small, args.output, form)
    if args.json:
        print(json.dumps(facts, ensure_ascii=False))
    elif not args.quiet:
        print(
            f"{args.output}: {facts['support']} support vectors of {facts['reference_support']}, training error "
            f"{facts['training_error']:.2%} (before: {facts['reference_training_error']:.2%})"
        )
    return OK
