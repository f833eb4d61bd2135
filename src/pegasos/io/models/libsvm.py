"""LIBSVM's text models: of kernel machines, and of linear ones, whose support vectors collapse to a vector of weights.

There f(x) = Σ_i a_i K(x_i, x) − ρ, positive for the first label; so for the linear kernel w = Σ_i a_i x_i and b = −ρ.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos.estimators.linear import LinearSVC, LinearSVR
from pegasos.estimators.svc import SVC
from pegasos.estimators.svr import SVR
from pegasos.io.models import libsvm_kernel
from pegasos.io.models import text as text_models
from pegasos.io.models.text import Lines, Path
from pegasos.kernels.pairs import pair_count
from pegasos.rows.views import Array
from pegasos.util.atomic import replace_file

FORM = "LIBSVM model"
CLASSIFIERS = ("c_svc", "nu_svc")
REGRESSORS = ("epsilon_svr", "nu_svr")

#: Classes that a file may have: there is a number for each pair of them.
MOST_CLASSES = 2**15


def write_libsvm(estimator: Any, path: Path) -> None:
    """Write a fitted estimator as a model file of LIBSVM.

    Labels and scores are the same there. Of ``SVC`` and ``SVR`` the kernels linear, poly, rbf, sigmoid and precomputed
    can be written. A linear estimator becomes one support vector, w itself; there two classes or regression only, as
    LIBSVM compares several classes in pairs, which weights of one class against the rest cannot express.

    Parameters
    ----------
    estimator : SVC, SVR, LinearSVC or LinearSVR
        Fitted; class labels must be whole numbers.
    path : str or path
        The file to write, replaced in one go.

    See Also
    --------
    read_libsvm : The way back.

    Examples
    --------
    >>> import tempfile
    >>> from pegasos import LinearSVC
    >>> from pegasos.io import read_libsvm, write_libsvm
    >>> model = LinearSVC().fit([[-1.0], [1.0]], [-1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_libsvm(model, f"{folder}/model")
    ...     again = read_libsvm(f"{folder}/model")
    >>> bool(again.coef_ == model.coef_)
    True
    """
    kernel = isinstance(estimator, SVC | SVR)
    lines = libsvm_kernel.model_lines(estimator, FORM) if kernel else _linear_lines(estimator)
    replace_file(path, ("\n".join(lines) + "\n").encode("ascii"))


def _linear_lines(estimator: Any) -> list[str]:
    W, b = text_models.fitted_linear(estimator, FORM)
    labels: list[int] = []
    if isinstance(estimator, LinearSVC):
        if len(W) > 1:
            raise ValueError(
                f"a {FORM} of {len(W)} classes compares them in pairs, which one-vs-rest weights cannot express; "
                "use write_liblinear or pegasos.save"
            )
        labels = text_models.whole_labels(estimator.classes_, FORM)[::-1]
    used = np.flatnonzero(W[0])
    entries = (f"%d:{text_models.REAL}" % entry for entry in zip((used + 1).tolist(), W[0, used].tolist(), strict=True))
    return [
        f"svm_type {'c_svc' if labels else 'epsilon_svr'}",
        "kernel_type linear",
        "nr_class 2",
        "total_sv 1",
        "rho " + text_models.REAL % (-float(b[0]) + 0.0),
        *([f"label {labels[0]} {labels[1]}", "nr_sv 1 0"] if labels else []),
        "SV",
        " ".join(["1", *entries]) + " ",
    ]


def read_libsvm(
    path: Path, *, n_features: int | None = None, collapse: bool = True
) -> LinearSVC | LinearSVR | SVC | SVR:
    """Read a model file of LIBSVM as a fitted estimator.

    C-SVC, ν-SVC, ε-SVR and ν-SVR with any kernel. It predicts as there without ``-b 1``: coefficients for
    probabilities are passed over. It has no certificate, does not know which rows its support vectors were (unless the
    kernel is precomputed), and ``fit`` and ``partial_fit`` start afresh. Safe on files from untrusted sources.

    Parameters
    ----------
    path : str or path
        A model.
    n_features : int, default=None
        The number of features (of a precomputed kernel: of rows fitted), which these files do not say. None: the
        largest in the file.
    collapse : bool, default=True
        Whether support vectors of a linear kernel are added up to weights, which predict much faster: two classes and
        regression are a ``LinearSVC`` or ``LinearSVR`` then. Else they are an ``SVC`` or ``SVR``, as other models are.

    Returns
    -------
    LinearSVC, LinearSVR, SVC or SVR
        With ``n_features_in_`` and ``classes_`` in increasing order. Support vectors are a dense array if half of their
        entries are there, and else a CSR matrix.

    Raises
    ------
    ValueError
        If the file is no such model: the message names the file and the line.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pegasos.io import read_libsvm
    >>> text = (
    ...     "svm_type c_svc\\nkernel_type linear\\nnr_class 2\\ntotal_sv 2\\nrho 0.5\\nlabel 1 -1\\nnr_sv 1 1\\n"
    ...     "SV\\n0.5 1:1 3:2 \\n-0.5 1:-1 \\n"
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(f"{folder}/model").write_text(text)
    ...     model = read_libsvm(f"{folder}/model")
    >>> model.coef_, model.intercept_
    (array([[1., 0., 1.]]), array([-0.5]))
    """
    if n_features is not None and (isinstance(n_features, bool) or int(n_features) != n_features or n_features < 1):
        raise ValueError(f"n_features={n_features!r} must be None or a whole number >= 1")
    lines = Lines(path)
    found = lines.header(
        {
            "svm_type": text_models.one_word,
            "kernel_type": text_models.one_word,
            "degree": text_models.one_real,
            "gamma": text_models.one_real,
            "coef0": text_models.one_real,
            "nr_class": text_models.count,
            "total_sv": text_models.count,
            "rho": text_models.reals,
            "label": text_models.wholes,
            "probA": text_models.reals,
            "probB": text_models.reals,
            "prob_density_marks": text_models.reals,
            "nr_sv": text_models.wholes,
        },
        end="SV",
    )
    text_models.need(lines, found, "svm_type", "kernel_type", "nr_class", "total_sv", "rho")
    kind = found["svm_type"]
    if kind not in CLASSIFIERS + REGRESSORS:
        lines.refuse(f"svm_type {kind!r:.60} above is none of {', '.join(CLASSIFIERS + REGRESSORS)}")
    if found["kernel_type"] not in libsvm_kernel.NAMES:
        lines.refuse(f"kernel_type {found['kernel_type']!r:.60} above is none of {', '.join(libsvm_kernel.NAMES)}")
    labels = _checked_labels(lines, found)
    if found["kernel_type"] != "linear" or (labels is not None and len(labels) > 2) or not collapse:
        return libsvm_kernel.machine(lines, found, n_features)
    W = _weights(lines, found["total_sv"], n_features)
    b = np.array([-found["rho"][0]])
    if labels is None:
        return text_models.fitted_regressor(lines, W, b)
    return text_models.fitted_classifier(lines, labels, W, b)


def _checked_labels(lines: Lines, found: dict[str, Any]) -> list[int] | None:
    """The labels, or None of a regression; the header's lists must be as long as its number of classes says."""
    kind, labels, k = found["svm_type"], found.get("label"), found["nr_class"]
    if kind in REGRESSORS:
        if labels is not None:
            lines.refuse(f"a model of {kind} has no label line")
        k = 2
    else:
        if not 2 <= k <= MOST_CLASSES:
            lines.refuse(f"nr_class {k} above should lie between 2 and {MOST_CLASSES}")
        if labels is None or len(labels) != k:
            lines.refuse(f"the label line above should list {'two' if k == 2 else k} labels")
        if len(set(labels)) < k:
            lines.refuse(f"a label comes twice: {labels!r:.100}")
        shares = found.get("nr_sv", [])
        if len(shares) != k or min(shares) < 0 or sum(shares) != found["total_sv"]:
            many = "two" if k == 2 else k
            lines.refuse(f"the nr_sv line above should list {many} numbers >= 0 that add up to {found['total_sv']}")
    functions = pair_count(k)
    if len(found["rho"]) != functions:
        many = "one number" if functions == 1 else f"{functions} numbers"
        lines.refuse(f"rho above should be {many}, not {len(found['rho'])}")
    return labels


def _weights(lines: Lines, total: int, n_features: int | None) -> Array:
    """Σ_i a_i x_i over the support vectors below the header, 1 × features."""
    vectors = list(libsvm_kernel.support_vectors(lines, total, 1, n_features, what="weights"))
    widest = max((int(at[-1]) + 1 for _, at, _ in vectors if len(at)), default=1)
    W = np.zeros((1, widest if n_features is None else int(n_features)))
    with np.errstate(over="ignore", invalid="ignore"):
        for (coefficient,), at, values in vectors:
            W[0, at] += coefficient * values
    return W
