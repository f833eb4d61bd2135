"""The bias by a search around the solver: the fourth approach of the 2011 paper's section 6.

    J(b) = min_w (λ/2)‖w‖² + (1/M) Σ c_i ℓ_i(⟨w, x_i⟩ + b)

is convex. Every dual point u of the inner problem gives a line below it everywhere,

    J(b′) ≥ (1/M) Σ c_i (−ℓ_i*(−u_i)) − (λ/2)‖W(u)‖² − b′ (1/M) Σ c_i u_i,

so instead of comparing noisy values of J the search keeps the lines: the next b minimises their maximum, whose height
there is a lower bound of the optimum over b and w.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos._certificate import Bounds, feasible
from pegasos._data import Array
from pegasos._engine import saved
from pegasos._problem import Problem
from pegasos._stochastic import DualAscentEngine


class BiasSearchEngine:
    """Dual coordinate ascent at fixed biases, moved between rounds; one bias and set of lines for each part."""

    stuck: str | None = None
    eager = False

    def __init__(self, problem: Problem, *, seed: int, **options: Any) -> None:
        self.problem = problem
        # Without a constant feature and multiplier the offsets that start() sets stay fixed.
        self.inner = DualAscentEngine(problem, seed=seed, feature=0.0, **(options | {"single": False}))
        K = problem.outputs
        self.lines: list[list[tuple[float, float]]] = [[] for _ in range(K)]  # height at 0, slope
        self.b = np.zeros(K)
        self.round_ends, self.length = 2.0, 2.0
        self.ended = False

    @property
    def epochs(self) -> float:
        """Passes over the rows."""
        return self.inner.epochs

    def advance(self) -> None:
        self.inner.advance()
        self.ended = self.inner.ended

    def due(self, tol: float) -> bool:
        return self.ended and self.epochs >= self.round_ends

    def model(self) -> tuple[Array | None, Array]:
        return self.inner.model()

    def duals(self) -> Array | None:
        return self.inner.duals()

    def lower_bound(self) -> Array | None:
        """The height of the lowest point of each part's upper envelope of lines."""
        return np.array([lowest(lines)[1] if lines else -np.inf for lines in self.lines])

    def learn(self, bounds: Bounds) -> None:
        p, u = self.problem, self.inner.lanes.duals()
        heights = p.mean_conjugates(u) - 0.5 * p.lam * p.squared_norms_of(p.dual_weights(u))
        slopes = -(p.c @ u) / p.total
        balanced = feasible(p, u)  # its line is level: never above the optimum, and the search stays bounded
        level = p.mean_conjugates(balanced) - 0.5 * p.lam * p.squared_norms_of(p.dual_weights(balanced))
        for k in range(p.outputs):
            self.lines[k] += [(float(heights[k]), float(slopes[k])), (float(level[k]), 0.0)]
            b, lower = lowest(self.lines[k])
            # Two lines far from the truth meet anywhere; the best bias of the current weights is a saner place.
            near = abs(bounds.primal[k] - lower) < 0.5 * bounds.primal[k]
            self.b[k] = b if near else bounds.b[k]
        self.inner.start(u, self.b)
        self.inner.reactivate(bounds.Z - bounds.b + self.b)
        self.length = min(1.2 * self.length, 50.0)
        self.round_ends = self.epochs + self.length

    def state(self) -> dict[str, Any]:
        lines = {f"lines{k}": np.array(pairs).reshape(-1, 2) for k, pairs in enumerate(self.lines)}
        numbers = {"b": self.b.copy(), "round": np.array([self.round_ends, self.length])}
        return self.inner.state() | lines | numbers

    def restore(self, state: dict[str, Any]) -> None:
        self.inner.restore(state)
        self.ended = self.inner.ended
        tables = [saved(state, f"lines{k}", (None, 2)) for k in range(len(self.lines))]
        self.lines = [[(float(h), float(s)) for h, s in table] for table in tables]
        self.b = saved(state, "b", self.b.shape)
        self.round_ends, self.length = map(float, saved(state, "round", (2,)))


def lowest(lines: list[tuple[float, float]]) -> tuple[float, float]:
    """Where max_j (height_j + slope_j b) is least, and its value there; −inf if it falls for ever."""
    heights, slopes = np.array(lines).T
    if (slopes > 0).all() or (slopes < 0).all():
        return 0.0, -np.inf
    # The least value is that of the highest crossing of a falling (or level) line and a rising (or level) one.
    up, down = slopes >= 0, slopes <= 0
    h1, s1 = heights[down][:, None], slopes[down][:, None]
    h2, s2 = heights[up][None, :], slopes[up][None, :]
    steep = s2 - s1
    crossing = h1 + s1 * (h1 - h2) / np.where(steep > 0, steep, 1.0)
    value = float(np.where(steep > 0, crossing, np.maximum(h1, h2)).max())
    # It is taken between the last falling line that comes down to it and the first rising one that leaves it.
    falling, rising = slopes < 0, slopes > 0
    left = ((value - heights[falling]) / slopes[falling]).max(initial=-np.inf)
    right = ((value - heights[rising]) / slopes[rising]).min(initial=np.inf)
    if np.isinf(left) and np.isinf(right):
        return 0.0, value
    return float(left if np.isinf(right) else right if np.isinf(left) else 0.5 * (left + right)), value
