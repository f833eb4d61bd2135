"""BLAS is held to one thread while anyone fits, and gets back what it had; no bit depends on its number of threads."""

import os
import threading

import numpy as np
import pytest
from sklearn.datasets import make_moons
from threadpoolctl import threadpool_info, threadpool_limits

from pegasos import SVC, LinearSVC, solvers, sparsify
from pegasos.util import threads as threads_module

pytestmark = pytest.mark.unsanitized


def numbers():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@pytest.fixture(autouse=True)
def three_threads():
    """More than one, whatever the machine has; and nobody leaves it changed."""
    with threadpool_limits(3, "blas"):
        before = numbers()
        assert min(before) > 1
        yield
        assert numbers() == before


def elsewhere(function):
    """What the function returns in a thread of its own."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join(60)
    (result,) = found
    return result


# --- the context -----------------------------------------------------------------------------------------------------


def test_one_thread_inside_and_as_many_as_before_outside():
    with threads_module.one_blas_thread():
        assert set(numbers()) == {1}
        with threads_module.one_blas_thread():
            assert set(numbers()) == {1}
        assert set(numbers()) == {1}


def test_any_python_thread_can_ask_for_it():
    def inside():
        with threads_module.one_blas_thread():
            return numbers()

    assert set(elsewhere(inside)) == {1}


def test_the_last_that_leaves_restores():
    """Two that overlap without one being inside the other."""
    entered, left = threading.Event(), threading.Event()
    seen = []

    def second():
        with threads_module.one_blas_thread():
            entered.set()
            left.wait(60)
            seen.append(numbers())

    thread = threading.Thread(target=second)
    with threads_module.one_blas_thread():
        thread.start()
        assert entered.wait(60)
    assert set(numbers()) == {1}
    left.set()
    thread.join(60)
    assert set(seen[0]) == {1}


def test_what_is_raised_inside_restores_too():
    with pytest.raises(KeyboardInterrupt), threads_module.one_blas_thread():
        raise KeyboardInterrupt


def test_an_interrupt_on_the_way_in_restores_too(monkeypatch):
    def set_threads(library, number):
        original(library, number)
        if number == 1:
            raise KeyboardInterrupt

    original = threads_module._set_threads
    monkeypatch.setattr(threads_module, "_set_threads", set_threads)
    with pytest.raises(KeyboardInterrupt), threads_module.one_blas_thread():
        pass
    monkeypatch.undo()
    with threads_module.one_blas_thread():
        assert set(numbers()) == {1}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_does_not_wait_for_threads_that_are_gone():
    entered, left = threading.Event(), threading.Event()

    def other():
        with threads_module.one_blas_thread():
            entered.set()
            left.wait(60)

    thread = threading.Thread(target=other)
    thread.start()
    assert entered.wait(60)
    child = os.fork()
    if child == 0:
        held = threads_module._one_blas_thread
        fine = held.holders == 0 and min(library.get_num_threads() for library in threads_module._blas()) > 1
        with held:
            fine = fine and {library.get_num_threads() for library in threads_module._blas()} == {1}
        os._exit(0 if fine else 1)
    _, status = os.waitpid(child, 0)
    left.set()
    thread.join(60)
    assert os.waitstatus_to_exitcode(status) == 0


class OpenMP:
    """A library whose number of threads is a setting of each Python thread."""

    threading_layer = "openmp"

    def __init__(self):
        self.own = threading.local()

    def get_num_threads(self):
        return getattr(self.own, "number", 8)

    def set_num_threads(self, number):
        self.own.number = number


def test_where_each_python_thread_has_a_number_of_its_own(monkeypatch):
    library, held = OpenMP(), threads_module._OneBlasThread()
    monkeypatch.setattr(threads_module, "_blas", lambda: (library,))

    def whole():
        with held:
            inside = library.get_num_threads()
        return inside, library.get_num_threads()

    with held:
        assert elsewhere(whole) == (1, 8)
        assert library.get_num_threads() == 1
        assert elsewhere(library.get_num_threads) == 8
        assert elsewhere(lambda: (threads_module.hold_worker(), library.get_num_threads())[1]) == 1
    assert library.get_num_threads() == 8


# --- fits ------------------------------------------------------------------------------------------------------------


def rows(m, n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    y = np.where(X @ rng.normal(size=n) + rng.normal(size=m) > 0, 1, 0)
    return X, y, rng.uniform(0.5, 2.0, m)


def many_rows_kernel():
    X, y, weight = rows(11_000, 3)
    return SVC(C=0.01, gamma=0.1, tol=0.5).fit(X, y, sample_weight=weight)


def function_kernel():
    X, y, _ = rows(300, 400)
    return SVC(kernel=lambda A, B: A @ B.T, C=1e-3).fit(X, y)


def pieces():
    X, y, weight = rows(20_000, 5)
    return LinearSVC(lam=1e-3).partial_fit(X, y, classes=[0, 1], sample_weight=weight)


def nystroem():
    X, y = make_moons(300, noise=0.2, random_state=0)
    return SVC(solver=solvers.Nystroem(60), C=10, gamma=2, random_state=0).fit(X, y)


def low_rank():
    X, y = make_moons(300, noise=0.2, random_state=0)
    return SVC(solver=solvers.LowRankInteriorPoint(60), C=10, gamma=2).fit(X, y)


def primal_newton():
    X, y, weight = rows(400, 20)
    solver = solvers.PrimalNewton(first_rows=100)
    return SVC(loss="log", solver=solver, gamma=0.1).fit(X, y, sample_weight=weight)


def interior_point():
    X, y, weight = rows(400, 120)
    return LinearSVC(solver="interior_point").fit(X, y, sample_weight=weight)


def newton():
    X, y, weight = rows(400, 120)
    return LinearSVC(loss="log", solver="interior_point").fit(X, y, sample_weight=weight)


def compressed():
    X, y = make_moons(200, noise=0.2, random_state=0)
    return sparsify(SVC(C=1, gamma=1).fit(X, y), X, y, max_support=20).at(20)


def bits(model):
    coef = model.coef_ if isinstance(model, LinearSVC) else model.dual_coef_
    c = getattr(model, "certificate_", None)
    return np.asarray(coef).tobytes(), model.intercept_.tobytes(), None if c is None else (c.primal, c.dual, c.epochs)


FITS = [
    many_rows_kernel,
    function_kernel,
    pieces,
    nystroem,
    low_rank,
    primal_newton,
    interior_point,
    newton,
    compressed,
]


@pytest.mark.parametrize("fit", FITS, ids=lambda f: f.__name__)
def test_bits_do_not_depend_on_the_threads_of_blas(fit):
    found = []
    for number in (1, 2, 3, 4):
        with threadpool_limits(number, "blas"):
            found.append(bits(fit()))
    assert found == found[:1] * len(found)


def test_fits_in_several_python_threads_have_the_bits_of_serial_ones():
    fits = [nystroem, low_rank, primal_newton, interior_point, newton, compressed]
    serial = {fit: bits(fit()) for fit in fits}
    wrong = []

    def work(first):
        for k in range(len(fits)):
            fit = fits[(first + k) % len(fits)]
            if bits(fit()) != serial[fit]:
                wrong.append(fit.__name__)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert not any(thread.is_alive() for thread in threads)
    assert not wrong


def test_a_fit_that_fails_restores():
    X, y, _ = rows(50, 3)

    def stop(_):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        LinearSVC(callback=stop).fit(X, y)
