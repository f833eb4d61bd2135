"""Time to a fixed accuracy as the data grow: ``python -m benchmarks.scaling``.

Pegasos needs Õ(1/(λ ε)) row visits, however many rows there are; a method that must pass over the rows cannot do that.
Here both learn from growing parts of the text problem and are judged on the whole of it: the time until
(P(w) - P*) / P* <= ε, with P and P* those of all rows. Too small a part never gets there, whatever the time. Only the
steps of Pegasos are timed, not the checking of the input nor a certificate, both of which read every row once.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import judge
from benchmarks.adapters import ADAPTERS
from benchmarks.problems import PROBLEMS, Problem
from pegasos.fit.engine import Options

ACCURACIES = (0.1, 0.05, 0.02, 0.01)


@dataclass(frozen=True)
class Point:
    """Learning from ``rows`` rows reached ``accuracy`` after so many row visits and seconds."""

    method: str
    rows: int
    accuracy: float
    visits: int
    seconds: float


def pegasos_path(part: Problem, whole: Problem, max_visits: int) -> Iterable[tuple[int, float, float]]:
    """Yield row visits, seconds of stepping, and P on all rows, at visits growing by a quarter each time."""
    from pegasos import losses, solvers
    from pegasos.problems.linear import LinearProblem as Inner
    from pegasos.rows.views import examples

    inner = Inner(examples(part.X), losses.Hinge(), part.signs()[0], outputs=1, lam=part.lam)
    engine: Any = solvers.Pegasos().engine(inner, Options("none", 0))
    (solver,) = engine.lanes.solvers
    visits, seconds, target = 0, 0.0, 5_000
    while visits < max_visits:
        while visits < target:
            start = time.perf_counter()
            solver.advance(target - visits)  # never past the end of an epoch
            seconds += time.perf_counter() - start
            visits = round(engine.epochs * part.m)
        yield visits, seconds, judge.objective(whole, engine.model()[0])
        target = visits * 5 // 4


def liblinear_path(part: Problem, whole: Problem) -> Iterable[tuple[int, float, float]]:
    """Yield the same for LIBLINEAR's first few iterations."""
    adapter = ADAPTERS["liblinear"]
    data = adapter.prepare(part)
    for effort in adapter.ladder(part)[:6]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.perf_counter()
            model = adapter.fit(data, part, effort, 1)
            seconds = time.perf_counter() - start
        yield effort["max_iter"] * part.m, seconds, judge.objective(whole, adapter.weights(model, part))


def first_hits(method: str, rows: int, path: Iterable[tuple[int, float, float]], best: float) -> list[Point]:
    """Return the first point of the path within each accuracy, and stop when the finest is reached."""
    found: list[Point] = []
    for visits, seconds, primal in path:
        reached = {point.accuracy for point in found}
        found += [
            Point(method, rows, accuracy, visits, round(seconds, 5))
            for accuracy in ACCURACIES
            if accuracy not in reached and primal <= best * (1 + accuracy)
        ]
        if len(found) == len(ACCURACIES):
            break
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--halvings", type=int, default=6, help="the smallest part is the whole halved so often")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    whole = PROBLEMS["text"]()
    best = judge.reference(whole, options.out)
    order = np.random.default_rng(0).permutation(whole.m)
    points: list[Point] = []
    for halvings in range(options.halvings, -1, -1):
        rows = np.sort(order[: whole.m >> halvings])
        part = Problem("text", whole.X[rows], whole.y[rows], whole.lam)
        points += first_hits("pegasos", part.m, pegasos_path(part, whole, 3 * whole.m), best)
        points += first_hits("LIBLINEAR", part.m, liblinear_path(part, whole), best)
        for point in points:
            if point.rows == part.m:
                print(
                    f"{point.method:10} {point.rows:7} rows: {point.accuracy:5.0%} after {point.visits:8} visits,"
                    f" {point.seconds:.4f} s",
                    flush=True,
                )
    with (options.out / "scaling.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["method", "rows", "accuracy", "visits", "seconds"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(point) for point in points)
    plot(points, options.out / "scaling.png")


def plot(points: list[Point], path: Path) -> None:
    """Draw seconds against rows, a line for each accuracy and method."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    for colour, accuracy in enumerate(ACCURACIES):
        for method, line in (("pegasos", "-"), ("LIBLINEAR", ":")):
            mine = sorted((p.rows, p.seconds) for p in points if (p.method, p.accuracy) == (method, accuracy))
            if mine:
                x, y = zip(*mine, strict=True)
                label = f"{method}, within {accuracy:.0%}"
                axes.plot(x, y, marker="o", markersize=3, color=f"C{colour}", linestyle=line, label=label)
    axes.set(xscale="log", yscale="log", xlabel="rows learnt from", ylabel="seconds")
    axes.set_title("text: time until P on all rows is near P*")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    main()
