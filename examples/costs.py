"""Mistakes that do not cost the same: three wines, where calling a fine one ordinary is five times as bad.

One-vs-rest and the plain Crammer–Singer loss treat all mistakes alike; ``CrammerSinger(cost=...)`` trains for the bill.

    python examples/costs.py
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_wine
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pegasos import LinearSVC
from pegasos.losses import CrammerSinger

#: COST[true][predicted], in the order of ``classes_``.
COST = np.array([[0.0, 5.0, 5.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])


def main() -> None:
    X, y = load_wine(return_X_y=True)
    # Two noisy columns only, so that there are mistakes to speak of.
    X = X[:, [1, 9]] + np.random.default_rng(0).normal(scale=[0.5, 1.0], size=(len(y), 2))

    losses = {"one-vs-rest hinge": "hinge", "Crammer-Singer": "crammer_singer", "with costs": CrammerSinger(cost=COST)}
    print(f"{'loss':<20} {'mistakes':>8} {'bill':>6} {'certified gap':>14}")
    for name, loss in losses.items():
        model = make_pipeline(StandardScaler(), LinearSVC(loss=loss, C=1.0))
        confusion = confusion_matrix(y, cross_val_predict(model, X, y, cv=5))
        gap = model.fit(X, y)[-1].certificate_.relative_gap
        mistakes = confusion.sum() - confusion.trace()
        print(f"{name:<20} {mistakes:8d} {(confusion * COST).sum():6.0f} {gap:14.1e}")
    print("\nbill: the sum of the costs of all cross-validated predictions")


if __name__ == "__main__":
    main()
