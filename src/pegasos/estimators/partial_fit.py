"""``partial_fit``: Pegasos over rows that come in pieces and are then forgotten."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from pegasos import solvers
from pegasos.estimators.averages import MEANS, Averages
from pegasos.fit.certificate import Certificate
from pegasos.fit.engine import Options
from pegasos.fit.trace import Checkpoint, Trace
from pegasos.losses import Loss
from pegasos.problems.linear import LinearProblem
from pegasos.rows.views import Array, check_weights
from pegasos.solvers import SGD, Norma, Pegasos, Solver
from pegasos.solvers.linear.subgradient import SubgradientEngine
from pegasos.solvers.units import Seen, Units

#: What makes the steps unless a user says so. Rows beyond the margin leave classifiers alone, but every row pulls at a
#: regression, with a slope that does not fade near the optimum: there the last iterate is noisy, and a mean is not.
DEFAULT = {False: Pegasos(), True: Pegasos(output="suffix")}


class Stream:
    """What is carried from piece to piece: weights and biases, and how many rows, steps and calls there were.

    After a fit it begins with that fit's weights, ``lam`` and ``rows``, as if Pegasos had seen the rows once.
    """

    def __init__(self, lam: float | None = None, rows: int = 0) -> None:
        self.lam = lam
        self.rows = rows
        self.steps, self.calls = float(rows), 0
        self.last: tuple[Array, Array] | None = None
        #: Of :class:`Averages` and :class:`Seen`, as plain tuples.
        self.averages: tuple[tuple[Any, ...], ...] | None = None
        self.t0: float | None = None
        self.seen: tuple[float, ...] = tuple(Seen())
        self.seconds = 0.0
        self.trace = Trace()

    def step(self, model: Any, problem: LinearProblem) -> tuple[Array, Array]:
        """One epoch over the problem's rows; sets the model's certificate and trace and returns weights and biases."""
        began = time.perf_counter()
        if self.lam is None:
            self.lam = problem.lam
        problem = replace(problem, lam=self.lam)
        solver = stream_solver(model.solver, problem.loss)
        intercept = model.intercept if model.fit_intercept else "none"
        if intercept == "search":
            raise ValueError("intercept='search' needs all rows at once; partial_fit cannot use it")
        solver.check(problem, intercept)
        seen, units, t0 = self._measure(solver, problem)
        engine = solver.engine_with(problem, Options(intercept, model._seed() + self.rows), units, t0 + self.rows)
        if solver.output in MEANS:
            engine.select("average")
        before = self._weights_so_far(model, problem)
        self._begin(engine, *before, problem.lam * (t0 + self.rows) if isinstance(solver, Pegasos) else 1.0)
        while engine.epochs < 1.0:
            engine.advance()
        averages = self._averaged(engine, solver.output, before)
        last = engine.model()
        W, b = last if averages is None else averages.mean(solver.output)
        check_weights(W, b)
        self.t0, self.seen, self.last = t0, tuple(seen), last
        self.averages = None if averages is None else averages.plain()
        self.rows += problem.examples.m
        self.steps = float(engine.lanes.solvers[0].state()["steps"][0])
        self.calls += 1
        # The best bias for these rows alone would ignore the rows before: keep the one that was learnt.
        penalty = problem.penalty(problem.squared_norms_of(W), b)
        primal = float(np.sum(penalty + problem.mean_losses(problem.scores(W, b))))
        self.seconds += time.perf_counter() - began
        inf = float("inf")
        self.trace.append_thinned(Checkpoint(float(self.calls), self.seconds, primal, -inf, inf, inf))
        model.trace_ = self.trace
        model.lam_, model.n_iter_ = self.lam, self.calls
        model.certificate_ = Certificate(
            primal=primal,
            dual=-inf,
            gap=inf,
            relative_gap=inf,
            converged=False,
            reason="not certified: the rows of earlier calls to partial_fit are gone",
            epochs=float(self.calls),
            seconds=self.seconds,
        )
        return W, b

    def _measure(self, solver: Solver, problem: LinearProblem) -> tuple[Seen, Units, float]:
        """What is known with this piece, and what it makes of the step size; as published if a user chose that."""
        if not isinstance(solver, Pegasos) or solver.t0 != "auto":
            return Seen(*self.seen), Units(), float(solver.t0) if isinstance(solver, Pegasos) else 0.0
        seen = Seen(*self.seen).and_these(
            problem.examples.squared_norms,
            problem.weight,
            problem.target,
            regression=problem.loss.kind == "regression",
            free=problem.bias == "free",
        )
        units, B2 = seen.units(problem.loss), problem.feature**2 if problem.bias == "feature" else 0.0
        return seen, units, solver.t0_for(problem.loss, seen.mean, seen.largest, B2, problem.lam, units.step)

    def _weights_so_far(self, model: Any, problem: LinearProblem) -> tuple[Array, Array]:
        """The last iterate, of earlier pieces or of a fit."""
        if self.last is not None:
            W, b = self.last
        elif self.rows:
            W, b = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
            if len(W) < problem.outputs:  # two classes scored jointly were kept as their difference
                W, b = np.concatenate([-W / 2, W / 2]), np.concatenate([-b / 2, b / 2])
        else:
            return np.zeros((problem.outputs, problem.examples.n)), np.zeros(problem.outputs)
        if len(W) != problem.outputs:
            raise ValueError("the loss scores the classes otherwise than that of earlier calls; fit anew")
        return W, b

    def _begin(self, engine: SubgradientEngine, W: Array, b: Array, scale: float) -> None:
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


def stream_solver(given: str | Solver | None, loss: Loss) -> Pegasos | Norma | SGD:
    """The solver that makes the steps: the user's, if it can go on from any weights."""
    solver = None if given is None else solvers.resolve(given)
    if not isinstance(solver, Pegasos | Norma | SGD):
        return DEFAULT[loss.kind == "regression"]
    if solver.output == "random":
        raise ValueError(
            "partial_fit cannot tell which of two random iterates is better, since their rows are gone: set output to "
            "'last', 'average' or 'suffix'"
        )
    return solver
