"""Named arrays of a saved state. They may come from a damaged or forged file, so each is checked when it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pegasos.util.arrays import Array

#: What ``state`` of an engine returns, and its ``restore`` takes: arrays of float64 by name.
State: TypeAlias = dict[str, Array]

#: What ``as_state`` makes a state of.
Numbers: TypeAlias = dict[str, npt.ArrayLike]

#: The largest number there is: between it and its negative all numbers are finite.
MAX_FINITE = float(np.finfo(np.float64).max)


def as_state(named: Numbers) -> State:
    """Numbers, and arrays of them, as a state holds them: copies in float64, a single number as an array of one."""
    return {name: np.array(value, dtype=np.float64, ndmin=1) for name, value in named.items()}


def saved(
    state: Mapping[str, object],
    name: str,
    shape: tuple[int | None, ...],
    *,
    low: float = -np.inf,
    high: float = np.inf,
    whole: bool = False,
) -> Array:
    """A copy of the array ``name`` of a saved state, checked, since it may come from a damaged or forged file.

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
