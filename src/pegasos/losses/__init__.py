"""The losses an estimator can minimise: small frozen objects, each with its formula.

``z`` is the score ⟨w, x⟩ + b, ``y`` the target: ±1 for classification, a real number for regression. Every loss is
convex and never negative. Estimators take a name (``loss="hinge"``) for the defaults, or an object
(``loss=Huber(delta=2.0)``); a loss of the user's own is a :class:`CustomLoss`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

import numpy as np

from pegasos import _core
from pegasos.losses.base import Boxes, Liblinear, Loss, check_positive, two_sided
from pegasos.losses.base import Kind as Kind
from pegasos.losses.base import Link as Link
from pegasos.losses.base import RowLoss as RowLoss
from pegasos.losses.custom import CustomLoss
from pegasos.util.arrays import Array
from pegasos.util.suggest import did_you_mean

__all__ = [
    "LOSSES",
    "CrammerSinger",
    "CustomLoss",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Log",
    "Loss",
    "Multinomial",
    "Quantile",
    "SmoothedHinge",
    "Squared",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
]


@dataclass(frozen=True)
class Hinge(Loss):
    """ℓ(z) = max(0, 1 − yz), the loss of the support vector machine. At the kink yz = 1 the slope is 0.

    Examples
    --------
    >>> from pegasos import LinearSVC
    >>> from pegasos.losses import Hinge
    >>> LinearSVC(loss=Hinge()).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).predict([[2.9]])
    array([1])
    """

    name = "hinge"
    kind = "margin"
    piecewise_linear = True
    sides = 1
    liblinear = Liblinear(3, own=(3,))

    def boxes(self, y: Array) -> Boxes:
        """One: s = y, p = 1, of height 1."""
        return Boxes(y[None], np.ones((1, len(y))), (1.0,))

    def flat(self, z: Array, y: Array, reach: Array) -> Array:
        """Rows beyond the margin."""
        return np.asarray(y * z >= 1 + reach)


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """ℓ(z) = max(0, 1 − yz)², as in LIBLINEAR (no factor ½).

    Examples
    --------
    >>> from pegasos.losses import SquaredHinge
    >>> SquaredHinge().smoothness
    2.0
    """

    name = "squared_hinge"
    kind = "margin"
    smooth = True
    liblinear = Liblinear(1, own=(1, 2, 5))
    smoothness = 2.0
    steepness = float("inf")


@dataclass(frozen=True)
class SmoothedHinge(Loss):
    """The hinge with its kink rounded over a width γ.

    ℓ(z) = 0 for yz ≥ 1, (1 − yz)²/(2γ) for 1 − γ < yz < 1, and 1 − yz − γ/2 below.

    Parameters
    ----------
    gamma : float, default=1.0
        The width of the rounded part; the hinge loss is the limit γ → 0.

    Examples
    --------
    >>> from pegasos.losses import SmoothedHinge
    >>> SmoothedHinge(gamma=0.5).smoothness
    2.0
    """

    gamma: float = 1.0
    name = "smoothed_hinge"
    kind = "margin"
    smooth = True
    liblinear = Liblinear(1)

    def __post_init__(self) -> None:
        check_positive(self, "gamma")

    @property
    def smoothness(self) -> float:
        """1/γ."""
        return 1.0 / self.gamma


@dataclass(frozen=True)
class Log(Loss):
    """ℓ(z) = log(1 + exp(−yz)), logistic regression; gives ``predict_proba``.

    Examples
    --------
    >>> from pegasos import LinearSVC
    >>> model = LinearSVC(loss="log").fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> bool(model.predict_proba([[3.0]])[0, 1] > 0.5)
    True
    """

    name = "log"
    kind = "margin"
    smooth = True
    link = "sigmoid"
    liblinear = Liblinear(0, own=(0, 6, 7))
    smoothness = 0.25


@dataclass(frozen=True)
class EpsilonInsensitive(Loss):
    """ℓ(z) = max(0, |y − z| − ε), support vector regression. At |y − z| = ε the slope is 0.

    Parameters
    ----------
    epsilon : float, default=0.0
        Deviations up to ε cost nothing. 0 gives the absolute loss.

    Examples
    --------
    >>> from pegasos import LinearSVR
    >>> from pegasos.losses import EpsilonInsensitive
    >>> LinearSVR(loss=EpsilonInsensitive(0.1)).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0]).n_features_in_
    1
    """

    epsilon: float = 0.0
    name = "epsilon_insensitive"
    kind = "regression"
    piecewise_linear = True
    sides = 2
    liblinear = Liblinear(13, own=(13,))

    def __post_init__(self) -> None:
        check_positive(self, "epsilon", zero=True)

    def boxes(self, y: Array) -> Boxes:
        """Two: s = +1, −1, p = y − ε, −y − ε, of height 1."""
        return two_sided(y, self.epsilon, (1.0, 1.0))

    def flat(self, z: Array, y: Array, reach: Array) -> Array:
        """Rows inside the tube."""
        return np.asarray(np.abs(y - z) <= self.epsilon - reach)


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(Loss):
    """ℓ(z) = max(0, |y − z| − ε)².

    Parameters
    ----------
    epsilon : float, default=0.0
        Deviations up to ε cost nothing.

    Examples
    --------
    >>> from pegasos.losses import SquaredEpsilonInsensitive
    >>> SquaredEpsilonInsensitive(0.5).epsilon
    0.5
    """

    epsilon: float = 0.0
    name = "squared_epsilon_insensitive"
    kind = "regression"
    smooth = True
    liblinear = Liblinear(12, own=(11, 12))
    smoothness = 2.0
    steepness = float("inf")

    def __post_init__(self) -> None:
        check_positive(self, "epsilon", zero=True)


@dataclass(frozen=True)
class Squared(Loss):
    """ℓ(z) = (y − z)²/2, ridge regression.

    Examples
    --------
    >>> from pegasos import LinearSVR
    >>> model = LinearSVR(loss="squared", C=1e3).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> round(float(model.predict([[3.0]])[0]), 1)
    3.0
    """

    name = "squared"
    kind = "regression"
    smooth = True
    liblinear = Liblinear(12)
    smoothness = 1.0
    steepness = float("inf")


@dataclass(frozen=True)
class Huber(Loss):
    """ℓ(z) = r²/2 for |r| ≤ δ and δ|r| − δ²/2 beyond, r = y − z: squared near, absolute far.

    Parameters
    ----------
    delta : float, default=1.35
        Where the loss turns from quadratic to linear, in units of y.

    Examples
    --------
    >>> from pegasos.losses import Huber
    >>> loss = Huber(delta=0.5)
    >>> loss.smoothness, loss.steepness
    (1.0, 0.5)
    """

    delta: float = 1.35
    name = "huber"
    kind = "regression"
    smooth = True
    liblinear = Liblinear(13)
    smoothness = 1.0

    def __post_init__(self) -> None:
        check_positive(self, "delta")

    @property
    def steepness(self) -> float:
        """δ."""
        return float(self.delta)


@dataclass(frozen=True)
class Quantile(Loss):
    """ℓ(z) = τ max(0, r) + (1 − τ) max(0, −r), r = y − z: regression to the τ-quantile. At r = 0 the slope is 0.

    Parameters
    ----------
    tau : float, default=0.5
        The quantile, strictly between 0 and 1; 0.5 is the median.

    Examples
    --------
    >>> from pegasos import LinearSVR
    >>> from pegasos.losses import Quantile
    >>> LinearSVR(loss=Quantile(tau=0.9)).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0]).n_features_in_
    1
    """

    tau: float = 0.5
    name = "quantile"
    kind = "regression"
    piecewise_linear = True
    liblinear = Liblinear(13)

    def __post_init__(self) -> None:
        if not isinstance(self.tau, Real) or isinstance(self.tau, bool) or not 0 < self.tau < 1:
            raise ValueError(f"Quantile: tau={self.tau!r} must lie strictly between 0 and 1")

    def boxes(self, y: Array) -> Boxes:
        """Two: s = +1, −1, p = y, −y, of heights τ and 1 − τ."""
        return two_sided(y, 0.0, (self.tau, 1 - self.tau))

    @property
    def steepness(self) -> float:
        """The larger of τ and 1 − τ."""
        return float(max(self.tau, 1 - self.tau))


@dataclass(frozen=True)
class CrammerSinger(Loss):
    """ℓ(s) = max_r δ(y, r) + s_r − s_y over all class scores s: cost-sensitive multiclass (2011 paper, Eq. 20).

    Parameters
    ----------
    cost : sequence of sequences of float, default=None
        ``cost[y][r]`` is the cost δ(y, r) ≥ 0 of predicting class r for an example of class y, in the order of
        ``classes_``; zero on the diagonal. None: every mistake costs 1 (Crammer & Singer's loss).

    Examples
    --------
    >>> from pegasos import LinearSVC
    >>> from pegasos.losses import CrammerSinger
    >>> costly = CrammerSinger(cost=((0, 1, 5), (1, 0, 1), (5, 1, 0)))
    >>> LinearSVC(loss=costly).fit([[0.0], [1.0], [2.0]], [0, 1, 2]).classes_
    array([0, 1, 2])
    """

    cost: tuple[tuple[float, ...], ...] | None = None
    name = "crammer_singer"
    kind = "joint"
    liblinear = Liblinear(4, own=(4,), written_for_two=3)

    def __post_init__(self) -> None:
        if self.cost is None:
            return
        try:
            table = np.array(self.cost, dtype=np.float64)
        except (TypeError, ValueError):
            table = np.zeros(0)
        if table.ndim != 2:
            raise ValueError(
                f"CrammerSinger: cost={self.cost!r:.200} must be None or rows of numbers, one for each class"
            )
        object.__setattr__(self, "cost", tuple(map(tuple, table.tolist())))

    def matrix(self, n_classes: int) -> Array:
        """The cost matrix for ``n_classes`` classes, checked."""
        if self.cost is None:
            return np.ones((n_classes, n_classes)) - np.eye(n_classes)
        if len(self.cost) != n_classes or any(len(row) != n_classes for row in self.cost):
            shape = f"{len(self.cost)} × {len(self.cost[0]) if self.cost else 0}"
            raise ValueError(f"CrammerSinger: cost is {shape}, but the data have {n_classes} classes")
        cost = np.array(self.cost, dtype=np.float64)
        if not np.isfinite(cost).all() or (cost < 0).any() or np.diagonal(cost).any():
            raise ValueError("CrammerSinger: cost must be finite, >= 0, and 0 on the diagonal")
        return cost

    def core(self, n_classes: int = 2) -> _core.JointLoss:
        """The C++ loss for ``n_classes`` classes."""
        return _core.JointLoss.crammer_singer(self.matrix(n_classes))


@dataclass(frozen=True)
class Multinomial(Loss):
    """ℓ(s) = log Σ_r exp(s_r − s_y) over all class scores s: multinomial logistic regression (2011 paper, Eq. 21).

    Examples
    --------
    >>> from pegasos import LinearSVC
    >>> model = LinearSVC(loss="multinomial").fit([[0.0], [1.0], [2.0]], [0, 1, 2])
    >>> model.predict_proba([[1.0]]).shape
    (1, 3)
    """

    name = "multinomial"
    kind = "joint"
    smooth = True
    link = "softmax"
    liblinear = Liblinear(4, written_for_two=0)
    smoothness = 0.5  # the largest eigenvalue of diag(p) − ppᵀ

    def core(self, n_classes: int = 2) -> _core.JointLoss:
        """The C++ loss for ``n_classes`` classes."""
        return _core.JointLoss.multinomial(n_classes)


#: Every loss by its name.
LOSSES: dict[str, type[Loss]] = {
    cls.name: cls
    for cls in (
        Hinge,
        SquaredHinge,
        SmoothedHinge,
        Log,
        EpsilonInsensitive,
        SquaredEpsilonInsensitive,
        Squared,
        Huber,
        Quantile,
        CrammerSinger,
        Multinomial,
    )
}


class Which:
    """An attribute of a class: the names of those losses that have what it needs."""

    def __init__(self, suits: Callable[[type[Loss]], bool]) -> None:
        self.suits = suits

    def __get__(self, instance: object, owner: type | None = None) -> tuple[str, ...]:
        return tuple(name for name, cls in LOSSES.items() if self.suits(cls))


#: What other libraries call some of them.
_ELSEWHERE: dict[str, str] = {"log_loss": "log", "squared_error": "squared", "logistic": "log", "pinball": "quantile"}


def link_of(loss: object) -> Link | None:
    """The link of what a user gave as ``loss``; None if that is no loss, or has none."""
    known = LOSSES.get(loss, Loss) if isinstance(loss, str) else type(loss)
    return known.link if issubclass(known, Loss) else None


def with_link(kinds: tuple[Kind, ...]) -> str:
    """In words for messages: the losses of these kinds that have probabilities."""
    return " or ".join(f"loss={name!r}" for name, cls in LOSSES.items() if cls.link and cls.kind in kinds)


def fields_of(loss: type[Loss]) -> tuple[str, ...]:
    """The names of a loss's parameters."""
    return tuple(field.name for field in dataclasses.fields(loss))


def resolve(loss: str | Loss, kinds: tuple[Kind, ...], estimator: str, **given: object) -> Loss:
    """The loss object that a user's ``loss`` means, refused unless its kind is one of ``kinds``.

    ``given``: parameters of the estimator; a loss called by its name takes those that it has.
    """
    accepted = [name for name, cls in LOSSES.items() if cls.kind in kinds]
    if isinstance(loss, Loss):
        found = loss
    elif isinstance(loss, str) and loss in LOSSES:
        cls = LOSSES[loss]
        found = cls(**{name: value for name, value in given.items() if name in fields_of(cls)})
    else:
        if isinstance(loss, type) and issubclass(loss, Loss):
            hint = f" (did you mean {loss.__name__}(), with parentheses?)"
        elif isinstance(loss, str) and _ELSEWHERE.get(loss) in accepted:
            hint = f" (did you mean {_ELSEWHERE[loss]!r}?)"
        else:
            hint = did_you_mean(loss, accepted)
        raise ValueError(
            f"loss={loss!r} is unknown; {estimator} accepts {', '.join(accepted)} or a pegasos.losses object{hint}"
        )
    if found.kind not in kinds:
        own = f"; a CustomLoss for it has kind={kinds[0]!r}" if found.own else ""
        raise ValueError(f"loss={found.name!r} is not for {estimator}, which accepts {', '.join(accepted)}{own}")
    return found
