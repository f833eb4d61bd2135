"""A loss of a user's own: what it costs, and how steep it is, as functions of whole arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np

from pegasos import _core
from pegasos.losses.base import Loss, RowLoss
from pegasos.losses.checked import CheckedLoss
from pegasos.util.arrays import Array
from pegasos.util.digests import digest

#: Scores and targets at which a loss is known by its values and slopes.
KNOWN_AT = np.linspace(-8.0, 8.0, 65), (-1.0, 1.0, 0.375)


@dataclass(frozen=True)
class CustomLoss(Loss):
    """A convex loss ℓ(z) ≥ 0 of a user's own, given by functions of NumPy arrays, with a certificate for every fit.

    The functions are ordinary mathematics, without a sign turned round: ℓ(z), its derivative ℓ′(z) by the score, and
    the conjugate ℓ*(a) = max_z a z − ℓ(z). Each gets two float64 arrays of the same length, which it must not write to
    (scores, or slopes, of rows, and their targets y: −1 or 1, or real numbers), and returns one.

    Parameters
    ----------
    value : callable
        ``value(scores, y)``: ℓ(z) of each row, at least 0 and convex in the score.
    slope : callable
        ``slope(scores, y)``: ℓ′(z) of each row; at a kink any number between the slopes on both sides.
    conjugate : callable, default=None
        ``conjugate(slopes, y)``: ℓ*(a) of each row, and ``inf`` where no score has this slope. Certificates then need
        one call for all rows. Without it the conjugate is computed: for each row the score of slope a is enclosed by
        some tens of calls of ``value`` and ``slope``, and where the tangents at both ends cross is a lower bound.
    kind : {"margin", "regression"}, default="margin"
        Whether targets are −1 and 1 (:class:`~pegasos.LinearSVC`, :class:`~pegasos.SVC`) or real numbers
        (:class:`~pegasos.LinearSVR`, :class:`~pegasos.SVR`).
    smoothness : float, default=inf
        The most that the slope changes over a score's change of 1. A finite number makes ``solver="auto"`` take
        L-BFGS in place of cutting planes.
    steepness : float, default=inf
        The largest |ℓ′(z)|. Pegasos measures its steps in a regression's targets where it is finite.

    Notes
    -----
    Every certificate looks at the functions at the scores of the data and at random ones near and far: values are
    finite and at least 0, no value lies below a tangent of another score (so that a loss that is not convex, or a wrong
    slope, is refused), ``smoothness`` and ``steepness`` hold, and ℓ(z) + ℓ*(a) = a z for a = ℓ′(z) (Fenchel and Young).
    What is found wrong is a ValueError with the numbers. Beyond these points the functions are trusted: bounds are
    proven for convex losses whose slopes are true.

    Solvers: of linear machines "auto", "cutting_plane", "lbfgs" (with a ``smoothness``), and "pegasos", "norma", "sgd",
    which call ``slope`` once a step: with ``Pegasos(batch_size=1)`` that call is nearly all of a fit's time, and
    mini-batches of 64 rows or more share it. Of kernel machines :class:`~pegasos.solvers.Nystroem`, which with all
    rows as the basis is exact. ``partial_fit`` and files of models (:func:`pegasos.save`) are not for such losses;
    ``pickle`` is, if the functions are a module's.

    Examples
    --------
    The pseudo-Huber loss √(1 + r²) − 1, r = z − y, for a regression with errors of any size:

    >>> import numpy as np
    >>> from pegasos import LinearSVR
    >>> from pegasos.losses import CustomLoss
    >>> pseudo_huber = CustomLoss(
    ...     value=lambda z, y: np.hypot(1, z - y) - 1,
    ...     slope=lambda z, y: (z - y) / np.hypot(1, z - y),
    ...     conjugate=lambda a, y: a * y + 1 - np.sqrt(np.maximum(1 - a * a, 0)),
    ...     kind="regression",
    ...     smoothness=1.0,
    ...     steepness=1.0,
    ... )
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [0.0, 1.0, 300.0, 3.0, 4.0]
    >>> model = LinearSVR(loss=pseudo_huber, C=100.0).fit(X, y)
    >>> model.certificate_.converged, round(float(model.coef_[0]), 1)
    (True, 1.0)

    An exponential loss exp(−yz) that is a straight line below yz = −1; nothing else is known of it:

    >>> from pegasos import LinearSVC
    >>> clipped = CustomLoss(
    ...     value=lambda z, y: np.where(y * z < -1, np.e * -y * z, np.exp(-np.maximum(y * z, -1))),
    ...     slope=lambda z, y: -y * np.exp(-np.maximum(y * z, -1)),
    ... )
    >>> LinearSVC(loss=clipped).fit(X, [0, 0, 1, 1, 1]).certificate_.converged
    True
    """

    value: Callable[[Array, Array], Any]
    slope: Callable[[Array, Array], Any]
    conjugate: Callable[[Array, Array], Any] | None = None
    kind: Literal["margin", "regression"] = field(default="margin", kw_only=True)  # type: ignore[misc]  # of each
    smoothness: float = field(default=float("inf"), kw_only=True)
    steepness: float = field(default=float("inf"), kw_only=True)
    name: ClassVar[str] = "custom"
    own: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("value", "slope", "conjugate"):
            function = getattr(self, name)
            if not callable(function) and not (name == "conjugate" and function is None):
                optional = " or None" * (name == "conjugate")
                raise ValueError(f"CustomLoss: {name}={function!r:.80} must be a function of (scores, y){optional}")
            if isinstance(function, type):
                raise ValueError(f"CustomLoss: {name}={function!r:.80} is a class: give a function, or make an object")
        if self.kind not in ("margin", "regression"):
            raise ValueError(f"CustomLoss: kind={self.kind!r} must be 'margin' or 'regression'")
        for name in ("smoothness", "steepness"):
            number = getattr(self, name)
            if not isinstance(number, Real) or isinstance(number, bool) or not float(number) > 0:
                raise ValueError(f"CustomLoss: {name}={number!r} must be a number > 0, or inf where there is none")

    def by_rows(self) -> RowLoss:
        """The user's functions, checked as they are used."""
        return CheckedLoss(self)

    def examine(self, z: Array, u: Array | None, y: Array) -> None:
        """Refuse functions that contradict each other at these scores and dual variables, or near."""
        CheckedLoss(self).examine(z, u, y)

    def scalar(self) -> _core.Loss:
        """There is none: the core knows its own losses only."""
        raise TypeError("a CustomLoss is one of Python functions, which this method cannot use")

    def spelled(self) -> str:
        """Its parameters, the names of its functions, and a digest of what they return for some scores."""
        names = (f"{f.name}={_named(getattr(self, f.name))}" for f in fields(self))
        z, targets = KNOWN_AT
        with np.errstate(all="ignore"):
            found = [
                np.array(function(z.copy(), np.full(len(z), y)), dtype=np.float64)
                for function in (self.value, self.slope)
                for y in targets
            ]
        return f"CustomLoss({', '.join(names)}) {digest(*found)[:16]}"


def _named(thing: object) -> str:
    """A function's name, without the address that its ``repr`` has."""
    if not callable(thing):
        return repr(thing)
    if inspect.isroutine(thing):
        return f"{thing.__module__}.{thing.__qualname__}"
    return f"{type(thing).__module__}.{type(thing).__qualname__}"
