"""The solvers of linear machines, and what they have to do with kernels."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, ClassVar, Literal, TypeGuard

import numpy as np

from pegasos._data import Array
from pegasos._engine import Engine
from pegasos._problem import Problem
from pegasos._suggest import did_you_mean
from pegasos._units import Units, units_of
from pegasos.losses import LOSSES, Loss

if TYPE_CHECKING:
    from pegasos._stochastic import SubgradientEngine

Sampling = Literal["auto", "permutation", "fixed", "iid", "chunked"]
SAMPLINGS = ("auto", "permutation", "fixed", "iid", "chunked")
Output = Literal["last", "average", "suffix", "random"]


@dataclass(frozen=True)
class Solver:
    """What all solvers share: a name, and what they can do."""

    name: ClassVar[str]
    #: Ways to learn the bias, beside "feature" and no bias, that this solver knows.
    intercepts: ClassVar[tuple[str, ...]] = ("unregularized",)
    losses: ClassVar[tuple[str, ...]] = tuple(LOSSES)

    def check(self, problem: Problem, intercept: str) -> None:
        """Raise ValueError if this solver cannot solve ``problem`` with this intercept."""
        if problem.loss.name not in self.losses:
            raise ValueError(
                f"solver {self.name!r} cannot minimise loss {problem.loss.name!r}; it can {', '.join(self.losses)}"
            )
        if intercept not in ("none", "feature", *self.intercepts):
            accepted = ", ".join(("feature", *self.intercepts))
            raise ValueError(f"solver {self.name!r} cannot learn intercept={intercept!r}; it can {accepted}")

    def engine(self, problem: Problem, intercept: str, seed: int) -> Engine:
        """A fresh engine for ``problem``."""
        raise NotImplementedError


def _check_in(solver: Solver, field: str, accepted: tuple[str, ...]) -> None:
    value = getattr(solver, field)
    if value not in accepted:
        hint = did_you_mean(value, accepted)
        raise ValueError(f"{type(solver).__name__}: {field}={value!r} is none of {', '.join(accepted)}{hint}")


def check_flag(solver: object, field: str) -> None:
    """Refuse what is neither yes nor no."""
    value = getattr(solver, field)
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{type(solver).__name__}: {field}={value!r} must be True or False")


def check_count(solver: object, field: str, low: int = 1, *, none: bool = False) -> None:
    """Refuse what is no whole number from ``low`` on, or None where that means something."""
    value = getattr(solver, field)
    if none and value is None:
        return
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or not low <= value < 2**31:
        what = f"{'None or ' * none}a whole number >= {low}"
        raise ValueError(f"{type(solver).__name__}: {field}={value!r} must be {what}")


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, Real) and not isinstance(value, bool)


def _order(sampling: Sampling, problem: Problem) -> str:
    """The core's name for an epoch's order."""
    if sampling == "auto":
        return "chunked" if problem.examples.on_disk else "permutation"
    return sampling


def kernel_order(solver: Solver, sampling: Sampling) -> str:
    """The core's name for an epoch's order over the rows of a kernel machine."""
    if sampling == "chunked":
        raise ValueError(f"{type(solver).__name__}: sampling='chunked' has no meaning with a kernel")
    return "permutation" if sampling == "auto" else sampling


@dataclass(frozen=True)
class _Subgradient(Solver):
    batch_size: int = 1
    sampling: Sampling = "auto"
    projection: bool = False
    output: Output = "last"

    intercepts: ClassVar[tuple[str, ...]] = ("unregularized", "subgradient", "batch")
    schedule: ClassVar[str] = "pegasos"

    def __post_init__(self) -> None:
        _check_in(self, "sampling", SAMPLINGS)
        _check_in(self, "output", ("last", "average", "suffix", "random"))
        check_count(self, "batch_size")
        check_flag(self, "projection")

    def check(self, problem: Problem, intercept: str) -> None:
        super().check(problem, intercept)
        if intercept == "batch":
            if problem.joint:
                raise ValueError(f"intercept='batch' is not defined for the joint loss {problem.loss.name!r}")
            if self.batch_size < 2:
                raise ValueError("intercept='batch' needs mini-batches: set batch_size to 2 or more, 64 say")

    def engine(self, problem: Problem, intercept: str, seed: int) -> Engine:
        return self.engine_with(problem, intercept, seed, self.units(problem), self._t0(problem))

    def engine_with(self, problem: Problem, intercept: str, seed: int, units: Units, t0: float) -> SubgradientEngine:
        """The same with steps of another size, as a stream has them, which knows more than these rows."""
        from pegasos._stochastic import SubgradientEngine

        bias = {"unregularized": "subgradient"}.get(intercept, intercept)
        # ‖w*‖² ≤ P(0)/λ for every nonnegative convex loss; with the hinge loss this is the papers' 1/√λ.
        radius = float(np.sqrt(problem.at_zero().max() / problem.lam)) if self.projection else 0.0
        return SubgradientEngine(
            problem,
            output=self.output,
            bias=bias if bias in ("subgradient", "batch") else "none",
            seed=seed,
            schedule=self.schedule,
            rate=self._rate(problem),
            t0=t0,
            bias_start=units.start,
            bias_rate=units.step,
            batch_size=int(self.batch_size),
            sampling=_order(self.sampling, problem),
            radius=radius,
        )

    def _rate(self, problem: Problem) -> float:
        return 0.0

    def _t0(self, problem: Problem) -> float:
        return 0.0

    def units(self, problem: Problem) -> Units:
        """Where a free bias begins, and how long steps should be; as published unless said otherwise."""
        return Units()


@dataclass(frozen=True)
class Pegasos(_Subgradient):
    """Primal estimated sub-gradient solver: w ← (1 − ηλ)w + (η/k) Σ g_i x_i with η = 1/(λ(t + t0)).

    With ``t0=0`` these are the iterates of Shalev-Shwartz, Singer, Srebro & Cotter (2011), Figs. 1 and 2, and for
    kernel machines (:class:`~pegasos.SVC`, :class:`~pegasos.SVR`) those of its section 4: the same decisions, but
    kernel values are computed for blocks of rows at a time.

    Parameters
    ----------
    batch_size : int, default=1
        Rows k a step; ``len(X)`` gives the deterministic sub-gradient method.
    sampling : {"auto", "permutation", "fixed", "iid", "chunked"}, default="auto"
        "permutation": a new order each epoch, every order as likely as any other; more than four million entries in
        rows of fewer than forty are visited in lots of a thousand groups of up to sixteen neighbours, taken from all
        over the file and shuffled row by row, which is faster and mixes as well. "fixed": the same order each epoch.
        "iid": independent draws (the papers' analysis). "chunked": a new order that stays in the same hundred or so
        megabytes of rows for a while, for data on disk: lots of 256 chunks of some hundred kilobytes each, taken and
        shuffled likewise. "auto": "chunked" for a :class:`~pegasos.io.Dataset`, else "permutation". Not "chunked"
        with kernels.
    projection : bool, default=False
        Project onto the ball that holds the optimum after each step (the 2007 paper).
    output : {"last", "average", "suffix", "random"}, default="last"
        The last iterate, the mean of all, the mean of the last half to three quarters of the epochs, or the better of
        two random ones (Lemma 3; not in ``partial_fit``).
    t0 : float or "auto", default="auto"
        Steps, in rows, that the step size pretends to have taken. "auto" is L·R²/λ with R² the mean squared norm of the
        rows (the largest, for smooth losses) and L the loss's smoothness (1 if it has none): the first step then moves
        a score by about 1. Regressions whose loss has slopes of at most g, but targets that spread by s, have R²g/(λs):
        the first step moves a score by s. A bias that is not regularised then begins at the median of the targets, and
        moves by s/(g√t). With a number everything is as published: a bias begins at 0 and moves by 1/√t.

    Examples
    --------
    >>> from pegasos import LinearSVC, Pegasos
    >>> model = LinearSVC(solver=Pegasos(batch_size=2), lam=0.1, max_iter=500, tol=0.1, random_state=0)
    >>> model.fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).certificate_.converged
    True
    """

    t0: float | Literal["auto"] = "auto"
    name: ClassVar[str] = "pegasos"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.t0 != "auto" and not (_is_number(self.t0) and np.isfinite(self.t0) and self.t0 >= 0):
            raise ValueError(f"Pegasos: t0={self.t0!r} must be 'auto' or a number >= 0")

    def _t0(self, problem: Problem) -> float:
        if self.t0 != "auto":
            return float(self.t0)
        B2 = problem.feature**2 if problem.bias == "feature" else 0.0
        largest = float(problem.examples.squared_norms.max())
        return self.t0_for(problem.loss, problem.mean_squared_norm, largest, B2, problem.lam, self.units(problem).step)

    def units(self, problem: Problem) -> Units:
        return self.units_for(problem.loss, problem.target, problem.weight, problem.bias)

    def units_for(self, loss: Loss, y: Array, weight: Array | None, bias: str) -> Units:
        """The units for these targets, unless ``t0`` is a number: then everything is as published."""
        return Units() if self.t0 != "auto" else units_of(loss, y, weight, free=bias == "free")

    def t0_for(self, loss: Loss, mean: float, largest: float, B2: float, lam: float, step: float) -> float:
        """t0 for rows of this mean and largest squared norm K(x, x), the square of a constant feature, and a step."""
        if self.t0 != "auto":
            return float(self.t0)
        if np.isinf(loss.smoothness) or step != 1.0:
            return (max(mean, 0.0) + B2) / (lam * step)
        # Rows may be far longer than their mean, which matters to losses whose slope is not bounded.
        return max(loss.smoothness, 1.0) * (max(largest, 0.0) + B2) / lam

    def kernel_sampling(self) -> str:
        """The core's name for an epoch's order over the rows of a kernel machine."""
        return kernel_order(self, self.sampling)


@dataclass(frozen=True)
class Norma(_Subgradient):
    """Kivinen, Smola & Williamson's NORMA: the engine of :class:`Pegasos` with η = p/(λ√t).

    Parameters
    ----------
    p : float, default=0.71
        The step size's factor, 0 < p < 1; 1/√2 is what the 2011 paper compares with.
    batch_size, sampling, projection, output
        As for :class:`Pegasos`.

    Examples
    --------
    >>> from pegasos import LinearSVC, Norma
    >>> model = LinearSVC(solver=Norma(p=0.5), lam=0.1, tol=0.5, random_state=0)
    >>> model.fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).predict([[3.0]])
    array([1])
    """

    p: float = 0.71
    name: ClassVar[str] = "norma"
    schedule: ClassVar[str] = "norma"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (_is_number(self.p) and 0 < self.p < 1):
            raise ValueError(f"Norma: p={self.p!r} must lie strictly between 0 and 1")

    def _rate(self, problem: Problem) -> float:
        return float(self.p)


@dataclass(frozen=True)
class SGD(_Subgradient):
    """Zhang's stochastic gradient descent: the engine of :class:`Pegasos` with a constant step η.

    Parameters
    ----------
    eta : float, default=0.01
        The step size; ηλ < 1.
    batch_size, sampling, projection, output
        As for :class:`Pegasos`.

    Examples
    --------
    >>> from pegasos import LinearSVC, SGD
    >>> model = LinearSVC(solver=SGD(eta=0.1), lam=0.1, tol=0.5, random_state=0)
    >>> model.fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).predict([[3.0]])
    array([1])
    """

    eta: float = 0.01
    name: ClassVar[str] = "sgd"
    schedule: ClassVar[str] = "constant"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (_is_number(self.eta) and np.isfinite(self.eta) and self.eta > 0):
            raise ValueError(f"SGD: eta={self.eta!r} must be a number > 0")

    def check(self, problem: Problem, intercept: str) -> None:
        super().check(problem, intercept)
        if self.eta * problem.lam >= 1:
            raise ValueError(f"SGD: eta={self.eta} is too large for lam={problem.lam:.3g}: eta * lam must be below 1")

    def _rate(self, problem: Problem) -> float:
        return float(self.eta)


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
    sampling : {"auto", "permutation", "fixed", "iid", "chunked"}, default="auto"
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

    def check(self, problem: Problem, intercept: str) -> None:
        super().check(problem, intercept)
        if intercept == "search" and problem.joint:
            raise ValueError(f"intercept='search' is not defined for the joint loss {problem.loss.name!r}")

    def __post_init__(self) -> None:
        check_flag(self, "shrinking")
        _check_in(self, "sampling", SAMPLINGS)
        check_count(self, "blocks", none=True)
        _check_in(self, "precision", ("auto", "double"))

    def engine(self, problem: Problem, intercept: str, seed: int) -> Engine:
        from pegasos._bias_search import BiasSearchEngine
        from pegasos._stochastic import DualAscentEngine

        blocks = int(self.blocks) if self.blocks is not None and problem.outputs == 1 else 0
        kind = BiasSearchEngine if intercept == "search" else DualAscentEngine
        return kind(
            problem,
            shrinking=self.shrinking,
            sampling=_order(self.sampling, problem),
            blocks=blocks,
            seed=seed,
            single=self.precision == "auto",
        )


SCALAR_LOSSES = tuple(name for name, cls in LOSSES.items() if cls.kind != "joint")


@dataclass(frozen=True)
class CuttingPlane(Solver):
    """SVM-Perf's cutting planes in one-slack form, with the line search of OCAS.

    The mean loss is replaced by the maximum of its tangent planes; each iteration adds one, at a point near the best
    weights so far, and solves a small quadratic program. Joachims (2006); Franc & Sonnenburg (2008); Teo et al. (2010).

    Parameters
    ----------
    max_planes : int, default=200
        Planes kept; the longest unused ones go first. Each takes 8 bytes a column, and a byte a row for the hinge and
        the ε-insensitive loss, 8 for the others.

    Examples
    --------
    >>> from pegasos import CuttingPlane, LinearSVC
    >>> LinearSVC(solver=CuttingPlane(), lam=0.1).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).certificate_.converged
    True
    """

    max_planes: int = 200
    name: ClassVar[str] = "cutting_plane"
    losses: ClassVar[tuple[str, ...]] = SCALAR_LOSSES

    def __post_init__(self) -> None:
        check_count(self, "max_planes", 2)

    def engine(self, problem: Problem, intercept: str, seed: int) -> Engine:
        from pegasos._cutting_plane import CuttingPlaneEngine

        return CuttingPlaneEngine(problem, max_planes=int(self.max_planes))


@dataclass(frozen=True)
class _SecondOrder(Solver):
    max_columns: int = 5000

    def __post_init__(self) -> None:
        check_count(self, "max_columns")

    def check(self, problem: Problem, intercept: str) -> None:
        super().check(problem, intercept)
        width = problem.examples.n * (problem.outputs if problem.joint else 1)
        if width > self.max_columns:
            raise ValueError(
                f"solver {self.name!r} is for narrow data: {width} columns exceed max_columns={self.max_columns}; "
                f"use 'sdca', or raise {type(self).__name__}(max_columns=...)"
            )


@dataclass(frozen=True)
class InteriorPoint(_SecondOrder):
    """Second-order methods for narrow data: their cost grows with the square of the number of columns.

    The hinge, ε-insensitive and quantile losses go to a primal-dual interior point method whose normal equations are
    columns × columns (Ferris & Munson 2002; Fine & Scheinberg 2001), smooth losses to Newton's method with a line
    search. A couple of dozen passes reach 1e-6 whatever λ.

    Parameters
    ----------
    max_columns : int, default=5000
        Refuse wider data, whose n × n matrix would be too large.

    Examples
    --------
    >>> from pegasos import InteriorPoint, LinearSVC
    >>> model = LinearSVC(solver=InteriorPoint(), tol=1e-9).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.certificate_.relative_gap < 1e-9
    True
    """

    name: ClassVar[str] = "interior_point"
    losses: ClassVar[tuple[str, ...]] = tuple(n for n, cls in LOSSES.items() if cls.smooth or cls.piecewise_linear)

    def engine(self, problem: Problem, intercept: str, seed: int) -> Engine:
        from pegasos._interior_point import InteriorPointEngine
        from pegasos._newton import NewtonEngine

        return NewtonEngine(problem) if problem.loss.smooth else InteriorPointEngine(problem, seed)


@dataclass(frozen=True)
class SmoothedNewton(_SecondOrder):
    """Newton's method on smoothed losses, round by round less smooth: the fastest way on long, narrow data.

    For the hinge, ε-insensitive and quantile losses. Each round replaces the loss by its Moreau envelope of width δ
    around the last round's dual point,

    .. math:: \\psi(z) = \\max_u -\\ell^*(-u) - zu - \\tfrac{\\delta}{2}(u - u_0)^2,

    a method of multipliers. Only rows close to a kink have curvature, so that a step costs little more than a pass over
    the rows, and samples rehearse the first rounds (Rockafellar 1976; Chapelle 2007; Li, Sun & Toh 2018).

    Parameters
    ----------
    max_columns : int, default=5000
        Refuse wider data, whose n × n matrix would be too large.

    Examples
    --------
    >>> from pegasos import LinearSVC, SmoothedNewton
    >>> model = LinearSVC(solver=SmoothedNewton(), tol=1e-6).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.certificate_.relative_gap < 1e-6
    True
    """

    name: ClassVar[str] = "smoothed_newton"
    losses: ClassVar[tuple[str, ...]] = tuple(n for n, cls in LOSSES.items() if cls.piecewise_linear)

    def engine(self, problem: Problem, intercept: str, seed: int) -> Engine:
        from pegasos._smoothed_newton import SmoothedNewtonEngine

        return SmoothedNewtonEngine(problem, seed)


@dataclass(frozen=True)
class Auto(Solver):
    """The default: chooses by size, hardness κ = λm/R² and progress; see the guide's page on choosing a solver.

    Narrow data go to a second-order method where that is cheaper than the epochs :class:`SDCA` would need:
    :class:`InteriorPoint` (tiny problems, smooth losses) or :class:`SmoothedNewton`. All else begins with one epoch of
    :class:`Pegasos`, whose dual point starts :class:`SDCA`; if that stalls on narrow data, a second-order method takes
    over.

    Parameters
    ----------
    blocks : int or None, default=None
        As for :class:`SDCA`, where that is used.

    Examples
    --------
    >>> from pegasos import LinearSVC
    >>> LinearSVC(solver="auto").fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).certificate_.converged
    True
    """

    blocks: int | None = None
    name: ClassVar[str] = "auto"
    intercepts: ClassVar[tuple[str, ...]] = ("unregularized", "subgradient", "batch", "search")

    def __post_init__(self) -> None:
        check_count(self, "blocks", none=True)

    def _specialist(self, intercept: str) -> Solver | None:
        """The solver for the intercepts that only one kind of solver can learn."""
        if intercept in ("subgradient", "batch"):
            return Pegasos(batch_size=64 if intercept == "batch" else 1)
        return SDCA(blocks=self.blocks) if intercept == "search" else None

    def check(self, problem: Problem, intercept: str) -> None:
        super().check(problem, intercept)
        if (specialist := self._specialist(intercept)) is not None:
            specialist.check(problem, intercept)

    def engine(self, problem: Problem, intercept: str, seed: int) -> Engine:
        from pegasos._auto import AutoEngine

        if (specialist := self._specialist(intercept)) is not None:
            return specialist.engine(problem, intercept, seed)
        return AutoEngine(problem, intercept=intercept, blocks=self.blocks, seed=seed)


#: Every solver by its name.
SOLVERS: dict[str, type[Solver]] = {
    cls.name: cls for cls in (Auto, Pegasos, Norma, SGD, SDCA, CuttingPlane, InteriorPoint, SmoothedNewton)
}


def resolve(solver: str | Solver) -> Solver:
    """The solver object that a user's ``solver`` means."""
    if isinstance(solver, Solver):
        return solver
    if isinstance(solver, str) and solver in SOLVERS:
        return SOLVERS[solver]()
    hint = did_you_mean(solver, SOLVERS) if isinstance(solver, str) else ""
    if isinstance(solver, type) and issubclass(solver, Solver):
        hint = f" (did you mean {solver.__name__}(), with parentheses?)"
    raise ValueError(f"solver={solver!r} is unknown; it can be {', '.join(SOLVERS)} or a pegasos.solvers object{hint}")
