"""The page, section by section. Nothing is computed here that the records do not say."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from pegasos.report import convergence
from pegasos.report.markup import Child, Markup, join, tag
from pegasos.report.record import Confusion, Entities, EntityCount, Estimate, Evaluation, Run, TopFeatures, Weight
from pegasos.util.numbers import duration, number, percent, whole

_MOST_CLASSES = 24  # a confusion table of more would not be read
_MOST_OPEN = 2  # classes whose features are shown without asking
_MOST_CHECKPOINTS, _MOST_MISTAKES = 40, 20  # in their tables
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

_METRICS = {
    "accuracy": ("accuracy", percent),
    "balanced_accuracy": ("balanced accuracy", percent),
    "f1_macro": ("macro F1", percent),
    "precision": ("precision", percent),
    "recall": ("recall", percent),
    "f1": ("F1", percent),
    "r2": ("R²", number),
    "mean_absolute_error": ("mean absolute error", number),
    "root_mean_squared_error": ("root mean squared error", number),
}


def page(runs: Sequence[Run], title: str | None = None) -> str:
    """The report on one or several runs, as one HTML document that needs no other file."""
    heading = title or (runs[0].name if len(runs) == 1 else f"{len(runs)} training runs")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{heading} · pegasos report"),
        tag("style", Markup(Path(__file__).with_name("style.css").read_text(encoding="utf-8"))),
    )
    body = tag(
        "body",
        tag("header", tag("p", "pegasos report", class_="kicker"), tag("h1", heading), _lead(runs)),
        tag(
            "main",
            _comparison(runs) if len(runs) > 1 else _certificate(runs[0], 2),
            _convergence(runs),
            [_run(run, i) for i, run in enumerate(runs)] if len(runs) > 1 else _details(runs[0], 2),
        ),
        tag("footer", tag("p", _footer(runs))),
    )
    return "<!DOCTYPE html>\n" + tag("html", head, body, lang="en") + "\n"


# --- the whole -------------------------------------------------------------------------------------------------------


def _lead(runs: Sequence[Run]) -> Markup:
    if len(runs) > 1:
        good = sum(run.certificate.converged for run in runs)
        return tag("p", f"{good} of {len(runs)} runs converged.", class_="lead")
    return tag("p", _what(runs[0]), class_="lead")


def _what(run: Run) -> str:
    data = run.data
    kinds = "regression" if data.classes is None else f"{len(data.classes)} classes"
    how = f"{run.model.parameters.get('loss')} loss" if run.kernel is None else f"{run.kernel.name} kernel"
    size = f"{whole(data.rows)} rows × {whole(data.columns)} columns ({kinds})"
    if data.sequences is not None:
        size = (
            f"{_tokens(data.rows, data.sequences)}, {whole(data.columns)} attributes and {len(data.classes or ())} tags"
        )
    return f"{run.model.type} with {how} on {size}, λ = {number(run.model.lam)}."


def _tokens(tokens: int, sequences: int) -> str:
    return f"{whole(tokens)} tokens in {whole(sequences)} sequences"


def _footer(runs: Sequence[Run]) -> str:
    versions = sorted({f"{name} {version}" for run in runs for name, version in run.versions.items()})
    return " · ".join(versions)


def _comparison(runs: Sequence[Run]) -> Markup:
    shown = [name for name in ("accuracy", "f1", "r2") if any(run.test and name in run.test.metrics for run in runs)]
    heads = ["run", "solver", "λ", "objective", "relative gap", "epochs", "time", "state"]
    heads += [f"test {_METRICS[name][0]}" for name in shown]
    rows = []
    for i, run in enumerate(runs):
        c = run.certificate
        name = join(_swatch(i), tag("a", run.name, href=f"#run{i}"))
        objective = number(c.primal, 6) if c.estimate is None else f"≈ {number(c.estimate.value, 3)}"
        bounds = number(run.model.lam), objective, number(c.relative_gap, 3)
        numbers = _numbers(*bounds, f"{c.epochs:.1f}", duration(c.seconds))
        metrics = _numbers(*(_metric(run.test, metric) for metric in shown))
        solver = tag("td", str(run.model.parameters.get("solver")))
        rows.append(_row(name, solver, numbers, tag("td", _state(run)), metrics))
    table = _table("Runs side by side", heads, rows, left=("run", "solver", "state"), kind="runs")
    return _section("Runs", table)


def _swatch(i: int) -> Markup:
    return tag("span", "", class_=f"dot c{i % 8}", aria_hidden="true")


def _state(run: Run) -> Markup:
    c = run.certificate
    if c.estimate is not None:
        return tag("span", "not certified", class_="bad")
    good = c.converged or c.goal_reached
    state = "converged" if c.converged else "the solver's own goal was reached" if good else "not converged"
    return tag("span", state, class_="good" if good else "bad")


def _metric(evaluation: Evaluation | None, name: str) -> str:
    if evaluation is None or name not in evaluation.metrics:
        return "–"
    return _METRICS[name][1](evaluation.metrics[name])


def _convergence(runs: Sequence[Run]) -> Markup | None:
    charts = [tag("figure", chart) for along in convergence.AXES if (chart := convergence.chart(runs, along))]
    if not charts:
        return None
    several = len({run.problem() for run in runs}) > 1
    note = "The runs are of different problems; each is measured against the best lower bound of its own."
    traces = [tag("details", tag("summary", f"Checkpoints of {run.name}"), _trace(run)) for run in runs]
    return _section(
        "Convergence",
        tag("p", "How far above the optimum the objective can still be: no weights go below the lower bound."),
        convergence.legend(runs),
        tag("div", charts, class_="charts"),
        tag("p", note, class_="note") if several else None,
        traces,
    )


def _trace(run: Run) -> Markup:
    rows = []
    for p in convergence.thinned(run.trace, _MOST_CHECKPOINTS):
        bounds = number(p.primal, 7), _lower_bound(p.dual), number(p.relative_gap, 3)
        rows.append(tag("tr", _numbers(f"{p.epochs:.2f}", duration(p.seconds), *bounds)))
    heads = ["epochs", "time", "objective P", "lower bound D", "relative gap"]
    return _table(f"Checkpoints of {run.name}", heads, rows)


# --- one run ---------------------------------------------------------------------------------------------------------


def _run(run: Run, i: int) -> Markup:
    heading = [tag("h2", _swatch(i), run.name), tag("p", _what(run), class_="lead")]
    folded = tag("details", tag("summary", "Metrics, features and configuration"), _details(run, 3))
    return tag("article", heading, _certificate(run, 3), folded, id=f"run{i}", class_="run")


def _details(run: Run, level: int) -> Markup:
    return join(
        _evaluation("On the test rows", run.test, level, brief=False),
        _cross_validation(run, level),
        _evaluation("On the training rows", run.training, level, brief=run.test is not None),
        _features(run, level),
        _configuration(run, level),
    )


def _certificate(run: Run, level: int) -> Markup:
    c = run.certificate
    if c.estimate is not None:
        return _estimate(run, c.estimate, level)
    says = (
        "No weights have a lower objective than the lower bound, whatever the solver did. "
        "Both numbers were recomputed in double precision from the rows."
    )
    facts = [
        ("objective P", number(c.primal, 7)),
        ("lower bound D", _lower_bound(c.dual)),
        ("relative gap", number(c.relative_gap, 3)),
        *([] if c.restricted_gap is None else [("gap of the restricted problem", number(c.restricted_gap, 3))]),
        ("epochs", f"{c.epochs:.1f}"),
        ("training time", duration(c.seconds)),
    ]
    if run.kernel is not None:
        facts.append(("support vectors", whole(run.kernel.support_vectors)))
        facts.append(("kernel evaluations", whole(run.kernel.evaluations)))
    outcome = tag("p", _state(run), f" – {c.reason}")
    return _section("Certificate", outcome, _cards(facts), tag("p", says, class_="note"), level=level)


def _estimate(run: Run, found: Estimate, level: int) -> Markup:
    """What stands in place of a certificate where not all rows were looked at."""
    c = run.certificate
    says = (
        "An estimate, and no bound: a mean over rows drawn at random, with Student's interval. How far the weights are "
        "from the optimum is not known."
    )
    facts = [
        ("objective P, estimated", number(found.value, 7)),
        ("95 % confidence interval", f"{number(found.low, 5)} … {number(found.high, 5)}"),
        ("rows it is a mean over", whole(found.rows)),
        ("epochs", f"{c.epochs:.3g}"),
        ("training time", duration(c.seconds)),
    ]
    outcome = tag("p", _state(run), f" – {c.reason}")
    return _section("Estimate", outcome, _cards(facts), tag("p", says, class_="note"), level=level)


def _evaluation(heading: str, evaluation: Evaluation | None, level: int, *, brief: bool) -> Markup | None:
    """Metrics, classes and confusion; ``brief`` hides all but the metrics until asked for."""
    if evaluation is None:
        return None
    known = [(_METRICS[name][0], _metric(evaluation, name)) for name in _METRICS if name in evaluation.metrics]
    others = [(name, number(value)) for name, value in evaluation.metrics.items() if name not in _METRICS]
    size = f"{whole(evaluation.rows)} rows"
    if evaluation.sequences is not None:
        size = _tokens(evaluation.rows, evaluation.sequences)
    about = tag("p", f"{size} of ", tag("code", evaluation.source))
    confusion = evaluation.confusion
    details: Child = None
    if evaluation.entities is not None and evaluation.entities.types:
        details = _entities(evaluation.entities)
        if brief:
            details = tag("details", tag("summary", "Types of entities"), details)
    if confusion is not None and confusion.labels:
        details = [_per_class(confusion), _confusion(confusion)]
        if brief:
            details = tag("details", tag("summary", "Classes and confusion"), details)
    return _section(heading, about, _cards(known + others), details, level=level)


def _entities(found: Entities) -> Markup:
    rows = [
        _row(each.type or "–", _numbers(whole(each.support), whole(each.found), *_shares(each)))
        for each in (*found.types, EntityCount("all", found.support, found.found, found.correct))
    ]
    heads = ["type", "entities", "found", "precision", "recall", "F1"]
    return _table("Entities", heads, rows, left=("type",))


def _shares(counts: EntityCount) -> Iterator[Markup]:
    """Precision, recall and F1."""
    right, true, predicted = counts.correct, counts.support, counts.found
    for part, total in ((right, predicted), (right, true), (2 * right, true + predicted)):
        yield _bar(part / total if total else 0.0)


def _per_class(confusion: Confusion) -> Markup:
    rows = []
    for label, right, true, predicted in confusion.of_each_class():
        shares = _shares(EntityCount(label, true, predicted, right))
        rows.append(_row(label, _numbers(whole(true), *shares)))
    table = _table("Classes", ["class", "rows", "precision", "recall", "F1"], rows, left=("class",))
    if len(rows) <= _MOST_CLASSES:
        return table
    return tag("details", tag("summary", f"All {len(rows)} classes"), table)


def _bar(share: float) -> Markup:
    return tag("span", percent(share), class_="bar", style=f"--share:{100 * min(max(share, 0.0), 1.0):.1f}%")


def _confusion(confusion: Confusion) -> Markup:
    if len(confusion.labels) > _MOST_CLASSES:
        return _worst(confusion)
    heads = ["true \\ predicted", *confusion.labels]
    rows = []
    for i, label in enumerate(confusion.labels):
        total = max(sum(confusion.counts[i]), 1)
        cells = [
            tag(
                "td",
                whole(count),
                class_="n hit" if i == j else "n miss",
                style=f"--share:{100 * count / total:.1f}%",
                title=f"{label} predicted as {confusion.labels[j]}: {percent(count / total)}",
            )
            for j, count in enumerate(confusion.counts[i])
        ]
        rows.append(_row(label, cells))
    return _table("Confusion", heads, rows, kind="confusion")


def _worst(confusion: Confusion) -> Markup:
    """The commonest mistakes, where the whole table would be too large to read."""
    labels = confusion.labels
    mistakes = [
        (count, i, j) for i, row in enumerate(confusion.counts) for j, count in enumerate(row) if i != j and count
    ]
    mistakes.sort(key=lambda mistake: (-mistake[0], mistake[1:]))
    rows = [
        _row(labels[i], tag("td", labels[j]), _numbers(whole(count), _bar(count / sum(confusion.counts[i]))))
        for count, i, j in mistakes[:_MOST_MISTAKES]
    ]
    heads = ["true class", "predicted", "rows", "of the class"]
    return _table(f"Commonest confusions of {len(labels)} classes", heads, rows, left=("true class", "predicted"))


def _cross_validation(run: Run, level: int) -> Markup | None:
    found = run.cross_validation
    if found is None or not found.scores:
        return None
    name, shown = _METRICS.get(found.metric, (found.metric, number))
    facts = [(f"mean {name}", shown(found.mean)), ("standard deviation", shown(found.spread))]
    facts.append(("folds", str(len(found.scores))))
    each = tag("p", "Folds: " + ", ".join(map(shown, found.scores)), class_="note")
    return _section("Cross-validation", _cards(facts), each, level=level)


def _features(run: Run, level: int) -> Markup | None:
    features = run.features
    if features is None or not features.top:
        return None
    about = f"{whole(features.nonzero)} of {whole(features.total)} weights are not zero. The largest:"
    blocks = []
    for k, top in enumerate(features.top):
        table = _weights(top)
        if len(features.top) == 1:
            blocks.append(table)
        else:
            blocks.append(tag("details", tag("summary", f"Class {top.label}"), table, open=k < _MOST_OPEN))
    if features.transitions:
        between = _weights(TopFeatures("", features.transitions, ()), "Largest weights of transitions", "transition")
        blocks.insert(0, between)
    return _section("Top features", tag("p", about), tag("div", blocks, class_="features"), level=level)


def _weights(top: TopFeatures, caption: str = "Largest weights", what: str = "feature") -> Markup:
    largest = max((abs(w.weight) for w in (*top.positive, *top.negative)), default=0.0) or 1.0

    def row(w: Weight) -> Markup:
        side = "for" if w.weight >= 0 else "against"
        style = f"--share:{50 * abs(w.weight) / largest:.1f}%"
        bar = tag("span", "", class_=f"weight {side}", style=style, aria_hidden="true")
        return _row(w.feature, tag("td", bar), _numbers(number(w.weight, 3)))

    rows = [row(w) for w in (*top.positive, *reversed(top.negative))]
    caption = f"Weights of class {top.label}" if top.label else caption
    return _table(caption, [what, "against · for", "weight"], rows, left=(what,), kind="weights")


def _configuration(run: Run, level: int) -> Markup:
    command = " ".join(shlex.quote(word) for word in run.command)
    values = run.model.parameters
    if run.kernel is not None and isinstance(values.get("gamma"), str):
        values = values | {"gamma": f"{values['gamma']} = {number(run.kernel.gamma, 7)}"}
    parameters = [_row(key, tag("td", str(value))) for key, value in values.items()]
    facts = [
        ("source", run.data.source),
        *([] if run.data.sequences is None else [("sequences", whole(run.data.sequences))]),
        ("rows", whole(run.data.rows)),
        ("columns", whole(run.data.columns)),
        ("stored entries", whole(run.data.entries)),
        *((f"rows of class {c.label}", whole(c.rows)) for c in (run.data.classes or ())[:_MOST_CLASSES]),
        ("seed", str(run.seed)),
        ("when", run.created),
        *((f"seconds to {step}", number(seconds, 3)) for step, seconds in run.seconds.items()),
        *run.versions.items(),
    ]
    about = [_row(name, tag("td", value)) for name, value in facts]
    return _section(
        "To repeat it",
        tag("pre", tag("code", command), tabindex=0),
        tag(
            "div",
            _table(f"Parameters of {run.model.type}", ["parameter", "value"], parameters, left=("parameter", "value")),
            _table("Data and machine", ["fact", "value"], about, left=("fact", "value")),
            class_="columns",
        ),
        level=level,
    )


# --- pieces ----------------------------------------------------------------------------------------------------------


def _section(heading: str, *children: Child, level: int = 2) -> Markup:
    return tag("section", tag(f"h{level}", heading), *children)


def _cards(facts: Sequence[tuple[str, str]]) -> Markup | None:
    if not facts:
        return None
    return tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts], class_="cards")


def _row(head: Child, *cells: Child) -> Markup:
    return tag("tr", tag("th", head, scope="row"), *cells)


def _numbers(*cells: Child) -> Markup:
    """Cells that are aligned as numbers are."""
    return join(*(tag("td", cell, class_="n") for cell in cells))


def _lower_bound(dual: float | None) -> str:
    return "−∞" if dual is None else number(dual, 7)


def _table(
    caption: str, heads: Sequence[str], rows: Sequence[Markup], *, left: Sequence[str] = (), kind: str | None = None
) -> Markup:
    """A table that scrolls within itself where it is too wide."""
    head = tag("tr", [tag("th", text, scope="col", class_=None if text in left else "n") for text in heads])
    table = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", list(rows)), class_=kind)
    return tag("div", table, class_="scroll", tabindex=0, role="region", aria_label=caption)
