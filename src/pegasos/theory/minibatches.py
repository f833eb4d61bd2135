"""What batches buy: the bounds of the papers do not depend on the batch size."""

from __future__ import annotations

from pegasos.theory.checks import count


def minibatch_factor(k: int, m: int, sigma2: float) -> float:
    r"""What batches of ``k`` rows do to the expected squared norm of the loss gradient, and so to the expected bound.

    .. math::

        \mathbb E \Big\| \frac1k \sum_{i \in A} g_i x_i \Big\|^2 \le R^2\, \frac{\beta_k}{k},
        \qquad \beta_k = 1 + \frac{(k - 1)(m \sigma^2 - 1)}{m - 1},
        \qquad \sigma^2 = \frac{\|X\|_{\mathrm{spec}}^2}{m R^2}

    for ``|g_i| ≤ 1`` and ``A`` drawn without repetitions (Takáč, Bijral, Richtárik and Srebro, *Mini-batch primal and
    dual methods for SVMs*, 2013). Without projection ``E f(w̄) − f(w*)`` is then at most this factor times
    `instantaneous_regret`. Batches pay, step for step, until ``k ≈ 1/σ²``.

    Parameters
    ----------
    k : int
        Rows in a batch, ``1 ≤ k ≤ m``.
    m : int
        Rows in all.
    sigma2 : float
        ``σ²``: squared largest singular value of ``X`` over ``m R²``, from ``1/m`` (orthogonal rows of equal norm) to 1
        (all rows parallel).

    Returns
    -------
    float
        ``β_k/k``, at most 1.

    Examples
    --------
    >>> minibatch_factor(10, m=1000, sigma2=0.001)
    0.1
    >>> minibatch_factor(10, m=1000, sigma2=1.0)
    1.0
    """
    m, k = count("m", m), count("k", k)
    if k > m:
        raise ValueError(f"k must be at most m = {m}, got {k!r}")
    if not (1 - 1e-9) / m <= sigma2 <= 1 + 1e-9:
        raise ValueError(f"sigma2 must lie between 1/m and 1, got {sigma2!r}")
    return (1 + (k - 1) * (m * sigma2 - 1) / max(1, m - 1)) / k
