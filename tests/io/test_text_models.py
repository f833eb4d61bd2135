"""LIBLINEAR's and LIBSVM's text models, against the real packages in both directions."""

import ctypes

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from liblinear import liblinear as core
from liblinear import liblinearutil as liblinear
from libsvm import svmutil as libsvm
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.exceptions import NotFittedError

import pegasos
from pegasos import LinearSVC, LinearSVR, io
from pegasos.losses import Huber, Loss

MCSVM_CS = 4
pytestmark = pytest.mark.usefixtures("threads_that_do_not_wait")

DIGITS = load_digits(return_X_y=True)
DIGITS = DIGITS[0] / 16, DIGITS[1]
CANCER = load_breast_cancer(return_X_y=True)
CANCER = CANCER[0] / abs(CANCER[0]).max(axis=0), CANCER[1] * 2 - 1
SWAPPED = CANCER[0][::-1], CANCER[1][::-1]  # begins with the other label
DIABETES = load_diabetes(return_X_y=True)


def theirs(module, path, X, options=""):
    """Labels and decision values of the other package's model at ``path``, in the order of its labels."""
    load, predict = {liblinear: ("load_model", "predict"), libsvm: ("svm_load_model", "svm_predict")}[module]
    model = getattr(module, load)(str(path))
    if module is liblinear and model.param.solver_type == MCSVM_CS and model.get_nr_class() == 2:
        return *jointly(model, X), model
    labels, _, values = getattr(module, predict)([], X, model, f"-q {options}")
    return np.array(labels), np.array(values), model


def jointly(model, X):
    """LIBLINEAR's predictions for two classes scored jointly, for which its Python function has too small a buffer."""
    values = np.empty((len(X), 2))
    labels = []
    for x, both in zip(X, values, strict=True):
        nodes, _ = core.gen_feature_nodearray(x, feature_max=model.get_nr_feature())
        nodes[-2] = core.feature_node(model.get_nr_feature() + 1 if model.bias >= 0 else -1, model.bias)
        buffer = (ctypes.c_double * 2)()
        labels.append(core.liblinear.predict_values(model, nodes, buffer))
        both[:] = buffer
    return np.array(labels), values


# --- theirs to ours --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [CANCER, SWAPPED, DIGITS], ids=["two", "swapped", "ten"])
@pytest.mark.parametrize("bias", [-1, 0, 1, 2.5])
@pytest.mark.parametrize("solver", [0, 1, 2, 3, 4, 5, 6, 7])
def test_liblinear_classifiers(solver, bias, data, tmp_path):
    X, y = data
    model = liblinear.train(y.tolist(), X, f"-s {solver} -B {bias} -e 0.1 -q")
    liblinear.save_model(str(tmp_path / "model"), model)
    ours = io.read_liblinear(tmp_path / "model")
    assert isinstance(ours, LinearSVC)
    labels, values, model = theirs(liblinear, tmp_path / "model", X)
    ranked = np.sort(values, axis=1)
    clear = np.ones(len(X), dtype=bool)
    if values.shape[1] > 1:  # LIBLINEAR draws random rows, and scores of two classes may agree to all digits
        clear = ranked[:, -1] - ranked[:, -2] > 1e-9
    assert clear.mean() > 0.99
    assert_array_equal(ours.predict(X)[clear], labels[clear])
    order = np.argsort(model.get_labels())
    if len(order) > 2:
        expected = values[:, order]
    else:
        expected = (values[:, 0] - values[:, 1] if solver == 4 else values[:, 0]) * (1 if order[0] else -1)
    assert_allclose(ours.decision_function(X), expected, rtol=1e-12, atol=1e-12)
    assert_allclose(ours.decision_function(sparse.csr_array(X)), expected, rtol=1e-12, atol=1e-12)
    if solver in (0, 6, 7):
        _, probabilities, _ = theirs(liblinear, tmp_path / "model", X, "-b 1")
        assert_allclose(ours.predict_proba(X), probabilities[:, order], rtol=1e-9, atol=1e-12)
    again = tmp_path / "again.safetensors"
    pegasos.save(ours, again)
    assert_array_equal(pegasos.load(again).predict(X), ours.predict(X))
    ours.fit(X, y)  # afresh, with that loss and intercept
    assert ours.certificate_.converged


@pytest.mark.parametrize("bias", [-1, 1])
@pytest.mark.parametrize("solver", [11, 12, 13])
def test_liblinear_regression(solver, bias, tmp_path):
    X, y = DIABETES
    liblinear.save_model(str(tmp_path / "model"), liblinear.train(y, X, f"-s {solver} -B {bias} -c 100 -q"))
    ours = io.read_liblinear(tmp_path / "model")
    assert isinstance(ours, LinearSVR)
    assert ours.coef_.shape == (10,)
    assert_allclose(ours.predict(X), theirs(liblinear, tmp_path / "model", X)[0], rtol=1e-12)


@pytest.mark.parametrize("data", [CANCER, SWAPPED], ids=["two", "swapped"])
@pytest.mark.parametrize("options", ["-s 0", "-s 1 -n 0.1", "-s 0 -b 1"])
def test_libsvm_classifiers(options, data, tmp_path):
    X, y = data
    libsvm.svm_save_model(str(tmp_path / "model"), libsvm.svm_train(y, X, f"{options} -t 0 -q"))
    ours = io.read_libsvm(tmp_path / "model")
    labels, values, model = theirs(libsvm, tmp_path / "model", X)
    assert_array_equal(ours.predict(X), labels)
    sign = 1 if model.get_labels() == [1, -1] else -1
    assert_allclose(ours.decision_function(X), sign * values[:, 0], rtol=1e-9, atol=1e-9)
    assert_array_equal(ours.classes_, [-1, 1])


@pytest.mark.parametrize("options", ["-s 3", "-s 4", "-s 3 -b 1"])
def test_libsvm_regression(options, tmp_path):
    X, y = DIABETES
    libsvm.svm_save_model(str(tmp_path / "model"), libsvm.svm_train(y, X, f"{options} -t 0 -c 10 -q"))
    ours = io.read_libsvm(tmp_path / "model")
    assert_allclose(ours.predict(X), theirs(libsvm, tmp_path / "model", X)[0], rtol=1e-9)


def test_libsvm_features_that_never_come(tmp_path):
    X, y = np.column_stack([CANCER[0], np.zeros(len(CANCER[0]))]), CANCER[1]
    libsvm.svm_save_model(str(tmp_path / "model"), libsvm.svm_train(y, sparse.csr_matrix(X), "-t 0 -q"))
    assert io.read_libsvm(tmp_path / "model").n_features_in_ == 30
    ours = io.read_libsvm(tmp_path / "model", n_features=31)
    assert_array_equal(ours.predict(X), theirs(libsvm, tmp_path / "model", X)[0])
    for wrong in (29, 0, 1.5, True):
        with pytest.raises(ValueError, match="n_features"):
            io.read_libsvm(tmp_path / "model", n_features=wrong)


# --- ours to theirs --------------------------------------------------------------------------------------------------

CLASSIFIERS = [
    LinearSVC(),
    LinearSVC(loss="squared_hinge", fit_intercept=False),
    LinearSVC(loss="smoothed_hinge", intercept="feature", intercept_scaling=3.0),
    LinearSVC(loss="log", tol=1e-2),
    LinearSVC(multi_class="crammer_singer"),
    LinearSVC(loss="multinomial", C=0.1),
]


@pytest.mark.parametrize("data", [CANCER, DIGITS], ids=["two", "ten"])
@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
def test_liblinear_reads_our_classifiers(model, data, tmp_path):
    X, y = data
    model.fit(X, y)
    io.write_liblinear(model, tmp_path / "model")
    labels, values, other = theirs(liblinear, tmp_path / "model", X)
    assert_array_equal(labels, model.predict(X))
    assert other.get_labels() == ([1, -1] if len(model.classes_) == 2 else list(range(10)))
    expected = model.decision_function(X)
    assert_allclose(values[:, 0] if expected.ndim == 1 else values, expected, rtol=1e-10, atol=1e-12)
    if model.loss == "log" or (model.loss == "multinomial" and len(model.classes_) == 2):
        _, probabilities, _ = theirs(liblinear, tmp_path / "model", X, "-b 1")
        order = np.argsort(other.get_labels())
        assert_allclose(probabilities[:, order], model.predict_proba(X), rtol=1e-9, atol=1e-12)
    again = io.read_liblinear(tmp_path / "model")
    assert_array_equal(again.coef_, model.coef_)
    assert_array_equal(again.intercept_, model.intercept_)
    assert_array_equal(again.classes_, model.classes_)


REGRESSORS = [
    LinearSVR(C=10.0),
    LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.1, fit_intercept=False),
    LinearSVR(loss=Huber(2.0)),
    LinearSVR(loss="quantile"),
    LinearSVR(loss="squared"),
]


@pytest.mark.parametrize("model", REGRESSORS, ids=str)
def test_both_read_our_regressors(model, tmp_path):
    X, y = DIABETES
    model.fit(X, y)
    for module, write, read in (
        (liblinear, io.write_liblinear, io.read_liblinear),
        (libsvm, io.write_libsvm, io.read_libsvm),
    ):
        write(model, tmp_path / "model")
        assert_allclose(theirs(module, tmp_path / "model", X)[0], model.predict(X), rtol=1e-10)
        again = read(tmp_path / "model")
        assert_array_equal(again.coef_, model.coef_)
        assert_array_equal(again.intercept_, model.intercept_)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
def test_libsvm_reads_our_classifiers(model, tmp_path):
    X, y = CANCER
    model.fit(X, y)
    io.write_libsvm(model, tmp_path / "model")
    labels, values, other = theirs(libsvm, tmp_path / "model", X)
    assert other.get_labels() == [1, -1]
    assert_array_equal(labels, model.predict(X))
    assert_allclose(values[:, 0], model.decision_function(X), rtol=1e-10, atol=1e-12)
    again = io.read_libsvm(tmp_path / "model", n_features=X.shape[1])
    assert_array_equal(again.coef_, model.coef_)
    assert_array_equal(again.intercept_, model.intercept_)


def test_zero_weights(tmp_path):
    X = [[0.0, 0.0], [0.0, 0.0]]
    model = LinearSVC().fit(X, [3, 5])
    for module, write in ((liblinear, io.write_liblinear), (libsvm, io.write_libsvm)):
        write(model, tmp_path / "model")
        assert_array_equal(theirs(module, tmp_path / "model", X)[0], model.predict(X))
    assert io.read_libsvm(tmp_path / "model", n_features=2).n_features_in_ == 2


# --- what cannot be written ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [io.write_liblinear, io.write_libsvm])
@pytest.mark.parametrize("labels", [["a", "b"], [0.5, 1.5], [0, 2**31], [0, 2**63 - 1]], ids=str)
def test_labels_must_be_whole_numbers(labels, write, tmp_path):
    model = LinearSVC().fit([[0.0], [1.0]], [0, 1])
    model.classes_ = np.array(labels)
    with pytest.raises(ValueError, match="whole numbers below"):
        write(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("write", [io.write_liblinear, io.write_libsvm])
def test_other_labels_become_whole_numbers(write, tmp_path):
    for labels in ([False, True], [1.0, 2.0], np.array([4, 250], dtype=np.uint8)):
        write(LinearSVC().fit([[0.0], [1.0]], labels), tmp_path / "model")
        assert "label {:.0f} {:.0f}\n".format(*labels[::-1]) in (tmp_path / "model").read_text()


@pytest.mark.parametrize("write", [io.write_liblinear, io.write_libsvm, lambda model, _: io.to_onnx(model)])
def test_what_cannot_be_written(write, tmp_path):
    with pytest.raises(NotFittedError):
        write(LinearSVC(), tmp_path / "model")
    with pytest.raises(ValueError, match="not of dict"):
        write({}, tmp_path / "model")
    broken = LinearSVC().fit([[0.0], [1.0]], [0, 1])
    broken.coef_[0, 0] = np.nan
    with pytest.raises(ValueError, match="not finite"):
        write(broken, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_liblinear_has_no_number_for_other_losses(tmp_path):
    class Mine(Loss):
        name, kind = "mine", "margin"

    model = LinearSVC().fit([[0.0], [1.0]], [0, 1]).set_params(loss=Mine())
    with pytest.raises(ValueError, match="loss 'mine' cannot be written as a LIBLINEAR model, which knows hinge"):
        io.write_liblinear(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_libsvm_has_no_one_vs_rest(tmp_path):
    with pytest.raises(ValueError, match="10 classes compares them in pairs"):
        io.write_libsvm(LinearSVC(tol=0.1).fit(*DIGITS), tmp_path / "model")


# --- what cannot be read ---------------------------------------------------------------------------------------------

LIBLINEAR = b"solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias -1\nw\n0.5 \n-2e-1 \n"
LIBSVM = (
    b"svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 2\nrho 0.5\nlabel 1 -1\nnr_sv 1 1\n"
    b"SV\n1 1:1 3:2 \n-1 1:-1 \n"
)


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_line_endings_and_blank_lines(ending, tmp_path):
    (tmp_path / "model").write_bytes(LIBLINEAR.replace(b"\n", ending) + 2 * ending)
    assert_array_equal(io.read_liblinear(tmp_path / "model").coef_, [[0.5, -0.2]])
    (tmp_path / "model").write_bytes(LIBSVM.replace(b"\n", ending) + 2 * ending)
    assert_array_equal(io.read_libsvm(tmp_path / "model").coef_, [[2, 0, 2]])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"L2R_LR", b"L2R_SVC", "line 6: solver_type 'L2R_SVC' above is none of"),
        (b"L2R_LR", b"ONECLASS_SVM", "'ONECLASS_SVM' above is none of"),
        (b"L2R_LR", b"L2R_L2LOSS_SVR", "nr_class 2 and no label line"),
        (b"solver_type L2R_LR\n", b"", "lacks solver_type"),
        (b"L2R_LR", b"L2R_LR L2R_LR", "line 1: solver_type should be followed by one value, not 2"),
        (b"nr_class 2", b"nr_class 1", "nr_class 1 above"),
        (b"nr_class 2", b"nr_class two", "line 2: nr_class 'two' is no whole number"),
        (b"nr_class 2", b"nr_class 3", "should list 3 labels"),
        (b"nr_class 2", b"nr_class 99999999999", "no whole number"),
        (b"label 1 -1", b"label 1 1", "a label comes twice"),
        (b"label 1 -1", b"label 1 a", "line 3: label 'a'"),
        (b"label 1 -1\n", b"", "should list 2 labels"),
        (b"label 1 -1", b"label 1 -1\nlabel 1 -1", "line 4: label comes twice"),
        (b"label", b"labels", "line 3: 'labels' is none of"),
        (b"nr_feature 2", b"nr_feature 3", "truncated: 3 lines of weights"),
        (b"nr_feature 2", b"nr_feature 2000000000", "truncated"),
        (b"nr_feature 2", b"nr_feature 1", "line 8: 1 lines of weights should follow"),
        (b"nr_feature 2", b"nr_feature -2", "nr_feature '-2'"),
        (b"bias -1", b"bias 1", "truncated: 3 lines"),
        (b"bias -1", b"bias nan", "bias 'nan' is no finite number"),
        (b"bias -1", b"bias -1\nrho 1", "one-class"),
        (b"0.5", b"inf", "line 7: weight 'inf' is no finite number"),
        (b"0.5", b"1e999", "line 7: weight '1e999'"),
        (b"0.5", b"0_5", "weight '0_5'"),
        (b"0.5", b"1e200", "squares overflow"),
        (b"0.5", b"0.5 0.5", "line 7: 2 weights, but the model has 1"),
        (b"0.5 ", b"", "line 7: 0 weights"),
        (b"0.5", "½".encode(), "line 7: byte 0xc2 at column 1"),
        (b"w\n0.5 \n-2e-1 \n", b"", "line 5: the file ends before the line 'w'"),
        (LIBLINEAR, b"", "ends before"),
        (b"nr_feature 2\nbias -1\nw\n0.5 \n-2e-1 \n", b"nr_feature 0\nbias -1\nw\n", "no features"),
    ],
)
def test_liblinear_refusals(old, new, message, tmp_path):
    assert LIBLINEAR.count(old) == 1
    (tmp_path / "model").write_bytes(LIBLINEAR.replace(old, new))
    with pytest.raises(ValueError, match=message) as caught:
        io.read_liblinear(tmp_path / "model")
    assert str(tmp_path / "model") in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"c_svc", b"one_class", "'one_class' above is none of"),
        (b"c_svc", b"epsilon_svr", "no label line"),
        (b"linear", b"rbf", "line 8: the header above lacks gamma"),
        (b"linear", b"laplacian", "'laplacian' above is none of linear, polynomial"),
        (b"nr_class 2", b"nr_class 3", "should list 3 labels"),
        (b"nr_class 2", b"nr_class 1", "nr_class 1 above should lie between 2 and"),
        (b"total_sv 2", b"total_sv 3", "add up to 3"),
        (b"total_sv 2\nrho 0.5\nlabel 1 -1\nnr_sv 1 1", b"total_sv 3\nrho 0.5\nlabel 1 -1\nnr_sv 2 1", "truncated"),
        (
            b"total_sv 2\nrho 0.5\nlabel 1 -1\nnr_sv 1 1",
            b"total_sv 1\nrho 0.5\nlabel 1 -1\nnr_sv 1 0",
            "line 10: total_sv is 1",
        ),
        (b"nr_sv 1 1", b"nr_sv 3 -1", "two numbers >= 0"),
        (b"rho 0.5", b"rho 0.5 0.5", "rho above should be one number"),
        (b"rho 0.5\n", b"", "lacks rho"),
        (b"label 1 -1", b"label 1 1", "comes twice"),
        (b"label 1 -1\n", b"", "should list two labels"),
        (b"1 1:1 3:2", b"1 3:1 1:2", "line 9: the indices should increase"),
        (b"1 1:1 3:2", b"1 1:1 1:2", "line 9: the indices should increase"),
        (b"1 1:1 3:2", b"1 0:1 3:2", "line 9: the indices should increase from 1"),
        (b"1 1:1 3:2", b"1 1:1 3", "line 9: '3' is no index:value"),
        (b"1 1:1 3:2", b"1 1:x 3:2", "line 9: value 'x'"),
        (b"1 1:1 3:2", b"1 -1:1 3:2", "line 9: index '-1'"),
        (b"1 1:1 3:2", b"x 1:1 3:2", "line 9: coefficient 'x'"),
        (b"1 1:1 3:2", b"1 1:1 2000000000:2", "line 9: index 2000000000 asks for as many weights"),
        (b"1 1:1 3:2", b"1e200 1:1e200 3:2", "squares overflow"),
        (b"1 1:1 3:2 \n", b"\n", "line 9: a blank line"),
        (b"SV\n1 1:1 3:2 \n-1 1:-1 \n", b"", "ends before the line 'SV'"),
    ],
)
def test_libsvm_refusals(old, new, message, tmp_path):
    assert LIBSVM.count(old) == 1
    (tmp_path / "model").write_bytes(LIBSVM.replace(old, new))
    with pytest.raises(ValueError, match=message) as caught:
        io.read_libsvm(tmp_path / "model")
    assert str(tmp_path / "model") in str(caught.value)


WORDS = [
    b"w",
    b"SV",
    b"\n",
    b" ",
    b"-1",
    b"0",
    b"2",
    b"1e308",
    b"-1e308",
    b"nan",
    b"1:1",
    b"3:-2.5",
    b":",
    b"label",
    b"nr_sv",
]


@settings(max_examples=500, deadline=None)
@given(
    st.sampled_from([LIBLINEAR, LIBSVM]),
    st.lists(
        st.tuples(st.integers(0, 120), st.integers(0, 6), st.sampled_from(WORDS) | st.binary(max_size=3)), max_size=4
    ),
)
def test_damaged_text_is_refused_or_harmless(tmp_path_factory, text, changes):
    for at, cut, piece in changes:
        text = text[:at] + piece + text[at + cut :]
    path = tmp_path_factory.getbasetemp() / "mutated"
    path.write_bytes(text)
    for read in (io.read_liblinear, io.read_libsvm):
        try:
            model = read(path)
        except ValueError:
            continue
        assert np.isfinite(model.predict(np.ones((1, model.n_features_in_)))).all()
