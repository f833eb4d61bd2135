"""docs/papers.md: every name on the map can be imported, every test on it is there, and no item is left out."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from functools import cache
from pathlib import Path

import pytest

import pegasos
from pegasos import experiments, losses, solvers, theory

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "papers.md"
COLUMNS = ["item", "what it says", "name", "test", "erratum"]
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
NAMES = {**vars(pegasos), **vars(losses), **vars(solvers), **vars(experiments), **vars(theory)}


def resolved(path):
    """The object at a dotted path, or None."""
    module, names = path.split("."), []
    while True:
        try:
            thing = importlib.import_module(".".join(module))
            break
        except ModuleNotFoundError:
            names.insert(0, module.pop())
    for name in names:
        thing = getattr(thing, name, None)
    return thing


def has_member(thing, name):
    """Whether it has a parameter, an attribute or, by its docstring, a fitted attribute of this name."""
    known = name in inspect.signature(thing).parameters or hasattr(thing, name)
    return known or re.search(rf"^\s+{name} : ", thing.__doc__, re.M) is not None


def mistakes(cell):
    """What a cell names and is not there: files, dotted names, and parameters of the name before them."""
    wrong, owner = [], None
    for text in CODE.findall(cell):
        if "/" in text:
            good = (ROOT / text).exists()
        elif re.fullmatch(r"pegasos(\.\w+)+", text):
            owner = resolved(text)
            good = owner is not None
        elif text.startswith(('"', "'")):
            good = owner is not None
        elif word := re.fullmatch(r"(\w+)(=(.+))?", text):
            good = owner is not None and has_member(owner, word[1])
            if good and word[3] and re.match(r"[A-Z]\w|[\d\"]", word[3]):  # not a letter of a formula
                good = evaluates(word[3])
        else:
            good = evaluates(text)
        if not good:
            wrong.append(text)
    return wrong


def evaluates(text):
    try:
        eval(text, dict(NAMES))
    except Exception:
        return False
    return True


@cache
def functions_of(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def test_the_page_has_a_map_for_each_document():
    sections = [section for _, section, _ in ROWS]
    assert len(dict.fromkeys(sections)) >= 4
    for wanted in ("2011", "2007", "2013", "Notes"):
        assert any(wanted in section for section in sections), wanted


def test_every_row_has_all_columns():
    assert [number for number, _, cells in ROWS if len(cells) != len(COLUMNS) or not cells[0]] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"line {row[0]}")
def test_what_a_row_names_is_there(row):
    _, _, (item, _, name, test, _) = row
    named = CODE.findall(name)
    assert named or name.startswith("—"), f"{item}: neither a name nor why there is none"
    assert mistakes(name) == []
    tests = CODE.findall(test)
    assert tests or name.startswith("—"), f"{item}: no test"
    for text in tests:
        path, _, function = text.partition("::")
        assert function.split("[")[0] in functions_of(path), text


def test_tests_in_the_list_of_slips_are_there():
    for path, function in re.findall(r"`(tests/[\w/]+\.py)::(\w+)", PAGE.read_text(encoding="utf-8")):
        assert function in functions_of(path), function


@pytest.mark.parametrize(
    "wrong",
    [
        "`pegasos.Pegasus`",
        "`pegasos.theory.no_such_lemma`",
        "`pegasos.LinearSVC` with `solver=Pegasos(t=0)`",
        "`pegasos.Pegasos` with `batch=k`",
        "`Pegasus()`",
        "`lam`",
        "`benchmarks/missing.py`",
    ],
)
def test_what_is_not_there_is_noticed(wrong):
    assert mistakes(wrong)
