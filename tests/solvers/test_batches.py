"""Which rows a step of Pegasos gets: every order and every batch size, against Fig. 2 and against the optimum."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise

import chain_oracles
import numpy as np
import oracles as o
import pytest
from batch_oracles import batches, figure_2
from conftest import advance, kernel_problem, optimum, problem, toy
from numpy.testing import assert_allclose, assert_array_equal
from structured_cases import engine as structured_engine

from pegasos import SDCA, SVC, LinearSVC, Norma, Pegasos, _core, losses
from pegasos.fit.engine import Options
from pegasos.solvers import resolve
from pegasos.solvers.kernel.pegasos import Progress

SAMPLINGS = ("iid", "subset", "permutation", "fixed", "streams", "chunked")
ONCE_AN_EPOCH = ("permutation", "fixed", "streams", "chunked")


def ten_rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(10, 3))
    return X, np.sign(X[:, 0] + 0.5 * rng.normal(size=10))


def engine_of(p, solver, seed=0):
    return solver.engine(p, Options("none", seed))


def kernel_engine(p, solver):
    return resolve(solver, "kernel").engine(p, Options("none", 0, tol=-1.0))


# ---------------------------------------------------------------------------------------------------------- iterates


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("k", [1, 3, 4, 7, 10])
@pytest.mark.parametrize("project", [False, True])
def test_every_batch_of_figure_2_has_k_rows(sampling, k, project):
    """m = 10, k = 4: two batches more than half of the third epoch are not those of the short-batch recursion."""
    X, y = ten_rows()
    solver = Pegasos(t0=0, batch_size=k, sampling=sampling, projection=project)
    core = engine_of(problem(X, y, losses.Hinge(), 0.1), solver, 2).lanes.solvers[0]
    drawn = batches(10, 6, sampling=sampling, seed=2, k=k)
    assert {len(A) for A in drawn} == {k}
    for w in figure_2(X, y, drawn, 0.1, project=project)[1:]:
        core.advance(1)
        assert_allclose(core.weights()[0][0], w, rtol=1e-12, atol=1e-12)
    assert core.epochs == 6
    assert core.epoch_ended


def test_short_batches_would_be_another_algorithm():
    """So that the test above can fail."""
    X, y = ten_rows()
    rows = np.concatenate([_core.epoch_order(10, "permutation", 2, e) for e in range(3)])
    short = [rows[10 * e + s : 10 * e + min(s + 4, 10)] for e in range(3) for s in (0, 4, 8)]
    with_short = o.pegasos(X, y, short, lam=0.1)
    whole = figure_2(X, y, batches(10, 3, seed=2, k=4), 0.1)
    assert np.abs(with_short[:9] - whole[:9]).max() > 0.1


def test_more_rows_than_there_are_is_all_of_them():
    X, y = ten_rows()
    p = problem(X, y, losses.Hinge(), 0.1)
    found = [advance(engine_of(p, Pegasos(t0=0, batch_size=k)), 5).model()[0] for k in (10, 10_000_000)]
    assert_array_equal(*found)
    assert_allclose(found[0][0], figure_2(X, y, [np.arange(10)] * 5, 0.1)[-1], rtol=1e-12)


def test_a_piece_of_a_stream_ends_with_a_short_batch():
    """Its rows are forgotten, so that no later batch could have them."""
    X, y = ten_rows()
    model = LinearSVC(solver=Pegasos(t0=0, batch_size=4, sampling="fixed"), lam=0.1, fit_intercept=False)
    order = _core.epoch_order(10, "fixed", 0, 0)
    expected = o.pegasos(X, y, [order[:4], order[4:8], order[8:]], lam=0.1)[-1]
    assert_allclose(model.partial_fit(X, y, classes=[-1, 1]).coef_[0], expected, rtol=1e-12)


@pytest.mark.parametrize("k", [4, 7])
def test_epochs_that_end_within_a_batch_count_as_whole(k):
    """n_iter_ and the trace count epochs, and no limit of epochs is passed by a batch that runs over."""
    X, y = ten_rows()
    model = LinearSVC(solver=Pegasos(batch_size=k), lam=0.1, tol=0.0, max_iter=3)
    with pytest.warns(UserWarning, match="after 3 epochs"):
        model.fit(X, y)
    assert model.n_iter_ == 3
    assert model.trace_[-1].epochs == 3.0


# ------------------------------------------------------------------------------------------------------------ orders


@pytest.mark.parametrize("sampling", ["permutation", "fixed"])
def test_permutations_are_uniform_where_rows_are_short_and_many(sampling):
    """From the iterates: rows of which only the streams' order keeps neighbours together."""
    m = 300_000
    X = np.ones((m, 16), dtype=np.float32)
    first = []
    for name in (sampling, "streams", "auto"):
        core = engine_of(problem(X, np.ones(m), losses.Hinge(), 1.0), Pegasos(sampling=name), 7).lanes.solvers[0]
        core.advance(1)
        first += np.flatnonzero(core.state()["U"]).tolist()
    assert first[0] == _core.epoch_order(m, sampling, 7, 0)[0]
    assert first[1] == first[2] == _core.epoch_order(m, "streams", 7, 0, 16)[0] != first[0]


@pytest.mark.parametrize("sampling", ["permutation", "fixed", "streams"])
def test_every_permutation_is_as_likely(sampling):
    """χ² over the 24 orders of four rows, one of each of 24,000 seeds: 23 ± 6.8."""
    seen = Counter(tuple(_core.epoch_order(4, sampling, seed, 0).tolist()) for seed in range(24_000))
    assert len(seen) == 24
    assert sum((count - 1000) ** 2 / 1000 for count in seen.values()) < 23 + 6 * 6.8


@pytest.mark.parametrize(("m", "k"), [(5, 1), (5, 2), (5, 4), (6, 3)])
def test_subsets_are_uniform_and_independent(m, k):
    """χ² over all subsets, and over all pairs of subsets that follow each other."""
    sets = list(combinations(range(m), k))
    steps = [tuple(np.sort(A).tolist()) for A in batches(m, 2000 * len(sets) * k // m, sampling="subset", seed=5, k=k)]
    for seen, kinds in (
        (Counter(steps), len(sets)),
        (Counter(pairwise(steps)), len(sets) ** 2),
    ):
        expected = sum(seen.values()) / kinds
        chi2 = sum((count - expected) ** 2 / expected for count in seen.values()) + expected * (kinds - len(seen))
        assert chi2 < kinds - 1 + 6 * np.sqrt(2 * (kinds - 1))


@pytest.mark.parametrize(("m", "k"), [(1, 1), (7, 7), (1000, 3), (1000, 999), (1000, 500), (10**7, 64)])
def test_subsets_have_no_row_twice(m, k):
    drawn = _core.epoch_order(m, "subset", 1, 0, batch=k) if m <= 1000 else first_subsets(m, k)
    for at in range(0, len(drawn), k):
        A = drawn[at : at + k]
        assert len(np.unique(A)) == k
        assert A.min() >= 0
        assert A.max() < m


def first_subsets(m, k):
    return _core.epoch_order(m, "subset", 1, 3, batch=k)[: 1000 * k]


def test_a_step_has_its_subset_whatever_was_drawn_before():
    """By (seed, step): the same in any epoch's order, and pinned."""
    first, second = (_core.epoch_order(10, "subset", 3, e, batch=4) for e in (0, 1))
    assert (len(first), len(second)) == (12, 8)
    assert first.tolist() == [5, 6, 3, 1, 6, 3, 2, 7, 6, 7, 8, 1]
    assert_array_equal(_core.epoch_order(10, "subset", 3, 1, batch=4), second)
    assert not np.array_equal(_core.epoch_order(10, "subset", 4, 0, batch=4), first)


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize(("m", "k"), [(10, 1), (10, 4), (10, 10), (9, 7), (1, 1)])
def test_shares_are_counts_of_visits(sampling, m, k):
    """m times how often each row was visited between two moments; the mean of all rows for random draws."""
    visits = np.concatenate(batches(m, 9, sampling=sampling, seed=4, k=k))
    for since in (0, m, m + 2, 2 * m + 3):
        for until in (since, since + 1, 4 * m, 4 * m + 3, 5 * m + m // 2):
            counted = m * np.bincount(visits[since:until], minlength=m)
            expected = counted if sampling in ONCE_AN_EPOCH else np.full(m, until - since)
            if until >= since:
                assert_array_equal(_core.visit_shares(m, sampling, 4, since, until), expected)


# ------------------------------------------------------------------------------------------------------ certificates


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("k", [1, 4, 7, 39, 40])
@pytest.mark.parametrize("weighted", [False, True])
def test_bounds_hold_at_every_step(sampling, k, weighted):
    """D ≤ P* ≤ P in the middle of epochs and at their ends, whole or within a batch."""
    X, y = toy(losses.Hinge(), seed=11)
    c = np.random.default_rng(1).uniform(0.2, 3, 40) if weighted else None
    p = problem(X, y, losses.Hinge(), 0.1, weight=c)
    star = o.optimum(X, y, loss="hinge", lam=0.1, weight=c).primal
    for seed in range(3):
        engine = engine_of(p, Pegasos(t0=0, batch_size=k, sampling=sampling), seed)
        for rows in (1, 9, 40, 40, 17, 40, 40, 40, 11, 40):
            engine.lanes.solvers[0].advance(rows)
            bounds = p.certify(engine.point())
            assert bounds.dual[0] <= star + 1e-9 <= bounds.primal[0] + 2e-9
            u = engine.duals()[:, 0] * y
            if sampling in ONCE_AN_EPOCH:  # means of slopes, at any moment: nothing there is to clip
                assert -1e-12 <= u.min() <= u.max() <= 1 + 1e-12


@pytest.mark.parametrize("sampling", ONCE_AN_EPOCH)
@pytest.mark.parametrize("k", [7, 16])
def test_the_window_closes_the_gap_where_batches_run_over(sampling, k):
    """As fast as where they do not."""
    X, y = toy(losses.Hinge(), 60, 4)
    p = problem(X, y, losses.Hinge(), 0.1)
    star = o.optimum(X, y, loss="hinge", lam=0.1).primal
    bound = p.certify(advance(engine_of(p, Pegasos(batch_size=k, sampling=sampling)), 64).point()).dual[0]
    assert 0 <= star - bound + 1e-12 < 2e-2 * star


@pytest.mark.parametrize("loss", ["squared_hinge", "log", "crammer_singer", "multinomial"])
def test_bounds_of_other_losses(loss):
    found = losses.LOSSES[loss]()
    X, y = toy(found, seed=11)
    p = problem(X, y, found, 0.3)
    star = sum(part.primal for part in optimum(p))
    for sampling in SAMPLINGS:
        engine = engine_of(p, Pegasos(batch_size=7, sampling=sampling))
        for rows in (15, 40, 40, 40, 23):
            engine.lanes.solvers[0].advance(rows)
            bounds = p.certify(engine.point())
            assert bounds.dual.sum() <= star + 1e-8 <= bounds.primal.sum() + 2e-8


# ------------------------------------------------------------------------------------------------ states and refusals


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("output", ["last", "suffix", "random"])
def test_a_resumed_fit_has_the_same_bits(sampling, output):
    X, y = toy(losses.Hinge())
    p = problem(X, y, losses.Hinge(), 0.1)
    solver = Pegasos(batch_size=7, sampling=sampling, output=output)
    for stop in (1, 5, 6, 12, 13):
        one, other = engine_of(p, solver), engine_of(p, solver)
        for _ in range(stop):
            one.lanes.solvers[0].advance(7)
        other.restore(one.state())
        for _ in range(20):
            for engine in (one, other):
                engine.lanes.solvers[0].advance(11)
            assert one.epochs == other.epochs
            assert_array_equal(one.duals(), other.duals())
            assert_array_equal(one.model()[0], other.model()[0])


def test_a_state_beyond_the_end_of_its_epoch_is_refused():
    """Of ten rows in batches of four the second epoch visits eight."""
    X, y = ten_rows()
    engine = engine_of(problem(X, y, losses.Hinge(), 0.1), Pegasos(batch_size=4))
    state = engine.state()
    for epoch, at in ((1, 9), (0, 13), (0, 21)):
        with pytest.raises(ValueError, match="'at'"):
            engine.restore(state | {"0.epoch": np.array([float(epoch)]), "0.at": np.array([float(at)])})


def test_states_of_short_batches_are_refused():
    """Checkpoints of before, when an epoch of 40 rows ended with a batch of five."""
    X, y = toy(losses.Hinge())
    linear = engine_of(problem(X, y, losses.Hinge(), 0.1), Pegasos(batch_size=7))
    kernel = kernel_engine(kernel_problem(X, y, losses.Hinge(), 0.1), Pegasos(batch_size=7))
    structured = structured_engine(Pegasos(batch_size=3))
    for engine in (linear, kernel, structured):
        advance(engine, 1)
        engine.restore(engine.state())
    with pytest.raises(ValueError, match="'steps' of other than batch_size rows"):
        linear.restore(linear.state() | {"0.at": np.array([40.0])})
    with pytest.raises(ValueError, match="'steps' of other than batch_size rows"):
        linear.restore(linear.state() | {"0.next_window_visits": np.array([40.0])})
    scalars = kernel.state()["scalars"].copy()
    scalars[0, Progress.VISITS] = 40.0
    with pytest.raises(ValueError, match="'steps' of other than batch_size rows"):
        kernel.restore(kernel.state() | {"scalars": scalars})
    with pytest.raises(ValueError, match="'steps' of other than batch_size rows"):
        structured.restore(structured.state() | {"at": np.array([8.0])})
    corpus = chain_oracles.corpus(chain_oracles.Sizes(3, (3, 1, 4, 2, 3, 2, 1), attributes=6), seed=5)
    sequences = resolve(Pegasos(batch_size=4), "chain").engine(corpus.problem(), Options("none", 0))
    sequences.restore(sequences.state())
    with pytest.raises(ValueError, match="whole_batches"):
        sequences.restore({name: a for name, a in sequences.state().items() if name != "whole_batches"})


@pytest.mark.parametrize("sampling", ["iid", "subset", "permutation", "fixed"])
@pytest.mark.parametrize("k", [7, 39])
def test_bounds_of_kernel_machines(sampling, k):
    """A linear kernel, the dual points of linear Pegasos: D ≤ P* ≤ P after each epoch."""
    X, y = toy(losses.Hinge(), seed=11)
    p = kernel_problem(X, y, losses.Hinge(), 0.1)
    star = o.optimum(X, y, loss="hinge", lam=0.1).primal
    engine = kernel_engine(p, Pegasos(batch_size=k, sampling=sampling))
    linear = engine_of(problem(X, y, losses.Hinge(), 0.1), Pegasos(batch_size=k, sampling=sampling))
    for epochs in (1, 2, 3, 5, 9):
        bounds = p.certify(advance(engine, epochs).point())
        assert bounds.dual[0] <= star + 1e-9 <= bounds.primal[0] + 2e-9
        assert_allclose(engine.point().duals, advance(linear, epochs).duals()[:, 0], atol=1e-9)
        assert engine.epochs == epochs


def test_what_has_no_meaning_is_refused():
    X, y = ten_rows()
    with pytest.raises(ValueError, match="SDCA: sampling='subset' is none of auto, streams, permutation"):
        SDCA(sampling="subset")
    for name in ("streams", "chunked"):
        with pytest.raises(ValueError, match=f"sampling='{name}' has no meaning with a kernel"):
            SVC(solver=Pegasos(sampling=name)).fit(X, y)
    with pytest.raises(ValueError, match="Norma: sampling='subsets'"):
        Norma(sampling="subsets")
