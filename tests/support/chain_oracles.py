"""Linear chains the slow and obvious way: all labellings of a sequence, one after the other.

Weights are a matrix of (attributes + labels) rows and a column a label; the last rows are those of the transitions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
import oracles
from batch_oracles import epoch_batches
from scipy.optimize import minimize

from pegasos.problems.chain import PADDING, ChainProblem
from pegasos.problems.grammar import Grammar
from pegasos.rows.sequences import Sequences


@dataclass(frozen=True, eq=False)
class Corpus:
    """Sequences of tokens, each a list of (attribute, value), with all that a problem is made of."""

    tokens: list[list[list[tuple[int, float]]]]
    tags: list[tuple[int, ...]]
    attributes: int
    labels: int
    grammar: Grammar
    cost: np.ndarray
    learnt: np.ndarray
    weight: np.ndarray
    lam: float
    loss: str

    @property
    def shape(self):
        return self.attributes + self.labels, self.labels

    @property
    def n(self):
        return len(self.tokens)

    @property
    def share(self):
        """c_i/M."""
        return self.weight / self.weight.sum()

    # --- one sequence ------------------------------------------------------------------------------------------------

    @cached_property
    def planes(self):
        """Of each sequence all labellings, their differences ψ and their costs."""
        return [[(y, self.psi(i, y), self.cost_of(i, y)) for y in self.labellings(i)] for i in range(self.n)]

    def labellings(self, i):
        """All that the grammar allows; the last label changes most slowly."""
        backwards = product(range(self.labels), repeat=len(self.tokens[i]))
        return [y[::-1] for y in backwards if self.allows(y[::-1])]

    def allows(self, y):
        g = self.grammar
        return bool(g.first[y[0]] and g.final[y[-1]] and all(g.next[a, b] for a, b in pairwise(y)))

    def phi(self, i, y):
        found = np.zeros(self.shape)
        for token, label in zip(self.tokens[i], y, strict=True):
            for attribute, value in token:
                found[attribute, label] += value
        for a, b in pairwise(y):
            found[self.attributes + a, b] += float(self.learnt[a, b])
        return found

    def psi(self, i, y):
        return self.phi(i, self.tags[i]) - self.phi(i, y)

    def cost_of(self, i, y):
        return sum(self.cost[right, other] for right, other in zip(self.tags[i], y, strict=True))

    def heights(self, W, i):
        """cost − ⟨W, ψ⟩ of all labellings."""
        return np.array([cost - np.vdot(W, psi) for _, psi, cost in self.planes[i]])

    def hinge(self, W, i):
        return float(self.heights(W, i).max())

    def probabilities(self, W, i):
        """Of all labellings, and log Z − ⟨W, φ(gold)⟩."""
        scores = np.array([-np.vdot(W, psi) for _, psi, _ in self.planes[i]])
        high = scores.max()
        p = np.exp(scores - high)
        return p / p.sum(), float(high + np.log(p.sum()))

    def marginals(self, W, i):
        p, _ = self.probabilities(W, i)
        found = np.zeros((len(self.tokens[i]), self.labels))
        for share, (y, _, _) in zip(p, self.planes[i], strict=True):
            found[np.arange(len(y)), list(y)] += share
        return found

    def loss_gradient(self, W, i):
        """E φ − φ(gold)."""
        p, _ = self.probabilities(W, i)
        return -sum(share * psi for share, (_, psi, _) in zip(p, self.planes[i], strict=True))

    def losses(self, W):
        if self.loss == "hinge":
            return np.array([self.hinge(W, i) for i in range(self.n)])
        return np.array([self.probabilities(W, i)[1] for i in range(self.n)])

    # --- the problem -------------------------------------------------------------------------------------------------

    def primal(self, W):
        return self.lam / 2 * float(np.vdot(W, W)) + float(self.share @ self.losses(W))

    def gradient(self, W):
        """Of the objective, for the log loss."""
        return self.lam * W + sum(self.share[i] * self.loss_gradient(W, i) for i in range(self.n))

    def dual(self, planes):
        """D of (sequence, labelling, α), which must be feasible."""
        sums = np.zeros(self.n)
        W, gain = np.zeros(self.shape), 0.0
        for i, y, alpha in planes:
            assert alpha >= 0
            assert self.allows(y)
            sums[i] += alpha
            W += self.share[i] * alpha / self.lam * self.psi(i, y)
            gain += self.share[i] * alpha * self.cost_of(i, y)
        assert sums.max(initial=0.0) <= 1 + 1e-9
        return gain - self.lam / 2 * float(np.vdot(W, W))

    def log_dual(self, W):
        """D of the distributions that W stands for: mean entropy − (λ/2)‖Σ p ψ/(λM)‖²."""
        entropy, mean = 0.0, np.zeros(self.shape)
        for i in range(self.n):
            p, _ = self.probabilities(W, i)
            positive = p[p > 0]
            entropy -= self.share[i] * float(positive @ np.log(positive))
            mean -= self.share[i] * self.loss_gradient(W, i)
        return entropy - float(np.vdot(mean, mean)) / (2 * self.lam)

    @cached_property
    def optimum(self):
        """P*: by an interior point method over all labellings, or by quasi-Newton steps to a gradient of nothing."""
        if self.loss == "log":
            return self._log_optimum()
        size, n = int(np.prod(self.shape)), self.n
        H = np.zeros((size + n, size + n))
        H[np.arange(size), np.arange(size)] = self.lam
        q = np.concatenate([np.zeros(size), self.share])
        below, limit = [], []
        for i in range(n):
            for _, psi, cost in self.planes[i]:
                slack = np.zeros(n)
                slack[i] = -1.0
                below.append(np.concatenate([-psi.ravel(), slack]))
                limit.append(-cost)
        x, _ = oracles._clarabel(H, q, np.zeros((0, size + n)), np.zeros(0), np.array(below), np.array(limit), 1e-11)
        return self.primal(x[:size].reshape(self.shape))

    def _log_optimum(self):
        def value(w):
            W = w.reshape(self.shape)
            return self.primal(W), self.gradient(W).ravel()

        w = np.zeros(int(np.prod(self.shape)))
        for _ in range(5):  # where its line search has given up, a new start goes on
            w = minimize(value, w, jac=True, method="L-BFGS-B", options={"gtol": 1e-13, "ftol": 0, "maxiter": 5000}).x
        W = w.reshape(self.shape)
        assert float(np.vdot(self.gradient(W), self.gradient(W))) / (2 * self.lam) < 1e-12
        return self.primal(W)

    # --- the package's view of it ------------------------------------------------------------------------------------

    @cached_property
    def sequences(self):
        flat = [token for sequence in self.tokens for token in sequence]
        uses = [use for token in flat for use in token]
        values = np.array([value for _, value in uses], dtype=np.float64)
        return Sequences(
            np.cumsum([0] + [len(sequence) for sequence in self.tokens]).astype(np.int64),
            np.cumsum([0] + [len(token) for token in flat]).astype(np.int64),
            np.array([attribute for attribute, _ in uses], dtype=np.int32),
            None if (values == 1).all() else values,
            self.attributes,
        )

    @property
    def flat_tags(self):
        return np.concatenate([np.array(y, dtype=np.uint16) for y in self.tags])

    def problem(self, threads=1, weighted=True):
        """The same for the package."""
        return ChainProblem(
            sequences=self.sequences,
            tags=self.flat_tags,
            labels=self.labels,
            lam=self.lam,
            loss=self.loss,
            cost=self.cost,
            grammar=self.grammar,
            learnt=self.learnt,
            weight=self.weight if weighted else None,
            threads=threads,
        )

    def flat(self, W):
        """Weights as the core takes them."""
        return np.concatenate([W.ravel(), np.zeros(PADDING)])

    def matrix(self, flat):
        """Weights as the core has them."""
        assert not flat[-PADDING:].any()
        return flat[:-PADDING].reshape(self.shape)

    def planes_of(self, labellings):
        """(sequence, labelling, α) of the package's dual point."""
        at, found = 0, []
        for i, alpha in zip(labellings.rows.tolist(), labellings.alpha.tolist(), strict=True):
            end = at + len(self.tokens[i])
            found.append((i, tuple(labellings.labels[at:end].tolist()), alpha))
            at = end
        assert at == len(labellings.labels)
        return found

    def weights(self, rng, scale=1.0):
        """Random weights; transitions that are not learnt or not allowed have none."""
        W = scale * rng.standard_normal(self.shape)
        W[self.attributes :] *= self.learnt * self.grammar.next
        return W


class Sizes(NamedTuple):
    labels: int
    lengths: tuple[int, ...]
    attributes: int = 5


def corpus(
    sizes, seed=0, *, values=True, grammar=False, costs=True, unlearnt=False, weighted=False, lam=0.05, loss="hinge"
):
    """A random corpus: attributes that come twice in a token, tokens without any, and what else is asked for."""
    rng = np.random.default_rng(seed)
    L = sizes.labels
    tokens = [
        [
            [
                (int(rng.integers(sizes.attributes)), float(np.rint(64 * rng.normal())) / 64 or 1.0 if values else 1.0)
                for _ in range(rng.integers(0, 4))
            ]
            for _ in range(length)
        ]
        for length in sizes.lengths
    ]
    tags = [tuple(rng.integers(0, L, length).tolist()) for length in sizes.lengths]
    rules = Grammar.free(L)
    if grammar:
        rules = Grammar(*(np.array(rng.random(flags.shape) < 0.4, dtype=np.uint8) for flags in rules))
        for y in tags:  # what is right is allowed
            rules.first[y[0]] = rules.final[y[-1]] = 1
            for a, b in pairwise(y):
                rules.next[a, b] = 1
    cost = 1.0 - np.eye(L)
    if costs:
        cost *= rng.uniform(0.5, 2.0, (L, L))
    learnt = np.array(rng.random((L, L)) < 0.6, dtype=np.uint8) if unlearnt else np.ones((L, L), np.uint8)
    weight = rng.uniform(0.5, 2.0, len(tokens)) if weighted else np.ones(len(tokens))
    return Corpus(tokens, tags, sizes.attributes, L, rules, cost, learnt, weight, lam, loss)


def with_sequences(c, chosen, weight):
    """Some of the sequences of a corpus, in any order and number."""
    return replace(c, tokens=[c.tokens[i] for i in chosen], tags=[c.tags[i] for i in chosen], weight=np.asarray(weight))


# --- steps -----------------------------------------------------------------------------------------------------------


class Iterate(NamedTuple):
    """After an epoch: the last weights, the mean of all iterates, and that of the window, each weighted by t + t0."""

    last: np.ndarray
    average: np.ndarray
    suffix: np.ndarray
    planes: list[tuple[int, tuple[int, ...], float]]


def steps(c, epochs, *, rule="pegasos", t0=0.0, batch=1, radius=np.inf, sampling="permutation", seed=0, C=1.0):
    """The state after each epoch of Pegasos' steps, as published, the perceptron's or PA-I's.

    Pegasos: w ← ((t + t0) w + Σ c_i g_i/λ)/(t + t0 + k) after the k sequences of a mini-batch, then into the ball; for
    t0 = 0 that is the paper's (1 − 1/t) w + g/(λ t k). Weights of sequences are scaled to have the mean 1.
    """
    w, t, scale = np.zeros(c.shape), t0, c.weight / c.weight.mean()
    iterates, window, window_end, found = [], [], 1, []
    decoded, visits = [], np.zeros(c.n)
    for epoch in range(epochs):
        if epoch == window_end:
            window, decoded, visits = [], [], np.zeros(c.n)
            window_end = min(2 * epoch, epoch + 64)
        for chosen in map(np.ndarray.tolist, epoch_batches(c.n, epoch, sampling=sampling, seed=seed, k=batch)):
            g = np.zeros(c.shape)
            for i in chosen:
                step, y = _direction(c, w, i, rule, C)
                g += scale[i] * step
                visits[i] += 1
                decoded.append((i, y))
            if rule == "pegasos":
                w = (t * w + g / c.lam) / (t + len(chosen))
                t += len(chosen)
                w *= min(1.0, radius / max(float(np.linalg.norm(w)), 1e-300))
            else:
                w = w + g
            iterates.append(w)
            window.append((t if rule == "pegasos" else 1.0, w))
        shares = sum(share for share, _ in window)
        planes = [(i, y, 1 / visits[i]) for i, y in decoded if y is not None and y != c.tags[i]]
        suffix = sum(share * iterate for share, iterate in window) / shares
        found.append(Iterate(w, np.mean(iterates, axis=0), suffix, planes))
    return found


def _direction(c, w, i, rule, C):
    """What a sequence adds to the weights, and the labelling that it does so for."""
    if c.loss == "log":
        return -c.loss_gradient(w, i), None
    costs = np.array([cost for _, _, cost in c.planes[i]])
    heights = c.heights(w, i)
    judged = heights - costs if rule == "perceptron" else heights
    y, psi, _ = c.planes[i][int(np.argmax(np.round(judged, 9)))]  # of equal ones the first, as it is for the core
    if rule == "passive_aggressive":
        square = float(np.vdot(psi, psi))
        return (min(C, max(heights.max(), 0.0) / square) * psi if square > 0 else 0 * psi), y
    return psi, y
