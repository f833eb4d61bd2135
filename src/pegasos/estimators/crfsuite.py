"""sklearn-crfsuite's parameters and attributes, so that its users change one import."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Literal, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pegasos.estimators.structured_model import StructuredModel
from pegasos.rows.sequences import Encoder
from pegasos.rows.views import Array

#: What sklearn-crfsuite calls the ways to train, as our losses and solvers.
ALGORITHMS = {
    "lbfgs": ("log", None),
    "l2sgd": ("log", None),
    "pa": ("hinge", "passive_aggressive"),
    "ap": ("hinge", "averaged_perceptron"),
}


#: Our default of max_iter, and CRFsuite's of "pa" and "ap", which nothing else would end.
DEFAULT_EPOCHS, CRFSUITE_EPOCHS = 1000, 100


class CrfsuiteInterface(StructuredModel):
    """Reads ``algorithm``, ``c1``, ``c2`` and ``max_iterations`` as what they mean here, and shows weights by name.

    Not public.
    """

    loss: str
    algorithm: str | None
    c1: float | None
    c2: float | None
    max_iterations: int | None

    classes_: list[Hashable]
    coef_: Array
    transitions_: Array
    _encoder: Encoder

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

    # --- what was learnt ---------------------------------------------------------------------------------------------

    @property
    def attributes_(self) -> list[str]:
        """The names of the attributes, in the order of the rows of ``coef_``."""
        check_is_fitted(self, "coef_")
        return self._encoder.names

    @property
    def num_attributes_(self) -> int:
        """How many attributes there are."""
        return len(self.attributes_)

    @property
    def state_features_(self) -> dict[tuple[str, Any], float]:
        """The weights of attributes that are not zero, by (attribute, label)."""
        names = self.attributes_
        rows, columns = np.nonzero(self.coef_)
        values = self.coef_[rows, columns].tolist()
        return {
            (names[a], self.classes_[k]): v for a, k, v in zip(rows.tolist(), columns.tolist(), values, strict=True)
        }

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float]:
        """The weights of transitions that are not zero, by (label, next label)."""
        check_is_fitted(self, "coef_")
        return {
            (self.classes_[a], self.classes_[b]): float(self.transitions_[a, b])
            for a, b in zip(*(k.tolist() for k in np.nonzero(self.transitions_)), strict=True)
        }
