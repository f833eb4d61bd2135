"""The core's random generator (``cpp/pegasos/core/rng.hpp``), for what is drawn in Python."""

from __future__ import annotations

_MASK, _STEP = (1 << 64) - 1, 0x9E3779B97F4A7C15


def uniform(seed: int, stream: int) -> float:
    """The first number, uniform on (0, 1], of a stream of a seed; the same on every platform, for ever."""
    state = _mix((seed + _STEP) & _MASK) ^ _mix(~stream & _MASK)
    return ((_mix((state + _STEP) & _MASK) >> 11) + 1) * 2.0**-53


def _mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)
