"""Stochastic sub-gradient methods: Pegasos, NORMA and SGD differ in the length of their steps alone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from pegasos import _core
from pegasos.fit.engine import Options
from pegasos.losses import Loss
from pegasos.problems.base import Bounds, M, Problem
from pegasos.problems.linear import LinearProblem, Weights
from pegasos.problems.sampled import SampledProblem
from pegasos.rows.views import Array
from pegasos.solvers.base import (
    BATCH_SAMPLINGS,
    BatchSampling,
    Output,
    Solver,
    check_count,
    check_flag,
    check_word,
    drawn_order,
    is_number,
    row_order,
)
from pegasos.solvers.linear.bias_search import PegasosBiasSearch
from pegasos.solvers.linear.engine import LinearEngine, check_after
from pegasos.solvers.linear.horizon import Horizon, StepLimit, all_rows, visits_of
from pegasos.solvers.linear.lanes import LaneEngine, LaneGroups, common_arguments
from pegasos.solvers.linear.own_steps import OwnStepsEngine
from pegasos.solvers.units import Units, units_of
from pegasos.theory import projection_radius
from pegasos.util.digests import LATER
from pegasos.util.fields import State, saved


class SubgradientEngine(StepLimit, LaneEngine[_core.Pegasos]):
    """Pegasos, NORMA or SGD; see ``cpp/pegasos/linear/pegasos.hpp``."""

    #: ``output`` says which iterate is wanted.
    returns_last = True

    def __init__(
        self, problem: LinearProblem, *, output: str, bias: str, seed: int, horizon: Horizon, **options: Any
    ) -> None:
        self.problem, self.output = problem, output
        self.horizon, self.batch_size = horizon, min(int(options["batch_size"]), problem.examples.m)
        self.ended = False
        self.next_check = 1.0
        feature = problem.feature if problem.bias == "feature" else 0.0

        def make(first: int, count: int) -> _core.Pegasos:
            return _core.Pegasos(
                *common_arguments(problem, first, count),
                lam=problem.lam,
                average=output in ("average", "suffix"),
                random=output == "random",
                bias=bias,
                feature=feature,
                seed=seed,
                **options,
            )

        self.lanes = LaneGroups(problem, make)
        self.select(output if output in ("average", "suffix") else "last")

    def select(self, which: str) -> None:
        """What ``model`` returns from now on: "last", "average", "suffix", "first_random" or "second_random"."""
        for solver in self.lanes.solvers:
            solver.select(which)

    def begin_at(self, W: Array, b: Array | None) -> None:
        """Take these for the first iterate w_1; None: the biases that the solver begins at."""
        for solver, part in self.lanes.parts():
            solver.start(W[part], None if b is None else b[part])

    def keep_scores(self) -> None:
        """Remember from now on every row's scores as they were when it was visited."""
        for solver in self.lanes.solvers:
            solver.keep_scores()

    @property
    def visits(self) -> int:
        """Rows visited so far."""
        return round(self.lanes.epochs * self.problem.examples.m)

    @property
    def epochs(self) -> float:
        return self.visits / all_rows(self.problem)

    @property
    def steps_made(self) -> int:
        return int(self.lanes.solvers[0].steps)

    def advance(self) -> None:
        left = self.rows_left
        if left is None or left > 0:  # all that was asked for may have been done in an earlier fit
            self.ended = self.lanes.advance(left)

    def model(self) -> tuple[Array, Array]:
        if self.output != "random":
            return self.lanes.weights()
        # Lemma 3 of the 2011 paper: of two random iterates one is good with probability 3/4; keep the better.
        candidates = []
        for which in ("first_random", "second_random"):
            self.select(which)
            W, b = self.lanes.weights()
            candidates.append((self.problem.preference(Weights(W, b)), W, b))
        _, W, b = min(candidates, key=lambda candidate: candidate[0])
        return W, b

    def due(self, tol: float) -> bool:
        if isinstance(self.problem, SampledProblem):  # an estimate on the way would say little
            return self.finished
        return self.finished or (self.ended and self.epochs >= self.next_check)

    def state(self) -> State:
        return super().state() | {"check": np.array([self.next_check])}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.next_check = float(saved(state, "check", (1,))[0])

    def learn(self, bounds: Bounds[Weights]) -> None:
        self.next_check = check_after(self.epochs)


@dataclass(frozen=True)
class SubgradientSolver(Solver):
    batch_size: int = 1
    sampling: BatchSampling = "auto"
    projection: bool = False
    output: Output = "last"
    max_steps: int | None = field(default=None, kw_only=True, metadata=LATER)
    estimate: int | None = field(default=None, kw_only=True, metadata=LATER)

    partial_epochs: ClassVar[bool] = True
    intercepts: ClassVar[tuple[str, ...]] = ("unregularized", "subgradient", "batch")
    schedule: ClassVar[str] = "pegasos"
    own_losses: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_word(self, "sampling", BATCH_SAMPLINGS)
        check_word(self, "output", ("last", "average", "suffix", "random"))
        check_count(self, "batch_size")
        check_flag(self, "projection")
        check_count(self, "max_steps", none=True)
        check_count(self, "estimate", 2, none=True)

    def check(self, problem: LinearProblem, intercept: str) -> None:
        super().check(problem, intercept)
        if problem.loss.own and self.estimate is not None:
            raise ValueError("estimate is not for a CustomLoss: its certificate takes no longer than its check")
        for name in ("max_steps", "estimate"):
            if intercept == "search" and getattr(self, name) is not None:
                raise ValueError(
                    f"{name} is not for intercept='search', which makes many runs: set max_iter or max_time"
                )
        if intercept == "batch":
            if problem.joint:
                raise ValueError(f"intercept='batch' is not defined for the joint loss {problem.loss.name!r}")
            if problem.loss.own:
                raise ValueError("intercept='batch' is not for a CustomLoss: its best bias is searched on all rows")
            if self.batch_size < 2:
                raise ValueError("intercept='batch' needs mini-batches: set batch_size to 2 or more, 64 say")

    def numbers_per_weight(self, outputs: int) -> int:
        return 13 if outputs == 1 else 7

    def radius(self, problem: Problem[M], lam: float) -> float:
        """That of the ball which holds the weights of all parts; 0: they are not projected."""
        return projection_radius(lam, float(problem.at_zero().max())) if self.projection else 0.0

    def engine(self, problem: LinearProblem, options: Options) -> LinearEngine:
        arguments = self._arguments(problem, options, self.units(problem), self._t0(problem), whole=True)
        return OwnStepsEngine(problem, **arguments) if problem.loss.own else SubgradientEngine(problem, **arguments)

    def engine_with(
        self, problem: LinearProblem, options: Options, units: Units, t0: float, *, whole: bool = True
    ) -> SubgradientEngine:
        """The same with steps of another size, as a stream has them, which knows more than these rows.

        ``whole``: every mini-batch has as many rows, and may end in the next epoch, which streams do not have.
        """
        return SubgradientEngine(problem, **self._arguments(problem, options, units, t0, whole=whole))

    def _arguments(
        self, problem: LinearProblem, options: Options, units: Units, t0: float, *, whole: bool
    ) -> dict[str, Any]:
        bias = {"unregularized": "subgradient"}.get(options.intercept, options.intercept)
        visits = None if options.max_epochs is None else visits_of(options.max_epochs, all_rows(problem))
        return {
            "output": self.output,
            "bias": bias if bias in ("subgradient", "batch") else "none",
            "seed": options.seed,
            "schedule": self.schedule,
            "rate": self._rate(problem),
            "t0": t0,
            "bias_start": units.start,
            "bias_rate": units.step,
            "batch_size": int(self.batch_size),
            "whole_batches": whole,
            "sampling": self._order(problem),
            "radius": self.radius(problem, problem.lam),
            "horizon": Horizon(self.max_steps, visits),
        }

    def _order(self, problem: LinearProblem) -> str:
        """The core's name for an epoch's order; taken out for their visits, the rows lie in that order."""
        if isinstance(problem, SampledProblem):
            return "given" if problem.visits is not None else self.drawn_sampling()
        return row_order(self.sampling, problem)

    def drawn_sampling(self) -> str:
        """The core's name for an epoch's order where an estimate is asked for: independent draws, unless said so."""
        return "iid" if self.sampling == "auto" else self.sampling

    def visits(self, m: int, max_epochs: float) -> int:
        """The rows that a fit to m rows visits at most, a multiple of the batch size."""
        steps = -(-visits_of(max_epochs, m) // int(self.batch_size))
        return int(self.batch_size) * (steps if self.max_steps is None else min(steps, int(self.max_steps)))

    def _rate(self, problem: LinearProblem) -> float:
        return 0.0

    def _t0(self, problem: LinearProblem) -> float:
        return 0.0

    def units(self, problem: LinearProblem) -> Units:
        """Where a free bias begins, and how long steps should be; as published unless said otherwise."""
        return Units()


@dataclass(frozen=True)
class Pegasos(SubgradientSolver):
    """Primal estimated sub-gradient solver: w ← (1 − ηλ)w + (η/k) Σ g_i x_i with η = 1/(λ(t + t0)).

    With ``t0=0`` these are the iterates of Shalev-Shwartz, Singer, Srebro & Cotter (2011), Figs. 1 and 2, and for
    kernel machines (:class:`~pegasos.SVC`, :class:`~pegasos.SVR`) those of its section 4: the same decisions, but
    kernel values are computed for blocks of rows at a time. For structured machines
    (:class:`~pegasos.StructuredSVC`) they are those of its Example 5. ``intercept="search"`` makes a run of its own at
    each bias that an outer search tries (section 6).

    Parameters
    ----------
    batch_size : int, default=1
        Rows k a step, at most all of them: ``len(X)`` gives the deterministic sub-gradient method. Every step has k
        rows, as in Fig. 2, also where k does not divide their number: a batch that an epoch's order cannot fill goes on
        with the next one's (but for ``partial_fit``, which forgets its rows: there the last batch is shorter).
    sampling : {"auto", "streams", "permutation", "fixed", "iid", "subset", "chunked"}, default="auto"
        Which rows a step gets. "iid": k independent draws, and "subset": a uniform subset of k rows, independent of
        those of other steps; these are what the papers analyse. "permutation": a uniform permutation of the rows, a new
        one each epoch, and "fixed": one for all epochs (the 2011 paper's section 7.5). "streams": "permutation", but
        more than four million entries in rows of fewer than forty are visited in lots of a thousand groups of up to
        sixteen neighbours, taken from all over the file and shuffled row by row, which is faster and mixes as well.
        "chunked": a new order that stays in the same hundred or so megabytes of rows for a while, for data on disk:
        lots of 256 chunks of some hundred kilobytes each, taken and shuffled likewise. "auto": "chunked" for a
        :class:`~pegasos.io.Dataset`, "permutation" for kernel and structured machines, which know neither "chunked" nor
        "streams", else "streams".
    projection : bool, default=False
        Project onto the ball that holds the optimum after each step (the 2007 paper).
    output : {"last", "average", "suffix", "random"}, default="last"
        The last iterate, the mean of all, the mean of the last half to three quarters of the epochs, or the better of
        two random ones (Lemma 3; not in ``partial_fit``).
    max_steps : int, default=None
        T: stop after so many steps in all, within an epoch if need be, and call that the goal. Of linear machines; for
        kernel machines ``max_iter`` of the estimator counts steps. ``partial_fit`` makes an epoch and takes none.
    estimate : int, default=None
        Do not certify the weights at the end, which takes a pass over all rows, but estimate P(w, b) as its mean over
        so many rows, drawn with the seed, with Student's 95 % confidence interval: ``certificate_.estimate``,
        ``estimate_low``, ``estimate_high``. The regulariser is exact, and a bias stays as it was learnt. It is no
        bound: a few rows of large loss, which none of the draws meets, are not seen. "auto" sampling then is "iid".
        Of rows that the user vouches for (a :class:`~pegasos.io.Dataset`, or scikit-learn's
        ``config_context(assume_finite=True)``) only those that are visited or judged by are looked at, and checked:
        the run time of T steps does not depend on the number of rows. Linear machines only.
    t0 : float or "auto", default="auto"
        Added to the rows visited in the step size, as if so many steps had been taken before. "auto" is L·R²/λ with R²
        the mean squared norm of the rows (the largest, for smooth losses) and L the loss's smoothness (1 if it has
        none): the first step then moves a score by about 1. Regressions whose loss has slopes of at most g, but targets
        that spread by s, have R²g/(λs): the first step moves a score by s. A bias that is not regularised then begins
        at the median of the targets, and moves by s/(g√t). Structured machines have the number of rows. With a number
        everything is as published: a bias begins at 0 and moves by 1/√t.

    Examples
    --------
    >>> from pegasos import LinearSVC, Pegasos
    >>> model = LinearSVC(solver=Pegasos(batch_size=2), lam=0.1, max_iter=500, tol=0.1, random_state=0)
    >>> model.fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).certificate_.converged
    True

    A fixed number of steps, whatever the number of rows:

    >>> import numpy as np
    >>> import sklearn
    >>> X = np.random.default_rng(0).standard_normal((100_000, 20))
    >>> y = np.sign(X[:, 0])
    >>> model = LinearSVC(solver=Pegasos(max_steps=2_000, estimate=1_000), lam=1e-2)
    >>> with sklearn.config_context(assume_finite=True):
    ...     c = model.fit(X, y).certificate_
    >>> c.reason, c.epochs, c.estimate_low < c.estimate < c.estimate_high
    ('max_steps reached', 0.02, True)
    """

    t0: float | Literal["auto"] = "auto"
    name: ClassVar[str] = "pegasos"
    intercepts: ClassVar[tuple[str, ...]] = (*SubgradientSolver.intercepts, "search")

    def engine(self, problem: LinearProblem, options: Options) -> LinearEngine:
        if options.intercept != "search":
            return super().engine(problem, options)

        def run(seed: int) -> SubgradientEngine:
            return self.engine_with(problem, replace(options, seed=seed), Units(), self._t0(problem))

        return PegasosBiasSearch(problem, run, seed=options.seed)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.t0 != "auto" and not (is_number(self.t0) and np.isfinite(self.t0) and self.t0 >= 0):
            raise ValueError(f"Pegasos: t0={self.t0!r} must be 'auto' or a number >= 0")

    def _t0(self, problem: LinearProblem) -> float:
        if self.t0 != "auto":
            return float(self.t0)
        B2 = problem.feature**2 if problem.bias == "feature" else 0.0
        largest = float(problem.examples.squared_norms.max())
        return self.t0_for(problem.loss, problem.mean_squared_norm, largest, B2, problem.lam, self.units(problem).step)

    def units(self, problem: LinearProblem) -> Units:
        return self.units_for(problem.loss, problem.target, problem.weight, problem.bias)

    def units_for(self, loss: Loss, y: Array, weight: Array | None, bias: str) -> Units:
        """The units for these targets, unless ``t0`` is a number: then everything is as published."""
        return Units() if self.t0 != "auto" else units_of(loss, y, weight, free=bias == "free")

    def t0_for(self, loss: Loss, mean: float, largest: float, B2: float, lam: float, step: float) -> float:
        """t0 for rows of this mean and largest squared norm K(x, x), the square of a constant feature, and a step."""
        if self.t0 != "auto":
            return float(self.t0)
        if np.isinf(loss.smoothness) or step != 1.0:
            return (max(mean, 0.0) + B2) / (lam * step)
        # Rows may be far longer than their mean, which matters to losses whose slope is not bounded.
        return max(loss.smoothness, 1.0) * (max(largest, 0.0) + B2) / lam

    def check_whole(self, machine: str) -> None:
        """Refuse what only fits to the rows of a linear machine have, since this one has ``machine``."""
        for name in ("max_steps", "estimate"):
            if (value := getattr(self, name)) is not None:
                raise ValueError(f"Pegasos: {name}={value!r} has no meaning with {machine}; max_iter limits its work")

    def kernel_sampling(self) -> str:
        """The core's name for an epoch's order over the rows of a kernel machine."""
        return drawn_order(self, self.sampling, "a kernel")


@dataclass(frozen=True)
class Norma(SubgradientSolver):
    """Kivinen, Smola & Williamson's NORMA: the engine of :class:`Pegasos` with η = p/(λ√t).

    Parameters
    ----------
    p : float, default=0.71
        The step size's factor, 0 < p < 1; 1/√2 is what the 2011 paper compares with.
    batch_size, sampling, projection, output, max_steps, estimate
        As for :class:`Pegasos`.

    Examples
    --------
    >>> from pegasos import LinearSVC, Norma
    >>> model = LinearSVC(solver=Norma(p=0.5), lam=0.1, tol=0.5, random_state=0)
    >>> model.fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).predict([[3.0]])
    array([1])
    """

    p: float = 0.71
    name: ClassVar[str] = "norma"
    schedule: ClassVar[str] = "norma"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (is_number(self.p) and 0 < self.p < 1):
            raise ValueError(f"Norma: p={self.p!r} must lie strictly between 0 and 1")

    def _rate(self, problem: LinearProblem) -> float:
        return float(self.p)


@dataclass(frozen=True)
class SGD(SubgradientSolver):
    """Zhang's stochastic gradient descent: the engine of :class:`Pegasos` with a constant step η.

    Parameters
    ----------
    eta : float, default=0.01
        The step size; ηλ < 1.
    batch_size, sampling, projection, output, max_steps, estimate
        As for :class:`Pegasos`.

    Examples
    --------
    >>> from pegasos import LinearSVC, SGD
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> LinearSVC(solver=SGD(eta=0.1), lam=0.1, tol=0.5, random_state=0).fit(X, y).score(X, y)
    1.0
    """

    eta: float = 0.01
    name: ClassVar[str] = "sgd"
    schedule: ClassVar[str] = "constant"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (is_number(self.eta) and np.isfinite(self.eta) and self.eta > 0):
            raise ValueError(f"SGD: eta={self.eta!r} must be a number > 0")

    def check(self, problem: LinearProblem, intercept: str) -> None:
        super().check(problem, intercept)
        if self.eta * problem.lam >= 1:
            raise ValueError(f"SGD: eta={self.eta} is too large for lam={problem.lam:.3g}: eta * lam must be below 1")

    def _rate(self, problem: LinearProblem) -> float:
        return float(self.eta)
