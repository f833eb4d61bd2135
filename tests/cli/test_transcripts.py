"""Every console block of the documentation is run again, line by line, and says what the page says."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import processes
import pytest

pytestmark = pytest.mark.unsanitized

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PAGES = [
    page for page in sorted(DOCS.rglob("*.md")) if "_build" not in page.parts and BLOCK.search(page.read_text("utf-8"))
]


def steps(page):
    """Line number, command and expected output of each ``$`` in the page's console blocks."""
    text = page.read_text("utf-8")
    found = []
    for block in BLOCK.finditer(text):
        first = text[: block.start()].count("\n") + 2
        for number, row in enumerate(block[1].splitlines(), first):
            if row.startswith("$ "):
                found.append((number, [row[2:]], []))
            elif row.startswith(">") and not found[-1][2]:
                found[-1][1].append(row[2:])
            else:
                found[-1][2].append(row)
    return [(number, "\n".join(command), "\n".join(output)) for number, command, output in found]


def test_the_pages_with_transcripts_are_found():
    assert "command_line.md" in {page.name for page in PAGES}


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_transcript(page, tmp_path):
    tools, place = tmp_path / "bin", tmp_path / "work"
    tools.mkdir()
    place.mkdir()
    for name, words in (("pegasos", '-m pegasos "$@"'), ("python", '"$@"')):
        (tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}\n')
        (tools / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    code = 0
    for line, command, expected in steps(page):
        done = processes.run(
            ["bash", "-c", f"(exit {code})\n{command}"],
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )
        code = done.returncode
        matches = doctest.OutputChecker().check_output(expected + "\n", done.stdout, FLAGS) or expected == done.stdout
        assert matches, f"{page.name}, line {line}: $ {command}\n{done.stdout}"
        assert code == 0 or expected, f"{page.name}, line {line}: exit code {code}, and the page does not say why"
