"""Kernels by name: their parameters checked, and what "scale" and "auto" mean for γ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TypeGuard

import numpy as np
import numpy.typing as npt

from pegasos import _core
from pegasos.rows.views import Array, is_sparse, view
from pegasos.util.arrays import CSR, Matrix
from pegasos.util.suggest import did_you_mean

#: The kernels that the core computes.
NATIVE = ("linear", "poly", "rbf", "sigmoid", "laplacian", "chi2")
NAMES = (*NATIVE, "precomputed")

#: A user's function of two sets of rows; its values may be sparse.
KernelFunction = Callable[[Matrix, Matrix], npt.ArrayLike | CSR]


@dataclass(frozen=True)
class Kernel:
    """A kernel with its parameters.

        linear     ⟨a, x⟩                     rbf         exp(−γ‖a − x‖²)
        poly       (γ⟨a, x⟩ + coef0)^degree   laplacian   exp(−γ‖a − x‖₁)
        sigmoid    tanh(γ⟨a, x⟩ + coef0)      chi2        exp(−γ Σ_k (a_k − x_k)²/(a_k + x_k)), for a, x ≥ 0

    ``function`` is what a user gave in place of a name; "precomputed" has neither.
    """

    name: str
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 3
    function: KernelFunction | None = None

    @property
    def native(self) -> bool:
        """Whether the core computes it."""
        return self.name in NATIVE

    @property
    def definite(self) -> bool:
        """Whether its kind and parameters make it positive semi-definite, whatever the rows.

        Powers and sums of such kernels with weights ≥ 0 are such kernels; sigmoid ones are not, but for chance.
        """
        if self.name == "poly":
            return self.gamma >= 0 and self.coef0 >= 0 and self.degree >= 0
        return self.name == "linear" or (self.name in ("rbf", "laplacian", "chi2") and self.gamma >= 0)

    def within_single(self, norm: float, value: float = 1.0) -> bool:
        """Whether single precision has the range for rows and values up to these.

        ``norm`` is the largest squared or absolute norm of a row, as the core has them, ``value`` the largest kernel
        value. Squares of entries, sums of them and γ must neither overflow nor, where it matters, vanish.
        """
        if self.name == "chi2":  # entries are squared, norms are not
            return norm <= 1e15 and 1e-30 <= self.gamma <= 1e10
        if self.name in ("rbf", "laplacian"):  # what vanishes is nothing beside 1
            return norm <= 1e30 and 1e-30 <= self.gamma <= 1e25
        return all(1e-25 <= size <= 1e30 for size in (norm, value)) and (
            self.name == "linear" or 1e-30 <= self.gamma <= 1e30
        )

    def bounded(self, norm: float) -> bool:
        """Whether no value of rows up to this norm, and no step on the way to it, can overflow in double precision."""
        if not self.native:
            return False
        with np.errstate(over="ignore"):
            argument = np.float64(1.0 if self.name == "linear" else self.gamma) * norm
            if self.name == "poly":
                argument = (argument + abs(self.coef0)) ** max(1, self.degree)
        return bool(norm <= (1e150 if self.name == "chi2" else 1e300) and argument <= 1e300)

    def core(self, X: Matrix, threads: int = 1) -> _core.KernelRows:
        """The core's view of rows under this kernel."""
        return _core.KernelRows(view(X), self.name, self.gamma, self.coef0, self.degree, threads)

    def check_rows(self, X: Matrix) -> None:
        """Refuse rows that the kernel is not defined for."""
        if self.name == "chi2" and (X.data if is_sparse(X) else X).min(initial=0.0) < 0:
            at = np.argwhere(X.toarray() < 0)[0] if is_sparse(X) else np.argwhere(X < 0)[0]
            raise ValueError(
                f"kernel='chi2' needs features >= 0, but row {at[0]}, column {at[1]} of X is {X[at[0], at[1]]}"
            )


def check_parameters(kernel: object, degree: object, gamma: object, coef0: object) -> None:
    """Refuse what no data could make right."""
    if not callable(kernel) and (not isinstance(kernel, str) or kernel not in NAMES):
        raise ValueError(
            f"kernel={kernel!r} is none of {', '.join(NAMES)}, nor a function{did_you_mean(kernel, NAMES)}"
        )
    if isinstance(gamma, str):
        if gamma not in ("scale", "auto"):
            raise ValueError(f"gamma={gamma!r} must be 'scale', 'auto' or a number >= 0")
    elif not _number(gamma) or gamma < 0:
        raise ValueError(f"gamma={gamma!r} must be 'scale', 'auto' or a number >= 0")
    if not isinstance(degree, Integral) or isinstance(degree, bool) or not 0 <= int(degree) < 2**31:
        raise ValueError(f"degree={degree!r} must be a whole number >= 0")
    if not _number(coef0):
        raise ValueError(f"coef0={coef0!r} must be a number")


def _number(value: object) -> TypeGuard[float]:
    return isinstance(value, Real) and not isinstance(value, bool) and bool(np.isfinite(float(value)))


def resolve(kernel: str | KernelFunction, *, degree: int, gamma: float, coef0: float) -> Kernel:
    """The kernel that checked parameters mean."""
    if not isinstance(kernel, str):
        return Kernel("function", function=kernel)
    return Kernel(kernel) if kernel == "precomputed" else Kernel(kernel, gamma, float(coef0), int(degree))


def scale(gamma: float | str, X: Matrix, weight: Array | None = None) -> float:
    """γ as a number: "scale" is 1/(columns · variance of all entries), "auto" 1/columns.

    A row of weight 2 counts twice.
    """
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma == "auto":
        return 1.0 / float(X.shape[1])
    spread = _variance(X, weight)
    return 1.0 / (float(X.shape[1]) * spread) if spread > 0 else 1.0


def _variance(X: Matrix, weight: Array | None) -> float:
    """The variance of all entries, in float64; absent ones of a sparse matrix are zeros."""
    if weight is None and not is_sparse(X):
        return float(X.var(dtype=np.float64))
    weight = np.ones(X.shape[0]) if weight is None else weight
    size = float(weight.sum()) * float(X.shape[1])
    if not is_sparse(X):
        mean = float(weight @ X.sum(axis=1, dtype=np.float64)) / size
        apart = np.subtract(X, mean, dtype=np.float64)
        return float(weight @ np.einsum("ij,ij->i", apart, apart)) / size
    each = np.repeat(weight, np.diff(X.indptr))
    values = X.data.astype(np.float64)
    mean = float(each @ values) / size
    inside = float(each @ (values - mean) ** 2)
    return (inside + (size - float(each.sum())) * mean**2) / size


def checked_values(values: npt.ArrayLike | CSR, shape: tuple[int, int], what: str) -> Array:
    """What a user's kernel returned, as an array of numbers of this shape."""
    found: Array = np.asarray(values.toarray() if is_sparse(values) else values)
    if found.shape != shape:
        raise ValueError(
            f"{what} returned an array of shape {found.shape} for {shape[0]} and {shape[1]} rows; it should be {shape}"
        )
    if found.dtype.kind not in "iufb":
        raise ValueError(f"{what} returned {found.dtype} and not numbers")
    if not np.isfinite(found).all():
        row, col = np.argwhere(~np.isfinite(found))[0]
        raise ValueError(f"{what} returned {found[row, col]} for rows {row} and {col} of its arguments")
    return found
