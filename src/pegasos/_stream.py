"""``partial_fit``: Pegasos over rows that come in pieces and are then forgotten."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from pegasos import solvers
from pegasos._certificate import Certificate
from pegasos._data import Array
from pegasos._problem import Problem
from pegasos._stochastic import SubgradientEngine
from pegasos._trace import Checkpoint, Trace
from pegasos.solvers import Norma, Pegasos, Solver


class Stream:
    """What is carried from piece to piece: the unscaled weights, the bias, and how many rows and steps there were."""

    #: State of the C++ solver that does not belong to particular rows.
    CARRIED = ("v", "b", "pi", "steps")

    def __init__(self) -> None:
        self.lam: float | None = None
        self.carried: list[dict[str, Any]] | None = None
        self.rows = 0
        self.t0 = 0.0
        self.seconds = 0.0
        self.trace = Trace()

    def step(self, model: Any, problem: Problem) -> tuple[Array, Array]:
        """One epoch over the problem's rows; sets the model's certificate and trace and returns weights and biases."""
        began = time.perf_counter()
        if self.lam is None:
            self.lam = problem.lam
        problem = replace(problem, lam=self.lam)
        solver = solvers.resolve(model.solver)
        if not isinstance(solver, Pegasos | Norma | solvers.SGD):
            solver = Pegasos()
        if solver.output != "last":
            raise ValueError(f"partial_fit keeps the last iterate only, not output={solver.output!r}")
        intercept = model.intercept if model.fit_intercept else "none"
        if intercept == "search":
            raise ValueError("intercept='search' needs all rows at once; partial_fit cannot use it")
        solver.check(problem, intercept)
        if isinstance(solver, Pegasos):
            if self.carried is None:
                self.t0 = solver._t0(problem)
            solver = replace(solver, t0=self.t0 + self.rows)
        engine = self._engine(solver, problem, intercept, model._seed() + self.rows)
        while not (engine.epochs >= 1.0):
            engine.advance()
        self.rows += problem.examples.m
        self.carried = [{name: s.state()[name] for name in self.CARRIED} for s in engine.lanes.solvers]
        W, b = engine.model()
        # The bias that is best for this piece alone would forget the others: keep the one that was learnt.
        primal = float(np.sum(problem.penalty(W, b) + problem.mean_losses(problem.scores(W, b))))
        self.seconds += time.perf_counter() - began
        inf = float("inf")
        self.trace.append(Checkpoint(float(len(self.trace) + 1), self.seconds, primal, -inf, inf, inf))
        model.trace_ = self.trace
        model.n_iter_ = len(self.trace)
        model.certificate_ = Certificate(
            primal=primal,
            dual=-inf,
            gap=inf,
            relative_gap=inf,
            converged=False,
            reason="not certified: the rows of earlier calls to partial_fit are gone",
            epochs=float(len(self.trace)),
            seconds=self.seconds,
        )
        return W, b

    def _engine(self, solver: Solver, problem: Problem, intercept: str, seed: int) -> SubgradientEngine:
        engine = solver.engine(problem, intercept, seed)
        assert isinstance(engine, SubgradientEngine)
        if self.carried is not None:
            for core, carried in zip(engine.lanes.solvers, self.carried, strict=True):
                core.restore(core.state() | carried)
        return engine


