"""What the exit codes are, and the exception that carries one."""

from __future__ import annotations

OK, BAD, USAGE, NOT_CONVERGED, BUG, BROKEN_PIPE = 0, 1, 2, 3, 70, 141

TABLE = """exit codes:
  0    done
  1    a file, its content or a parameter cannot be used; nothing was written
  2    wrong usage
  3    trained, and the model is saved, but the gap did not reach --tol
  130  ended by Ctrl-C (143: by SIGTERM); a model trained so far is saved
  141  nobody reads the output any more
  70   a bug"""


class Failure(Exception):
    """A command cannot go on: what to say, and the exit code."""

    def __init__(self, message: str, code: int = BAD) -> None:
        super().__init__(message)
        self.code = code
