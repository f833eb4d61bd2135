"""Pegasos with an oracle: Example 5 of the 2011 paper, the steps of its Figs. 1 and 2.

The iterate is w = π v/(λΩ), v = Σ c̃_i ψ_i over the rows visited, Ω = t0 + rows visited, c̃ = c·n/M, as in
``cpp/pegasos/linear/pegasos.hpp``: the same steps, with one weight vector for all labellings. Each step makes w anew,
which costs as many multiplications as there are weights; mini-batches share that, and the call of the oracle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pegasos import _core
from pegasos.fit.engine import Engine, Options
from pegasos.problems.base import Bounds, Point
from pegasos.problems.planes import MAX_EXACT
from pegasos.problems.structured import OracleProblem
from pegasos.rows.views import Array
from pegasos.solvers.base import drawn_order
from pegasos.solvers.linear.engine import check_after
from pegasos.solvers.linear.subgradient import Pegasos
from pegasos.solvers.structured.base import OracleEngine, OracleSolver
from pegasos.solvers.structured.window import Window
from pegasos.util.fields import MAX_FINITE, saved
from pegasos.util.random import uniform

#: Told apart from the seed of the orders: that of the random iterates.
RANDOM_ITERATES = 0x72616E646F6D

#: The smallest π before it is multiplied into v.
LEAST_PI = 1e-9

#: What is counted, and what each window begins at.
COUNTS = ("epoch", "at", "steps", "draws", "next0", "next1", "begin", "next_begin", "begin_steps", "next_begin_steps")


class OraclePegasosEngine(OracleEngine):
    """Pegasos on a problem with an oracle; a step at a time."""

    #: ``output`` says which iterate is wanted.
    returns_last = True

    def __init__(
        self,
        problem: OracleProblem,
        *,
        tol: float,
        seed: int,
        t0: float,
        batch_size: int,
        sampling: str,
        radius: float,
        output: str,
    ) -> None:
        self.problem, self.tol, self.seed, self.t0 = problem, tol, seed, t0
        self.batch_size, self.sampling, self.radius, self.output = batch_size, sampling, radius, output
        size = problem.size
        self.v, self.w, self.pi = np.zeros(size), np.zeros(size), 1.0
        self.sums = np.zeros((3 if output in ("average", "suffix") else 0, size))  # all; until two windows begin
        self.random = np.zeros((2 if output == "random" else 0, size))
        self.window = Window()
        self.counts = dict.fromkeys(COUNTS, 0) | {"next0": 1, "next1": 1}
        self.next_check = 1.0
        self.order = self._epoch_order()

    def _epoch_order(self) -> Array:
        n, epoch = self.problem.n_rows, self.counts["epoch"]
        return _core.epoch_order(n, self.sampling, self.seed, epoch, batch=self.batch_size)

    @property
    def visits(self) -> int:
        """Rows visited: those of the mini-batches that began in earlier epochs, and some of this one."""
        before = -(-self.counts["epoch"] * self.problem.n_rows // self.batch_size) * self.batch_size
        return before + self.counts["at"]

    @property
    def epochs(self) -> float:
        """A mini-batch that runs over the end of an epoch counts as the end, until the next one begins."""
        n = self.problem.n_rows
        return min(self.visits, (self.counts["epoch"] + 1) * n) / n

    @property
    def ended(self) -> bool:
        """Whether an epoch has just ended."""
        return self.counts["at"] == len(self.order)

    def _weights(self) -> Array:
        omega = self.t0 + self.visits
        return (self.pi / (self.problem.lam * omega) if omega > 0 else 0.0) * self.v

    def advance(self) -> None:
        """A step."""
        p, n = self.problem, self.counts
        if self.ended:
            n["epoch"], n["at"] = n["epoch"] + 1, 0
            self.order = self._epoch_order()
        batch = self.order[n["at"] : n["at"] + self.batch_size]
        self.w = self._weights()
        rows = batch[p.c[batch] > 0]
        found = p.decode(self.w, rows) if len(rows) else None
        n["steps"] += 1
        if len(self.sums):
            self.sums[0] += self.w
        if len(self.random):
            self._draw()
        for k, row in enumerate(rows.tolist()):
            assert found is not None
            plane = found.plane(k)
            self.v[plane.columns] += p.c[row] * p.n_rows / p.total / self.pi * plane.values
            self.window.add(row, plane)
        n["at"] += len(batch)
        if self.radius > 0:
            self._project()
        if self.ended:
            self._end_epoch()

    def _project(self) -> None:
        w = self._weights()
        if (length := float(np.sqrt(w @ w))) > self.radius:
            self.pi *= self.radius / length
        if self.pi < LEAST_PI:
            self.v, self.pi = self.v * self.pi, 1.0

    def _draw(self) -> None:
        """Two uniform draws from the iterates so far, as the core makes them."""
        n = self.counts
        for k, name in enumerate(("next0", "next1")):
            if n["steps"] == n[name]:
                self.random[k] = self.w
                n[name] = int(min(n["steps"] / uniform(self.seed ^ RANDOM_ITERATES, n["draws"]), 9e15)) + 1
                n["draws"] += 1

    def _end_epoch(self) -> None:
        """After epochs 1, 2, 4, 8, … the window begins at the last but one of these."""
        n = self.counts
        if (done := n["epoch"] + 1) & (done - 1):
            return
        self.window.move()
        n["begin"], n["next_begin"] = n["next_begin"], self.visits
        n["begin_steps"], n["next_begin_steps"] = n["next_begin_steps"], n["steps"]
        if len(self.sums):
            self.sums[1], self.sums[2] = self.sums[2], self.sums[0].copy()

    def due(self, tol: float) -> bool:
        return self.ended and self.epochs >= self.next_check

    def learn(self, bounds: Bounds[Array]) -> None:
        self.next_check = check_after(self.epochs)

    def point(self, *, last: bool = False) -> Point[Array]:
        """The iterate that ``output`` asks for, and the window's planes."""
        p, n = self.problem, self.counts
        # The mean of a row's planes is one of its dual points, however often it was visited.
        seen = _core.visit_shares(p.n_rows, self.sampling, self.seed, n["begin"], self.visits)
        return Point(self._model(), self.window.planes(p.n_rows / np.maximum(seen, 1.0), p.size))

    def _model(self) -> Array:
        n = self.counts
        if self.output == "average":
            return np.asarray(self.sums[0] / max(n["steps"], 1))
        if self.output == "suffix":
            return np.asarray((self.sums[0] - self.sums[1]) / max(n["steps"] - n["begin_steps"], 1))
        if self.output == "random":
            # Lemma 3 of the 2011 paper: of two random iterates one is good with probability 3/4; keep the better.
            values = [self.problem.value(w, self.problem.losses(w)) for w in self.random]
            return np.array(self.random[int(np.argmin(values))])
        return self._weights()

    def state(self) -> dict[str, Any]:
        numbers = {name: np.array([float(value)]) for name, value in self.counts.items()}
        numbers |= {"pi": np.array([self.pi]), "check": np.array([self.next_check])}
        return numbers | {"v": self.v, "sums": self.sums, "random": self.random} | self.window.state()

    def restore(self, state: dict[str, Any]) -> None:
        size, n_rows = self.problem.size, self.problem.n_rows
        shapes = {"v": (size,), "sums": self.sums.shape, "random": self.random.shape}
        self.v, self.sums, self.random = (
            saved(state, k, s, low=-MAX_FINITE, high=MAX_FINITE) for k, s in shapes.items()
        )
        self.counts = {name: int(saved(state, name, (1,), low=0, high=MAX_EXACT, whole=True)[0]) for name in COUNTS}
        saved(state, "epoch", (1,), high=MAX_EXACT / n_rows)
        self.order = self._epoch_order()
        saved(state, "at", (1,), high=len(self.order))
        saved(state, "begin", (1,), high=self.visits)
        # Before mini-batches ran over the end of an epoch the last one was short: such a state is of another fit.
        n, k = self.counts, self.batch_size
        if n["steps"] * k != self.visits or n["begin"] % k or n["next_begin"] % k:
            raise ValueError("state: 'steps' of other than batch_size rows")
        self.pi = float(saved(state, "pi", (1,), low=LEAST_PI, high=1)[0])
        self.next_check = float(saved(state, "check", (1,))[0])
        self.window.restore(state, n_rows, size)


@dataclass(frozen=True)
class OraclePegasos(OracleSolver):
    """Pegasos on a problem with an oracle: ``t0="auto"`` is the number of rows."""

    options: Pegasos
    name: ClassVar[str] = "pegasos"

    def check(self, problem: OracleProblem, intercept: str) -> None:
        drawn_order(self.options, self.options.sampling, "an oracle")
        self.options.check_whole("an oracle")
        if self.options.projection and not problem.exact:
            raise ValueError(
                "Pegasos: projection=True needs an exact oracle: the ball's radius comes from the objective"
            )

    def engine(self, problem: OracleProblem, options: Options) -> Engine[Array]:
        own = self.options
        return OraclePegasosEngine(
            problem,
            tol=options.tol,
            seed=options.seed,
            t0=float(problem.n_rows if own.t0 == "auto" else own.t0),
            batch_size=min(int(own.batch_size), problem.n_rows),
            sampling=drawn_order(own, own.sampling, "an oracle"),
            radius=own.radius(problem, problem.lam),
            output=own.output,
        )
