"""What a process needs before it does anything: standard streams, and imports that are quick.

NumPy, SciPy and scikit-learn are imported without those of their parts that take long and are not used here.

They import statistics, special functions, Fortran and testing tools, pandas and (through joblib) asyncio, which take
longer than all the rest. Only the command line does without: in a user's program imports are the user's.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

_LATE_MODULES = frozenset(
    {
        "asyncio",
        "numpy.ctypeslib",
        "numpy.f2py",
        "numpy.ma",
        "numpy.polynomial",
        "numpy.testing",
        "scipy.special",
        "scipy.stats",
    }
)


def prepare_streams() -> None:
    """Make the standard streams usable: those that are closed, and those whose encoding has not every letter.

    The descriptors of closed ones are taken, so that no file that is opened later gets the number of one, and what is
    printed to it. Messages are dropped; reading standard input, or writing files to standard output, is an error.
    """
    for number, flags in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)  # gets the lowest number that is free
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115 - for print, None means standard output
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a λ that a terminal cannot show is no reason to fail


class _Late:
    """Finds the modules in ``_LATE_MODULES``; they are run when an attribute is first asked for (``LazyLoader``)."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The specification of such a module; None for all others."""
        if name not in _LATE_MODULES:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


class _NoFrames:
    """Finds no pandas, as where it is not installed, and leaves everything else to others."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        """None, or ModuleNotFoundError for pandas."""
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=name)


@contextlib.contextmanager
def _asked_first(finder: type[_Late | _NoFrames]) -> Iterator[None]:
    """While inside, this finder of modules comes before all others."""
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def light_imports() -> contextlib.AbstractContextManager[None]:
    """While inside, what is in ``_LATE_MODULES`` is loaded when it is used."""
    return _asked_first(_Late)


def import_sklearn() -> None:
    """Import the part of scikit-learn that estimators need.

    It imports pandas where it can, which takes 0.3 s, to recognise data frames. There are none here, so it does not
    find pandas meanwhile: as a module that loads late it would be loaded by the first look for a frame.
    """
    if "sklearn" not in sys.modules:
        with _asked_first(_NoFrames):
            import sklearn.base  # noqa: F401
