"""What classifiers share, and what regressions share: their targets, and how well these are met."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from pegasos import losses
from pegasos.estimators.base import Estimator
from pegasos.losses import Loss
from pegasos.rows.labels import check_objects, class_codes, class_factors, class_labels
from pegasos.rows.targets import unpack
from pegasos.rows.views import Array, encode_labels
from pegasos.util.available import available_if


def has_probabilities(model: Classifier) -> bool:
    """Whether a classifier has probabilities; AttributeError says why not, and what to do."""
    return model._has_probabilities()


class Encoded(NamedTuple):
    """Class labels of rows: the classes, which of them each row has, and their weights, unless all are 1."""

    classes: Array
    codes: Array
    factors: Array | None


class Classifier(ClassifierMixin, Estimator):  # type: ignore[misc]
    """Base of the classifiers; not public."""

    class_weight: Any
    classes_: Array

    def _encoded(self, X: Any, y: Any, known: Array | None = None, first: int | Array = 0) -> Encoded:
        """Labels, checked: of classes that are ``known``, or whichever there are; ``first``: see ``class_labels``."""
        labels = class_labels(X, y, first)
        classes, codes = encode_labels(labels) if known is None else (known, class_codes(labels, known))
        if len(classes) < 2:
            name = type(self).__name__
            where = "y has" if isinstance(first, int) else f"the {len(labels)} rows drawn from y have"
            raise ValueError(f"{name} needs 2 or more classes, but {where} one class only: {classes.tolist()[0]!r}")
        return Encoded(classes, codes, class_factors(self.class_weight, classes, labels))

    def _declared(self, classes: Any) -> Array:
        """All classes that the rows of a stream will ever have: named in its first call, or those of a fit."""
        if self._stream is None and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit")
        if isinstance(classes, list | tuple) or (classes is not None and np.asarray(classes).dtype == object):
            check_objects(classes, "classes")
        known = np.unique(np.asarray(classes)) if self._stream is None else self.classes_
        if self._stream is not None and classes is not None and not np.array_equal(known, np.unique(classes)):
            raise ValueError(f"classes={classes!r} differ from those already known: {known.tolist()}")
        if len(known) < 2:
            name = type(self).__name__
            raise ValueError(f"{name} needs at least 2 classes, but classes contains only {known.tolist()}")
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            raise ValueError("class_weight='balanced' cannot be known while rows still come; pass a dict")
        return np.asarray(known)

    def _has_probabilities(self) -> bool:
        raise NotImplementedError

    def predict_proba(self, X: Any) -> Array:
        raise NotImplementedError

    @available_if(has_probabilities)
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of rows whose label is predicted rightly; a :class:`~pegasos.io.Dataset` brings its labels."""
        y, sample_weight = unpack(X, y, sample_weight)
        return float(super().score(X, y, sample_weight))


class Regressor(RegressorMixin, Estimator):  # type: ignore[misc]
    """Base of the regressions; not public."""

    epsilon: float
    loss: str | Loss

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_number("epsilon", low=0, strict=False)

    def _loss(self) -> Loss:
        return losses.resolve(self.loss, ("regression",), type(self).__name__, epsilon=self.epsilon)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The coefficient of determination R²; a :class:`~pegasos.io.Dataset` brings its targets along."""
        y, sample_weight = unpack(X, y, sample_weight)
        return float(super().score(X, y, sample_weight))
