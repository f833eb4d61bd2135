"""Measure: ``python -m benchmarks.run --problems cov1 rcv1 --threads 1 --repeats 3 --out benchmarks/results``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks import judge, report
from benchmarks.adapters import ADAPTERS
from benchmarks.problems import PROBLEMS


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--libraries", nargs="+", default=list(ADAPTERS), choices=list(ADAPTERS))
    parser.add_argument("--threads", nargs="+", type=int, default=[1])
    parser.add_argument("--repeats", type=int, default=1, help="fits of each rung while climbing")
    parser.add_argument("--rounds", type=int, default=9, help="fits of the rungs that decide, libraries in turn")
    parser.add_argument("--budget", type=float, default=60, help="stop climbing after a fit of this many seconds")
    parser.add_argument(
        "--clock", choices=["seconds", "cpu_seconds"], default="seconds", help="cpu_seconds on a busy machine"
    )
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--report-only", action="store_true", help="write tables and pictures of what is there")
    options = parser.parse_args(arguments)

    options.out.mkdir(parents=True, exist_ok=True)
    table = options.out / "fits.csv"
    if not options.report_only:
        (options.out / "machine.json").write_text(json.dumps(judge.machine(), indent=2) + "\n")
        for name in options.problems:
            measure_problem(name, options, table)
    write_report(options.out, table, options.clock)


def measure_problem(name: str, options: argparse.Namespace, table: Path) -> None:
    """Measure every library on one problem: each climbs its ladder, then all repeat the rungs that decide, in turn."""
    problem = PROBLEMS[name]()
    best = judge.reference(problem, options.out)
    print(f"{name}: {problem.m} x {problem.n}, lam {problem.lam:g}, P* {best:.9g}", flush=True)
    for threads in options.threads:
        climbed: dict[str, list[judge.Fit]] = {}
        contenders = []
        for key in options.libraries:
            adapter = ADAPTERS[key]
            if not adapter.available() or not adapter.supports(problem, threads):
                continue
            targets = (*judge.TARGETS, *judge.EXTRA_TARGETS.get((name, key), ()))
            fits = climbed[adapter.name] = []
            for fit in judge.measure(problem, adapter, threads, options.repeats, options.budget, min(targets), best):
                fits.append(fit)
                show(fit, best)
                judge.improve_reference(problem, options.out, fit.primal, f"{fit.library} {fit.effort}")
            rungs = judge.decisive(fits, targets, best)
            contenders += [(adapter, effort) for effort in adapter.ladder(problem) if judge.named(effort) in rungs]
        again = []
        for fit in judge.in_turn(problem, contenders, threads, options.rounds, options.budget):
            again.append(fit)
            show(fit, best)
        repeated = {(fit.library, fit.effort) for fit in again}
        kept = [f for fits in climbed.values() for f in fits if (f.library, f.effort) not in repeated]
        old = [
            f for f in judge.read_fits(table) if (f.problem, f.threads) != (name, threads) or f.library not in climbed
        ]
        judge.write_fits(table, old + kept + again)


def show(fit: judge.Fit, best: float) -> None:
    """Print a line about a fit."""
    print(
        f"  {fit.library:28} {fit.threads} {fit.effort:14} {fit.seconds:9.4f} s  cpu {fit.cpu_seconds:9.4f} s"
        f"  sub {fit.primal / best - 1:.2e}",
        flush=True,
    )


def write_report(folder: Path, table: Path, clock: str) -> None:
    """Write ``summary.md`` and the pictures from the measurements in ``folder``."""
    fits = judge.read_fits(table)
    known = json.loads((folder / "reference.json").read_text())
    best = {key.split("-", 1)[0]: float(entry["primal"]) for key, entry in known.items()}
    order = list(PROBLEMS)
    fits.sort(key=lambda fit: (order.index(fit.problem), fit.threads))
    text = report.markdown(fits, best, clock)
    (folder / "summary.md").write_text(text)
    report.plot(fits, best, folder, clock)
    print(text)


if __name__ == "__main__":
    main()
