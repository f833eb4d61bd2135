"""``pegasos report``: run records as a page."""

from __future__ import annotations

import argparse
from pathlib import Path

from pegasos import _record, _report
from pegasos.cli import _output
from pegasos.cli._exit import OK


def run(args: argparse.Namespace) -> int:
    """Write the page; the exit code."""
    if args.output != "-":
        _output.check_target(args.output, "the report")
    _output.check_distinct(
        {f"run record {i + 1}": path for i, path in enumerate(args.runs)}, {"the report": args.output}
    )
    page = _report.page([_record.read(Path(path)) for path in args.runs], args.title)
    with _output.writing(args.output) as file:
        file.write(page)
    return OK
