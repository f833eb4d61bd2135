"""Means of the iterates of a kernel stream, with the norms of which they are made.

Four functions are followed: the unscaled iterate v, and the sums of all iterates until now, until the window, and until
the next one (:class:`~pegasos.estimators.averages.Averages`). A piece of rows changes them to T(v, …)ᵀ + E, T a small
matrix, E combinations of the piece's rows; so scores on these rows are all that their inner products need.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pegasos.estimators.averages import Averages
from pegasos.rows.views import Array

FUNCTIONS = 4


class PieceSums(NamedTuple):
    """What a piece adds, for each part: ``passed`` times the v it began with, coefficients of its rows, and biases.

    ``folded`` is what v was multiplied by meanwhile, ``steps`` how many iterates there were.
    """

    passed: Array
    folded: Array
    coef: Array
    b: Array
    steps: Array


class KernelMeans(NamedTuple):
    """The sums, and the inner products of the four functions: parts × 4 × 4."""

    averages: Averages
    inner: Array

    @classmethod
    def begin(cls, rows: int, steps: Array, scale: Array, coef: Array, b: Array, squares: Array) -> KernelMeans:
        """Earlier iterates count as the last, ``scale`` times v, which has these coefficients and squared norm."""
        zero = 0 * steps
        shares = np.stack([np.ones_like(steps), steps * scale, zero, steps * scale], axis=1)
        inner = squares[:, None, None] * shares[:, :, None] * shares[:, None, :]
        return cls(Averages.begin(rows, steps, scale[:, None] * coef, b), inner)

    def rescaled(self, ratio: Array) -> KernelMeans:
        """With v multiplied by ``ratio``, in each part."""
        factor = np.ones((len(ratio), FUNCTIONS))
        factor[:, 0] = ratio
        return self._replace(inner=self.inner * factor[:, :, None] * factor[:, None, :])

    def sums(self) -> Array:
        """Coefficients of the three sums: 3 × parts × support vectors."""
        return np.stack([part.W for part in self.averages])

    def after(
        self, v: Array, piece: PieceSums, new: Array, raw: Array, Z: Array, gained: Array
    ) -> tuple[KernelMeans, Array]:
        """With one more piece, and the scores of the four functions on its rows: parts × 4 × rows.

        ``v`` are the coefficients it began with, ``new`` the rows that become support vectors, ``raw`` what v gains, Z
        the scores of the four functions before (4 × parts × rows), ``gained`` what those of v and the first sum gain.
        """
        parts, m = raw.shape
        T = np.broadcast_to(np.eye(FUNCTIONS), (parts, FUNCTIONS, FUNCTIONS)).copy()
        T[:, 0, 0], T[:, 1, 0] = piece.folded, piece.passed
        E, KE = np.zeros((parts, FUNCTIONS, m)), np.zeros((parts, FUNCTIONS, m))
        E[:, 0], E[:, 1] = raw, piece.coef
        KE[:, 0], KE[:, 1] = gained
        TZ = np.einsum("pij,jpm->pim", T, Z)
        cross = np.einsum("pim,pjm->pij", TZ, E)
        inner = T @ self.inner @ T.transpose(0, 2, 1) + cross + cross.transpose(0, 2, 1)
        inner = inner + np.einsum("pim,pjm->pij", E, KE)
        W = np.concatenate([piece.passed[:, None] * v, piece.coef[:, new]], axis=1)
        averages = self.averages.after(m, piece.steps, W, piece.b)
        pick = [0, 1, 3, 1] if averages.later is averages.now else [0, 1, 2, 3]  # the window may have moved on
        return KernelMeans(averages, inner[:, pick][:, :, pick]), (TZ + KE)[:, pick]

    def norm_and_scores(self, output: str, scores: Array) -> tuple[Array, Array]:
        """Squared norm of the mean in each part, and its scores, out of those of the four functions."""
        now, window, _ = self.averages
        steps = now.steps - (window.steps if output == "suffix" else 0.0)
        share = np.zeros((len(steps), FUNCTIONS))
        share[:, 1] = 1.0 / np.maximum(steps, 1.0)
        if output == "suffix":
            share[:, 2] = -share[:, 1]
        norm = np.einsum("pi,pij,pj->p", share, self.inner, share)
        return np.maximum(norm, 0.0), np.einsum("pi,pim->pm", share, scores)
