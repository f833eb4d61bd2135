"""From arguments to an estimator: what LIBLINEAR's and LIBSVM's letters and ours mean."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pegasos import losses, solvers
from pegasos.cli import _spec
from pegasos.cli._labels import label_from_text
from pegasos.cli._train_arguments import KERNELS, TAGGER_OPTIONS
from pegasos.report.record import KERNEL_PARAMETERS

if TYPE_CHECKING:
    from pegasos.cli._models import AnyModel

LabelOf: TypeAlias = Callable[[str], int | float | str]

#: LIBLINEAR's solver types that have no counterpart here, and why.
_NO_COUNTERPART = {5: "L1 regularisation", 6: "L1 regularisation", 21: "one-class machines"}
#: … and the others, with the loss that each minimises.
_TYPES = dict(
    sorted(
        (number, name)
        for name, cls in losses.LOSSES.items()
        for number in (cls.liblinear.own if cls.liblinear else ())
        if number not in _NO_COUNTERPART
    )
)
#: The options of kernel machines, and the kernels that each is for.
_KERNEL_OPTIONS = KERNEL_PARAMETERS | {"cache_size": KERNELS}
_NAMED = ", ".join(("auto", *solvers.KERNEL_SOLVERS))
_TUBES = tuple(name for name, cls in losses.LOSSES.items() if "epsilon" in losses.fields_of(cls))


@dataclass(frozen=True)
class Plan:
    """Which estimator, with which parameters."""

    regression: bool
    parameters: dict[str, object]
    seed: int = 0
    kernel: bool = False

    @classmethod
    def of(cls, args: argparse.Namespace) -> Plan:
        """What the arguments of ``train`` mean; ValueError if they contradict each other or name unknown things."""
        if args.C is not None and args.lam is not None:
            raise ValueError("-c and --lam say the same thing (λ = 1/(C · rows)); give one of them")
        if args.class_weight and args.regression:
            raise ValueError("class weights are for classes, not for regression")
        for name in TAGGER_OPTIONS:
            if getattr(args, name):
                raise ValueError(f"--{name} is for tagged sentences; add --format conll")
        return cls._of_kernel(args) if args.kernel is not None else cls._of_linear(args)

    @classmethod
    def _of_linear(cls, args: argparse.Namespace) -> Plan:
        for name in _KERNEL_OPTIONS:
            if getattr(args, name) is not None:
                raise ValueError(f"--{name.replace('_', '-')} is for kernel machines; add --kernel, rbf say")
        loss = _loss(args)
        kind = losses.LOSSES[loss if isinstance(loss, str) else loss.name].kind
        regression = kind == "regression"
        if args.regression and not regression:
            raise ValueError(f"--loss {args.loss or loss} is for classes, not for --regression")
        chosen: dict[str, object] = {"loss": loss, "solver": _solver(args), "random_state": args.seed}
        chosen |= {"n_jobs": args.threads, "tol": args.tol, "max_iter": args.max_iter, "max_time": args.max_time}
        chosen |= {"C": args.C, "lam": args.lam} | _intercept(args)
        if args.epsilon is not None:
            if loss not in _TUBES:
                raise ValueError(f"-p is for the losses {' and '.join(_TUBES)} (with --regression)")
            chosen["epsilon"] = args.epsilon
        if args.class_weight:
            if regression:
                raise ValueError("class weights are for classes, not for regression")
            chosen["class_weight"] = class_weight(args.class_weight)
        return cls(regression, given(chosen), args.seed)

    @classmethod
    def _of_kernel(cls, args: argparse.Namespace) -> Plan:
        """A kernel machine; what its estimator has no parameter for is refused by name."""
        for name, kernels in _KERNEL_OPTIONS.items():
            if getattr(args, name) is not None and args.kernel not in kernels:
                raise ValueError(f"--{name.replace('_', '-')} is for --kernel {', '.join(kernels)}, not {args.kernel}")
        if args.type is not None:
            raise ValueError("-s is LIBLINEAR's number of a loss; with --kernel leave it out")
        if args.epsilon is not None and not args.regression:
            raise ValueError("-p is the half width of the tube of a regression; add --regression")
        chosen = {name: getattr(args, name) for name in ("kernel", *_KERNEL_OPTIONS, "C", "lam", "tol", "epsilon")}
        chosen |= {"max_iter": args.max_iter, "max_time": args.max_time, "n_jobs": args.threads}
        chosen |= {"solver": _kernel_solver(args)} | _intercept(args)
        if args.loss is not None:
            chosen["loss"] = _loss(args)
        if args.class_weight:
            chosen["class_weight"] = class_weight(args.class_weight)
        plan = cls(args.regression, given(chosen), args.seed, kernel=True)
        known = inspect.signature(plan.kind).parameters
        for name in plan.parameters:
            if name not in known:
                option = "--loss" if name == "loss" else "-B" if args.bias is not None else "--intercept"
                how = "--kernel with --regression" if args.regression else "--kernel"
                raise ValueError(f"{option} does not go with {how}; leave it out")
        seeded = {"random_state": args.seed} if "random_state" in known else {}
        return cls(args.regression, plan.parameters | seeded, args.seed, kernel=True)

    @property
    def kind(self) -> type[AnyModel]:
        """The estimator's class."""
        from pegasos.cli import _startup

        _startup.import_sklearn()
        if self.kernel:
            from pegasos.estimators.svc import SVC
            from pegasos.estimators.svr import SVR

            return SVR if self.regression else SVC
        from pegasos.estimators.linear import LinearSVC, LinearSVR

        return LinearSVR if self.regression else LinearSVC

    def estimator(self, **more: object) -> AnyModel:
        """A new estimator."""
        kind: Any = self.kind  # its parameters are checked by its fit
        model: AnyModel = kind(**self.parameters, **more)
        return model


def given(chosen: dict[str, object]) -> dict[str, object]:
    """Those parameters that are given; the others have their defaults."""
    return {name: value for name, value in chosen.items() if value is not None}


def _loss(args: argparse.Namespace) -> str | losses.Loss:
    if args.type is not None:
        if args.loss is not None:
            raise ValueError("-s and --loss say the same thing; give one of them")
        if args.type not in _TYPES:
            why = f"means {_NO_COUNTERPART[args.type]}, not offered" if args.type in _NO_COUNTERPART else "is unknown"
            raise ValueError(f"-s {args.type} {why}; it can be {', '.join(map(str, _TYPES))}")
        return _TYPES[args.type]
    if args.loss is None:
        return "epsilon_insensitive" if args.regression else "hinge"
    loss = _spec.parse(args.loss, losses.LOSSES, "--loss")
    return loss if ":" in args.loss else loss.name


def _solver(args: argparse.Namespace) -> str | solvers.Solver:
    name = args.solver.partition(":")[0]
    if name in solvers.KERNEL_SOLVERS and name not in solvers.SOLVERS:
        raise ValueError(f"--solver {name} is for kernel machines; add --kernel, rbf say")
    solver = _spec.parse(args.solver, solvers.SOLVERS, "--solver")
    return solver if ":" in args.solver else solver.name


def _kernel_solver(args: argparse.Namespace) -> str | solvers.Solver | solvers.KernelSolver:
    if args.solver == "auto":
        return "auto"
    name = args.solver.partition(":")[0]
    if name in solvers.SOLVERS and name not in solvers.KERNEL_SOLVERS:
        raise ValueError(f"--solver {name} is for linear machines; with --kernel it can be {_NAMED}")
    solver = _spec.parse(args.solver, solvers.KERNEL_SOLVERS, "--solver")
    return solver if ":" in args.solver else solver.name


def _intercept(args: argparse.Namespace) -> dict[str, object]:
    if args.bias is not None and args.intercept is not None:
        raise ValueError("-B and --intercept say the same thing; give one of them")
    if args.bias is not None and args.bias > 0:
        return {"intercept": "feature", "intercept_scaling": args.bias}
    if args.bias is not None or args.intercept == "none":  # a constant feature of zero is none
        return {"fit_intercept": False}
    return {"intercept": args.intercept}


def class_weight(words: list[str], label_of: LabelOf = label_from_text) -> str | dict[int | float | str, float]:
    """Class weights as the command line writes them; ``label_of``: what label a text names."""
    if "balanced" in words:
        if len(words) > 1:
            raise ValueError("--class-weight balanced stands alone")
        return "balanced"
    found: dict[int | float | str, float] = {}
    for word in words:
        label, equals, number = word.rpartition("=")
        try:
            weight = float(number)
        except ValueError:
            weight = -1.0
        if not equals or not label or not 0 <= weight < float("inf"):
            raise ValueError(f"class weight {word!r} must be LABEL=W with a number W >= 0 (or -wLABEL W)")
        found[label_of(label)] = weight
    return found
