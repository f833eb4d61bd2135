"""L-BFGS for any smooth objective with the regulariser (λ/2)‖W‖².

    P(W) = (λ/2)‖W‖² + mean loss(W),   ∇P = λW + G

A step goes along −H∇P, H made of the last few changes of weights and gradients (Nocedal 1980), and is halved until the
objective falls enough (Armijo) — the first one is nearly always good. The slopes of all rows at W are a dual point
whose gap is ‖∇P‖²/(2λ) (``problems/chain.py``), so that an iteration costs one pass, and at most one more for its
certificate.
"""

from __future__ import annotations

import numpy as np

from pegasos.fit.engine import ROUNDING_REACHED, Engine
from pegasos.problems.base import M
from pegasos.rows.views import Array
from pegasos.util.fields import MAX_FINITE, State, saved

#: Share of the expected decrease that a step must bring, and how often it is halved: then only rounding is left.
ARMIJO, MAX_HALVINGS = 1e-4, 30

#: Relative gap below which rounding may be what hinders steps; and why a fit ends that they fail above it.
ROUNDING_GAP, NO_STEP = 1e-6, "stalled: no step lowers the objective"

#: A step's change of the gradient must be this share of what the regulariser alone explains, or it is rounding.
CURVATURE = 0.1


class LbfgsEngine(Engine[M]):
    """An iteration a call: a direction, and as many passes as the line search takes, mostly one.

    A subclass says what is minimised. ``W``: the weights, an array of any shape; ``largest``: the largest entry of a
    row, a bound of what a weight's change of 1 does to a score.
    """

    def __init__(self, W: Array, *, lam: float, memory: int) -> None:
        self.W, self.lam, self.memory = W, lam, memory
        self.pairs: list[tuple[Array, Array]] = []
        self.passes = 0
        self.current: tuple[float, Array] | None = None

    @property
    def largest(self) -> float:
        """The largest entry of a row."""
        raise NotImplementedError

    def at_zero(self) -> float:
        """P(0)."""
        raise NotImplementedError

    def objective(self, W: Array) -> tuple[float, Array]:
        """P and its gradient: a pass over the rows."""
        raise NotImplementedError

    def saved_weights(self, state: State, name: str) -> Array:
        """Weights of a saved state, checked."""
        return saved(state, name, self.W.shape, low=-MAX_FINITE, high=MAX_FINITE)

    @property
    def epochs(self) -> float:
        """Passes over the rows."""
        return float(self.passes)

    def _evaluate(self, W: Array) -> tuple[float, Array]:
        found = self.objective(W)
        self.passes += 1
        return found

    def advance(self) -> None:
        if self.current is None:
            self.current = self._evaluate(self.W)
            if not self.current[0] <= self.at_zero():  # a start that is worse than none
                self.W = np.zeros_like(self.W)
                self.current = self._evaluate(self.W)
            return
        value, gradient = self.current
        direction = self._direction(gradient)
        slope = float(np.vdot(direction, gradient))
        if slope >= 0:  # rounding has spoilt the pairs
            self.pairs.clear()
            direction, slope = -gradient, -float(np.vdot(gradient, gradient))
        step = 1.0 if self.pairs else self._first_step(gradient)
        for _ in range(MAX_HALVINGS):
            W = self.W + step * direction
            found = self._evaluate(W)
            if found[0] <= value + ARMIJO * step * slope:
                break
            step *= 0.5
        else:
            self._without_step()
            return
        self._keep(W - self.W, found[1] - gradient)
        self.W, self.current = W, found

    def _first_step(self, gradient: Array) -> float:
        """Without pairs the direction is as long as the gradient: a step that moves each use's score by about 1."""
        length = float(np.abs(gradient).max()) * max(1.0, self.largest)
        return min(1.0 / self.lam, 1.0 / max(length, 1e-300))

    def _without_step(self) -> None:
        """No step along the direction has lowered the objective: try the gradient itself, then give up."""
        assert self.current is not None
        if self.pairs:
            self.pairs.clear()
            return
        value, gradient = self.current
        near = 0.5 / self.lam * float(np.vdot(gradient, gradient)) <= ROUNDING_GAP * value
        self.stalled = ROUNDING_REACHED if near else NO_STEP

    def _keep(self, s: Array, y: Array) -> None:
        if float(np.vdot(s, y)) > CURVATURE * self.lam * float(np.vdot(s, s)):
            self.pairs = [*self.pairs, (s, y)][-self.memory :]

    def _direction(self, gradient: Array) -> Array:
        """−H ∇P, by the two loops over the pairs."""
        q, alphas = -gradient, []
        for s, y in reversed(self.pairs):
            alpha = float(np.vdot(s, q)) / float(np.vdot(s, y))
            alphas.append(alpha)
            q -= alpha * y
        if self.pairs:
            s, y = self.pairs[-1]
            q *= float(np.vdot(s, y)) / float(np.vdot(y, y))
        for (s, y), alpha in zip(self.pairs, reversed(alphas), strict=True):
            q += (alpha - float(np.vdot(y, q)) / float(np.vdot(s, y))) * s
        return q

    def due(self, tol: float) -> bool:
        """After every pass that ended an iteration: its certificate is at hand."""
        if self.current is None:
            return False
        value, gradient = self.current
        gap = 0.5 / self.lam * float(np.vdot(gradient, gradient))
        return gap <= tol * value or self.stalled is not None or self.passes % 10 == 1

    def state(self) -> State:
        arrays: State = {"W": self.W, "passes": np.array([float(self.passes)])}
        if self.current is not None:
            arrays |= {"value": np.array([self.current[0]]), "gradient": self.current[1]}
        for k, (s, y) in enumerate(self.pairs):
            arrays |= {f"s{k}": s, f"y{k}": y}
        return arrays

    def restore(self, state: State) -> None:
        def weights(name: str) -> Array:
            return self.saved_weights(state, name)

        self.W = weights("W")
        self.passes = int(saved(state, "passes", (1,), low=0, high=1e15, whole=True)[0])
        self.current = None
        if "value" in state:
            self.current = float(saved(state, "value", (1,), low=-MAX_FINITE, high=MAX_FINITE)[0]), weights("gradient")
        count = sum(f"s{k}" in state for k in range(self.memory))
        self.pairs = [(weights(f"s{k}"), weights(f"y{k}")) for k in range(count)]
        if any(float(np.vdot(s, y)) <= 0 for s, y in self.pairs):
            raise ValueError("state: a pair of changes without curvature")
