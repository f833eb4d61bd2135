"""The span of some rows of a part of a kernel problem, and the features that make a linear machine of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pegasos.kernels.span import fill_features, spectral_coordinates
from pegasos.problems.kernel import KernelProblem
from pegasos.problems.part import check_values
from pegasos.rows.views import Array

#: Entries of all features of a part up to which they are double precision.
MAX_DOUBLE_ENTRIES = 1 << 26


class Span(NamedTuple):
    """The span of some rows of a part: which, from weights of the features to coefficients of these, and features."""

    basis: Array
    back: Array
    features: Array


def values(problem: KernelProblem, k: int, rows: Array, basis: Array) -> Array:
    """Kernel values of rows of part k with the basis, in float64."""
    K = np.asarray(problem.rows(k).block(rows, basis), dtype=np.float64)[:, : len(basis)]
    check_values(K, problem.numbers(k, rows), problem.numbers(k, basis))
    return K


def empty_features(m: int, width: int) -> Array:
    """Room for the features of m rows, in the precision that there is memory for."""
    return np.empty((m, width), dtype=np.float64 if m * width <= MAX_DOUBLE_ENTRIES else np.float32)


def spectral_span(problem: KernelProblem, k: int, basis: Array) -> Span:
    """That of some rows of part k, in the coordinates of the eigenvectors of their kernel matrix."""
    problem.rows.widen(k)
    # Only what is lost in the rounding of eigenvalues is left out: with all rows as the basis the machine is the
    # exact one for every C. With the usual share of 1e-10 it is 1e-5 worse at C = 1e6.
    lost = len(basis) * np.finfo(np.float64).eps
    back = spectral_coordinates(values(problem, k, basis, basis), share=lost).back
    if not back.shape[1]:
        back = np.zeros((len(basis), 1))
    features = empty_features(problem.parts[k].m, back.shape[1])
    fill_features(features, lambda rows: values(problem, k, np.arange(rows.start, rows.stop), basis), back)
    return Span(basis, back, features)
