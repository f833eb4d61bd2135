"""The randomised classifier: chances and errors that need no drawing, and what Lemma 4.1 says of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from sklearn import svm
from sklearn.datasets import load_iris, make_moons

import pegasos
from pegasos import SVC, Guarantee, RandomizedClassifier, SparseSVC, sparsify
from pegasos.sparse.published import slant_loss


@pytest.fixture(scope="module", params=[True, False], ids=["bias", "no bias"])
def case(request):
    X, y = make_moons(250, noise=0.25, random_state=0)
    model = SVC(C=3.0, gamma=1.0, fit_intercept=request.param).fit(X, y)
    return X, y, model, sparsify(model, X, y, variant="basic", refit=False)


@given(z=st.floats(-2, 2))
def test_the_slant_loss_is_the_chance_to_err(z):
    wrong, _ = integrate.quad(lambda noise: float(z + noise <= 0), -0.5, 0.5, points=[np.clip(-z, -0.5, 0.5)])
    assert slant_loss(np.array(z)) == pytest.approx(wrong, abs=1e-9)


def test_chances_and_errors_are_those_of_many_draws(case):
    X, y, _, path = case
    chance = path.randomized()
    P, n = chance.predict_proba(X), 1500
    drawn = np.mean([RandomizedClassifier(path.at(), seed).predict(X) for seed in range(n)], axis=0)
    assert ((P > 0.01) & (P < 0.99)).any()
    assert np.abs(drawn - P[:, 1]).max() < 5 * 0.5 / np.sqrt(n)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    by_hand = np.average(P[np.arange(len(y)), 1 - y], weights=weight)
    assert chance.expected_error(X, y, weight) == pytest.approx(by_hand, rel=1e-12)
    errors = np.abs(drawn - y).mean()
    assert chance.expected_error(X, y) == pytest.approx(errors, abs=0.005)


def test_the_guarantee_on_the_training_rows_is_that_of_the_path(case):
    X, y, model, path = case
    for n in (0, 3, path.n_support):
        found, own = path.randomized(n).guarantee(model, X, y), path.guarantee(n)
        assert found.violation == pytest.approx(own.violation, abs=1e-9)
        assert found.slant_loss == pytest.approx(own.slant_loss, abs=1e-9)
        assert found.hinge_loss == pytest.approx(own.hinge_loss, abs=1e-9)
        assert found.holds == own.holds
    assert path.guarantee().holds
    assert not path.guarantee(0).holds


def test_on_other_rows_it_holds_where_the_violation_is_small(case):
    _, _, model, path = case
    more, labels = make_moons(500, noise=0.25, random_state=1)
    chance = path.randomized()
    found = chance.guarantee(model, more, labels)
    g = np.where(labels > 0, 1, -1) * model.decision_function(more)
    s = np.where(labels > 0, 1, -1) * path.at().decision_function(more)
    assert found.hinge_loss == pytest.approx(np.maximum(0, 1 - g).mean())
    assert found.slant_loss == pytest.approx(chance.expected_error(more, labels))
    assert found.violation == pytest.approx((np.minimum(1, g) - s)[g > 0].max())
    near = (g <= 0) | (np.minimum(1, g) - s <= 0.5)
    some = chance.guarantee(model, more[near], labels[near])
    assert some.holds
    assert some.slant_loss <= some.hinge_loss
    # Rows of weight zero are none.
    assert chance.guarantee(model, more, labels, near.astype(float)) == Guarantee(
        some.violation, pytest.approx(some.slant_loss), pytest.approx(some.hinge_loss), True
    )


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.floats(-3, 3), st.floats(-3, 3), st.floats(0, 2)), min_size=1, max_size=8))
def test_lemma_4_1(rows):
    g, s, weight = (np.array(column) for column in zip(*rows, strict=True))
    if weight.sum() == 0:
        return
    found = Guarantee.of_margins(g, s, weight)
    assert not found.holds or found.slant_loss <= found.hinge_loss + 1e-12
    # And it is no more than sufficient: mended in every row that counts it holds.
    target = np.where(g > 0, np.maximum(s, np.minimum(1, g) - 0.5), s)
    mended = Guarantee.of_margins(g, target, weight)
    assert mended.violation <= 0.5 + 1e-12
    assert mended.slant_loss <= mended.hinge_loss + 1e-12


def test_scikit_learns_machine_is_a_reference_too(case):
    X, y, model, path = case
    if model.fit_intercept:
        theirs = svm.SVC(C=3.0, gamma=1.0, tol=1e-6).fit(X, y)
        chance = path.randomized()
        assert chance.guarantee(theirs, X, y).hinge_loss == pytest.approx(path.guarantee().hinge_loss, abs=1e-3)


def test_sparse_svc_draws(tmp_path):
    X, y = make_moons(200, noise=0.3, random_state=0)
    how = {"gamma": 1.0, "variant": "aggressive", "refit": False, "max_support": 100}
    plain = SparseSVC(**how).fit(X, y)
    model = SparseSVC(randomized=True, random_state=3, **how).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))
    np.testing.assert_array_equal(model.predict(X), model.predict(X))
    assert not np.array_equal(model.predict(X), plain.predict(X))
    assert model.score(X, y) == np.mean(model.predict(X) == y)
    np.testing.assert_array_equal(model.predict(X), RandomizedClassifier(plain, 3).predict(X))
    errors = [1 - model.set_params(random_state=seed).score(X, y) for seed in range(300)]
    assert np.mean(errors) == pytest.approx(model.guarantee_.slant_loss, abs=0.01)
    pegasos.save(model, tmp_path / "model")
    again = pegasos.load(tmp_path / "model")
    assert again.randomized is True
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="randomized=2"):
        SparseSVC(randomized=2).fit(X, y)


def test_bad_requests_are_refused_by_name(case):
    X, y, _, path = case
    chance = path.randomized()
    with pytest.raises(ValueError, match="labels that the model does not know"):
        chance.expected_error(X, y + 5)
    with pytest.raises(ValueError, match="y has shape"):
        chance.expected_error(X, y[:-1])
    with pytest.raises(ValueError, match="zero for every row"):
        chance.expected_error(X, y, np.zeros(len(y)))
    with pytest.raises(ValueError, match="reference knows the classes"):
        chance.guarantee(SVC().fit(X, y + 1), X, y)
    three = load_iris(return_X_y=True)
    several = RandomizedClassifier(SVC().fit(*three))
    assert set(several.predict(three[0])) <= {0, 1, 2}
    for call in (several.predict_proba, lambda A: several.expected_error(A, three[1])):
        with pytest.raises(ValueError, match="two classes, not for 3"):
            call(three[0])
