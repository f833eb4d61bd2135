"""Lemmas 3.1, 4.2 and 4.3, Theorem 4.4 and Corollary 1 of the 2013 paper, with constants where it has O(·).

Cotter, Shalev-Shwartz and Srebro, *Learning optimally sparse support vector machines*, ICML 2013. ``K(x, x) ≤ 1``
unless a radius is asked for; machines have no bias. ``u`` is any unknown reference of norm ``‖u‖`` and expected hinge
loss ``L(u)``, ``w`` the machine that is compressed and ``w̃`` what comes of it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pegasos.theory.checks import count, nonnegative, positive, probability, smallest


class LeastSupportProblem(NamedTuple):
    """The distribution of Lemma 3.1: rows, labels, their probabilities, and the reference u."""

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    weight: NDArray[np.float64]
    u: NDArray[np.float64]


def _square(norm: float) -> int:
    square = positive("norm", norm) ** 2
    if abs(square - round(square)) > 1e-9 * square:
        raise ValueError(f"norm must have a whole number for its square, got {norm!r}")
    return round(square)


def least_support(norm: float, loss: float = 0.0, eps: float = 0.0) -> float:
    r"""2013, Lemma 3.1: support vectors without which no machine does nearly as well as ``u``.

    .. math:: L_{0/1}(g_w) \le L(u) + \epsilon \;\Rightarrow\; |\mathrm{supp}(w)| \ge \|u\|^2 / 2

    on the distribution of `least_support_problem`, whatever the algorithm and however many rows it sees.

    Parameters
    ----------
    norm : float
        ``‖u‖``; its square must be a whole number.
    loss, eps : float
        ``L(u)`` and ε, together at most 1/4.

    Examples
    --------
    >>> least_support(4.0, loss=0.1, eps=0.15)
    8.0
    """
    if nonnegative("loss", loss) + nonnegative("eps", eps) > 0.25:
        raise ValueError(f"loss + eps must be at most 1/4, got {loss + eps!r}")
    return _square(norm) / 2


def least_support_problem(norm: float, loss: float = 0.0) -> LeastSupportProblem:
    r"""The construction in the proof of Lemma 3.1, as rows with probabilities.

    The rows are an orthonormal basis of ``‖u‖²`` dimensions, each as likely as any other; ``u`` has entries ±1, and
    labels are those of ``u``, but wrong with probability ``loss/2``: the hinge loss of a wrong one is 2.

    Parameters
    ----------
    norm : float
        ``‖u‖``; its square must be a whole number.
    loss : float
        ``L(u)``, at most 1/4.

    Returns
    -------
    LeastSupportProblem
        ``X``, ``y``, ``weight`` (which sums to 1) and ``u``.

    Examples
    --------
    >>> import numpy as np
    >>> X, y, weight, u = least_support_problem(2.0, loss=0.1)
    >>> X.shape, float(np.linalg.norm(u)), round(float(weight @ np.maximum(0, 1 - y * (X @ u))), 12)
    ((8, 4), 2.0, 0.1)
    """
    least_support(norm, loss)
    n = _square(norm)
    u = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    weight = np.concatenate([np.full(n, (1 - loss / 2) / n), np.full(n, loss / 2 / n)])
    return LeastSupportProblem(np.tile(np.eye(n), (2, 1)), np.concatenate([u, -u]), weight, u)


def support_error(n_support: int, norm: float, loss: float = 0.0) -> float:
    r"""The least 0/1 error on `least_support_problem` of a machine with so many support vectors.

    .. math:: \frac{k}{\|u\|^2} \frac{L(u)}{2} + \Big(1 - \frac{k}{\|u\|^2}\Big) \frac12

    A row that is no support vector has score 0, where one half of the answers is wrong. It is above 1/4 for fewer than
    `least_support` vectors: that is the proof of Lemma 3.1.

    Parameters
    ----------
    n_support : int
        ``k``, distinct support vectors.
    norm, loss
        As in `least_support_problem`.

    Examples
    --------
    >>> support_error(8, 4.0), support_error(16, 4.0, loss=0.1)
    (0.25, 0.05)
    """
    least_support(norm, loss)
    share = min(1.0, count("n_support", n_support, 0) / _square(norm))
    return share * loss / 2 + (1 - share) / 2


def sparse_steps(norm: float, eps: float = 0.5, *, step: float | None = None, radius: float = 1.0) -> float:
    r"""2013, Lemma 4.2: steps after which subgradient descent has ``f(w̃) ≤ ε`` in Problem 4.1.

    .. math:: T \le \frac{\|w\|^2}{2\eta\epsilon - \eta^2 R^2}, \qquad
        4 \|w\|^2 \text{ for } \eta = \epsilon = \tfrac12,\; R = 1

    There are at most as many support vectors. Each step brings ``‖w̃ − w‖²`` down by at least the denominator; a step
    size of ``2ε/R²`` or more, which the paper's experiments try too, has no such bound. The aggressive variant and
    Polyak's step (``η = violation/K_ii``) have that of the default step.

    Parameters
    ----------
    norm : float
        ``‖w‖`` of the machine that is compressed.
    eps : float
        Violation that is allowed, positive; the theorem needs 1/2.
    step : float or None
        ``η`` below ``2ε/R²``. None: ``ε/R²``, the best.
    radius : float
        ``R``, the largest ``√K(x, x)``.

    Examples
    --------
    >>> sparse_steps(3.0), sparse_steps(3.0, step=0.25)
    (36.0, 48.0)
    """
    eps, R2 = positive("eps", eps), positive("radius", radius) ** 2
    eta = eps / R2 if step is None else positive("step", step)
    if eta * R2 >= 2 * eps:
        raise ValueError(f"step must be below 2 eps/radius² = {2 * eps / R2:.6g}, got {step!r}")
    return nonnegative("norm", norm) ** 2 / (2 * eta * eps - eta**2 * R2)


def compression_bound(loss: float, T: int, n: int, delta: float) -> float:
    r"""2013, Lemma 4.3: expected slant loss of all sums of ``T`` training examples at once.

    .. math::

        L(\tilde w) \le \hat L' + a + \sqrt{a^2 + 2 a \hat L'}
        = \hat L + O\bigg(\sqrt{\hat L \tfrac{T \log n + \log 1/\delta}{n}}
        + \tfrac{T \log n + \log 1/\delta}{n}\bigg),
        \qquad \hat L' = \tfrac{n}{n - T} \hat L,
        \quad a = \frac{\ln \binom{n + T}{T} + \ln(1/\delta)}{n - T}

    for every ``w̃ = η Σ_{t≤T} y_{i_t} φ(x_{i_t})`` with one ``η`` fixed beforehand, with probability at least
    ``1 − delta`` over the ``n`` rows. The paper has the O(·); the constants are of this proof: given its (at most)
    ``T`` examples ``w̃`` does not depend on the others, on which Chernoff's inequality for the mean of numbers in [0, 1]
    holds, and there are ``(n + T)!/(n! T!)`` ways to choose them. The slant loss of ``w̃`` is the error of the
    randomised classifier; the bound is as good for any other loss in [0, 1]. Steps that depend on the other rows
    (Polyak's, a refit, a bias learnt from all of them) are not covered.

    Parameters
    ----------
    loss : float
        ``L̂``: mean loss of ``w̃`` on all ``n`` rows, in [0, 1].
    T : int
        Steps, not fewer than were taken, and fixed before the rows were seen.
    n : int
        Rows, at least ``8T``.
    delta : float
        Allowed probability of failure, in (0, 1).

    Examples
    --------
    >>> compression_bound(0.1, T=10, n=10_000, delta=0.05)
    0.148...
    """
    T, probability_ = count("T", T), probability("delta", delta)
    n = count("n", n)
    if n < 8 * T:
        raise ValueError(f"n must be at least 8 T = {8 * T}, got {n!r}")
    if not 0 <= loss <= 1:
        raise ValueError(f"loss must lie between 0 and 1, got {loss!r}")
    choices = math.lgamma(n + T + 1) - math.lgamma(n + 1) - math.lgamma(T + 1)
    a, seen = (choices - math.log(probability_)) / (n - T), loss * n / (n - T)
    return seen + a + math.sqrt(a**2 + 2 * a * seen)


def sparse_error(n: int, norm: float, loss: float, delta: float, *, excess: float = 0.0, factor: float = 2.0) -> float:
    r"""2013, Theorem 4.4 for a given sample: the error of the randomised sparse classifier.

    .. math:: L_{0/1}(\tilde g_{\tilde w}) \le
        \mathrm{compression\_bound}\big(\hat L(u) + \mathrm{excess},\; 4 (\mathrm{factor}\, \|u\|)^2\big),
        \qquad \hat L(u) \le L(u) + \sqrt{\tfrac{2 b L(u) \ln(1/\delta)}{n}} + \tfrac{b \ln(1/\delta)}{3 n},
        \quad b = 1 + \|u\|

    with probability at least ``1 − 2 delta``: Bernstein's inequality for ``u``, Lemma 4.1 for ``w̃`` against ``w``,
    Lemma 4.2 for its steps and `compression_bound`. It says nothing where it is 1 or more.

    Parameters
    ----------
    n : int
        Rows, at least ``32 (factor ‖u‖)²``.
    norm, loss : float
        ``‖u‖`` and ``L(u)`` of the reference.
    delta : float
        Half of the allowed probability of failure.
    excess, factor : float
        What the machine that is compressed has reached: ``L̂(w) ≤ L̂(u) + excess`` and ``‖w‖ ≤ factor·‖u‖``; the
        paper's first stage has a factor of 2.

    Examples
    --------
    >>> sparse_error(100_000, norm=2.0, loss=0.05, delta=0.05)
    0.0828...
    """
    n, delta = count("n", n), probability("delta", delta)
    norm, loss, excess = positive("norm", norm), nonnegative("loss", loss), nonnegative("excess", excess)
    T = math.ceil(sparse_steps(positive("factor", factor) * norm) - 1e-9)
    level, b = math.log(1 / delta) / n, 1 + norm
    seen = loss + math.sqrt(2 * b * loss * level) + b * level / 3 + excess
    return compression_bound(min(1.0, seen), T, n, delta)


def sparse_sample_size(
    eps: float, norm: float, loss: float, delta: float, *, excess: float = 0.0, factor: float = 2.0
) -> int:
    r"""2013, Theorem 4.4: rows that are enough for an error of ``L(u) + ε`` from ``O(‖u‖²)`` support vectors.

    .. math:: n = \tilde O\Big(\frac{L(u) + \epsilon}{\epsilon} \frac{\|u\|^2}{\epsilon} \log\frac1\delta\Big)

    with the constants of `sparse_error`, whose smallest ``n`` it is.

    Parameters
    ----------
    eps : float
        ε, above ``excess``.
    norm, loss, delta, excess, factor
        As in `sparse_error`.

    Examples
    --------
    >>> sparse_sample_size(0.1, norm=2.0, loss=0.05, delta=0.05)
    14763
    """
    if positive("eps", eps) <= nonnegative("excess", excess):
        raise ValueError(f"eps must be larger than excess = {excess!r}, got {eps!r}")
    least = 8 * math.ceil(sparse_steps(positive("factor", factor) * positive("norm", norm)) - 1e-9)
    return smallest(
        lambda n: sparse_error(n, norm, loss, delta, excess=excess, factor=factor),
        nonnegative("loss", loss) + eps,
        least,
    )


def sparsification_evaluations(n: int, norm: float) -> float:
    r"""2013, section 4.5: kernel values that compressing ``w`` on ``n`` rows takes at most.

    .. math:: 4 n \|w\|^2

    One kernel row of all ``n`` rows for each step of `sparse_steps`; steps on the same row share it.

    Parameters
    ----------
    n : int
        Rows.
    norm : float
        ``‖w‖``.

    Examples
    --------
    >>> sparsification_evaluations(1000, 3.0)
    36000.0
    """
    return count("n", n) * sparse_steps(norm)


def sparse_kernel_evaluations(eps: float, norm: float, loss: float, delta: float) -> float:
    r"""2013, Corollary 1: order of the kernel values of the whole procedure, with SBP as its first stage.

    .. math:: \Big(\frac{L(u) + \epsilon}{\epsilon}\Big)^3 \frac{\|u\|^4}{\epsilon} \log\frac1\delta

    to be read as Õ(·), with constants and further logarithms left out: the sample of Theorem 4.4 times the
    ``((L + ε)/ε)² ‖u‖²`` iterations of SBP, each of which is a kernel row. Compressing adds ``16 n ‖u‖²``, which is
    less.

    Parameters
    ----------
    eps, norm, loss, delta
        As in `sparse_sample_size`.

    Examples
    --------
    >>> round(sparse_kernel_evaluations(0.1, norm=2.0, loss=0.05, delta=0.05))
    1618
    """
    eps, loss = positive("eps", eps), nonnegative("loss", loss)
    share = (loss + eps) / eps
    return share**3 * positive("norm", norm) ** 4 / eps * math.log(1 / probability("delta", delta))
