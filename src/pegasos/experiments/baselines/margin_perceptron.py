"""The perceptron on the rows that a given machine classifies with a margin: section 3 of the 2013 paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pegasos.experiments.baselines.online import OnlineMachine
from pegasos.experiments.baselines.task import Expansion, Task, checked_sizes, count, positive
from pegasos.kernels.gram import provider
from pegasos.rows.views import Array
from pegasos.util.threads import dot, with_one_blas_thread


@with_one_blas_thread
def margin_perceptron(
    task: Task,
    sizes: Sequence[int],
    *,
    machine: Expansion | None = None,
    margin: float = 0.999,
    epochs: int | None = None,
    random_state: int = 0,
) -> list[Expansion]:
    r"""Ignore the rows that a machine v does not classify with margin 1, and run the perceptron on the others.

    Those, I = {i : y_i⟨v, φ(x_i)⟩ ≥ 1}, v separates with margin 1, so that the perceptron, however often they come
    round, makes at most R²‖v‖² mistakes, R² the largest K(x_i, x_i) of them, and has as many points at most. After a
    pass without a mistake its training error is at most the share of the rows that were ignored, the margin error of v:

    .. math:: \hat L_{0/1}(w) \le \frac1m \sum_i 1[y_i \langle v, \phi(x_i)\rangle < 1].

    So few points suffice wherever some v has a small margin error; but no method finds such a v efficiently, which is
    what the paper's own method is for (:func:`~pegasos.sparsify`).

    A bias b of v counts as the weight of a constant feature of value B, which the perceptron has then, too: its bias is
    B² times the sum of its coefficients. With B² = R|b|/‖v‖, which is the best, the bound is (R‖v‖ + |b|)².

    Parameters
    ----------
    task : Task
        Rows, labels and kernel.
    sizes : sequence of int
        Sizes at which the growing machine is looked at. It may stay smaller.
    machine : Expansion, default=None
        v, with the kernel of the task. None: the task's reference.
    margin : float, default=0.999
        Rows with y_i v(x_i) of at least as much are kept, and the bound is divided by its square. The paper has 1; a
        little less keeps the rows that a fit has put on the margin but for its tolerance.
    epochs : int, default=None
        Passes over the rows that are kept, each in a random order. None: until one makes no mistake.
    random_state : int, default=0
        Seed.

    Returns
    -------
    list of Expansion
        One for each size reached, and the last machine. Its ``details``: ``mistakes`` up to then, the
        ``mistake_bound``, and how many rows were ``kept``.

    References
    ----------
    A. Cotter, S. Shalev-Shwartz and N. Srebro, *Learning optimally sparse support vector machines*, ICML 2013.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from pegasos.experiments import Task, margin_perceptron
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> task = Task(X, y, C=10.0, gamma=1.0)
    >>> last = margin_perceptron(task, [200])[-1]
    >>> last.size < task.expansion.size, last.details["mistakes"] <= last.details["mistake_bound"]
    (True, True)
    """
    sizes, margin = checked_sizes(sizes, task.m), positive("margin", margin)
    if epochs is not None:
        epochs = count("epochs", epochs)
    v = task.expansion if machine is None else machine
    if v.kernel != task.kernel:
        raise ValueError(f"machine has the kernel {v.kernel}, the task has {task.kernel}")
    kept = np.flatnonzero(task.y * v.decision_function(task.X) >= margin)
    if not len(kept):
        raise ValueError(f"machine classifies no row with margin={margin}")
    constant, bound = _bound(task, v, kept, margin)
    found: list[Expansion] = []
    seen: set[int] = set()

    def snapshot(run: OnlineMachine) -> Expansion:
        bias = constant * float(run.coef.sum())
        details = {"mistakes": run.mistakes, "mistake_bound": bound, "kept": len(kept)}
        return task.on_rows("margin-perceptron", run.rows, np.asarray(run.coef), bias, **details)

    def grown(run: OnlineMachine) -> bool:
        seen.add(int(run.rows[-1]))
        if len(seen) < sizes[len(found)]:
            return False
        found.append(snapshot(run))
        return len(found) == len(sizes)

    run, rng = _WithConstant(task, constant, grown), np.random.default_rng(random_state)
    # Rounding may make a row with a score of zero a mistake for ever: no more passes than there can be mistakes.
    passes = int(min(bound, 2.0**31)) + 1 if epochs is None else epochs
    for _ in range(passes):
        before = run.mistakes
        run.run(kept[rng.permutation(len(kept))])
        if len(found) == len(sizes) or (epochs is None and run.mistakes == before):
            break
    if len(found) < len(sizes):
        found.append(snapshot(run))
    return found


def _bound(task: Task, v: Expansion, kept: Array, margin: float) -> tuple[float, float]:
    """The square of the constant feature, and how many mistakes there are at most on the rows ``kept``."""
    square = max(dot(v.coef, v.decision_function(v.vectors) - v.bias), 0.0)
    largest = float(provider(task.X, task.kernel, 0, task.threads).diagonal()[kept].max())
    length, radius = float(np.sqrt(square)), float(np.sqrt(max(largest, 0.0)))
    if v.bias == 0:
        return 0.0, (radius * length / margin) ** 2
    constant = radius * abs(v.bias) / length if radius * length > 0 else 1.0
    return constant, (radius**2 + constant) * (square + v.bias**2 / constant) / margin**2


class _WithConstant(OnlineMachine):
    """A kernel perceptron whose rows have a constant feature, of this square, too."""

    def __init__(self, task: Task, constant: float, on_mistake: Callable[[OnlineMachine], bool]) -> None:
        super().__init__(task, on_mistake=on_mistake)
        self.constant = constant

    def _values(self, a: Array, b: Array) -> Array:
        return np.asarray(super()._values(a, b) + self.constant)
