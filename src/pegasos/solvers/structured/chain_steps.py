"""Stochastic steps on linear chains: Pegasos (2011, Example 5), the averaged perceptron and passive-aggressive steps.

The steps are ``cpp/pegasos/structured/chain_steps.hpp``. An epoch is a pass over the sequences; epochs are grouped into
windows of 1, 1, 2, 4, 8, … of them. The labellings that a window has decoded, each with its share of the sequence's
visits, are a dual point (the window certificate), and the mean of its iterates, each weighted by t + t0, is what
``output="suffix"`` returns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pegasos import _core
from pegasos.fit.engine import Engine, Options
from pegasos.problems.base import Bounds, Point
from pegasos.problems.chain import ChainModel, ChainProblem, Labellings
from pegasos.solvers.base import check_word, drawn_order
from pegasos.solvers.linear.passive_aggressive import PassiveAggressive, step_limits
from pegasos.solvers.linear.subgradient import Pegasos
from pegasos.solvers.structured.chain_base import CHUNK_TOKENS, ChainSolver
from pegasos.util.fields import MAX_FINITE, saved

#: Epochs of a window at most: the labellings of all of them are kept.
MAX_WINDOW = 64


#: For the log loss the first step is at most one over this for each so many tokens of a sequence.
LOG_STEPS, LOG_TOKENS = 10.0, 24.0


class ChainStepsEngine(Engine[ChainModel]):
    """Runs the core's steps; a certificate is due at the end of each window, if the gap may be small enough then."""

    #: ``output`` says which iterate is wanted, and perceptrons minimise something else.
    returns_last = True

    def __init__(self, problem: ChainProblem, steps: _core.ChainSteps, *, mean: bool, batch_size: int = 1) -> None:
        self.problem, self.core, self.mean = problem, steps, mean
        #: Whether mini-batches run over the end of an epoch. Once the last one was short: such a state is of another
        #: fit, and lacks the entry that says so.
        self.runs_over = problem.n % min(batch_size, problem.n) != 0
        self.window_end = 1.0

    @property
    def epochs(self) -> float:
        return self.core.epochs

    @property
    def window_ended(self) -> bool:
        """Whether the last epoch of a window has just ended."""
        return self.core.epoch_ended and self.epochs >= self.window_end

    def advance(self) -> None:
        if self.window_ended:
            self.core.begin_window()
            self.window_end = min(2 * self.epochs, self.epochs + MAX_WINDOW)
        self.core.advance(CHUNK_TOKENS)

    def due(self, tol: float) -> bool:
        return self.window_ended

    def planes(self) -> Labellings | None:
        """The labellings of this window, each with its share of the sequence's visits; the log loss has none."""
        if self.problem.loss == "log":
            return None
        rows, labels, visits = self.core.decoded()
        return Labellings(rows, labels, 1.0 / visits[rows])

    def point(self, *, last: bool = False) -> Point[ChainModel]:
        return Point(ChainModel(self.core.weights(self.mean)), self.planes())

    def learn(self, bounds: Bounds[ChainModel]) -> None:
        """Nothing: the next window begins with the next step."""

    def state(self) -> dict[str, Any]:
        rows, labels, visits = self.core.decoded()
        numbers = {"rows": rows, "labels": labels, "progress": self.core.progress(), "window_end": [self.window_end]}
        if self.runs_over:
            numbers["whole_batches"] = [1.0]
        sums = {"V": self.core.sums(False), "U": self.core.sums(True), "visits": visits}
        return sums | {name: np.asarray(value, dtype=np.float64) for name, value in numbers.items()}

    def restore(self, state: dict[str, Any]) -> None:
        p = self.problem
        V, U = (p.saved_weights(state, name) for name in ("V", "U"))
        rows = saved(state, "rows", (None,), low=0, high=p.n - 1, whole=True)
        labels = saved(state, "labels", (None,), low=0, high=p.labels - 1, whole=True)
        progress = saved(state, "progress", (6,), low=-MAX_FINITE, high=MAX_FINITE)
        visits = saved(state, "visits", (p.n,), low=0, high=1e15)
        if self.runs_over:
            saved(state, "whole_batches", (1,), low=1, high=1)
        if bool(np.any(visits[rows.astype(np.int64)] < 1)):
            raise ValueError("state: labellings of sequences that were not visited")
        self.window_end = float(saved(state, "window_end", (1,), low=1, high=1e15)[0])
        epoch, at, shrunk, squares, carried, total = progress.tolist()
        self.core.restore(
            (epoch, at, shrunk, squares, carried, total),
            V,
            U,
            rows.astype(np.int64),
            labels.astype(np.uint16),
            visits,
        )


def _steps(problem: ChainProblem, options: Options, **given: Any) -> _core.ChainSteps:
    """The core's steps, with defaults for what only some methods have."""
    usual = {"loss": problem.loss, "t0": 0.0, "aggressiveness": 1.0, "radius": 0.0, "batch_size": 1}
    return _core.ChainSteps(
        problem.corpus,
        problem.relative_weight,
        lam=problem.lam,
        seed=options.seed,
        exact=not problem.single,
        **(usual | given),
    )


#: The orders of sequences in an epoch.
ORDERS = ("permutation", "fixed", "iid")

#: What the core keeps for each ``output``.
MEANS = {"last": "none", "average": "all", "suffix": "window"}


@dataclass(frozen=True)
class ChainPegasos(ChainSolver):
    """:class:`Pegasos` on linear chains; ``t0="auto"`` is the number of sequences, for the log loss more."""

    options: Pegasos
    name: ClassVar[str] = "pegasos"
    losses: ClassVar[tuple[str, ...]] = ("hinge", "log")

    def check(self, problem: ChainProblem, intercept: str) -> None:
        super().check(problem, intercept)
        self.options.check_whole("sequences")
        if self.options.output == "random":
            raise ValueError("Pegasos: output='random' is not offered for sequences; it can be last, average, suffix")

    def engine(self, problem: ChainProblem, options: Options) -> ChainStepsEngine:
        o = self.options
        steps = _steps(
            problem,
            options,
            rule="pegasos",
            mean=MEANS[o.output],
            t0=self._t0(problem),
            radius=o.radius(problem, problem.lam),
            batch_size=int(o.batch_size),
            sampling=drawn_order(o, o.sampling, "sequences"),
        )
        return ChainStepsEngine(problem, steps, mean=o.output != "last", batch_size=int(o.batch_size))

    def _t0(self, problem: ChainProblem) -> float:
        """The first step, 1/(λ·t0), is C for the hinge loss; the log loss, which is smooth, bears no more than 0.1.

        That is for sentences. The curvature of a sequence's loss grows with its length: steps are shorter by as much.
        """
        if self.options.t0 != "auto":
            return float(self.options.t0)
        if problem.loss == "hinge":
            return float(problem.n)
        C, length = 1.0 / (problem.lam * problem.total), problem.sequences.tokens / problem.n
        return problem.n * max(1.0, LOG_STEPS * C * max(1.0, length / LOG_TOKENS))


@dataclass(frozen=True)
class AveragedPerceptron:
    """Collins' averaged perceptron for sequences: a comparison, which minimises no objective.

    A sequence that is decoded wrongly moves the weights by ψ = φ(x, y) − φ(x, ŷ), and the mean of all iterates is
    returned. The certificate tells how far it is from the optimum of the problem with the hinge loss. Collins (2002).

    Parameters
    ----------
    sampling : {"permutation", "fixed", "iid"}, default="permutation"
        The order of the sequences in each epoch, as for :class:`Pegasos`.

    Examples
    --------
    >>> from pegasos import AveragedPerceptron, SequenceSVC
    >>> X, y = [["a", "b"], ["b", "a"]], [["A", "B"], ["B", "A"]]
    >>> model = SequenceSVC(solver=AveragedPerceptron(), max_iter=4, tol=1.0).fit(X, y)
    >>> model.predict([["b", "b"]])
    [['B', 'B']]
    """

    sampling: str = "permutation"
    name: ClassVar[str] = "averaged_perceptron"

    def __post_init__(self) -> None:
        check_word(self, "sampling", ORDERS)


@dataclass(frozen=True)
class ChainPerceptron(ChainSolver):
    """:class:`AveragedPerceptron` on linear chains."""

    options: AveragedPerceptron
    name: ClassVar[str] = "averaged_perceptron"
    minimises: ClassVar[bool] = False

    def engine(self, problem: ChainProblem, options: Options) -> ChainStepsEngine:
        steps = _steps(problem, options, rule="perceptron", mean="all", sampling=self.options.sampling)
        return ChainStepsEngine(problem, steps, mean=True)


@dataclass(frozen=True)
class ChainPassiveAggressive(ChainSolver):
    """:class:`PassiveAggressive` on linear chains."""

    options: PassiveAggressive
    name: ClassVar[str] = "passive_aggressive"
    minimises: ClassVar[bool] = False

    def check(self, problem: ChainProblem, intercept: str) -> None:
        super().check(problem, intercept)
        if self.options.variant == "PA-II":
            raise ValueError("PassiveAggressive: variant='PA-II' is not offered for sequences; it can be PA-I or PA")

    def engine(self, problem: ChainProblem, options: Options) -> ChainStepsEngine:
        o = self.options
        output = "average" if o.output == "auto" else o.output
        steps = _steps(
            problem,
            options,
            rule="passive_aggressive",
            mean=MEANS[output],
            sampling=drawn_order(o, o.sampling, "sequences"),
            aggressiveness=step_limits(o.variant, o.C)[0],
        )
        return ChainStepsEngine(problem, steps, mean=output != "last")
