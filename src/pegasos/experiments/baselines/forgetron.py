"""The self-tuned Forgetron (Dekel, Shalev-Shwartz & Singer 2005)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pegasos.experiments.baselines.online import OnlineMachine, orders
from pegasos.experiments.baselines.task import Expansion, Task, checked_sizes
from pegasos.util.threads import with_one_blas_thread

#: What the removals may cost, in mistakes.
REMOVAL_COST_SHARE = 15 / 32


class Tuner:
    """How much to shrink before the oldest point, r, is removed.

    Scaled by φ, its removal costs Ψ(φσ, φμ), where σ is its coefficient's size, μ = y_r f(x_r), and

        Ψ(σ, μ) = σ² + 2σ − 2σμ.

    φ is the largest number in (0, 1] with Q + Ψ ≤ (15/32) M, where Q is what removals have cost so far and M the number
    of mistakes.
    """

    def __init__(self) -> None:
        self.cost = 0.0

    def __call__(self, machine: OnlineMachine) -> tuple[float, int]:
        row = int(machine.rows[0])
        size, margin = abs(float(machine.coef[0])), float(np.sign(machine.coef[0])) * machine.score(row)
        room = REMOVAL_COST_SHARE * machine.mistakes - self.cost
        # (σ² − 2σμ)φ² + 2σφ = room has its first positive root here; Ψ(φσ, φμ) is below room before it.
        square = size**2 - 2 * size * margin
        scale = 1.0
        if square + 2 * size > room:
            scale = room / (size + float(np.sqrt(max(0.0, size**2 + square * room))))
        self.cost += square * scale**2 + 2 * size * scale
        return scale, 0


@with_one_blas_thread
def forgetron(task: Task, sizes: Sequence[int], *, epochs: int = 1, random_state: int = 0) -> list[Expansion]:
    """A kernel perceptron that shrinks all coefficients and forgets its oldest point when a budget is exceeded.

    For K(x, x) ≤ 1, a budget B ≥ 83 and any u with ‖u‖ ≤ ¼√((B + 1)/log(B + 1)), the mistakes are at most
    2‖u‖² + 4 Σ max(0, 1 − y_i⟨u, φ(x_i)⟩).

    Parameters
    ----------
    sizes : sequence of int
        Budgets, each a run of its own.
    task, epochs, random_state
        As for :func:`perceptron`.

    Returns
    -------
    list of Expansion
        One for each budget; ``details["mistakes"]`` are the mistakes of the run, ``details["cost"]`` is Q.

    References
    ----------
    O. Dekel, S. Shalev-Shwartz and Y. Singer, *The Forgetron: a kernel-based perceptron on a fixed budget*, NIPS 2005.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from pegasos.experiments import Task, forgetron
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> [model.size for model in forgetron(Task(X, y, gamma=1.0), [5, 10])]
    [5, 10]
    """
    found = []
    for budget in checked_sizes(sizes):
        tuner = Tuner()
        machine = OnlineMachine(task, budget, tuner)
        machine.run(orders(task.m, epochs, random_state))
        details = {"budget": budget, "mistakes": machine.mistakes, "cost": tuner.cost}
        found.append(task.on_rows("forgetron", machine.rows, machine.coef, 0.0, **details))
    return found
