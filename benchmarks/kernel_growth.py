"""Cost of kernel machines against the number of rows, and their memory: ``python -m benchmarks.kernel_growth``.

The first 2,000 … 60,000 rows, shuffled once, of MNIST (eight against the rest, γ = 0.02, C = 1). Each fit runs in a
process of its own: *extra* is its highest resident memory less the resident memory just before, and with a cache of 200
MB, everybody's default, little more than that is what a fit should need.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.kernel import GAMMA, libraries, rows_of, timed
from benchmarks.memory import forget_peak, resident

PROBLEM = "mnist8"
SIZES = (2_000, 5_000, 10_000, 20_000, 40_000, 60_000)
LIBRARIES = ("pegasos", "scikit-learn-intelex", "scikit-learn")


def measure(library: str, size: int, threads: int, cache: float) -> dict[str, Any]:
    """Fit one library on so many rows in this process."""
    X, y = rows_of(PROBLEM)
    chosen = np.random.default_rng(0).permutation(X.shape[0])[:size]
    X, y = X[chosen], y[chosen]
    make = libraries(threads, cache)[library]
    with threadpool_limits(threads):
        make(GAMMA[PROBLEM]).fit(X[:500], y[:500])  # imports and pools are not the fit's
        forget_peak()
        before = resident()
        seconds, model = timed(lambda: make(GAMMA[PROBLEM]).fit(X, y))
        extra = resident("VmHWM") - before
    return {
        "library": library,
        "rows": size,
        "threads": threads,
        "seconds": round(seconds, 4),
        "support": len(model.support_),
        "data_mb": round(X.nbytes / 2**20, 1),
        "extra_mb": round(extra / 2**20, 1),
    }


def plot(fits: list[dict[str, Any]], path: Path) -> None:
    """Draw seconds against rows, a line for each library."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    for library in LIBRARIES:
        if mine := sorted((fit["rows"], fit["seconds"]) for fit in fits if fit["library"] == library):
            axes.plot(*zip(*mine, strict=True), marker="o", markersize=3, label=library)
    axes.set(xscale="log", yscale="log", xlabel="rows", ylabel="seconds to fit", title="MNIST, 8 against the rest")
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    """Measure, print, write kernel_growth.csv and .png."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--libraries", nargs="+", default=LIBRARIES, choices=LIBRARIES)
    parser.add_argument("--limit", type=int, default=60_000, help="rows beyond which scikit-learn is left out")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cache", type=float, default=200)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--one", nargs=2, metavar=("LIBRARY", "ROWS"), help="measure this, and print it as JSON")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one[0], int(options.one[1]), options.threads, options.cache)))
        return
    fits: list[dict[str, Any]] = []
    for size in options.sizes:
        for library in options.libraries:
            if library == "scikit-learn" and size > options.limit:
                continue
            command = [sys.executable, "-m", "benchmarks.kernel_growth", "--one", library, str(size)]
            command += ["--threads", str(options.threads), "--cache", str(options.cache)]
            found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            fits.append(json.loads(found.splitlines()[-1]))
            print(", ".join(f"{name} {value}" for name, value in fits[-1].items()), flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / "kernel_growth.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(fits[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(fits)
    plot(fits, options.out / "kernel_growth.png")


if __name__ == "__main__":
    main()
