"""Choosing C by cross-validation, with every candidate's certificate.

Scaling sits in the pipeline, so that each fold is scaled by its own training rows. A loose ``tol`` is enough while
choosing: the folds' scores differ by far more than the certified gap.

    python examples/choose_c.py
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pegasos import LinearSVC


def main() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)

    grid = {"linearsvc__C": np.logspace(-4, 2, 7)}
    search = GridSearchCV(make_pipeline(StandardScaler(), LinearSVC(tol=1e-2)), grid, cv=5)
    search.fit(X_train, y_train)

    print("      C   mean accuracy of 5 folds")
    scores = search.cv_results_["mean_test_score"], search.cv_results_["std_test_score"]
    for k, (C, mean, spread) in enumerate(zip(grid["linearsvc__C"], *scores, strict=True)):
        print(f"{C:7g}   {mean:.3f} ± {spread:.3f}{'   <- chosen' if k == search.best_index_ else ''}")

    # The final model deserves a tighter certificate than the candidates.
    best = search.best_estimator_.set_params(linearsvc__tol=1e-6).fit(X_train, y_train)
    c = best[-1].certificate_
    print(f"\nfinal fit: objective {c.primal:.6f}, certified relative gap {c.relative_gap:.1e}")
    print(f"test accuracy {best.score(X_test, y_test):.3f}")


if __name__ == "__main__":
    main()
