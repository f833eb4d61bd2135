"""sklearn-crfsuite's parameters, so that its users change one import."""

from __future__ import annotations

from typing import Any, Literal, cast

from pegasos.estimators.structured_model import StructuredModel

#: What sklearn-crfsuite calls the ways to train, as our losses and solvers.
ALGORITHMS = {
    "lbfgs": ("log", None),
    "l2sgd": ("log", None),
    "pa": ("hinge", "passive_aggressive"),
    "ap": ("hinge", "averaged_perceptron"),
}


#: Our default of max_iter, and CRFsuite's of "pa" and "ap", which nothing else would end.
DEFAULT_EPOCHS, CRFSUITE_EPOCHS = 1000, 100


class CrfsuiteParameters(StructuredModel):
    """Reads ``algorithm``, ``c1``, ``c2`` and ``max_iterations`` as what they mean here; not public."""

    loss: str
    algorithm: str | None
    c1: float | None
    c2: float | None
    max_iterations: int | None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_word("loss", ("hinge", "log"))
        self._check_number("c1", low=0, strict=False, none=True)
        self._check_number("c2", low=0, strict=True, none=True)
        self._check_number("max_iterations", low=1, strict=False, whole=True, none=True)
        if self.c1:
            raise ValueError(f"c1={self.c1!r}: an L1 penalty is not offered; leave c1 out and use C, or c2 = 1/(2·C)")
        if self.c2 is not None and (self.lam is not None or self.C != 1.0):
            raise ValueError(f"{'C' if self.lam is None else 'lam'} and c2 say the same thing: give one of them")
        if self.max_iterations is not None and self.max_iter != DEFAULT_EPOCHS:
            raise ValueError("max_iter and max_iterations say the same thing: give one of them")
        if self.algorithm is not None:
            self._check_algorithm()

    def _check_algorithm(self) -> None:
        if self.algorithm == "arow":
            raise ValueError("algorithm='arow' is not offered; it can be lbfgs, l2sgd, pa or ap")
        self._check_word("algorithm", tuple(ALGORITHMS))
        if self.solver != "auto":
            raise ValueError("algorithm and solver say the same thing: give one of them")

    def _loss(self) -> Literal["hinge", "log"]:
        word = self.loss if self.algorithm is None else ALGORITHMS.get(self.algorithm, (self.loss,))[0]
        return cast(Literal["hinge", "log"], word)

    def _solver(self) -> Any:
        meant = None if self.algorithm is None else ALGORITHMS[self.algorithm][1]
        return self.solver if meant is None else meant

    def _max_iter(self) -> int:
        if self.max_iterations is not None:
            return int(self.max_iterations)
        usual = self.algorithm in ("pa", "ap") and self.max_iter == DEFAULT_EPOCHS
        return CRFSUITE_EPOCHS if usual else int(self.max_iter)

    def _chain_lam(self, total: float) -> float:
        """λ: c2‖W‖² + Σ loss is (λ/2)‖W‖² + mean loss for λ = 2·c2/M."""
        return self._lam(total) if self.c2 is None else 2.0 * float(self.c2) / total
