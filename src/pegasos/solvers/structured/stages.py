"""Two methods one after the other: a quick one for some epochs, then one that reaches any ``tol`` from its point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pegasos.fit.engine import Engine
from pegasos.problems.base import Bounds, M, Point
from pegasos.util.fields import saved


class StagedEngine(Engine[M]):
    """Delegates to the engine of the current stage; the first one ends after so many epochs.

    ``first_gap``: the relative gap of the first one is about this over its epochs. Certificates that cannot be within
    ``tol`` are not asked for.
    """

    def __init__(
        self, stages: Sequence[Callable[[], Engine[M]]], *, first_epochs: float, first_gap: float = 0.0
    ) -> None:
        self.stages, self.first_epochs, self.first_gap = stages, first_epochs, first_gap
        self.spent = 0.0
        self._enter(0)

    def _enter(self, stage: int) -> None:
        self.stage, self.engine = stage, self.stages[stage]()

    def start(self, point: Point[M]) -> None:
        """Begin with the second method, from the point."""
        self._enter(len(self.stages) - 1)
        self.engine.start(point)

    @property
    def returns_last(self) -> bool:  # type: ignore[override]
        """That of the first stage: of the second the best model counts."""
        return self.stage == 0 and self.engine.returns_last

    @property
    def epochs(self) -> float:
        return self.spent + self.engine.epochs

    def advance(self) -> None:
        if self.stage == 0 and self.engine.epochs >= self.first_epochs:
            point, self.spent = self.engine.point(), self.engine.epochs
            self._enter(1)
            self.engine.start(point)
        self.engine.advance()

    def due(self, tol: float) -> bool:
        return self.engine.due(tol) and (self.stage > 0 or tol * self.engine.epochs >= self.first_gap)

    def point(self, *, last: bool = False) -> Point[M]:
        return self.engine.point(last=last)

    def judged(self, bounds: Bounds[M]) -> None:
        self.engine.judged(bounds)

    def learn(self, bounds: Bounds[M]) -> None:
        self.engine.learn(bounds)

    @property
    def stuck(self) -> str | None:
        return self.engine.stuck

    @property
    def goals(self) -> tuple[str, ...]:
        return self.engine.goals

    def state(self) -> dict[str, Any]:
        mine = {"stage": np.array([float(self.stage)]), "spent": np.array([self.spent])}
        return mine | {f"engine.{k}": v for k, v in self.engine.state().items()}

    def restore(self, state: dict[str, Any]) -> None:
        self._enter(int(saved(state, "stage", (1,), low=0, high=len(self.stages) - 1, whole=True)[0]))
        self.spent = float(saved(state, "spent", (1,), low=0, high=1e15)[0])
        self.engine.restore({k.removeprefix("engine."): v for k, v in state.items() if k.startswith("engine.")})
