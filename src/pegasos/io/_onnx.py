"""Linear estimators as ONNX graphs of standard operators: a product, and what makes labels and probabilities of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos._data import Array
from pegasos.io._text import fitted_linear
from pegasos.linear import LinearSVC
from pegasos.losses import Loss

#: Old enough for every runtime of the last years; nothing newer is needed.
OPSET, IR_VERSION = 17, 8


def to_onnx(estimator: Any, *, dtype: Any = np.float32) -> Any:
    """A fitted linear estimator as an ONNX model. Needs the extra ``onnx``.

    Input ``X``: rows × features, dense. Outputs of a classifier: ``label``, ``scores`` (as ``decision_function``) and,
    where the loss gives them, ``probabilities``; of a regressor: ``prediction``.

    Parameters
    ----------
    estimator : LinearSVC or LinearSVR
        Fitted, on dense or sparse rows. Labels can be texts, booleans or numbers; whole numbers become int64, other
        numbers float64.
    dtype : {np.float32, np.float64}, default=np.float32
        The type of input, scores and probabilities. In float32 the weights are rounded: scores agree to about seven
        digits of their largest term, and a row whose score is zero to that accuracy may get the other label.

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
    W, b = fitted_linear(estimator, "ONNX model")
    number = np.dtype(dtype)
    if number not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r} must be np.float32 or np.float64")
    with np.errstate(over="ignore"):
        W, b = np.ascontiguousarray(W.T).astype(number), b.astype(number)
    if not (np.isfinite(W).all() and np.isfinite(b).all()):
        raise ValueError("the weights are out of float32's range; use dtype=np.float64, or scale the features")
    graph = _Graph(number)
    graph.node("MatMul", "X", graph.constant("coef", W), result="products")
    if isinstance(estimator, LinearSVC):
        classes = _portable(np.asarray(estimator.classes_))
        graph.node("Add", "products", graph.constant("intercept", b), result="columns")
        graph.classify(classes, _loss_of_probabilities(estimator))
    else:
        graph.node("Add", "products", graph.constant("intercept", b), result="column")
        graph.node("Squeeze", "column", graph.constant("second", np.array([1])), result="prediction")
        graph.output("prediction", number, ["rows"])
    return graph.model(W.shape[0], type(estimator).__name__)


def _loss_of_probabilities(estimator: LinearSVC) -> str | None:
    """ "log" or "multinomial" where the estimator offers probabilities."""
    if not hasattr(estimator, "predict_proba"):
        return None
    return estimator.loss.name if isinstance(estimator.loss, Loss) else estimator.loss


def _portable(classes: Array) -> Array:
    """Labels in a type that runtimes can gather: texts, booleans, int64 or float64."""
    if classes.dtype.kind in "UO" and all(isinstance(text, str) for text in classes.tolist()):
        texts = np.array([str(text) for text in classes.tolist()], dtype=object)
        for text in texts.tolist():
            try:
                text.encode("utf-8")
            except UnicodeEncodeError:
                raise ValueError(f"the label {text!r} is no valid Unicode text, as ONNX needs") from None
        return texts
    if classes.dtype.kind == "b":
        return classes
    if classes.dtype.kind == "f":
        return classes.astype(np.float64)
    if classes.dtype.kind in "iu" and int(classes.max()) < 2**63:
        return classes.astype(np.int64)
    raise ValueError(f"labels {classes.tolist()!r:.100} of type {classes.dtype} cannot be expressed in ONNX")


class _Graph:
    """Nodes, constants and outputs of a graph in the making."""

    def __init__(self, number: np.dtype[Any]) -> None:
        try:
            import onnx
        except ImportError:
            raise ImportError("to_onnx needs the package onnx: pip install 'pegasos[onnx]'") from None
        self.onnx, self.number = onnx, number
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.outputs: list[Any] = []

    def constant(self, name: str, value: Array) -> str:
        self.constants.append(self.onnx.numpy_helper.from_array(value, name))
        return name

    def node(self, operator: str, *inputs: str, result: str, **attributes: Any) -> None:
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [result], **attributes))

    def output(self, name: str, dtype: Any, shape: list[Any]) -> None:
        self.outputs.append(self._value(name, dtype, shape))

    def _value(self, name: str, dtype: Any, shape: list[Any]) -> Any:
        code = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.onnx.helper.make_tensor_value_info(name, code, shape)

    def classify(self, classes: Array, loss: str | None) -> None:
        """From "columns" (rows × outputs) to label, scores and, for a loss that has them, probabilities."""
        two = len(classes) == 2
        labels = self.constant("classes", classes)
        if two:
            self.node("Squeeze", "columns", self.constant("second", np.array([1])), result="scores")
            self.node("Greater", "scores", self.constant("zero", np.zeros((), self.number)), result="positive")
            self.node("Cast", "positive", result="index", to=self.onnx.TensorProto.INT64)
        else:
            self.node("Identity", "columns", result="scores")
            self.node("ArgMax", "columns", result="index", axis=1, keepdims=0)
        self.node("Gather", labels, "index", result="label")
        self.output("label", classes.dtype, ["rows"])
        self.output("scores", self.number, ["rows"] if two else ["rows", len(classes)])
        if loss is not None:
            self.probabilities(len(classes), loss)
            self.output("probabilities", self.number, ["rows", len(classes)])

    def probabilities(self, n_classes: int, loss: str) -> None:
        """From "columns" to "probabilities" (rows × classes)."""
        if n_classes == 2:
            self.node("Neg", "columns", result="negated")
            self.node("Concat", "negated", "columns", result="both", axis=1)
            self.node("Sigmoid", "both", result="probabilities")
        elif loss == "multinomial":
            self.node("Softmax", "columns", result="probabilities", axis=1)
        else:  # one-vs-rest probabilities are normalised; where all vanish, every class is as likely
            self.node("Sigmoid", "columns", result="each")
            self.node("ReduceSum", "each", self.constant("classes_axis", np.array([1])), result="total", keepdims=1)
            self.node("Div", "each", "total", result="shares")
            self.node("Greater", "total", self.constant("nothing", np.zeros((), self.number)), result="possible")
            uniform = self.constant("uniform", np.full((), 1 / n_classes, self.number))
            self.node("Where", "possible", "shares", uniform, result="probabilities")

    def model(self, features: int, name: str) -> Any:
        helper = self.onnx.helper
        inputs = [self._value("X", self.number, ["rows", features])]
        graph = helper.make_graph(self.nodes, name, inputs, self.outputs, self.constants)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="pegasos"
        )
        self.onnx.checker.check_model(model, full_check=True)
        return model
