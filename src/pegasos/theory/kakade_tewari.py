"""From the regret of an online run to the objective of its average: what Lemma 2 of the 2011 paper rests on.

Kakade and Tewari, *On the generalization ability of online strongly convex programming algorithms*, NIPS 2008.

Why the constants hold: ``f(w_t) − f(w*)`` exceeds what the rows of step ``t`` show of it by a martingale difference of
at most ``2B``, whose variance is at most ``G²‖w_t − w*‖² ≤ (2G²/lam)(f(w_t) − f(w*))``. Freedman's inequality, applied
to at most ``4 ln T`` ranges of the summed variance ``σ²``, bounds the sum by ``max{2σ, 6B√ℓ}√ℓ``, and the quadratic
inequality that results is solved for the sum.
"""

from __future__ import annotations

import math

from pegasos.theory.checks import count, positive, probability
from pegasos.theory.pegasos_2011 import gradient_bound, projection_radius


def objective_bound(radius: float, lam: float, *, projection: bool = False) -> float:
    r"""The largest ``(lam/2)‖w‖² + hinge`` of a single row that a run of Pegasos, or the optimum, can meet.

    .. math:: B = \frac\lambda2 \rho^2 + 1 + \rho R, \qquad
        \rho = R/\lambda \quad\text{or, with projection,}\quad \rho = 1/\sqrt\lambda

    Parameters
    ----------
    radius, lam, projection
        As in `gradient_bound`.

    Examples
    --------
    >>> objective_bound(1.0, 0.25)
    7.0
    """
    radius, lam = positive("radius", radius), positive("lam", lam)
    # The optimum lies in the smaller ball always, and in that of Eq. 13, being a mean of rows over lam, too.
    reach = projection_radius(lam) if projection else radius / lam
    return lam * reach**2 / 2 + 1 + reach * radius


def online_to_batch(
    regret: float, T: int, lam: float, radius: float, delta: float, *, projection: bool = False
) -> float:
    r"""Kakade and Tewari: what a run's own regret proves of its average, with probability at least ``1 − delta``.

    .. math::

        f(\bar w) - f(w^*) \;\le\; \frac1T \sum_{t=1}^T f(w_t) - f(w^*) \;\le\;
        \frac{r}{T} + \frac{4 G}{T} \sqrt{\frac{r\,\ell}{\lambda}}
        + \max\Big\{\frac{16 G^2}{\lambda}, 6 B\Big\} \frac{\ell}{T},
        \qquad \ell = \ln \frac{4 \ln T}{\delta}

    for rows drawn i.i.d., where ``r = Σ_t f(w_t; A_t) − f(w*; A_t)`` is the regret of the run, ``G`` is
    `gradient_bound` and ``B`` is `objective_bound`. Any larger number does for ``r``: `average_regret` times ``T``
    before the run, the measured one after it (`pegasos.experiments.online_to_batch` makes a run and measures it). With
    the former and ``21 c`` for all constants it is Lemma 2 of the 2011 paper (Corollary 7 there), which for ``T < 8``
    and large ``delta`` is a little too small a number, far above the objective of ``w = 0`` though. The theorem is
    printed with probability ``1 − 4 ln(T) δ``; here ``delta`` is all of it.

    Parameters
    ----------
    regret : float
        ``r``: the sum over all steps, not their mean. Less than 0 counts as 0.
    T : int
        Number of steps, at least 3.
    lam, radius, projection
        As in `gradient_bound`.
    delta : float
        Allowed probability of failure, in (0, 1).

    Examples
    --------
    >>> from pegasos.theory import average_regret, average_suboptimality
    >>> T, lam = 10**6, 0.01
    >>> round(online_to_batch(T * average_regret(T, lam, 2.0), T, lam, 1.0, delta=0.05), 3)
    0.059
    >>> round(average_suboptimality(T, lam, 1.0, delta=0.05), 3)
    0.141
    """
    T, lam = count("T", T, 3), positive("lam", lam)
    if not math.isfinite(regret):
        raise ValueError(f"regret must be finite, got {regret!r}")
    regret = max(0.0, regret)
    G = gradient_bound(radius, lam, projection=projection)
    level = math.log(4 * math.log(T) / probability("delta", delta))
    most = max(16 * G**2 / lam, 6 * objective_bound(radius, lam, projection=projection))
    return (regret + 4 * G * math.sqrt(regret * level / lam) + most * level) / T
