"""What a kernel machine is made of, in model files: support vectors, their coefficients, and the kernel's γ.

Arrays: ``dual_coef_`` (float64, always dense here), ``intercept_``, ``n_support_``, ``support_`` where it is known, and
the support vectors, as they are in the estimator: ``support_vectors_`` of float32 or float64, or a CSR matrix's
``support_vectors_.data``, ``.indices`` and ``.indptr``. Where there are none (a precomputed kernel, or a regression
within its tube) there is no such array. The header's ``kernel`` says which (``layout``), γ, λ, the shape that was
fitted, and how classes are compared (``multiclass``); of a model of LIBSVM's whose classes were in another order, also
that order, which decides ties (``tie_order``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from pegasos.estimators.kernel_partial_fit import KernelStream
from pegasos.estimators.svc import SVC
from pegasos.estimators.svr import SVR
from pegasos.io.models.checks import Rule, as_array, check_names, checked_array, real
from pegasos.io.models.plain import fits, plain
from pegasos.kernels import functions as kernel_functions
from pegasos.kernels.expansion import Expansion
from pegasos.kernels.functions import Kernel
from pegasos.kernels.pairs import pair_count
from pegasos.rows.views import Array, examples, is_sparse
from pegasos.util.arrays import CSR, Matrix

LAYOUTS = ("none", "dense", "csr")
FORMS = ("ovo", "ovr")
PARTS = ("data", "indices", "indptr")
#: What every entry ``kernel`` of a header has.
NAMES = ("layout", "gamma", "lam", "fitted_shape", "multiclass")

#: Columns that sparse support vectors may have: scoring lays eight of them out densely, 64 bytes a column.
MAX_SPARSE_COLUMNS = 2**25


def encode(estimator: SVC | SVR) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header's entry and the arrays of a fitted kernel machine."""
    vectors = estimator.support_vectors_
    layout = "csr" if is_sparse(vectors) else "dense"
    if estimator.kernel == "precomputed" or not vectors.shape[0]:
        layout = "csr" if layout == "csr" else "none"
    shape = vars(estimator).get("shape_fit_")
    header = {
        "layout": layout,
        "gamma": plain(estimator._gamma),
        "lam": None if estimator._stream is None else plain(estimator._stream.lam),
        "fitted_shape": None if shape is None else plain(list(shape)),
        "multiclass": form_of(estimator),
    }
    if estimator._tie_order is not None:
        header["tie_order"] = plain(estimator._tie_order.tolist())
    arrays = {
        "dual_coef_": as_array(estimator._dense_coefficients(), Rule(()), "dual_coef_"),
        "intercept_": as_array(estimator.intercept_, Rule(()), "intercept_"),
        "n_support_": as_array(estimator.n_support_, Rule((), "int32"), "n_support_"),
    }
    if "support_" in vars(estimator):
        arrays["support_"] = as_array(estimator.support_, Rule((), "int32"), "support_")
    if layout == "dense":
        arrays["support_vectors_"] = np.ascontiguousarray(vectors)
    elif layout == "csr":
        arrays |= {f"support_vectors_.{part}": np.ascontiguousarray(getattr(vectors, part)) for part in PARTS}
    return header, arrays


def form_of(estimator: SVC | SVR) -> str:
    """How an estimator compares more than two classes: "ovo", each pair, or "ovr", each with all others."""
    return estimator.multi_class if isinstance(estimator, SVC) else "ovo"


def decode(estimator: SVC | SVR, found: Any, arrays: dict[str, Array], sizes: dict[str, int]) -> None:
    """Set the attributes of a kernel machine, all of them checked; what is used of ``arrays`` is taken out."""
    check_names(f"kernel={found!r:.200}", found, NAMES, ("tie_order",))
    _count_functions(estimator, found, sizes)
    kernel = kernel_of(estimator, real(found, "gamma"))
    coef = checked_array("dual_coef_", arrays.pop("dual_coef_", None), Rule(("coefficients", "support")), sizes)
    bias = checked_array("intercept_", arrays.pop("intercept_", None), Rule(("functions",)), sizes)
    shares = _shares(arrays, sizes)
    ties = _tie_order(found["tie_order"], sizes) if "tie_order" in found else None
    rows = _fitted_shape(estimator, found, sizes)
    known = "support_" in arrays or estimator.kernel == "precomputed"
    numbers = _numbers(arrays, rows, sizes) if known else None
    vectors = _vectors(estimator, found["layout"], arrays, sizes)
    if estimator.kernel != "precomputed":
        check_kernel(kernel, vectors)
    estimator._keep(Expansion(kernel, vectors, coef, bias, shares, numbers, ties))
    if found["lam"] is not None:
        fitted = 0 if found["fitted_shape"] is None else found["fitted_shape"][0]
        estimator._stream = KernelStream(kernel, _positive(found, "lam"), fitted)


def _count_functions(estimator: SVC | SVR, found: dict[str, Any], sizes: dict[str, int]) -> None:
    """Set the numbers of decision functions, rows of coefficients and counts of support vectors."""
    form, k = found["multiclass"], sizes.get("classes", 2)
    if form not in FORMS or form != form_of(estimator):
        raise ValueError(f"multiclass={form!r:.50} should be {form_of(estimator)!r}, as the parameters say")
    sizes["counts"] = sizes.get("classes", 1)
    if k == 2:
        sizes["functions"] = sizes["coefficients"] = 1
    elif form == "ovo":
        sizes["functions"], sizes["coefficients"] = pair_count(k), k - 1
    else:
        sizes["functions"] = sizes["coefficients"] = k


def _tie_order(found: Any, sizes: dict[str, int]) -> Array:
    k = sizes.get("classes", 0)
    if not fits(found, tuple[int, ...]) or k < 3 or sorted(found) != list(range(k)):
        raise ValueError(f"tie_order={found!r:.100} should have each number below {k}, that of the classes, once")
    return np.array(found, dtype=np.int64)


def _positive(found: dict[str, Any], name: str) -> float:
    value = real(found, name)
    if value == 0:
        raise ValueError(f"{name}={found[name]!r} should be a number > 0")
    return value


def _shares(arrays: dict[str, Array], sizes: dict[str, int]) -> Array:
    shares = checked_array("n_support_", arrays.pop("n_support_", None), Rule(("counts",), "int32"), sizes)
    if (shares < 0).any() or int(shares.sum(dtype=np.int64)) != sizes["support"]:
        raise ValueError(
            f"n_support_ should be numbers >= 0 that add up to {sizes['support']}, the columns of dual_coef_"
        )
    return shares


def _fitted_shape(estimator: SVC | SVR, found: dict[str, Any], sizes: dict[str, int]) -> int:
    """Set the shape that was fitted, if it is known, and return how many numbers support vectors can have."""
    shape = found["fitted_shape"]
    columns = sizes["features"]
    if shape is not None:
        if not fits(shape, tuple[int, ...]) or len(shape) != 2 or not 1 <= shape[0] < 2**53 or shape[1] != columns:
            raise ValueError(f"fitted_shape={shape!r:.100} should be rows >= 1 and {columns} columns")
        estimator.shape_fit_ = tuple(shape)
    if estimator.kernel == "precomputed":
        if shape is not None and shape[0] != columns:
            raise ValueError(f"fitted_shape={shape!r} should be square for kernel='precomputed'")
        return columns
    return 2**31 if shape is None else int(shape[0])


def _numbers(arrays: dict[str, Array], rows: int, sizes: dict[str, int]) -> Array:
    support = checked_array("support_", arrays.pop("support_", None), Rule(("support",), "int32"), sizes)
    if len(support) and (int(support.min()) < 0 or int(support.max()) >= rows):
        wrong = int(support[(support < 0) | (support >= rows)][0])
        raise ValueError(f"support_ has {wrong}, which is no number of one of the {rows} rows")
    if len(np.unique(support)) < len(support):
        raise ValueError("support_ names a row twice")
    return support


def _vectors(estimator: SVC | SVR, layout: Any, arrays: dict[str, Array], sizes: dict[str, int]) -> Matrix:
    """The support vectors, finite, in order, and as many as there are coefficients."""
    count, columns = sizes["support"], sizes["features"]
    if not isinstance(layout, str) or layout not in LAYOUTS:
        raise ValueError(f"layout={layout!r:.50} is none of {', '.join(LAYOUTS)}")
    if estimator.kernel == "precomputed":
        if layout != "none":
            raise ValueError(f"layout={layout!r}: a precomputed kernel has no support vectors but their numbers")
        return np.empty((0, 0))
    if layout == "none":
        if count:
            raise ValueError(f"layout='none', but dual_coef_ has {count} columns: their support vectors are missing")
        return np.empty((0, columns))
    X = _dense(arrays, sizes) if layout == "dense" else _csr(arrays, sizes)
    if count and examples(X, name="support_vectors_").array is not X:
        raise ValueError("support_vectors_ has a row whose columns are out of order, or come twice")
    return X


def _dense(arrays: dict[str, Array], sizes: dict[str, int]) -> Array:
    if not sizes["support"]:
        raise ValueError("layout='dense', but dual_coef_ has no columns")
    return checked_array("support_vectors_", *_typed(arrays, "support_vectors_", ("support", "features")), sizes)


def _typed(arrays: dict[str, Array], name: str, shape: tuple[str, ...]) -> tuple[Array | None, Rule]:
    """An array of single or double precision, with the rule for its type."""
    array = arrays.pop(name, None)
    return array, Rule(shape, "float32" if array is not None and array.dtype == np.float32 else "float64")


def _csr(arrays: dict[str, Array], sizes: dict[str, int]) -> CSR:
    count, columns = sizes["support"], sizes["features"]
    if columns > MAX_SPARSE_COLUMNS:
        raise ValueError(f"n_features={columns}: sparse support vectors can have {MAX_SPARSE_COLUMNS} columns at most")
    sizes["pointers"] = count + 1
    data = checked_array("support_vectors_.data", *_typed(arrays, "support_vectors_.data", ("entries",)), sizes)
    index = "int32"
    if (indices := arrays.get("support_vectors_.indices")) is not None and indices.dtype == np.int64:
        index = "int64"
    rules = {"indices": Rule(("entries",), index), "indptr": Rule(("pointers",), index)}
    indices, indptr = (
        checked_array(f"support_vectors_.{part}", arrays.pop(f"support_vectors_.{part}", None), rule, sizes)
        for part, rule in rules.items()
    )
    if indptr[0] != 0 or indptr[-1] != len(data) or (np.diff(indptr) < 0).any():
        raise ValueError(f"support_vectors_.indptr should increase from 0 to {len(data)}, the number of entries")
    if len(indices) and (int(indices.min()) < 0 or int(indices.max()) >= columns):
        wrong = int(indices[(indices < 0) | (indices >= columns)][0])
        raise ValueError(f"support_vectors_.indices has {wrong}, which is none of {columns} columns")
    found: CSR = sparse.csr_matrix((data, indices, indptr), shape=(count, columns))
    return found


def kernel_of(estimator: SVC | SVR, gamma: float) -> Kernel:
    """The kernel that an estimator's parameters mean, with this γ."""
    return kernel_functions.resolve(estimator.kernel, degree=estimator.degree, gamma=gamma, coef0=estimator.coef0)


def check_kernel(kernel: Kernel, X: Matrix) -> None:
    """Refuse support vectors that the kernel is not defined for, or so large that it overflows."""
    if not X.shape[0]:
        return
    try:
        kernel.check_rows(X)
    except ValueError as error:
        raise ValueError(f"support_vectors_: {error}") from None
    diagonal = kernel.core(X).diagonal()
    if not np.isfinite(diagonal).all():
        row = int(np.flatnonzero(~np.isfinite(diagonal))[0])
        raise ValueError(f"the kernel of support vector {row} with itself is {diagonal[row]}")
