"""The ``pegasos`` command: train, predict, evaluate, convert, export, sparsify, info, report.

Nothing heavy is imported before the arguments are known to be right: a usage error, ``--help`` and ``report`` need
neither NumPy nor scikit-learn. So commands import what they need inside their functions; elsewhere only optional
packages, and slow parts of others, are imported in this way.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pegasos.cli._exit import BAD, BROKEN_PIPE, BUG, Failure, reason
from pegasos.cli._options import as_options
from pegasos.cli._signals import Signals
from pegasos.cli._startup import light_imports, prepare_streams

if TYPE_CHECKING:
    from typing import TextIO

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code.

    Parameters
    ----------
    argv : sequence of str, default=None
        The arguments without the program's name; None takes those of the process.

    Returns
    -------
    int
        0: done. 1: something given cannot be used. 2: wrong usage. 3: trained and saved, but not converged.
        70: a bug. 129, 130 and 143: ended by SIGHUP, Ctrl-C or SIGTERM (a model trained so far is saved). 141: nobody
        reads the output any more.

    Examples
    --------
    >>> from pegasos.cli import main
    >>> main(["--version"])
    pegasos 0.1.0
    0
    """
    words = list(sys.argv[1:] if argv is None else argv)
    signals = Signals()
    options: list[str] = []
    try:
        with signals, light_imports():
            if argv is None:
                prepare_streams()
            from pegasos.cli._parser import parse

            args = parse(words)
            args.words, args.signals = words, signals
            options = args.parser.options
            code = int(args.run(args))
            if sys.stdout is not None:
                sys.stdout.flush()
            return signals.code if signals.pending else code
    except SystemExit as stop:  # argparse: --help, --version and usage errors
        return stop.code if isinstance(stop.code, int) else BAD
    except Failure as failure:
        return _complain(as_options(str(failure), options, words), failure.code)
    except KeyboardInterrupt:
        return _complain("interrupted before there was anything to save", signals.code)
    except BrokenPipeError:
        _let_go_of(sys.stdout)
        return BROKEN_PIPE
    except (OSError, ValueError, MemoryError, ImportError) as error:
        # With the terminal that a SIGHUP took away, what was to be said there is no error.
        code = signals.code if isinstance(error, OSError) and signals.last is not None else BAD
        _complain(as_options(reason(error), options, words), code)
        _let_go_of(sys.stdout)
        return code
    except Exception as error:
        if os.environ.get("PEGASOS_TRACEBACK"):
            raise
        return _complain(f"internal error: {type(error).__name__}: {error}. Set PEGASOS_TRACEBACK=1 to see where.", BUG)


def _complain(message: str, code: int) -> int:
    with contextlib.suppress(OSError):  # standard error is closed, too
        print(f"pegasos: {message}", file=sys.stderr, flush=True)
    return code


def _let_go_of(stream: TextIO | None) -> None:
    """If nothing can be written to the stream any more, Python need not complain once more when it flushes on exit."""
    if stream is None:
        return
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
