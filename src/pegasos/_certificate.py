"""Certificates: a primal value and a dual lower bound, recomputed in float64 from weights and dual variables.

For every u in the domain of the conjugates (and, if the bias is free, with Σ_i c_i u_i = 0)

    D(u) = (1/M) Σ_i c_i (−ℓ_i*(−u_i)) − (λ/2)‖W(u)‖²  ≤  P*  ≤  P(W, b),

so P − D bounds how far the weights are from the optimum. No running sum of any solver is trusted: a solver only
proposes W, b and u.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pegasos._data import Array
from pegasos._problem import Problem


class _Compact:
    """A field that is a tuple of floats to all who ask, and kept as an array: a tuple takes four times the room.

    Of a thousand classes compared in pairs, it would take more than the model.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = f"_{name}"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else tuple(vars(instance)[self.name].tolist())

    def __set__(self, instance: Any, values: Any) -> None:
        vars(instance)[self.name] = np.asarray(() if values is self else values, dtype=np.float64)


def _per_class() -> Any:
    return field(repr=False, default=_Compact())


@dataclass(frozen=True)
class Certificate:
    """How far from the optimum a fit stopped.

    Attributes
    ----------
    primal : float
        P(w, b) of the returned weights; for one-vs-rest the sum over the classes.
    dual : float
        The best lower bound of the optimum found, of the exact problem for every solver; −inf where none is known.
    gap : float
        primal − dual ≥ P(w, b) − P*.
    relative_gap : float
        gap / primal.
    converged : bool
        Whether every part's gap is at most ``tol`` times its primal value, or that value is zero but for rounding: at
        most 1e-24 of the objective of zero weights.
    reason : str
        Why the fit stopped.
    epochs, seconds : float
        Passes over the rows (or the work of as many) and wall-clock time.
    primal_per_class, dual_per_class : tuple of float
        The same for each independent part.
    goal_reached : bool
        Whether the solver reached a goal of its own that is not the gap; ``reason`` says which.
    restricted_gap : float or None
        For solvers that restrict the weights (:class:`~pegasos.solvers.Nystroem`): by how much at most the returned
        weights are above the best ones that satisfy the restriction. None for all others.

    Examples
    --------
    >>> from pegasos import LinearSVC
    >>> model = LinearSVC().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.certificate_.converged, model.certificate_.dual <= model.certificate_.primal
    (True, True)
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    converged: bool
    reason: str
    epochs: float
    seconds: float
    primal_per_class: tuple[float, ...] = _per_class()
    dual_per_class: tuple[float, ...] = _per_class()
    goal_reached: bool = False
    restricted_gap: float | None = None

    @property
    def state(self) -> str:
        """In a few words, what was reached."""
        if self.converged:
            return "converged"
        return "the solver's own goal was reached, a gap of tol was not" if self.goal_reached else "not converged"

    def __str__(self) -> str:
        restricted = "" if self.restricted_gap is None else f", gap of the restricted problem {self.restricted_gap:.2e}"
        return (
            f"{self.state} ({self.reason}): primal {self.primal:.6g}, dual {self.dual:.6g}, "
            f"relative gap {self.relative_gap:.2e}{restricted}, {self.epochs:.1f} epochs, {self.seconds:.3f} s"
        )


@dataclass(frozen=True)
class Bounds:
    """What one certification found: per part primal and dual, the bias used, the scores, and W if it was not given.

    Of kernel machines also the dual value that is a bound only if the kernel is positive semi-definite (``formal``),
    and the largest error seen in scores that the solver proposed.
    """

    primal: Array
    dual: Array
    b: Array
    Z: Array
    W: Array | None = None
    formal: Array | None = None
    score_error: Array | None = None

    @property
    def gap(self) -> Array:
        """primal − dual; what rounding makes of a zero gap is zero."""
        return self._above(self.dual)

    @property
    def formal_gap(self) -> Array:
        """The same, with the dual value of a kernel that need not be positive semi-definite."""
        return self._above(self.dual if self.formal is None else self.formal)

    def _above(self, dual: Array) -> Array:
        gap = self.primal - dual
        return np.where(gap < 1e-12 * np.abs(self.primal), np.maximum(gap, 0.0), gap)


def certify(problem: Problem, W: Array | None, b: Array, u: Array | None) -> Bounds:
    """Recompute primal and dual values; a free bias is replaced by the best one for the weights. W is W(u) if None."""
    computed, dual = None, np.full(problem.parts, -np.inf)
    if u is None:
        assert W is not None
        squares, Z = problem.squared_norms_of(W), problem.scores(W, b)
        problem.examples.verify(problem.threads)  # as the passes below do by the way
    else:
        u = feasible(problem, u)
        if W is None:
            computed, squares, Z = problem.dual_model(u, b)
            dual_squares = squares
        else:
            squares = problem.squared_norms_of(W)
            Z, dual_squares = problem.scores_and_dual_squares(W, b, u)
        dual = _dual_value(problem, u, dual_squares)
    if problem.bias == "free" and not problem.joint:
        shift = best_biases(problem, Z)
        b, Z = b + shift, Z + shift
    primal = problem.penalty(squares, b) + problem.mean_losses(Z)
    # What left the range of numbers on its way proves nothing, and is worth nothing.
    return Bounds(np.where(np.isnan(primal), np.inf, primal), np.where(np.isnan(dual), -np.inf, dual), b, Z, computed)


def dual_value(problem: Problem, u: Array) -> Array:
    """D of the nearest feasible point to u that is easy to find, for each part."""
    u = feasible(problem, u)
    return _dual_value(problem, u, problem.squared_norms_of(problem.dual_weights(u)))


def _dual_value(problem: Problem, u: Array, penalty: Array) -> Array:
    """D of a feasible u; ``penalty`` is ‖W(u)‖² of each part."""
    if problem.bias == "feature":
        sums = (problem.c @ u)[:, None] * (problem.feature / (problem.lam * problem.total))
        penalty = penalty + problem.squared_norms_of(sums)
    return problem.mean_conjugates(u) - 0.5 * problem.lam * penalty


def best_biases(problem: Problem, Z: Array) -> Array:
    """What to add to the bias of each output so that it is best for the scores Z."""
    shifts = np.zeros(problem.outputs)
    for k in range(problem.outputs):
        lo, hi, _ = problem.core.best_offset(np.ascontiguousarray(Z[:, k]), problem.targets(k), problem.c, 0.0)
        shifts[k] = 0.5 * (lo + hi)
    return shifts


def feasible(problem: Problem, u: Array) -> Array:
    """Clip u into the domain; for a free bias also make Σ_i c_i u_i vanish."""
    if problem.joint:
        u = _on_simplex(problem, u)
        return _transport(problem, u) if problem.bias == "free" else u
    u = problem.entrywise(problem.core.clip, u)
    if problem.bias == "free":
        # The domain holds 0 and everything between: scaling down the heavier sign keeps u inside and balances it.
        up, down = problem.c @ np.maximum(u, 0), problem.c @ np.maximum(-u, 0)
        both = np.minimum(up, down)
        with np.errstate(invalid="ignore", divide="ignore"):
            u = u * np.where(u > 0, np.where(up > 0, both / up, 0.0), np.where(down > 0, both / down, 0.0))
    return u


def _on_simplex(problem: Problem, u: Array) -> Array:
    """u = e_y − α with α ≥ 0 and Σα = 1, by clipping and rescaling α."""
    own = np.arange(problem.examples.m), problem.target
    alpha = -u
    alpha[own] += 1.0
    np.maximum(alpha, 0.0, out=alpha)
    sums = alpha.sum(axis=1, keepdims=True)
    np.divide(alpha, sums, out=alpha, where=sums > 0)
    alpha[sums[:, 0] == 0] = 0.0
    alpha[own] += sums[:, 0] == 0
    alpha *= -1.0
    alpha[own] += 1.0
    return alpha


def _transport(problem: Problem, u: Array) -> Array:
    """Move α between classes so that each class's weighted total equals its share of the rows: Σ_i c_i u_i = 0.

    Classes with too much give the same fraction of every row's α to the classes with too little, in proportion to what
    those lack; rows keep their sums and stay nonnegative.
    """
    own = np.arange(problem.examples.m), problem.target
    alpha = -u
    alpha[own] += 1.0
    have = problem.c @ alpha
    want = np.bincount(problem.target, weights=problem.c, minlength=problem.outputs)
    surplus, lack = np.maximum(have - want, 0), np.maximum(want - have, 0)
    if surplus.sum() > 0 and lack.sum() > 0:
        given = alpha * np.divide(surplus, have, out=np.zeros_like(have), where=have > 0)
        alpha = alpha - given + np.outer(given.sum(axis=1), lack / lack.sum())
    alpha *= -1.0
    alpha[own] += 1.0
    return alpha
