"""Every layout of the rows gives the same numbers, for every pass and for the solvers; broken ones are found out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from conftest import advance, problem, toy
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

from pegasos import _core, losses
from pegasos.fit.engine import Options
from pegasos.rows.views import examples, view
from pegasos.solvers import SDCA, InteriorPoint, Pegasos

several = settings(deadline=None, derandomize=True, max_examples=25)


def matrix(m=30, n=7, *, density=0.5, seed=0):
    """Values that float32 holds exactly, an empty row and a zero column."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((m, n)) < density, np.round(rng.normal(size=(m, n)) * 64) / 64, 0.0)
    X[m // 2] = 0.0
    X[:, n // 2] = 0.0
    return X


def csr(X, value, index, *, unsorted=False, doubled=False):
    """CSR of given types; entries may come in reverse order, or in two halves that add up."""
    A = sparse.csr_matrix(X)
    data, indices, indptr = A.data.copy(), A.indices.copy(), A.indptr.copy()
    if doubled:
        data, indices, indptr = np.repeat(data / 2, 2), np.repeat(indices, 2), 2 * indptr
    if unsorted:
        for lo, hi in itertools.pairwise(indptr):
            data[lo:hi], indices[lo:hi] = data[lo:hi][::-1].copy(), indices[lo:hi][::-1].copy()
    made = sparse.csr_matrix(X.shape, dtype=value)
    made.data, made.indices, made.indptr = data.astype(value), indices.astype(index), indptr.astype(index)
    return made


def strided(X, dtype):
    """Rows of a wider and longer array."""
    wide = np.full((2 * len(X), X.shape[1] + 3), 7.0, dtype=dtype)
    wide[::2, : X.shape[1]] = X
    return wide[::2, : X.shape[1]]


LAYOUTS = {
    **{
        f"dense {kind} {np.dtype(t).name}": lambda X, make=make, t=t: make(X, t)
        for t in (np.float32, np.float64)
        for kind, make in {
            "C": lambda X, t: np.ascontiguousarray(X, dtype=t),
            "F": lambda X, t: np.asfortranarray(X, dtype=t),
            "strided": strided,
            "reversed": lambda X, t: np.ascontiguousarray(X[::-1], dtype=t)[::-1],
        }.items()
    },
    **{
        f"csr{extra} {np.dtype(t).name} {np.dtype(i).name}": lambda X, t=t, i=i, o=options: csr(X, t, i, **o)
        for t in (np.float32, np.float64)
        for i in (np.int32, np.int64)
        for extra, options in {
            "": {},
            " unsorted": {"unsorted": True},
            " doubled": {"doubled": True},
            " doubled unsorted": {"unsorted": True, "doubled": True},
        }.items()
    },
}
layouts = pytest.mark.parametrize("layout", LAYOUTS)


def test_layouts_hold_the_same_numbers():
    X = matrix()
    for name, make in LAYOUTS.items():
        A = make(X)
        assert np.array_equal(A.toarray() if sparse.issparse(A) else A, X), name


# ------------------------------------------------------------------------------------------------------------ passes


@layouts
@pytest.mark.parametrize("K", [1, 3, 8, 11])
def test_passes(layout, K):
    X = matrix()
    rows = examples(LAYOUTS[layout](X)).rows
    rng = np.random.default_rng(1)
    W, b, C = rng.normal(size=(K, 7)), rng.normal(size=K), rng.normal(size=(30, K))
    d, index = rng.uniform(0, 2, 30), np.array([3, 29, 0, 3, 15], dtype=np.int64)
    assert (rows.rows, rows.cols) == X.shape
    assert_allclose(rows.scores(W, b, 1), X @ W.T + b, rtol=1e-13, atol=1e-13)
    assert_allclose(rows.scores(W, b, 1, index), X[index] @ W.T + b, rtol=1e-13, atol=1e-13)
    assert_allclose(rows.adjoint(C, 1), C.T @ X, rtol=1e-13, atol=1e-13)
    assert_allclose(rows.adjoint(C[:5].copy(), 1, index), C[:5].T @ X[index], rtol=1e-13, atol=1e-13)
    Z = np.column_stack([X, np.ones(30)])
    assert_allclose(rows.gram(d, 1), (Z.T * d) @ Z, rtol=1e-13, atol=1e-13)
    assert_allclose(rows.gram(d[:5].copy(), 1, index), (Z[index].T * d[:5]) @ Z[index], rtol=1e-13, atol=1e-13)
    assert_allclose(rows.column_scales(), np.abs(X).max(0), rtol=0, atol=0)


@layouts
def test_squared_norms(layout):
    X = matrix()
    assert_allclose(examples(LAYOUTS[layout](X)).squared_norms, (X**2).sum(1), rtol=1e-14)


@several
@given(m=st.integers(1, 40), n=st.integers(1, 40), K=st.integers(1, 17), seed=st.integers(0, 10**6))
def test_passes_of_any_shape(m, n, K, seed):
    """Lengths around the widths of vector registers."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((m, n)) < 0.7, rng.normal(size=(m, n)), 0.0)
    W, b, C, d = rng.normal(size=(K, n)), rng.normal(size=K), rng.normal(size=(m, K)), rng.uniform(size=m)
    Z = np.column_stack([X, np.ones(m)])
    for A in (X, sparse.csr_matrix(X)):
        found = examples(A)
        assert_allclose(found.squared_norms, (X**2).sum(1), rtol=1e-12, atol=1e-13)
        assert_allclose(found.rows.scores(W, b, 1), X @ W.T + b, rtol=1e-11, atol=1e-12)
        assert_allclose(found.rows.adjoint(C, 1), C.T @ X, rtol=1e-11, atol=1e-12)
        assert_allclose(found.rows.gram(d, 1), (Z.T * d) @ Z, rtol=1e-11, atol=1e-12)


def tall(kind):
    """Enough rows and entries for the passes to be cut into several tasks, and for threads to be used."""
    rng = np.random.default_rng(0)
    if kind == "dense":
        return rng.normal(size=(14_000, 40)).astype(np.float32)
    return sparse.random(45_000, 30, 0.4, format="csr", random_state=rng)


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_threads_give_the_same_bits(kind):
    A = tall(kind)
    m, n = A.shape
    rows = view(A)
    rng = np.random.default_rng(2)
    for K in (1, 5):
        W, b, C = rng.normal(size=(K, n)), rng.normal(size=K), rng.normal(size=(m, K))
        for threads in (2, 3):
            assert np.array_equal(rows.scores(W, b, threads), rows.scores(W, b, 1))
            assert np.array_equal(rows.adjoint(C, threads), rows.adjoint(C, 1))
    d = rng.uniform(size=m)
    assert np.array_equal(rows.gram(d, 2), rows.gram(d, 1))
    assert np.array_equal(rows.inspect(2).squared_norms, rows.inspect(1).squared_norms)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_of_any_length(dtype, index):
    """Long rows are gathered, eight entries at a time, the last few under a mask."""
    rng = np.random.default_rng(3)
    dense = np.zeros((71, 100), dtype=dtype)
    for i in range(71):
        dense[i, rng.choice(100, size=i, replace=False)] = rng.normal(size=i)
    A = sparse.csr_matrix(dense)
    A.indices, A.indptr = A.indices.astype(index), A.indptr.astype(index)
    w, b, c = rng.normal(size=(1, 100)), rng.normal(size=1), rng.normal(size=(71, 1))
    exact = dense.astype(np.float64)
    assert_allclose(view(A).scores(w, b, 1), exact @ w.T + b, rtol=1e-12, atol=1e-12)
    assert_allclose(view(A).adjoint(c, 1), (exact.T @ c).T, rtol=1e-12, atol=1e-12)
    y = np.where(rng.random(71) < 0.5, 1.0, -1.0)
    for solver in (SDCA(), Pegasos(batch_size=3)):
        engines = [
            advance(solver.engine(problem(X, y, losses.Hinge(), 0.05, bias="feature"), Options("feature", 0)), 4)
            for X in (A, dense)
        ]
        for mine, theirs in zip(engines[0].model(), engines[1].model(), strict=True):
            assert_allclose(mine, theirs, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("outputs", [1, 2, 8, 19])
def test_the_model_of_dual_variables(outputs):
    """W = Cᵀ X and its scores in one go, for arrays that fill huge pages, too."""
    A = sparse.random(300, 20_000, density=0.01, format="csr", dtype=np.float32, random_state=0)
    rng = np.random.default_rng(4)
    C, b = rng.normal(size=(300, outputs)) * (rng.random((300, outputs)) < 0.3), rng.normal(size=outputs)
    rows, exact = view(A), A.astype(np.float64)
    for threads in (1, 3):
        W, squares, Z = rows.dual_model(C, b, threads)
        assert_allclose(W, (exact.T @ C).T, rtol=1e-10, atol=1e-12)
        assert_allclose(squares, (W**2).sum(axis=1), rtol=1e-12)
        assert_allclose(Z, exact @ W.T + b, rtol=1e-10, atol=1e-10)
        assert np.array_equal(W, rows.adjoint(C, threads))


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_threads_give_the_same_bits_of_a_fit(kind):
    A = tall(kind)
    y = np.where(np.random.default_rng(1).random(A.shape[0]) < 0.4, 1.0, -1.0)
    for solver, loss in ((InteriorPoint(), losses.Hinge()), (InteriorPoint(), losses.Log()), (SDCA(), losses.Hinge())):
        one, two = (
            advance(solver.engine(problem(A, y, loss, 0.01, bias="free", threads=t), Options("unregularized", 0)), 4)
            for t in (1, 2)
        )
        assert np.array_equal(one.model()[0], two.model()[0])
        assert np.array_equal(one.model()[1], two.model()[1])


def test_threads_give_the_same_bits_of_many_classes(monkeypatch):
    monkeypatch.setattr("pegasos.solvers.linear.lanes.MIN_THREADED_WORK", 0)
    A = tall("dense")[:1000]
    y = np.arange(1000) % 19
    one, two = (
        advance(
            SDCA().engine(problem(A, y, losses.Hinge(), 0.01, bias="free", threads=t), Options("unregularized", 0)), 3
        )
        for t in (1, 2)
    )
    assert np.array_equal(one.model()[0], two.model()[0])
    assert np.array_equal(one.duals(), two.duals())


# ----------------------------------------------------------------------------------------------------------- solvers


SOLVERS = {
    "pegasos": Pegasos(batch_size=4, projection=True),
    "average": Pegasos(output="average"),
    "sdca": SDCA(precision="double"),
    "blocks": SDCA(blocks=3, precision="double"),
    "interior point": InteriorPoint(),
}


@layouts
@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("classes", [None, 3])
def test_solvers(layout, name, classes):
    X = matrix()
    y = toy(losses.Hinge(), 30, classes=classes)[1]
    weights = []
    for A in (X, LAYOUTS[layout](X)):
        p = problem(A, y, losses.Hinge(), 0.05, bias="feature")
        weights.append(np.column_stack(advance(SOLVERS[name].engine(p, Options("feature", 0)), 5).model()))
    assert_allclose(weights[1], weights[0], rtol=1e-8, atol=1e-9)


def test_joint_losses_of_any_layout():
    X = matrix()
    for loss in (losses.CrammerSinger(), losses.Multinomial()):
        y = toy(loss, 30)[1]
        expected = {
            s: advance(SOLVERS[s].engine(problem(X, y, loss, 0.05), Options("none", 0)), 4).model()[0]
            for s in ("pegasos", "sdca")
        }
        for make in LAYOUTS.values():
            for s, W in expected.items():
                got = advance(SOLVERS[s].engine(problem(make(X), y, loss, 0.05), Options("none", 0)), 4).model()[0]
                assert_allclose(got, W, rtol=1e-8, atol=1e-9)


# ------------------------------------------------------------------------------------------------------- read-only


def test_memory_maps_are_read_where_they_lie(tmp_path):
    X = matrix(200, 7)
    path = tmp_path / "rows.npy"
    np.save(path, X)
    before = path.read_bytes()
    mapped = np.load(path, mmap_mode="r")
    p = problem(mapped, toy(losses.Hinge(), 200)[1], losses.Hinge(), 0.1)
    assert p.examples.array is mapped
    for solver in SOLVERS.values():
        plain = advance(solver.engine(problem(X, p.target, losses.Hinge(), 0.1), Options("none", 0)), 3).model()[0]
        assert np.array_equal(advance(solver.engine(p, Options("none", 0)), 3).model()[0], plain)
    del mapped, p
    assert path.read_bytes() == before


def test_sparse_memory_maps(tmp_path):
    A = csr(matrix(200, 7), np.float32, np.int32)
    maps = []
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{name}.npy", getattr(A, name))
        maps.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    B = sparse.csr_matrix(tuple(maps), shape=A.shape, copy=False)
    W = np.random.default_rng(0).normal(size=(2, 7))
    assert np.array_equal(examples(B).rows.scores(W, np.zeros(2), 1), examples(A).rows.scores(W, np.zeros(2), 1))
    assert np.array_equal(maps[0], A.data)


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_inputs_are_left_alone(kind):
    X = matrix()
    A = X if kind == "dense" else csr(X, np.float64, np.int64, unsorted=True, doubled=True)
    parts = (A,) if kind == "dense" else (A.data, A.indices, A.indptr)
    kept = [a.copy() for a in parts]
    p = problem(A, toy(losses.Hinge(), 30)[1], losses.Hinge(), 0.1)
    for solver in SOLVERS.values():
        advance(solver.engine(p, Options("none", 0)), 3)
    now = (A,) if kind == "dense" else (A.data, A.indices, A.indptr)
    assert all(np.array_equal(a, b) for a, b in zip(kept, now, strict=True))


def test_rows_keep_their_arrays_alive():
    rows = _core.Rows.dense(np.full((50, 20), 3.0))
    noise = [np.zeros((50, 20)) for _ in range(20)]
    assert (rows.scores(np.ones((1, 20)), np.zeros(1), 1) == 60).all()
    assert len(noise) == 20


# ---------------------------------------------------------------------------------------------------- what is broken


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("threads", [1, 3])
def test_inspect_finds_the_first_bad_value(bad, kind, threads):
    X = np.random.default_rng(0).normal(size=(7000, 80))
    X[6500, 1] = X[4100, 3] = X[4100, 4] = X[5000, 0] = bad
    found = view(X if kind == "dense" else sparse.csr_matrix(X)).inspect(threads)
    assert (found.bad_value_row, found.bad_value_col) == (4100, 3)
    assert not found.repeated


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_values_are_named(bad):
    X = matrix()
    X[4, 2] = bad
    what = "NaN" if np.isnan(bad) else "infinity"
    for A in (X, X.astype(np.float32), sparse.csr_matrix(X)):
        with pytest.raises(ValueError, match=rf"X contains {what} at row 4, column 2"):
            examples(A)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("bad", [-1, 7, 1000])
def test_bad_indices_are_found(index, bad):
    A = csr(matrix(), np.float64, index)
    A.indices[A.indptr[3]] = bad
    found = view(A).inspect(1)
    assert (found.bad_index_row, found.bad_index) == (3, bad)
    with pytest.raises(ValueError, match=rf"row 3 has column index {bad}"):
        examples(A)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize(("at", "value", "row"), [(0, 1, 0), (5, 0, 4), (5, 10**6, 4), (30, 10**6, 29), (3, -1, 2)])
def test_bad_pointers_are_found(index, at, value, row):
    A = csr(matrix(), np.float64, index)
    A.indptr[at] = value
    assert view(A).inspect(1).bad_pointer_row == row
    with pytest.raises(ValueError, match=rf"indptr is wrong at row {row}"):
        examples(A)


@several
@given(
    lengths=st.lists(st.sampled_from([0, 0, 1, 2, 3, 9]), min_size=1, max_size=150),
    faults=st.integers(0, 3),
    seed=st.integers(0, 2**32 - 1),
    index=st.sampled_from([np.int32, np.int64]),
)
def test_what_is_wrong_with_column_indices_is_found_wherever_it_is(lengths, faults, seed, index):
    """Rows are looked at many at a time, and their borders lie anywhere."""
    rng = np.random.default_rng(seed)
    lengths[0] = max(lengths[0], 1)
    rows = [np.sort(rng.choice(12, length, replace=False)) for length in lengths]
    indices, indptr = np.concatenate(rows).astype(index), np.concatenate([[0], np.cumsum(lengths)]).astype(index)
    indices[rng.integers(0, len(indices), faults)] = rng.integers(-2, 15, faults)
    values = rng.normal(size=len(indices))
    found = _core.Rows.csr(values, indices, indptr, 12).inspect(1)
    rows = [indices[lo:hi] for lo, hi in itertools.pairwise(indptr)]
    outside = [(i, j) for i, row in enumerate(rows) for j in row if not 0 <= j < 12]
    assert found.repeated == any(np.any(np.diff(row) <= 0) for row in rows)
    assert (found.bad_index_row, found.bad_index) == (outside[0] if outside else (-1, 0))
    norms = [values[lo:hi] @ values[lo:hi] for lo, hi in itertools.pairwise(indptr)]
    assert_allclose(found.squared_norms, norms, rtol=1e-14)


def test_repeated_and_unsorted_are_told():
    X = matrix()
    assert not view(csr(X, np.float64, np.int32)).inspect(1).repeated
    assert view(csr(X, np.float64, np.int32, unsorted=True)).inspect(1).repeated
    assert view(csr(X, np.float64, np.int32, doubled=True)).inspect(1).repeated


def test_rows_too_long_are_named():
    X = matrix()
    X[5, 1] = 1e200
    with pytest.raises(ValueError, match=r"row 5 .*overflows"):
        examples(X)


def test_sums_that_overflow_are_found():
    A = csr(matrix(), np.float32, np.int32, doubled=True)
    A.data[A.indptr[2] : A.indptr[2] + 2] = np.finfo(np.float32).max
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="row 2"):
        examples(A)


def test_passes_check_their_arguments():
    rows = view(matrix())
    with pytest.raises(ValueError, match="W"):
        rows.scores(np.zeros((1, 6)), np.zeros(1), 1)
    with pytest.raises(ValueError, match="b"):
        rows.scores(np.zeros((1, 7)), np.zeros(2), 1)
    with pytest.raises(ValueError, match="C"):
        rows.adjoint(np.zeros((29, 1)), 1)
    with pytest.raises(ValueError, match="d"):
        rows.gram(np.zeros(29), 1)
    for bad in (-1, 30):
        with pytest.raises(IndexError):
            rows.scores(np.zeros((1, 7)), np.zeros(1), 1, np.array([bad], dtype=np.int64))
    with pytest.raises(TypeError):
        rows.scores(np.zeros((1, 7), dtype=np.float32), np.zeros(1), 1)  # never converted in silence
