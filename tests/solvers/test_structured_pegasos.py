"""Pegasos with an oracle, against the textbook's recursion and the core's engine."""

from __future__ import annotations

import numpy as np
import pytest
import structured_oracles as so
from batch_oracles import batches
from conftest import COST, advance
from conftest import problem as linear_problem
from structured_cases import LAM, engine, oracle, problem, weights

from pegasos import Pegasos, _core
from pegasos.fit.engine import Options
from pegasos.losses import CrammerSinger
from pegasos.problems.oracle import Plane
from pegasos.solvers.structured import window
from pegasos.solvers.structured.window import Counted, Window, merged
from pegasos.util.random import uniform


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sampling", ["iid", "subset", "fixed", "permutation"])
@pytest.mark.parametrize(
    ("batch", "t0", "projection"), [(1, 0.0, False), (1, 0.0, True), (3, 4.0, False), (8, 0.0, True)]
)
def test_pegasos_takes_the_steps_of_the_paper(batch, t0, projection, sampling, weighted):
    bound, weight = oracle(), weights() if weighted else None
    n, p = bound.n_rows, problem(bound, weight)
    radius = np.sqrt(so.objective(bound.planes, np.zeros(bound.size), LAM, weight) / LAM) if projection else None
    drawn = batches(n, 4, sampling=sampling, seed=5, k=batch)
    iterates, _ = so.pegasos(bound.planes, drawn, LAM, weight=weight, t0=t0, radius=radius)
    method = {"batch_size": batch, "t0": t0, "projection": projection, "sampling": sampling}
    e = engine(Pegasos(**method), p, seed=5)
    for w in iterates[1:]:
        e.advance()
        np.testing.assert_allclose(e.point().model, w, rtol=1e-10, atol=1e-12)
    assert e.epochs == 4
    if projection and not weighted:
        assert any(np.linalg.norm(w) == pytest.approx(radius) for w in iterates)  # it was used
    # Averages: of all, and of those since the window began, at epoch 2.
    steps, begin = len(iterates) - 1, -(-2 * n // batch)
    for output, some in {"average": iterates[:steps], "suffix": iterates[begin:steps]}.items():
        e = advance(engine(Pegasos(output=output, **method), p, seed=5), 4)
        np.testing.assert_allclose(e.point().model, np.mean(some, axis=0), rtol=1e-10, atol=1e-12)


def test_pegasos_begins_as_if_it_had_seen_every_row():
    e = engine("pegasos")
    assert e.t0 == 8
    first = int(e.order[0])
    e.advance()
    psi, loss = oracle().planes[first]
    np.testing.assert_allclose(e.point().model, psi[int(np.argmax(loss))] / (LAM * 9))


def test_the_window_is_a_dual_point():
    """D = mean of the decoded losses − (λ/2)‖w_d‖², w_d = Σψ/(λnE), over the epochs of the window."""
    bound = oracle()
    p, n = problem(bound), bound.n_rows
    _, found = so.pegasos(bound.planes, batches(n, 8), LAM, t0=n)
    e = engine("pegasos", p)
    for done, first in {1: 0, 2: 1, 3: 1, 4: 2, 5: 2, 6: 2, 7: 2, 8: 4}.items():
        advance(e, done)
        some = [(i, k) for step in found[first * n : done * n] for i, k in step]
        w = sum(bound.planes[i][0][k] for i, k in some) / (LAM * n * (done - first))
        loss = sum(bound.planes[i][1][k] for i, k in some) / (n * (done - first))
        planes = e.point().duals
        np.testing.assert_allclose(np.bincount(planes.row, planes.alpha, n).max(), 1.0)
        assert p.dual_value(planes) == pytest.approx(loss - LAM / 2 * w @ w, rel=1e-12)


def test_merged_planes_change_no_bound(monkeypatch):
    p = problem(oracle(rows=5))
    apart = [p.dual_value(advance(engine("pegasos", p), k).point().duals) for k in (3, 6, 8, 15)]
    monkeypatch.setattr(window, "MOST_PLANES", 1)
    e, together = engine("pegasos", p), []
    for k in (3, 6, 8, 15):
        planes = advance(e, k).point().duals
        together.append(p.dual_value(planes))
    np.testing.assert_allclose(together, apart, rtol=1e-12)
    assert all(len(of_row) <= 1 for half in (e.window.older, e.window.newer) for of_row in half.values())


def test_planes_are_counted():
    one, two = Plane(np.array([0, 2]), np.array([1.0, -1.0]), 1.0), Plane(np.array([1, 2]), np.array([1.0, 2.0]), 4.0)
    found = Window()
    for plane in (one, two, one, Plane(np.zeros(0, dtype=int), np.zeros(0), 0.0)):
        found.add(7, plane)
    found.move()
    found.add(7, one)
    planes = found.planes(np.full(8, 0.25), 3)
    np.testing.assert_array_equal(planes.alpha, [0.75, 0.25])
    np.testing.assert_array_equal(planes.psi.toarray(), [[1, 0, -1], [0, 1, 2]])
    mean = merged(Counted(one, 2), Counted(two, 1))
    np.testing.assert_allclose(mean.plane.loss, 2.0)
    np.testing.assert_array_equal(mean.plane.columns, [0, 1])  # the third is zero
    np.testing.assert_allclose(mean.plane.values, [2 / 3, 1 / 3])


def test_the_generator_is_the_core_s():
    """By what the core draws of a stream: the first number below n."""
    for seed, stream in ((0, 0), (7, 3), (2**64 - 1, 12345)):
        drawn = _core.epoch_order(10**6, "iid", seed, stream)[0]
        assert int(uniform(seed, stream) * 10**6 - 1e-9) == drawn


class Classes:
    """Crammer–Singer's problem as an oracle."""

    def __init__(self, X, y, cost):
        self.X, self.y, self.cost = X, y, cost
        self.n_rows, self.size = len(X), len(cost) * X.shape[1]

    def decode(self, w, rows):
        psi, loss = np.zeros((len(rows), *w.reshape(len(self.cost), -1).shape)), np.zeros(len(rows))
        for k, i in enumerate(rows):
            augmented = self.cost[self.y[i]] + w.reshape(len(self.cost), -1) @ self.X[i]
            best = int(np.argmax(augmented))
            psi[k, self.y[i]] += self.X[i]
            psi[k, best] -= self.X[i]
            loss[k] = self.cost[self.y[i], best]
        return psi.reshape(len(rows), -1), loss


@pytest.mark.parametrize("output", ["last", "average", "suffix", "random"])
@pytest.mark.parametrize("batch", [1, 4])
def test_pegasos_is_the_core_s(output, batch):
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((20, 3)), rng.integers(0, 3, 20)
    weight = rng.uniform(0.5, 2, 20)
    method = Pegasos(output=output, batch_size=batch, t0=3.0)
    ours = engine(method, problem(Classes(X, y, np.array(COST)), weight), seed=9)
    theirs = method.engine(linear_problem(X, y, CrammerSinger(COST), LAM, weight=weight), Options("none", 9))
    for epochs in (1, 2, 3, 5, 8):
        W, _ = advance(theirs, epochs).model()
        np.testing.assert_allclose(advance(ours, epochs).point().model, W.ravel(), rtol=1e-9, atol=1e-12)
