"""What the bounds' arguments must be, and how a bound is turned into the steps or rows that it asks for."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import index


def positive(name: str, value: float) -> float:
    """A number above 0."""
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be positive and finite, got {value!r}")
    return float(value)


def nonnegative(name: str, value: float) -> float:
    """A number of at least 0."""
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be finite and not negative, got {value!r}")
    return float(value)


def probability(name: str, value: float) -> float:
    """A number between 0 and 1, neither of them."""
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value!r}")
    return float(value)


def count(name: str, value: int, least: int = 1) -> int:
    """A whole number."""
    if isinstance(value, float) or index(value) < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
    return index(value)


def smallest(bound: Callable[[int], float], eps: float, least: int) -> int:
    """The smallest whole number from ``least`` on whose bound, which falls, is at most ``eps``."""
    if bound(least) <= eps:
        return least
    high = least
    while bound(high) > eps:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if bound(middle) > eps else (low, middle)
    return high
