"""A primal-dual interior point method for the losses whose dual is a quadratic program over a box.

In C-form, with h_i = c_i/(λM), β = (w, b), x̃ = (x, 1) and the boxes' signs s:

    min_β ½ βᵀRβ + Σ h_i ℓ_i(x̃_iᵀβ)        R = diag(1, …, 1, ρ), ρ = 0 for a free bias
    dual:  Rβ = X̃ᵀ(s∘a),  0 ≤ a ≤ h,  linear term pᵀa

    hinge            one box:   s = y,        p = 1,                height h
    ε-insensitive    two boxes: s = +1, −1,   p = y − ε, −y − ε,    heights h, h
    quantile τ       two boxes: s = +1, −1,   p = y, −y,            heights τh, (1 − τ)h

With multipliers z ≥ 0 of a ≥ 0 and v ≥ 0 of a ≤ h, Newton's method on the perturbed optimality conditions

    s∘(X̃β) − p − z + v = 0,   Rβ = X̃ᵀ(s∘a),   a∘z = μ,   (h − a)∘v = μ

leaves, after elimination, (R + X̃ᵀΘ⁻¹X̃) Δβ = …, Θ = z/a + v/(h − a): one weighted normal matrix an iteration
(Ferris & Munson 2002), with Mehrotra's predictor and corrector and Gondzio's centrality correctors (1996).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos._certificate import Bounds
from pegasos._data import Array
from pegasos._normal import EAGER, Design, NormalSolver
from pegasos._problem import Problem
from pegasos.losses import EpsilonInsensitive, Hinge, Quantile

Direction = tuple[Array, Array, Array, Array, Array]


class Boxes:
    """One part of a problem as the boxes of the module's docstring; arrays are (boxes × rows)."""

    def __init__(self, problem: Problem, part: int) -> None:
        y, h, loss = problem.targets(part), problem.c / (problem.lam * problem.total), problem.loss
        if isinstance(loss, Hinge):
            self.s, self.p, self.h = y[None], np.ones((1, len(y))), h[None].copy()
        else:
            self.s = np.broadcast_to(np.array([[1.0], [-1.0]]), (2, len(y)))
            if isinstance(loss, EpsilonInsensitive):
                self.p, self.h = np.stack([y - loss.epsilon, -y - loss.epsilon]), np.stack([h, h])
            else:
                assert isinstance(loss, Quantile)
                self.p, self.h = np.stack([y, -y]), np.stack([loss.tau * h, (1 - loss.tau) * h])
        self.unit = np.divide(1.0, h, out=np.zeros_like(h), where=h > 0)
        # Rows of weight zero have an empty box; a hair's breadth keeps the arithmetic alive and changes nothing.
        np.maximum(self.h, 1e-12 * self.h.max(), out=self.h)

    def residual(self, score: Array) -> Array:
        """s∘score − p: positive where a belongs at 0, negative where it belongs at h."""
        return np.asarray(self.s * score - self.p)


class InteriorPoint:
    """The iteration on some rows of :class:`Boxes`, started on the central path through the weights β.

    ``index``: the rows (None: all). ``weight``: what the heights are multiplied by. ``fixed``: what rows left out, held
    at their bounds, add to X̃ᵀ(s∘a).
    """

    #: Centrality correctors a step may try; each costs two passes, a normal matrix many more.
    CORRECTORS = 3

    def __init__(
        self,
        problem: Problem,
        boxes: Boxes,
        beta: Array,
        *,
        index: Array | None = None,
        weight: float = 1.0,
        fixed: Array | None = None,
        mu: float | None = None,
    ) -> None:
        self.design = Design(problem.examples, problem.bias != "none", problem.threads, index)
        take = slice(None) if index is None else index
        self.s, self.p, self.h = boxes.s[:, take], boxes.p[:, take], weight * boxes.h[:, take]
        self.R = regularisation(problem)
        self.fixed = np.zeros_like(self.R) if fixed is None else fixed
        self.beta, self.iterations, self.step = beta.copy(), 0, 1.0
        self.score = self.design.forward(beta)
        r, h = self.s * self.score - self.p, self.h
        if mu is None:  # as large as what is to be balanced: starts any closer to the border stall
            mu = float(np.mean(h * np.maximum(np.abs(r), np.abs(self.p) if not beta.any() else 0.0)))
        mu = max(mu, 1e-300)
        # z − v = r with a z = (h − a) v = μ has one solution, written so that nothing cancels.
        root = np.sqrt((r * h) ** 2 + 4 * mu**2)
        self.a = 2 * mu * h / (2 * mu + root + r * h)
        self.t = 2 * mu * h / (2 * mu + root - r * h)
        self.z, self.v = mu / self.a, mu / self.t

    @property
    def mu(self) -> float:
        """Mean complementarity."""
        return float(np.vdot(self.a, self.z) + np.vdot(self.t, self.v)) / (2 * self.a.size)

    def iterate(self) -> None:
        """One predictor-corrector step."""
        a, t, z, v, s = self.a, self.t, self.z, self.v, self.s
        inverse = 1.0 / (z / a + v / t)
        M = self.design.gram(inverse.sum(axis=0))
        M[np.diag_indices_from(M)] += self.R
        solver = NormalSolver(M)
        r_beta = self.fixed + self.design.adjoint((s * a).sum(axis=0)) - self.R * self.beta
        r_dual = self.p + z - v - s * self.score

        def direction(cl: Array, cu: Array) -> Direction:
            r = r_dual + cl / a - cu / t
            d_beta = solver.solve(r_beta + self.design.adjoint((s * inverse * r).sum(axis=0)))
            d_score = self.design.forward(d_beta)
            da = inverse * (r - s * d_score)
            return d_beta, d_score, da, (cl - z * da) / a, (cu + v * da) / t

        mu = self.mu
        _, _, da, dz, dv = direction(-a * z, -t * v)
        far = self._longest(da, dz, dv)
        affine = float(np.vdot(a + far * da, z + far * dz) + np.vdot(t - far * da, v + far * dv)) / (2 * a.size)
        target = mu * max(affine / mu, 1e-5) ** 3
        cl, cu = target - a * z - da * dz, target - t * v + da * dv
        best = direction(cl, cu)
        far = self._longest(*best[2:])
        for _ in range(self.CORRECTORS):  # pull products that would end far from the target towards it
            _, _, da, dz, dv = best
            reach = min(1.0, 1.08 * far + 0.1)
            low, high = (a + reach * da) * (z + reach * dz), (t - reach * da) * (v + reach * dv)
            cl = cl + np.maximum(np.clip(low, 0.1 * target, 10 * target) - low, -10 * target)
            cu = cu + np.maximum(np.clip(high, 0.1 * target, 10 * target) - high, -10 * target)
            other = direction(cl, cu)
            farther = self._longest(*other[2:])
            if farther < far + 0.01:
                break
            best, far = other, farther
        d_beta, d_score, da, dz, dv = best
        step = min(1.0, 0.995 * far)
        self.beta += step * d_beta
        self.score += step * d_score
        self.a, self.t, self.z, self.v = a + step * da, t - step * da, z + step * dz, v + step * dv
        self.iterations += 1
        self.step = step

    def _longest(self, da: Array, dz: Array, dv: Array) -> float:
        """The longest step ≤ 1 that keeps a, h − a, z and v nonnegative."""
        pairs = ((self.a, da), (self.t, -da), (self.z, dz), (self.v, dv))
        most = max(float(np.max(-dx / x)) for x, dx in pairs)
        return 1.0 if most <= 1 else 1.0 / most

    def state(self) -> dict[str, Any]:
        """The arrays an iteration changes."""
        return {name: np.array(getattr(self, name)) for name in ("beta", "score", "a", "t", "z", "v")}


def regularisation(problem: Problem) -> Array:
    """The diagonal of R."""
    R = np.ones(problem.examples.n + int(problem.bias != "none"))
    if problem.bias != "none":
        R[-1] = 0.0 if problem.bias == "free" else 1.0 / problem.feature**2
    return R


class InteriorPointEngine:
    """Runs :class:`InteriorPoint` on each part of a problem in turn.

    Long problems are rehearsed on a sample of their rows first: its weights are near those of the whole, and iterations
    that only look for the neighbourhood are better spent on few rows.
    """

    #: Rows of a rehearsal, and how many times as many the whole must have for one to pay.
    SAMPLE, TIMES = 20_000, 4

    def __init__(self, problem: Problem, seed: int = 0) -> None:
        self.problem = problem
        self.stuck: str | None = None
        self.passes, self.turn, self.tol = 0.0, 0, 0.0
        self.done = np.zeros(problem.parts, dtype=bool)
        self.boxes = [Boxes(problem, part) for part in range(problem.parts)]
        m, sample = problem.examples.m, max(self.SAMPLE, 100 * problem.examples.n)
        index = None
        if m >= self.TIMES * sample:
            index = np.sort(np.random.default_rng(seed).choice(m, sample, replace=False))
        zero = np.zeros(len(regularisation(problem)))
        self.paths = [
            InteriorPoint(problem, boxes, zero, index=index, weight=1.0 if index is None else m / len(index))
            for boxes in self.boxes
        ]
        self.rehearsing = [index is not None] * problem.parts

    @property
    def epochs(self) -> float:
        """Iterations on all rows; rehearsals count as the share of rows they use."""
        return self.passes

    def advance(self) -> None:
        part = self.turn
        if not self.done[part]:
            path = self.paths[part]
            try:
                with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                    path.iterate()
            except (np.linalg.LinAlgError, ValueError):
                self.stuck = "stalled: the normal equations lost all precision"
            else:
                if not np.isfinite(path.beta).all():
                    self.stuck = "stalled: the normal equations lost all precision"
            self.passes += path.design.rows / self.problem.examples.m / self.problem.parts
            if self.rehearsing[part]:
                self._maybe_perform(part)
        self.turn = (part + 1) % self.problem.parts

    def _maybe_perform(self, part: int) -> None:
        """Pass from the sample to all rows once the sample's gap is below a hundredth of its loss."""
        path = self.paths[part]
        loss = float((path.h * np.maximum(path.p - path.s * path.score, 0.0)).sum())
        if 2 * path.a.size * path.mu > 0.01 * loss and path.iterations < 30:
            return
        boxes = self.boxes[part]
        score = Design(self.problem.examples, self.problem.bias != "none", self.problem.threads).forward(path.beta)
        # Weights this good deserve a start closer to the border than weights of zero.
        mu = 0.3 * float(np.mean(boxes.h * np.abs(boxes.residual(score))))
        self.paths[part] = InteriorPoint(self.problem, boxes, path.beta, mu=mu)
        self.rehearsing[part] = False

    def due(self, tol: float) -> bool:
        self.tol = tol
        return self.turn == 0 and not any(self.rehearsing)

    def model(self) -> tuple[Array, Array]:
        n = self.problem.examples.n
        W = np.stack([path.beta[:n] for path in self.paths])
        b = np.array([path.beta[n] if self.problem.bias != "none" else 0.0 for path in self.paths])
        return W, b

    def duals(self) -> Array | None:
        if any(self.rehearsing):
            return None
        columns = [(path.s * path.a).sum(axis=0) * boxes.unit for path, boxes in zip(self.paths, self.boxes, strict=True)]
        return np.column_stack(columns)

    def lower_bound(self) -> Array | None:
        return None

    @property
    def eager(self) -> bool:
        return self.problem.examples.m * len(self.paths[0].R) ** 2 * self.problem.parts <= EAGER

    def learn(self, bounds: Bounds) -> None:
        self.done = bounds.gap <= (1e-12 if self.eager else self.tol) * bounds.primal
        if self.stuck is None and all(path.step < 1e-8 for path in self.paths):
            self.stuck = "stalled: the steps have become too short"

    def state(self) -> dict[str, Any]:
        named = {f"{k}.{name}": a for k, path in enumerate(self.paths) for name, a in path.state().items()}
        scalars = {"passes": self.passes, "turn": self.turn, "rehearsing": self.rehearsing, "done": self.done}
        return named | {name: np.atleast_1d(np.asarray(v, dtype=float)) for name, v in scalars.items()}

    def restore(self, state: dict[str, Any]) -> None:
        self.passes, self.turn = float(state["passes"][0]), int(state["turn"][0])
        self.done = state["done"].astype(bool)
        zero = np.zeros(len(regularisation(self.problem)))
        for k, rehearsing in enumerate(state["rehearsing"].astype(bool)):
            if self.rehearsing[k] and not rehearsing:
                self.paths[k] = InteriorPoint(self.problem, self.boxes[k], zero)
            self.rehearsing[k] = bool(rehearsing)
            for name in self.paths[k].state():
                setattr(self.paths[k], name, state[f"{k}.{name}"].copy())
