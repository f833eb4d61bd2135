"""Print pip constraints that hold what users install to the lowest versions pyproject.toml declares.

Dependencies of the package and of the extras for users; the tools of tests, docs and benchmarks may be newer.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

TOOLS = ("bench", "docs", "test")

#: What the lowest versions were written for: with a newer pyparsing matplotlib 3.9 warns, and warnings are errors here.
OF_THEIR_TIME = ("pyparsing<3.3",)


def lowest(pyproject: str) -> list[str]:
    """``name>=version`` as ``name==version``, with its marker; what declares no lowest version is refused."""
    project = tomllib.loads(pyproject)["project"]
    extras = project["optional-dependencies"]
    declared = [*project["dependencies"], *(item for name in extras if name not in TOOLS for item in extras[name])]
    found = []
    for requirement in declared:
        match = re.fullmatch(r"([\w.-]+)\s*>=\s*([\w.]+)\s*(;.*)?", requirement)
        if match is None:
            raise ValueError(f"{requirement!r} in pyproject.toml is not of the form name>=version")
        name, version, marker = match.groups(default="")
        found.append(f"{name}=={version}{marker}")
    return found


if __name__ == "__main__":
    declared = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    print("\n".join([*OF_THEIR_TIME, *lowest(declared)]))
