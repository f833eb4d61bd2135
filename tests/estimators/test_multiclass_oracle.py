"""Multiclass losses with any φ(x, y): against the block mapping's own solvers, SciPy and Clarabel, and bad input."""

from __future__ import annotations

import pickle

import numpy as np
import oracles as o
import pytest
from scipy import optimize, sparse, special
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from pegasos import LBFGS, LinearSVC, MulticlassOracle, Pegasos, StructuredSVC
from pegasos.losses import CrammerSinger

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
M, N, K = 50, 3, 4
CLASSES = np.array(["cat", "dog", "fern", "oak"])
CODES = np.concatenate([np.arange(K), RNG.integers(0, K, M - K)])
Y = CLASSES[CODES]
X = RNG.normal(size=(M, N)) + 0.8 * np.eye(K)[CODES][:, :N]
COST = np.array([[0, 1, 3, 3], [1, 0, 3, 3], [3, 3, 0, 1], [3, 2, 1, 0]], dtype=float)
TRAITS = {"cat": [1.0, 0.5, 0.0], "dog": [1.0, -0.5, 0.2], "fern": [-1.0, 0.5, 0.0], "oak": [-1.0, 0.0, 1.0]}
WEIGHT = RNG.integers(0, 3, M).astype(float)


def block(X, classes):
    """φ(x, k) written out: x in the block of class k."""
    X = X.toarray() if sparse.issparse(X) else np.asarray(X)
    return np.stack([np.kron(np.eye(len(classes))[k], X) for k in range(len(classes))], axis=1)


def traits(X, classes):
    X = X.toarray() if sparse.issparse(X) else np.asarray(X)
    return np.stack([np.kron(TRAITS[label], X) for label in classes.tolist()], axis=1)


def quadratic(X, classes):
    """Something that no outer product is: a row's features depend on the class in their values, too."""
    return np.stack(
        [np.column_stack([X * (k + 1), (X[:, :1] - k) ** 2, X[:, 1:2] * k]) for k in range(len(classes))], 1
    )


def matrices(X, classes):
    return list(np.moveaxis(quadratic(X, classes), 1, 0))


def sparse_matrices(X, classes):
    return [sparse.csr_array(phi * (np.abs(phi) > 0.3)) for phi in matrices(X, classes)]


def of_class(phi, X=X):
    """The features of any form as one array."""
    if phi == "block":
        return block(X, CLASSES)
    if isinstance(phi, dict):
        return traits(X, CLASSES)
    found = phi(X, CLASSES)
    if not isinstance(found, list):
        return found
    return np.stack([part.toarray() if sparse.issparse(part) else part for part in found], axis=1)


FORMS = {"block": "block", "traits": TRAITS, "array": quadratic, "list": matrices, "sparse": sparse_matrices}


def rises(phi, w):
    """⟨w, φ(x, k) − φ(x, y)⟩ of every row and class."""
    scores = of_class(phi) @ w
    return scores - scores[np.arange(M), CODES][:, None]


def mean(losses, weight):
    return float(np.average(losses, weights=weight))


def hinge(phi, w, cost, weight=None):
    """P's loss, from the formula."""
    return mean((cost[CODES] + rises(phi, w)).max(axis=1), weight)


def log(phi, w, weight=None):
    return mean(special.logsumexp(rises(phi, w), axis=1), weight)


def hinge_optimum(phi, cost, lam, weight=None):
    """min (λ/2)‖w‖² + mean ξ, ξ_i ≥ δ + ⟨w, φ(x, k) − φ(x, y)⟩, by Clarabel."""
    Phi, c = of_class(phi), np.ones(M) if weight is None else weight
    d = Phi.shape[2]
    rise = (Phi - Phi[np.arange(M), CODES][:, None]).reshape(M * K, d)
    below = np.hstack([rise, -np.repeat(np.eye(M), K, axis=0)])
    P = np.diag(np.concatenate([np.full(d, lam), np.zeros(M)]))
    q = np.concatenate([np.zeros(d), c / c.sum()])
    none = np.zeros((0, d + M))
    x, _ = o._clarabel(P, q, none, np.zeros(0), below, -cost[CODES].ravel(), 1e-10)
    return lam / 2 * x[:d] @ x[:d] + hinge(phi, x[:d], cost, weight)


def log_optimum(phi, lam, weight=None):
    Phi = of_class(phi)
    d, known = Phi.shape[2], lambda X, classes: Phi
    P = lambda w: lam / 2 * w @ w + log(known, w, weight)  # noqa: E731
    return optimize.minimize(P, np.zeros(d), method="BFGS", options={"gtol": 1e-7}).fun


# --- the optimum -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weighted"])
@pytest.mark.parametrize("form", FORMS)
def test_hinge(form, weight):
    """D ≤ P* ≤ P with costs (Eq. 20), by every solver, and P as the formula has it."""
    phi, lam = FORMS[form], 0.05
    best = hinge_optimum(phi, COST, lam, weight)
    for solver in ("auto", "cutting_plane", Pegasos(batch_size=5)):
        model = StructuredSVC(
            MulticlassOracle(phi, cost=COST),
            lam=lam,
            solver=solver,
            tol=1e-3,
            max_iter=30 if isinstance(solver, Pegasos) else 300,
        )
        c = model.fit(X, Y, weight).certificate_
        assert c.dual <= best * (1 + 1e-7)
        assert best <= c.primal * (1 + 1e-9)
        w = model.coef_
        assert c.primal == pytest.approx(lam / 2 * w @ w + hinge(phi, w, COST, weight), rel=1e-12)
        assert c.converged or isinstance(solver, Pegasos)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weighted"])
@pytest.mark.parametrize("form", FORMS)
def test_log(form, weight):
    """The same without costs (Eq. 21)."""
    phi, lam = FORMS[form], 0.05
    model = StructuredSVC(MulticlassOracle(phi), loss="log", lam=lam, tol=1e-9).fit(X, Y, weight)
    c, w = model.certificate_, model.coef_
    best = log_optimum(phi, lam, weight)
    assert c.converged
    assert c.dual <= best * (1 + 1e-9)
    assert best == pytest.approx(c.primal, rel=1e-7)
    assert c.primal == pytest.approx(lam / 2 * w @ w + log(phi, w, weight), rel=1e-12)
    scores = of_class(phi) @ w
    np.testing.assert_allclose(model.predict_proba(X), special.softmax(scores, axis=1), rtol=1e-10)
    np.testing.assert_array_equal(model.predict(X), CLASSES[scores.argmax(axis=1)])


def test_log_bounds_far_from_the_optimum():
    """Every certificate of a fit is two-sided, the first ones too."""
    lam = 0.01
    best = log_optimum(quadratic, lam)
    seen = []
    StructuredSVC(
        MulticlassOracle(quadratic), loss="log", lam=lam, tol=1e-9, callback=lambda c: seen.append((c.dual, c.primal))
    ).fit(X, Y)
    assert len(seen) > 2
    assert all(dual <= best * (1 + 1e-9) and best <= primal * (1 + 1e-9) for dual, primal in seen)


@pytest.mark.parametrize(
    "rows", [X, sparse.csr_array(X), X.astype(np.float32), X.tolist()], ids=["dense", "csr", "float32", "list"]
)
def test_the_block_mapping_is_the_joint_losses(rows):
    """The package's own solvers for one weight vector a class find the same optimum: two certificates meet."""
    for loss, twin, cost in (
        ("hinge", CrammerSinger(tuple(map(tuple, COST))), COST),
        ("hinge", "crammer_singer", None),
        ("log", "multinomial", None),
    ):
        tol = 1e-8 if loss == "log" else 1e-5
        mine = StructuredSVC(MulticlassOracle(cost=cost), loss=loss, lam=0.05, tol=tol).fit(rows, Y)
        core = LinearSVC(loss=twin, fit_intercept=False, lam=0.05, tol=1e-9).fit(rows, Y)
        assert mine.certificate_.dual <= core.certificate_.primal * (1 + 1e-12)
        assert core.certificate_.dual <= mine.certificate_.primal * (1 + 1e-12)
        assert mine.certificate_.primal == pytest.approx(core.certificate_.primal, rel=2 * tol)
        np.testing.assert_allclose(mine.coef_.reshape(K, N), core.coef_, atol=3e-2 if loss == "hinge" else 1e-3)


def test_forms_of_the_same_features_are_the_same_problem():
    one_hot = dict(zip(CLASSES.tolist(), np.eye(K), strict=True))
    for loss in ("hinge", "log"):
        fits = [
            StructuredSVC(MulticlassOracle(phi), loss=loss, tol=1e-3).fit(A, Y)
            for phi, A in (("block", X), (block, X), (one_hot, X), (one_hot, sparse.csr_array(X)))
        ]
        for fit in fits[1:]:
            assert fit.certificate_.primal == pytest.approx(fits[0].certificate_.primal, rel=1e-9)
            np.testing.assert_allclose(fit.coef_, fits[0].coef_, atol=1e-8)


def test_classes_without_rows():
    """Attributes say what a class is that no row is of."""
    seen = Y != "oak"
    model = StructuredSVC(MulticlassOracle(TRAITS), lam=0.1).fit(X[seen], Y[seen])
    assert model.certificate_.converged
    np.testing.assert_array_equal(model.oracle_.classes, CLASSES)
    scores = traits(X, CLASSES) @ model.coef_
    np.testing.assert_array_equal(model.predict(X), CLASSES[scores.argmax(axis=1)])
    named = StructuredSVC(MulticlassOracle(classes=CLASSES), lam=0.1).fit(X[seen], Y[seen])
    assert named.coef_.shape == (K * N,)


def test_score_is_minus_the_mean_cost():
    model = StructuredSVC(MulticlassOracle(cost=COST.tolist())).fit(X, Y)
    predicted = np.searchsorted(CLASSES, model.predict(X))
    assert model.score(X, Y) == pytest.approx(-COST[CODES, predicted].mean())


# --- as an estimator -------------------------------------------------------------------------------------------------


def test_scikit_learn():
    model = StructuredSVC(MulticlassOracle(quadratic), loss="log", solver=LBFGS(memory=3))
    assert clone(model).get_params()["oracle__cost"] is None
    search = GridSearchCV(
        StructuredSVC(MulticlassOracle()), {"oracle__phi": ["block", quadratic], "loss": ["hinge", "log"]}, cv=3
    ).fit(X, Y)
    assert -1 <= search.best_score_ <= 0
    copy = pickle.loads(pickle.dumps(model.fit(X, Y)))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    with pytest.raises(NotFittedError):
        clone(model).predict(X)


@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_checkpoints_and_warm_starts(loss, tmp_path):
    path = tmp_path / "run.ckpt"
    how = {"loss": loss, "tol": 1e-9, "lam": 0.01}
    straight = StructuredSVC(MulticlassOracle(quadratic), max_iter=9, **how).fit(X, Y)
    StructuredSVC(MulticlassOracle(quadratic), max_iter=4, checkpoint=path, **how).fit(X, Y)
    with pytest.raises(ValueError, match="the oracle's answers differ"):
        StructuredSVC(MulticlassOracle(quadratic), checkpoint=path, **how).fit(2 * X, Y)
    resumed = StructuredSVC(MulticlassOracle(quadratic), max_iter=9, checkpoint=path, **how).fit(X, Y)
    np.testing.assert_array_equal(resumed.coef_, straight.coef_)
    warm = StructuredSVC(MulticlassOracle(quadratic), warm_start=True, loss=loss, lam=0.01, tol=1e-4).fit(X, Y)
    first = warm.certificate_.epochs
    assert warm.set_params(lam=0.011).fit(X, Y).certificate_.epochs < first


# --- going wrong -----------------------------------------------------------------------------------------------------


def fit(phi="block", X=X, Y=Y, loss="hinge", **more):
    return StructuredSVC(MulticlassOracle(phi, **more), loss=loss).fit(X, Y)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"phi": "blocks"}, "phi='blocks' must be 'block', a function or a dict"),
        ({"phi": dict}, "phi=<class 'dict'> must be"),
        ({"phi": 3}, "phi=3 must be"),
        ({"phi": {"cat": [1.0]}}, "there is one only: 'cat'"),
        ({"phi": {"cat": [1.0], "dog": [2.0]}}, r"y\[2\] = 'fern' is none of the classes \['cat', 'dog'\]"),
        ({"phi": TRAITS | {"oak": [1.0]}}, "must be vectors of the same length"),
        ({"phi": TRAITS | {"oak": [1.0, np.nan, 0]}}, "the attributes of class 'oak' are not all finite"),
        ({"phi": TRAITS, "classes": [*CLASSES, "pine"]}, "phi has no attributes of class 'pine'"),
        ({"cost": np.ones((K, K))}, "0 on the diagonal"),
        ({"cost": np.zeros((2, 2))}, "cost is 2 × 2, but the data have 4 classes"),
        ({"phi": lambda X, classes: X}, r"returned shape \(50, 3\), not \(rows, 4, features\)"),
        ({"phi": lambda X, classes: quadratic(X, classes)[:9]}, "has 9 rows for 50 labels"),
        ({"phi": lambda X, classes: matrices(X, classes)[:2]}, "returned 2 matrices for 4 classes"),
        ({"phi": lambda X, c: [*matrices(X, c)[:3], X]}, r"the matrix of class 3 has shape \(50, 3\), that of class 0"),
        ({"phi": lambda X, classes: np.full((M, K, 2), np.inf)}, "is inf at row 0, class 0, feature 0"),
        ({"phi": lambda X, classes: [np.full((M, 2), np.nan)] * K}, "the matrix of class 0 has entries that are no"),
        ({"phi": lambda X, classes: "no"}, "not .rows, 4, features.|no array of numbers"),
        ({"X": X * np.nan}, "Input X contains NaN at row 0"),
        ({"X": X[:5]}, "inconsistent numbers of samples"),
        ({"X": X[:, 0]}, r"X has shape \(50,\), but must be rows × columns"),
        ({"Y": np.full(M, "cat")}, "there is one only: 'cat'"),
        ({"loss": "logistic"}, "loss='logistic' is neither 'hinge' nor 'log'"),
    ],
)
def test_what_is_wrong_is_named(given, message):
    with pytest.raises(ValueError, match=message):
        fit(**given)


def test_other_rows_at_prediction():
    with pytest.raises(ValueError, match="phi of these rows has 8 features, but the model has 12 weights"):
        fit().predict(X[:, :2])
    with pytest.raises(ValueError, match="the classes are not known yet"):
        MulticlassOracle().predict(np.zeros(3), X)


def test_exceptions_are_the_users():
    def phi(X, classes):
        raise LookupError("of my own")

    with pytest.raises(LookupError, match="of my own"):
        fit(phi)


@pytest.mark.parametrize("solver", ["pegasos", "block_frank_wolfe", "cutting_plane", Pegasos()])
def test_solvers_of_the_other_loss(solver):
    with pytest.raises(ValueError, match="is unknown; it can be auto, lbfgs or"):
        StructuredSVC(MulticlassOracle(), loss="log", solver=solver).fit(X, Y)
    with pytest.raises(ValueError, match="is unknown; it can be auto, pegasos"):
        StructuredSVC(MulticlassOracle(), solver="lbfgs").fit(X, Y)


class Bound:
    """An oracle for the log loss that is wrong on purpose."""

    def __init__(self, answer):
        self.n_rows, self.size, self.answer = 4, 2, answer

    def expect(self, w, rows, shares):
        losses, psi = np.log1p(np.exp(-w.sum())) * np.ones(4), np.ones(2) / (1 + np.exp(w.sum()))
        return self.answer(losses, psi)

    def decode(self, w, rows):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda losses, psi: (losses, -psi), "not the log loss and its gradient: the mean loss at some weights"),
        (lambda losses, psi: (losses, 3 * psi), "not the log loss and its gradient"),
        (lambda losses, psi: (losses[:2], psi), r"losses of shape \(2,\) for 4 rows"),
        (lambda losses, psi: (losses, psi[:1]), r"psi of shape \(1,\), not \(2,\)"),
        (lambda losses, psi: (-losses, psi), "the loss of row 0 is -.*, but must be a number >= 0"),
        (lambda losses, psi: (losses, psi * np.nan), "psi has nan in column 0"),
        (lambda losses, psi: losses, r"must return \(losses, psi\)"),
    ],
)
def test_oracles_that_are_wrong(answer, message):
    with pytest.raises(ValueError, match=f"oracle.expect.*{message}"):
        StructuredSVC(Bound(answer), loss="log", lam=0.1).fit()


def test_oracles_of_ones_own():
    model = StructuredSVC(Bound(lambda *both: both), loss="log", lam=0.1, tol=1e-10).fit()
    best = optimize.minimize_scalar(lambda t: 0.1 * t * t + np.log1p(np.exp(-2 * t))).fun
    assert model.certificate_.primal == pytest.approx(best, rel=1e-9)
    with pytest.raises(AttributeError, match="has no method predict"):
        model.predict_proba(X)
    with pytest.raises(ValueError, match="loss='log' needs an oracle that sums over all labellings"):
        StructuredSVC(type("Decoder", (), {"decode": None, "bind": lambda *_: object()})(), loss="log").fit(X, Y)
