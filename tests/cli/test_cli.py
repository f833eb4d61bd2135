"""The command line as its users meet it: real processes, pipes, a pseudo-terminal, Ctrl-C, and bad input."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import processes
import pytest
import sklearn.utils.fixes
from sklearn.datasets import load_diabetes, load_digits, load_svmlight_file
from sklearn.metrics import accuracy_score

import pegasos
from pegasos import LinearSVC, io
from pegasos.cli import _progress, _spec, main
from pegasos.cli._labels import label_from_text, label_text
from pegasos.datasets import make_text

pytestmark = pytest.mark.unsanitized

AS_PROCESSES = bool(os.environ.get("PEGASOS_TEST_PROCESSES"))
COMMAND = [sys.executable, "-m", "pegasos"]
ENVIRONMENT = {**os.environ, "PYTHONWARNINGS": "error", "PEGASOS_TRACEBACK": "1"}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Files that the tests read and never write."""
    folder = tmp_path_factory.mktemp("data")
    X, y = make_text(600, 80, nnz_per_row=8)
    io.write_svmlight(X[:400], y[:400], folder / "train.svm")
    io.write_svmlight(X[400:], y[400:], folder / "test.svm")
    (folder / "train.svm.gz").write_bytes(gzip.compress((folder / "train.svm").read_bytes()))
    X, y = load_digits(return_X_y=True)
    io.write_svmlight(X[:300] / 16, y[:300], folder / "digits.svm")
    X, y = load_diabetes(return_X_y=True)
    io.write_svmlight(X, y, folder / "prices.svm")
    return folder


@pytest.fixture(scope="module")
def hard(tmp_path_factory):
    """A problem that takes all the time it is given."""
    path = tmp_path_factory.mktemp("hard") / "hard.svm"
    rng = np.random.default_rng(0)
    io.write_svmlight(rng.normal(size=(4000, 60)), np.where(rng.random(4000) < 0.5, 1, -1), path)
    return path


ENDLESS = ["--solver", "pegasos", "--lam", "1e-7", "--tol", "1e-12", "--max-iter", "1000000000"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder of its own to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words, code=0, stdin=None, process=AS_PROCESSES):
    """Run the command, check its exit code, and return what it printed.

    Starting Python and importing NumPy takes most of the time of a command. So this calls ``main`` where it is, with
    files as standard streams; with ``process``, the default in ``make test-all``, it is a process of its own.
    """
    words, text = [str(word) for word in words], not isinstance(stdin, bytes)
    if process:
        done = processes.run(
            [*COMMAND, *words],
            input=stdin,
            stdin=None if stdin is not None else subprocess.DEVNULL,
            capture_output=True,
            text=text,
            env=ENVIRONMENT,
        )
    else:
        done = _run_here(words, stdin.encode() if isinstance(stdin, str) else stdin or b"", text)
    assert done.returncode == code, (done.stdout, done.stderr)
    assert "Traceback" not in str(done.stderr)
    return done


def _run_here(words, stdin, text):
    with contextlib.ExitStack() as stack:
        source, out, err = (stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8")) for _ in range(3))
        source.buffer.write(stdin)
        source.buffer.seek(0)
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("PEGASOS_TRACEBACK", "1")
        patch.setattr(sys, "stdin", source)
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        code = main(words)
        printed = []
        for stream in (out, err):
            stream.flush()
            stream.buffer.seek(0)
            data = stream.buffer.read()
            printed.append(data.decode() if text else data)
    return subprocess.CompletedProcess(words, code, *printed)


def files(folder):
    return sorted(path.name for path in folder.rglob("*"))


# --- train -----------------------------------------------------------------------------------------------------------


def test_train_gives_the_model_that_python_gives(data, place):
    done = run("train", data / "train.svm", "-m", "a.model", "-c", "2", "--solver", "sdca", "--seed", "3", "-e", "1e-4")
    X, y = load_svmlight_file(str(data / "train.svm"))
    direct = LinearSVC(C=2.0, solver="sdca", random_state=3, tol=1e-4).fit(X, y)
    model = pegasos.load("a.model")
    np.testing.assert_array_equal(model.coef_, direct.coef_)
    np.testing.assert_array_equal(model.intercept_, direct.intercept_)
    assert model.classes_.tolist() == [-1, 1]
    assert "400 rows, 80 columns" in done.stdout
    assert "converged (gap <= tol * primal)" in done.stdout
    assert done.stderr == ""  # no progress where nobody watches
    assert files(place) == ["a.model"]


@pytest.mark.parametrize("source", ["gzip", "stdin"])
def test_other_sources_give_the_same_bits(data, models, place, source):
    if source == "gzip":
        done = run("train", data / "train.svm.gz", "-m", "a.model", "-q")
    else:
        done = run("train", "-", "-m", "a.model", "-q", stdin=(data / "train.svm").read_bytes())
    assert len(done.stdout) == len(done.stderr) == 0
    want = pegasos.load(models / "two.model")
    np.testing.assert_array_equal(pegasos.load("a.model").coef_, want.coef_)


@pytest.mark.parametrize(
    ("words", "parameters"),
    [
        (["-B", "1"], {"intercept": "feature", "intercept_scaling": 1.0}),
        (["-B", "2.5"], {"intercept": "feature", "intercept_scaling": 2.5}),
        (["-B", "-1"], {"fit_intercept": False}),
        (["--intercept", "none"], {"fit_intercept": False}),
        (["-w1", "5", "-w-1", "0.5"], {"class_weight": {1: 5.0, -1: 0.5}}),
        (["--class-weight", "balanced"], {"class_weight": "balanced"}),
        (["--lam", "0.01", "--loss", "squared_hinge"], {"lam": 0.01, "loss": "squared_hinge"}),
        (["-s", "0", "-c", "0.5"], {"loss": "log", "C": 0.5}),
        (["--loss", "smoothed_hinge:gamma=0.5"], {"loss": pegasos.losses.SmoothedHinge(0.5)}),
        (
            ["--solver", "pegasos:batch_size=4,projection=true,t0=0", "-e", "0.3"],
            {"solver": pegasos.Pegasos(batch_size=4, projection=True, t0=0), "tol": 0.3},
        ),
        (["--threads", "2", "--max-iter", "500", "--max-time", "60"], {"n_jobs": 2, "max_iter": 500, "max_time": 60.0}),
    ],
)
def test_options_mean_parameters(data, place, words, parameters):
    run("train", data / "train.svm", "-m", "a.model", "-q", *words)
    model = pegasos.load("a.model")
    assert {name: model.get_params()[name] for name in parameters} == parameters


@pytest.mark.parametrize(
    ("words", "loss"),
    [
        (["--regression"], "epsilon_insensitive"),
        (["-s", "11"], "squared_epsilon_insensitive"),
        (["--loss", "huber"], "huber"),
    ],
)
def test_regression(data, place, words, loss):
    run("train", data / "prices.svm", "-m", "r.model", "-c", "10", "-q", *words)
    model = pegasos.load("r.model")
    assert (type(model).__name__, model.loss) == ("LinearSVR", loss)
    shown = run("predict", data / "prices.svm", "-m", "r.model").stdout.split()
    X, y = load_svmlight_file(str(data / "prices.svm"))
    np.testing.assert_array_equal([float(word) for word in shown], model.predict(X))
    found = json.loads(run("evaluate", data / "prices.svm", "-m", "r.model", "--json").stdout)
    assert found["metrics"]["r2"] == pytest.approx(model.score(X, y))


def test_cross_validation_alone_writes_nothing(data, place):
    first, again = (run("train", data / "train.svm", "-v", "5") for _ in range(2))
    assert re.fullmatch(r"cross-validation accuracy \d\d\.\d\d % ± \d+\.\d\d % \(5 folds\)\n", first.stdout)
    assert first.stdout == again.stdout
    found = json.loads(run("train", data / "train.svm", "--cv", "4", "--json").stdout)["cross_validation"]
    assert found["metric"] == "accuracy"
    assert len(found["scores"]) == 4
    assert all(0.6 < score <= 1 for score in found["scores"])
    assert files(place) == []


def test_every_fold_has_its_share_of_each_class():
    from pegasos.cli._folds import _assign
    from pegasos.cli._plan import Plan

    y = np.repeat([0, 1, 2], [50, 30, 7])
    fold = _assign(y, 5, Plan(False, {"random_state": 0}))
    for label in range(3):
        counts = np.bincount(fold[y == label], minlength=5)
        assert counts.max() - counts.min() <= 1
    assert np.bincount(fold).max() - np.bincount(fold).min() <= 1


def test_a_record_holds_the_run_and_a_report_shows_it(data, place):
    (place / "names.txt").write_text("".join(f"word {j}\n" for j in range(80)), encoding="utf-8")
    words = ["train", data / "train.svm", "-m", "a.model", "--test", data / "test.svm", "--record", "run.json"]
    done = run(*words, "--feature-names", "names.txt", "-v", "3", "--name", "my run")
    record = json.loads((place / "run.json").read_text(encoding="utf-8"))
    model = pegasos.load("a.model")
    assert record["certificate"]["primal"] == model.certificate_.primal
    assert len(record["trace"]) == len(model.trace_)
    assert record["command"][:3] == ["pegasos", "train", str(data / "train.svm")]
    assert record["model"]["lam"] == pytest.approx(1 / 400)
    assert record["features"]["top"][0]["positive"][0]["feature"] == f"word {np.argmax(model.coef_[0])}"
    X, y = load_svmlight_file(str(data / "test.svm"), n_features=80)
    assert record["test"]["metrics"]["accuracy"] == accuracy_score(y, model.predict(X))
    assert f"{100 * accuracy_score(y, model.predict(X)):.2f} %" in done.stdout
    assert len(record["cross_validation"]["scores"]) == 3
    assert set(record["seconds"]) == {"read", "cross-validate", "fit"}
    run("report", "run.json", "run.json", "-o", "report.html")
    page = (place / "report.html").read_text(encoding="utf-8")
    assert page.count("my run") > 4
    assert page == run("report", "run.json", "run.json").stdout
    assert files(place) == ["a.model", "names.txt", "report.html", "run.json"]


def test_json_is_the_record_and_nothing_else(data, place):
    done = run("train", data / "train.svm", "-m", "a.model", "--json", "--record", "run.json")
    assert json.loads(done.stdout) == json.loads((place / "run.json").read_text(encoding="utf-8"))
    assert done.stderr == ""


def test_the_same_command_gives_the_same_model_bytes_but_for_its_times(data, place):
    for name in ("a.model", "b.model"):
        run("train", data / "train.svm", "-m", name, "-q")
    a, b = (pegasos.load(name) for name in ("a.model", "b.model"))
    np.testing.assert_array_equal(a.coef_, b.coef_)
    assert [(p.primal, p.dual, p.epochs) for p in a.trace_] == [(p.primal, p.dual, p.epochs) for p in b.trace_]


def test_not_converged_is_3_and_the_model_is_saved(hard, place):
    done = run("train", hard, "-m", "a.model", *ENDLESS[:-1], "2", code=3)
    assert "not converged (max_iter reached)" in done.stdout
    assert "Raise --max-iter or --max-time" in done.stderr
    assert not pegasos.load("a.model").certificate_.converged
    assert run("train", hard, "-m", "b.model", "-q", *ENDLESS[:-1], "2", code=3).stderr == ""


def test_an_estimate_is_called_one_and_no_certificate(data, place):
    steps = ["--solver", "pegasos:max_steps=100,estimate=50", "--lam", "0.01"]
    done = run("train", data / "train.svm", "-m", "a.model", *steps, "--record", "run.json")
    assert "not certified (max_steps reached): the objective is estimated as" in done.stdout
    assert "gap" not in done.stdout
    c = pegasos.load("a.model").certificate_
    found = json.loads((place / "run.json").read_text(encoding="utf-8"))["certificate"]
    assert found["estimate"] == {
        "value": c.estimate,
        "low": c.estimate_low,
        "high": c.estimate_high,
        "rows": 50,
    }
    assert (found["primal"], found["dual"], found["converged"]) == (None, None, False)
    facts = json.loads(run("info", "a.model", "--json").stdout)
    assert facts["objective estimated"] == c.estimate
    assert facts["95 % confidence"] == [c.estimate_low, c.estimate_high]
    run("report", "run.json", "-o", "report.html")
    page = (place / "report.html").read_text(encoding="utf-8")
    assert "An estimate, and no bound" in page
    assert ">Certificate<" not in page


def test_a_part_of_an_epoch(data, place):
    run("train", data / "train.svm", "-m", "a.model", "--solver", "pegasos", "--max-iter", "0.25", "--tol", "1")
    assert pegasos.load("a.model").certificate_.epochs == 0.25
    said = "--max-iter 0.25 must be a whole number >= 1: solver 'sdca' has no partial epochs"
    words = ["train", data / "train.svm", "-m", "a.model", "--solver", "sdca", "--max-iter"]
    assert said in run(*words, "0.25", code=1).stderr
    assert "must be greater than 0" in run(*words, "-0.5", code=2).stderr


# --- predict, evaluate -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def models(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    run("train", data / "train.svm", "-m", folder / "two.model", "-q")
    run("train", data / "digits.svm", "-m", folder / "digits.model", "-q", "--loss", "log")
    run("train", data / "prices.svm", "-m", folder / "prices.model", "-q", "--regression")
    return folder


def test_predict_prints_labels_like_liblinear(data, models, place):
    run("predict", data / "test.svm", "-m", models / "two.model", "-o", "out.txt")
    lines = (place / "out.txt").read_text().splitlines()
    X, _ = load_svmlight_file(str(data / "test.svm"), n_features=80)
    assert lines == [str(label) for label in pegasos.load(models / "two.model").predict(X)]
    assert set(lines) == {"-1", "1"}
    assert run("predict", data / "test.svm", "-m", models / "two.model", "-o", "-").stdout.splitlines() == lines
    piped = run("predict", "-", "-m", models / "two.model", stdin=(data / "test.svm").read_text())
    assert piped.stdout.splitlines() == lines


def test_the_letters_of_liblinear_train_its_model(data, place):
    liblinear = pytest.importorskip("liblinear.liblinearutil")
    X, y = load_svmlight_file(str(data / "train.svm"))
    Z, t = load_svmlight_file(str(data / "test.svm"), n_features=X.shape[1])
    for letters in ("-s 3 -B 1 -c 0.5 -w1 2", "-s 1 -B -1 -c 1", "-s 0 -B 1 -c 2"):
        theirs, _, _ = liblinear.predict(t, Z, liblinear.train(y, X, f"{letters} -e 1e-6 -q"), "-q")
        run("train", data / "train.svm", "-m", "a.model", "-q", "-e", "1e-7", *letters.split())
        ours = [float(line) for line in run("predict", data / "test.svm", "-m", "a.model").stdout.split()]
        assert np.mean(np.array(ours) == theirs) >= 0.99, letters


def test_predict_probabilities_like_liblinear(data, models, place):
    lines = run("predict", data / "digits.svm", "-m", models / "digits.model", "-b", "1").stdout.splitlines()
    model = pegasos.load(models / "digits.model")
    X, _ = load_svmlight_file(str(data / "digits.svm"), n_features=model.n_features_in_)
    assert lines[0] == "labels 0 1 2 3 4 5 6 7 8 9"
    table = np.array([[float(word) for word in line.split()] for line in lines[1:]])
    np.testing.assert_array_equal(table[:, 0], model.predict(X))
    np.testing.assert_array_equal(table[:, 1:], model.predict_proba(X))


def test_predict_scores(data, models, place):
    lines = run("predict", data / "test.svm", "-m", models / "two.model", "--scores").stdout.splitlines()
    model = pegasos.load(models / "two.model")
    X, _ = load_svmlight_file(str(data / "test.svm"), n_features=80)
    assert lines[0] == "labels 1"
    assert [float(line.split()[1]) for line in lines[1:]] == model.decision_function(X).tolist()


def test_features_the_model_does_not_know_are_ignored_and_said_so(models, place):
    (place / "wide.svm").write_text("1 1:1 2:0.5\n-1 1:1 2:0.5 81:7 1000:3\n1 2:1\n")
    done = run("predict", "wide.svm", "-m", models / "two.model")
    first, second, _ = done.stdout.splitlines()
    assert first == second
    assert "wide.svm: features beyond the model's 80 are ignored" in done.stderr


def test_evaluate(data, models, place):
    found = json.loads(run("evaluate", data / "test.svm", "-m", models / "two.model", "--json").stdout)
    X, y = load_svmlight_file(str(data / "test.svm"), n_features=80)
    accuracy = accuracy_score(y, pegasos.load(models / "two.model").predict(X))
    assert found["metrics"]["accuracy"] == accuracy
    shown = run("evaluate", data / "test.svm", "-m", models / "two.model").stdout
    assert f"accuracy {100 * accuracy:.2f} %" in shown
    assert "true \\ predicted" in shown
    quiet = run("evaluate", data / "test.svm", "-m", models / "two.model", "-q").stdout
    assert quiet == shown.splitlines(keepends=True)[0]


def test_output_to_a_special_file_is_written_directly(data, models, place):
    run("predict", data / "test.svm", "-m", models / "two.model", "-o", "/dev/null")
    assert os.path.exists("/dev/null")
    assert not os.path.isfile("/dev/null")


def test_a_link_stays_a_link(data, models, place):
    (place / "real.txt").write_text("old")
    (place / "link.txt").symlink_to("real.txt")
    run("predict", data / "test.svm", "-m", models / "two.model", "-o", "link.txt")
    assert (place / "link.txt").is_symlink()
    assert len((place / "real.txt").read_text().splitlines()) == 200


# --- convert, export, info -------------------------------------------------------------------------------------------


def test_convert_and_train_from_the_folder(data, place):
    assert "400 rows, 80 columns" in run("convert", data / "train.svm", "folder").stdout
    run("train", "folder", "-m", "a.model", "-v", "3", "--test", "folder", "--record", "run.json", "-q")
    found = json.loads(run("evaluate", "folder", "-m", "a.model", "--json").stdout)
    assert found["metrics"]["accuracy"] > 0.8
    assert len(run("predict", "folder", "-m", "a.model").stdout.splitlines()) == 400
    assert json.loads(run("info", "folder", "--json").stdout)["rows"] == 400
    run("convert", data / "train.svm", "folder", code=1)
    run("convert", data / "train.svm", "folder", "--force", "-q")


def test_text_labels_and_names_come_through(place):
    rows = "".join(f"{i % 7},{-(i % 5)},{'cat' if i % 7 > 3 else 'dog'}\n" for i in range(60))
    (place / "pets.csv").write_text("height,width,label\n" + rows)
    run("convert", "pets.csv", "pets", "-q")
    run("train", "pets", "-m", "a.model", "-q", "--record", "run.json")
    assert set(run("predict", "pets", "-m", "a.model").stdout.split()) == {"cat", "dog"}
    assert json.loads(run("evaluate", "pets", "-m", "a.model", "--json").stdout)["metrics"]["accuracy"] == 1.0
    record = json.loads((place / "run.json").read_text())
    top = record["features"]["top"][0]
    assert {w["feature"] for w in (*top["positive"], *top["negative"])} <= {"height", "width"}
    (place / "numbers.svm").write_text("1 1:1 2:1\n")
    done = run("evaluate", "numbers.svm", "-m", "a.model", code=1)
    assert "numbers.svm: the targets are numbers, but those of the model are text" in done.stderr


@pytest.mark.parametrize("form", ["liblinear", "libsvm"])
def test_export_and_use_again(data, models, place, form):
    run("export", models / "two.model", f"a.{form}")
    want = run("predict", data / "test.svm", "-m", models / "two.model").stdout
    assert run("predict", data / "test.svm", "-m", f"a.{form}").stdout == want
    assert json.loads(run("info", f"a.{form}", "--json").stdout)["kind"] == f"{form} model"
    run("train", data / "train.svm", "-m", f"b.{form}", "-q")
    assert (place / f"b.{form}").read_text().splitlines()[0] == (place / f"a.{form}").read_text().splitlines()[0]


def test_export_to_onnx(data, models, place):
    onnxruntime = pytest.importorskip("onnxruntime")
    run("export", models / "two.model", "a.onnx")
    assert onnxruntime.InferenceSession("a.onnx").get_inputs()[0].shape[1] == 80


def test_info(data, models, place):
    facts = json.loads(run("info", models / "digits.model", "--json").stdout)
    assert facts["estimator"] == "LinearSVC"
    assert facts["classes"] == [str(digit) for digit in range(10)]
    assert facts["converged"] is True
    assert "top features of 9" in facts
    facts = json.loads(run("info", data / "train.svm", "--json").stdout)
    _, y = load_svmlight_file(str(data / "train.svm"))
    assert (facts["rows"], facts["columns"]) == (400, 80)
    assert facts["labels"] == {"-1": int((y == -1).sum()), "1": int((y == 1).sum())}
    assert "rows     400" in run("info", data / "train.svm").stdout
    assert json.loads(run("info", "-", "--json", stdin="1 1:2\n").stdout)["rows"] == 1


# --- what is refused -------------------------------------------------------------------------------------------------

BAD_TEXT = {
    "nan": ("1 1:nan\n", "line 1"),
    "word": ("1 1:1\n-1 2:two\n", "line 2"),
    "index zero": ("1 0:1\n", "line 1"),
    "decreasing": ("1 2:1 1:1\n", "line 1"),
    "label": ("yes 1:1\n", "line 1"),
    "one class": ("1 1:1\n1 2:1\n", "one class only"),
    "real labels": ("0.5 1:1\n1 2:1\n", "the label 0.5 of row 1 is no whole number; add --regression"),
    "no rows": ("", "no rows"),
    "no features": ("1\n-1\n", "no row has a feature"),
    "huge": ("1 1:1e200\n-1 1:-1e200\n", "scale the features"),
}


@pytest.mark.parametrize("kind", BAD_TEXT)
def test_bad_data_are_named_and_nothing_is_left(place, kind):
    text, message = BAD_TEXT[kind]
    (place / "bad.svm").write_text(text)
    (place / "old.model").write_text("precious")
    done = run("train", "bad.svm", "-m", "old.model", "--record", "run.json", code=1)
    assert done.stderr.startswith("pegasos: bad.svm")
    assert message in done.stderr
    assert done.stdout == ""
    assert (place / "old.model").read_text() == "precious"
    assert files(place) == ["bad.svm", "old.model"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "none.svm", "-m", "a.model"], "none.svm: No such file"),
        (["train", "{data}/train.svm", "-m", "nowhere/a.model"], "does not exist; make it first"),
        (["train", "{data}/train.svm", "-m", "."], "is a folder; name a file"),
        (["train", "{data}/train.svm", "-m", "a", "--record", "a"], "given both as the model and as the record"),
        (["train", "here.svm", "-m", "here.svm"], "given both as the data and as the model"),
        (["train", "{data}/train.svm", "-m", "a.model", "--test", "none.svm"], "none.svm: No such file"),
        (["train", "{data}/train.svm", "-m", "a.model", "-v", "401"], "400 rows cannot be cut into 401 folds"),
        (["train", "{data}/train.svm", "-m", "a.model", "-w7", "2"], "--class-weight names 7"),
        (["train", "{data}/train.svm", "-m", "a.model", "--feature-names", "here.svm"], "has 1 names, one a line"),
        (["train", "{data}/train.svm", "-m", "a.model", "--n-features", "3"], "train.svm"),
        (["train", "{data}/train.svm", "-m", "a.model", "--checkpoint", "here.svm"], "there already; add --resume"),
        (["train", "{data}/digits.svm", "-m", "a.model", "--solver", "sgd:eta=1", "--lam", "2"], "eta"),
        (["train", ".", "-m", "a.model"], "."),
        (["train", "table.csv", "-m", "a.model"], "convert it first: pegasos convert table.csv FOLDER"),
        (["train", "{data}/train.svm", "-m", "a.model", "--feature-names", "latin.txt"], "latin.txt: not UTF-8"),
        (["predict", "{data}/test.svm", "-m", "here.svm"], "is no model of pegasos, LIBLINEAR or LIBSVM"),
        (["predict", "{data}/test.svm", "-m", "none.model"], "none.model: No such file"),
        (["predict", "{data}/test.svm", "-m", "{models}/two.model", "-b", "1"], "train with --loss log"),
        (["predict", "{data}/prices.svm", "-m", "{models}/prices.model", "--scores"], "it has no scores"),
        (["predict", "none.svm", "-m", "{models}/two.model", "-o", "out.txt"], "none.svm: No such file"),
        (["predict", "bad.svm", "-m", "{models}/two.model", "-o", "out.txt"], "bad.svm"),
        (["predict", "{data}/test.svm", "-m", "{models}/two.model", "-o", "no/out.txt"], "does not exist"),
        (["evaluate", "empty.svm", "-m", "{models}/two.model"], "there are no rows"),
        (["convert", "bad.svm", "folder"], "bad.svm"),
        (["export", "{models}/two.model", "{models}/two.model"], "given both as the model and as the exported model"),
        (["export", "{models}/two.model", "two.pkl"], "no format of models has the ending .pkl; there are .model"),
        (["export", "{models}/two.model", "two.onxx"], "(did you mean '.onnx'?)"),
        (["train", "{data}/train.svm", "-m", "a.joblib"], "no format of models has the ending .joblib"),
        (["info", "none"], "none: No such file"),
        (["report", "here.svm", "-o", "out.html"], "here.svm: it is not JSON"),
        (["report", "none.json", "-o", "out.html"], "none.json: No such file"),
    ],
)  # fmt: skip
def test_failures_are_1_say_what_is_wrong_and_leave_nothing(data, models, place, words, message):
    (place / "here.svm").write_text("1 1:1\n")
    (place / "bad.svm").write_text("1 1:1\n-1 1:oops\n")
    (place / "empty.svm").write_text("")
    (place / "latin.txt").write_bytes(b"caf\xe9\n")
    (place / "table.csv").write_text("a,y\n1,2\n")
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    done = run(*(word.format(data=data, models=models) for word in words), code=1)
    assert done.stderr.startswith("pegasos: ")
    assert message in done.stderr
    assert done.stdout == ""
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "COMMAND"),
        (["trian"], "invalid choice: 'trian' (did you mean 'train'?)"),
        (["--verison"], "unknown option '--verison' (did you mean '--version'?)"),
        (["train", "x", "-m", "m", "--lamb", "3"], "unknown option '--lamb' (did you mean '--lam'?)"),
        (["train", "x", "-m", "m", "--lamb=3"], "unknown option '--lamb' (did you mean '--lam'?)"),
        (["train", "x", "-m", "m", "-C", "3"], "unknown option '-C' (did you mean '-c'?)"),
        (["train", "x", "y", "-m", "m"], "one argument too many: 'y'"),
        (["predict", "x", "--modle", "m"], "unknown option '--modle' (did you mean '--model'?)"),
        (["train", "x", "-m", "m", "--kernel", "rfb"], "invalid choice: 'rfb' (did you mean 'rbf'?)"),
        (["train", "x", "-m", "m", "--solver", "sdac"], "--solver 'sdac' is unknown (did you mean 'sdca'?)"),
        (["train", "x", "-m", "m", "--solver", "smo"], "--solver smo is for kernel machines; add --kernel"),
        (["train", "x", "-m", "m", "--kernel", "rbf", "--solver", "sm"], "(did you mean 'smo'?)"),
        (["convert", "x", "f", "--target", "y", "--no-target"], "not allowed with"),
        (["convert", "x", "f", "--header", "maybe"], "invalid choice"),
        (["convert", "x", "f", "--memory", "0"], "must lie between 1"),
        (["train"], "DATA"),
        (["train", "x"], "name the file to write with -m MODEL"),
        (["train", "x", "-m", "-"], "cannot go to standard output"),
        (["train", "x", "-m", "m", "-c", "0"], "must be greater than 0"),
        (["train", "x", "-m", "m", "-c", "nan"], "is not finite"),
        (["train", "x", "-m", "m", "-c", "1", "--lam", "1"], "give one of them"),
        (["train", "x", "-m", "m", "--tol", "-1"], "must not be negative"),
        (["train", "x", "-m", "m", "--max-iter", "0"], "must lie between 1 and"),
        (["train", "x", "-m", "m", "--threads", "0"], "0 threads do nothing"),
        (["train", "x", "-m", "m", "--seed", "-1"], "must lie between"),
        (["train", "x", "-m", "m", "-v", "1"], "must lie between 2"),
        (["train", "x", "-m", "m", "--loss", "hing"], "--loss 'hing' is unknown (did you mean 'hinge'?); it can be"),
        (["train", "x", "-m", "m", "--loss", "hinge", "--regression"], "is for classes, not for --regression"),
        (["train", "x", "-m", "m", "--solver", "pegasos:batch=64"], "'batch' (did you mean 'batch_size'?); it has"),
        (["train", "x", "-m", "m", "--solver", "pegasos:batch_size"], "must be written pegasos:parameter=value"),
        (["train", "x", "-m", "m", "--solver", "pegasos:batch_size=0"], "batch_size=0 must be a whole number"),
        (["train", "x", "-m", "m", "-s", "5"], "means L1 regularisation, not offered"),
        (["train", "x", "-m", "m", "-s", "99"], "-s 99 is unknown"),
        (["train", "x", "-m", "m", "-s", "3", "--loss", "log"], "give one of them"),
        (["train", "x", "-m", "m", "-B", "1", "--intercept", "none"], "give one of them"),
        (["train", "x", "-m", "m", "-p", "0.1"], "-p is for the losses"),
        (["train", "x", "-m", "m", "-w1", "heavy"], "class weight '1=heavy' must be LABEL=W"),
        (["train", "x", "-m", "m", "--regression", "-w1", "2"], "class weights are for classes"),
        (["train", "x", "-m", "m", "--resume"], "--resume needs --checkpoint"),
        (["train", "-", "-m", "m", "--test", "-"], "only one of DATA and --test"),
        (["train", "x", "-v", "3", "--record", "r"], "--record needs a model"),
        (["predict", "x"], "-m"),
        (["predict", "x", "-m", "m", "-b", "1", "--scores"], "not allowed with"),
        (["report"], "RUN.json"),
    ],
)  # fmt: skip
def test_wrong_usage_is_2_and_says_how_it_is_right(place, words, message):
    done = run(*words, code=2)
    assert message in done.stderr
    assert done.stdout == ""
    assert files(place) == []


def test_help_and_version_need_no_numpy():
    for words in (["--version"], ["--help"], ["train", "--help"], ["predict", "--help"], ["report", "--help"]):
        code = (
            "import sys; from pegasos.cli import main; code = main(sys.argv[1:]); "
            "sys.exit(code if 'numpy' not in sys.modules else 99)"
        )
        done = processes.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
        assert "pegasos" in done.stdout
    assert "examples:" in run("train", "--help").stdout
    assert "exit codes:" in run("--help").stdout


def test_help_where_greek_letters_cannot_be_shown(monkeypatch):
    monkeypatch.setitem(ENVIRONMENT, "PYTHONIOENCODING", "ascii")
    assert "? = 1/(C" in run("train", "--help", process=True).stdout


def test_training_imports_neither_statistics_nor_pandas(data, place):
    late = {"pandas", "scipy.stats._stats_py", "matplotlib", "asyncio.events"}
    if not hasattr(sklearn.utils.fixes, "line_search_wolfe1"):  # scikit-learn 1.6 imports it for itself
        late |= {"scipy.optimize"}
    code = f"import sys; from pegasos.cli import main; main(sys.argv[1:]); print(sorted({late} & {{*sys.modules}}))"
    words = ["train", data / "train.svm", "-m", "a.model", "-q", "--test", data / "test.svm", "--record", "run.json"]
    done = processes.run([sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_pandas_is_there_for_who_wants_it_after_a_command(models):
    """Only scikit-learn does not find it, while it is imported; a process that has it keeps it."""
    for first in ("", "import pandas; "):
        code = (
            f"{first}import sys; from pegasos.cli import main; finders = [*sys.meta_path]; main(sys.argv[1:]); "
            "assert ('pandas' in sys.modules) == ('pandas' in vars()), 'loaded by the way'; "
            "assert sys.meta_path == finders; import pandas; print(len(pandas.DataFrame({'a': [1, 2]})))"
        )
        words = [sys.executable, "-c", code, "info", str(models / "two.model")]
        done = processes.run(words, capture_output=True, text=True, check=True)
        assert done.stdout.endswith("\n2\n")


def test_bad_data_are_refused_before_scikit_learn_is_imported(place):
    (place / "bad.svm").write_text("1 1:oops\n")
    code = "import sys; from pegasos.cli import main; print(main(sys.argv[1:]), 'sklearn' in sys.modules)"
    words = ["train", "bad.svm", "-m", "a.model"]
    done = processes.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert done.stdout == "1 False\n"


def test_a_reader_that_leaves_is_no_error_of_ours(data, models, place):
    io.write_svmlight(np.ones((200_000, 1)), np.ones(200_000), place / "long.svm")
    command = [*COMMAND, "predict", "long.svm", "-m", str(models / "two.model")]
    with processes.started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) == 141
        assert process.stderr.read() == b""


def test_a_full_disk_leaves_the_old_file(data, models, place):
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    done = run("predict", data / "test.svm", "-m", models / "two.model", "-o", "/dev/full", code=1)
    assert "No space left" in done.stderr


# --- signals ---------------------------------------------------------------------------------------------------------


def started(*words, **options):
    """The command under way, in a context at whose end it is dead."""
    return processes.started([*COMMAND, *words], env=ENVIRONMENT, text=True, **options)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_an_interrupt_saves_the_model_and_says_the_gap(hard, place, number, code):
    checkpoint = ["--checkpoint", "run.ckpt", "--checkpoint-every", "0"]
    words = ["train", hard, "-m", "a.model", "--record", "run.json", *ENDLESS, *checkpoint]
    with started(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_for(lambda: (place / "run.ckpt").exists(), process)  # the fit is under way
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    model = pegasos.load("a.model")
    assert model.certificate_.reason == "interrupted"
    assert (
        f"interrupted; the model so far (relative gap {model.certificate_.relative_gap:.2e}) is saved in a.model" in err
    )
    assert "not converged (interrupted)" in out
    assert json.loads((place / "run.json").read_text())["certificate"]["reason"] == "interrupted"
    assert files(place) == ["a.model", "run.ckpt", "run.json"]


def test_an_interrupt_while_reading_writes_nothing(place):
    os.mkfifo(place / "pipe.svm")
    with (
        started("train", "pipe.svm", "-m", "a.model", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process,
        opened_by_another(place / "pipe.svm", process) as pipe,
    ):
        pipe.write("1 1:1\n")
        pipe.flush()
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in err
    assert files(place) == ["pipe.svm"]


def opened_by_another(path, process):
    """A pipe, open for writing, once the process has opened it for reading."""
    handles = []

    def there():
        with contextlib.suppress(OSError):  # nobody reads yet
            handles.append(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        return handles

    wait_for(there, process)
    return open(handles[0], "w")


def wait_for(condition, process, seconds=processes.LIMIT):
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def test_a_killed_run_resumes_to_the_same_bits(hard, place):
    words = ["--solver", "pegasos", "--lam", "1e-4", "--tol", "1e-12", "--max-iter", "60", "--seed", "5"]
    run("train", hard, "-m", "straight.model", "-q", *words, code=3)
    saving = ["--checkpoint", "run.ckpt", "--checkpoint-every", "0"]
    with started("train", hard, "-m", "a.model", "-q", *words, *saving, stderr=subprocess.PIPE) as process:
        with contextlib.suppress(AssertionError):  # it may be done first
            wait_for(lambda: (place / "run.ckpt").exists(), process)
        process.kill()
        process.communicate()
    (place / "a.model").unlink(missing_ok=True)
    run("train", hard, "-m", "a.model", "-q", *words, *saving, "--resume", code=3)
    np.testing.assert_array_equal(pegasos.load("a.model").coef_, pegasos.load("straight.model").coef_)


def test_resuming_from_nothing_says_so(data, place):
    done = run("train", data / "train.svm", "-m", "a.model", "--checkpoint", "run.ckpt", "--resume")
    assert "run.ckpt: not there, so the fit begins anew" in done.stderr
    assert files(place) == ["a.model"]


# --- the progress line -----------------------------------------------------------------------------------------------


def on_a_terminal(*words, act=None, columns=100):
    """Run the command with a pseudo-terminal for its standard error; what it wrote there, and the exit code."""
    master, slave = pty.openpty()
    environment = {**ENVIRONMENT, "TERM": "xterm", "COLUMNS": str(columns)}
    command = [*COMMAND, *map(str, words)]
    streams = {"stdout": subprocess.PIPE, "stderr": slave, "stdin": slave}
    with processes.started(command, env=environment, **streams) as process:
        os.close(slave)
        seen = b""
        while True:
            ready, _, _ = select.select([master], [], [], 60)
            assert ready, "silence"
            try:
                piece = os.read(master, 4096)
            except OSError:  # Linux: the other end is closed
                piece = b""
            if not piece:
                break
            seen += piece
            if act is not None and act(seen, process):
                act = None
        out, _ = process.communicate(timeout=60)
    os.close(master)
    return seen.decode(), out.decode(), process.returncode


def test_progress_is_one_line_on_a_terminal(hard, place):
    seen, out, code = on_a_terminal("train", hard, "-m", "a.model", *ENDLESS, "--max-time", "1.5")
    assert code == 3
    assert "\r\x1b[Kreading " in seen
    line = re.compile(
        r"epoch \d+\.\d  [\d.]+[kMG]? rows/s  primal [\d.e+-]+  dual [\d.e+-]+  gap [\d.]+e[+-]\d+  ETA [\d.]+ m?s"
    )
    assert line.search(seen)
    before_advice = seen.partition("pegasos: ")[0]
    assert "\n" not in before_advice.rstrip("\r\n")  # rewritten, never scrolled
    assert before_advice.endswith("\r\x1b[K")  # and gone at the end
    pieces = before_advice.split("\r\x1b[K")
    assert max(map(len, pieces)) < 100
    assert "rows/s" not in out


def test_ctrl_c_on_a_terminal(hard, place):
    def interrupt(seen, process):
        if b"gap" in seen:
            process.send_signal(signal.SIGINT)
            return True
        return False

    seen, _, code = on_a_terminal("train", hard, "-m", "a.model", *ENDLESS, act=interrupt)
    assert code == 130
    assert "interrupted; the model so far (relative gap" in seen
    assert pegasos.load("a.model").certificate_.reason == "interrupted"


@pytest.mark.parametrize("words", [["-q"], []])
def test_quiet_and_dumb_terminals_see_no_progress(data, place, monkeypatch, words):
    if not words:
        monkeypatch.setitem(ENVIRONMENT, "TERM", "dumb")
        environment = {**ENVIRONMENT}
        master, slave = pty.openpty()
        command = [*COMMAND, "train", str(data / "train.svm"), "-m", "a.model"]
        processes.run(command, stdout=subprocess.DEVNULL, stderr=slave, env=environment, check=True)
        os.close(slave)
        ready, _, _ = select.select([master], [], [], 0.2)
        text = b""
        if ready:
            with contextlib.suppress(OSError):
                text = os.read(master, 4096)
        os.close(master)
        assert text == b""
        return
    seen, _, code = on_a_terminal("train", data / "train.svm", "-m", "a.model", *words)
    assert (seen, code) == ("", 0)


class Terminal:
    """A stream that claims to be a terminal."""

    def __init__(self):
        self.text = ""

    def isatty(self):
        return True

    def write(self, text):
        self.text += text

    def flush(self):
        pass


def test_the_estimate_follows_the_gap(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    stream = Terminal()
    with _progress.Progress(quiet=False, stream=stream) as progress:
        progress.fitting(1000, 1e-3, 10**6, None)
        for step in range(3):  # a factor of ten each second: one more to go from 1e-2
            progress.callback(pegasos.Checkpoint(step + 1.0, step + 1.0, 1.0, 0.5, 0.5, 10.0**-step))
    assert "epoch 3.0  1k rows/s  primal 1  dual 0.5  gap 1.00e-02  ETA 1 s" in stream.text


def test_a_time_limit_bounds_the_estimate(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    stream = Terminal()
    with _progress.Progress(quiet=False, stream=stream) as progress:
        progress.fitting(1000, 1e-3, 10**6, 10.0, unit="tokens")
        progress.callback(pegasos.Checkpoint(1.0, 4.0, 1.0, 0.0, 1.0, 1.0))
    assert "ETA 6 s" in stream.text
    assert "250 tokens/s" in stream.text


# --- pieces ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "text"), [(1.0, "1"), (-1, "-1"), (0.1, "0.1"), (1e300, "1e+300"), ("cat", "cat"), (np.float64(3), "3")]
)
def test_labels_are_written_so_that_they_read_back(label, text):
    assert label_text(label) == text
    assert label_from_text(text) == label


def test_a_description_of_a_solver_reads_back():
    from pegasos.cli._describe import spec
    from pegasos.solvers import SOLVERS

    for text in ("auto", "pegasos:batch_size=64,projection=true", "sdca:shrinking=false,blocks=16", "norma:p=0.5"):
        assert spec(_spec.parse(text, SOLVERS, "--solver")) == text


def test_main_in_a_thread_leaves_signals_alone(data, place, capsys):
    import threading

    from pegasos.cli import main

    codes = []
    words = ["train", str(data / "train.svm"), "-m", "a.model", "-q"]
    thread = threading.Thread(target=lambda: codes.append(main(words)))
    thread.start()
    thread.join()
    assert codes == [0]
    assert Path("a.model").exists()
