"""Kernel machines on the command line: train, predict, evaluate, info, export, report, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_svmlight_file

import pegasos
from pegasos import SVC, SVR, io
from pegasos.cli import main

X, Y = load_digits(return_X_y=True)


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    io.write_svmlight(X[:200] / 16, Y[:200], "train.svm")
    io.write_svmlight(X[200:300] / 16, Y[200:300], "test.svm")
    io.write_svmlight(X[:200, 1:] / 16, X[:200, 2], "prices.svm")
    return tmp_path


def run(capsys, *words, code=0):
    assert main(list(words)) == code, capsys.readouterr()
    return capsys.readouterr()


@pytest.mark.parametrize("solver", ["auto", "smo", "lasvm"])
def test_without_a_bias(place, capsys, solver):
    words = ["--kernel", "rbf", "--solver", solver, "--intercept", "none", "--tol", "0.2"]
    run(capsys, "train", "train.svm", "-m", "a.model", *words)
    model = pegasos.load("a.model")
    assert model.fit_intercept is False
    assert set(model.intercept_) == {0.0}
    run(capsys, "export", "a.model", "a.libsvm")
    assert set(io.read_libsvm("a.libsvm").intercept_) == {0.0}


def test_the_whole_way(place, capsys):
    words = ["--kernel", "poly", "-g", "0.5", "-d", "2", "-r", "1", "--C", "3", "--cache-size", "50"]
    said = run(capsys, "train", "train.svm", "-m", "a.model", *words, "--test", "test.svm", "--record", "a.json").out
    rows, y = load_svmlight_file("train.svm")
    test, truth = load_svmlight_file("test.svm", n_features=rows.shape[1])
    direct = SVC(kernel="poly", gamma=0.5, degree=2, coef0=1.0, C=3.0, random_state=0, cache_size=50.0).fit(rows, y)
    model = pegasos.load("a.model")
    np.testing.assert_array_equal(model.decision_function(test), direct.decision_function(test))
    assert f"poly kernel, gamma 0.5, degree 2, coef0 1: {len(direct.support_)} support vectors" in said
    record = json.loads((place / "a.json").read_text("utf-8"))
    evaluations = direct.n_kernel_evaluations_
    assert record["kernel"] == {
        "name": "poly", "gamma": 0.5, "degree": 2, "coef0": 1.0,
        "support_vectors": len(direct.support_), "evaluations": evaluations,
    }  # fmt: skip
    assert record["model"]["parameters"]["kernel"] == "poly"
    assert record["features"] is None
    labels = [int(word) for word in run(capsys, "predict", "test.svm", "-m", "a.model").out.split()]
    np.testing.assert_array_equal(labels, direct.predict(test))
    lines = run(capsys, "predict", "test.svm", "-m", "a.model", "--scores").out.splitlines()
    assert lines[0] == "labels 0 1 2 3 4 5 6 7 8 9"
    np.testing.assert_array_equal([float(w) for w in lines[1].split()[1:]], direct.decision_function(test)[0])
    found = json.loads(run(capsys, "evaluate", "test.svm", "-m", "a.model", "--json").out)
    assert found["metrics"]["accuracy"] == direct.score(test, truth)
    facts = json.loads(run(capsys, "info", "a.model", "--json").out)
    assert (facts["kernel"], facts["gamma"], facts["degree"]) == ("poly", 0.5, 2)
    assert facts["kernel evaluations"] == evaluations
    for name in ("a.libsvm", "a.onnx"):
        run(capsys, "export", "a.model", name)
    assert run(capsys, "predict", "test.svm", "-m", "a.libsvm").out.split() == [str(label) for label in labels]
    assert "LinearSVC or LinearSVR, not of SVC" in run(capsys, "export", "a.model", "a.liblinear", code=1).err
    run(capsys, "report", "a.json", "-o", "a.html")
    page = (place / "a.html").read_text("utf-8")
    assert "SVC with poly kernel" in page
    assert "kernel evaluations" in page
    assert (
        "no probabilities; use --scores" in run(capsys, "predict", "test.svm", "-m", "a.model", "-b", "1", code=1).err
    )


def test_regression_folders_and_cross_validation(place, capsys):
    run(capsys, "convert", "prices.svm", "folder", "-q")
    run(capsys, "train", "folder", "-m", "p.model", "--regression", "--kernel", "laplacian", "-p", "0.2", "-q")
    rows, y = load_svmlight_file("prices.svm")
    np.testing.assert_array_equal(
        pegasos.load("p.model").predict(rows), SVR(kernel="laplacian", epsilon=0.2).fit(rows, y).predict(rows)
    )
    assert "r2" in run(capsys, "evaluate", "folder", "-m", "p.model").out
    assert "cross-validation accuracy" in run(capsys, "train", "train.svm", "-v", "3", "--kernel", "rbf").out
    run(capsys, "train", "train.svm", "-m", "s.model", "--kernel", "rbf", "--solver", "smo:working_set=64", "-q")
    assert pegasos.load("s.model").solver == pegasos.SMO(working_set=64)


def test_a_limit_is_said_and_resumed(place, capsys):
    words = ["train", "train.svm", "-m", "a.model", "--kernel", "rbf", "--checkpoint", "a.ckpt", "-e", "1e-9"]
    said = run(capsys, *words, "--max-iter", "20", code=3).err
    assert "raise --max-iter" in said
    run(capsys, *words, "--resume", "-q")
    run(capsys, "train", "train.svm", "-m", "b.model", "--kernel", "rbf", "-e", "1e-9", "-q")
    rows, _ = load_svmlight_file("train.svm")
    found, straight = pegasos.load("a.model"), pegasos.load("b.model")  # the limit cut a working set in two
    np.testing.assert_allclose(found.decision_function(rows), straight.decision_function(rows), rtol=1e-6)
    assert found.certificate_.converged


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--gamma", "1"], "--gamma is for kernel machines; add --kernel"),
        (["--kernel", "linear", "--gamma", "1"], "--gamma is for --kernel poly, rbf"),
        (["--kernel", "rbf", "-d", "2"], "--degree is for --kernel poly, not rbf"),
        (["--kernel", "rbf", "--gamma", "-1"], "must not be negative"),
        (["--kernel", "magic"], "invalid choice: 'magic'"),
        (["--kernel", "rbf", "-s", "3"], "-s is LIBLINEAR's number"),
        (["--kernel", "rbf", "-p", "1"], "add --regression"),
        (["--kernel", "rbf", "--solver", "norma"], "--solver norma is for linear machines"),
        (["--kernel", "rbf", "--solver", "magic"], "'magic' is unknown"),
        (["--kernel", "rbf", "--format", "liblinear"], "a liblinear model has no rbf kernel machines"),
        (["--kernel", "chi2", "--format", "libsvm"], "a libsvm model has no chi2 kernel machines"),
        (["--kernel", "rbf", "-c", "1", "--lam", "1"], "say the same thing"),
        (["--kernel", "rbf", "--regression", "-w1", "2"], "class weights are for classes"),
    ],
)
def test_wrong_usage(words, message, place, capsys):
    assert message in run(capsys, "train", "train.svm", "-m", "x", *words, code=2).err
    assert not (place / "x").exists()
