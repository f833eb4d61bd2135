"""Write src/pegasos/_core.pyi, the types of the compiled core, from the core that is installed; with --check, compare.

nanobind knows the types of everything it binds, and its stub generator spells them out. What it says about the layout
of arrays (``Annotated[NDArray[…], dict(shape=…)]``) is left to the core, which checks it; a signature that still says
nothing (a bare ``tuple``, ``object``, …) is refused: the binding in cpp/bind/ should return or take a type.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import subprocess
import sys
from pathlib import Path

from nanobind.stubgen import StubGen

STUB = Path(__file__).parents[1] / "src" / "pegasos" / "_core.pyi"

HEAD = """\
# Made by tools/core_stub.py from the compiled core, see cpp/bind/: not to be edited. After a change there: make stub.
from collections.abc import Iterable, Iterator
from typing import overload

import numpy as np
from numpy.typing import NDArray
{more}
"""

#: Needed now and then. Python 3.13 has capsules in types; type checkers know this name for every version.
CAPSULE = "from typing_extensions import CapsuleType\n"

#: Names that stand for any type at all, or for a container of anything.
VAGUE = {"Any", "Callable", "Iterable", "Iterator", "Sequence", "dict", "frozenset", "list", "object", "set", "tuple"}

#: What the generator imports, and HEAD in its stead.
IMPORTS = {"annotations", "Annotated", "CapsuleType", "Iterable", "Iterator", "NDArray", "numpy", "overload", "types"}


class Tidy(ast.NodeTransformer):
    """Arrays by their type alone, and NumPy by its usual name."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id == "Annotated":
            assert isinstance(node.slice, ast.Tuple)
            return self.visit(node.slice.elts[0])
        if isinstance(node.value, ast.Name) and node.value.id == "NDArray":
            return ast.Subscript(node.value, self.visit(node.slice), node.ctx)
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return ast.Name(node.attr, node.ctx) if node.attr == "CapsuleType" else self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id == "NDArray":  # of any type
            return ast.parse("NDArray[np.generic]", mode="eval").body
        return ast.Name("np", node.ctx) if node.id == "numpy" else node


def vague(annotation: ast.expr) -> bool:
    """Whether a type leaves something open: a name of VAGUE that is not followed by what it holds."""
    held = {id(node.value) for node in ast.walk(annotation) if isinstance(node, ast.Subscript)}
    return any(isinstance(n, ast.Name) and n.id in VAGUE and id(n) not in held for n in ast.walk(annotation))


def refuse_vague(tree: ast.Module) -> None:
    """Exit, naming all signatures that should say more."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            args = [a for a in ast.walk(node.args) if isinstance(a, ast.arg) and a.arg != "self"]
            types = [*(a.annotation for a in args), node.returns]
            if any(t is None or vague(t) for t in types):
                found.append(ast.unparse(node))
        elif isinstance(node, ast.AnnAssign) and vague(node.annotation):
            found.append(ast.unparse(node))
    if found:
        sys.exit("these bindings should have types, see cpp/bind/:\n" + "\n".join(found))


def tidied(generated: str) -> str:
    """The generator's text as the package has it."""
    tree = ast.parse(generated)
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom) and (new := {a.name for a in node.names} - IMPORTS):
            sys.exit(f"the core's types need {sorted(new)}: add them to HEAD in {Path(__file__).name}")
    tree.body = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom | ast.Expr)]
    tree = Tidy().visit(tree)
    refuse_vague(tree)
    body = ast.unparse(tree)
    text = HEAD.format(more=CAPSULE if "CapsuleType" in body else "") + body
    ruff = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(STUB), "-"]
    return subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout


def stub() -> str:
    """The types of the core that is installed."""
    from pegasos import _core

    generator = StubGen(_core, quiet=True)
    generator.put(_core)
    return tidied(generator.get())


def main() -> None:
    parser = argparse.ArgumentParser(description="Write src/pegasos/_core.pyi from the installed core.")
    parser.add_argument("--check", action="store_true", help="only compare, and fail if it would change")
    check = parser.parse_args().check
    made = stub()
    if not check:
        STUB.write_text(made, encoding="utf-8")
    elif (have := STUB.read_text(encoding="utf-8")) != made:
        lines = difflib.unified_diff(have.splitlines(), made.splitlines(), str(STUB), "the core", lineterm="")
        sys.exit("\n".join(["src/pegasos/_core.pyi is not what the core offers; run make stub:", *lines]))


if __name__ == "__main__":
    main()
