"""``pegasos export``: a model in another format."""

from __future__ import annotations

import argparse

from pegasos.cli import _models, _output
from pegasos.cli._exit import OK


def run(args: argparse.Namespace) -> int:
    """Export as the arguments say; the exit code."""
    _output.check_target(args.output, "the model")
    _output.check_distinct({"the model": args.model}, {"the exported model": args.output})
    form = _models.format_of(args.output, args.format)
    _models.save(_models.load(args.model), args.output, form)
    if not args.quiet:
        print(f"{args.output}: {form}")
    return OK
