"""LIBLINEAR's text models: ``solver_type``, ``nr_class``, ``label``, ``nr_feature``, ``bias``, then a row a feature.

There the score of two classes is positive for the first label, which is whichever came first in the training file; a
model with ``bias`` B ≥ 0 has one more row of weights, which a constant feature of value B multiplies.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos.estimators.linear import LinearSVC, LinearSVR
from pegasos.io.models import text as text_models
from pegasos.io.models.text import Lines, Path
from pegasos.losses import LOSSES
from pegasos.rows.views import Array
from pegasos.util.atomic import replace_file

FORM = "LIBLINEAR model"

#: LIBLINEAR's solvers by their numbers. (L1R: with a penalty not offered here; predictions do not care.)
SOLVERS = {
    0: "L2R_LR",
    1: "L2R_L2LOSS_SVC_DUAL",
    2: "L2R_L2LOSS_SVC",
    3: "L2R_L1LOSS_SVC_DUAL",
    4: "MCSVM_CS",
    5: "L1R_L2LOSS_SVC",
    6: "L1R_LR",
    7: "L2R_LR_DUAL",
    11: "L2R_L2LOSS_SVR",
    12: "L2R_L2LOSS_SVR_DUAL",
    13: "L2R_L1LOSS_SVR_DUAL",
}
#: The loss that each minimises.
MINIMISED = {
    SOLVERS[number]: loss
    for number in SOLVERS
    for loss in LOSSES.values()
    if loss.liblinear and number in loss.liblinear.own
}


def write_liblinear(estimator: Any, path: Path) -> None:
    """Write a fitted linear estimator as a model file of LIBLINEAR, for its ``predict`` and all that reads those.

    Labels and scores are the same there, and so are the probabilities of the log loss (of the multinomial loss for two
    classes only). ``solver_type`` names LIBLINEAR's solver of the same loss, or the nearest that predicts alike.

    Parameters
    ----------
    estimator : LinearSVC or LinearSVR
        Fitted; class labels must be whole numbers.
    path : str or path
        The file to write, replaced in one go.

    See Also
    --------
    read_liblinear : The way back.
    write_libsvm : Kernel machines, and linear ones as LIBSVM has them.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pegasos import LinearSVC
    >>> from pegasos.io import write_liblinear
    >>> model = LinearSVC(C=0.5, fit_intercept=False).fit([[-1.0], [1.0]], [-1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_liblinear(model, f"{folder}/model")
    ...     print(Path(f"{folder}/model").read_text().splitlines()[:5])
    ['solver_type L2R_L1LOSS_SVC_DUAL', 'nr_class 2', 'label 1 -1', 'nr_feature 1', 'bias -1']
    """
    W, b = text_models.fitted_linear(estimator, FORM)
    loss = estimator._loss()
    if loss.liblinear is None:
        known = ", ".join(name for name, cls in LOSSES.items() if cls.liblinear)
        raise ValueError(f"loss {loss.name!r} cannot be written as a {FORM}, which knows {known}")
    number = loss.liblinear.written
    labels = None
    if isinstance(estimator, LinearSVC):
        labels = text_models.whole_labels(estimator.classes_, FORM)
        if len(labels) == 2:
            labels = labels[::-1]
            number = number if loss.liblinear.written_for_two is None else loss.liblinear.written_for_two
    biased = bool(estimator.fit_intercept) or bool(b.any())
    rows = np.vstack([W.T, b]) if biased else W.T
    line = f"{text_models.REAL} " * len(W)
    lines = [
        f"solver_type {SOLVERS[number]}",
        f"nr_class {len(labels) if labels else 2}",
        *([f"label {' '.join(map(str, labels))}"] if labels else []),
        f"nr_feature {W.shape[1]}",
        f"bias {1 if biased else -1}",
        "w",
        *(line % tuple(row) for row in rows.tolist()),
    ]
    replace_file(path, ("\n".join(lines) + "\n").encode("ascii"))


def read_liblinear(path: Path) -> LinearSVC | LinearSVR:
    """Read a model file of LIBLINEAR as a fitted estimator.

    It predicts as there. Of the training it knows the loss and the kind of intercept, not C; it has no certificate, and
    ``fit`` and ``partial_fit`` start afresh. Safe on files from untrusted sources.

    Parameters
    ----------
    path : str or path
        A model of any of LIBLINEAR's classifiers or regressors.

    Returns
    -------
    LinearSVC or LinearSVR
        With ``coef_``, ``intercept_``, ``n_features_in_``, and ``classes_`` in increasing order.

    Raises
    ------
    ValueError
        If the file is no such model: the message names the file and the line.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pegasos.io import read_liblinear
    >>> text = "solver_type L2R_LR\\nnr_class 2\\nlabel 1 -1\\nnr_feature 2\\nbias -1\\nw\\n0.5 \\n-2 \\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(f"{folder}/model").write_text(text)
    ...     model = read_liblinear(f"{folder}/model")
    >>> model.decision_function([[2.0, 1.0]]), model.predict([[2.0, 1.0]]), model.loss
    (array([-1.]), array([-1]), 'log')
    """
    lines = Lines(path)
    found = lines.header(
        {
            "solver_type": text_models.one_word,
            "nr_class": text_models.count,
            "label": text_models.wholes,
            "nr_feature": text_models.count,
            "bias": text_models.one_real,
            "rho": text_models.one_real,
        },
        end="w",
    )
    text_models.need(lines, found, "solver_type", "nr_class", "nr_feature", "bias")
    solver, classes, features, bias = (found[key] for key in ("solver_type", "nr_class", "nr_feature", "bias"))
    if solver not in MINIMISED:
        lines.refuse(f"solver_type {solver!r:.60} above is none of {', '.join(MINIMISED)}")
    loss = MINIMISED[solver]
    if "rho" in found:
        lines.refuse("rho above belongs to one-class models, which are not offered here")
    if classes < 2:
        lines.refuse(f"nr_class {classes} above: a model needs two classes (LIBLINEAR writes 2 for regression)")
    labels = found.get("label")
    if loss.kind == "regression" and (classes != 2 or labels is not None):
        lines.refuse(f"a model of {solver} has nr_class 2 and no label line")
    if loss.kind != "regression" and (labels is None or len(labels) != classes):
        lines.refuse(f"the label line above should list {classes} labels")
    outputs = 1 if classes == 2 and loss.kind != "joint" else classes
    rows = _rows(lines, features + (bias >= 0), outputs)
    W, b = rows[:features].T, np.zeros(outputs)
    if bias >= 0:
        b = bias * rows[features]
    if len(W) == 2:  # two classes scored jointly: what counts is the difference
        W, b = W[:1] - W[1:], b[:1] - b[1:]
    parameters: dict[str, Any] = {"fit_intercept": bias > 0, "loss": loss.name}
    if bias > 0:
        parameters |= {"intercept": "feature", "intercept_scaling": bias}
    if labels is None:
        return text_models.fitted_regressor(lines, W, b, **parameters)
    return text_models.fitted_classifier(lines, labels, W, b, **parameters)


def _rows(lines: Lines, count: int, outputs: int) -> Array:
    """The weights below the header: as many lines as features, in each a number for every output."""
    rows: list[Array] = []
    for words in lines:
        if len(rows) == count:
            lines.refuse(f"{count} lines of weights should follow the line 'w', and this is one more")
        if len(words) != outputs:
            lines.refuse(f"{len(words)} weights, but the model has {outputs} in every line")
        rows.append(np.array(lines.reals(words, "weight")))
    if len(rows) < count:
        lines.refuse(f"the file is truncated: {count} lines of weights should follow 'w', and there are {len(rows)}")
    return np.array(rows).reshape(count, outputs)
