"""The bias by a search around the solver: the fourth approach of the 2011 paper's section 6.

    J(b) = min_w (λ/2)‖w‖² + (1/M) Σ c_i ℓ_i(⟨w, x_i⟩ + b)

is convex. Every dual point u of the inner problem gives a line below it everywhere,

    J(b′) ≥ (1/M) Σ c_i (−ℓ_i*(−u_i)) − (λ/2)‖W(u)‖² − b′ (1/M) Σ c_i u_i,

so instead of comparing noisy values of J the search keeps the lines: the next b minimises their maximum. The height of
a crossing of a falling line and a rising one is a lower bound of the optimum over b and w. It is the dual value, or
less, of their dual points mixed so that Σ c_i u_i = 0, and those mixtures are what is certified: of the best crossing
so far both points are kept, to be mixed with the current one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pegasos.problems.base import Bounds
from pegasos.problems.linear import LinearProblem, Weights, feasible
from pegasos.rows.views import Array
from pegasos.solvers.linear.dual_ascent import DualAscentEngine
from pegasos.solvers.linear.engine import LinearEngine
from pegasos.util.fields import State, saved


class BiasSearchEngine(LinearEngine):
    """Dual coordinate ascent at fixed biases, moved between rounds; one bias and set of lines for each part."""

    def __init__(self, problem: LinearProblem, *, seed: int, **options: Any) -> None:
        self.problem = problem
        # Without a constant feature and multiplier the offsets that begin_at() sets stay fixed.
        self.inner = DualAscentEngine(problem, seed=seed, feature=0.0, **(options | {"single": False}))
        K = problem.outputs
        self.lines: list[list[tuple[float, float]]] = [[] for _ in range(K)]  # height at 0, slope
        #: The dual points of a falling and of a rising line of each part, and those lines; NaN: none yet.
        self.sides = np.zeros((2, problem.examples.m, K))
        self.side_lines = np.full((2, K, 2), np.nan)
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
        """The current dual point, mixed with one of the other side so that Σ c_i u_i = 0."""
        u = self.inner.duals()
        assert u is not None
        slopes = self._slopes(u)
        for k, slope in enumerate(slopes):
            other = int(slope < 0)
            across = self.side_lines[other, k, 1]
            if slope * across < 0:
                share = across / (across - slope)
                u[:, k] = share * u[:, k] + (1 - share) * self.sides[other, :, k]
        return u

    def _slopes(self, u: Array) -> Array:
        return np.asarray(-(self.problem.c @ u) / self.problem.total)

    def _keep(self, k: int, u: Array, line: tuple[float, float]) -> None:
        """Keep a dual point of part k if its line crosses the one of the other side higher than that of its own."""
        side = int(line[1] > 0)
        mine, other = self.side_lines[side, k], self.side_lines[1 - side, k]
        if np.isnan(mine).any() or np.isnan(other).any() or _crossing(line, other) >= _crossing(mine, other):
            self.sides[side, :, k], self.side_lines[side, k] = u, line

    def learn(self, bounds: Bounds[Weights]) -> None:
        p, u = self.problem, self.inner.lanes.duals()
        heights = p.mean_conjugates(u) - 0.5 * p.lam * p.squared_norms_of(p.dual_weights(u))
        slopes = self._slopes(u)
        balanced = feasible(p, u)  # its line is level, so that the maximum of all lines has a minimum
        level = p.mean_conjugates(balanced) - 0.5 * p.lam * p.squared_norms_of(p.dual_weights(balanced))
        for k in range(p.outputs):
            line = float(heights[k]), float(slopes[k])
            self.lines[k] += [line, (float(level[k]), 0.0)]
            if line[1] != 0:
                self._keep(k, u[:, k], line)
            b, lower = lowest(self.lines[k])
            # While the lines are far below J their minimum says little; then take the best bias of the current weights.
            near = abs(bounds.primal[k] - lower) < 0.5 * bounds.primal[k]
            self.b[k] = b if near else bounds.model.b[k]
        self.inner.begin_at(u, self.b)
        assert bounds.scores is not None
        self.inner.reactivate(bounds.scores - bounds.model.b + self.b)
        self.length = min(1.2 * self.length, 50.0)
        self.round_ends = self.epochs + self.length

    def state(self) -> State:
        lines = {f"lines{k}": np.array(pairs).reshape(-1, 2) for k, pairs in enumerate(self.lines)}
        numbers = {"b": self.b.copy(), "round": np.array([self.round_ends, self.length])}
        return self.inner.state() | lines | numbers | {"sides": self.sides.copy(), "side_lines": self.side_lines.copy()}

    def restore(self, state: State) -> None:
        self.inner.restore(state)
        self.ended = self.inner.ended
        tables = [saved(state, f"lines{k}", (None, 2)) for k in range(len(self.lines))]
        self.lines = [[(float(h), float(s)) for h, s in table] for table in tables]
        self.sides = saved(state, "sides", self.sides.shape)
        self.side_lines = saved(state, "side_lines", self.side_lines.shape)
        self.b = saved(state, "b", self.b.shape)
        self.round_ends, self.length = map(float, saved(state, "round", (2,)))


def _crossing(one: Sequence[float] | Array, other: Sequence[float] | Array) -> float:
    """The height at which a falling and a rising line meet."""
    (height, slope), (across, steep) = one, other
    return float((height * steep - across * slope) / (steep - slope))


def lowest(lines: list[tuple[float, float]]) -> tuple[float, float]:
    """Where max_j (height_j + slope_j b) is least, and its value there; −inf if it is unbounded below."""
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
