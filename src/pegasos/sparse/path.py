"""Every support size of a compressed kernel classifier, from one run."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from pegasos.estimators.svc import SVC
from pegasos.plots import SparsePathDisplay
from pegasos.rows.targets import unpack
from pegasos.rows.views import Array
from pegasos.sparse.pair_compression import pair_guarantee, refit_pairs
from pegasos.sparse.preimage import as_rows
from pegasos.sparse.published import Run
from pegasos.sparse.randomized import Guarantee, RandomizedClassifier
from pegasos.sparse.reduced import ReducedSet
from pegasos.sparse.reference import Pair, PairsOfClasses, Reference
from pegasos.sparse.refine import GaussianRows, Mover, evaluations, pressing
from pegasos.sparse.span import Span, span_of_rows
from pegasos.util.threads import with_one_blas_thread

#: Sizes at which errors are computed unless others are asked for.
SIZES = 24


class SparsePath:
    """Compressed models of every size, from one run of :func:`~pegasos.sparsify`.

    Attributes
    ----------
    reference : SVC
        The model that was compressed.
    variant : str
        How support vectors were chosen.
    refitted : bool
        Whether coefficients are fitted anew for each size.
    moved : bool
        Whether support vectors may be other points than the rows they began as.
    order : ndarray of int
        Rows of X, in the order in which they became support vectors, or at which the searches for those began.
    n_support : int
        The greatest size.
    sizes : ndarray of int
        The sizes at which :meth:`errors` and :meth:`best` look.
    runs : list of Run
        For the published variants the steps of each pair of classes, its ``iterations``, ``iteration_bound``,
        ``support_bound``, ``final_violation`` and the ``reason`` it ended; empty otherwise.
    best_n_support : int or None
        The size that the ``validation`` rows chose.

    Examples
    --------
    >>> from pegasos import SVC, sparsify
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> path = sparsify(SVC(C=10, gamma=1).fit(X, y), X, y, max_support=20)
    >>> path.n_support
    20
    >>> small = path.at(10)
    >>> len(small.support_), bool(small.score(X, y) > 0.9)
    (10, True)
    """

    def __init__(
        self,
        reference: Reference,
        order: Array,
        *,
        variant: str,
        refit: bool,
        learn: bool,
        runs: list[Run],
        shares: list[Array],
        points: ReducedSet | None = None,
        work: float = 0.0,
    ) -> None:
        self._reference, self._learn, self._shares = reference, learn, shares
        self.reference = reference.model
        self.variant, self.refitted, self.order, self.runs = variant, refit, order, runs
        self.moved, self._points, self._work = points is not None or work > 0, points, work
        self.best_n_support: int | None = None
        self._spans: dict[int, Span] = {}
        self._models: dict[int, SVC] = {}

    @property
    def n_support(self) -> int:
        """The greatest size."""
        return len(self.order)

    @property
    def sizes(self) -> Array:
        """Sizes at which errors are computed: all of them, or some that grow by a constant factor."""
        if self.n_support <= SIZES:
            return np.arange(self.n_support + 1)
        return np.unique(np.rint(np.geomspace(1, self.n_support, SIZES)).astype(int))

    @with_one_blas_thread
    def at(self, n_support: int | None = None) -> SVC:
        """The model of up to ``n_support`` support vectors.

        Parameters
        ----------
        n_support : int, default=None
            Most support vectors. Beyond the end of the path there is the last model. None: what ``validation`` rows
            chose, or else the last one.

        Returns
        -------
        SVC
            Fitted: it predicts, and can be saved, as any other.
        """
        if n_support is None:
            n_support = self.n_support if self.best_n_support is None else self.best_n_support
        if isinstance(n_support, bool) or not isinstance(n_support, int | np.integer) or n_support < 0:
            raise ValueError(f"n_support={n_support!r} must be a whole number >= 0")
        n = min(int(n_support), self.n_support)
        if n not in self._models:
            make = self._refitted if self.refitted else self._replayed
            self._models[n] = make(n)
        return self._models[n]

    def _replayed(self, n: int) -> SVC:
        ref = self._reference
        support, table, biases = self.order[:n], ref.table(n), np.zeros(len(ref.pairs))
        for p, (pair, run, share) in enumerate(zip(ref.pairs, self.runs, self._shares, strict=True)):
            own, inside = self._own(pair, n)
            # of its own sequence, a pair has come as far as its support vectors are among the first n
            coef, biases[p] = run.replay(int(np.searchsorted(share, n, side="right")), len(pair.rows))
            table[ref.lines(p, support[own]), own] = coef[inside]
        return ref.compressed(support, table, biases)

    def _own(self, pair: Pair, n: int | None = None) -> tuple[Array, Array]:
        """Which of the first n vectors are rows of a pair, and which of its rows they are."""
        order = self.order[:n]
        if len(pair.rows) == self._reference.m:
            return np.arange(len(order)), order
        inside = np.searchsorted(pair.rows, order)
        own = np.flatnonzero(pair.rows[np.minimum(inside, len(pair.rows) - 1)] == order)
        return own, inside[own]

    def _refitted(self, n: int) -> SVC:
        ref = self._reference
        if self.moved and n:
            return self._with_points(n)
        support, table, biases = self.order[:n], ref.table(n), np.zeros(len(ref.pairs))
        left = np.arange(len(ref.pairs))
        if isinstance(ref.pairs, PairsOfClasses):
            left = refit_pairs(ref, ref.pairs, support, self._learn, table, biases)
        for p in left.tolist():
            pair = ref.pairs[p]
            own, inside = self._own(pair)
            count = int(np.count_nonzero(own < n))
            # one class against the rest: the same rows for every class
            span = self._span(0 if ref.one_vs_rest else p, inside, pair, count)
            coef, biases[p] = span.fit(count, pair.sign, pair.squared_cost, pair.bias, self._learn)
            table[ref.lines(p, support[own[:count]]), own[:count]] = coef
        return ref.compressed(support, table, biases)

    @cached_property
    def _rows(self) -> GaussianRows:
        ref = self._reference
        return GaussianRows(ref.X, ref.kernel.gamma, ref.rows.dtype, ref.threads)

    @cached_property
    def _places(self) -> Array:
        """The points as the models will have them."""
        assert self._points is not None
        return self._points.points.astype(self._reference.X.dtype).astype(np.float64)

    @cached_property
    def _span_of_points(self) -> Span:
        return self._rows.span(self._places)

    def _with_points(self, n: int) -> SVC:
        """The model of two classes whose vectors are no rows: those of the path, which may move for this size."""
        ref, (pair,), support = self._reference, self._reference.pairs, self.order[:n]
        sign, C, start = pair.sign, pair.squared_cost, None
        if self._points is None:
            Z, span = self._rows.dense(support) + self._rows.shift, self._span(0, self._own(pair)[1], pair, n)
        else:
            Z, span, start = self._places[:n], self._span_of_points, self._points.coefficients(n)
        beta, bias = span.fit(n, sign, C, pair.bias, self._learn, start)
        if left := evaluations(n, Z.shape[1], ref.m, self._work):
            near, near_C = pressing(sign * span.scores(beta, bias), C)
            mover = Mover(self._rows, near, sign[near], near_C, self._learn)
            there, near_beta, near_bias = mover.moved(Z, beta, bias, left)
            moved = self._rows.span(there)
            found = moved.fit(n, sign, C, near_bias, self._learn, near_beta)
            # some of the rows moved them: what counts is all of them
            if moved.objective(*found, sign, C) < span.objective(beta, bias, sign, C):
                Z, (beta, bias) = there, found
        return ref.compressed(support, beta[None], [bias], as_rows(Z, ref.X))

    def _span(self, p: int, inside: Array, pair: Pair, count: int) -> Span:
        """The coordinates on some rows of a pair; kept, for every size, if the kernel allows it."""
        if p not in self._spans:
            ref = self._reference
            span = span_of_rows(ref.part(pair), inside, ref.threads)
            if not span.nested:
                return span_of_rows(ref.part(pair), inside[:count], ref.threads)
            self._spans[p] = span
        return self._spans[p]

    @with_one_blas_thread
    def errors(self, X: Any, y: Any = None, sizes: Any = None, sample_weight: Any = None) -> Array:
        """Share of rows whose label is wrong, for each of ``sizes`` (``self.sizes`` if None)."""
        y, sample_weight = unpack(X, y, sample_weight)
        chosen = self.sizes if sizes is None else np.asarray(sizes)
        return np.array([1.0 - self.at(int(n)).score(X, y, sample_weight) for n in chosen])

    @with_one_blas_thread
    def best(self, X: Any, y: Any = None, *, tolerance: float = 0.0, sample_weight: Any = None) -> SVC:
        """The smallest of the models whose error on these rows is within ``tolerance`` of the least.

        Parameters
        ----------
        X, y, sample_weight
            Rows other than those the path was made from.
        tolerance : float, default=0.0
            How much more error is accepted for fewer support vectors.

        Returns
        -------
        SVC
        """
        return self.at(self._best_size(X, y, tolerance, sample_weight))

    def _best_size(self, X: Any, y: Any, tolerance: float = 0.0, sample_weight: Any = None) -> int:
        errors = self.errors(X, y, None, sample_weight)
        return int(self.sizes[np.flatnonzero(errors <= errors.min() + tolerance)[0]])

    @with_one_blas_thread
    def randomized(self, n_support: int | None = None, random_state: Any = None) -> RandomizedClassifier:
        """The randomised classifier of the paper on the model of that size."""
        return RandomizedClassifier(self.at(n_support), random_state)

    @with_one_blas_thread
    def guarantee(self, n_support: int | None = None) -> Guarantee:
        """What the training rows say of the model of that size: one pass over them for it, one for the reference."""
        ref, model = self._reference, self.at(n_support)
        if isinstance(ref.pairs, PairsOfClasses):
            support = np.asarray(model.support_, dtype=np.int64)
            worst, slant, hinge = pair_guarantee(ref, ref.pairs, model._pair_machine(), support)
            return Guarantee(worst, slant, hinge, worst <= 0.5)
        scores = model._pair_scores(ref.X)
        reference, small, cost = [], [], []
        for pair, score in zip(ref.pairs, scores.T, strict=True):
            reference.append(pair.sign * (ref.scores(pair, pair.rows) + pair.bias))
            small.append(pair.sign * score[pair.rows])
            cost.append(pair.cost)
        return Guarantee.of_margins(*(np.concatenate(each) for each in (reference, small, cost)))

    def plot(self, X: Any, y: Any = None, *, ax: Any = None) -> Any:
        """Error on these rows against support size; needs matplotlib.

        Returns
        -------
        matplotlib Axes
        """
        return SparsePathDisplay.from_path(self, X, y, ax=ax).ax_
