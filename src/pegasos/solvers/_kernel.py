"""The solvers of kernel machines; Pegasos and SDCA are those of linear ones."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar, Literal

import numpy as np

from pegasos._kernel_engine import KernelEngine
from pegasos._kernel_problem import KernelProblem
from pegasos._suggest import did_you_mean
from pegasos.solvers._linear import SCALAR_LOSSES, SDCA, SOLVERS, Pegasos, Solver, check_count, check_flag, kernel_order


@dataclass(frozen=True)
class KernelSolver:
    """What all solvers of kernel machines share: a name, and what they can do."""

    name: ClassVar[str]
    #: Ways to treat the bias; "none" is no bias.
    intercepts: ClassVar[tuple[str, ...]] = ("unregularized",)
    losses: ClassVar[tuple[str, ...]] = ("hinge", "epsilon_insensitive")

    def check(self, problem: KernelProblem, intercept: str) -> None:
        """Raise ValueError if this solver cannot solve ``problem`` with this intercept."""
        loss = problem.loss.name
        if loss not in self.losses:
            raise ValueError(
                f"solver {self.name!r} cannot minimise loss {loss!r} with a kernel; it can {', '.join(self.losses)}. "
                "Use 'sdca' or 'pegasos'"
            )
        if intercept not in self.intercepts:
            what = "fit_intercept=False" if intercept == "none" else f"intercept={intercept!r}"
            accepted = ", ".join("fit_intercept=False" if i == "none" else repr(i) for i in self.intercepts)
            others = ". Use 'sdca' or 'pegasos'" if intercept in ("none", "feature") else ""
            raise ValueError(f"solver {self.name!r} cannot do {what} with a kernel; it can {accepted}{others}")

    def engine(self, problem: KernelProblem, *, tol: float, max_steps: int | None, seed: int) -> KernelEngine:
        """A fresh engine for ``problem``; ``max_steps`` limits the steps on each part."""
        raise NotImplementedError


@dataclass(frozen=True)
class SMO(KernelSolver):
    """Sequential minimal optimisation with a batched working set: the default for kernel machines.

    Each round takes the variables that violate the optimality conditions most, half of them kept from the round before,
    solves the dual over them by pairs of second-order choice (Fan, Chen & Lin 2005), and updates all scores with the
    kernel rows of what has changed, computed together. Rows are kept in single precision where that is accurate enough,
    scores and dual variables in double; the bias is exact.

    Parameters
    ----------
    working_set : int or None, default=None
        Variables of a round. None: 1024, doubled up to 4096 while most of them end up between their bounds.

    Examples
    --------
    >>> from pegasos import SMO, SVC
    >>> model = SVC(solver=SMO(working_set=256), gamma=1.0).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 1, 0])
    >>> model.predict([[0.0], [1.5]])
    array([0, 1])
    """

    working_set: int | None = None
    name: ClassVar[str] = "smo"

    def __post_init__(self) -> None:
        size = self.working_set
        whole = isinstance(size, int | np.integer) and not isinstance(size, bool)
        if size is not None and not (whole and 4 <= size <= 2**15):
            raise ValueError(f"SMO: working_set={size!r} must be None or a whole number from 4 to 32768")

    def engine(self, problem: KernelProblem, *, tol: float, max_steps: int | None, seed: int) -> KernelEngine:
        from pegasos._smo import SMOEngine
        from pegasos._whole_smo import engine, suits

        if self.working_set is None and suits(problem):
            return engine(problem, tol=tol, max_steps=max_steps)
        size = None if self.working_set is None else int(self.working_set)
        return SMOEngine(problem, tol=tol, max_steps=max_steps, working_set=size)


#: Epochs of the stochastic solvers of kernel machines unless ``max_iter`` says otherwise.
EPOCHS = 1000


@dataclass(frozen=True)
class _KernelPegasos(KernelSolver):
    """Pegasos on a kernel machine; steps are epochs."""

    options: Pegasos
    name: ClassVar[str] = "pegasos"
    intercepts: ClassVar[tuple[str, ...]] = ("unregularized", "subgradient", "feature", "none")
    losses: ClassVar[tuple[str, ...]] = SCALAR_LOSSES

    def check(self, problem: KernelProblem, intercept: str) -> None:
        super().check(problem, intercept)
        self.options.kernel_sampling()

    def engine(self, problem: KernelProblem, *, tol: float, max_steps: int | None, seed: int) -> KernelEngine:
        from pegasos._kernel_pegasos import KernelPegasosEngine

        options = self.options
        units = [options.units_for(part.loss, part.y, part.weight, problem.bias) for part in problem.pieces]
        radius = float(np.sqrt(problem.at_zero().max() / problem.lam)) if options.projection else 0.0
        return KernelPegasosEngine(
            problem,
            tol=tol,
            max_epochs=max_steps or EPOCHS,
            t0=[self._t0(problem, k, units[k].step) for k in range(problem.parts)],
            units=units,
            batch_size=min(int(options.batch_size), max(part.m for part in problem.pieces)),
            sampling=options.kernel_sampling(),
            radius=radius,
            output=options.output,
            seed=seed,
        )

    def _t0(self, problem: KernelProblem, k: int, step: float) -> float:
        part, diagonal = problem.pieces[k], problem.rows(k).diagonal()
        mean, largest = float(part.weight @ diagonal) / problem.total, float(diagonal.max(initial=0.0))
        B2 = problem.feature**2 if problem.bias == "feature" else 0.0
        return self.options.t0_for(part.loss, mean, largest, B2, problem.lam, step)


@dataclass(frozen=True)
class _KernelSDCA(KernelSolver):
    """SDCA on a kernel machine; steps are epochs."""

    options: SDCA
    name: ClassVar[str] = "sdca"
    intercepts: ClassVar[tuple[str, ...]] = ("unregularized", "feature", "none")
    losses: ClassVar[tuple[str, ...]] = SCALAR_LOSSES

    def check(self, problem: KernelProblem, intercept: str) -> None:
        super().check(problem, intercept)
        kernel_order(self.options, self.options.sampling)
        if self.options.blocks is not None:
            raise ValueError(f"SDCA: blocks={self.options.blocks} has no meaning with a kernel; n_jobs shares the work")

    def engine(self, problem: KernelProblem, *, tol: float, max_steps: int | None, seed: int) -> KernelEngine:
        from pegasos._kernel_sdca import KernelSDCAEngine

        sampling = kernel_order(self.options, self.options.sampling)
        return KernelSDCAEngine(problem, tol=tol, max_epochs=max_steps or EPOCHS, sampling=sampling, seed=seed)


@dataclass(frozen=True)
class LASVM(KernelSolver):
    """LASVM: a good kernel machine from one pass over the rows, and the optimum after finishing.

    Every row is looked at once, in random order: it moves together with the row that violates the optimality conditions
    most against it (PROCESS), then the worst pair of all that are kept moves (REPROCESS), and rows that will not matter
    are forgotten. Finishing repeats REPROCESS over all rows until the fit's ``tol``, with the batches of :class:`SMO`.
    Bordes, Ertekin, Weston & Bottou (2005).

    Parameters
    ----------
    epochs : int, default=1
        Passes over the rows.
    finish : bool, default=True
        Whether to go on to the optimum. Without, the fit ends after its passes, with whatever gap there is.
    tau : float, default=1e-3
        Pairs that violate by no more are left alone in the passes.

    Examples
    --------
    >>> from pegasos import LASVM, SVC
    >>> model = SVC(solver=LASVM(epochs=2), gamma=1.0).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 1, 0])
    >>> model.predict([[0.0], [1.5]])
    array([0, 1])
    """

    epochs: int = 1
    finish: bool = True
    tau: float = 1e-3
    name: ClassVar[str] = "lasvm"

    def __post_init__(self) -> None:
        check_count(self, "epochs")
        check_flag(self, "finish")
        _check_positive(self, "tau")

    def engine(self, problem: KernelProblem, *, tol: float, max_steps: int | None, seed: int) -> KernelEngine:
        from pegasos._lasvm import LASVMEngine

        return LASVMEngine(
            problem,
            tol=tol,
            max_steps=max_steps,
            seed=seed,
            epochs=int(self.epochs),
            finish=bool(self.finish),
            tau=float(self.tau),
        )


@dataclass(frozen=True)
class SBP(KernelSolver):
    """The stochastic batch perceptron, for classification: the largest margin that a given amount of slack allows.

    Maximises the level γ to which all margins can be lifted,

    .. math:: \\gamma^* = \\max_{\\|w\\| \\le 1,\\, b}\\; \\max_{\\xi \\ge 0,\\, \\sum_i c_i \\xi_i \\le M\\nu}\\;
        \\min_i\\; y_i(\\langle w, \\phi(x_i)\\rangle + b) + \\xi_i,

    by steps along rows drawn from those below the level (Cotter, Shalev-Shwartz & Srebro 2012). The model is w/γ for
    the w and γ reached, of norm at most 1/γ and mean hinge loss at most ν/γ. What the method knows of its own problem,
    γ and an upper bound, is in the fitted attribute ``sbp_``, for each pair of classes. The certificate is that of the
    estimator's objective at its ``C``, and the fit stops where that gap is at most ``tol``, or for a given ν where γ is
    that close to its upper bound; expect per cents, not 1e-3.

    Parameters
    ----------
    nu : float or None, default=None
        ν ≥ 0. None: the mean hinge loss divided by the norm of a quick solution by :class:`SMO`, so that the optimum
        is that of the estimator's objective.
    max_steps : int, default=20000
        Steps on each pair of classes.

    Examples
    --------
    >>> from pegasos import SBP, SVC
    >>> model = SVC(solver=SBP(), gamma=1.0, tol=0.1).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 1, 0])
    >>> model.predict([[0.0], [1.5]])
    array([0, 1])
    """

    nu: float | None = None
    max_steps: int = 20_000
    name: ClassVar[str] = "sbp"
    losses: ClassVar[tuple[str, ...]] = ("hinge",)

    def __post_init__(self) -> None:
        nu = self.nu
        if nu is not None and (not isinstance(nu, Real) or isinstance(nu, bool) or not 0 <= float(nu) < np.inf):
            raise ValueError(f"SBP: nu={nu!r} must be None or a number >= 0")
        check_count(self, "max_steps")

    def engine(self, problem: KernelProblem, *, tol: float, max_steps: int | None, seed: int) -> KernelEngine:
        from pegasos._sbp import SBPEngine

        nu = None if self.nu is None else float(self.nu)
        return SBPEngine(problem, tol=tol, max_steps=max_steps, seed=seed, nu=nu, own_steps=int(self.max_steps))


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
        that have a dual variable other than zero, in blocks. "auto": if that costs less than the fit, or next to
        nothing. Without it the lower bound is 0, that of all losses.

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
    losses: ClassVar[tuple[str, ...]] = SCALAR_LOSSES

    def __post_init__(self) -> None:
        check_count(self, "n_components")
        if not isinstance(self.exact_bound, bool | np.bool_) and self.exact_bound != "auto":
            raise ValueError(f"Nystroem: exact_bound={self.exact_bound!r} must be 'auto', True or False")

    def check(self, problem: KernelProblem, intercept: str) -> None:
        super().check(problem, intercept)
        if problem.kernel.name == "precomputed":
            raise ValueError("solver 'nystroem' needs rows to compute kernel values of; kernel='precomputed' has none")

    def engine(self, problem: KernelProblem, *, tol: float, max_steps: int | None, seed: int) -> KernelEngine:
        from pegasos._nystroem import NystroemEngine

        return NystroemEngine(
            problem,
            tol=tol,
            max_steps=max_steps,
            seed=seed,
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


def _check_positive(solver: KernelSolver, field: str) -> None:
    value = getattr(solver, field)
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < np.inf:
        raise ValueError(f"{type(solver).__name__}: {field}={value!r} must be a number > 0")


#: Every solver of kernel machines by its name; two of them are for linear machines, too.
KERNEL_SOLVERS: dict[str, type[KernelSolver | Solver]] = {
    cls.name: cls for cls in (SMO, Pegasos, SDCA, LASVM, SBP, Nystroem)
}


def kernel_solver(solver: str | Solver | KernelSolver, problem: KernelProblem, intercept: str) -> KernelSolver:
    """The solver for a problem, refused if it cannot do it; "auto" is SMO where that can, else SDCA, or Pegasos."""
    found = resolve_kernel(solver)
    able = problem.loss.name in found.losses and intercept in found.intercepts
    if isinstance(solver, str) and solver == "auto" and not able:
        found = _KernelPegasos(Pegasos()) if intercept == "subgradient" else _KernelSDCA(SDCA())
    found.check(problem, intercept)
    return found


def resolve_kernel(solver: str | Solver | KernelSolver) -> KernelSolver:
    """The solver object that a user's ``solver`` means for a kernel machine; "auto" is SMO, where that can."""
    found = solver
    if isinstance(solver, str) and solver in ("auto", *KERNEL_SOLVERS):
        found = SMO() if solver == "auto" else KERNEL_SOLVERS[solver]()
    if isinstance(found, KernelSolver):
        return found
    if isinstance(found, Pegasos):
        return _KernelPegasos(found)
    if isinstance(found, SDCA):
        return _KernelSDCA(found)
    names = ("auto", *KERNEL_SOLVERS)
    hint = did_you_mean(solver, names) if isinstance(solver, str) else ""
    if isinstance(solver, type) and issubclass(solver, KernelSolver | Pegasos | SDCA):
        hint = f" (did you mean {solver.__name__}(), with parentheses?)"
    elif isinstance(solver, Solver) or (isinstance(solver, str) and solver in SOLVERS):
        hint = "; that one is for the linear estimators"
    raise ValueError(
        f"solver={solver!r} is unknown; it can be {', '.join(names)} or a pegasos.solvers object for kernels{hint}"
    )
