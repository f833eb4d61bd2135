"""Kernel support vector machines with scikit-learn's names, parameters and attributes, and a certificate."""

from __future__ import annotations

import os
from itertools import combinations
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from pegasos._data import Array, encode_labels, row_weights
from pegasos._dataset import unpack
from pegasos._estimator import all_or_nothing
from pegasos._fit import Callback
from pegasos._kernel_model import KernelModel
from pegasos._kernel_problem import Part
from pegasos._kernels import KernelFunction
from pegasos._targets import class_factors, class_labels, real_targets
from pegasos.losses import EpsilonInsensitive, Hinge
from pegasos.solvers import KernelSolver

__all__ = ["SVC", "SVR"]


class SVC(ClassifierMixin, KernelModel):  # type: ignore[misc]
    """Support vector classification with kernels, and a duality-gap certificate for every fit.

    Minimises ½‖w‖² + C Σ c_i max(0, 1 − y_i(⟨w, φ(x_i)⟩ + b)), where ⟨φ(a), φ(x)⟩ = K(a, x); more than two classes are
    one-vs-one.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against the regulariser.
    kernel : str or callable, default="rbf"
        "linear" ⟨a, x⟩, "poly" (γ⟨a, x⟩ + coef0)^degree, "rbf" exp(−γ‖a − x‖²), "sigmoid" tanh(γ⟨a, x⟩ + coef0),
        "laplacian" exp(−γ‖a − x‖₁), "chi2" exp(−γ Σ(a_k − x_k)²/(a_k + x_k)) for features ≥ 0, "precomputed" (X is the
        kernel matrix), or a function that takes rows A and rows B and returns the values, len(A) × len(B).
    degree : int, default=3
        Of "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        γ. "scale": 1/(n_features · variance of X); "auto": 1/n_features.
    coef0 : float, default=0.0
        Of "poly" and "sigmoid".
    shrinking, probability
        Accepted so that code for scikit-learn runs; the first changes nothing, and ``probability=True`` is refused:
        wrap the estimator in ``sklearn.calibration.CalibratedClassifierCV``.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the solvers that draw rows at random; None means 0. :class:`~pegasos.solvers.SMO` draws none.
    tol : float, default=1e-3
        Stop when no pair of dual variables violates the optimality conditions by more than ``tol``, as LIBSVM does, and
        the duality gap is at most ``tol`` times the objective (for every pair of classes).
    cache_size : float, default=200
        Megabytes of kernel rows that are kept.
    class_weight : dict or "balanced", default=None
        Multiplies C for each class's rows.
    verbose : bool, default=False
        Print a line for each checkpoint to standard error.
    max_iter : int, default=-1
        Stop after so many steps on a pair of classes; −1: no limit.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        What ``decision_function`` returns for more than two classes: a column for each class, or for each pair.
    break_ties : bool, default=False
        Whether ``predict`` breaks ties between classes by the decision function (for "ovr").
    lam : float, default=None
        λ = 1/(C·M), M the sum of the sample weights. Wins over ``C`` where given.
    solver : str or KernelSolver, default="auto"
        "smo", "lasvm", "sbp", "nystroem", or an object with its own parameters. "auto" is
        :class:`~pegasos.solvers.SMO`, above 200 000 rows :class:`~pegasos.solvers.Nystroem`.
    n_jobs : int, default=None
        Threads, for fitting and predicting; the same bits for any number. None: one. −1: all cores.
    max_time : float, default=None
        Stop after so many seconds.
    callback : callable, default=None
        Called with a :class:`~pegasos.Checkpoint` at each checkpoint, whose ``coef`` are the dual variables; returning
        True stops the fit.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does: raise KeyboardInterrupt and leave the estimator as it was, or keep what there is.
    checkpoint : path, default=None
        A file to which ``fit`` writes its state now and then, and from which it goes on; see
        :class:`~pegasos.LinearSVC`.
    checkpoint_every : float, default=30.0
        Seconds between the end of one write and the next.

    Attributes
    ----------
    support_ : ndarray of shape (n_SV,)
        The numbers of the support vectors, class by class.
    support_vectors_ : array or CSR matrix of shape (n_SV, n_features)
        The support vectors; empty for a precomputed kernel.
    n_support_ : ndarray of shape (n_classes,)
        How many of each class.
    dual_coef_ : array of shape (n_classes − 1, n_SV)
        Coefficients of the support vectors in the decision functions of their class against each other one.
    intercept_ : ndarray of shape (n_classes · (n_classes − 1) / 2,)
        Biases of the decision functions.
    coef_ : array of shape (n_classes · (n_classes − 1) / 2, n_features)
        Weights, for ``kernel="linear"``.
    classes_, class_weight_ : ndarray of shape (n_classes,)
        Labels, and what multiplies C for each.
    certificate_ : Certificate
        Objective, lower bound, gap, and why the fit stopped; of several pairs, their sums.
    trace_ : Trace
        The checkpoints of the fit.
    n_iter_ : ndarray of shape (n_classes · (n_classes − 1) / 2,)
        Steps, each of a pair of variables; of Nystroem, passes over the rows.
    n_kernel_evaluations_ : int
        Kernel values computed to fit, without those of certificates.
    sbp_ : tuple of SBPResult
        With the solver :class:`~pegasos.solvers.SBP`, for each pair of classes: ``nu``, ``gamma`` reached, an ``upper``
        bound of it, and ``steps``.
    fit_status_, shape_fit_, n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    SVR : Regression.
    LinearSVC : Much faster, for the linear kernel.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pegasos import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC(gamma=0.5).fit(X, y)
    >>> model.certificate_.converged
    True
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    def __init__(
        self,
        *,
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
        solver: str | KernelSolver = "auto",
        n_jobs: int | None = None,
        max_time: float | None = None,
        callback: Callback | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 30.0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.lam = lam
        self.solver = solver
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.callback = callback
        self.on_interrupt = on_interrupt
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.probability:
            raise ValueError(
                "probability=True is not offered; wrap the estimator in sklearn.calibration.CalibratedClassifierCV"
            )
        if self.decision_function_shape not in ("ovr", "ovo"):
            raise ValueError(f"decision_function_shape={self.decision_function_shape!r} is neither 'ovr' nor 'ovo'")

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features), or Dataset
            Rows; for ``kernel="precomputed"`` the kernel matrix (n_samples, n_samples).
        y : array of shape (n_samples,)
            Class labels, numbers or strings. Left out for a Dataset.
        sample_weight : array of shape (n_samples,), default=None
            Weights ≥ 0, which multiply C; weight 2 is the row twice.

        Returns
        -------
        self
        """
        self._check_parameters()
        y, sample_weight = unpack(X, y, sample_weight)
        X = self._matrix(X, reset=True)
        labels = class_labels(X, y)
        classes, codes = encode_labels(labels)
        if len(classes) < 2:
            raise ValueError(f"SVC needs 2 or more classes, but y has one class only: {classes.tolist()[0]!r}")
        given = row_weights(sample_weight, None, X.shape[0])
        factors = class_factors(self.class_weight, classes, labels)
        factors = np.ones(len(classes)) if factors is None else factors
        weight = factors[codes] if given is None else given * factors[codes]
        lacking = np.bincount(codes, weights=weight, minlength=len(classes)) == 0
        if np.count_nonzero(~lacking) < 2:
            left = classes.tolist()[int(np.argmin(lacking))]
            raise ValueError(f"sample_weight leaves one class only, where y has more: {left!r}")
        if lacking.any():
            raise ValueError(
                f"sample_weight or class_weight leaves nothing of class {classes.tolist()[int(np.argmax(lacking))]!r}; "
                "drop its rows instead"
            )
        kernel = self._resolved(X, given)
        total = float(X.shape[0] if given is None else given.sum())
        lam = self._lam(total)
        pieces = _pairs(codes, len(classes), weight, 1.0 / (lam * total))
        problem = self._problem(X, kernel, pieces, lam, total)
        result, steps = self._solve(problem)
        self.classes_, self.class_weight_ = classes, factors
        self._lay_out(X, codes, pieces, problem.split(result.W), result.b)
        self.n_iter_ = np.maximum(np.array(steps, dtype=np.int32), 1)
        return self

    def _lay_out(self, X: Any, codes: Array, pieces: list[Part], gammas: list[Array], b: Array) -> None:
        """Dual variables of all pairs as scikit-learn has them."""
        k = len(self.classes_)
        table = np.zeros((k - 1, X.shape[0]))
        if k == 2:
            table[0] = gammas[0]
        else:
            for (i, j), part, gamma in zip(combinations(range(k), 2), pieces, gammas, strict=True):
                assert part.index is not None
                own = codes[part.index] == i
                table[j - 1, part.index[own]] = gamma[own]
                table[i, part.index[~own]] = gamma[~own]
        used = np.flatnonzero(table.any(axis=0))
        support = used[np.argsort(codes[used], kind="stable")]
        self._keep_support(X, support)
        self.n_support_ = np.bincount(codes[support], minlength=k).astype(np.int32)
        coef = np.ascontiguousarray(table[:, support])
        self.dual_coef_ = self._like_rows(coef, X)
        self.intercept_ = b

    def _pair_coefficients(self) -> Array:
        """Coefficients of all support vectors in the decision function of each pair of classes."""
        dual, k = self._dense_coefficients(), len(self.classes_)
        if k == 2:
            return dual
        ends = np.cumsum(self.n_support_)
        slices = [slice(end - n, end) for end, n in zip(ends, self.n_support_, strict=True)]
        coef = np.zeros((k * (k - 1) // 2, dual.shape[1]))
        for row, (i, j) in zip(coef, combinations(range(k), 2), strict=True):
            row[slices[i]] = dual[j - 1, slices[i]]
            row[slices[j]] = dual[i, slices[j]]
        return coef

    @property
    def coef_(self) -> Any:
        """Weights of the decision functions, for ``kernel="linear"``."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        check_is_fitted(self)
        coef = self._pair_coefficients()
        return self._like_rows(coef, self.support_vectors_) @ self.support_vectors_

    def decision_function(self, X: Any) -> Array:
        """Scores: (n_samples,) for two classes (positive: the second), else a column for each class or pair.

        For ``decision_function_shape="ovr"`` a class's score is the number of classes it wins against, and a fraction
        that says by how much.
        """
        from sklearn.utils.multiclass import _ovr_decision_function

        scores = self._pair_scores(X)
        if scores.shape[1] == 1:
            return scores[:, 0]
        if self.decision_function_shape == "ovo":
            return scores
        return np.asarray(_ovr_decision_function(scores < 0, -scores, len(self.classes_)))

    def _pair_scores(self, X: Any) -> Array:
        check_is_fitted(self)
        return self._scores(X, self._pair_coefficients()) + self.intercept_

    def predict(self, X: Any) -> Array:
        """The class label of every row: of several classes, the one that wins most often against others."""
        check_is_fitted(self)
        k = len(self.classes_)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        if self.break_ties and k > 2:
            return np.asarray(self.classes_[self.decision_function(X).argmax(axis=1)])
        scores = self._pair_scores(X)
        if k == 2:
            return np.asarray(self.classes_[(scores[:, 0] > 0).astype(int)])
        votes = np.zeros((len(scores), k), dtype=np.int32)
        for score, (i, j) in zip(scores.T, combinations(range(k), 2), strict=True):
            votes[:, i] += score > 0
            votes[:, j] += score <= 0
        return np.asarray(self.classes_[votes.argmax(axis=1)])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of rows whose label is predicted rightly; a :class:`~pegasos.io.Dataset` brings its labels."""
        y, sample_weight = unpack(X, y, sample_weight)
        return float(super().score(X, y, sample_weight))


class SVR(RegressorMixin, KernelModel):  # type: ignore[misc]
    """Support vector regression with kernels, and a duality-gap certificate for every fit.

    Minimises ½‖w‖² + C Σ c_i max(0, |y_i − ⟨w, φ(x_i)⟩ − b| − ε), where ⟨φ(a), φ(x)⟩ = K(a, x).

    Parameters
    ----------
    kernel, degree, gamma, coef0, tol, C
        As for :class:`SVC`.
    epsilon : float, default=0.1
        Half the width of the tube within which errors count nothing.
    shrinking, cache_size, verbose, max_iter, random_state, lam, solver, n_jobs, max_time, callback, on_interrupt, \
checkpoint, checkpoint_every
        As for :class:`SVC`.

    Attributes
    ----------
    support_, support_vectors_, certificate_, trace_, n_kernel_evaluations_, fit_status_, shape_fit_, coef_, \
n_features_in_, feature_names_in_
        As for :class:`SVC`.
    n_support_ : ndarray of shape (1,)
        How many support vectors there are.
    dual_coef_ : array of shape (1, n_SV)
        Coefficients of the support vectors.
    intercept_ : ndarray of shape (1,)
        Bias.
    n_iter_ : int
        Steps, each of a pair of variables.

    Examples
    --------
    >>> import numpy as np
    >>> from pegasos import SVR
    >>> x = np.linspace(0, 3, 50)[:, None]
    >>> model = SVR(C=10.0, epsilon=0.01).fit(x, np.sin(x[:, 0]))
    >>> model.certificate_.converged
    True
    >>> bool(model.score(x, np.sin(x[:, 0])) > 0.95)
    True
    """

    def __init__(
        self,
        *,
        kernel: str | KernelFunction = "rbf",
        degree: int = 3,
        gamma: float | Literal["scale", "auto"] = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        shrinking: bool = True,
        cache_size: float = 200,
        verbose: int | bool = False,
        max_iter: int = -1,
        random_state: Any = None,
        lam: float | None = None,
        solver: str | KernelSolver = "auto",
        n_jobs: int | None = None,
        max_time: float | None = None,
        callback: Callback | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 30.0,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.random_state = random_state
        self.lam = lam
        self.solver = solver
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.callback = callback
        self.on_interrupt = on_interrupt
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model; see :meth:`SVC.fit`. ``y``: numbers.

        Returns
        -------
        self
        """
        self._check_parameters()
        loss = EpsilonInsensitive(self.epsilon)
        y, sample_weight = unpack(X, y, sample_weight)
        X = self._matrix(X, reset=True)
        target = real_targets(X, y)
        given = row_weights(sample_weight, None, X.shape[0])
        weight = np.ones(X.shape[0]) if given is None else given
        kernel = self._resolved(X, given)
        total = float(weight.sum())
        lam = self._lam(total)
        part = Part(None, target, weight, loss, 1.0 / (lam * total))
        result, steps = self._solve(self._problem(X, kernel, [part], lam, total))
        coef = part.coefficients(result.W)
        support = np.flatnonzero(coef)
        self._keep_support(X, support)
        self.n_support_ = np.array([len(support)], dtype=np.int32)
        coef = coef[None, support]
        self.dual_coef_ = self._like_rows(coef, X)
        self.intercept_ = result.b
        self.n_iter_ = max(steps[0], 1)
        return self

    @property
    def coef_(self) -> Any:
        """Weights, for ``kernel="linear"``."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        check_is_fitted(self)
        return self.dual_coef_ @ self.support_vectors_

    def predict(self, X: Any) -> Array:
        """The value of every row."""
        check_is_fitted(self)
        return np.asarray(self._scores(X, self._dense_coefficients())[:, 0] + self.intercept_[0])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The coefficient of determination R²; a :class:`~pegasos.io.Dataset` brings its targets along."""
        y, sample_weight = unpack(X, y, sample_weight)
        return float(super().score(X, y, sample_weight))


def _pairs(codes: Array, n_classes: int, weight: Array, C: float) -> list[Part]:
    """A part for each pair of classes. Of two classes the second is positive, of a pair of several the first."""
    if n_classes == 2:
        return [Part(None, np.where(codes == 1, 1.0, -1.0), np.ascontiguousarray(weight), Hinge(), C)]
    parts = []
    for i, j in combinations(range(n_classes), 2):
        index = np.flatnonzero((codes == i) | (codes == j))
        parts.append(Part(index, np.where(codes[index] == i, 1.0, -1.0), weight[index], Hinge(), C))
    return parts
