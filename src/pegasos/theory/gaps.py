"""What a duality gap says of the weights and of predictions."""

from __future__ import annotations

import math
from typing import overload

import numpy as np
from numpy.typing import NDArray

from pegasos.theory.checks import nonnegative, positive


def distance_to_optimum(gap: float, lam: float) -> float:
    r"""Bound on ``‖w − w*‖`` from a duality gap.

    .. math:: \|w - w^*\| \le \sqrt{2\,\mathrm{gap}/\lambda}

    ``f`` is lam-strongly convex and ``f(w) − f(w*) ≤ gap``. With a bias that is not penalised the bound holds for ``w``
    and says nothing about the bias.

    Parameters
    ----------
    gap : float
        Primal minus dual value, not negative.
    lam : float
        Regularisation, positive.

    Examples
    --------
    >>> distance_to_optimum(0.005, 0.01)
    1.0
    """
    return math.sqrt(2 * nonnegative("gap", gap) / positive("lam", lam))


@overload
def certified_sign_margin(norm: float, gap: float, lam: float) -> float: ...
@overload
def certified_sign_margin(norm: NDArray[np.floating], gap: float, lam: float) -> NDArray[np.float64]: ...
def certified_sign_margin(norm: float | NDArray[np.floating], gap: float, lam: float) -> float | NDArray[np.float64]:
    r"""Score beyond which a prediction is certainly that of the exact optimum.

    .. math:: |\langle w, x\rangle| > \|x\| \sqrt{2\,\mathrm{gap}/\lambda}
        \;\Rightarrow\; \operatorname{sign}\langle w, x\rangle = \operatorname{sign}\langle w^*, x\rangle

    Cauchy–Schwarz and `distance_to_optimum`. A regularised bias counts as a feature: add its constant to ``x`` before
    taking the norm. With an unregularised bias there is no such certificate.

    Parameters
    ----------
    norm : float or ndarray
        ``‖x‖``, one or many.
    gap, lam
        As in `distance_to_optimum`.

    Examples
    --------
    >>> certified_sign_margin(2.0, gap=0.005, lam=0.01)
    2.0
    """
    if not np.all(np.isfinite(norm)) or np.any(np.asarray(norm) < 0):
        raise ValueError("norm must be finite and not negative")
    reach = distance_to_optimum(gap, lam)
    return np.asarray(norm, dtype=np.float64) * reach if isinstance(norm, np.ndarray) else float(norm) * reach
