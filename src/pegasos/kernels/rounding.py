"""How far kernel values, and sums of them, can be from what exact arithmetic would give: bounds from norms alone.

A value K̃(x_r, x_j) that the core computes with unit roundoff u, from rows rounded to that precision, satisfies

    |K̃ − K| ≤ u (s_j (p_r q_j + q_r p_j) + f q_r q_j),

where s_j counts the roundings of a sum over the entries of x_j (an inner product of n terms has n of them, in whatever
order they are added), f those of the function that is applied to it, and p, q hold the sizes that they are relative to:

    linear    p = q = √½ ‖x‖                          rbf        p = γ‖x‖²,   q = 1
    poly      p = q = √½ (γ‖x‖² + |c|)^{d/2}          laplacian  p = γ‖x‖₁,   q = 1
    sigmoid   p = q = √½ (1 + √(γ‖x‖² + |c|))         chi2       p = γ‖x‖₁,   q = 1

The exponential's derivative is at most 1 where it is used, and roundings relative to its argument s count e^{-1} each,
because s e^{-s} ≤ e^{-1}. In all cases |K| ≤ p_r q_j + q_r p_j + q_r q_j. Underflow is covered by adding to the norms
what makes the terms above larger than it; where values could overflow there is no bound (s = ∞).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pegasos.kernels.functions import Kernel
from pegasos.rows.views import Array
from pegasos.util.threads import dot

#: Bounds are first-order: they hold with this factor while all roundings of a value together are at most this large.
SECOND_ORDER_FACTOR, MAX_FIRST_ORDER = 1.02, 0.01


@dataclass(frozen=True)
class Precision:
    """Unit roundoff; what is added to norms against underflow; squares, and 1/γ and γ, that values are safe with."""

    unit: float
    least: float
    most: float
    gamma: float


SINGLE = Precision(2.0**-24, 2.0**-49, 1e30, 1e15)
DOUBLE = Precision(2.0**-53, 2.0**-450, 1e250, 1e60)


@dataclass(frozen=True)
class ValueErrors:
    """``unit * (steps[j] * (p[r] q[j] + q[r] p[j]) + fixed * q[r] q[j])`` bounds the error of K(x_r, x_j)."""

    unit: float
    p: Array
    q: Array
    steps: Array
    fixed: float = 0.0

    def of(self, index: Array) -> ValueErrors:
        """Those of some of the rows."""
        return ValueErrors(self.unit, self.p[index], self.q[index], self.steps[index], self.fixed)

    def of_sums(self, p: float, q: float) -> Array:
        """The errors of sums Σ δ_r K(x_r, x_j) for each j, where Σ|δ_r| p_r and Σ|δ_r| q_r are known."""
        return self.unit * (self.steps * (p * self.q + q * self.p) + self.fixed * q * self.q)

    def of_sizes(self, p: float, q: float) -> Array:
        """What such sums are at most."""
        return p * self.q + q * self.p + q * self.q


def value_errors(kernel: Kernel, norms: Array, entries: Array, precision: Precision) -> ValueErrors:
    """The errors of a kernel of the core, for rows of these norms (squared; the sum of magnitudes for laplacian and
    chi2) with so many entries."""
    absolute = kernel.name in ("laplacian", "chi2")
    gamma, c, least = kernel.gamma, abs(kernel.coef0), precision.least
    if kernel.name == "linear":
        gamma, c = 1.0, 0.0
    # γ times the square of what is added is above the smallest numbers, however small γ is.
    least = least / np.sqrt(min(gamma, 1.0)) if gamma > 0 else least
    length = (norms if absolute else np.sqrt(norms)) * (1 + 1e-6) + least * np.sqrt(entries + 1.0)
    n, fixed = entries.astype(np.float64), 0.0
    with np.errstate(over="ignore"):
        if kernel.name == "linear":
            p, steps = np.sqrt(0.5) * length, n + 4
        elif kernel.name == "poly":
            p = np.sqrt(0.5) * (gamma * length**2 + c + least**2) ** (0.5 * kernel.degree)
            steps = kernel.degree * (n + 8) + 4
        elif kernel.name == "sigmoid":
            p, steps = np.sqrt(0.5) * (1 + np.sqrt(gamma * length**2 + c)), n + 24
        else:  # terms of chi2 are up to three times as large as the entries
            p, steps = gamma * (length if absolute else length**2), 3 * n + 16 if kernel.name == "chi2" else n + 8
            fixed = 8.0
        # chi2 squares differences of entries.
        size = float(norms.max(initial=0.0)) ** (2 if kernel.name == "chi2" else 1)
        safe = size <= precision.most and (kernel.name != "poly" or float((p**2).max(initial=0.0)) <= precision.most)
    numbers = [gamma, c] if kernel.name in ("poly", "sigmoid") else [gamma]
    safe = safe and all(v == 0 or 1 / precision.gamma <= v <= precision.gamma for v in numbers)
    steps = np.where((precision.unit * steps <= MAX_FIRST_ORDER) & safe, SECOND_ORDER_FACTOR * steps, np.inf)
    return ValueErrors(precision.unit, p, np.ones(len(p)) if fixed else p, steps, SECOND_ORDER_FACTOR * fixed)


def taken_as_given(size: float, m: int) -> ValueErrors:
    """No errors: m rows of a matrix whose values, of at most this size, are themselves what is meant."""
    p = np.full(m, np.sqrt(0.5 * size))
    return ValueErrors(DOUBLE.unit, p, p, np.full(m, 4.0))


def unknown(m: int) -> ValueErrors:
    """Nothing is known of the errors."""
    return ValueErrors(DOUBLE.unit, np.ones(m), np.ones(m), np.full(m, np.inf))


class Drift:
    """What the error of running scores F = Σ δ_r K(x_r, ·), added up over many changes δ in float64, is made of.

    ``numbers``: Σ|δ_r| p_r and Σ|δ_r| q_r over the changes added with values in single precision; the same over all of
    them in units of the double precision's p and q, in which every coefficient counts once more, by the largest that it
    can be, for each time that it was rounded; and how many there were.
    """

    def __init__(self, numbers: Array | None = None) -> None:
        self.numbers = np.zeros(5) if numbers is None else numbers

    def add(self, rows: Array, changes: Array, most: Array, single: ValueErrors | None, double: ValueErrors) -> None:
        """Note that ``changes`` of some rows were added, whose coefficients are at most ``most``."""
        sizes = np.abs(changes)
        if single is not None:
            self.numbers[:2] += dot(sizes, single.p[rows]), dot(sizes, single.q[rows])
        sizes = sizes + most
        self.numbers[2:] += dot(sizes, double.p[rows]), dot(sizes, double.q[rows]), float(len(rows))

    def reach(self, off: Array, single: ValueErrors | None, double: ValueErrors) -> Array:
        """How far the running score of each row can be from that of coefficients which are ``off`` from those added."""
        sizes, several = np.abs(off), self.numbers
        with np.errstate(over="ignore", invalid="ignore"):
            found = double.of_sums(several[2], several[3])
            # Every sum of the terms added so far was rounded.
            found += double.unit * (several[4] + 4) * double.of_sizes(several[2], several[3])
            found += double.of_sizes(dot(sizes, double.p), dot(sizes, double.q))
            if single is not None:
                found += single.of_sums(several[0], several[1])
        return np.where(np.isnan(found), np.inf, SECOND_ORDER_FACTOR * found)
