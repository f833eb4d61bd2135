"""Named arrays of a saved state, which may come from a file and are believed in nothing."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pegasos.util.arrays import Array

#: The largest number there is: between it and its negative all numbers are finite.
LARGEST = float(np.finfo(np.float64).max)


def saved(
    state: Mapping[str, object],
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
