"""What all compared methods keep: one kind of result, limits, seeds, layouts, refusals by name."""

import inspect

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_moons
from sklearn.metrics.pairwise import rbf_kernel

import pegasos
from pegasos import SVC, experiments
from pegasos.experiments import METHODS, Task

OWN_SIZE = {"ramp"}  # whose size is what it is
NEW_POINTS = {"cpsp", "csvm", "reduced-set"}
ONLY_RBF = {*NEW_POINTS, "zhan-shen"}


def moons(m=160, noise=0.25):
    X, y = make_moons(m, noise=noise, random_state=0)
    return X, np.where(y == 1, "up", "down")


@pytest.fixture(scope="module")
def task():
    X, y = moons()
    return Task(X, y, gamma=1.0, C=1.0)


@pytest.fixture(scope="module")
def found(task):
    return {name: method(task, [4, 25]) for name, method in METHODS.items()}


@pytest.mark.parametrize("name", METHODS)
def test_results_are_expansions_within_the_limits(task, found, name):
    X, y = moons()
    assert found[name]
    for result, limit in zip(found[name], [4, 25], strict=False):
        assert result.method == name
        if name not in OWN_SIZE:
            assert 1 <= result.size <= (25 if name in ("osuna-girosi", "zhan-shen") else limit)
        vectors = result.vectors.toarray() if sparse.issparse(result.vectors) else result.vectors
        by_hand = rbf_kernel(X, vectors, gamma=1.0) @ result.coef + result.bias
        np.testing.assert_allclose(result.decision_function(X), by_hand, atol=1e-9)
        assert set(result.predict(X)) <= {"up", "down"}
        assert result.score(X, y) == np.mean(np.where(by_hand > 0, "up", "down") == y)
        if name in NEW_POINTS:
            assert result.rows is None
        else:
            np.testing.assert_array_equal(vectors, X[result.rows])


@pytest.mark.parametrize("name", METHODS)
def test_the_largest_machine_has_learnt(found, name):
    X, y = moons()
    assert found[name][-1].score(X, y) > (0.7 if name == "norma" else 0.75)  # of NORMA, 25 steps are left


@pytest.mark.parametrize("name", METHODS)
def test_an_expansion_is_an_svc_that_can_be_saved(found, name, tmp_path):
    X, _ = moons()
    result = found[name][-1]
    model = result.to_svc()
    assert isinstance(model, SVC)
    assert len(model.support_vectors_) == model.n_support_.sum() == result.size
    np.testing.assert_array_equal(model.predict(X), result.predict(X))
    pegasos.save(model, tmp_path / "model.safetensors")
    again = pegasos.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.decision_function(X), result.decision_function(X))


@pytest.mark.parametrize("name", METHODS)
def test_layouts_and_threads_and_seeds(task, found, name):
    X, y = moons()
    for other in (Task(sparse.csr_matrix(X), y, gamma=1.0), Task(X, y, gamma=1.0, n_jobs=2)):
        again = METHODS[name](other, [4, 25])
        for one, two in zip(found[name], again, strict=True):
            np.testing.assert_allclose(two.decision_function(X), one.decision_function(X), atol=1e-8)
    method = METHODS[name]
    if "random_state" in inspect.signature(method).parameters:
        once, twice, other = (method(task, [10], random_state=seed)[0] for seed in (1, 1, 2))
        np.testing.assert_array_equal(once.coef, twice.coef)
        assert not np.array_equal(once.decision_function(X), other.decision_function(X))


def test_threads_do_not_change_bits(found):
    X, y = moons()
    for name in METHODS:
        for one, two in zip(found[name], METHODS[name](Task(X, y, gamma=1.0, n_jobs=2), [4, 25]), strict=True):
            np.testing.assert_array_equal(one.coef, two.coef)


@pytest.mark.parametrize("name", sorted(set(METHODS) - OWN_SIZE))
@pytest.mark.parametrize("sizes", [[], [0], [2.5], [True]])
def test_sizes_are_checked(task, name, sizes):
    with pytest.raises(ValueError, match="sizes"):
        METHODS[name](task, sizes)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("random", {"C": 0}),
        ("random", {"loss": "log"}),
        ("random", {"candidates": "some"}),
        ("spsvm", {"C": float("nan")}),
        ("spsvm", {"pool": 0}),
        ("spsvm", {"candidates": "some"}),
        ("cpsp", {"C": -1}),
        ("osuna-girosi", {"C": "1"}),
        ("osuna-girosi", {"rows": "some"}),
        ("ramp", {"tol": 0}),
        ("ramp", {"max_rounds": 0}),
        ("forgetron", {"epochs": 0}),
        ("rbp", {"epochs": 1.5}),
        ("perceptron", {"epochs": True}),
        ("passive-aggressive", {"variant": "PA-3"}),
        ("passive-aggressive", {"C": 0}),
        ("passive-aggressive", {"epochs": 0}),
        ("norma", {"p": 1.0}),
        ("norma", {"lam": -1}),
        ("norma", {"nu": 2.0}),
        ("norma", {"bias": 1}),
        ("rsvm", {"C": 0}),
        ("rsvm", {"tol": 0}),
        ("rsvm", {"candidates": "some"}),
        ("csvm", {"batch": 0}),
        ("csvm", {"max_rounds": 0}),
        ("csvm", {"tol": 0}),
        ("zhan-shen", {"exclude": 1.0}),
        ("zhan-shen", {"C": "1"}),
    ],
)
def test_parameters_are_checked(task, name, wrong):
    ((parameter, value),) = wrong.items()
    with pytest.raises(ValueError, match=f"{parameter}={value!r} "):
        METHODS[name](task, [3], **wrong)


@pytest.mark.parametrize("name", sorted(ONLY_RBF))
def test_new_points_need_rbf(name):
    X, y = moons()
    with pytest.raises(ValueError, match=r"needs kernel='rbf'.*'poly'"):
        METHODS[name](Task(X, y, kernel="poly"), [3])


@pytest.mark.parametrize("name", sorted(set(METHODS) - ONLY_RBF))
@pytest.mark.parametrize("kernel", ["linear", "laplacian"])
def test_other_kernels(name, kernel):
    X, y = moons(80)
    for result in METHODS[name](Task(X, y, kernel=kernel, gamma=1.0), [30]):
        assert np.isfinite(result.decision_function(X)).all()


@pytest.mark.parametrize("name", METHODS)
def test_equal_rows(name):
    """Every row forty times: the span is small, whatever is asked for."""
    X = np.tile([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], (40, 1))
    y = np.tile([0, 1, 1, 0], 40)
    for result in METHODS[name](Task(X, y, gamma=1.0, C=10.0), [3, 50]):
        assert np.isfinite(result.decision_function(X)).all()
        if name in {"random", "spsvm", "reduced-set"}:
            assert result.size <= 4
    assert result.score(X, y) == 1.0 or name in {"rbp", "forgetron", "osuna-girosi", "norma"}


@pytest.mark.parametrize("name", METHODS)
def test_rows_that_cannot_be_told_apart(name):
    """Nothing is left but a bias, if that."""
    y = np.array([0, 1, 1, 0, 1] * 8)
    for X, kernel in [(np.zeros((40, 2)), "linear"), (np.ones((40, 2)), "rbf")]:
        if kernel == "rbf" or name not in ONLY_RBF:
            for result in METHODS[name](Task(X, y, kernel=kernel, gamma=1.0), [3]):
                assert np.isfinite(result.decision_function(X)).all()


def test_a_task_is_checked():
    X, y = moons()
    with pytest.raises(ValueError, match="3 classes, not two"):
        Task(X, np.arange(160) % 3)
    with pytest.raises(ValueError, match="kernel='precomputed' is none of"):
        Task(X, y, kernel="precomputed")
    with pytest.raises(ValueError, match="NaN"):
        Task(np.full((4, 2), np.nan), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="C="):
        Task(X, y, C=-1.0)
    model = SVC(gamma=1.0).fit(X, y)
    assert Task(X, y, gamma=1.0, reference=model).reference is model
    with pytest.raises(ValueError, match=r"fitted on rows of shape \(160, 2\), but X has \(100, 2\)"):
        Task(X[:100], y[:100], gamma=1.0, reference=model)
    with pytest.raises(ValueError, match=r"gamma 1\.0, not 'rbf' with 2\.0"):
        Task(X, y, gamma=2.0, reference=model)
    with pytest.raises(ValueError, match="knows classes"):
        Task(X, (y == "up").astype(int), gamma=1.0, reference=model)


def test_public_names_are_documented():
    for name in experiments.__all__:
        thing = getattr(experiments, name)
        if callable(thing):
            assert "Examples\n--------" in inspect.getdoc(thing)
            missing = [p for p in inspect.signature(thing).parameters if p not in inspect.getdoc(thing)]
            assert not missing, (name, missing)
