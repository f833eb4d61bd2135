"""The ``pegasos`` command: train, predict, evaluate, convert, export, sparsify, info, report.

Nothing heavy is imported before the arguments are known to be right: a usage error, ``--help`` and ``report`` need
neither NumPy nor scikit-learn.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from pegasos.cli._exit import BAD, BROKEN_PIPE, BUG, Failure
from pegasos.cli._parser import parse
from pegasos.cli._startup import light_imports

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
        70: a bug. 130 and 143: ended by Ctrl-C or SIGTERM (a model trained so far is saved). 141: nobody reads the
        output any more.

    Examples
    --------
    >>> from pegasos.cli import main
    >>> main(["--version"])
    pegasos 0.1.0
    0
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if argv is None and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a λ that a terminal cannot show is no reason to fail
    ended_by = _Signals()
    try:
        with ended_by, light_imports():
            args = parse(words)
            args.words, args.signals = words, ended_by
            code = int(args.run(args))
            sys.stdout.flush()
            return code
    except SystemExit as stop:  # argparse: --help, --version and usage errors
        return stop.code if isinstance(stop.code, int) else BAD
    except Failure as failure:
        return _complain(str(failure), failure.code)
    except KeyboardInterrupt:
        return _complain("interrupted before there was anything to save", 128 + ended_by.last)
    except BrokenPipeError:
        # Whoever read our output has gone. Python would complain once more when it flushes on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except (OSError, ValueError, MemoryError, ImportError) as error:
        return _complain(_reason(error), BAD)
    except Exception as error:
        if os.environ.get("PEGASOS_TRACEBACK"):
            raise
        return _complain(f"internal error: {type(error).__name__}: {error}. Set PEGASOS_TRACEBACK=1 to see where.", BUG)


def _complain(message: str, code: int) -> int:
    print(f"pegasos: {message}", file=sys.stderr)
    return code


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    if isinstance(error, MemoryError):
        return "out of memory; pegasos convert makes a folder that is trained on from disk"
    return str(error) or type(error).__name__


class _Signals:
    """SIGTERM ends a command like Ctrl-C does; ``last`` is the number of the signal that came."""

    def __init__(self) -> None:
        self.last = int(signal.SIGINT)

    def _handle(self, number: int, frame: Any) -> None:
        self.last = number
        raise KeyboardInterrupt

    def __enter__(self) -> None:
        try:
            self._before = signal.signal(signal.SIGTERM, self._handle)
        except ValueError:  # not the main thread: leave signals to whoever runs us
            self._before = None

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)
