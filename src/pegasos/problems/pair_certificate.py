"""Certificates of the pairs of many classes, computed in the core: no Python for each of half a million pairs.

As in ``problems/kernel_certificate.py``, of dual variables alone: they are put within their bounds and balanced, scores
are computed anew in float64 from kernel values in float64, and P, D and the best bias from those.
"""

from __future__ import annotations

import numpy as np

from pegasos import _core
from pegasos.kernels.definite import lower_bounds
from pegasos.problems.base import Bounds
from pegasos.problems.pair_visits import PairVisits
from pegasos.problems.pairs import PairProblem
from pegasos.rows.views import Array

#: Rounding errors of scores from which on they are added up in extended precision.
FINE = 1e-9


def certify_pairs(problem: PairProblem, table: Array) -> Bounds:
    """P and D of each pair for dual variables laid out as ``kernels/pairs.py`` says; these are made feasible."""
    pairs, known = problem.parts, problem.definiteness_of_all()
    # A pair whose scores are no numbers stays at these: there is no bound, and nothing is reached.
    primal, dual, bias = np.full(pairs, np.inf), np.zeros(pairs), np.zeros(pairs)
    core = _core.WholeSMO(
        problem.pieces.C,
        problem.lam,
        problem.total,
        tol=np.finfo(float).max,  # with no steps allowed, whatever the gap, a visit does nothing but certify
        max_steps=0,
        piece=1,
        beyond=-1,
        shift=known.shift,
        goal=np.full(pairs, FINE),
        violation=np.full(pairs, np.inf),
        primal=primal,
        dual=dual,
        bias=bias,
        steps=np.zeros(pairs, dtype=np.int64),
        over=np.zeros(pairs, dtype=np.int64),
    )
    visits, k = PairVisits(problem), 0
    counted = visits.values.rows.evaluations
    while k < pairs:
        k = visits.visit(core, table, k, 1 << 60)[0] + 1
    visits.values.rows.evaluations = counted  # kernel values of certificates are not counted
    bound = lower_bounds(np.full(pairs, known.known == "proven"), primal, dual)
    return Bounds(primal, bound, bias, np.empty((0, pairs)), formal=np.minimum(dual, primal))
