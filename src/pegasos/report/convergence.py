"""The chart of a report: how objective and certified gap fell, on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

from pegasos.report import axes
from pegasos.report.markup import Markup, join, tag
from pegasos.report.record import Point, Run
from pegasos.util.numbers import duration, number

Along = Literal["seconds", "epochs"]
AXES: tuple[Along, ...] = ("seconds", "epochs")

#: The chart is drawn at this size and scaled to the page; its letters stay readable at the width of a phone.
_WIDTH, _HEIGHT = 480, 330
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 12, 14, 48
_MOST_POINTS = 240
_COLOURS = 8


def references(runs: Sequence[Run]) -> list[float | None]:
    """The best lower bound that any run of the same problem found, for each run."""
    best: dict[tuple[object, ...], float] = {}
    for run in runs:
        for point in run.trace:
            if point.dual is not None:
                best[run.problem()] = max(best.get(run.problem(), point.dual), point.dual)
    return [best.get(run.problem()) for run in runs]


def chart(runs: Sequence[Run], along: Along) -> Markup | None:
    """Solid lines: objective above the best lower bound, relative; dashed: relative gap. None: nothing to show."""
    bounds = references(runs)
    solid = [_line(run, along, partial(_suboptimality, bound)) for run, bound in zip(runs, bounds, strict=True)]
    dashed = [_line(run, along, lambda point: point.relative_gap) for run in runs]
    drawn = [place for line in (*solid, *dashed) for place in line]
    if not drawn:
        return None
    y = axes.log_scale([value for _, value, _ in drawn], _HEIGHT - _BOTTOM, _TOP)
    x = axes.from_zero([at for at, _, _ in drawn], _LEFT, _WIDTH - _RIGHT)
    unit = {"seconds": "seconds", "epochs": "epochs (passes over the rows)"}[along]
    names = ", ".join(run.name for run in runs)
    title = f"Convergence against {'time' if along == 'seconds' else 'epochs'}: {names}"
    meaning = "Logarithmic vertical axis. Solid lines: objective above the best lower bound. Dashed: certified gap."
    return tag(
        "svg",
        tag("title", title),
        tag("desc", meaning),
        _frame(x, y, unit),
        _tolerance(runs, y),
        [_path(line, x, y, f"run c{i % _COLOURS} gap") for i, line in enumerate(dashed)],
        [_path(line, x, y, f"run c{i % _COLOURS}") for i, line in enumerate(solid)],
        [_dots(line, x, y, i) for i, line in enumerate(dashed)],
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_label=title,
        class_="chart",
    )


def legend(runs: Sequence[Run]) -> Markup:
    """Names beside their colours, and what solid and dashed mean."""

    def swatch(classes: str) -> Markup:
        line = tag("line", x1=1, y1=6, x2=27, y2=6, class_=classes)
        return tag("svg", line, viewBox="0 0 28 12", width=28, height=12, aria_hidden="true")

    items = [tag("li", swatch(f"run c{i % _COLOURS}"), tag("span", run.name)) for i, run in enumerate(runs)]
    meaning = [
        tag("li", swatch("run plain"), tag("span", "objective above the best lower bound")),
        tag("li", swatch("run plain gap"), tag("span", "certified gap (P − D)/P")),
    ]
    return tag("ul", items if len(runs) > 1 else None, meaning, class_="legend")


def thinned(points: Sequence[Point], most: int) -> list[Point]:
    """At most so many of the points, evenly picked, the first and the last among them."""
    if len(points) <= most:
        return list(points)
    return [points[round(i * (len(points) - 1) / (most - 1))] for i in range(most)]


_Place = tuple[float, float, Point]


def _line(run: Run, along: Along, value: Callable[[Point], float | None]) -> list[_Place]:
    made = ((getattr(point, along), value(point), point) for point in thinned(run.trace, _MOST_POINTS))
    return [(at, y, point) for at, y, point in made if y is not None and 1e-17 <= y <= 1e17 and 0 <= at <= 1e15]


def _suboptimality(bound: float | None, point: Point) -> float | None:
    if bound is None or point.primal is None or point.primal <= 0:
        return None
    return (point.primal - bound) / point.primal


def _frame(x: axes.Scale, y: axes.Scale, unit: str) -> Markup:
    across, up, floor = x.ticks(5), y.ticks(6), _HEIGHT - _BOTTOM
    return join(
        tag("g", [tag("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=_p(y(v)), y2=_p(y(v))) for v, _ in up], class_="grid"),
        tag("g", [tag("text", s, x=_LEFT - 8, y=_p(y(v) + 4.5), text_anchor="end") for v, s in up], class_="tick"),
        tag("g", [tag("text", s, x=_p(x(v)), y=floor + 20, text_anchor="middle") for v, s in across], class_="tick"),
        tag("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=floor, y2=floor, class_="axis"),
        tag("text", unit, x=(_LEFT + _WIDTH - _RIGHT) / 2, y=_HEIGHT - 6, text_anchor="middle", class_="label"),
    )


def _tolerance(runs: Sequence[Run], y: axes.Scale) -> Markup | None:
    """A line at ``tol`` where all runs agree on it."""
    tols = {run.model.parameters.get("tol") for run in runs}
    tol = tols.pop() if len(tols) == 1 else None
    if not isinstance(tol, int | float) or isinstance(tol, bool) or not y.low < tol < y.high:
        return None
    at = _p(y(tol))
    return tag(
        "g",
        tag("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=at, y2=at),
        tag("text", f"tol {number(tol)}", x=_WIDTH - _RIGHT, y=_p(y(tol) - 5), text_anchor="end"),
        class_="tol",
    )


def _path(line: list[_Place], x: axes.Scale, y: axes.Scale, classes: str) -> Markup | None:
    if not line:
        return None
    steps = " ".join(f"{'L' if i else 'M'}{_p(x(at))} {_p(y(value))}" for i, (at, value, _) in enumerate(line))
    return tag("path", d=steps, class_=classes)


def _dots(line: list[_Place], x: axes.Scale, y: axes.Scale, run: int) -> Markup | None:
    """A dot at every checkpoint that says its numbers when pointed at."""
    if len(line) > 60:
        return None

    def says(p: Point) -> str:
        bounds = f"gap {number(p.relative_gap, 3)}, objective {number(p.primal, 6)}"
        return f"{p.epochs:.1f} epochs, {duration(p.seconds)}: {bounds}"

    dots = [tag("circle", tag("title", says(p)), cx=_p(x(at)), cy=_p(y(v)), r=3.2) for at, v, p in line]
    return tag("g", dots, class_=f"dots c{run % _COLOURS}")


def _p(value: float) -> float:
    return round(value, 1)
