"""How much memory a fit takes beside the data: ``python -m benchmarks.memory``.

Each layout is made and fitted in a process of its own. *Extra* is the highest resident memory during the fit less the
resident memory just before it. A library that copies its input shows an extra of about the data's size.
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import gc
import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.adapters import ADAPTERS
from benchmarks.problems import Problem
from pegasos import datasets


def _text(index: type[np.signedinteger[Any]]) -> Problem:
    X, y = datasets.make_text(400_000)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return Problem("text", X, y, 1e-4)


def _dense() -> Problem:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400_000, 200), dtype=np.float32)
    y = np.where(X @ rng.standard_normal(200, dtype=np.float32) > 0, 1, -1)
    return Problem("dense", X, y, 1e-4)


CASES: dict[str, Callable[[], Problem]] = {
    "CSR float32, int32 indices": lambda: _text(np.int32),
    "CSR float32, int64 indices": lambda: _text(np.int64),
    "dense float32": _dense,
}


def data_bytes(X: Any) -> int:
    """Return the bytes of the arrays that hold the rows."""
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) if sp.issparse(X) else int(X.nbytes)


def resident(field: str = "VmRSS") -> int:
    """Return the resident memory of this process in bytes, or with ``VmHWM`` its highest since :func:`forget_peak`."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split(f"{field}:")[1].split()[0])


def forget_peak() -> None:
    """Give freed memory back, lest a fit live on it unseen, and start counting the highest memory anew (Linux)."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def measure(library: str, case: str) -> dict[str, Any]:
    """Fit one library on one layout in this process and return what it took."""
    problem = CASES[case]()
    adapter = ADAPTERS[library]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        effort = adapter.ladder(problem)[2]
        small = slice(0, 1000)  # imports and pools are not the fit's: pay for them first, on a few rows
        rest = problem.X[small], problem.y[small]
        adapter.fit(rest, Problem(problem.name, *rest, problem.lam), effort, 1)
        forget_peak()
        before = resident()
        adapter.fit((problem.X, problem.y), problem, effort, 1)  # as the user has it: conversions count
        extra = resident("VmHWM") - before
    size = data_bytes(problem.X)
    return {
        "library": adapter.name,
        "layout": case,
        "data_mb": round(size / 2**20, 1),
        "extra_mb": round(extra / 2**20, 1),
        "extra_per_data": round(extra / size, 3),
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libraries", nargs="+", default=["pegasos", "pegasos-sgd", "liblinear", "snapml", "sgd"])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--child", nargs=2, metavar=("LIBRARY", "LAYOUT"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        print(json.dumps(measure(*options.child)))
        return
    rows = []
    for library in options.libraries:
        for case in CASES:
            if not ADAPTERS[library].available():
                continue
            command = [sys.executable, "-m", "benchmarks.memory", "--child", library, case]
            child = subprocess.run(command, capture_output=True, text=True, check=False)
            if child.returncode:
                reason = child.stderr.strip().splitlines()[-1] if child.stderr else f"exit {child.returncode}"
                print(f"{ADAPTERS[library].name:28} {case:28} refused: {reason[:80]}", flush=True)
                continue
            rows.append(json.loads(child.stdout.splitlines()[-1]))
            row = rows[-1]
            print(f"{row['library']:28} {case:28} data {row['data_mb']:8} MB  extra {row['extra_mb']:8} MB", flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / "memory.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
