"""SDCA for linear machines: parameters, and the engine for each kind of bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from pegasos.fit.engine import Options
from pegasos.problems.linear import LinearProblem
from pegasos.solvers.base import SAMPLINGS, Sampling, Solver, check_count, check_flag, check_word, row_order
from pegasos.solvers.linear.bias_search import DualBiasSearch
from pegasos.solvers.linear.dual_ascent import DualAscentEngine
from pegasos.solvers.linear.engine import LinearEngine


@dataclass(frozen=True)
class SDCA(Solver):
    """Stochastic dual coordinate ascent: each visit maximises the dual over one row's variables.

    Hsieh, Chang, Lin, Keerthi & Sundararajan (2008); Shalev-Shwartz & Zhang (2013). For kernel machines
    (:class:`~pegasos.SVC`, :class:`~pegasos.SVR`) too, where kernel values are computed for blocks of rows at a time.

    Parameters
    ----------
    shrinking : bool, default=True
        Leave rows out for a while whose variables have settled. Changes nothing with kernels, where such rows cost
        nothing.
    sampling : {"auto", "streams", "permutation", "fixed", "iid", "chunked"}, default="auto"
        The order of the rows in an epoch; as for :class:`Pegasos`.
    blocks : int or None, default=None
        None: one row after the other. A number (16, say): as many logical blocks ascend side by side and are joined by
        an exact line search; threads share the blocks, and the result is the same for any number of threads. It needs
        several times the epochs, so that it can pay with many cores only, and is used on request only. One output
        only; groups of classes are parallel anyway. Not with kernels, whose threads share the kernel rows.
    precision : {"auto", "double"}, default="auto"
        "auto": one-vs-rest fits of the hinge losses work in single precision, sixteen classes side by side, down to a
        relative gap of 1e-4, and change to double precision for the rest; what they return is the mean of an epoch's
        dual variables, whose weights and certificate are computed in double precision as always. "double": double
        precision throughout, and the last iterate. Says nothing for one output, other losses and kernels, which are
        "double".

    Examples
    --------
    >>> from pegasos import LinearSVC, SDCA
    >>> LinearSVC(solver=SDCA(), lam=0.1).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).certificate_.converged
    True
    """

    shrinking: bool = True
    sampling: Sampling = "auto"
    blocks: int | None = None
    precision: Literal["auto", "double"] = "auto"
    name: ClassVar[str] = "sdca"
    intercepts: ClassVar[tuple[str, ...]] = ("unregularized", "search")

    def __post_init__(self) -> None:
        check_flag(self, "shrinking")
        check_word(self, "sampling", SAMPLINGS)
        check_count(self, "blocks", none=True)
        check_word(self, "precision", ("auto", "double"))

    def numbers_per_weight(self, outputs: int) -> int:
        return super().numbers_per_weight(outputs) + (self.blocks or 0)  # each block has a copy of the weights

    def engine(self, problem: LinearProblem, options: Options) -> LinearEngine:
        blocks = int(self.blocks) if self.blocks is not None and problem.outputs == 1 else 0
        kind = DualBiasSearch if options.intercept == "search" else DualAscentEngine
        return kind(
            problem,
            shrinking=self.shrinking,
            sampling=row_order(self.sampling, problem),
            blocks=blocks,
            seed=options.seed,
            single=self.precision == "auto",
        )
