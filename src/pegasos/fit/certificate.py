"""How far from the optimum a fit stopped, as users see it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt


class _Compact:
    """A field that is a tuple of floats to all who ask, and kept as an array: a tuple takes four times the room.

    Of a thousand classes compared in pairs, it would take more than the model.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = f"_{name}"

    def __get__(self, instance: object, owner: type | None = None) -> _Compact | tuple[float, ...]:
        return self if instance is None else tuple(vars(instance)[self.name].tolist())

    def __set__(self, instance: object, values: npt.ArrayLike | _Compact) -> None:
        vars(instance)[self.name] = np.asarray(() if values is self else values, dtype=np.float64)


def _per_class() -> Any:
    return field(repr=False, default=_Compact())


@dataclass(frozen=True)
class Certificate:
    """How far from the optimum a fit stopped.

    Attributes
    ----------
    primal : float
        P(w, b) of the returned weights; for one-vs-rest the sum over the classes.
    dual : float
        The best lower bound of the optimum found, of the exact problem for every solver; −inf where none is known.
    gap : float
        primal − dual ≥ P(w, b) − P*.
    relative_gap : float
        gap / primal.
    converged : bool
        Whether every part's gap is at most ``tol`` times its primal value, or that value is zero but for rounding: at
        most 1e-24 of the objective of zero weights.
    reason : str
        Why the fit stopped.
    epochs, seconds : float
        Passes over the rows (or the work of as many) and wall-clock time.
    primal_per_class, dual_per_class : tuple of float
        The same for each independent part.
    goal_reached : bool
        Whether the solver reached a goal of its own that is not the gap; ``reason`` says which.
    restricted_gap : float or None
        For solvers that restrict the weights (:class:`~pegasos.solvers.Nystroem`): by how much at most the returned
        weights are above the best ones that satisfy the restriction. None for all others.
    estimate : float or None
        Where the fit looked at some rows only (``Pegasos(estimate=...)``): what P(w, b) is about. It is no bound of
        anything, and nothing is certified then: ``primal`` is +inf, ``dual`` −inf, ``converged`` False.
    estimate_low, estimate_high : float or None
        The 95 % confidence interval of the estimate.
    estimate_rows : int or None
        The rows it is a mean over.

    Examples
    --------
    >>> from pegasos import LinearSVC
    >>> model = LinearSVC().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.certificate_.converged, model.certificate_.dual <= model.certificate_.primal
    (True, True)
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    converged: bool
    reason: str
    epochs: float
    seconds: float
    primal_per_class: tuple[float, ...] = _per_class()
    dual_per_class: tuple[float, ...] = _per_class()
    goal_reached: bool = False
    restricted_gap: float | None = None
    estimate: float | None = None
    estimate_low: float | None = None
    estimate_high: float | None = None
    estimate_rows: int | None = None

    @property
    def state(self) -> str:
        """In a few words, what was reached."""
        if self.estimate is not None:
            return "not certified"
        if self.converged:
            return "converged"
        return "the solver's own goal was reached, a gap of tol was not" if self.goal_reached else "not converged"

    def __str__(self) -> str:
        if self.estimate is not None:
            return (
                f"{self.state} ({self.reason}): the objective is estimated as {self.estimate:.6g}, between "
                f"{self.estimate_low:.6g} and {self.estimate_high:.6g} with 95 % confidence, from {self.estimate_rows} "
                f"rows drawn at random; {self.epochs:.3g} epochs, {self.seconds:.3f} s"
            )
        restricted = "" if self.restricted_gap is None else f", gap of the restricted problem {self.restricted_gap:.2e}"
        return (
            f"{self.state} ({self.reason}): primal {self.primal:.6g}, dual {self.dual:.6g}, "
            f"relative gap {self.relative_gap:.2e}{restricted}, {self.epochs:.1f} epochs, {self.seconds:.3f} s"
        )
