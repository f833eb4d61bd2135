"""Rows that change while they are in use, by a callback, a thread or another process: refused, and never a crash.

What could crash runs in a process of its own.
"""

from __future__ import annotations

import sys
import textwrap

import numpy as np
import processes
import pytest
from scipy import sparse

from pegasos import SVC, SVR, LinearSVC, LinearSVR, _core, io
from pegasos.rows.views import examples, in_memory, is_mapped, scores, view

START = """
import sys, threading, warnings
import numpy as np
from scipy import sparse
import pegasos
import pegasos.solvers
from pegasos import LinearSVC, LinearSVR, SVC, io
from pegasos.fit.engine import Options

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)

def problem(m=400, n=50, classes=2, value=np.float64, index=np.int32):
    X = sparse.random(m, n, 0.2, "csr", random_state=0, dtype=np.float64).astype(value)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return X, rng.integers(0, classes, m)
"""


def survivor(code: str, *words: str) -> list[str]:
    """The lines that a process prints which must end as it should."""
    program = START + textwrap.dedent(code)
    done = processes.run(
        [sys.executable, "-X", "faulthandler", "-c", program, *words], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


def rows(m=30, n=7, *, value=np.float64, index=np.int32, seed=0):
    X = sparse.random(m, n, 0.5, "csr", random_state=seed).astype(value)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return X


# --- what the core reads stays inside the arrays ----------------------------------------------------------------------


def test_no_index_leads_out_of_the_weights():
    """Every solver, number of classes and type of index goes on for a while after all indices became nonsense."""
    lines = survivor("""
        for solver in ("sdca", "pegasos", "sgd", "norma", "interior_point", "smoothed_newton", "cutting_plane", "auto"):
            for classes, loss in ((2, "hinge"), (3, "hinge"), (11, "hinge"), (3, "crammer_singer")):
                if loss == "crammer_singer" and solver in ("interior_point", "smoothed_newton", "cutting_plane"):
                    continue
                for index in (np.int32, np.int64):
                    for value in (np.float32, np.float64):
                        X, y = problem(classes=classes, value=value, index=index)
                        kind = pegasos.solvers.resolve(solver)
                        model = LinearSVC(solver=kind, loss=loss, lam=1e-3)
                        data = pegasos.rows.views.examples(X)
                        target = 2.0 * y - 1 if classes == 2 and loss == "hinge" else y.astype(np.int32)
                        outputs = 1 if target.dtype == np.float64 else classes
                        task = model._problem(data, model._loss(), target, outputs, None)
                        engine = kind.engine(task, Options("unregularized", 0))
                        engine.advance()
                        wrong = rng.integers(-2**31, 2**31, len(X.indices))
                        X.indices[:] = wrong if index == np.int32 else wrong * 2**20
                        for turn in range(4):
                            try:
                                engine.advance()
                            except ValueError as error:
                                assert "changed while" in str(error), error
                        X.indptr[:] = rng.integers(-2**31, 2**31, len(X.indptr))
                        for turn in range(4):
                            try:
                                engine.advance()
                            except ValueError as error:
                                assert "changed while" in str(error), error
                        print(solver)
    """)
    assert len(lines) == 8 * 4 * 4 - 3 * 4


def test_passes_stay_inside():
    survivor("""
        for index in (np.int32, np.int64):
            for value in (np.float32, np.float64):
                X, y = problem(value=value, index=index)
                data = pegasos.rows.views.examples(X)
                some = np.arange(0, 400, 3)
                X.indices[::2] = np.iinfo(index).max
                X.indices[1::2] = np.iinfo(index).min
                for pointers in (False, True):
                    if pointers:
                        X.indptr[:] = rng.integers(np.iinfo(index).min, np.iinfo(index).max, len(X.indptr))
                    for K in (1, 3, 8, 11):
                        data.rows.scores(np.ones((K, 50)), np.zeros(K), 1, some)
                        data.rows.adjoint(np.ones((len(some), K)), 1, some)
                        view = pegasos.rows.views.view(X)
                        view.scores(np.ones((K, 50)), np.zeros(K), 2)
                        view.adjoint(np.ones((400, K)), 2)
                        view.scores_and_squares(np.ones((K, 50)), np.zeros(K), np.ones((400, K)), 2)
                        view.dual_model(np.ones((400, K)), np.zeros(K), 2)
                    data.rows.gram(np.ones(400), 1)
                    data.rows.column_scales()
                    view.inspect(1)
                    of_row, of_column = np.zeros(400, dtype=np.int64), np.zeros(50, dtype=np.int64)
                    pegasos._core.nonzeros(view, of_row, of_column, 1)
                    few = np.r_[0, np.cumsum(of_row // 2)]
                    pegasos._core.renumber(view, np.arange(50, dtype=np.int32), few, np.empty(few[-1], np.int32),
                                           np.empty(few[-1], value), 1)
    """)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_kernel_values_stay_inside_and_leave_nothing_behind(kernel):
    """Rows that are packed are unpacked where they were, not where the indices point by then."""
    lines = survivor(
        """
        from pegasos.kernels.functions import Kernel
        X, y = problem()
        model = SVC(kernel=sys.argv[1], gamma=1.0, max_time=20).fit(X, y)
        before = model.decision_function(X)
        stop = False
        Y = X.copy()
        good = Y.indices.copy()
        def scribble():
            while not stop:
                Y.indices[:] = rng.integers(-2**31, 2**31, len(Y.indices))
                Y.indices[:] = good
        thread = threading.Thread(target=scribble)
        thread.start()
        for turn in range(30):
            try:
                model.decision_function(Y)
            except ValueError as error:
                assert "column index" in str(error), error
        stop = True
        thread.join()
        print(np.array_equal(before, model.decision_function(X)))
        """,
        kernel,
    )
    assert lines == ["True"]


@pytest.mark.parametrize("n_jobs", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_thread_that_writes_all_the_time(n_jobs):
    survivor(
        """
        X, y = problem(m=2000)
        good, ends = X.indices.copy(), X.indptr.copy()
        stop = False
        def scribble():
            while not stop:
                X.indices[:] = rng.integers(-2**31, 2**31, len(good))
                X.indptr[1:-1] = rng.integers(-2**31, 2**31, len(ends) - 2)
                X.indices[:], X.indptr[:] = good, ends
        thread = threading.Thread(target=scribble)
        thread.start()
        for turn in range(20):
            for solver in ("sdca", "pegasos", "auto"):
                model = LinearSVC(solver=solver, max_iter=20, n_jobs=int(sys.argv[1]))
                try:
                    model.fit(X, y)
                    model.predict(X)
                except ValueError as error:
                    assert "CSR" in str(error) or "changed while" in str(error) or "weights left" in str(error), error
        stop = True
        thread.join()
        """,
        str(n_jobs),
    )


def test_weights_have_room_at_every_number_of_columns():
    """Masks reach to the next power of two: nothing of what is read there may get into a result."""
    for n in (1, 2, 3, 4, 5, 31, 32, 33):
        X = rows(20, n, seed=n)
        data = examples(X)
        W = np.arange(3.0 * n).reshape(3, n)
        np.testing.assert_allclose(data.rows.scores(W, np.zeros(3), 1), X @ W.T, atol=1e-12)
        C = np.arange(60.0).reshape(20, 3)
        np.testing.assert_allclose(data.rows.adjoint(C, 1), C.T @ X.toarray(), atol=1e-12)


# --- what has changed is told -----------------------------------------------------------------------------------------


def spoil(array, at, value):
    """A callback that changes an array once."""

    def call(checkpoint):
        array[at] = value

    return call


CHANGES = {
    "an index": (lambda X: spoil(X.indices, 3, 10**6), r"row \d+ has column index 1000000, outside 0 … 49"),
    "a negative index": (lambda X: spoil(X.indices, 3, -1), r"row \d+ has column index -1"),
    "an index that exists": (lambda X: spoil(X.indices, slice(0, 9), np.arange(9)), "values or columns|other values"),
    "a pointer": (lambda X: spoil(X.indptr, 5, 10**6), "indptr is wrong at row 4"),
    "a value": (lambda X: spoil(X.data, 0, 17.0), "row 0 has other values"),
    "NaN": (lambda X: spoil(X.data, 0, np.nan), r"row 0 is not finite at column \d+"),
}


@pytest.mark.parametrize("solver", ["sdca", "pegasos", "interior_point"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_callback_that_changes_the_rows(change, solver):
    rng = np.random.default_rng(0)
    m = 8000  # so many that the interior point method is certified after every step
    X = sparse.random(m, 50, 0.2, "csr", random_state=0)
    y = rng.integers(0, 2, m)
    make, message = CHANGES[change]
    model = LinearSVC(solver=solver, tol=0, max_iter=30, callback=make(X))
    with pytest.raises(ValueError, match=f"X was changed while it was in use: .*({message})"):
        model.fit(X, y)
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("value", [np.nan, 3.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_dense_rows_that_change(value, classes):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 5)), rng.integers(0, classes, 200)
    with pytest.raises(ValueError, match="X was changed while it was in use: row 7 "):
        LinearSVC(solver="sdca", tol=0, max_iter=30, callback=spoil(X, (7, 2), value)).fit(X, y)


@pytest.mark.parametrize("kind", [SVC, SVR])
def test_dense_rows_of_kernel_machines_that_change(kind):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 5)), rng.integers(0, 2, 300)
    with pytest.raises(ValueError, match="X was changed while it was in use: row 7 "):
        kind(solver="smo", tol=1e-9, callback=spoil(X, (7, 2), 3.0)).fit(X, y)


def test_targets_and_weights_are_the_fits_own():
    rng = np.random.default_rng(0)
    X, y, c = rng.normal(size=(200, 5)), rng.normal(size=200), rng.random(200)
    plain = LinearSVR(solver="sdca", tol=1e-6).fit(X, y, c)
    other, weight = y.copy(), c.copy()

    def call(checkpoint):
        other[:], weight[:] = np.nan, -1.0

    spoiled = LinearSVR(solver="sdca", tol=1e-6, callback=call).fit(X, other, weight)
    assert np.array_equal(plain.coef_, spoiled.coef_)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("value", [np.float32, np.float64])
def test_digests_see_every_change(value, index):
    X = rows(200, 9, value=value, index=index)
    data = examples(X)
    data.verify()
    data.verify(threads=3)
    for array in (X.data, X.indices, X.indptr[1:]):
        for at in (0, 1, 17, len(array) // 2, len(array) - 1):
            before = array[at]
            array[at] += 1
            with pytest.raises(ValueError, match="X was changed"):
                data.verify()
            array[at] = before
            data.verify()
    swapped = [2, 40]
    X.data[swapped] = X.data[swapped[::-1]]
    with pytest.raises(ValueError, match="X was changed"):
        data.verify()


def test_digests_do_not_depend_on_how_rows_are_cut():
    """A pass for sums cuts the rows otherwise than the check, and than one for scores alone."""
    for X in (rows(5000, 9), rows(5000, 9, value=np.float32), rows(5000, 9).toarray(), np.ones((3000, 8))[:, :5]):
        data = examples(X)
        for K in (1, 3):
            for threads in (1, 3):
                data.rows.scores(np.ones((K, data.n)), np.zeros(K), threads)
                data.rows.adjoint(np.ones((data.m, K)), threads)
                data.verify(threads)


# --- predictions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3, 11])
def test_predictions_check_the_rows_they_score(classes):
    y = np.arange(60) % classes
    X = sparse.vstack([rows(30), rows(30, seed=1)], "csr")
    model = LinearSVC(max_iter=5, tol=1).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), np.squeeze(X @ model.coef_.T + model.intercept_), atol=1e-12)
    for at, bad in ((5, 7), (5, -1), (len(X.indices) - 1, 2**31 - 1)):
        broken = X.copy()
        broken.indices[at] = bad
        with pytest.raises(ValueError, match=f"column index {bad}, outside 0 … 6"):
            model.predict(broken)
    for value, word in ((np.nan, "NaN"), (-np.inf, "infinity")):
        broken = X.copy()
        broken.data[5] = value
        with pytest.raises(ValueError, match=f"contains {word} at row"):
            model.decision_function(broken)
        for order in ("C", "F"):
            dense = X.toarray(order=order)
            dense[59, 3] = value
            with pytest.raises(ValueError, match=f"contains {word} at row 59, column 3"):
                model.predict(dense)
    broken = X.copy()
    broken.indptr[7] = -1
    with pytest.raises(ValueError, match="indptr is wrong at row 6"):
        model.predict(broken)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 3, 1500])
@pytest.mark.parametrize("K", [1, 3])
def test_scores_of_dense_rows(order, dtype, n, K):
    """Whoever multiplies, the core or BLAS."""
    rng = np.random.default_rng(0)
    X, W, b = rng.normal(size=(20, n)).astype(dtype, order=order), rng.normal(size=(K, n)), rng.normal(size=K)
    np.testing.assert_allclose(scores(X, W, b), X.astype(np.float64) @ W.T + b, rtol=1e-12, atol=1e-11)
    X[7, -1] = np.nan
    with pytest.raises(ValueError, match=f"NaN at row 17, column {n - 1}"):
        scores(X, W, b, first=10)


def test_entries_against_zero_weights_are_checked_too():
    """0 · NaN is NaN: no weight hides an entry that is not finite."""
    X = sparse.csr_matrix(np.array([[1.0, np.nan], [1.0, 2.0]]))
    with pytest.raises(ValueError, match="NaN at row 0, column 1"):
        scores(X, np.zeros((1, 2)), np.zeros(1))
    large = np.array([[1e308, 1e308]])
    assert np.isinf(scores(large, np.ones((1, 2)), np.zeros(1)))[0, 0]  # large, but finite: no reason to refuse


# --- mapped files -----------------------------------------------------------------------------------------------------


def test_what_lies_in_a_file_is_known(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(12.0).reshape(4, 3))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    assert is_mapped(mapped)
    assert is_mapped(np.asarray(mapped)[1:])
    assert is_mapped(mapped.T)
    assert not is_mapped(np.ones(3))
    assert not is_mapped(mapped + 1)
    assert not is_mapped(in_memory(mapped, "a"))
    assert np.array_equal(in_memory(mapped, "a"), mapped)
    assert view(mapped).rows == 4
    assert not _core.MappedGuard(mapped).torn


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("LinearSVC", "csr"),
        ("SVC", "dense"),
        pytest.param("LinearSVC", "dense", marks=pytest.mark.slow),
        pytest.param("SVC", "csr", marks=pytest.mark.slow),
    ],
)
def test_a_dataset_that_is_cut_short(tmp_path, layout, name):
    """Reading beyond the end of a file is a bus error; here it is an error message, during a fit or a prediction."""
    lines = survivor(
        """
        import os
        folder, layout, name = sys.argv[1:]
        X, y = problem(m=30_000 if name == "LinearSVC" else 3000)
        data = io.write_dataset(X if layout == "csr" else X.toarray(), y, folder)
        path = folder + ("/values.npy" if layout == "csr" else "/X.npy")
        def cut(checkpoint):
            os.truncate(path, 8192)
        options = {"solver": "sdca"} if name == "LinearSVC" else {"solver": "smo"}
        try:
            getattr(pegasos, name)(callback=cut, tol=1e-9, max_iter=100, **options).fit(data)
        except ValueError as error:
            print(error)
        try:
            getattr(pegasos, name)().fit(data)
        except ValueError as error:
            print(error)
        """,
        str(tmp_path / "data"),
        layout,
        name,
    )
    if name == "SVC" and layout == "csr":  # kernel machines copy sparse rows: the fit does not need the file any more
        assert len(lines) == 1
    else:
        assert "was cut short while it was read" in lines[0] or "X was changed" in lines[0]
    assert "is not what it was when the dataset was opened; open the folder again" in lines[-1]


@pytest.mark.parametrize("which", ["indices", pytest.param("indptr", marks=pytest.mark.slow), "values"])
def test_a_dataset_that_is_overwritten(tmp_path, which):
    lines = survivor(
        """
        folder, which = sys.argv[1:]
        X, y = problem(m=8000)  # so many that the interior point method is certified after every step
        data = io.write_dataset(X, y, folder)
        def overwrite(checkpoint):
            array = np.load(f"{folder}/{which}.npy", mmap_mode="r+")
            array[:] = rng.integers(2**20, 2**30, array.shape)
            array.flush()
        for solver in ("sdca", "pegasos", "interior_point"):
            data = io.write_dataset(X, y, folder, overwrite=True)
            try:
                LinearSVC(solver=solver, callback=overwrite, tol=0, max_iter=20).fit(data)
            except ValueError as error:
                print(error)
        """,
        str(tmp_path / "data"),
        which,
    )
    assert len(lines) == 3
    assert all("X was changed while it was in use" in line for line in lines)


@pytest.mark.parametrize("which", ["y", "sample_weight"])
def test_targets_of_a_dataset_that_is_cut_short(tmp_path, which):
    lines = survivor(
        """
        import os
        folder, which = sys.argv[1:]
        X, y = problem(m=20_000)
        data = io.write_dataset(X, y * 1.5, folder, sample_weight=np.ones(20_000))
        os.truncate(f"{folder}/{which}.npy", 4096)
        for use in (lambda: LinearSVR().fit(data), lambda: pegasos.rows.views.in_memory(
                data.targets if which == "y" else data.sample_weight, which)):
            try:
                use()
            except ValueError as error:
                print(error)
        """,
        str(tmp_path / "data"),
        which,
    )
    assert lines[0].endswith("is not what it was when the dataset was opened; open the folder again")
    assert lines[1] == f"the file that {which} is mapped from was cut short while it was read"


@pytest.mark.unsanitized
def test_other_bus_errors_end_the_process_as_ever(tmp_path):
    """What is not watched over is none of the guard's business."""
    program = START + textwrap.dedent("""
        import os
        np.save(sys.argv[1], np.ones(100_000))
        np.save(sys.argv[2], np.ones(100_000))
        mapped, other = (np.load(name, mmap_mode="r") for name in sys.argv[1:])
        guard = pegasos._core.MappedGuard(mapped)
        os.truncate(sys.argv[1], 4096)
        assert mapped[-1] == 0
        assert guard.torn
        os.truncate(sys.argv[2], 4096)
        print("so far", flush=True)
        other[-1]
    """)
    names = [str(tmp_path / "a.npy"), str(tmp_path / "b.npy")]
    for options in ([], ["-X", "faulthandler"]):
        done = processes.run(
            [sys.executable, *options, "-c", program, *names], capture_output=True, text=True, timeout=120
        )
        assert done.stdout == "so far\n"
        assert done.returncode == -7
        assert ("Bus error" in done.stderr) == bool(options)


def test_files_that_were_replaced_are_refused(tmp_path):
    X, y = rows(30), np.arange(30) % 2
    data = io.write_dataset(X, y, tmp_path / "data")
    model = LinearSVC().fit(data)
    io.write_dataset(X, y, tmp_path / "data", overwrite=True)
    for use in (lambda: LinearSVC().fit(data), lambda: model.predict(data), lambda: model.score(data)):
        with pytest.raises(ValueError, match=r"\.npy: is not what it was when the dataset was opened"):
            use()
