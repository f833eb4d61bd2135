"""Block-coordinate Frank–Wolfe on linear chains; the visits are ``cpp/pegasos/structured/chain_planes.hpp``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pegasos import _core
from pegasos.fit.engine import Engine, Options
from pegasos.problems.base import Bounds, Point
from pegasos.problems.chain import ChainModel, ChainProblem, Labellings
from pegasos.rows.views import Array
from pegasos.solvers.structured.block_frank_wolfe import BlockFrankWolfe
from pegasos.solvers.structured.chain_base import CHUNK_TOKENS, ChainSolver
from pegasos.util.fields import MAX_FINITE, saved

#: Gap, relative to objective and largest cost, below which steps are taken in double precision.
SINGLE_GAP = 1e-4

#: Passes over the planes that are kept after each of decodings, unless the user says how many.
CACHED_PASSES = 2

#: What sums of shares may be above 1 by rounding.
ROUNDING = 1e-9

#: Passes after which the first certificate is due at the latest.
FIRST_CHECK = 16.0


class ChainPlanesEngine(Engine[ChainModel]):
    """A pass of decodings, then some over the planes that are kept, and so on."""

    def __init__(self, problem: ChainProblem, options: Options, method: BlockFrankWolfe) -> None:
        self.problem, self.method = problem, method
        self.core = _core.ChainPlanes(
            problem.corpus,
            problem.weight,
            lam=problem.lam,
            total=problem.total,
            unused_passes=int(method.unused_passes),
            seed=options.seed,
        )
        if not problem.single:
            self.core.set_double()
        self.next_check = FIRST_CHECK

    @property
    def _cycle(self) -> int:
        """Passes from one of decodings to the next."""
        asked = self.method.cached_passes
        return 1 + int(CACHED_PASSES if asked is None else asked)

    @property
    def _cached(self) -> bool:
        """Whether the pass under way, or the one that has just ended, is over planes that are kept."""
        return self.core.passes % self._cycle != 0

    @property
    def epochs(self) -> float:
        """Passes of decodings."""
        whole = max(self.core.passes, -1) // self._cycle + 1
        return whole - 1 + self.core.at / self.problem.n if not self._cached and self.core.passes >= 0 else float(whole)

    def start(self, point: Point[ChainModel]) -> None:
        """Begin with the planes of the point, their shares scaled by the factor that is best for the dual."""
        planes: Labellings | None = point.duals
        if planes is None or not len(planes.rows):
            return
        p, alpha = self.problem, planes.feasible(self.problem.n)
        W = p.plane_weights(planes, alpha)
        gain = float((p.c[planes.rows] * alpha) @ p.corpus.plane_costs(planes.rows, planes.labels)) / p.total
        square = 2 * p.penalty(W)
        factor = min(1.0, gain / square) if square > 0 else 1.0
        self.core.add(planes.rows, planes.labels, factor * alpha, None)
        self.core.set_weights(factor * W)

    def advance(self) -> None:
        passes = self.core.passes + int(self.core.pass_ended)
        self.core.advance(CHUNK_TOKENS, passes % self._cycle != 0)

    def due(self, tol: float) -> bool:
        """By the gaps of the last pass, each as it was before the visit: their sum is a little too large by its end."""
        if not self.core.pass_ended or self._cached:
            return False
        primal = self.core.loss + 0.5 * self.problem.lam * self.core.squares
        return self.core.gap <= tol * primal or self.epochs >= self.next_check

    def point(self, *, last: bool = False) -> Point[ChainModel]:
        """The planes, and their weights."""
        rows, labels, alpha, _ = self.core.table()
        if not len(rows):
            return Point(ChainModel(np.zeros(self.problem.size)), Labellings(rows, labels, alpha))
        return Point(ChainModel(None), Labellings(rows, labels, alpha))

    def learn(self, bounds: Bounds[ChainModel]) -> None:
        """Take away what rounding has added to the weights; near the optimum it would hide the gap."""
        self.next_check = max(FIRST_CHECK, 2 * self.epochs)
        if bool((bounds.gap <= SINGLE_GAP * (bounds.primal + self.problem.cost.max())).all()):
            self.core.set_double()
        assert bounds.model.W is not None
        self.core.set_weights(bounds.model.W)

    def state(self) -> dict[str, Any]:
        rows, labels, alpha, unused = self.core.table()
        numbers = [self.core.passes, self.core.at, self.core.gap, self.core.loss, self.next_check, self.core.exact]
        arrays: dict[str, Array] = {"rows": rows, "labels": labels, "alpha": alpha, "unused": unused}
        named = {name: np.asarray(array, dtype=np.float64) for name, array in arrays.items()}
        return named | {"W": self.core.weights(), "numbers": np.array(numbers, dtype=np.float64)}

    def restore(self, state: dict[str, Any]) -> None:
        p = self.problem
        rows = saved(state, "rows", (None,), low=0, high=p.n - 1, whole=True).astype(np.int64)
        labels = saved(state, "labels", (None,), low=0, high=p.labels - 1, whole=True).astype(np.uint16)
        alpha = saved(state, "alpha", (len(rows),), low=0, high=1 + ROUNDING)
        if bool((np.bincount(rows, weights=alpha, minlength=p.n) > 1 + ROUNDING).any()):
            raise ValueError("state: the shares of a sequence's labellings add up to more than 1")
        unused = saved(state, "unused", (len(rows),), low=0, high=1e15, whole=True)
        W = p.saved_weights(state, "W")
        passes, at, gap, loss, check, exact = saved(state, "numbers", (6,), low=-1, high=MAX_FINITE).tolist()
        if exact:
            self.core.set_double()
        self.core.add(rows, labels, alpha, unused)
        self.core.set_weights(W)
        self.core.go_on(int(min(passes, 1e15)), int(min(at, 1e15)), gap, loss)
        self.next_check = check


@dataclass(frozen=True)
class ChainBlockFrankWolfe(ChainSolver):
    """:class:`BlockFrankWolfe` on linear chains."""

    options: BlockFrankWolfe
    name: ClassVar[str] = "block_frank_wolfe"

    def check(self, problem: ChainProblem, intercept: str) -> None:
        super().check(problem, intercept)
        if self.options.batch_size != 1:
            raise ValueError("BlockFrankWolfe: batch_size is for oracles; sequences are decoded one by one")

    def engine(self, problem: ChainProblem, options: Options) -> ChainPlanesEngine:
        return ChainPlanesEngine(problem, options, self.options)
