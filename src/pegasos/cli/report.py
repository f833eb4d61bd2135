"""``pegasos report``: run records as a page."""

from __future__ import annotations

import argparse
from pathlib import Path

from pegasos.cli import _output
from pegasos.cli._exit import OK
from pegasos.report import page
from pegasos.report import record as run_record


def run(args: argparse.Namespace) -> int:
    """Write the page; the exit code."""
    if args.output != "-":
        _output.check_target(args.output, "the report")
    _output.check_distinct(
        {f"run record {i + 1}": path for i, path in enumerate(args.runs)}, {"the report": args.output}
    )
    html = page([run_record.read(Path(path)) for path in args.runs], args.title)
    with _output.writing(args.output) as file:
        file.write(html)
    return OK
