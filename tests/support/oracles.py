"""Slow, obvious, exact NumPy versions of the algorithms, written from the formulas and independent of the package.

Problem, with row weights c_i ≥ 0, M = Σ c_i and g = −ℓ′ (the "minus-slope"):

    P(w, b) = (λ/2)‖w‖² + (1/M) Σ c_i ℓ_i(⟨w, x_i⟩ + b)
    D(u)    = (1/M) Σ c_i (−ℓ_i*(−u_i)) − (λ/2)‖w(u)‖²,    w(u) = (1/(λM)) Σ c_i u_i x_i

u_i lives in the unit domain of the loss (hinge: u = y·a, a ∈ [0, 1]); an unregularised bias adds Σ c_i u_i = 0.
Vector losses score all K classes at once: w is K × n, z_i ∈ R^K and u_i = e_{y_i} − α_i with α_i in the simplex, so
every formula above holds as written. A loss may be given by name or as an object: `"huber"` or `Huber(delta=0.5)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import entr, expit, logsumexp, softmax, wrightomega

Array = np.ndarray[Any, Any]
FEASIBLE = 1e-12  # rounding allowed at the border of a dual domain


# ---------------------------------------------------------------------------------------------------------------------
# Losses
# ---------------------------------------------------------------------------------------------------------------------


class Scalar:
    """A loss of one score. All but `Log` have −ℓ*(−u) = y·u − ε|u| − κu²/2 on [lo, hi] (classification: y² = 1)."""

    name: ClassVar[str]
    classification: ClassVar[bool]

    @property
    def eps(self) -> float:
        return 0.0

    @property
    def kappa(self) -> float:
        return 0.0

    def value(self, z: Any, y: Any) -> Any:
        raise NotImplementedError

    def slope(self, z: Any, y: Any) -> Any:
        """g = −ℓ′(z), with the kink convention of the class."""
        raise NotImplementedError

    def domain(self, y: Any) -> tuple[Any, Any]:
        """Smallest and largest u with finite ℓ*(−u)."""
        raise NotImplementedError

    def conjugate(self, u: Any, y: Any) -> Any:
        """−ℓ*(−u) = min_z ℓ(z) + u·z; −∞ outside the domain."""
        lo, hi = self.domain(y)
        inside = (u >= lo - FEASIBLE) & (u <= hi + FEASIBLE)
        return np.where(inside, self._conjugate(np.clip(u, lo, hi), y), -np.inf)

    def _conjugate(self, u: Any, y: Any) -> Any:
        return y * u - self.eps * np.abs(u) - self.kappa * u**2 / 2

    def zeros(self, n: int) -> Array:
        return np.zeros(n)


def _classes(y: Any, hi: float) -> tuple[Any, Any]:
    """a = y·u in [0, hi]."""
    y = np.asarray(y, dtype=float)
    return np.where(y > 0, 0.0, -hi), np.where(y > 0, hi, 0.0)


def _interval(y: Any, lo: float, hi: float) -> tuple[Any, Any]:
    y = np.asarray(y, dtype=float)
    return np.full(y.shape, lo), np.full(y.shape, hi)


@dataclass(frozen=True)
class Hinge(Scalar):
    """ℓ = [1 − yz]₊;  g = y·1[yz < 1] (0 at the kink);  −ℓ* = a on [0, 1]."""

    name = "hinge"
    classification = True

    def value(self, z: Any, y: Any) -> Any:
        return np.maximum(0.0, 1 - y * z)

    def slope(self, z: Any, y: Any) -> Any:
        return y * (y * z < 1)

    def domain(self, y: Any) -> tuple[Any, Any]:
        return _classes(y, 1.0)


@dataclass(frozen=True)
class SquaredHinge(Scalar):
    """ℓ = [1 − yz]₊²;  g = 2y[1 − yz]₊;  −ℓ* = a − a²/4 on a ≥ 0."""

    name = "squared_hinge"
    classification = True

    @property
    def kappa(self) -> float:
        return 0.5

    def value(self, z: Any, y: Any) -> Any:
        return np.maximum(0.0, 1 - y * z) ** 2

    def slope(self, z: Any, y: Any) -> Any:
        return 2 * y * np.maximum(0.0, 1 - y * z)

    def domain(self, y: Any) -> tuple[Any, Any]:
        return _classes(y, np.inf)


@dataclass(frozen=True)
class SmoothedHinge(Scalar):
    """ℓ = 0 if yz ≥ 1; 1 − yz − γ/2 if yz ≤ 1 − γ; (1 − yz)²/(2γ) between;  −ℓ* = a − γa²/2 on [0, 1]."""

    gamma: float = 1.0
    name = "smoothed_hinge"
    classification = True

    @property
    def kappa(self) -> float:
        return self.gamma

    def value(self, z: Any, y: Any) -> Any:
        r = 1 - y * z
        return np.where(r <= 0, 0.0, np.where(r >= self.gamma, r - self.gamma / 2, r**2 / (2 * self.gamma)))

    def slope(self, z: Any, y: Any) -> Any:
        return y * np.clip((1 - y * z) / self.gamma, 0, 1)

    def domain(self, y: Any) -> tuple[Any, Any]:
        return _classes(y, 1.0)


@dataclass(frozen=True)
class Log(Scalar):
    """ℓ = ln(1 + e^{−yz});  g = y/(1 + e^{yz});  −ℓ* = −a ln a − (1 − a) ln(1 − a) on [0, 1]."""

    name = "log"
    classification = True

    def value(self, z: Any, y: Any) -> Any:
        return np.logaddexp(0.0, -y * z)

    def slope(self, z: Any, y: Any) -> Any:
        return y * expit(-y * z)

    def domain(self, y: Any) -> tuple[Any, Any]:
        return _classes(y, 1.0)

    def _conjugate(self, u: Any, y: Any) -> Any:
        return entr(y * u) + entr(1 - y * u)

    def hessian(self, z: Any, y: Any) -> Any:
        return expit(z) * expit(-z)


@dataclass(frozen=True)
class EpsilonInsensitive(Scalar):
    """ℓ = [|y − z| − ε]₊;  g = sgn(y − z)·1[|y − z| > ε] (0 at the kinks);  −ℓ* = yu − ε|u| on [−1, 1]."""

    epsilon: float = 0.0
    name = "epsilon_insensitive"
    classification = False

    @property
    def eps(self) -> float:
        return self.epsilon

    def value(self, z: Any, y: Any) -> Any:
        return np.maximum(0.0, np.abs(y - z) - self.epsilon)

    def slope(self, z: Any, y: Any) -> Any:
        return np.sign(y - z) * (np.abs(y - z) > self.epsilon)

    def domain(self, y: Any) -> tuple[Any, Any]:
        return _interval(y, -1.0, 1.0)


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(Scalar):
    """ℓ = [|y − z| − ε]₊²;  g = 2 sgn(y − z)[|y − z| − ε]₊;  −ℓ* = yu − ε|u| − u²/4 on R."""

    epsilon: float = 0.0
    name = "squared_epsilon_insensitive"
    classification = False

    @property
    def eps(self) -> float:
        return self.epsilon

    @property
    def kappa(self) -> float:
        return 0.5

    def value(self, z: Any, y: Any) -> Any:
        return np.maximum(0.0, np.abs(y - z) - self.epsilon) ** 2

    def slope(self, z: Any, y: Any) -> Any:
        return 2 * np.sign(y - z) * np.maximum(0.0, np.abs(y - z) - self.epsilon)

    def domain(self, y: Any) -> tuple[Any, Any]:
        return _interval(y, -np.inf, np.inf)


@dataclass(frozen=True)
class Squared(Scalar):
    """ℓ = ½(y − z)²;  g = y − z;  −ℓ* = yu − u²/2 on R."""

    name = "squared"
    classification = False

    @property
    def kappa(self) -> float:
        return 1.0

    def value(self, z: Any, y: Any) -> Any:
        return (y - z) ** 2 / 2

    def slope(self, z: Any, y: Any) -> Any:
        return y - z

    def domain(self, y: Any) -> tuple[Any, Any]:
        return _interval(y, -np.inf, np.inf)


@dataclass(frozen=True)
class Huber(Scalar):
    """ℓ = ½r² if |r| ≤ δ else δ|r| − δ²/2, r = y − z;  g = clip(r, −δ, δ);  −ℓ* = yu − u²/2 on [−δ, δ]."""

    delta: float = 1.35
    name = "huber"
    classification = False

    @property
    def kappa(self) -> float:
        return 1.0

    def value(self, z: Any, y: Any) -> Any:
        r = np.abs(y - z)
        return np.where(r <= self.delta, r**2 / 2, self.delta * r - self.delta**2 / 2)

    def slope(self, z: Any, y: Any) -> Any:
        return np.clip(y - z, -self.delta, self.delta)

    def domain(self, y: Any) -> tuple[Any, Any]:
        return _interval(y, -self.delta, self.delta)


@dataclass(frozen=True)
class Quantile(Scalar):
    """ℓ = τ r₊ + (1 − τ)(−r)₊, r = y − z;  g = τ if r > 0, τ − 1 if r < 0, 0 at r = 0;  −ℓ* = yu on [τ − 1, τ]."""

    tau: float = 0.5
    name = "quantile"
    classification = False

    def value(self, z: Any, y: Any) -> Any:
        return self.tau * np.maximum(0.0, y - z) + (1 - self.tau) * np.maximum(0.0, z - y)

    def slope(self, z: Any, y: Any) -> Any:
        return self.tau * (y > z) + (self.tau - 1) * (y < z)

    def domain(self, y: Any) -> tuple[Any, Any]:
        return _interval(y, self.tau - 1, self.tau)


class Vector:
    """A loss of K scores; y_i ∈ {0, …, K−1}; u_i = e_{y_i} − α_i, α_i ∈ Δ_K."""

    name: ClassVar[str]
    classes: int

    def value(self, z: Array, y: Any) -> Any:
        raise NotImplementedError

    def slope(self, z: Array, y: Any) -> Array:
        """G = −∇ℓ(z), one row an example."""
        raise NotImplementedError

    def dual_term(self, alpha: Array, y: Any) -> Any:
        """−ℓ*(−u) in terms of α."""
        raise NotImplementedError

    def onehot(self, y: Any) -> Array:
        return np.eye(self.classes)[y]

    def conjugate(self, u: Array, y: Any) -> Any:
        alpha = self.onehot(y) - u
        inside = (alpha.min(-1) >= -FEASIBLE) & (np.abs(alpha.sum(-1) - 1) <= self.classes * FEASIBLE)
        return np.where(inside, self.dual_term(np.clip(alpha, 0, 1), y), -np.inf)

    def zeros(self, n: int) -> Array:
        return np.zeros((self.classes, n))


class CrammerSinger(Vector):
    """ℓ = max_k [δ_y(k) + z_k] − z_y;  G = e_y − e_k̂;  −ℓ* = ⟨α, δ_y⟩.

    `cost[y, k]` = δ_y(k), zero on the diagonal. k̂ is the lowest maximiser, but y itself wherever the loss is zero.
    """

    name = "crammer_singer"

    def __init__(self, cost: Any) -> None:
        """`cost` is K × K, or just K for 1[k ≠ y]."""
        self.cost = 1.0 - np.eye(int(cost)) if np.ndim(cost) == 0 else np.asarray(cost, dtype=float)
        self.classes = len(self.cost)

    def augmented(self, z: Array, y: Any) -> Array:
        """δ_y(k) + z_k − z_y."""
        return self.cost[y] + z - np.take_along_axis(z, np.asarray(y)[..., None], -1)

    def value(self, z: Array, y: Any) -> Any:
        return self.augmented(z, y).max(-1)

    def slope(self, z: Array, y: Any) -> Array:
        a = self.augmented(z, y)
        return self.onehot(y) - self.onehot(np.where(a.max(-1) <= 0, y, a.argmax(-1)))

    def dual_term(self, alpha: Array, y: Any) -> Any:
        return (alpha * self.cost[y]).sum(-1)


class Multinomial(Vector):
    """ℓ = ln Σ_k e^{z_k} − z_y;  G = e_y − softmax(z);  −ℓ* = −Σ α_k ln α_k."""

    name = "multinomial"

    def __init__(self, classes: int) -> None:
        self.classes = classes

    def value(self, z: Array, y: Any) -> Any:
        return logsumexp(z, axis=-1) - np.take_along_axis(z, np.asarray(y)[..., None], -1)[..., 0]

    def slope(self, z: Array, y: Any) -> Array:
        return self.onehot(y) - softmax(z, axis=-1)

    def dual_term(self, alpha: Array, y: Any) -> Any:
        return entr(alpha).sum(-1)

    def hessian(self, z: Array, y: Any) -> Array:
        p = softmax(z, axis=-1)
        return p[..., None] * np.eye(self.classes) - p[..., None] * p[..., None, :]


Loss = Scalar | Vector
SCALAR: dict[str, type[Scalar]] = {
    k.name: k
    for k in (
        Hinge,
        SquaredHinge,
        SmoothedHinge,
        Log,
        EpsilonInsensitive,
        SquaredEpsilonInsensitive,
        Squared,
        Huber,
        Quantile,
    )
}


def as_loss(loss: str | Loss, **params: float) -> Any:
    """A loss object from a name and its parameters; an object passes through."""
    return SCALAR[loss](**params) if isinstance(loss, str) else loss


def toy(
    m: int = 60, n: int = 5, *, kind: str = "binary", classes: int = 3, noise: float = 0.5, seed: int = 0
) -> tuple[Array, Array]:
    """A noisy linear problem, rows of about unit norm: kind "binary" (±1), "real" or "multiclass" (0…classes−1)."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n)) / np.sqrt(n)
    s = X @ rng.standard_normal((n, classes)) + noise * rng.standard_normal((m, classes))
    if kind == "multiclass":
        y = s.argmax(1)
        y[:classes] = np.arange(classes)
        return X, y
    if kind == "real":
        return X, s[:, 0]
    y = np.where(s[:, 0] > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return X, y


# ---------------------------------------------------------------------------------------------------------------------
# Objectives
# ---------------------------------------------------------------------------------------------------------------------


def augment(X: Any, B: float | None) -> Array:
    """X with a last column of B (bias as a regularised weight); X itself for B = None."""
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)
    return X if B is None else np.column_stack([X, np.full(len(X), float(B))])


def weights(m: int, weight: Any = None) -> Array:
    return np.ones(m) if weight is None else np.asarray(weight, dtype=float)


def lam_from_C(C: float, m: int, weight: Any = None) -> float:
    """λ = 1/(C·M), M = Σ c_i."""
    return float(1 / (C * weights(m, weight).sum()))


def dot(g: Array, z: Array) -> Array:
    """⟨g_i, z_i⟩, one number an example, scalar or vector scores."""
    return g * z if g.ndim == 1 else (g * z).sum(-1)


def primal(X: Any, y: Any, w: Any, b: Any = 0.0, *, loss: str | Loss, lam: float, weight: Any = None) -> float:
    """P(w, b) = (λ/2)‖w‖² + (1/M) Σ c_i ℓ_i(⟨w, x_i⟩ + b); b is not penalised."""
    X, w, c = augment(X, None), np.asarray(w, dtype=float), weights(len(y), weight)
    return float(lam / 2 * (w**2).sum() + c @ as_loss(loss).value(X @ w.T + b, y) / c.sum())


def dual_weights(X: Any, u: Any, *, lam: float, weight: Any = None) -> Array:
    """w(u) = (1/(λM)) Σ c_i u_i x_i."""
    X, u = augment(X, None), np.asarray(u, dtype=float)
    c = weights(len(u), weight)
    return (u.T * c) @ X / (lam * c.sum())


def dual(X: Any, y: Any, u: Any, *, loss: str | Loss, lam: float, weight: Any = None) -> float:
    """D(u) = (1/M) Σ c_i (−ℓ_i*(−u_i)) − (λ/2)‖w(u)‖²; −∞ where u is infeasible."""
    u, c = np.asarray(u, dtype=float), weights(len(y), weight)
    term = np.asarray(as_loss(loss).conjugate(u, y))[c > 0]
    return float(c[c > 0] @ term / c.sum() - lam / 2 * (dual_weights(X, u, lam=lam, weight=c) ** 2).sum())


def balance(u: Any, weight: Any = None) -> Array:
    """Scale the heavier sign of u towards 0 until Σ c_i u_i = 0: stays in every domain, which all contain 0."""
    u, c = np.array(u, dtype=float), weights(len(u), weight)
    up, down = c @ np.maximum(u, 0), c @ np.maximum(-u, 0)
    low = min(up, down)
    u[u > 0] *= low / up if up > 0 else 0.0
    u[u < 0] *= low / down if down > 0 else 0.0
    return u


def radius(y: Any, *, loss: str | Loss, lam: float, weight: Any = None) -> float:
    """ρ = sqrt( (1/M) Σ c_i ℓ_i(0) / λ ) ≥ ‖w*‖ for every loss ≥ 0."""
    loss, y, c = as_loss(loss), np.asarray(y), weights(len(y), weight)
    return float(np.sqrt(c @ loss.value(np.zeros((len(y), *loss.zeros(1).shape[:-1])), y) / c.sum() / lam))


# ---------------------------------------------------------------------------------------------------------------------
# Pegasos and its relatives: every iterate, from the printed recursion
# ---------------------------------------------------------------------------------------------------------------------


def epochs(m: int, count: int, seed: int = 0, k: int = 1) -> list[Array]:
    """`count` fresh permutations of the rows, cut into batches of k (the last of an epoch may be shorter)."""
    rng = np.random.default_rng(seed)
    return [p[s : s + k] for p in (rng.permutation(m) for _ in range(count)) for s in range(0, m, k)]


def _batch(A: Any) -> Array:
    return np.atleast_1d(np.asarray(A, dtype=int))


def pegasos(
    X: Any,
    y: Any,
    batches: Iterable[Any],
    *,
    lam: float,
    loss: str | Loss = "hinge",
    weight: Any = None,
    t0: float = 0.0,
    projection: bool = False,
    B: float | None = None,
    omega: Sequence[float] | None = None,
) -> Array:
    """All iterates w_1 = 0, w_2, …, w_{T+1} of textbook Pegasos (Eq. 5, Eq. 8), scalar or vector loss.

    Row r of the answer is w_{r+1}. Batch A_t (an index or several) weighs ω_t (default 1) a row;
    Ω_t = t0 + Σ_{s≤t} ω_s|A_s|:

        w_{t+1} = (1 − ω_t|A_t|/Ω_t) w_t + (ω_t/(λΩ_t)) Σ_{i∈A_t} c̃_i g_i(w_t) x_i,    c̃_i = c_i m/M,

    which is (1 − 1/t) w_t + (1/(λtk)) Σ g x for equal batches and t0 = 0; then optionally w ← min{1, ρ/‖w‖} w.
    """
    loss, X, y = as_loss(loss), augment(X, B), np.asarray(y)
    c = weights(len(y), weight)
    c = c * len(y) / c.sum()
    rho = radius(y, loss=loss, lam=lam, weight=weight)
    w, total = loss.zeros(X.shape[1]), t0
    out = [w]
    for t, A in enumerate(map(_batch, batches)):
        om = 1.0 if omega is None else omega[t]
        total += om * len(A)
        g = loss.slope(X[A] @ w.T, y[A])
        w = (1 - om * len(A) / total) * w + om / (lam * total) * (g.T * c[A]) @ X[A]
        if projection:
            w = w * _shrink(w, rho)
        out.append(w)
    return np.array(out)


def _shrink(w: Array, rho: float) -> float:
    norm = float(np.sqrt((w**2).sum()))
    return min(1.0, rho / norm) if norm > 0 else 1.0


class Sums(NamedTuple):
    """dual = offset − (λ/2)‖w‖², offset = S/Ω, w = v/(λΩ)."""

    dual: float
    offset: float
    w: Array


def free_certificate(
    X: Any,
    y: Any,
    batches: Iterable[Any],
    iterates: Array,
    *,
    lam: float,
    loss: str | Loss = "hinge",
    weight: Any = None,
    t0: float = 0.0,
    projection: bool = False,
    B: float | None = None,
    omega: Sequence[float] | None = None,
    start: int | None = None,
) -> Sums:
    """D_free = S/Ω − (λ/2)‖v/(λΩ)‖² of a run of `pegasos`, S = Σ ω_s c̃ (ℓ_s + g_s z_s), v = Σ ω_s c̃ g_s x_s.

    `start=None`: the whole history, Ω = t0 + Σ ω. `start=h`: the window of steps h+1…T, Ω counts its own rows only.
    A projection by the factor π shrinks the weights of all earlier steps: S and v are multiplied by π.
    This is the raw formula: whether it bounds P* is the caller's question (whole epochs: yes).
    """
    loss, X, y = as_loss(loss), augment(X, B), np.asarray(y)
    c = weights(len(y), weight)
    c = c * len(y) / c.sum()
    rho = radius(y, loss=loss, lam=lam, weight=weight)
    S, v, seen, total = 0.0, loss.zeros(X.shape[1]), 0.0 if start is not None else t0, t0
    for t, A in enumerate(map(_batch, batches)):
        om, w = 1.0 if omega is None else omega[t], iterates[t]
        z = X[A] @ w.T
        g = loss.slope(z, y[A])
        step = (g.T * c[A]) @ X[A]
        total += om * len(A)
        if start is None or t >= start:
            S += om * c[A] @ (loss.value(z, y[A]) + dot(g, z))
            v = v + om * step
            seen += om * len(A)
        if projection:
            pi = _shrink((1 - om * len(A) / total) * w + om / (lam * total) * step, rho)
            S, v = S * pi, v * pi
    w = v / (lam * seen)
    return Sums(float(S / seen - lam / 2 * (w**2).sum()), float(S / seen), w)


def scaled_certificate(offset: float, w: Array, *, lam: float, s_max: float) -> float:
    """max over 0 ≤ s ≤ s_max of D(s) = s·offset − s²(λ/2)‖w‖²: the repair for partial epochs and iid sampling.

    s_max = Ω/(m·max_i W_i), where W_i is the weight row i was visited with: T/(m⌈T/m⌉) for a partial epoch.
    """
    q = lam * float((w**2).sum())
    s = min(s_max, max(offset, 0.0) / q) if q > 0 else s_max
    return s * offset - s**2 * q / 2


def regret_identity(
    X: Any, y: Any, batches: Iterable[Any], *, lam: float, loss: str | Loss = "hinge", weight: Any = None
) -> tuple[float, float]:
    """Both sides of the exact identity (any sampling of equal batches, t0 = 0, no projection), ∇_s ∈ ∂f_s(w_s):

    S/Ω − (λ/2)‖w_{T+1}‖²  =  (1/T) Σ_s f_s(w_s) − (1/(2λT)) Σ_s ‖∇_s‖²/s,   f_s = (λ/2)‖w‖² + mean_{A_s} c̃ℓ.
    """
    loss, X, y, batches = as_loss(loss), augment(X, None), np.asarray(y), [_batch(A) for A in batches]
    c = weights(len(y), weight)
    c = c * len(y) / c.sum()
    W = pegasos(X, y, batches, lam=lam, loss=loss, weight=weight)
    left = free_certificate(X, y, batches, W, lam=lam, loss=loss, weight=weight).dual
    right = 0.0
    for s, (A, w) in enumerate(zip(batches, W[:-1], strict=True), start=1):
        z = X[A] @ w.T
        f = lam / 2 * (w**2).sum() + np.mean(c[A] * loss.value(z, y[A]))
        grad = lam * w - (loss.slope(z, y[A]).T * c[A]) @ X[A] / len(A)
        right += f - (grad**2).sum() / (2 * lam * s)
    return left, float(right / len(batches))


def norma(
    X: Any, y: Any, order: Iterable[int], *, lam: float, p: float = 0.5**0.5, loss: str | Loss = "hinge"
) -> Array:
    """All iterates of NORMA: η_t = p/(λ√t), w ← (1 − ηλ)w + η g x."""
    order = list(order)
    return _sgd(X, y, order, [p / (lam * np.sqrt(t)) for t in range(1, len(order) + 1)], lam, loss)


def sgd(X: Any, y: Any, order: Iterable[int], *, lam: float, eta: float, loss: str | Loss = "hinge") -> Array:
    """All iterates of SGD with a constant step (Zhang): w ← (1 − ηλ)w + η g x."""
    order = list(order)
    return _sgd(X, y, order, [eta] * len(order), lam, loss)


def _sgd(X: Any, y: Any, order: Sequence[int], etas: Sequence[float], lam: float, loss: str | Loss) -> Array:
    loss, X, y = as_loss(loss), augment(X, None), np.asarray(y)
    out = [loss.zeros(X.shape[1])]
    for i, eta in zip(order, etas, strict=True):
        g = loss.slope(X[[i]] @ out[-1].T, y[[i]])
        out.append((1 - eta * lam) * out[-1] + eta * g.T @ X[[i]])
    return np.array(out)


def averaging_weights(T: int, kind: str = "uniform") -> Array:
    """q_1…q_T, summing to 1: uniform, linear (q_t ∝ t), or suffix (uniform over t > T/2)."""
    t = np.arange(1, T + 1)
    q = {"uniform": np.ones(T), "linear": t.astype(float), "suffix": (t > T / 2).astype(float)}[kind]
    return q / q.sum()


def average(iterates: Array, kind: str | Sequence[float] = "uniform") -> Array:
    """Σ q_t w_t over the given iterates (pass W[:-1] for w_1…w_T, the paper's w̄)."""
    q = averaging_weights(len(iterates), kind) if isinstance(kind, str) else np.asarray(kind, dtype=float)
    return np.tensordot(q, iterates, axes=1)


def lazy_average(increments: Array, scales: Sequence[float], q: Sequence[float]) -> Array:
    """Σ_t q_t w_t without touching all of w each step, w_t = scale_t · Σ_{s<t} d_s (d_s is added after step s).

    C_t = Σ_{j≤t} q_j scale_j;  u += d_t·C_t at each add;  Σ q_t w_t = C_T v − u.
    """
    v, u, C = np.zeros(increments.shape[1:]), np.zeros(increments.shape[1:]), 0.0
    for d, a, qt in zip(increments, scales, q, strict=True):
        C += qt * a
        u = u + d * C
        v = v + d
    return C * v - u


# ---------------------------------------------------------------------------------------------------------------------
# Dual coordinate ascent
# ---------------------------------------------------------------------------------------------------------------------


def step_objective(loss: str | Loss, u: Any, u0: Any, z: Any, y: Any, q: float) -> float:
    """What a coordinate step maximises: −ℓ*(−u) − ⟨z, u − u₀⟩ − (q/2)‖u − u₀‖²,  q_i = c_i‖x_i‖²/(λM)."""
    d = np.asarray(u, dtype=float) - u0
    return float(as_loss(loss).conjugate(np.asarray(u, dtype=float), y) - np.sum(z * d) - q / 2 * np.sum(d**2))


def _bracket(loss: Scalar, u0: float, z: float, y: float, q: float) -> tuple[float, float]:
    """h(u) = u − g(z + q(u − u₀)) rises with slope ≥ 1, so its root, the maximiser, is within |h(u₀)| of u₀."""
    reach = abs(u0 - float(loss.slope(z, y)))
    lo, hi = loss.domain(y)
    return max(float(lo), u0 - reach), min(float(hi), u0 + reach)


def brute_step(loss: str | Loss, u0: float, z: float, y: float, q: float) -> float:
    """The coordinate step of a scalar loss from values of the objective alone (scipy, good to about 1e-7)."""
    loss = as_loss(loss)
    lo, hi = _bracket(loss, u0, z, y, q)
    if hi - lo < 1e-12:
        return (lo + hi) / 2
    r = minimize_scalar(
        lambda u: -step_objective(loss, u, u0, z, y, q), bounds=(lo, hi), method="bounded", options={"xatol": 1e-12}
    )
    return float(max((lo, hi, r.x), key=lambda u: step_objective(loss, u, u0, z, y, q)))


def exact_step(loss: str | Loss, u0: Any, z: Any, y: Any, q: float) -> Any:
    """The coordinate step to rounding: bisection on u = g(z + q(u − u₀)) (scalar losses; no conjugate involved),
    enumeration of supports (Crammer–Singer), nested bisection (multinomial). q = 0 gives u = g(z)."""
    loss = as_loss(loss)
    if isinstance(loss, Vector):
        e = loss.onehot(y)
        step = crammer_singer_step if isinstance(loss, CrammerSinger) else multinomial_step
        return e - step(loss, e - u0, z, y, q)
    lo, hi = _bracket(loss, u0, z, y, q)
    return bisect(lambda u: u - float(loss.slope(z + q * (u - u0), y)), lo, hi)


def bisect(rising: Any, lo: float, hi: float) -> float:
    """Where a rising function (jumps allowed) crosses 0 in [lo, hi], to the last bit."""
    while lo < (mid := (lo + hi) / 2) < hi:
        if rising(mid) < 0:
            lo = mid
        else:
            hi = mid
    return hi if abs(rising(hi)) <= abs(rising(lo)) else lo


def crammer_singer_step(loss: CrammerSinger, alpha0: Array, z: Array, y: int, q: float) -> Array:
    """max over α ∈ Δ of ⟨α, δ_y + z⟩ − (q/2)‖α − α₀‖²: try every support, keep the best feasible point."""
    gain, K = loss.cost[y] + z, loss.classes
    if q == 0:
        return loss.onehot(int(np.argmax(gain)))
    target = alpha0 + gain / q  # the maximiser is the projection of this onto the simplex
    best, best_value = alpha0, -np.inf
    for size in range(1, K + 1):
        for support in map(list, combinations(range(K), size)):
            alpha = np.zeros(K)
            alpha[support] = target[support] + (1 - target[support].sum()) / size
            value = alpha @ gain - q / 2 * ((alpha - alpha0) ** 2).sum()
            if alpha.min() >= 0 and value > best_value:
                best, best_value = alpha, value
    return best


def multinomial_step(loss: Multinomial, alpha0: Array, z: Array, y: int, q: float) -> Array:
    """max over α ∈ Δ of H(α) + ⟨z, α⟩ − (q/2)‖α − α₀‖²:  ln α_k + qα_k = z_k + qα₀_k − μ, Σ α_k = 1.

    With ω + ln ω = x (Wright's ω), α_k = ω(z_k + qα₀_k − μ + ln q)/q.
    """
    r = z + q * alpha0
    if q == 0:
        return softmax(r)
    # μ = max r − q makes the largest α equal 1; μ = max r + ln K makes every α ≤ 1/K
    mu = bisect(lambda s: 1 - (wrightomega(r - s + np.log(q)) / q).sum(), r.max() - q, r.max() + np.log(len(r)))
    alpha = wrightomega(r - mu + np.log(q)) / q
    return alpha / alpha.sum()


def dual_epoch(
    X: Any,
    y: Any,
    u: Any,
    order: Iterable[int],
    *,
    lam: float,
    loss: str | Loss,
    weight: Any = None,
    B: float | None = None,
) -> Array:
    """One pass of exact dual coordinate ascent in the given order; w(u) is recomputed from u at every step."""
    loss, X, y = as_loss(loss), augment(X, B), np.asarray(y)
    c, u = weights(len(y), weight), np.array(u, dtype=float)
    for i in order:
        w = dual_weights(X, u, lam=lam, weight=c)
        u[i] = exact_step(loss, u[i], X[i] @ w.T, y[i], c[i] * (X[i] @ X[i]) / (lam * c.sum()))
    return u


# ---------------------------------------------------------------------------------------------------------------------
# Kernel machines, row by row
# ---------------------------------------------------------------------------------------------------------------------


def kernel_counts(K: Array, y: Array, order: Iterable[int], *, lam: float) -> Array:
    """How often each row is chosen and violated: kernel Pegasos as printed (2011, section 4), hinge loss.

    Step t counts row i up if y_i/(λ(t−1)) Σ_j α_j y_j K(x_j, x_i) < 1; at t = 1 the sum is empty and it does. (Some
    print 1/(λt) there, which is not the iterate w_t.)
    """
    alpha = np.zeros(len(y), dtype=int)
    for t, i in enumerate(order, start=1):
        if t == 1 or y[i] / (lam * (t - 1)) * ((alpha * y) @ K[:, i]) < 1:
            alpha[i] += 1
    return alpha


def kernel_pegasos(
    K: Array,
    y: Array,
    batches: Iterable[Any],
    *,
    lam: float,
    loss: str | Loss,
    weight: Any = None,
    t0: float = 0.0,
    projection: bool = False,
) -> Array:
    """The coefficients of all iterates w_1 = 0, w_2, … = Σ_i coef_i φ(x_i): the recursion of ``pegasos`` on K alone."""
    loss, c = as_loss(loss), weights(len(y), weight)
    rho, c = radius(y, loss=loss, lam=lam, weight=weight), c * len(y) / c.sum()
    coef, total = np.zeros(len(y)), t0
    out = [coef]
    for A in map(_batch, batches):
        total += len(A)
        g = loss.slope(K[A] @ coef, y[A])
        coef = (1 - len(A) / total) * coef
        np.add.at(coef, A, c[A] * g / (lam * total))
        norm = np.sqrt(max(coef @ K @ coef, 0.0))
        if projection and norm > rho:
            coef = coef * (rho / norm)
        out.append(coef)
    return np.array(out)


def kernel_dual_epoch(
    K: Array, y: Array, u: Array, order: Iterable[int], *, lam: float, loss: str | Loss, weight: Any = None
) -> Array:
    """One pass of exact dual coordinate ascent on K alone."""
    loss, c, u = as_loss(loss), weights(len(y), weight), np.array(u, dtype=float)
    share = c / (lam * c.sum())
    for i in order:
        u[i] = exact_step(loss, u[i], K[i] @ (share * u), y[i], share[i] * K[i, i])
    return u


# ---------------------------------------------------------------------------------------------------------------------
# Cutting planes, exact bias
# ---------------------------------------------------------------------------------------------------------------------


def cutting_plane(
    X: Any, y: Any, *, lam: float, loss: str | Loss = "hinge", weight: Any = None, tol: float = 1e-6, planes: int = 200
) -> tuple[Array, float, float]:
    """(w, P, D): 1-slack cutting planes (SVM-Perf, BMRM). Plane j: L(w) ≥ b_j + ⟨a_j, w⟩,
    a = −(1/M)Σ c g x, b = (1/M)Σ c(ℓ + gz); master dual max Σα_j b_j − (1/2λ)‖Σα_j a_j‖² over the simplex,
    w = −Σα_j a_j/λ.
    """
    loss, X, y = as_loss(loss), augment(X, None), np.asarray(y)
    c = weights(len(y), weight)
    w, normals, offsets = loss.zeros(X.shape[1]), [], []
    alpha, best_P, best_w, D = np.zeros(0), np.inf, w, -np.inf
    for _ in range(planes):
        z = X @ w.T
        g = loss.slope(z, y)
        P = primal(X, y, w, loss=loss, lam=lam, weight=c)
        if best_P > P:
            best_P, best_w = P, w
        if best_P - D <= tol * best_P:
            break
        normals.append(-(g.T * c) @ X / c.sum())
        offsets.append(c @ (loss.value(z, y) + dot(g, z)) / c.sum())
        a, b = np.array([v.ravel() for v in normals]), np.array(offsets)
        Q = a @ a.T / lam
        alpha = np.append(alpha, 1.0 if not alpha.size else 0.0)
        r = minimize(
            lambda s, Q=Q, b=b: s @ Q @ s / 2 - s @ b,
            alpha,
            jac=lambda s, Q=Q, b=b: Q @ s - b,
            bounds=[(0, 1)] * len(b),
            constraints={"type": "eq", "fun": lambda s: s.sum() - 1, "jac": np.ones_like},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        alpha = np.clip(r.x, 0, 1) / np.clip(r.x, 0, 1).sum()
        D = max(D, float(alpha @ b - alpha @ Q @ alpha / 2))
        w = -np.tensordot(alpha, np.array(normals), axes=1) / lam
    return best_w, float(best_P), D


class BoxPoint(NamedTuple):
    """A point of the interior point method: weights β, dual variables 0 < a < h, multipliers z of a ≥ 0 and v of a ≤ h.

    Arrays of boxes are (boxes × rows).
    """

    beta: Array
    a: Array
    z: Array
    v: Array


def central_point(A: Array, h: Array, s: Array, p: Array, beta: Array, nearness: float) -> BoxPoint:
    """Where s∘(Aβ) − p − z + v = 0 and az = (h − a)v = μ, with μ of ``nearness`` times the mean of h|s∘(Aβ) − p|."""
    r = s * (A @ beta) - p
    mu = nearness * np.mean(h * np.abs(r))
    a = np.empty_like(h)
    for k in np.ndindex(h.shape):
        a[k] = bisect(lambda x, k=k: mu / (h[k] - x) - mu / x + r[k], 0.0, h[k])
    return BoxPoint(beta, a, mu / a, mu / (h - a))


def box_step(A: Array, R: Array, h: Array, s: Array, p: Array, at: BoxPoint) -> BoxPoint:
    """A predictor-corrector step (Mehrotra 1992) with one centrality corrector (Gondzio 1996), on the whole system

    s∘(Aβ) − p − z + v = 0,   Rβ = Aᵀ(s∘a),   az = lower,   (h − a)v = upper

    linearised at a point, in all of its unknowns at once.
    """
    beta, a, z, v = at
    t, n, N, rows = h - a, len(beta), h.size, np.tile(np.arange(h.shape[1]), len(h))
    S = s.ravel()[:, None] * A[rows]
    eye, none = np.eye(N), np.zeros((N, N))
    K = np.block(
        [
            [S, none, -eye, eye],
            [np.diag(R), -S.T, np.zeros((n, 2 * N))],
            [np.zeros((N, n)), np.diag(z.ravel()), np.diag(a.ravel()), none],
            [np.zeros((N, n)), np.diag(-v.ravel()), none, np.diag(t.ravel())],
        ]
    )

    def direction(lower: Array, upper: Array) -> tuple[BoxPoint, float]:
        """What adds so much to the products az and tv, to first order, and the longest step that stays inside."""
        first = (p + z - v).ravel() - S @ beta
        x = np.linalg.solve(K, np.concatenate([first, S.T @ a.ravel() - R * beta, lower.ravel(), upper.ravel()]))
        d_beta, da, dz, dv = np.split(x, [n, n + N, n + 2 * N])
        d = BoxPoint(d_beta, *(change.reshape(h.shape) for change in (da, dz, dv)))
        shares = np.concatenate([-d.a / a, d.a / t, -d.z / z, -d.v / v])
        return d, 1 / max(1.0, shares.max())

    def products(d: BoxPoint, step: float) -> tuple[Array, Array]:
        return (a + step * d.a) * (z + step * d.z), (t - step * d.a) * (v + step * d.v)

    gap = np.sum(a * z + t * v)
    mu = gap / (2 * N)
    predictor, far = direction(-a * z, -t * v)
    target = mu * max(np.mean(products(predictor, far)) / mu, 1e-5) ** 3
    lower, upper = target - a * z - predictor.a * predictor.z, target - t * v + predictor.a * predictor.v
    best, far = direction(lower, upper)
    if far <= 0.9:
        pulls = [
            np.maximum(np.clip(q, 0.1 * target, 10 * target) - q, -10 * target)
            for q in products(best, min(1.0, 1.08 * far + 0.1))
        ]
        other, farther = direction(lower + pulls[0], upper + pulls[1])
        if farther >= far + 0.01:
            best, far = other, farther
    losses = [np.sum(h * np.maximum(p - s * score, 0)) for score in (A @ beta, 0 * h[0])]
    relative = gap / (0.5 * R @ beta**2 + losses[0] + 1e-3 * losses[1])
    step = far * min(max(0.995, 1 - relative), 1 - 1e-6)
    return BoxPoint(*(x + step * d for x, d in zip(at, best, strict=True)))


def hinge_bias_interval(scores: Any, y: Any, weight: Any = None) -> tuple[float, float]:
    """All minimisers [lo, hi] of Σ c_i [1 − y_i(s_i + b)]₊: slope −C₊ at −∞, rising by c_i at β_i = y_i − s_i."""
    y, c = np.asarray(y, dtype=float), weights(len(y), weight)
    keep = c > 0
    beta, c, y = (y - np.asarray(scores))[keep], c[keep], y[keep]
    order = np.argsort(beta, kind="stable")
    beta, slope = beta[order], np.cumsum(c[order]) - c[y > 0].sum()  # slope just after each β
    slope[np.abs(slope) <= 1e-12 * c.sum()] = 0.0
    before = np.concatenate([[-c[y > 0].sum()], slope[:-1]])
    lo = -np.inf if before[0] == 0 else float(beta[np.argmax(slope >= 0)])
    hi = np.inf if slope[-1] == 0 else float(beta[np.argmax(slope > 0)])
    return lo, hi


def hinge_bias(scores: Any, y: Any, weight: Any = None, previous: float = 0.0) -> float:
    """Midpoint of the optimal interval; one class only: the point of the half-line nearest to `previous`."""
    lo, hi = hinge_bias_interval(scores, y, weight)
    return (lo + hi) / 2 if np.isfinite(lo) and np.isfinite(hi) else float(np.clip(previous, lo, hi))


def best_bias(scores: Any, y: Any, *, loss: str | Scalar, weight: Any = None) -> float:
    """A minimiser of Σ c_i ℓ_i(s_i + b), any scalar loss: midpoint of the zeros of the slope −Σ c_i g_i(s_i + b)."""
    loss, s, y, c = as_loss(loss), np.asarray(scores, dtype=float), np.asarray(y), weights(len(y), weight)

    def slope(b: float) -> float:
        d = -float(c @ loss.slope(s + b, y))
        return 0.0 if abs(d) <= 1e-14 * c.sum() else d

    reach = 1.0
    while slope(-reach) > 0 or slope(reach) < 0:
        reach *= 2
        if reach > 1e8:
            raise ValueError("no finite bias: one class only?")
    lo = bisect(lambda b: -1.0 if slope(b) < 0 else 1.0, -reach, reach)
    hi = bisect(lambda b: 1.0 if slope(b) > 0 else -1.0, -reach, reach)
    return min(
        (lo, hi, (lo + hi) / 2), key=lambda b: (round(float(c @ loss.value(s + b, y)), 15), abs(b - (lo + hi) / 2))
    )


# ---------------------------------------------------------------------------------------------------------------------
# Kernel machines
# ---------------------------------------------------------------------------------------------------------------------


def lasvm(K: Array, y: Array, C: Array, order: Iterable[int], tau: float) -> tuple[Array, list[int]]:
    """LASVM's online passes (Bordes et al. 2005): signed α between 0 and C_i y_i, and the set S."""
    A, B = np.minimum(0, C * y), np.maximum(0, C * y)
    alpha, S = np.zeros(len(y)), []

    def gradient(s: int) -> float:
        return float(y[s] - alpha @ K[s])

    def extreme(sign: int, able: list[int]) -> int | None:  # the first that is best up to rounding
        best = max((sign * gradient(s) for s in able), default=0.0)
        return next((s for s in able if sign * gradient(s) > best - 1e-11), None)

    def highest() -> int | None:
        return extreme(1, [s for s in S if alpha[s] < B[s]])

    def lowest() -> int | None:
        return extreme(-1, [s for s in S if alpha[s] > A[s]])

    def step(i: int | None, j: int | None) -> bool:
        if i is None or j is None or gradient(i) - gradient(j) <= tau:
            return False
        d = (gradient(i) - gradient(j)) / (K[i, i] + K[j, j] - 2 * K[i, j])
        d = min(d, B[i] - alpha[i], alpha[j] - A[j])
        alpha[i], alpha[j] = alpha[i] + d, alpha[j] - d
        for s in (i, j):  # exactly at its bound, or not
            alpha[s] = B[s] if abs(alpha[s] - B[s]) < 1e-14 else A[s] if abs(alpha[s] - A[s]) < 1e-14 else alpha[s]
        return True

    for k in order:
        if k not in S:  # PROCESS
            S.append(k)
            step(k, lowest()) if y[k] > 0 else step(highest(), k)
        if step(highest(), lowest()):  # REPROCESS
            i, j = highest(), lowest()
            if i is not None and j is not None:
                top, bottom = gradient(i), gradient(j)
                gone = [s for s in S if alpha[s] == 0 and (gradient(s) <= bottom if y[s] > 0 else gradient(s) >= top)]
                S[:] = [s for s in S if s not in gone]
    return alpha, S


def slack_level(margins: Array, weight: Array, volume: float) -> float:
    """γ with Σ c_i (γ − m_i)₊ = V: the first γ_k = (V + Σ_{i ≤ k} c_i m_i)/Σ_{i ≤ k} c_i not above the next margin."""
    order = np.argsort(margins)
    m, c = margins[order], weight[order]
    for k in range(1, len(m) + 1):
        gamma = (volume + c[:k] @ m[:k]) / c[:k].sum()
        if k == len(m) or gamma <= m[k]:
            return float(gamma)
    raise AssertionError


def best_slack_level(margins: Array, y: Array, weight: Array, volume: float) -> tuple[float, float]:
    """max_b of the level of m + y b, which is concave in b, and a maximiser: golden section."""
    reach = 1.0 + np.abs(margins).max() + volume / min(weight[y > 0].sum(), weight[y < 0].sum())
    lo, hi, ratio = -2 * reach, 2 * reach, (np.sqrt(5) - 1) / 2
    for _ in range(120):
        left, right = hi - ratio * (hi - lo), lo + ratio * (hi - lo)
        if slack_level(margins + y * left, weight, volume) < slack_level(margins + y * right, weight, volume):
            lo = left
        else:
            hi = right
    b = (lo + hi) / 2
    return slack_level(margins + y * b, weight, volume), float(b)


def batch_perceptron(K: Array, y: Array, *, nu: float, draws: Iterable[Sequence[float]]) -> Array:
    """α ≥ 0 after a step for each pair of numbers between 0 and 1; rows of weight one, unregularised bias.

    The best levels of the two classes have equally many rows k under them: the fewest whose (k + 1)st rows the slack
    cannot lift all rows to in both classes.
    """
    alpha, Q = np.zeros(len(y)), np.outer(y, y) * K
    sides = [np.flatnonzero(y == sign) for sign in (1, -1)]
    for t, draw in enumerate(draws, start=1):
        margins = Q @ alpha
        ordered = [side[np.argsort(margins[side], kind="stable")] for side in sides]
        for k in range(1, min(map(len, sides)) + 1):
            heights = [np.append(margins[rows], np.inf) for rows in ordered]
            if sum((h[k] - h[:k]).sum() for h in heights) >= len(y) * nu:
                break
        eta = 1 / np.sqrt(t * K.diagonal().max())
        for rows, at in zip(ordered, draw, strict=True):
            alpha[rows[int(at * k)]] += eta / 2
        alpha /= max(1.0, float(np.sqrt(alpha @ Q @ alpha)))
    return alpha


# ---------------------------------------------------------------------------------------------------------------------
# The optimum, independently
# ---------------------------------------------------------------------------------------------------------------------


class Optimum(NamedTuple):
    """dual ≤ P* ≤ primal, with the points that give them. `b` is 0.0 without a bias; `u` is in the unit domain."""

    primal: float
    dual: float
    w: Array
    b: Any
    u: Array

    @property
    def gap(self) -> float:
        return self.primal - self.dual


def optimum(
    X: Any,
    y: Any,
    *,
    loss: str | Loss,
    lam: float,
    weight: Any = None,
    bias: str = "none",
    B: float = 1.0,
    tol: float = 1e-8,
) -> Optimum:
    """P* to a proven relative accuracy `tol`: QP on the dual, or Newton on the primal for the two log-losses.

    bias: "none"; "feature" (a column of B, penalised: w is returned without it, b = B·w_last, and `primal` includes
    (λ/2)(b/B)²); "unregularized". Raises AssertionError when P − D > tol·P: a failed oracle must not pass for a result.
    """
    loss, y, c = as_loss(loss), np.asarray(y), weights(len(y), weight)
    free = bias == "unregularized"
    Z = augment(X, B if bias == "feature" else None)
    solve = _newton if hasattr(loss, "hessian") else _vector_qp if isinstance(loss, Vector) else _scalar_qp
    w, b, u = solve(Z, y, loss, lam, c, free)
    if free and isinstance(loss, Scalar):
        u = balance(u, c)
        b = best_bias(Z @ w, y, loss=loss, weight=c)
    if free:
        residual = float(np.abs(c @ u).max() / c.sum())
        assert residual * (1 + np.abs(b).max()) < 1e-9, f"dual point leaves the bias constraint by {residual:.1e}"
    P = primal(Z, y, w, b, loss=loss, lam=lam, weight=c)
    D = dual(Z, y, u, loss=loss, lam=lam, weight=c)
    assert -1e-10 * abs(P) - 1e-14 <= P - D <= tol * abs(P) + 1e-14, f"oracle failed: P={P!r} D={D!r}"
    if bias == "feature":
        w, b = w[..., :-1], B * w[..., -1]
    return Optimum(P, D, w, b, u)


def _clarabel(
    P: Array, q: Array, equal: Array, equal_to: Array, below: Array, below_of: Array, tol: float
) -> tuple[Array, Array]:
    """min ½xᵀPx + qᵀx s.t. equal·x = equal_to, below·x ≤ below_of; x and the multipliers of the equalities."""
    import clarabel
    from scipy.sparse import csc_matrix, vstack

    s = clarabel.DefaultSettings()
    s.verbose = False
    s.max_iter = 500
    s.tol_gap_abs = s.tol_gap_rel = s.tol_feas = tol
    cones = [clarabel.ZeroConeT(len(equal_to)), clarabel.NonnegativeConeT(len(below_of))]
    A = csc_matrix(vstack([csc_matrix(equal), csc_matrix(below)]))
    r = clarabel.DefaultSolver(csc_matrix(np.triu(P)), q, A, np.concatenate([equal_to, below_of]), cones, s).solve()
    return np.array(r.x), np.array(r.z)[: len(equal_to)]


def _scalar_qp(X: Array, y: Array, loss: Scalar, lam: float, c: Array, free: bool) -> tuple[Array, Any, Array]:
    """max Σ (y_i β_i − ε|β_i| − (κ/2C_i)β_i²) − ½‖w‖², w = Σ β_i x_i, β_i = C_i u_i, C_i = c_i/(λM).

    w is a variable of the QP too; ε > 0 splits β = p − n. Interior point, then `_polish`; a second try if that failed.
    """
    rows = np.flatnonzero(c > 0)
    C, Z, t, n = c[rows] / (lam * c.sum()), X[rows], y[rows], X.shape[1]
    lo, hi = (C * side for side in loss.domain(t))
    E = np.eye(len(rows)) if loss.eps == 0 else np.hstack([np.eye(len(rows)), -np.eye(len(rows))])  # β = E x
    k = E.shape[1]
    P = np.diag(np.concatenate([np.abs(E.T) @ (loss.kappa / C), np.ones(n)]))
    q = np.concatenate([loss.eps - E.T @ t, np.zeros(n)])
    equal = np.hstack([-Z.T @ E, np.eye(n)])
    if free:
        equal = np.vstack([equal, np.concatenate([E.sum(0), np.zeros(n)])])
    lower = lo if loss.eps == 0 else np.zeros(k)
    upper = hi if loss.eps == 0 else np.concatenate([hi, -lo])
    box = np.eye(k, k + n)
    below = np.vstack([box[np.isfinite(upper)], -box[np.isfinite(lower)]])
    below_of = np.concatenate([upper[np.isfinite(upper)], -lower[np.isfinite(lower)]])
    tried = []
    for tol in (1e-11, 1e-8):
        x, _ = _clarabel(P, q, equal, np.zeros(len(equal)), below, below_of, tol)
        tried.append(_polish(Z, t, loss, C, np.clip(E @ x[:k], lo, hi), free))
        if tried[-1][0] < 1e-10:
            break
    u = np.zeros(len(y))
    u[rows] = min(tried, key=lambda r: r[0])[1] / C
    return dual_weights(X, u, lam=lam, weight=c), 0.0, u


def _polish(X: Array, y: Array, loss: Scalar, C: Array, beta: Array, free: bool) -> tuple[float, Array]:
    """Newton on the free set: which β are at lo, 0 or hi is read off the interior solution, the others solve
    y − ε·sgn(β) − (κ/C)β − (⟨w, x⟩ + b) = 0 exactly. Answers the best (relative duality gap, β) met."""
    K, kappa = X @ X.T, loss.kappa / C
    lo, hi = (C * side for side in loss.domain(y))
    best = (np.inf, beta)
    for _ in range(10):
        beta = np.clip(balance(beta) if free else beta, lo, hi)
        b = best_bias(K @ beta, y, loss=loss, weight=C) if free else 0.0
        f, norm2, risk = K @ beta + b, beta @ K @ beta, C @ loss.value(K @ beta + b, y)
        gap = (norm2 + risk - C @ loss.conjugate(beta / C, y)) / (norm2 / 2 + risk + 1e-300)
        best = min(best, (float(gap), beta.copy()), key=lambda r: r[0])
        if best[0] < 1e-13:
            break
        step = 1 / (np.diag(K) + kappa + 1e-300)
        t = beta + step * (y - f - kappa * beta)
        t = np.sign(t) * np.maximum(0.0, np.abs(t) - step * loss.eps)  # one proximal step names the active set
        zero = (t == 0) & (loss.eps > 0)
        F = np.flatnonzero((t > lo) & (t < hi) & ~zero)
        beta = np.where(t >= hi, hi, np.where(t <= lo, lo, np.where(zero, 0.0, beta)))
        A = K[np.ix_(F, F)] + np.diag(kappa[F])
        r = (y - loss.eps * np.sign(t) - kappa * beta - K @ beta - b)[F]
        if free:
            A = np.block([[A, np.ones((len(F), 1))], [np.ones((1, len(F))), np.zeros((1, 1))]])
            r = np.append(r, -beta.sum())
        beta[F] += np.linalg.lstsq(A, r, rcond=1e-13)[0][: len(F)]
    return best


def _vector_qp(X: Array, y: Array, loss: CrammerSinger, lam: float, c: Array, free: bool) -> tuple[Array, Any, Array]:
    """Crammer–Singer: max (1/M)Σ c_i⟨α_i, δ_i⟩ − (λ/2)‖W‖², α_i ∈ Δ, W = (1/(λM))Σ c_i(e_y − α_i)x_iᵀ as variables."""
    (m, n), K, M = X.shape, loss.classes, c.sum()
    e = loss.onehot(y)
    P = np.diag(np.concatenate([np.zeros(m * K), np.full(K * n, lam)]))
    q = np.concatenate([-(loss.cost[y] * c[:, None] / M).ravel(), np.zeros(K * n)])
    half = np.kron(X.T * c / (lam * M), np.eye(K))  # (a, k) <- (i, k)
    rows = [np.hstack([half, np.eye(K * n)]), np.hstack([np.kron(np.eye(m), np.ones((1, K))), np.zeros((m, K * n))])]
    rhs = [((e.T * c) @ X / (lam * M)).T.ravel(), np.ones(m)]
    if free:
        rows.insert(0, np.hstack([np.kron(c / M, np.eye(K)), np.zeros((K, K * n))]))
        rhs.insert(0, c @ e / M)
    positive = -np.eye(m * K, m * K + K * n)
    x, multipliers = _clarabel(P, q, np.vstack(rows), np.concatenate(rhs), positive, np.zeros(m * K), 1e-13)
    alpha = np.clip(x[: m * K].reshape(m, K), 0, None)
    alpha /= alpha.sum(1, keepdims=True)
    b = 0.0
    if free:
        b = -multipliers[:K]
        b = b - b.mean()
    return dual_weights(X, e - alpha, lam=lam, weight=c), b, e - alpha


def _newton(X: Array, y: Array, loss: Any, lam: float, c: Array, free: bool) -> tuple[Array, Any, Array]:
    """Damped Newton on P(w, b) for the log-losses; u = g at the solution."""
    m, M = len(y), c.sum()
    Z = np.column_stack([X, np.ones(m)]) if free else X
    ridge = np.full(Z.shape[1], lam)
    if free:
        ridge[-1] = 0.0
    w = loss.zeros(Z.shape[1])

    def value(w: Array) -> float:
        return float((ridge * w**2).sum() / 2 + c @ loss.value(Z @ w.T, y) / M)

    for _ in range(200):
        z = Z @ w.T
        grad = ridge * w - (loss.slope(z, y).T * c) @ Z / M
        if np.abs(grad).max() < 1e-16:
            break
        h = np.reshape(loss.hessian(z, y), (m, grad.size // Z.shape[1], -1))
        H = np.einsum("i,ikl,ia,ib->kalb", c / M, h, Z, Z).reshape(grad.size, grad.size)
        H += np.diag(np.broadcast_to(ridge, grad.shape).ravel())
        d = -np.linalg.lstsq(H, grad.ravel(), rcond=1e-14)[0].reshape(grad.shape)
        t, P = 1.0, value(w)
        while value(w + t * d) > P + 1e-4 * t * float((grad * d).sum()) and t > 1e-6:
            t /= 2
        if t <= 1e-6 and np.abs(grad).max() < 1e-12:
            break
        w = w + t * d
    u = loss.slope(Z @ w.T, y)
    return (w[..., :-1], w[..., -1], u) if free else (w, 0.0, u)


def kernel_optimum(K: Array, y: Array, *, loss: str | Loss, C: float) -> float:
    """min ½‖w‖² + C Σ ℓ(y_i, ⟨w, φ(x_i)⟩ + b) for ⟨φ(x_i), φ(x_j)⟩ = K_ij, on features whose inner products are K."""
    values, vectors = np.linalg.eigh(K)
    lam = 1 / (C * len(y))
    features = vectors * np.sqrt(np.maximum(values, 0))
    return optimum(features, y, loss=loss, lam=lam, bias="unregularized").primal / lam


# ---------------------------------------------------------------------------------------------------------------------
# Perceptrons on a budget
# ---------------------------------------------------------------------------------------------------------------------


class Perceptron(NamedTuple):
    """Points in the order of their mistakes, coefficients, the number of mistakes, and the Forgetron's φ and Q."""

    rows: list[int]
    coef: list[float]
    mistakes: int
    scales: list[float]
    costs: list[float]


def forgetron(K: Array, y: Array, order: Iterable[int], budget: int | None) -> Perceptron:
    """One row at a time. φ by bisection on its definition; without a budget this is the perceptron."""
    rows: list[int] = []
    coef: list[float] = []
    scales: list[float] = []
    costs, mistakes, Q = [0.0], 0, 0.0
    for i in order:
        if y[i] * sum(a * K[j, i] for j, a in zip(rows, coef, strict=True)) > 0:
            continue
        mistakes += 1
        rows, coef = [*rows, int(i)], [*coef, float(y[i])]
        if budget is None or len(rows) <= budget:
            continue
        r, sigma = rows[0], abs(coef[0])
        mu = y[r] * sum(a * K[j, r] for j, a in zip(rows, coef, strict=True))

        def cost(phi: float, sigma: float = sigma, mu: float = mu) -> float:
            return float((phi * sigma) ** 2 + 2 * phi * sigma - 2 * phi * sigma * phi * mu)

        phi, room = 1.0, 15 / 32 * mistakes - Q
        if cost(1.0) > room:
            lo, hi = 0.0, 1.0
            for _ in range(80):
                phi = 0.5 * (lo + hi)
                lo, hi = (phi, hi) if cost(phi) <= room else (lo, phi)
            phi = lo
        Q += cost(phi)
        coef = [phi * a for a in coef][1:]
        rows = rows[1:]
        scales.append(phi)
        costs.append(Q)
    return Perceptron(rows, coef, mistakes, scales, costs)


def optimally_sparse(K, y, g, b, eps=0.5, eta=0.5, steps=10_000):
    """Section 4 of the sparse SVM paper, bias kept: coefficients of y_i φ_i, from the whole kernel matrix K.

    The row that falls short the most of min(1, y g) − y b is stepped on, until none does by more than eps.
    """
    alpha = np.zeros(len(y))
    active = y * g > 0
    h = np.minimum(1, y * g) - y * b
    for _ in range(steps):
        short = np.where(active, h - y * (K @ (alpha * y)), -np.inf)
        i = int(np.argmax(short))
        if short[i] <= eps:
            return alpha
        alpha[i] += short[i] / K[i, i] if eta == "polyak" else eta
    raise AssertionError("did not end")
