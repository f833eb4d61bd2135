"""The demonstration, the examples and the README's code run as a newcomer runs them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scripts import EXAMPLES, ROOT, run

pytestmark = pytest.mark.unsanitized

PNG = b"\x89PNG\r\n\x1a\n"


def test_demo(tmp_path):
    out = run("demo.py", "--rows", 1500, cwd=tmp_path)
    names = ("objective", "lower bound", "gap", "test error", "time")
    numbers = {name: float(re.search(rf"^  {name} +([0-9.e-]+)", out, re.MULTILINE)[1]) for name in names}
    assert 0 < numbers["lower bound"] <= numbers["objective"] < 1
    assert 0 <= numbers["gap"] <= 1.1e-5 * numbers["objective"]
    assert numbers["test error"] < 30
    progress = re.findall(r"^ +[0-9.]+ +[0-9.]+ +0\.\d{7} +-?[0-9.]+ +[0-9.e+-]+$", out, re.MULTILINE)
    assert progress
    for solver in ("pegasos", "sdca", "auto"):
        assert re.search(rf"^  {solver} ", out, re.MULTILINE)
    picture = tmp_path / "demo" / "convergence.png"
    assert picture.read_bytes().startswith(PNG)
    assert str(Path("demo") / "convergence.png") in out


def test_solvers(tmp_path):
    out = run("solvers.py", "--rows", 400, "--out", tmp_path / "there" / "picture.png", cwd=tmp_path)
    gaps = {
        name.strip(): float(gap)
        for name, gap in re.findall(r"^  (.*?)  +objective.*gap +([0-9.e+-]+)", out, re.MULTILINE)
    }
    assert len(gaps) == 7
    assert gaps["interior point"] <= 1e-4
    assert (tmp_path / "there" / "picture.png").read_bytes().startswith(PNG)


def test_choose_c(tmp_path):
    out = run("choose_c.py", cwd=tmp_path)
    assert out.count("<- chosen") == 1
    assert float(re.search(r"test accuracy ([0-9.]+)", out)[1]) > 0.9
    assert float(re.search(r"certified relative gap ([0-9.e+-]+)", out)[1]) <= 1e-6


def test_costs(tmp_path):
    out = run("costs.py", cwd=tmp_path)
    bills = {name.strip(): int(bill) for name, bill in re.findall(r"^([^\d\n]+?) +\d+ +(\d+) +\S+$", out, re.MULTILINE)}
    assert bills["with costs"] < bills["Crammer-Singer"] < bills["one-vs-rest hinge"]


def test_stream(tmp_path):
    out = run("stream.py", "--rows", 4000, cwd=tmp_path)
    errors = [float(e) for e in re.findall(r"([0-9.]+) %$", out, re.MULTILINE)]
    assert len(errors) == 10
    assert errors[-1] < 20
    assert "not certified" in out
    assert "certified relative gap" in out


def test_small_kernel(tmp_path):
    out = run("small_kernel.py", cwd=tmp_path)
    reference, error = re.search(r"reference: (\d+) support vectors, test error ([0-9.]+)", out).groups()
    errors = {int(n): float(e) for n, e in re.findall(r"^ +(\d+) +([0-9.]+)$", out, re.MULTILINE)}
    assert max(errors) < int(reference) / 4
    assert errors[120] <= float(error) + 0.01


def test_chunking(tmp_path, monkeypatch):
    monkeypatch.delenv("PEGASOS_DATA", raising=False)
    out = run("chunking.py", "--tol", 1e-2, cwd=tmp_path)
    assert "generated sentences" in out
    assert float(re.search(r"entity F1 ([0-9.]+)", out)[1]) > 0.95


def test_every_example_is_tested():
    tests = "".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    tested = set(re.findall(r'run\("(\w+\.py)"', tests))
    assert {path.name for path in EXAMPLES.glob("*.py")} == tested


README = (ROOT / "README.md").read_text("utf-8")


def test_readme_example(capsys):
    (block,) = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert len([line for line in block.splitlines() if line]) == 5
    exec(compile(block, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert float(printed.split()[0]) > 0.95
    assert "converged (gap <= tol * primal)" in printed


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
