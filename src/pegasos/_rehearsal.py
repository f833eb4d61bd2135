"""Samples on which the second-order methods rehearse long problems.

The weights of a sample are near those of the whole, and iterations that only look for the neighbourhood are better
spent on few rows.
"""

from __future__ import annotations

import numpy as np

from pegasos._data import Array

#: How much shorter a sample is than what it rehearses.
SHARE = 5


def rehearsals(m: int, least: int, seed: int) -> list[Array | None]:
    """The rows of nested samples, none shorter than ``least``, the shortest last; None, for all rows, comes first."""
    sizes = []
    size = m
    while (size := size // SHARE) >= least:
        sizes.append(size)
    if not sizes:
        return [None]
    shuffled = np.random.default_rng(seed).permutation(m)
    return [None, *(np.sort(shuffled[:size]) for size in sizes)]
