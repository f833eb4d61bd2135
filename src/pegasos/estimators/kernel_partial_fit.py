"""``partial_fit`` of kernel machines: Pegasos over rows that come in calls, of which support vectors are kept.

This is Pegasos on demand: a row's score is computed when it is visited, from the support vectors there are by then. The
rows of a block are scored together, and inside the block the serial algorithm runs on the block's own kernel values.
"""

from __future__ import annotations

import time

import numpy as np
from scipy import sparse

from pegasos import _core
from pegasos.estimators.averages import MEANS, Averages
from pegasos.estimators.kernel_means import KernelMeans, PieceSums
from pegasos.estimators.partial_fit import RowStream, squared_feature
from pegasos.kernels.expansion import Expansion, as_core_reads, function_values
from pegasos.kernels.functions import Kernel
from pegasos.problems.kernel import KernelProblem
from pegasos.problems.part import check_values
from pegasos.rows.views import Array, is_sparse
from pegasos.solvers import Pegasos
from pegasos.solvers.kernel.blocks import BLOCK_ROWS
from pegasos.solvers.kernel.pegasos import Progress
from pegasos.solvers.units import Units
from pegasos.util.arrays import CSR, Matrix


class KernelStream(RowStream):
    """What is carried from call to call: support vectors, their unscaled coefficients, and the counts of Pegasos."""

    def __init__(self, kernel: Kernel, lam: float, rows: int = 0) -> None:
        super().__init__(lam, rows)
        self.kernel, self.evaluations = kernel, 0
        self.vectors: Matrix | None = None
        self.numbers, self.codes = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self.coef, self.progress = np.zeros((0, 0)), np.zeros((0, len(Progress)))
        #: Of :class:`KernelMeans`.
        self.inner: Array | None = None

    def begin(self, machine: Expansion) -> None:
        """Go on from a fitted machine, whose vectors are known by their numbers."""
        assert machine.numbers is not None
        self.vectors, self.coef = as_core_reads(machine.vectors), machine.functions
        self.numbers, self.codes = machine.numbers.astype(np.int64), machine.codes
        self.progress = _fresh(len(self.coef))
        self.progress[:, Progress.VISITS] = self.progress[:, Progress.STEPS] = self.rows
        self.progress[:, Progress.BIAS] = machine.bias

    def step(self, problem: KernelProblem, codes: Array, options: Pegasos, seed: int) -> tuple[Array, Array]:
        """One epoch over the problem's rows, of these classes; coefficients of all support vectors, and biases."""
        began, m = time.perf_counter(), int(problem.X.shape[0])
        B2 = squared_feature(problem)
        units = self._prepare(problem, options, B2)
        self.coef = self.coef.copy()
        parts, threads, output = problem.n_parts, problem.rows.threads, options.output
        means = self._means(problem, B2) if output in MEANS else None
        start, followed = self.coef.copy(), self.coef[None]
        if means is not None:
            followed = np.concatenate([followed, means.sums()])
        Z = self._scores(problem.X, threads, np.concatenate(list(followed))).reshape(-1, parts, m)
        old = Z[0].copy()
        norm = self.progress[:, Progress.NORM] - B2 * self.progress[:, Progress.TOTAL] ** 2
        raw, piece = self._epoch(problem, old, options, seed, units.step)
        new = np.flatnonzero(raw.any(axis=0) | piece.coef.any(axis=0))
        gained = np.zeros((2, parts, m))
        if len(new):
            own = np.stack([raw[:, new], piece.coef[:, new]])[: 1 if means is None else 2]
            gained[: len(own)] = (
                problem.rows(0).exact(new, own.reshape(-1, len(new)), np.arange(m)).reshape(-1, parts, m)
            )
        if not options.projection:  # the core, which needs it then, has kept it
            # ‖v + r‖² = ‖v‖² + 2⟨v, r⟩ + ‖r‖²
            norm = norm + np.einsum("pi,pi->p", raw, 2 * old + gained[0])
            self.progress[:, Progress.NORM] = norm + B2 * self.progress[:, Progress.TOTAL] ** 2
        scale = self._scale()
        coef = np.concatenate([self.coef, raw[:, new]], axis=1)
        if means is None:
            shown, squares, scores = scale[:, None] * coef, scale**2 * norm, scale[:, None] * (old + gained[0])
            if options.projection:
                squares = scale**2 * (self.progress[:, Progress.NORM] - B2 * self.progress[:, Progress.TOTAL] ** 2)
            b = self.progress[:, Progress.BIAS].copy()
        else:
            means, followed_scores = means.after(start, piece, new, raw, Z, gained)
            shown, b = means.averages.mean(output)
            squares, scores = means.norm_and_scores(output, followed_scores)
        if problem.bias == "feature":
            b = B2 * shown.sum(axis=1)
            squares = squares + b**2 / B2
        primal = 0.5 * self.lam * float(squares.sum())
        for part, own_scores in zip(problem.parts, scores + b[:, None], strict=True):
            values = np.ascontiguousarray(own_scores if part.index is None else own_scores[part.index])
            primal += float(part.weight @ part.core.value(values, part.y)) / problem.total
        if not np.isfinite(primal):
            raise ValueError("the scores left the range of floating-point numbers; scale the features or raise lam")
        self.coef = coef
        self.averages = None if means is None else means.averages.plain()
        self.inner = None if means is None else means.inner
        self.vectors = _stacked(self.vectors, problem.X[new])
        self.numbers = np.concatenate([self.numbers, new + self.rows])
        self.codes = np.concatenate([self.codes, codes[new]])
        self._record(m, primal, began)
        return shown, b

    def _scale(self) -> Array:
        """The last iterate is scale · v, in each part."""
        assert self.t0 is not None
        omega = self.t0 + self.progress[:, Progress.VISITS]  # zero for a pair of classes that has not come yet
        return np.divide(self.progress[:, Progress.PI], self.lam * omega, out=np.zeros_like(omega), where=omega > 0)

    def _means(self, problem: KernelProblem, B2: float) -> KernelMeans:
        """The means so far; where iterates were not added up before, they count as the last of them."""
        if self.averages is not None and self.inner is not None:
            return KernelMeans(Averages.of(self.averages), self.inner)
        squares = self.progress[:, Progress.NORM] - B2 * self.progress[:, Progress.TOTAL] ** 2
        steps, b = self.progress[:, Progress.STEPS].copy(), self.progress[:, Progress.BIAS].copy()
        return KernelMeans.begin(self.rows, steps, self._scale(), self.coef, b, squares)

    def _prepare(self, problem: KernelProblem, options: Pegasos, B2: float) -> Units:
        """What rows and targets so far make of the step size; coefficients get the scale that belongs to it."""
        parts, before = problem.n_parts, self.t0
        self.progress = self.progress.copy() if len(self.progress) else _fresh(parts)
        if not len(self.coef):
            self.coef = np.zeros((parts, 0))
        part = problem.parts[0]
        # Some pairs of classes may have no rows yet: all rows count for them, without weights.
        weight = part.weight if part.index is None else None
        t0, units = self._measure(problem, options, problem.rows(0).diagonal, weight, part.y)
        if not self.rows:
            self.progress[:, Progress.BIAS] = units.start
        elif before is None:  # after a fit
            self.coef = self.coef * (self.lam * (t0 + self.rows))
            self.progress[:, Progress.TOTAL] = self.coef.sum(axis=1)
            assert self.vectors is not None
            own: Array = self._scores(self.vectors, problem.rows.threads, self.coef)
            norm = np.einsum("pi,pi->p", self.coef, own)
            self.progress[:, Progress.NORM] = norm + B2 * self.progress[:, Progress.TOTAL] ** 2
        elif before != t0:
            visits = self.progress[:, Progress.VISITS]
            ratio = np.divide(t0 + visits, before + visits, out=np.ones(parts), where=before + visits > 0)
            self.coef = self.coef * ratio[:, None]
            self.progress[:, Progress.TOTAL] *= ratio
            self.progress[:, Progress.NORM] *= ratio**2
            if self.inner is not None and self.averages is not None:
                self.inner = KernelMeans(Averages.of(self.averages), self.inner).rescaled(ratio).inner
        return units

    def _epoch(
        self, problem: KernelProblem, old: Array, options: Pegasos, seed: int, bias_rate: float
    ) -> tuple[Array, PieceSums]:
        """Visit the rows in blocks; the unscaled coefficients that they gain, for each part, and sums of iterates."""
        m, rows, parts = int(problem.X.shape[0]), problem.rows(0), problem.parts
        size = min(int(options.batch_size), m)
        order = _core.epoch_order(m, options.kernel_sampling(), seed, 0, batch=size, whole=False)
        long = size > BLOCK_ROWS
        block = size if long else BLOCK_ROWS // size * size
        radius = options.radius(problem, self.lam)
        raw, slopes = np.zeros((len(parts), m)), [np.zeros(part.m) for part in parts]
        place = [_places(part.index, m) for part in parts]
        lags = [np.zeros((2, part.m if options.output in MEANS else 0)) for part in parts]
        passed, folded, steps = np.zeros(len(parts)), np.ones(len(parts)), self.progress[:, Progress.STEPS].copy()
        self.progress[:, [Progress.CARRIED, Progress.BIAS_SUM]] = 0.0
        for first in range(0, m, block):
            at = np.ascontiguousarray(order[first : first + block])
            known = np.flatnonzero(raw.any(axis=0))
            score = old[:, at] + (rows.exact(known, raw[:, known], at) if len(known) else 0.0)
            # Scores stay as they are in a mini-batch: only its norm needs the kernel values within.
            K = np.zeros((0, 0)) if long and not radius else rows.square(at)
            check_values(K, at)
            self.evaluations += len(at) * len(known) + (len(at) ** 2 if K.size else 0)
            for k, part in enumerate(parts):
                inside = np.flatnonzero(place[k][at] >= 0)
                if not len(inside):
                    continue
                change, counts = np.zeros(len(inside)), self.progress[k].copy()
                counts[Progress.PASSED] = 0.0
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
                    lags[k],
                    np.zeros((2, 0)),
                    counts,
                    lam=self.lam,
                    t0=self.t0,
                    radius=radius,
                    feature=problem.feature if problem.bias == "feature" else 0.0,
                    batch_size=size,
                    subgradient=problem.bias == "free",
                    bias_rate=bias_rate,
                    seed=0,
                )
                passed[k] += folded[k] * counts[Progress.PASSED]
                if (
                    counts[Progress.FOLDED] != 1.0
                ):  # projections have made the past so small that its scale is moved into the numbers
                    for past in (self.coef, old, raw):
                        past[k] *= counts[Progress.FOLDED]
                    folded[k] *= counts[Progress.FOLDED]
                    counts[Progress.FOLDED] = 1.0
                self.progress[k] = counts
                np.add.at(raw[k], at[inside], change)
        sums = np.zeros((len(parts), m))
        if options.output in MEANS:
            for k, part in enumerate(parts):  # as PegasosState.coefficients has it
                lag, total = lags[k]
                own = (
                    part.weight
                    * (part.m / problem.total)
                    * (total + self.progress[k, Progress.CARRIED] * slopes[k] - lag)
                )
                sums[k, slice(None) if part.index is None else part.index] = own
        return raw, PieceSums(
            passed, folded, sums, self.progress[:, Progress.BIAS_SUM].copy(), self.progress[:, Progress.STEPS] - steps
        )

    def _scores(self, X: Matrix, threads: int, coef: Array) -> Array:
        """Σ_i coef_i K(sv_i, x) of each row of coefficients and of X, for the support vectors so far."""
        shape = (int(X.shape[0]), coef.shape[1])
        if not shape[1]:
            return np.zeros((len(coef), shape[0]))
        assert self.vectors is not None
        self.evaluations += shape[0] * shape[1]
        if self.kernel.function is not None:
            return np.asarray(coef @ function_values(self.kernel, X, self.vectors).T)
        vectors, rows = self.kernel.core(self.vectors, threads), self.kernel.core(X, threads)
        return np.asarray(vectors.scores(None, np.ascontiguousarray(coef), rows, None, threads))


def _fresh(parts: int) -> Array:
    progress = np.zeros((parts, len(Progress)))
    progress[:, [Progress.PI, Progress.FOLDED]] = 1.0
    return progress


def _places(index: Array | None, m: int) -> Array:
    """The place of each row of a piece among the rows of a part; −1: it has none."""
    if index is None:
        return np.arange(m)
    places = np.full(m, -1, dtype=np.int64)
    places[index] = np.arange(len(index))
    return places


def _stacked(before: Matrix | None, rows: Matrix) -> Matrix:
    """Rows below those that were there, in their layout."""
    if before is None:
        return rows
    if is_sparse(before):
        stacked: CSR = sparse.vstack([before, sparse.csr_matrix(rows)], format="csr")
        return stacked
    return np.concatenate([before, rows.toarray() if is_sparse(rows) else rows])
