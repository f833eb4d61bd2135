"""Certificates of rows that lie in several places: sums of two rounds, equal to the certificate of all rows at once."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import CASES, ORACLE_BIAS, optimum, problem, toy
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from pegasos import losses
from pegasos.problems.base import Point
from pegasos.problems.feasible import balanced, sign_sums
from pegasos.problems.linear import Weights
from pegasos.problems.sums import certify_by_sums, here
from pegasos.rows.views import examples

CUTS = {"halves": [20], "one row, and none": [0, 1, 1], "every row": list(range(1, 40)), "all in one": []}


def random_point(p, rng):
    W, b = rng.normal(size=(p.outputs, p.examples.n)), rng.normal(size=p.outputs)
    return Point(
        Weights(W, np.zeros(p.outputs) if p.bias == "none" else b), 2 * rng.normal(size=(p.examples.m, p.outputs))
    )


def cut(p, point, at, layout):
    """The problem and the point of each set of rows; all but the last may be of one class, or without rows."""
    ends = [0, *at, p.examples.m]
    rows = [np.arange(a, b) for a, b in pairwise(ends) if b > a]
    return [
        (
            replace(
                p,
                examples=examples(layout(p.examples.array[i])),
                target=p.target[i],
                weight=None if p.weight is None else p.weight[i],
                of=p.total,
            ),
            point._replace(duals=None if point.duals is None else point.duals[i]),
        )
        for i in rows
    ]


@pytest.mark.parametrize("layout", [np.ascontiguousarray, sp.csr_matrix], ids=["dense", "CSR"])
@pytest.mark.parametrize("at", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("bias", ORACLE_BIAS)
@pytest.mark.parametrize("loss", CASES, ids=repr)
def test_sets_of_rows_add_up_to_the_bounds_of_all(loss, bias, at, layout):
    rng = np.random.default_rng(3)
    X, y = toy(loss, 40, 3)
    order = np.argsort(y, kind="stable")  # sets of one class
    p = problem(X[order], y[order], loss, 0.1, weight=rng.uniform(0.1, 3, 40), bias=bias, feature=0.7)
    point = random_point(p, rng)
    whole = p.certify(point)
    # Rows that are some of all cannot know the best bias of all, and are judged at the bias given.
    sets = cut(p, point._replace(model=whole.model), at, layout)
    found = certify_by_sums(sets[0][0], here(sets))
    assert_allclose(found.primal, whole.primal, rtol=1e-12)
    assert_allclose(found.dual, whole.dual, rtol=1e-11, atol=1e-12)
    assert_allclose(found.scores, whole.scores, rtol=1e-12, atol=1e-12)


def test_sets_of_rows_one_vs_rest():
    rng = np.random.default_rng(4)
    X, y = toy(losses.Hinge(), 40, 3, classes=4)
    p = problem(X, y, losses.Hinge(), 0.1, bias="free")
    point = random_point(p, rng)
    whole = p.certify(point)
    sets = cut(p, point._replace(model=whole.model), [7, 9], np.ascontiguousarray)
    found = certify_by_sums(sets[1][0], here(sets))
    assert found.primal.shape == (4,)
    assert_allclose(found.primal, whole.primal, rtol=1e-12)
    assert_allclose(found.dual, whole.dual, rtol=1e-11)


@pytest.mark.parametrize("bias", ORACLE_BIAS)
@pytest.mark.parametrize("loss", CASES, ids=repr)
def test_sums_enclose_the_optimum(loss, bias):
    """Whatever point the sets of rows have, their sums prove a lower bound of the problem of all rows."""
    rng = np.random.default_rng(5)
    X, y = toy(loss, 18, 3)
    p = problem(X, y, loss, 0.3, bias=bias)
    sets = cut(p, random_point(p, rng), [2, 11], np.ascontiguousarray)
    found = certify_by_sums(p, here(sets))
    for k, star in enumerate(optimum(p)):
        assert found.dual[k] <= star.primal * (1 + 1e-8) + 1e-12
        assert found.primal[k] >= star.dual * (1 - 1e-8) - 1e-12
        assert np.isfinite(found.dual[k])


def test_weights_alone_have_no_lower_bound():
    X, y = toy(losses.Hinge(), 12, 2)
    p = problem(X, y, losses.Hinge(), 1.0)
    point = Point(Weights(np.zeros((1, 2)), np.zeros(1)))
    found = certify_by_sums(p, here(cut(p, point, [5], np.ascontiguousarray)))
    assert_allclose(found.primal, p.at_zero())
    assert np.isneginf(found.dual).all()


@settings(deadline=None, derandomize=True, max_examples=50)
@given(seed=st.integers(0, 10**6), columns=st.integers(1, 3))
def test_balancing_scales_the_heavier_sign_only(seed, columns):
    rng = np.random.default_rng(seed)
    u, c = rng.normal(rng.normal(), 1, size=(9, columns)), rng.uniform(0, 2, 9)
    v = balanced(u, *sign_sums(c, u))
    assert np.abs(c @ v).max() <= 1e-12 * (c @ np.abs(u)).max()
    assert (np.abs(v) <= np.abs(u)).all()
    assert (v * u >= 0).all()
    up, down = sign_sums(c, u)
    light = np.where(up > down, u < 0, u > 0)
    assert (v[light] == u[light]).all()
    assert balanced(v, *sign_sums(c, v), 1e-13) is v  # what rounding has left is left alone
