"""Compressing all pairs of several classes: the small ones in stacks, and what their rows say class by class.

Small pairs whose kernel is none, and large ones, are left to those who take one at a time.
"""

from __future__ import annotations

import numpy as np

from pegasos.kernels.pairs import PairMachine
from pegasos.rows.views import Array
from pegasos.solvers.squared_hinge import newton_all
from pegasos.sparse.pair_stacks import Stack, stacked, stacks
from pegasos.sparse.published import slant_loss
from pegasos.sparse.reference import PairsOfClasses, Reference, squared_cost
from pegasos.sparse.span import project_all, span_all


def project_pairs(ref: Reference, pairs: PairsOfClasses, most: int) -> tuple[Array, Array, Array]:
    """For the small pairs their numbers, how many rows each has chosen, and those, one pair after the other."""
    numbers, counts, orders = (
        [np.empty(0, dtype=np.int64)],
        [np.empty(0, dtype=np.int64)],
        [np.empty(0, dtype=np.int64)],
    )
    for stack in stacks(pairs.parts, ref.rows):
        coef = pairs.coefficients(stack.lines(ref.codes[stack.index]), stack.index)
        inner = np.einsum("bnm,bm->bn", stack.K, coef)
        chosen, count = project_all(stack.K, inner, ref.cost[stack.index] > 0, most)
        numbers.append(stack.pairs(len(ref.classes)))
        counts.append(count)
        orders.append(np.take_along_axis(stack.index, chosen, axis=1)[np.arange(chosen.shape[1]) < count[:, None]])
    return np.concatenate(numbers), np.concatenate(counts), np.concatenate(orders)


def refit_pairs(ref: Reference, pairs: PairsOfClasses, support: Array, learn: bool, table: Array, bias: Array) -> Array:
    """Machines of the small pairs on the rows ``support``; the numbers of the pairs that are left to others.

    Coefficients go into a table with a column for each of these rows, laid out as ``kernels/pairs.py`` says.
    """
    place = np.full(ref.m, len(support))
    place[support] = np.arange(len(support))
    left = [np.flatnonzero(~stacked(pairs.parts))]
    for stack in stacks(pairs.parts, ref.rows):
        numbers = stack.pairs(len(ref.classes))
        try:
            bias[numbers] = _refit(ref, stack, place, len(support), pairs.machine.bias[numbers], learn, table)
        except np.linalg.LinAlgError:
            left.append(numbers)
    return np.sort(np.concatenate(left))


def _refit(ref: Reference, stack: Stack, place: Array, count: int, bias: Array, learn: bool, table: Array) -> Array:
    """Fill in the table for a stack; the biases."""
    own = place[stack.index]
    # the vectors of each pair, in their order
    at = np.argsort(own, axis=1)[:, : int((own < count).sum(axis=1).max())]
    column = np.take_along_axis(own, at, axis=1)
    there = column < count
    codes = ref.codes[stack.index]
    features, back = span_all(stack.K, at, there)
    sign = np.where(codes == stack.first[:, None], 1.0, -1.0)
    u, bias = newton_all(features, sign, squared_cost(ref.cost[stack.index]), bias, learn)
    lines = stack.lines(np.take_along_axis(codes, at, axis=1))
    table[lines[there], column[there]] = np.einsum("bcd,bd->bc", back, u)[there]
    return bias


def pair_guarantee(
    ref: Reference, pairs: PairsOfClasses, small: PairMachine, support: Array
) -> tuple[float, float, float]:
    """The worst violation, and mean slant and hinge loss, of a machine on rows ``support`` against the reference."""
    k, parts = len(ref.classes), pairs.parts
    worst, slant, hinge = -np.inf, 0.0, 0.0
    for i in range(k):
        rows = parts.rows_of(i)
        sign, cost = np.where(np.arange(k - 1) < i, -1.0, 1.0)[:, None], ref.cost[rows]
        g = sign * pairs.machine.of_class(i, ref.rows.matrix(pairs.vectors, rows))
        s = sign * small.of_class(i, ref.rows.matrix(support, rows))
        short = (np.minimum(1.0, g) - s)[(g > 0) & (cost > 0)]
        worst = max(worst, float(short.max(initial=-np.inf)))
        slant += float((slant_loss(s) @ cost).sum())
        hinge += float((np.maximum(0.0, 1.0 - g) @ cost).sum())
    total = (k - 1) * float(ref.cost.sum())
    return worst, slant / total, hinge / total
