"""Certificates of the pairs of many classes, computed in the core: no Python for each of half a million pairs.

As in ``_kernel_certificate.py``, of dual variables alone: they are put within their bounds and balanced, scores are
computed anew in float64 from kernel values in float64, and P, D and the best bias from those.
"""

from __future__ import annotations

import numpy as np

from pegasos import _core
from pegasos._certificate import Bounds
from pegasos._data import Array
from pegasos._definite import lower_bounds
from pegasos._pair_problem import PairProblem
from pegasos._pair_visits import PairVisits

#: Rounding errors of scores from which on they are added up in extended precision.
FINE = 1e-9


def certify_pairs(problem: PairProblem, table: Array) -> Bounds:
    """P and D of each pair for dual variables laid out as :mod:`pegasos._pairs` says; these are made feasible."""
    pairs, known = problem.parts, problem.definiteness_of_all()
    # A pair whose scores are no numbers stays at these: there is no bound, and nothing is reached.
    primal, dual, bias = np.full(pairs, np.inf), np.zeros(pairs), np.zeros(pairs)
    core = _core.WholeSMO(
        problem.C,
        problem.lam,
        problem.total,
        tol=np.finfo(float).max,  # with no steps allowed, whatever the gap, a visit does nothing but certify
        max_steps=0,
        piece=1,
        beyond=-1,
        shift=known.shift,
    )
    visits = PairVisits(problem)
    counted = visits.values.rows.evaluations
    for begin, end in problem.pieces.stretches():
        some, n = slice(begin, end), end - begin
        core.look_at(
            begin,
            goal=np.full(n, FINE),
            violation=np.full(n, np.inf),
            primal=primal[some],
            dual=dual[some],
            bias=bias[some],
            steps=np.zeros(n, dtype=np.int64),
            over=np.zeros(n, dtype=np.int8),
        )
        k = begin
        while k < end:
            k = visits.visit(core, table, k, 1 << 60)[0] + 1
    visits.values.rows.evaluations = counted  # kernel values of certificates are not counted
    proven = known.known == "proven"
    bound = lower_bounds(np.broadcast_to(proven, pairs), primal, dual)
    return Bounds(primal, bound, bias, np.empty((0, pairs)), formal=None if proven else np.minimum(dual, primal))
