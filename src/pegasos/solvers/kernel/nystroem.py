"""Kernel machines on Nyström features: weights restricted to the span of some rows, the basis B.

With K_BB = UΣUᵀ (eigenvalues that are zero left out) the features f(x) = Σ^{-1/2} Uᵀ K(B, x) make a linear machine of
the kernel machine whose weights are Σ_i β_i φ(b_i), β = U Σ^{-1/2} w: ⟨w, f(x)⟩ = Σ_i β_i K(b_i, x) for every x, and
‖w‖² is that of the kernel's space. So its primal value is that of the exact problem, and its lower bound that of the
best weights in the span. One part after the other has its features in memory.

The dual variables of the linear machine are feasible for the exact problem, too. The lower bound that they give costs
the kernel values between all rows whose dual variable is not zero. It is computed at the end: always, never, or if that
costs less than the fit did.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from pegasos.fit.engine import MAX_ITER, Engine, Options
from pegasos.losses import Which
from pegasos.problems.base import Bounds, Point
from pegasos.problems.kernel import Coefficients, KernelProblem
from pegasos.problems.linear import LinearProblem, Weights, feasible
from pegasos.rows.views import Array, examples, is_sparse
from pegasos.solvers.base import SCALAR_LOSSES, KernelSolver, Solver, check_count
from pegasos.solvers.kernel.reasons import NumberedReason
from pegasos.solvers.kernel.spans import Span, spectral_span
from pegasos.solvers.linear.auto import Auto
from pegasos.util.fields import State, saved
from pegasos.util.threads import one_blas_thread

#: Kernel values that a certificate before the end may always cost, and the exact problem's bound at the end.
CERTIFICATE_VALUES, EXACT_BOUND_VALUES = 1 << 16, 1 << 20

#: Operations of a kernel value beside the product of two rows.
EXTRA_OPERATIONS = 8

#: The goal, whatever the gap of the exact problem is.
SPAN_OPTIMUM_REACHED = "the weights are within tol of the best ones in the span of the basis"


class PartEnding(NumberedReason):
    """Why a part is no longer worked on."""

    OPEN = 0
    REACHED = 1, SPAN_OPTIMUM_REACHED
    MAX_STEPS = 2, MAX_ITER
    SOLVER_STUCK = 3, "the linear solver came to rest above the tolerance"


class _Numbers(NamedTuple):
    """The numbers of a part in a saved state, in the order of its columns."""

    primal: float
    dual: float
    epochs: float
    ending: float


class _Counts(NamedTuple):
    """The numbers of the engine in a saved state, in their order: whole ones."""

    evaluations: float
    has_machine: float
    current: float


class _Checks(NamedTuple):
    """And what it remembers of certificates."""

    ended: float
    certified: float


class Machine:
    """The linear machine of part k on the features of a span, and the way back to coefficients of its basis."""

    def __init__(self, problem: KernelProblem, k: int, span: Span, solver: Solver, seed: int) -> None:
        part, (self.basis, self.back, features) = problem.parts[k], span
        weight, total = part.weight, float(part.weight.sum())
        self.problem = LinearProblem(
            examples=examples(features, threads=problem.rows.threads, name="the Nystroem features"),
            loss=part.loss,
            target=np.ascontiguousarray(part.y),
            outputs=1,
            lam=1.0 / (part.C * total),
            weight=None if bool(np.all(weight == 1)) else np.ascontiguousarray(weight),
            bias=problem.bias,
            threads=problem.rows.threads,
        )
        self.factor = problem.lam / self.problem.lam  # both objectives are ½‖w‖² + CΣ, in different units
        self.engine = solver.engine(self.problem, Options(seed=seed))


class _Result:
    """What is known of a part: coefficients, dual variables and bounds in the span, how it ended, passes it took."""

    def __init__(self, m: int, primal: float) -> None:
        self.coef, self.u = np.zeros((2, m))
        self.primal, self.dual = primal, 0.0
        self.ending, self.epochs = PartEnding.OPEN, 0.0


class NystroemEngine(Engine[Coefficients]):
    """Solves the linear machines of the parts, one after the other."""

    #: The gap of the restriction is that of the last weights.
    returns_last = True

    def __init__(
        self,
        problem: KernelProblem,
        options: Options,
        *,
        components: int,
        exact_bound: bool | Literal["auto"],
    ) -> None:
        self.problem, self.tol, self.max_steps, self.seed = problem, options.tol, options.max_steps, options.seed
        self.exact_bound = exact_bound
        self.results = [_Result(p.m, at) for p, at in zip(problem.parts, problem.at_zero(), strict=True)]
        self.bases = self._choose(components)
        self.machine: Machine | None = None
        self.before, self.ended, self.certified = 0, False, 0.0
        X = problem.X
        #: Operations of a kernel value.
        self.per_value = EXTRA_OPERATIONS + (X.nnz / max(1, X.shape[0]) if is_sparse(X) else X.shape[1])

    def _choose(self, components: int) -> list[Array]:
        """The rows of each part's basis: the first of one random order of all rows that have weight in the part."""
        m = int(self.problem.X.shape[0])
        rank = np.empty(m, dtype=np.int64)
        rank[np.random.default_rng(self.seed).permutation(m)] = np.arange(m)
        bases = []
        for part in self.problem.parts:
            own = np.flatnonzero(part.weight > 0)
            ranks = rank[own if part.index is None else part.index[own]]
            bases.append(np.sort(own[np.argsort(ranks)[:components]]))
        return bases

    # --- what the loop asks ------------------------------------------------------------------------------------------

    @property
    def current(self) -> int | None:
        """The part that is worked on, None if all are over."""
        return next((k for k, result in enumerate(self.results) if not result.ending), None)

    @property
    def evaluations(self) -> int:
        """Kernel values computed."""
        return self.before + self.problem.rows.evaluations

    @property
    def epochs(self) -> float:
        """Passes over the rows of the parts."""
        return sum(result.epochs for result in self.results)

    @property
    def steps(self) -> list[int]:
        """Passes over the rows of each part."""
        return [int(np.ceil(result.epochs)) for result in self.results]

    @property
    def stuck(self) -> str | None:
        if self.current is not None:
            return None
        endings, doubt = {result.ending for result in self.results}, self.problem.doubt
        if PartEnding.MAX_STEPS in endings:
            return MAX_ITER
        reason = (PartEnding.SOLVER_STUCK if PartEnding.SOLVER_STUCK in endings else PartEnding.REACHED).reason
        return f"{reason}; {doubt}" if doubt else reason

    @property
    def goals(self) -> tuple[str, ...]:
        """The optimum of the machine on the basis."""
        return SPAN_OPTIMUM_REACHED, f"{SPAN_OPTIMUM_REACHED}; {self.problem.doubt}"

    @property
    def restricted_gap(self) -> float:
        """By how much at most the weights are above the best ones in the span of the basis."""
        return float(sum(max(result.primal - result.dual, 0.0) for result in self.results))

    def due(self, tol: float) -> bool:
        """At the end of a part; in between where the scores of all rows cost little beside the work since the last."""
        k = self.current
        if k is None or self.ended:
            return True
        if self.machine is None:
            return False
        count, passes = self.problem.parts[k].m * len(self.machine.basis), self.epochs - self.certified
        return bool(passes > 0) and (count <= CERTIFICATE_VALUES or passes >= 4 * self.per_value)

    def point(self, *, last: bool = False) -> Point[Coefficients]:
        """Coefficients of the bases of all parts; dual variables where it is time for the exact problem's bound."""
        if (k := self.current) is not None and self.machine is not None:
            with one_blas_thread():
                self._look(k, self.machine)
        nothing = [np.zeros_like(result.u) for result in self.results]
        duals = [
            result.u if (last or result.ending) and self._worth(k, result) else zero
            for k, (result, zero) in enumerate(zip(self.results, nothing, strict=True))
        ]
        coefs = [result.coef for result in self.results]
        return Point(Coefficients(np.concatenate(coefs)), np.concatenate(duals), separate=True)

    def _worth(self, k: int, result: _Result) -> bool:
        """Whether to compute the lower bound of the exact problem that the dual variables give."""
        if self.exact_bound != "auto":
            return bool(self.exact_bound)
        size = len(self.bases[k])
        work = self.problem.parts[k].m * size * (1 + (size + 2 * result.epochs) / self.per_value)
        return bool(np.count_nonzero(result.u) ** 2 <= max(work, EXACT_BOUND_VALUES))

    def judged(self, bounds: Bounds[Coefficients]) -> None:
        """Remember after how many passes the last certificate was."""
        self.ended, self.certified = False, self.epochs

    # --- the work ----------------------------------------------------------------------------------------------------

    def _machine(self, k: int) -> Machine:
        """The linear machine of a part."""
        span = spectral_span(self.problem, k, self.bases[k])
        return Machine(self.problem, k, span, Auto(), self.seed)

    def advance(self) -> None:
        """The features of a part, or a piece of work of its solver."""
        k = self.current
        if k is None:
            return
        with one_blas_thread():
            if self.machine is None:
                self.machine = self._machine(k)
            else:
                self._advance(k, self.machine)

    def _advance(self, k: int, machine: Machine) -> None:
        result, engine = self.results[k], machine.engine
        engine.advance()
        result.epochs = float(engine.epochs)
        limit = self.max_steps is not None and result.epochs >= self.max_steps
        if not limit and not engine.due(self.tol):
            return
        bounds = self._look(k, machine)
        if result.primal - result.dual <= self.tol * result.primal:
            result.ending = PartEnding.REACHED
        elif limit or engine.stuck is not None:
            result.ending = PartEnding.MAX_STEPS if limit else PartEnding.SOLVER_STUCK
        if result.ending:
            self.machine, self.ended = None, True
        else:
            engine.learn(bounds)

    def _look(self, k: int, machine: Machine) -> Bounds[Weights]:
        """Take over weights and dual variables of the linear machine, and what its own problem says of them."""
        result, point = self.results[k], machine.engine.point()
        bounds, u = machine.problem.certify(point), point.duals
        assert bounds.model.W is not None
        result.coef[machine.basis] = machine.back @ bounds.model.W[0]
        result.primal = float(bounds.primal[0]) * machine.factor
        dual = float(bounds.dual[0]) * machine.factor
        if u is not None and dual > result.dual:
            result.u, result.dual = feasible(machine.problem, u)[:, 0], dual
        return bounds

    # --- the state ---------------------------------------------------------------------------------------------------

    def state(self) -> State:
        numbers = [_Numbers(r.primal, r.dual, r.epochs, r.ending) for r in self.results]
        counts = _Counts(self.evaluations, self.machine is not None, self.current or 0)
        own = {
            "coef": np.concatenate([result.coef for result in self.results]),
            "u": np.concatenate([result.u for result in self.results]),
            "numbers": np.array(numbers, dtype=np.float64),
            "counts": np.array(counts, dtype=np.float64),
            "checks": np.array(_Checks(self.ended, self.certified), dtype=np.float64),
        }
        inner = {} if self.machine is None else self.machine.engine.state()
        return own | {f"inner.{name}": array for name, array in inner.items()}

    def restore(self, state: State) -> None:
        parts, most = len(self.results), float(np.finfo(float).max)
        rows = sum(len(result.coef) for result in self.results)
        coef, u = (saved(state, name, (rows,), low=-most, high=most) for name in ("coef", "u"))
        numbers = saved(state, "numbers", (parts, len(_Numbers._fields)), low=-most, high=most)
        columns = _Numbers(*(column.copy() for column in numbers.T))
        saved({"numbers": columns.epochs}, "numbers", (parts,), low=0, high=2**53)
        saved({"numbers": columns.ending}, "numbers", (parts,), low=0, high=max(PartEnding), whole=True)
        counts = _Counts(*saved(state, "counts", (len(_Counts._fields),), low=0, high=2**62, whole=True))
        checks = _Checks(*saved(state, "checks", (len(_Checks._fields),), low=0, high=2**53))
        pieces = zip(self.results, self.problem.split(coef), self.problem.split(u), numbers, strict=True)
        for result, own, duals, row in pieces:
            result.coef, result.u = own.copy(), duals.copy()
            known = _Numbers(*row.tolist())
            result.primal, result.dual, result.epochs = known.primal, known.dual, known.epochs
            result.ending = PartEnding(int(known.ending))
        self.ended, self.certified = bool(checks.ended), float(checks.certified)
        self.machine, k = None, self._reopen(int(counts.current))
        inner = {name.removeprefix("inner."): array for name, array in state.items() if name.startswith("inner.")}
        if counts.has_machine and k is not None and k == counts.current:
            with one_blas_thread():
                self.machine = self._machine(k)
                self.machine.engine.restore(inner)
        self.before = int(counts.evaluations) - self.problem.rows.evaluations

    def _reopen(self, at: int) -> int | None:
        """The part to go on with, now that ``max_steps`` may be higher; parts without a solver's state start anew."""
        for k, (result, primal) in enumerate(zip(self.results, self.problem.at_zero(), strict=True)):
            open_again = result.ending is PartEnding.MAX_STEPS and (
                self.max_steps is None or result.epochs < self.max_steps
            )
            if open_again or (k == at and self.current != at and not result.ending):
                self.results[k] = _Result(len(result.coef), float(primal))
        return self.current


@dataclass(frozen=True)
class Nystroem(KernelSolver):
    """Nyström features and the linear solver: an approximation for more rows than :class:`SMO` can take.

    The weights are restricted to the span of some random rows, the basis B: with K_BB = UΣUᵀ the features
    Σ^{-1/2} Uᵀ K(B, x) have the inner products of the kernel, projected, and the linear machine on them is solved as
    :class:`Auto` would (Williams & Seeger 2001; as scikit-learn's ``Nystroem``). The basis rows become the support
    vectors. The fit ends where the weights are within ``tol`` of the best ones in the span; by how much at most they
    are above those is the certificate's ``restricted_gap``. Its ``dual`` is a lower bound of the exact problem, made of
    the same dual variables: it says how far from the exact machine the approximation can be at most. Above 200 000
    rows ``solver="auto"`` does this, with a :class:`NystroemWarning`.

    Parameters
    ----------
    n_components : int, default=500
        Rows of the basis, for each pair of classes. With all rows the problem is the exact one. The features of a pair
        take rows · n_components · 8 bytes of memory, of more than 2²⁶ entries 4.
    exact_bound : {"auto", True, False}, default="auto"
        Whether to compute the lower bound of the exact problem in the end. It takes the kernel values between all rows
        that have a dual variable other than zero, in blocks. "auto": if that costs less than the fit, or at
        most 2²⁰ kernel values. Without it the lower bound is 0, that of all losses.

    Examples
    --------
    >>> from pegasos import SVC
    >>> from pegasos.solvers import Nystroem
    >>> model = SVC(solver=Nystroem(n_components=3), gamma=1.0).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 1, 0])
    >>> model.support_vectors_.shape
    (3, 1)
    """

    n_components: int = 500
    exact_bound: bool | Literal["auto"] = "auto"
    name: ClassVar[str] = "nystroem"
    intercepts: ClassVar[tuple[str, ...]] = ("unregularized", "none")
    losses: ClassVar[Which] = SCALAR_LOSSES
    own_losses: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count(self, "n_components")
        if not isinstance(self.exact_bound, bool | np.bool_) and self.exact_bound != "auto":
            raise ValueError(f"Nystroem: exact_bound={self.exact_bound!r} must be 'auto', True or False")

    def check(self, problem: KernelProblem, intercept: str) -> None:
        super().check(problem, intercept)
        if problem.kernel.name == "precomputed":
            raise ValueError("solver 'nystroem' needs rows to compute kernel values of; kernel='precomputed' has none")

    def engine(self, problem: KernelProblem, options: Options) -> Engine[Coefficients]:
        return NystroemEngine(
            problem,
            options,
            components=int(self.n_components),
            exact_bound=self.exact_bound,
        )


class NystroemWarning(UserWarning):
    """``solver="auto"`` approximates a kernel machine of very many rows; ``solver="smo"`` solves it exactly.

    Examples
    --------
    >>> import warnings
    >>> from pegasos.solvers import NystroemWarning
    >>> warnings.simplefilter("ignore", NystroemWarning)
    """
