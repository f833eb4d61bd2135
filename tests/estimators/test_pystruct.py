"""Models in the style of pystruct."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import structured_oracles as so
from sklearn.base import clone

from pegasos import PystructOracle, StructuredSVC

X, Y = so.toy(rows=10)


class Chain:
    """What pystruct's models have, for the sequences of the tests' oracle."""

    def __init__(self, n_states=None):
        self.n_states = n_states

    def initialize(self, X, Y):
        self.n_states = 1 + max(int(y.max()) for y in Y)
        self.size_joint_feature = self.n_states * (X[0].shape[1] + self.n_states)

    def _tags(self):
        return so.Tags(labels=self.n_states)

    def joint_feature(self, x, y):
        return self._tags().phi(x, y)

    def loss(self, y, y_hat):
        return np.sum(y != y_hat)

    def inference(self, x, w, relaxed=None):
        assert relaxed is False
        return self._tags().predict(w, [x])[0]

    def loss_augmented_inference(self, x, y, w, relaxed=None, return_energy=False):
        assert relaxed is False
        return max(self._tags().labellings(x), key=lambda z: w @ self.joint_feature(x, z) + self.loss(y, z))


class Plain(Chain):
    """The same without the arguments that not all have."""

    def inference(self, x, w):
        return super().inference(x, w, relaxed=False)

    def loss_augmented_inference(self, x, y, w):
        return super().loss_augmented_inference(x, y, w, relaxed=False)


@pytest.mark.parametrize("model", [Chain(), Plain()], ids=["chain", "plain"])
def test_it_is_the_oracle_that_it_should_be(model):
    ours = StructuredSVC(so.Tags(), tol=1e-3).fit(X, Y)
    theirs = StructuredSVC(PystructOracle(model, exact=True), tol=1e-3).fit(X, Y)
    assert theirs.certificate_.converged
    np.testing.assert_allclose(theirs.coef_, ours.coef_, rtol=1e-9, atol=1e-12)
    assert [y.tolist() for y in theirs.predict(X)] == [y.tolist() for y in ours.predict(X)]
    assert theirs.score(X, Y) == ours.score(X, Y)
    assert model.n_states is None  # it was a copy that was initialised
    assert theirs.oracle_.model.n_states == 3


def test_it_is_not_certified_unless_it_says_that_it_is_exact():
    model = StructuredSVC(PystructOracle(Chain())).fit(X, Y)
    assert not model.certificate_.converged
    assert model.certificate_.goal_reached
    assert "the oracle is not exact" in model.certificate_.reason


def test_clones_and_pickles():
    model = clone(StructuredSVC(PystructOracle(Chain(), exact=True)))
    assert model.get_params()["oracle__exact"] is True
    model.set_params(oracle__exact=False)
    assert not model.fit(X, Y).certificate_.converged
    again = pickle.loads(pickle.dumps(model))
    assert [y.tolist() for y in again.predict(X)] == [y.tolist() for y in model.predict(X)]


def test_what_a_model_must_have():
    with pytest.raises(ValueError, match="has no method joint_feature"):
        StructuredSVC(PystructOracle(object())).fit(X, Y)

    class Unsized(Chain):
        def initialize(self, X, Y):
            pass

    with pytest.raises(ValueError, match=r"oracle\.size=None must be a whole number > 0"):
        StructuredSVC(PystructOracle(Unsized(n_states=3))).fit(X, Y)
