"""Nesterov's primal–dual subgradient method on random rows, which the 2011 paper leaves for future research."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pegasos.problems.linear import LinearProblem
from pegasos.solvers.base import is_number
from pegasos.solvers.linear.subgradient import SubgradientSolver


@dataclass(frozen=True)
class DualAveraging(SubgradientSolver):
    """Dual averaging: the minimum of the mean of all linear models of the loss so far, and what keeps it near zero.

    With g_s x_s the negative subgradient of the loss that step s has seen, and β_t = γ√t,

        w_{t+1} = argmin_w −(1/t) Σ_{s≤t} ⟨g_s x_s, w⟩ + (λ/2)‖w‖² + (β_t/2t)‖w‖² = Σ_{s≤t} g_s x_s / (λt + γ√t).

    The 2011 paper says of Nesterov's method that its ideas "can be combined with the stochastic regime of Pegasos", and
    leaves it there (section 1). They are: γ = 0, enough for objectives as strongly convex as this one, is Pegasos with
    ``t0=0``, number by number. γ > 0 is the case of any convex function, whose regret grows with √T whatever λ is:

        Σ_t f_t(w_t) − f_t(u) ≤ (γ√T/2)‖u‖² + ½ Σ_t ‖∇f_t(w_t)‖²/(λt + γ√(t − 1)),

    so that a λ near zero does no harm. γ is best near G/‖w*‖, with G the longest of the gradients. Losses without a
    bounded slope (squared hinge, squared) need a γ above zero, as Pegasos needs a t0. The bounds on the
    optimum are those of :class:`Pegasos`: means of slopes over whole epochs. Nesterov (2009), Xiao (2010).

    Parameters
    ----------
    gamma : float, default=0.0
        γ ≥ 0.
    batch_size, sampling, projection, output
        As for :class:`Pegasos`. The bound on the regret is one for the mean of all iterates, "average".

    Examples
    --------
    >>> from pegasos import DualAveraging, LinearSVC
    >>> model = LinearSVC(solver=DualAveraging(gamma=0.5), lam=0.1, max_iter=500, tol=0.1, random_state=0)
    >>> model.fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).certificate_.converged
    True
    """

    gamma: float = 0.0
    name: ClassVar[str] = "dual_averaging"
    own_losses: ClassVar[bool] = False  # those steps are made in Python, and are of three kinds
    schedule: ClassVar[str] = "dual_averaging"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (is_number(self.gamma) and 0 <= self.gamma < np.inf):
            raise ValueError(f"DualAveraging: gamma={self.gamma!r} must be a number >= 0")

    def _rate(self, problem: LinearProblem) -> float:
        return float(self.gamma)
