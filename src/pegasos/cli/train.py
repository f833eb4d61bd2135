"""``pegasos train``: read, fit, certify, judge, save."""

from __future__ import annotations

import argparse
import os
from typing import Any

from pegasos.cli import _output
from pegasos.cli._exit import Failure
from pegasos.cli._training import Training, model_format


def run(args: argparse.Namespace) -> int:
    """Train as the arguments say; the exit code."""
    _check_usage(args)
    try:
        training = _training(args)
    except ValueError as error:
        args.usage_error(str(error))
    return training.run()


def _training(args: argparse.Namespace) -> Training[Any]:
    """The run that the arguments ask for; ValueError if they contradict each other or name unknown things."""
    if args.format == "conll":
        from pegasos.cli import _tagger_plan, _train_tagger

        return _train_tagger.TaggerTraining(args, _tagger_plan.TaggerPlan.of(args))
    from pegasos.cli import _plan, _train_rows

    return _train_rows.RowTraining(args, _plan.Plan.of(args))


def _check_usage(args: argparse.Namespace) -> None:
    """Refuse what no data could make right, before anything is read."""
    if args.model is None and args.folds is None:
        args.usage_error("name the file to write with -m MODEL, or ask for cross-validation with -v K")
    if args.model is None:
        for name in ("test", "record", "checkpoint"):
            if getattr(args, name) is not None:
                args.usage_error(f"--{name} needs a model: add -m MODEL")
        if args.format not in (None, "conll"):
            args.usage_error("--format needs a model: add -m MODEL")
    if args.model == "-":
        args.usage_error("the model cannot go to standard output; name a file with -m MODEL")
    if args.resume and args.checkpoint is None:
        args.usage_error("--resume needs --checkpoint FILE, the file to go on from")
    inputs = {"the data": args.data, "the test rows": args.test, "the template": args.template}
    names = {"the data": "DATA", "the test rows": "--test", "the template": "--template"}
    if len(piped := [names[what] for what, path in inputs.items() if path == "-"]) > 1:
        args.usage_error(f"only one of {' and '.join(piped)} can be standard input")
    outputs = {"the model": args.model, "the record": args.record, "the checkpoint": args.checkpoint}
    for what, path in outputs.items():
        if path is not None:
            _output.check_target(path, what)
    _output.check_distinct(inputs, outputs)
    _check_format(args)
    if args.checkpoint is not None and not args.resume and os.path.exists(args.checkpoint):
        raise Failure(f"{args.checkpoint}: there already; add --resume to go on from it, or remove it to begin anew")


def _check_format(args: argparse.Namespace) -> None:
    """Refuse a format that cannot hold the model before it is trained."""
    if args.model is None:
        return
    form = model_format(args)
    if args.format == "conll" and form != "pegasos":
        args.usage_error(f"a model of the format {form} holds no taggers; call it .model or .safetensors")
    if args.kernel is None:
        return
    if form == "liblinear" or (form == "libsvm" and args.kernel in ("laplacian", "chi2")):
        args.usage_error(f"a {form} model has no {args.kernel} kernel machines; use the format pegasos or onnx")
