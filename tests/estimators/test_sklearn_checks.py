"""scikit-learn's own checks of an estimator's manners, without a single exception."""

import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from pegasos import SDCA, CuttingPlane, InteriorPoint, LinearSVC, LinearSVR
from pegasos.losses import Quantile


@parametrize_with_checks([LinearSVC(), LinearSVR()])
def test_defaults(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [
        LinearSVC(loss="squared_hinge"),
        LinearSVC(loss="smoothed_hinge"),
        LinearSVC(loss="log"),
        LinearSVC(loss="multinomial"),
        LinearSVC(intercept="feature", intercept_scaling=2.0),
        LinearSVC(solver=InteriorPoint(), n_jobs=2),
        LinearSVR(loss="squared"),
        LinearSVR(loss="huber"),
        LinearSVR(loss="quantile"),
        LinearSVR(loss=Quantile(tau=0.4), intercept="feature"),
        LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.1),
    ]
)
def test_variants(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [
        LinearSVC(loss="crammer_singer"),
        LinearSVC(multi_class="crammer_singer", intercept="feature"),
        LinearSVC(solver="sdca"),
        LinearSVC(solver="sdca", intercept="feature"),
        LinearSVC(solver=SDCA(blocks=4)),
        LinearSVC(solver=CuttingPlane()),
        LinearSVR(solver="sdca", epsilon=0.1),
        LinearSVR(solver="sdca", loss="huber"),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_first_order_methods(estimator, check):
    if "sample_weight_equivalence" in check.func.__name__:  # asks for seven digits of the weights
        estimator = clone(estimator).set_params(tol=5e-15, max_iter=20_000)
    check(estimator)
