"""What a contributor does, done to a copy of the package by the text of CONTRIBUTING.md, to the letter."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import processes
import pytest

import pegasos

pytestmark = pytest.mark.unsanitized

ROOT = Path(__file__).parents[1]
RELEASED = ROOT / "tests" / "data" / "files_0.1"


def blocks(heading):
    """The blocks of a section that say which file they are, or change: (kind, file, text)."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.S | re.M)[1]
    return re.findall(r"^```(python|diff) file=(\S+)\n(.*?)^```$", section, re.S | re.M)


def follow(heading, tree):
    """Do what a section says to the copy of the repository in ``tree``; how many files it took."""
    steps = blocks(heading)
    for kind, name, text in steps:
        path = tree / name
        if kind == "python":
            assert not path.exists()
            path.write_text(text, encoding="utf-8")
            continue
        source = path.read_text(encoding="utf-8")
        for hunk in text.split("...\n"):
            lines = hunk.splitlines(keepends=True)
            old = "".join(line[1:] for line in lines if line[0] in " -")
            new = "".join(line[1:] for line in lines if line[0] in " +")
            assert source.count(old) == 1, f"{name} has no place, or several, for\n{hunk}"
            source = source.replace(old, new)
        path.write_text(source, encoding="utf-8")
    return len({name for _, name, _ in steps})


@pytest.fixture
def tree(tmp_path):
    """A copy of the installed package, with its compiled core, laid out as the repository is."""
    package = Path(pegasos.__file__).parent
    shutil.copytree(package, tmp_path / "src" / "pegasos", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def run(tree, *words, **options):
    """A Python that imports the copy."""
    path = os.pathsep.join([str(tree / "src"), str(ROOT / "tests"), str(ROOT / "tests" / "support")])
    done = processes.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        cwd=tree,
        env=os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        **options,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_solver_is_one_file_and_a_line_of_the_table(tree):
    assert follow("Adding a solver", tree) == 2
    program = """if True:
        import json, sys
        import numpy as np
        import pegasos
        from pegasos import LinearSVC, load, save
        from sklearn.model_selection import GridSearchCV

        assert pegasos.__file__.startswith(sys.argv[1]), pegasos.__file__
        rng = np.random.default_rng(0)
        X = rng.normal(size=(60, 3))
        y = X[:, 0] + 0.3 * rng.normal(size=60) > 0
        options = dict(solver="gradient_descent", loss="log", intercept="feature", lam=0.1, max_iter=5000, tol=1e-4)
        model = LinearSVC(**options).fit(X, y)
        exact = LinearSVC(**options | {"solver": "interior_point", "tol": 1e-9}).fit(X, y).certificate_
        c = model.certificate_
        assert c.converged and c.dual <= exact.primal * (1 + 1e-9) and exact.dual <= c.primal * (1 + 1e-9)
        search = GridSearchCV(model, {"solver__every": [5, 20]}, cv=2).fit(X, y)
        assert search.best_params_["solver__every"] in (5, 20)
        model = LinearSVC(**options).set_params(solver__every=7).fit(X, y)
        save(model, "model.safetensors")
        assert load("model.safetensors").solver == model.solver
        cut = LinearSVC(**options | {"max_iter": 20}, checkpoint="fit.ckpt")
        import warnings
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cut.fit(X, y)
        assert np.array_equal(cut.set_params(max_iter=5000).fit(X, y).coef_, LinearSVC(**options).fit(X, y).coef_)
        try:
            LinearSVC(solver="gradient_descent").fit(X, y)
        except ValueError as error:
            assert "cannot minimise loss 'hinge'" in str(error), error
        else:
            raise AssertionError("the hinge loss has no gradient")
        np.savez("rows.npz", X=X, y=y.astype(int))
    """
    run(tree, "-c", program, str(tree))
    with (tree / "rows.svm").open("w") as file:
        file.writelines(f"{sign} 1:{value}\n" for sign, value in ((1, 2.0), (-1, -2.0), (1, 1.0), (-1, -1.5)))
    command = (
        "-m",
        "pegasos",
        "train",
        "rows.svm",
        "-m",
        "made.model",
        "--solver",
        "gradient_descent",
        "--loss",
        "log",
    )
    run(tree, *command, "--intercept", "feature", "--lam", "0.1", "--max-iter", "5000")
    assert "converged" in run(tree, "-m", "pegasos", "info", "made.model")
    for test in ("solvers/test_every_solver.py", "test_docs.py"):
        shutil.copytree(ROOT / "tests" / "support", tree / "tests" / "support", dirs_exist_ok=True)
        (tree / "tests" / test).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "tests" / test, tree / "tests" / test)
    shutil.copy(ROOT / "tests" / "conftest.py", tree / "tests" / "conftest.py")
    shutil.copy(ROOT / "pyproject.toml", tree / "pyproject.toml")
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", "gradient_descent")
    out = run(tree, *words, "tests/solvers/test_every_solver.py", timeout=300)
    assert int(re.search(r"(\d+) passed", out)[1]) >= 10


def test_a_column_of_the_trace_is_one_place(tree):
    assert follow("Adding a column to the trace", tree) == 1
    program = """if True:
        import csv, json, sys, warnings
        import numpy as np
        import pegasos
        from pegasos import LinearSVC, SVC, load, save

        assert pegasos.__file__.startswith(sys.argv[1])
        rng = np.random.default_rng(0)
        X = rng.normal(size=(60, 3))
        y = (X[:, 0] + 0.3 * rng.normal(size=60) > 0).astype(int)
        seen = []
        model = SVC(callback=seen.append).fit(X, y)
        assert seen[-1].evaluations == model.trace_[-1].evaluations > 0
        assert model.trace_.to_frame()["evaluations"].iloc[-1] == model.trace_[-1].evaluations
        model.trace_.to_csv("trace.csv")
        assert "evaluations" in open("trace.csv").readline()
        save(model.set_params(callback=None), "model.safetensors")
        assert load("model.safetensors").trace_[-1].evaluations == model.trace_[-1].evaluations
        for name in json.loads(sys.argv[2]):  # written before there was such a column
            assert np.isnan([record.evaluations for record in load(name).trace_]).all()
        options = dict(solver="sdca", lam=1e-3, tol=1e-9)
        cut = LinearSVC(**options, max_iter=3, checkpoint="fit.ckpt")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cut.fit(X, y)
        assert cut.set_params(max_iter=1000).fit(X, y).trace_[0].evaluations == 0
        stream = LinearSVC(lam=0.1).partial_fit(X, y, classes=[0, 1])
        assert np.isnan(stream.trace_[-1].evaluations)
    """
    models = [str(path) for path in RELEASED.glob("*.model")]
    assert models
    run(tree, "-c", program, str(tree), json.dumps(models))
