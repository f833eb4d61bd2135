"""LIBSVM's text models with kernels, as SVC and SVR and back.

There the classes are in the order of the ``label`` line, support vectors class by class, and of classes i < j

    f_ij(x) = Σ_{v of i} a_{j−1,v} K(x_v, x) + Σ_{v of j} a_{i,v} K(x_v, x) − ρ_ij,   positive for i.

Here it is the same with the classes in increasing order and b = −ρ, save that of two classes the second is positive. Of
classes that win equally often LIBSVM predicts the first on the ``label`` line: a model that is read from a file keeps
that order, and is written in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from pegasos.estimators.svc import SVC
from pegasos.estimators.svr import SVR
from pegasos.io.models import support as support_arrays
from pegasos.io.models import text as text_models
from pegasos.io.models.text import Lines
from pegasos.kernels.expansion import Expansion
from pegasos.kernels.pairs import reordered
from pegasos.rows.views import Array, examples
from pegasos.util.arrays import CSR, Matrix

#: LIBSVM's names of the kernels, and which parameters of theirs a file holds.
KERNELS = {
    "linear": ("linear", ()),
    "poly": ("polynomial", ("degree", "gamma", "coef0")),
    "rbf": ("rbf", ("gamma",)),
    "sigmoid": ("sigmoid", ("gamma", "coef0")),
    "precomputed": ("precomputed", ()),
}
NAMES = {theirs: ours for ours, (theirs, _) in KERNELS.items()}

#: Features that a model may have unasked: an index is ten bytes of text at most, what reaches up to it much more.
MAX_UNASKED_FEATURES = 2**24

#: Support vectors with a larger share of their entries present are laid out densely.
MIN_DENSE_SHARE = 0.5


# --- ours to theirs --------------------------------------------------------------------------------------------------


def model_lines(estimator: SVC | SVR, form: str) -> list[str]:
    """The lines of the file; ValueError if LIBSVM has no such model."""
    check_is_fitted(estimator)
    kernel = estimator.kernel
    if not isinstance(kernel, str) or kernel not in KERNELS:
        what = f"kernel={kernel!r:.60}"
        raise ValueError(f"a {form} has no {what}, but {', '.join(KERNELS)}; use pegasos.save or to_onnx")
    ours = estimator._machine()
    k = len(ours.sizes)
    if k > 2 and not ours.in_pairs:
        raise ValueError(
            f"a {form} compares {k} classes in pairs, which one-vs-rest cannot express; fit with multi_class='ovo', or "
            "use pegasos.save"
        )
    if not (np.isfinite(ours.coef).all() and np.isfinite(ours.bias).all()):
        raise ValueError("dual_coef_ or intercept_ has values that are not finite")
    labels: list[int] = []
    if isinstance(estimator, SVC):
        order = np.array([1, 0]) if k == 2 else np.argsort(ours.rank)
        labels = [text_models.whole_labels(estimator.classes_, form)[c] for c in order]
        ours = _with_classes(ours, order, second_is_positive=k == 2)
    texts = _vector_texts(ours)
    theirs, parameters = KERNELS[kernel]
    values = {"degree": f"{int(estimator.degree)}", "gamma": text_models.REAL % ours.kernel.gamma}
    values["coef0"] = text_models.REAL % float(estimator.coef0)
    return [
        f"svm_type {'c_svc' if labels else 'epsilon_svr'}",
        f"kernel_type {theirs}",
        *(f"{name} {values[name]}" for name in parameters),
        f"nr_class {len(labels) or 2}",
        f"total_sv {len(texts)}",
        "rho " + " ".join(text_models.REAL % value for value in (0.0 - ours.bias).tolist()),
        *([f"label {' '.join(map(str, labels))}", f"nr_sv {' '.join(map(str, ours.sizes))}"] if labels else []),
        "SV",
        *(" ".join([*(text_models.REAL % a for a in ours.coef[:, v].tolist()), texts[v]]) for v in range(len(texts))),
    ]


def _vector_texts(machine: Expansion) -> list[str]:
    """The support vectors as index:value; of a precomputed kernel their numbers, from 1."""
    if machine.kernel.name == "precomputed":
        assert machine.numbers is not None
        return [f"0:{number + 1} " for number in machine.numbers.tolist()]
    X = sparse.csr_matrix(machine.vectors, dtype=np.float64)
    X.sort_indices()
    entry = f"%d:{text_models.REAL} "
    pairs = list(zip((X.indices + 1).tolist(), X.data.tolist(), strict=True))
    ends = X.indptr.tolist()
    return ["".join(entry % pair for pair in pairs[first:last] if pair[1] != 0) for first, last in pairwise(ends)]


# --- theirs to ours --------------------------------------------------------------------------------------------------


def machine(lines: Lines, found: dict[str, Any], n_features: int | None) -> SVC | SVR:
    """The estimator of a file whose header has been read and checked."""
    kernel, labels = NAMES[found["kernel_type"]], found.get("label")
    parameters = _parameters(lines, found, kernel)
    coef, X, numbers = _read_vectors(lines, found, kernel, n_features)
    bias = -np.array(found["rho"])
    model: SVC | SVR = SVR(kernel=kernel, **parameters) if labels is None else SVC(kernel=kernel, **parameters)
    resolved = support_arrays.kernel_of(model, float(parameters.get("gamma", 1.0)))
    sizes = np.array([found["total_sv"]] if labels is None else found["nr_sv"])
    vectors, own = (np.empty((0, 0)), numbers) if kernel == "precomputed" else (X, None)
    theirs = Expansion(resolved, vectors, coef, bias, sizes, own)
    if isinstance(model, SVC) and labels is not None:
        ranks = np.argsort(labels)
        model.classes_, model.class_weight_ = np.array(labels, dtype=np.int64)[ranks], np.ones(len(ranks))
        theirs = _with_classes(theirs, ranks, second_is_positive=len(ranks) == 2)
        if len(ranks) > 2 and not np.array_equal(ranks, np.arange(len(ranks))):
            theirs = replace(theirs, tie_order=np.argsort(ranks))
    with np.errstate(over="ignore"):
        squares = float(np.vdot(theirs.coef, theirs.coef)) + float(np.vdot(theirs.bias, theirs.bias))
    if not np.isfinite(squares):
        lines.refuse("the coefficients above are so large that their squares overflow")
    if own is not None and len(np.unique(own)) < len(own):
        lines.refuse("two support vectors above have the same number")
    model.n_features_in_ = X.shape[1]
    # no negative zeros
    model._keep(replace(theirs, coef=np.ascontiguousarray(theirs.coef) + 0.0, bias=theirs.bias + 0.0))
    _check(lines, model)
    return model


def _check(lines: Lines, model: SVC | SVR) -> None:
    """What model files check, too: that the kernel can be computed."""
    try:
        model._check_parameters()
        if model.kernel != "precomputed" and model.support_vectors_.shape[0]:
            examples(model.support_vectors_, name="the support vectors")
            support_arrays.check_kernel(support_arrays.kernel_of(model, model._gamma), model.support_vectors_)
    except ValueError as error:
        lines.refuse(f"the model above cannot be used: {error}")


def _parameters(lines: Lines, found: dict[str, Any], kernel: str) -> dict[str, Any]:
    names = KERNELS[kernel][1]
    text_models.need(lines, found, *names)
    values = {name: found[name] for name in names}
    if "degree" in values:
        if not float(values["degree"]).is_integer() or not 0 <= values["degree"] < 2**31:
            lines.refuse(f"degree {values['degree']} above should be a whole number >= 0")
        values["degree"] = int(values["degree"])
    if values.get("gamma", 0.0) < 0:
        lines.refuse(f"gamma {values['gamma']} above should not be negative")
    return values


def _with_classes(machine: Expansion, order: Array, *, second_is_positive: bool) -> Expansion:
    """The same machine with its classes in this order; of two classes the other one has the positive scores then."""
    vectors, coef, bias = reordered(machine.coef, machine.sizes, machine.bias, order)
    sign = -1.0 if second_is_positive else 1.0
    numbers = None if machine.numbers is None else machine.numbers[vectors]
    rows = machine.vectors if machine.kernel.name == "precomputed" else machine.vectors[vectors]
    sizes = machine.sizes[order]
    return replace(machine, vectors=rows, coef=sign * coef, bias=sign * bias, sizes=sizes, numbers=numbers)


def _read_vectors(
    lines: Lines, found: dict[str, Any], kernel: str, n_features: int | None
) -> tuple[Array, Matrix, Array]:
    """Coefficients, support vectors (of a precomputed kernel an empty matrix as wide), and their numbers there."""
    total, count = found["total_sv"], 1 if found.get("label") is None else found["nr_class"] - 1
    numbered = kernel == "precomputed"
    rows = list(support_vectors(lines, total, count, n_features, numbered=numbered, what="columns"))
    coef = np.array([coefficients for coefficients, _, _ in rows]).reshape(total, count).T
    widest = max((int(at[-1]) + 1 for _, at, _ in rows if len(at)), default=1)
    width = widest if n_features is None else int(n_features)
    none: Array = np.zeros(0, dtype=np.int64)
    indices = np.concatenate([none, *(at for _, at, _ in rows)])
    if numbered:
        return coef, sparse.csr_matrix((0, width)), indices.astype(np.int32)
    data = np.concatenate([np.zeros(0), *(values for _, _, values in rows)])
    indptr = np.cumsum([0, *(len(at) for _, at, _ in rows)])
    narrow = np.int32 if max(len(data), width) < 2**31 else np.int64
    X: CSR = sparse.csr_matrix((data, indices.astype(narrow), indptr.astype(narrow)), shape=(total, width))
    X.eliminate_zeros()
    return coef, X.toarray() if X.nnz >= MIN_DENSE_SHARE * total * width else X, none


def support_vectors(
    lines: Lines, total: int, count: int, n_features: int | None, *, numbered: bool = False, what: str
) -> Iterator[tuple[list[float], Array, Array]]:
    """The ``count`` coefficients, indices from 0 and values of each of ``total`` support vectors below the header.

    ``numbered``: they are rows of a kernel matrix, 0:number; the number, from 0, is the one index then.
    """
    seen = widest = 0
    for words in lines:
        if seen == total:
            lines.refuse(f"total_sv is {total}, and this is one more support vector")
        if not words:
            lines.refuse("a blank line in place of a support vector")
        if len(words) < count:
            lines.refuse(f"{count} coefficients should come first, and there are {len(words)} words")
        at, values = _entries(lines, words[count:])
        if numbered:
            at = _row_number(lines, at, values)
        elif len(at) and (at[0] < 1 or (at[1:] <= at[:-1]).any()):
            lines.refuse("the indices should increase from 1 or more")
        widest = max(widest, int(at[-1]) if len(at) else 0)
        if n_features is not None and widest > n_features:
            lines.refuse(f"index {widest} is beyond n_features={n_features}")
        if n_features is None and widest > MAX_UNASKED_FEATURES:
            lines.refuse(f"index {widest} asks for as many {what}; pass n_features={widest} if that is what is meant")
        seen += 1
        yield [lines.real(word, "coefficient") for word in words[:count]], at - 1, values
    if seen < total:
        lines.refuse(f"the file is truncated: total_sv is {total}, and there are {seen} support vectors")


def _entries(lines: Lines, words: list[str]) -> tuple[Array, Array]:
    """The indices and values of a support vector."""
    pairs = [word.partition(":") for word in words]
    for index, colon, _ in pairs:
        if not colon:
            lines.refuse(f"{index!r:.60} is no index:value")
    at = [lines.whole(index, "index", 0) for index, _, _ in pairs]
    return np.array(at, dtype=np.int64), np.array(lines.reals([value for _, _, value in pairs], "value"))


def _row_number(lines: Lines, at: Array, values: Array) -> Array:
    """The number of a row of a precomputed kernel."""
    if at.tolist() != [0] or not float(values[0]).is_integer() or not 1 <= values[0] < 2**31:
        lines.refuse("a support vector of a precomputed kernel should be 0:NUMBER, with numbers from 1")
    return values.astype(np.int64)
