"""Where the stochastic batch perceptron is on one pair of classes, and what it guarantees there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pegasos.fit.engine import MAX_ITER
from pegasos.problems.part import Part
from pegasos.rows.views import Array
from pegasos.solvers.kernel.reasons import NumberedReason
from pegasos.solvers.kernel.slack_level import SlackLevels

#: Steps between two certificates at least. The next one comes after half as many steps more as there were, and costs no
#: more kernel values than twice what the steps before have used.
CERTIFICATE_STEPS = 256

#: The goal for a ν that was given.
LEVEL_REACHED = "the level is within tol of its upper bound"


class SBPEnding(NumberedReason):
    """Why a part is no longer worked on."""

    OPEN = 0
    REACHED = 1, "reached"
    MAX_STEPS = 2, MAX_ITER
    OWN_STEPS_DONE = 3, "the steps of the solver are over"
    LEVEL_CLOSE = 4, LEVEL_REACHED


class Numbers(NamedTuple):
    """The numbers of a part in a saved state, in the order of its columns. The first five are whole."""

    steps: float
    ending: float
    due: float
    older_steps: float
    newer_steps: float
    nu: float
    older_eta: float
    newer_eta: float
    level: float
    upper: float


@dataclass(frozen=True)
class SBPResult:
    """What the stochastic batch perceptron guarantees of its own problem, for one pair of classes.

    Attributes
    ----------
    nu : float
        ν, the slack allowed to a row on average.
    level : float
        The level reached, γ in the paper: the mean hinge loss of the returned weights is at most ν/level and their norm
        at most 1/level.
    upper : float
        No weights of norm 1 have a level above it; ∞ if the kernel is not known to be positive semi-definite.
    steps : int
        Steps taken.

    Examples
    --------
    >>> from pegasos import SBP, SVC
    >>> model = SVC(solver=SBP(nu=0.1), tol=0.5).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.sbp_[0].level <= model.sbp_[0].upper
    True
    """

    nu: float
    level: float
    upper: float
    steps: int


class Window:
    """Sums over a stretch of steps: of α, and of η p; how many steps, and their η."""

    def __init__(self, m: int) -> None:
        self.sums = np.zeros((2, m))
        self.steps, self.eta = 0, 0.0


class PartState:
    """Where one part is. ``alpha`` ≥ 0; F are the scores of w = Σ α_i y_i φ(x_i). ``bias``: whether there is one."""

    def __init__(self, part: Part, nu: float, *, bias: bool) -> None:
        self.part, self.levels = part, SlackLevels(part.y, part.weight, bias=bias)
        self.alpha, self.F = np.zeros(part.m), np.zeros(part.m)
        self.older, self.newer = Window(part.m), Window(part.m)
        self.steps, self.ending, self.due = 0, SBPEnding.OPEN, max(CERTIFICATE_STEPS, part.m // 16)
        self.nu, self.total = nu, float(part.weight.sum())
        #: The weights last proposed as coefficients of the rows, their dual variables, and whether both are still up to
        #: date: they are not once w has moved.
        self.coef, self.u, self.measured = np.zeros(part.m), np.zeros(part.m), False
        self.level, self.upper = 0.0, np.inf

    @property
    def slack(self) -> float:
        """Mν, the sum of slack that is allowed."""
        return self.nu * self.total

    def averages(self) -> tuple[Array, Array]:
        """ᾱ and p."""
        sums = self.older.sums + self.newer.sums
        steps, eta = self.older.steps + self.newer.steps, self.older.eta + self.newer.eta
        return (sums[0] / steps, sums[1] / eta) if steps else (sums[0], sums[1])

    def numbers(self) -> Numbers:
        """For a saved state."""
        older, newer = self.older, self.newer
        counts = self.steps, self.ending, self.due, older.steps, newer.steps
        return Numbers(*counts, self.nu, older.eta, newer.eta, self.level, self.upper)

    def set_numbers(self, saved: Numbers) -> None:
        """Take over what ``numbers`` has saved."""
        self.steps, self.ending, self.due = int(saved.steps), SBPEnding(int(saved.ending)), int(saved.due)
        self.older.steps, self.newer.steps = int(saved.older_steps), int(saved.newer_steps)
        self.older.eta, self.newer.eta = float(saved.older_eta), float(saved.newer_eta)
        self.nu, self.level, self.upper = float(saved.nu), float(saved.level), float(saved.upper)
