"""Every Python block of the documentation runs; the blocks of a page share their names."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib as mpl
import pytest

DOCS = Path(__file__).parent.parent / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

PAGES = [
    page for page in sorted(DOCS.rglob("*.md")) if "_build" not in page.parts and BLOCK.search(page.read_text("utf-8"))
]


def test_there_are_pages():
    assert {"index.md", "quickstart.md", "certificates.md", "migration.md"} <= {page.name for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_page(page, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # for the files that pages write
    mpl.use("Agg")
    names: dict[str, object] = {}
    text = page.read_text("utf-8")
    for block in BLOCK.finditer(text):
        line = text[: block.start()].count("\n") + 1
        exec(compile("\n" * line + block[1], str(page), "exec"), names)
    import matplotlib.pyplot as plt

    plt.close("all")
