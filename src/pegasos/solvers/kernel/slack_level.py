"""The best bias and level of the slack-constrained margin problem, for given margins without bias.

    γ(m) = max_b max_{ξ ≥ 0, Σ c_i ξ_i ≤ V} min_i (m_i + y_i b + ξ_i)

Pour the volume V of water over the margins: every row is lifted to the level γ, rows above it stay dry. A bias lowers
the rows of one class and lifts those of the other, so each class has a level of its own, g₊ = γ − b and g₋ = γ + b,
and what is maximised is their sum. A level rises the cheaper the less weight is under it: always the one with less
weight under water rises, and at the best levels both weights are equal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pegasos.rows.views import Array


@dataclass(frozen=True)
class Level:
    """γ and b; and for each class its rows under water, and probabilities in proportion to their weights.

    ½ and ½ of the two distributions is p, with Σ p_i y_i = 0: Σ p_i y_i φ(x_i) is a supergradient of γ in w.
    """

    gamma: float
    b: float
    rows: tuple[Array, Array]
    chances: tuple[Array, Array]


class Basin:
    """The rows of a binary problem, positive ones and negative ones; rows without weight are left out."""

    def __init__(self, y: Array, weight: Array) -> None:
        self.classes = tuple(np.flatnonzero((y == sign) & (weight > 0)) for sign in (1.0, -1.0))
        self.weight = weight

    def fill(self, margins: Array, volume: float) -> Level:
        """Pour ``volume`` over the margins."""
        low = [self._within_reach(rows, margins, volume) for rows in self.classes]
        orders = [rows[np.argsort(margins[rows], kind="stable")] for rows in low]
        heights = [margins[order] for order in orders]
        under = [np.cumsum(self.weight[order]) for order in orders]
        # An event: the level of a class rises from one of its rows to the next, with so much weight under water.
        weights = np.concatenate(under)
        rises = np.concatenate([np.append(np.diff(h), np.inf) for h in heights])
        sequence = np.argsort(weights, kind="stable")
        poured = np.cumsum((weights * rises)[sequence])
        last = int(np.searchsorted(poured, volume))
        event, rest = int(sequence[last]), volume - (float(poured[last - 1]) if last else 0.0)
        n, first_class = float(weights[event]), len(heights[0])
        rising = int(event >= first_class)  # which class's level is on its way when the water ends
        at = event - first_class * rising
        there = int(np.count_nonzero((sequence[:last] >= first_class) != bool(rising)))
        levels, shares = [0.0, 0.0], [under[0], under[1]]
        levels[rising] = float(heights[rising][at]) + rest / n
        levels[1 - rising] = float(heights[1 - rising][there])
        shares[rising] = self.weight[orders[rising][: at + 1]] / n
        # Of the other class the row at the level itself counts as far as weight is lacking.
        wet = self.weight[orders[1 - rising][: there + 1]].copy()
        wet[-1] = max(n - float(wet[:-1].sum()), 0.0)
        shares[1 - rising] = wet / n
        ends = [0, 0]
        ends[rising], ends[1 - rising] = at + 1, there + 1
        return Level(
            0.5 * (levels[0] + levels[1]),
            0.5 * (levels[1] - levels[0]),
            (orders[0][: ends[0]], orders[1][: ends[1]]),
            (shares[0], shares[1]),
        )

    def _within_reach(self, rows: Array, margins: Array, volume: float) -> Array:
        """The rows of a class that could be under water: those up to a level that it cannot pass with all the water.

        (V + Σ c_i m_i)/Σ c_i over any rows is above the level of V among them, and with only the rows up to it the
        next such value is lower; few are enough to leave most rows unsorted.
        """
        heights, weight = margins[rows], self.weight[rows]
        for _ in range(4):
            bound = (volume + float(weight @ heights)) / float(weight.sum())
            below = heights <= bound + 1e-9 * (1.0 + abs(bound))
            if below.all():
                break
            rows, heights, weight = rows[below], heights[below], weight[below]
        return rows
