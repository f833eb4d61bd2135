"""A kernel classifier that is trained and compressed in one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from numbers import Real
from typing import Any, Literal, Self

import numpy as np

from pegasos.estimators.base import all_or_nothing
from pegasos.estimators.svc import SVC
from pegasos.fit.loop import Callback
from pegasos.kernels.functions import KernelFunction
from pegasos.rows.duplicates import Merged, folds
from pegasos.rows.labels import class_labels
from pegasos.rows.targets import unpack
from pegasos.rows.views import Array, encode_labels, row_weights
from pegasos.solvers import KernelSolver, Solver
from pegasos.sparse.compress import Move, Variant, check_move, check_parameters, sparsify
from pegasos.sparse.path import SparsePath
from pegasos.sparse.randomized import RandomizedClassifier
from pegasos.util.arrays import Matrix

#: Sizes that cross-validation looks at, as shares of the reference's support vectors.
VALIDATED_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)


class SparseSVC(SVC):
    """Kernel support vector classification with few support vectors.

    Fits an :class:`SVC`, the reference, and compresses it with :func:`sparsify`.

    Parameters
    ----------
    max_support : int, default=None
        Most support vectors. None: the fewest whose error in cross-validation on the training rows is within one
        standard error of the least, of 1, 2, 5, 10, 20 and 40 % of the reference's.
    cv : int, splitter or iterable of (train, test), default=3
        Folds of that cross-validation. Those of a number are made by class, with equal rows in the same fold.
    variant, step, bias, refit, move
        As for :func:`sparsify`.
    slant_tol : float, default=0.5
        ``tol`` of :func:`sparsify`.
    randomized : bool, default=False
        Whether ``predict`` is that of the :class:`RandomizedClassifier`: sign(score + Z), Z uniform on [−½, ½], drawn
        from ``random_state``. Its expected error on the training rows is ``guarantee_.slant_loss``.
    C, kernel, degree, gamma, coef0, shrinking, probability, tol, cache_size, class_weight, verbose, max_iter, \
decision_function_shape, break_ties, random_state, lam, fit_intercept, multi_class, solver, n_jobs, max_time, \
callback, on_interrupt, checkpoint, checkpoint_every
        Of the reference, as for :class:`SVC`.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, classes_, class_weight_, n_iter_, \
n_kernel_evaluations_, fit_status_, shape_fit_, n_features_in_, feature_names_in_
        Of the compressed model, as for :class:`SVC`.
    lam_, certificate_, trace_
        Of the reference.
    n_reference_support_ : int
        Support vectors of the reference.
    guarantee_ : Guarantee
        Violation and slant loss of the compressed model against the hinge loss of the reference.
    cv_shares_, cv_errors_ : ndarray
        Shares of the reference's support vectors that cross-validation looked at, and the errors; only for
        ``max_support=None``.

    See Also
    --------
    sparsify : Compress a model that is already fitted.

    Examples
    --------
    >>> from pegasos import SparseSVC
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(400, noise=0.3, random_state=0)
    >>> model = SparseSVC(C=10, gamma=1, max_support=12).fit(X, y)
    >>> len(model.support_), model.n_reference_support_ > 80
    (12, True)
    >>> model.certificate_.converged
    True
    """

    _streams = False

    def __init__(
        self,
        *,
        max_support: int | None = None,
        cv: int | Iterable[Any] = 3,
        variant: Variant = "projection",
        slant_tol: float = 0.5,
        step: float | Literal["polyak"] = "polyak",
        bias: Literal["learn", "keep"] = "learn",
        refit: bool = True,
        move: Move = "auto",
        randomized: bool = False,
        C: float = 1.0,
        kernel: str | KernelFunction = "rbf",
        degree: int = 3,
        gamma: float | Literal["scale", "auto"] = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: bool = False,
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Any = None,
        verbose: int | bool = False,
        max_iter: int = -1,
        decision_function_shape: Literal["ovr", "ovo"] = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        lam: float | None = None,
        fit_intercept: bool = True,
        multi_class: Literal["ovo", "ovr"] = "ovo",
        solver: str | KernelSolver | Solver = "auto",
        n_jobs: int | None = None,
        max_time: float | None = None,
        callback: Callback | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 30.0,
    ) -> None:
        super().__init__(
            C=C,
            kernel=kernel,
            degree=degree,
            gamma=gamma,
            coef0=coef0,
            shrinking=shrinking,
            probability=probability,
            tol=tol,
            cache_size=cache_size,
            class_weight=class_weight,
            verbose=verbose,
            max_iter=max_iter,
            decision_function_shape=decision_function_shape,
            break_ties=break_ties,
            random_state=random_state,
            lam=lam,
            fit_intercept=fit_intercept,
            multi_class=multi_class,
            solver=solver,
            n_jobs=n_jobs,
            max_time=max_time,
            callback=callback,
            on_interrupt=on_interrupt,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
        )
        self.max_support = max_support
        self.cv = cv
        self.variant = variant
        self.slant_tol = slant_tol
        self.step = step
        self.bias = bias
        self.refit = refit
        self.move = move
        self.randomized = randomized

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_parameters(
            self.max_support, self.slant_tol, self.step, self.variant, self.bias, self.refit, 1, self.cache_size
        )
        check_move(self.move, bool(self.refit), self.variant)
        self._check_flags("randomized")
        if isinstance(self.cv, Real):
            self._check_number("cv", low=2, strict=False, whole=True)

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the reference, choose the size, and compress.

        Parameters
        ----------
        X, y, sample_weight
            As for :class:`SVC`.

        Returns
        -------
        self
        """
        self._check_parameters()
        y, sample_weight = unpack(X, y, sample_weight)
        rows = self._matrix(X, reset=True)
        labels = class_labels(rows, y)
        given = row_weights(sample_weight, None, rows.shape[0])
        merged = Merged(rows, encode_labels(labels)[1], given, apart=self.kernel == "precomputed")
        rows, labels, weight = merged.take(rows), labels[merged.first], merged.weight
        reference = self._reference().fit(rows, labels, weight)
        for name in ("cv_shares_", "cv_errors_"):
            self.__dict__.pop(name, None)
        most = self._chosen_size(reference, rows, labels, merged) if self.max_support is None else self.max_support
        path = self._path(reference, rows, labels, weight, most)
        small = path.at()
        self._keep(replace(small._machine(), numbers=merged.first[small.support_]))
        self.classes_, self.class_weight_ = small.classes_, small.class_weight_
        self.shape_fit_ = (len(merged.group), self.n_features_in_)
        self.lam_, self.certificate_, self.trace_ = reference.lam_, reference.certificate_, reference.trace_
        self.n_iter_ = reference.n_iter_
        self.fit_status_ = reference.fit_status_
        self.n_kernel_evaluations_ = int(reference.n_kernel_evaluations_ + small.n_kernel_evaluations_)
        self.n_reference_support_ = len(reference.support_)
        self.guarantee_ = path.guarantee()
        return self

    def predict(self, X: Any) -> Array:
        """The class label of every row; with ``randomized``, some of them by chance."""
        if not self.randomized:
            return super().predict(X)
        return RandomizedClassifier(self, self._seed() % 2**32).predict(X)

    def _reference(self) -> SVC:
        names = SVC().get_params()
        return SVC(**{name: value for name, value in self.get_params(deep=False).items() if name in names})

    def _path(self, reference: SVC, X: Matrix, y: Array, sample_weight: Any, most: int) -> SparsePath:
        return sparsify(
            reference,
            X,
            y,
            max_support=most,
            tol=self.slant_tol,
            step=self.step,
            variant=self.variant,
            bias=self.bias,
            refit=self.refit,
            move=self.move,
            sample_weight=sample_weight,
            cache_size=float(self.cache_size),
        )

    def _chosen_size(self, reference: SVC, X: Matrix, y: Array, merged: Merged) -> int:
        """The fewest support vectors whose held-out error is within a standard error of the least."""
        pairwise = self.kernel == "precomputed"
        wrong, total, classes = np.zeros(len(VALIDATED_SHARES)), 0.0, len(np.unique(y[merged.weight > 0]))
        machine = self._reference()
        machine.set_params(gamma=reference._gamma, checkpoint=None, callback=None, verbose=False)
        for inner, outer in self._splits(merged, y):
            train, test = np.flatnonzero(inner), np.flatnonzero(outer)
            if not len(test) or len(np.unique(y[train])) < max(classes, 2):
                continue
            inside = X[train][:, train] if pairwise else X[train]
            outside = X[test][:, train] if pairwise else X[test]
            model = machine.fit(inside, y[train], inner[train])
            sizes = _shares(len(model.support_))
            path = self._path(model, inside, y[train], inner[train], sizes[-1])
            wrong += path.errors(outside, y[test], sizes, outer[test]) * float(outer.sum())
            total += float(outer.sum())
        sizes = _shares(len(reference.support_))
        if total == 0:  # classes of a row or two: nothing to choose by
            return sizes[-1]
        self.cv_shares_, self.cv_errors_ = np.array(VALIDATED_SHARES), wrong / total
        least = float(self.cv_errors_.min())
        enough = self.cv_errors_ <= least + np.sqrt(least * (1 - least) / total)
        return sizes[int(np.argmax(enough))]

    def _splits(self, merged: Merged, y: Array) -> Iterator[tuple[Array, Array]]:
        """Weights of the distinct rows to train with, and to test with."""
        if isinstance(self.cv, int | np.integer):
            fold = folds(merged.identity, encode_labels(y)[1], int(self.cv))
            for k in range(int(self.cv)):
                yield merged.weight * (fold != k), merged.weight * (fold == k)
            return
        from sklearn.model_selection import check_cv  # takes as long to import as all the rest

        given = np.where(merged.group >= 0, 0, -1)
        for train, test in check_cv(self.cv, y[merged.group], classifier=True).split(given, y[merged.group]):
            yield merged.weights_of(np.asarray(train)), merged.weights_of(np.asarray(test))


def _shares(support: int) -> list[int]:
    return [max(1, int(np.ceil(share * support))) for share in VALIDATED_SHARES]
