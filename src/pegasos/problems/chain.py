"""Linear chains: one label for each token of a sequence, scored by its attributes and by the label before it.

    P(W) = (λ/2)‖W‖² + (1/M) Σ_i c_i ℓ_i(W),   ψ_i(y) = φ(x_i, y_i) − φ(x_i, y),   M = Σ_i c_i
    hinge  ℓ_i(W) = max_y [cost(y_i, y) − ⟨W, ψ_i(y)⟩]        log  ℓ_i(W) = log Σ_y exp(−⟨W, ψ_i(y)⟩)

where y runs over the labellings that the grammar allows. W has a row for each attribute and, below them, one for each
label: the weights of the transitions from it.

A dual point of the hinge loss mixes labellings ("planes") with shares α_p ≥ 0 that add up to at most 1 for each
sequence; the rest is the right labelling. With W(α) = (1/(λM)) Σ_p c_p α_p ψ_p

    D(α) = (1/M) Σ_p c_p α_p cost_p − (λ/2)‖W(α)‖²  ≤  P*  ≤  P(W).

For the log loss every W is a dual point, too: the distributions p(y | x_i, W), whose entropies take the place of costs.
With G = (1/M) Σ_i c_i (E φ − φ(y_i)), the gradient of the mean loss, D = mean loss − ⟨W, G⟩ − ‖G‖²/(2λ), so that
P − D = ‖λW + G‖²/(2λ).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from pegasos import _core
from pegasos.problems.base import Bounds, Point
from pegasos.problems.grammar import Grammar
from pegasos.rows.sequences import Sequences
from pegasos.util.arrays import Array
from pegasos.util.digests import digest
from pegasos.util.fields import MAX_FINITE, saved

ChainLoss = Literal["hinge", "log"]

#: Zeros behind the weights, so that the core can read whole vectors from any row.
PADDING = 8


class ChainModel(NamedTuple):
    """The weights, (attributes + labels) × labels and :data:`PADDING` zeros, flat; None: those of the planes."""

    W: Array | None


class Labellings(NamedTuple):
    """A dual point of the hinge loss: labellings of sequences, one after the other, and their shares."""

    rows: Array
    labels: Array
    alpha: Array

    def feasible(self, count: int) -> Array:
        """α ≥ 0, with a sum of at most 1 for each of ``count`` sequences."""
        alpha = np.where(self.alpha > 0, self.alpha, 0.0)  # NaN, too
        sums = np.bincount(self.rows, weights=alpha, minlength=count)
        return np.asarray(alpha / np.maximum(sums, 1.0)[self.rows])


def corpus_of(sequences: Sequences, labels: int, grammar: Grammar) -> _core.Chain:
    """The core's corpus: a checked copy."""
    return _core.Chain(
        sequences.offsets,
        sequences.indptr,
        sequences.ids,
        sequences.values,
        sequences.n_attributes,
        labels,
        grammar.next,
        grammar.first,
        grammar.final,
    )


class Cut(NamedTuple):
    """A labelling of all tokens, as a plane below the mean loss, with the weighted mean of its costs."""

    labels: Array
    height: float


@dataclass(frozen=True)
class ChainProblem:
    """See the module's docstring.

    ``cost``: of (right label, other label); ``learnt``: transitions that have a weight.
    """

    sequences: Sequences
    tags: Array
    labels: int
    lam: float
    loss: ChainLoss
    cost: Array
    grammar: Grammar
    learnt: Array
    weight: Array | None = None
    threads: int = 1

    @cached_property
    def corpus(self) -> _core.Chain:
        """The core's corpus."""
        corpus = corpus_of(self.sequences, self.labels, self.grammar)
        corpus.teach(np.ascontiguousarray(self.tags, dtype=np.uint16), self.cost, self.learnt)
        return corpus

    @property
    def n_parts(self) -> int:
        """All labels are learnt together."""
        return 1

    @property
    def n(self) -> int:
        """Sequences."""
        return len(self.sequences)

    @property
    def size(self) -> int:
        """Of the weights, with the zeros behind them."""
        return (self.sequences.n_attributes + self.labels) * self.labels + PADDING

    @cached_property
    def c(self) -> Array:
        """The sequences' weights."""
        return np.ones(self.n) if self.weight is None else self.weight

    @cached_property
    def total(self) -> float:
        """M, the sum of the sequences' weights."""
        return float(self.n if self.weight is None else self.weight.sum())

    @cached_property
    def relative_weight(self) -> Array | None:
        """c_i n/M: weights with mean 1."""
        return None if self.weight is None else np.asarray(self.weight * (self.n / self.total))

    @cached_property
    def largest_value(self) -> float:
        """Of all attributes."""
        return 1.0 if self.sequences.values is None else float(np.abs(self.sequences.values).max(initial=0.0))

    @property
    def single(self) -> bool:
        """Whether single precision is enough for steps: values, and so scores, stay far from its limits."""
        return self.largest_value <= 1e6

    # --- what solvers ask --------------------------------------------------------------------------------------------

    def penalty(self, W: Array) -> float:
        """(λ/2)‖W‖²."""
        return 0.5 * self.lam * float(np.vdot(W, W))

    def plane_weights(self, planes: Labellings, alpha: Array) -> Array:
        """W(α)."""
        share = self.c[planes.rows] * alpha / (self.lam * self.total)
        return self.corpus.plane_weights(planes.rows, planes.labels, np.ascontiguousarray(share))

    def mean_loss_and_gradient(self, W: Array) -> tuple[float, Array]:
        """The mean log loss and its gradient. What was found of the last W is kept: a certificate may follow."""
        found = self._last.get(id(W))
        if found is None or found[0] is not W:
            losses, G = self.corpus.log_losses(W, self.c / self.total, self.threads)
            W.flags.writeable = False  # what is kept is kept for these numbers
            self._last.clear()
            found = self._last[id(W)] = (W, float(self.c @ losses) / self.total, G)
        return found[1], found[2]

    @cached_property
    def _last(self) -> dict[int, tuple[Array, float, Array]]:
        return {}

    # --- what the loop asks ------------------------------------------------------------------------------------------

    def at_zero(self) -> Array:
        """P(0), or a little more where a grammar forbids labellings."""
        return self._at_zero

    @cached_property
    def _at_zero(self) -> Array:
        per_token = np.full(self.labels, np.log(self.labels)) if self.loss == "log" else self.cost.max(axis=1)
        weight = np.repeat(self.c, np.diff(self.sequences.offsets))
        return np.array([float(weight @ per_token[self.tags]) / self.total])

    def first_bounds(self) -> Array:
        """No loss is negative."""
        return np.zeros(1)

    def trivial(self) -> tuple[ChainModel, Array] | None:
        """Where there is only one label there is nothing to learn."""
        if self.labels > 1:
            return None
        return ChainModel(np.zeros(self.size)), np.zeros(1)

    def certify(self, point: Point[ChainModel]) -> Bounds[ChainModel]:
        """Recompute primal and dual values from weights and labellings."""
        if self.loss == "log":
            return self._certify_log(point)
        W, dual = point.model.W, -np.inf
        planes: Labellings | None = point.duals
        if planes is not None:
            alpha = planes.feasible(self.n)
            own = self.plane_weights(planes, alpha)
            costs = self.corpus.plane_costs(planes.rows, planes.labels)
            dual = float((self.c[planes.rows] * alpha) @ costs) / self.total - self.penalty(own)
            W = own if W is None else W
        assert W is not None
        losses, _ = self.corpus.hinge(W, False, self.threads)
        return self._bounds(self.penalty(W) + float(self.c @ losses) / self.total, dual, W)

    def _certify_log(self, point: Point[ChainModel]) -> Bounds[ChainModel]:
        W = point.model.W
        assert W is not None
        loss, G = self.mean_loss_and_gradient(W)
        dual = loss - float(np.vdot(W, G)) - 0.5 / self.lam * float(np.vdot(G, G))
        return self._bounds(self.penalty(W) + loss, dual, W)

    def _bounds(self, primal: float, dual: float, W: Array) -> Bounds[ChainModel]:
        # What left the range of numbers on its way proves nothing, and is worth nothing.
        primal, dual = primal if primal == primal else np.inf, dual if dual == dual else -np.inf
        return Bounds(np.array([primal]), np.array([dual]), ChainModel(W))

    def choose(self, first: Array, one: ChainModel, other: ChainModel) -> ChainModel:
        """One of two models: there is a single part."""
        return one if bool(first[0]) else other

    def arrays(self, model: ChainModel) -> dict[str, Array]:
        """The weights."""
        assert model.W is not None
        return {"W": model.W}

    def model_of(self, arrays: Mapping[str, Array]) -> ChainModel:
        """What ``arrays`` wrote."""
        return ChainModel(self.saved_weights(arrays, "W"))

    def saved_weights(self, state: Mapping[str, object], name: str) -> Array:
        """Weights of a saved state."""
        W = saved(state, name, (self.size,), low=-MAX_FINITE, high=MAX_FINITE)
        if bool(W[-PADDING:].any()):
            raise ValueError(f"state: {name!r} should end in zeros")
        transitions = W[:-PADDING].reshape(-1, self.labels)[self.sequences.n_attributes :]
        if bool(transitions[(self.learnt == 0) | (self.grammar.next == 0)].any()):
            raise ValueError(f"state: {name!r} has numbers for transitions without a weight")  # of another problem
        return W

    def digests(self) -> dict[str, str]:
        """What the problem is, in words and digests."""
        s = self.sequences
        data = [s.offsets, s.indptr, s.ids] + ([] if s.values is None else [s.values])
        return {
            "sequences": str(self.n),
            "attributes": str(s.n_attributes),
            "data": digest(*data),
            "targets": digest(self.tags),
            "weights": "none" if self.weight is None else digest(self.weight),
            "labels": str(self.labels),
            "loss": self.loss,
            "lam": repr(float(self.lam)),
            "costs": digest(self.cost),
            "grammar": digest(*self.grammar, self.learnt),
        }

    # --- cutting planes ----------------------------------------------------------------------------------------------

    def cut(self, model: ChainModel) -> Cut:
        """The plane that touches the mean hinge loss at a model."""
        assert model.W is not None
        _, labels = self.corpus.hinge(model.W, True, self.threads)
        assert labels is not None
        return self._cut_of(labels)

    def _cut_of(self, labels: Array) -> Cut:
        costs = self.corpus.plane_costs(np.arange(self.n, dtype=np.int64), labels)
        return Cut(labels, float(self.c @ costs) / self.total)

    def products(self, cuts: Sequence[Cut], cut: Cut) -> Array:
        """⟨ψ_j, ψ⟩ of the mean planes: one pass for all of them."""
        rows = np.arange(self.n, dtype=np.int64)
        mean = self.corpus.plane_weights(rows, cut.labels, self.c / self.total)
        labellings = np.stack([other.labels for other in cuts])
        return self.corpus.products(mean, self.c / self.total, labellings, self.threads)

    def mixture(self, cuts: Sequence[Cut], alpha: Array) -> Point[ChainModel]:
        """The model of mixed planes, and the dual point that they are."""
        if not cuts:
            return Point(ChainModel(np.zeros(self.size)), None)
        used = [(cut, float(share)) for cut, share in zip(cuts, alpha, strict=True) if share > 0]
        planes = Labellings(
            np.tile(np.arange(self.n, dtype=np.int64), len(used)),
            np.concatenate([cut.labels for cut, _ in used]),
            np.repeat([share for _, share in used], self.n),
        )
        return Point(ChainModel(self.plane_weights(planes, planes.alpha)), planes)

    def first_cuts(self, point: Point[ChainModel]) -> Sequence[Cut]:
        """The plane that touches the loss at the point's weights."""
        return [] if point.model.W is None else [self.cut(point.model)]

    def cut_arrays(self, cuts: Sequence[Cut]) -> dict[str, Array]:
        """Labels as numbers."""
        return {"labels": np.array([cut.labels for cut in cuts], dtype=np.float64).reshape(len(cuts), len(self.tags))}

    def cuts_of(self, arrays: Mapping[str, Array]) -> list[Cut]:
        """What ``cut_arrays`` wrote; labellings that the grammar does not allow are refused."""
        labels = saved(arrays, "labels", (None, len(self.tags)), low=0, high=self.labels - 1, whole=True)
        return [self._cut_of(np.ascontiguousarray(row, dtype=np.uint16)) for row in labels]
