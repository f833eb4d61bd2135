"""What the second-order methods share: products with the rows, normal equations, and when they cannot go on.

x̃ = (x, 1): the bias is the last coordinate, with its own regularisation (none if it is free).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cython_lapack

from pegasos import _core
from pegasos.fit.engine import ROUNDING_REACHED
from pegasos.problems.base import Bounds
from pegasos.problems.linear import LinearProblem, Weights
from pegasos.rows.views import Array, Examples
from pegasos.util.fields import Numbers, State, saved

#: Why an iteration cannot go on; a saved state holds the index.
STALLS = (
    None,
    PRECISION_LOST := "stalled: the normal equations lost all precision",
    ROUNDING_REACHED,
    STEPS_TOO_SHORT := "stalled: the steps have become too short",
    NO_DESCENT := "stalled: no step decreases the objective any more",
    NO_PROGRESS := "stalled: iterations no longer close the gap",
)

#: Multiplications a second-order iteration may need and still count as free: a few milliseconds of work.
MAX_FREE_MULTIPLICATIONS = 2e7

#: What the core factorises normal matrices with.
LAPACK = _core.Lapack(cython_lapack.__pyx_capi__["dpotrf"])


def regularisation(problem: LinearProblem) -> Array:
    """The diagonal of R."""
    R = np.ones(problem.examples.n + int(problem.bias != "none"))
    if problem.bias != "none":
        R[-1] = 0.0 if problem.bias == "free" else 1.0 / problem.feature**2
    return R


class Progress:
    """The best bounds of each part, and how many certificates in a row have hardly improved them."""

    #: After so many of them rounding errors are as large as what the method could gain.
    MAX_STALE_CERTIFICATES = 20

    def __init__(self, parts: int) -> None:
        self.primal, self.dual, self.stale = np.full(parts, np.inf), np.full(parts, -np.inf), 0

    def note(self, bounds: Bounds[Weights], done: Array) -> bool:
        """Record a certificate; whether to go on with the parts that are not done."""
        gap = self.primal - self.dual
        step = np.where(np.isfinite(gap), 0.01 * gap, 0.0)
        ahead = (bounds.primal < self.primal - step) | (bounds.dual > self.dual + step)
        self.primal, self.dual = np.minimum(self.primal, bounds.primal), np.maximum(self.dual, bounds.dual)
        self.stale = 0 if bool(np.any(ahead & ~done)) else self.stale + 1
        return self.stale < self.MAX_STALE_CERTIFICATES

    def state(self) -> Numbers:
        """What ``restore`` needs."""
        return {"progress.bounds": np.stack([self.primal, self.dual]), "progress.idle": self.stale}

    def restore(self, state: State) -> None:
        """Continue from ``state``."""
        self.primal, self.dual = saved(state, "progress.bounds", (2, len(self.primal)))
        self.stale = int(saved(state, "progress.idle", (1,), low=0, high=self.MAX_STALE_CERTIFICATES, whole=True)[0])


class Design:
    """Products with the matrix of rows x̃_i (all, or those of ``index``); without a bias the last column is left out."""

    def __init__(self, examples: Examples, bias: bool, threads: int, index: Array | None = None) -> None:
        self.examples, self.bias, self.threads, self.index = examples, bias, threads, index
        self.rows = examples.m if index is None else len(index)
        self.width = examples.n + int(bias)

    def forward(self, beta: Array) -> Array:
        """X̃β."""
        n = self.examples.n
        b = beta[n:] if self.bias else np.zeros(1)
        W = np.ascontiguousarray(beta[None, :n])
        return self.examples.rows.scores(W, np.ascontiguousarray(b), self.threads, self.index)[:, 0]

    def adjoint(self, v: Array) -> Array:
        """X̃ᵀv."""
        W = self.examples.rows.adjoint(np.ascontiguousarray(v[:, None]), self.threads, self.index)[0]
        return np.concatenate((W, [np.add.reduce(v)])) if self.bias else W

    def gram(self, d: Array) -> Array:
        """X̃ᵀ diag(d) X̃, d ≥ 0."""
        n = self.examples.n
        M = self.examples.rows.gram(d, self.threads, self.index)
        return M if self.bias else np.ascontiguousarray(M[:n, :n])


def solve_normal(M: Array, r: Array) -> Array:
    """M⁻¹r for a symmetric positive (semi)definite M that may be badly scaled; LinAlgError for others."""
    return np.asarray(_core.solve_normal(LAPACK, M, r))
