"""``pegasos convert``: a data file to a folder of memory maps."""

from __future__ import annotations

import argparse

from pegasos.cli._exit import OK
from pegasos.cli._progress import Progress


def run(args: argparse.Namespace) -> int:
    """Convert as the arguments say; the exit code."""
    from pegasos import io

    with Progress(quiet=args.quiet) as progress:
        progress.stage(f"converting {args.source}")
        data = io.convert(
            args.source,
            args.folder,
            target="auto" if args.target is None else args.target,
            dtype=args.dtype,
            n_features=args.n_features,
            zero_based=args.zero_based,
            overwrite=args.force,
        )
    if not args.quiet:
        print(f"{args.folder}: {data.shape[0]:,} rows, {data.shape[1]:,} columns, {data.nnz:,} entries, {data.dtype}")
    return OK
