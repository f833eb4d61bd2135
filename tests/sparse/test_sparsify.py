"""Compressing kernel classifiers: the paper's promises, every size from one run, and what is refused."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import optimally_sparse
from scipy import sparse
from sklearn import svm
from sklearn.datasets import load_iris, make_moons
from sklearn.metrics.pairwise import rbf_kernel

import pegasos
from pegasos import SVC, sparsify
from pegasos.cli import main
from pegasos.sparse.preimage import Rows, Vector
from pegasos.sparse.published import slant_loss
from pegasos.sparse.reduced import reduced_set
from pegasos.sparse.refine import DEFAULT_WORK, MAX_EVALUATIONS, evaluations

GAMMA = 1.0
PUBLISHED = [(v, b, s) for v in ("basic", "aggressive") for b in ("keep", "learn") for s in ("polyak", 0.5)]


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(300, noise=0.3, random_state=0)
    return X, np.where(y > 0, 1, -1), SVC(C=10, gamma=GAMMA).fit(X, y > 0)


def fitted(noise=0.3, m=200, seed=0, **parameters):
    X, y = make_moons(m, noise=noise, random_state=seed)
    return X, y, SVC(**{"C": 10.0, "gamma": GAMMA, **parameters}).fit(X, y)


def signed(y):
    return np.where(y > 0, 1.0, -1.0)


# --- the published method --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("variant", "bias", "step"), PUBLISHED)
@pytest.mark.parametrize("tol", [0.5, 0.2])
def test_the_promises_of_the_paper(variant, bias, step, tol):
    X, y, model = fitted()
    step = step if step == "polyak" else tol  # η = ε/R², R = 1
    path = sparsify(model, X, y, variant=variant, bias=bias, step=step, tol=tol, refit=False)
    (run,) = path.runs
    assert run.reason == "f <= tol"
    assert run.final_violation <= tol
    assert run.iterations <= run.iteration_bound
    assert path.n_support <= run.support_bound
    squared_norm = float(model.dual_coef_[0] @ (model.decision_function(X) - model.intercept_)[model.support_])
    assert run.iteration_bound == pytest.approx(squared_norm / tol**2, rel=1e-6)
    potential = [squared_norm, *run.potential]
    assert np.all(np.diff(potential) < 0)
    # the violation at the end, from the model alone
    g, s = signed(y) * model.decision_function(X), signed(y) * path.at().decision_function(X)
    found = (np.minimum(1, g) - s)[g > 0].max()
    assert found == pytest.approx(run.final_violation, abs=1e-9)
    guarantee = path.guarantee()
    assert guarantee.violation == pytest.approx(found, abs=1e-9)
    assert guarantee.holds
    assert guarantee.slant_loss <= guarantee.hinge_loss
    assert guarantee.slant_loss == pytest.approx(slant_loss(s).mean())
    assert guarantee.hinge_loss == pytest.approx(np.maximum(0, 1 - g).mean())


@pytest.mark.parametrize("eta", [0.5, "polyak"])
def test_basic_is_the_oracle(eta):
    X, y, model = fitted()
    K, b = rbf_kernel(X, gamma=GAMMA), float(model.intercept_[0])
    alpha = optimally_sparse(K, signed(y), model.decision_function(X), b, eta=eta)
    small = sparsify(model, X, y, variant="basic", bias="keep", step=eta, refit=False).at()
    np.testing.assert_array_equal(np.sort(small.support_), np.flatnonzero(alpha))
    np.testing.assert_allclose(small.dual_coef_[0], (alpha * signed(y))[small.support_], rtol=1e-9)
    np.testing.assert_allclose(small.decision_function(X), K @ (alpha * signed(y)) + b, atol=1e-9)


@pytest.mark.parametrize(("variant", "bias", "step"), PUBLISHED)
def test_a_shorter_run_is_the_beginning_of_a_longer_one(variant, bias, step):
    X, y, model = fitted()
    options = {"variant": variant, "bias": bias, "step": step, "refit": False, "tol": 0.3}
    path = sparsify(model, X, y, **options)
    for n in (0, 1, 2, 7, path.n_support // 2, path.n_support):
        fresh, replayed = sparsify(model, X, y, max_support=n, **options).at(), path.at(n)
        assert len(replayed.support_) <= n
        np.testing.assert_array_equal(fresh.support_, replayed.support_[np.isin(replayed.support_, fresh.support_)])
        np.testing.assert_allclose(fresh.decision_function(X), replayed.decision_function(X), atol=1e-9)


def test_aggressive_steps_on_what_it_has():
    X, y, model = fitted()
    few = {v: sparsify(model, X, y, variant=v, refit=False, tol=0.1) for v in ("basic", "aggressive")}
    assert few["aggressive"].n_support <= few["basic"].n_support


def test_the_randomised_classifier_errs_as_the_slant_loss_says():
    X, y, model = fitted()
    path = sparsify(model, X, y, variant="basic", refit=False)
    rate = np.mean([np.mean(path.randomized(random_state=k).predict(X) != y) for k in range(300)])
    assert rate == pytest.approx(path.guarantee().slant_loss, abs=0.01)


@given(z=st.floats(-5, 5))
def test_slant_is_below_hinge(z):
    assert slant_loss(np.array(z) - 0.5) <= max(0, 1 - z) + 1e-12


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), C=st.sampled_from([0.1, 1, 100]), learn=st.booleans())
def test_any_data(seed, C, learn):
    random = np.random.default_rng(seed)
    X = random.integers(0, 3, size=(40, 2)).astype(float)  # many equal points, of both classes
    y = random.integers(0, 2, size=40)
    y[:2] = 0, 1
    model = SVC(C=C, gamma=1.0).fit(X, y)
    path = sparsify(model, X, y, variant="aggressive", bias="learn" if learn else "keep", refit=False)
    assert path.runs[0].final_violation <= 0.5
    assert path.guarantee().slant_loss <= path.guarantee().hinge_loss + 1e-12
    assert np.isfinite(sparsify(model, X, y, max_support=5).at(5).decision_function(X)).all()


# --- projection and refit --------------------------------------------------------------------------------------------


def test_a_refit_is_the_optimum_on_its_vectors(moons):
    """½βᵀKβ + ½C Σ slack² over (β, b): the gradient is zero."""
    X, y, model = moons
    small = sparsify(model, X, y > 0, max_support=15, move=False).at(15)
    K = rbf_kernel(X, X[small.support_], gamma=GAMMA)
    beta = small.dual_coef_[0]
    slack = np.maximum(0, 1 - y * (K @ beta + small.intercept_))
    gradient = K[small.support_] @ beta - 10 * K.T @ (slack * y)
    assert np.abs(gradient).max() < 1e-2 * 10 * np.abs(K.T @ (slack * y)).max() + 1e-2 * len(X)
    assert abs(10 * (slack * y).sum()) < 1e-2 * 10 * slack.sum()


def test_few_vectors_decide_nearly_as_all(moons):
    X, y, model = moons
    more, labels = make_moons(5000, noise=0.3, random_state=1)
    full = model.score(more, labels > 0)
    assert sparsify(model, X, y > 0, max_support=15).at(15).score(more, labels > 0) > full - 0.01


def objective(small, X, y):
    beta, Z = small.dual_coef_[0], small.support_vectors_
    slack = np.maximum(0, 1 - y * small.decision_function(X))
    return 0.5 * beta @ rbf_kernel(Z, gamma=GAMMA) @ beta + 5 * slack @ slack


def test_points_that_move_lower_the_objective(moons):
    X, y, model = moons
    rows, nested, moved = (
        sparsify(model, X, y > 0, max_support=5, move=move).at(5) for move in (False, "nested", True)
    )
    assert np.array_equal(rows.support_vectors_, X[rows.support_])
    assert not np.array_equal(nested.support_vectors_, X[nested.support_])
    assert objective(moved, X, y) < min(objective(nested, X, y), objective(rows, X, y))


def test_points_of_a_model_are_among_those_of_larger_ones(moons):
    X, y, model = moons
    path = sparsify(model, X, y > 0, max_support=20, move="nested")
    path.at(0)  # what is asked for before does not matter
    large = {tuple(z) for z in path.at(20).support_vectors_}
    for n in (1, 7, 13):
        some = path.at(n)
        assert {tuple(z) for z in some.support_vectors_} <= large
        fresh = sparsify(model, X, y > 0, max_support=n, move="nested").at(n)
        np.testing.assert_array_equal(fresh.support_vectors_, some.support_vectors_)
        np.testing.assert_allclose(fresh.decision_function(X), some.decision_function(X), rtol=1e-4, atol=1e-4)


def test_published_choices_may_move(moons):
    X, y, model = moons
    options = {"variant": "aggressive", "max_support": 6}
    rows, moved = (sparsify(model, X, y > 0, move=move, **options).at(6) for move in (False, True))
    np.testing.assert_array_equal(rows.support_, moved.support_)
    assert objective(moved, X, y) < objective(rows, X, y)


def test_moving_is_left_out_where_it_takes_long():
    assert evaluations(60, 22, 50_000, DEFAULT_WORK) == MAX_EVALUATIONS
    assert evaluations(600, 22, 50_000, DEFAULT_WORK) == 0
    assert evaluations(600, 22, 50_000, np.inf) == MAX_EVALUATIONS
    assert evaluations(1, 1, 1, 0.0) == 0


@pytest.mark.parametrize("name", ["nested", True])
def test_only_gaussian_vectors_of_two_classes_move(name):
    X, y = load_iris(return_X_y=True)
    for model, rows in ((SVC(kernel="linear"), y < 2), (SVC(), y < 3)):
        with pytest.raises(ValueError, match=f"move={name!r}"):
            sparsify(model.fit(X[rows], y[rows]), X[rows], y[rows], move=name)
    X, y, model = fitted()
    with pytest.raises(ValueError, match=f"move={name!r} needs refit=True"):
        sparsify(model, X, y, variant="aggressive", refit=False, move=name)


def test_many_columns_stay_rows():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 513)), np.arange(60) % 2
    model = SVC(C=10, gamma=1e-3).fit(X, y)
    assert not sparsify(model, X, y, max_support=5).moved
    assert sparsify(model, X, y, max_support=5, move="nested").moved
    assert sparsify(SVC(C=10, gamma=1e-3).fit(X[:, 1:], y), X[:, 1:], y, max_support=5).moved


def reduced(X, alpha, n, starts=None, **options):
    starts = X if starts is None else starts
    inner = alpha @ rbf_kernel(X, starts, gamma=GAMMA) if len(alpha) else np.zeros(len(starts))
    return reduced_set(X, alpha, GAMMA, starts, inner, n, **options)


@pytest.mark.parametrize(
    "options",
    [{}, {"power": 1.0}, {"steps": 2}, {"steps": 0, "power": 0.25}, {"together": 7}, {"together": 32, "power": 0.25}],
    ids=str,
)
def test_points_come_nearer_to_the_reference(moons, options):
    """‖w − Pw‖² by hand falls with every point, and is ‖w‖² − Σu²."""
    X, _, model = moons
    V, alpha = model.support_vectors_, model.dual_coef_[0]
    found = reduced(V, alpha, 25, X, **options)
    distances = []
    for n in range(26):
        Z, coef = np.concatenate([V, found.points[:n]]), np.concatenate([alpha, -found.coefficients(n)])
        distances.append(coef @ rbf_kernel(Z, gamma=GAMMA) @ coef)
        assert distances[-1] == pytest.approx(distances[0] - found.u[:n] @ found.u[:n], rel=1e-6, abs=1e-4)
    assert np.all(np.diff(distances) < 0)
    assert len(set(found.starts.tolist())) == 25


def test_one_vector_is_its_own_point():
    X = np.array([[1.0, 2.0]])
    for starts in (X, X + 0.3):
        found = reduced(X, np.array([-2.0]), 3, starts)
        np.testing.assert_allclose(found.points, X, atol=0.01)
        np.testing.assert_allclose(found.coefficients(1), -2.0, rtol=1e-3)


def test_equal_vectors_are_one_point():
    X = np.repeat([[0.0, 0.0], [3.0, 0.0]], 5, axis=0)
    found = reduced(X, np.repeat([1.0, -1.0], 5), 10)
    assert len(found.points) == 2
    np.testing.assert_allclose(np.sort(found.points[:, 0]), [0, 3], atol=1e-2)
    assert len(reduced(X, np.zeros(10), 10).points) == 0  # w = 0
    assert len(reduced(X[:0], np.zeros(0), 10, X).points) == 0


def test_a_search_that_has_no_direction_ends_where_it_began():
    """Weights that add up to nothing, and aims beyond all numbers."""
    X = np.array([[-1.0, 0.0], [1.0, 0.0]])
    Z, value = Vector([(Rows.of(X, GAMMA), np.array([1.0, -1.0]))]).preimages(np.zeros((1, 2)))
    np.testing.assert_array_equal(Z, [[0, 0]])
    assert value == [0]
    far = np.array([[40.0, 0.0]])
    Z, _ = Vector([(Rows.of(X, GAMMA), np.array([1.0, 1.0]))]).preimages(far)
    np.testing.assert_array_equal(Z, far)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("threads", [1, 3])
def test_one_pass_weighs_and_draws(layout, kind, threads):
    """Values and pulls of the core, of more points than it has lanes, by hand."""
    random = np.random.default_rng(0)
    V = (random.normal(size=(5000, 7)) * (random.random((5000, 7)) < (0.2 if layout is not np.asarray else 1))).astype(
        kind
    )
    Z, r = random.normal(size=(37, 7)).astype(kind), random.normal(size=5000)
    weights = r[:, None] * rbf_kernel(V.astype(float), Z.astype(float), gamma=GAMMA)
    single = kind == np.float32
    value, pull = Vector([(Rows.of(layout(V), GAMMA), r)], single=single, threads=threads).at(Z)
    tolerance = 1e-4 if single else 1e-10
    np.testing.assert_allclose(value, weights.sum(axis=0), atol=tolerance)
    np.testing.assert_allclose(pull, weights.T @ V, atol=tolerance)


def test_searches_that_share_passes_find_what_they_find_alone():
    random = np.random.default_rng(0)
    V, r = random.normal(size=(50, 3)), random.normal(size=50)
    vector = Vector([(Rows.of(V, GAMMA), r)])
    together, values = vector.preimages(V[:9])
    for start, z, value in zip(V[:9], together, values, strict=True):
        alone, own = vector.preimages(start[None])
        np.testing.assert_array_equal(alone[0], z)
        assert own[0] == value


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), move=st.sampled_from(["nested", "auto", True]))
def test_points_for_any_data(seed, move):
    random = np.random.default_rng(seed)
    X = random.integers(0, 3, size=(40, 2)).astype(float)
    y = random.integers(0, 2, size=40)
    y[:2] = 0, 1
    model = SVC(C=10, gamma=1.0).fit(X, y)
    path = sparsify(model, X, y, max_support=30, move=move)
    assert len(set(path.order.tolist())) == path.n_support <= 30
    for n in (1, path.n_support):
        assert np.isfinite(path.at(n).decision_function(X)).all()


def test_all_support_vectors_span_the_reference(moons):
    X, y, model = moons
    path = sparsify(model, X, y > 0, max_support=len(X))
    assert path.at().score(X, y > 0) >= model.score(X, y > 0) - 0.02


@pytest.mark.parametrize("variant", ["projection", "aggressive"])
def test_sizes(moons, variant):
    X, y, model = moons
    path = sparsify(model, X, y > 0, variant=variant, max_support=30)
    assert path.n_support <= 30
    for n in (0, 1, 10):
        assert len(path.at(n).support_) <= n
    assert len(set(path.order.tolist())) == path.n_support
    assert path.at(10**6) is path.at(path.n_support)
    errors = path.errors(X, y > 0)
    assert errors.shape == path.sizes.shape
    best = path.best(X, y > 0)
    assert 1 - best.score(X, y > 0) == pytest.approx(errors.min())
    chosen = sparsify(model, X, y > 0, variant=variant, max_support=30, validation=(X, y > 0))
    assert len(chosen.at().support_) == len(best.support_)


# --- models and data -------------------------------------------------------------------------------------------------

KERNELS = [
    {"kernel": "rbf", "gamma": 0.5},
    {"kernel": "rbf"},
    {"kernel": "linear"},
    {"kernel": "poly", "coef0": 1.0},
    {"kernel": "sigmoid", "gamma": 0.1},
    {"kernel": rbf_kernel},
]


@pytest.mark.parametrize("parameters", KERNELS, ids=lambda p: str(p["kernel"])[:10])
@pytest.mark.parametrize("variant", ["projection", "aggressive"])
@pytest.mark.parametrize("classes", [2, 3])
def test_scikit_learns_models_and_ours(parameters, variant, classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < classes], np.array(["a", "b", "c"])[y[y < classes]]
    for kind in (SVC, svm.SVC):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("warnings.warn", lambda *a, **k: None)  # a sigmoid kernel is not positive definite
            model = kind(**parameters).fit(X, y)
        path = sparsify(model, X, y, max_support=12, variant=variant)
        small = path.at()
        assert isinstance(small, SVC)
        assert len(small.support_) <= 12
        if parameters["kernel"] != "sigmoid":
            assert small.score(X, y) > model.score(X, y) - 0.05
        assert set(small.predict(X)) <= set(y)


def test_precomputed():
    X, y, model = fitted()
    K = rbf_kernel(X, gamma=GAMMA)
    given = SVC(C=10, kernel="precomputed").fit(K, y)
    one, two = (sparsify(kind, rows, y, max_support=10, move=False).at() for kind, rows in ((model, X), (given, K)))
    np.testing.assert_array_equal(one.support_, two.support_)
    np.testing.assert_allclose(one.decision_function(X), two.decision_function(K), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("variant", ["projection", "aggressive"])
def test_dense_sparse_and_threads(variant):
    X, y, model = fitted(m=400)
    rows = sparse.csr_matrix(X)
    base = sparsify(model, X, y, max_support=20, variant=variant).at()
    other = sparsify(SVC(C=10, gamma=GAMMA).fit(rows, y), rows, y, max_support=20, variant=variant).at()
    np.testing.assert_array_equal(base.support_, other.support_)
    np.testing.assert_allclose(base.decision_function(X), other.decision_function(rows), rtol=1e-6, atol=1e-6)
    threads = sparsify(model, X, y, max_support=20, variant=variant, n_jobs=3).at()
    np.testing.assert_array_equal(base.dual_coef_, threads.dual_coef_)
    np.testing.assert_array_equal(base.intercept_, threads.intercept_)


@pytest.mark.parametrize("move", ["nested", "auto", False])
@pytest.mark.parametrize("m", [400, 3000])  # beyond 2000 rows kernel values are in single precision
def test_the_same_bits(move, m):
    X, y, model = fitted(m=m)
    options = {"max_support": 30, "move": move}
    one = sparsify(model, X, y, n_jobs=1, **options).at()
    two = sparsify(model, X, y, n_jobs=2, **options).at()
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    np.testing.assert_array_equal(one.support_vectors_, two.support_vectors_)
    rows = sparse.csr_matrix(X)
    other = sparsify(SVC(C=10, gamma=GAMMA).fit(rows, y), rows, y, **options).at()
    np.testing.assert_array_equal(one.support_vectors_, other.support_vectors_.toarray())
    np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_.toarray())


def test_weights():
    X, y, _ = fitted()
    weight = np.random.default_rng(0).integers(0, 3, size=len(y)).astype(float)
    weighted = SVC(C=10, gamma=GAMMA).fit(X, y, weight)
    repeated_X, repeated_y = np.repeat(X, weight.astype(int), axis=0), np.repeat(y, weight.astype(int))
    repeated = SVC(C=10, gamma=GAMMA).fit(repeated_X, repeated_y)
    one = sparsify(weighted, X, y, sample_weight=weight, max_support=10, move=False).at()
    two = sparsify(repeated, repeated_X, repeated_y, max_support=10, move=False).at()
    np.testing.assert_allclose(one.decision_function(X), two.decision_function(X), atol=0.05)
    assert not np.isin(one.support_, np.flatnonzero(weight == 0)).any()


# --- edges -----------------------------------------------------------------------------------------------------------


def test_a_reference_without_support_vectors(moons):
    X, y, model = moons
    empty = sparsify(model, X, y > 0, max_support=0).at(0)
    assert len(empty.support_) == 0
    again = sparsify(empty, X, y > 0, variant="aggressive", refit=False)
    assert len(set(again.at().predict(X))) == 1
    assert len(set(sparsify(empty, X, y > 0, max_support=5).at().predict(X))) == 1


@pytest.mark.parametrize("bias", ["keep", "learn"])
def test_nobody_is_right(bias):
    """An empty active set: the constant predictor."""
    X, y, model = fitted()
    model.dual_coef_ = -model.dual_coef_
    model.intercept_ = -model.intercept_
    wrong = model.predict(X) != y
    path = sparsify(model, X[:], y, variant="basic", bias=bias, refit=False)
    assert path.guarantee().slant_loss <= path.guarantee().hinge_loss
    assert wrong.mean() > 0.5


def test_one_class_is_right():
    X, y, model = fitted()
    model.dual_coef_, model.intercept_ = np.zeros_like(model.dual_coef_), np.array([2.0])
    path = sparsify(model, X, y, variant="basic", refit=False)
    assert path.n_support == 0
    assert set(path.at().predict(X)) == {1}


def test_all_margins_beyond_one():
    X, y = np.array([[0.0], [0.1], [5.0], [5.1]]), np.array([0, 0, 1, 1])
    model = SVC(C=1e6, gamma=1.0).fit(X, y)
    path = sparsify(model, X, y, variant="aggressive", refit=False)
    assert path.at().score(X, y) == 1
    assert path.runs[0].final_violation <= 0.5


@pytest.mark.parametrize("C", [1e-6, 1e8])
def test_extreme_costs(C):
    """On many rows kernel values, and sums of them, are in single precision."""
    X, y = make_moons(2500, noise=0.1, random_state=0)
    model = SVC(C=C, gamma=GAMMA, tol=0.1, max_time=2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a fit that takes long
        model.fit(X, y)
    small = sparsify(model, X, y, max_support=20).at()
    assert np.isfinite(small.decision_function(X)).all()
    assert small.score(X, y) > (0.9 if C > 1 else 0.0)


def test_steps_without_a_guarantee_end():
    X, y, model = fitted()
    path = sparsify(model, X, y, variant="basic", step=50.0, refit=False, max_iter=20)
    assert path.runs[0].iteration_bound == np.inf
    assert path.runs[0].reason in ("f <= tol", "max_iter")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X[:-1], y[:-1]), "fitted on other data"),
        (lambda X, y: (X + 1, y), "row .* of X is not the support vector"),
        (lambda X, y: (X, 1 - y), "was of class"),
        (lambda X, y: (X, y + 5), "knows the classes"),
        (lambda X, y: (X[:, :1], y), "fitted on other data"),
    ],
)
def test_other_data_is_refused(change, message):
    X, y, model = fitted()
    for kind in (model, svm.SVC(C=10, gamma=GAMMA).fit(X, y)):
        with pytest.raises(ValueError, match=message):
            sparsify(kind, *change(X, y))


class RowOrder(svm.SVC):
    """Keeps its support vectors in the order of the rows, as models of scikit-learn-intelex do for two classes."""

    def fit(self, X, y):
        super().fit(X, y)
        self.grouped = svm.SVC(**self.get_params()).fit(X, y)
        order = np.argsort(self.support_)
        self.support_, self.support_vectors_ = self.support_[order], self.support_vectors_[order]
        self.dual_coef_ = self.dual_coef_[:, order]
        return self

    def predict(self, X):
        return self.grouped.predict(X)


@pytest.mark.parametrize("variant", ["projection", "aggressive"])
@pytest.mark.parametrize("data", ["moons", "iris", "one support vector more"])
def test_support_vectors_in_the_order_of_rows(data, variant):
    X, y = load_iris(return_X_y=True) if data == "iris" else make_moons(200, noise=0.3, random_state=0)
    if data == "one support vector more":
        X, y = X[:-1], y[:-1]
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    model = RowOrder(gamma=GAMMA).fit(X, y)
    assert (np.diff(y[model.support_]) < 0).any()
    small = sparsify(model, X, y, max_support=15, variant=variant).at()
    same = sparsify(model.grouped, X, y, max_support=15, variant=variant).at()
    np.testing.assert_allclose(small.decision_function(X), same.decision_function(X), atol=1e-6)
    with pytest.raises(ValueError, match="fitted on other data"):
        sparsify(model, X, np.roll(y, 1))


def test_models_of_scikit_learn_intelex():
    theirs = pytest.importorskip("sklearnex.svm", reason="scikit-learn-intelex is not installed")
    X, y = make_moons(300, noise=0.3, random_state=0)
    path = sparsify(theirs.SVC(C=10, gamma=GAMMA).fit(X, y), X, y, max_support=12)
    ours = sparsify(svm.SVC(C=10, gamma=GAMMA).fit(X, y), X, y, max_support=12)
    assert abs(path.at().score(X, y) - ours.at().score(X, y)) < 0.02


@pytest.mark.parametrize(
    "bad",
    [
        {"max_support": -1},
        {"max_support": 2.5},
        {"tol": 0},
        {"tol": np.nan},
        {"step": "newton"},
        {"step": -1},
        {"variant": "greedy"},
        {"bias": None},
        {"refit": "yes"},
        {"refit": False},
        {"move": "far"},
        {"move": 2},
        {"move": "nested", "variant": "basic"},
        {"max_iter": 0},
        {"cache_size": 0},
    ],
    ids=str,
)
def test_bad_parameters(moons, bad):
    X, y, model = moons
    with pytest.raises(ValueError, match=next(iter(bad))):
        sparsify(model, X, y > 0, **bad)


def test_other_models_are_refused(moons):
    X, y, _ = moons
    with pytest.raises(TypeError, match="LinearSVC"):
        sparsify(pegasos.LinearSVC().fit(X, y), X, y)


def test_saved_and_plotted(moons, tmp_path):
    pytest.importorskip("safetensors")
    X, y, model = moons
    small = sparsify(model, X, y > 0, max_support=10).at()
    assert not np.array_equal(small.support_vectors_, X[small.support_])
    pegasos.save(small, tmp_path / "small.model")
    np.testing.assert_array_equal(
        pegasos.load(tmp_path / "small.model").decision_function(X), small.decision_function(X)
    )
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    ax = sparsify(model, X, y > 0, max_support=10).plot(X, y > 0)
    assert ax.get_xlabel() == "support vectors"


def test_command_line(moons, tmp_path, capsys):
    pytest.importorskip("safetensors")
    X, y, _ = moons
    data, model, small = (str(tmp_path / name) for name in ("rows.svm", "full.model", "small.model"))
    pegasos.io.write_svmlight(sparse.csr_matrix(X), y, data)
    X, y = pegasos.io.read_svmlight(data)
    pegasos.save(SVC(C=10, gamma=GAMMA).fit(X, y), model)
    assert main(["sparsify", model, data, "-m", small, "--max-support", "12", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["support"] == 12 == len(pegasos.load(small).support_)
    assert facts["training_error"] < 0.2
    assert main(["sparsify", model, data, "-m", small, "--variant", "aggressive", "--validation", data]) == 0
    assert main(["sparsify", model, model, "-m", small]) == 1


@pytest.mark.parametrize("variant", ["projection", "aggressive"])
def test_one_against_the_rest(variant):
    X, y = load_iris(return_X_y=True)
    model = SVC(multi_class="ovr", gamma=0.5).fit(X, y)
    path = sparsify(model, X, y, max_support=20, variant=variant, refit=variant == "projection")
    small = path.at(20)
    assert len(small.support_) <= 20
    assert small.dual_coef_.shape == (3, len(small.support_))
    assert small.decision_function(X).shape == (150, 3)
    assert small.score(X, y) >= model.score(X, y) - 0.03
    assert path.randomized(random_state=0).predict(X).shape == (150,)
