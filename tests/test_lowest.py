"""The lowest versions that pyproject.toml declares, as constraints for ``make test-lowest``."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
lowest = runpy.run_path(str(ROOT / "tools" / "lowest.py"))["lowest"]

PROJECT = """
[project]
dependencies = ["numpy>=2.0", "scikit-learn>= 1.6"]
[project.optional-dependencies]
zstd = ["zstandard>=0.22; python_version < '3.14'"]
test = ["pytest>=8", "ruff"]
"""


def test_constraints_are_those_declared():
    assert lowest(PROJECT) == ["numpy==2.0", "scikit-learn==1.6", "zstandard==0.22; python_version < '3.14'"]


def test_every_dependency_of_users_has_a_lowest_version():
    found = lowest((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    names = [constraint.partition("==")[0] for constraint in found]
    assert {"numpy", "scipy", "scikit-learn", "safetensors", "threadpoolctl", "matplotlib", "pandas"} <= set(names)
    assert len(names) == len(set(names))


@pytest.mark.parametrize("requirement", ["numpy", "numpy==2.0", "numpy<3", "numpy>=2,<3"])
def test_what_has_no_lowest_version_is_named(requirement):
    with pytest.raises(ValueError, match=f"{requirement!r} in pyproject.toml"):
        lowest(PROJECT.replace("numpy>=2.0", requirement))
