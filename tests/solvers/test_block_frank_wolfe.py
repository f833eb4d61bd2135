"""Block-coordinate Frank-Wolfe with planes that are kept, and the way from Pegasos to it."""

from __future__ import annotations

import numpy as np
import pytest
import structured_oracles as so
from conftest import advance
from structured_cases import LAM, engine, oracle, problem, weights

from pegasos import BlockFrankWolfe
from pegasos.problems.base import Point
from pegasos.problems.oracle import Plane
from pegasos.problems.planes import Planes
from pegasos.solvers.structured import auto
from pegasos.solvers.structured.block import Block


@pytest.mark.parametrize("form", ["block_frank_wolfe", "block_frank_wolfe plain", "block_frank_wolfe batches"])
def test_the_dual_never_falls(form):
    p = problem(oracle(), weights())
    e, before = engine(form, p), 0.0
    for _ in range(200):
        e.advance()
        point = e.point()
        value = p.dual_value(point.duals)
        assert value >= before * (1 - 1e-12) - 1e-15
        np.testing.assert_allclose(point.model, p.dual_weights(point.duals), rtol=1e-9, atol=1e-11)
        assert np.bincount(point.duals.row, point.duals.alpha).max() <= 1 + 1e-12
        before = value


def random_block(rng, size, count):
    block, scratch = Block.fresh(), np.zeros(size)
    for _ in range(count):
        psi = np.where(rng.random(size) < 0.6, rng.standard_normal(size), 0.0)
        columns = np.flatnonzero(psi)
        block = block.with_plane(Plane(columns, psi[columns], float(rng.uniform(0, 3))), scratch)
        assert not scratch.any()
    return block


@pytest.mark.parametrize("seed", range(5))
def test_a_block_is_mixed_as_well_as_can_be(seed):
    """No plane is above the mixture, which is the condition of an optimum, and no other mixture is better."""
    rng = np.random.default_rng(seed)
    size, s = 6, 0.7
    block = random_block(rng, size, 5)
    psi = np.stack([np.zeros(size), *(np.bincount(q.columns, q.values, size) for q in map(block.plane, range(1, 6)))])
    np.testing.assert_allclose(block.gram, psi @ psi.T, rtol=1e-12, atol=1e-14)
    rest = rng.standard_normal(size)
    w = rest.copy()
    for _ in range(60):
        h = block.values(w)
        np.testing.assert_allclose(h, block.loss - psi @ w, rtol=1e-10, atol=1e-12)
        block.mix(w, h, s, float(h.max() - block.alpha @ h))
        np.testing.assert_allclose(w, rest + s * block.alpha @ psi, rtol=1e-10, atol=1e-12)

    def value(alpha):
        return alpha @ (block.loss - psi @ rest) - s / 2 * float(np.square(alpha @ psi).sum())

    assert np.max(block.loss - psi @ w) - block.alpha @ (block.loss - psi @ w) < 1e-10
    assert all(value(alpha) <= value(block.alpha) + 1e-10 for alpha in rng.dirichlet(np.full(6, 0.5), 300))


def test_planes_without_a_share_are_dropped():
    rng = np.random.default_rng(0)
    block = random_block(rng, 5, 4)
    block.alpha[:] = [0.5, 0.0, 0.5, 0.0, 0.0]
    kept = [block.plane(2), block.plane(4)]
    block.unused[3] = block.unused[1] = 1.0
    left = block.aged(2)
    assert len(left) == 3
    np.testing.assert_array_equal(left.alpha, [0.5, 0.5, 0.0])
    np.testing.assert_array_equal(left.unused, [0.0, 0.0, 1.0])
    for before, after in zip(kept, (left.plane(1), left.plane(2)), strict=True):
        np.testing.assert_array_equal(before.columns, after.columns)
        np.testing.assert_array_equal(before.values, after.values)
        assert before.loss == after.loss
    psi = np.stack([np.zeros(5), *(np.bincount(q.columns, q.values, 5) for q in map(left.plane, (1, 2)))])
    np.testing.assert_allclose(left.gram, psi @ psi.T, rtol=1e-12, atol=1e-14)
    w = rng.standard_normal(5)
    np.testing.assert_allclose(left.values(w), left.loss - psi @ w, rtol=1e-12)
    assert left.aged(2) is not left
    assert len(left) == 3


def test_fewer_planes_are_kept_where_fewer_are_asked_for():
    p = problem(oracle(rows=8))
    kept = {}
    for most in (1, 20):
        e = advance(engine(BlockFrankWolfe(unused_passes=most), p), 12)
        kept[most] = sum(map(len, e.blocks))
        assert all(np.all(block.unused[1:] < most) for block in e.blocks)
    assert kept[1] < kept[20]


def test_passes_over_kept_planes_decode_nothing():
    bound = so.Tags().bind(*so.toy(rows=8))
    e = engine("block_frank_wolfe", problem(bound))
    while e.passes < 12:
        before, decodes = len(bound.asked), e.decodes
        e.advance()
        assert len(bound.asked) - before == int(decodes)
    assert e.decoded < e.passes
    assert len(bound.asked) == round(8 * e.epochs)


@pytest.mark.parametrize("lam", [LAM, LAM / 5, LAM * 5])
def test_it_starts_from_planes(lam):
    point = advance(engine("pegasos"), 4).point()
    p = problem(lam=lam)
    e = engine("block_frank_wolfe", p)
    e.start(point)
    begun = p.dual_value(e.point().duals)
    assert begun >= max(p.dual_value(point.duals) * (1 - 1e-12), 0)
    np.testing.assert_allclose(e.w, p.dual_weights(e.point().duals), rtol=1e-10, atol=1e-13)
    e.advance()
    assert p.dual_value(e.point().duals) >= begun
    assert e.epochs == pytest.approx(1 / 8)


def test_auto_goes_from_pegasos_to_planes():
    p = problem()
    e = engine("auto", p)
    advance(e, auto.PEGASOS_EPOCHS)
    assert (e.stage, e.due(0.01), e.due(0.1)) == (0, False, True)
    seen = p.dual_value(e.point().duals)
    e.advance()
    assert e.stage == 1
    assert p.dual_value(e.point().duals) >= seen
    assert e.epochs == pytest.approx(auto.PEGASOS_EPOCHS + 1 / 8)
    warm = engine("auto", p)
    warm.start(e.point())
    assert (warm.stage, warm.epochs) == (1, 0)


def test_planes_of_no_rows_are_left_out():
    """A point may have planes of rows that have lost their weight since."""
    point = Point(np.zeros(15), Planes.of([3], [Plane(np.array([0]), np.array([1.0]), 1.0)], [1.0], 15))
    e = engine("block_frank_wolfe", problem(weight=weights()))
    e.start(point)
    assert sum(map(len, e.blocks)) == 7
