"""Importing scikit-learn without what it imports but does not need here.

scikit-learn imports SciPy's statistics and pandas, which take longer than all the rest and are not used by linear
models. Python's own ``LazyLoader`` lets them wait until somebody looks inside. Only the command line does this: in a
user's program imports are the user's.
"""

from __future__ import annotations

import importlib.util
import sys

_LATE = ("scipy.stats", "pandas")


def defer() -> None:
    """Load the modules in ``_LATE`` when they are first used."""
    for name in _LATE:
        if name in sys.modules:
            continue
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            continue
        spec.loader = importlib.util.LazyLoader(spec.loader)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
