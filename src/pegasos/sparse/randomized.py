"""The randomised classifier of Cotter, Shalev-Shwartz & Srebro (ICML 2013), and what Lemma 4.1 says of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from pegasos.estimators.svc import SVC
from pegasos.rows.targets import unpack
from pegasos.rows.views import Array, row_weights
from pegasos.sparse.published import slant_loss


@dataclass(frozen=True)
class Guarantee:
    """What Lemma 4.1 of the paper says of a compressed model; of several pairs of classes, the worst and the sums.

    Parameters
    ----------
    violation : float
        f(w̃), the most by which a row that the reference gets right falls short of its target.
    slant_loss, hinge_loss : float
        Mean slant loss of the compressed model, which is the expected error of the randomised classifier on these rows,
        and mean hinge loss of the reference.
    holds : bool
        Whether f(w̃) ≤ ½, so that ``slant_loss <= hinge_loss`` is certain.

    Examples
    --------
    >>> from pegasos import SVC, sparsify
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> path = sparsify(SVC().fit(X, y), X, y, variant="aggressive", refit=False)
    >>> path.guarantee().holds
    True
    """

    violation: float
    slant_loss: float
    hinge_loss: float
    holds: bool

    @classmethod
    def of_margins(cls, reference: Array, small: Array, weight: Array) -> Guarantee:
        """From the margins y g(x) of a reference and y g̃(x) of a small model on rows with these weights.

        A row that the reference gets wrong has a hinge loss of 1 at least, and a slant loss of 1 at most; for one that
        it gets right, y g̃ ≥ min(1, y g) − ½ makes the slant loss max(0, ½ − y g̃) at most max(0, 1 − y g).
        """
        short = (np.minimum(1.0, reference) - small)[(reference > 0) & (weight > 0)]
        worst, total = float(short.max(initial=-np.inf)), float(weight.sum())
        slant, hinge = float(weight @ slant_loss(small)), float(weight @ np.maximum(0.0, 1.0 - reference))
        return cls(worst, slant / total, hinge / total, worst <= 0.5)


class RandomizedClassifier:
    """sign(score + Z), Z uniform on [−½, ½] and drawn for every row anew: the classifier of the paper's theorem.

    Its expected error is the mean slant loss min(1, max(0, ½ − y·score)), which is known without drawing anything.
    ``predict`` of the model itself is better in practice.

    Parameters
    ----------
    model : SVC
        Fitted.
    random_state : int, RandomState or None, default=None
        Source of Z. With a number the draws of each call are the same.

    Examples
    --------
    >>> from pegasos import SVC, sparsify
    >>> X, y = [[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1]
    >>> reference = SVC(C=100).fit(X, y)
    >>> path = sparsify(reference, X, y, variant="basic", refit=False)
    >>> chance = path.randomized(random_state=0)
    >>> chance.predict([[-1.0], [6.0]]).shape
    (2,)
    >>> found = chance.guarantee(reference, X, y)
    >>> found.holds, chance.expected_error(X, y) == found.slant_loss <= found.hinge_loss
    (True, True)
    """

    def __init__(self, model: SVC, random_state: Any = None) -> None:
        self.model, self.random_state = model, random_state

    def predict(self, X: Any) -> Array:
        """Labels, some of them by chance."""
        scores = self.model._pair_scores(X)
        scores = scores + check_random_state(self.random_state).uniform(-0.5, 0.5, size=scores.shape)
        return self.model._labels(scores)

    def predict_proba(self, X: Any) -> Array:
        """The chances of both labels to be drawn: min(1, max(0, ½ + score)) of the second; for two classes."""
        above = np.clip(0.5 + self._scores(self.model, X), 0.0, 1.0)
        return np.stack([1.0 - above, above], axis=1)

    def expected_error(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of wrong labels to be expected on these rows, exactly: the mean slant loss; for two classes."""
        y, sample_weight = unpack(X, y, sample_weight)
        scores = self._scores(self.model, X)
        weight = _weights(sample_weight, len(scores))
        return float(weight @ slant_loss(self._signs(y, len(scores)) * scores)) / float(weight.sum())

    def guarantee(self, reference: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Guarantee:
        """That expected error against the hinge loss of a reference on the same rows, and whether the one must be less.

        Parameters
        ----------
        reference : SVC or sklearn.svm.SVC
            Fitted, on the same two classes.
        X, y, sample_weight
            Any rows: those of the fit, as in the paper, or others.

        Returns
        -------
        Guarantee
        """
        y, sample_weight = unpack(X, y, sample_weight)
        if not np.array_equal(reference.classes_, self.model.classes_):
            known, own = np.asarray(reference.classes_).tolist(), self.model.classes_.tolist()
            raise ValueError(f"reference knows the classes {known!r:.200}, the model {own!r:.200}")
        small = self._scores(self.model, X)
        signs, weight = self._signs(y, len(small)), _weights(sample_weight, len(small))
        return Guarantee.of_margins(signs * self._scores(reference, X), signs * small, weight)

    def _scores(self, model: Any, X: Any) -> Array:
        """Of a machine of two classes; above 0 for the second."""
        if len(model.classes_) != 2:
            raise ValueError(
                f"the chance of a label is known for two classes, not for {len(model.classes_)}; "
                "SparsePath.guarantee() sums over the pairs of several"
            )
        return np.asarray(model.decision_function(X))

    def _signs(self, y: Any, m: int) -> Array:
        labels = np.asarray(y)
        if labels.shape != (m,):
            raise ValueError(f"y has shape {labels.shape}, X has {m} rows")
        if not np.isin(labels, self.model.classes_).all():
            raise ValueError(f"y has labels that the model does not know: {self.model.classes_.tolist()!r:.200}")
        return np.where(labels == self.model.classes_[1], 1.0, -1.0)


def _weights(sample_weight: Any, m: int) -> Array:
    given = row_weights(sample_weight, None, m)
    return np.ones(m) if given is None else given
