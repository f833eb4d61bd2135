"""A linear problem of which some rows alone are looked at, so that its objective can only be estimated.

Conditionally on the weights, which owe nothing to them, the n judged rows are independent uniform draws from all m. So

    P̂ = penalty(W, b) + (1/n) Σ_j r_j,    r_j = (m/M) c_j ℓ_j(W x_j + b),

has the mean P(W, b), and P̂ ± t·s/√n is Student's interval: s is the standard deviation of the r_j, t the 97.5 %
quantile of n − 1 degrees of freedom. The penalty is exact. Losses that are not negative bound the interval from below.
The bounds of Hoeffding and Bernstein hold for every n, but ask for the largest loss of any row, which takes a pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pegasos.problems.base import Bounds, Estimate, Point
from pegasos.problems.linear import LinearProblem, Weights
from pegasos.rows.views import Array
from pegasos.util.digests import digest

#: The probability that an interval covers the objective.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class SampledProblem(LinearProblem):
    """``examples`` are some of ``all_rows`` rows, or all of them; ``judged``: the places of those judged by.

    ``visits``: where the examples were taken out for their sake, those that the steps visit come first, so many, in the
    order of the visits; None: where the examples are all rows.
    """

    judged: Array = field(kw_only=True)
    all_rows: int = field(kw_only=True)
    visits: int | None = field(kw_only=True, default=None)

    def first_bounds(self) -> Array:
        """None."""
        return np.full(self.n_parts, -np.inf)

    def trivial(self) -> tuple[Weights, Array] | None:
        """None: targets that are all equal here need not be so elsewhere."""
        return None

    def certify(self, point: Point[Weights]) -> Bounds[Weights]:
        """No bounds, but an estimate; the bias stays as it was learnt."""
        W, b = point.model
        assert W is not None
        nothing = np.full(self.n_parts, np.inf)
        return Bounds(nothing, -nothing, point.model, sampled=self.estimate(W, b))

    def estimate(self, W: Array, b: Array) -> Estimate:
        """P̂ and its interval; see the module's docstring."""
        if self.visits is None:
            self.examples.verify(self.threads)
        from scipy.special import stdtrit  # takes as long to import as all of the problems

        n, r = len(self.judged), self._shares_of(self.judged, W, b)
        penalty, mean = float(self.penalty(self.squared_norms_of(W), b).sum()), float(r.mean())
        with np.errstate(invalid="ignore", over="ignore"):  # weights that have left the range of numbers
            half = float(stdtrit(n - 1, 0.5 + CONFIDENCE / 2) * r.std(ddof=1) / np.sqrt(n))
        return Estimate(penalty + mean, penalty + max(mean - half, 0.0), penalty + mean + half, n)

    def preference(self, model: Weights) -> float:
        """The objective on the rows that the steps visit: those judged by must not have chosen the model."""
        assert model.W is not None
        rows = np.arange(self.examples.m if self.visits is None else self.visits)
        penalty = self.penalty(self.squared_norms_of(model.W), model.b).sum()
        return float(penalty + self._shares_of(rows, model.W, model.b).mean())

    def _shares_of(self, rows: Array, W: Array, b: Array) -> Array:
        """r_i of some rows."""
        return self.losses_of(rows, W, b) * (self.examples.m / self.total)

    def digests(self) -> dict[str, str]:
        """Those of the examples, and which rows these are."""
        return super().digests() | {"all rows": str(self.all_rows), "judged": digest(self.judged)}
