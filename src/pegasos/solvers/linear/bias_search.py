"""The bias by a search around the solver: the fourth approach of the 2011 paper's section 6.

    J(b) = min_w (λ/2)‖w‖² + (1/M) Σ c_i ℓ_i(⟨w, x_i⟩ + b)

(the paper's Eq. 25, which lacks the regulariser in print) is convex. Every dual point u of the inner problem gives a
line below it everywhere,

    J(b′) ≥ (1/M) Σ c_i (−ℓ_i*(−u_i)) − (λ/2)‖W(u)‖² − b′ (1/M) Σ c_i u_i,

so instead of comparing noisy values of J the search keeps the lines: the next b minimises their maximum. The height of
a crossing of a falling line and a rising one is a lower bound of the optimum over b and w. It is the dual value, or
less, of their dual points mixed so that Σ c_i u_i = 0, and those mixtures are what is certified: of the best crossing
so far both points are kept, to be mixed with the current one.

The inner solver is SDCA, which goes on from where it is when the bias moves, or Pegasos, which begins anew at every
bias, as in the paper, with more epochs each time: an application of Pegasos is as good as it is long. Its lines are
those of the dual points of its window of epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from pegasos import _core
from pegasos.problems.base import Bounds, Point
from pegasos.problems.linear import LinearProblem, Weights, feasible
from pegasos.rows.views import Array
from pegasos.solvers.linear.dual_ascent import DualAscentEngine
from pegasos.solvers.linear.engine import LinearEngine
from pegasos.solvers.linear.lanes import LaneEngine
from pegasos.util.fields import State, saved

#: Slopes up to this share of the numbers they are sums of are rounding errors: such a line crosses the others anywhere.
LEVEL = 1e-12


class BiasSearchEngine(LinearEngine):
    """A solver at fixed biases, moved between rounds; one bias and set of lines for each part."""

    #: What each round is longer than the one before, and the longest, in epochs.
    growth: ClassVar[float]
    longest: ClassVar[float]

    inner: LaneEngine[Any]

    def __init__(self, problem: LinearProblem) -> None:
        self.problem = problem
        K = problem.outputs
        self.lines: list[list[tuple[float, float]]] = [[] for _ in range(K)]  # height at 0, slope
        #: The dual points of a falling and of a rising line of each part, and those lines; NaN: none yet.
        self.sides = np.zeros((2, problem.examples.m, K))
        self.side_lines = np.full((2, K, 2), np.nan)
        self.b = np.zeros(K)
        self.round_ends, self.length = 2.0, 2.0
        self.ended = False

    def current(self) -> Array:
        """The dual point of the domain whose lines are to be kept."""
        raise NotImplementedError

    def move(self, u: Array, bounds: Bounds[Weights]) -> None:
        """Go on at the biases ``b``; ``u`` was the current point."""
        raise NotImplementedError

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

    def proposed(self) -> Array:
        """The dual point to be certified, before it is mixed with one of the other side."""
        return self.current()

    def duals(self) -> Array | None:
        """The current dual point, mixed with one of the other side so that Σ c_i u_i = 0."""
        u = self.proposed()
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
        p, u = self.problem, self.current()
        heights = p.mean_conjugates(u) - 0.5 * p.lam * p.squared_norms_of(p.dual_weights(u))
        slopes = self._slopes(u)
        slopes[np.abs(slopes) <= LEVEL * (p.c @ np.abs(u)) / p.total] = 0.0
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
        self.move(u, bounds)
        self.length = min(self.growth * self.length, self.longest)
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


class DualBiasSearch(BiasSearchEngine):
    """With dual coordinate ascent, which keeps its dual point when the bias moves."""

    growth, longest = 1.2, 50.0
    inner: DualAscentEngine

    def __init__(self, problem: LinearProblem, *, seed: int, **options: Any) -> None:
        super().__init__(problem)
        # Without a constant feature and multiplier the offsets that begin_at() sets stay fixed.
        self.inner = DualAscentEngine(problem, seed=seed, feature=0.0, **(options | {"single": False}))

    def current(self) -> Array:
        return self.inner.lanes.duals()

    def proposed(self) -> Array:
        return self.inner.lanes.averages()

    def move(self, u: Array, bounds: Bounds[Weights]) -> None:
        self.inner.begin_at(u, self.b)
        assert bounds.scores is not None
        self.inner.reactivate(bounds.scores - bounds.model.b + self.b)


class PegasosBiasSearch(BiasSearchEngine):
    """With Pegasos, a run of its own for every bias; ``make`` builds the engine of a run from its seed."""

    # Runs whose lengths grow geometrically take no more than 1/(1 − 1/growth) times the longest.
    growth, longest = 1.3, np.inf

    def __init__(self, problem: LinearProblem, make: Callable[[int], LaneEngine[_core.Pegasos]], *, seed: int) -> None:
        super().__init__(problem)
        self.make, self.seed = make, seed
        self.spent, self.round = 0.0, 0
        self._begin()

    @property
    def epochs(self) -> float:
        return self.spent + self.inner.epochs

    def current(self) -> Array:
        u = self.problem.clipped(Point(Weights(None, self.b), self.inner.duals())).duals
        assert u is not None
        return np.asarray(u)

    def move(self, u: Array, bounds: Bounds[Weights]) -> None:
        self.spent += self.inner.epochs
        self.round += 1
        self._begin()

    def _begin(self) -> None:
        """A run from w = 0 at the biases ``b``, which it is not asked to learn."""
        self.inner = self.make(self.seed + self.round)
        for core, part in self.inner.lanes.parts():
            bias = np.zeros_like(core.state()["b"])  # lanes are padded
            bias[: part.stop - part.start] = self.b[part]
            core.restore(core.state() | {"b": bias})

    def state(self) -> State:
        return super().state() | {"run": np.array([self.spent, float(self.round)])}

    def restore(self, state: State) -> None:
        spent, number = map(float, saved(state, "run", (2,), low=0, high=2.0**53))
        self.spent, self.round = spent, int(number)
        self.inner = self.make(self.seed + self.round)
        super().restore(state)


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
