"""Structured support vector machines over any oracle: one weight vector, and a maximum over labellings for each row.

    P(w) = (λ/2)‖w‖² + (1/M) Σ_i c_i max_y [Δ_i(y) − ⟨w, ψ_i(y)⟩],   ψ_i(y) = φ(x_i, y_i) − φ(x_i, y),   M = Σ_i c_i

A dual point mixes planes (ψ_p, Δ_p) of labellings that the oracle has returned, with shares α_p ≥ 0 that sum to at most
1 for each row; the rest is the true labelling's. With w(α) = (1/(λM)) Σ_p c_p α_p ψ_p,

    D(α) = (1/M) Σ_p c_p α_p Δ_p − (λ/2)‖w(α)‖²  ≤  P*  ≤  P(w).

D needs nothing but labellings, whoever found them. P needs the maximum: one pass of decodings by an oracle that is
exact. Of one that is not, what it finds is a lower bound of each row's loss, so that P is unknown: it is reported as
infinite, and nothing is ever certified.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pegasos.problems.base import Bounds, Point
from pegasos.problems.one_vector import OneVector
from pegasos.problems.oracle import ROUNDING, CheckedOracle, Decoded, Plane
from pegasos.problems.planes import ALL_ROWS, Planes, plane_arrays, planes_of
from pegasos.util.arrays import Array, first_true
from pegasos.util.digests import digest

#: Rows decoded at a time in a pass over all of them: fewer where there are many weights, for psi may be dense.
MOST_ROWS, LEAST_ROWS, MOST_ENTRIES = 256, 16, 1 << 22


class Cut(NamedTuple):
    """A plane below the mean loss R: R(w) ≥ height − ⟨w, ψ⟩, the mean of one plane of each row."""

    plane: Plane

    @property
    def height(self) -> float:
        """The mean of the rows' losses Δ."""
        return self.plane.loss


@dataclass(frozen=True)
class OracleProblem(OneVector):
    """See the module's docstring. A model is the weights w; ``Point.duals`` are :class:`Planes`."""

    oracle: CheckedOracle
    lam: float
    weight: Array | None = None

    @property
    def n_rows(self) -> int:
        """Rows."""
        return self.oracle.n_rows

    @property
    def size(self) -> int:
        """Weights."""
        return self.oracle.size

    @property
    def exact(self) -> bool:
        """Whether the oracle finds maxima."""
        return self.oracle.exact

    @cached_property
    def c(self) -> Array:
        """The rows' weights."""
        return np.ones(self.n_rows) if self.weight is None else self.weight

    @cached_property
    def total(self) -> float:
        """M, the sum of the rows' weights."""
        return float(self.n_rows if self.weight is None else self.weight.sum())

    @cached_property
    def rows(self) -> Array:
        """The rows that have a weight; the others are no part of the problem and are never decoded."""
        return np.flatnonzero(self.c > 0)

    def decode(self, w: Array, rows: Array) -> Decoded:
        """The oracle's planes of some rows."""
        return self.oracle.decode(w, rows)

    def whole_pass(self, w: Array) -> Iterator[tuple[Array, Decoded]]:
        """The planes of all rows that have a weight, some rows at a time."""
        count = min(MOST_ROWS, max(LEAST_ROWS, MOST_ENTRIES // self.size))
        for first in range(0, len(self.rows), count):
            rows = self.rows[first : first + count]
            yield rows, self.decode(w, rows)

    def losses(self, w: Array) -> Array:
        """max_y [Δ_i(y) − ⟨w, ψ_i(y)⟩] of every row, as far as the oracle finds it; 0 for rows without weight."""
        values = np.zeros(self.n_rows)
        for rows, found in self.whole_pass(w):
            values[rows] = found.value
        return values

    def value(self, w: Array, losses: Array) -> float:
        """P(w), given the rows' losses."""
        return 0.5 * self.lam * float(w @ w) + float(self.c @ losses) / self.total

    # --- dual points -------------------------------------------------------------------------------------------------

    def mean_plane(self, planes: Planes) -> tuple[Array, float]:
        """ψ as a vector, and Δ, of the mixture of planes: the mean over all rows, after making α feasible."""
        alpha = planes.feasible(self.n_rows)
        shares = np.where(planes.row == ALL_ROWS, 1.0, self.c[planes.row] / self.total) * alpha
        entries = np.repeat(shares, np.diff(planes.psi.indptr)) * planes.psi.data
        psi = np.bincount(planes.psi.indices, weights=entries, minlength=self.size)
        return psi, float(shares @ planes.loss)

    def dual_weights(self, planes: Planes) -> Array:
        """w(α)."""
        return self.mean_plane(planes)[0] / self.lam

    def dual_value(self, planes: Planes) -> float:
        """D(α)."""
        psi, loss = self.mean_plane(planes)
        value = loss - 0.5 / self.lam * float(psi @ psi)
        return value if np.isfinite(value) else -np.inf

    # --- what the loop asks ------------------------------------------------------------------------------------------

    def at_zero(self) -> Array:
        """P(0); unknown, and infinite, where the oracle is not exact."""
        return self._at_zero if self.exact else np.array([np.inf])

    @cached_property
    def _at_zero(self) -> Array:
        w = np.zeros(self.size)
        return np.array([self.value(w, self.losses(w))])

    def first_bounds(self) -> Array:
        """The true labellings alone are a dual point of value 0."""
        return np.zeros(1)

    def trivial(self) -> tuple[Array, Array] | None:
        """None."""
        return None

    def certify(self, point: Point[Array]) -> Bounds[Array]:
        """One pass of decodings for P, and D of the planes; an exact oracle that contradicts itself is refused."""
        w, planes = point.model, point.duals
        dual = np.array([-np.inf if planes is None else self.dual_value(planes)])
        if not np.isfinite(w).all():
            return Bounds(np.array([np.inf]), dual, w)
        losses = self.losses(w)
        value = np.array([self.value(w, losses)])
        if not self.exact:
            return Bounds(np.array([np.inf]), dual, w, estimate=value)
        if planes is not None:
            self._check_maxima(w, planes, losses)
        return Bounds(np.where(np.isnan(value), np.inf, value), dual, w)

    def _check_maxima(self, w: Array, planes: Planes, losses: Array) -> None:
        """Refuse an oracle whose maximum at w is below the value of a plane that it has found elsewhere."""
        products = planes.psi.data * w[planes.psi.indices]
        of_plane = np.repeat(np.arange(len(planes.loss)), np.diff(planes.psi.indptr))
        score, terms = (np.bincount(of_plane, weights=p, minlength=len(planes.loss)) for p in (products, abs(products)))
        of_all = planes.row == ALL_ROWS
        maximum = np.where(of_all, float(self.c @ losses) / self.total, losses[planes.row])
        above = planes.loss - score - maximum > ROUNDING * (planes.loss + terms + maximum)
        above &= of_all | (self.c[planes.row] > 0)
        if (p := first_true(above)) is not None:
            where = "the rows together" if of_all[p] else f"row {planes.row[p]}"
            raise ValueError(
                f"oracle.decode does not maximise: for {where} it found loss - <w, psi> = {maximum[p]:.6g}, but a "
                f"labelling that it found before has {planes.loss[p] - score[p]:.6g} at the same weights. A decoder "
                "that is approximate must say so with exact = False"
            )

    def digests(self) -> dict[str, str]:
        """What the problem is, in words and digests."""
        return {
            "rows": str(self.n_rows),
            "size": str(self.size),
            "exact": str(self.exact),
            "oracle": self._oracle_digest,
            "weights": "none" if self.weight is None else digest(self.weight),
            "lam": repr(float(self.lam)),
        }

    @cached_property
    def _oracle_digest(self) -> str:
        """The oracle's own, or one of its answers to two questions about every row.

        Nothing else of an oracle can be compared: it may be made of anything.
        """
        if callable(own := getattr(self.oracle.oracle, "digest", None)):
            return str(own())
        asked = (np.zeros(self.size), np.random.default_rng(0).standard_normal(self.size))
        answers = (found for w in asked for _, found in self.whole_pass(w))
        return digest(*(array for a in answers for array in (a.begin, a.columns, a.entries, a.loss)))

    # --- one slack: see solvers/structured/one_slack.py --------------------------------------------------------------

    def cut(self, model: Array) -> Cut:
        """The plane that touches R at the weights: the mean of all rows' planes there."""
        psi, loss = np.zeros(self.size), 0.0
        for rows, found in self.whole_pass(model):
            shares = self.c[rows] / self.total
            psi += found.mean(shares, self.size)
            loss += float(shares @ found.loss)
        return self._cut(psi, loss)

    def _cut(self, psi: Array, loss: float) -> Cut:
        columns = np.flatnonzero(psi)
        return Cut(Plane(columns, psi[columns], loss))

    def products(self, cuts: Sequence[Cut], cut: Cut) -> Array:
        """⟨ψ_j, ψ⟩ for each of the cuts."""
        psi = np.zeros(self.size)
        psi[cut.plane.columns] = cut.plane.values
        return np.array([float(other.plane.values @ psi[other.plane.columns]) for other in cuts])

    def mixture(self, cuts: Sequence[Cut], alpha: Array) -> Point[Array]:
        """w(α), and the cuts with a share as planes."""
        used = [k for k in range(len(cuts)) if alpha[k] > 0]
        planes = Planes.of([ALL_ROWS] * len(used), [cuts[k].plane for k in used], alpha[used], self.size)
        return Point(self.dual_weights(planes), planes)

    def first_cuts(self, point: Point[Array]) -> list[Cut]:
        """Cuts to begin with at a point of an earlier fit: its planes of all rows, and the mean of the others."""
        if point.duals is None:
            return []
        planes: Planes = point.duals
        of_all = planes.row == ALL_ROWS
        cuts = [Cut(planes.plane(int(k))) for k in np.flatnonzero(of_all)]
        if not of_all.all():
            cuts.append(self._cut(*self.mean_plane(planes._replace(alpha=np.where(of_all, 0.0, planes.alpha)))))
        return cuts

    def cut_arrays(self, cuts: Sequence[Cut]) -> dict[str, Array]:
        """Cuts as named arrays of float64."""
        return plane_arrays(cut.plane for cut in cuts)

    def cuts_of(self, arrays: dict[str, Array]) -> list[Cut]:
        """What ``cut_arrays`` wrote."""
        return [Cut(plane) for plane in planes_of(arrays, self.size)]
