"""docs/papers.md: every name on the map can be imported, every test on it is there, and no item is left out."""

from __future__ import annotations

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest

import pegasos
from pegasos import experiments, io, losses, solvers, theory

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "papers.md"
COLUMNS = ["item", "what it says", "name in the code", "test", "erratum"]
CODE = re.compile(r"`([^`]+)`")


def rows():
    """The rows of all maps on the page, as (line number, section, cells)."""
    section, inside, found = "", False, []
    for number, line in enumerate(PAGE.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith("## "):
            section, inside = line[3:], False
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if cells == COLUMNS:
            inside = True
        elif not cells:
            inside = False
        elif inside and not set("".join(cells)) <= set("-: "):
            found.append((number, section, cells))
    return found


ROWS = rows()
NAMES = {
    **vars(pegasos),
    **vars(losses),
    **vars(solvers),
    **vars(experiments),
    **vars(theory),
    "io": io,
    "pegasos": pegasos,
}


def found(text):
    """What stands on the map: a file, a dotted name, or an expression such as ``Pegasos(t0=0)``."""
    if re.fullmatch(r"[\w./-]+\.(hpp|cpp|py)", text):
        return (ROOT / text).is_file()
    if re.fullmatch(r"pegasos(\.\w+)+", text):
        module, names = text.split("."), []
        while module:
            try:
                thing = importlib.import_module(".".join(module))
                break
            except ModuleNotFoundError:
                names.insert(0, module.pop())
        for name in names:
            if not hasattr(thing, name):
                return name in getattr(thing, "__dataclass_fields__", {})
            thing = getattr(thing, name)
        return True
    try:
        eval(text, dict(NAMES))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return True


@cache
def tests_of(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def test_the_page_has_a_map_for_each_document():
    sections = [section for _, section, _ in ROWS]
    assert len(dict.fromkeys(sections)) >= 4
    for wanted in ("2011", "2007", "2013", "Stratos"):
        assert any(wanted in section for section in sections), wanted


def test_every_row_has_all_columns():
    assert [number for number, _, cells in ROWS if len(cells) != len(COLUMNS) or not cells[0]] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"line {row[0]}")
def test_what_a_row_names_is_there(row):
    _, _, (item, _, name, test, _) = row
    named = CODE.findall(name)
    assert named or name.startswith("—"), f"{item}: neither a name nor why there is none"
    assert {text: found(text) for text in named if found(text) is not True} == {}
    tests = CODE.findall(test)
    assert tests or not named or test.startswith("—"), f"{item}: neither a test nor why there is none"
    for text in tests:
        path, _, function = text.partition("::")
        assert function.split("[")[0] in tests_of(path), text


@pytest.mark.parametrize(
    "wrong", ["pegasos.Pegasus", "pegasos.theory.no_such_lemma", "Pegasos(t=0)", "Pegasus()", "a/b.py"]
)
def test_what_is_not_there_is_noticed(wrong):
    assert found(wrong) is not True
