"""Importing scikit-learn without what it imports but does not need here.

scikit-learn imports SciPy's statistics, pandas and (through joblib) asyncio. They take longer than all the rest, and
linear models on files do not use them. Only the command line does without: in a user's program imports are the user's.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType
from typing import Any

_LATE = ("scipy.stats", "asyncio")


class _Late:
    """Finds the modules in ``_LATE`` as everybody does; they are run when somebody looks inside (``LazyLoader``)."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The specification of such a module; None for all others."""
        if name not in _LATE:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def import_sklearn() -> None:
    """Import the part of scikit-learn that estimators need.

    It looks for pandas to recognise data frames. There are none here, so pandas is out of sight meanwhile: as a module
    that loads late it would be loaded by the first such look.
    """
    if "sklearn" in sys.modules:
        return
    modules: dict[str, Any] = sys.modules
    hidden = "pandas" not in modules
    sys.meta_path.insert(0, _Late)
    if hidden:
        modules["pandas"] = None
    try:
        import sklearn.base  # noqa: F401
    finally:
        sys.meta_path.remove(_Late)
        if hidden:
            del modules["pandas"]
