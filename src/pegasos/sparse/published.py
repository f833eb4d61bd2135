"""Problem 4.1 of Cotter, Shalev-Shwartz & Srebro (ICML 2013), by subgradient descent.

Given a reference g = ⟨w, φ⟩ + b with the rows I = {i : y_i g_i > 0} it gets right, and h_i = min(1, y_i g_i) − y_i b,

    find w̃ with f(w̃) = max_{i ∈ I} h_i − y_i⟨w̃, φ_i⟩ ≤ ε            (f(w) ≤ 0)

f(w̃) ≤ ½ makes the slant loss of w̃, which is the error of sign(⟨w̃, φ⟩ + b + Z) for Z uniform on [−½, ½], at most the
hinge loss of w. From w̃ = 0, a step w̃ += η y_i φ_i on a row with violation v_i = h_i − y_i⟨w̃, φ_i⟩ > ε changes
‖w̃ − w‖² by at most η²K_ii − 2ηv_i: at most −ε²/R² for η = ε/R², R² = max K_ii, and −v_i²/K_ii for Polyak's
η = v_i/K_ii. Either way at most R²‖w‖²/ε² steps, and as many support vectors. Only v_i > ε is used, so a row that is a
support vector already may be preferred: the aggressive variant (§6.1).

With the bias learnt (Appendix D) h_i = min(1, y_i g_i) and f(w̃) = min_b̃ max_I h_i − y_i(⟨w̃, φ_i⟩ + b̃) =
(M₊ + M₋)/2 at b̃ = (M₊ − M₋)/2, M± the greatest h_i ∓ ⟨w̃, φ_i⟩ of each class. The direction is
u = ½(φ_{i₊} − φ_{i₋}), ‖u‖² ≤ R², and a step has up to two new support vectors.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from pegasos.kernels.gram import Provider
from pegasos.rows.views import Array

Step = float | Literal["polyak"]


@dataclass
class Run:
    """A run, step by step.

    ``index`` and ``delta`` are the rows and what was added to their (signed) coefficients; ``end`` says where in these
    each step ends. Of each step: ``bias`` after it, ``violation`` f before it, ``potential`` ‖w̃ − w‖² after it.
    """

    index: list[int] = field(default_factory=list)
    delta: list[float] = field(default_factory=list)
    end: list[int] = field(default_factory=list)
    support: list[int] = field(default_factory=list)
    bias: list[float] = field(default_factory=list)
    violation: list[float] = field(default_factory=list)
    potential: list[float] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    first_bias: float = 0.0
    final_violation: float = -np.inf
    squared_norm: float = 0.0
    iteration_bound: float = 0.0
    support_bound: float = 0.0
    reason: str = ""

    @property
    def iterations(self) -> int:
        """Steps taken."""
        return len(self.end)

    def replay(self, n_support: int, m: int) -> tuple[Array, float]:
        """Coefficients of m rows, and the bias, just before there were more than ``n_support`` support vectors."""
        steps = int(np.searchsorted(self.support, n_support, side="right"))
        coef = np.zeros(m)
        last = self.end[steps - 1] if steps else 0
        np.add.at(coef, self.index[:last], self.delta[:last])
        return coef, self.bias[steps - 1] if steps else self.first_bias


def run(
    rows: Provider,
    sign: Array,
    plain: Array,
    bias: float,
    *,
    squared_norm: float,
    tol: float,
    step: Step,
    aggressive: bool,
    learn: bool,
    max_support: int,
    max_iter: int,
    usable: Array | None = None,
) -> Run:
    """Descend until f ≤ ``tol``, or a limit.

    ``rows`` is a provider of kernel rows, ``plain`` ⟨w, φ_i⟩, and rows that are not ``usable`` (of weight 0) are no
    part of the problem.
    """
    margin = sign * (plain + bias)
    active = margin > 0
    if usable is not None:
        active &= usable
    h = np.minimum(1.0, margin) - (0.0 if learn else sign * bias)
    diagonal = rows.diagonal()
    out = Run(first_bias=bias, squared_norm=squared_norm)
    radius = float(diagonal[active].max(initial=0.0))
    _set_bounds(out, radius, tol, step, learn)
    chooser = _Pairs(h, sign, active) if learn else _Single(h, sign, active)
    s = np.zeros(len(sign))
    chosen = np.zeros(len(sign), dtype=bool)
    norm = inner = 0.0
    while True:
        violation, picked, out_bias = chooser.worst(s, None, bias)
        if not out.end:
            out.first_bias = out_bias
        else:
            out.bias[-1] = out_bias
        out.final_violation = violation
        if violation <= tol:
            out.reason = "f <= tol"
            return out
        if aggressive and out.order:
            held, among, _ = chooser.worst(s, chosen, bias)
            if held > tol:
                violation, picked = held, among
        fresh = [i for i in picked if not chosen[i]]
        if len(out.order) + len(fresh) > max_support:
            out.reason = "max_support"
            return out
        if out.iterations >= max_iter:
            out.reason = "max_iter"
            return out
        index = np.array(picked, dtype=np.int64)
        direction = sign[index] / len(index)
        block = np.asarray(rows.block(index, index), dtype=np.float64)[:, : len(index)]
        length = float(direction @ block @ direction)
        if length <= 1e-12 * max(radius, np.finfo(float).tiny):
            out.reason = "no step helps: two classes at one point"
            return out
        eta = violation / length if step == "polyak" else float(step)
        delta = eta * direction
        norm += float(2 * delta @ s[index] + delta @ block @ delta)
        inner += float(delta @ plain[index])
        rows.add(index, delta, s)
        chosen[index] = True
        out.order += fresh
        out.index += picked
        out.delta += delta.tolist()
        out.end.append(len(out.index))
        out.support.append(len(out.order))
        out.bias.append(out_bias)
        out.violation.append(violation)
        out.potential.append(norm - 2 * inner + squared_norm)


def _set_bounds(out: Run, radius: float, tol: float, step: Step, learn: bool) -> None:
    """T ≤ ‖w‖²/(2ηε − η²R²), which for η = ε/R² and for Polyak's step is R²‖w‖²/ε²."""
    drop = tol**2 / radius if radius > 0 else np.inf
    if step != "polyak":
        drop = 2 * float(step) * tol - float(step) ** 2 * radius
    out.iteration_bound = out.squared_norm / drop if drop > 0 else np.inf
    out.support_bound = (2 if learn else 1) * out.iteration_bound


class _Single:
    """The worst row, for a bias that is kept."""

    def __init__(self, h: Array, sign: Array, active: Array) -> None:
        self.index = np.flatnonzero(active)
        self.h, self.sign = h[active], sign[active]

    def worst(self, s: Array, among: Array | None, bias: float) -> tuple[float, list[int], float]:
        """Violation, row and bias; of the rows ``among`` only."""
        value = self.h - self.sign * s[self.index]
        if among is not None:
            value = np.where(among[self.index], value, -np.inf)
        if not len(value):
            return -np.inf, [], bias
        at = int(np.argmax(value))
        return float(value[at]), [int(self.index[at])], bias


class _Pairs:
    """The worst row of each class, for the bias between them."""

    def __init__(self, h: Array, sign: Array, active: Array) -> None:
        self.plus, self.minus = np.flatnonzero(active & (sign > 0)), np.flatnonzero(active & (sign < 0))
        self.h = h

    def _worst(self, index: Array, value: Array, among: Array | None) -> tuple[float, int]:
        if among is not None:
            value = np.where(among[index], value, -np.inf)
        if not len(value):
            return -np.inf, -1
        at = int(np.argmax(value))
        return float(value[at]), int(index[at])

    def worst(self, s: Array, among: Array | None, bias: float) -> tuple[float, list[int], float]:
        """As above. Rows of one class only are satisfied by the bias."""
        above, i = self._worst(self.plus, self.h[self.plus] - s[self.plus], among)
        below, j = self._worst(self.minus, self.h[self.minus] + s[self.minus], among)
        if i < 0 or j < 0:
            return -np.inf, [], (above if i >= 0 else -below if j >= 0 else bias)
        return (above + below) / 2, [i, j], (above - below) / 2


def slant_loss(margin: Array) -> Array:
    """min(1, max(0, ½ − z)): the chance that a margin z, shifted by Z uniform on [−½, ½], is not above 0."""
    return np.clip(0.5 - margin, 0.0, 1.0)
