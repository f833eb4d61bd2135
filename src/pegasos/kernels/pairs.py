"""Machines of several classes that are compared in pairs: which pair is where, and what all of them decide.

Pairs of classes i < j come in the order (0, 1), (0, 2), …, (1, 2), …. Coefficients are laid out as LIBSVM has them:
with rows sorted by class, those of class i against j stand in line j − 1, those of class j against i in line i. The
function of a pair needs two short stretches of that table; no table of pairs × rows is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pegasos import _core
from pegasos.rows.views import Array
from pegasos.util.arrays import Matrix


def pair_count(classes: int) -> int:
    """Pairs of so many classes."""
    return classes * (classes - 1) // 2


def pair_numbers(i: Array, j: Array | int, classes: int) -> Array:
    """The numbers of the pairs (i, j), i < j."""
    return np.asarray(i * (2 * classes - i - 1) // 2 + j - i - 1)


def pair_classes(classes: int) -> Array:
    """The two classes of each pair, pairs × 2."""
    return np.column_stack(np.triu_indices(classes, 1))


def pairs_of(i: int, classes: int) -> tuple[slice, Array]:
    """The numbers of the pairs (i, j) for j > i, and of the pairs (h, i) for h < i."""
    begin = i * (2 * classes - i - 1) // 2
    h = np.arange(i, dtype=np.int64)
    return slice(begin, begin + classes - 1 - i), pair_numbers(h, i, classes)


def lines_against(i: int, others: Array) -> Array:
    """The lines of the table with the coefficients of class i against these other classes."""
    return others - (others > i)


def lines_of_pair(codes: Array, i: int, j: int) -> Array:
    """The lines of the table with the coefficients, in the function of the pair i < j, of vectors of these classes."""
    return np.where(codes == i, j - 1, i)


def sums_of_pairs(classes: int, width: int, share: Callable[[int], Array]) -> Array:
    """For each pair what its two classes contribute: ``share(i)``, (classes − 1) × width, has a line for each other."""
    out = np.zeros((pair_count(classes), width))
    for i in range(classes):
        first, second = pairs_of(i, classes)
        lines = share(i)
        out[first] += lines[i:]
        out[second] += lines[:i]
    return out


def class_starts(sizes: Array) -> Array:
    """Where the rows of each class begin, and their number."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


def laid_out(functions: Array, sizes: Array) -> Array:
    """The table of the coefficients of all vectors, class by class, in each function; the reverse of ``table``."""
    k, starts = len(sizes), class_starts(sizes)
    out = np.empty((k - 1, functions.shape[1]))
    for i in range(k):
        own, (first, second) = slice(starts[i], starts[i + 1]), pairs_of(i, k)
        out[i:, own], out[:i, own] = functions[first, own], functions[second, own]
    return out


def reordered(coef: Array, sizes: Array, bias: Array, order: Array) -> tuple[Array, Array, Array]:
    """Machines of all pairs with the classes in another order: places of the vectors, their table, and the biases.

    A pair whose classes change places changes its sign.
    """
    k, starts = len(order), class_starts(sizes)
    table, biases = np.empty_like(coef), np.empty_like(bias)
    for place, i in enumerate(order.tolist()):
        own, others = slice(starts[i], starts[i + 1]), np.delete(order, place)
        sign = np.where((np.arange(k - 1) >= place) == (others > i), 1.0, -1.0)
        table[:, own] = sign[:, None] * coef[lines_against(i, others), own]
        later = others[place:]
        biases[pairs_of(place, k)[0]] = sign[place:] * bias[pair_numbers(np.minimum(i, later), np.maximum(i, later), k)]
    vectors = np.concatenate([np.arange(starts[c], starts[c + 1]) for c in order])
    return vectors, table[:, vectors], biases


@dataclass(frozen=True)
class PairMachine:
    """The decision functions of all pairs.

    ``coef`` is the table of coefficients, ``sizes`` how many support vectors each class has, ``bias`` has a number for
    each pair, and ``rank`` one for each class: of classes that win equally often the least one is predicted. Kernel
    values ``K`` are support vectors × rows, padded to a multiple of eight columns.
    """

    coef: Array
    sizes: Array
    bias: Array
    rank: Array
    threads: int

    @property
    def classes(self) -> int:
        """How many there are."""
        return len(self.rank)

    @cached_property
    def starts(self) -> Array:
        """Where each class's support vectors begin."""
        return class_starts(self.sizes)

    def _of(self, i: int) -> slice:
        return slice(self.starts[i], self.starts[i + 1])

    def table(self) -> Array:
        """The coefficients of all support vectors in each function: large, for what needs them all at once."""
        out = np.zeros((pair_count(self.classes), self.coef.shape[1]))
        for i in range(self.classes):
            first, second = pairs_of(i, self.classes)
            out[first, self._of(i)] = self.coef[i:, self._of(i)]
            out[second, self._of(i)] = self.coef[:i, self._of(i)]
        return out

    def of_pair(self, i: int, j: int) -> tuple[Array, Array]:
        """The places of the vectors of two classes i < j, and their coefficients in the function of this pair."""
        own = np.r_[self._of(i), self._of(j)]
        return own, np.concatenate([self.coef[j - 1, self._of(i)], self.coef[i, self._of(j)]])

    def weights(self, vectors: Matrix) -> Array:
        """Σ coef · vector of each function, for a linear kernel."""
        return sums_of_pairs(self.classes, vectors.shape[1], lambda i: self.coef[:, self._of(i)] @ vectors[self._of(i)])

    def of_class(self, i: int, K: Array) -> Array:
        """The scores of rows of class i in the functions of its pairs, a line for each other class.

        K is support vectors × rows.
        """
        own = self._of(i)
        # The coefficients of other classes' vectors against class i stand in line i − 1 before it, in line i after it.
        vector = np.arange(self.coef.shape[1])
        against = self.coef[np.where(vector < own.start, i - 1, min(i, self.classes - 2)), vector]
        against[own] = 0.0
        out = np.zeros((self.classes, K.shape[1]))
        some = np.flatnonzero(np.diff(self.starts))  # a sum of nothing is none to reduceat
        out[some] = np.add.reduceat(against[:, None] * K, self.starts[some], axis=0) if len(some) else 0.0
        out = np.delete(out, i, axis=0)
        out += self.coef[:, own] @ K[own]
        first, second = pairs_of(i, self.classes)
        out[i:] += self.bias[first][:, None]
        out[:i] += self.bias[second][:, None]
        return out

    def largest_norm(self) -> float:
        """That of the coefficients of a function."""

        def squares(i: int) -> Array:
            own = self.coef[:, self._of(i)]
            return np.asarray(np.einsum("qv,qv->q", own, own)[:, None])

        return float(np.sqrt(sums_of_pairs(self.classes, 1, squares).max(initial=0.0)))

    def scores(self, K: Array, rows: int) -> Array:
        """Of every row and function, bias included."""
        out = np.empty((rows, len(self.bias)))
        _core.pair_scores(K, rows, self.coef, self.starts, self.bias, out, self.threads)
        return out

    def decisions(self, K: Array, rows: int) -> Array:
        """Of every row and class the number of pairs it wins, and a fraction that says by how much."""
        out = np.empty((rows, self.classes))
        _core.pair_decisions(K, rows, self.coef, self.starts, self.bias, out, self.threads)
        return out

    def winners(self, K: Array, rows: int) -> tuple[Array, int]:
        """The class that wins most pairs, for every row; and the first row with a score that is no number, or −1."""
        out = np.empty(rows, dtype=np.int64)
        bad = _core.pair_winners(K, rows, self.coef, self.starts, self.bias, self.rank, out, self.threads)
        return out, int(bad)

    def winners_by(self, scores: Array) -> Array:
        """The same for scores of all functions."""
        k = self.classes
        votes = np.zeros((len(scores), k))
        for i in range(k):
            first = pairs_of(i, k)[0]
            zero = self.rank[i] > self.rank[i + 1 :]
            won = (scores[:, first] > 0) | ((scores[:, first] == 0) & zero)
            votes[:, i] += won.sum(axis=1)
            votes[:, i + 1 :] += ~won
        order = np.argsort(self.rank)
        return np.asarray(order[votes[:, order].argmax(axis=1)])
