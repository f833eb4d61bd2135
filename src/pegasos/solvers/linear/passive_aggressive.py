"""Passive-aggressive steps: for linear machines here, and for sequences in ``solvers/structured/chain_steps.py``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from pegasos.fit.engine import Options
from pegasos.losses import Which
from pegasos.problems.linear import LinearProblem
from pegasos.solvers.base import SAMPLINGS, Sampling, Solver, check_positive, check_word, row_order
from pegasos.solvers.linear.horizon import Horizon
from pegasos.solvers.linear.subgradient import SubgradientEngine
from pegasos.solvers.units import Units
from pegasos.util.digests import LATER

Variant = Literal["PA", "PA-I", "PA-II"]
VARIANTS = ("PA", "PA-I", "PA-II")


def step_limits(variant: str, C: float) -> tuple[float, float]:
    """The largest step, and what is added to ‖gx‖²: the three variants as min(limit, ℓ/(‖gx‖² + added))."""
    return {"PA": (np.inf, 0.0), "PA-I": (float(C), 0.0), "PA-II": (np.inf, 0.5 / float(C))}[variant]


@dataclass(frozen=True)
class PassiveAggressive(Solver):
    """Passive-aggressive steps: a comparison, which minimises no objective. λ has no part in it.

    A row whose loss ℓ is above zero moves the weights by τ g x, just far enough to end the loss where nothing stops it
    (g = −ℓ′; with the Crammer–Singer loss ‖gx‖² = 2‖x‖²). It takes losses made of straight pieces.

        PA     τ = ℓ/‖gx‖²
        PA-I   τ = min(C, ℓ/‖gx‖²)
        PA-II  τ = ℓ/(‖gx‖² + 1/(2C))

    For sequences (:class:`~pegasos.SequenceSVC`) gx is ψ = φ(x, y) − φ(x, ŷ), ŷ the labelling of the largest loss. The
    certificate tells how far the result is from the optimum of the problem with the estimator's λ. Kernel machines:
    :func:`pegasos.experiments.passive_aggressive`. Crammer, Dekel, Keshet, Shalev-Shwartz & Singer (2006).

    Parameters
    ----------
    C : float, default=1.0
        Of PA-I, where it is the largest step, and PA-II. A row's weight multiplies its step.
    sampling : {"auto", "permutation", "fixed", "iid", "chunked"}, default="permutation"
        The order of the rows or sequences in each epoch, as for :class:`Pegasos`.
    variant : {"PA-I", "PA", "PA-II"}, default="PA-I"
        Which of the three; sequences have the first two.
    output : {"auto", "last", "average", "suffix"}, default="auto"
        The last iterate, the mean of all, or of the last half to three quarters of the epochs. "auto": the last of
        linear machines, as published, and the mean of those for sequences.

    Examples
    --------
    >>> from pegasos import LinearSVC, PassiveAggressive, SequenceSVC
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> solver = PassiveAggressive(variant="PA-II", C=10.0)
    >>> LinearSVC(solver=solver, intercept="feature", max_iter=50, tol=1.0, random_state=0).fit(X, y).score(X, y)
    1.0
    >>> X, y = [["a", "b"], ["b", "a"]], [["A", "B"], ["B", "A"]]
    >>> SequenceSVC(solver=PassiveAggressive(C=0.5), max_iter=4, tol=1.0).fit(X, y).predict([["b", "b"]])
    [['B', 'B']]
    """

    C: float = 1.0
    sampling: Sampling = "permutation"
    variant: Variant = field(default="PA-I", metadata=LATER)
    output: Literal["auto", "last", "average", "suffix"] = field(default="auto", metadata=LATER)
    name: ClassVar[str] = "passive_aggressive"
    intercepts: ClassVar[tuple[str, ...]] = ()
    #: Made of straight pieces: a step along the slope ends the loss.
    losses: ClassVar[Which] = Which(lambda loss: loss.piecewise_linear or (loss.kind == "joint" and not loss.smooth))

    def __post_init__(self) -> None:
        check_word(self, "sampling", SAMPLINGS)
        check_word(self, "variant", VARIANTS)
        check_word(self, "output", ("auto", "last", "average", "suffix"))
        check_positive(self, "C")

    def numbers_per_weight(self, outputs: int) -> int:
        return 13 if outputs == 1 else 7

    def engine(self, problem: LinearProblem, options: Options) -> SubgradientEngine:
        return self.engine_with(problem, options, Units(), 0.0)

    def engine_with(
        self, problem: LinearProblem, options: Options, units: Units, t0: float, *, whole: bool = True
    ) -> SubgradientEngine:
        """The same for a stream: steps depend on nothing that came before but the weights."""
        limit, added = step_limits(self.variant, self.C)
        return SubgradientEngine(
            problem,
            output="last" if self.output == "auto" else self.output,
            bias="none",
            seed=options.seed,
            schedule="relaxed" if added else "aggressive",
            rate=added or limit,
            t0=t0,
            bias_start=units.start,
            bias_rate=units.step,
            batch_size=1,
            whole_batches=whole,
            sampling=row_order(self.sampling, problem),
            radius=0.0,
            horizon=Horizon(),
        )
