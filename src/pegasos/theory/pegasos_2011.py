"""Theorem 1, Lemmas 1 to 3 and the corollaries of the 2011 paper, with its random stopping time.

Shalev-Shwartz, Singer, Srebro and Cotter, *Pegasos: primal estimated sub-gradient solver for SVM*, Mathematical
Programming 127 (2011), 3–30. Two slips in print are mended here and change no bound: the sum in the proof of Lemma 1
collapses to ``−(lam T/2)‖w_{T+1} − u‖²`` (as in the notes), and the sign of ``v_t`` in Eq. 12 is plus.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from pegasos.theory.checks import count, nonnegative, positive, probability, smallest
from pegasos.util.random import uniform

#: The stream of a seed that the stopping time is drawn from.
_STOPPING = 0x73746F70


def projection_radius(lam: float, loss_at_zero: float = 1.0) -> float:
    r"""Radius of a ball around 0 that contains the optimum.

    .. math:: \|w^*\| \le \rho = \sqrt{\bar\ell(0) / \lambda}

    From strong duality, for every convex loss that is never negative. The hinge has ``ℓ(0) = 1``, which gives the
    paper's ``1/√lam`` (proof of Theorem 1, Eq. 6).

    Parameters
    ----------
    lam : float
        Regularisation, positive.
    loss_at_zero : float
        (Weighted) mean loss of ``w = 0``: 1 for the hinge, ``ln 2`` for the log-loss, ``mean(y²)/2`` for the squared.

    Examples
    --------
    >>> projection_radius(0.01)
    10.0
    """
    return math.sqrt(nonnegative("loss_at_zero", loss_at_zero) / positive("lam", lam))


def gradient_bound(
    radius: float, lam: float, *, projection: bool = False, lipschitz: float = 1.0, loss_at_zero: float = 1.0
) -> float:
    r"""Largest norm of a subgradient ``∇_t = lam·w_t − v_t`` during a run.

    .. math:: G = 2LR \quad\text{or, with projection,}\quad G = \sqrt{\lambda\,\bar\ell(0)} + LR

    Without projection ``w_{t+1}`` is ``1/lam`` times a mean of loss gradients (Eq. 13), so ``‖lam·w_t‖ ≤ LR``; with it
    ``‖w_t‖ ≤ ρ`` (proof of Theorem 1). A loss with unbounded slope has no such bound: pass the largest slope met.

    Parameters
    ----------
    radius : float
        ``R``, the largest ``‖x‖``.
    lam : float
        Regularisation, positive.
    projection : bool
        Whether each iterate is projected onto the ball of `projection_radius`.
    lipschitz : float
        ``L``, the largest ``|ℓ'|``. Crammer–Singer over K weight vectors: ``√2``.
    loss_at_zero : float
        As in `projection_radius`; used with projection only.

    Examples
    --------
    >>> gradient_bound(1.0, 0.01)
    2.0
    >>> gradient_bound(1.0, 0.01, projection=True)
    1.1
    """
    slope = positive("lipschitz", lipschitz) * positive("radius", radius)
    rho = projection_radius(lam, loss_at_zero)
    return lam * rho + slope if projection else 2 * slope


def constant(radius: float, lam: float, *, projection: bool = False) -> float:
    r"""The constant ``c`` of Theorem 1 and of all that follows from it: the square of `gradient_bound`.

    .. math:: c = 4R^2 \quad\text{or, with projection,}\quad c = (\sqrt\lambda + R)^2

    Parameters
    ----------
    radius, lam, projection
        As in `gradient_bound`.

    Examples
    --------
    >>> constant(1.0, 0.01)
    4.0
    """
    return gradient_bound(radius, lam, projection=projection) ** 2


def average_regret(T: int, lam: float, gradient_norm: float, *, t0: float = 0.0, norm: float = 0.0) -> float:
    r"""Lemma 1: average regret of ``T`` steps of size ``1/(lam (t + t0))`` on lam-strongly convex functions ``f_t``.

    .. math::

        \frac1T \sum_{t=1}^T f_t(w_t) - f_t(u) \;\le\; \frac{G^2 (1 + \ln T)}{2\lambda T}

    for every ``u`` in the ball projected onto (every ``u`` at all without projection). With ``t0 > 0``, which the paper
    does not have, the same proof from ``w_1 = 0`` gives

    .. math::

        \frac{\lambda t_0}{2T} \|u\|^2
        + \frac{G^2}{2\lambda T} \Big( \frac{1}{1 + t_0} + \ln \frac{T + t_0}{1 + t_0} \Big).

    Parameters
    ----------
    T : int
        Number of steps.
    lam : float
        Strong convexity of every ``f_t``: the regularisation.
    gradient_norm : float
        ``G``, a bound on every ``‖∇_t‖``: see `gradient_bound`, or the largest one met.
    t0 : float
        Shift of the step size, in steps; a run shifted by ``r`` rows in batches of ``k`` has ``t0 = r/k``.
    norm : float
        ``‖u‖``; needed with ``t0 > 0`` only.

    Examples
    --------
    >>> average_regret(1000, 0.1, gradient_norm=2.0)
    0.158...
    """
    T, lam, G = count("T", T), positive("lam", lam), nonnegative("gradient_norm", gradient_norm)
    t0, norm = nonnegative("t0", t0), nonnegative("norm", norm)
    harmonic = 1 / (1 + t0) + math.log((T + t0) / (1 + t0))  # ≥ Σ 1/(t + t0)
    return lam * t0 * norm**2 / (2 * T) + G**2 * harmonic / (2 * lam * T)


def instantaneous_regret(T: int, lam: float, radius: float, *, projection: bool = False) -> float:
    r"""Theorem 1: how far the objectives met on the way are above those of the optimum, whatever rows were chosen.

    .. math::

        \frac1T \sum_{t=1}^T f(w_t; A_t) - f(w^*; A_t) \;\le\; \frac{c\,(1 + \ln T)}{2\lambda T}

    The paper asks for ``T ≥ 3``; the proof needs ``T ≥ 1`` only. If every ``A_t`` is drawn uniformly, the same number
    bounds the expectation of ``f(w̄) − f(w*)``.

    Parameters
    ----------
    T : int
        Number of steps.
    lam, radius, projection
        As in `gradient_bound`.

    Examples
    --------
    >>> instantaneous_regret(1000, 0.1, 1.0)
    0.158...
    """
    return average_regret(T, lam, gradient_bound(radius, lam, projection=projection))


def batch_suboptimality(T: int, lam: float, radius: float, *, projection: bool = False) -> float:
    r"""Corollary 1: all rows in every step (``k = m``), output ``w̄ = (1/T) Σ_{t≤T} w_t``.

    .. math:: f(\bar w) - f(w^*) \;\le\; \frac{c\,(1 + \ln T)}{2\lambda T}

    Parameters
    ----------
    T : int
        Number of steps.
    lam, radius, projection
        As in `gradient_bound`.

    Examples
    --------
    >>> batch_suboptimality(1000, 0.1, 1.0, projection=True)
    0.0684...
    """
    return instantaneous_regret(T, lam, radius, projection=projection)


def average_suboptimality(T: int, lam: float, radius: float, delta: float, *, projection: bool = False) -> float:
    r"""Lemma 2 and Corollary 2: rows drawn at random, with probability at least ``1 − delta``.

    .. math::

        f(\bar w) - f(w^*) \;\le\; \frac1T \sum_{t=1}^T f(w_t) - f(w^*)
        \;\le\; \frac{21\,c\,\ln(T/\delta)}{\lambda T}

    Each element of ``A_t`` is drawn uniformly, with or without repetitions (Corollary 7 of Kakade and Tewari, *On the
    generalization ability of online strongly convex programming algorithms*, 2009). It says nothing about the last
    iterate.

    Parameters
    ----------
    T : int
        Number of steps, at least 3.
    lam : float
        Regularisation; the lemma needs ``lam ≤ 1/4``.
    radius : float
        ``R``; the lemma needs ``R ≥ 1`` (any larger bound on ``‖x‖`` will do).
    delta : float
        Allowed probability of failure, in (0, 1).
    projection : bool
        As in `gradient_bound`.

    Examples
    --------
    >>> average_suboptimality(10**6, 0.01, 1.0, delta=0.05)
    0.141...
    """
    T, lam, radius = count("T", T, 3), positive("lam", lam), positive("radius", radius)
    if lam > 0.25:
        raise ValueError(f"lam must be at most 1/4 for this bound, got {lam!r}")
    if radius < 1:
        raise ValueError(f"radius must be at least 1 for this bound (1 bounds the norms too), got {radius!r}")
    probability("delta", delta)
    return 21 * constant(radius, lam, projection=projection) * math.log(T / delta) / (lam * T)


def random_iterate_suboptimality(T: int, lam: float, radius: float, delta: float, *, projection: bool = False) -> float:
    r"""Lemma 3: one iterate ``w_t`` with ``t`` drawn uniformly from ``1…T`` is this good at least half of the time.

    .. math:: f(w_t) - f(w^*) \;\le\; \frac{42\,c\,\ln(T/\delta)}{\lambda T}

    The ½ (Markov's inequality) is over the choice of ``t``, on the event of Lemma 2: ``(1 − delta)/2`` in all,
    which the paper rounds to ½. Draw twice and keep the better one.

    Parameters
    ----------
    T, lam, radius, delta, projection
        As in `average_suboptimality`.

    Examples
    --------
    >>> random_iterate_suboptimality(10**6, 0.01, 1.0, delta=0.05)
    0.282...
    """
    return 2 * average_suboptimality(T, lam, radius, delta, projection=projection)


def iterations(eps: float, lam: float, radius: float, delta: float | None = None, projection: bool = False) -> int:
    """Smallest ``T`` whose bound is at most ``eps``: ``Õ(R²/(lam·eps))``, whatever the number of rows.

    Parameters
    ----------
    eps : float
        Wanted ``f(w̄) − f(w*)``, positive.
    lam, radius, projection
        As in `gradient_bound`.
    delta : float or None
        None: `batch_suboptimality`, proven for full batches, and in expectation for random ones. A number: rows drawn
        at random and `average_suboptimality`, with probability at least ``1 − delta``.

    Notes
    -----
    These are worst cases; runs are usually done orders of magnitude sooner, and the duality gap tells when.

    Examples
    --------
    >>> iterations(0.01, lam=0.1, radius=1.0)
    21998
    >>> iterations(0.01, lam=0.1, radius=1.0, delta=0.05)
    1442947
    """
    positive("eps", eps)
    bound: Callable[[int], float]
    if delta is None:
        least, bound = 1, lambda T: batch_suboptimality(T, lam, radius, projection=projection)
    else:
        least, bound = 3, lambda T: average_suboptimality(T, lam, radius, delta, projection=projection)
    return smallest(bound, eps, least)


def stopping_time(T: int, random_state: int = 0) -> int:
    r"""The random stopping time of Lemma 3: a ``t`` drawn uniformly from ``1…T`` before the run.

    A run that stops with ``w_t`` in its hand, after ``t − 1`` steps, has what `random_iterate_suboptimality` promises
    without doing the rest: half of the work on average. `pegasos.experiments.stopped_pegasos` is such a run.

    Parameters
    ----------
    T : int
        Number of steps that the guarantee is for, positive.
    random_state : int
        Seed, not negative.

    Examples
    --------
    >>> stopping_time(1000, random_state=1) == stopping_time(1000, random_state=1)
    True
    >>> 1 <= stopping_time(10) <= 10
    True
    """
    T, seed = count("T", T), count("random_state", random_state, 0)
    return min(T, max(1, math.ceil(T * uniform(seed, _STOPPING))))


def stopping_attempts(failure: float, delta: float) -> int:
    r"""Independent runs with random stopping times of which one is good with probability at least ``1 − failure``.

    .. math:: j = \Big\lceil \frac{\ln \mathrm{failure}}{\ln \frac{1 + \delta}{2}} \Big\rceil

    Each is as good as `random_iterate_suboptimality` says with probability at least ``(1 − delta)/2``; the paper's "on
    average after two attempts" is ``delta → 0``. Which one is the best their objectives tell.

    Parameters
    ----------
    failure : float
        Allowed probability that none is good, in (0, 1).
    delta : float
        As in `average_suboptimality`.

    Examples
    --------
    >>> stopping_attempts(0.5, delta=1e-9), stopping_attempts(0.01, delta=0.1)
    (1, 8)
    """
    probability("failure", failure)
    return math.ceil(math.log(failure) / math.log((1 + probability("delta", delta)) / 2) - 1e-6)
