"""What the exit codes are, the exception that carries one, and what is said of others."""

from __future__ import annotations

import os

OK, BAD, USAGE, NOT_CONVERGED, BUG, BROKEN_PIPE = 0, 1, 2, 3, 70, 141

TABLE = """exit codes:
  0    done
  1    a file, its content or a parameter cannot be used; nothing was written but what the message names
  2    wrong usage
  3    trained, and the model is saved, but neither the gap reached --tol nor the solver a goal of its own
  130  ended by Ctrl-C (143: by SIGTERM, 129: by SIGHUP); a model trained so far is saved
  141  nobody reads the output any more
  70   a bug"""


class Failure(Exception):
    """A command cannot go on: what to say, and the exit code."""

    def __init__(self, message: str, code: int = BAD) -> None:
        super().__init__(message)
        self.code = code


def reason(error: BaseException) -> str:
    """What went wrong, in one line."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    if isinstance(error, MemoryError):
        return "out of memory; pegasos convert makes a folder that is trained on from disk"
    return str(error) or type(error).__name__
