"""The problem of a kernel machine that compares several classes in pairs.

Certificates of dual variables in a table (``kernels/pairs.py``) are computed in the core: Python would
take too long for half a million pairs. As for all kernel machines, dual variables are clipped and balanced, scores are
recomputed in float64 from kernel values in float64, and P, D and the best bias from those.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pegasos import _core
from pegasos.kernels.definite import lower_bounds
from pegasos.losses import Loss
from pegasos.problems.base import Bounds, Point
from pegasos.problems.kernel import Coefficients, KernelProblem
from pegasos.problems.pair_parts import PairParts
from pegasos.problems.pair_visits import DoubleValues, PairVisits
from pegasos.rows.views import Array
from pegasos.util.fields import MAX_FINITE, saved

#: The rounding error above which scores are added up in extended precision.
MAX_DOUBLE_SCORE_ERROR = 1e-9


class PairTable(Coefficients):
    """Coefficients of the rows in all pairs, in a table as ``kernels/pairs.py`` says; each is a dual variable, too."""


@dataclass(frozen=True)
class PairProblem(KernelProblem):
    """A problem whose ``parts`` are pairs of classes."""

    parts: PairParts

    @property
    def loss(self) -> Loss:
        """That of all parts."""
        return self.parts.loss

    @property
    def C(self) -> float:
        """1/(λM), of all parts."""
        return self.parts.C

    @property
    def size(self) -> int:
        """Coefficients of a model: each row is in as many pairs as there are other classes."""
        return (self.parts.classes - 1) * len(self.parts.codes)

    def at_zero(self) -> Array:
        """P(0, 0) of each part."""
        parts = self.parts
        first, second = parts.loss.core().value(np.zeros(2), np.array([1.0, -1.0]))
        total = np.bincount(parts.codes, weights=parts.weight, minlength=parts.classes) / self.total
        out = np.empty(len(parts))
        for i in range(parts.classes - 1):
            out[parts.begins[i] : parts.begins[i + 1]] = total[i] * first + total[i + 1 :] * second
        return out

    def _targets(self) -> list[Array]:
        """The class of each row."""
        return [self.parts.codes]

    def _weights(self) -> list[Array]:
        """Those of the rows."""
        return [self.parts.weight]

    def certify(self, point: Point[Coefficients]) -> Bounds[Coefficients]:
        """As for all kernel machines; a table is made feasible in place."""
        if isinstance(point.model, PairTable):
            return _certify_table(self, point.model.coef)
        return super().certify(point)

    def choose(self, first: Array, one: Coefficients, other: Coefficients) -> Coefficients:
        """The coefficients ``one`` of the parts in ``first``, and the other ones of the rest, in the order of parts."""
        return super().choose(first, self._in_order(one), self._in_order(other))

    def _in_order(self, model: Coefficients) -> Coefficients:
        return Coefficients(self.parts.in_order(model.coef), model.b) if isinstance(model, PairTable) else model

    def model_of(self, arrays: Mapping[str, Array]) -> Coefficients:
        """What ``arrays`` wrote."""
        table = (self.parts.classes - 1, len(self.parts.codes))
        if np.ndim(arrays.get("W", 0)) == 2:
            shapes = {"W": table, "b": (self.n_parts,)}
            return PairTable(
                *(saved(arrays, k, shape, low=-MAX_FINITE, high=MAX_FINITE) for k, shape in shapes.items())
            )
        return super().model_of(arrays)


def _certify_table(problem: PairProblem, table: Array) -> Bounds[Coefficients]:
    """P and D of each pair for dual variables laid out as ``kernels/pairs.py`` says; these are made feasible."""
    pairs, known = problem.n_parts, problem.definiteness_of_all()
    # A pair whose scores are not finite keeps these values: no bound, and no gap that could be small enough.
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
        free_bias=problem.bias == "free",
    )
    visits = PairVisits(problem.parts, DoubleValues(problem.kernel, problem.rows))
    counted = visits.values.rows.evaluations
    for begin, end in problem.parts.stretches():
        some, n = slice(begin, end), end - begin
        core.look_at(
            begin,
            goal=np.full(n, MAX_DOUBLE_SCORE_ERROR),
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
    return Bounds(primal, bound, PairTable(table, bias), formal=None if proven else np.minimum(dual, primal))
