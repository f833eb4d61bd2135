"""Estimators as ONNX graphs of standard operators: a product or kernel values, and what makes labels of the scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos.estimators.linear import LinearSVC
from pegasos.estimators.svc import SVC
from pegasos.estimators.svr import SVR
from pegasos.io.models import onnx_kernel
from pegasos.io.models.onnx_graph import Graph, portable
from pegasos.io.models.text import fitted_linear
from pegasos.losses import link_of


def to_onnx(estimator: Any, *, dtype: Any = np.float32) -> Any:
    """A fitted estimator as an ONNX model. Needs the extra ``onnx``.

    Input ``X``: rows × features, dense. Outputs of a classifier: ``label``, ``scores`` (as ``decision_function``, so
    of an ``SVC`` of several classes a column for each class or for each pair, as ``decision_function_shape`` says) and,
    where the loss gives them, ``probabilities``; of a regressor: ``prediction``.

    Parameters
    ----------
    estimator : LinearSVC, LinearSVR, SVC or SVR
        Fitted, on dense or sparse rows. Labels can be texts, booleans or numbers; whole numbers become int64, other
        numbers float64. A kernel that is a function cannot be expressed, nor a precomputed one.
    dtype : {np.float32, np.float64}, default=np.float32
        The type of input, scores and probabilities. In float32 the weights are rounded: scores agree to about seven
        digits of their largest term, and a row whose score is zero to that accuracy may get the other label. Kernels
        are computed in float64 whatever the type: only the input and the scores are rounded.

    Returns
    -------
    onnx.ModelProto
        Write it with ``onnx.save``, or run ``SerializeToString()`` of it.

    Examples
    --------
    >>> from pegasos import LinearSVC
    >>> from pegasos.io import to_onnx
    >>> model = to_onnx(LinearSVC().fit([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"]))
    >>> [output.name for output in model.graph.output]
    ['label', 'scores']
    """
    number = np.dtype(dtype)
    if number not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r} must be np.float32 or np.float64")
    if isinstance(estimator, SVC | SVR):
        return onnx_kernel.model(estimator, number)
    W, b = fitted_linear(estimator, "ONNX model")
    with np.errstate(over="ignore"):
        W, b = np.ascontiguousarray(W.T).astype(number), b.astype(number)
    if not (np.isfinite(W).all() and np.isfinite(b).all()):
        raise ValueError("the weights are out of float32's range; use dtype=np.float64, or scale the features")
    graph = Graph(number)
    graph.node("MatMul", "X", graph.constant("coef", W), result="products")
    if isinstance(estimator, LinearSVC):
        classes = portable(np.asarray(estimator.classes_))
        graph.node("Add", "products", graph.constant("intercept", b), result="columns")
        graph.classify(classes, link_of(estimator.loss) if hasattr(estimator, "predict_proba") else None)
    else:
        graph.node("Add", "products", graph.constant("intercept", b), result="column")
        graph.node("Squeeze", "column", graph.constant("second", np.array([1])), result="prediction")
        graph.output("prediction", number, ["rows"])
    return graph.model(W.shape[0], type(estimator).__name__)
