"""From arguments to an estimator: what LIBLINEAR's letters and ours mean."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from pegasos import losses, solvers
from pegasos.cli import _spec
from pegasos.cli._labels import label_from_text

#: LIBLINEAR's solver types and the loss each minimises.
_TYPES = {
    0: "log",
    1: "squared_hinge",
    2: "squared_hinge",
    3: "hinge",
    4: "crammer_singer",
    7: "log",
    11: "squared_epsilon_insensitive",
    12: "squared_epsilon_insensitive",
    13: "epsilon_insensitive",
}
_NO_COUNTERPART = {5: "L1 regularisation", 6: "L1 regularisation", 21: "one-class machines"}
_TUBES = ("epsilon_insensitive", "squared_epsilon_insensitive")


@dataclass(frozen=True)
class Plan:
    """Which estimator, with which parameters."""

    regression: bool
    parameters: dict[str, Any]

    @classmethod
    def of(cls, args: argparse.Namespace) -> Plan:
        """What the arguments of ``train`` mean; ValueError if they contradict each other or name unknown things."""
        loss = _loss(args)
        kind = losses.LOSSES[loss if isinstance(loss, str) else loss.name].kind
        regression = kind == "regression"
        if args.regression and not regression:
            raise ValueError(f"--loss {args.loss or loss} is for classes, not for --regression")
        chosen: dict[str, Any] = {"loss": loss, "solver": _solver(args), "random_state": args.seed}
        chosen |= {"n_jobs": args.threads, "tol": args.tol, "max_iter": args.max_iter, "max_time": args.max_time}
        if args.C is not None and args.lam is not None:
            raise ValueError("-c and --lam say the same thing (λ = 1/(C · rows)); give one of them")
        chosen |= {"C": args.C, "lam": args.lam} | _intercept(args)
        if args.epsilon is not None:
            if loss not in _TUBES:
                raise ValueError(f"-p is for the losses {' and '.join(_TUBES)} (with --regression)")
            chosen["epsilon"] = args.epsilon
        if args.class_weight:
            if regression:
                raise ValueError("class weights are for classes, not for regression")
            chosen["class_weight"] = _class_weight(args.class_weight)
        return cls(regression, {name: value for name, value in chosen.items() if value is not None})

    def estimator(self, **more: Any) -> Any:
        """A new estimator."""
        from pegasos.cli import _startup

        _startup.import_sklearn()
        from pegasos.linear import LinearSVC, LinearSVR

        return (LinearSVR if self.regression else LinearSVC)(**self.parameters, **more)


def _loss(args: argparse.Namespace) -> Any:
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


def _solver(args: argparse.Namespace) -> Any:
    solver = _spec.parse(args.solver, solvers.SOLVERS, "--solver")
    return solver if ":" in args.solver else solver.name


def _intercept(args: argparse.Namespace) -> dict[str, Any]:
    if args.bias is not None and args.intercept is not None:
        raise ValueError("-B and --intercept say the same thing; give one of them")
    if args.bias is not None and args.bias > 0:
        return {"intercept": "feature", "intercept_scaling": args.bias}
    if args.bias is not None or args.intercept == "none":  # a constant feature of zero is none
        return {"fit_intercept": False}
    return {"intercept": args.intercept}


def _class_weight(words: list[str]) -> Any:
    if "balanced" in words:
        if len(words) > 1:
            raise ValueError("--class-weight balanced stands alone")
        return "balanced"
    found = {}
    for word in words:
        label, equals, number = word.rpartition("=")
        try:
            weight = float(number)
        except ValueError:
            weight = -1.0
        if not equals or not label or not 0 <= weight < float("inf"):
            raise ValueError(f"class weight {word!r} must be LABEL=W with a number W >= 0 (or -wLABEL W)")
        found[label_from_text(label)] = weight
    return found
