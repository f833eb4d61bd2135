"""Whether a kernel matrix is positive semi-definite: without that there is no duality, and no lower bound.

If the Cholesky factorisation of K + sI, carried out with unit roundoff u, runs to its end, then K + sI + E is positive
semi-definite for some ‖E‖ ≤ (m + 2) u trace(K + sI), whatever the order of its sums; if K + sI is positive definite by
more than that it does run to its end (Higham, *Accuracy and Stability of Numerical Algorithms*, theorems 10.3 and
10.7). So the factorisation proves that no eigenvalue of K is below −s − ‖E‖, or that one is below ‖E‖ − s.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from scipy.linalg import lapack

from pegasos.rows.views import Array
from pegasos.util.threads import one_blas_thread

#: Rows up to which a matrix is checked: half a second of work, and some 150 MB.
MAX_CHECKED_ROWS = 3000


class Definiteness(NamedTuple):
    """What is known of a kernel matrix: no eigenvalue is below −``shift``, or one certainly is, or nothing."""

    known: Literal["proven", "refuted", "unknown"]
    shift: float = 0.0


#: A dual value above the primal value by more than this share of it is no rounding error, and so no lower bound.
MAX_DUAL_EXCESS = 1e-6

BY_KIND = Definiteness("proven")
UNKNOWN = Definiteness("unknown")


def check(K: Array) -> Definiteness:
    """What can be proven of a symmetric matrix in float64, which is overwritten; of others, of their symmetric part."""
    m, diagonal = len(K), np.diagonal(K).copy()
    largest = float(diagonal.max(initial=0.0))
    if largest <= 0 or diagonal.min() < 0:
        return Definiteness("refuted") if K.any() else BY_KIND
    K += K.T
    K *= 0.5
    # Values in single precision have errors of about 1e-7, those in double precision next to none.
    for noise in (0.0, 4 * np.sqrt(m) * 2.0**-24 * largest):
        rounding = 2 * (m + 2) * 2.0**-53 * (float(diagonal.sum()) + m * noise)
        np.fill_diagonal(K, diagonal + (rounding + noise))
        with one_blas_thread():
            # Only one triangle is overwritten; the other one brings it back.
            _, info = lapack.dpotrf(K.T, lower=1, clean=0, overwrite_a=1)
        if info == 0:
            return Definiteness("proven", 2 * rounding + noise)
        lower = np.tril_indices(m, -1)
        K[lower[1], lower[0]] = K[lower]
    return Definiteness("refuted")


def lower_bounds(proven: Array, primal: Array, formal: Array) -> Array:
    """The lower bounds that dual values are: −∞ where nothing proves duality, or where they cannot be any."""
    possible = proven & np.isfinite(primal) & (formal <= primal + MAX_DUAL_EXCESS * np.abs(primal))
    return np.where(possible, np.minimum(formal, primal), -np.inf)
