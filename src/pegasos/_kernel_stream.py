"""``partial_fit`` of kernel machines: Pegasos over rows that come in pieces, of which support vectors are kept.

This is Pegasos on demand: a row's score is computed when it is visited, from the support vectors there are by then. The
rows of a block are scored together, and inside the block the serial algorithm runs on the block's own kernel values.
"""

from __future__ import annotations

import copy
import time
from typing import Any

import numpy as np
from scipy import sparse

from pegasos import _core
from pegasos._certificate import Certificate
from pegasos._data import Array
from pegasos._kernel_blocks import BLOCK, ORDERS
from pegasos._kernel_pegasos import BIAS, FOLDED, NORM, PI, PROGRESS, STEPS, SUM, VISITS
from pegasos._kernel_problem import KernelProblem, check_values
from pegasos._kernels import Kernel, checked_values
from pegasos._trace import Checkpoint, Trace
from pegasos.solvers import Pegasos


class KernelStream:
    """What is carried from piece to piece: support vectors, their unscaled coefficients, and the counts of Pegasos.

    After a fit it begins with that fit's support vectors, ``lam`` and ``rows``, as if Pegasos had seen the rows once.
    """

    def __init__(self, kernel: Kernel, lam: float, rows: int = 0) -> None:
        self.kernel, self.lam, self.rows = kernel, lam, rows
        self.vectors: Any = None
        self.numbers, self.codes = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self.coef, self.progress = np.zeros((0, 0)), np.zeros((0, PROGRESS))
        self.t0: Array | None = None
        self.evaluations, self.seconds = 0, 0.0
        self.trace = Trace()

    def begin(self, vectors: Any, numbers: Array, codes: Array, coef: Array, b: Array) -> None:
        """Go on from a fitted model: support vectors, their rows and classes, coefficients and biases of each part."""
        self.vectors, self.numbers, self.codes, self.coef = vectors, numbers.astype(np.int64), codes, coef
        self.progress = _fresh(len(coef))
        self.progress[:, VISITS] = self.progress[:, STEPS] = self.rows
        self.progress[:, BIAS] = b

    def fork(self) -> KernelStream:
        """A copy that can be carried on alone."""
        other = copy.copy(self)
        other.trace = Trace(self.trace)
        return other

    def step(self, problem: KernelProblem, codes: Array, options: Pegasos, seed: int) -> tuple[Array, Array]:
        """One epoch over the problem's rows, of these classes; coefficients of all support vectors, and biases."""
        began, m = time.perf_counter(), int(problem.X.shape[0])
        B2 = problem.feature**2 if problem.bias == "feature" else 0.0
        self._prepare(problem, options, B2)
        assert self.t0 is not None
        self.coef = self.coef.copy()
        old = self._scores(problem.X, problem.rows.threads)
        norm = self.progress[:, NORM] - B2 * self.progress[:, SUM] ** 2
        raw = self._epoch(problem, old, options, seed)
        new = np.flatnonzero(raw.any(axis=0))
        gained = np.zeros_like(old)
        if len(new):
            gained = np.asarray(problem.rows(0).exact(new, raw[:, new], np.arange(m)))
        if not options.projection:  # the core, which needs it then, has kept it
            # ‖v + r‖² = ‖v‖² + 2⟨v, r⟩ + ‖r‖²
            norm = norm + np.einsum("pi,pi->p", raw, 2 * old + gained)
            self.progress[:, NORM] = norm + B2 * self.progress[:, SUM] ** 2
        omega = self.t0 + self.progress[:, VISITS]  # zero for a pair of classes that has not come yet
        scale = np.divide(self.progress[:, PI], self.lam * omega, out=np.zeros_like(omega), where=omega > 0)
        b = B2 * scale * self.progress[:, SUM] if problem.bias == "feature" else self.progress[:, BIAS].copy()
        primal = 0.5 * self.lam * float(scale**2 @ self.progress[:, NORM])
        for part, scores in zip(problem.pieces, scale[:, None] * (old + gained) + b[:, None], strict=True):
            own = np.ascontiguousarray(scores if part.index is None else scores[part.index])
            primal += float(part.weight @ part.core.value(own, part.y)) / problem.total
        if not np.isfinite(primal):
            raise ValueError("the scores left the range of floating-point numbers; scale the features or raise lam")
        self.coef = np.concatenate([self.coef, raw[:, new]], axis=1)
        self.vectors = _stacked(self.vectors, problem.X[new])
        self.numbers = np.concatenate([self.numbers, new + self.rows])
        self.codes = np.concatenate([self.codes, codes[new]])
        self.rows += m
        self.seconds += time.perf_counter() - began
        inf = float("inf")
        self.trace.append(Checkpoint(float(len(self.trace) + 1), self.seconds, primal, -inf, inf, inf))
        return self.coef * scale[:, None], b

    def _prepare(self, problem: KernelProblem, options: Pegasos, B2: float) -> None:
        """What the first piece decides: t0, and with it the scale of the coefficients of an earlier fit."""
        self.progress = self.progress.copy() if len(self.progress) else _fresh(problem.parts)
        if self.t0 is not None:
            return
        diagonal = problem.rows(0).diagonal()
        t0 = []
        for part in problem.pieces:  # rows of a pair of classes may still be to come: all rows speak for them
            mean = float(diagonal.mean() if part.index is not None else part.weight @ diagonal / problem.total)
            t0.append(options.kernel_t0(part.loss, mean, float(diagonal.max()), B2, self.lam))
        self.t0 = np.array(t0)
        if not len(self.coef):
            self.coef = np.zeros((problem.parts, 0))
        elif self.coef.shape[1]:
            self.coef = self.coef * (self.lam * (self.t0 + self.rows))[:, None]
            self.progress[:, SUM] = self.coef.sum(axis=1)
            norm = np.einsum("pi,pi->p", self.coef, self._scores(self.vectors, problem.rows.threads))
            self.progress[:, NORM] = norm + B2 * self.progress[:, SUM] ** 2

    def _epoch(self, problem: KernelProblem, old: Array, options: Pegasos, seed: int) -> Array:
        """Visit the rows in blocks; the unscaled coefficients that they gain, for each part."""
        m, rows, pieces = int(problem.X.shape[0]), problem.rows(0), problem.pieces
        order = np.asarray(_core.epoch_order(m, ORDERS[options.kernel_sampling()], seed, 0))
        size = min(int(options.batch_size), m)
        long = size > BLOCK
        block = size if long else BLOCK // size * size
        radius = float(np.sqrt(problem.at_zero().max() / self.lam)) if options.projection else 0.0
        raw, slopes = np.zeros((len(pieces), m)), [np.zeros(part.m) for part in pieces]
        place = [_places(part.index, m) for part in pieces]
        for first in range(0, m, block):
            at = np.ascontiguousarray(order[first : first + block])
            known = np.flatnonzero(raw.any(axis=0))
            score = old[:, at] + (rows.exact(known, raw[:, known], at) if len(known) else 0.0)
            # Scores stay as they are in a mini-batch: only its norm needs the kernel values within.
            K = np.zeros((0, 0)) if long and not radius else rows.square(at)
            check_values(K, at)
            self.evaluations += len(at) * len(known) + (len(at) ** 2 if K.size else 0)
            for k, part in enumerate(pieces):
                inside = np.flatnonzero(place[k][at] >= 0)
                if not len(inside):
                    continue
                change, counts = np.zeros(len(inside)), self.progress[k].copy()
                assert self.t0 is not None
                _core.kernel_pegasos_steps(
                    part.core,
                    np.ascontiguousarray(K[np.ix_(inside, inside)]) if K.size else K,
                    place[k][at[inside]],
                    np.ascontiguousarray(score[k, inside]),
                    change,
                    part.y,
                    part.weight * (part.m / problem.total),
                    slopes[k],
                    np.zeros((2, 0)),
                    np.zeros((2, 0)),
                    counts,
                    lam=self.lam,
                    t0=float(self.t0[k]),
                    radius=radius,
                    feature=problem.feature if problem.bias == "feature" else 0.0,
                    batch_size=size,
                    subgradient=problem.bias == "free",
                    seed=0,
                )
                if counts[FOLDED] != 1.0:  # projections have all but wiped out the past
                    for past in (self.coef, old, raw):
                        past[k] *= counts[FOLDED]
                    counts[FOLDED] = 1.0
                self.progress[k] = counts
                np.add.at(raw[k], at[inside], change)
        return raw

    def _scores(self, X: Any, threads: int) -> Array:
        """Σ_i coef_i K(sv_i, x) of each part and row of X, for the support vectors so far."""
        shape = (int(X.shape[0]), self.coef.shape[1])
        if not shape[1]:
            return np.zeros((len(self.coef), shape[0]))
        self.evaluations += shape[0] * shape[1]
        if self.kernel.function is not None:
            values = checked_values(self.kernel.function(X, self.vectors), shape, "the kernel function")
            return np.asarray(self.coef @ values.astype(np.float64).T)
        vectors, rows = self.kernel.core(self.vectors, threads), self.kernel.core(X, threads)
        return np.asarray(vectors.scores(None, np.ascontiguousarray(self.coef), rows, None, threads))

    def certificate(self) -> Certificate:
        """Of the last piece: a primal value, and no lower bound."""
        last, inf = self.trace[-1], float("inf")
        return Certificate(
            primal=last.primal,
            dual=-inf,
            gap=inf,
            relative_gap=inf,
            converged=False,
            reason="not certified: the rows of earlier calls to partial_fit are gone",
            epochs=last.epochs,
            seconds=last.seconds,
        )


def _fresh(parts: int) -> Array:
    progress = np.zeros((parts, PROGRESS))
    progress[:, [PI, FOLDED]] = 1.0
    return progress


def _places(index: Array | None, m: int) -> Array:
    """The place of each row of a piece among the rows of a part; −1: it has none."""
    if index is None:
        return np.arange(m)
    places = np.full(m, -1, dtype=np.int64)
    places[index] = np.arange(len(index))
    return places


def _stacked(before: Any, rows: Any) -> Any:
    """Rows below those that were there, in their layout."""
    if before is None:
        return rows
    if sparse.issparse(before):
        return sparse.vstack([before, sparse.csr_matrix(rows)], format="csr")
    return np.concatenate([before, rows.toarray() if sparse.issparse(rows) else rows])
