"""Certification as sums over rows, so that it does not matter where the rows lie: in two rounds.

A free bias asks that dual variables are balanced, Σ_i c_i u_i = 0, which concerns all rows at once. So each set of rows
first says how far its own are from that (``balance``); then, knowing it of all rows, what it adds to the primal and the
dual value (``values``). What is added up is as small as the weights, whatever the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from pegasos.problems.base import Bounds, M, Point
from pegasos.rows.views import Array

#: Named sums over rows. Those of several sets of rows add up, name by name.
Sums = dict[str, Array]

T = TypeVar("T")


class Values(NamedTuple, Generic[M]):
    """What a set of rows adds to the bounds, the model that is judged, and its scores of the rows."""

    sums: Sums
    model: M
    scores: Array


class SummedProblem(Protocol[M]):
    """A problem whose certificates are sums over rows: over all of them, or over some of them."""

    def clipped(self, point: Point[M]) -> Point[M]:
        """The point, each row's dual variables in the domain of the loss."""
        ...

    def balance(self, point: Point[M]) -> Sums:
        """The first round: what is needed to balance the dual variables of all rows."""
        ...

    def values(self, point: Point[M], balance: Sums) -> Values[M]:
        """The second round: primal and dual values, given the balance of all rows."""
        ...

    def combine(self, found: Values[M]) -> Bounds[M]:
        """The bounds, of the values of all rows. Nothing else of the rows is needed here."""
        ...


class Mapper(Protocol[M]):
    """Does a piece of work for each set of rows, wherever these are, and returns what it finds in their order."""

    def __call__(self, work: Callable[[SummedProblem[M], Point[M]], T]) -> list[T]:
        """``work`` gets the problem of the rows and their share of the point, clipped."""
        ...


def here(sets: Sequence[tuple[SummedProblem[M], Point[M]]]) -> Mapper[M]:
    """Work through sets of rows one after the other, in this process."""
    clipped = [(problem, problem.clipped(point)) for problem, point in sets]

    def each(work: Callable[[SummedProblem[M], Point[M]], T]) -> list[T]:
        return [work(problem, point) for problem, point in clipped]

    return each


def certify_by_sums(problem: SummedProblem[M], each: Mapper[M]) -> Bounds[M]:
    """Bounds of the sum of all sets of rows; ``problem`` may be that of any of them."""
    balance = _added(each(lambda own, point: own.balance(point)))
    found = each(lambda own, point: own.values(point, balance))
    if len(found) == 1:
        return problem.combine(found[0])
    scores = np.concatenate([values.scores for values in found])
    return problem.combine(Values(_added([values.sums for values in found]), found[0].model, scores))


def _added(sums: Sequence[Sums]) -> Sums:
    return {name: sum((own[name] for own in sums[1:]), sums[0][name]) for name in sums[0]}
