"""Model files: what comes back is what was saved, to the bit, and nothing that is not a model file gets in."""

import json
import os
import pickle
import stat
import sys
import tracemalloc
from contextlib import suppress
from functools import cache
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import processes
import pytest
import safetensors.numpy
import skops.io
from conftest import CASES, COST
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from safetensors import safe_open
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pegasos
from pegasos import SDCA, SGD, LinearSVC, LinearSVR, Norma, Pegasos, SequenceSVC
from pegasos.io.models import container, native
from pegasos.io.models import plain as plain_module
from pegasos.losses import CrammerSinger, Huber, Loss
from pegasos.solvers import SOLVERS, Auto, CuttingPlane, InteriorPoint
from pegasos.util import atomic

X, Y = load_iris(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
BINARY = (Y == 1).astype(int)
NAMES = np.array(["setosa", "versicolor", "virginica"])
DIABETES = load_diabetes(return_X_y=True)

#: Small fitted models of every kind.
FITS = {
    "binary": lambda: LinearSVC().fit(X, BINARY),
    "multiclass": lambda: LinearSVC(loss="log", C=0.5, fit_intercept=False).fit(X, Y),
    "texts": lambda: LinearSVC(class_weight={"setosa": 2.0, "virginica": 1}).fit(X, NAMES[Y]),
    "objects": lambda: LinearSVC(class_weight="balanced").fit(X, NAMES.astype(object)[Y]),
    "odd texts": lambda: LinearSVC().fit(X, np.array(["", "ü\ud800\n"])[BINARY]),
    "booleans": lambda: LinearSVC(tol=1e-2).fit(X, BINARY == 1),
    "small integers": lambda: LinearSVC(n_jobs=2, random_state=7).fit(X, Y.astype(np.uint8) + 250),
    "big-endian": lambda: LinearSVC().fit(X, Y.astype(">i4")),
    "floats": lambda: LinearSVC(lam=0.01).fit(X.astype(np.float32), Y.astype(np.float32) * 2),
    "crammer_singer": lambda: LinearSVC(loss=CrammerSinger(COST), intercept="feature").fit(X, Y),
    "joint, two classes": lambda: LinearSVC(loss="multinomial").fit(X, BINARY),
    "sparse": lambda: LinearSVC(solver=SDCA(shrinking=False)).fit(sparse.csr_array(X), Y),
    "named features": lambda: LinearSVC().fit(pd.DataFrame(X, columns=["a", "b", "ç", "a b"]), Y),
    "regression": lambda: LinearSVR(C=10.0, epsilon=0.5).fit(*DIABETES),
    "huber": lambda: LinearSVR(loss=Huber(2.0), solver=InteriorPoint(max_columns=50)).fit(*DIABETES),
    "stream": lambda: LinearSVC(lam=1e-2).partial_fit(X, Y, classes=[0, 1, 2]).partial_fit(X, Y),
    "stream of numbers": lambda: LinearSVR(lam=1e-2, loss="squared").partial_fit(*DIABETES),
}


@pytest.fixture(scope="module")
def fitted():
    return {name: fit() for name, fit in FITS.items()}


def saved(model):
    """The bytes that save writes."""
    return native.encode(model)


def loaded(data):
    return native.decode(BytesIO(data), len(data))


def reduced(model):
    """An estimator's attributes as what == compares, but for those a model file leaves out."""
    state = {name: value for name, value in vars(model).items() if name not in ("_stream", "_last_fit", "trace_")}
    state |= {"trace_": [vars(point) for point in model.trace_]} if hasattr(model, "trace_") else {}
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in state.items()}


# --- there and back --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FITS)
def test_everything_comes_back(name, fitted, tmp_path):
    model, path = fitted[name], tmp_path / "model.safetensors"
    pegasos.save(model, path)
    again = pegasos.load(path)
    assert type(again) is type(model)
    assert reduced(again) == reduced(model)
    assert str(again.get_params()) == str(model.get_params())
    for attribute in ("coef_", "intercept_", "classes_", "feature_names_in_"):
        if hasattr(model, attribute):
            ours, theirs = getattr(again, attribute), getattr(model, attribute)
            assert ours.dtype == theirs.dtype.newbyteorder("=")
            assert ours.shape == theirs.shape
            assert ours.flags.writeable
    pegasos.save(again, tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["again.safetensors", "model.safetensors"]


@pytest.mark.parametrize("name", FITS)
def test_a_loaded_model_works(name, fitted):
    model = fitted[name]
    rows, target = DIABETES if isinstance(model, LinearSVR) else (X, Y)
    if hasattr(model, "feature_names_in_"):
        rows = pd.DataFrame(rows, columns=model.feature_names_in_)
    again = loaded(saved(model))
    assert_array_equal(again.predict(rows), model.predict(rows))
    if isinstance(model, LinearSVC):
        assert_array_equal(again.decision_function(rows), model.decision_function(rows))
        assert hasattr(again, "predict_proba") == hasattr(model, "predict_proba")
        target = model.predict(rows)
    if hasattr(model, "predict_proba"):
        assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))
    assert again.score(rows, target) == model.score(rows, target)
    fresh = clone(again).fit(rows, target)
    assert_array_equal(fresh.coef_, clone(model).fit(rows, target).coef_)


@pytest.mark.parametrize("loss", CASES, ids=repr)
def test_every_loss(loss):
    model = LinearSVR(loss=loss).fit(*DIABETES) if loss.kind == "regression" else LinearSVC(loss=loss).fit(X, Y)
    assert loaded(saved(model)).loss == loss


@pytest.mark.parametrize(
    "solver",
    [
        *SOLVERS,
        *(kind() for kind in SOLVERS.values()),
        Auto(blocks=4),
        Pegasos(batch_size=np.int64(8), t0=3, projection=True, sampling="iid", output="average"),
        Norma(p=0.5),
        SGD(eta=np.float32(0.125)),
        SDCA(blocks=2),
        CuttingPlane(max_planes=30),
    ],
    ids=repr,
)
def test_every_solver(solver):
    model = LinearSVC(lam=0.1, tol=0.5).fit(X, BINARY).set_params(solver=solver)
    assert loaded(saved(model)).solver == solver


def test_every_parameter_is_kept_or_left_out():
    """A new parameter of an estimator must be of a kind that model files know, or be left out on purpose."""
    for layout in native.LAYOUTS.values():
        given = layout.kind().get_params()
        kept = plain_module.encode_parameters(layout.kind())
        assert set(given) == set(kept) | (plain_module.LEFT_OUT & set(given))
        assert layout.kind(**plain_module.decode_parameters(layout.kind, kept)).get_params() == given


def test_parameters_may_be_numpys(fitted):
    model = clone(fitted["binary"]).set_params(
        C=np.float64(2), max_iter=np.int64(50), fit_intercept=np.True_, verbose=0
    )
    model.set_params(class_weight={np.int64(0): np.float32(2)}, random_state=np.uint64(2**64 - 1), tol=1).fit(X, BINARY)
    again = loaded(saved(model))
    assert again.class_weight == {0: 2.0}
    assert (again.C, again.max_iter, again.random_state) == (2.0, 50, 2**64 - 1)


def test_what_is_no_data_is_left_out(fitted):
    model = clone(fitted["binary"])
    model.set_params(callback=print, random_state=np.random.RandomState(0), warm_start=True)
    model.set_params(callback=lambda point: None).fit(X, BINARY)
    again = loaded(saved(model))
    assert again.callback is None
    assert again.random_state is None
    assert again.warm_start
    assert again._last_fit is None
    again.fit(X, BINARY)  # afresh
    assert again.certificate_.converged


@pytest.mark.parametrize("solver", ["pegasos", Norma(), SGD(), Pegasos(t0=5.0)], ids=repr)
@pytest.mark.parametrize("intercept", ["feature", "subgradient"])
def test_partial_fit_goes_on(solver, intercept):
    model = LinearSVC(lam=1e-2, solver=solver, intercept=intercept)
    for first in range(0, 90, 30):
        model.partial_fit(X[first : first + 30], Y[first : first + 30], classes=[0, 1, 2])
    again = loaded(saved(model))
    for stream in (model, again):
        stream.partial_fit(X[90:], Y[90:])
    assert_allclose(again.coef_, model.coef_, rtol=1e-9, atol=1e-12)
    assert_allclose(again.intercept_, model.intercept_, rtol=1e-9, atol=1e-12)
    assert (again.n_iter_, len(again.trace_)) == (4, 4)
    assert again._stream.rows == model._stream.rows


def test_partial_fit_goes_on_after_a_fit(fitted):
    model = clone(fitted["multiclass"]).fit(X, Y)
    again = loaded(saved(model))
    assert_array_equal(again.partial_fit(X[::3], Y[::3]).coef_, model.partial_fit(X[::3], Y[::3]).coef_)


@pytest.mark.unsanitized
def test_bytes_do_not_depend_on_the_process(fitted, tmp_path):
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(fitted["texts"]))
    code = (
        "import pathlib, pickle, sys, pegasos\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "pegasos.save(pickle.loads((folder / 'model.pickle').read_bytes()), folder / 'model.safetensors')\n"
    )
    for seed in ("1", "2"):
        env = os.environ | {"PYTHONHASHSEED": seed}
        processes.run([sys.executable, "-c", code, tmp_path], check=True, env=env)
        assert (tmp_path / "model.safetensors").read_bytes() == saved(fitted["texts"])


def test_others_can_read_the_arrays(fitted, tmp_path):
    pegasos.save(fitted["multiclass"], tmp_path / "model.safetensors")
    with safe_open(tmp_path / "model.safetensors", framework="np") as file:
        assert_array_equal(file.get_tensor("coef_"), fitted["multiclass"].coef_)
        header = json.loads(file.metadata()["pegasos"])
    assert (header["format"], header["version"], header["estimator"]) == ("pegasos model", 1, "LinearSVC")
    assert header["parameters"]["C"] == 0.5


# --- the file system -------------------------------------------------------------------------------------------------


#: Saves one model, then again and again starts a process that does nothing but save both in turn, and kills it.
KILLS = """
import itertools, os, pathlib, pickle, random, signal, sys, time
sys.modules.update(pandas=None, pyarrow=None)  # they start threads, which forks do not go together with
import pegasos
folder = pathlib.Path(sys.argv[1])
models = [pickle.loads(path.read_bytes()) for path in sorted(folder.glob("*.pickle"))]
path = folder / "model.safetensors"
pegasos.save(models[0], path)
possible = [path.read_bytes()]
pegasos.save(models[1], path)
possible.append(path.read_bytes())
chance = random.Random(0)
for _ in range(60):
    if (child := os.fork()) == 0:
        for model in itertools.cycle(models):
            pegasos.save(model, path)
    time.sleep(chance.uniform(0, 0.05))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    left = [entry for entry in folder.iterdir() if entry.suffix == ".tmp"]
    assert len(left) <= 1, "what the last one left was not swept"
    print(possible.index(path.read_bytes()), len(left))
pegasos.save(models[0], path)
"""


@pytest.mark.unsanitized
def test_a_kill_leaves_the_old_file_or_the_new(tmp_path):
    """What a process leaves that is killed while it saves is always one of its models, whole."""
    rng = np.random.default_rng(0)
    for k in range(2):
        model = LinearSVC(tol=0.5).fit(rng.normal(size=(4, 100_000)), [0, 1, 0, 1])
        (tmp_path / f"{k}.pickle").write_bytes(pickle.dumps(model))
    alone = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = processes.run([sys.executable, "-c", KILLS, tmp_path], capture_output=True, text=True, env=alone)
    assert done.stderr == ""
    found = [line.split() for line in done.stdout.splitlines()]
    assert len(found) == 60
    assert {which for which, _ in found} == {"0", "1"}
    assert "1" in {left for _, left in found}  # some were really killed while they wrote
    assert not any(path.suffix == ".tmp" for path in tmp_path.iterdir())  # and the next one cleaned up


@pytest.mark.parametrize("call", ["fsync", "replace", "chmod"])
def test_a_failing_save_changes_nothing(call, fitted, tmp_path, monkeypatch):
    path = tmp_path / "model.safetensors"
    pegasos.save(fitted["binary"], path)
    before = path.read_bytes()

    def fail(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(atomic.os, call, fail)
    with pytest.raises(OSError, match="no space left"):
        pegasos.save(fitted["texts"], path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def test_permissions_and_links(fitted, tmp_path):
    real, link = tmp_path / "real.safetensors", tmp_path / "link.safetensors"
    old = os.umask(0o027)
    try:
        pegasos.save(fitted["binary"], real)
        assert stat.S_IMODE(real.stat().st_mode) == 0o640
        real.chmod(0o604)
        link.symlink_to(real)
        pegasos.save(fitted["texts"], link)
    finally:
        os.umask(old)
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o604
    assert real.read_bytes() == saved(fitted["texts"])


def test_paths_that_cannot_be(fitted, tmp_path):
    with pytest.raises(ValueError, match="no regular file"):
        pegasos.save(fitted["binary"], tmp_path)
    with pytest.raises(ValueError, match="no regular file"):
        pegasos.save(fitted["binary"], "/dev/null")
    with pytest.raises(FileNotFoundError):
        pegasos.save(fitted["binary"], tmp_path / "nowhere" / "model")
    with pytest.raises(FileNotFoundError):
        pegasos.load(tmp_path / "missing")
    with pytest.raises(ValueError, match="no regular file"):
        pegasos.load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="no regular file"):
        pegasos.load(tmp_path / "pipe")


# --- what is not saved -----------------------------------------------------------------------------------------------


class MyLoss(Loss):
    name = "hinge"
    kind = "margin"


class MySVC(LinearSVC):
    pass


def spoilt(**attributes):
    model = LinearSVC().fit(X, Y)
    for name, value in attributes.items():
        setattr(model, name, value)
    return model


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MySVC().fit(X, Y), "LinearSVC, LinearSVR, SVC, SparseSVC, SVR, SequenceSVC themselves, not for MySVC"),
        (lambda: make_pipeline(StandardScaler(), LinearSVC()).fit(X, Y), "Pipeline"),
        (lambda: spoilt(loss=MyLoss()), "none of the package's own"),
        (lambda: spoilt(C=-1.0), "C=-1.0 must be a number > 0"),
        (lambda: spoilt(C="1"), "C='1' is not of the type float"),
        (lambda: spoilt(tol=np.inf), "parameter tol=inf is no plain data"),
        (lambda: spoilt(max_iter=2**64), "beyond 64 bits"),
        (lambda: spoilt(random_state=-1), "random_state=-1 must lie between"),
        (lambda: spoilt(random_state=object()), "parameter random_state=<object"),
        (lambda: spoilt(fit_intercept="yes"), "fit_intercept='yes' is not of the type bool"),
        (lambda: spoilt(class_weight={0: "a"}), "class_weight"),
        (lambda: spoilt(class_weight=[1, 2]), "class_weight"),
        (lambda: spoilt(coef_=np.full((3, 4), np.nan)), "not finite"),
        (lambda: spoilt(coef_=np.full((3, 4), 1e200)), "squares overflow"),
        (lambda: spoilt(coef_=np.ones((2, 4))), "coef_ has shape"),
        (lambda: spoilt(coef_=np.ones(4)), "coef_ has shape"),
        (lambda: spoilt(coef_=sparse.csr_array(np.ones((3, 4)))), "coef_ is no float64 array"),
        (lambda: spoilt(classes_=np.array([2, 1, 0])), "increasing"),
        (lambda: spoilt(classes_=np.array([0, 1, 1])), "increasing"),
        (lambda: spoilt(classes_=np.array([0, 1, np.nan])), "not finite"),
        (lambda: spoilt(classes_=np.array([0, "b", "c"], dtype=object)), "type object"),
        (lambda: spoilt(classes_=np.array(["2020", "2021", "2022"], dtype="M8[Y]")), "datetime64"),
        (lambda: spoilt(classes_=np.array([0, 1, 2j])), "complex"),
        (lambda: spoilt(classes_=np.array(["a", "b", "c" * 10_000_000])), "too many and too long"),
        (lambda: spoilt(feature_names_in_=np.array(["a"], dtype=object)), "feature_names should be 4 texts"),
        (lambda: spoilt(feature_names_in_=np.array(["a" * 2**25] * 4, dtype=object)), "feature_names_in_ leaves"),
    ],
)
def test_what_cannot_be_saved_is_refused_before_writing(make, message, tmp_path):
    path = tmp_path / "model"
    with pytest.raises(ValueError, match=message):
        pegasos.save(make(), path)
    assert not path.exists()


def test_unfitted_estimators_are_refused(tmp_path):
    with pytest.raises(NotFittedError):
        pegasos.save(LinearSVC(), tmp_path / "model")
    assert not list(tmp_path.iterdir())


# --- what is not loaded ----------------------------------------------------------------------------------------------


def rebuilt(data, *, table=None, header=None, arrays=None, tail=b""):
    """A file with its safetensors table, our JSON header or its array bytes changed by functions, as raw bytes."""
    length = int.from_bytes(data[:8], "little")
    entries = json.loads(data[8 : 8 + length])
    inner = json.loads(entries["__metadata__"]["pegasos"])
    if header is not None:
        inner = header(inner) or inner
    entries["__metadata__"]["pegasos"] = inner if isinstance(inner, str) else json.dumps(inner)
    if table is not None:
        entries = table(entries) or entries
    text = (entries if isinstance(entries, str) else json.dumps(entries)).encode()
    body = data[8 + length :]
    return len(text).to_bytes(8, "little") + text + (arrays(body) if arrays else body) + tail


def put(*path, value):
    """A function that sets an entry of nested tables."""

    def change(table):
        for key in path[:-1]:
            table = table[key]
        table[path[-1]] = value

    return change


def drop(*path):
    def change(table):
        for key in path[:-1]:
            table = table[key]
        del table[path[-1]]

    return change


PARAMETERS = ("parameters",)
HEADERS = [
    (put("format", value="cookies"), "format is 'cookies'"),
    (drop("format"), "format is None"),
    (put("version", value=2), "version 2 is newer than 1.*upgrade"),
    (put("version", value=0), "version=0"),
    (put("version", value="1"), "version='1'"),
    (put("version", value=True), "version=True"),
    (put("estimator", value="Pipeline"), "none of LinearSVC"),
    (put("estimator", value=["LinearSVC"]), "none of LinearSVC"),
    (put("estimator", value="LinearSVR"), "LinearSVR has no parameter 'class_weight'"),
    (drop("parameters"), "lacks parameters"),
    (put("extra", value=1), "unknown keys: extra"),
    (put("n_features", value=5), "coef_ has shape"),
    (put("n_features", value=4.0), "n_features=4.0"),
    (put("n_features", value=0), "n_features=0"),
    (put("n_features", value=2**60), "n_features="),
    (put("parameters", value=[]), "parameters should be an object"),
    (put(*PARAMETERS, "colour", value=1), "no parameter 'colour'.*upgrade"),
    (put(*PARAMETERS, "return", value=None), "no parameter 'return'"),
    (put(*PARAMETERS, "self", value=None), "no parameter 'self'"),
    (put(*PARAMETERS, "callback", value=None), "no parameter 'callback'"),
    (put(*PARAMETERS, "C", value="x"), "C='x'"),
    (put(*PARAMETERS, "C", value=None), "C=None"),
    (put(*PARAMETERS, "C", value=True), "C=True"),
    (put(*PARAMETERS, "C", value=0), "C=0 must be"),
    (put(*PARAMETERS, "max_iter", value=1.5), "max_iter=1.5"),
    (put(*PARAMETERS, "random_state", value=-3), "random_state=-3"),
    (put(*PARAMETERS, "random_state", value={}), "random_state={}"),
    (put(*PARAMETERS, "n_jobs", value=0), "n_jobs=0"),
    (put(*PARAMETERS, "fit_intercept", value=2), "fit_intercept=2"),
    (put(*PARAMETERS, "loss", value="log_loss"), "did you mean 'log'"),
    (put(*PARAMETERS, "loss", value="squared"), "not for LinearSVC"),
    (put(*PARAMETERS, "loss", value=None), "names none of hinge"),
    (put(*PARAMETERS, "loss", value={"name": ["hinge"]}), "names none of hinge"),
    (put(*PARAMETERS, "loss", value={"name": "hinge", "gamma": 1}), "no parameter 'gamma'"),
    (put(*PARAMETERS, "loss", value={"name": "smoothed_hinge", "gamma": -1}), "gamma=-1 must be"),
    (put(*PARAMETERS, "loss", value={"name": "smoothed_hinge", "gamma": "1"}), "gamma='1' is not"),
    (put(*PARAMETERS, "loss", value={"name": "crammer_singer", "cost": [1, 2]}), "cost="),
    (put(*PARAMETERS, "loss", value={"name": "crammer_singer", "cost": [["0"]]}), "cost="),
    (put(*PARAMETERS, "solver", value="magic"), "solver='magic' is unknown"),
    (put(*PARAMETERS, "solver", value={"name": "os.system"}), "names none of auto"),
    (put(*PARAMETERS, "solver", value={"name": "sdca", "shrinking": "no"}), "shrinking='no' is not of the type bool"),
    (put(*PARAMETERS, "solver", value={"name": "interior_point", "max_columns": "9"}), "max_columns='9'"),
    (put(*PARAMETERS, "solver", value={"name": "pegasos", "sampling": "x"}), "sampling='x'"),
    (put(*PARAMETERS, "solver", value={"name": "pegasos", "t0": "now"}), "t0='now'"),
    (put(*PARAMETERS, "solver", value={"name": "pegasos", "t0": -(2**63) - 1}), "beyond 64 bits"),
    (put(*PARAMETERS, "solver", value={"name": "pegasos", "t0": -(2**63)}), "t0=-9223372036854775808 must be"),
    (put(*PARAMETERS, "intercept", value="none"), "intercept='none'"),
    (put(*PARAMETERS, "on_interrupt", value="hang"), "on_interrupt='hang'"),
    (put(*PARAMETERS, "class_weight", value="heavy"), "class_weight='heavy'"),
    (put(*PARAMETERS, "class_weight", value=[[[], 1]]), "label and its weight"),
    (put(*PARAMETERS, "class_weight", value=[["a", 1], ["a", 2]]), "a label comes once"),
    (put("scalars", value=None), "scalars=None"),
    (put("scalars", "n_iter_", value="many"), "n_iter_='many'"),
    (put("scalars", "n_iter_", value=-1), "n_iter_=-1"),
    (put("scalars", "__class__", value=1), "n_iter_ and nothing else"),
    (put("feature_names", value=["a", "b", "c"]), "4 texts"),
    (put("feature_names", value=["a", "b", "c", 4]), "4 texts"),
    (put("classes", value=["a", "b", "c"]), "classes should have dtype"),
    (put("classes", value={"dtype": "str", "values": ["a", "b"]}), "coef_ has shape"),
    (put("classes", value={"dtype": "str", "values": ["a", "b", "b\0"]}), "increasing"),
    (put("classes", value={"dtype": "object", "values": ["a", "b", 3]}), "texts as values"),
    (put("classes", value={"dtype": "U3", "values": ["a", "b", "c"]}), "classes should have dtype"),
    (put("classes", value={"dtype": [], "values": ["a", "b", "c"]}), "classes should have dtype"),
    (put("classes", value={"dtype": "str", "values": [""] * 30000 + ["a" * 30000]}), "too many and too long"),
    (put("classes", value={"dtype": "str", "values": ["a", "b", "c"]}), "has no 'classes_'"),
    (put("certificate", value={}), "the certificate should have"),
    (put("certificate", value=[]), "the certificate should have"),
    (drop("certificate", "gap"), "the certificate should have .*, but lacks gap"),
    (put("trace", value=["epochs", 7]), "trace=.* should be the names"),
    (put("trace", value=["epochs"] * 6), "trace=.* should be the names"),
    (put("trace", value=["epochs"]), "trace_ should be checkpoints × 1"),
    (put("trace", value=["epoch", "seconds", "primal", "dual", "gap", "relative_gap"]), "lacks the column epochs"),
    (put("certificate", "primal", value="nan"), "primal is 'nan'"),
    (put("certificate", "converged", value=None), "converged is None"),
    (put("certificate", "reason", value=7), "reason is 7"),
    (put("certificate", "dual_per_class", value=[[]]), "dual_per_class"),
    (put("guarantee", value={}), "has no 'guarantee'"),
    (put("stream", value={}), "stream={}"),
    (drop("stream", "rows"), "stream=.*, but lacks rows"),
    (put("stream", "speed", value=1), "stream=.* nothing else, but has speed; upgrade"),
    (put("stream", "seen", value=[1.0] * 4), "seen=.* should be 5 numbers"),
    (put("stream", "lam", value=0), "lam should be a number > 0"),
    (put("stream", "lam", value="1"), "lam='1'"),
    (put("stream", "rows", value=2**63), "rows="),
    (put("stream", "rows", value=0), "rows=0"),
    (put("stream", "t0", value=-1), "t0=-1"),
    (put("stream", "seconds", value=None), "seconds=None"),
    (lambda _: "[]", "the model header is no JSON object"),
    (lambda _: "{", "the model header is not JSON"),
    (lambda _: '{"format": 1, "format": 2}', "'format' twice"),
    (lambda _: '{"format": NaN}', "NaN, which is no number"),
    (lambda _: '{"format": 1e999}', "out of range"),
    (lambda _: '{"format": 18446744073709551616}', "beyond 64 bits"),
    (lambda _: f'{{"format": {"9" * 5000}}}', "beyond 64 bits"),
    (lambda _: "[" * 100_000, "nested too deeply"),
]


@pytest.mark.parametrize(("change", "message"), HEADERS)
def test_wrong_headers(change, message, fitted, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(rebuilt(saved(fitted["stream"]), header=change))
    with pytest.raises(ValueError, match=message) as caught:
        pegasos.load(path)
    assert str(path) in str(caught.value)


def entry(dtype, shape, start, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


TABLES = [
    (drop("__metadata__"), "not a model file of this package"),
    (put("__metadata__", "more", value=""), "'pegasos' and nothing else"),
    (put("__metadata__", value="x"), "not a model file of this package"),
    (put("coef_", value=None), "should have dtype, shape and data_offsets"),
    (put("coef_", "more", value=1), "should have dtype, shape and data_offsets"),
    (put("coef_", "dtype", value="F8_E4M3"), "none of BOOL"),
    (put("coef_", "dtype", value=["F64"]), "none of BOOL"),
    (put("coef_", "shape", value=[3, -4]), "shape that cannot be"),
    (put("coef_", "shape", value=[3, 4.0]), "shape that cannot be"),
    (put("coef_", "shape", value=[3, True]), "shape that cannot be"),
    (put("coef_", "shape", value=[0, 2**63]), "shape that cannot be"),
    (put("coef_", "shape", value=[2**62, 2**62]), "shape that cannot be"),
    (put("coef_", "shape", value="34"), "shape that cannot be"),
    (put("coef_", "shape", value=[3, 2, 2]), "shape that cannot be"),
    (put("coef_", "shape", value=[12]), r"coef_ has shape \(12,\), but should have \(outputs=3, features=4\)"),
    (put("coef_", "shape", value=[4, 3]), "coef_ has shape"),
    (put("coef_", "shape", value=[3, 5]), "needs 120 bytes, but has 96"),
    (put("coef_", "dtype", value="I64"), "coef_ is int64, but should be float64"),
    (put("coef_", "data_offsets", value=[0]), "data_offsets that cannot be"),
    (put("coef_", "data_offsets", value=[8, 104]), "not a valid safetensors file"),
    (lambda t: t.update(other=t.pop("coef_")), "coef_ is missing"),
    (lambda t: t.update(other=t.pop("trace_")), "has no 'other'"),
    (put("trace_", "dtype", value="I64"), "trace_ should be"),
    (lambda t: t["trace_"].update(shape=[12]), "trace_ should be"),
    (lambda t: t.update(extra=entry("U8", [0], 0, 0)), "has no 'extra'"),
    (lambda t: t.update(extra=entry("F64", [1], 0, 8)), "truncated"),
    (drop("trace_"), "damaged"),
    (lambda _: "[1]", "no JSON object"),
    (lambda t: json.dumps(t).replace('"trace_"', '"coef_"'), "'coef_' twice"),
    (lambda t: json.dumps(t)[:-3], "not JSON"),
]


@pytest.mark.parametrize(("change", "message"), TABLES)
def test_wrong_tables(change, message, fitted):
    with pytest.raises(ValueError, match=message):
        loaded(rebuilt(saved(fitted["stream"]), table=change))


def test_unknown_text_is_not_utf_8(fitted):
    data = saved(fitted["binary"])
    with pytest.raises(ValueError, match="not UTF-8"):
        loaded(data[:9] + b"\xff" + data[10:])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e160])
def test_wrong_weights(value, fitted):
    data = saved(fitted["multiclass"])
    start = data.index(fitted["multiclass"].coef_.tobytes())
    with pytest.raises(ValueError, match="coef_ has values that are not finite"):
        loaded(data[: start + 8] + np.float64(value).tobytes() + data[start + 16 :])


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_the_epochs_of_a_trace_are_numbers(value, fitted):
    """Of other columns NaN is what is not known."""
    data, table = saved(fitted["stream"]), fitted["stream"].trace_.columns()
    start = data.index(np.column_stack(list(table.values())).tobytes())
    for column, name in enumerate(table):
        at = start + 8 * column
        changed = data[:at] + np.float64(value).tobytes() + data[at + 8 :]
        if name == "epochs":
            with pytest.raises(ValueError, match="epochs of the trace should be numbers"):
                loaded(changed)
        else:
            assert_array_equal(getattr(loaded(changed).trace_[0], name), value)


def test_booleans_are_zero_or_one(fitted):
    data = saved(fitted["booleans"])
    assert data.endswith(b"\0\1")
    with pytest.raises(ValueError, match="neither 0 nor 1"):
        loaded(data[:-1] + b"\2")


def test_every_truncation_is_noticed(fitted):
    data = saved(fitted["binary"])
    for length in range(len(data)):
        with pytest.raises(ValueError, match="truncated"):
            loaded(data[:length])
    with pytest.raises(ValueError, match="damaged"):
        loaded(data + b"\0")


def test_other_files_are_named_as_such(tmp_path):
    for content, message in [
        (b"", "truncated"),
        (b"solver_type L2R_LR\nnr_class 2\n", "not a model file, or a damaged one"),
        (pickle.dumps(LinearSVC()), "not a model file, or a damaged one"),
        ((2).to_bytes(8, "little") + b"{}", "not a model file of this package"),
    ]:
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(ValueError, match=message):
            pegasos.load(tmp_path / "file")


@pytest.mark.unsanitized
@pytest.mark.parametrize(
    "make",
    [
        lambda data: (2**31).to_bytes(8, "little") + data[8:],
        lambda data: rebuilt(data, table=put("coef_", value=entry("F64", [2**31], 0, 2**34))),
        lambda data: rebuilt(data, header=put("n_features", value=2**40)),
        lambda data: rebuilt(
            data, header=put("classes", value={"dtype": "str", "values": [""] * 99999 + ["a" * 99999]})
        ),
    ],
)
def test_nothing_is_allocated_on_a_promise(make, fitted):
    data = make(saved(fitted["stream"]))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"."):
            loaded(data)
        assert tracemalloc.get_traced_memory()[1] < 20 * 2**20
    finally:
        tracemalloc.stop()


@cache
def seeds():
    return [saved(FITS[name]()) for name in ("binary", "texts", "booleans", "named features", "stream", "regression")]


@st.composite
def mutations(draw):
    """A valid file with a few bytes changed, cut out, doubled or added, or a piece of another file in it."""
    data = bytearray(draw(st.sampled_from(seeds())))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        size = draw(st.integers(0, 12))
        kind = draw(st.sampled_from(["flip", "bytes", "cut", "double", "splice", "digits"]))
        if kind == "flip" and at < len(data):
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "bytes":
            data[at : at + size] = draw(st.binary(min_size=size, max_size=size))
        elif kind == "cut":
            del data[at : at + size]
        elif kind == "double":
            data[at:at] = data[at : at + size]
        elif kind == "digits":
            data[at : at + 1] = draw(st.text('0123456789-.eE"[]{},:', max_size=4)).encode()
        elif kind == "splice":
            other = draw(st.sampled_from(seeds()))
            data[at : at + size] = other[at : at + size]
    if draw(st.booleans()):  # keep the length of the header right, to get further
        end = bytes(data).find(b"}}", 8)
        length = draw(st.sampled_from([int.from_bytes(seeds()[0][:8], "little"), max(end - 6, 0)]))
        data[:8] = length.to_bytes(8, "little")
    return bytes(data)


def check_refused_or_harmless(data):
    """ValueError, or a model with finite scores that survives being saved; nothing else."""
    try:
        model = loaded(data)
    except ValueError:
        return
    again = saved(model)
    assert saved(loaded(again)) == again
    check_scores(model)


def check_scores(model):
    """Finite, or refused by a kernel machine whose kernel overflows for ordinary rows."""
    if model.n_features_in_ > 10_000:  # wide ones take long, and show nothing new
        return
    rows = np.ones((2, model.n_features_in_))
    if isinstance(model, SequenceSVC):
        rows = rows if model._encoder.kind == "columns" else [["u", "w"], ["v"]]
        with suppress(ValueError):  # its grammar allows nothing
            assert set(model.predict([rows])[0]) <= set(model.classes_)
        return
    if hasattr(model, "feature_names_in_"):
        rows = pd.DataFrame(rows, columns=model.feature_names_in_)
    try:
        scores = model.decision_function(rows) if hasattr(model, "classes_") else model.predict(rows)
        assert len(model.predict(rows)) == 2
    except ValueError as error:
        if not hasattr(model, "kernel") or "no finite number" not in str(error):
            raise
        return
    assert np.isfinite(scores).all()


@settings(max_examples=600, deadline=None)
@given(mutations())
def test_damaged_files_are_refused_or_harmless(data):
    check_refused_or_harmless(data)


def test_what_the_fuzzer_found():
    """The corpus of fuzz/fuzz_model.py: files, headers of files, and text models."""
    arrays = container.unpack(BytesIO(seeds()[0]), len(seeds()[0]))[1]
    corpus = sorted((Path(__file__).parents[2] / "fuzz" / "corpus" / "models").iterdir())
    assert len(corpus) > 100
    for path in corpus:
        check_refused_or_harmless(path.read_bytes())
        header = path.read_bytes().decode("utf-8", "replace")
        check_refused_or_harmless(safetensors.numpy.save(arrays, metadata={container.KEY: header}))
        for read in (pegasos.io.read_liblinear, pegasos.io.read_libsvm):
            try:
                model = read(path)
            except ValueError:
                continue
            check_scores(model)


# --- pickle and skops ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FITS)
def test_pickle(name, fitted):
    again = pickle.loads(pickle.dumps(fitted[name]))
    assert reduced(again) == reduced(fitted[name])


#: What a reader of skops files has to trust, beside what skops trusts by itself.
SKOPS_TYPES = {
    "pegasos.fit.certificate.Certificate",
    "pegasos.estimators.partial_fit.Stream",
    "pegasos.fit.trace.Checkpoint",
    "pegasos.fit.trace.Trace",
    "pegasos.estimators.linear.LinearSVC",
    "pegasos.estimators.linear.LinearSVR",
    "pegasos.losses.CrammerSinger",
    "pegasos.losses.Huber",
    "pegasos.solvers.linear.interior_point.InteriorPoint",
    "pegasos.solvers.linear.sdca.SDCA",
}


@pytest.mark.parametrize("name", sorted(FITS.keys() - {"odd texts"}))  # JSON of skops has no lone surrogates
def test_skops(name, fitted):
    data = skops.io.dumps(fitted[name])
    types = skops.io.get_untrusted_types(data=data)
    assert set(types) <= SKOPS_TYPES
    again = skops.io.loads(data, trusted=types)
    assert reduced(again) == reduced(fitted[name])
    rows = DIABETES[0] if isinstance(again, LinearSVR) else X
    rows = pd.DataFrame(rows, columns=again.feature_names_in_) if hasattr(again, "feature_names_in_") else rows
    assert_array_equal(again.predict(rows), fitted[name].predict(rows))


def test_breast_cancer(tmp_path):
    """What the guide shows, on real data."""
    rows, target = load_breast_cancer(return_X_y=True, as_frame=True)
    model = LinearSVC(solver="sdca", tol=0.1).fit(
        StandardScaler().set_output(transform="pandas").fit_transform(rows), target
    )
    pegasos.save(model, tmp_path / "model.safetensors")
    assert (tmp_path / "model.safetensors").stat().st_size < 6000
    assert list(pegasos.load(tmp_path / "model.safetensors").feature_names_in_) == list(rows.columns)
