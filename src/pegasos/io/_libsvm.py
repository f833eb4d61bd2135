"""LIBSVM's text models with the linear kernel: support vectors that collapse to one vector of weights.

There f(x) = Σ_i a_i ⟨x_i, x⟩ − ρ, positive for the first label; so w = Σ_i a_i x_i and b = −ρ.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos._atomic import replace_file
from pegasos._data import Array
from pegasos.io import _text
from pegasos.io._text import Lines, Path
from pegasos.linear import LinearSVC, LinearSVR

FORM = "LIBSVM model"
CLASSIFIERS = ("c_svc", "nu_svc")
REGRESSORS = ("epsilon_svr", "nu_svr")

#: Features that a model may have unasked: an index is ten bytes of text at most, the weights up to it much more.
WIDEST = 2**24


def write_libsvm(estimator: Any, path: Path) -> None:
    """Write a fitted linear estimator as a model file of LIBSVM: linear kernel, one support vector, w itself.

    Labels and scores are the same there. Two classes or regression: LIBSVM compares several classes in pairs, which
    weights of one class against the rest cannot express.

    Parameters
    ----------
    estimator : LinearSVC or LinearSVR
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
    W, b = _text.fitted_linear(estimator, FORM)
    labels: list[int] = []
    if isinstance(estimator, LinearSVC):
        if len(W) > 1:
            raise ValueError(
                f"a {FORM} of {len(W)} classes compares them in pairs, which one-vs-rest weights cannot express; "
                "use write_liblinear or pegasos.save"
            )
        labels = _text.whole_labels(estimator.classes_, FORM)[::-1]
    used = np.flatnonzero(W[0])
    entries = (f"%d:{_text.REAL}" % entry for entry in zip((used + 1).tolist(), W[0, used].tolist(), strict=True))
    lines = [
        f"svm_type {'c_svc' if labels else 'epsilon_svr'}",
        "kernel_type linear",
        "nr_class 2",
        "total_sv 1",
        "rho " + _text.REAL % (-float(b[0]) + 0.0),
        *([f"label {labels[0]} {labels[1]}", "nr_sv 1 0"] if labels else []),
        "SV",
        " ".join(["1", *entries]) + " ",
    ]
    replace_file(path, ("\n".join(lines) + "\n").encode("ascii"))


def read_libsvm(path: Path, *, n_features: int | None = None) -> LinearSVC | LinearSVR:
    """Read a model file of LIBSVM with the linear kernel as a fitted estimator.

    C-SVC and ν-SVC of two classes, ε-SVR and ν-SVR. It predicts as there without ``-b 1``: coefficients for
    probabilities are passed over. It has no certificate, and ``fit`` and ``partial_fit`` start afresh. Safe on files
    from strangers.

    Parameters
    ----------
    path : str or path
        A model with ``kernel_type linear``.
    n_features : int, default=None
        The number of features, which these files do not say. None: the largest index in the file.

    Returns
    -------
    LinearSVC or LinearSVR
        With ``coef_``, ``intercept_``, ``n_features_in_``, and ``classes_`` in increasing order.

    Raises
    ------
    ValueError
        If the file is no such model, or its kernel or number of classes needs a kernel estimator: the message names the
        file and the line.

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
            "svm_type": _text.one_word,
            "kernel_type": _text.one_word,
            "degree": _text.one_real,
            "gamma": _text.one_real,
            "coef0": _text.one_real,
            "nr_class": _text.count,
            "total_sv": _text.count,
            "rho": _text.reals,
            "label": _text.wholes,
            "probA": _text.reals,
            "probB": _text.reals,
            "prob_density_marks": _text.reals,
            "nr_sv": _text.wholes,
        },
        end="SV",
    )
    _text.need(lines, found, "svm_type", "kernel_type", "nr_class", "total_sv", "rho")
    kind = found["svm_type"]
    if kind not in CLASSIFIERS + REGRESSORS:
        lines.refuse(f"svm_type {kind!r:.60} above is none of {', '.join(CLASSIFIERS + REGRESSORS)}")
    if found["kernel_type"] != "linear":
        lines.refuse(
            f"kernel_type {found['kernel_type']!r:.60} above needs a kernel estimator; only 'linear' has weights"
        )
    if kind in CLASSIFIERS and found["nr_class"] != 2:
        lines.refuse(
            f"nr_class {found['nr_class']} above: LIBSVM compares several classes in pairs, which needs a kernel "
            "estimator; one-vs-rest weights express two classes only"
        )
    if len(found["rho"]) != 1:
        lines.refuse(f"rho above should be one number, not {len(found['rho'])}")
    labels = found.get("label")
    if kind in CLASSIFIERS:
        if labels is None or len(labels) != 2:
            lines.refuse("the label line above should list two labels")
        shares = found.get("nr_sv", [])
        if len(shares) != 2 or min(shares) < 0 or sum(shares) != found["total_sv"]:
            lines.refuse(f"the nr_sv line above should list two numbers >= 0 that add up to {found['total_sv']}")
    elif labels is not None:
        lines.refuse(f"a model of {kind} has no label line")
    W = _weights(lines, found["total_sv"], n_features)
    b = np.array([-found["rho"][0]])
    if labels is None:
        return _text.fitted_regressor(lines, W, b)
    return _text.fitted_classifier(lines, labels, W, b)


def _weights(lines: Lines, total: int, n_features: int | None) -> Array:
    """Σ_i a_i x_i over the support vectors below the header, 1 × features."""
    vectors: list[tuple[float, Array, Array]] = []
    widest = 0
    for words in lines:
        if len(vectors) == total:
            lines.refuse(f"total_sv is {total}, and this is one more support vector")
        if not words:
            lines.refuse("a blank line in place of a support vector")
        at, values = _entries(lines, words[1:])
        if len(at) and (at[0] < 1 or (at[1:] <= at[:-1]).any()):
            lines.refuse("the indices should increase from 1 or more")
        widest = max(widest, int(at[-1]) if len(at) else 0)
        if n_features is not None and widest > n_features:
            lines.refuse(f"index {widest} is beyond n_features={n_features}")
        if n_features is None and widest > WIDEST:
            lines.refuse(f"index {widest} asks for as many weights; pass n_features={widest} if that is what is meant")
        vectors.append((lines.real(words[0], "coefficient"), at - 1, values))
    if len(vectors) < total:
        lines.refuse(f"the file is truncated: total_sv is {total}, and there are {len(vectors)} support vectors")
    W = np.zeros((1, max(widest, 1) if n_features is None else int(n_features)))
    with np.errstate(over="ignore", invalid="ignore"):
        for coefficient, at, values in vectors:
            W[0, at] += coefficient * values
    return W


def _entries(lines: Lines, words: list[str]) -> tuple[Array, Array]:
    """The indices and values of a support vector."""
    pairs = [word.partition(":") for word in words]
    for index, colon, _ in pairs:
        if not colon:
            lines.refuse(f"{index!r:.60} is no index:value")
    at = [lines.whole(index, "index", 0) for index, _, _ in pairs]
    return np.array(at, dtype=np.int64), np.array(lines.reals([value for _, _, value in pairs], "value"))
