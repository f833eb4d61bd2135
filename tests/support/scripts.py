"""The examples, run as a newcomer runs them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import processes

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def run(script, *arguments, cwd):
    """Run an example in a child process, warnings being errors, and return what it prints."""
    command = [sys.executable, "-W", "error", str(EXAMPLES / script), *map(str, arguments)]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "MPLCONFIGDIR": str(cwd)}
    done = processes.run(
        command, cwd=cwd, env=environment, capture_output=True, encoding="utf-8", timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
