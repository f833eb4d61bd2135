"""Seconds to a fixed number of steps as the rows grow: ``python -m benchmarks.scaling``.

Pegasos comes within ε of the optimum in Õ(1/(λε)) steps, however many rows there are (2011 paper, Theorem 1). Here T
steps are made on 10⁴ to 10⁷ generated rows, dense and sparse like text, and whole calls of ``fit`` are timed:

*estimated*
    ``Pegasos(max_steps=T, estimate=N)`` on rows that are vouched for: nothing looks at all rows.
*checked*
    the same on rows that nobody vouches for: one pass over all of them, before the steps.
*certified*
    without the estimate: a pass before the steps, and the certificate of all rows after them.

Each size has a process of its own, and each fit of a size another seed, so that it meets rows which the fits before
have not brought into the caches. That memory is slower than caches shows in the time of a step. Seconds are those of
the processor, which other programs disturb less than those of the clock, and the least of some fits; a fit has one
thread.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn

from pegasos import LinearSVC, Pegasos

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
LAM, STEPS, JUDGED = 1e-3, 100_000, 10_000
MODES = ("estimated", "checked", "certified")
#: Rows that are generated at a time.
BLOCK = 1 << 18


def dense_rows(m: int, n: int = 30) -> tuple[Any, Any]:
    """Gaussian rows, and noisy labels of a hidden linear model."""
    rng = np.random.default_rng(0)
    X, w = np.empty((m, n), dtype=np.float32), rng.standard_normal(n, dtype=np.float32)
    for first in range(0, m, BLOCK):
        X[first : first + BLOCK] = rng.standard_normal(X[first : first + BLOCK].shape, dtype=np.float32)
    return X, labels(X @ w, rng)


def text_rows(m: int, n: int = 47_236, k: int = 20) -> tuple[Any, Any]:
    """CSR rows of unit norm with k of n words each, the first ones frequent, and labels likewise."""
    rng = np.random.default_rng(0)
    edges = (n * np.linspace(0, 1, k + 1) ** 3).astype(np.int64) + np.arange(k + 1)
    edges = np.minimum(edges, n - k + np.arange(k + 1))
    X = sp.csr_matrix((m, n), dtype=np.float32)
    X.data, X.indptr = np.full(m * k, k**-0.5, dtype=np.float32), np.arange(0, m * k + 1, k, dtype=np.int32)
    X.indices = np.empty(m * k, dtype=np.int32)
    for j in range(k):
        X.indices[j::k] = rng.integers(edges[j], edges[j + 1], m, dtype=np.int32)
    return X, labels(X @ rng.standard_normal(n, dtype=np.float32), rng)


def labels(scores: Any, rng: np.random.Generator) -> Any:
    """The signs of scores, with noise of a third of their spread."""
    noise = rng.standard_normal(len(scores), dtype=np.float32)
    return np.where(scores + scores.std() / 3 * noise > 0, 1, -1)


LAYOUTS = {"dense": dense_rows, "text": text_rows}


def measure(layout: str, rows: int, repeats: int) -> list[dict[str, Any]]:
    """Fit in this process, in every way."""
    X, y = LAYOUTS[layout](rows)
    found = []
    for mode in MODES:
        times = []
        for seed in range((repeats if mode == "estimated" else 1) + 1):
            solver = Pegasos(max_steps=STEPS, sampling="iid", estimate=None if mode == "certified" else JUDGED)
            model = LinearSVC(solver=solver, lam=LAM, tol=0, random_state=seed)
            with sklearn.config_context(assume_finite=mode == "estimated"):
                start = time.process_time(), time.perf_counter()
                model.fit(X, y)
                times.append((time.process_time() - start[0], time.perf_counter() - start[1]))
        c, (cpu, wall) = model.certificate_, zip(*times[1:], strict=True)  # the first one pays for imports
        bounds = (c.primal, c.dual, c.primal) if c.estimate is None else (c.estimate, c.estimate_low, c.estimate_high)
        found.append(
            {
                "layout": layout,
                "rows": rows,
                "mode": mode,
                "steps": STEPS,
                "epochs": round(c.epochs, 4),
                "cpu_seconds": round(min(cpu), 4),
                "median_cpu_seconds": round(statistics.median(cpu), 4),
                "wall_seconds": round(min(wall), 4),
                "microseconds_a_step": round(1e6 * min(cpu) / STEPS, 3),
                **dict(zip(("objective", "low", "high"), (round(float(b), 5) for b in bounds), strict=True)),
            }
        )
    return found


def plot(fits: list[dict[str, Any]], path: Path) -> None:
    """Draw seconds against rows, a picture for each layout and a line for each way."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, places = plt.subplots(1, len(LAYOUTS), figsize=(9.6, 4.0), layout="constrained", sharey=True)
    names = {"dense": "dense float32, 30 columns", "text": "sparse float32, 20 of 47,236 columns"}
    for axes, layout in zip(places, LAYOUTS, strict=True):
        for mode in MODES:
            mine = sorted((f["rows"], f["cpu_seconds"]) for f in fits if (f["layout"], f["mode"]) == (layout, mode))
            if mine:
                axes.plot(*zip(*mine, strict=True), marker="o", markersize=3, label=mode)
        axes.set(xscale="log", yscale="log", xlabel="rows", title=names[layout])
        axes.grid(alpha=0.3, which="both")
    places[0].set_ylabel(f"processor seconds to fit, {STEPS:,} steps")
    places[0].legend(fontsize=8)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    """Measure, print, write scaling.csv and .png."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--layouts", nargs="+", default=tuple(LAYOUTS), choices=tuple(LAYOUTS))
    parser.add_argument("--repeats", type=int, default=9, help="fits that are estimated; of the others there is one")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--one", nargs=2, metavar=("LAYOUT", "ROWS"), help="measure this, and print it as JSON")
    options = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(measure(options.one[0], int(options.one[1]), options.repeats)))
        return
    fits: list[dict[str, Any]] = []
    for layout in options.layouts:
        for size in options.sizes:
            command = [sys.executable, "-m", "benchmarks.scaling", "--one", layout, str(size)]
            command += ["--repeats", str(options.repeats)]
            found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
            for fit in json.loads(found.splitlines()[-1]):
                fits.append(fit)
                print(", ".join(f"{name} {value}" for name, value in fit.items()), flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / "scaling.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(fits[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(fits)
    plot(fits, options.out / "scaling.png")


if __name__ == "__main__":
    main()
