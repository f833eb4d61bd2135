"""Passive-aggressive steps with kernels (Crammer, Dekel, Keshet, Shalev-Shwartz & Singer 2006)."""

from __future__ import annotations

from collections.abc import Sequence

from pegasos.experiments.baselines.online import grown, orders
from pegasos.experiments.baselines.task import Expansion, Task, positive
from pegasos.kernels.gram import provider
from pegasos.solvers.linear.passive_aggressive import VARIANTS, Variant, step_limits
from pegasos.util.threads import with_one_blas_thread


@with_one_blas_thread
def passive_aggressive(
    task: Task,
    sizes: Sequence[int],
    *,
    variant: Variant = "PA-I",
    C: float = 1.0,
    epochs: int = 1,
    random_state: int = 0,
) -> list[Expansion]:
    """Add τ y_i φ(x_i) for each row whose loss ℓ = max(0, 1 − y_i f(x_i)) is above zero; there is no bias.

        PA     τ = ℓ/K(x_i, x_i)
        PA-I   τ = min(C, ℓ/K(x_i, x_i))
        PA-II  τ = ℓ/(K(x_i, x_i) + 1/(2C))

    For K(x, x) ≤ R² and any u with losses ℓ*_t, the losses ℓ_t that the rows had when they came keep to

        PA     Σ ℓ_t² ≤ R²‖u‖², if all ℓ*_t are 0
        PA-I   mistakes ≤ max(R², 1/C) (‖u‖² + 2C Σ ℓ*_t)
        PA-II  Σ ℓ_t² ≤ (R² + 1/(2C)) (‖u‖² + 2C Σ ℓ*_t²).

    Linear machines, of several classes too, and regressions: the solver :class:`~pegasos.solvers.PassiveAggressive`,
    which needs no kernel values.

    Parameters
    ----------
    task : Task
        Rows, labels and kernel.
    sizes : sequence of int
        Sizes at which the growing machine is looked at; more than there are rows: at the end.
    variant : {"PA-I", "PA", "PA-II"}, default="PA-I"
        Which of the three.
    C : float, default=1.0
        How far a step may go; not the task's.
    epochs : int, default=1
        Passes over the rows, each in a random order.
    random_state : int, default=0
        Seed.

    Returns
    -------
    list of Expansion
        One for each size reached, and the last machine; ``details["mistakes"]`` are the mistakes up to then, and
        ``details["squared_losses"]`` is Σ ℓ_t².

    References
    ----------
    K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz and Y. Singer, *Online passive-aggressive algorithms*, JMLR 7
    (2006).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from pegasos.experiments import Task, passive_aggressive
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> small, large = passive_aggressive(Task(X, y, gamma=1.0), [5, 200], C=0.5)
    >>> small.size, large.size <= 200
    (5, True)
    """
    if variant not in VARIANTS:
        raise ValueError(f"variant={variant!r} is none of {', '.join(VARIANTS)}")
    limit, added = step_limits(variant, positive("C", C))
    step = _Step(task, limit, added)
    return grown(task, "passive-aggressive", sizes, orders(task.m, epochs, random_state), step, step.details)


class _Step:
    """min(limit, ℓ/(K(x, x) + added)), and the sum of the squares of the ℓ."""

    def __init__(self, task: Task, limit: float, added: float) -> None:
        self.squares = provider(task.X, task.kernel, 0, task.threads).diagonal()
        self.limit, self.added, self.squared_losses = limit, added, 0.0

    def __call__(self, row: int, margin: float) -> float:
        loss = max(0.0, 1.0 - margin)
        self.squared_losses += loss * loss
        square = float(self.squares[row]) + self.added
        return min(self.limit, loss / square) if square > 0 else 0.0

    def details(self) -> dict[str, object]:
        return {"squared_losses": self.squared_losses}
