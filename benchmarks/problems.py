"""The problems every library is measured on: hinge loss, no intercept, one-vs-rest for more classes than two.

Minimise over W, one row a class (one row only for two classes), the sum over classes k of

    lam/2 ||w_k||^2 + mean over rows i of max(0, 1 - y_ik <w_k, x_i>),    y_ik = 1 if row i is of class k, else -1.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from pegasos import datasets


@dataclass(frozen=True)
class Problem:
    """Training rows ``X`` (CSR or dense, float32), labels ``y`` and the regularisation ``lam``."""

    name: str
    X: Any
    y: npt.NDArray[np.int64]
    lam: float

    @property
    def m(self) -> int:
        return int(self.X.shape[0])

    @property
    def n(self) -> int:
        return int(self.X.shape[1])

    @property
    def C(self) -> float:
        """The C of LIBLINEAR and scikit-learn: 1 / (lam m)."""
        return 1 / (self.lam * self.m)

    @cached_property
    def classes(self) -> npt.NDArray[np.int64]:
        return np.unique(self.y)

    def signs(self) -> list[npt.NDArray[np.float64]]:
        """Return the labels as -1 and 1: one vector for two classes (the larger label is 1), else one a class."""
        ones = self.classes[1:] if len(self.classes) == 2 else self.classes
        return [np.where(self.y == label, 1.0, -1.0) for label in ones]

    @cached_property
    def key(self) -> str:
        """Name and fingerprint: equal keys, equal problems."""
        values: Any = self.X.data if sp.issparse(self.X) else np.ascontiguousarray(self.X)
        crc = zlib.crc32(self.y.tobytes(), zlib.crc32(values))
        return f"{self.name}-{self.m}x{self.n}-lam{self.lam:.6g}-{crc:08x}"


def _real(name: str, lam: float | None = None, C: float = 1.0) -> Problem:
    X, y = datasets.load(name)
    return Problem(name, X, y, lam if lam is not None else 1 / (C * len(y)))


def _text() -> Problem:
    X, y = datasets.make_text()
    return Problem("text", X, y, 1e-4)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "cov1": lambda: _real("cov1", lam=1e-6),
    "rcv1": lambda: _real("rcv1", lam=1e-4),
    "a9a": lambda: _real("a9a", C=1),
    "text": _text,
    "20news": lambda: _real("20news", C=1),
    "sector": lambda: _real("sector", C=1),
}
