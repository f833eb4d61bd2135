"""Block-coordinate Frank–Wolfe, fully corrective in each block, with planes that are kept.

Lacoste-Julien, Jaggi, Schmidt & Pletscher (2013); the planes kept for further passes are those of Shah, Kolmogorov &
Lampert (2015). A row is decoded at the current weights; the labelling found is a direction of ascent of the dual. It
joins the row's planes, and the best mixture of all of them takes the place of a single step towards it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pegasos import _core
from pegasos.fit.engine import Engine, Options
from pegasos.fit.loop import MAX_ROUNDING_GAP
from pegasos.problems.base import Bounds, Point
from pegasos.problems.oracle import Plane
from pegasos.problems.planes import MAX_EXACT, Planes, plane_arrays, planes_of
from pegasos.problems.structured import OracleProblem
from pegasos.rows.views import Array
from pegasos.solvers.base import check_count
from pegasos.solvers.structured.base import OracleEngine, OracleSolver
from pegasos.solvers.structured.block import Block
from pegasos.util.fields import MAX_FINITE, saved

#: Rows visited at a time in a pass over the planes that are kept.
CACHED_ROWS = 256

#: Unless it is said how many passes over the planes that are kept are made: so many at most, and only while the last
#: one's gap was above this share of that of the decodings.
MOST_CACHED, WORTHWHILE = 10, 0.25

#: The numbers of a state that are whole, and the others.
COUNTS, NUMBERS = ("passes", "decoded", "cached", "decodes", "at"), ("gap", "running_gap", "dual", "next_check")

#: What is not above the rest by this share of its loss is no better: rounding.
NO_BETTER = 1e-15


class BlockFrankWolfeEngine(OracleEngine):
    """A pass of decodings, then some over the planes that are kept, and so on."""

    def __init__(self, problem: OracleProblem, *, tol: float, seed: int, method: BlockFrankWolfe) -> None:
        self.problem, self.tol, self.seed, self.method = problem, tol, seed, method
        self.rows = problem.rows
        self.blocks = [Block.fresh() for _ in self.rows]
        self.w, self.scratch = np.zeros(problem.size), np.zeros(problem.size)
        #: s of each row, and its share of the gap.
        self.unit = (problem.c[self.rows] / (problem.lam * problem.total)).tolist()
        self.share = (problem.c[self.rows] / problem.total).tolist()
        #: Passes of all kinds, those of decodings, and those over planes that are kept since the last of these.
        self.passes, self.decoded, self.cached = 0, 0, 0
        self.decodes, self.at = True, 0
        #: The rows' gaps, summed over the last pass of decodings and over the pass under way.
        self.gap, self.running_gap = 0.0, 0.0
        self.dual, self.next_check = 0.0, 1.0
        self.order = self._order()

    def _order(self) -> Array:
        return _core.epoch_order(len(self.rows), "permutation", self.seed, self.passes)

    @property
    def epochs(self) -> float:
        """Passes of decodings."""
        return self.decoded + (self.at / len(self.rows) if self.decodes else 0.0)

    def start(self, point: Point[Array]) -> None:
        """Begin with the planes of single rows, their shares scaled by the factor that is best for the dual."""
        if point.duals is None:
            return
        planes: Planes = point.duals
        alpha = np.where(planes.row >= 0, planes.feasible(self.problem.n_rows), 0.0)
        psi, loss = self.problem.mean_plane(planes._replace(alpha=alpha))
        square = float(psi @ psi) / self.problem.lam
        alpha *= min(1.0, loss / square) if square > 0 else 1.0
        place = {row: k for k, row in enumerate(self.rows.tolist())}
        for p in np.flatnonzero(alpha).tolist():
            if (k := place.get(int(planes.row[p]))) is not None:
                block = self.blocks[k].with_plane(planes.plane(p), self.scratch, float(alpha[p]))
                block.alpha[0] = max(0.0, 1.0 - float(block.alpha[1:].sum()))
                self.blocks[k] = block
        self._refresh()

    def advance(self) -> None:
        """Rows that are decoded together, or some rows of a pass over the planes that are kept."""
        if self.decodes:
            some = self.order[self.at : self.at + int(self.method.batch_size)]
            found = self.problem.decode(self.w, self.rows[some])
            for k, place in enumerate(some.tolist()):
                self._visit(place, found.plane(k))
                self.blocks[place] = self.blocks[place].aged(int(self.method.unused_passes))
        else:
            some = self.order[self.at : self.at + CACHED_ROWS]
            for place in some.tolist():
                if len(self.blocks[place]) > 1:
                    self._visit(place, None)
        self.at += len(some)
        if self.at == len(self.rows):
            self._end_pass()

    def _visit(self, place: int, plane: Plane | None) -> None:
        """Mix the planes of a row anew, with one more if that is above all of them."""
        block = self.blocks[place]
        h = block.values(self.w)
        best = float(h.max())
        if plane is not None:
            value = plane.loss - float(plane.values @ self.w[plane.columns])
            if value > best + NO_BETTER * plane.loss:
                block = self.blocks[place] = block.with_plane(plane, self.scratch)
                h, best = np.append(h, value), value
        gap = best - float(block.alpha @ h)
        if gap > NO_BETTER * float(block.loss.max()):
            block.mix(self.w, h, self.unit[place], gap)
        self.running_gap += self.share[place] * gap

    def _end_pass(self) -> None:
        """Decode next, unless the planes that are kept have more to give."""
        asked, enough = self.method.cached_passes, False
        if self.decodes:
            self.decoded, self.cached, self.gap = self.decoded + 1, 0, self.running_gap
        else:
            self.cached += 1
            enough = asked is None and self.running_gap <= WORTHWHILE * self.gap
        self.decodes = enough or self.cached >= int(MOST_CACHED if asked is None else asked)
        self.passes, self.at, self.running_gap = self.passes + 1, 0, 0.0
        self.order = self._order()
        if self.decodes:
            self._refresh()

    def _refresh(self) -> None:
        """Make the weights anew from the planes, so that rounding errors do not add up, and the dual value."""
        size, loss = self.problem.size, 0.0
        entries = [np.zeros(0)]
        for block, unit, share in zip(self.blocks, self.unit, self.share, strict=True):
            entries.append(np.repeat(unit * block.alpha, block.lengths) * block.entries)
            loss += share * float(block.alpha @ block.loss)
        columns = np.concatenate([np.zeros(0, dtype=np.int64), *(block.columns for block in self.blocks)])
        self.w = np.asarray(np.bincount(columns, weights=np.concatenate(entries), minlength=size), dtype=np.float64)
        self.dual = loss - 0.5 * self.problem.lam * float(self.w @ self.w)

    def due(self, tol: float) -> bool:
        if not self.decodes or self.at or not self.passes:
            return False
        # The rows' gaps are of different times, and too large where the weights have become better since.
        return self.gap <= max(tol, MAX_ROUNDING_GAP) * (self.dual + self.gap) or self.epochs >= self.next_check

    def learn(self, bounds: Bounds[Array]) -> None:
        self.next_check = 2 * max(self.epochs, 1.0)

    def point(self, *, last: bool = False) -> Point[Array]:
        """The weights, and all planes that have a share."""
        rows, planes, alpha = [], [], []
        for row, block in zip(self.rows.tolist(), self.blocks, strict=True):
            for p in range(1, len(block)):
                if block.alpha[p] > 0:
                    rows.append(row)
                    planes.append(block.plane(p))
                    alpha.append(float(block.alpha[p]))
        return Point(self.w.copy(), Planes.of(rows, planes, alpha, self.problem.size))

    def state(self) -> dict[str, Any]:
        places = [k for k, block in enumerate(self.blocks) for _ in range(1, len(block))]
        planes = [block.plane(p) for block in self.blocks for p in range(1, len(block))]
        none = np.zeros(0)
        arrays = {
            "place": np.array(places, dtype=np.float64),
            "alpha": np.concatenate([none, *(block.alpha[1:] for block in self.blocks)]),
            "unused": np.concatenate([none, *(block.unused[1:] for block in self.blocks)]),
            "true": np.array([float(block.alpha[0]) for block in self.blocks]),
            "w": self.w,
        }
        numbers = {name: np.array([float(getattr(self, name))]) for name in (*COUNTS, *NUMBERS)}
        return arrays | plane_arrays(planes) | numbers

    def restore(self, state: dict[str, Any]) -> None:
        planes, count = planes_of(state, self.problem.size), len(self.rows)
        place = saved(state, "place", (len(planes),), low=0, high=count - 1, whole=True).astype(np.int64)
        alpha = saved(state, "alpha", (len(planes),), low=0, high=1 + 1e-9)
        unused = saved(state, "unused", (len(planes),), low=0, high=MAX_EXACT, whole=True)
        if bool(np.any(np.diff(place) < 0)):
            raise ValueError("state: the planes are not in the order of the rows")
        blocks = [Block.fresh() for _ in range(count)]
        for k, plane, share in zip(place.tolist(), planes, alpha.tolist(), strict=True):
            blocks[k] = blocks[k].with_plane(plane, self.scratch, share)
        true, first = saved(state, "true", (count,), low=0, high=1 + 1e-9), 0
        for k, block in enumerate(blocks):
            block.alpha[0] = true[k]
            block.unused[1:] = unused[first : first + len(block) - 1]
            first += len(block) - 1
        self.w = saved(state, "w", (self.problem.size,), low=-MAX_FINITE, high=MAX_FINITE)
        for name in COUNTS:
            most = {"at": count - 1, "decodes": 1}.get(name, 1e15)
            setattr(self, name, int(saved(state, name, (1,), low=0, high=most, whole=True)[0]))
        for name in NUMBERS:
            setattr(self, name, float(saved(state, name, (1,))[0]))
        self.blocks, self.order = blocks, self._order()


@dataclass(frozen=True)
class BlockFrankWolfe:
    """Block-coordinate Frank–Wolfe with planes that are kept, for structured machines.

    A visit of a row decodes it at the current weights, adds the labelling's plane to those of the row, and finds the
    best mixture of them exactly, by a small quadratic program on the simplex, while all other rows stay as they are, so
    that the dual never falls. Lacoste-Julien, Jaggi, Schmidt & Pletscher (2013); Shah, Kolmogorov & Lampert (2015).

    Parameters
    ----------
    cached_passes : int or None, default=None
        Passes over the planes that are kept, without any decoding, after each pass of decodings. None: with an oracle
        ten at most, and no more once the gap that is left to them is small beside that of the decodings; for sequences,
        which are decoded fast, 2.
    unused_passes : int, default=3
        A plane that had no share after so many decodings of its row in a row is dropped.
    batch_size : int, default=1
        Rows that are decoded together, at the same weights; they are then visited one by one. More cost fewer calls of
        the oracle, and need somewhat more passes.

    Examples
    --------
    >>> from pegasos import BlockFrankWolfe
    >>> BlockFrankWolfe(cached_passes=1)
    BlockFrankWolfe(cached_passes=1, unused_passes=3, batch_size=1)
    """

    cached_passes: int | None = None
    unused_passes: int = 3
    batch_size: int = 1
    name: ClassVar[str] = "block_frank_wolfe"

    def __post_init__(self) -> None:
        check_count(self, "cached_passes", 0, none=True)
        check_count(self, "unused_passes")
        check_count(self, "batch_size")


@dataclass(frozen=True)
class OracleBlockFrankWolfe(OracleSolver):
    """Block-coordinate Frank–Wolfe on a problem with an oracle."""

    options: BlockFrankWolfe
    name: ClassVar[str] = "block_frank_wolfe"

    def engine(self, problem: OracleProblem, options: Options) -> Engine[Array]:
        return BlockFrankWolfeEngine(problem, tol=options.tol, seed=options.seed, method=self.options)
