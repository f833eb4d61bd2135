"""Bad input is refused in words that name the culprit, before anything changes; odd input is solved."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from pegasos import (
    SDCA,
    SGD,
    SMO,
    SVC,
    SVR,
    CuttingPlane,
    InteriorPoint,
    LinearSVC,
    LinearSVR,
    Norma,
    Pegasos,
    SparseSVC,
)
from pegasos.losses import CrammerSinger, Hinge, Huber, Quantile, SmoothedHinge
from pegasos.solvers import LASVM, Auto

X = np.arange(12.0).reshape(6, 2)
Y = np.array([0, 0, 0, 1, 1, 1])


def bad(value, row=2, col=1, dtype=np.float64):
    A = X.astype(dtype)
    A[row, col] = value
    return A


def csr(data, indices, indptr, shape=(3, 2), index=np.int32):
    """A CSR matrix whose parts SciPy has not looked at."""
    A = sparse.csr_matrix(shape)
    A.data = np.asarray(data, dtype=float)
    A.indices, A.indptr = np.asarray(indices, dtype=index), np.asarray(indptr, dtype=index)
    return A


def as_it_was(model):
    return {k: v for k, v in vars(model).items() if k.endswith("_")}


# --- values of X and y -----------------------------------------------------------------------------------------------

VALUES = [
    pytest.param(bad(np.nan), r"NaN at row 2, column 1", id="nan"),
    pytest.param(bad(np.inf), r"infinity at row 2, column 1", id="inf"),
    pytest.param(bad(-np.inf, dtype=np.float32), r"infinity at row 2, column 1", id="-inf float32"),
    pytest.param(sparse.csr_matrix(bad(np.nan)), r"NaN at row 2, column 1", id="csr nan"),
    pytest.param(sparse.csr_array(bad(np.inf)), r"infinity at row 2, column 1", id="csr inf"),
    pytest.param(sparse.csc_matrix(bad(np.nan, row=5, col=0)), r"NaN at row 5, column 0", id="csc nan"),
    pytest.param(bad(1e200), r"row 2 .*squared norm overflows", id="overflow"),
]


@pytest.mark.parametrize(("A", "message"), VALUES)
@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("model", [LinearSVC(), LinearSVR()], ids=["SVC", "SVR"])
def test_values_are_named(model, A, message, n_jobs):
    with pytest.raises(ValueError, match=message):
        model.set_params(n_jobs=n_jobs).fit(A, Y)


@pytest.mark.parametrize(
    ("A", "message"),
    [
        pytest.param(X[:, 0], "Expected 2D array, got 1D array", id="1-D"),
        pytest.param(X.reshape(3, 2, 2), "(?i)dim.* 3|3.*dim", id="3-D"),
        pytest.param(np.empty((0, 2)), "0 sample", id="no rows"),
        pytest.param(np.empty((6, 0)), "0 feature", id="no columns"),
        pytest.param(X.astype(complex), "(?i)complex", id="complex"),
        pytest.param(np.full((6, 2), "a"), "could not convert string", id="strings"),
        pytest.param(np.full((6, 2), None), "float|NaN", id="None"),
        pytest.param(X[:5], r"inconsistent numbers of samples: \[5, 6\]", id="too short"),
        pytest.param(3.0, "Expected 2D array, got scalar", id="scalar"),
    ],
)
@pytest.mark.parametrize("model", [LinearSVC(), LinearSVR()], ids=["SVC", "SVR"])
def test_shapes_and_types(model, A, message):
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(A, Y)


@pytest.mark.parametrize(
    ("A", "message"),
    [
        (csr([1, 1, 1], [0, 2, 1], [0, 1, 2, 3]), "row 1 has column index 2, outside 0 … 1"),
        (csr([1, 1, 1], [0, -1, 1], [0, 1, 2, 3]), "row 1 has column index -1"),
        (csr([1, 1, 1], [0, 2**33, 1], [0, 1, 2, 3], index=np.int64), "row 1 has column index 8589934592"),
        (csr([1, 1, 1], [0, -(2**40), 1], [0, 1, 2, 3], index=np.int64), "row 1 has column index -1099511627776"),
        (csr([1, 1, 1], [0, 1, 1], [0, 2, 1, 3]), "indptr is wrong at row 1"),
        (csr([1, 1, 1], [0, 1, 1], [0, 1, 2, 7]), "indptr"),
        (csr([1, 1, 1], [0, 1, 1], [0, 1, 2, 2**62], index=np.int64), "indptr"),
        (csr([1, 1, 1], [0, 1, 1], [-1, 1, 2, 3]), "indptr"),
        (csr([1, 1, 1], [0, 1, 1], [1, 1, 2, 3]), "indptr"),
        (csr([1, 1, 1], [0, 1, 1], [0, 1, 3]), "indptr has 3 entries for 3 rows"),
        (csr([1, 1], [0, 1, 1], [0, 1, 2, 3]), "indptr|indices|data|length"),
    ],
)
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_broken_csr(A, message, n_jobs):
    with pytest.raises(ValueError, match=message):
        LinearSVC(n_jobs=n_jobs).fit(A, [0, 1, 1])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros(6), "one class only: 0.0"),
        (np.full(6, "spam"), "one class only: 'spam'"),
        (np.array([0, 0, 0, 1, 1, np.nan]), "NaN at row 5"),
        (np.array([0, 0, np.inf, 1, 1, 1]), "infinity at row 2"),
        (np.array([0.1, 0.2, 0.3, 1.0, 1.5, 2.0]), "Unknown label type"),
        (np.eye(6), "1d array"),
        (None, "target y is None"),
        ([0, 1], "inconsistent"),
    ],
)
def test_labels(y, message):
    with pytest.raises(ValueError, match=message):
        LinearSVC().fit(X, y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (list("abcdef"), "y must be numbers"),
        (np.arange(6) * 1j, "(?i)complex"),
        ([0.0, 1, 2, np.nan, 4, 5], "NaN at row 3"),
        ([0.0, 1, 2, 3, -np.inf, 5], "infinity at row 4"),
        (np.ones((6, 2)), "1d array"),
        (None, "target y is None"),
        ([0.0], "inconsistent"),
    ],
)
def test_targets(y, message):
    with pytest.raises(ValueError, match=message):
        LinearSVR().fit(X, y)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, 1, -1, 1, 1, 1], "negative at row 2"),
        ([1, 1, 1, np.nan, 1, 1], "not finite at row 3"),
        ([1, 1, 1, np.inf, 1, 1], "not finite at row 3"),
        ([1, 1], r"shape \(2,\), but X has 6 rows"),
        (np.ones((6, 1)), r"shape \(6, 1\)"),
        (np.zeros(6), "zero for every row"),
        (list("abcdef"), "(?i)sample_weight|could not convert"),
    ],
)
@pytest.mark.parametrize("model", [LinearSVC(), LinearSVR()], ids=["SVC", "SVR"])
def test_weights(model, weight, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y, sample_weight=weight)


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({7: 2.0}, "class_weight names 7.*classes \\[0, 1\\]"),
        ("even", "balanced"),
        ({0: -1.0}, "class_weight of class 0 is -1.0"),
    ],
)
def test_class_weights(class_weight, message):
    with pytest.raises(ValueError, match=message):
        LinearSVC(class_weight=class_weight).fit(X, Y)


@pytest.mark.parametrize("model", [LinearSVC(), SVC()], ids=["linear", "kernel"])
@pytest.mark.parametrize(
    "labels",
    [
        np.array(["a", np.nan, "b", "a", "b", "a"], dtype=object),
        ["a", np.nan, "b", "a", "b", "a"],
        ["a", None, "b", "a", "b", "a"],
        pd.Series(["a", None, "b", "a", "b", "a"], dtype="string"),
        pd.Series(["a", None, "b", "a", "b", "a"], dtype="category"),
        pl.Series(["a", None, "b", "a", "b", "a"]),
        np.array([1, None, 0, 1, 0, 1], dtype=object),
    ],
    ids=["objects", "list", "none", "string", "category", "polars", "numbers"],
)
def test_missing_labels_are_refused_by_their_row(model, labels):
    with pytest.raises(ValueError, match="Input y contains NaN at row 1"):
        clone(model).fit(X, labels)


@pytest.mark.parametrize("labels", [["a", 1] * 3, np.array(["a", 1] * 3, dtype=object)], ids=["list", "objects"])
def test_text_among_numbers_is_refused(labels):
    with pytest.raises(ValueError, match="y mixes text and other labels: 'a' at row 0, 1 at row 1"):
        LinearSVC().fit(X, labels)
    with pytest.raises(ValueError, match="classes mixes text"):
        LinearSVC().partial_fit(X, Y, classes=["a", 1])


FRAMES = {
    "text": ({"b": list("uvwxyz")}, "column 'b' of X is no numbers: row 0 has 'u'. Encode it first"),
    "number in words": ({"b": [1.0, 2.0, "three", 4.0, 5.0, 6.0]}, "column 'b' of X is no numbers: row 2 has 'three'"),
    "NaN": ({"b": [1.0, 2.0, np.nan, 4.0, 5.0, 6.0]}, "Input X contains NaN at row 2, column 'b'"),
    "infinity": ({"b": [1.0, np.inf, 3.0, 4.0, 5.0, 6.0]}, "Input X contains infinity at row 1, column 'b'"),
    "missing": ({"b": pd.array([1, 2, 3, None, 5, 6], dtype="Int64")}, "Input X contains NaN at row 3, column 'b'"),
}


@pytest.mark.parametrize("model", [LinearSVC(), LinearSVR(), SVC(), SVR(), SparseSVC()], ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_columns_of_frames_are_refused_by_name(model, name, library):
    change, message = FRAMES[name]
    if library is pl and name in ("number in words", "missing"):
        change = {"b": [None if v is pd.NA else v for v in next(iter(change.values()))]}
        if name == "number in words":
            pytest.skip("polars has no columns of mixed types")
    good = {"a": X[:, 0].tolist(), "b": X[:, 1].tolist()}
    fitted = clone(model).fit(library.DataFrame(good), Y)
    wrong = library.DataFrame(good | change)
    with pytest.raises(ValueError, match=message):
        clone(model).fit(wrong, Y)
    with pytest.raises(ValueError, match=message):
        fitted.predict(wrong)


def test_columns_of_the_same_name():
    frame = pd.DataFrame([[1.0, "q"], [2.0, "r"]], columns=["a", "a"])
    with pytest.raises(ValueError, match="column 'a' of X is no numbers: row 0 has 'q'"):
        LinearSVC().fit(frame, [0, 1])


# --- parameters ------------------------------------------------------------------------------------------------------

PARAMETERS = [
    ({"C": 0}, "C=0 must be a number > 0"),
    ({"C": -1.0}, "C=-1.0"),
    ({"C": np.nan}, "C=nan"),
    ({"C": "1"}, "C='1'"),
    ({"C": np.inf}, "C=inf"),
    ({"C": 1e-320}, "C=.*out of range"),
    ({"lam": 0.0}, "lam=0.0 must be a number > 0 or None"),
    ({"tol": -1e-3}, "tol=-0.001 must be a number >= 0"),
    ({"max_iter": 0}, "max_iter=0 must be a whole number >= 1"),
    ({"max_iter": 1.5}, "max_iter=1.5"),
    ({"max_time": 0}, "max_time=0"),
    ({"intercept_scaling": 0.0}, "intercept_scaling=0.0"),
    ({"loss": "hings"}, "loss='hings' is unknown; .*squared_"),
    ({"loss": None}, "loss=None"),
    ({"solver": "newton-cg"}, "solver='newton-cg' is unknown; it can be auto, pegasos, "),
    ({"solver": 3}, "solver=3"),
    ({"intercept": "free"}, "intercept='free' is none of unregularized, feature, subgradient, batch, search"),
    ({"on_interrupt": "stop"}, "on_interrupt='stop' is neither 'raise' nor 'keep'"),
    ({"callback": 3}, "callback=3"),
    ({"n_jobs": 0}, "n_jobs=0"),
    ({"n_jobs": 1.5}, "n_jobs=1.5"),
    ({"random_state": -1}, "random_state=-1"),
    ({"random_state": "seed"}, "random_state='seed'"),
    ({"fit_intercept": "no"}, "fit_intercept='no' must be True or False"),
    ({"warm_start": 2}, "warm_start=2 must be True or False"),
    ({"dual": "foo"}, "dual='foo' must be True, False or 'auto'"),
    ({"verbose": "x"}, "verbose='x' must be a whole number >= 0, True or False"),
    ({"verbose": -1}, "verbose=-1"),
    ({"solver": ["sdca"]}, "solver=.*is unknown"),
    ({"loss": ["hinge"]}, "loss=.*is unknown"),
    ({"intercept": "featur"}, "did you mean 'feature'"),
    ({"on_interrupt": "kep"}, "did you mean 'keep'"),
    ({"solver": "sdac"}, "solver='sdac' is unknown.*did you mean 'sdca'"),
    ({"solver": SDCA}, r"did you mean SDCA\(\), with parentheses"),
]
CLASSIFIER = [
    ({"C": "l2"}, r"C='l2' must be a number > 0; other parameters go by name, as in LinearSVC\(penalty='l2'"),
    ({"loss": "square_hinge"}, "did you mean 'squared_hinge'"),
    ({"loss": "log_loss"}, "did you mean 'log'"),
    ({"multi_class": "over"}, "did you mean 'ovr'"),
    ({"penalty": ["l2"]}, "penalty="),
    ({"penalty": "l1"}, "penalty='l1': only 'l2'"),
    ({"multi_class": "ovo"}, "multi_class='ovo' is neither 'ovr' nor 'crammer_singer'"),
    ({"loss": "squared"}, "loss='squared' is not for LinearSVC, which accepts hinge"),
    ({"loss": Huber()}, "loss='huber' is not for LinearSVC"),
    ({"loss": CrammerSinger(cost=((0, 1, 1),) * 3)}, "cost is 3 × 3, but the data have 2 classes"),
    ({"loss": CrammerSinger(cost=((0, -1), (1, 0)))}, "cost must be"),
    ({"loss": CrammerSinger(cost=((1, 1), (1, 0)))}, "cost must be"),
    (
        {"loss": "crammer_singer", "solver": "interior_point"},
        "'interior_point' cannot minimise loss 'crammer_singer'; it can",
    ),
    ({"loss": "multinomial", "solver": CuttingPlane()}, "'cutting_plane' cannot minimise loss 'multinomial'"),
    ({"solver": "interior_point", "intercept": "batch"}, "'interior_point' cannot learn intercept='batch'; it can"),
    ({"solver": "cutting_plane", "intercept": "subgradient"}, "'cutting_plane' cannot learn intercept='subgradient'"),
    ({"solver": "sdca", "intercept": "batch"}, "'sdca' cannot learn intercept='batch'"),
    ({"solver": "pegasos", "intercept": "batch"}, "batch_size"),
    ({"solver": "norma", "intercept": "search"}, "'norma' cannot learn intercept='search'"),
    ({"solver": InteriorPoint(max_columns=1)}, "columns exceed max_columns=1"),
    ({"solver": SGD(eta=10.0), "lam": 1.0}, "eta=10.0 is too large"),
]
REGRESSOR = [
    ({"epsilon": "x", "loss": "huber"}, "epsilon='x' must be a number >= 0"),
    ({"loss": "epsilon_insensitve"}, "did you mean 'epsilon_insensitive'"),
    ({"loss": "pinball"}, "did you mean 'quantile'"),
    ({"epsilon": -0.1}, "epsilon=-0.1"),
    ({"epsilon": np.nan}, "epsilon=nan"),
    ({"loss": "hinge"}, "loss='hinge' is not for LinearSVR, which accepts epsilon_insensitive"),
    ({"loss": Hinge()}, "loss='hinge' is not for LinearSVR"),
]
TABLE = [
    *((LinearSVC, p, m) for p, m in PARAMETERS + CLASSIFIER),
    *((LinearSVR, p, m) for p, m in PARAMETERS + REGRESSOR),
]


@pytest.mark.parametrize(("kind", "parameters", "message"), TABLE)
def test_parameters_are_refused_before_anything_changes(kind, parameters, message):
    fitted = kind().fit(X, Y)
    before = as_it_was(fitted)
    with pytest.raises(ValueError, match=message):
        fitted.set_params(**parameters).fit(np.hstack([X, X]), Y)
    assert as_it_was(fitted) == before
    with pytest.raises(ValueError, match=message):
        fitted.fit(X, Y)
    fresh = kind(**parameters)
    with pytest.raises(ValueError, match=message):
        fresh.fit(X, Y)
    assert as_it_was(fresh) == {}
    with pytest.raises(NotFittedError):
        fresh.predict(X)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Pegasos(batch_size=0), "batch_size=0"),
        (
            lambda: Pegasos(sampling="random"),
            "sampling='random' is none of auto, streams, permutation, fixed, iid, subset",
        ),
        (lambda: Pegasos(output="best"), "output='best' is none of last, average, suffix, random"),
        (lambda: Pegasos(t0=-1), "t0=-1"),
        (lambda: Norma(p=1.0), "p=1.0"),
        (lambda: SGD(eta=0), "eta=0"),
        (lambda: CuttingPlane(max_planes=1), "max_planes=1"),
        (lambda: Quantile(tau=1.0), "tau=1.0"),
        (lambda: Huber(delta=0), "delta=0"),
        (lambda: SmoothedHinge(gamma=-1), "gamma=-1"),
        (lambda: SmoothedHinge(gamma=True), "gamma=True"),
        (lambda: CrammerSinger(cost="abc"), "cost='abc' must be None or rows of numbers"),
        (lambda: CrammerSinger(cost=3), "cost=3"),
        (lambda: CrammerSinger(cost=((0, 1), (1,))), "cost="),
        (lambda: Pegasos(projection="no"), "projection='no' must be True or False"),
        (lambda: Pegasos(batch_size=True), "batch_size=True"),
        (lambda: Pegasos(t0=True), "t0=True"),
        (lambda: Pegasos(output="avarage"), "did you mean 'average'"),
        (lambda: SDCA(shrinking="x"), "shrinking='x'"),
        (lambda: SDCA(blocks=1.5), "blocks=1.5 must be None or a whole number >= 1"),
        (lambda: SDCA(precision="duoble"), "did you mean 'double'"),
        (lambda: Auto(blocks=0), "blocks=0"),
        (lambda: InteriorPoint(max_columns="wide"), "max_columns='wide'"),
        (lambda: SMO(working_set=True), "working_set=True"),
        (lambda: LASVM(finish="no"), "finish='no'"),
    ],
)
def test_parts_check_themselves(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("data", [(bad(np.nan), Y), (X, np.zeros(6)), (X[:, :1], Y[:3]), (bad(np.inf)[:, 1:], Y)])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_failed_refit_changes_nothing(data, method):
    model = LinearSVC(warm_start=True).fit(X, Y)
    before = dict(vars(model))
    with pytest.raises(ValueError):  # noqa: PT011
        getattr(model, method)(*data) if method == "fit" else model.partial_fit(data[0], data[1] + 9)
    assert vars(model) == before
    model.predict(X)


# --- predicting ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [LinearSVC(), LinearSVR()], ids=["SVC", "SVR"])
def test_predicting(model):
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.fit(X, Y)
    with pytest.raises(ValueError, match=r"3 features, but Linear.* is expecting 2 features"):
        model.predict(np.ones((1, 3)))
    with pytest.raises(ValueError, match="NaN"):
        model.predict([[np.nan, 1.0]])


# --- odd but right ---------------------------------------------------------------------------------------------------


def fitted(model, A, y):
    """A fit that may stop early but is finite and whose certificate holds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(A, y)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    assert np.isfinite(model.predict(A).astype(float)).all()
    c = model.certificate_
    assert c.dual <= c.primal * (1 + 1e-9) or c.gap == 0
    return model


def finite_or_refused(model, A, y):
    try:
        fitted(model, A, y)
    except ValueError as error:
        if "left the range of floating-point numbers; scale the features" not in str(error):
            raise


SOLVERS = ["auto", "sdca", "pegasos", "interior_point", "cutting_plane"]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("scale", [1e150, 1e100, 1e20, 1e-20, 1e-160, 1e-200, 5e-324])
@pytest.mark.parametrize("model", [LinearSVC(), LinearSVR()], ids=["SVC", "SVR"])
def test_extreme_values(model, scale, solver):
    """Right answers or clear errors, never NaN."""
    A = np.random.default_rng(0).choice([-1.0, 1.0], size=(20, 3)) * scale
    finite_or_refused(clone(model).set_params(solver=solver, max_iter=20), A, A[:, 0] > 0)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("scale", [1e30, 1e-30])
def test_the_problem_scales(solver, scale):
    """Features scaled by s with C scaled by 1/s² are the same problem."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(50, 3))
    y = A[:, 0] + 0.3 * rng.normal(size=50) > 0
    one = LinearSVC(solver=solver, tol=1e-2, fit_intercept=False).fit(A, y)
    other = fitted(LinearSVC(solver=solver, tol=1e-2, fit_intercept=False, C=scale**-2), A * scale, y)
    assert other.certificate_.converged
    np.testing.assert_allclose(other.coef_ * scale, one.coef_, rtol=0.2, atol=0.05)


@pytest.mark.parametrize("y", [[1e150, -1e150, 3e149, 1.0], [1e-200, -1e-200, 0, 1e-201], [5e-324, 0, 0, 0], [7.0] * 4])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared", "huber", "quantile", "squared_epsilon_insensitive"])
def test_extreme_targets(y, loss):
    finite_or_refused(LinearSVR(loss=loss, max_iter=50), [[0.0], [1.0], [2.0], [3.0]], y)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
def test_zero_rows_constant_and_empty_columns(layout, solver):
    A = np.array([[0, 0, 1.0, 0], [0, 0, 1.0, 0], [0, -2.0, 1.0, 0], [0, 2.0, 1.0, 0], [0, 1.0, 1.0, 0]])
    model = fitted(LinearSVC(solver=solver, tol=0.05), layout(A), [0, 0, 0, 1, 1])
    assert model.coef_[0, 0] == model.coef_[0, 3] == 0
    assert model.coef_[0, 1] > 0
    fitted(LinearSVR(solver=solver, tol=0.05), layout(A), [0, 0, -2, 2, 1.0])


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
def test_all_zero_data(layout, solver):
    A = layout(np.zeros((4, 2)))
    model = fitted(LinearSVC(solver=solver), A, [0, 1, 1, 1])
    assert not model.coef_.any()
    assert model.predict(A).tolist() == [1] * 4
    assert fitted(LinearSVR(solver=solver, tol=1e-6), A, [3.0, 3.0, 3.0, 9.0]).intercept_ == pytest.approx(3.0, abs=0.3)


def test_unsorted_and_repeated_indices_are_the_same_matrix():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 4))
    y = A[:, 0] > 0
    plain = sparse.csr_matrix(A)
    backwards = csr(A[:, ::-1].ravel(), np.tile([3, 2, 1, 0], 30), np.arange(0, 121, 4), shape=A.shape)
    halves = csr(
        np.repeat(A / 2, 2, axis=1).ravel(), np.tile(np.repeat(range(4), 2), 30), np.arange(0, 241, 8), A.shape
    )
    copies = [M.copy() for M in (backwards, halves)]
    want = LinearSVC(tol=1e-9).fit(plain, y)
    for M, copy in zip((backwards, halves), copies, strict=True):
        got = LinearSVC(tol=1e-9).fit(M, y)
        np.testing.assert_allclose(got.coef_, want.coef_, rtol=1e-4)
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(M, part), getattr(copy, part))


@pytest.mark.parametrize("solver", SOLVERS)
def test_one_row_and_one_column(solver):
    model = fitted(LinearSVR(solver=solver), [[2.0]], [3.0])
    assert model.predict([[2.0]]) == pytest.approx(3.0, abs=0.05)
    model = fitted(LinearSVC(solver=solver, C=100.0, max_iter=5000), [[-1.0], [1.0]], [0, 1])
    assert model.predict([[-1.0], [1.0]]).tolist() == [0, 1]


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, bool, np.float16, object, ">f8"])
def test_other_number_types_are_converted(dtype):
    A = np.array([[0, 1], [1, 1], [0, 0], [1, 0]]).astype(dtype)
    np.testing.assert_array_equal(LinearSVC().fit(A, [0, 1, 0, 1]).predict(A), [0, 1, 0, 1])


def test_input_is_never_written_to():
    A, y, w = X.copy(), Y.copy(), np.arange(1.0, 7)
    for array in (A, y, w):
        array.flags.writeable = False
    LinearSVC().fit(A, y, w).partial_fit(A, y, sample_weight=w)
    np.testing.assert_array_equal(A, X)
