"""A fit borrows its data: it needs memory for rows and columns, not for entries; many classes, for coefficients."""

import os
import sys
import textwrap

import processes
import pytest

pytest.importorskip("resource")
pytestmark = pytest.mark.unsanitized

CHILD = """
    import resource, sys
    import numpy as np
    from scipy import sparse
    from pegasos import LinearSVC, LinearSVR

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

    def data(m, n, k, layout, index, dtype=np.float32):
        rng = np.random.default_rng(0)
        y = np.arange(m) % 2
        if layout == "dense":
            X = np.empty((m, n), dtype=dtype)
            for rows in np.array_split(np.arange(m), 50):
                X[rows] = rng.standard_normal((len(rows), n), dtype=np.float32)
                X[rows, 0] += y[rows]
            return X, y, X.nbytes
        indices = np.empty(m * k, dtype=index)
        for j in range(k):  # column j of every row lies in the j-th stretch: sorted, never twice
            indices[j::k] = rng.integers(j * n // k, (j + 1) * n // k, m, dtype=index)
        X = sparse.csr_matrix((m, n), dtype=dtype)
        X.data, X.indices, X.indptr = np.ones(m * k, dtype=dtype), indices, np.arange(0, m * k + 1, k, dtype=index)
        return X, y, X.data.nbytes + X.indices.nbytes

    {fit}(*data(200, {n}, {k}, {layout!r}, np.{index})[:2])  # what is imported and compiled on first use
    X, y, size = data({m}, {n}, {k}, {layout!r}, np.{index})
    before = peak()
    {fit}(X, y)
    print(size, peak() - before)
"""


def growth(fit, layout, *, m, n, k=1, index="int32"):
    """The data's size and by how much a fit raised the peak of memory, in bytes."""
    code = textwrap.dedent(CHILD).format(fit=fit, layout=layout, m=m, n=n, k=k, index=index)
    done = processes.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    size, grown = map(int, done.stdout.split())
    print(f"data {size / 1e6:.0f} MB, growth {grown / 1e6:.1f} MB")
    return size, grown


@pytest.mark.parametrize(
    ("solver", "index"),
    [("auto", "int32"), ("sdca", "int64"), pytest.param("pegasos", "int64", marks=pytest.mark.slow)],
)
def test_csr_is_borrowed(solver, index):
    fit = f"LinearSVC(solver={solver!r}, lam=1e-2, max_iter=3).fit"
    size, grown = growth(fit, "csr", m=100_000, n=20_000, k=150, index=index)
    assert size > 100e6
    assert grown < 0.3 * size


@pytest.mark.parametrize(
    ("kind", "solver"),
    [
        ("LinearSVC", "auto"),
        *(pytest.param(*p, marks=pytest.mark.slow) for p in (("LinearSVC", "interior_point"), ("LinearSVR", "sdca"))),
    ],
)
def test_dense_is_borrowed(kind, solver):
    size, grown = growth(f"{kind}(solver={solver!r}, lam=1e-2, max_iter=3).fit", "dense", m=80_000, n=350)
    assert size > 100e6
    assert grown < 0.4 * size


CLASSES = """
    import numpy as np
    from pegasos import SVC

    def peak():
        with open("/proc/self/status") as status:
            return 1024 * int(next(line for line in status if line.startswith("VmHWM")).split()[1])

    def data(k):
        rng = np.random.default_rng(0)
        y = np.repeat(np.arange(k), 2)
        return rng.normal(size=(k, 8))[y] + 0.7 * rng.normal(size=(2 * k, 8)), y

    SVC(multi_class={kind!r}).fit(*data(5))
    X, y = data(600)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # forget the peak so far: a child begins with its parent's
    before = peak()
    model = SVC(multi_class={kind!r}).fit(X, y)
    print(model.dual_coef_.nbytes, peak() - before)
"""


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the peak of memory cannot be reset")
@pytest.mark.parametrize(("kind", "most"), [("ovo", 5.0), ("ovr", 6.5)])
def test_many_classes_need_little_more_than_their_coefficients(kind, most):
    """No numbers of pairs as Python objects, no second table, no arrays for each step of a certificate."""
    code = textwrap.dedent(CLASSES).format(kind=kind)
    done = processes.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    size, grown = map(int, done.stdout.split())
    print(f"coefficients {size / 1e6:.1f} MB, growth {grown / 1e6:.1f} MB")
    assert grown < most * size


def test_a_piece_is_borrowed():
    fit = "(lambda X, y: LinearSVC(lam=1e-2).partial_fit(X, y, classes=[0, 1]))"
    size, grown = growth(fit, "csr", m=100_000, n=20_000, k=150)
    assert grown < 0.3 * size
