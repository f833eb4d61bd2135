"""Many classes compressed together: stacks of small pairs against one pair at a time."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from pegasos import SVC, SparseSVC, sparsify
from pegasos.kernels.functions import Kernel
from pegasos.kernels.gram import provider
from pegasos.kernels.pairs import PairMachine, class_starts, pair_count
from pegasos.losses import Hinge
from pegasos.problems.pair_parts import PairParts
from pegasos.solvers.squared_hinge import newton, newton_all
from pegasos.sparse import pair_stacks
from pegasos.sparse.compress import _merged, _rearranged
from pegasos.sparse.pair_stacks import stacks
from pegasos.sparse.published import slant_loss
from pegasos.sparse.reference import PairsOfClasses
from pegasos.sparse.span import project, project_all, span_all, span_of_rows

SIZES = [1, 2, 7, 4, 2, 5, 4]


def blobs(sizes, seed=0, columns=4):
    """Classes of so many rows that overlap, in random order."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return rng.normal(size=(len(sizes), columns))[y] + 0.7 * rng.normal(size=(len(y), columns)), y


@pytest.mark.parametrize(("stack", "waiting"), [(1 << 17, 1 << 20), (100, 200), (1, 1), (1 << 17, 300)])
@pytest.mark.parametrize("together", [0, 8, 128])
def test_stacks_have_every_small_pair_once(stack, waiting, together, monkeypatch):
    monkeypatch.setattr(pair_stacks, "STACK_VALUES", stack)
    monkeypatch.setattr(pair_stacks, "MAX_WAITING_VALUES", waiting)
    monkeypatch.setattr(pair_stacks, "MAX_STACKED_ROWS", together)
    X, y = blobs(SIZES)
    parts = PairParts(y, len(SIZES), np.ones(len(y)), Hinge(), 1.0)
    K, seen = rbf_kernel(X, gamma=0.3), []
    for found in stacks(parts, provider(X, Kernel("rbf", 0.3), 1.0, 1)):
        numbers = found.pairs(len(SIZES))
        for p, i, j, index, own in zip(numbers, found.first, found.second, found.index, found.K, strict=True):
            assert (i, j) == parts.pair(int(p))
            assert_array_equal(index, np.flatnonzero((y == i) | (y == j)))
            assert_allclose(own, K[np.ix_(index, index)], rtol=1e-12)
        seen += numbers.tolist()
    small = [p for p, (i, j) in enumerate(combinations(SIZES, 2)) if i + j <= together]
    assert sorted(seen) == small
    assert_array_equal(np.flatnonzero(pair_stacks.stacked(parts)), small)


def test_a_stack_chooses_and_fits_as_one_machine_at_a_time():
    rng = np.random.default_rng(0)
    machines, n, c = 30, 12, 5
    X = rng.normal(size=(machines, n, 3))
    rows = [provider(x, Kernel("rbf", 0.5), 1.0, 1) for x in X]
    K = np.stack([own.matrix(np.arange(n)) for own in rows])
    inner, usable = rng.normal(size=(machines, n)), rng.random((machines, n)) < 0.8
    usable[3] = False
    chosen, count = project_all(K, inner, usable, 9)
    for b, own in enumerate(rows):
        candidates = np.flatnonzero(usable[b])
        expected = project(own, candidates, inner[b, candidates], 9)
        assert_array_equal(chosen[b, : count[b]], expected)
    at, there = np.argsort(rng.random((machines, n)), axis=1)[:, :c], rng.random((machines, c)) < 0.7
    at, there = np.take_along_axis(at, np.argsort(~there, axis=1), axis=1), np.sort(there, axis=1)[:, ::-1]
    features, _ = span_all(K, at, there)
    sign, cost = rng.choice([-1.0, 1.0], size=(machines, n)), rng.uniform(0, 5, size=(machines, n))
    cost[:, 0] = 0
    for learn in (True, False):
        u, bias = newton_all(features, sign, cost, np.full(machines, 0.3), learn)
        for b, own in enumerate(rows):
            k = int(there[b].sum())
            alone = span_of_rows(own, at[b, :k], 1)
            assert_allclose(features[b, :, :k], alone.features, atol=1e-9)
            assert not features[b, :, k:].any()
            expected, b_expected = newton(alone.features, sign[b], cost[b], np.zeros(k), 0.3, learn, 1)
            assert_allclose(u[b, :k], expected, atol=1e-8)
            assert not u[b, k:].any()
            assert bias[b] == pytest.approx(b_expected, abs=1e-8)


def merged_one_at_a_time(orders, most):
    union, shares = {}, [[] for _ in orders]
    for k in range(max(map(len, orders))):
        for order, share in zip(orders, shares, strict=True):
            if k < len(order) and len(share) == k:
                row = int(order[k])
                if row not in union:
                    if len(union) == most:
                        continue
                    union[row] = len(union) + 1
                share.append(max(union[row], share[-1] if share else 0))
    return list(union), shares


@pytest.mark.parametrize("most", [0, 1, 5, 12, 100])
def test_sequences_are_merged_in_turn(most):
    rng = np.random.default_rng(most)
    orders = [rng.permutation(20)[: rng.integers(0, 8)] for _ in range(9)]
    counts, rows = np.array([len(order) for order in orders]), np.concatenate(orders)
    union, lengths, sizes = _merged(counts, rows, most)
    expected, shares = merged_one_at_a_time(orders, most)
    assert union.tolist() == expected
    for share, begin, length in zip(shares, class_starts(counts), lengths, strict=False):
        assert sizes[begin : begin + length].tolist() == share
    turn = rng.permutation(len(orders))
    assert_array_equal(_rearranged(rows, counts, turn), np.concatenate([orders[k] for k in turn]))


def test_scores_of_a_class_in_its_pairs():
    rng = np.random.default_rng(0)
    sizes = np.array([3, 0, 2, 4, 0])
    k, n = len(sizes), sizes.sum()
    machine = PairMachine(rng.normal(size=(k - 1, n)), sizes, rng.normal(size=pair_count(k)), np.arange(k), 1)
    K = rng.normal(size=(n, 6))
    scores = machine.table() @ K + machine.bias[:, None]
    for i in range(k):
        expected = [scores[p] for p, pair in enumerate(combinations(range(k), 2)) if i in pair]
        assert_allclose(machine.of_class(i, K), expected, atol=1e-12)
    nothing = PairMachine(np.zeros((2, 0)), np.zeros(3, dtype=int), np.ones(3), np.arange(3), 1)
    assert_array_equal(nothing.of_class(1, np.zeros((0, 4))), np.ones((2, 4)))


def same(a, b, rtol=1e-6):
    assert_array_equal(a.support_, b.support_)
    assert_allclose(a.dual_coef_, b.dual_coef_, rtol=rtol, atol=1e-7)
    assert_allclose(a.intercept_, b.intercept_, rtol=rtol, atol=1e-7)


@pytest.mark.parametrize("options", [{}, {"kernel": "linear"}, {"kernel": "poly", "coef0": 1.0}, {"C": 30.0}], ids=str)
@pytest.mark.parametrize("bias", ["learn", "keep"])
def test_stacks_give_what_one_pair_at_a_time_does(options, bias, monkeypatch):
    X, y = blobs([3 * size for size in SIZES])
    weight = np.random.default_rng(1).integers(0, 3, size=len(y)).astype(float)
    weight[np.unique(y, return_index=True)[1]] = 1.0
    model = SVC(gamma=0.3, **options).fit(X, y, weight)
    given = {"max_support": 30, "bias": bias, "sample_weight": weight}
    together = sparsify(model, X, y, **given)
    monkeypatch.setattr(pair_stacks, "MAX_STACKED_ROWS", 0)
    alone = sparsify(model, X, y, **given)
    # Free support vectors of a class tie in the first choice, which rounding then makes.
    alone.order = together.order
    for n in (30, 20):
        same(together.at(n), alone.at(n))
        assert together.guarantee(n).violation == pytest.approx(alone.guarantee(n).violation, abs=1e-6)
    monkeypatch.setattr(pair_stacks, "MAX_STACKED_ROWS", 18)
    some = sparsify(model, X, y, **given)
    some.order = together.order
    same(some.at(30), alone.at(30))  # pairs of both kinds


def test_no_python_for_each_small_pair(monkeypatch):
    X, y = blobs([3] * 12)
    monkeypatch.setattr(PairsOfClasses, "__getitem__", lambda self, p: pytest.fail("a pair alone"))
    model = SparseSVC(max_support=14).fit(X, y)
    assert len(model.support_) == 14
    SparseSVC().fit(X, y)


def test_no_scores_of_all_rows_in_all_pairs(monkeypatch):
    """What a guarantee needs is each row's score in the pairs of its own class."""
    X, y = blobs([3] * 12)
    monkeypatch.setattr(SVC, "_pair_scores", lambda self, X: pytest.fail("rows × pairs"))
    SparseSVC(max_support=14).fit(X, y)


@pytest.mark.parametrize("variant", ["projection", "aggressive"])
def test_the_guarantee_by_definition(variant):
    X, y = blobs(SIZES)
    model = SVC(C=5.0, gamma=0.3, decision_function_shape="ovo").fit(X, y)
    path = sparsify(model, X, y, variant=variant, max_support=12)
    before, after = model.decision_function(X), path.at().decision_function(X)
    worst, slant, hinge = [], [], []
    for p, (i, j) in enumerate(combinations(range(len(SIZES)), 2)):
        rows = np.flatnonzero((y == i) | (y == j))
        sign = np.where(y[rows] == i, 1.0, -1.0)
        g, s = sign * before[rows, p], sign * after[rows, p]
        worst += (np.minimum(1, g) - s)[g > 0].tolist()
        slant += slant_loss(s).tolist()
        hinge += np.maximum(0, 1 - g).tolist()
    found = path.guarantee()
    assert found.violation == pytest.approx(max(worst), abs=1e-9)
    assert found.slant_loss == pytest.approx(np.mean(slant), abs=1e-9)
    assert found.hinge_loss == pytest.approx(np.mean(hinge), abs=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_kernels_that_are_none_are_left_to_others():
    X, y = blobs(SIZES)
    model = SVC(kernel="sigmoid", gamma=2.0, coef0=-1.0).fit(X, y)
    small = sparsify(model, X, y, max_support=20).at()
    assert np.isfinite(small.dual_coef_).all()


def test_layouts_give_the_same():
    X, y = blobs(SIZES)
    X = np.where(np.abs(X) > 0.3, X, 0)
    C = 0.05  # so small that no support vector is free: the margins of those tie, and rounding chooses
    model = SparseSVC(C=C, gamma=0.3, max_support=12).fit(X, y)
    K = rbf_kernel(X, gamma=0.3)
    for other, rows in (
        (SparseSVC(C=C, gamma=0.3, max_support=12), sparse.csr_matrix(X)),
        (SparseSVC(C=C, kernel="precomputed", max_support=12), K),
        (SparseSVC(C=C, kernel=lambda A, B: rbf_kernel(A, B, gamma=0.3), max_support=12), X),
    ):
        other.fit(rows, y)
        assert_array_equal(other.support_, model.support_)
        assert_allclose(other.decision_function(rows), model.decision_function(X), atol=1e-6)


def test_no_support_vectors_at_all():
    X, y = blobs(SIZES)
    path = sparsify(SVC().fit(X, y), X, y, max_support=0)
    assert path.at().dual_coef_.shape == (len(SIZES) - 1, 0)
    assert np.isfinite(path.at().intercept_).all()
