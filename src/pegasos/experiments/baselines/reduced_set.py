"""Reduced sets: the reference's w approximated by new points (Burges & Schölkopf 1997)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pegasos.experiments.baselines.basis import Refit, refit
from pegasos.experiments.baselines.task import Expansion, Task, checked_sizes
from pegasos.sparse import reduced as reduced_module
from pegasos.sparse.preimage import as_rows
from pegasos.util.threads import with_one_blas_thread


@with_one_blas_thread
def reduced_set(
    task: Task, sizes: Sequence[int], *, loss: Refit | None = None, C: float | None = None, tol: float = 1e-3
) -> list[Expansion]:
    """Approximate w = Σ α_i φ(x_i) by new points z_j, one at a time, and all coefficients anew after each.

    Each z_j is the preimage of what is left, ψ = w − w̃, by the fixed point of Schölkopf et al. (1999), started at the
    support vector where ⟨ψ, φ(x)⟩² is largest; w̃ is the projection of w on the span of the φ(z_j), so that ‖w − w̃‖²
    falls with every point. The bias is then the one with the least hinge loss.

    Parameters
    ----------
    task : Task
        Rows, labels and reference; the kernel must be "rbf".
    sizes : sequence of int
        Sizes at which the growing set is looked at.
    loss : {"squared_hinge", "hinge"}, default=None
        Ours, beyond the papers: fit coefficients and bias on the found points anew, to the labels of all rows, with
        this loss; on ijcnn1 and w7a much better at every size. None: those of w̃.
    C : float, default=None
        Weight of the losses then; None: the task's.
    tol : float, default=1e-3
        Relative gap of those fits.

    Returns
    -------
    list of Expansion
        One for each size; ``details["distance"]`` is ‖w − w̃‖², ``details["norm"]`` ‖w‖².

    References
    ----------
    C. J. C. Burges and B. Schölkopf, *Improving the accuracy and speed of support vector machines*, NIPS 1997;
    B. Schölkopf et al., *Input space versus feature space in kernel-based methods*, IEEE Trans. Neural Networks 10
    (1999).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from pegasos.experiments import Task, reduced_set
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> small, large = reduced_set(Task(X, y, gamma=1.0), [5, 20])
    >>> large.details["distance"] < small.details["distance"]
    True
    """
    task.needs_rbf("reduced_set")
    C = task.weight(C)
    if loss not in (None, "squared_hinge", "hinge"):
        raise ValueError(f"loss={loss!r} is none of None, 'squared_hinge' and 'hinge'")
    reference = task.expansion
    V, alpha = reference.vectors, reference.coef
    sizes = checked_sizes(sizes, max(1, len(alpha)))
    whole, taken, found = task.basis(sizes[-1]), 0, []  # over all rows, for new coefficients
    responses = reference.decision_function(V) - reference.bias if len(alpha) else np.zeros(0)
    norm = float(alpha @ responses)
    reduced = reduced_module.reduced_set(V, alpha, task.kernel.gamma, V, responses, sizes[-1])
    for size in sizes:
        n = min(size, len(reduced.points))
        details = {"distance": max(0.0, norm - float(reduced.u[:n] @ reduced.u[:n])), "norm": norm}
        if loss is None:
            points, coef = as_rows(reduced.points[:n], V), reduced.coefficients(n)
            bias = task.best_bias(task.on_points("reduced-set", points, coef, 0.0).decision_function(task.X))
        else:
            if n > taken:
                whole.add_points(as_rows(reduced.points[taken:n], V))
            taken = n
            fit = refit(whole, task.y, C, loss, tol)
            points, coef, bias = whole.vectors, whole.coefficients(fit.u), fit.bias
        found.append(task.on_points("reduced-set", points, coef, bias, **details))
        if n < size:
            break
    return found
