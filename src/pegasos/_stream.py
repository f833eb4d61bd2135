"""``partial_fit``: Pegasos over rows that come in pieces and are then forgotten."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from pegasos import solvers
from pegasos._certificate import Certificate
from pegasos._data import Array, check_weights
from pegasos._problem import Problem
from pegasos._stochastic import SubgradientEngine
from pegasos._trace import Checkpoint, Trace
from pegasos.solvers import Norma, Pegasos, Solver


class Stream:
    """What is carried from piece to piece: the unscaled weights, the bias, and how many rows and steps there were.

    After a fit it begins with that fit's weights, ``lam`` and ``rows``, as if Pegasos had seen the rows once.
    """

    #: State of the C++ solver that does not belong to particular rows.
    CARRIED = ("v", "b", "pi", "norm", "steps")

    def __init__(self, lam: float | None = None, rows: int = 0) -> None:
        self.lam = lam
        self.rows = rows
        self.carried: list[dict[str, Any]] | None = None
        self.t0: float | None = None
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
        t0 = solver._t0(problem) if self.t0 is None else self.t0
        if isinstance(solver, Pegasos):
            solver = replace(solver, t0=t0 + self.rows)
        engine = self._engine(model, solver, problem, intercept)
        while not (engine.epochs >= 1.0):
            engine.advance()
        W, b = engine.model()
        check_weights(W, b)
        self.t0 = t0
        self.rows += problem.examples.m
        self.carried = [{name: s.state()[name] for name in self.CARRIED} for s in engine.lanes.solvers]
        # The bias that is best for this piece alone would forget the others: keep the one that was learnt.
        penalty = problem.penalty(problem.squared_norms_of(W), b)
        primal = float(np.sum(penalty + problem.mean_losses(problem.scores(W, b))))
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

    def _engine(self, model: Any, solver: Solver, problem: Problem, intercept: str) -> SubgradientEngine:
        engine = solver.engine(problem, intercept, model._seed() + self.rows)
        assert isinstance(engine, SubgradientEngine)
        cores = engine.lanes.solvers
        if self.carried is None and self.rows:
            W, b = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
            if len(W) < problem.outputs:  # two classes scored jointly were kept as their difference
                W, b = np.concatenate([-W / 2, W / 2]), np.concatenate([-b / 2, b / 2])
            scale = problem.lam * float(solver.t0) if isinstance(solver, Pegasos) else 1.0
            for core, part in engine.lanes.parts():
                core.restore(core.state() | self._begin(core.state(), scale, W[part], b[part], problem))
        elif self.carried is not None:
            for core, carried in zip(cores, self.carried, strict=True):
                core.restore(core.state() | carried)
        return engine

    def _begin(self, state: dict[str, Any], scale: float, W: Array, b: Array, problem: Problem) -> dict[str, Any]:
        """The C++ solver's state at the weights W and biases b: w = v/scale, columns outermost, lanes padded."""
        lanes, (outputs, n) = len(state["b"]), W.shape
        v = np.zeros_like(state["v"]).reshape(-1, lanes)
        v[:n, :outputs] = scale * W.T
        bias = np.zeros_like(state["b"])
        if problem.bias == "feature":
            v[n, :outputs] = scale * b / problem.feature
        else:
            bias[:outputs] = b
        squares = (v[:, :outputs] ** 2).sum(axis=0)
        norm = np.array([squares.sum()]) if problem.joint else squares
        steps = np.array([self.rows], dtype=state["steps"].dtype)
        return {"v": v.ravel(), "b": bias, "norm": norm, "steps": steps}
