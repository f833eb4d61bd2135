"""The contract between the fitting loop and whatever does the work: a resumable state machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic

import numpy as np

from pegasos.problems.base import Bounds, M, Point
from pegasos.rows.views import Array
from pegasos.util.fields import State

#: Row entries a single call into the core may touch: a few hundredths of a second, so that Ctrl-C lands quickly.
ENTRIES_PER_CALL = 20_000_000

#: Why a fit, or an engine that counts for itself, stops at the limit of iterations: more of them could help.
MAX_ITER = "max_iter reached"

#: Why a fit stops whose gap is of the size of rounding errors: nothing can make it smaller.
ROUNDING_REACHED = "stalled: as close as float64 allows"


@dataclass(frozen=True)
class Options:
    """What a fit asks of every engine: how the bias is learnt, the seed, and where it is to stop.

    ``max_steps`` limits the steps on each part of a problem that is solved part after part; ``max_epochs`` is a limit
    that lies within an epoch, where the solver has such. None: no limit.
    """

    intercept: str = "unregularized"
    seed: int = 0
    tol: float = 0.0
    max_steps: int | None = None
    max_epochs: float | None = None


class Engine(Generic[M]):
    """Runs a solver on a problem, a bounded piece of work at a time. What is defined here is the default.

    An engine may be wrong about everything it says: the certificate then is poor, never false.
    """

    #: Whether its last model is the result, and not the one of the lowest objective: where the solver says itself which
    #: iterate is wanted, or minimises something else.
    returns_last: ClassVar[bool] = False

    #: Why further work cannot help, if the engine has found out.
    stalled: str | None = None

    #: Whether the state may be asked for at any time. If not, the last point may be what was worked on.
    resumable: bool = True

    #: Whether steps went along negative curvature: the kernel is not positive semi-definite.
    indefinite: bool = False

    @property
    def epochs(self) -> float:
        """Passes over the rows so far, or the work of as many."""
        raise NotImplementedError

    @property
    def steps(self) -> Sequence[int] | Array:
        """Steps on each part; of one that counts passes, those."""
        return [int(np.ceil(self.epochs))]

    @property
    def evaluations(self) -> int:
        """Kernel values computed so far, but for certificates."""
        return 0

    def start(self, point: Point[M]) -> None:
        """Begin at a point of an earlier fit of this or a similar problem, if the method can make use of it."""

    def advance(self) -> None:
        """Do a piece of work of at most a few hundredths of a second on large data."""
        raise NotImplementedError

    def due(self, tol: float) -> bool:
        """Whether a certificate is worth its cost now, if the fit is to stop at relative gap ``tol``."""
        raise NotImplementedError

    def point(self, *, last: bool = False) -> Point[M]:
        """What is to be certified, in arrays that are left alone afterwards; ``last``: a limit has been reached.

        A method that has a lower bound of its own hands over the dual point behind it.
        """
        raise NotImplementedError

    def judged(self, bounds: Bounds[M]) -> None:
        """Take note of what the problem found of the last point, before ``stuck`` is asked."""

    def learn(self, bounds: Bounds[M]) -> None:
        """Take note of a certificate that was not good enough to stop."""

    @property
    def eager(self) -> bool:
        """Whether there is more to gain, by iterations so cheap that those beyond ``tol`` take no noticeable time."""
        return False

    @property
    def stuck(self) -> str | None:
        """Why further work cannot help, or None."""
        return self.stalled

    @property
    def goals(self) -> tuple[str, ...]:
        """Reasons to stop that are goals of the method itself, other than the gap."""
        return ()

    @property
    def restricted_gap(self) -> float | None:
        """By how much at most the model is above the best one that a restriction of the method allows."""
        return None

    def attributes(self) -> dict[str, object]:
        """What else the method knows of its result: fitted attributes of the estimator by name."""
        return {}

    def state(self) -> State:
        """Arrays from which ``restore`` continues to the same bits."""
        raise NotImplementedError

    def restore(self, state: State) -> None:
        """Continue from ``state``; each of its arrays is checked (``util.fields.saved``), for it may be forged."""
        raise NotImplementedError
