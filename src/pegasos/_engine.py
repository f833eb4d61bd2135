"""The contract between the fitting loop and whatever does the work: a resumable state machine."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from pegasos._certificate import Bounds
from pegasos._data import Array

#: Row entries a single call into the core may touch: a few hundredths of a second, so that Ctrl-C lands quickly.
CHUNK = 20_000_000

#: Why a fit, or an engine that counts for itself, stops at the limit of iterations: more of them could help.
MAX_ITER = "max_iter reached"

#: Why a fit stops whose gap is of the size of rounding errors: nothing can make it smaller.
CLOSE = "stalled: as close as float64 allows"


class AnyEngine(Protocol):
    """What the loop asks of every engine, of linear and of kernel machines."""

    @property
    def epochs(self) -> float:
        """Passes over the rows so far, or the work of as many."""
        ...

    def advance(self) -> None:
        """Do a piece of work of at most a few hundredths of a second on large data."""
        ...

    def due(self, tol: float) -> bool:
        """Whether a certificate is worth its cost now, if the fit is to stop at relative gap ``tol``."""
        ...

    @property
    def eager(self) -> bool:
        """Whether there is more to gain, by iterations so cheap that going on beyond ``tol`` costs nobody anything."""
        ...

    def learn(self, bounds: Bounds) -> None:
        """Take note of a certificate that was not good enough to stop."""
        ...

    @property
    def stuck(self) -> str | None:
        """Why further work cannot help, or None."""
        ...

    def state(self) -> dict[str, Any]:
        """Arrays from which ``restore`` continues to the same bits."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from ``state``."""
        ...


class Engine(AnyEngine, Protocol):
    """Runs a solver on a problem, a bounded piece of work at a time."""

    def model(self) -> tuple[Array | None, Array]:
        """The current weights (outputs × columns; None: those of duals()) and biases (outputs).

        The loop keeps the arrays: they are not changed afterwards.
        """
        ...

    def duals(self) -> Array | None:
        """A dual point (rows × outputs), near enough to feasible; None where the method has none.

        A method that has a lower bound of its own hands over the dual point behind it.
        """
        ...


def saved(
    state: dict[str, Any],
    name: str,
    shape: tuple[int | None, ...],
    *,
    low: float = -np.inf,
    high: float = np.inf,
    whole: bool = False,
) -> Array:
    """A copy of the array ``name`` of a saved state, which may come from a file and is believed in nothing.

    ``shape``: what it must be, None for any length. ``low``, ``high``, ``whole``: what its numbers must be; without
    bounds they may be anything. ValueError names what is wrong.
    """
    array = state.get(name)
    if not isinstance(array, np.ndarray) or array.dtype != np.float64:
        raise ValueError(f"state: no numbers {name!r}")
    if array.ndim != len(shape) or any(want not in (None, got) for want, got in zip(shape, array.shape, strict=True)):
        raise ValueError(f"state: {name!r} has shape {array.shape}, not {shape}")
    if (low, high) != (-np.inf, np.inf) and not bool(np.all((array >= low) & (array <= high))):
        raise ValueError(f"state: {name!r} has a value outside {low:g} … {high:g}")
    if whole and not bool(np.all(array == np.rint(array))):
        raise ValueError(f"state: {name!r} has a value that is not whole")
    return np.ascontiguousarray(array).copy()
