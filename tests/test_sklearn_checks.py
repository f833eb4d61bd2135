"""scikit-learn's own checks of an estimator's manners, without a single exception."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from pegasos import SDCA, CuttingPlane, InteriorPoint, LinearSVC, LinearSVR
from pegasos.losses import Quantile


@parametrize_with_checks([LinearSVC(), LinearSVR()])
def test_defaults(estimator, check):
    check(estimator)


VARIANTS = [
    LinearSVC(loss="squared_hinge"),
    LinearSVC(loss="smoothed_hinge"),
    LinearSVC(loss="log"),
    LinearSVC(loss="multinomial"),
    LinearSVC(loss="crammer_singer"),
    LinearSVC(solver="sdca", fit_intercept=False),
    LinearSVC(solver="sdca", intercept="feature"),
    LinearSVC(solver=SDCA(blocks=4), warm_start=True),
    LinearSVC(solver=InteriorPoint(), n_jobs=2),
    LinearSVC(solver=CuttingPlane()),
    LinearSVR(solver="sdca", epsilon=0.1),
    LinearSVR(loss="squared"),
    LinearSVR(loss="huber"),
    LinearSVR(loss="quantile"),
    LinearSVR(loss=Quantile(tau=0.4), intercept="feature"),
    LinearSVR(loss="squared_epsilon_insensitive", warm_start=True),
]


@parametrize_with_checks(VARIANTS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_variants(estimator, check):
    if "sample_weight_equivalence" in check.func.__name__:  # asks for seven digits of the optimum
        estimator.set_params(tol=1e-15, max_iter=20_000)
    check(estimator)
