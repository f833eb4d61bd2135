"""Slow, obvious structured machines: every labelling is enumerated, and the optimum is a quadratic program.

:class:`Tags` labels short sequences; its decoder tries all labellings. :func:`optimum` solves the problem with a
constraint for each of them. :func:`pegasos` is the textbook's recursion, on dense vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from scipy import sparse


@dataclass(frozen=True)
class Tags:
    """Sequences of T observations, one of ``labels`` tags for each; ``first`` is what a mistake at t = 0 costs."""

    labels: int = 3
    first: float = 1.0
    layout: str = "csr"
    exact: bool = True

    def bind(self, X, y):
        return BoundTags(self, [np.asarray(x, dtype=float) for x in X], [np.asarray(t) for t in y])

    def phi(self, x, y):
        """Observations by tag, and pairs of neighbouring tags."""
        emission, pairs = np.zeros((self.labels, x.shape[1])), np.zeros((self.labels, self.labels))
        for t, tag in enumerate(y):
            emission[tag] += x[t]
            if t:
                pairs[y[t - 1], tag] += 1
        return np.concatenate([emission.ravel(), pairs.ravel()])

    def delta(self, y, other):
        cost = np.ones(len(y))
        cost[0] = self.first
        return float(cost @ (np.asarray(y) != np.asarray(other)))

    def labellings(self, x):
        return [np.array(y) for y in product(range(self.labels), repeat=len(x))]

    def predict(self, w, X):
        return [max(self.labellings(x), key=lambda y: float(w @ self.phi(x, y))) for x in map(np.asarray, X)]

    def loss(self, y, y_hat):
        return np.array([self.delta(a, b) for a, b in zip(y, y_hat, strict=True)])


class BoundTags:
    """Decodes by trying everything; keeps count of what was asked."""

    def __init__(self, model, X, y):
        self.model, self.X, self.y = model, X, y
        self.n_rows, self.size = len(X), len(model.phi(X[0], y[0]))
        self.exact = model.exact
        self.asked = []

    @cached_property
    def planes(self):
        """ψ (labellings × size) and Δ of all labellings of each row."""
        model = self.model
        return [
            (
                np.stack([model.phi(x, y) - model.phi(x, other) for other in model.labellings(x)]),
                np.array([model.delta(y, other) for other in model.labellings(x)]),
            )
            for x, y in zip(self.X, self.y, strict=True)
        ]

    def decode(self, w, rows):
        self.asked.extend(rows.tolist())
        best = [int(np.argmax(loss - psi @ w)) for psi, loss in (self.planes[i] for i in rows)]
        psi = np.stack([self.planes[i][0][k] for i, k in zip(rows, best, strict=True)])
        loss = np.array([self.planes[i][1][k] for i, k in zip(rows, best, strict=True)])
        return (psi if self.model.layout == "dense" else sparse.csr_array(psi)), loss


def toy(rows=8, length=3, features=2, labels=3, seed=0):
    """Sequences whose tags are hard to tell."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((labels, features))
    X = [rng.standard_normal((int(rng.integers(1, length + 1)), features)) for _ in range(rows)]
    y = [np.argmax(x @ truth.T + 0.7 * rng.standard_normal((len(x), labels)), axis=1) for x in X]
    return X, y


def objective(planes, w, lam, weight=None):
    """P(w), by all labellings."""
    c = np.ones(len(planes)) if weight is None else np.asarray(weight)
    losses = [float(np.max(loss - psi @ w)) for psi, loss in planes]
    return lam / 2 * float(w @ w) + float(c @ losses) / float(c.sum())


def optimum(planes, lam, weight=None):
    """P*: min (λ/2)‖w‖² + (1/M) Σ c_i ξ_i with ξ_i ≥ Δ − ⟨w, ψ⟩ for every labelling of row i."""
    import clarabel

    c = np.ones(len(planes)) if weight is None else np.asarray(weight, dtype=float)
    n, size = len(planes), planes[0][0].shape[1]
    P = sparse.csc_matrix(np.diag(np.concatenate([np.full(size, lam), np.zeros(n)])))
    q = np.concatenate([np.zeros(size), c / c.sum()])
    slack = np.concatenate([np.full(len(loss), i) for i, (_, loss) in enumerate(planes)])
    psi, loss = np.vstack([p for p, _ in planes]), np.concatenate([d for _, d in planes])
    A = sparse.csc_matrix(np.hstack([-psi, -np.eye(n)[slack]]))  # −⟨w, ψ⟩ − ξ ≤ −Δ
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    solved = clarabel.DefaultSolver(P, q, A, -loss, [clarabel.NonnegativeConeT(len(loss))], settings).solve()
    w = np.array(solved.x)[:size]
    return objective(planes, w, lam, c)


def pegasos(planes, batches, lam, *, weight=None, t0=0.0, radius=None):
    """The iterates w_1 = 0, w_2, … of Figs. 1 and 2 of the 2011 paper, with what was decoded at each (row, labelling).

    ``batches``: the rows of each step. η = 1/(λ(t + t0)) with t counting rows, so that a batch of k makes k steps.
    """
    n = len(planes)
    c = np.ones(n) if weight is None else np.asarray(weight) * n / np.sum(weight)
    w, t, iterates, found = np.zeros(planes[0][0].shape[1]), 0, [], []
    for rows in batches:
        iterates.append(w)
        best = [int(np.argmax(planes[i][1] - planes[i][0] @ w)) for i in rows]
        found.append(list(zip(rows.tolist(), best, strict=True)))
        before, t = t + t0, t + len(rows)
        step = sum(c[i] * planes[i][0][k] for i, k in found[-1])
        w = before / (t + t0) * w + step / (lam * (t + t0))
        if radius is not None and np.linalg.norm(w) > radius:
            w = w * radius / np.linalg.norm(w)
    return [*iterates, w], found
