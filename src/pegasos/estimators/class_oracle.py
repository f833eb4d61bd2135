"""Classes with features φ(x, y) of a user's own, as an oracle: cost-sensitive hinge and log loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import logsumexp, softmax

from pegasos.losses import CrammerSinger
from pegasos.problems.class_features import ClassFeatures, Outer, class_table
from pegasos.rows.labels import class_codes, class_labels
from pegasos.rows.views import encode_labels
from pegasos.util.arrays import Array, Matrix
from pegasos.util.digests import digest

__all__ = ["MulticlassOracle"]


@dataclass(frozen=True)
class MulticlassOracle:
    """Multiclass losses with any features φ(x, y), for :class:`~pegasos.StructuredSVC`: all classes are enumerated.

    ``StructuredSVC(MulticlassOracle(phi))`` minimises the mean of max_r δ(y, r) + ⟨w, φ(x, r) − φ(x, y)⟩ (the 2011
    paper's Example 3, Eq. 20), and with ``loss="log"`` that of log Σ_r exp⟨w, φ(x, r) − φ(x, y)⟩ (Example 4, Eq. 21),
    beside (λ/2)‖w‖². There is one vector of weights w for all classes, and no bias but what φ has.

    Parameters
    ----------
    phi : callable, dict or "block", default="block"
        ``phi(X, classes)`` returns the features of all rows of X with all classes, which are given as a sorted array:
        an array of shape (rows, classes, features), or a list with a matrix (rows × features, dense or sparse) for each
        class. It is called once by a fit, and once by each prediction.
        A dict has a vector of attributes for each class: φ(x, y) is their outer product with x, of which nothing is
        ever written out. Then ``w.reshape(attributes, columns)`` are a score's weights, and classes without any rows
        can be predicted, too. "block": x in the block of its class, the mapping of
        :class:`~pegasos.losses.CrammerSinger` and :class:`~pegasos.losses.Multinomial`.
    cost : sequence of sequences of float, default=None
        ``cost[y][r]`` is the cost δ(y, r) ≥ 0 of class r where y is true, in the order of the classes; 0 on the
        diagonal. None: 1 for every mistake. The log loss has no costs; ``score`` uses them for both.
    classes : sequence, default=None
        All classes that can be predicted. None: those of y, or the keys of a dict.

    Examples
    --------
    Animals by what they are like, so that what is learnt of one helps with another. No row is a bat:

    >>> import numpy as np
    >>> from pegasos import MulticlassOracle, StructuredSVC
    >>> like = {"bat": [1, 1], "bird": [1, 0], "fish": [0, 0], "mouse": [0, 1]}  # flies, furry
    >>> rng = np.random.default_rng(0)
    >>> y = rng.choice(["bird", "fish", "mouse"], 60)
    >>> X = np.array([like[label] for label in y]) * 2.0 - 1 + 0.3 * rng.normal(size=(60, 2))
    >>> attributes = {label: np.array(has) * 2.0 - 1 for label, has in like.items()}
    >>> model = StructuredSVC(MulticlassOracle(attributes)).fit(X, y)
    >>> model.certificate_.converged, bool((model.predict(X) == y).all()), model.predict([[0.9, 1.1]]).tolist()
    (True, True, ['bat'])
    >>> probable = StructuredSVC(MulticlassOracle(attributes), loss="log").fit(X, y)
    >>> probable.predict_proba(X).shape
    (60, 4)
    """

    phi: Callable[[Any, Array], Any] | Mapping[Any, Any] | str = "block"
    cost: Sequence[Sequence[float]] | None = None
    classes: Sequence[Any] | Array | None = None

    def __post_init__(self) -> None:
        if isinstance(self.phi, str) and self.phi != "block":
            raise ValueError(f"MulticlassOracle: phi={self.phi!r} must be 'block', a function or a dict of attributes")
        if not (callable(self.phi) or isinstance(self.phi, Mapping | str)) or isinstance(self.phi, type):
            raise ValueError(
                f"MulticlassOracle: phi={self.phi!r:.80} must be 'block', a function or a dict of attributes"
            )

    def bind(self, X: Any, y: Any) -> BoundMulticlass:
        """The oracle of rows X with labels y."""
        labels = class_labels(X, y)
        classes = self._classes()
        if classes is None:
            classes = encode_labels(labels)[0]
        if len(classes) < 2:
            raise ValueError(
                f"MulticlassOracle needs 2 or more classes, but there is one only: {classes.tolist()[0]!r}"
            )
        bound = replace(self, classes=classes)
        features = bound.features(X)
        if features.n_rows != len(labels):
            raise ValueError(f"phi(X, classes) has {features.n_rows} rows for {len(labels)} labels")
        return BoundMulticlass(bound, features, class_codes(labels, classes), bound._costs())

    def _classes(self) -> Array | None:
        """The classes in order; None where they are those of y."""
        if self.classes is not None:
            return np.unique(np.asarray(self.classes))
        return np.unique(np.array(list(self.phi))) if isinstance(self.phi, Mapping) else None

    def _known(self) -> Array:
        classes = self._classes()
        if classes is None:
            raise ValueError("MulticlassOracle: the classes are not known yet; fit first, or name them in classes")
        return classes

    def _costs(self) -> Array:
        return CrammerSinger(self.cost).matrix(len(self._known()))  # type: ignore[arg-type]  # which makes tuples of it

    def features(self, X: Any) -> ClassFeatures:
        """φ of all rows of X with all classes."""
        classes = self._known()
        if callable(self.phi):
            return class_table(self.phi(X, classes), len(classes))
        attributes = None if isinstance(self.phi, str) else self._attributes(self.phi, classes)
        return Outer(_rows(X), len(classes), attributes)

    @staticmethod
    def _attributes(phi: Mapping[Any, Any], classes: Array) -> Array:
        """The attributes of all classes: (classes × attributes)."""
        known = classes.tolist()
        if missing := [label for label in known if label not in phi]:
            raise ValueError(f"MulticlassOracle: phi has no attributes of class {missing[0]!r}")
        try:
            table = np.array([np.asarray(phi[label], dtype=np.float64) for label in known])
        except (TypeError, ValueError):
            table = np.zeros(0)
        if table.ndim != 2 or 0 in table.shape:
            raise ValueError("MulticlassOracle: the attributes of all classes must be vectors of the same length")
        if not np.isfinite(table).all():
            label = known[int(np.argmin(np.isfinite(table).all(axis=1)))]
            raise ValueError(f"MulticlassOracle: the attributes of class {label!r} are not all finite numbers")
        return table

    # --- predicting --------------------------------------------------------------------------------------------------

    def scores(self, w: Array, X: Any) -> Array:
        """⟨w, φ(x, y)⟩ of all rows and classes."""
        features = self.features(X)
        if features.size != len(w):
            raise ValueError(f"phi of these rows has {features.size} features, but the model has {len(w)} weights")
        return features.scores(w, np.arange(features.n_rows))

    def predict(self, w: Array, X: Any) -> Array:
        """The class of the largest score of each row."""
        return np.asarray(self._known()[np.argmax(self.scores(w, X), axis=1)])

    def probabilities(self, w: Array, X: Any) -> Array:
        """exp⟨w, φ(x, y)⟩ in proportion: what the log loss makes of scores."""
        return np.asarray(softmax(self.scores(w, X), axis=1))

    def loss(self, y: Any, y_hat: Any) -> Array:
        """The cost of each prediction."""
        classes = self._known()
        true, predicted = (class_codes(np.asarray(labels), classes) for labels in (y, y_hat))
        return np.asarray(self._costs()[true, predicted])


class BoundMulticlass:
    """The oracle of some rows."""

    def __init__(self, predictor: MulticlassOracle, features: ClassFeatures, y: Array, cost: Array) -> None:
        self.predictor, self.features, self.y, self.cost = predictor, features, y, cost
        self.n_rows, self.size = features.n_rows, features.size

    def decode(self, w: Array, rows: Array) -> tuple[Matrix, Array]:
        """The class of the largest cost and score of each row; the true one, where it is as good."""
        y, k = self.y[rows], np.arange(len(rows))
        value = self.features.scores(w, rows) + self.cost[y]
        best = np.argmax(value, axis=1)
        best = np.where(value[k, best] > value[k, y], best, y)
        return self.features.differences(rows, y, best), self.cost[y, best]

    def expect(self, w: Array, rows: Array, shares: Array) -> tuple[Array, Array]:
        """The log loss of each row, and Σ shares (φ(x, y) − Σ_k p_k φ(x, k))."""
        y, k = self.y[rows], np.arange(len(rows))
        Z = self.features.scores(w, rows)
        Z = Z - Z[k, y][:, None]
        coef = -softmax(Z, axis=1)
        coef[k, y] = -coef.sum(axis=1, where=np.arange(Z.shape[1]) != y[:, None])
        # log(1 + Σ_{r ≠ y} exp(…)), so that small losses keep their digits.
        Z[k, y] = -np.inf
        return np.logaddexp(0.0, logsumexp(Z, axis=1)), self.features.total(rows, coef * shares[:, None])

    def digest(self) -> str:
        """Of the features, the labels and the costs."""
        return digest(*self.features.arrays, self.y, self.cost)


def _rows(X: Any) -> Matrix:
    """Rows of numbers, dense or CSR."""
    if sparse.issparse(X):
        X = sparse.csr_array(X)
        found: Matrix = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
        return found
    rows = np.ascontiguousarray(X, dtype=X.dtype if getattr(X, "dtype", None) in (np.float32, np.float64) else float)
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(f"X has shape {rows.shape}, but must be rows × columns")
    return rows
