"""Kernel classifiers as parts, one for each pair of classes or each class, and the parts' coefficients as one table.

The table of pairs is laid out as ``kernels/pairs.py`` says; all others have a line for each part.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pegasos.losses import Loss
from pegasos.problems.kernel import Coefficients, KernelProblem
from pegasos.problems.pair_parts import PairParts
from pegasos.problems.pairs import PairProblem, PairTable
from pegasos.problems.part import Part
from pegasos.rows.views import Array


def parts_of(
    codes: Array, classes: int, weight: Array, loss: Loss, C: float, *, one_vs_rest: bool
) -> PairParts | Sequence[Part]:
    """A part for each pair of classes, or for each class.

    Of two classes the second is positive, of a pair of several the first; one class alone is positive.
    """
    weight = np.ascontiguousarray(weight)
    if classes > 2 and not one_vs_rest:
        return PairParts(codes, classes, weight, loss, C)
    positive = [1] if classes == 2 else range(classes)
    return [Part(None, np.where(codes == k, 1.0, -1.0), weight, loss, C) for k in positive]


def coefficient_table(problem: KernelProblem, codes: Array, model: Coefficients) -> Array:
    """The coefficients of all rows, sorted by class; ``codes`` are the classes of the rows."""
    if isinstance(model, PairTable):
        return model.coef
    coefs = problem.split(model.coef)
    if not isinstance(problem, PairProblem):
        return np.stack(coefs).take(np.argsort(codes, kind="stable"), axis=1)
    parts = problem.parts
    table = np.zeros((parts.classes - 1, len(codes)))
    for p, (part, coef) in enumerate(zip(parts, coefs, strict=True)):
        of_first, of_second = parts.of_pair(table, p)
        of_first[:], of_second[:] = coef[part.y > 0], coef[part.y < 0]
    return table
