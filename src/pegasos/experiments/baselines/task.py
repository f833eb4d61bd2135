"""What every method is given, and what every method returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np

from pegasos.estimators.svc import SVC
from pegasos.experiments.baselines.basis import Basis
from pegasos.kernels import expansion, functions
from pegasos.kernels.functions import Kernel
from pegasos.kernels.layout import compact
from pegasos.losses import Hinge
from pegasos.problems.feasible import best_bias
from pegasos.rows.labels import class_labels
from pegasos.rows.views import Array, encode_labels
from pegasos.util.arrays import Matrix
from pegasos.util.threads import thread_count


class Task:
    """Two classes of rows, a kernel and C: minimise ½‖w‖² + C Σ max(0, 1 − y_i(⟨w, φ(x_i)⟩ + b)), by few points.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        Rows.
    y : array of shape (n_samples,)
        Labels of two classes.
    C : float, default=1.0
        Weight of the losses.
    kernel : str, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "laplacian" or "chi2"; the methods that make new points need "rbf".
    gamma : float, "scale" or "auto", default="scale"
        Of the kernel, as in :class:`~pegasos.SVC`.
    degree, coef0
        Of the kernel.
    reference : SVC, default=None
        A machine fitted on these rows, of these parameters. None: fitted when a method first asks for it.
    n_jobs : int, default=None
        Threads.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from pegasos.experiments import Task
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> task = Task(X, y, C=1.0, gamma=1.0)
    >>> task.reference.certificate_.converged
    True
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        C: float = 1.0,
        kernel: str = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        reference: SVC | None = None,
        n_jobs: int | None = None,
    ) -> None:
        if not isinstance(kernel, str) or kernel not in functions.NATIVE:
            raise ValueError(f"kernel={kernel!r} is none of {', '.join(functions.NATIVE)}")
        self._model = SVC(C=C, kernel=kernel, gamma=gamma, degree=degree, coef0=coef0, n_jobs=n_jobs)  # type: ignore[arg-type]
        self._model._check_parameters()
        self.threads = thread_count(n_jobs)
        self.X = compact(self._model._matrix(X, reset=True))
        labels = class_labels(self.X, y)
        self.classes, codes = encode_labels(labels)
        if len(self.classes) != 2:
            raise ValueError(f"y has {len(self.classes)} classes, not two: {self.classes.tolist()[:5]}")
        self.labels, self.y = labels, np.where(codes == 1, 1.0, -1.0)
        self.C, self.kernel = float(C), self._model._resolved(self.X, None)
        if reference is not None:
            self._check(reference)
            self.reference = reference

    def _check(self, reference: SVC) -> None:
        fitted_on = tuple(getattr(reference, "shape_fit_", ()))
        if fitted_on != self.X.shape:
            raise ValueError(f"the reference was fitted on rows of shape {fitted_on}, but X has {self.X.shape}")
        if not np.array_equal(reference.classes_, self.classes):
            raise ValueError(
                f"the reference knows classes {reference.classes_.tolist()}, y has {self.classes.tolist()}"
            )
        if reference.kernel != self.kernel.name or reference._gamma != self.kernel.gamma:
            raise ValueError(
                f"the reference has kernel {reference.kernel!r} with gamma {reference._gamma}, "
                f"not {self.kernel.name!r} with {self.kernel.gamma}"
            )

    @property
    def m(self) -> int:
        """Rows."""
        return int(self.X.shape[0])

    @cached_property
    def reference(self) -> SVC:
        """The machine with all its support vectors."""
        return self._model.fit(self.X, self.labels)

    @cached_property
    def expansion(self) -> Expansion:
        """The reference as an expansion."""
        support = self.reference.support_.astype(np.int64)
        return self.on_rows("reference", support, self.reference._dense_coefficients()[0], self.reference.intercept_[0])

    def basis(self, capacity: int) -> Basis:
        """An empty basis over the rows."""
        return Basis(self.X, self.kernel, min(capacity, self.m), self.threads)

    def on_rows(self, method: str, rows: Array, coef: Array, bias: float, **details: object) -> Expansion:
        """A result whose points are rows; equal rows are one, and those of coefficient zero are left out."""
        distinct, back = np.unique(rows, return_inverse=True)
        total = np.bincount(back, weights=coef, minlength=len(distinct))
        used = total != 0
        distinct = distinct[used].astype(np.int64)
        return Expansion(
            method, self.kernel, self.X[distinct], total[used], float(bias), self.classes, self.m, distinct, details
        )

    def on_points(self, method: str, points: Matrix, coef: Array, bias: float, **details: object) -> Expansion:
        """A result of new points."""
        return Expansion(method, self.kernel, points, coef, float(bias), self.classes, self.m, None, details)

    def best_bias(self, scores: Array) -> float:
        """The bias of the least hinge loss for scores without one."""
        return best_bias(Hinge().scalar(), scores, self.y, np.ones(self.m))

    def chosen_rows(self, name: str, value: object) -> Array:
        """The rows that "all" or "support" mean; ``name`` is the parameter that says so."""
        if value not in ("all", "support"):
            raise ValueError(f"{name}={value!r} is neither 'all' nor 'support'")
        if value == "all":
            return np.arange(self.m)
        assert self.expansion.rows is not None
        return self.expansion.rows

    def weight(self, C: float | None) -> float:
        """C as given, or the task's."""
        if C is None:
            return self.C
        return positive("C", C)

    def needs_rbf(self, method: str) -> None:
        """Refuse other kernels for a method whose points move."""
        if self.kernel.name != "rbf" or self.kernel.gamma <= 0:
            raise ValueError(
                f"{method} makes new points, which needs kernel='rbf' with gamma > 0, "
                f"not {self.kernel.name!r} with gamma {self.kernel.gamma}"
            )


@dataclass(frozen=True)
class Expansion:
    """f(x) = Σ_j coef_j K(z_j, x) + bias: what every method returns.

    Attributes
    ----------
    method : str
        Who made it.
    kernel : Kernel
        K.
    vectors : array or CSR matrix of shape (size, n_features)
        The z_j.
    coef : ndarray of shape (size,)
        Coefficients.
    bias : float
        Bias.
    classes : ndarray of shape (2,)
        Labels; a positive f means the second.
    n_samples : int
        Rows that the method was given.
    rows : ndarray of shape (size,) or None
        The z_j as rows of the task's X; None for new points.
    details : dict
        What the method has to say, such as its objective.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from pegasos.experiments import Task, random_basis
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> (small,) = random_basis(Task(X, y, gamma=1.0), [10])
    >>> small.size, bool(small.score(X, y) > 0.8), len(small.to_svc().support_vectors_)
    (10, True, 10)
    """

    method: str
    kernel: Kernel
    vectors: Matrix = field(repr=False)
    coef: Array = field(repr=False)
    bias: float
    classes: Array = field(repr=False)
    n_samples: int = field(repr=False)
    rows: Array | None = field(repr=False, default=None)
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Points."""
        return len(self.coef)

    def decision_function(self, X: Any) -> Array:
        """f of every row."""
        return self.to_svc().decision_function(X)

    def predict(self, X: Any) -> Array:
        """The class of every row."""
        return self.to_svc().predict(X)

    def score(self, X: Any, y: Any) -> float:
        """The share of rows whose class is predicted rightly."""
        return float(np.mean(self.predict(X) == y))

    def to_svc(self) -> SVC:
        """The same function as a fitted :class:`~pegasos.SVC`, to be saved, loaded and used as any other."""
        k = self.kernel
        model = SVC(kernel=k.name, gamma=k.gamma, coef0=k.coef0, degree=k.degree)
        # SVC lays out its support vectors by class; the sign of a coefficient says whose it is.
        order = np.argsort(self.coef > 0, kind="stable")
        numbers = np.arange(self.size) if self.rows is None else self.rows[order]
        sizes, bias = np.bincount(self.coef > 0, minlength=2), np.array([self.bias])
        model._keep(expansion.Expansion(k, self.vectors[order], self.coef[order][None], bias, sizes, numbers))
        model.classes_, model.class_weight_ = self.classes, np.ones(2)
        model.n_features_in_ = int(self.vectors.shape[1])
        model.shape_fit_ = (self.n_samples, model.n_features_in_)
        model.fit_status_, model.n_iter_ = 0, np.ones(1, dtype=np.int32)
        return model


def positive(name: str, value: object) -> float:
    """A parameter that must be a finite number above 0."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < np.inf:
        raise ValueError(f"{name}={value!r} must be a number > 0")
    return float(value)


def count(name: str, value: object) -> int:
    """A parameter that must be a whole number, 1 or more."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}={value!r} must be a whole number >= 1")
    return int(value)


def checked_sizes(sizes: Sequence[int], limit: int | None = None) -> list[int]:
    """Sizes in order, each at least 1; those beyond ``limit`` become it."""
    for size in sizes:
        if not isinstance(size, Integral) or isinstance(size, bool) or size < 1:
            raise ValueError(f"sizes has {size!r}, which is not a whole number >= 1")
    if not len(sizes):
        raise ValueError("sizes is empty; give the numbers of points that are wanted")
    return sorted({int(size) if limit is None else min(int(size), limit) for size in sizes})
