"""``pegasos export``: a model in another format."""

from __future__ import annotations

import argparse
import sys

from pegasos.cli import _models, _output
from pegasos.cli._exit import OK


def run(args: argparse.Namespace) -> int:
    """Export as the arguments say; the exit code."""
    _output.check_target(args.output, "the model")
    _output.check_distinct({"the model": args.model}, {"the exported model": args.output})
    form = _models.format_of(args.output, args.format)
    if args.dtype is not None and form != "onnx":
        args.usage_error(f"--dtype is for ONNX models, not for {form}")
    model = _models.load(args.model)
    _models.save(model, args.output, form, args.dtype)
    if not args.quiet:
        if form != "pegasos" and hasattr(model, "feature_names_in_"):
            print(
                f"pegasos: {args.output}: {form} models have no column names; give it columns in the order of "
                f"{args.model}",
                file=sys.stderr,
            )
        print(f"{args.output}: {form}")
    return OK
