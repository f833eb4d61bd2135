"""The labellings that were found since some epoch began: together they are a dual point.

A row that was decoded in each of E whole epochs has E planes, each with share 1/E: they sum to 1. Epochs long past had
poor weights, so only those of a window count: it begins at the last but one of the epochs 1, 2, 4, 8, … and is kept in
two halves, so that it can move on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pegasos.problems.oracle import Plane
from pegasos.problems.planes import MAX_EXACT, Planes, plane_arrays, planes_of
from pegasos.rows.views import Array
from pegasos.util.fields import saved

#: Different planes of a row in half a window that are kept apart; the oldest are then merged into their mean.
MOST_PLANES = 8

#: The key of that mean.
MERGED = b""


class Counted(NamedTuple):
    """A plane, and how often it was found."""

    plane: Plane
    times: int


#: The planes of each row, by their bytes.
Half = dict[int, dict[bytes, Counted]]


def _key(plane: Plane) -> bytes:
    return plane.columns.tobytes() + plane.values.tobytes() + np.float64(plane.loss).tobytes()


def merged(one: Counted, other: Counted) -> Counted:
    """The mean of two planes, weighted by their counts: a plane again, since any mean of planes is one."""
    times = one.times + other.times
    parts = [(c.plane, c.times / times) for c in (one, other)]
    columns, place = np.unique(np.concatenate([plane.columns for plane, _ in parts]), return_inverse=True)
    weighted = np.concatenate([plane.values * share for plane, share in parts])
    values = np.bincount(place, weights=weighted, minlength=len(columns))
    stays = values != 0
    loss = sum(plane.loss * share for plane, share in parts)
    return Counted(Plane(columns[stays], values[stays], loss), times)


class Window:
    """The planes of two halves."""

    def __init__(self) -> None:
        self.older: Half = {}
        self.newer: Half = {}

    def add(self, row: int, plane: Plane) -> None:
        """A labelling has been found; the true one is no plane to remember."""
        if not plane.empty:
            _add(self.newer.setdefault(row, {}), _key(plane), Counted(plane, 1))

    def move(self) -> None:
        """The newer half becomes the older one, which is forgotten."""
        self.older, self.newer = self.newer, {}

    def planes(self, share: Array, size: int) -> Planes:
        """All planes; each time that one was found counts the ``share`` of its row."""
        rows, planes, alpha = [], [], []
        for row in sorted(self.older.keys() | self.newer.keys()):
            found = dict(self.older.get(row, {}))
            for key, counted in self.newer.get(row, {}).items():
                found[key] = _together(key, found.get(key), counted)
            for plane, times in found.values():
                rows.append(row)
                planes.append(plane)
                alpha.append(float(share[row]) * times)
        return Planes.of(rows, planes, alpha, size)

    def state(self) -> dict[str, Array]:
        """Arrays from which ``restore`` makes the same halves."""
        arrays = {}
        for name, half in (("older", self.older), ("newer", self.newer)):
            found = [(row, key, counted) for row, of_row in half.items() for key, counted in of_row.items()]
            numbers = [(row, counted.times, key == MERGED) for row, key, counted in found]
            arrays[f"{name}.counts"] = np.array(numbers, dtype=np.float64).reshape(-1, 3)
            arrays |= {f"{name}.{k}": a for k, a in plane_arrays(counted.plane for _, _, counted in found).items()}
        return arrays

    def restore(self, state: dict[str, Any], n_rows: int, size: int) -> None:
        """Continue from ``state``; ValueError says what is wrong with it."""
        for name in ("older", "newer"):
            own = {k.removeprefix(f"{name}."): a for k, a in state.items() if k.startswith(f"{name}.")}
            planes = planes_of(own, size)
            counts = saved(own, "counts", (len(planes), 3), low=0, high=MAX_EXACT, whole=True).astype(np.int64)
            if len(planes) and (int(counts[:, 0].max()) >= n_rows or int(counts[:, 2].max()) > 1):
                raise ValueError("state: planes of rows that are not there")
            half: Half = {}
            for plane, (row, times, is_merged) in zip(planes, counts.tolist(), strict=True):
                key = MERGED if is_merged else _key(plane)
                half.setdefault(row, {})[key] = Counted(plane, times)
            setattr(self, name, half)


def _together(key: bytes, known: Counted | None, counted: Counted) -> Counted:
    """Planes of the same key as one."""
    if known is None:
        return counted
    return merged(known, counted) if key == MERGED else Counted(known.plane, known.times + counted.times)


def _add(of_row: dict[bytes, Counted], key: bytes, counted: Counted) -> None:
    of_row[key] = _together(key, of_row.get(key), counted)
    if len(of_row) > MOST_PLANES:
        first, second = list(of_row)[:2]
        rest = {MERGED: merged(of_row.pop(first), of_row.pop(second))} | of_row
        of_row.clear()
        of_row |= rest
