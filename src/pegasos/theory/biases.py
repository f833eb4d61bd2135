"""The outer search over the bias: the fourth approach in section 6 of the 2011 paper."""

from __future__ import annotations

import math

from pegasos.theory.checks import positive


def bias_radius(lam: float, radius: float, minority: float = 0.5) -> float:
    r"""An interval around 0 that holds an optimal bias that is not regularised, for the hinge loss.

    .. math:: |b^*| \le 1 + R \sqrt{2 p / \lambda}

    The optimal ``b`` for given scores is one of ``y_i − ⟨w, x_i⟩``, and strong duality gives ``lam ‖w*‖² ≤ Σ a_i/m``,
    at most ``2p`` because ``Σ a_i y_i = 0``.

    Parameters
    ----------
    lam, radius
        As in `gradient_bound`.
    minority : float
        ``p``, the share of the rarer class, at most ½.

    Examples
    --------
    >>> bias_radius(0.01, 1.0)
    11.0
    """
    if not 0 <= minority <= 0.5:
        raise ValueError(f"minority must lie between 0 and 1/2, got {minority!r}")
    return 1 + positive("radius", radius) * math.sqrt(2 * minority / positive("lam", lam))


def bias_search_evaluations(eps: float, lam: float, radius: float, minority: float = 0.5) -> int:
    r"""Section 6: evaluations of ``J(b) = min_w f(w, b)`` after which a binary search is within ``eps``.

    .. math:: \Big\lceil \log_2 \frac{2 + 2R \sqrt{2 p/\lambda}}{\epsilon} \Big\rceil = O(\log 1/\epsilon)

    ``J`` is convex with slopes of at most 1, so that an interval of length ``eps`` around the optimum will do; each
    evaluation, with the sign of its slope ``J′(b) = −Σ a_i y_i/m``, halves it. (Eq. 25, which defines ``J``, lacks the
    regulariser in print.) ``intercept="search"`` works with bounds in place of exact values.

    Parameters
    ----------
    eps : float
        Wanted ``J(b) − J(b*)``, positive.
    lam, radius, minority
        As in `bias_radius`.

    Examples
    --------
    >>> bias_search_evaluations(0.01, lam=0.01, radius=1.0), bias_search_evaluations(0.0001, lam=0.01, radius=1.0)
    (12, 18)
    """
    return max(0, math.ceil(math.log2(2 * bias_radius(lam, radius, minority) / positive("eps", eps))))
