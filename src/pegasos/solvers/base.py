"""What all solvers share: a name, what they can do, and how their parameters are checked."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar, Literal, Protocol, TypeGuard, TypeVar

import numpy as np

from pegasos.fit.engine import Engine, Options
from pegasos.losses import Which
from pegasos.problems.base import M
from pegasos.problems.kernel import Coefficients, KernelProblem
from pegasos.problems.linear import LinearProblem
from pegasos.solvers.linear.engine import LinearEngine
from pegasos.util.suggest import did_you_mean

Sampling = Literal["auto", "streams", "permutation", "fixed", "iid", "chunked"]
SAMPLINGS = ("auto", "streams", "permutation", "fixed", "iid", "chunked")
#: Those of methods with mini-batches.
BatchSampling = Literal["auto", "streams", "permutation", "fixed", "iid", "subset", "chunked"]
BATCH_SAMPLINGS = ("auto", "streams", "permutation", "fixed", "iid", "subset", "chunked")
Output = Literal["last", "average", "suffix", "random"]

SCALAR_LOSSES = Which(lambda loss: loss.kind != "joint")

#: What to say where a solver cannot.
OWN_LOSS_SOLVERS = "'auto', 'cutting_plane', 'lbfgs', 'pegasos', 'norma' and 'sgd' can"


P_contra = TypeVar("P_contra", contravariant=True)


class AnySolver(Protocol[P_contra, M]):
    """What a fit asks of every solver: an engine for a problem of its kind."""

    def check(self, problem: P_contra, intercept: str) -> None:
        """Raise ValueError if this solver cannot solve ``problem`` with this intercept."""
        ...

    def engine(self, problem: P_contra, options: Options) -> Engine[M]:
        """A fresh engine for ``problem``."""
        ...


@dataclass(frozen=True)
class Solver:
    """What all solvers share: a name, and what they can do."""

    name: ClassVar[str]
    #: Ways to learn the bias, beside "feature" and no bias, that this solver knows.
    intercepts: ClassVar[tuple[str, ...]] = ("unregularized",)
    losses: ClassVar[Which] = Which(lambda loss: True)
    #: Whether it can minimise a loss of the user's own, which is known by functions of arrays.
    own_losses: ClassVar[bool] = False
    #: Whether it can stop within an epoch, so that ``max_iter`` may be a fraction.
    partial_epochs: ClassVar[bool] = False

    def check(self, problem: LinearProblem, intercept: str) -> None:
        """Raise ValueError if this solver cannot solve ``problem`` with this intercept."""
        if problem.loss.own:
            if not self.own_losses:
                raise ValueError(f"solver {self.name!r} cannot minimise a CustomLoss; {OWN_LOSS_SOLVERS}")
        elif problem.loss.name not in self.losses:
            raise ValueError(
                f"solver {self.name!r} cannot minimise loss {problem.loss.name!r}; it can {', '.join(self.losses)}"
            )
        if intercept not in ("none", "feature", *self.intercepts):
            accepted = ", ".join(("feature", *self.intercepts))
            raise ValueError(f"solver {self.name!r} cannot learn intercept={intercept!r}; it can {accepted}")
        if intercept == "search" and problem.joint:
            raise ValueError(f"intercept='search' is not defined for the joint loss {problem.loss.name!r}")

    def numbers_per_weight(self, outputs: int) -> int:
        """Numbers that a fit keeps for each weight at its peak (measured): columns that need too many are refused."""
        return 4

    def engine(self, problem: LinearProblem, options: Options) -> LinearEngine:
        """A fresh engine for ``problem``."""
        raise NotImplementedError


@dataclass(frozen=True)
class SecondOrderSolver(Solver):
    """Solvers whose cost grows with the square of the number of columns."""

    max_columns: int = 5000

    def __post_init__(self) -> None:
        check_count(self, "max_columns")

    def check(self, problem: LinearProblem, intercept: str) -> None:
        super().check(problem, intercept)
        width = problem.examples.n * (problem.outputs if problem.joint else 1)
        if width > self.max_columns:
            raise ValueError(
                f"solver {self.name!r} is for narrow data: {width} columns exceed max_columns={self.max_columns}; "
                f"use 'sdca', or raise {type(self).__name__}(max_columns=...)"
            )


@dataclass(frozen=True)
class KernelSolver:
    """What all solvers of kernel machines share: a name, and what they can do."""

    name: ClassVar[str]
    #: Ways to treat the bias; "none" is no bias.
    intercepts: ClassVar[tuple[str, ...]] = ("unregularized",)
    losses: ClassVar[Which] = Which(lambda loss: loss.sides > 0)
    #: Whether it can minimise a loss of the user's own, which is known by functions of arrays.
    own_losses: ClassVar[bool] = False

    def check(self, problem: KernelProblem, intercept: str) -> None:
        """Raise ValueError if this solver cannot solve ``problem`` with this intercept."""
        loss = problem.loss.name
        if problem.loss.own:
            if not self.own_losses:
                raise ValueError(f"solver {self.name!r} cannot minimise a CustomLoss with a kernel; Nystroem can")
        elif loss not in self.losses:
            raise ValueError(
                f"solver {self.name!r} cannot minimise loss {loss!r} with a kernel; it can {', '.join(self.losses)}. "
                "Use 'sdca' or 'pegasos'"
            )
        if intercept not in self.intercepts:
            what = "fit_intercept=False" if intercept == "none" else f"intercept={intercept!r}"
            accepted = ", ".join("fit_intercept=False" if i == "none" else repr(i) for i in self.intercepts)
            others = ". Use 'sdca' or 'pegasos'" if intercept in ("none", "feature") else ""
            raise ValueError(f"solver {self.name!r} cannot do {what} with a kernel; it can {accepted}{others}")

    def engine(self, problem: KernelProblem, options: Options) -> Engine[Coefficients]:
        """A fresh engine for ``problem``."""
        raise NotImplementedError


def check_word(solver: object, field: str, accepted: tuple[str, ...]) -> None:
    """Refuse a word that means nothing."""
    value = getattr(solver, field)
    if value not in accepted:
        hint = did_you_mean(value, accepted)
        raise ValueError(f"{type(solver).__name__}: {field}={value!r} is none of {', '.join(accepted)}{hint}")


def check_flag(solver: object, field: str) -> None:
    """Refuse what is neither yes nor no."""
    value = getattr(solver, field)
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{type(solver).__name__}: {field}={value!r} must be True or False")


def check_count(solver: object, field: str, low: int = 1, *, none: bool = False) -> None:
    """Refuse what is no whole number from ``low`` on, or None where that means something."""
    value = getattr(solver, field)
    if none and value is None:
        return
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or not low <= value < 2**31:
        what = f"{'None or ' * none}a whole number >= {low}"
        raise ValueError(f"{type(solver).__name__}: {field}={value!r} must be {what}")


def check_positive(solver: object, field: str) -> None:
    """Refuse what is no number above 0."""
    value = getattr(solver, field)
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < np.inf:
        raise ValueError(f"{type(solver).__name__}: {field}={value!r} must be a number > 0")


def is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, Real) and not isinstance(value, bool)


def row_order(sampling: BatchSampling, problem: LinearProblem) -> str:
    """The core's name for an epoch's order."""
    if sampling == "auto":
        return "chunked" if problem.examples.on_disk else "streams"
    return sampling


def drawn_order(solver: Solver, sampling: BatchSampling, machine: str) -> str:
    """The core's name for an epoch's order where rows do not lie in a file or in memory to be read in order."""
    if sampling in ("chunked", "streams"):
        raise ValueError(f"{type(solver).__name__}: sampling={sampling!r} has no meaning with {machine}")
    return "permutation" if sampling == "auto" else sampling
