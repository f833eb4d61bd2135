"""The rows that a fit looks at which asks for an estimate, drawn before it begins.

Of rows that nobody vouches for every entry is checked, which takes a pass. Where the user vouches for them, and the
steps visit few of many, those few and the ones judged by are taken out, checked, and all that the fit ever sees.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from sklearn import get_config

from pegasos import _core
from pegasos.problems.linear import LinearProblem
from pegasos.problems.sampled import SampledProblem
from pegasos.rows.dataset import Dataset
from pegasos.rows.views import Array, view
from pegasos.solvers.linear.subgradient import SubgradientSolver
from pegasos.util.arrays import Matrix

#: Rows are taken out where there are so many times as many: from then on, looking at all would take longer.
LEAST_SHARE = 8

#: What tells the draws of the judged rows from all others of a seed.
JUDGED = 0x6A756467


@dataclass(frozen=True)
class Drawn:
    """``rows`` of ``all_rows``, all checked: first those that the steps visit, so many and in that order, then those
    judged by. ``total``: the weight of all rows.
    """

    rows: Array
    visits: int
    all_rows: int
    total: float

    @property
    def share(self) -> float:
        """The weight that the drawn rows stand for, if all are alike."""
        return self.total * len(self.rows) / self.all_rows


def vouched_for(X: Any) -> bool:
    """Whether no entry need be looked at: scikit-learn's setting says so, or ``pegasos convert`` has done it."""
    return isinstance(X, Dataset) or bool(get_config()["assume_finite"])


def judged_rows(m: int, count: int, seed: int) -> Array:
    """Independent uniform draws from m rows."""
    return np.random.default_rng([seed, JUDGED]).integers(m, size=count)


def drawn_rows(X: Matrix, solver: SubgradientSolver, max_epochs: float, seed: int) -> tuple[Array, int] | None:
    """The rows that a fit visits and is judged by, and how many of them are visits; None: it may as well see all."""
    m = int(X.shape[0])
    visits = solver.visits(m, max_epochs)
    if visits > m // LEAST_SHARE:
        return None
    order = np.empty(visits, dtype=np.int64)
    _core.write_first_visits(view(X), solver.drawn_sampling(), seed, int(solver.batch_size), order)
    assert solver.estimate is not None
    return np.concatenate([order, judged_rows(m, int(solver.estimate), seed)]), visits


def sampled(problem: LinearProblem, drawn: Drawn | None, count: int, seed: int) -> SampledProblem:
    """The problem as one that is judged by ``count`` rows."""
    own: dict[str, Any] = {f.name: getattr(problem, f.name) for f in fields(LinearProblem)}
    if drawn is None:
        m = problem.examples.m
        return SampledProblem(**own, judged=judged_rows(m, count, seed), all_rows=m)
    own["of"] = drawn.share
    judged = np.arange(drawn.visits, len(drawn.rows))
    return SampledProblem(**own, judged=judged, all_rows=drawn.all_rows, visits=drawn.visits)
