"""Run records and the page made of them: strict about what is read, harmless whatever it says, right in a browser."""

from __future__ import annotations

import copy
import dataclasses
import html.parser
import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest
from browser import CHROMIUM, Browser
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score, confusion_matrix, f1_score, r2_score

from pegasos import LinearSVC, LinearSVR, Pegasos, report
from pegasos.cli import _describe
from pegasos.cli._metrics import ClassTally, ErrorTally, tally_for
from pegasos.datasets import make_text
from pegasos.report import axes, convergence
from pegasos.report import record as run_record
from pegasos.util.numbers import duration, number


def record(model, X, y, *, name="run", test=True, names=None):
    """What the command line records, without the command line."""
    model.fit(X, y)
    tally = tally_for(model)
    tally.add(y, model.predict(X))
    return run_record.Run(
        schema=1,
        name=name,
        created=_describe.now(),
        command=("pegasos", "train", "some data.svm", "-m", f"{name}.model"),
        seed=0,
        data=_describe.data("some data.svm", X, y, classes=hasattr(model, "classes_")),
        model=_describe.model(model),
        certificate=_describe.certificate(model),
        trace=_describe.trace(model),
        training=tally.evaluation("some data.svm"),
        test=tally.evaluation("test.svm") if test else None,
        cross_validation=run_record.CrossValidation("accuracy", (0.5, 0.75)),
        features=_describe.features(model, names),
        seconds={"read": 0.25, "fit": 1.5},
        versions=_describe.versions(),
    )


@pytest.fixture(scope="module")
def runs():
    X, y = make_text(400, 200, nnz_per_row=10)
    rng = np.random.default_rng(0)
    Z, t = rng.normal(size=(300, 5)), rng.integers(0, 3, 300)
    return {
        "pegasos": record(LinearSVC(solver=Pegasos(batch_size=2), lam=0.01, tol=1e-2), X, y, name="pegasos"),
        "sdca": record(LinearSVC(solver="sdca", lam=0.01, tol=1e-4), X, y, name="sdca"),
        "classes": record(LinearSVC(solver="sdca"), Z, t, name="classes", names=["a", "b", "c", "d", "e"]),
        "regression": record(LinearSVR(solver="sdca"), Z, Z[:, 0] + 0.1 * Z[:, 1], name="regression"),
        "many": record(LinearSVC(tol=0.1), rng.normal(size=(300, 5)), np.arange(300) % 30, name="many"),
    }


@pytest.fixture(scope="module")
def plain(runs):
    """A record as JSON values, to be spoilt."""
    return json.loads(run_record.to_json(runs["classes"]))


# --- records ---------------------------------------------------------------------------------------------------------


def test_a_record_reads_back_as_it_was(runs):
    for run in runs.values():
        assert run_record.from_json(run_record.to_json(run)) == run


def test_an_estimate_takes_the_place_of_the_certificate(runs):
    X, y = make_text(400, 200, nnz_per_row=10)
    run = record(LinearSVC(solver=Pegasos(max_steps=100, estimate=40), lam=0.01), X, y, name="estimated")
    assert run_record.from_json(run_record.to_json(run)) == run
    page = report.page([run])
    check(page)
    assert "An estimate, and no bound" in page
    assert "lower bound D" not in re.sub(r"<details>.*?</details>", "", page, flags=re.DOTALL)
    assert f"≈ {number(run.certificate.estimate.value, 3)}" in report.page([run, runs["sdca"]])
    wrong = json.loads(run_record.to_json(run))
    wrong["certificate"]["estimate"]["low"] = 9.0
    with pytest.raises(ValueError, match=r"certificate\.estimate: low, value and high of an estimate"):
        run_record.from_json(json.dumps(wrong))


def test_infinite_bounds_become_null(runs):
    run = dataclasses.replace(runs["sdca"], trace=(run_record.Point(1.0, 0.1, 2.0, float("-inf"), float("inf"), None),))
    read = run_record.from_json(run_record.to_json(run))
    assert read.trace[0].dual is None
    assert read.trace[0].gap is None


def spoil(plain, path, value):
    """The record with another value at a place; ``...`` removes it."""
    spoilt = copy.deepcopy(plain)
    place = spoilt
    for key in path[:-1]:
        place = place[key]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return json.dumps(spoilt)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["schema"], 2, "schema 2 is not 1"),
        (["schema"], True, "schema True is not 1"),
        (["name"], ..., "the record lacks 'name'"),
        (["name"], 5, "name must be text, not 5"),
        (["extra"], 5, "the record has an unknown key 'extra'"),
        (["data", "rows"], 2.5, r"data.rows must be a whole number, not 2.5"),
        (["data", "rows"], True, r"data.rows must be a whole number, not True"),
        (["data", "rows"], 10**30, "data.rows must be a whole number"),
        (["model", "lam"], "1", "model.lam must be a finite number, not '1'"),
        (["certificate", "converged"], 1, "certificate.converged must be true or false, not 1"),
        (["trace", 0, "epochs"], None, r"trace\[0\].epochs must be a finite number, not None"),
        (["trace", 0], [], r"trace\[0\] must be an object, not \[\]"),
        (["trace"], {}, "trace must be a list, not {}"),
        (["test", "confusion", "labels"], ["0", "1"], "test.confusion: counts must be a square table"),
        (["test", "confusion", "counts", 0, 0], -1, "test.confusion: counts must not be negative"),
        (["test", "metrics", "accuracy"], "high", r"test.metrics\['accuracy'\] must be a finite number"),
        (["model", "parameters", "C"], [1], r"model.parameters\['C'\] must be text"),
        (["command"], "pegasos train", "command must be a list"),
    ],
)
def test_a_wrong_record_is_refused_with_the_place(plain, path, value, message):
    with pytest.raises(ValueError, match=message):
        run_record.from_json(spoil(plain, path, value))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[1, 2]", "'schema' is missing"),
        ("5", "'schema' is missing"),
        ('{"schema": 1, "schema": 1}', "'schema' is given twice"),
        ('{"schema": NaN}', "NaN is no JSON number"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_record_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        run_record.from_json(text)


def test_numbers_beyond_floating_point_are_refused(plain):
    text = json.dumps(plain).replace(f'"lam": {plain["model"]["lam"]}', '"lam": 1e999')
    with pytest.raises(ValueError, match=r"model.lam must be a finite number, not inf"):
        run_record.from_json(text)


def test_reading_names_the_file(tmp_path):
    path = tmp_path / "run.json"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"run\.json: not UTF-8"):
        run_record.read(path)
    path.write_text("{}")
    with pytest.raises(ValueError, match=r"run\.json: .*--record"):
        run_record.read(path)
    with pytest.raises(FileNotFoundError):
        run_record.read(tmp_path / "none.json")


def test_a_huge_file_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(run_record, "_LARGEST_FILE", 100)
    path = tmp_path / "run.json"
    path.write_text(" " * 101)
    with pytest.raises(ValueError, match="larger than"):
        run_record.read(path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def places(value, path=()):
    """The paths to all values inside."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield (*path, key)
        yield from places(item, (*path, key))


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_whatever_stands_in_a_record_is_refused_or_shown(runs, data):
    """A value put anywhere gives ValueError or a page, nothing else."""
    plain = json.loads(run_record.to_json(runs["classes"]))
    path = data.draw(st.sampled_from(list(places(plain))))
    try:
        run = run_record.from_json(spoil(plain, path, data.draw(json_values)))
    except ValueError:
        return
    check(report.page([run]))


# --- metrics ---------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), min_size=1, max_size=60),
    st.integers(1, 20),
)
def test_class_metrics_are_scikit_learns_whatever_the_blocks(pairs, step):
    y, predicted = (np.array(column) for column in zip(*pairs, strict=True))
    tally = ClassTally(np.unique(predicted))
    for first in range(0, len(y), step):
        tally.add(y[first : first + step], predicted[first : first + step])
    found = tally.evaluation("rows")
    labels = np.unique(np.concatenate([y, predicted]))
    assert found.rows == len(y)
    assert found.confusion.labels == tuple(map(str, labels))
    if len(labels) > 1:  # scikit-learn warns of a single one
        np.testing.assert_array_equal(found.confusion.counts, confusion_matrix(y, predicted, labels=labels))
    assert found.metrics["accuracy"] == pytest.approx(accuracy_score(y, predicted))
    assert found.metrics["f1_macro"] == pytest.approx(f1_score(y, predicted, average="macro", zero_division=0))
    seen = np.isin(
        predicted, y
    )  # scikit-learn warns of predicted classes that never come; ours just does not count them
    if seen.all() and len(labels) > 1:
        assert found.metrics["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y, predicted))


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)), min_size=2, max_size=60), st.integers(1, 20))
def test_regression_metrics_are_scikit_learns_whatever_the_blocks(pairs, step):
    y, predicted = (np.array(column) for column in zip(*pairs, strict=True))
    tally = ErrorTally()
    for first in range(0, len(y), step):
        tally.add(y[first : first + step], predicted[first : first + step])
    found = tally.evaluation("rows").metrics
    assert found["mean_absolute_error"] == pytest.approx(np.mean(np.abs(y - predicted)))
    if np.ptp(y) > 1e-3:
        assert found["r2"] == pytest.approx(r2_score(y, predicted), rel=1e-6)


def test_top_features_are_the_largest_weights():
    model = LinearSVC()
    model.coef_, model.classes_ = np.array([[0.0, 3.0, -1.0, 2.0, -5.0, 0.0]]), np.array([-1, 1])
    found = _describe.features(model, None, most=2)
    assert (found.total, found.nonzero) == (6, 4)
    (top,) = found.top
    assert top.label == "1"
    assert [(w.feature, w.weight) for w in top.positive] == [("feature 2", 3.0), ("feature 4", 2.0)]
    assert [(w.feature, w.weight) for w in top.negative] == [("feature 5", -5.0), ("feature 3", -1.0)]


# --- the page --------------------------------------------------------------------------------------------------------


class Checker(html.parser.HTMLParser):
    """Collects tags and complains about anything that could run, load or break out."""

    VOID = ("meta", "br", "hr", "col")

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "iframe", "object", "embed", "link", "img", "form", "base", "foreignobject", "a:x")
        for name, value in attrs:
            assert not name.startswith("on"), f"{tag} {name}"
            assert name not in ("src", "srcset", "action", "formaction", "xlink:href", "srcdoc")
            if name == "href":
                assert value.startswith("#")
            if name == "style":
                assert re.fullmatch(r"--share:\d+(\.\d+)?%", value)
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text.append(data)


def check(page):
    """The page's tags are balanced and harmless; returns the checker."""
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert not checker.open
    assert "url(" not in page.partition("</style>")[0]
    assert "@import" not in page.partition("</style>")[0]
    page.encode("utf-8")
    return checker


@pytest.mark.parametrize(
    "names", [("pegasos",), ("classes",), ("regression",), ("many",), ("pegasos", "sdca"), ("sdca", "regression")]
)
def test_the_page_is_whole_and_says_what_the_record_says(runs, names):
    chosen = [runs[name] for name in names]
    checker = check(report.page(chosen))
    text = " ".join(checker.text)
    for run in chosen:
        assert run.name in text
        assert number(run.certificate.primal, 7) in text
        assert number(run.certificate.relative_gap, 3) in text
        assert run.certificate.reason in text
        assert "pegasos train 'some data.svm' -m" in text
        assert str(run.model.parameters["loss"]) in text
        assert run.features.top[0].positive[0].feature in text
        for _, seconds in run.seconds.items():
            assert number(seconds, 3) in text
    assert any(tag == "svg" for tag, _ in checker.tags)


def test_tables_and_charts_say_what_they_are(runs):
    checker = check(report.page([runs["classes"], runs["sdca"]]))
    tags = [tag for tag, _ in checker.tags]
    assert tags.count("table") == tags.count("caption") > 4
    assert all("scope" in attrs for tag, attrs in checker.tags if tag == "th")
    charts = [attrs for tag, attrs in checker.tags if tag == "svg" and attrs.get("class") == "chart"]
    assert len(charts) == 2
    assert all(attrs["role"] == "img" and "Convergence" in attrs["aria-label"] for attrs in charts)
    headings = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(below <= above + 1 for above, below in itertools.pairwise(headings))
    assert ("html", {"lang": "en"}) in checker.tags


EVIL = (
    "</style></title></svg></script><script>alert(1)</script><img src=x onerror=alert(1)>"
    "\"'><!-- ]]> &amp; \u202e\x00\ud800"
)


def poisoned(value):
    """Every text of a record replaced by something that would like to be markup."""
    if isinstance(value, dict):
        fields = {"schema", "seed"}
        return {
            (key if key in KEYS else key + EVIL): (item if key in fields else poisoned(item))
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [poisoned(item) for item in value]
    return EVIL if isinstance(value, str) else value


KEYS = {
    field.name
    for kind in vars(run_record).values()
    if dataclasses.is_dataclass(kind) and isinstance(kind, type)
    for field in dataclasses.fields(kind)
}


@pytest.mark.parametrize("name", ["classes", "regression", "many"])
def test_a_malicious_record_cannot_inject_markup(runs, name):
    run = run_record.from_json(json.dumps(poisoned(json.loads(run_record.to_json(runs[name])))))
    assert EVIL.startswith(run.name[:5])
    page = report.page([run, run], title=EVIL)
    checker = check(page)
    assert "<script" not in page
    assert "onerror" in "".join(checker.text)  # shown as text, that is
    assert "\u202e" not in page
    assert "\x00" not in page
    assert "Content-Security-Policy" in page


def test_the_chart_draws_what_the_trace_holds(runs):
    both = [runs["pegasos"], runs["sdca"]]
    best = max(point.dual for run in both for point in run.trace)
    assert convergence.references(both) == [best, best]
    drawing = convergence.chart(both, "epochs")
    paths = re.findall(r'<path d="([^"]+)" class="run (c\d)( gap)?"', drawing)
    assert sorted((colour, gap) for _, colour, gap in paths) == [("c0", ""), ("c0", " gap"), ("c1", ""), ("c1", " gap")]
    # Take one line back from paper to numbers, by the ticks of the axes.
    gaps = [point.relative_gap for point in runs["pegasos"].trace if point.relative_gap > 0]
    path = next(d for d, colour, gap in paths if colour == "c0" and gap)
    heights = [float(step.split()[1]) for step in re.split("[ML]", path)[1:]]
    assert len(heights) == len(gaps)
    slope = np.polyfit(np.log10(gaps), heights, 1)
    np.testing.assert_allclose(np.polyval(slope, np.log10(gaps)), heights, atol=0.1)
    assert slope[0] < 0


def test_runs_of_other_problems_have_their_own_reference(runs):
    first, second = runs["sdca"], runs["classes"]
    assert convergence.references([first, second]) == [
        max(point.dual for point in first.trace),
        max(point.dual for point in second.trace),
    ]
    assert "different problems" in report.page([first, second])
    assert "different problems" not in report.page([first, runs["pegasos"]])


def test_a_run_without_bounds_has_no_chart(runs):
    bare = dataclasses.replace(runs["sdca"], trace=(run_record.Point(1.0, 0.1, None, None, None, None),))
    assert convergence.chart([bare], "seconds") is None
    check(report.page([bare]))


@given(st.lists(st.floats(1e-17, 1e17), min_size=1, max_size=20))
def test_logarithmic_axes_hold_their_values(values):
    scale = axes.log_scale(values, 100.0, 0.0)
    assert all(-1e-6 <= scale(value) <= 100 + 1e-6 for value in values)
    assert 1 <= len(scale.ticks(6)) <= 8


@given(st.floats(1e-9, 1e12))
def test_linear_axes_have_round_ticks(largest):
    scale = axes.from_zero([largest], 0.0, 100.0)
    ticks = scale.ticks(5)
    assert 3 <= len(ticks) <= 12
    assert ticks[0] == (0.0, "0")
    assert all(0 <= scale(value) <= 100.0001 for value, _ in ticks)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "∞"),
        (0.0, "0"),
        (0.12345, "0.1235"),
        (1234567.0, "1,234,567"),
        (1.5e-7, "1.50·10⁻⁷"),
        (-2e9, "-2.00·10⁹"),
    ],
)
def test_numbers_are_readable(value, shown):
    assert number(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.0123, "12 ms"), (1.5, "1.5 s"), (150.0, "2 min 30 s"), (7260.0, "2 h 01 min")]
)
def test_durations_are_readable(seconds, shown):
    assert duration(seconds) == shown


# --- in a browser ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed (Debian: apt-get install chromium)")
    with Browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(scope="module")
def pages(runs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    evil = run_record.from_json(json.dumps(poisoned(json.loads(run_record.to_json(runs["classes"])))))
    chosen = {
        "one": [runs["classes"]],
        "several": [runs["pegasos"], runs["sdca"]],
        "regression": [runs["regression"]],
        "many": [runs["many"]],
        "evil": [evil, evil],
    }
    for name, records in chosen.items():
        (folder / f"{name}.html").write_text(report.page(records), encoding="utf-8")
    return folder


PAGES = ["one", "several", "regression", "many", "evil"]


@pytest.mark.unsanitized
@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [320, 390, 1200])
def test_a_browser_shows_it_without_complaint_or_overflow(browser, pages, name, width):
    page = pages / f"{name}.html"
    browser.show(page, width=width, mobile=width < 500)
    assert browser.complaints() == []
    assert browser.requests() == [page.resolve().as_uri()]
    assert browser.run("document.documentElement.scrollWidth") <= width
    # Also with everything unfolded.
    browser.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("document.querySelectorAll('svg.chart').length") == 2
    # A fit with one certificate is a dot.
    longest = browser.run("Math.max(...[...document.querySelectorAll('svg.chart path')].map(p => p.getTotalLength()))")
    dots = browser.run("Math.max(...[...document.querySelectorAll('svg.chart .dots')].map(g => g.childElementCount))")
    assert longest > 20 if dots > 1 else dots == 1
    assert browser.run("document.scripts.length") == 0


@pytest.mark.unsanitized
def test_light_and_dark_differ_and_are_readable(browser, pages):
    shots = {}
    for scheme in ("light", "dark"):
        browser.show(pages / "one.html", width=390, scheme=scheme, mobile=True)
        shots[scheme] = browser.screenshot()
        assert worst_contrast(browser) >= 4.5, scheme
    assert shots["light"] != shots["dark"]


def worst_contrast(browser):
    """The lowest WCAG contrast of any text with what lies behind it."""
    return browser.run(
        """(() => {
        const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
        const rgb = colour => {
            canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
            return [...canvas.getImageData(0, 0, 1, 1).data];
        };
        const light = c => {
            const [r, g, b] = c.slice(0, 3).map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const behind = e => {
            for (; e; e = e.parentElement) {
                const c = rgb(getComputedStyle(e).backgroundColor);
                if (c[3] > 250) return c;
            }
            return [255, 255, 255, 255];
        };
        let worst = 99;
        for (const e of document.querySelectorAll('body *')) {
            if (e.closest('svg') && e.tagName !== 'text') continue;
            if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
            const style = getComputedStyle(e);
            const a = light(rgb(e.tagName === 'text' ? style.fill : style.color)), b = light(behind(e));
            worst = Math.min(worst, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
        }
        return worst;
    })()"""
    )


@pytest.mark.unsanitized
def test_no_script_of_a_record_runs_even_if_the_page_let_it(browser, pages):
    """The policy of the page is a second wall: markup that got through would still do nothing."""
    text = (pages / "one.html").read_text(encoding="utf-8")
    leaky = pages / "leaky.html"
    leaky.write_text(text.replace("<main>", "<main><script>document.title = 'owned'</script>"), encoding="utf-8")
    browser.show(leaky, width=800)
    assert browser.run("document.title") != "owned"
    assert any("Content Security Policy" in json.dumps(entry) for entry in browser.complaints())


def test_the_style_sheet_is_part_of_the_package():
    assert Path(report.__file__).with_name("style.css").is_file()
