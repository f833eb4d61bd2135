"""Newton's method with a line search for smooth losses, on the n × n (or nK × nK) Hessian.

    F(β) = ½ βᵀRβ + Σ h_i ℓ_i(x̃_iᵀβ),   h_i = c_i/(λM)

The dual point is u_i = −ℓ_i′, which is feasible everywhere and optimal at the optimum.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pegasos import _core
from pegasos.fit.engine import ROUNDING_REACHED
from pegasos.losses import Loss
from pegasos.problems.base import Bounds
from pegasos.problems.linear import LinearProblem, Weights
from pegasos.rows.views import Array
from pegasos.solvers.line_search import backtracked
from pegasos.solvers.linear.engine import LinearEngine
from pegasos.solvers.linear.normal_equations import (
    MAX_FREE_MULTIPLICATIONS,
    NO_DESCENT,
    STALLS,
    Design,
    regularisation,
    solve_normal,
)
from pegasos.util.fields import Numbers, State, as_state, saved


def suits(loss: type[Loss]) -> bool:
    """Whether this method has the Hessian of a loss."""
    return loss.smooth and (loss.kind != "joint" or loss.link == "softmax")


class _Scalar:
    """One part with a scalar loss: β is (w, b)."""

    def __init__(self, problem: LinearProblem, part: int) -> None:
        self.problem, self.y = problem, problem.targets(part)
        self.h = problem.c / (problem.lam * problem.total)
        self.design = Design(problem.examples, problem.bias != "none", problem.threads)
        self.R = regularisation(problem)

    def forward(self, beta: Array) -> Array:
        return self.design.forward(beta)

    def loss(self, score: Array) -> float:
        return float(self.h @ self.problem.scalar.value(score, self.y))

    def derivatives(self, score: Array) -> tuple[Array, Array]:
        """Σ h g x̃ and Σ h ℓ″ x̃x̃ᵀ."""
        slope = self.design.adjoint(self.h * self.problem.scalar.slope(score, self.y))
        return slope, self.design.gram(self.h * self.problem.scalar.curvature(score, self.y))

    def curvature_bound(self) -> Array:
        """What ℓ″ never exceeds, in the place of ℓ″."""
        return self.design.gram(self.h * self.problem.loss.smoothness)

    def duals(self, score: Array) -> Array:
        return self.problem.scalar.slope(score, self.y)[:, None]

    def split(self, beta: Array) -> tuple[Array, Array]:
        n = self.problem.examples.n
        return beta[None, :n], beta[n:] if self.problem.bias != "none" else np.zeros(1)


class _Softmax:
    """All classes at once, with −∇ℓ = e_y − p, p the softmax of the scores: β is the classes' (w, b), in a row."""

    def __init__(self, problem: LinearProblem) -> None:
        self.problem, core = problem, problem.core
        assert isinstance(core, _core.JointLoss)
        self.core = core
        self.h = problem.c / (problem.lam * problem.total)
        self.design = Design(problem.examples, problem.bias != "none", problem.threads)
        self.R = np.tile(regularisation(problem), problem.outputs)

    def forward(self, beta: Array) -> Array:
        return self.problem.scores(*(np.ascontiguousarray(a) for a in self.split(beta)))

    def loss(self, score: Array) -> float:
        return float(self.h @ self.core.value(score, self.problem.target))

    def derivatives(self, score: Array) -> tuple[Array, Array]:
        K, width = self.problem.outputs, self.design.width
        g = self.duals(score)
        P = -g
        P[np.arange(len(P)), self.problem.target] += 1.0
        slope = np.concatenate([self.design.adjoint(self.h * g[:, k]) for k in range(K)])
        H = np.zeros((K * width, K * width))
        for k in range(K):
            for r in range(k, K):
                d = self.h * P[:, k] * ((k == r) - P[:, r])
                # Off the diagonal the weights are negative: the square root in gram needs them positive.
                block = self.design.gram(d) if k == r else -self.design.gram(-d)
                H[k * width : (k + 1) * width, r * width : (r + 1) * width] = block
                H[r * width : (r + 1) * width, k * width : (k + 1) * width] = block
        return slope, H

    def curvature_bound(self) -> Array:
        """diag(p) − ppᵀ ≤ ½: the same block for every class."""
        return np.kron(np.eye(self.problem.outputs), self.design.gram(self.h * self.problem.loss.smoothness))

    def duals(self, score: Array) -> Array:
        return self.core.slopes(score, self.problem.target)

    def split(self, beta: Array) -> tuple[Array, Array]:
        B = beta.reshape(self.problem.outputs, self.design.width)
        n = self.problem.examples.n
        return B[:, :n], B[:, n] if self.problem.bias != "none" else np.zeros(self.problem.outputs)


def newton_direction(H: Array, R: Array, gradient: Array, value: float) -> tuple[Array, float]:
    """d = −(H + diag(R))⁻¹ gradient, and the slope along it; 0 if that is too small to be told from rounding errors.

    H is changed. LinAlgError: numbers that are not finite.
    """
    H.flat[:: len(H) + 1] += R  # the diagonal
    d = solve_normal(H, -gradient)
    descent = float(gradient @ d)
    return d, descent if descent < -1e-24 * value else 0.0


class NewtonEngine(LinearEngine):
    """A Newton iteration on each part in turn."""

    def __init__(self, problem: LinearProblem) -> None:
        self.problem = problem
        joint = problem.joint
        self.parts: Sequence[_Scalar | _Softmax] = (
            [_Softmax(problem)] if joint else [_Scalar(problem, k) for k in range(problem.n_parts)]
        )
        self.beta = [np.zeros(len(p.R)) for p in self.parts]
        self.score = [p.forward(b) for p, b in zip(self.parts, self.beta, strict=True)]
        self.done = np.zeros(problem.n_parts, dtype=bool)
        self.passes, self.turn, self.tol = 0.0, 0, 0.0
        self.moved = np.ones(problem.n_parts, dtype=bool)

    @property
    def epochs(self) -> float:
        """Iterations."""
        return self.passes

    def advance(self) -> None:
        k = self.turn
        if not self.done[k]:
            self.moved[k] = self._step(k)
            self.passes += 1.0 / self.problem.n_parts
        self.turn = (k + 1) % self.problem.n_parts

    def _step(self, k: int) -> bool:
        """A Newton step; where the curvature vanishes (the straight parts of a loss), one with its upper bound."""
        part, beta, score = self.parts[k], self.beta[k], self.score[k]
        slope, H = part.derivatives(score)
        gradient = part.R * beta - slope
        return self._descend(k, gradient, H) or self._descend(k, gradient, part.curvature_bound())

    def _descend(self, k: int, gradient: Array, H: Array) -> bool:
        part, beta, score = self.parts[k], self.beta[k], self.score[k]
        start = 0.5 * float(part.R @ beta**2) + part.loss(score)
        try:
            d, descent = newton_direction(H, part.R, gradient, start)
        except np.linalg.LinAlgError:  # numbers that are not finite
            return False
        if not descent < 0:
            return False
        along = part.forward(d)

        def value(t: Array) -> Array:  # scores move linearly, so a trial costs no pass over the rows
            return np.array([0.5 * float(part.R @ (beta + t * d) ** 2) + part.loss(score + t * along)])

        t, _ = backtracked(value, np.array([start]), np.array([descent]))
        if not t > 0:
            return False
        self.beta[k] = beta + t * d
        self.score[k] = part.forward(self.beta[k])
        return True

    def due(self, tol: float) -> bool:
        self.tol = tol
        return self.turn == 0

    def model(self) -> tuple[Array, Array]:
        pairs = [p.split(b) for p, b in zip(self.parts, self.beta, strict=True)]
        return (
            np.ascontiguousarray(np.concatenate([W for W, _ in pairs])),
            np.ascontiguousarray(np.concatenate([b for _, b in pairs])),
        )

    def duals(self) -> Array | None:
        return np.hstack([p.duals(s) for p, s in zip(self.parts, self.score, strict=True)])

    @property
    def eager(self) -> bool:
        return self.problem.examples.m * len(self.parts[0].R) ** 2 * self.problem.n_parts <= MAX_FREE_MULTIPLICATIONS

    def learn(self, bounds: Bounds[Weights]) -> None:
        self.done = bounds.within(1e-16 if self.eager else self.tol)
        if self.done.all():
            self.stalled = ROUNDING_REACHED
        elif not (self.moved & ~self.done).any():
            self.stalled = NO_DESCENT

    def state(self) -> State:
        named = {f"beta{k}": b.copy() for k, b in enumerate(self.beta)}
        numbers: Numbers = {"passes": self.passes, "turn": self.turn, "tol": self.tol}
        numbers |= {"stuck": STALLS.index(self.stalled), "done": self.done, "moved": self.moved}
        return named | as_state(numbers)

    def restore(self, state: State) -> None:
        parts = (self.problem.n_parts,)
        self.beta = [saved(state, f"beta{k}", b.shape) for k, b in enumerate(self.beta)]
        self.score = [p.forward(b) for p, b in zip(self.parts, self.beta, strict=True)]
        self.passes, self.tol = (
            float(saved(state, "passes", (1,), low=0, high=1e15)[0]),
            float(saved(state, "tol", (1,))[0]),
        )
        self.turn = int(saved(state, "turn", (1,), low=0, high=parts[0] - 1, whole=True)[0])
        self.stalled = STALLS[int(saved(state, "stuck", (1,), low=0, high=len(STALLS) - 1, whole=True)[0])]
        self.done, self.moved = (
            saved(state, name, parts, low=0, high=1, whole=True).astype(bool) for name in ("done", "moved")
        )
