"""Kernel values: against scikit-learn's, in every layout and precision, and the rows a solver is given."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import pairwise

from pegasos import _core
from pegasos.kernels import functions
from pegasos.kernels.cache import RowCache
from pegasos.kernels.functions import NATIVE, Kernel
from pegasos.kernels.gram import FunctionRows, NativeRows, PartRows, PrecomputedRows, SubsetRows
from pegasos.kernels.layout import compact, lean
from pegasos.rows.views import view

REFERENCE = {
    "linear": lambda A, B, k: pairwise.linear_kernel(A, B),
    "poly": lambda A, B, k: pairwise.polynomial_kernel(A, B, degree=k.degree, gamma=k.gamma, coef0=k.coef0),
    "sigmoid": lambda A, B, k: pairwise.sigmoid_kernel(A, B, gamma=k.gamma, coef0=k.coef0),
    "rbf": lambda A, B, k: pairwise.rbf_kernel(A, B, gamma=k.gamma),
    "laplacian": lambda A, B, k: pairwise.laplacian_kernel(A, B, gamma=k.gamma),
    "chi2": lambda A, B, k: pairwise.chi2_kernel(A, B, gamma=k.gamma),
}
LAYOUTS = {
    "dense": lambda X: X,
    "csr": sparse.csr_matrix,
    "csr64": lambda X: _wide(sparse.csr_matrix(X)),
}


def _wide(X):
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def rows(m, d, seed=0):
    """Nonnegative rows, half of them zeros, and a row of zeros."""
    rng = np.random.default_rng(seed)
    X = np.abs(rng.normal(size=(m, d))) * (rng.random((m, d)) < 0.5)
    X[m // 2] = 0
    return X


def values(core, m, dtype, threads=1):
    out = np.zeros((m, m), dtype=dtype)
    core.block(np.arange(m), np.arange(m), out, threads)
    return out


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.parametrize("d", [1, 5, 40])
def test_values_agree_with_scikit_learn(name, layout, d):
    X, kernel = rows(133, d), Kernel(name, 0.3, 0.5, 3)
    expected = REFERENCE[name](X, X, kernel)
    double = values(kernel.core(LAYOUTS[layout](X)), 133, np.float64)
    np.testing.assert_allclose(double, expected, rtol=1e-12, atol=1e-13)
    single = kernel.core(LAYOUTS[layout](X.astype(np.float32)))
    np.testing.assert_allclose(values(single, 133, np.float32), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(values(single, 133, np.float64), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(kernel.core(LAYOUTS[layout](X)).diagonal(), np.diagonal(expected), rtol=1e-12)


@given(st.floats(1e-4, 1e4), st.floats(-3, 3), st.integers(1, 9))
@settings(max_examples=40, deadline=None)
def test_values_agree_for_any_parameters(gamma, coef0, degree):
    X = rows(20, 4, seed=3)
    for name in ("poly", "sigmoid", "rbf", "laplacian", "chi2"):
        kernel = Kernel(name, gamma, coef0, degree)
        expected = REFERENCE[name](X, X, kernel)
        found = values(kernel.core(X), 20, np.float64)
        # The argument of exp and tanh is known to 1e-16 of its size, which is what its value then is known to.
        slack = 1e-13 * max(1.0, 30 * gamma) if name != "poly" else 1e-12 * np.abs(expected).max()
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=slack)


def test_extreme_distances_give_zero_and_one():
    X = np.array([[0.0], [1e-200], [1e3], [1e150]])
    K = values(Kernel("rbf", 1.0).core(X), 4, np.float64)
    np.testing.assert_array_equal(K, [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])


def test_a_value_depends_on_nothing_but_its_rows():
    X, kernel = rows(200, 17).astype(np.float32), Kernel("rbf", 0.2)
    for layout in LAYOUTS.values():
        core = kernel.core(layout(X))
        whole = values(core, 200, np.float32)
        np.testing.assert_array_equal(whole, values(core, 200, np.float32, threads=3))
        some, others = np.array([5, 199, 3]), np.array([7, 100, 101, 2])
        out = np.zeros((3, 4), dtype=np.float32)
        core.block(some, others, out, 1)
        np.testing.assert_array_equal(out, whole[np.ix_(some, others)])


def test_symmetric_blocks_are_what_they_should_be():
    X = rows(700, 9)
    for dtype in (np.float32, np.float64):
        K = values(Kernel("rbf", 0.3).core(X.astype(dtype)), 700, dtype, threads=2)
        np.testing.assert_allclose(K, pairwise.rbf_kernel(X, gamma=0.3), atol=1e-5 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("kind", ["native", "single", "function", "precomputed", "subset"])
def test_providers_agree_with_the_matrix(kind, monkeypatch):
    X, kernel = rows(90, 6), Kernel("rbf", 0.4)
    K = REFERENCE["rbf"](X, X, kernel)
    tight = 90 * 130 * 4 / 2**20  # a cache that has to give rows away
    if kind == "single":
        monkeypatch.setattr("pegasos.kernels.gram.MAX_DOUBLE_ROWS", 10)
    if kind in ("native", "single"):
        provider = NativeRows(X, kernel, tight, 1)
        assert provider.single == (kind == "single")
    elif kind == "function":
        provider = FunctionRows(
            X, Kernel("function", function=lambda A, B: pairwise.rbf_kernel(A, B, gamma=0.4)), tight, 1
        )
    elif kind == "precomputed":
        provider = PrecomputedRows(K, 1)
    else:
        index = np.arange(0, 90, 2)
        provider, K = SubsetRows(NativeRows(X, kernel, tight, 1), index), K[np.ix_(index, index)]
    rng, m, tol = np.random.default_rng(0), len(K), 1e-5 if kind == "single" else 1e-12
    np.testing.assert_allclose(provider.diagonal(), np.diagonal(K), rtol=1e-12)
    for _ in range(5):
        some = rng.choice(m, size=20, replace=False)
        coef, F = rng.normal(size=20), np.ones(m)
        provider.add(some, coef, F)
        np.testing.assert_allclose(F, 1 + coef @ K[some], atol=tol)
        np.testing.assert_allclose(provider.rows(some), K[some], atol=tol)
        np.testing.assert_allclose(provider.block(some, some[:7])[:, :7], K[np.ix_(some, some[:7])], atol=tol)
        np.testing.assert_allclose(provider.exact(some, coef, some[3:9]), coef @ K[np.ix_(some, some[3:9])], atol=1e-12)


def test_cached_rows_are_not_computed_again_and_the_cache_is_bounded():
    X = rows(500, 5)
    provider = NativeRows(X, Kernel("rbf", 1.0), 1.0, 1)
    assert provider.cache.store.nbytes <= 2**20
    some, F = np.arange(100), np.zeros(500)
    provider.add(some, np.ones(100), F)
    assert provider.evaluations == 100 * 500
    provider.add(some, np.ones(100), F)
    assert provider.evaluations == 100 * 500
    provider.add(np.arange(100, 500), np.ones(400), F)
    provider.add(some, np.ones(100), F)
    assert provider.evaluations > 500 * 500


@given(st.lists(st.lists(st.integers(0, 29), min_size=1, max_size=8, unique=True), max_size=30))
def test_the_cache_gives_every_row_a_slot_of_its_own(requests):
    cache = RowCache(30, np.float32, 0.0)
    cache.capacity = 10
    cache.store, cache.row, cache.used = cache.store[:10], cache.row[:10], cache.used[:10]
    for request in requests:
        wanted = np.array(request)
        slots, missing = cache.place(wanted)
        cache.store[slots[missing], 0] = wanted[missing]
        assert len(set(slots.tolist())) == len(request)
        np.testing.assert_array_equal(cache.store[slots, 0], wanted)


def test_parts_share_rows_only_if_the_matrix_fits():
    X, halves = rows(100, 3), [np.arange(50), np.arange(50, 100)]
    kernel = Kernel("rbf", 1.0)
    together, apart = PartRows(X, kernel, halves, 200.0, 1), PartRows(X, kernel, halves, 0.01, 1)
    assert together.whole is not None
    assert apart.whole is None
    for k in (0, 1, 0):
        F, G = np.zeros(50), np.zeros(50)
        together(k).add(np.arange(10), np.ones(10), F)
        apart(k).add(np.arange(10), np.ones(10), G)
        np.testing.assert_allclose(F, G, rtol=1e-12)
    assert apart.evaluations == 3 * 10 * 50


def test_rows_far_from_the_origin_are_centred_or_kept_in_double_precision(monkeypatch):
    monkeypatch.setattr("pegasos.kernels.gram.MAX_DOUBLE_ROWS", 10)
    X, kernel = np.random.default_rng(0).normal(size=(60, 3)) + 1e4, Kernel("rbf", 0.5)
    provider = NativeRows(X, kernel, 10.0, 1)
    assert provider.single
    np.testing.assert_allclose(provider.rows(np.arange(60)), pairwise.rbf_kernel(X, gamma=0.5), atol=1e-5)
    far = np.concatenate([X, -X])  # nothing to centre
    assert not NativeRows(far, kernel, 10.0, 1).single


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_lean_rows_are_the_same_rows_with_their_columns_in_another_order(layout, dtype):
    X = rows(70, 30).astype(dtype)
    X[:, ::3] = 0
    for density in (0.1, 1.0):
        thin = X * (np.random.default_rng(1).random(X.shape) < density)
        for threads in (1, 3):
            found = lean(LAYOUTS[layout](thin), threads)
            assert found.dtype == dtype
            assert found.shape[1] == np.count_nonzero(thin.any(axis=0))
            assert np.all(np.diff(np.count_nonzero(found.toarray(), axis=0)) <= 0)
            assert found.nnz == np.count_nonzero(thin)
            columns = sorted(map(tuple, thin.T[thin.any(axis=0)]))
            assert sorted(map(tuple, found.toarray().T)) == columns


def test_mostly_filled_rows_are_dense_and_nothing_else_changes():
    X = rows(40, 6) + 1.0
    np.testing.assert_array_equal(lean(sparse.csr_matrix(X)), X)
    np.testing.assert_array_equal(compact(sparse.csr_matrix(X)), X)
    thin = X * (np.random.default_rng(2).random(X.shape) < 0.2)
    np.testing.assert_array_equal(compact(thin).toarray(), thin)
    given = sparse.csr_matrix(thin)
    assert compact(given) is given


def test_columns_that_nobody_uses_take_no_room():
    indptr = np.array([0, 2, 3, 3, 3, 3])
    found = lean(sparse.csr_matrix((np.array([1.0, 2.0, 3.0]), np.array([5, 2**40, 5]), indptr), (5, 2**41)))
    assert found.shape == (5, 2)
    np.testing.assert_array_equal(found.toarray()[:2], [[1.0, 2.0], [3.0, 0.0]])
    assert lean(sparse.csr_matrix((3, 2**41))).shape == (3, 1)


@pytest.mark.parametrize("name", ["linear", "poly", "sigmoid", "rbf"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_inner_products_do_not_depend_on_the_side(name, layout):
    X = rows(150, 40).astype(np.float32)
    K = np.zeros((70, 150), dtype=np.float32)
    core = Kernel(name, 0.3, 0.5, 3).core(LAYOUTS[layout](X))
    core.block(np.arange(70), np.arange(150), K, 1)
    other = np.zeros((150, 70), dtype=np.float32)
    core.block(np.arange(150), np.arange(70), other, 1)
    np.testing.assert_array_equal(K, other.T)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_scores_in_single_precision_are_close(layout):
    X = rows(300, 20).astype(np.float32)
    core = Kernel("rbf", 0.3).core(LAYOUTS[layout](X))
    coef = np.random.default_rng(3).normal(size=(2, 300))
    exact, quick = (core.scores(None, coef, core, None, 2, single) for single in (False, True))
    np.testing.assert_allclose(exact, coef @ pairwise.rbf_kernel(X.astype(np.float64), gamma=0.3), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(quick, exact, atol=2e-5)
    assert not np.array_equal(quick, exact)


@pytest.mark.parametrize("weight", [None, np.array([1.0, 2.0, 0.0, 3.0])])
def test_scale_and_auto(weight):
    X = np.array([[0.0, 1.0], [2.0, 0.0], [5.0, 7.0], [0.0, 0.0]])
    repeated = X if weight is None else np.repeat(X, weight.astype(int), axis=0)
    expected = 1 / (2 * repeated.var())
    assert functions.scale("scale", X, weight) == pytest.approx(expected)
    assert functions.scale("scale", sparse.csr_matrix(X), weight) == pytest.approx(expected)
    assert functions.scale("auto", X) == 0.5
    assert functions.scale(3, X) == 3.0
    assert functions.scale("scale", np.ones((3, 2))) == 1.0


def test_the_core_refuses_what_does_not_fit():
    core = Kernel("rbf", 1.0).core(rows(10, 2))
    index = np.arange(10)
    with pytest.raises(ValueError, match="float"):
        core.block(index, index, np.zeros((10, 10), dtype=np.float32), 1)
    with pytest.raises(IndexError):
        core.block(index + 5, index, np.zeros((10, 10)), 1)
    with pytest.raises(ValueError, match="too small"):
        core.block(index, index, np.zeros((10, 9)), 1)
    with pytest.raises(ValueError, match="widths"):
        core.scores(None, np.ones((1, 10)), Kernel("rbf", 1.0).core(rows(4, 3)), None, 1)
    with pytest.raises(ValueError, match=r"kernel .* is none of"):
        _core.KernelRows(view(rows(3, 2)), "none", 1.0, 0.0, 3, 1)


@pytest.mark.parametrize("dear", [False, True])
@pytest.mark.parametrize("kernel", NATIVE)
@pytest.mark.parametrize("single", [False, True])
def test_squares_from_the_cache_have_the_bits_of_computed_ones(dear, kernel, single, monkeypatch):
    monkeypatch.setattr("pegasos.kernels.gram.MAX_CHEAP_ENTRIES", 0 if dear else 10**6)
    monkeypatch.setattr("pegasos.kernels.gram.MAX_DOUBLE_ROWS", 10 if single else 10**6)
    provider = NativeRows(rows(60, 5), Kernel(kernel, 0.5, 1.0, 3), 1.0, 1)
    provider.add(np.arange(0, 60, 3), np.ones(20), np.zeros(60))
    at = np.random.default_rng(0).permutation(60)[:30]
    before = provider.evaluations
    square = provider.square(at)
    missing = 30 - np.count_nonzero(at % 3 == 0)
    assert provider.evaluations - before == 30 * (missing if dear else 30)
    np.testing.assert_array_equal(square, provider.block(at, at))


def test_scores_of_several_sets_of_coefficients():
    X, coef = rows(40, 4), np.random.default_rng(0).normal(size=(3, 7))
    kernel, at = Kernel("rbf", 0.5), np.arange(0, 14, 2)
    K = pairwise.rbf_kernel(X, gamma=0.5)
    function = Kernel("function", function=lambda A, B: pairwise.rbf_kernel(A, B, gamma=0.5))
    for provider in (NativeRows(X, kernel, 1.0, 1), FunctionRows(X, function, 1.0, 1), PrecomputedRows(K, 1)):
        both = provider.exact(at, coef, np.arange(5, 40))
        np.testing.assert_allclose(both, coef @ K[at][:, 5:], rtol=1e-12)
        np.testing.assert_allclose(provider.exact(at, coef[1], np.arange(5, 40)), both[1], rtol=1e-14)
    part = SubsetRows(PrecomputedRows(K, 1), np.arange(20, 40))
    np.testing.assert_allclose(part.exact(np.arange(7), coef, np.arange(3)), coef @ K[20:27, 20:23], rtol=1e-12)
    np.testing.assert_array_equal(part.square(np.arange(3))[:, :3], K[20:23, 20:23])


def test_parts_of_all_rows_share_them():
    X = rows(40, 4)
    parts = PartRows(X, Kernel("rbf", 0.5), [None, None, None], 1e-6, 1)
    assert parts(0) is parts(2)
    assert parts.evaluations == 0
