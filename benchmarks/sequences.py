"""Chain models: seconds to fit from Python lists, seconds to tag, F1 and letter error, memory.

    python -m benchmarks.sequences [--problems conll ocr-9 ocr-1] [--libraries …] [--seeds 5] [--no-slow] [--curve]

Each fit runs in a process of its own, and libraries take turns. The attributes are there as lists of strings before the
clock starts; ``fit`` counts everything from them to a model that can tag, tagging everything from lists to lists. The
judge computes F1 by conlleval's rules and the share of wrong labels, for everybody alike. *Extra* is the highest
resident memory of a fit less the resident memory just before it. On a machine that others use, processor seconds mean
more than seconds, and ratios of one run more than either.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from benchmarks import judge
from benchmarks.memory import forget_peak, resident
from benchmarks.sequence_adapters import ADAPTERS, OURS, Setting
from benchmarks.sequence_problems import PROBLEMS, SequenceProblem, conll

#: What a child measures: arguments of :func:`measure`.
Job = dict[str, Any]


@dataclass(frozen=True)
class Fit:
    """One fit and one tagging of the test sequences: the configuration, and what the judge found."""

    problem: str
    library: str
    version: str
    setting: str
    seed: int
    seconds: float
    cpu_seconds: float
    load_seconds: float
    load_cpu_seconds: float
    tag_seconds: float
    tag_cpu_seconds: float
    f1: float
    error: float
    gap: float
    extra_mb: float
    sequences: int
    tokens: int
    uses: int
    labels: int
    cpu: str
    measured: str


def problem_of(name: str, seed: int, copies: int, labels: int) -> SequenceProblem:
    """A problem by name; other copies and labels than usual are for the growth of CoNLL-2000."""
    return PROBLEMS[name](seed) if (copies, labels) == (1, 22) else conll(seed, copies, labels)


def measure(
    problem: str, library: str, options: dict[str, Any], seed: int = 0, copies: int = 1, labels: int = 22
) -> dict[str, Any]:
    """Fit and tag once in this process."""
    data = problem_of(problem, seed, copies, labels)
    adapter, setting = ADAPTERS[library], Setting(options)
    X, X_test = adapter.prepare(data.train.X), adapter.prepare(data.test.X)
    with tempfile.TemporaryDirectory() as folder:
        few = slice(0, 20)  # imports are not the fit's
        adapter.fit(X[few], data.train.y[few], adapter.passes(2), data.C, seed, Path(folder))
        forget_peak()
        before = resident()
        cpu, start = time.process_time(), time.perf_counter()
        fitted = adapter.fit(X, data.train.y, setting, data.C, seed, Path(folder))
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        extra = resident("VmHWM") - before
        tagging = []
        for _ in range(3):
            cpu_start, start = time.process_time(), time.perf_counter()
            found = fitted.tag(X_test)
            tagging.append((time.perf_counter() - start, time.process_time() - cpu_start))
    return asdict(
        Fit(
            problem=problem,
            library=adapter.name,
            version=adapter.version(),
            setting=setting.name,
            seed=seed,
            seconds=round(seconds, 4),
            cpu_seconds=round(cpu, 4),
            load_seconds=round(fitted.load_seconds, 4),
            load_cpu_seconds=round(fitted.load_cpu_seconds, 4),
            tag_seconds=round(min(tagging)[0], 4),
            tag_cpu_seconds=round(min(cpu for _, cpu in tagging), 4),
            f1=round(data.f1(found), 5),
            error=round(data.error(found), 5),
            gap=fitted.gap,
            extra_mb=round(extra / 2**20, 1),
            sequences=len(data.train.X),
            tokens=sum(map(len, data.train.X)),
            uses=sum(len(token) for sequence in data.train.X for token in sequence),
            labels=len({tag for tags in data.train.y for tag in tags}),
            cpu=judge.machine()["cpu"],
            measured=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        )
    )


def in_child(job: Job) -> Fit:
    """Measure in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.sequences", "--child", json.dumps(job)]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    if child.returncode:
        raise RuntimeError(f"{job}: {child.stderr.strip() or f'exit {child.returncode}'}")
    return Fit(**json.loads(child.stdout.splitlines()[-1]))


def jobs(
    problems: Iterable[str], libraries: Sequence[str], algorithms: Sequence[str], seeds: int, slow: bool, curve: bool
) -> Iterable[Job]:
    """What is to be measured, libraries in turn within a seed."""
    for problem in problems:
        for seed in range(10 if problem == "ocr-1" else seeds):  # ocr-1 has a fold for each seed
            for library in libraries:
                for setting in ADAPTERS[library].settings(problem):
                    wanted = slow or not setting.slow
                    wanted &= seed == 0 or not (setting.slow or setting.curve)
                    wanted &= curve or not setting.curve
                    wanted &= not algorithms or setting.options.get("algorithm", "") in algorithms
                    if wanted:
                        yield {"problem": problem, "library": library, "options": setting.options, "seed": seed}


def show(fit: Fit) -> None:
    """Print a line about a fit."""
    print(
        f"  {fit.problem:6} {fit.library:17} {fit.setting:34} seed {fit.seed}  fit {fit.seconds:8.2f} s (cpu "
        f"{fit.cpu_seconds:8.2f}, loading {fit.load_cpu_seconds:6.2f})  tag {fit.tag_seconds:6.3f} s  F1 {fit.f1:.4f}  "
        f"error {fit.error:.4f}  gap {fit.gap:.1e}  extra {fit.extra_mb:.0f} MB",
        flush=True,
    )


def read_fits(path: Path) -> list[Fit]:
    """Read the measurements kept so far."""
    if not path.exists():
        return []
    kinds = {f.name: {"int": int, "float": float}.get(str(f.type), str) for f in fields(Fit)}
    with path.open(newline="", encoding="utf-8") as file:
        return [Fit(**{name: kinds[name](value) for name, value in row.items()}) for row in csv.DictReader(file)]


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows as CSV."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def key(fit: Fit) -> tuple[str, str, str]:
    """What distinguishes the lines of a table."""
    return fit.problem, fit.library, fit.setting


def markdown(fits: Sequence[Fit], clock: str) -> str:
    """A line for each problem, library and setting: medians over seeds, and the worst and best score.

    Ratios are our time by theirs, for the first of our settings and for a certified gap of 1e-2.
    """
    groups: dict[tuple[str, str, str], list[Fit]] = {}
    for fit in fits:
        groups.setdefault(key(fit), []).append(fit)

    def median(of: Sequence[Fit], what: str) -> float:
        return statistics.median(getattr(fit, what) for fit in of)

    def spread(of: Sequence[Fit], what: str, form: str) -> str:
        values = [getattr(fit, what) for fit in of]
        return " to ".join(dict.fromkeys(format(value, form) for value in (min(values), max(values))))

    head = ["problem", "library", "setting", "seeds", "fit s", "cpu s", "loading cpu s", "tag s", "F1", "error %"]
    head += ["gap", "extra MB", "passes, ours / this", "tol=0.01, ours / this", "tagging, ours / this"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    tag_clock = f"tag_{clock}"
    order = sorted(groups, key=lambda k: (k[0], method(groups[k][0]), median(groups[k], clock)))
    for problem, library, setting in order:
        mine = groups[problem, library, setting]
        cells = [problem, library, setting, str(len(mine)), f"{median(mine, 'seconds'):.3g}"]
        cells += [f"{median(mine, 'cpu_seconds'):.3g}", f"{median(mine, 'load_cpu_seconds'):.3g}"]
        cells += [f"{median(mine, 'tag_seconds'):.3g}", spread(mine, "f1", ".4f")]
        cells += [spread([_percent(fit) for fit in mine], "error", ".2f"), spread(mine, "gap", ".1e")]
        cells += [f"{median(mine, 'extra_mb'):.0f}"]
        ours = ADAPTERS[OURS].settings(problem)[:2]
        rivals = [groups.get((problem, ADAPTERS[OURS].name, setting.name)) for setting in ours]
        cells += ["–" if not rival else f"{median(rival, clock) / median(mine, clock):.3f}" for rival in rivals]
        first = rivals[0]
        cells += ["–" if not first else f"{median(first, tag_clock) / median(mine, tag_clock):.3f}"]
        lines.append("| " + " | ".join(cell.replace("nan", "") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _percent(fit: Fit) -> Fit:
    return Fit(**(asdict(fit) | {"error": 100 * fit.error}))


def method(fit: Fit) -> str:
    """Library and algorithm; fits of one method differ by their effort."""
    options = dict(option.split("=") for option in fit.setting.split())
    return f"{fit.library} {options.get('algorithm', options.get('solver', ''))}".strip()


def plot(fits: Sequence[Fit], path: Path, clock: str) -> None:
    """Draw F1 on CoNLL-2000 against time, and below it the certified gap, which one library has."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(2, figsize=(6.4, 7), layout="constrained", sharex=True)
    lines: dict[str, list[Fit]] = {}
    for fit in fits:
        if fit.problem == "conll" and fit.seed == 0:
            lines.setdefault(method(fit), []).append(fit)
    for axes, what in zip(panels, ("f1", "gap"), strict=True):
        for name, mine in lines.items():
            points = sorted((getattr(fit, clock), getattr(fit, what)) for fit in mine)
            axes.plot(*zip(*points, strict=True), marker="o", markersize=3, label=name)
        axes.set(xscale="log")
        axes.grid(alpha=0.3, which="both")
    panels[0].set(ylabel="F1 of chunks", ylim=(0.91, 0.94), title="CoNLL-2000, fitted from Python lists")
    panels[0].legend(fontsize=8)
    panels[1].set(xlabel="seconds", ylabel="certified relative gap")
    if any(fit.gap > 0 for fit in fits):
        panels[1].set(yscale="log")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    """Measure, print, write sequences.csv, .md and .png and sequences_machine.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--libraries", nargs="+", default=list(ADAPTERS), choices=list(ADAPTERS))
    parser.add_argument("--algorithms", nargs="+", default=[], help="only these of CRFsuite's: pa, ap, lbfgs")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--no-slow", action="store_true", help="leave out L-BFGS, which takes minutes")
    parser.add_argument("--curve", action="store_true", help="fewer and more iterations as well, on the first seed")
    parser.add_argument("--clock", default="seconds", choices=("seconds", "cpu_seconds"), help="which one ratios use")
    parser.add_argument("--report-only", action="store_true")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure(**json.loads(options.child))))
        return
    table = options.out / "sequences.csv"
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.report_only:
        (options.out / "sequences_machine.json").write_text(json.dumps(judge.machine(), indent=2) + "\n")
        libraries = [name for name in options.libraries if ADAPTERS[name].available()]
        slow = not options.no_slow
        for job in jobs(options.problems, libraries, options.algorithms, options.seeds, slow, options.curve):
            fit = in_child(job)
            show(fit)
            old = [other for other in read_fits(table) if (key(other), other.seed) != (key(fit), fit.seed)]
            write_rows(table, [asdict(each) for each in sorted([*old, fit], key=lambda fit: (key(fit), fit.seed))])
    fits = read_fits(table)
    text = markdown(fits, options.clock)
    (options.out / "sequences.md").write_text(text, encoding="utf-8")
    print(text)
    plot(fits, options.out / "sequences.png", options.clock)


if __name__ == "__main__":
    main()
