"""Steps that stay near the last iterate where λ is too small to keep them short (Do, Le & Foo 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from pegasos.problems.base import M, Problem
from pegasos.problems.linear import LinearProblem
from pegasos.solvers.base import is_number
from pegasos.solvers.linear.subgradient import SubgradientSolver
from pegasos.theory import projection_radius


@dataclass(frozen=True)
class Proximal(SubgradientSolver):
    """Do, Le & Foo's remedy for small λ: a term that holds each step near the last iterate, as strong as is needed.

    With g_t x_t the negative subgradient of the loss, and the weights kept in the ball ‖w‖ ≤ ρ,

        w_{t+1} = argmin_w −⟨g_t x_t, w⟩ + (λ/2)‖w‖² + (σ_t/2)‖w − w_t‖²,    σ_t = λ(t − 1) + τ_1 + … + τ_t,

    which is Pegasos' step with η_t = 1/(λt + τ_1 + … + τ_t). The τ_t adapt as in Bartlett, Hazan & Rakhlin (2007): each
    is the one that costs as much as it saves,

        τ_t D² = G_t²/(λt + τ_1 + … + τ_t),    D = 2ρ,    G_t = λ‖w_t‖ + (1/k) Σ_{i∈A_t} ‖g_i‖‖x_i‖ ≥ ‖∇f_t(w_t)‖,

    so that Σ_t f_t(w_t) − f_t(u) ≤ D²(τ_1 + … + τ_T) for every u of the ball, at most twice what the best τ in
    hindsight would give. Where Pegasos' first step is 1/λ long, this one's is some ρ. The rule is put together from
    the two papers' ideas as the 2011 paper refers to them ([13] in section 7.3). The bound on the optimum comes from
    the clipped weights of the rows, as for :class:`Norma`, and is often loose.

    Parameters
    ----------
    bound : float or "auto", default="auto"
        ρ, a bound of ‖w*‖. "auto": the one that holds for every such problem, √(mean ℓ_i(0)/λ), 1/√λ for the hinge; a
        lower one that is true makes the steps shorter where λ is small.
    projection : bool, default=True
        Project onto the ball after each step, without which the bound on the regret is not proven.
    batch_size, sampling, output
        As for :class:`Pegasos`. The bound on the regret is one for the mean of all iterates, "average".

    Examples
    --------
    >>> from pegasos import LinearSVC, Proximal
    >>> model = LinearSVC(solver=Proximal(), lam=0.1, max_iter=500, tol=0.1, random_state=0)
    >>> model.fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).certificate_.converged
    True
    """

    projection: bool = True
    bound: float | Literal["auto"] = "auto"
    name: ClassVar[str] = "proximal"
    own_losses: ClassVar[bool] = False  # those steps are made in Python, and are of three kinds
    schedule: ClassVar[str] = "proximal"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bound != "auto" and not (is_number(self.bound) and 0 < self.bound < np.inf):
            raise ValueError(f"Proximal: bound={self.bound!r} must be 'auto' or a number > 0")

    def _ball(self, problem: Problem[M], lam: float) -> float:
        if self.bound != "auto":
            return float(self.bound)
        return projection_radius(lam, float(problem.at_zero().max()))

    def radius(self, problem: Problem[M], lam: float) -> float:
        return self._ball(problem, lam) if self.projection else 0.0

    def _rate(self, problem: LinearProblem) -> float:
        return 2 * self._ball(problem, problem.lam)
