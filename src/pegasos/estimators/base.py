"""What all estimators share: parameters that every fit has, the way from input to checked rows, whole fits or none."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from numbers import Integral, Real
from typing import Any, ClassVar, Concatenate, Literal, ParamSpec, Self, TypeGuard, TypeVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from pegasos.estimators.first_iterate import FirstIterate
from pegasos.estimators.nested import Table, inner_parameters, outer_parameters
from pegasos.estimators.partial_fit import RowStream
from pegasos.fit.certificate import Certificate
from pegasos.fit.engine import Engine, Options
from pegasos.fit.fingerprint import fingerprint
from pegasos.fit.loop import MAX_ROUNDING_GAP, Callback, Limits, Result, Watch, run
from pegasos.fit.resume import CheckpointFile, check_path
from pegasos.fit.trace import Checkpoint, Trace
from pegasos.problems.base import M, Problem
from pegasos.problems.linear import Bias
from pegasos.rows.dataset import Dataset
from pegasos.rows.frames import validate_data
from pegasos.rows.views import Array, Examples, examples
from pegasos.solvers.base import AnySolver
from pegasos.util.arrays import Matrix
from pegasos.util.suggest import did_you_mean
from pegasos.util.threads import one_blas_thread, thread_count

#: Every way to learn the bias.
INTERCEPTS = ("unregularized", "feature", "subgradient", "batch", "search")

Model = TypeVar("Model", bound="Estimator")
P = ParamSpec("P")
R = TypeVar("R")


def all_or_nothing(method: Callable[Concatenate[Model, P], R]) -> Callable[Concatenate[Model, P], R]:
    """Leave the estimator as it was when ``method`` raises, be it bad input, a callback or Ctrl-C.

    All of it runs with one thread of BLAS: bits would depend on the number, and short products are slower on many.
    """

    @wraps(method)
    def call(self: Model, /, *args: P.args, **kwargs: P.kwargs) -> R:
        before = dict(vars(self))
        try:
            with one_blas_thread():
                return method(self, *args, **kwargs)
        except BaseException:
            self.__dict__ = before
            raise

    return call


def _is_native(X: Any) -> TypeGuard[Matrix]:
    """Whether X is what the core reads where it lies, so that there is nothing for scikit-learn to convert or refuse.

    Looking for it there takes longer than a small fit. Entries and indices are checked in any case.
    """
    in_place = X.format == "csr" if sparse.issparse(X) else type(X) is np.ndarray and X.flags.c_contiguous
    return bool(in_place) and X.ndim == 2 and X.dtype in (np.float32, np.float64) and min(X.shape) > 0


def class_probabilities(scores: Array) -> Array:
    """Probabilities that scores of the log loss stand for; those of one-vs-rest are normalised."""
    from scipy.special import expit  # takes as long to import as all the rest of this module

    p = np.asarray(expit(scores))
    if p.ndim == 1:
        return np.column_stack([1 - p, p])
    sums = p.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(p, sums, out=np.full_like(p, 1 / p.shape[1]), where=sums > 0))


class Estimator(BaseEstimator):  # type: ignore[misc]
    """Base of all estimators; not public."""

    #: The objects that ``solver`` and ``loss`` can be, by name.
    _objects: ClassVar[Mapping[str, Table]]

    C: float
    lam: float | None
    tol: float
    max_time: float | None
    fit_intercept: bool
    intercept: str
    intercept_scaling: float
    n_jobs: int | None
    random_state: Any
    verbose: int | bool
    callback: Callback | None
    on_interrupt: Literal["raise", "keep"]
    checkpoint: str | os.PathLike[str] | None
    checkpoint_every: float

    lam_: float
    certificate_: Certificate
    trace_: Trace
    #: What ``partial_fit`` goes on from.
    _stream: RowStream | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name.

        Parameters
        ----------
        deep : bool, default=True
            Whether to add those of solver and loss objects, as ``solver__batch_size``.

        Returns
        -------
        dict
        """
        own: dict[str, Any] = super().get_params(deep=False)
        return own | inner_parameters(own) if deep else own

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; those of the solver and of the loss as ``solver__batch_size`` or ``loss__epsilon``.

        A solver or loss that was given by name becomes the object of that name, with defaults for all the rest.

        Returns
        -------
        self
        """
        super().set_params(**outer_parameters(params, super().get_params(deep=False), self._objects))
        return self

    def _check_number(
        self, name: str, *, low: float, strict: bool, whole: bool = False, none: bool = False, flag: bool = False
    ) -> None:
        """Refuse a parameter that is no number, or too small; ``flag``: True and False are as good."""
        value = getattr(self, name)
        if (none and value is None) or (flag and isinstance(value, bool | np.bool_)):
            return
        kind = Integral if whole else Real
        good = isinstance(value, kind) and not isinstance(value, bool) and np.isfinite(float(value))
        if not good or value < low or (strict and value == low):
            what = f"{'a whole number' if whole else 'a number'} {'>' if strict else '>='} {low:g}"
            raise ValueError(f"{name}={value!r} must be {what}{' or None' * none}{', True or False' * flag}")

    def _check_flags(self, *names: str) -> None:
        """Refuse what is neither yes nor no; scikit-learn's users write 0 and 1 too."""
        for name in names:
            value = getattr(self, name)
            if not isinstance(value, bool | np.bool_) and not (isinstance(value, Integral) and value in (0, 1)):
                raise ValueError(f"{name}={value!r} must be True or False")

    def _check_word(self, name: str, known: tuple[str, ...]) -> None:
        """Refuse a word that means nothing."""
        value = getattr(self, name)
        if not isinstance(value, str) or value not in known:
            few = f"neither {known[0]!r} nor {known[-1]!r}" if len(known) == 2 else f"none of {', '.join(known)}"
            raise ValueError(f"{name}={value!r} is {few}{did_you_mean(value, known)}")

    def _check_parameters(self) -> None:
        """Refuse what no data could make right; nothing has been changed yet."""
        self._check_number("C", low=0, strict=True)
        self._check_number("lam", low=0, strict=True, none=True)
        self._check_number("tol", low=0, strict=False)
        self._check_number("max_time", low=0, strict=True, none=True)
        self._check_number("checkpoint_every", low=0, strict=False)
        self._check_word("on_interrupt", ("raise", "keep"))
        self._check_number("verbose", low=0, strict=False, whole=True, flag=True)
        if not isinstance(self.random_state, Integral | np.random.RandomState | np.random.Generator | None):
            raise ValueError(f"random_state={self.random_state!r} is no seed, RandomState or Generator")
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"callback={self.callback!r} cannot be called")
        thread_count(self.n_jobs)
        if self.checkpoint is not None:
            check_path(self.checkpoint)

    def _check_intercept(self) -> None:
        self._check_flags("fit_intercept")
        self._check_number("intercept_scaling", low=0, strict=True)
        self._check_word("intercept", INTERCEPTS)

    def _bias(self) -> Bias:
        """How the problem treats the bias."""
        if not self.fit_intercept:
            return "none"
        return "feature" if self.intercept == "feature" else "free"

    #: Fitted attributes that only some methods have.
    _of_methods: ClassVar[tuple[str, ...]] = ()

    @property
    def _intercept_word(self) -> str:
        """How the bias is learnt; "none": there is none."""
        return self.intercept if self.fit_intercept else "none"

    def _run(
        self,
        problem: Problem[M],
        solver: AnySolver[Any, M],
        tell: Callable[[Checkpoint, M], Checkpoint],
        *,
        max_iter: float | None = None,
        max_steps: int | None = None,
        look: Callable[[M], None] | None = None,
        first: FirstIterate | None = None,
    ) -> Result[M]:
        """Solve the problem; sets certificate and trace, and what else the method knows.

        ``tell`` completes what the callback is told by what the fitted attributes would be. ``look`` is shown the best
        model of every checkpoint. ``first`` is where a stochastic sub-gradient method is to begin.
        """
        partial = None if max_iter is None or max_iter == int(max_iter) else float(max_iter)
        options = Options(self._intercept_word, self._seed(), float(self.tol), max_steps, partial)
        file = None
        if self.checkpoint is not None:
            same = fingerprint(problem, solver, intercept=options.intercept, seed=options.seed, tol=options.tol)
            if first is not None:
                same["start"] = first.digest()
            file = CheckpointFile(check_path(self.checkpoint), float(self.checkpoint_every), same)
        engine = solver.engine(problem, options)
        if first is None:
            self._warm(engine, problem, solver)
        else:
            first.begin(engine)
        user = self.callback

        def told(checkpoint: Checkpoint, model: M) -> object:
            if look is not None:
                look(model)
            return user is not None and user(tell(checkpoint, model))

        watch = Watch(
            None if user is None and look is None else told, bool(self.verbose), on_interrupt=self.on_interrupt
        )
        result = run(problem, engine, Limits(options.tol, max_iter, self.max_time), watch, file)
        self.certificate_, self.trace_ = result.certificate, result.trace
        for name in self._of_methods:
            self.__dict__.pop(name, None)
        self.__dict__.update(engine.attributes())
        return result

    def _carry_on(self, stream: RowStream) -> None:
        """Set what is known after a call of ``partial_fit``, and from where the next goes on."""
        self.lam_, self.certificate_, self.trace_ = stream.lam, stream.certificate(), stream.trace
        self._stream = stream

    def _warm(self, engine: Engine[Any], problem: Any, solver: Any) -> None:
        """Let the engine start from an earlier fit, where an estimator offers that."""

    def _seed(self) -> int:
        """An integer seed; None means 0, so that fits repeat unless asked otherwise."""
        state = self.random_state
        if state is None:
            return 0
        if isinstance(state, Integral):
            if not 0 <= int(state) < 2**64:
                raise ValueError(f"random_state={state!r} must lie between 0 and 2**64 - 1")
            return int(state)
        if isinstance(state, np.random.RandomState):
            return int(state.randint(2**31 - 1))
        if isinstance(state, np.random.Generator):
            return int(state.integers(2**63))
        raise AssertionError("checked before")

    def _rows(self, X: Any, *, reset: bool, private: bool = False) -> tuple[Matrix, Examples]:
        """Validated X and the borrowed rows; ``private``: copied, if they are sparse."""
        on_disk, X = isinstance(X, Dataset), self._unchecked(X, reset=reset)
        return X, examples(X, threads=thread_count(self.n_jobs), on_disk=on_disk, private=private)

    def _unchecked(self, X: Any, *, reset: bool) -> Matrix:
        """X as a matrix of the right columns, whose entries are not looked at yet."""
        if not isinstance(X, Dataset):
            return self._floats(X, reset=reset)
        self._check_columns(X, reset=reset)
        return X.X

    def _floats(self, X: Any, *, reset: bool, order: str | None = "C") -> Matrix:
        """X as numbers, of the right number and names of columns; its entries are not looked at yet."""
        if _is_native(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        return validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order=order,
            ensure_all_finite=False,
        )

    def _check_columns(self, data: Dataset, *, reset: bool) -> None:
        """What scikit-learn does for arrays and frames: remember columns and their names, or compare them."""
        if reset:
            validate_data(self, data.X, reset=True, skip_check_array=True)
            if data.feature_names is not None:
                self.feature_names_in_ = np.asarray(data.feature_names, dtype=object)
            return
        if data.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {data.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input"
            )
        known = getattr(self, "feature_names_in_", None)
        if (known is None) != (data.feature_names is None):
            without, other = ("X", "the estimator") if known is not None else ("the estimator", "X")
            warnings.warn(
                f"{without} does not have feature names, but {other} does: columns are matched by position",
                UserWarning,
                stacklevel=4,
            )
        if known is not None and data.feature_names is not None:
            for j, (name, expected) in enumerate(zip(data.feature_names, known, strict=True)):
                if name != expected:
                    raise ValueError(f"column {j} of the dataset is {name!r}, but was {expected!r} when fitted")

    def _lam(self, total: float) -> float:
        """λ, from itself or from C, for rows of this total weight."""
        lam = float(self.lam) if self.lam is not None else 1.0 / (float(self.C) * total)
        if not np.isfinite(lam) or lam <= 0:
            raise ValueError(f"C={self.C!r} gives lam = 1/(C · {total:g}), which is out of range")
        return lam

    def _stopped(self, c: Certificate) -> str:
        """How a fit that stopped too early ended."""
        return (
            f"{type(self).__name__} stopped before the gap reached tol={self.tol:g} times the objective ({c.reason}): "
            f"objective {c.primal:.6g}, lower bound {c.dual:.6g}, relative gap {c.relative_gap:.2e} "
            f"after {c.epochs:.0f} epochs and {c.seconds:.1f} s."
        )

    def _rounding(self, c: Certificate) -> str:
        """What to say where all that is left of the gap may be rounding; nothing elsewhere."""
        pairs = zip(c.primal_per_class, c.dual_per_class, strict=True)
        if not all(primal - dual <= MAX_ROUNDING_GAP * primal for primal, dual in pairs):
            return ""
        return (
            f"What is left of the gap is of the size of rounding errors: ask for a tol of {MAX_ROUNDING_GAP:g} or more."
        )
