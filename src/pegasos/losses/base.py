"""What a loss is: its facts, with defaults that suit first-order solvers alone, and the core's object for it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar, Literal, NamedTuple, Protocol

import numpy as np

from pegasos import _core
from pegasos.util.arrays import Array
from pegasos.util.digests import spelled

Kind = Literal["margin", "regression", "joint"]
Link = Literal["sigmoid", "softmax"]


class Boxes(NamedTuple):
    """ℓ(z) = Σ over boxes of the maximum of a (p − s z) over 0 ≤ a ≤ height; arrays are (boxes × rows)."""

    s: Array
    p: Array
    heights: tuple[float, ...]


class Liblinear(NamedTuple):
    """A loss in LIBLINEAR's numbers of solvers.

    ``written``: what a model file calls it, its own solver or one of the same labels, scores and probabilities;
    ``written_for_two``: the same for two classes, where that is another. ``own``: the solvers that minimise it.
    """

    written: int
    own: tuple[int, ...] = ()
    written_for_two: int | None = None


class RowLoss(Protocol):
    """A loss of a single score, of many rows at once: what certificates, and methods of arrays, ask of it.

    ``slope`` is −ℓ′(z), which is a dual variable u; ``conjugate`` is −ℓ*(−u), or less. ``clip`` moves u to where that
    is finite. ``best_offset``: the b near ``start`` that minimises Σ c ℓ(z + b), as the two neighbours between which
    Σ c u passes zero, or, with True, an interval in which it is zero.
    """

    def value(self, z: Array, y: Array) -> Array: ...
    def slope(self, z: Array, y: Array) -> Array: ...
    def conjugate(self, u: Array, y: Array) -> Array: ...
    def clip(self, u: Array, y: Array) -> Array: ...
    def best_offset(self, z: Array, y: Array, weight: Array, start: float) -> tuple[float, float, bool]: ...


@dataclass(frozen=True)
class Loss:
    """What all losses share: a name, a kind, the core's object that computes them, and what others ask of them.

    ``smooth`` losses have a Lipschitz gradient with constant ``smoothness`` (Newton's method applies);
    ``piecewise_linear`` ones have a dual that is a quadratic program over :meth:`boxes` (the interior point method
    applies; the core's struct has ``piecewise``). ``link``: the function that makes probabilities of scores, if any.
    ``liblinear``: what LIBLINEAR's files call the loss; None if they cannot hold it.

    ``sides``: variables of a row in the quadratic program that SMO and its kin solve. 1: the program of the support
    vector machine, a variable between 0 and the row's weight on the side of its label, with linear term y; 2: those of
    the two boxes, one on each side of a tube; 0: other solvers are for this loss.

    ``own``: a user's, which the core does not know: only methods that ask for nothing but :meth:`by_rows` can take it.
    """

    name: ClassVar[str]
    kind: ClassVar[Kind]
    piecewise_linear: ClassVar[bool] = False
    smooth: ClassVar[bool] = False
    sides: ClassVar[Literal[0, 1, 2]] = 0
    link: ClassVar[Link | None] = None
    liblinear: ClassVar[Liblinear | None] = None
    own: ClassVar[bool] = False

    @property
    def smoothness(self) -> float:
        """The Lipschitz constant of the derivative; infinity for losses with a kink."""
        return float("inf")

    @property
    def steepness(self) -> float:
        """The largest slope; infinity for losses that grow with the square of a deviation."""
        return 1.0

    def boxes(self, y: Array) -> Boxes:
        """The boxes of a ``piecewise_linear`` loss, for these targets."""
        raise NotImplementedError(f"loss {self.name!r} has no boxes")

    def flat(self, z: Array, y: Array, reach: Array) -> Array:
        """Rows whose loss is zero, and stays so if their score moves by ``reach``; none where that is not known."""
        return np.zeros(len(z), dtype=bool)

    def by_rows(self) -> RowLoss:
        """The loss of a single score as functions of arrays."""
        return self.scalar()

    def examine(self, z: Array, u: Array | None, y: Array) -> None:
        """Refuse a loss that is not what it says, as far as it shows at these scores and dual variables of rows."""

    def spelled(self) -> str:
        """The loss in words, the same for the same loss."""
        return spelled(self)

    def core(self, n_classes: int = 2) -> _core.Loss | _core.JointLoss:
        """The C++ loss; ``n_classes`` matters to the joint losses only."""
        return self.scalar()

    def scalar(self) -> _core.Loss:
        """The C++ loss of a single score, which joint losses are not."""
        if self.kind == "joint":
            raise TypeError(f"the loss {self.name!r} is one of all classes' scores")
        values = dataclasses.astuple(self)
        return _core.Loss(self.name, float(values[0]) if values else None)


def two_sided(y: Array, epsilon: float, heights: tuple[float, float]) -> Boxes:
    """A box for deviations above the target's tube, and one for those below."""
    signs = np.broadcast_to(np.array([[1.0], [-1.0]]), (2, len(y)))
    return Boxes(signs, np.stack([y - epsilon, -y - epsilon]), heights)


def check_positive(loss: Loss, field: str, *, zero: bool = False) -> None:
    """Refuse a parameter that is no finite number above 0, or, with ``zero``, none of at least 0."""
    value = getattr(loss, field)
    good = isinstance(value, Real) and not isinstance(value, bool) and np.isfinite(float(value))
    if not good or value < 0 or (value == 0 and not zero):
        raise ValueError(f"{type(loss).__name__}: {field}={value!r} must be a number {'>=' if zero else '>'} 0")
