"""The bounds of the 2007 paper: projected Pegasos with ``c = (√lam + R)²``, and confidence by Markov's inequality.

Shalev-Shwartz, Singer and Srebro, *Pegasos: primal estimated sub-gradient solver for SVM*, ICML 2007. There every
iterate is projected and the bounds are written with ``ln(T)`` for ``(1 + ln(T))/2``, which is why they ask for
``T ≥ 3``: from there on ``1 + ln T ≤ 2 ln T``. The confidence costs ``1/delta``, where the 2011 paper has
``ln(1/delta)`` and a constant of 42 (`pegasos.theory.random_iterate_suboptimality`): the earlier bound is the smaller
one for all but small ``delta``.
"""

from __future__ import annotations

import math

from pegasos.theory.checks import count, positive, probability, smallest
from pegasos.theory.pegasos_2011 import constant


def projected_regret(T: int, lam: float, radius: float) -> float:
    r"""2007, Theorem 1 and Corollary 1: average regret of ``T`` projected steps, whatever rows were chosen.

    .. math::

        \frac1T \sum_{t=1}^T f(w_t; A_t) - f(w^*; A_t) \;\le\; \frac{c \ln T}{\lambda T},
        \qquad c = (\sqrt\lambda + R)^2

    With all rows in every step the same bounds ``f(w̄) − f(w*)``. The start may be any ``w_1`` of norm at most
    ``1/√lam``.

    Parameters
    ----------
    T : int
        Number of steps, at least 3.
    lam : float
        Regularisation, positive.
    radius : float
        ``R``, the largest ``‖x‖``.

    Examples
    --------
    >>> projected_regret(1000, 0.1, 1.0)
    0.119...
    """
    T = count("T", T, 3)
    return constant(radius, lam, projection=True) * math.log(T) / (positive("lam", lam) * T)


def projected_expectation(T: int, lam: float, radius: float) -> float:
    r"""2007, Theorem 2: rows drawn i.i.d. and one of ``w_1…w_T`` drawn uniformly, in expectation over both.

    .. math:: \mathbb E\, f(w_r) - f(w^*) \;\le\; \frac{c \ln T}{\lambda T}

    Parameters
    ----------
    T, lam, radius
        As in `projected_regret`.

    Examples
    --------
    >>> projected_expectation(1000, 0.1, 1.0) == projected_regret(1000, 0.1, 1.0)
    True
    """
    return projected_regret(T, lam, radius)


def projected_suboptimality(T: int, lam: float, radius: float, delta: float) -> float:
    r"""2007: the same random iterate, with probability at least ``1 − delta``, by Markov's inequality.

    .. math:: f(w_r) - f(w^*) \;\le\; \frac{c \ln T}{\delta \lambda T}

    Parameters
    ----------
    T, lam, radius
        As in `projected_regret`.
    delta : float
        Allowed probability of failure, in (0, 1).

    Examples
    --------
    >>> projected_suboptimality(10**6, 0.01, 1.0, delta=0.05)
    0.0334...
    """
    return projected_expectation(T, lam, radius) / probability("delta", delta)


def projected_iterations(eps: float, lam: float, radius: float, delta: float) -> int:
    r"""Smallest ``T`` for which `projected_suboptimality` is at most ``eps``: the abstract's ``Õ(1/(δλε))``.

    Parameters
    ----------
    eps : float
        Wanted ``f(w_r) − f(w*)``, positive.
    lam, radius, delta
        As in `projected_suboptimality`.

    Examples
    --------
    >>> projected_iterations(0.1, lam=0.1, radius=1.0, delta=0.05)
    36389
    """
    return smallest(lambda T: projected_suboptimality(T, lam, radius, delta), positive("eps", eps), 3)
