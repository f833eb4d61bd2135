"""Sparse kernel machines: test error against the number of points, like Figure 7 of "Learning optimally sparse SVMs".

    python -m benchmarks.sparse [--problems a9a ijcnn1 w7a cov1] [--methods random spsvm …] [--fractions 0.02 0.1 …]

All of ``pegasos.experiments``, ``pegasos.sparsify`` with its defaults ("sparsify") and as published ("basic" and
"aggressive") get the same training rows, kernel, C and reference machine, and are asked for parts of the reference's
number of support vectors. What a method leaves open (GRIDS) is chosen on training rows alone: by the errors on a
quarter of ``--validation-rows`` of them, summed over the sizes, after learning from the rest. Test rows are for the
result.

Kernel and C are those of the paper's Table 1 where they make sense here: ijcnn1 and w7a as published; Adult is a9a with
γ = 0.05 (published: a8a, 0.1); covtype's published γ = 1e-4 and C = 1e4 are for raw columns and half a million rows,
γ = 10 and C = 10 were chosen for scaled columns and 20,000 rows, on training rows.

Osuna & Girosi's method, the ramp loss and the paper's aggressive variant have no size to ask for: they stand where they
come out.
Writes sparse.csv, sparse_throughput.csv, sparse_cost.csv (seconds of compressing over seconds of training) and
sparse.png. ``--methods`` without a name measures the cost alone.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from pegasos import SVC, datasets, experiments
from pegasos.experiments import Task
from pegasos.sparse.compress import sparsify


@dataclass(frozen=True)
class Setting:
    """Kernel and C of a problem; ``rows`` of training and of test at most."""

    gamma: float
    C: float
    rows: int | None = None


PROBLEMS = {
    "a9a": Setting(0.05, 1.0),
    "ijcnn1": Setting(1.0, 10.0),
    "w7a": Setting(0.1, 10.0),
    "cov1": Setting(10.0, 10.0, rows=20_000),
}

#: What is chosen on training rows; "C" is in units of the problem's.
GRIDS: dict[str, list[dict[str, Any]]] = {
    "random": [{"loss": loss, "C": C} for loss in ("hinge", "squared_hinge") for C in (1.0, 4.0)],
    "spsvm": [{"C": C} for C in (0.25, 1.0, 4.0)],
    "cpsp": [{"C": C} for C in (1.0, 4.0)],
    "forgetron": [{"epochs": n} for n in (1, 5)],
    "rbp": [{"epochs": n} for n in (1, 5)],
    "perceptron": [{"epochs": n} for n in (1, 5)],
}

#: Methods that come out at sizes of their own.
OWN_SIZE = ("aggressive", "osuna-girosi", "ramp")


@dataclass(frozen=True)
class Point:
    """A machine of one method on one problem; ``ratio`` is its test error over the reference's."""

    problem: str
    method: str
    size: int
    fraction: float
    error: float
    ratio: float
    seconds: float
    parameters: str


@dataclass(frozen=True)
class Throughput:
    """Rows that a machine of so many points scores in a second."""

    problem: str
    size: int
    rows_per_second: float


@dataclass(frozen=True)
class Cost:
    """Seconds of training, and of ``sparsify`` with its defaults to one size; the best of so many runs of each."""

    problem: str
    threads: int
    fraction: float
    size: int
    training: float
    compressing: float
    ratio: float


def sparsified(task: Task, sizes: Sequence[int]) -> list[Any]:
    """``pegasos.sparsify`` with its defaults, for each size anew."""
    return [sparsify(task.reference, task.X, task.labels, max_support=n).at(n) for n in sizes]


def basic(task: Task, sizes: Sequence[int]) -> list[Any]:
    """The paper's algorithm, one run that is looked at on its way."""
    path = sparsify(
        task.reference, task.X, task.labels, max_support=max(sizes), variant="basic", refit=False, tol=1 / 16
    )
    return [path.at(n) for n in sizes if n <= path.n_support]


def aggressive(task: Task, sizes: Sequence[int], tols: Sequence[float] = (0.5, 0.25, 0.125)) -> list[Any]:
    """The variant of its section 6.1, a run to the end for each ε, while there are few enough points."""
    found: list[Any] = []
    for tol in tols:
        path = sparsify(task.reference, task.X, task.labels, variant="aggressive", refit=False, tol=tol)
        if path.n_support > max(sizes):
            break
        found.append(path.at())
    return found


#: Everything there is to compare.
METHODS: dict[str, Callable[..., list[Any]]] = {
    "sparsify": sparsified,
    "basic": basic,
    "aggressive": aggressive,
    **experiments.METHODS,
    "reduced+refit": partial(experiments.reduced_set, loss="squared_hinge"),
}


def rows_of(name: str, split: Any) -> tuple[Any, Any]:
    """Rows in float32 and labels ±1."""
    X, y = datasets.load(name, split)
    limit = PROBLEMS[name].rows
    return X[:limit].astype(np.float32), np.where(y[:limit] > 0, 1, -1)


def run(name: str, task: Task, sizes: list[int], options: dict[str, Any]) -> list[Any]:
    """The machines of a method; those of no given size may take half of the support vectors."""
    scaled = {key: value * task.C if key == "C" else value for key, value in options.items()}
    wanted = [*sizes, task.expansion.size // 2] if name in OWN_SIZE else sizes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return METHODS[name](task, wanted, **scaled)


def size_of(machine: Any) -> int:
    """How many points it has."""
    return int(machine.size if isinstance(machine, experiments.Expansion) else machine.support_vectors_.shape[0])


def error_of(machine: Any, X: Any, y: Any) -> float:
    """The share of rows that it gets wrong."""
    return float(np.mean(machine.predict(X) != y))


def sizes_for(task: Task, fractions: Sequence[float], limit: int) -> list[int]:
    """Parts of the reference's support vectors, up to ``limit``."""
    wanted = {max(1, round(part * task.expansion.size)) for part in fractions}
    return sorted(n for n in wanted if n <= limit) or [limit]


def chosen(name: str, trial: Task, held: tuple[Any, Any], sizes: list[int]) -> dict[str, Any]:
    """The entry of a method's grid with the least error on held-out training rows."""
    grid = GRIDS.get(name, [{}])
    if len(grid) == 1:
        return grid[0]
    totals = []
    for options in grid:
        errors = [error_of(machine, *held) for machine in run(name, trial, sizes, options)]
        totals.append(float(np.mean(errors)) if errors else np.inf)
    return grid[int(np.argmin(totals))]


def seconds_of(work: Callable[[], Any], repeats: int = 5) -> tuple[float, Any]:
    """The least time, and the last result."""
    best, result = np.inf, None
    for _ in range(repeats):
        begin = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - begin)
    return best, result


def throughput(name: str, machines: list[Any], X: Any) -> list[Throughput]:
    """Rows a second, the best of three."""
    found = []
    for machine in machines:
        best, _ = seconds_of(partial(machine.predict, X), 3)
        found.append(Throughput(name, size_of(machine), X.shape[0] / best))
        print(f"  {found[-1].size:6d} points: {found[-1].rows_per_second:12.0f} rows/s", flush=True)
    return found


def cost(name: str, threads: int) -> list[Cost]:
    """What compressing to these parts of the support vectors costs, beside training."""
    setting, (X, y) = PROBLEMS[name], rows_of(name, "train")
    machine = SVC(C=setting.C, gamma=setting.gamma, n_jobs=threads)
    training, _ = seconds_of(lambda: machine.fit(X, y))
    found = []
    for part in (0.02, 0.1):
        n = int(np.ceil(part * len(machine.support_)))
        compressing, _ = seconds_of(lambda n=n: sparsify(machine, X, y, max_support=n).at(n))
        found.append(Cost(name, threads, part, n, training, compressing, compressing / training))
        print(
            f"{name}, {threads} threads: training {training:.2f} s, compressing to {n} ({part:.0%}) {compressing:.2f} s"
            f", {compressing / training:.2f} of it",
            flush=True,
        )
    return found


def measure(name: str, arguments: Any) -> tuple[list[Point], list[Throughput]]:
    """Every method on one problem."""
    setting, given = PROBLEMS[name], {"C": PROBLEMS[name].C, "gamma": PROBLEMS[name].gamma, "n_jobs": arguments.threads}
    X, y = rows_of(name, "train")
    X_test, y_test = rows_of(name, "test")
    begin = time.perf_counter()
    task = Task(X, y, **given)  # type: ignore[arg-type]
    reference = task.expansion
    seconds = time.perf_counter() - begin
    error = error_of(reference, X_test, y_test)
    noise = np.sqrt(error * (1 - error) / len(y_test))
    print(
        f"{name}: γ {setting.gamma}, C {setting.C}, {X.shape[0]} rows, reference {reference.size} support vectors, "
        f"{seconds:.1f} s, test error {error:.5f} ± {noise:.5f}",
        flush=True,
    )
    points = [Point(name, "reference", reference.size, 1.0, error, 1.0, seconds, "")]
    order = np.random.default_rng(0).permutation(X.shape[0])[: arguments.validation_rows]
    cut = len(order) * 3 // 4
    trial = Task(X[order[:cut]], y[order[:cut]], **given)  # type: ignore[arg-type]
    held = X[order[cut:]], y[order[cut:]]
    sizes = sizes_for(task, arguments.fractions, arguments.max_points)
    trial_sizes = sizes_for(trial, arguments.fractions, arguments.max_points)
    speeds: list[Any] = []
    for label in arguments.methods:
        options = chosen(label, trial, held, trial_sizes)
        begin = time.perf_counter()
        machines = run(label, task, sizes, options)
        seconds = time.perf_counter() - begin
        if label == "random":
            speeds = machines
        for machine in filter(size_of, machines):
            found, size = error_of(machine, X_test, y_test), size_of(machine)
            points.append(
                Point(name, label, size, size / reference.size, found, found / error, seconds, str(options or ""))
            )
        line = ", ".join(f"{p.size}: {p.ratio:.3f}" for p in points if p.method == label)
        print(f"  {label:13} {seconds:7.1f} s  {line}  {options or ''}", flush=True)
    return points, throughput(name, [*speeds, reference], X_test[:20_000])


def table(points: list[Point], fractions: Sequence[float]) -> str:
    """Test error over the reference's, of each method's largest machine within these fractions."""
    problems = list(dict.fromkeys(p.problem for p in points))
    heads = [f"{problem} {part:.0%}" for problem in problems for part in fractions]
    lines = ["| method | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for method in dict.fromkeys(p.method for p in points if p.method != "reference"):
        cells = []
        for problem in problems:
            mine = [p for p in points if (p.problem, p.method) == (problem, method)]
            for part in fractions:
                # Half a point of rounding, and no machine of a much smaller size in its place.
                fitting = [p for p in mine if 0.8 * part < p.fraction <= part * 1.01]
                cells.append(f"{max(fitting, key=lambda p: p.size).ratio:.3f}" if fitting else "–")
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def plot(points: list[Point], path: Path) -> None:
    """Draw test error against the number of points, a picture for each problem."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    problems = list(dict.fromkeys(p.problem for p in points))
    labels = [m for m in METHODS if any(p.method == m for p in points)]
    figure, grid = plt.subplots(-(-len(problems) // 2), 2, figsize=(11, 4.2 * -(-len(problems) // 2)), squeeze=False)
    for axes, problem in zip(grid.flat, problems, strict=False):
        here = [p for p in points if p.problem == problem]
        reference = next(p for p in here if p.method == "reference")
        axes.axhline(reference.error, color="black", linestyle="--", linewidth=1)
        for number, label in enumerate(labels):
            mine = sorted((p.size, p.error) for p in here if p.method == label)
            if mine:
                x, y = zip(*mine, strict=True)
                line = "none" if label in OWN_SIZE else "-" if number < 10 else "--"  # ten colours
                marker = "o" if number < 10 else "s"
                axes.plot(x, y, marker=marker, markersize=4, linestyle=line, color=f"C{number}", label=label)
        axes.set(xscale="log", title=f"{problem} (reference: {reference.size})", xlabel="points", ylabel="test error")
        # Most methods on the picture, and the differences between the good ones to be seen.
        top = min(1.2 * float(np.median([p.error for p in here])), 3 * reference.error)
        axes.set_ylim(0.93 * reference.error, max(top, 1.1 * reference.error))
        axes.grid(alpha=0.3)
    for axes in list(grid.flat)[len(problems) :]:
        axes.set_visible(False)
    handles = {h.get_label(): h for axes in grid.flat for h in axes.lines if h.get_label() in labels}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=5, fontsize=9)
    figure.set_layout_engine("constrained")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def write(rows: Sequence[Any], path: Path) -> None:
    """A table of dataclasses as CSV."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(asdict(rows[0])), lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--fractions", nargs="+", type=float, default=[0.005, 0.01, 0.02, 0.05, 0.1])
    parser.add_argument("--max-points", type=int, default=600, help="sizes beyond this are left out")
    parser.add_argument("--validation-rows", type=int, default=8000, help="training rows that parameters are chosen on")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    costs = [c for name in arguments.problems for t in sorted({1, arguments.threads}) for c in cost(name, t)]
    write(costs, arguments.out / "sparse_cost.csv")
    points: list[Point] = []
    speeds: list[Throughput] = []
    for name in arguments.problems if arguments.methods else ():
        more, faster = measure(name, arguments)
        points, speeds = points + more, speeds + faster
        write(points, arguments.out / "sparse.csv")
        write(speeds, arguments.out / "sparse_throughput.csv")
    if not points:
        return
    print(table(points, (0.02, 0.1)))
    plot(points, arguments.out / "sparse.png")


if __name__ == "__main__":
    main()
