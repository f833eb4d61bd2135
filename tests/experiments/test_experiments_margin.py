"""Section 3 of the 2013 paper: the perceptron on the rows with margin 1, and the convex surrogate it argues against."""

import numpy as np
import oracles as o
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel

from pegasos import SVC
from pegasos.experiments import MarginLosses, Task, margin_perceptron, margin_surrogate

GAMMA = 0.5


def noisy(m=200, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 3))
    return X, np.where(X[:, 0] * X[:, 1] + noise * rng.normal(size=m) > 0, 1.0, -1.0)


def unbiased(X, y, C=2.0, **others):
    """A task whose reference has no bias, as in the paper."""
    reference = SVC(C=C, gamma=GAMMA, fit_intercept=False, tol=1e-8, **others).fit(X, y)
    return Task(X, y, C=C, gamma=GAMMA, reference=reference)


# --- the perceptron --------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    m=st.integers(10, 80),
    C=st.sampled_from([0.5, 5.0, 100.0]),
    bias=st.booleans(),
    noise=st.sampled_from([0.0, 0.5, 2.0]),
)
def test_there_are_no_more_mistakes_than_the_square_of_the_norm(seed, m, C, bias, noise):
    X, y = noisy(m, seed, noise)
    y[0], y[1] = 1.0, -1.0
    task = Task(X, y, C=C, gamma=GAMMA) if bias else unbiased(X, y, C)
    v = task.expansion
    margins = y * v.decision_function(X)
    if not (margins >= 0.999).any():
        return
    last = margin_perceptron(task, [m], random_state=seed)[-1]
    length = np.sqrt(float(v.coef @ rbf_kernel(v.vectors, gamma=GAMMA) @ v.coef))
    bound = (length + abs(v.bias)) ** 2 / 0.999**2  # K(x, x) = 1
    assert last.details["mistake_bound"] == pytest.approx(bound, rel=1e-9)
    assert last.size <= last.details["mistakes"] <= bound
    # No row that was kept is wrong, so that the error is at most the margin error.
    kept = margins >= 0.999
    assert last.details["kept"] == kept.sum()
    assert (np.where(last.decision_function(X) > 0, 1.0, -1.0) == y)[kept].all()
    assert 1 - last.score(X, y) <= np.mean(~kept) + 1e-12


def test_it_is_the_perceptron_of_the_kept_rows():
    X, y = noisy()
    task = unbiased(X, y)
    kept = np.flatnonzero(y * task.expansion.decision_function(X) >= 1)
    rng = np.random.default_rng(5)
    order = np.concatenate([kept[rng.permutation(len(kept))] for _ in range(3)])
    expected = o.forgetron(rbf_kernel(X, gamma=GAMMA), y, order, None)
    found = margin_perceptron(task, [200], margin=1.0, epochs=3, random_state=5)[-1]
    assert found.details["mistakes"] == expected.mistakes
    coef = np.zeros(200)
    np.add.at(coef, expected.rows, expected.coef)
    np.testing.assert_array_equal(found.rows, np.flatnonzero(coef))
    np.testing.assert_allclose(found.coef, coef[found.rows])
    assert found.bias == 0


def test_a_bias_is_the_weight_of_a_constant_feature():
    X, y = noisy()
    y = np.where(y + X[:, 2] > -0.5, 1.0, -1.0)
    task = Task(X, y, C=2.0, gamma=GAMMA)
    v = task.expansion
    assert abs(v.bias) > 0.1
    length = np.sqrt(float(v.coef @ rbf_kernel(v.vectors, gamma=GAMMA) @ v.coef))
    constant = abs(v.bias) / length
    kept = np.flatnonzero(y * v.decision_function(X) >= 1)
    order = kept[np.random.default_rng(0).permutation(len(kept))]
    expected = o.forgetron(rbf_kernel(X, gamma=GAMMA) + constant, y, order, None)
    found = margin_perceptron(task, [200], margin=1.0, epochs=1)[-1]
    assert found.details["mistakes"] == expected.mistakes
    assert found.bias == pytest.approx(constant * sum(expected.coef))
    # And no other B² has a lower bound.
    bounds = [(1 + c) * (length**2 + v.bias**2 / c) for c in constant * np.array([0.5, 0.9, 1.0, 1.1, 2.0])]
    assert found.details["mistake_bound"] == pytest.approx(min(bounds))


def test_another_machine_and_sizes():
    X, y = noisy()
    task = unbiased(X, y)
    v = margin_surrogate(task, fit_intercept=False)
    found = margin_perceptron(task, [3, 10, 200], machine=v)
    assert [r.size for r in found[:2]] == [3, 10]
    assert found[-1].details["kept"] == np.sum(y * v.decision_function(X) >= 0.999)
    assert found[-1].details["kept"] != margin_perceptron(task, [200])[-1].details["kept"]


def test_bad_requests_are_refused_by_name():
    X, y = noisy(40)
    task = Task(X, y, gamma=GAMMA)
    for others, words in (
        ({"margin": 0.0}, "margin=0.0"),
        ({"margin": 1e9}, "margin=1000000000.0"),
        ({"epochs": 0}, "epochs=0"),
        ({"machine": Task(X, y, gamma=1.0).expansion}, "kernel"),
    ):
        with pytest.raises(ValueError, match=words):
            margin_perceptron(task, [5], **others)
    with pytest.raises(ValueError, match="C=-1"):
        margin_surrogate(task, C=-1.0)
    with pytest.raises(ValueError, match="tol=0"):
        margin_surrogate(task, tol=0)
    with pytest.raises(ValueError, match="margins"):
        MarginLosses.of_margins([])
    with pytest.raises(ValueError, match="margins"):
        MarginLosses.of_margins([np.nan])
    with pytest.raises(ValueError, match="classes"):
        MarginLosses.of(task.reference, X, np.zeros(40))


# --- the surrogate ---------------------------------------------------------------------------------------------------


@given(z=st.floats(-10, 10))
def test_the_surrogate_lies_above_the_margin_error_and_the_hinge(z):
    losses = MarginLosses.of_margins([z])
    assert losses.surrogate == pytest.approx(2 * max(0, 1 - z / 2))
    assert losses.margin_error == (z < 1)
    assert losses.margin_error <= losses.surrogate
    assert losses.hinge <= losses.surrogate <= losses.hinge + 1 + 1e-12


@pytest.mark.parametrize("wrong", [0.0, 0.1])
def test_what_the_paper_argues_against_it(wrong):
    """Orthonormal rows, as in Lemma 3.1: u = Σ y_i φ(x_i) has margins of 1, at the right labels, and no hinge loss.

    Its surrogate is 1, half of that of zero weights, whose hinge loss is 1 as well. With a share p of the labels turned
    L_hinge(u) = 2p and the surrogate is 1 + 2p, any multiple of it.
    """
    m = 40
    X, y = np.eye(m), np.where(np.arange(m) % 2, 1.0, -1.0)
    turned = y * np.where(np.arange(m) < wrong * m, -1, 1)
    losses = MarginLosses.of_margins(turned * (X @ (X.T @ y)))
    assert losses.hinge == pytest.approx(2 * wrong)
    assert losses.margin_error == pytest.approx(wrong)
    assert losses.surrogate == pytest.approx(1 + 2 * wrong)
    # To have no surrogate loss takes margins of 2: weights of twice the norm, and four times the support vectors.
    v = margin_surrogate(Task(X, turned, C=100.0, kernel="linear"), fit_intercept=False, tol=1e-9)
    assert v.details["losses"].surrogate == pytest.approx(0, abs=1e-6)
    assert float(v.coef @ v.coef) == pytest.approx(4 * m)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.1, 3.0])
def test_its_minimum_is_that_of_an_independent_solver(C, fit_intercept):
    X, y = noisy(80)
    v = margin_surrogate(Task(X, y, gamma=GAMMA), C=C, fit_intercept=fit_intercept, tol=1e-8)
    K = rbf_kernel(X, gamma=GAMMA)
    values, vectors = np.linalg.eigh(K)
    Z = vectors * np.sqrt(np.maximum(values, 0))

    def value(square, margins):
        return 0.5 * square + C * 2 * np.maximum(0, 1 - margins / 2).sum()

    # ½‖v‖² + C Σ 2 hinge(z/2) of v = Zᵀa: on rows Z/2 it is the hinge loss of weight 2C.
    bias = "unregularized" if fit_intercept else "none"
    star = o.optimum(Z / 2, y, loss="hinge", lam=1 / (2 * C * len(y)), bias=bias).primal * 2 * C * len(y)
    mine = value(float(v.coef @ K[np.ix_(v.rows, v.rows)] @ v.coef), y * v.decision_function(X))
    assert mine == pytest.approx(v.details["objective"], rel=1e-9)
    assert mine == pytest.approx(star, rel=1e-6)
    assert v.details["bound"] <= star * (1 + 1e-9)
    assert (v.bias == 0) == (not fit_intercept)
    losses = MarginLosses.of(v, X, y)
    assert losses == MarginLosses.of(v.to_svc(), X, y) == v.details["losses"]
    # And what the section concludes: it bounds the margin error of its own minimiser.
    assert losses.margin_error <= losses.surrogate


def test_orders_of_passes_differ():
    X, y = noisy()
    task = unbiased(X, y)
    one, two = (margin_perceptron(task, [200], random_state=seed)[-1] for seed in (0, 1))
    assert one.rows.tolist() != two.rows.tolist()
