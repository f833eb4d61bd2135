"""The planes of one row, and the exact best mixture of them while all other rows stay as they are.

With s = c_i/(λM) the row's share of the weights is s Σ_p α_p ψ_p, α on the simplex; plane 0 is that of the true
labelling, ψ = 0 and Δ = 0. The dual as a function of this row's α alone is, but for the factor c_i/M and a constant,

    max_α Σ_p α_p b_p − (s/2) αᵀ G α,   G_pq = ⟨ψ_p, ψ_q⟩,   b = h + s G α̂,   h_p = Δ_p − ⟨w, ψ_p⟩,

where α̂ and w are as they are now. max_p h_p − Σ_p α_p h_p is what the row adds to the duality gap, as far as its planes
tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from pegasos import _core
from pegasos.problems.oracle import Plane
from pegasos.rows.views import Array

#: Steps of the small quadratic program, and how near to its maximum it goes, relative to the gap.
MAX_STEPS, PRECISION = 10_000, 0.1


@dataclass(slots=True)
class Block:
    """Planes with their shares; ``unused`` counts the decodings in a row at which a plane had none.

    Only those two ever change: other planes make another block, so that a Ctrl-C in between leaves a whole one.

    ψ_p are ``entries`` in ``columns`` from ``begin[p]`` to ``begin[p + 1]``; one without any has a zero there, so that
    each is a sum of at least one term.
    """

    begin: Array
    columns: Array
    entries: Array
    loss: Array
    gram: Array
    alpha: Array
    unused: Array

    @classmethod
    def fresh(cls) -> Self:
        """The true labelling alone."""
        none, columns = np.zeros(1), np.zeros(1, dtype=np.int64)
        return cls(np.arange(2), columns, none, none, np.zeros((1, 1)), np.ones(1), none)

    def __len__(self) -> int:
        return len(self.loss)

    def values(self, w: Array) -> Array:
        """h of all planes."""
        return np.asarray(self.loss - np.add.reduceat(self.entries * w[self.columns], self.begin[:-1]))

    def with_plane(self, plane: Plane, scratch: Array, alpha: float = 0.0) -> Block:
        """The same with one more plane; ``scratch`` is a vector of zeros, and is one again afterwards."""
        columns, entries = (plane.columns, plane.values) if len(plane.columns) else (self.columns[:1], np.zeros(1))
        scratch[columns] = entries
        products = np.add.reduceat(self.entries * scratch[self.columns], self.begin[:-1])
        scratch[columns] = 0.0
        count = len(self)
        gram = np.empty((count + 1, count + 1))
        gram[:count, :count] = self.gram
        gram[count, :count] = gram[:count, count] = products
        gram[count, count] = float(entries @ entries)
        return Block(
            np.append(self.begin, len(self.columns) + len(columns)),
            np.concatenate([self.columns, columns]),
            np.concatenate([self.entries, entries]),
            np.append(self.loss, plane.loss),
            gram,
            np.append(self.alpha, alpha),
            np.append(self.unused, 0.0),
        )

    def plane(self, p: int) -> Plane:
        """The p-th."""
        here = slice(self.begin[p], self.begin[p + 1])
        stored = self.entries[here] != 0
        return Plane(self.columns[here][stored], self.entries[here][stored], float(self.loss[p]))

    def mix(self, w: Array, h: Array, s: float, gap: float) -> None:
        """Take the shares that are best for this row, to a small part of its gap, and move w along."""
        H = s * self.gram
        alpha = _core.simplex_qp(H, h + H @ self.alpha, self.alpha, PRECISION * gap, MAX_STEPS)
        alpha /= alpha.sum()
        change = s * (alpha - self.alpha)
        for p in change.nonzero()[0].tolist():
            here = slice(self.begin[p], self.begin[p + 1])
            w[self.columns[here]] += change[p] * self.entries[here]
        self.alpha = alpha

    @property
    def lengths(self) -> Array:
        """The number of entries of each plane."""
        return np.asarray(self.begin[1:] - self.begin[:-1])

    def aged(self, most: int) -> Block:
        """What is left after a decoding: planes without a share since ``most`` of them are dropped."""
        unused = self.unused = np.where(self.alpha > 0, 0.0, self.unused + 1)
        keep = unused < most
        keep[0] = True
        if keep.all():
            return self
        entries = np.repeat(keep, self.lengths)
        begin = np.concatenate([[0], np.cumsum(self.lengths[keep])])
        gram = np.ascontiguousarray(self.gram[np.ix_(keep, keep)])
        columns, values = self.columns[entries], self.entries[entries]
        return Block(begin, columns, values, self.loss[keep], gram, self.alpha[keep], unused[keep])
