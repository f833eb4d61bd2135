"""An ONNX graph in the making: nodes, constants, and what makes labels and probabilities of scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos.losses import Link
from pegasos.rows.views import Array
from pegasos.util.arrays import DType

#: Old enough for every runtime of the last years; nothing newer is needed.
OPSET, IR_VERSION = 17, 8


def portable(classes: Array) -> Array:
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


class Graph:
    """Nodes, constants and outputs of a graph in the making."""

    def __init__(self, number: DType) -> None:
        try:
            import onnx
        except ImportError:
            raise ImportError("to_onnx needs the package onnx: pip install 'pegasos[onnx]'") from None
        self.onnx, self.number = onnx, number
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.outputs: list[Any] = []

    def constant(self, name: str, value: Array) -> str:
        """Add a constant; its name."""
        self.constants.append(self.onnx.numpy_helper.from_array(value, name))
        return name

    def node(self, operator: str, *inputs: str, result: str, **attributes: Any) -> str:
        """Add a node with one result; the result's name."""
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [result], **attributes))
        return result

    def output(self, name: str, dtype: Any, shape: list[Any]) -> None:
        """Declare a result to be an output of the model."""
        self.outputs.append(self.value(name, dtype, shape))

    def value(self, name: str, dtype: Any, shape: list[Any]) -> Any:
        """The declaration of an input or output."""
        code = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.onnx.helper.make_tensor_value_info(name, code, shape)

    def classify(self, classes: Array, link: Link | None) -> None:
        """From "columns" (rows × outputs) to label, scores and, of a loss with a link, probabilities."""
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
        if link is not None:
            self.probabilities(len(classes), link)
            self.output("probabilities", self.number, ["rows", len(classes)])

    def probabilities(self, n_classes: int, link: Link) -> None:
        """From "columns" to "probabilities" (rows × classes)."""
        if n_classes == 2:
            self.node("Neg", "columns", result="negated")
            self.node("Concat", "negated", "columns", result="both", axis=1)
            self.node("Sigmoid", "both", result="probabilities")
        elif link == "softmax":
            self.node("Softmax", "columns", result="probabilities", axis=1)
        else:  # one-vs-rest probabilities are normalised; where all vanish, every class is as likely
            self.node("Sigmoid", "columns", result="each")
            self.node("ReduceSum", "each", self.constant("classes_axis", np.array([1])), result="total", keepdims=1)
            self.node("Div", "each", "total", result="shares")
            self.node("Greater", "total", self.constant("nothing", np.zeros((), self.number)), result="possible")
            uniform = self.constant("uniform", np.full((), 1 / n_classes, self.number))
            self.node("Where", "possible", "shares", uniform, result="probabilities")

    def model(self, features: int, name: str) -> Any:
        """The model, checked."""
        helper = self.onnx.helper
        inputs = [self.value("X", self.number, ["rows", features])]
        graph = helper.make_graph(self.nodes, name, inputs, self.outputs, self.constants)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="pegasos"
        )
        self.onnx.checker.check_model(model, full_check=True)
        return model
