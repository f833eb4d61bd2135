"""Kernel machines as ONNX graphs of standard operators.

Kernel values are computed in float64, whatever the type of the input: ‖x − s‖² = ‖x‖² + ‖s‖² − 2⟨x, s⟩ would lose too
many digits in float32. The sums of the laplacian and chi2 kernels go over the features one by one (the operator Scan),
so that no graph needs more memory than rows × support vectors. A linear kernel collapses to a product.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pegasos.estimators.svc import SVC
from pegasos.estimators.svr import SVR
from pegasos.io.models.onnx_graph import Graph, portable
from pegasos.kernels.expansion import Expansion
from pegasos.kernels.functions import NATIVE, Kernel
from pegasos.kernels.pairs import pair_classes
from pegasos.rows.views import Array, is_sparse
from pegasos.util.arrays import DType

#: A graph with its constants is one message of at most 2 GiB.
MAX_GRAPH_BYTES = 2**31 - 2**20


def model(estimator: SVC | SVR, number: DType) -> Any:
    """The ONNX model of a fitted SVC or SVR, with input and scores of type ``number``."""
    check_is_fitted(estimator)
    kernel = estimator.kernel
    if not isinstance(kernel, str) or kernel not in NATIVE:
        why = "takes rows of kernel values" if kernel == "precomputed" else "is code"
        raise ValueError(
            f"kernel={kernel!r:.60} {why}, which an ONNX model cannot express; fit with one of {', '.join(NATIVE)}"
        )
    machine = estimator._machine()
    if not (np.isfinite(machine.coef).all() and np.isfinite(machine.bias).all()):
        raise ValueError("dual_coef_ or intercept_ has values that are not finite")
    classes = portable(np.asarray(estimator.classes_)) if isinstance(estimator, SVC) else None
    graph = _KernelGraph(number)
    graph.scores(machine, int(estimator.n_features_in_))
    if classes is None:
        graph.node("Squeeze", "functions", graph.constant("second", np.array([1])), result="wide")
        graph.rounded("wide", "prediction")
        graph.output("prediction", number, ["rows"])
    elif not machine.in_pairs:
        graph.rounded("functions", "columns")
        graph.classify(classes, None)
    else:
        assert isinstance(estimator, SVC)
        each, ties = estimator.decision_function_shape == "ovo", estimator.break_ties
        graph.vote(classes, machine.rank, each=each, ties=ties)
    return graph.model(int(estimator.n_features_in_), type(estimator).__name__)


class _KernelGraph(Graph):
    """A graph whose inner results are float64."""

    def wide(self, name: str, value: Any) -> str:
        """A float64 constant."""
        return self.constant(name, np.asarray(value, dtype=np.float64))

    def rounded(self, inner: str, result: str) -> None:
        """A float64 result in the type of the model."""
        self.node("Cast", inner, result=result, to=self.onnx.helper.np_dtype_to_tensor_dtype(self.number))

    def scores(self, machine: Expansion, features: int) -> None:
        """From "X" to "functions", Σ_v coef_v K(s_v, x) + b for every row and decision function."""
        vectors, coef, b = machine.vectors, machine.functions, machine.bias
        self.node("Cast", "X", result="x", to=self.onnx.TensorProto.DOUBLE)
        linear = machine.kernel.name == "linear" or not coef.shape[1]
        if 8 * features * (len(b) if linear else vectors.shape[0]) + 8 * coef.size > MAX_GRAPH_BYTES:
            raise ValueError(
                f"{vectors.shape[0]} support vectors of {features} features exceed the 2 GiB that an ONNX model holds"
            )
        if linear:
            weights = np.asarray(coef @ vectors) if coef.shape[1] else np.zeros((len(b), features))
            values, each = "x", np.ascontiguousarray(weights.T)
        else:
            dense = vectors.toarray() if is_sparse(vectors) else np.asarray(vectors)
            values, each = self.kernel(machine.kernel, dense.astype(np.float64)), np.ascontiguousarray(coef.T)
        self.node("MatMul", values, self.wide("coefficients", each), result="sums")
        self.node("Add", "sums", self.wide("intercept", b), result="functions")

    def kernel(self, kernel: Kernel, S: Array) -> str:
        """The kernel values of all rows and support vectors."""
        gamma, name = kernel.gamma, kernel.name
        if name in ("laplacian", "chi2"):
            return self.node("Exp", self._scaled(self._summed(name, S), -gamma), result="values")
        if name == "rbf":
            return self.node("Exp", self._scaled(self._squared_distances(S), -gamma), result="values")
        # γ is in the constant: onnxruntime would make a product times γ one operator, and round γ to float32 for it.
        products = self.node("MatMul", "x", self.wide("support", gamma * S.T), result="products")
        inner = self.node("Add", products, self.wide("coef0", kernel.coef0), result="inner")
        if name == "sigmoid":
            return self.node("Tanh", inner, result="values")
        return self.node("Pow", inner, self.wide("degree", kernel.degree), result="values")

    def _scaled(self, name: str, factor: float) -> str:
        return self.node("Mul", name, self.wide("gamma", factor), result="scaled")

    def _squared_distances(self, S: Array) -> str:
        """max(0, ‖x‖² + ‖s‖² − 2⟨x, s⟩)."""
        self.node("Mul", "x", "x", result="squares")
        self.node("ReduceSum", "squares", self.constant("features_axis", np.array([1])), result="norms", keepdims=1)
        self.node("MatMul", "x", self.wide("support", -2.0 * S.T), result="twice")
        self.node("Add", "norms", "twice", result="half_way")
        self.node("Add", "half_way", self.wide("support_norms", np.einsum("ij,ij->i", S, S)), result="differences")
        return self.node("Max", "differences", self.wide("nothing", 0.0), result="distances")

    def _summed(self, name: str, S: Array) -> str:
        """Σ_k |x_k − s_k|, or Σ_k (x_k − s_k)²/(x_k + s_k), a feature at a time."""
        helper, double = self.onnx.helper, np.float64
        self.node("Transpose", "x", result="x_by_feature", perm=[1, 0])
        self.node("MatMul", "x", self.wide("none", np.zeros(S.T.shape)), result="beginning")
        axis, tiny = self.onnx.numpy_helper.from_array(np.array([1]), "second_axis"), "tiny"
        steps = [
            helper.make_node("Unsqueeze", ["x_k", "second_axis"], ["column"]),
            helper.make_node("Sub", ["column", "s_k"], ["difference"]),
        ]
        constants = [axis]
        if name == "laplacian":
            steps.append(helper.make_node("Abs", ["difference"], ["term"]))
        else:  # where x_k and s_k are zero, so is the term
            constants.append(self.onnx.numpy_helper.from_array(np.array(np.finfo(double).tiny), tiny))
            steps += [
                helper.make_node("Mul", ["difference", "difference"], ["square"]),
                helper.make_node("Add", ["column", "s_k"], ["sum"]),
                helper.make_node("Max", ["sum", tiny], ["divisor"]),
                helper.make_node("Div", ["square", "divisor"], ["term"]),
            ]
        steps.append(helper.make_node("Add", ["so_far", "term"], ["with_this"]))
        inside = [
            self.value("so_far", double, ["rows", len(S)]),
            self.value("x_k", double, ["rows"]),
            self.value("s_k", double, [len(S)]),
        ]
        body = helper.make_graph(
            steps, f"{name}_feature", inside, [self.value("with_this", double, ["rows", len(S)])], constants
        )
        support = self.wide("support", S.T.copy())
        return self.node("Scan", "beginning", "x_by_feature", support, result="total", body=body, num_scan_inputs=2)

    def vote(self, classes: Array, rank: Array, *, each: bool, ties: bool) -> None:
        """From "functions" of all pairs to label and scores, as SVC.predict and SVC.decision_function have them."""
        k = len(classes)
        pairs = pair_classes(k)
        self.wide("zero", 0.0)
        if not each or ties:
            self._class_scores(pairs)
        if ties:
            self.node("ArgMax", "class_scores", result="index", axis=1, keepdims=0)
            chosen = classes
        else:  # with the classes in the order of their ranks, f > 0 is a vote for the first, all else for the second
            ranks = rank[pairs]
            turned = np.where(ranks[:, 0] < ranks[:, 1], 1.0, -1.0)
            self.node("Mul", "functions", self.wide("turned", turned), result="in_order")
            self.node("Greater", "in_order", "zero", result="won")
            self._votes("won", np.sort(ranks, axis=1), "votes")
            self.node("ArgMax", "votes", result="index", axis=1, keepdims=0)
            chosen = classes[np.argsort(rank)]
        self.node("Gather", self.constant("classes", chosen), "index", result="label")
        self.output("label", classes.dtype, ["rows"])
        self.rounded("functions" if each else "class_scores", "scores")
        self.output("scores", self.number, ["rows", len(pairs) if each else k])

    def _votes(self, won: str, pairs: Array, result: str) -> None:
        """How often each class wins: a pair not won by its first class is won by its second."""
        first, second = (np.eye(int(pairs.max()) + 1)[side] for side in pairs.T)
        self.node("Cast", won, result=f"{won}_counts", to=self.onnx.TensorProto.DOUBLE)
        self.node("MatMul", f"{won}_counts", self.wide(f"{won}_first", first - second), result=f"{won}_moved")
        self.node("Add", f"{won}_moved", self.wide(f"{won}_second", second.sum(axis=0)), result=result)

    def _class_scores(self, pairs: Array) -> None:
        """Votes, f ≥ 0 being one for the first of the pair, and a fraction s/(3(|s| + 1)) that says by how much."""
        self.node("GreaterOrEqual", "functions", "zero", result="not_lost")
        self._votes("not_lost", pairs, "fair_votes")
        self.node("MatMul", "functions", "not_lost_first", result="confidence")
        self.node("Abs", "confidence", result="size")
        self.node("Add", "size", self.wide("one", 1.0), result="above_one")
        self.node("Mul", "above_one", self.wide("three", 3.0), result="largest")
        self.node("Div", "confidence", "largest", result="fraction")
        self.node("Add", "fair_votes", "fraction", result="class_scores")
