"""``pegasos convert``: a data file to a folder of memory maps."""

from __future__ import annotations

import argparse
from pathlib import Path

from pegasos.cli._exit import OK, Failure
from pegasos.cli._progress import Progress

_HEADERS = {"auto": None, "yes": True, "no": False}
_DELIMITERS = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}


def run(args: argparse.Namespace) -> int:
    """Convert as the arguments say; the exit code."""
    from pegasos import io
    from pegasos.io.data.columns import Word

    if Path(args.source).is_dir():
        raise Failure(f"{args.source}: is a folder; all commands take one made by pegasos convert as it is")
    with Progress(quiet=args.quiet) as progress:
        progress.stage(f"converting {args.source}")
        data = io.convert(
            args.source,
            args.folder,
            format=args.format,
            target=None if args.no_target else "auto" if args.target is None else Word(args.target),
            sample_weight=None if args.sample_weight is None else Word(args.sample_weight),
            dtype=args.dtype,
            n_features=args.n_features,
            zero_based=args.zero_based,
            header=_HEADERS[args.header],
            delimiter=_DELIMITERS.get(args.delimiter, args.delimiter),
            text_target=args.text_target or None,
            memory=args.memory,
            overwrite=args.force,
            tell=progress.say,
        )
    if not args.quiet:
        print(f"{args.folder}: {data.shape[0]:,} rows, {data.shape[1]:,} columns, {data.nnz:,} entries, {data.dtype}")
    return OK
