"""The smallest oracle there is: many classes, and mistakes that do not cost the same.

A labelling is a class, φ(x, y) puts x into the block of class y, and decoding is a maximum over the classes. So the
optimum is that of ``LinearSVC(loss=CrammerSinger(cost=...))`` without a bias, which has a solver of its own: the two
agree to as many digits as asked for, and every solver certifies it.

    python examples/structured_multiclass.py
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from pegasos import LinearSVC, StructuredSVC
from pegasos.losses import CrammerSinger

#: COST[true][predicted]: calling a wine of the first class anything else is five times as bad.
COST = ((0.0, 5.0, 5.0), (1.0, 0.0, 1.0), (1.0, 1.0, 0.0))


@dataclass(frozen=True)
class Multiclass:
    """One weight vector for each of the classes 0, 1, …; ``cost[y][r]`` is the loss of r where y is true."""

    cost: tuple[tuple[float, ...], ...]

    def bind(self, X, y):
        return BoundMulticlass(np.asarray(X, dtype=float), np.asarray(y), np.array(self.cost))

    def predict(self, w, X):
        return np.argmax(X @ w.reshape(len(self.cost), -1).T, axis=1)

    def loss(self, y, y_hat):
        return np.array(self.cost)[y, y_hat]


class BoundMulticlass:
    """The decoder of some rows. It is asked for many rows at a time, or for one: it takes what comes."""

    def __init__(self, X, y, cost):
        self.X, self.y, self.cost = X, y, cost
        self.n_rows, self.size = len(X), len(cost) * X.shape[1]

    def decode(self, w, rows):
        X, y, k = self.X[rows], self.y[rows], np.arange(len(rows))
        best = np.argmax(self.cost[y] + X @ w.reshape(len(self.cost), -1).T, axis=1)
        psi = np.zeros((len(rows), len(self.cost), X.shape[1]))
        psi[k, y] += X
        psi[k, best] -= X
        return psi.reshape(len(rows), -1), self.cost[y, best]


def main() -> None:
    X, y = load_wine(return_X_y=True)
    # Two noisy columns only, so that there are mistakes to speak of.
    X = X[:, [1, 9]] + np.random.default_rng(0).normal(scale=[0.5, 1.0], size=(len(y), 2))
    X = StandardScaler().fit_transform(X)

    special = LinearSVC(loss=CrammerSinger(cost=COST), fit_intercept=False, tol=1e-6).fit(X, y)
    print(f"{'':<20} {'objective':>12} {'lower bound':>12} {'gap':>9} {'epochs':>7} {'bill':>6}")
    report("CrammerSinger", special, special.predict(X), y)
    for solver in ("auto", "block_frank_wolfe", "cutting_plane", "pegasos"):
        tol = 1e-2 if solver == "pegasos" else 1e-5
        model = StructuredSVC(Multiclass(COST), solver=solver, tol=tol).fit(X, y)
        report(solver, model, model.predict(X), y)
    print("\nbill: the sum of the costs of all predictions")


def report(name, model, predicted, y) -> None:
    c = model.certificate_
    bill = np.array(COST)[y, predicted].sum()
    print(f"{name:<20} {c.primal:12.8f} {c.dual:12.8f} {c.relative_gap:9.1e} {c.epochs:7.0f} {bill:6.0f}")


if __name__ == "__main__":
    main()
