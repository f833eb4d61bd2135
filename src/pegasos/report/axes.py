"""Scales of a chart: from values to places on paper, and where the ticks go."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pegasos.util.numbers import number, power_of_ten


@dataclass(frozen=True)
class Scale:
    """A linear or logarithmic map of [low, high] onto [start, end]."""

    low: float
    high: float
    start: float
    end: float
    log: bool

    def __call__(self, value: float) -> float:
        """The place of a value."""
        if self.log:
            share = (math.log10(value) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, about: int) -> list[tuple[float, str]]:
        """Round values within the scale and their labels, some ``about`` of them."""
        return _decades(self.low, self.high, about) if self.log else _round_steps(self.low, self.high, about)


def log_scale(values: Sequence[float], start: float, end: float) -> Scale:
    """Whole decades around positive values, at least one."""
    low = math.floor(math.log10(min(values)) + 1e-9)
    high = math.ceil(math.log10(max(values)) - 1e-9)
    return Scale(10.0**low, 10.0 ** max(high, low + 1), start, end, True)


def from_zero(values: Sequence[float], start: float, end: float) -> Scale:
    """Zero up to the largest value."""
    return Scale(0.0, max([*values, 1e-9]) * 1.02, start, end, False)


def _decades(low: float, high: float, about: int) -> list[tuple[float, str]]:
    first, last = round(math.log10(low)), round(math.log10(high))
    step = max(1, math.ceil((last - first) / about))
    return [(10.0**k, power_of_ten(k)) for k in range(first, last + 1) if (k - last) % step == 0]


def _round_steps(low: float, high: float, about: int) -> list[tuple[float, str]]:
    rough = (high - low) / about
    magnitude = 10.0 ** math.floor(math.log10(rough))
    step = next(m * magnitude for m in (1, 2, 5, 10) if m * magnitude >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    found: list[tuple[float, str]] = []
    while (value := first * step) <= high * (1 + 1e-9) and len(found) <= 2 * about + 2:
        found.append((value, number(float(f"{value:.12g}"), 6)))
        first += 1
    return found
