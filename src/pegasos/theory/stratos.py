"""Lemma 2.1 and Eq. 6 of Stratos' *Notes on Pegasos*."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pegasos.theory.checks import count, nonnegative, positive


def regret_of_gradients(gradient_norms: ArrayLike, lam: float) -> float:
    r"""Notes, Lemma 2.1: average regret of a run that has met these gradients, against any ``u``.

    .. math::

        \frac1T \sum_{t=1}^T f_t(w_t) - f_t(u) \;\le\; \frac{G_{\max}^2 (1 + \log T)}{2\lambda T},
        \qquad G_{\max} = \max_t \|\nabla f_t(w_t)\|

    for lam-strongly convex ``f_t``, steps of ``1/(lam t)`` from any ``w_1``, and no projection. The bound is known
    only after the run, and needs no radius.

    Parameters
    ----------
    gradient_norms : array of shape (T,)
        ``‖∇f_t(w_t)‖`` of every step.
    lam : float
        Strong convexity of every ``f_t``: the regularisation.

    Examples
    --------
    >>> regret_of_gradients([2.0, 1.0, 0.5, 0.5], lam=0.1)
    11.931...
    """
    G = _norms(gradient_norms)
    return float(G.max()) ** 2 * (1 + math.log(len(G))) / (2 * positive("lam", lam) * len(G))


def regret_of_steps(gradient_norms: ArrayLike, lam: float, distance: float = 0.0) -> float:
    r"""The same before the last two inequalities of its proof: every gradient counts for itself.

    .. math::

        \frac1T \sum_{t=1}^T f_t(w_t) - f_t(u)
        \;\le\; \frac{1}{2\lambda T} \sum_{t=1}^T \frac{\|\nabla f_t(w_t)\|^2}{t}
        - \frac\lambda2 \|w_{T+1} - u\|^2

    An equation where every ``f_t`` is a quadratic of Hessian ``lam``.
    (The 2011 paper prints ``−lam (T + 1) ‖w_{T+1} − u‖²`` in place of the last term times ``T``.)

    Parameters
    ----------
    gradient_norms, lam
        As in `regret_of_gradients`.
    distance : float
        ``‖w_{T+1} − u‖``, or anything smaller.

    Examples
    --------
    >>> regret_of_steps([2.0, 1.0, 0.5, 0.5], lam=0.1)
    5.807...
    """
    G = _norms(gradient_norms)
    lam, distance = positive("lam", lam), nonnegative("distance", distance)
    steps = np.arange(1, len(G) + 1)
    return float(np.sum(G**2 / steps) / (2 * lam * len(G)) - 0.5 * lam * distance**2)


def regret_of_batches(T: int, lam: float, radius: float) -> float:
    r"""Notes, Eq. 6: Pegasos with batches ``B_t`` of any rows and sizes.

    .. math:: \frac1T \sum_{t=1}^T J_{B_t}(w_t) - J_{B_t}(u) \;\le\; \frac{2 R^2 (1 + \log T)}{\lambda T}

    for every ``u``; with all rows in every batch also a bound on ``J(w̄) − J(w*)``.

    Parameters
    ----------
    T : int
        Number of steps.
    lam : float
        Regularisation, positive.
    radius : float
        ``R``, the largest ``‖x‖``.

    Examples
    --------
    >>> regret_of_batches(1000, 0.1, 1.0)
    0.158...
    """
    T, radius = count("T", T), positive("radius", radius)
    return 2 * radius**2 * (1 + math.log(T)) / (positive("lam", lam) * T)


def _norms(values: ArrayLike) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    norms = np.asarray(values, dtype=np.float64)
    if norms.ndim != 1 or len(norms) == 0 or not np.all(np.isfinite(norms)) or np.any(norms < 0):
        raise ValueError("gradient_norms must be one or more finite numbers that are not negative")
    return norms
