"""What a user's oracle is, and its answers, checked: it is code that nobody here has seen.

For weights w and a row i an oracle finds the labelling ŷ that maximises Δ_i(y) + ⟨w, φ(x_i, y)⟩, and answers with its
*plane*: ψ = φ(x_i, y_i) − φ(x_i, ŷ) and the loss Δ_i(ŷ). The value Δ − ⟨w, ψ⟩ is what the row loses. It is never
negative, since the true labelling has ψ = 0 and Δ = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from pegasos.util.arrays import Array, Matrix, first_not_finite, first_true

#: How far below what is possible a value may be, relative to the terms it is made of: an oracle may compute in float32.
ROUNDING = 1e-6


class BoundOracle(Protocol):
    """The decoder of some rows.

    ``n_rows`` may be ``len(oracle)`` instead. It may say ``exact = False``: then what it finds need not be the maximum.
    """

    @property
    def size(self) -> int:
        """The number of weights."""
        ...

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        ...

    def decode(self, w: Array, rows: Array) -> tuple[Matrix, Array]:
        """ψ (rows × size, dense or sparse) and loss of the best labellings of some rows; w and rows are read-only."""
        ...


class Plane(NamedTuple):
    """ψ, by the places and values of its entries (columns in order, none twice), and the loss."""

    columns: Array
    values: Array
    loss: float

    @property
    def empty(self) -> bool:
        """Whether it is that of a true labelling."""
        return len(self.columns) == 0 and self.loss == 0


@dataclass(frozen=True)
class Decoded:
    """The planes of some rows as one CSR matrix of float64, their losses, and their values at the weights decoded."""

    begin: Array
    columns: Array
    entries: Array
    loss: Array
    value: Array

    def __len__(self) -> int:
        return len(self.loss)

    def plane(self, k: int) -> Plane:
        """That of the k-th of the rows, copied, so that whoever keeps it does not keep the others."""
        here = slice(self.begin[k], self.begin[k + 1])
        return Plane(self.columns[here].copy(), self.entries[here].copy(), float(self.loss[k]))

    def mean(self, shares: Array, size: int) -> Array:
        """Σ shares_k ψ_k as a vector."""
        weights = self.entries * np.repeat(shares, np.diff(self.begin))
        return np.bincount(self.columns, weights=weights, minlength=size)


class CheckedOracle:
    """An oracle whose answers are copied and checked; ValueError names the row and what is wrong with it."""

    def __init__(self, oracle: Any) -> None:
        if not callable(getattr(oracle, "decode", None)):
            raise ValueError(f"oracle {oracle!r:.80} has no method decode(w, rows)")
        self.oracle = oracle
        self.size, self.n_rows = size_of(oracle)
        exact = getattr(oracle, "exact", True)
        if not isinstance(exact, bool | np.bool_):
            raise ValueError(f"oracle.exact={exact!r} must be True or False: whether decode finds the maximum")
        self.exact = bool(exact)

    def decode(self, w: Array, rows: Array) -> Decoded:
        """The planes of ``rows`` at weights w.

        Of an oracle that is not exact, those worse than the true labelling are replaced by the true labelling's.
        """
        answer = self._ask(w, rows)
        if not isinstance(answer, tuple | list) or len(answer) != 2:
            raise ValueError(f"oracle.decode must return (psi, loss), but returned {answer!r:.80}")
        begin, columns, entries = self._psi(answer[0], rows)
        loss = self._loss(answer[1], rows)
        products = entries * w[columns]
        score = _sums(products, begin)
        value = loss - score
        below = value < -ROUNDING * (loss + _sums(np.abs(products), begin))
        if self.exact and (k := first_true(below)) is not None:
            raise ValueError(
                f"oracle.decode does not maximise: its labelling of row {rows[k]} has loss - <w, psi> = {loss[k]:.6g} "
                f"- {score[k]:.6g} = {value[k]:.6g}, but the true labelling has 0. psi must be phi(x, y) - "
                "phi(x, y_hat), in this order; a decoder that is approximate must say so with exact = False"
            )
        found = Decoded(begin, columns, entries, loss, np.maximum(value, 0.0))
        return found if self.exact or not (value < 0).any() else _without(found, value < 0)

    def _ask(self, w: Array, rows: Array) -> Any:
        w, rows = w.view(), rows.view()
        w.flags.writeable = rows.flags.writeable = False
        try:
            return self.oracle.decode(w, rows)
        except ValueError as error:
            if "read-only" not in str(error):
                raise
            raise ValueError(
                f"oracle.decode writes to w or rows, which are not its own ({error}); let it change a copy"
            ) from error

    def _loss(self, given: Any, rows: Array) -> Array:
        try:
            loss = np.array(given, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"oracle.decode must return losses that are numbers: {error}") from None
        if loss.shape != (len(rows),):
            raise ValueError(f"oracle.decode returned losses of shape {loss.shape} for {len(rows)} rows")
        if (k := first_true(~(np.isfinite(loss) & (loss >= 0)))) is not None:
            raise ValueError(f"oracle.decode: the loss of row {rows[k]} is {loss[k]}, but must be a number >= 0")
        return loss

    def _psi(self, given: Any, rows: Array) -> tuple[Array, Array, Array]:
        """Row pointers, columns and entries, copied, in order and finite."""
        is_sparse = sparse.issparse(given)
        psi = given if is_sparse else np.asarray(given)
        if psi.shape != (len(rows), self.size):
            raise ValueError(
                f"oracle.decode returned psi of shape {psi.shape} for {len(rows)} rows and {self.size} weights"
            )
        if psi.dtype.kind not in "biuf":
            raise ValueError(f"oracle.decode returned psi of type {psi.dtype}, not of numbers")
        begin, columns, entries = self._stored(psi, rows) if is_sparse else _nonzeros(psi)
        if (at := first_not_finite(entries)) is not None:
            row = rows[_row_of(begin, at)]
            raise ValueError(f"oracle.decode: psi of row {row} has {entries[at]} in column {columns[at]}")
        return begin, columns, entries

    def _stored(self, psi: Any, rows: Array) -> tuple[Array, Array, Array]:
        """What a sparse matrix stores, with columns in order and none twice."""
        psi = psi if psi.format == "csr" else psi.tocsr()
        begin, columns = psi.indptr.astype(np.int64), psi.indices.astype(np.int64)
        entries = psi.data.astype(np.float64)
        whole = len(begin) == len(rows) + 1 and begin[0] == 0 and bool(np.all(np.diff(begin) >= 0))
        if not whole or begin[-1] > len(columns) or len(columns) != len(entries):
            raise ValueError("oracle.decode: psi is no valid CSR matrix: its row pointers are wrong")
        columns, entries = columns[: begin[-1]], entries[: begin[-1]]
        if (at := first_true((columns < 0) | (columns >= self.size))) is not None:
            row = rows[_row_of(begin, at)]
            raise ValueError(f"oracle.decode: psi of row {row} has column {columns[at]}, outside 0 … {self.size - 1}")
        if not rising(columns, begin):
            clean = sparse.csr_array((entries, columns, begin), shape=psi.shape)
            clean.sum_duplicates()
            begin, columns = clean.indptr.astype(np.int64), clean.indices.astype(np.int64)
            entries = clean.data
        if (zero := entries == 0).any():
            begin = np.concatenate([[0], np.cumsum(~zero)])[begin]
            columns, entries = columns[~zero], entries[~zero]
        return begin, columns, entries


def size_of(oracle: Any) -> tuple[int, int]:
    """The numbers of weights and rows of a bound oracle, checked."""
    rows = getattr(oracle, "n_rows", None)
    if rows is None and hasattr(oracle, "__len__"):
        rows = len(oracle)
    size = _whole(oracle, "size", getattr(oracle, "size", None), "the number of weights")
    return size, _whole(oracle, "n_rows", rows, "the number of rows")


def rising(columns: Array, begin: Array) -> bool:
    """Whether the columns of each row are in order, and none is there twice."""
    falls = np.diff(columns) <= 0
    falls[begin[(begin > 0) & (begin < len(columns))] - 1] = False  # from one row to the next
    return not falls.any()


def _whole(oracle: object, name: str, value: object, meaning: str) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or not 0 < int(value) < 2**53:
        raise ValueError(f"oracle.{name}={value!r:.80} must be a whole number > 0, {meaning} ({oracle!r:.80})")
    return int(value)


def _nonzeros(psi: Array) -> tuple[Array, Array, Array]:
    """The same of a dense matrix."""
    at, columns = np.nonzero(psi)
    begin = np.concatenate([[0], np.cumsum(np.bincount(at, minlength=len(psi)))])
    return begin, columns, psi[at, columns].astype(np.float64)


def _sums(terms: Array, begin: Array) -> Array:
    """The sum of the terms of each row."""
    if len(begin) == 2:
        return np.array([terms.sum()])
    return np.bincount(np.repeat(np.arange(len(begin) - 1), np.diff(begin)), weights=terms, minlength=len(begin) - 1)


def _row_of(begin: Array, at: int) -> int:
    return int(np.searchsorted(begin, at, side="right")) - 1


def _without(found: Decoded, true: Array) -> Decoded:
    """The same, but those marked are true labellings."""
    stays = ~np.repeat(true, np.diff(found.begin))
    begin = np.concatenate([[0], np.cumsum(np.where(true, 0, np.diff(found.begin)))])
    return Decoded(begin, found.columns[stays], found.entries[stays], np.where(true, 0.0, found.loss), found.value)
