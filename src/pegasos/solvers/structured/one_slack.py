"""Cutting planes in one-slack form, for any problem that can cut and mix planes (Joachims, Finley & Yu 2009).

    F(w) = (λ/2)‖w‖² + R(w),   R(w) = (1/M) Σ_i c_i max_y [Δ_i(y) − ⟨w, ψ_i(y)⟩]

At any w, one pass of decodings gives a labelling of every row. Their means ψ and Δ are a plane that touches R at w and
is nowhere above it: R(w′) ≥ Δ − ⟨w′, ψ⟩. The minimum over the planes so far (``solvers/bundle.py``) is a lower bound of
the optimum, its mixture of planes is the dual point behind it, and the next plane is cut at its weights.

The engine knows planes by their heights and inner products only. What they are is the business of the problem, which
keeps :class:`CutProblem`: of an oracle, ψ as a sparse vector; of chains, labels of all tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from pegasos.fit.engine import Engine
from pegasos.fit.loop import MAX_ROUNDING_GAP
from pegasos.problems.base import Bounds, M, Point, Problem
from pegasos.rows.views import Array
from pegasos.solvers.bundle import Bundle
from pegasos.util.fields import MAX_FINITE, saved


class Height(Protocol):
    """What is asked of a plane itself."""

    @property
    def height(self) -> float:
        """The plane's value at w = 0: the weighted mean of the losses Δ of its labellings."""
        ...


K = TypeVar("K", bound=Height)


class CutProblem(Problem[M], Protocol[M, K]):
    """What the engine asks of a problem, beside what the loop asks. Models M and planes K are opaque to it."""

    @property
    def lam(self) -> float:
        """λ."""
        ...

    def cut(self, model: M) -> K:
        """The plane that touches R at a model: a pass of decodings."""
        ...

    def products(self, cuts: Sequence[K], cut: K) -> Array:
        """⟨ψ_j, ψ⟩ of each of the planes ``cuts`` with ``cut``, which may be one of them."""
        ...

    def mixture(self, cuts: Sequence[K], alpha: Array) -> Point[M]:
        """The model w = (1/λ) Σ α_j ψ_j, and Σ α_j (ψ_j, Δ_j) as the problem's ``certify`` takes dual points.

        Without planes it is the model of zero weights.
        """
        ...

    def first_cuts(self, point: Point[M]) -> Sequence[K]:
        """Planes of this problem to begin with, made of a point of an earlier fit; none, if it has none."""
        ...

    def cut_arrays(self, cuts: Sequence[K]) -> dict[str, Array]:
        """Planes as named arrays of float64, from which ``cuts_of`` makes the same ones."""
        ...

    def cuts_of(self, arrays: dict[str, Array]) -> list[K]:
        """What ``cut_arrays`` wrote; ValueError if they cannot be planes of this problem."""
        ...


class OneSlackEngine(Engine[M], Generic[M, K]):
    """An iteration minimises the model of the planes and cuts at its minimum: a pass over the rows.

    A Ctrl-C of a fit with a checkpoint file waits for the end of the pass.
    """

    def __init__(self, problem: CutProblem[M, K], *, max_planes: int) -> None:
        self.problem, self.max_planes = problem, max_planes
        self.bundle: Bundle[K] = Bundle()
        self.best = problem.mixture([], np.zeros(0)).model
        self.value, self.lower = np.inf, 0.0
        self.passes, self.checked = 0, 0.5

    def start(self, point: Point[M]) -> None:
        """Begin with the planes of the point."""
        for cut in self.problem.first_cuts(point)[-self.max_planes :]:
            self._add(cut)

    @property
    def epochs(self) -> float:
        """Iterations."""
        return float(self.passes)

    def advance(self) -> None:
        p, planes = self.problem, self.bundle
        planes.limit(self.max_planes)  # only now: until here ``point`` needed all planes of the last mixture
        if len(planes):
            planes.mix(p.lam, self._precision())
            square = float(planes.alpha @ planes.gram @ planes.alpha) / p.lam / p.lam
            self.lower = float(planes.alpha @ planes.heights) - 0.5 * p.lam * square
        else:
            square = 0.0
        model, shares = p.mixture(planes.contents, planes.alpha).model, planes.alpha
        cut = p.cut(model)
        products = self._add(cut)
        # F at the minimum: the new plane touches R there.
        value = 0.5 * p.lam * square + cut.height - float(products[:-1] @ shares) / p.lam
        if value < self.value:
            self.best, self.value = model, value
        self.passes += 1

    def _add(self, cut: K) -> Array:
        products = self.problem.products([*self.bundle.contents, cut], cut)
        self.bundle.append(products[:-1], float(products[-1]), cut.height, cut)
        return products

    def _precision(self) -> float:
        if not np.isfinite(self.value):
            return 1e-3 * float(self.bundle.heights.max())
        return max(1e-3 * (self.value - self.lower), 1e-16 * self.value)

    def due(self, tol: float) -> bool:
        return self.value - self.lower <= max(tol, MAX_ROUNDING_GAP) * self.value or self.passes >= 2 * self.checked

    def point(self, *, last: bool = False) -> Point[M]:
        """The best model so far, and the planes as they were mixed last."""
        return self.problem.mixture(self.bundle.contents, self.bundle.alpha)._replace(model=self.best)

    def learn(self, bounds: Bounds[M]) -> None:
        self.checked = float(self.passes)

    def state(self) -> dict[str, Any]:
        planes = self.bundle
        named = {f"cut.{name}": array for name, array in self.problem.cut_arrays(planes.contents).items()}
        named |= {f"best.{name}": array for name, array in self.problem.arrays(self.best).items()}
        numbers = {"value": self.value, "lower": self.lower, "passes": self.passes, "checked": self.checked}
        arrays = {"heights": planes.heights, "gram": planes.gram, "alpha": planes.alpha, "unused": planes.unused}
        return named | {name: np.array(value, dtype=float, ndmin=1) for name, value in (numbers | arrays).items()}

    def restore(self, state: dict[str, Any]) -> None:
        of = {
            prefix: {name.removeprefix(prefix): a for name, a in state.items() if name.startswith(prefix)}
            for prefix in ("cut.", "best.")
        }
        planes, count = self.bundle, len(saved(state, "heights", (None,)))
        planes.contents = self.problem.cuts_of(of["cut."])
        if len(planes.contents) != count:
            raise ValueError(f"state: {len(planes.contents)} planes with {count} heights")
        planes.heights = saved(state, "heights", (count,), low=-MAX_FINITE, high=MAX_FINITE)
        planes.gram = saved(state, "gram", (count, count), low=-MAX_FINITE, high=MAX_FINITE)
        planes.alpha = saved(state, "alpha", (count,), low=0, high=1 + 1e-9)
        planes.unused = saved(state, "unused", (count,), low=0, high=1e15, whole=True).astype(int)
        self.best = self.problem.model_of(of["best."])
        self.value, self.lower = (float(saved(state, name, (1,))[0]) for name in ("value", "lower"))
        self.passes = int(saved(state, "passes", (1,), low=0, high=1e15, whole=True)[0])
        self.checked = float(saved(state, "checked", (1,), low=0, high=1e15)[0])
