"""SparseSVC: scikit-learn's checks without exception, and what it adds to SVC."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

import pegasos
from pegasos import SparseSVC
from pegasos.rows.duplicates import distinct_rows, folds


@parametrize_with_checks([SparseSVC()])
def test_defaults(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        SparseSVC(max_support=5),
        SparseSVC(variant="aggressive", max_support=20),
        SparseSVC(kernel="precomputed", variant="basic", max_support=20),
    ]
)
def test_variants(estimator, check):
    check(estimator)


def test_size_by_cross_validation():
    X, y = make_moons(600, noise=0.25, random_state=0)
    more, labels = make_moons(4000, noise=0.25, random_state=1)
    model = SparseSVC(C=10, gamma=1.0).fit(X, y)
    assert len(model.support_) < 0.4 * model.n_reference_support_
    assert model.cv_errors_.shape == model.cv_shares_.shape
    full = model._reference().fit(X, y)
    assert len(full.support_) == model.n_reference_support_
    assert model.score(more, labels) > full.score(more, labels) - 0.02
    assert model.certificate_ == full.certificate_ or model.certificate_.primal == full.certificate_.primal
    other = SparseSVC(C=10, gamma=1.0, cv=StratifiedKFold(4)).fit(X, y)
    assert other.cv_errors_.shape == model.cv_errors_.shape


def test_the_guarantee_of_the_published_method():
    X, y = make_moons(300, noise=0.25, random_state=0)
    model = SparseSVC(C=10, gamma=1.0, variant="aggressive", refit=False, max_support=300).fit(X, y)
    assert model.guarantee_.holds
    assert model.guarantee_.slant_loss <= model.guarantee_.hinge_loss


def test_several_classes_share_vectors():
    X, y = load_iris(return_X_y=True)
    model = SparseSVC(max_support=9).fit(X, y)
    assert len(model.support_) <= 9
    assert model.score(X, y) > 0.93
    assert model.n_support_.sum() == len(model.support_)
    assert model.decision_function(X).shape == (150, 3)


def test_model_files_have_what_it_adds(tmp_path):
    pytest.importorskip("safetensors")
    moons = make_moons(200, noise=0.25, random_state=0)
    model = SparseSVC(C=10, gamma=1.0).fit(*moons)
    pegasos.save(model, tmp_path / "model")
    again = pegasos.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(moons[0]), model.predict(moons[0]))
    assert again.guarantee_ == model.guarantee_
    assert again.certificate_ == model.certificate_
    assert again.n_reference_support_ == model.n_reference_support_
    np.testing.assert_array_equal(again.cv_errors_, model.cv_errors_)
    np.testing.assert_array_equal(again.cv_shares_, model.cv_shares_)


@pytest.mark.parametrize("bad", [{"cv": 1}, {"cv": 2.5}, {"max_support": -1}, {"slant_tol": 0}], ids=str)
def test_bad_parameters(bad):
    with pytest.raises(ValueError, match=next(iter(bad)).replace("slant_", "")):
        SparseSVC(**bad).fit([[0.0], [1.0]], [0, 1])


def test_equal_rows_share_a_fold():
    X = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, 0.0], [3.0, 4.0], [5.0, 6.0]])
    identity = distinct_rows(X)
    np.testing.assert_array_equal(identity, distinct_rows(sparse.csr_matrix(X.astype(np.float32))))
    assert identity[0] == identity[2]
    assert len(set(identity.tolist())) == 4
    fold = folds(identity, np.array([0, 0, 0, 1, 1]), 2)
    assert fold[0] == fold[2] != fold[1]
    assert fold[3] != fold[4]


@pytest.mark.parametrize("solver", ["smo", "sdca", "lasvm", pegasos.SBP(max_steps=2000)], ids=str)
def test_any_solver_trains_the_reference(solver):
    X, y = make_moons(300, noise=0.25, random_state=0)
    model = SparseSVC(C=10, gamma=1.0, solver=solver, max_support=15, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the SBP ends by its steps
        model.fit(X, y)
        full = model._reference().fit(X, y)
    assert len(model.support_) == 15 < model.n_reference_support_ == len(full.support_)
    assert model.certificate_.primal == full.certificate_.primal
    assert model.score(X, y) > full.score(X, y) - 0.02
