"""Kernel classifiers some of whose classes have no weight: they are fitted without them, and know them afterwards.

scikit-learn's meta-estimators give rows weights of zero (bootstraps, boosting, calibration) and expect every class of y
among the columns. A class without weight has no support vectors; it loses against every class that has weight, by a
score of 1, and ties with others like it. If only one class has weight, its machine has no negative rows, and the others
are scored as it is, with the sign changed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pegasos.fit.loop import ZERO_OBJECTIVE_SHARE
from pegasos.kernels.expansion import Expansion
from pegasos.kernels.pairs import lines_against, pair_count, pairs_of
from pegasos.problems.linear import VANISHING_LOSS_BIAS
from pegasos.problems.part import Part
from pegasos.rows.views import Array


def alone(part: Part, total: float) -> tuple[float, float, bool]:
    """The bias that fits rows which are all positive, the objective it leaves, and whether that counts as zero."""
    nothing = np.zeros(part.m)

    def value(b: float) -> float:
        return float(part.weight @ part.core.value(nothing + b, part.y)) / total

    bias = part.best_bias(nothing)
    if value(bias) > 0:
        bias = max(bias, VANISHING_LOSS_BIAS)
    return bias, value(bias), value(bias) <= ZERO_OBJECTIVE_SHARE * value(0.0)


class Functions(NamedTuple):
    """Coefficients of the support vectors, class by class, in each decision function, their biases, and steps."""

    coef: Array
    bias: Array
    steps: Array


def with_absent(
    machine: Expansion, steps: Array, present: Array, rows: Array, classes: int, *, one_vs_rest: bool
) -> tuple[Expansion, Array]:
    """The machine of all ``classes``, and its steps, where one was fitted on some ``rows``: of the classes ``present``.

    Of two classes the second has the positive scores.
    """
    found = Functions(machine.coef, machine.bias, steps)
    if classes == 2:
        sign = 1.0 if present[0] == 1 else -1.0
        every = Functions(sign * found.coef, sign * found.bias, steps)
    elif one_vs_rest:
        every = _against_the_rest(found, present, classes)
    else:
        every = _in_pairs(found, present[machine.codes], present, classes)
    sizes = np.zeros(classes, dtype=np.int64)
    sizes[present] = machine.sizes
    assert machine.numbers is not None
    whole = replace(machine, coef=every.coef, bias=every.bias, sizes=sizes, numbers=rows[machine.numbers])
    return whole, every.steps


def _against_the_rest(found: Functions, present: Array, classes: int) -> Functions:
    coef, bias = np.zeros((classes, found.coef.shape[1])), np.full(classes, -1.0)
    steps = np.ones(classes, dtype=np.int32)
    if len(present) == 1:
        sign = np.where(np.arange(classes) == present[0], 1.0, -1.0)
        coef, bias, steps[:] = sign[:, None] * found.coef, sign * found.bias, found.steps
    else:  # of two classes the second has the positive scores
        both = len(present) == 2
        coef[present] = np.concatenate([-found.coef, found.coef]) if both else found.coef
        bias[present] = np.concatenate([-found.bias, found.bias]) if both else found.bias
        steps[present] = found.steps
    return Functions(coef, bias, steps)


def _in_pairs(found: Functions, own: Array, present: Array, classes: int) -> Functions:
    """``own`` is the class of each support vector. Of a pair of several classes the first has the positive scores."""
    there = np.isin(np.arange(classes), present)
    coef, bias = np.zeros((classes - 1, len(own))), np.zeros(pair_count(classes))
    solved = np.zeros(len(bias), dtype=bool)
    sign = -1.0 if len(present) == 2 else 1.0
    for i in range(classes):
        first = pairs_of(i, classes)[0]
        bias[first] = there[i] * 1.0 - there[i + 1 :]
        solved[first] = there[i] & there[i + 1 :]
    for i in present.tolist():
        others = present[present != i]
        columns = np.flatnonzero(own == i)
        coef[np.ix_(lines_against(i, others), columns)] = sign * found.coef[:, columns]
    steps = np.ones(len(bias), dtype=np.int32)
    if len(present) > 1:
        bias[solved], steps[solved] = sign * found.bias, found.steps
    else:  # where the class is the first of a pair, positive scores are its own
        own_sign = np.where(np.arange(classes - 1) < present[0], -1.0, 1.0)
        coef, bias = own_sign[:, None] * found.coef, bias * found.bias
    return Functions(coef, bias, steps)
