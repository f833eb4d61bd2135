"""What is proven about the machines of the four papers, as numbers you can compute before and after a fit.

Notation: ``f(w) = (lam/2)‖w‖² + mean loss`` with minimiser ``w*``; step ``t`` uses the rows ``A_t`` and the step size
``1/(lam t)``; ``f(w; A_t)`` is the same objective on those rows only; ``R`` bounds every ``‖x‖`` (a constant feature
``B`` counts: ``R² = max‖x‖² + B²``). Each paper has a file: Pegasos 2011 and 2007, Stratos' notes, and the sparse
machines of 2013; with what they rest on, Kakade and Tewari, and what they leave open, Takáč et al. on batches.

Everything is stated for the hinge loss and holds for any convex loss with ``|ℓ'| ≤ L`` and ``ℓ(0) ≤ 1`` when ``L·R`` is
passed for the radius (2011 paper, Section 5): ``L = 1`` for the hinge, log and epsilon-insensitive losses.

The bounds do not depend on the number of rows, nor on the batch size ``k``: as stated, a larger batch buys nothing.
`minibatch_factor` says what it can buy.
"""

from __future__ import annotations

from pegasos.theory.biases import bias_radius, bias_search_evaluations
from pegasos.theory.gaps import certified_sign_margin, distance_to_optimum
from pegasos.theory.kakade_tewari import objective_bound, online_to_batch
from pegasos.theory.minibatches import minibatch_factor
from pegasos.theory.pegasos_2007 import (
    projected_expectation,
    projected_iterations,
    projected_regret,
    projected_suboptimality,
)
from pegasos.theory.pegasos_2011 import (
    average_regret,
    average_suboptimality,
    batch_suboptimality,
    constant,
    gradient_bound,
    instantaneous_regret,
    iterations,
    projection_radius,
    random_iterate_suboptimality,
    stopping_attempts,
    stopping_time,
)
from pegasos.theory.sparse_2013 import (
    LeastSupportProblem,
    compression_bound,
    least_support,
    least_support_problem,
    sparse_error,
    sparse_kernel_evaluations,
    sparse_sample_size,
    sparse_steps,
    sparsification_evaluations,
    support_error,
)
from pegasos.theory.stratos import regret_of_batches, regret_of_gradients, regret_of_steps

__all__ = [
    "LeastSupportProblem",
    "average_regret",
    "average_suboptimality",
    "batch_suboptimality",
    "bias_radius",
    "bias_search_evaluations",
    "certified_sign_margin",
    "compression_bound",
    "constant",
    "distance_to_optimum",
    "gradient_bound",
    "instantaneous_regret",
    "iterations",
    "least_support",
    "least_support_problem",
    "minibatch_factor",
    "objective_bound",
    "online_to_batch",
    "projected_expectation",
    "projected_iterations",
    "projected_regret",
    "projected_suboptimality",
    "projection_radius",
    "random_iterate_suboptimality",
    "regret_of_batches",
    "regret_of_gradients",
    "regret_of_steps",
    "sparse_error",
    "sparse_kernel_evaluations",
    "sparse_sample_size",
    "sparse_steps",
    "sparsification_evaluations",
    "stopping_attempts",
    "stopping_time",
    "support_error",
]
