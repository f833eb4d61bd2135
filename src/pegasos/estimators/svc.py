"""Support vector classification with kernels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np

from pegasos import losses
from pegasos.estimators.absent_classes import alone, with_absent
from pegasos.estimators.base import all_or_nothing, class_probabilities
from pegasos.estimators.kernel_model import KernelModel, takes_rows
from pegasos.estimators.multiclass import parts_of
from pegasos.estimators.targets import Classifier, has_probabilities
from pegasos.fit.certificate import Certificate
from pegasos.fit.loop import Callback
from pegasos.fit.trace import Trace
from pegasos.kernels.expansion import Expansion
from pegasos.kernels.functions import Kernel, KernelFunction
from pegasos.kernels.pairs import PairMachine
from pegasos.losses import Loss
from pegasos.problems.part import Part
from pegasos.rows.targets import unpack
from pegasos.rows.views import Array, row_weights
from pegasos.solvers import KernelSolver, Solver
from pegasos.util.arrays import Matrix
from pegasos.util.available import available_if


def _counts(steps: Sequence[int] | Array) -> Array:
    """Numbers of steps, in scikit-learn's type: from 1 to as many as it can tell."""
    return np.clip(np.array(steps, dtype=np.int64), 1, np.iinfo(np.int32).max).astype(np.int32)


class SVC(Classifier, KernelModel):
    """Support vector classification with kernels, and a duality-gap certificate for every fit.

    Minimises ½‖w‖² + C Σ c_i ℓ(y_i, ⟨w, φ(x_i)⟩ + b), where ⟨φ(a), φ(x)⟩ = K(a, x) and ℓ is the hinge loss unless
    ``loss`` says otherwise; more than two classes are one-vs-one, or one-vs-rest.

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
        γ. "scale": 1/(n_features · variance of X), in which rows count by their sample weight; "auto": 1/n_features.
    coef0 : float, default=0.0
        Of "poly" and "sigmoid".
    shrinking, probability
        Accepted so that code for scikit-learn runs; the first changes nothing, and ``probability=True`` is refused:
        wrap the estimator in ``sklearn.calibration.CalibratedClassifierCV``.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the solvers that draw rows or their order at random; None means 0: fits repeat. SMO draws nothing.
    tol : float, default=1e-3
        Stop when the duality gap is at most ``tol`` times the objective (for every pair of classes, or every class). Of
        kernels not known to be positive semi-definite there is none: SMO and LASVM then stop when no pair of dual
        variables (without a bias: no variable) violates the optimality conditions by more than ``tol``, as LIBSVM does.
    cache_size : float, default=200
        Megabytes of kernel rows that are kept.
    class_weight : dict or "balanced", default=None
        Multiplies C for each class's rows.
    verbose : bool, default=False
        Print a line for each checkpoint to standard error.
    max_iter : int, default=-1
        Stop after so many steps on a pair of classes: pairs of variables for SMO, epochs for Pegasos and SDCA. −1: no
        limit for SMO, 1000 epochs for the others.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        What ``decision_function`` returns for more than two classes: a column for each class, or for each pair.
    break_ties : bool, default=False
        Whether ``predict`` breaks ties between classes by the decision function (for "ovr").
    lam : float, default=None
        λ = 1/(C·M), M the sum of the sample weights. If given, ``C`` is ignored.
    loss : str or Loss, default="hinge"
        "hinge", "squared_hinge", "smoothed_hinge", "log", or an object of :mod:`pegasos.losses`. SMO can the hinge loss
        only; "auto" takes SDCA for the others.
    fit_intercept : bool, default=True
        Whether to learn a bias b.
    intercept : {"unregularized", "feature", "subgradient"}, default="unregularized"
        How. "unregularized": as in LIBSVM; exact with SMO and SDCA, by sub-gradients while Pegasos learns and exact in
        the end. "feature": a constant feature of value ``intercept_scaling``, which adds its square to the kernel. As
        for :class:`~pegasos.LinearSVC`, a solver that cannot learn a kind says so; SMO learns "unregularized" and
        ``fit_intercept=False`` only, and "auto" takes Pegasos for "subgradient", SDCA for "feature".
    intercept_scaling : float, default=1.0
        The constant feature's value for ``intercept="feature"``.
    multi_class : {"ovo", "ovr"}, default="ovo"
        More than two classes: each against each, as in scikit-learn, or each against all others. All classes of "ovr"
        share the kernel rows. ``loss="log"`` has probabilities for two classes, and for more with "ovr".
    solver : str, KernelSolver or Solver, default="auto"
        "smo", "pegasos", "sdca", "lasvm", "sbp", "nystroem", "newton", "low_rank", or an object with parameters:
        :class:`~pegasos.solvers.SMO`, :class:`~pegasos.solvers.Pegasos`, :class:`~pegasos.solvers.SDCA`,
        :class:`~pegasos.solvers.LASVM`, :class:`~pegasos.solvers.SBP`, :class:`~pegasos.solvers.Nystroem`,
        :class:`~pegasos.solvers.PrimalNewton`, :class:`~pegasos.solvers.LowRankInteriorPoint`. "auto" is
        SMO where that can minimise the loss with the intercept, else SDCA; above 200 000 rows it is Nystroem, with a
        warning.
    n_jobs : int, default=None
        Threads, for fitting and predicting, used where they pay; the same bits for any number. None: one. −1: all
        processors this process may use.
    max_time : float, default=None
        Stop after so many seconds.
    callback : callable, default=None
        Called with a :class:`~pegasos.Checkpoint` at each checkpoint, whose ``coef`` are the coefficients of the rows,
        of one part after the other; returning True stops the fit.
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
    dual_coef_ : array of shape (n_classes − 1, n_SV), or (n_classes, n_SV) for ``multi_class="ovr"``
        Coefficients of the support vectors in the decision functions of their class against each other one, as in
        scikit-learn; for one-vs-rest of more than two classes, in the decision function of each class.
    intercept_ : ndarray of shape (n_classes · (n_classes − 1) / 2,), or (n_classes,) for ``multi_class="ovr"``
        Biases of the decision functions; one for two classes.
    coef_ : array of shape (n_classes · (n_classes − 1) / 2, n_features), or (n_classes, n_features)
        Weights, for ``kernel="linear"``.
    classes_, class_weight_ : ndarray of shape (n_classes,)
        Labels, and what multiplies C for each.
    lam_ : float
        λ of the fit: ``lam``, or what ``C`` came to; of a stream that of its first call. Models that were not fitted
        here, such as LIBSVM's, have none.
    certificate_ : Certificate
        Objective, lower bound, gap, and why the fit stopped; of several pairs, their sums. Its ``epochs`` are passes
        over the rows, or of SMO, LASVM and SBP as many kernel values as the whole kernel matrix has.
    trace_ : Trace
        The checkpoints of the fit.
    n_iter_ : ndarray of shape (n_classes · (n_classes − 1) / 2,), or (n_classes,)
        Steps, each of a pair of variables (without a bias of one or two), or epochs, for each decision function; see
        ``max_iter``.
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
        loss: str | Loss = "hinge",
        fit_intercept: bool = True,
        intercept: str = "unregularized",
        intercept_scaling: float = 1.0,
        multi_class: Literal["ovo", "ovr"] = "ovo",
        solver: str | Solver | KernelSolver = "auto",
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
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept = intercept
        self.intercept_scaling = intercept_scaling
        self.multi_class = multi_class
        self.solver = solver
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.callback = callback
        self.on_interrupt = on_interrupt
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_flags("probability", "break_ties")
        if self.probability:
            raise ValueError(
                "probability=True is not offered; wrap the estimator in sklearn.calibration.CalibratedClassifierCV"
            )
        self._check_word("decision_function_shape", ("ovr", "ovo"))
        self._check_word("multi_class", ("ovo", "ovr"))
        if self.multi_class == "ovr" and self.decision_function_shape == "ovo":
            raise ValueError("decision_function_shape='ovo' needs multi_class='ovo': there are no pairs of classes")

    def _loss(self) -> Loss:
        return losses.resolve(self.loss, ("margin",), "SVC")

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
            Weights ≥ 0, which multiply C; weight 2 is the row twice. A class without any weight stays in
            ``classes_``: it has no support vectors, its scores against the others are −1, and it is not predicted.

        Returns
        -------
        self
        """
        self._check_parameters()
        loss = self._loss()
        y, sample_weight = unpack(X, y, sample_weight)
        X = self._matrix(X, reset=True)
        classes, codes, factors = self._encoded(X, y)
        given = row_weights(sample_weight, None, X.shape[0])
        factors = np.ones(len(classes)) if factors is None else factors
        weight = factors[codes] if given is None else given * factors[codes]
        present = np.flatnonzero(np.bincount(codes, weights=weight, minlength=len(classes)))
        if not len(present):
            raise ValueError("sample_weight and class_weight leave no row any weight")
        kernel = self._resolved(X, given)
        total = float(X.shape[0] if given is None else given.sum())
        lam, shape, k, rows = self._lam(total), X.shape, len(present), np.arange(len(codes))
        if k < len(classes):
            # Rows of classes without weight are no part of the problem, and their machines none that could be solved.
            rows = np.flatnonzero(np.isin(codes, present))
            X = np.ascontiguousarray(X[np.ix_(rows, rows)]) if kernel.name == "precomputed" else X[rows]
            codes, weight = np.searchsorted(present, codes[rows]), weight[rows]
        C = 1.0 / (lam * total)
        parts = parts_of(codes, k, weight, loss, C, one_vs_rest=self.multi_class == "ovr")
        if k == 1 and self._bias() == "free":
            machine, steps = self._fit_bias(X, kernel, parts[0], lam, total)
        else:
            machine, steps = self._solve(self._problem(X, kernel, parts, lam, total), codes, k)
        self.n_iter_ = _counts(steps)
        if k < len(classes):
            one_vs_rest = self.multi_class == "ovr"
            machine, self.n_iter_ = with_absent(
                machine, self.n_iter_, present, rows, len(classes), one_vs_rest=one_vs_rest
            )
        self._keep(machine)
        self.classes_, self.class_weight_, self.shape_fit_ = classes, factors, shape
        return self

    def _fit_bias(
        self, X: Matrix, kernel: Kernel, part: Part, lam: float, total: float
    ) -> tuple[Expansion, Sequence[int] | Array]:
        """The machine of the one class that has weight: a bias of its own fits its rows without coefficients."""
        bias, P, reached = alone(part, total)
        # 0 is a lower bound of every problem.
        reason, gap = "only one class has weight", 0.0 if P == 0 else 1.0
        self.certificate_ = Certificate(P, 0.0, P, gap, reached, reason, 0.0, 0.0, (P,), (0.0,))
        self.trace_ = Trace()
        self._count_fit(X.shape, kernel, lam, self.certificate_, 0)
        codes, nothing = np.zeros(X.shape[0], dtype=np.int64), np.zeros((1, X.shape[0]))
        return Expansion.of_rows(kernel, X, codes, 1, nothing, np.array([bias])), [0]

    @available_if(takes_rows)
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """One epoch of Pegasos over these rows, going on from earlier calls.

        Kernel values are computed on demand, of the rows visited and the support vectors there are by then; the rows
        of a call that become support vectors are kept, all others forgotten, so the certificate has a primal value (of
        these rows) but no lower bound. The step size counts all rows seen so far. Give ``lam``; without it
        λ = 1/(C·rows of the first call), and ``gamma="scale"`` is that of the first call. After :meth:`fit` it goes on
        from the fitted support vectors, with that fit's λ and γ. Means of iterates and the length of ``trace_`` are as
        for :meth:`LinearSVC.partial_fit <pegasos.LinearSVC.partial_fit>`. Not for a precomputed kernel.

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
        known, ovr = self._declared(classes), self.multi_class == "ovr"
        if self._stream is not None and len(known) > 2 and (self.dual_coef_.shape[0] == len(known)) != ovr:
            raise ValueError(f"multi_class={self.multi_class!r} is not what earlier calls had; fit anew")
        X = self._matrix(X, reset=self._stream is None)
        _, codes, factors = self._encoded(X, y, known)
        factors = np.ones(len(known)) if factors is None else factors
        given = row_weights(sample_weight, None, X.shape[0])
        weight, k = factors[codes] if given is None else given * factors[codes], len(known)
        calls = self._fit_piece(X, lambda C: parts_of(codes, k, weight, loss, C, one_vs_rest=ovr), given, codes, k)
        self.classes_, self.class_weight_ = known, factors
        self.n_iter_ = np.full(len(self.intercept_), calls, dtype=np.int32)
        return self

    def _pair_machine(self) -> PairMachine:
        """The decision functions of all pairs of several classes."""
        return self._machine().pairs

    def decision_function(self, X: Any) -> Array:
        """Scores: (n_samples,) for two classes (positive: the second), else a column for each class or pair.

        For ``multi_class="ovr"`` those are the scores of the classes. For one-vs-one with
        ``decision_function_shape="ovr"`` a class's score is the number of classes it wins against, and a fraction that
        says by how much.
        """
        machine = self._machine()
        if machine.in_pairs and self.decision_function_shape == "ovr":
            return machine.decisions(self._blocks(X, machine.block_rows(votes=True)))
        scores = machine.scores(self._blocks(X, machine.block_rows()))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Array:
        """The class label of every row.

        Of several classes the one that wins most often against others, or has the highest score for one-vs-rest.
        """
        machine = self._machine()
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        if self.break_ties and len(self.classes_) > 2:
            return np.asarray(self.classes_[self.decision_function(X).argmax(axis=1)])
        if not machine.in_pairs:
            return self._labels(machine.scores(self._blocks(X, machine.block_rows())))
        return np.asarray(self.classes_[machine.winners(self._blocks(X, machine.block_rows(votes=True)))])

    def _pair_scores(self, X: Any) -> Array:
        """Of every row and decision function, whatever ``decision_function_shape`` says."""
        return self._scores(X)

    def _labels(self, scores: Array) -> Array:
        """The labels that the scores of all decision functions mean."""
        return np.asarray(self.classes_[self._machine().classes_by(scores)])

    def _has_probabilities(self) -> bool:
        linked, classes = losses.link_of(self.loss) == "sigmoid", vars(self).get("classes_", ())
        if linked and (self.multi_class == "ovr" or len(classes) <= 2):
            return True
        wanted = losses.with_link(("margin",))
        needs = f"predict_proba needs {wanted}, and multi_class='ovr' if there are more than two classes"
        if linked:
            raise AttributeError(f"{needs}: there are {len(classes)}. Fit with multi_class='ovr'.")
        what = f"{needs}, or for" if "loss" in self.get_params(deep=False) else "For"
        raise AttributeError(
            f"{what} probabilities from any model: wrap the estimator in sklearn.calibration.CalibratedClassifierCV."
        )

    @available_if(has_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, for ``loss="log"``; of more than two classes for ``multi_class="ovr"``, normalised."""
        return class_probabilities(self.decision_function(X))
