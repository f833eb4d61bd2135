"""A fitted kernel classifier, ours or scikit-learn's, taken apart: what compressing it starts from.

More than two classes are pairs (one-vs-one), each a machine of two classes on the rows of those two; or each class has
a machine against the rest, on all rows (``multi_class="ovr"``).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pegasos.estimators.svc import SVC
from pegasos.kernels import functions
from pegasos.kernels.expansion import Expansion, vectors_of
from pegasos.kernels.functions import Kernel
from pegasos.kernels.gram import NativeRows, Provider, SubsetRows, provider
from pegasos.kernels.pairs import PairMachine, lines_of_pair
from pegasos.losses import Hinge
from pegasos.problems.pair_parts import PairParts
from pegasos.rows.labels import class_labels
from pegasos.rows.targets import unpack
from pegasos.rows.views import Array, encode_labels, is_sparse, row_weights
from pegasos.util.arrays import Matrix
from pegasos.util.threads import thread_count


@dataclass(frozen=True)
class Pair:
    """The machine of two classes: g(x) = Σ_r coef_r K(x_r, x) + bias over support vectors r, above 0 for sign +1.

    ``rows`` are the numbers of its rows in X, ``sign`` their labels, ``cost`` the C of each; ``support`` are row
    numbers in X.
    """

    rows: Array
    sign: Array
    cost: Array
    support: Array
    coef: Array
    bias: float

    @property
    def squared_cost(self) -> Array:
        """The C of each row for ½C·slack²."""
        return squared_cost(self.cost)


def squared_cost(cost: Array) -> Array:
    """The C of rows for ½C·slack²: three times the other, so that a slack of ⅔ costs the same."""
    return 3.0 * cost


class PairsOfClasses(Sequence[Pair]):
    """The machines of all pairs of several classes; one is made when it is asked for.

    ``vectors`` are the row numbers of the support vectors, class by class, as in ``machine``.
    """

    def __init__(self, parts: PairParts, machine: PairMachine, vectors: Array) -> None:
        self.parts, self.machine, self.vectors = parts, machine, vectors

    def __len__(self) -> int:
        return len(self.parts)

    @overload
    def __getitem__(self, p: int) -> Pair: ...
    @overload
    def __getitem__(self, p: slice) -> list[Pair]: ...
    def __getitem__(self, p: int | slice) -> Pair | list[Pair]:
        if isinstance(p, slice):
            return [self[q] for q in range(*p.indices(len(self)))]
        part = self.parts[p]
        own, coef = self.machine.of_pair(*self.parts.pair(p))
        used = coef != 0
        assert part.index is not None
        return Pair(part.index, part.y, part.weight, self.vectors[own[used]], coef[used], float(self.machine.bias[p]))

    @cached_property
    def _column(self) -> Array:
        """The place of each row among the support vectors, or −1."""
        column = np.full(len(self.parts.codes), -1)
        column[self.vectors] = np.arange(len(self.vectors))
        return column

    def coefficients(self, lines: Array, rows: Array) -> Array:
        """Those of rows in lines of the table, as ``kernels/pairs.py`` has it; 0 for other rows."""
        column = self._column[rows]
        if not len(self.vectors):
            return np.zeros(rows.shape)
        return np.where(column >= 0, self.machine.coef[lines, column], 0.0)


class Reference:
    """What is known of a model and of the rows it was fitted on.

    Parameters
    ----------
    model
        Fitted ``pegasos.SVC`` or ``sklearn.svm.SVC``.
    X, y, sample_weight
        The rows it was fitted on; others are refused.
    cache_size
        Megabytes of kernel rows kept.
    n_jobs
        Threads.
    """

    def __init__(self, model: Any, X: Any, y: Any, sample_weight: Any, cache_size: float, n_jobs: int | None) -> None:
        if not isinstance(model, SVC) and not _scikit_learns(model):
            raise TypeError(
                f"model is a {type(model).__name__}; sparsify takes a fitted pegasos.SVC or sklearn.svm.SVC"
            )
        check_is_fitted(model)
        self.model, self.threads = model, thread_count(n_jobs)
        self.shell = _shell(model, n_jobs)
        y, sample_weight = unpack(X, y, sample_weight)
        self.X = self.shell._matrix(X, reset=True)
        labels = class_labels(self.X, y)
        self.classes = np.asarray(model.classes_)
        self.codes = self._codes(labels)
        self._check_rows()
        given = row_weights(sample_weight, None, self.X.shape[0])
        weight = np.ones(self.X.shape[0]) if given is None else given
        lam = getattr(model, "lam", None)
        C = float(model.C) if lam is None else 1.0 / (float(lam) * float(weight.sum()))
        self.cost = C * weight * np.asarray(model.class_weight_, dtype=np.float64)[self.codes]
        self.kernel = self._kernel()
        self.rows = provider(self.X, self.kernel, cache_size, self.threads)
        self.pairs: Sequence[Pair] = self._pairs(C)

    @property
    def m(self) -> int:
        """Rows."""
        return int(self.X.shape[0])

    @property
    def n_support(self) -> int:
        """Support vectors of the reference."""
        return len(self.model.support_)

    @property
    def one_vs_rest(self) -> bool:
        """Whether each of several classes has a machine against all others."""
        return len(self.classes) > 2 and int(self.model.dual_coef_.shape[0]) == len(self.classes)

    def _codes(self, labels: Array) -> Array:
        found, codes = encode_labels(labels)
        if len(found) != len(self.classes) or not bool(np.all(found == self.classes)):
            raise ValueError(
                f"the model was fitted on other data than (X, y): it knows the classes {self.classes.tolist()!r:.200}, "
                f"y has {found.tolist()!r:.200}"
            )
        return codes.astype(np.int64)

    def _check_rows(self) -> None:
        """Refuse rows on which the model cannot have been fitted."""
        model, support = self.model, np.asarray(self.model.support_, dtype=np.int64)
        shape = getattr(model, "shape_fit_", None)
        if shape is not None and tuple(shape) != tuple(self.X.shape):
            raise ValueError(
                f"the model was fitted on other data than (X, y): on {shape[0]} × {shape[1]}, X is "
                f"{self.X.shape[0]} × {self.X.shape[1]}"
            )
        if len(support) and (support.min() < 0 or support.max() >= self.m):
            raise ValueError(
                f"the model was fitted on other data than (X, y): it has row {support.max()} as a support vector, X "
                f"has {self.m} rows"
            )
        own = self._classes_of(support)
        if len(wrong := np.flatnonzero(own != self.codes[support])):
            r = int(support[wrong[0]])
            raise ValueError(
                f"the model was fitted on other data than (X, y): row {r} was of class "
                f"{self.classes.tolist()[own[wrong[0]]]!r}, y[{r}] is {self.classes.tolist()[self.codes[r]]!r}"
            )
        kept = model.support_vectors_
        if isinstance(model.kernel, str) and model.kernel != "precomputed" and len(support):
            apart = _apart(kept, self.X[support])
            if len(apart):
                raise ValueError(
                    f"the model was fitted on other data than (X, y): row {support[apart[0]]} of X is not the support "
                    "vector that the model has for it"
                )

    def _classes_of(self, support: Array) -> Array:
        """The class of each support vector, as the model has it.

        They lie class after class; or, as in models of scikit-learn-intelex, in the order of the rows: there the signs
        of the coefficients tell the classes, which must be as many of each as ``n_support_`` says.
        """
        k, counts, y = len(self.classes), np.asarray(self.model.n_support_), self.codes[support]
        grouped = np.repeat(np.arange(k), counts)
        if len(grouped) != len(support):
            raise ValueError("n_support_ of the model does not add up to the number of its support vectors")
        if self.one_vs_rest or bool(np.all(grouped == y)):
            return grouped
        dual = self._dual()
        if k == 2:
            signed = (dual[0] > 0).astype(np.int64)
        else:  # against the classes before its own a vector has coefficients <= 0, against those after it >= 0
            before = np.arange(k - 1)[:, None] < y
            signed = y if bool(np.all(np.where(before, dual <= 0, dual >= 0))) else grouped
        return signed if np.array_equal(np.bincount(signed, minlength=k), counts) else grouped

    def _dual(self) -> Array:
        dual = self.model.dual_coef_
        return np.asarray(dual.toarray() if is_sparse(dual) else dual, dtype=np.float64)

    def _kernel(self) -> Kernel:
        model = self.model
        if not isinstance(model.kernel, str):
            return Kernel("function", function=model.kernel)
        kernel = functions.resolve(
            model.kernel, degree=model.degree, gamma=float(getattr(model, "_gamma", 1.0)), coef0=model.coef0
        )
        kernel.check_rows(self.X)
        return kernel

    def _pairs(self, C: float) -> Sequence[Pair]:
        dual, k = self._dual(), len(self.classes)
        support, bias = np.asarray(self.model.support_, dtype=np.int64), np.asarray(self.model.intercept_)
        if k == 2:
            sign = np.where(self.codes == 1, 1.0, -1.0)
            return [Pair(np.arange(self.m), sign, self.cost, support, dual[0], float(bias[0]))]
        if self.one_vs_rest:
            signs = (np.where(self.codes == c, 1.0, -1.0) for c in range(k))
            return [
                Pair(np.arange(self.m), sign, self.cost, support[own != 0], own[own != 0], float(b))
                for sign, own, b in zip(signs, dual, bias, strict=True)
            ]
        codes = self.codes[support]
        order, sizes = np.argsort(codes, kind="stable"), np.bincount(codes, minlength=k)
        bias = np.ascontiguousarray(bias, dtype=np.float64)
        machine = PairMachine(np.ascontiguousarray(dual[:, order]), sizes, bias, np.arange(k), self.threads)
        return PairsOfClasses(PairParts(self.codes, k, self.cost, Hinge(), C), machine, support[order])

    def table(self, n: int) -> Array:
        """A table for the coefficients of n vectors, as :meth:`compressed` takes it."""
        return np.zeros((len(self.classes) - 1 if isinstance(self.pairs, PairsOfClasses) else len(self.pairs), n))

    def lines(self, p: int, rows: Array) -> Array:
        """Where in that table the coefficients of rows in the function of pair p stand."""
        if not isinstance(self.pairs, PairsOfClasses):
            return np.full(len(rows), p)
        return lines_of_pair(self.codes[rows], *self.pairs.parts.pair(p))

    def part(self, pair: Pair) -> Provider:
        """Kernel rows of a pair."""
        return self.rows if len(pair.rows) == self.m else SubsetRows(self.rows, pair.rows)

    def scores(self, pair: Pair, rows: Array, *, approximate: bool = False) -> Array:
        """g of rows of X, without the bias; ``approximate``: from kernel values in the precision of training."""
        if not len(pair.support):
            return np.zeros(len(rows))
        if approximate and isinstance(self.rows, NativeRows):
            return self.rows.approximate(pair.support, pair.coef, rows)
        return self.rows.exact(pair.support, pair.coef, rows)

    def compressed(
        self, support: Array, table: Array, biases: Sequence[float] | Array, points: Matrix | None = None
    ) -> SVC:
        """A fitted SVC with the support vectors ``support``, row numbers, and for each function the bias.

        The coefficients have a line for each function, or, of several classes in pairs, stand as ``kernels/pairs.py``
        says. ``points`` are vectors in place of the rows, one for each.
        """
        sizes = np.bincount(self.codes[support], minlength=len(self.classes))
        order = np.argsort(self.codes[support], kind="stable")
        support, table, bias = support[order], table.take(order, axis=1), np.array(biases, dtype=np.float64)
        ties = self.model._tie_order if isinstance(self.model, SVC) else None
        out = _shell(self.model, self.shell.n_jobs)
        out.__dict__.update({k: v for k, v in vars(self.shell).items() if k.endswith("_in_")})
        out.classes_, out.class_weight_ = self.classes, np.asarray(self.model.class_weight_, dtype=np.float64)
        vectors = vectors_of(self.kernel, self.X, support) if points is None else points[order]
        out._keep(Expansion(self.kernel, vectors, table, bias, sizes, support, ties))
        out.shape_fit_, out.fit_status_ = self.X.shape, 0
        out.n_iter_ = np.ones(len(biases), dtype=np.int32)
        out.n_kernel_evaluations_ = int(self.rows.evaluations)
        return out


def _scikit_learns(model: Any) -> bool:
    from sklearn.svm import SVC as ScikitSVC  # takes as long to import as all the rest

    return isinstance(model, ScikitSVC)


def _shell(model: Any, n_jobs: int | None) -> SVC:
    """An SVC with the parameters of the reference, not fitted."""
    ours = set(SVC().get_params())
    parameters = {name: value for name, value in model.get_params(deep=False).items() if name in ours}
    parameters.update(probability=False, verbose=False, callback=None, checkpoint=None)
    if n_jobs is not None or "n_jobs" not in parameters:
        parameters["n_jobs"] = n_jobs
    return SVC(**parameters)


def _apart(A: Matrix, B: Matrix) -> Array:
    """The rows in which two matrices differ by more than the rounding of single precision."""
    if A.shape != B.shape:
        return np.zeros(1, dtype=np.int64)
    if is_sparse(A) and is_sparse(B) and operator.ne(A, B).nnz == 0:
        return np.zeros(0, dtype=np.int64)  # the usual case, found without making them dense
    A = A.toarray() if is_sparse(A) else np.asarray(A)
    B = B.toarray() if is_sparse(B) else np.asarray(B)
    return np.flatnonzero(~np.isclose(A, B, rtol=1e-6, atol=0).all(axis=1))
