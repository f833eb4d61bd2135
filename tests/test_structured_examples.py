"""The three oracles of the examples: as scripts, and against enumeration of all their labellings."""

from __future__ import annotations

import importlib
import re
import sys
from itertools import combinations, product

import numpy as np
import pytest
import structured_oracles as so
from scipy import sparse
from scripts import EXAMPLES, run

from pegasos import LinearSVC, StructuredSVC
from pegasos.losses import CrammerSinger


@pytest.fixture
def example(request, monkeypatch):
    """An example as a module."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield importlib.import_module(request.param)
    sys.modules.pop(request.param)


def of(name):
    return pytest.mark.parametrize("example", [name], indirect=True, ids=[name])


def judged(bound, planes, seed=0):
    """The oracle's answers at random weights are among the best of all labellings."""
    rng = np.random.default_rng(seed)
    for scale in (0.0, 0.1, 1.0, 5.0):
        w = scale * rng.standard_normal(bound.size)
        psi, loss = bound.decode(w, np.arange(bound.n_rows))
        psi = psi.toarray() if sparse.issparse(psi) else psi
        for k, (all_psi, all_loss) in enumerate(planes):
            values = all_loss - all_psi @ w
            assert loss[k] - psi[k] @ w == pytest.approx(values.max(), rel=1e-10, abs=1e-12)
            same = np.isclose(all_loss, loss[k]) & np.isclose(all_psi, psi[k]).all(axis=1)
            assert same.any()  # it is a labelling


# --- classes ---------------------------------------------------------------------------------------------------------


@pytest.mark.unsanitized
def test_multiclass_script(tmp_path):
    out = run("structured_multiclass.py", cwd=tmp_path)
    rows = re.findall(r"^(\S+) +([\d.]+) +([\d.]+) +[\d.e+-]+ +\d+ +\d+$", out, re.MULTILINE)
    assert [name for name, *_ in rows] == ["CrammerSinger", "auto", "block_frank_wolfe", "cutting_plane", "pegasos"]
    special = float(rows[0][1])
    for name, primal, dual in rows[1:]:
        assert float(dual) <= special * (1 + 1e-8)
        assert float(primal) == pytest.approx(special, rel=1e-2 if name == "pegasos" else 1e-5)


@of("structured_multiclass")
def test_multiclass(example):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 4)), rng.integers(0, 3, 30)
    bound = example.Multiclass(example.COST).bind(X, y)
    cost = np.array(example.COST)
    phi = [[np.kron(np.eye(3)[r], x) for r in range(3)] for x in X]
    judged(bound, [(np.stack([p[k] - p[r] for r in range(3)]), cost[k]) for p, k in zip(phi, y, strict=True)])
    special = LinearSVC(loss=CrammerSinger(cost=example.COST), fit_intercept=False, tol=1e-9).fit(X, y)
    for solver in ("auto", "cutting_plane"):
        model = StructuredSVC(example.Multiclass(example.COST), solver=solver, tol=1e-8, max_iter=5000).fit(X, y)
        assert model.certificate_.converged
        assert model.certificate_.primal == pytest.approx(special.certificate_.primal, rel=1e-7)
        # The objective is strongly convex: λ/2 times the squared distance of the weights is at most the two gaps.
        np.testing.assert_allclose(model.coef_.reshape(3, 4), special.coef_, atol=2e-3)
        np.testing.assert_array_equal(model.predict(X), special.predict(X))


# --- ranking ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.unsanitized
def test_ranking_script(tmp_path):
    out = run("structured_ranking.py", cwd=tmp_path)
    assert out.count("<- chosen") == 1
    assert "converged (gap <= tol * primal)" in out
    wrong, chance = map(float, re.search(r"new queries: ([\d.]+) \(in random order ([\d.]+)\)", out).groups())
    assert wrong < 0.2 < 0.4 < chance


def swaps(x, relevance):
    """ψ and Δ of every labelling of the pairs of a query: each may be swapped or not."""
    pairs = [(i, j) for i, j in product(range(len(x)), repeat=2) if relevance[i] > relevance[j]]
    every = [subset for size in range(len(pairs) + 1) for subset in combinations(pairs, size)]
    psi = [sum((x[i] - x[j] for i, j in subset), np.zeros(x.shape[1])) / max(len(pairs), 1) for subset in every]
    return np.stack(psi), np.array([len(subset) / max(len(pairs), 1) for subset in every])


@of("structured_ranking")
def test_ranking(example):
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((int(n), 3)) for n in (4, 5, 1, 4, 3)]
    y = [np.array(r) for r in ([0, 1, 0, 2], [1, 0, 0, 1, 1], [3], [1, 1, 1, 1], [2, 1, 0])]
    planes = [swaps(x, r) for x, r in zip(X, y, strict=True)]
    judged(example.Ranking().bind(X, y), planes)
    judged(example.Ranking().bind([sparse.csr_array(x) for x in X], y), planes)
    model = StructuredSVC(example.Ranking(), tol=1e-6).fit(X, y)
    assert model.certificate_.primal == pytest.approx(so.optimum(planes, model.lam_), rel=2e-6)


@of("structured_ranking")
def test_swapped_pairs_are_counted_by_sorting(example):
    rng = np.random.default_rng(1)
    for _ in range(20):
        n = int(rng.integers(1, 12))
        score, relevance = np.round(rng.standard_normal(n), 1), rng.integers(0, 4, n)
        count, swapped, pairs = example.swapped_pairs(score, relevance, 0.5)
        every = [(i, j) for i, j in product(range(n), repeat=2) if relevance[i] > relevance[j]]
        wrong = [(i, j) for i, j in every if score[i] - 0.5 < score[j]]
        assert (swapped, pairs) == (len(wrong), len(every))
        for k in range(n):
            assert count[k] == sum(i == k for i, _ in wrong) - sum(j == k for _, j in wrong)


@of("structured_ranking")
def test_rankings_are_judged_by_pairs(example):
    relevance = np.array([2, 0, 1])
    assert example.wrong_pairs(relevance, np.array([0, 2, 1])) == 0
    assert example.wrong_pairs(relevance, np.array([1, 2, 0])) == 1
    assert example.wrong_pairs(relevance, np.array([2, 0, 1])) == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="query 1 has 2 documents and 3 relevances"):
        example.Ranking().bind([np.ones((3, 2)), np.ones((2, 2))], [[1, 0, 0], [1, 0, 0]])


# --- segments --------------------------------------------------------------------------------------------------------


@pytest.mark.unsanitized
def test_segmentation_script(tmp_path):
    out = run("structured_segmentation.py", cwd=tmp_path)
    assert "semi-Markov: converged" in out
    single, segments = (
        tuple(map(float, re.search(rf"^{name} +([\d.]+) +([\d.]+)$", out, re.MULTILINE).groups()))
        for name in ("one observation at a time", "segments")
    )
    assert segments[0] < 0.6 * single[0]
    assert segments[1] > 2 * single[1]


def segmentations(length, longest, labels):
    """Every way to cut a sequence and label the pieces."""
    if length == 0:
        return [[]]
    found = []
    for size in range(1, min(longest, length) + 1):
        for before in segmentations(length - size, longest, labels):
            found += [[*before, (length - size, length, label)] for label in range(labels)]
    return found


@of("structured_segmentation")
def test_segmentation(example):
    rng = np.random.default_rng(0)
    model = example.Segmentation(labels=2, longest=2)
    X = [rng.standard_normal((int(n), 2)) for n in (1, 3, 4, 2, 4)]
    every = [segmentations(len(x), 2, 2) for x in X]
    y = [some[int(rng.integers(len(some)))] for some in every]
    planes = []
    for x, true, some in zip(X, y, every, strict=True):
        psi = np.stack([model.phi(x, true) - model.phi(x, other) for other in some])
        loss = [float(np.sum(example.spelled(true) != example.spelled(other))) for other in some]
        planes.append((psi, np.array(loss)))
    judged(model.bind(X, y), planes)
    fitted = StructuredSVC(model, tol=1e-6).fit(X, y)
    assert fitted.certificate_.primal == pytest.approx(so.optimum(planes, fitted.lam_), rel=2e-6)
    for x, found, some in zip(X, fitted.predict(X), every, strict=True):
        scores = [fitted.coef_ @ model.phi(x, other) for other in some]
        assert fitted.coef_ @ model.phi(x, found) == pytest.approx(max(scores))
    with pytest.raises(ValueError, match="sequence 0: segments up to 2 must cover its 3 observations"):
        model.bind([np.ones((3, 2))], [[(0, 3, 1)]])


@of("structured_segmentation")
def test_segments_are_spelled_and_read(example):
    segments = [(0, 2, 1), (2, 3, 0), (3, 6, 2)]
    np.testing.assert_array_equal(example.spelled(segments), [1, 1, 0, 2, 2, 2])
    assert example.runs(np.array([1, 1, 0, 2, 2, 2])) == segments
