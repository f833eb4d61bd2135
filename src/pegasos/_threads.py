"""How many threads a user asks for, and how many BLAS gets."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, wraps
from numbers import Integral
from typing import Any, ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

Given = ParamSpec("Given")
Returned = TypeVar("Returned")


def thread_count(n_jobs: int | None) -> int:
    """The number of threads that ``n_jobs`` means: scikit-learn's rules, and never more than OMP_NUM_THREADS."""
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ValueError(f"n_jobs={n_jobs!r} must be None or a whole number other than 0")
    cores = os.cpu_count() or 1
    wanted = int(n_jobs) if n_jobs > 0 else max(1, cores + 1 + int(n_jobs))
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(wanted, int(limit)) if limit.isdigit() and int(limit) > 0 else wanted


@cache
def _blas() -> Any:
    """The BLAS libraries of this process; finding them takes longer than a small fit, so it is done once."""
    return ThreadpoolController()


def one_blas_thread() -> Any:
    """A context in which BLAS has one thread: its bits would depend on their number."""
    return _blas().limit(limits=1, user_api="blas")


def with_one_blas_thread(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """The function, run in that context."""

    @wraps(function)
    def run(*args: Given.args, **kwargs: Given.kwargs) -> Returned:
        with one_blas_thread():
            return function(*args, **kwargs)

    return run
