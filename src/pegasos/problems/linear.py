"""The optimisation problem, frozen: rows, targets, weights, loss, λ and how the bias is treated.

    P(W, b) = (λ/2)‖W‖² + (1/M) Σ_i c_i ℓ_i(W x_i + b),   M = Σ_i c_i

It has ``outputs`` weight vectors: one (binary, regression), one for each class (one-vs-rest: as many independent
problems, ``parts``), or one for each class tied together by a joint loss (a single part).

Dual variables u (rows × outputs) lie in the unit domain of the loss, and W(u) = (1/(λM)) Σ_i c_i u_i x_iᵀ. For every u
in the domain of the conjugates (and, if the bias is free, with Σ_i c_i u_i = 0)

    D(u) = (1/M) Σ_i c_i (−ℓ_i*(−u_i)) − (λ/2)‖W(u)‖²  ≤  P*  ≤  P(W, b),

so P − D bounds how far the weights are from the optimum. No running sum of any solver is used: a solver only
proposes W, b and u.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from pegasos import _core
from pegasos.losses import Loss, RowLoss
from pegasos.problems.base import Bounds, Point
from pegasos.problems.feasible import balanced, best_bias, class_sums, on_simplex, sign_sums, transported
from pegasos.problems.sums import Sums, Values, certify_by_sums, here
from pegasos.rows.views import Array, Examples
from pegasos.util.arrays import first_true
from pegasos.util.digests import digest
from pegasos.util.fields import MAX_FINITE, saved

#: "none": b = 0.  "feature": a constant feature, so b is regularised.  "free": b is not regularised.
Bias = Literal["none", "feature", "free"]

#: A function of the loss: of scores or dual variables, and targets.
_OfRows = Callable[[Array, Array], Array]


#: By how much a lower bound may exceed the objective for rounding alone, relative to both.
CONTRADICTION = 1e-9

#: A bias at which a loss that only tends to zero counts as zero.
VANISHING_LOSS_BIAS = 64.0


class Weights(NamedTuple):
    """The weights (outputs × columns; None: those of the dual variables) and biases of linear machines."""

    W: Array | None
    b: Array


@dataclass(frozen=True)
class LinearProblem:
    """See the module's docstring. ``target``: float64 values for one output, int32 class indices for several.

    ``of``: M of all rows, where these are some of them: then P and D are what they add to those of all rows.
    """

    examples: Examples
    loss: Loss
    target: Array
    outputs: int
    lam: float
    weight: Array | None = None
    bias: Bias = "none"
    feature: float = 1.0
    threads: int = 1
    of: float | None = None

    @cached_property
    def core(self) -> _core.Loss | _core.JointLoss:
        """The C++ loss."""
        return self.loss.core(self.outputs)

    @cached_property
    def scalar(self) -> _core.Loss:
        """The C++ loss of a problem that is not joint."""
        return self.loss.scalar()

    @cached_property
    def by_rows(self) -> RowLoss:
        """The loss of a problem that is not joint as functions of arrays, whoever wrote them."""
        return self.loss.by_rows()

    @property
    def joint(self) -> bool:
        """Whether the outputs are tied together by the loss."""
        return self.loss.kind == "joint"

    @property
    def n_parts(self) -> int:
        """The number of independent problems, each with a certificate of its own."""
        return 1 if self.joint else self.outputs

    @property
    def constant(self) -> bool:
        """Whether the targets of some part are all equal, so that a free bias fits them without any weights."""
        if self.bias != "free" or self.joint:
            return False
        target = self.target if self.weight is None else self.target[self.weight > 0]
        if target.dtype == np.float64:
            return bool(target.min() == target.max())
        counts = np.bincount(target, minlength=self.outputs)
        return bool(np.any((counts == 0) | (counts == len(target))))

    @cached_property
    def c(self) -> Array:
        """The rows' weights."""
        return np.ones(self.examples.m) if self.weight is None else self.weight

    @cached_property
    def total(self) -> float:
        """M, the sum of the weights of all rows."""
        own = self.examples.m if self.weight is None else self.weight.sum()
        return float(own if self.of is None else self.of)

    @cached_property
    def mean_squared_norm(self) -> float:
        """R², the weighted mean of ‖x_i‖²."""
        return float(self.c @ self.examples.squared_norms) / self.total

    @property
    def hardness(self) -> float:
        """κ = λM/R²: small means weak regularisation, where first-order methods crawl."""
        return self.lam * self.total / max(self.mean_squared_norm, 1e-300)

    def targets(self, part: int) -> Array:
        """The ±1 or real targets of one part of a problem that is not joint."""
        if self.target.dtype == np.float64:
            return self.target
        return np.where(self.target == part, 1.0, -1.0)

    @cached_property
    def signs(self) -> Array:
        """The targets of all parts of a problem that is not joint: (rows × parts)."""
        return signs_of(self.target, self.outputs)

    def entrywise(self, function: _OfRows, A: Array) -> Array:
        """A function of the loss, of numbers and targets, at (rows × parts) numbers."""
        return function(A.ravel(), self.signs.ravel()).reshape(A.shape)

    def scores(self, W: Array, b: Array) -> Array:
        """W x_i + b for every row: (rows × outputs)."""
        return self.examples.rows.scores(W, b, self.threads)

    def dual_weights(self, u: Array) -> Array:
        """W(u): (outputs × columns)."""
        return self.examples.rows.adjoint(self._shares(u), self.threads)

    def scores_and_dual_squares(self, W: Array, b: Array, u: Array) -> tuple[Array, Array]:
        """The scores of (W, b) and ‖W(u)‖² of each part, in one pass over the rows."""
        Z, squares = self.examples.rows.scores_and_squares(W, b, self._shares(u), self.threads)
        return Z, self._of_parts(squares)

    def dual_model(self, u: Array, b: Array) -> tuple[Array, Array, Array]:
        """W(u), ‖W(u)‖² of each part, and the scores of (W(u), b)."""
        W, squares, Z = self.examples.rows.dual_model(self._shares(u), b, self.threads)
        return W, self._of_parts(squares), Z

    def _shares(self, u: Array) -> Array:
        """What each row is multiplied by in W(u)."""
        unit = self.lam * self.total
        return np.ascontiguousarray(u / unit if self.weight is None else u * (self.c / unit)[:, None])

    def losses_of(self, rows: Array, W: Array, b: Array) -> Array:
        """c_i ℓ_i at W x_i + b for each of some rows, summed over the parts."""
        Z, target = self.examples.rows.scores(W, b, self.threads, rows), self.target[rows]
        if self.joint:
            losses = self.core.value(Z, target)
        else:
            losses = self.core.value(Z.ravel(), signs_of(target, self.outputs).ravel()).reshape(Z.shape).sum(axis=1)
        return np.asarray(losses if self.weight is None else self.weight[rows] * losses)

    def preference(self, model: Weights) -> float:
        """The objective by which the better of two models is chosen."""
        return float(self.certify(Point(model)).primal.sum())

    def mean_losses(self, Z: Array) -> Array:
        """(1/M) Σ c_i ℓ_i at the scores Z, for each part."""
        return self._means(self._of_rows.value, Z)

    def mean_conjugates(self, u: Array) -> Array:
        """(1/M) Σ c_i (−ℓ_i*(−u_i)), for each part."""
        return self._means(self._of_rows.conjugate, u)

    @property
    def _of_rows(self) -> RowLoss | _core.JointLoss | _core.Loss:
        return self.core if self.joint else self.by_rows

    def _means(self, function: _OfRows, A: Array) -> Array:
        if self.joint:
            return np.array([self.c @ function(A, self.target) / self.total])
        return np.asarray(self.c @ self.entrywise(function, A)) / self.total

    def squared_norms_of(self, W: Array) -> Array:
        """‖W‖² of each part."""
        return self._of_parts(np.einsum("kj,kj->k", W, W))

    def _of_parts(self, values: Array) -> Array:
        """Of the values of all outputs, what belongs to each part."""
        return np.array([values.sum()]) if self.joint else values

    def penalty(self, squares: Array, b: Array) -> Array:
        """(λ/2)‖W‖² of each part, given ‖W‖², with the bias where it is a feature's weight."""
        if self.bias == "feature":
            squares = squares + self.squared_norms_of(b[:, None] / self.feature)
        return 0.5 * self.lam * squares

    def at_zero(self) -> Array:
        """P(0, 0) for each part: the scale against which tiny objectives are judged."""
        return self._at_zero

    @cached_property
    def _at_zero(self) -> Array:
        return self.mean_losses(np.zeros((self.examples.m, self.outputs)))

    # --- what the loop asks ------------------------------------------------------------------------------------------

    def first_bounds(self) -> Array:
        """No loss is negative: u = 0 bounds every problem from below."""
        if self.loss.own:
            self._examine(np.zeros((self.examples.m, self.outputs)), None)
        return np.zeros(self.n_parts)

    def trivial(self) -> tuple[Weights, Array] | None:
        """Weights of zero and their best biases, where the targets of some part are all equal."""
        if not self.constant:
            return None
        W = np.zeros((self.outputs, self.examples.n))
        found = self.certify(Point(Weights(W, np.zeros(self.outputs))))
        far = np.copysign(VANISHING_LOSS_BIAS, found.model.b)
        value = self.mean_losses(np.tile(far, (self.examples.m, 1)))
        lower = value < found.primal
        return Weights(W, np.where(lower, far, found.model.b)), np.where(lower, value, found.primal)

    def certify(self, point: Point[Weights]) -> Bounds[Weights]:
        """Recompute primal and dual values; a free bias is replaced by the best one for the weights."""
        return certify_by_sums(self, here([(self, point)]))

    def clipped(self, point: Point[Weights]) -> Point[Weights]:
        """Dual variables in the domain of the loss, row by row."""
        if point.duals is None:
            return point
        if self.joint:
            return point._replace(duals=on_simplex(point.duals, self.target))
        return point._replace(duals=self.entrywise(self.by_rows.clip, point.duals))

    def balance(self, point: Point[Weights]) -> Sums:
        """How far Σ_i c_i u_i is from 0, where a free bias asks for it."""
        u = point.duals
        if u is None or self.bias != "free":
            return {}
        if self.joint:
            have, want = class_sums(self.c, u, self.target)
            return {"have": have, "want": want}
        up, down = sign_sums(self.c, u)
        return {"up": up, "down": down}

    def values(self, point: Point[Weights], balance: Sums) -> Values[Weights]:
        """The losses, and what D is made of. Rows that are some of all are judged at the weights and bias given."""
        (W, b), u, sums = point.model, point.duals, Sums()
        if u is not None:
            u = self.balanced(u, balance)
            sums["conjugates"] = self.mean_conjugates(u)
            if self.bias == "feature":
                sums["duals"] = self.c @ u
        if u is None or self.of is not None:
            assert W is not None
            Z = self.scores(W, b)
            self.examples.verify(self.threads)  # as the passes below do by the way
            if u is not None:
                sums["dual_weights"] = self.dual_weights(u)
        elif W is None:
            W, sums["dual_squares"], Z = self.dual_model(u, b)
        else:
            Z, sums["dual_squares"] = self.scores_and_dual_squares(W, b, u)
        if self.of is None and self.bias == "free" and not self.joint:
            shift = best_biases(self, Z)
            b, Z = b + shift, Z + shift
        if self.loss.own:
            self._examine(Z, u)
        sums["losses"] = self.mean_losses(Z)
        return Values(sums, Weights(W, b), Z)

    def _examine(self, Z: Array, u: Array | None) -> None:
        """Is a loss of the user's own what it says, at these scores and dual variables?"""
        self.loss.examine(Z.ravel(), None if u is None else u.ravel(), self.signs.ravel())

    def combine(self, found: Values[Weights]) -> Bounds[Weights]:
        """P = (λ/2)‖W‖² + losses and D = conjugates − (λ/2)‖W(u)‖²."""
        sums, (W, b), dual = found.sums, found.model, np.full(self.n_parts, -np.inf)
        assert W is not None
        primal = self.penalty(self.squared_norms_of(W), b) + sums["losses"]
        if "conjugates" in sums:
            squares = sums["dual_squares"] if "dual_squares" in sums else self.squared_norms_of(sums["dual_weights"])
            dual = self._dual_value(sums, squares)
        if self.loss.own:
            _refuse_contradiction(primal, dual)
        # What left the range of numbers on its way proves nothing, and is worth nothing.
        primal, dual = np.where(np.isnan(primal), np.inf, primal), np.where(np.isnan(dual), -np.inf, dual)
        return Bounds(primal, dual, found.model, found.scores)

    def balanced(self, u: Array, balance: Sums) -> Array:
        """Dual variables of the domain, moved so that a free bias is allowed, given the balance of all rows."""
        if self.bias != "free":
            return u
        if self.joint:
            return transported(u, self.target, balance["have"], balance["want"])
        return balanced(u, balance["up"], balance["down"])

    def _dual_value(self, sums: Sums, squares: Array) -> Array:
        if self.bias == "feature":
            weights = sums["duals"][:, None] * (self.feature / (self.lam * self.total))
            squares = squares + self.squared_norms_of(weights)
        return sums["conjugates"] - 0.5 * self.lam * squares

    def choose(self, first: Array, one: Weights, other: Weights) -> Weights:
        """The weights ``one`` of the parts in ``first``, and the other ones of the rest."""
        assert one.W is not None
        assert other.W is not None
        return Weights(np.where(first[:, None], one.W, other.W), np.where(first, one.b, other.b))

    def arrays(self, model: Weights) -> dict[str, Array]:
        """Weights and biases."""
        assert model.W is not None
        return {"W": model.W, "b": model.b}

    def model_of(self, arrays: Mapping[str, Array]) -> Weights:
        """What ``arrays`` wrote."""
        shapes = {"W": (self.outputs, self.examples.n), "b": (self.outputs,)}
        return Weights(*(saved(arrays, k, shape, low=-MAX_FINITE, high=MAX_FINITE) for k, shape in shapes.items()))

    def digests(self) -> dict[str, str]:
        """What the problem is, in words and digests."""
        examples, arrays = self.examples, self.examples.arrays
        return {
            "rows": str(examples.m),
            "columns": str(examples.n),
            "layout": "CSR" if examples.is_sparse else "dense",
            "dtype": " ".join(str(a.dtype) for a in arrays),
            "data": digest(*arrays),
            "targets": digest(self.target),
            "weights": "none" if self.weight is None else digest(self.weight),
            "outputs": str(self.outputs),
            "loss": self.loss.spelled(),
            "lam": repr(float(self.lam)),
            "intercept_scaling": repr(float(self.feature)),
        }


def _refuse_contradiction(primal: Array, dual: Array) -> None:
    """Refuse a user's loss that proves a bound above its own objective: rounding alone leaves less."""
    with np.errstate(invalid="ignore"):  # of infinities
        above = dual - primal > CONTRADICTION * (np.abs(primal) + np.abs(dual))
    if (k := first_true(above)) is not None:
        raise ValueError(
            f"the lower bound {dual[k]:.9g} is above the objective {primal[k]:.9g}: the functions of the CustomLoss "
            "contradict each other; slope must be the derivative of value, and value convex"
        )


def signs_of(target: Array, outputs: int) -> Array:
    """Targets of one output as they are, class indices as ±1 for each output: (rows × outputs)."""
    if target.dtype == np.float64:
        return target[:, None]
    signs = np.full((len(target), outputs), -1.0)
    signs[np.arange(len(target)), target] = 1.0
    return signs


def best_biases(problem: LinearProblem, Z: Array) -> Array:
    """What to add to the bias of each output so that it is best for the scores Z."""
    shifts = np.zeros(problem.outputs)
    for k in range(problem.outputs):
        shifts[k] = best_bias(problem.by_rows, Z[:, k], problem.targets(k), problem.c)
    return shifts


def feasible(problem: LinearProblem, u: Array) -> Array:
    """Clip u into the domain; for a free bias also make Σ_i c_i u_i vanish."""
    point = problem.clipped(Point(Weights(None, np.zeros(problem.outputs)), u))
    assert point.duals is not None
    return problem.balanced(point.duals, problem.balance(point))
