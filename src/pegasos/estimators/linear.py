"""Linear support vector machines with scikit-learn's names, parameters and attributes, and a certificate."""

from __future__ import annotations

import os
from typing import Any, Literal, Self

import numpy as np

from pegasos import losses
from pegasos.estimators.base import all_or_nothing, class_probabilities
from pegasos.estimators.drawn import Drawn
from pegasos.estimators.linear_model import LinearModel
from pegasos.estimators.targets import Classifier, Encoded, Regressor, has_probabilities
from pegasos.fit.loop import Callback
from pegasos.losses import CrammerSinger, Loss
from pegasos.problems.linear import LinearProblem
from pegasos.rows.labels import real_targets
from pegasos.rows.targets import unpack
from pegasos.rows.views import Array, Examples, row_weights
from pegasos.solvers import Solver
from pegasos.util.available import available_if

__all__ = ["LinearSVC", "LinearSVR"]


class LinearSVC(Classifier, LinearModel):
    """Linear support vector classification with a duality-gap certificate for every fit.

    Minimises (λ/2)‖w‖² + (1/M) Σ c_i ℓ(y_i, ⟨w, x_i⟩ + b), with λ = 1/(C·M) unless ``lam`` is given; more than two
    classes are one-vs-rest, or joint with ``loss="crammer_singer"`` or ``"multinomial"``.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against the regulariser: the objective is ½‖w‖² + C Σ c_i ℓ_i.
    lam : float, default=None
        λ = 1/(C·M), M the sum of the sample weights. If given, ``C`` is ignored.
    loss : str or Loss, default="hinge"
        "hinge", "squared_hinge", "smoothed_hinge", "log"; for all classes jointly "crammer_singer", "multinomial"; or
        an object of :mod:`pegasos.losses`, such as ``CrammerSinger(cost=...)``, or ``CustomLoss(value, slope)`` for one
        of your own.
    solver : str or Solver, default="auto"
        "auto", "pegasos", "sdca", "interior_point", "cutting_plane", "lbfgs", "norma", "sgd", "proximal",
        "dual_averaging", "passive_aggressive", or an object of :mod:`pegasos.solvers` with its own parameters, which
        ``set_params`` and grid searches reach as ``solver__batch_size``, say; those of the loss likewise.
    tol : float, default=1e-3
        Stop when the duality gap is at most ``tol`` times the objective (for every class). Float64 allows some 1e-13; a
        fit that is asked for less stops where nothing improves, and returns the best weights and bound it has seen.
    max_iter : int or float, default=1000
        Stop after so many epochs (passes over the rows, or iterations of comparable cost). The solvers "pegasos",
        "norma" and "sgd" can stop within an epoch: 0.25 is a quarter of one. Steps are counted by their ``max_steps``.
    max_time : float, default=None
        Stop after so many seconds.
    fit_intercept : bool, default=True
        Whether to learn a bias b.
    intercept : str, default="unregularized"
        How: "unregularized" (exact, agrees with ``SVC(kernel="linear")``), or one of the four ways of the 2011 paper's
        section 6: "feature" (a constant feature of value ``intercept_scaling``, as LIBLINEAR has it), "subgradient",
        "batch" (Pegasos with mini-batches), "search" (an outer search).
    intercept_scaling : float, default=1.0
        The constant feature's value for ``intercept="feature"``.
    class_weight : dict or "balanced", default=None
        Multiplies the sample weight of each class's rows, in every one-vs-rest problem.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        As in scikit-learn; "crammer_singer" is short for ``loss="crammer_singer"``.
    penalty : {"l2"}, default="l2"
        Accepted so that code for scikit-learn runs; there is no other.
    dual : bool or "auto", default="auto"
        Accepted so that code for scikit-learn runs; ``solver`` decides.
    random_state : int, RandomState or Generator, default=None
        Seed of the order in which rows are visited. None is 0: fits repeat.
    n_jobs : int, default=None
        Threads, used where they pay; the same bits for any number. None: one. −1: all processors this process may use.
    warm_start : bool, default=False
        Start from the last fit where the data have the same shape.
    verbose : bool, default=False
        Print a line for each checkpoint to standard error.
    callback : callable, default=None
        Called with a :class:`~pegasos.Checkpoint` at each checkpoint; returning True stops the fit.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does: raise KeyboardInterrupt and leave the estimator as it was, or keep the last iterate and its
        certificate.
    checkpoint : path, default=None
        A file to which ``fit`` writes its state now and then. If it exists when ``fit`` begins, the fit goes on from
        there, to the same bits as if it had never stopped; a file of another fit is refused. A fit that converges
        removes it; one that is killed, interrupted or ends at a limit leaves it.
    checkpoint_every : float, default=30.0
        Seconds between the end of one write and the next.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Biases.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    lam_ : float
        λ of the fit: ``lam``, or what ``C`` came to; of a stream that of its first call. Models that were not fitted
        here, such as LIBLINEAR's, have none.
    certificate_ : Certificate
        Objective, lower bound, gap, and why the fit stopped.
    trace_ : Trace
        The checkpoints of the fit.
    n_iter_ : int
        Epochs used.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    LinearSVR : Regression.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from pegasos import LinearSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearSVC().fit(X, y)
    >>> model.certificate_.converged
    True
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        lam: float | None = None,
        loss: str | Loss = "hinge",
        solver: str | Solver = "auto",
        tol: float = 1e-3,
        max_iter: float = 1000,
        max_time: float | None = None,
        fit_intercept: bool = True,
        intercept: str = "unregularized",
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        multi_class: Literal["ovr", "crammer_singer"] = "ovr",
        penalty: Literal["l2"] = "l2",
        dual: bool | Literal["auto"] = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int | bool = False,
        callback: Callback | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 30.0,
    ) -> None:
        self.C = C
        self.lam = lam
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.fit_intercept = fit_intercept
        self.intercept = intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.penalty = penalty
        self.dual = dual
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback
        self.on_interrupt = on_interrupt
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    def _check_parameters(self) -> None:
        if isinstance(self.C, str):
            raise ValueError(
                f"C={self.C!r} must be a number > 0; other parameters go by name, as in "
                "LinearSVC(penalty='l2', loss='hinge')"
            )
        super()._check_parameters()

    def _loss(self) -> Loss:
        self._check_word("multi_class", ("ovr", "crammer_singer"))
        if not isinstance(self.penalty, str) or self.penalty != "l2":
            raise ValueError(f"penalty={self.penalty!r}: only 'l2' is offered")
        loss = losses.resolve(self.loss, ("margin", "joint"), "LinearSVC")
        if self.multi_class == "crammer_singer" and not isinstance(loss, CrammerSinger):
            return CrammerSinger()
        return loss

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        coef_init: Any = None,
        intercept_init: Any = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features), or Dataset
            float32 and float64 arrays in C order and CSR matrices are used in place; anything else is converted once. A
            :class:`~pegasos.io.Dataset` stays on disk, and brings targets and weights along.
        y : array of shape (n_samples,)
            Class labels, numbers or strings. Left out for a Dataset.
        sample_weight : array of shape (n_samples,), default=None
            Weights ≥ 0; weight 2 is the row twice. A class without any weight stays in ``classes_``; with an
            intercept it is not predicted.
        coef_init, intercept_init : arrays in the shapes of ``coef_`` and ``intercept_``, default=None
            The first iterate w_1 of Pegasos, NORMA and SGD; other solvers have none. Any weights, or with
            ``projection=True`` any of norm at most √(mean loss at 0 / λ), which is 1/√λ for the hinge loss (the 2007
            paper). Pegasos counts them as the result of ``t0`` rows: with ``t0=0``, as published, they decide the
            first step's sub-gradient and are then forgotten. None: zeros, and the bias that the solver begins at. They
            replace what ``warm_start`` would begin with.

        Returns
        -------
        self
        """
        self._check_parameters()
        loss = self._loss()
        given = self._input(X, y, sample_weight)
        encoded = self._encoded(given.X, given.y, first=given.first)
        self._solve(
            self._classes_problem(given.data, loss, encoded, given.sample_weight, given.drawn),
            coef_init,
            intercept_init,
        )
        self.classes_ = encoded.classes
        return self

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """One epoch of Pegasos over these rows, going on from earlier calls.

        The step size counts all rows seen so far. Rows are forgotten after the call, so the certificate has a primal
        value (of these rows) but no lower bound. Give ``lam``; without it λ = 1/(C·rows of the first call). After
        :meth:`fit` it goes on from the fitted weights, with that fit's λ. ``coef_`` is the last iterate, or a mean of
        iterates with ``solver=Pegasos(output="average")`` or ``"suffix"``. ``trace_`` has a record a call; of more than
        1,000 every other one goes.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`.
        classes : array, default=None
            All class labels that will ever come; needed in the first call, unless it follows a fit.

        Returns
        -------
        self
        """
        self._check_parameters()
        loss = self._loss()
        y, sample_weight = unpack(X, y, sample_weight)
        known = self._declared(classes)
        X, data = self._rows(X, reset=self._stream is None)
        self._fit_piece(self._classes_problem(data, loss, self._encoded(X, y, known), sample_weight))
        self.classes_ = known
        return self

    def _classes_problem(
        self, data: Examples, loss: Loss, y: Encoded, sample_weight: Any, drawn: Drawn | None = None
    ) -> LinearProblem:
        """The problem of rows with these labels: two classes are ±1, unless they are scored jointly."""
        weight = row_weights(sample_weight, None if y.factors is None else y.factors[y.codes], data.m)
        if len(y.classes) == 2 and loss.kind != "joint":
            return self._problem(data, loss, 2.0 * y.codes - 1.0, 1, weight, drawn)
        return self._problem(data, loss, np.ascontiguousarray(y.codes), len(y.classes), weight, drawn)

    def _as_attributes(self, W: Array, b: Array) -> tuple[Array, Array]:
        if len(W) == 2:  # two classes scored jointly: what counts is the difference
            return W[1:] - W[:1], b[1:] - b[:1]
        if self._loss().kind == "joint" and self.intercept != "feature":
            return W, b - b.mean()  # joint losses see only differences of biases: choose those that add up to zero
        return W, b

    def decision_function(self, X: Any) -> Array:
        """Scores: (n_samples,) for two classes (positive: the second), else (n_samples, n_classes)."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Array:
        """The class label of every row."""
        scores = self.decision_function(X)
        index = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[index])

    def _has_probabilities(self) -> bool:
        if losses.link_of(self.loss) and self.multi_class == "ovr":
            return True
        name = self.loss.name if isinstance(self.loss, Loss) else self.loss
        raise AttributeError(
            f"predict_proba needs {losses.with_link(('margin', 'joint'))}, not {name!r}. For probabilities from this "
            "loss wrap the estimator in sklearn.calibration.CalibratedClassifierCV."
        )

    @available_if(has_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, for the log and multinomial losses; one-vs-rest probabilities are normalised."""
        from scipy.special import softmax  # takes as long to import as all the rest of this module

        scores = self.decision_function(X)
        if scores.ndim == 2 and losses.link_of(self.loss) == "softmax":
            return np.asarray(softmax(scores, axis=1))
        return class_probabilities(scores)


class LinearSVR(Regressor, LinearModel):
    """Linear support vector regression, and other convex regression losses, with a certificate for every fit.

    Minimises (λ/2)‖w‖² + (1/M) Σ c_i ℓ(y_i, ⟨w, x_i⟩ + b), with λ = 1/(C·M) unless ``lam`` is given.

    Parameters
    ----------
    epsilon : float, default=0.0
        Half the width of the tube of the (squared) ε-insensitive losses given by name.
    C : float, default=1.0
        Weight of the losses against the regulariser: the objective is ½‖w‖² + C Σ c_i ℓ_i.
    lam : float, default=None
        λ = 1/(C·M), M the sum of the sample weights. If given, ``C`` is ignored.
    loss : str or Loss, default="epsilon_insensitive"
        "epsilon_insensitive", "squared_epsilon_insensitive", "squared", "huber", "quantile", or an object of
        :mod:`pegasos.losses` such as ``Quantile(tau=0.9)``, or ``CustomLoss(value, slope, kind="regression")``.
    solver : str or Solver, default="auto"
        As for :class:`LinearSVC`.
    tol, max_iter, max_time, fit_intercept, intercept, intercept_scaling, dual, random_state, n_jobs, warm_start, \
verbose, callback, on_interrupt, checkpoint, checkpoint_every
        As for :class:`LinearSVC`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights.
    intercept_ : ndarray of shape (1,)
        Bias.
    lam_, certificate_, trace_, n_iter_, n_features_in_, feature_names_in_
        As for :class:`LinearSVC`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from pegasos import LinearSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LinearSVR(C=100.0).fit(X, y)
    >>> model.certificate_.converged
    True
    """

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        C: float = 1.0,
        lam: float | None = None,
        loss: str | Loss = "epsilon_insensitive",
        solver: str | Solver = "auto",
        tol: float = 1e-3,
        max_iter: float = 1000,
        max_time: float | None = None,
        fit_intercept: bool = True,
        intercept: str = "unregularized",
        intercept_scaling: float = 1.0,
        dual: bool | Literal["auto"] = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int | bool = False,
        callback: Callback | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 30.0,
    ) -> None:
        self.epsilon = epsilon
        self.C = C
        self.lam = lam
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.fit_intercept = fit_intercept
        self.intercept = intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback
        self.on_interrupt = on_interrupt
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    def _as_attributes(self, W: Array, b: Array) -> tuple[Array, Array]:
        return W[0], b

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        coef_init: Any = None,
        intercept_init: Any = None,
    ) -> Self:
        """Fit the model; see :meth:`LinearSVC.fit`. ``y``: numbers.

        Returns
        -------
        self
        """
        self._check_parameters()
        loss = self._loss()
        given = self._input(X, y, sample_weight)
        weight = row_weights(given.sample_weight, None, given.data.m)
        target = real_targets(given.X, given.y, given.first)
        self._solve(self._problem(given.data, loss, target, 1, weight, given.drawn), coef_init, intercept_init)
        return self

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """One epoch of Pegasos over these rows, going on from earlier calls; see :meth:`LinearSVC.partial_fit`.

        Unless ``solver`` is one of :class:`~pegasos.solvers.Pegasos`, ``Norma``, ``SGD`` and ``PassiveAggressive``, or
        their names, the weights are the mean of the iterates of the last half to three quarters of the rows.

        Returns
        -------
        self
        """
        self._check_parameters()
        loss = self._loss()
        y, sample_weight = unpack(X, y, sample_weight)
        X, data = self._rows(X, reset=self._stream is None)
        weight = row_weights(sample_weight, None, data.m)
        self._fit_piece(self._problem(data, loss, real_targets(X, y), 1, weight))
        return self

    def predict(self, X: Any) -> Array:
        """⟨w, x⟩ + b for every row."""
        return self._scores(X)[:, 0]
