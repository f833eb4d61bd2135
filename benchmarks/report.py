"""What the measurements say: a table of seconds, a table of ratios, and the paper's Figure 4 for each problem."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.adapters import ADAPTERS, OURS
from benchmarks.judge import EXTRA_TARGETS, TARGETS, Fit, ladder_points, time_to


def _cell(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds:.3g}"


def times(
    fits: Sequence[Fit], best: dict[str, float], clock: str
) -> dict[tuple[str, int, float], dict[str, float | None]]:
    """Return, for each (problem, threads, target), each library's time to the target."""
    found: dict[tuple[str, int, float], dict[str, float | None]] = {}
    for problem, threads in dict.fromkeys((fit.problem, fit.threads) for fit in fits):
        mine = [fit for fit in fits if (fit.problem, fit.threads) == (problem, threads)]
        for library in dict.fromkeys(fit.library for fit in mine):
            points = ladder_points([fit for fit in mine if fit.library == library], best[problem], clock)
            extra = EXTRA_TARGETS.get((problem, OURS), ())
            for target in (*TARGETS, *extra):
                found.setdefault((problem, threads, target), {})[library] = time_to(points, target)
    return found


def markdown(fits: Sequence[Fit], best: dict[str, float], clock: str = "seconds") -> str:
    """Return the tables."""
    found = times(fits, best, clock)
    names = [adapter.name for adapter in ADAPTERS.values()]
    libraries = [name for name in names if any(name in row for row in found.values())]
    ours = ADAPTERS[OURS].name
    head = ["problem", "threads", "target"]
    lines = ["## Seconds to a relative suboptimality (–: not reached within the budget; empty: not measured)", ""]
    lines += _rows(
        [*head, *libraries],
        [
            [problem, str(threads), f"{target:.0e}", *(_cell(row[name]) if name in row else "" for name in libraries)]
            for (problem, threads, target), row in found.items()
        ],
    )
    if ours in libraries:
        peers = [name for name in libraries if not name.startswith("pegasos")]
        lines += [
            "",
            "## Ratios: our time / their time (below 1: we are faster; < : they never reached the target)",
            "",
        ]
        table = []
        for (problem, threads, target), row in found.items():
            mine = row.get(ours)
            # A single-threaded library meets our best with the same number of threads and with one thread alike.
            alone = found.get((problem, 1, target), {})
            cells = []
            for name in peers:
                theirs = row[name] if name in row else alone.get(name)
                if mine is None:
                    cells.append("–")
                elif theirs is None:
                    measured = name in row or name in alone
                    cells.append("<" if measured else "")
                else:
                    cells.append(f"{mine / theirs:.2f}")
            table.append([problem, str(threads), f"{target:.0e}", _cell(mine), *cells])
        lines += _rows([*head, f"{ours}, s", *peers], table)
    lines += ["", "## Best objective known", ""]
    lines += _rows(["problem", "P*"], [[name, f"{value:.9g}"] for name, value in best.items()])
    return "\n".join(lines) + "\n"


def _rows(head: list[str], rows: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows)]


def plot(fits: Sequence[Fit], best: dict[str, float], folder: Path, clock: str = "seconds") -> None:
    """Draw time against suboptimality, one picture a problem."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    colours = {adapter.name: f"C{i}" for i, adapter in enumerate(ADAPTERS.values())}
    for problem in dict.fromkeys(fit.problem for fit in fits):
        figure, axes = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
        mine = [fit for fit in fits if fit.problem == problem]
        for library, threads in dict.fromkeys((fit.library, fit.threads) for fit in mine):
            points = ladder_points(
                [f for f in mine if (f.library, f.threads) == (library, threads)], best[problem], clock
            )
            seconds, gaps = zip(*points, strict=True)
            axes.plot(
                seconds,
                [max(gap, 1e-9) for gap in gaps],
                marker="o",
                markersize=3,
                color=colours.get(library),
                linestyle="-" if threads == 1 else "--",
                label=library + ("" if threads == 1 else f", {threads} threads"),
            )
        axes.set(xscale="log", yscale="log", xlabel="seconds of a fit", ylabel="(P(w) − P*) / P*", title=problem)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
        figure.savefig(folder / f"{problem}.png", dpi=120)
        plt.close(figure)
