"""The engines that visit one row (or mini-batch) at a time: stochastic sub-gradients, and dual coordinate ascent."""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos import _core
from pegasos._certificate import Bounds, best_biases, certify
from pegasos._data import Array
from pegasos._engine import saved
from pegasos._lanes import LaneGroups
from pegasos._problem import Problem


def _common(problem: Problem, first: int, count: int) -> tuple[Any, ...]:
    """The arguments all C++ solvers begin with."""
    return (
        problem.examples.rows,
        problem.core,
        problem.target,
        problem.weight,
        problem.total,
        first,
        count,
    )


class _Stepwise:
    """What both engines share."""

    lanes: LaneGroups
    ended: bool
    stuck: str | None = None
    eager = False

    @property
    def epochs(self) -> float:
        return self.lanes.epochs

    def advance(self) -> None:
        self.ended = self.lanes.advance()

    def model(self) -> tuple[Array, Array]:
        return self.lanes.weights()

    def duals(self) -> Array | None:
        return self.lanes.duals()

    def lower_bound(self) -> Array | None:
        return None

    def state(self) -> dict[str, Any]:
        return self.lanes.state()

    def restore(self, state: dict[str, Any]) -> None:
        self.lanes.restore(state)
        self.ended = self.lanes.ended


class SubgradientEngine(_Stepwise):
    """Pegasos, NORMA or SGD; see ``cpp/pegasos/pegasos.hpp``."""

    def __init__(self, problem: Problem, *, output: str, bias: str, seed: int, **options: Any) -> None:
        self.problem, self.output = problem, output
        self.ended = False
        self.next_check = 1.0
        feature = problem.feature if problem.bias == "feature" else 0.0

        def make(first: int, count: int) -> Any:
            return _core.Pegasos(
                *_common(problem, first, count),
                lam=problem.lam,
                average=output in ("average", "suffix"),
                random=output == "random",
                bias=bias,
                feature=feature,
                seed=seed,
                **options,
            )

        self.lanes = LaneGroups(problem, make)
        self._select(output if output in ("average", "suffix") else "last")

    def _select(self, which: str) -> None:
        for solver in self.lanes.solvers:
            solver.select(which)

    def model(self) -> tuple[Array, Array]:
        if self.output != "random":
            return self.lanes.weights()
        # Lemma 3 of the 2011 paper: of two random iterates one is good with probability 3/4; keep the better.
        candidates = []
        for which in ("first_random", "second_random"):
            self._select(which)
            W, b = self.lanes.weights()
            candidates.append((float(certify(self.problem, W, b, None).primal.sum()), W, b))
        _, W, b = min(candidates, key=lambda candidate: candidate[0])
        return W, b

    def due(self, tol: float) -> bool:
        return self.ended and self.epochs >= self.next_check

    def state(self) -> dict[str, Any]:
        return super().state() | {"check": np.array([self.next_check])}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.next_check = float(saved(state, "check", (1,))[0])

    def learn(self, bounds: Bounds) -> None:
        # After epochs 1, 2, 3, 4, 6, 8, 12, 16, …: the certificates cost about as many passes as they wait for.
        done = self.epochs
        self.next_check = done + max(1.0, 2.0 ** np.floor(np.log2(max(done, 1.0))) / 2)


class DualAscentEngine(_Stepwise):
    """SDCA; see ``cpp/pegasos/sdca.hpp``."""

    def __init__(
        self, problem: Problem, *, shrinking: bool, sampling: str, blocks: int, seed: int, feature: float | None = None
    ) -> None:
        self.problem = problem
        self.ended = False
        self.next_check, self.best_online = 8.0, np.full(problem.parts, np.inf)
        self.refreshed, self.tol = 0.0, 0.0
        self.finished = np.zeros(problem.parts, dtype=bool)
        if problem.bias == "feature":
            B = problem.feature
        elif problem.bias == "free":
            # A constant feature of about the rows' size makes the method of multipliers fast.
            B = 0.5 * np.sqrt(max(problem.mean_squared_norm, 1e-12)) if feature is None else feature
        else:
            B = 0.0

        def make(first: int, count: int) -> Any:
            return _core.Sdca(
                *_common(problem, first, count),
                squared_norms=problem.examples.squared_norms,
                lam=problem.lam,
                feature=float(B),
                multiplier=problem.bias == "free",
                shrinking=shrinking,
                blocks=blocks,
                threads=problem.threads,
                sampling=sampling,
                seed=seed,
            )

        self.lanes = LaneGroups(problem, make)

    def start(self, u: Array, b: Array, W: Array | None = None) -> None:
        """Begin at the dual point u, W = W(u) (computed unless given), and, if the bias is free, at the offset b."""
        W = self.problem.dual_weights(u) if W is None else W
        offset = b if self.problem.bias == "free" else np.zeros_like(b)
        for solver, part in self.lanes.parts():
            solver.start(
                np.ascontiguousarray(u[:, part]), np.ascontiguousarray(W[part]), np.ascontiguousarray(offset[part])
            )

    def online(self) -> tuple[Array, Array]:
        """Gap and loss of each part as the rows saw them when last visited."""
        pairs = [s.online() for s in self.lanes.solvers]
        return np.concatenate([gap for gap, _ in pairs]), np.concatenate([loss for _, loss in pairs])

    def due(self, tol: float) -> bool:
        if not self.ended:
            return False
        self.tol = tol
        if self.epochs >= self.next_check:
            return True
        # The gaps seen while visiting cost nothing. Each was true before its row's step, so that together they are two
        # or three times what is left at the end of the epoch; look closely when that promises success. Of many parts
        # some are late, and their certificate costs as much as some epochs.
        hope = tol * (2.5 if self.problem.parts == 1 else 1.5)
        gap, loss = self.online()
        # −ℓ*(−u) ≤ ℓ(0) and D(u) ≥ D(0) ≥ 0 bound the penalty by P(0): most often that is enough to say no.
        promising = gap <= np.minimum(hope * (loss + self.problem.at_zero()), 0.5 * self.best_online)
        if not np.all(promising | self.finished):
            return False
        primal = loss + np.concatenate([s.penalties() for s in self.lanes.solvers])
        return bool(np.all((gap <= hope * primal) | self.finished))

    def reactivate(self, Z: Array) -> None:
        """Make those shrunk rows active again that are not settled at the scores Z."""
        for solver, part in self.lanes.parts():
            solver.reactivate(np.ascontiguousarray(Z[:, part]))

    def state(self) -> dict[str, Any]:
        check = np.array([self.next_check, self.refreshed, self.tol])
        return super().state() | {
            "check": check,
            "best_online": self.best_online.copy(),
            "finished": self.finished * 1.0,
        }

    def restore(self, state: dict[str, Any]) -> None:
        parts = (self.problem.parts,)
        self.next_check, self.refreshed, self.tol = map(float, saved(state, "check", (3,)))
        self.best_online = saved(state, "best_online", parts)
        self.finished = saved(state, "finished", parts, low=0, high=1, whole=True).astype(bool)
        self.lanes.rest(self.finished)
        super().restore(state)

    def learn(self, bounds: Bounds) -> None:
        self.best_online = self.online()[0]
        self.next_check = 1.5 * self.epochs + 1.0
        self.finished = bounds.gap <= self.tol * bounds.primal
        self.lanes.rest(self.finished)
        b = np.concatenate([s.biases() for s in self.lanes.solvers])
        self.reactivate(bounds.Z - bounds.b + b)
        if self.epochs >= self.refreshed + 50:  # w = w(u) drifts apart by rounding; make it exact again
            self.refreshed = self.epochs
            offsets = np.concatenate([s.offsets() for s in self.lanes.solvers])
            self.start(self.lanes.duals(), offsets)


def warm_bias(problem: Problem, W: Array) -> Array:
    """The best free bias for the weights W (zero for the other kinds of bias)."""
    zero = np.zeros(problem.outputs)
    if problem.bias != "free" or problem.joint:
        return zero
    return best_biases(problem, problem.scores(W, zero))
