"""Pegasos, NORMA and SGD for a loss of the user's own: the steps of ``cpp/pegasos/linear/pegasos.hpp`` in Python.

A step scores a mini-batch of rows and calls the user's slope once for all of them and all outputs. As in the core,
v = Σ g_i x_i only grows, w = v/(λΩ) with Ω = t0 + rows visited, and U_i, the sum of row i's slopes, makes a dual point
of what was seen since the window began.
"""

from __future__ import annotations

import numpy as np

from pegasos import _core
from pegasos.problems.base import Bounds, Point
from pegasos.problems.linear import LinearProblem, Weights
from pegasos.rows.batches import Batch
from pegasos.rows.views import Array
from pegasos.solvers.linear.engine import LinearEngine, check_after
from pegasos.solvers.linear.horizon import Horizon, StepLimit
from pegasos.util.fields import Numbers, State, as_state, saved
from pegasos.util.random import uniform

#: Told apart from the seed of the orders: that of the random iterates.
RANDOM_ITERATES = 0x72616E646F6D

#: Rows and steps of a call of ``advance`` at most.
ROWS_PER_CALL, STEPS_PER_CALL = 1 << 16, 1 << 8

#: The smallest π before it is multiplied into v.
LEAST_PI = 1e-9

#: Counts in a state, of rows visited and of steps; ``begin``: where the window began, ``next``: where the next will.
COUNTS = ("epoch", "at", "steps", "draws", "next0", "next1", "begin", "next_begin", "begin_steps", "next_begin_steps")

#: Counts up to here are exact in float64.
MAX_EXACT = 2.0**53


class OwnStepsEngine(StepLimit, LinearEngine):
    """A call makes some steps, up to the end of the epoch."""

    #: ``output`` says which iterate is wanted.
    returns_last = True

    def __init__(
        self,
        problem: LinearProblem,
        *,
        output: str,
        bias: str,
        seed: int,
        schedule: str,
        rate: float,
        t0: float,
        bias_start: float,
        bias_rate: float,
        batch_size: int,
        whole_batches: bool,
        sampling: str,
        radius: float,
        horizon: Horizon,
    ) -> None:
        assert whole_batches, "streams have no losses of a user's own"
        self.problem, self.output, self.seed, self.schedule, self.rate = problem, output, seed, schedule, rate
        self.t0, self.sampling, self.radius = t0, sampling, radius
        self.batch_size, self.horizon = min(batch_size, problem.examples.m), horizon
        self.bias_rate = bias_rate if bias == "subgradient" else 0.0
        self.B = problem.feature if problem.bias == "feature" else 0.0
        K, m, n = problem.outputs, problem.examples.m, problem.examples.n
        width = n + int(self.B != 0)
        self.v, self.pi, self.b = np.zeros((K, width)), np.ones(K), np.full(K, bias_start)
        self.U, self.window, self.next_window = (np.zeros((m, K)) for _ in range(3))
        #: Sums of all iterates and biases, until the window began, and until the next will; and two random iterates.
        self.sums = np.zeros((3 if output in ("average", "suffix") else 0, K, width + 1))
        self.random = np.zeros((2 if output == "random" else 0, K, width + 1))
        self.counts = dict.fromkeys(COUNTS, 0) | {"next0": 1, "next1": 1}
        self.next_check = 1.0
        self.relative = problem.c * (m / problem.total)
        self.order = self._epoch_order()

    def _epoch_order(self) -> Array:
        m, epoch = self.problem.examples.m, self.counts["epoch"]
        return _core.epoch_order(m, self.sampling, self.seed, epoch, batch=self.batch_size)

    @property
    def visits(self) -> int:
        """Rows visited: those of the mini-batches that began in earlier epochs, and some of this one."""
        before = -(-self.counts["epoch"] * self.problem.examples.m // self.batch_size) * self.batch_size
        return before + self.counts["at"]

    @property
    def epochs(self) -> float:
        """A mini-batch that runs over the end of an epoch counts as the end, until the next one begins."""
        m = self.problem.examples.m
        return min(self.visits, (self.counts["epoch"] + 1) * m) / m

    @property
    def ended(self) -> bool:
        """Whether an epoch has just ended."""
        return self.counts["at"] == len(self.order)

    def _scale(self) -> Array:
        """What makes w of v, for each output."""
        if self.schedule != "pegasos":
            return self.pi
        omega = self.t0 + self.visits
        return (1.0 / (self.problem.lam * omega) if omega > 0 else 0.0) * self.pi

    @property
    def steps_made(self) -> int:
        return self.counts["steps"]

    def advance(self) -> None:
        n, left = self.counts, self.rows_left
        steps = min(STEPS_PER_CALL, max(1, ROWS_PER_CALL // self.batch_size))
        if left is not None:
            steps = min(steps, -(-left // self.batch_size))
        if steps <= 0:  # all that was asked for may have been done in an earlier fit
            return
        if self.ended:
            n["epoch"], n["at"] = n["epoch"] + 1, 0
            self.order = self._epoch_order()
        for _ in range(steps):
            self._step(self.order[n["at"] : n["at"] + self.batch_size])
            if self.ended:
                self._end_epoch()
                return

    def _step(self, rows: Array) -> None:
        p, n, k = self.problem, self.counts, len(rows)
        batch, scale = Batch(p.examples, rows), self._scale()
        columns = p.examples.n
        n["steps"] += 1
        if len(self.sums) or len(self.random):
            self._remember(np.column_stack([scale[:, None] * self.v, self.b]))
        Z = scale * (batch.scores(self.v[:, :columns]) + self._of_feature()) + self.b
        g = p.by_rows.slope(np.ascontiguousarray(Z).ravel(), self._targets(rows).ravel()).reshape(Z.shape)
        gain = 1.0
        if self.schedule != "pegasos":
            eta = self.rate / (p.lam * np.sqrt(n["steps"])) if self.schedule == "norma" else self.rate
            self.pi *= 1.0 - eta * p.lam
            gain = eta / k
        unit = g * (gain / self.pi)
        np.add.at(self.U, rows, unit)  # with independent draws a row may be there twice
        coef = self.relative[rows, None] * unit
        batch.add_to(self.v[:, :columns], coef)
        if self.B:
            self.v[:, columns] += self.B * coef.sum(axis=0)
        if self.bias_rate:
            self.b += self.bias_rate / (k * np.sqrt(n["steps"])) * (self.relative[rows] @ g)
        n["at"] += k
        if self.radius > 0:
            self._project()
        if (self.pi < LEAST_PI).any():
            self._fold()

    def _of_feature(self) -> Array | float:
        return self.B * self.v[:, -1] if self.B else 0.0

    def _targets(self, rows: Array) -> Array:
        """The targets of some rows for all outputs."""
        return np.ascontiguousarray(self.problem.signs[rows])

    def _project(self) -> None:
        lengths = self._scale() * np.sqrt(np.einsum("kj,kj->k", self.v, self.v))
        self.pi *= np.minimum(1.0, np.divide(self.radius, lengths, out=np.ones_like(lengths), where=lengths > 0))

    def _fold(self) -> None:
        """Multiply a vanishing π into what it scales."""
        self.v *= self.pi[:, None]
        for sums in (self.U, self.window, self.next_window):
            sums *= self.pi
        self.pi = np.ones_like(self.pi)

    def _remember(self, iterate: Array) -> None:
        n = self.counts
        if len(self.sums):
            self.sums[0] += iterate
        for k in range(len(self.random)):
            # Two uniform draws from the iterates so far, as the core makes them.
            if n["steps"] == n[name := f"next{k}"]:
                self.random[k] = iterate
                n[name] = int(min(n["steps"] / uniform(self.seed ^ RANDOM_ITERATES, n["draws"]), 9e15)) + 1
                n["draws"] += 1

    def _end_epoch(self) -> None:
        """After epochs 1, 2, 4, 8, … the window begins at the last but one of these."""
        n = self.counts
        if (done := n["epoch"] + 1) & (done - 1):
            return
        self.window, self.next_window = self.next_window, self.U.copy()
        n["begin"], n["next_begin"] = n["next_begin"], self.visits
        n["begin_steps"], n["next_begin_steps"] = n["next_begin_steps"], n["steps"]
        if len(self.sums):
            self.sums[1], self.sums[2] = self.sums[2], self.sums[0].copy()

    def due(self, tol: float) -> bool:
        return self.finished or (self.ended and self.epochs >= self.next_check)

    def learn(self, bounds: Bounds[Weights]) -> None:
        self.next_check = check_after(self.epochs)

    # --- what is certified -------------------------------------------------------------------------------------------

    def _unpacked(self, iterate: Array) -> tuple[Array, Array]:
        n = self.problem.examples.n
        b = iterate[:, -1] + (self.B * iterate[:, n] if self.B else 0.0)
        return np.ascontiguousarray(iterate[:, :n]), b

    def model(self) -> tuple[Array, Array]:
        """The iterate that ``output`` asks for."""
        n = self.counts
        if self.output == "average":
            return self._unpacked(self.sums[0] / max(n["steps"], 1))
        if self.output == "suffix":
            return self._unpacked((self.sums[0] - self.sums[1]) / max(n["steps"] - n["begin_steps"], 1))
        if self.output == "random":
            # Lemma 3 of the 2011 paper: of two random iterates one is good with probability 3/4; keep the better.
            both = [self._unpacked(iterate) for iterate in self.random]
            primal = [self.problem.certify(Point(Weights(W, b))).primal.sum() for W, b in both]
            return both[int(np.argmin(primal))]
        return self._unpacked(np.column_stack([self._scale()[:, None] * self.v, self.b]))

    def duals(self) -> Array:
        """The window's dual point; what leaves the domain is clipped by whoever certifies it."""
        m = self.problem.examples.m
        if self.schedule != "pegasos":
            return np.asarray(self.problem.lam * m * self.pi * self.U)
        shares = _core.visit_shares(m, self.sampling, self.seed, self.counts["begin"], self.visits)[:, None]
        visits = np.divide(m, shares, out=np.zeros_like(shares), where=shares > 0)
        return np.asarray(visits * self.pi * (self.U - self.window))

    # --- the state ---------------------------------------------------------------------------------------------------

    def _arrays(self) -> dict[str, Array]:
        names = ("v", "pi", "b", "U", "window", "next_window", "sums", "random")
        return {name: getattr(self, name) for name in names}

    def state(self) -> State:
        numbers: Numbers = {**self._arrays(), **self.counts, "check": self.next_check}
        return as_state(numbers)

    def restore(self, state: State) -> None:
        for name, fresh in self._arrays().items():
            setattr(self, name, saved(state, name, fresh.shape))
        self.counts = {name: int(saved(state, name, (1,), low=0, high=MAX_EXACT, whole=True)[0]) for name in COUNTS}
        saved(state, "epoch", (1,), high=MAX_EXACT / self.problem.examples.m)
        self.next_check = float(saved(state, "check", (1,))[0])
        self.order = self._epoch_order()
        saved(state, "at", (1,), high=len(self.order))
        if self.counts["steps"] * self.batch_size != self.visits:
            raise ValueError("state: 'steps' of other than batch_size rows")
