"""What a convex loss of one score is good for if nothing is known but its slopes and values: conjugates, best biases.

Both are zeros of functions that never decrease. They are enclosed between two points, one on each side, and the
enclosure is made smaller until nothing lies between, by secants and halving in turn: smooth functions need a few
secants, and with kinks halving is never more than twice as slow as alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pegasos.util.arrays import Array

#: A function of scores and targets.
OfRows = Callable[[Array, Array], Array]

#: How far from 0 (margins) or from its target a row's score is looked at, relative to the larger of 1 and the target.
REACH = 2.0**20

#: Steps in which an enclosure is made smaller at most; halving alone takes 20 + 53 for all bits.
MAX_STEPS = 160

#: Σ c u of this share of the sums of its terms is zero, as in the core's ``bias.hpp``; how far a bias is looked for.
ZERO_SHARE, MAX_OFFSET = 1e-12, 1e12

#: How wide, relative to the bias, a stretch of best biases must be to be looked for: smooth losses have none.
LEAST_STRETCH = 1e-6

#: What is taken off a conjugate for the rounding of its terms, relative to these.
ROUNDING = 4 * np.finfo(np.float64).eps


class _Ends(NamedTuple):
    """One end of each row's enclosure: the score, h(z) = ℓ(z) + u z there, its slope, and the size of h's terms."""

    z: Array
    h: Array
    slope: Array
    size: Array

    def take(self, rows: Array) -> _Ends:
        return _Ends(*(array[rows] for array in self))

    def replaced(self, where: Array, other: _Ends) -> _Ends:
        return _Ends(*(np.where(where, new, old) for old, new in zip(self, other, strict=True)))


def lower_conjugates(value: OfRows, slope: OfRows, u: Array, y: Array, centre: Array) -> Array:
    """−ℓ*(−u) = min_z ℓ(z) + u z of each row, or a little less; −∞ where no score within reach has the slope −u.

    The minimum lies between a score where ℓ(z) + u z falls and one where it rises, and above the tangents at both: that
    their crossing is a lower bound needs nothing but that ℓ is convex. ``value`` and ``slope`` (−ℓ′) may return what is
    not finite. Beyond the slopes within reach, towards u = 0, the bound is the chord to 0, which is where −ℓ*(0) ≥ 0
    is at least: no loss is negative.
    """

    def look(z: Array, rows: Array) -> _Ends:
        loss, own = value(z, y[rows]), u[rows]
        g = own - slope(z, y[rows])
        return _Ends(z, loss + own * z, g, np.abs(loss) + np.abs(own * z))

    with np.errstate(all="ignore"):
        everything = np.arange(len(u))
        left, right = (_outwards(look, everything, centre, sign) for sign in (-1.0, 1.0))
        found = np.full(len(u), -np.inf)
        enclosed = (left.slope <= 0) & (right.slope >= 0)
        rows = np.flatnonzero(enclosed)
        if len(rows):
            found[rows] = _enclosed(lambda z, k: look(z, rows[k]), left.take(rows), right.take(rows))
        for end, beyond in ((left, u <= 0), (right, u >= 0)):
            at_end = u - end.slope  # the dual variable whose minimum is at the end
            share = np.divide(u, at_end, out=np.full(len(u), 2.0), where=at_end != 0)
            chord = share * (end.h - end.slope * end.z - ROUNDING * end.size)
            good = ~enclosed & beyond & (share >= 0) & (share <= 1) & np.isfinite(chord)
            found[good] = np.maximum(found[good], chord[good])
    return np.where(u == 0, np.maximum(found, 0.0), found)


def _outwards(look: Callable[[Array, Array], _Ends], rows: Array, centre: Array, sign: float) -> _Ends:
    """The nearest of the scores centre ± 1, ± 4, ± 16, … at which h falls (−) or rises (+), else the farthest."""
    far = REACH * np.maximum(1.0, np.abs(centre))
    ends = look(centre + sign, rows)
    step = 1.0
    while len(rows := np.flatnonzero(~(sign * ends.slope >= 0))) and step < far.max():
        step *= 4.0
        rows = rows[step <= far[rows]]
        further = look(centre[rows] + sign * step, rows)
        known = np.isfinite(further.h) | (sign * further.slope >= 0)
        for old, new in zip(ends, further, strict=True):
            old[rows[known]] = new[known]
    return ends


def _enclosed(look: Callable[[Array, Array], _Ends], left: _Ends, right: _Ends) -> Array:
    """The crossing of the tangents at both ends, once it is as high as rounding allows."""
    best = np.full(len(left.z), -np.inf)
    rows = np.arange(len(best))
    for k in range(MAX_STEPS):
        width = right.z - left.z
        t = (left.h - right.h + right.slope * width) / (right.slope - left.slope)
        crossing = left.h + left.slope * np.clip(t, 0.0, width)  # not a number where an end has no tangent
        # Where the slope at an end is zero that end is the minimum.
        crossing = np.where(left.slope == 0, left.h, np.where(right.slope == 0, right.h, crossing))
        crossing = np.where(np.isfinite(t) | (left.slope == 0) | (right.slope == 0), crossing, -np.inf)
        lowest, size = np.minimum(left.h, right.h), np.maximum(left.size, right.size)
        crossing = np.where(np.isnan(crossing), -np.inf, np.minimum(crossing, lowest))
        size = np.where(np.isfinite(size), size, np.where(np.isfinite(left.size), left.size, right.size))
        bound = crossing - ROUNDING * size
        best[rows] = np.maximum(best[rows], np.where(np.isnan(bound), -np.inf, bound))
        middle = left.z + 0.5 * width
        probe = left.z + t if k % 2 == 0 else middle
        probe = np.where((probe > left.z) & (probe < right.z), probe, middle)
        on = (lowest - crossing > ROUNDING * size) | ~np.isfinite(crossing)
        on &= (probe > left.z) & (probe < right.z)
        if not on.any():
            break
        rows, left, right = rows[on], left.take(on), right.take(on)
        there = look(probe[on], rows)
        falls = there.slope < 0
        left, right = left.replaced(falls, there), right.replaced(~falls, there)
    return best


def best_offset(slope: OfRows, z: Array, y: Array, c: Array, start: float) -> tuple[float, float, bool]:
    """Where G(b) = Σ c u(z + b), which never increases, passes zero: see ``RowLoss`` in ``losses/base.py``."""
    with np.errstate(all="ignore"):
        return _Offset(slope, z, y, c).found(start)


class _Offset:
    """Rows whose slopes are equal at both ends of the enclosure have that slope between them, and are summed once."""

    def __init__(self, slope: OfRows, z: Array, y: Array, c: Array) -> None:
        self.slope, self.z, self.y, self.c, self.settled, self.scale = slope, z, y, c, 0.0, 0.0

    def _slopes(self, b: float) -> Array:
        return self.slope(self.z + b, self.y)

    def _sum(self, u: Array) -> float:
        return float(self.c @ u) + self.settled

    def found(self, start: float) -> tuple[float, float, bool]:
        """The two neighbours, or a point where the sum is zero."""
        here = self._slopes(start)
        self.scale = float(self.c @ np.abs(here))
        zero = ZERO_SHARE * self.scale
        g = self._sum(here)
        if abs(g) <= zero:
            return self._stretch(start, zero)
        sign, step = np.sign(g), 1.0  # a positive sum of slopes −ℓ′ asks for larger scores
        near, at = (start, here), start
        while True:
            at = start + sign * step
            there = self._slopes(at)
            h = self._sum(there)
            # So that zero is known for slopes that were far smaller at the start than they can be.
            zero = ZERO_SHARE * max(self.scale, min(float(self.c @ np.abs(there)), 1e3 * self.scale))
            if np.isnan(h):
                return near[0], near[0], True
            if abs(h) <= zero:
                return self._stretch(at, zero)
            if sign * h > 0 and step >= MAX_OFFSET:
                return at, at, True
            if sign * h < 0:
                break
            near, step = (at, there), step * 8.0
        low, high = (near, (at, there)) if sign > 0 else ((at, there), near)
        return self._between(low[0], low[1], high[0], high[1], zero)

    def _between(self, lo: float, up: Array, hi: float, down: Array, zero: float) -> tuple[float, float, bool]:
        for k in range(MAX_STEPS):
            above, below = self._sum(up), self._sum(down)
            middle = lo + 0.5 * (hi - lo)
            secant = lo + (hi - lo) * above / (above - below) if np.isfinite(above - below) else middle
            b = secant if k % 2 == 0 and lo < secant < hi else middle
            if not lo < b < hi:
                break
            there = self._slopes(b)
            g = self._sum(there)
            if abs(g) <= zero:
                return self._stretch(b, zero, lo, hi)
            if g > 0:
                lo, up = b, there
            else:
                hi, down = b, there
            still = up != down
            if 2 * np.count_nonzero(still) < len(still):
                self.settled += float(self.c[~still] @ up[~still])
                self.z, self.y, self.c = self.z[still], self.y[still], self.c[still]
                up, down = up[still], down[still]
        return lo, hi, False

    def _stretch(self, b: float, zero: float, lo: float = -np.inf, hi: float = np.inf) -> tuple[float, float, bool]:
        """The stretch of biases around b at which the sum is zero; one without an end is cut down to its other end."""
        left, right = self._edge(b, -1.0, zero, lo), self._edge(b, 1.0, zero, hi)
        if np.isinf(left) and np.isinf(right):
            return b, b, True
        return (right if np.isinf(left) else left), (left if np.isinf(right) else right), True

    def _edge(self, b: float, sign: float, zero: float, bound: float) -> float:
        """How far the sum stays zero from b on; ±∞: as far as biases are looked for."""
        step = LEAST_STRETCH * max(1.0, abs(b))
        if abs(self._sum(self._slopes(b + sign * step))) > zero:
            return b
        inside, outside = b, bound
        while np.isinf(outside):
            at = b + sign * step
            if not abs(self._sum(self._slopes(at))) <= zero:
                outside = at
            elif step >= MAX_OFFSET:
                return bound
            step *= 8.0
        while min(inside, outside) < (middle := 0.5 * (inside + outside)) < max(inside, outside):
            if abs(self._sum(self._slopes(middle))) <= zero:
                inside = middle
            else:
                outside = middle
        return inside
