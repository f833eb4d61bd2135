"""NORMA with kernels, and its truncation (Kivinen, Smola & Williamson 2004)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pegasos.experiments.baselines.online import BLOCK_ROWS, orders
from pegasos.experiments.baselines.task import Expansion, Task, checked_sizes, positive
from pegasos.kernels.gram import provider
from pegasos.rows.views import Array
from pegasos.util.threads import with_one_blas_thread


@with_one_blas_thread
def norma(
    task: Task,
    sizes: Sequence[int],
    *,
    p: float = 0.71,
    lam: float | None = None,
    nu: float | None = None,
    bias: bool = False,
    epochs: int = 1,
    random_state: int = 0,
) -> list[Expansion]:
    """Stochastic gradient descent on (λ/2)‖f‖² + hinge with η_t = p/(λ√t), of which the last ``size`` steps are kept.

    The row of step t changes f = Σ α_s K(x_s, ·) + b by

        α_s ← (1 − η_t λ) α_s,   and, where y_t f(x_t) ≤ ρ,   α_t = η_t y_t   and   b ← b + η_t y_t,

    and the term of step t − ``size`` is dropped. It has shrunk by then: what has been dropped, as far as it would still
    be there, has a norm of at most E, with E ← (1 − η_t λ)E at each step and E ← E + |α_s|√K(x_s, x_s) for a dropped
    term; a score differs by at most E√K(x, x) from that with all terms. For a constant step η and losses of slope 1
    that is the published (1 − ηλ)^size √max K/λ. ρ is 1; with ν it is learnt, as in the soft margin of ν-machines:
    the loss is max(0, ρ − y f(x)) − νρ, and ρ ← ρ + η_t(ν − 1) where y_t f(x_t) ≤ ρ, ρ + η_t ν elsewhere.

    Linear machines and other losses: the solver :class:`~pegasos.solvers.Norma`.

    Parameters
    ----------
    task : Task
        Rows, labels and kernel.
    sizes : sequence of int
        Steps whose terms are kept, each a run of its own; ``epochs`` times the number of rows keeps all of them.
    p : float, default=0.71
        The step size's factor, 0 < p < 1; near 1/√2 the bound of the paper's Theorem 4 is least.
    lam : float, default=None
        λ. None: 1/(Cm), that of the task.
    nu : float, default=None
        ν, between 0 and 1: the share of the steps, weighted by η_t, at which y f(x) ≤ ρ tends to it. None: ρ = 1.
    bias : bool, default=False
        Learn b.
    epochs : int, default=1
        Passes over the rows, each in a random order.
    random_state : int, default=0
        Seed.

    Returns
    -------
    list of Expansion
        One for each size; ``details`` has "size", "dropped" (E), "violations" (steps with y f(x) ≤ ρ), "mistakes" and
        "rho".

    References
    ----------
    J. Kivinen, A. J. Smola and R. C. Williamson, *Online learning with kernels*, IEEE Trans. Signal Processing 52
    (2004).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from pegasos.experiments import Task, norma
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> short, long = norma(Task(X, y, gamma=1.0), [20, 200], epochs=3)
    >>> short.size <= 20, short.details["dropped"] > long.details["dropped"] > 0
    (True, True)
    """
    sizes = checked_sizes(sizes)
    lam = 1 / (task.C * task.m) if lam is None else positive("lam", lam)
    if positive("p", p) >= 1:
        raise ValueError(f"p={p!r} must be below 1")
    if nu is not None and positive("nu", nu) > 1:
        raise ValueError(f"nu={nu!r} must be at most 1")
    if not isinstance(bias, bool | np.bool_):
        raise ValueError(f"bias={bias!r} must be True or False")
    order = orders(task.m, epochs, random_state)
    found = []
    for size in sizes:
        machine = NormaMachine(task, size, p, lam, nu, bool(bias))
        machine.run(order)
        found.append(machine.expansion())
    return found


class NormaMachine:
    """The terms of the last ``size`` steps: those with a coefficient, in the order of their steps.

    Rows come in blocks, whose kernel values against the terms and among themselves are computed together.
    """

    def __init__(self, task: Task, size: int, p: float, lam: float, nu: float | None, bias: bool) -> None:
        self.task, self.size, self.p, self.lam, self.nu, self.learn = task, size, p, lam, nu, bias
        self.kernel_rows = provider(task.X, task.kernel, 0, task.threads)
        self.lengths = np.sqrt(np.maximum(self.kernel_rows.diagonal(), 0.0))
        self.rows, self.steps, self.coef = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
        self.step, self.b, self.rho, self.dropped = 0, 0.0, 1.0, 0.0
        self.mistakes = self.violations = 0

    def run(self, order: Array) -> None:
        """Go through rows in this order."""
        for first in range(0, len(order), BLOCK_ROWS):
            self._block(np.asarray(order[first : first + BLOCK_ROWS], dtype=np.int64))

    def _block(self, block: Array) -> None:
        y, n, start = self.task.y[block], len(block), self.step
        oldest = np.arange(start, start + n) - self.size  # of the steps whose terms row k sees
        before = self._scores(block, oldest)
        among, coef, scale = (
            self._values(block, block),
            np.zeros(n),
            1.0,
        )  # of the block's own, to be multiplied by scale
        gone, own_steps = 0, np.arange(start, start + n)
        for k in range(n):
            own = max(0, k - self.size)
            score = scale * (before[k] + float(among[k, own:k] @ coef[own:k])) + self.b
            self.step += 1
            eta = self.p / (self.lam * np.sqrt(self.step))
            margin = float(y[k]) * score
            scale *= 1 - eta * self.lam
            self.dropped *= 1 - eta * self.lam
            self.mistakes += not margin > 0
            if margin <= self.rho:
                self.violations += 1
                coef[k] = eta * y[k] / scale
                self.b += eta * y[k] * self.learn
            self.rho += 0.0 if self.nu is None else eta * (self.nu - (margin <= self.rho))
            while gone < len(self.steps) and self.steps[gone] <= self.step - 1 - self.size:
                self._drop(int(self.rows[gone]), scale * self.coef[gone])
                gone += 1
            if k >= self.size and coef[k - self.size]:
                self._drop(int(block[k - self.size]), scale * coef[k - self.size])
        kept = (coef != 0) & (own_steps > self.step - 1 - self.size)
        self.rows = np.concatenate([self.rows[gone:], block[kept]])
        self.steps = np.concatenate([self.steps[gone:], own_steps[kept]])
        self.coef = scale * np.concatenate([self.coef[gone:], coef[kept]])

    def _scores(self, block: Array, oldest: Array) -> Array:
        """Of each row of a block, the sum over the terms from its oldest one on."""
        values = self._values(block, self.rows)
        if len(self.steps) and oldest[-1] > self.steps[0]:
            values = np.where(self.steps >= oldest[:, None], values, 0.0)
        return np.asarray(values @ self.coef)

    def _values(self, a: Array, b: Array) -> Array:
        return np.asarray(self.kernel_rows.block(a, b)[:, : len(b)], dtype=np.float64)

    def _drop(self, row: int, coef: float) -> None:
        self.dropped += abs(coef) * float(self.lengths[row])

    def expansion(self) -> Expansion:
        """The machine as it is."""
        details = {"size": self.size, "dropped": float(self.dropped), "violations": self.violations}
        details |= {"mistakes": self.mistakes, "rho": float(self.rho)}
        return self.task.on_rows("norma", self.rows, self.coef, self.b, **details)
