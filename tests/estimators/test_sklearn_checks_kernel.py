"""scikit-learn's own checks of the kernel estimators' manners, without a single exception."""

import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from pegasos import LASVM, SBP, SDCA, SMO, SVC, SVR, Nystroem, Pegasos
from pegasos.losses import Quantile


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
        SVC(multi_class="ovr"),
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


@parametrize_with_checks(
    [
        SVC(solver="sdca"),
        SVC(solver=SDCA(), multi_class="ovr", intercept="feature"),
        SVC(loss="log", kernel="precomputed", max_iter=200),
        SVR(solver="sdca", n_jobs=2),
        SVR(loss=Quantile(tau=0.4), intercept="feature"),
        # All rows at once: then a weight is a repetition for every iterate of Pegasos.
        SVC(solver=Pegasos(batch_size=10**6, t0=0.0), max_iter=40),
        SVR(solver=Pegasos(batch_size=10**6, t0=0.0, projection=True), fit_intercept=False, max_iter=40),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_first_order_methods(estimator, check):
    if "decision_proba_consistency" in check.func.__name__ and estimator.kernel == "precomputed":
        pytest.skip("passes rows where a kernel matrix is asked for")
    if "sample_weight_equivalence" in check.func.__name__ and not isinstance(estimator.solver, Pegasos):
        estimator = clone(estimator).set_params(tol=5e-15, max_iter=20_000)  # asks for seven digits
    check(estimator)


@parametrize_with_checks([SVC(solver=SBP(max_steps=300), tol=0.5)])
def test_random_draws(estimator, check):
    if "sample_weight_equivalence" in check.func.__name__:
        pytest.skip("asks for seven digits; what weights and repetitions share are the bounds, see test_sbp.py")
    check(estimator)
