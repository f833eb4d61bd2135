"""How many threads a user asks for, and how many BLAS gets."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import cache, wraps
from numbers import Integral
from typing import ParamSpec, TypeVar

import numpy as np
from threadpoolctl import LibController, ThreadpoolController

from pegasos.util.arrays import Array
from pegasos.util.cores import usable_cores

Given = ParamSpec("Given")
Returned = TypeVar("Returned")


def thread_count(n_jobs: int | None) -> int:
    """The number of threads that ``n_jobs`` means: scikit-learn's rules, and never more than OMP_NUM_THREADS.

    Negative numbers count back from the processors that this process may use.
    """
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ValueError(f"n_jobs={n_jobs!r} must be None or a whole number other than 0")
    wanted = int(n_jobs) if n_jobs > 0 else max(1, usable_cores() + 1 + int(n_jobs))
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(wanted, int(limit)) if limit.isdigit() and int(limit) > 0 else wanted


@cache
def _blas() -> tuple[LibController, ...]:
    """The BLAS libraries of this process; finding them takes as long as a small fit, so it is done once."""
    import scipy.linalg.blas  # noqa: F401 - has a library of its own, which must be there to be found

    return tuple(lib for lib in ThreadpoolController().lib_controllers if lib.user_api == "blas")


def _set_threads(lib: LibController, number: int) -> None:
    """Give a library so many threads, from any thread: threadpoolctl itself ignores all but the first that asked."""
    getattr(lib, "_real_set_num_threads", lib.set_num_threads)(number)


def _of_each_thread(lib: LibController) -> bool:
    """Whether the number is a setting of each Python thread, as with OpenMP, and not of the process."""
    return getattr(lib, "threading_layer", None) == "openmp"


class _OneBlasThread:
    """Holds BLAS to one thread while anyone is inside, and then gives it back the number it had before.

    Where the number belongs to the process, fits in several Python threads share it: the first that enters remembers
    it, and the last that leaves restores it.
    """

    def __init__(self) -> None:
        self.lock, self.holders, self.before = threading.Lock(), 0, list[int]()
        self.own = threading.local()  # the same of each Python thread
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self.lock.acquire, after_in_parent=self.lock.release, after_in_child=self._in_child
            )

    def __enter__(self) -> None:
        with self.lock:
            now = [lib.get_num_threads() for lib in _blas()]
            if not self._depth:
                self.own.before = now
            if not self.holders:
                self.before = now
            try:
                for lib in _blas():
                    _set_threads(lib, 1)
            except BaseException:  # Ctrl-C, say
                self._restore()
                raise
            self.holders, self.own.depth = self.holders + 1, self._depth + 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.holders, self.own.depth = self.holders - 1, self._depth - 1
            self._restore()

    @property
    def _depth(self) -> int:
        return getattr(self.own, "depth", 0)

    def _restore(self) -> None:
        """Set back the numbers of threads once no fit needs one thread any more."""
        for k, lib in enumerate(_blas()):
            if _of_each_thread(lib):
                if not self._depth:
                    _set_threads(lib, self.own.before[k])
            elif not self.holders:
                _set_threads(lib, self.before[k])

    def _in_child(self) -> None:
        """Of a fork only the calling thread goes on: the others will never leave."""
        left_behind, self.holders = self.holders > self._depth, self._depth
        if left_behind and not self.holders:
            self.own.before = self.before
            self._restore()
        self.lock.release()


_one_blas_thread = _OneBlasThread()


def one_blas_thread() -> _OneBlasThread:
    """A context in which BLAS has one thread: its bits would depend on their number."""
    return _one_blas_thread


def hold_worker() -> None:
    """The same for good, in a thread of a pool that begins: where the number is a setting of each Python thread."""
    for lib in _blas():
        if _of_each_thread(lib):
            _set_threads(lib, 1)


def with_one_blas_thread(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """The function, run in that context."""

    @wraps(function)
    def run(*args: Given.args, **kwargs: Given.kwargs) -> Returned:
        with one_blas_thread():
            return function(*args, **kwargs)

    return run


def dot(a: Array, b: Array) -> float:
    """⟨a, b⟩, whose bits do not depend on the threads of BLAS, nor on those that it is held to."""
    return float(np.einsum("i,i->", a, b))
