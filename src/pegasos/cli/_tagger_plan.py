"""From arguments to a tagger of sequences, and how its sentences are read."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pegasos import solvers
from pegasos.cli import _spec
from pegasos.cli._plan import class_weight, given

if TYPE_CHECKING:
    from pegasos.estimators.sequence import SequenceSVC

#: Options that taggers do not have.
_NO_OPTIONS = {
    "kernel": "--kernel",
    "gamma": "--gamma",
    "degree": "--degree",
    "coef0": "--coef0",
    "cache_size": "--cache-size",
    "bias": "-B",
    "intercept": "--intercept",
    "regression": "--regression",
    "type": "-s",
    "epsilon": "-p",
    "n_features": "--n-features",
    "zero_based": "--zero-based",
    "feature_names": "--feature-names",
}
_LOSSES = ("hinge", "log")
_TABLE = solvers.TABLES["chain"]


@dataclass(frozen=True)
class TaggerPlan:
    """The parameters of a tagger. ``grammar``: a name, or a file of pairs of tags; the rest is how DATA are read."""

    parameters: dict[str, object]
    seed: int
    grammar: str | None
    template: str | None
    delimiter: str | None
    comments: tuple[str, ...]
    encoding: str

    @classmethod
    def of(cls, args: argparse.Namespace) -> TaggerPlan:
        """What the arguments of ``train`` mean; ValueError if they contradict each other or name unknown things."""
        if args.C is not None and args.lam is not None:
            raise ValueError("-c and --lam say the same thing (λ = 1/(C · sentences)); give one of them")
        for name, option in _NO_OPTIONS.items():
            value = getattr(args, name)
            if value is not None and value is not False:  # 0 is given, too
                raise ValueError(f"{option} does not go with --format conll; leave it out")
        loss = args.loss or "hinge"
        if loss not in _LOSSES:
            raise ValueError(f"--loss {loss} is not for tagged sentences; it can be {' or '.join(_LOSSES)}")
        if args.class_weight and loss == "log":
            raise ValueError("class weights are for --loss hinge: the log loss knows no costs")
        chosen: dict[str, object] = {"loss": loss, "solver": _solver(args.solver, loss), "random_state": args.seed}
        chosen |= {"C": args.C, "lam": args.lam, "tol": args.tol, "max_iter": args.max_iter}
        chosen |= {"max_time": args.max_time, "n_jobs": args.threads}
        if args.class_weight:
            chosen["class_weight"] = class_weight(args.class_weight, str)
        delimiter = "\t" if args.delimiter in ("tab", "\\t") else args.delimiter
        if delimiter is not None and len(delimiter) != 1:
            raise ValueError(f"--delimiter {args.delimiter!r} must be one character, or tab")
        how = args.template, delimiter, tuple(args.comments), args.encoding or "utf-8"
        return cls(given(chosen), args.seed, args.grammar, *how)

    def estimator(self, **more: object) -> SequenceSVC:
        """A new estimator."""
        from pegasos.cli import _startup

        _startup.import_sklearn()
        from pegasos.estimators.sequence import SequenceSVC

        kind: Any = SequenceSVC  # its parameters are checked by its fit
        model: SequenceSVC = kind(**self.parameters, **more)
        return model


def _solver(text: str, loss: str) -> object:
    if text == "auto":
        return "auto"
    name = text.partition(":")[0]
    if name not in _TABLE and any(name in table for table in solvers.TABLES.values()):
        raise ValueError(f"--solver {name} is not for tagged sentences; it can be auto, {', '.join(_TABLE)}")
    solver = _spec.parse(text, _TABLE, "--solver")
    able = solvers.resolve(solver, "chain").losses
    if loss not in able:
        raise ValueError(f"--solver {name} is for --loss {' and '.join(able)}, not for {loss}")
    return solver if ":" in text else name
