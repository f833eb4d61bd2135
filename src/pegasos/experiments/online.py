"""Pegasos as an online algorithm on rows drawn i.i.d.: what its regret proves, and the run with a random stopping time.

Both make a run of the core over the drawn rows alone, in time and memory that depend on the steps only; the others are
looked at once to be checked, and to be judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from pegasos import _core, theory
from pegasos.estimators.linear import LinearSVC
from pegasos.fit.engine import Options
from pegasos.losses import Hinge
from pegasos.problems.linear import LinearProblem
from pegasos.rows.labels import class_labels
from pegasos.rows.views import Array, encode_labels, examples, is_sparse
from pegasos.solvers import Pegasos
from pegasos.solvers.linear.subgradient import SubgradientEngine
from pegasos.solvers.units import Units
from pegasos.theory.checks import count, probability
from pegasos.util.arrays import Matrix

#: Numbers of batches' gradients that are held at a time.
BLOCK = 1 << 22


@dataclass(frozen=True)
class OnlineRun:
    """What :func:`online_to_batch` found.

    ``coef``: the averaged iterate w̄, which the bound is about; ``last``: w_{T+1}. ``objective``: mean of f(w_t; A_t).
    ``regret``: at least what the mean of f(w_t; A_t) exceeds that of any u by, on the rows drawn.
    ``bound``: f(w̄) − f(w*) is at most this, with probability 1 − delta. ``gradient_norms`` of every step.

    Examples
    --------
    >>> from pegasos.experiments import online_to_batch
    >>> run = online_to_batch([[1.0, 0.0], [0.0, 1.0]], [-1, 1], lam=0.5, T=1000)
    >>> bool(abs(run.coef - [-1, 1]).max() < 0.3), run.gradient_norms.shape
    (True, (1000,))
    """

    coef: Array
    last: Array
    objective: float
    regret: float
    bound: float
    gradient_norms: Array


@dataclass(frozen=True)
class StoppedRun:
    """What :func:`stopped_pegasos` found.

    ``coef`` is w_t for the drawn ``t``, ``objective`` is f(w_t) on all rows, and ``attempts`` are the pairs (t, f(w_t))
    of all runs, of which this one is the best.

    Examples
    --------
    >>> from pegasos.experiments import stopped_pegasos
    >>> run = stopped_pegasos([[1.0, 0.0], [0.0, 1.0]], [-1, 1], lam=0.5, T=1000, attempts=3)
    >>> len(run.attempts), run.t in [t for t, _ in run.attempts]
    (3, True)
    """

    coef: Array
    t: int
    objective: float
    attempts: tuple[tuple[int, float], ...]


def online_to_batch(
    X: Any,
    y: Any,
    *,
    lam: float,
    T: int,
    delta: float = 0.05,
    batch_size: int = 1,
    projection: bool = False,
    random_state: int = 0,
) -> OnlineRun:
    """Run Pegasos for T steps on rows drawn i.i.d., and bound the objective of its average by the regret it has had.

    Lemma 2 of the 2011 paper bounds the same before the run, with worst-case gradients; here every gradient that was
    met counts for itself (:func:`pegasos.theory.regret_of_steps`), and the conversion is that of Kakade and Tewari
    (:func:`pegasos.theory.online_to_batch`). Hinge loss, no bias, t0 = 0.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        Rows.
    y : array of shape (n_samples,)
        Labels of two classes; the larger one is +1.
    lam : float
        Regularisation.
    T : int
        Steps, at least 3.
    delta : float, default=0.05
        Allowed probability, over the draws, that the bound does not hold.
    batch_size : int, default=1
        Rows a step.
    projection : bool, default=False
        Project onto the ball of radius 1/√lam after each step.
    random_state : int, default=0
        Seed of the draws.

    Returns
    -------
    OnlineRun

    Examples
    --------
    >>> from pegasos.datasets import make_text
    >>> from pegasos.experiments import online_to_batch
    >>> X, y = make_text(500, 100, nnz_per_row=10)
    >>> run = online_to_batch(X, y, lam=0.1, T=100_000)
    >>> run.regret < run.bound < 0.1
    True
    """
    data = _Data(X, y, lam, batch_size, projection)
    data.run(count("T", T, 3), np.random.default_rng(count("random_state", random_state, 0)))
    probability("delta", delta)
    z, sign, steps = data.scores, data.sign, (T, data.batch)
    slope = np.where(sign * z < 1, sign, 0.0)
    inner, squares = (slope * z).reshape(steps).mean(axis=1), data.batch_squares(slope)
    norms = _squared_norms(inner, squares, data.lam, projection)
    # ∇_t = λw_t − v_t, v_t the batch's mean of slopes times rows
    gradients = np.sqrt(np.maximum(0.0, data.lam**2 * norms - 2 * data.lam * inner + squares))
    losses = np.maximum(0.0, 1 - sign * z).reshape(steps).mean(axis=1)
    regret = theory.regret_of_steps(gradients, data.lam)
    bound = theory.online_to_batch(regret * T, T, data.lam, data.radius, delta, projection=projection)
    objective = float((data.lam / 2 * norms + losses).mean())
    return OnlineRun(data.weights("average"), data.weights("last"), objective, regret, bound, gradients)


def stopped_pegasos(
    X: Any,
    y: Any,
    *,
    lam: float,
    T: int,
    attempts: int = 1,
    batch_size: int = 1,
    projection: bool = False,
    random_state: int = 0,
) -> StoppedRun:
    """Pegasos with a random stopping time: the t-th iterate of T for a t drawn before, without the steps after it.

    Lemma 3 of the 2011 paper: f(w_t) is within :func:`pegasos.theory.random_iterate_suboptimality` of the optimum at
    least half of the time, so that "on average after two attempts we are likely to find a good solution";
    :func:`pegasos.theory.stopping_attempts` says how many it takes for more certainty. In the 2007 paper, with
    projection, :func:`pegasos.theory.projected_suboptimality`. Hinge loss, no bias, t0 = 0, rows drawn i.i.d.
    (``Pegasos(output="random")`` draws two iterates of a run that is made to its end, wherever that is.)

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        Rows.
    y : array of shape (n_samples,)
        Labels of two classes; the larger one is +1.
    lam : float
        Regularisation.
    T : int
        The largest t that is drawn; a run has t − 1 steps.
    attempts : int, default=1
        Independent runs, of which the one of the lowest objective is returned.
    batch_size, projection
        As for :func:`online_to_batch`.
    random_state : int, default=0
        Seed of the stopping times and the rows drawn.

    Returns
    -------
    StoppedRun

    Examples
    --------
    >>> from pegasos.datasets import make_text
    >>> from pegasos.experiments import stopped_pegasos
    >>> X, y = make_text(500, 100, nnz_per_row=10)
    >>> run = stopped_pegasos(X, y, lam=0.1, T=10_000, attempts=2, random_state=1)
    >>> [t <= 10_000 for t, _ in run.attempts]
    [True, True]
    >>> run.objective == min(objective for _, objective in run.attempts)
    True
    """
    data, seed = _Data(X, y, lam, batch_size, projection), count("random_state", random_state, 0)
    found: list[tuple[int, float]] = []
    best: tuple[float, int, Array] | None = None
    for attempt in range(count("attempts", attempts)):
        t = theory.stopping_time(T, _mixed(seed, attempt))
        data.run(t - 1, np.random.default_rng([seed, attempt]))
        w = data.weights("last")
        value = data.objective(w)
        found.append((t, value))
        if best is None or value < best[0]:
            best = value, t, w
    assert best is not None
    return StoppedRun(best[2], best[1], best[0], tuple(found))


class _Data:
    """Rows and labels, checked, and the run of the core over some of them."""

    def __init__(self, X: Any, y: Any, lam: float, batch_size: int, projection: bool) -> None:
        model = LinearSVC(lam=lam, fit_intercept=False, solver=Pegasos(t0=0, batch_size=batch_size))
        model._check_parameters()
        self.lam, self.batch = float(lam), int(batch_size)
        self.solver = Pegasos(t0=0, batch_size=batch_size, sampling="fixed", projection=projection, output="average")
        self.all = model._rows(X, reset=True)[1]
        labels = class_labels(self.all.array, y)
        classes, codes = encode_labels(labels)
        if len(classes) != 2:
            raise ValueError(f"y has {len(classes)} classes, not two: {classes.tolist()[:5]}")
        self.y = np.where(codes == 1, 1.0, -1.0)
        self.radius = float(np.sqrt(max(self.all.squared_norms.max(), np.finfo(float).tiny)))
        self.engine: SubgradientEngine | None = None

    def run(self, steps: int, rng: np.random.Generator) -> None:
        """So many steps on rows drawn i.i.d.; the core visits the drawn rows once, in the order ``self.order``."""
        self.engine = None
        if steps == 0:
            return
        drawn = rng.integers(0, self.all.m, steps * self.batch)
        self.rows = examples(self.all.array[drawn])
        problem = LinearProblem(self.rows, Hinge(), self.y[drawn], 1, self.lam)
        self.engine = self.solver.engine_with(problem, Options("none", 0), Units(), 0.0)
        self.engine.keep_scores()
        while self.engine.epochs < 1.0:
            self.engine.advance()
        self.order = _core.epoch_order(len(drawn), "fixed", 0, 0)
        self.sign = problem.target[self.order]

    @property
    def scores(self) -> Array:
        """⟨w_t, x⟩ of the rows of each step, step after step."""
        assert self.engine is not None
        return np.asarray(self.engine.lanes.scores(0)[self.order, 0])

    def weights(self, which: str) -> Array:
        """The "last" iterate or the "average" of all but that; zero before the first step."""
        if self.engine is None:
            return np.zeros(self.all.n)
        self.engine.select(which)
        return np.asarray(self.engine.model()[0][0])

    def objective(self, w: Array) -> float:
        """f(w) on all rows."""
        z = self.all.rows.scores(w[None, :], np.zeros(1), 1)[:, 0]
        return float(self.lam / 2 * (w @ w) + np.maximum(0.0, 1 - self.y * z).mean())

    def batch_squares(self, slope: Array) -> Array:
        """‖(1/k) Σ g_i x_i‖² of every step."""
        k = self.batch
        if k == 1:
            return np.asarray(slope**2 * self.rows.squared_norms[self.order])
        found = np.empty(len(slope) // k)
        for first in range(0, len(found), block := max(1, BLOCK // (k * self.rows.n))):
            part = slice(first * k, (first + block) * k)
            sums = _sums_of_batches(self.rows.array[self.order[part]], slope[part] / k, k)
            found[first : first + block] = (sums**2).sum(axis=1)
        return found


def _sums_of_batches(X: Matrix, slope: Array, k: int) -> Array:
    m = len(slope)
    batches = sparse.csr_array((slope, np.arange(m), np.arange(0, m + 1, k)), shape=(m // k, m))
    sums = batches @ X
    return np.asarray(sums.toarray() if is_sparse(sums) else sums)


def _squared_norms(inner: Array, squares: Array, lam: float, projection: bool) -> Array:
    """‖w_t‖² of every step, from ⟨w_t, v_t⟩ and ‖v_t‖², where w_{t+1} = (1 − 1/t) w_t + v_t/(lam t)."""
    t = np.arange(1, len(inner) + 1)
    if not projection:  # lam² t² ‖w_{t+1}‖² is a sum
        grown = np.cumsum(2 * lam * (t - 1) * inner + squares)
        return np.concatenate([[0.0], np.maximum(0.0, grown[:-1]) / (lam * t[:-1]) ** 2])
    norms, now = np.empty(len(inner)), 0.0
    added = 2 * (1 - 1 / t) * inner / (lam * t) + squares / (lam * t) ** 2
    for s, (shrunk, more) in enumerate(zip(((1 - 1 / t) ** 2).tolist(), added.tolist(), strict=True)):
        norms[s] = now
        now = min(max(0.0, shrunk * now + more), 1 / lam)
    return norms


def _mixed(seed: int, attempt: int) -> int:
    """A seed for each attempt, which for the first is the seed itself."""
    return seed if attempt == 0 else int(np.random.SeedSequence([seed, attempt]).generate_state(1)[0])
