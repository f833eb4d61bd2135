"""Stochastic gradients with respect to the coefficients: the road that section 4 of the 2011 paper warns of.

    min_α  f(α) = (λ/2) αᵀKα + (1/m) Σ_i max(0, 1 − y_i(Kα)_i)                                                (Eq. 19)

A row i drawn at random gives a subgradient with respect to α, which has all m coefficients in it,

    g = λKα − v y_i K_i,   v = 1 if y_i(Kα)_i < 1, else 0,   K_i the column of row i.

f need not be strongly convex in α: only as much as K's smallest eigenvalue allows. So the step is η_t = η₀/√t, the one
of convex functions, and Ω(1/ε²) steps may be needed. Preconditioned by K the direction is

    K⁻¹g = λα − v y_i e_i,

the subgradient with respect to w = Σ α_j φ(x_j), in which the problem is λ-strongly convex: with η_t = 1/(λt) this is
Pegasos, Õ(1/(λε)) steps, each of which changes one coefficient beside the common scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral

import numpy as np

from pegasos import _core
from pegasos.experiments.baselines.task import Expansion, Task, count, positive
from pegasos.kernels.gram import provider
from pegasos.rows.views import Array
from pegasos.util.threads import with_one_blas_thread

#: Rows up to which the kernel matrix is held, in double precision: 800 MB.
MAX_ROWS = 10_000


@with_one_blas_thread
def alpha_sgd(
    task: Task,
    steps: Sequence[int],
    *,
    preconditioned: bool = False,
    eta0: float | None = None,
    average: bool = False,
    random_state: int = 0,
) -> list[Expansion]:
    """Minimise Eq. 19 of the 2011 paper by stochastic gradients with respect to α; there is no bias.

    Steps are α ← α − η_t g with η_t = η₀/√t, or, preconditioned by K, α ← α − K⁻¹g/(λt), which is kernel Pegasos
    without projection (:class:`~pegasos.Pegasos`, one row a step, drawn with ``sampling="iid"``). λ = 1/(C m).

    Parameters
    ----------
    task : Task
        Rows, labels, kernel and C; at most 10 000 rows, whose kernel matrix is held.
    steps : sequence of int
        Numbers of steps after which the machine is looked at.
    preconditioned : bool, default=False
        Precondition the gradients by the kernel matrix, as Chapelle (2007) proposes.
    eta0 : float, default=None
        η₀ of the plain gradients. None: C√m/max_i ‖K_i‖, the largest ‖α‖ that an optimum can have, by that of the
        losses' subgradients.
    average : bool, default=False
        Look at the mean of the iterates, α after each step, and not at the last of them.
    random_state : int, default=0
        Seed.

    Returns
    -------
    list of Expansion
        One for each number of steps; ``details["objective"]`` is f(α), ``details["steps"]`` the number.

    References
    ----------
    S. Shalev-Shwartz, Y. Singer, N. Srebro and A. Cotter, *Pegasos: primal estimated sub-gradient solver for SVM*,
    Mathematical Programming 127 (2011), section 4. O. Chapelle, *Training a support vector machine in the primal*,
    Neural Computation 19 (2007).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from pegasos.experiments import Task, alpha_sgd
    >>> task = Task(*make_moons(200, noise=0.2, random_state=0), gamma=1.0)
    >>> (plain,), (pegasos,) = alpha_sgd(task, [1000]), alpha_sgd(task, [1000], preconditioned=True)
    >>> plain.size > pegasos.size, plain.details["objective"] > pegasos.details["objective"]
    (True, True)
    """
    wanted = sorted({count("steps", t) for t in steps})
    if not wanted:
        raise ValueError("steps is empty; give the numbers of steps that are wanted")
    if not isinstance(random_state, Integral) or not 0 <= random_state < 2**64:
        raise ValueError(f"random_state={random_state!r} must be a whole number between 0 and 2**64 - 1")
    for name, value in (("preconditioned", preconditioned), ("average", average)):
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{name}={value!r} must be True or False")
    if eta0 is not None and preconditioned:
        raise ValueError("eta0 is for the plain gradients; preconditioned steps are 1/(λt)")
    if task.m > MAX_ROWS:
        raise ValueError(f"alpha_sgd holds the kernel matrix, of at most {MAX_ROWS} rows; X has {task.m}")
    run = _Run(task, None if eta0 is None else positive("eta0", eta0), int(random_state))
    mean, found = np.zeros(task.m), []
    for t in range(1, wanted[-1] + 1):
        alpha = run.preconditioned_step() if preconditioned else run.plain_step()
        mean += (alpha - mean) / t
        if t in wanted:
            coef = mean if average else alpha
            details = {"objective": run.objective(coef), "steps": t}
            found.append(task.on_rows("alpha-sgd", np.arange(task.m), coef, 0.0, **details))
    return found


class _Run:
    """The iterate α, and the rows that are drawn: those that the core draws for solvers."""

    def __init__(self, task: Task, eta0: float | None, seed: int) -> None:
        self.y, self.m, self.seed = task.y, task.m, seed
        self.lam, self.t, self.alpha = 1.0 / (task.C * task.m), 0, np.zeros(task.m)
        self.K = provider(task.X, task.kernel, 0, task.threads).matrix(np.arange(task.m))
        largest = float(np.sqrt(np.einsum("ij,ij->i", self.K, self.K).max()))
        self.eta0 = task.C * np.sqrt(task.m) / max(largest, np.finfo(float).tiny) if eta0 is None else eta0
        #: Kα, kept for the preconditioned steps.
        self.F = np.zeros(task.m)

    def _draw(self) -> int:
        epoch, at = divmod(self.t, self.m)
        if at == 0:
            self.order = _core.epoch_order(self.m, "iid", self.seed, epoch)
        self.t += 1
        return int(self.order[at])

    def plain_step(self) -> Array:
        """α − η₀/√t g."""
        i = self._draw()
        F = self.K @ self.alpha
        gradient = self.lam * F
        if self.y[i] * F[i] < 1:
            gradient -= self.y[i] * self.K[i]
        self.alpha = self.alpha - self.eta0 / np.sqrt(self.t) * gradient
        return self.alpha

    def preconditioned_step(self) -> Array:
        """α − K⁻¹g/(λt)."""
        i = self._draw()
        violated, shrink = self.y[i] * self.F[i] < 1, 1.0 - 1.0 / self.t
        self.alpha, self.F = shrink * self.alpha, shrink * self.F
        if violated:
            more = self.y[i] / (self.lam * self.t)
            self.alpha[i] += more
            self.F += more * self.K[i]
        return self.alpha

    def objective(self, alpha: Array) -> float:
        """Eq. 19."""
        F = self.K @ alpha
        return float(0.5 * self.lam * (alpha @ F) + np.mean(np.maximum(0.0, 1.0 - self.y * F)))
