"""Support vector regression with kernels."""

from __future__ import annotations

import os
from typing import Any, Literal, Self

import numpy as np

from pegasos.estimators.base import all_or_nothing
from pegasos.estimators.kernel_model import KernelModel, takes_rows
from pegasos.estimators.targets import Regressor
from pegasos.fit.loop import Callback
from pegasos.kernels.functions import KernelFunction
from pegasos.losses import Loss
from pegasos.problems.part import Part
from pegasos.rows.labels import real_targets
from pegasos.rows.targets import unpack
from pegasos.rows.views import Array, row_weights
from pegasos.solvers import KernelSolver, Solver
from pegasos.util.available import available_if


class SVR(Regressor, KernelModel):
    """Support vector regression with kernels, and a duality-gap certificate for every fit.

    Minimises ½‖w‖² + C Σ c_i ℓ(y_i, ⟨w, φ(x_i)⟩ + b), where ⟨φ(a), φ(x)⟩ = K(a, x) and ℓ is
    ``max(0, |y − z| − ε)`` unless ``loss`` says otherwise.

    Parameters
    ----------
    kernel, degree, gamma, coef0, tol, C
        As for :class:`SVC`.
    epsilon : float, default=0.1
        Half the width of the tube within which errors count nothing, of the (squared) ε-insensitive losses given by
        name.
    loss : str or Loss, default="epsilon_insensitive"
        "epsilon_insensitive", "squared_epsilon_insensitive", "squared", "huber", "quantile", or an object of
        :mod:`pegasos.losses` such as ``Quantile(tau=0.9)``. SMO can the first only; "auto" takes SDCA for the others.
    shrinking, cache_size, verbose, max_iter, random_state, lam, fit_intercept, intercept, intercept_scaling, solver, \
n_jobs, max_time, callback, on_interrupt, checkpoint, checkpoint_every
        As for :class:`SVC`.

    Attributes
    ----------
    support_, support_vectors_, lam_, certificate_, trace_, n_kernel_evaluations_, fit_status_, shape_fit_, coef_, \
n_features_in_, feature_names_in_
        As for :class:`SVC`.
    n_support_ : ndarray of shape (1,)
        How many support vectors there are.
    dual_coef_ : array of shape (1, n_SV)
        Coefficients of the support vectors.
    intercept_ : ndarray of shape (1,)
        Bias.
    n_iter_ : int
        Steps, each of a pair of variables, or epochs; see ``max_iter`` of :class:`SVC`.

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
        loss: str | Loss = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept: str = "unregularized",
        intercept_scaling: float = 1.0,
        solver: str | Solver | KernelSolver = "auto",
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
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept = intercept
        self.intercept_scaling = intercept_scaling
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
        loss = self._loss()
        y, sample_weight = unpack(X, y, sample_weight)
        X = self._matrix(X, reset=True)
        target = real_targets(X, y)
        given = row_weights(sample_weight, None, X.shape[0])
        weight, codes = np.ones(X.shape[0]) if given is None else given, np.zeros(X.shape[0], dtype=np.int64)
        kernel, total = self._resolved(X, given), float(weight.sum())
        lam = self._lam(total)
        part = Part(None, target, weight, loss, 1.0 / (lam * total))
        machine, steps = self._solve(self._problem(X, kernel, [part], lam, total), codes, 1)
        self._keep(machine)
        self.n_iter_ = max(int(steps[0]), 1)
        return self

    @available_if(takes_rows)
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """One epoch of Pegasos over these rows, going on from earlier calls; see :meth:`SVC.partial_fit`.

        Unless ``solver`` is Pegasos, the coefficients are means of iterates; see
        :meth:`LinearSVR.partial_fit <pegasos.LinearSVR.partial_fit>`.

        Returns
        -------
        self
        """
        self._check_parameters()
        loss = self._loss()
        y, sample_weight = unpack(X, y, sample_weight)
        X = self._matrix(X, reset=self._stream is None)
        target = real_targets(X, y)
        given = row_weights(sample_weight, None, X.shape[0])
        weight, codes = np.ones(X.shape[0]) if given is None else given, np.zeros(X.shape[0], dtype=np.int64)
        self.n_iter_ = self._fit_piece(X, lambda C: [Part(None, target, weight, loss, C)], given, codes, 1)
        return self

    def predict(self, X: Any) -> Array:
        """The value of every row."""
        return self._scores(X)[:, 0]
