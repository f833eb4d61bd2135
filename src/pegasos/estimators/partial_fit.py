"""``partial_fit``: Pegasos over rows that come in calls and are then forgotten; what all have in common, and linear."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self

import numpy as np

from pegasos import solvers
from pegasos.estimators.averages import MEANS, Averages
from pegasos.fit.certificate import Certificate
from pegasos.fit.engine import Options
from pegasos.fit.trace import Checkpoint, Trace
from pegasos.losses import Loss
from pegasos.problems.kernel import KernelProblem
from pegasos.problems.linear import LinearProblem
from pegasos.rows.views import Array, check_weights
from pegasos.solvers import SGD, Norma, PassiveAggressive, Pegasos, Solver
from pegasos.solvers.linear.subgradient import SubgradientEngine, SubgradientSolver
from pegasos.solvers.units import Seen, Units

#: What makes the steps unless a user says so. Rows beyond the margin leave classifiers alone, but every row pulls at a
#: regression, with a slope that does not fade near the optimum: there the last iterate is noisy, and a mean is not.
DEFAULT = {False: Pegasos(), True: Pegasos(output="suffix")}


class RowStream:
    """What is carried from call to call, of linear and kernel machines: how many rows and calls there were, and λ.

    After a fit it begins with that fit's ``lam`` and ``rows``, as if Pegasos had seen the rows once.
    """

    def __init__(self, lam: float, rows: int = 0) -> None:
        self.lam, self.rows, self.calls = lam, rows, 0
        self.t0: float | None = None
        #: Of :class:`Averages` and :class:`Seen`, as plain tuples.
        self.averages: tuple[tuple[int, Array, Array, Array], ...] | None = None
        self.seen: tuple[float, ...] = tuple(Seen())
        self.seconds, self.trace = 0.0, Trace()

    def fork(self) -> Self:
        """A copy that can be carried on alone: a call that fails leaves the stream as it was."""
        other = type(self).__new__(type(self))
        other.__dict__ |= vars(self) | {"trace": self.trace[:]}
        return other

    def _measure(
        self,
        problem: LinearProblem | KernelProblem,
        solver: Solver,
        norms: Callable[[], Array],
        weight: Array | None,
        y: Array,
    ) -> tuple[float, Units]:
        """Set t0 and return it, with the units of the targets so far; as published if a user chose that."""
        if not isinstance(solver, Pegasos) or solver.t0 != "auto":
            self.t0 = float(solver.t0) if isinstance(solver, Pegasos) else 0.0
            return self.t0, Units()
        loss, regression = problem.loss, problem.loss.kind == "regression"
        seen = Seen(*self.seen).and_these(norms(), weight, y, regression=regression, free=problem.bias == "free")
        self.seen, units = tuple(seen), seen.units(loss)
        self.t0 = solver.t0_for(loss, seen.mean, seen.largest, squared_feature(problem), self.lam, units.step)
        return self.t0, units

    def _record(self, rows: int, primal: float, began: float) -> None:
        """Count a call, which began at this time, and the objective on its rows."""
        self.rows += rows
        self.calls += 1
        self.seconds += time.perf_counter() - began
        inf = float("inf")
        self.trace.append_thinned(Checkpoint(float(self.calls), self.seconds, primal, -inf, inf, inf))

    def certificate(self) -> Certificate:
        """Of the last call: a primal value, and no lower bound."""
        last, inf = self.trace[-1], float("inf")
        return Certificate(
            primal=last.primal,
            dual=-inf,
            gap=inf,
            relative_gap=inf,
            converged=False,
            reason="not certified: the rows of earlier calls to partial_fit are gone",
            epochs=last.epochs,
            seconds=last.seconds,
        )


class Stream(RowStream):
    """That of linear machines: with the last weights and biases, and the steps so far."""

    def __init__(self, lam: float, rows: int = 0) -> None:
        super().__init__(lam, rows)
        self.steps = float(rows)
        self.last: tuple[Array, Array] | None = None

    def begin(self, W: Array, b: Array, outputs: int) -> None:
        """Go on from a fitted model; two classes that are scored jointly were kept as their difference."""
        if len(W) < outputs:
            W, b = np.concatenate([-W / 2, W / 2]), np.concatenate([-b / 2, b / 2])
        self.last = W, b

    def step(self, problem: LinearProblem, given: str | Solver, intercept: str, seed: int) -> tuple[Array, Array]:
        """One epoch over the problem's rows; the weights and biases that it leads to."""
        began, m = time.perf_counter(), problem.examples.m
        solver = stream_solver(given, problem.loss)
        if intercept == "search":
            raise ValueError("intercept='search' needs all rows at once; partial_fit cannot use it")
        if problem.loss.own:
            raise ValueError("partial_fit cannot minimise a CustomLoss: it steps in the core, row by row; use fit")
        solver.check(problem, intercept)
        t0, units = self._measure(
            problem, solver, lambda: problem.examples.squared_norms, problem.weight, problem.target
        )
        engine = solver.engine_with(problem, Options(intercept, seed + self.rows), units, t0 + self.rows, whole=False)
        if solver.output in MEANS:
            engine.select("average")
        if self.last is None:
            self.last = np.zeros((problem.outputs, problem.examples.n)), np.zeros(problem.outputs)
        elif len(self.last[0]) != problem.outputs:
            raise ValueError("the loss scores the classes otherwise than that of earlier calls; fit anew")
        W, b = self.last
        self._restore(engine, W, b, problem.lam * (t0 + self.rows) if isinstance(solver, Pegasos) else 1.0)
        while engine.epochs < 1.0:
            engine.advance()
        averages = self._averaged(engine, solver.output, self.last)
        self.last = engine.model()
        W, b = self.last if averages is None else averages.mean(solver.output)
        check_weights(W, b)
        self.averages = None if averages is None else averages.plain()
        self.steps = float(engine.lanes.solvers[0].state()["steps"][0])
        # The best bias for these rows alone would ignore the rows before: keep the one that was learnt.
        penalty = problem.penalty(problem.squared_norms_of(W), b)
        self._record(m, float(np.sum(penalty + problem.mean_losses(problem.scores(W, b)))), began)
        return W, b

    def _restore(self, engine: SubgradientEngine, W: Array, b: Array, scale: float) -> None:
        """Put the C++ solvers at these weights and biases: w = v/scale, columns outermost, lanes padded."""
        if not self.rows:
            return
        problem = engine.problem
        for core, part in engine.lanes.parts():
            state = core.state()
            lanes, (outputs, n) = len(state["b"]), W[part].shape
            v = np.zeros_like(state["v"]).reshape(-1, lanes)
            v[:n, :outputs] = scale * W[part].T
            bias = np.zeros_like(state["b"])
            if problem.bias == "feature":
                v[n, :outputs] = scale * b[part] / problem.feature
            else:
                bias[:outputs] = b[part]
            squares = (v[:, :outputs] ** 2).sum(axis=0)
            norm = np.array([squares.sum()]) if problem.joint else squares
            core.restore(state | {"v": v.ravel(), "b": bias, "norm": norm, "steps": np.array([self.steps])})

    def _averaged(self, engine: SubgradientEngine, output: str, before: tuple[Array, Array]) -> Averages | None:
        """The means with this piece, whose iterates alone the engine has added up; the engine is left at the last."""
        if output not in MEANS:
            return None
        W, b = engine.model()
        steps = float(engine.lanes.solvers[0].state()["steps"][0])
        engine.select("last")
        if self.averages is None:
            earlier = Averages.begin(self.rows, np.full(len(b), self.steps), *before)
        else:
            earlier = Averages.of(self.averages)
        return earlier.after(engine.problem.examples.m, np.full(len(b), steps - self.steps), steps * W, steps * b)


def squared_feature(problem: LinearProblem | KernelProblem) -> float:
    """The square of the constant feature that the bias is learnt by; 0: there is none."""
    return problem.feature**2 if problem.bias == "feature" else 0.0


def stream_solver(given: str | Solver | None, loss: Loss) -> Pegasos | Norma | SGD | PassiveAggressive:
    """The solver that makes the steps: the user's, if it can go on from any weights."""
    solver = None if given is None else solvers.resolve(given)
    if not isinstance(solver, Pegasos | Norma | SGD | PassiveAggressive):
        return DEFAULT[loss.kind == "regression"]
    if isinstance(solver, SubgradientSolver) and (solver.max_steps, solver.estimate) != (None, None):
        raise ValueError("partial_fit makes one epoch over its rows: max_steps and estimate of the solver are for fit")
    if solver.output == "random":
        raise ValueError(
            "partial_fit cannot tell which of two random iterates is better, since their rows are gone: set output to "
            "'last', 'average' or 'suffix'"
        )
    return solver
