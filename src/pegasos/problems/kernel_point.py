"""What a solver of kernel machines offers to be certified."""

from __future__ import annotations

from typing import NamedTuple

from pegasos.kernels.rounding import Drift
from pegasos.rows.views import Array

#: Kernel values up to which a certificate computes all scores: to find out which of them matter would take longer.
FEW = 1 << 16


class RunningScores(NamedTuple):
    """Scores without bias of all rows of a part, for these coefficients, and what their rounding errors came from."""

    values: Array
    coef: Array
    drift: Drift


class Point(NamedTuple):
    """What a solver proposes: an entry for each row of each part, one part after the other.

    ``duals`` (in the loss's unit domain) near enough to feasible; None: those of ``coef``. ``scores`` of each part, if
    there are any: a hint that spares the certificate work, and can do no harm. ``separate``: the two need kernel values
    of different rows.
    For pairs of classes ``coef`` may be the two-dimensional table of ``kernels/pairs.py``: then it is made feasible in
    place.
    """

    coef: Array
    duals: Array | None = None
    scores: list[RunningScores] | None = None
    separate: bool = False
