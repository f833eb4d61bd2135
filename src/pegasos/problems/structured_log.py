"""The log loss over any set of labellings that an oracle can sum over: one weight vector, smooth.

    P(w) = (λ/2)‖w‖² + R(w),   R(w) = (1/M) Σ_i c_i ℓ_i(w),   ℓ_i(w) = log Σ_y exp⟨w, φ(x_i, y) − φ(x_i, y_i)⟩

(2011 paper, Eq. 21.) With the probabilities p_i(y) at w, ψ̄_i = φ(x_i, y_i) − Σ_y p_i(y) φ(x_i, y) is −∇ℓ_i, and
ℓ_i + ⟨w, ψ̄_i⟩ is the entropy of p_i. The probabilities at w are a dual point:

    D = (1/M) Σ c_i (ℓ_i + ⟨w, ψ̄_i⟩) − (1/2λ)‖ψ̄‖²  ≤  P*,   ψ̄ = (1/M) Σ c_i ψ̄_i,   P − D = ‖λw − ψ̄‖²/(2λ).

That needs of ℓ_i only that it is convex and that −ψ̄_i is its gradient.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pegasos.problems.base import Bounds, Point
from pegasos.problems.one_vector import OneVector
from pegasos.problems.structured import MOST_ROWS
from pegasos.util.arrays import Array, first_true
from pegasos.util.digests import digest

#: How far a mean loss may lie below a tangent, relative to the terms: what an oracle's rounding leaves.
ROUNDING = 1e-8


class Look(NamedTuple):
    """R at some weights, and ψ̄ = −∇R."""

    w: Array
    loss: float
    psi: Array


@dataclass(frozen=True)
class LogProblem(OneVector):
    """See the module's docstring. A model is the weights w. ``oracle``: bound, with ``expect(w, rows, shares)``."""

    oracle: Any
    size: int
    n_rows: int
    lam: float
    weight: Array | None = None
    #: The last look at the rows: a certificate comes after the pass that made it necessary.
    seen: list[Look] = field(default_factory=list, repr=False)
    #: The name of the loss, by which solvers know what they can do.
    loss: ClassVar[str] = "log"

    @cached_property
    def shares(self) -> Array:
        """c_i/M."""
        c = np.ones(self.n_rows) if self.weight is None else self.weight
        return np.asarray(c / c.sum())

    def look(self, w: Array) -> Look:
        """R and ψ̄: a pass over the rows, unless the last one was at the same weights."""
        if self.seen and np.array_equal(self.seen[0].w, w):
            return self.seen[0]
        loss, psi = 0.0, np.zeros(self.size)
        rows = np.flatnonzero(self.shares > 0)
        for first in range(0, len(rows), MOST_ROWS):
            some = rows[first : first + MOST_ROWS]
            losses, own = self._ask(w, some)
            loss += float(self.shares[some] @ losses)
            psi += own
        found = Look(w.copy(), loss, psi)
        if self.seen:
            self._check(self.seen[0], found)
        self.seen[:] = [found]
        return found

    def _ask(self, w: Array, rows: Array) -> tuple[Array, Array]:
        shares = self.shares[rows]
        answer = self.oracle.expect(w.copy(), rows, shares)
        if not isinstance(answer, tuple | list) or len(answer) != 2:
            raise ValueError(f"oracle.expect must return (losses, psi), but returned {answer!r:.80}")
        losses, psi = (np.asarray(part, dtype=np.float64) for part in answer)
        if losses.shape != (len(rows),):
            raise ValueError(f"oracle.expect returned losses of shape {losses.shape} for {len(rows)} rows")
        if psi.shape != (self.size,):
            raise ValueError(f"oracle.expect returned psi of shape {psi.shape}, not ({self.size},)")
        if np.isfinite(w).all():
            if (k := first_true(~(np.isfinite(losses) & (losses >= 0)))) is not None:
                raise ValueError(f"oracle.expect: the loss of row {rows[k]} is {losses[k]}, but must be a number >= 0")
            if (k := first_true(~np.isfinite(psi))) is not None:
                raise ValueError(f"oracle.expect: psi has {psi[k]} in column {k}")
        return losses, psi

    def _check(self, one: Look, other: Look) -> None:
        """R is above its tangents, each at the place of the other, if ψ̄ is what it should be."""
        for at, to in ((one, other), (other, one)):
            slope = float(at.psi @ (to.w - at.w))
            tangent, size = at.loss - slope, at.loss + abs(slope) + to.loss
            if np.isfinite(size) and tangent > to.loss + ROUNDING * size:
                raise ValueError(
                    "oracle.expect is not the log loss and its gradient: the mean loss at some weights is "
                    f"{to.loss:.6g}, but the tangent from others is {tangent:.6g} there. psi must be the sum over rows "
                    "of shares times phi(x, y) - sum_k p_k phi(x, k)"
                )

    def value_and_gradient(self, w: Array) -> tuple[float, Array]:
        """P and its gradient."""
        found = self.look(w)
        return 0.5 * self.lam * float(w @ w) + found.loss, self.lam * w - found.psi

    # --- what the loop asks ------------------------------------------------------------------------------------------

    def at_zero(self) -> Array:
        """P(0)."""
        return self._at_zero

    @cached_property
    def _at_zero(self) -> Array:
        return np.array([self.look(np.zeros(self.size)).loss])

    def first_bounds(self) -> Array:
        """No loss is negative."""
        return np.zeros(1)

    def trivial(self) -> tuple[Array, Array] | None:
        """None."""
        return None

    def certify(self, point: Point[Array]) -> Bounds[Array]:
        """P, and D of the probabilities at the same weights."""
        w = point.model
        if not np.isfinite(w).all():
            return Bounds(np.array([np.inf]), np.array([-np.inf]), w)
        found = self.look(w)
        primal = 0.5 * self.lam * float(w @ w) + found.loss
        entropy = found.loss + float(w @ found.psi)
        dual = entropy - 0.5 / self.lam * float(found.psi @ found.psi)
        return Bounds(np.array([primal]), np.array([dual if np.isfinite(dual) else -np.inf]), w)

    def digests(self) -> dict[str, str]:
        """What the problem is, in words and digests."""
        return {
            "rows": str(self.n_rows),
            "size": str(self.size),
            "loss": self.loss,
            "oracle": self._oracle_digest,
            "weights": "none" if self.weight is None else digest(self.weight),
            "lam": repr(float(self.lam)),
        }

    @cached_property
    def _oracle_digest(self) -> str:
        """The oracle's own, or one of its answer to a question about all rows."""
        if callable(own := getattr(self.oracle, "digest", None)):
            return str(own())
        found = self.look(np.random.default_rng(0).standard_normal(self.size))
        return digest(np.array([found.loss]), found.psi)
