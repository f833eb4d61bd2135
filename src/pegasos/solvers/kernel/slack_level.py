"""The best bias and level of the slack-constrained margin problem, for given margins without bias.

    ℓ(m) = max_b max_{ξ ≥ 0, Σ c_i ξ_i ≤ V} min_i (m_i + y_i b + ξ_i)

The slack V lifts every row below the level ℓ to the level; rows above it get none. A bias lowers the rows of one class
and lifts those of the other, so each class has a level of its own, ℓ₊ = ℓ − b and ℓ₋ = ℓ + b, and their sum is
maximised. To raise a level by δ costs δ times the weight of the rows below it. So the level with less weight below it
is raised, in turns, until the slack is used up; at the best levels both weights are equal.

Without a bias, as in the paper, all rows have one level: water poured on them, V of it, stands at ℓ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pegasos.rows.views import Array


@dataclass(frozen=True)
class Level:
    """ℓ and b; and for each class its rows below the level, and probabilities in proportion to their weights.

    ½ and ½ of the two distributions is p, with Σ p_i y_i = 0: Σ p_i y_i φ(x_i) is a supergradient of ℓ in w. Without a
    bias there is one distribution, of all rows: that is p.
    """

    level: float
    b: float
    rows: tuple[Array, ...]
    chances: tuple[Array, ...]


class SlackLevels:
    """The rows of a binary problem, positive ones and negative ones; rows without weight are left out.

    ``bias``: whether there is one; without, the bias is 0 and all rows are of one kind.
    """

    def __init__(self, y: Array, weight: Array, *, bias: bool) -> None:
        kinds = [y == 1.0, y == -1.0] if bias else [np.ones(len(y), dtype=bool)]
        self.classes = tuple(np.flatnonzero(kind & (weight > 0)) for kind in kinds)
        self.weight = weight

    def best(self, margins: Array, slack: float) -> Level:
        """The level and bias for these margins and this sum of slack."""
        if len(self.classes) == 1:
            return self._water_level(margins, slack)
        low = [self._within_reach(rows, margins, slack) for rows in self.classes]
        orders = [rows[np.argsort(margins[rows], kind="stable")] for rows in low]
        heights = [margins[order] for order in orders]
        below = [np.cumsum(self.weight[order]) for order in orders]
        # An event: the level of a class rises from one of its rows to the next, with ``weights`` below the level.
        weights = np.concatenate(below)
        rises = np.concatenate([np.append(np.diff(h), np.inf) for h in heights])
        sequence = np.argsort(weights, kind="stable")
        used = np.cumsum((weights * rises)[sequence])
        last = int(np.searchsorted(used, slack))
        event, rest = int(sequence[last]), slack - (float(used[last - 1]) if last else 0.0)
        n, first_class = float(weights[event]), len(heights[0])
        rising = int(event >= first_class)  # the class whose level is between two rows when the slack is used up
        at = event - first_class * rising
        there = int(np.count_nonzero((sequence[:last] >= first_class) != bool(rising)))
        levels, shares = [0.0, 0.0], [below[0], below[1]]
        levels[rising] = float(heights[rising][at]) + rest / n
        levels[1 - rising] = float(heights[1 - rising][there])
        shares[rising] = self.weight[orders[rising][: at + 1]] / n
        # In the other class the row at the level itself counts with the weight that both need to be equal.
        other = self.weight[orders[1 - rising][: there + 1]].copy()
        other[-1] = max(n - float(other[:-1].sum()), 0.0)
        shares[1 - rising] = other / n
        ends = [0, 0]
        ends[rising], ends[1 - rising] = at + 1, there + 1
        return Level(
            0.5 * (levels[0] + levels[1]),
            0.5 * (levels[1] - levels[0]),
            (orders[0][: ends[0]], orders[1][: ends[1]]),
            (shares[0], shares[1]),
        )

    def _water_level(self, margins: Array, slack: float) -> Level:
        """The level of all rows: the first that the slack reaches with the rows below it alone."""
        rows = self._within_reach(self.classes[0], margins, slack)
        order = rows[np.argsort(margins[rows], kind="stable")]
        heights, weight = margins[order], self.weight[order]
        below = np.cumsum(weight)
        used = np.cumsum(below * np.append(np.diff(heights), np.inf))  # to lift the first k to the height of the next
        last = int(np.searchsorted(used, slack))
        rest = slack - (float(used[last - 1]) if last else 0.0)
        n = float(below[last])
        return Level(float(heights[last]) + rest / n, 0.0, (order[: last + 1],), (weight[: last + 1] / n,))

    def _within_reach(self, rows: Array, margins: Array, slack: float) -> Array:
        """The rows of a class that can be below its level: those up to the level it would have with all the slack.

        (V + Σ c_i m_i)/Σ c_i over any rows is above the level of V among them, and with only the rows up to it the
        next such value is lower. A few rounds remove most rows, which need not be sorted then.
        """
        heights, weight = margins[rows], self.weight[rows]
        for _ in range(4):
            bound = (slack + float(weight @ heights)) / float(weight.sum())
            below = heights <= bound + 1e-9 * (1.0 + abs(bound))
            if below.all():
                break
            rows, heights, weight = rows[below], heights[below], weight[below]
        return rows
