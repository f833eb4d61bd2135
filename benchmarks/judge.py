"""The judge: runs adapters up their ladders, evaluates the weights they return, and writes down what happened.

The objective is computed here, in float64 and in blocks of rows, from the returned weights alone; no library is asked
what it reached. P* is the best value known: a long certified run (LIBLINEAR at a tiny tolerance where this package is
not installed), or any better value met on the way. A library's *time to a target* is the smallest median fit time over
its ladder whose weights satisfy (P(w) - P*) / P* <= target. The rungs that decide are measured again, all libraries in
turn, and only those times count for them: on a shared machine minutes differ more than libraries do.
"""

from __future__ import annotations

import csv
import datetime
import importlib.metadata
import json
import os
import platform
import statistics
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from benchmarks.adapters import ADAPTERS, OURS, Adapter, Effort
from benchmarks.problems import Problem

TARGETS = (1e-2, 1e-3)
EXTRA_TARGETS = {("cov1", OURS): (1e-6,)}

#: Whose versions are kept with the results.
PACKAGES = (
    *("pegasos", "numpy", "scipy", "scikit-learn", "threadpoolctl", "liblinear-official", "snapml"),
    *("python-crfsuite", "sklearn-crfsuite", "chaine"),
)

#: Seconds before each timed fit: threads of BLAS that judged the last one keep a core busy for a tenth of a second.
SETTLE = 0.25


def settle() -> None:
    """Wait, awake: a core that has slept needs some milliseconds to come up to speed."""
    end = time.perf_counter() + SETTLE
    while time.perf_counter() < end:
        pass


@dataclass(frozen=True)
class Fit:
    """One timed fit: the configuration, and what the judge found."""

    problem: str
    library: str
    version: str
    threads: int
    effort: str
    repeat: int
    seconds: float
    cpu_seconds: float
    primal: float
    rows: int
    columns: int
    lam: float
    cpu: str
    measured: str


def objective(problem: Problem, W: npt.NDArray[np.float64]) -> float:
    """Return sum over classes of lam/2 ||w||^2 + mean hinge, in float64, a block of rows at a time."""
    signs = problem.signs()
    if W.shape != (len(signs), problem.n):
        raise ValueError(f"weights have shape {W.shape}, expected {(len(signs), problem.n)}")
    total = 0.0
    for start in range(0, problem.m, 65_536):
        rows = slice(start, start + 65_536)
        scores = problem.X[rows].astype(np.float64) @ W.T
        for k, sign in enumerate(signs):
            total += float(np.maximum(0, 1 - sign[rows] * scores[:, k]).sum())
    return problem.lam / 2 * float(np.vdot(W, W)) + total / problem.m


def reference(problem: Problem, folder: Path) -> float:
    """Return the best objective known for this problem, computing it by a long run the first time."""
    path = folder / "reference.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    if problem.key not in known:
        known[problem.key] = _long_run(problem)
        _write_json(path, known)
    return float(known[problem.key]["primal"])


def improve_reference(problem: Problem, folder: Path, primal: float, how: str) -> None:
    """Remember a better objective than the one known."""
    path = folder / "reference.json"
    known = json.loads(path.read_text())
    if primal < known[problem.key]["primal"]:
        known[problem.key] |= {"primal": primal, "how": how}
        _write_json(path, known)


def _long_run(problem: Problem) -> dict[str, Any]:
    """Solve to a hundredth of the finest target."""
    tol = min(*TARGETS, *EXTRA_TARGETS.get((problem.name, OURS), ())) / 100
    name = OURS if ADAPTERS[OURS].available() else "liblinear"
    adapter = ADAPTERS[name]
    effort: Effort = {"tol": tol, "max_time": 900} if name == OURS else {"tol": tol, "max_iter": 20_000}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = adapter.fit(adapter.prepare(problem), problem, effort, threads=1)
    found = {"primal": objective(problem, adapter.weights(model, problem)), "how": f"{adapter.name} tol={tol:g}"}
    return found | ({"dual": float(model.certificate_.dual)} if name == OURS else {})


def named(effort: Effort) -> str:
    """Return an effort as the table has it."""
    return " ".join(f"{k}={v:g}" for k, v in effort.items())


def timed(problem: Problem, adapter: Adapter, data: Any, effort: Effort, threads: int, repeat: int) -> Fit:
    """Fit once by the clock and judge the weights that come back."""
    with warnings.catch_warnings(), threadpool_limits(threads):
        warnings.simplefilter("ignore")  # unconverged on purpose: that is what a ladder is
        settle()
        cpu, start = time.process_time(), time.perf_counter()
        model = adapter.fit(data, problem, effort, threads)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    return Fit(
        problem=problem.name,
        library=adapter.name,
        version=adapter.version(),
        threads=threads,
        effort=named(effort),
        repeat=repeat,
        seconds=round(seconds, 5),
        cpu_seconds=round(cpu, 5),
        primal=objective(problem, adapter.weights(model, problem)),
        rows=problem.m,
        columns=problem.n,
        lam=problem.lam,
        cpu=machine()["cpu"],
        measured=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )


def measure(
    problem: Problem, adapter: Adapter, threads: int, repeats: int, budget: float, target: float, best: float
) -> Iterable[Fit]:
    """Climb the adapter's ladder until ``target`` is reached or a fit takes longer than ``budget`` seconds.

    Fits longer than a quarter of the budget are not repeated.
    """
    data = adapter.prepare(problem)
    timed(problem, adapter, data, adapter.ladder(problem)[0], threads, 0)  # imports, pools and page faults: not timed
    for effort in adapter.ladder(problem):
        worst = -np.inf
        for repeat in range(repeats):
            fit = timed(problem, adapter, data, effort, threads, repeat)
            worst = max(worst, fit.primal)
            yield fit
            if fit.seconds > budget / 4:
                break
        if worst <= best * (1 + target) or fit.seconds > budget:
            return


def decisive(fits: Sequence[Fit], targets: Iterable[float], best: float) -> set[str]:
    """Return the efforts of the rungs that decide a library's times to the targets."""
    points = dict(zip(dict.fromkeys(f.effort for f in fits), ladder_points(fits, best), strict=True))
    found: set[str] = set()
    for target in targets:
        reached = [(seconds, effort) for effort, (seconds, gap) in points.items() if gap <= target]
        found |= {min(reached)[1]} if reached else set()
    return found


def in_turn(
    problem: Problem, contenders: Sequence[tuple[Adapter, Effort]], threads: int, rounds: int, budget: float
) -> Iterable[Fit]:
    """Fit the contenders in turn, round after round, so that a machine's busy minutes befall them all alike.

    As many rounds as the budget, in seconds, allows; two at least.
    """
    data = {adapter.name: adapter.prepare(problem) for adapter, _ in contenders}
    began = time.perf_counter()
    for repeat in range(rounds):
        if repeat >= 2 and (time.perf_counter() - began) * (repeat + 1) / repeat > budget:
            return
        for adapter, effort in contenders:
            yield timed(problem, adapter, data[adapter.name], effort, threads, repeat)


def ladder_points(fits: Sequence[Fit], best: float, clock: str = "seconds") -> list[tuple[float, float]]:
    """Return (median seconds, worst relative suboptimality of the repeats) for each rung, in order of effort."""
    rungs: dict[str, list[Fit]] = {}
    for fit in fits:
        rungs.setdefault(fit.effort, []).append(fit)
    return [
        (statistics.median(getattr(f, clock) for f in rung), max(f.primal for f in rung) / best - 1)
        for rung in rungs.values()
    ]


def time_to(points: Sequence[tuple[float, float]], target: float) -> float | None:
    """Return the smallest time whose suboptimality is within the target; None if there is none."""
    return min((seconds for seconds, gap in points if gap <= target), default=None)


def machine() -> dict[str, Any]:
    """Return what the numbers depend on: processor, memory, system, versions."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    model = next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor()
    )
    family = {
        key: next((line.split(":", 1)[1].strip() for line in lines if line.split(":")[0].strip() == key), "")
        for key in ("cpu family", "model", "cache size")
    }
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
    return {
        "cpu": model,
        **family,
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": versions,
    }


def read_fits(path: Path) -> list[Fit]:
    """Read the measurements kept so far."""
    if not path.exists():
        return []
    kinds = {f.name: {"int": int, "float": float}.get(str(f.type), str) for f in fields(Fit)}
    with path.open(newline="") as file:
        return [Fit(**{name: kinds[name](value) for name, value in row.items()}) for row in csv.DictReader(file)]


def write_fits(path: Path, fits: Sequence[Fit]) -> None:
    """Write the measurements, the newest in place of older ones of the same problem, library and thread count."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(Fit)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(fit) for fit in fits)


def _write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n")
