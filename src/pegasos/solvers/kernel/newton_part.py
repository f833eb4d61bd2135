"""A Newton step of the primal method on one part of a kernel machine (see ``newton.py`` for the method).

In units of λ, with shares s_i = C c_i, scores F = Kβ, z = F + b and u_i = −ℓ′(z_i),

    P/λ = ½ βᵀKβ + Σ s_i ℓ_i(z_i),   ∇_β = −K r,   r = s∘u − β,   ∂P/∂b = −Σ s_i u_i.

Divided by K, which is what preconditioning by K means, Newton's equations are, with the curvature h_i = s_i ℓ″(z_i),

    Δβ + h∘(KΔβ + Δb) = r,   Σ(β + Δβ) = 0 where the bias is free.

Only the active rows A, those with h > 0, are coupled: with q = √h on A

    (I + q K_AA q) x = q∘(K r + Δb)_A,   Δβ = r − q∘x on A,   Δβ = r elsewhere,

whose matrix has no eigenvalue below 1. For the squared hinge a full step is Chapelle's β_A = (K_AA + I/(2 s))⁻¹(y − b)
and β = 0 elsewhere. The gap of β and the dual point u is ½ rᵀKr, since ℓ(z) + ℓ*(−u) = −u z.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from pegasos.fit.engine import MAX_ITER
from pegasos.kernels.leading import LeadingBlocks
from pegasos.problems.feasible import best_bias
from pegasos.problems.kernel import INDEFINITE
from pegasos.problems.part import Part
from pegasos.rows.views import Array
from pegasos.solvers.kernel.reasons import STALLED, NumberedReason
from pegasos.solvers.line_search import backtracked
from pegasos.util.threads import dot

#: Relative gap at which the first rows have been solved well enough to go on with twice as many.
LEVEL_GAP = 1e-2

#: A slope of this share of the objective, and less, is rounding.
MIN_SLOPE_SHARE = 1e-24

#: Where no step along Newton's direction decreases the objective: gaps above which it is worth to try the direction of
#: a bound of the curvature, for which all rows are active.
MIN_MAJORISED_GAP = 1e-9

#: The share of the largest diagonal entry that is added to a matrix that is not definite; then ten times as much, up to
#: a share that the rounding errors of no kernel value explain.
FIRST_JITTER, MAX_JITTER = 1e-14, 1e-5


class NewtonEnding(NumberedReason):
    """Why a part is no longer worked on."""

    OPEN = 0
    MAX_STEPS = 1, MAX_ITER
    STALLED = 2, STALLED
    INDEFINITE = 3, INDEFINITE
    TOO_LARGE = 4, "stalled: more rows are active than max_active"


class NewtonPart:
    """Where the solution of one part is; positions are those of ``order``, its rows in a random order."""

    def __init__(self, part: Part, order: Array, first: int, *, free: bool, goal: float, max_active: int) -> None:
        self.order, self.free, self.goal, self.max_active = order, free, goal, max_active
        self.core, self.smoothness = part.core, part.loss.smoothness
        self.y, self.shares = np.ascontiguousarray(part.y[order]), part.shares[order]
        #: Rows of each level, the last of them all.
        self.sizes = [part.m]
        while self.sizes[0] > first:
            self.sizes.insert(0, (self.sizes[0] + 1) // 2)
        self.level, self.steps, self.gap = 0, 0, np.inf
        self.beta, self.F, self.b = np.zeros(self.n), np.zeros(self.n), self._best_bias(np.zeros(self.n))
        self.ending, self.at_rest = NewtonEnding.OPEN, False

    @property
    def m(self) -> int:
        """Rows."""
        return len(self.order)

    @property
    def n(self) -> int:
        """Rows of the present level."""
        return self.sizes[self.level]

    def _best_bias(self, F: Array) -> float:
        n = len(F)
        return best_bias(self.core, F, self.y[:n], self.shares[:n]) if self.free else 0.0

    def coefficients(self) -> Array:
        """β of each row."""
        return self._by_row(self.beta)

    def duals(self) -> Array:
        """−ℓ′ of each row; those of rows that have not been looked at are zero."""
        return self._by_row(self.core.slope(self.F + self.b, self.y[: self.n]))

    def _by_row(self, values: Array) -> Array:
        full = np.zeros(self.m)
        full[self.order[: self.n]] = values
        return full

    def step(self, K: LeadingBlocks) -> None:
        """Take a step, go on to the next level, or come to rest."""
        n, y, s = self.n, self.y[: self.n], self.shares[: self.n]
        z = self.F + self.b
        u = self.core.slope(z, y)
        residual = s * u - self.beta
        pull = K.times(residual)
        value = 0.5 * dot(self.beta, self.F) + dot(s, self.core.value(z, y))
        if not np.isfinite(value) or not np.isfinite(pull).all():
            raise ValueError("the scores left the range of floating-point numbers; scale the features or lower C")
        self.gap = 0.5 * dot(residual, pull)
        last = n == self.m
        if self.gap <= (self.goal if last else max(self.goal, LEVEL_GAP)) * value:
            if last:
                self.at_rest = True
            else:
                self._double(K)
            return
        self.steps += 1
        curved = s * self.core.curvature(z, y)
        if self._descend(K, curved, residual, pull, value) or self.ending:
            return
        bound = s * self.smoothness
        worth = self.gap > MIN_MAJORISED_GAP * value and not np.array_equal(bound, curved)
        if not (worth and self._descend(K, bound, residual, pull, value)) and not self.ending:
            self.ending = NewtonEnding.STALLED

    def _double(self, K: LeadingBlocks) -> None:
        beta = np.concatenate([self.beta, np.zeros(self.sizes[self.level + 1] - self.n)])
        F = K.times(beta)
        # All at once: an interrupt can come at any time.
        self.level, self.beta, self.F, self.b = self.level + 1, beta, F, self._best_bias(F)

    def _descend(self, K: LeadingBlocks, curved: Array, residual: Array, pull: Array, value: float) -> bool:
        """A step along the direction for these curvatures; whether the objective has become smaller."""
        active = np.flatnonzero(curved > 0)
        if len(active) > self.max_active:
            self.ending = NewtonEnding.TOO_LARGE
            return False
        direction, change = residual.copy(), 0.0
        if len(active):
            q = np.sqrt(curved[active])
            found = self._solved(K, active, q, np.stack([q * pull[active], q], axis=1))
            if found is None:
                self.ending = NewtonEnding.INDEFINITE
                return False
            if self.free:
                change = (self.beta.sum() + residual.sum() - dot(q, found[:, 0])) / dot(q, found[:, 1])
            direction[active] -= q * (found[:, 0] + change * found[:, 1])
        along = K.times(direction)
        s, y, z = self.shares[: self.n], self.y[: self.n], self.F + self.b
        slope = -dot(direction, pull) - change * dot(s, self.core.slope(z, y)) * self.free
        if not slope < -MIN_SLOPE_SHARE * value:
            return False
        cross, square, own = dot(self.beta, along), dot(direction, along), dot(self.beta, self.F)

        def objective(t: Array) -> Array:  # scores move linearly: a trial costs no kernel value
            far = float(t[0])
            loss = dot(s, self.core.value(z + far * (along + change), y))
            return np.array([0.5 * own + far * cross + 0.5 * far * far * square + loss])

        t, _ = backtracked(objective, np.array([value]), np.array([slope]))
        if not t[0] > 0:
            return False
        F = self.F + t[0] * along
        self.beta, self.F, self.b = self.beta + t[0] * direction, F, self._best_bias(F)
        return True

    def _solved(self, K: LeadingBlocks, active: Array, q: Array, right: Array) -> Array | None:
        """(I + q K_AA q)⁻¹ times the columns of ``right``; None if K_AA is far from positive semi-definite.

        Rounding can make the matrix indefinite where C is very large: then its diagonal gets a little more.
        """
        M = K.square(active, self.n)
        M *= q[:, None]
        M *= q
        diagonal = np.diagonal(M) + 1.0
        top, more = float(diagonal.max()), 0.0
        while more <= MAX_JITTER * top:
            M.flat[:: len(M) + 1] = diagonal + more
            # A symmetric matrix in C order is, transposed, one in Fortran order: LAPACK works on half of it in place.
            _, x, info = lapack.dposv(M.T, right, lower=1, overwrite_a=1)
            if info == 0:
                return np.asarray(x)
            M = np.tril(M, -1)  # the other half is as it was
            M += M.T
            more = 10 * more if more else FIRST_JITTER * top
        return None
