"""The binary search over the bias, with values and slopes of J from an exact dual."""

from __future__ import annotations

import numpy as np
import oracles as o
import pytest
from scipy.optimize import minimize

from pegasos import theory


def value_and_slope(X, y, lam, b):
    """J(b) = min_w (lam/2)‖w‖² + mean hinge(y(⟨w, x⟩ + b)), and J′(b) = −Σ a_i y_i/m."""
    m = len(y)

    def dual(a):
        w = (a * y) @ X / (lam * m)
        return lam / 2 * w @ w - a @ (1 - y * b) / m, (y * (X @ w) - 1 + y * b) / m

    options = {"ftol": 1e-12, "gtol": 1e-9, "maxiter": 2000}
    found = minimize(dual, np.full(m, 0.5), jac=True, bounds=[(0, 1)] * m, method="L-BFGS-B", options=options)
    return -found.fun, -float(found.x @ y) / m


def uneven(seed, m=40):
    X, y = o.toy(m, 4, seed=seed, noise=0.2)
    keep = (y < 0) | (np.arange(m) % 4 == 0)
    X, y = X[keep] + 0.3, y[keep]
    return X / np.linalg.norm(X, axis=1).max(), y


@pytest.mark.parametrize("lam", [0.3, 0.02])
def test_binary_search_needs_so_many_evaluations(lam):
    X, y = uneven(0, 24)
    minority = min(np.mean(y > 0), np.mean(y < 0))
    reach, eps = theory.bias_radius(lam, 1.0, minority), 1e-2
    low, high = -reach, reach
    for _ in range(theory.bias_search_evaluations(eps, lam, 1.0, minority)):
        b = 0.5 * (low + high)
        _, slope = value_and_slope(X, y, lam, b)
        assert abs(slope) <= 1 + 1e-9
        low, high = (low, b) if slope > 0 else (b, high)
    assert 0.4 * eps < high - low <= eps
    found = value_and_slope(X, y, lam, high)[0]
    assert all(found <= value_and_slope(X, y, lam, b)[0] + eps + 1e-6 for b in np.linspace(-reach, reach, 12))


def test_the_interval_is_needed():
    """Two classes close to each other and far from 0: half of the interval would not hold the best bias."""
    X, y = np.array([[1.0]] * 10 + [[0.9]] * 10), np.repeat([1.0, -1.0], 10)
    reach = theory.bias_radius(0.002, 1.0)
    biases = np.linspace(-reach, reach, 25)
    best = biases[np.argmin([value_and_slope(X, y, 0.002, b)[0] for b in biases])]
    assert 0.5 * reach < abs(best) < reach


def test_the_number_grows_with_the_logarithm():
    calls = [theory.bias_search_evaluations(10.0**-k, 0.1, 1.0) for k in range(1, 8)]
    assert set(np.diff(calls)) <= {3, 4}
    assert theory.bias_search_evaluations(1e9, 0.1, 1.0) == 0


@pytest.mark.parametrize(
    ("name", "function", "arguments"),
    [
        ("lam", theory.bias_radius, (0.0, 1.0)),
        ("radius", theory.bias_radius, (0.1, -1.0)),
        ("minority", theory.bias_radius, (0.1, 1.0, 0.6)),
        ("eps", theory.bias_search_evaluations, (0.0, 0.1, 1.0)),
    ],
)
def test_bad_parameters_are_named(name, function, arguments):
    with pytest.raises(ValueError, match=rf"^{name} must"):
        function(*arguments)
