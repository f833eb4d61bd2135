"""Kernel machines in files: model files, pickle, skops, LIBSVM's text models, and rows that stay on disk."""

import json
import pickle
from functools import cache
from io import BytesIO

import numpy as np
import onnxruntime
import pytest
import safetensors.numpy
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from libsvm import svmutil as libsvm
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning

import pegasos
from pegasos import SDCA, SMO, SVC, SVR, Nystroem, Pegasos, io
from pegasos.io.models import container, native
from pegasos.kernels.functions import NATIVE
from pegasos.rows.dataset import mapped_csr

pytestmark = pytest.mark.usefixtures("threads_that_do_not_wait")

X, Y = load_iris(return_X_y=True)
ORDER = np.random.default_rng(0).permutation(len(Y))
X, Y = X[ORDER], Y[ORDER]
NAMES = np.array(["setosa", "versicolor", "virginica"])
SPARSE = sparse.csr_matrix(np.where(X > 3, X, 0))
GRAM = X @ X.T

FITS = {
    **{kernel: (lambda kernel=kernel: SVC(kernel=kernel, gamma=0.1).fit(X, Y)) for kernel in NATIVE},
    "two": lambda: SVC(solver=SMO(working_set=64), class_weight={True: 2.0}).fit(X, Y == 1),
    "texts": lambda: SVC(decision_function_shape="ovo", class_weight="balanced").fit(X, NAMES[Y]),
    "single": lambda: SVC(kernel="laplacian").fit(X.astype(np.float32), Y),
    "sparse": lambda: SVC(kernel="chi2", C=10.0).fit(SPARSE, Y),
    "sparse, long indices": lambda: SVC().fit(
        mapped_csr(SPARSE.data, SPARSE.indices.astype(np.int64), SPARSE.indptr.astype(np.int64), SPARSE.shape),
        Y,
    ),
    "precomputed": lambda: SVC(kernel="precomputed").fit(GRAM, Y),
    "one against the rest": lambda: SVC(multi_class="ovr", solver=SDCA(), intercept="feature").fit(X, Y),
    "a stream": lambda: SVC(solver=Pegasos(batch_size=4), gamma=0.1).partial_fit(X, Y, classes=[0, 1, 2]),
    "a basis": lambda: SVC(solver=Nystroem(n_components=20)).fit(X, Y),
    "regression": lambda: SVR(C=10.0, solver="smo").fit(X, X[:, 0] * X[:, 1]),
    "sparse regression": lambda: SVR(kernel="poly", degree=2, coef0=1.0).fit(SPARSE, X[:, 0]),
    "no support vectors": lambda: SVR(epsilon=100.0).fit(X, X[:, 0]),
    "no support vectors, sparse": lambda: SVR(epsilon=100.0).fit(SPARSE, X[:, 0]),
}


@pytest.fixture(scope="module")
def fitted():
    with pytest.warns(ConvergenceWarning):  # sigmoid is not semi-definite
        return {name: fit() for name, fit in FITS.items()}


def saved(model):
    return native.encode(model)


def loaded(data):
    return native.decode(BytesIO(data), len(data))


def rows_for(model):
    return GRAM if model.kernel == "precomputed" else X


def scores(model, rows):
    return model.predict(rows) if isinstance(model, SVR) else model.decision_function(rows)


def same(ours, theirs):
    """All fitted attributes but the trace, which has its own type."""
    assert vars(ours).keys() == vars(theirs).keys()
    for name, value in vars(theirs).items():
        found = getattr(ours, name)
        if sparse.issparse(value):
            assert (found != value).nnz == 0
            assert (found.dtype, found.shape) == (value.dtype, value.shape)
        elif isinstance(value, np.ndarray):
            assert_array_equal(found, value)
            assert found.shape == value.shape
        elif name == "trace_":
            assert [vars(point) for point in found] == [vars(point) for point in value]
        elif name == "_stream":
            assert (found.kernel, found.lam, found.rows) == (value.kernel, value.lam, value.rows)
        else:
            assert found == value, name


# --- model files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FITS)
def test_everything_comes_back(name, fitted, tmp_path):
    model, path = fitted[name], tmp_path / "model.safetensors"
    pegasos.save(model, path)
    again = pegasos.load(path)
    same(again, model)
    assert_array_equal(scores(again, rows_for(model)), scores(model, rows_for(model)))
    assert saved(again) == path.read_bytes()
    assert again.support_vectors_.dtype == model.support_vectors_.dtype


def test_functions_are_refused_with_the_remedy(tmp_path):
    model = SVC(kernel=lambda a, b: a @ b.T).fit(X, Y)
    with pytest.raises(ValueError, match=r"kernel=<function .* is code, .* kernel='precomputed', or .* pickle"):
        pegasos.save(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def rebuilt(model, change_header=None, **arrays):
    """A model's file with its header changed by a function, and arrays replaced (None: left out)."""
    data = saved(model)
    header, found = container.unpack(BytesIO(data), len(data))
    if change_header is not None:
        change_header(header)
    found = {name: value for name, value in (found | arrays).items() if value is not None}
    return safetensors.numpy.save(found, metadata={container.KEY: json.dumps(header)})


def test_a_loaded_model_learns_on(fitted, tmp_path):
    for name in ("rbf", "one against the rest", "a stream"):
        model = fitted[name]
        pegasos.save(model, tmp_path / "model.safetensors")
        again = pegasos.load(tmp_path / "model.safetensors").partial_fit(X[:50], Y[:50])
        assert again.shape_fit_[0] == model.shape_fit_[0] + 50
        assert again.score(X, Y) > 0.9


def put(*path, value):
    def change(header):
        for key in path[:-1]:
            header = header[key]
        header[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("name", "change", "arrays", "message"),
    [
        ("rbf", put("kernel", "gamma", value=-1), {}, "gamma=-1 should be a number >= 0"),
        ("rbf", put("kernel", "gamma", value="scale"), {}, "gamma='scale' should be a number"),
        ("rbf", put("kernel", "lam", value=0), {}, "lam=0 should be a number > 0"),
        ("rbf", put("kernel", "layout", value="csr"), {}, "support_vectors_.data is missing"),
        ("rbf", put("kernel", "layout", value="none"), {}, "support vectors are missing"),
        ("rbf", put("kernel", "layout", value=[]), {}, "is none of none, dense, csr"),
        ("rbf", put("kernel", "multiclass", value="ovr"), {}, "multiclass='ovr' should be 'ovo'"),
        ("rbf", put("kernel", "fitted_shape", value=[2, 4]), {}, "is no number of one of the 2 rows"),
        ("rbf", put("kernel", "fitted_shape", value=[150, 5]), {}, "fitted_shape"),
        ("rbf", put("kernel", value=None), {}, "kernel=None should have"),
        ("rbf", put("stream", value={}), {}, "stream"),
        ("rbf", put("n_features", value=5), {}, "support_vectors_ has shape|fitted_shape"),
        ("rbf", put("parameters", "kernel", value="magic"), {}, "kernel='magic' is none of"),
        ("rbf", put("parameters", "kernel", value="precomputed"), {}, "square for kernel='precomputed'"),
        ("rbf", put("parameters", "solver", value="norma"), {}, "for the linear estimators"),
        ("rbf", put("parameters", "degree", value=-3), {}, "degree=-3"),
        (
            "rbf",
            None,
            {"n_support_": np.array([1, 2, 3], dtype=np.int32)},
            "n_support_ should be numbers >= 0 that add",
        ),
        ("rbf", None, {"n_support_": np.array([-1, 2, 3], dtype=np.int32)}, "n_support_ should be numbers >= 0"),
        ("rbf", None, {"n_support_": np.array([1, 2], dtype=np.int32)}, r"n_support_ has shape \(2,\)"),
        ("rbf", None, {"n_support_": np.array([1, 2, 3])}, "n_support_ is int64, but should be int32"),
        ("rbf", None, {"dual_coef_": np.zeros((3, 4))}, "dual_coef_ has shape"),
        ("rbf", None, {"intercept_": np.zeros(2)}, "intercept_ has shape"),
        ("rbf", None, {"intercept_": np.array([0, np.nan, 0])}, "intercept_ has values that are not finite"),
        ("rbf", None, {"class_weight_": None}, "class_weight_ is missing"),
        ("rbf", None, {"surplus": np.zeros(3)}, "has no 'surplus'"),
        ("precomputed", None, {"support_": None}, "support_ is missing"),
        ("regression", put("parameters", "epsilon", value=-1), {}, "epsilon"),
        ("sparse", put("n_features", value=2**40), {}, "fitted_shape|columns at most"),
    ],
)
def test_inconsistent_files_are_refused_by_name(name, change, arrays, message, fitted):
    with pytest.raises(ValueError, match=message):
        loaded(rebuilt(fitted[name], change, **arrays))


def test_bad_numbers_are_refused_by_name(fitted):
    model = fitted["chi2"]
    for value, message in ((np.nan, "not finite"), (np.inf, "not finite"), (1e200, "not finite"), (-1.0, "chi2")):
        vectors = model.support_vectors_.copy()
        vectors[3, 1] = value
        with pytest.raises(ValueError, match=message):
            loaded(rebuilt(model, support_vectors_=vectors))
    for value in (-1, 150):
        with pytest.raises(ValueError, match=f"support_ has {value}, which is no number of one of the 150 rows"):
            loaded(rebuilt(model, support_=np.r_[np.int32(value), model.support_[1:]].astype(np.int32)))
    with pytest.raises(ValueError, match="names a row twice"):
        loaded(rebuilt(model, support_=np.r_[model.support_[1], model.support_[1:]].astype(np.int32)))
    with pytest.raises(ValueError, match="support vector 0 with itself is inf"):
        loaded(rebuilt(fitted["poly"], put("parameters", "degree", value=2**31 - 1)))


def test_broken_csr_is_refused_by_name(fitted):
    model = fitted["sparse"]
    vectors = model.support_vectors_
    pointers = vectors.indptr.copy()
    for at, value in ((0, 1), (1, -5), (3, 10**6), (-1, 3)):
        wrong = pointers.copy()
        wrong[at] = value
        with pytest.raises(ValueError, match="indptr should increase from 0"):
            loaded(rebuilt(model, **{"support_vectors_.indptr": wrong}))
    for value in (-1, 4, 2**31 - 1):
        wrong = vectors.indices.copy()
        wrong[2] = value
        with pytest.raises(ValueError, match=f"indices has {value}, which is none of 4 columns"):
            loaded(rebuilt(model, **{"support_vectors_.indices": wrong}))
    with pytest.raises(ValueError, match="out of order, or come twice"):
        loaded(rebuilt(model, **{"support_vectors_.indices": np.zeros_like(vectors.indices)}))
    with pytest.raises(ValueError, match="should be float64"):
        loaded(rebuilt(model, **{"support_vectors_.data": vectors.data.astype(np.int64)}))


@cache
def seeds():
    return saved(SVC(C=2.0).fit(X[:30], Y[:30])), saved(SVR().fit(SPARSE[:30], X[:30, 0]))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damaged_files_are_refused_or_harmless(data):
    raw = bytearray(data.draw(st.sampled_from(seeds())))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        again = loaded(bytes(raw))
        found = scores(again, np.ones((2, again.n_features_in_)))
    except ValueError:
        return
    assert np.isfinite(found).all()
    assert saved(loaded(saved(again))) == saved(again)


def test_rows_whose_scores_overflow_are_refused(fitted):
    with pytest.raises(ValueError, match="the score of row 1 of X is no finite number"):
        fitted["poly"].predict([[1.0] * 4, [1e150] * 4])


@pytest.mark.parametrize("name", FITS)
def test_pickle_and_skops(name, fitted):
    model = fitted[name]
    same(pickle.loads(pickle.dumps(model)), model)
    data = skops.io.dumps(model)
    unknown = skops.io.get_untrusted_types(data=data)
    assert {name for name in unknown if name.startswith("pegasos")} <= {
        "pegasos.estimators.svc.SVC",
        "pegasos.estimators.svr.SVR",
        "pegasos.fit.certificate.Certificate",
        "pegasos.fit.trace.Trace",
        "pegasos.fit.trace.Checkpoint",
        "pegasos.estimators.kernel_partial_fit.KernelStream",
        "pegasos.kernels.functions.Kernel",
        "pegasos.solvers.kernel.nystroem.Nystroem",
        "pegasos.solvers.kernel.smo.SMO",
        "pegasos.solvers.linear.sdca.SDCA",
        "pegasos.solvers.linear.subgradient.Pegasos",
    }
    again = skops.io.loads(data, trusted=unknown)
    assert_array_equal(scores(again, rows_for(model)), scores(model, rows_for(model)))


# --- LIBSVM ----------------------------------------------------------------------------------------------------------

CENTRED = X - X.mean(axis=0)
TARGETS = {"three": Y, "turned": (Y + 1) % 3 * 5 - 3, "two": (Y == 1) * 2 - 1, "swapped": (Y[0] == Y) * 2 - 1}
KERNELS = ["linear", "poly", "rbf", "sigmoid"]


def theirs(path, rows):
    model = libsvm.svm_load_model(str(path))
    labels, _, values = libsvm.svm_predict([], rows, model, "-q")
    return np.array(labels), np.array(values), model


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_we_read_libsvm(kernel, target, tmp_path):
    y, path = TARGETS[target], tmp_path / "model"
    # The buffer of LIBSVM's Python function is too small for ν-SVC of several classes.
    for options in ("-s 0", "-s 1 -n 0.1")[: 2 if len(set(y)) == 2 else 1]:
        trained = libsvm.svm_train(y.tolist(), CENTRED, f"{options} -t {KERNELS.index(kernel)} -g 0.3 -r 0.5 -q")
        libsvm.svm_save_model(str(path), trained)
        ours = io.read_libsvm(path, collapse=False)
        labels, values, model = theirs(path, CENTRED)
        assert_array_equal(ours.predict(CENTRED), labels)
        ours.set_params(decision_function_shape="ovo")
        found = ours.decision_function(CENTRED).reshape(len(CENTRED), -1)
        order = model.get_labels()
        pairs = [(a, b) for i, a in enumerate(order) for b in order[i + 1 :]]
        sign = -1 if len(order) == 2 else 1  # of two classes the second is positive here
        mine = [(a, b) for i, a in enumerate(ours.classes_) for b in ours.classes_[i + 1 :]]
        for column, (a, b) in zip(found.T, mine, strict=True):
            at, turn = (pairs.index((a, b)), 1) if (a, b) in pairs else (pairs.index((b, a)), -1)
            assert_allclose(column, sign * turn * values[:, at], rtol=1e-9, atol=1e-9)
        again = loaded(saved(ours))  # knows no rows, and has no certificate
        assert_array_equal(again.predict(CENTRED), labels)
        assert not hasattr(again, "certificate_")
        assert ours.fit(CENTRED, y).n_features_in_ == 4


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix, lambda a: a.astype(np.float32)])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_libsvm_reads_ours(kernel, layout, target, tmp_path):
    model = SVC(kernel=kernel, gamma=0.3, coef0=0.5, decision_function_shape="ovo").fit(
        layout(CENTRED), TARGETS[target]
    )
    io.write_libsvm(model, tmp_path / "model")
    labels, values, _ = theirs(tmp_path / "model", CENTRED)
    assert_array_equal(labels, model.predict(CENTRED))
    expected = model.decision_function(CENTRED)
    assert_allclose(values[:, 0] if expected.ndim == 1 else values, expected, rtol=1e-9, atol=1e-9)
    again = io.read_libsvm(tmp_path / "model", n_features=4, collapse=False)
    assert_array_equal(again.classes_, model.classes_)
    assert_array_equal(again.n_support_, model.n_support_)
    assert_allclose(again.set_params(decision_function_shape="ovo").decision_function(CENTRED), expected, atol=1e-13)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_ties_are_broken_by_the_order_of_the_file(tmp_path):
    X, y = load_digits(return_X_y=True)
    rng, path = np.random.default_rng(1), tmp_path / "model"
    rows = rng.permutation(len(y))[:400]
    options = "-t 3 -g 0.0003 -r -1 -q"
    libsvm.svm_save_model(str(path), libsvm.svm_train(y[rows].tolist(), X[rows], options))
    expected, _, model = theirs(path, X)
    assert model.get_labels() != sorted(model.get_labels())
    ours = io.read_libsvm(path)
    assert_array_equal(ours.predict(X), expected)
    sorted_order = io.read_libsvm(path)
    del sorted_order._tie_order
    assert (sorted_order.predict(X) != expected).any()  # there are ties
    scores = ours.set_params(decision_function_shape="ovo").decision_function(X)
    assert_array_equal(ours._labels(scores), expected)

    again = loaded(saved(ours))
    assert_array_equal(again.predict(X), expected)
    io.write_libsvm(again, tmp_path / "again")
    labels, _, rewritten = theirs(tmp_path / "again", X)
    assert_array_equal(labels, expected)
    assert rewritten.get_labels() == model.get_labels()
    assert_array_equal(io.read_libsvm(tmp_path / "again").predict(X), expected)

    session = onnxruntime.InferenceSession(
        io.to_onnx(ours, dtype=np.float64).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    assert_array_equal(session.run(["label"], {"X": X})[0], expected)
    fitted = ours.fit(X[rows], y[rows])  # what is fitted here breaks ties as scikit-learn does
    assert fitted._tie_order is None


def test_scores_of_zero_are_lost_by_the_first_in_the_file(tmp_path):
    text = (
        "svm_type c_svc\nkernel_type linear\nnr_class 3\ntotal_sv 3\nrho 0 0 0\nlabel {}\nnr_sv 1 1 1\nSV\n"
        "0 0 1:1\n0 0 1:2\n0 0 1:3\n"
    )
    for labels in ("3 1 2", "1 2 3", "2 3 1"):
        (tmp_path / "model").write_text(text.format(labels))
        ours = io.read_libsvm(tmp_path / "model", collapse=False)
        rows = np.array([[1.0], [-1.0]])
        assert_array_equal(ours.predict(rows), theirs(tmp_path / "model", rows)[0])


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_regression_both_ways(kernel, tmp_path):
    y, path = CENTRED[:, 0] * CENTRED[:, 1], tmp_path / "model"
    for options in ("-s 3", "-s 4"):
        trained = libsvm.svm_train(y, CENTRED, f"{options} -t {KERNELS.index(kernel)} -g 0.3 -r 0.5 -q")
        libsvm.svm_save_model(str(path), trained)
        ours = io.read_libsvm(path, collapse=False)
        assert isinstance(ours, SVR)
        assert_allclose(ours.predict(CENTRED), theirs(path, CENTRED)[0], rtol=1e-9, atol=1e-9)
    model = SVR(kernel=kernel, gamma=0.3, coef0=0.5).fit(CENTRED, y)
    io.write_libsvm(model, path)
    assert_allclose(theirs(path, CENTRED)[0], model.predict(CENTRED), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("target", TARGETS)
def test_precomputed_both_ways(target, tmp_path):
    y, path = TARGETS[target], tmp_path / "model"
    numbered = np.column_stack([np.arange(1, len(y) + 1), GRAM])
    problem = libsvm.svm_problem(y.tolist(), numbered.tolist(), isKernel=True)
    libsvm.svm_save_model(str(path), libsvm.svm_train(problem, "-t 4 -q"))
    ours = io.read_libsvm(path, n_features=len(y))
    rows = [dict(enumerate(row)) for row in numbered.tolist()]
    assert_array_equal(ours.predict(GRAM), theirs(path, rows)[0])
    model = SVC(kernel="precomputed").fit(GRAM, y)
    io.write_libsvm(model, path)
    assert_array_equal(theirs(path, rows)[0], model.predict(GRAM))
    assert_array_equal(io.read_libsvm(path, n_features=len(y)).support_, model.support_)


def test_no_support_vectors_in_libsvm(fitted, tmp_path):
    io.write_libsvm(fitted["no support vectors"], tmp_path / "model")
    assert_allclose(theirs(tmp_path / "model", X)[0], fitted["no support vectors"].predict(X))
    assert_allclose(io.read_libsvm(tmp_path / "model", n_features=4, collapse=False).predict(X[:1]), [6.1])


@pytest.mark.parametrize("kernel", ["laplacian", "chi2", lambda a, b: a @ b.T])
def test_libsvm_lacks_kernels(kernel, tmp_path):
    with pytest.raises(ValueError, match=r"a LIBSVM model has no kernel=.*, but linear, poly, rbf"):
        io.write_libsvm(SVC(kernel=kernel).fit(X, Y), tmp_path / "model")
    assert not list(tmp_path.iterdir())


RBF = (
    b"svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 3\ntotal_sv 3\nrho 0.5 1 2\nlabel 1 -1 7\nnr_sv 1 1 1\n"
    b"SV\n1 2 1:1 3:2 \n-1 3 1:-1 \n-2 -3 2:5 \n"
)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"gamma 0.5\n", b"", "lacks gamma"),
        (b"gamma 0.5", b"gamma -1", "gamma -1.0 above should not be negative"),
        (b"rbf", b"polynomial\ndegree 2.5\ncoef0 0", "degree 2.5 above"),
        (b"rbf", b"polynomial\ndegree 2147483647\ncoef0 9", "cannot be used: the kernel of support vector 0"),
        (b"rho 0.5 1 2", b"rho 0.5 1", "rho above should be 3 numbers, not 2"),
        (b"nr_sv 1 1 1", b"nr_sv 1 2 1", "should list 3 numbers >= 0 that add up to 3"),
        (b"label 1 -1 7", b"label 1 -1 1", "a label comes twice"),
        (b"1 2 1:1 3:2 ", b"1", "line 10: 2 coefficients should come first"),
        (b"1 2 1:1 3:2 ", b"1 1:1 3:2", "line 10: coefficient '1:1'"),
        (b"1 2 1:1 3:2 ", b"1 2 1:nan", "line 10: value 'nan'"),
        (b"1 2 1:1 3:2 ", b"1 2 1:1e200", "cannot be used"),
        (b"1 2 1:1 3:2 ", b"1e200 2 1:1", "squares overflow"),
        (b"1 2 1:1 3:2 ", b"1 2 1:1 2000000000:2", "asks for as many columns"),
        (b"rbf", b"precomputed", "should be 0:NUMBER"),
    ],
)
def test_libsvm_refusals(old, new, message, tmp_path):
    assert RBF.count(old) == 1
    (tmp_path / "model").write_bytes(RBF.replace(old, new))
    with pytest.raises(ValueError, match=message) as caught:
        io.read_libsvm(tmp_path / "model")
    assert str(tmp_path / "model") in str(caught.value)


# --- rows on disk ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [X, SPARSE, X.astype(np.float32)], ids=["dense", "csr", "single"])
def test_datasets_on_disk(rows, tmp_path):
    data = io.write_dataset(rows, NAMES[Y], tmp_path / "folder")
    model, direct = SVC(kernel="laplacian").fit(data), SVC(kernel="laplacian").fit(rows, NAMES[Y])
    assert_array_equal(model.decision_function(data), direct.decision_function(rows))
    assert model.score(data) == direct.score(rows, NAMES[Y])
    assert not isinstance(model.support_vectors_, np.memmap)
    assert_array_equal(loaded(saved(model)).predict(data), direct.predict(rows))
    numbers = io.write_dataset(rows, X[:, 0], tmp_path / "numbers")
    assert_array_equal(SVR().fit(numbers).predict(numbers), SVR().fit(rows, X[:, 0]).predict(rows))
    with pytest.raises(ValueError, match="X has 3 features"):
        clone(model).fit(X, Y).predict(io.write_dataset(X[:, :3], Y, tmp_path / "narrow"))


def test_precomputed_kernels_on_disk(tmp_path):
    data = io.write_dataset(GRAM, Y, tmp_path / "folder")
    model = SVC(kernel="precomputed").fit(data)
    assert_array_equal(model.predict(data), SVC(kernel="precomputed").fit(GRAM, Y).predict(GRAM))
    with pytest.raises(TypeError, match="Sparse precomputed"):
        SVC(kernel="precomputed").fit(io.write_dataset(sparse.csr_matrix(GRAM), Y, tmp_path / "csr"))


def test_bad_rows_on_disk_are_refused_when_predicting(tmp_path):
    rows = X.copy()
    rows[17, 2] = np.nan
    np.save(tmp_path / "x.npy", rows)
    data = io.write_dataset(X, Y, tmp_path / "folder")
    model = SVC().fit(data)
    broken = type(data)(np.load(tmp_path / "x.npy", mmap_mode="r"), data.targets)
    with pytest.raises(ValueError, match="NaN at row 17, column 2"):
        model.predict(broken)
