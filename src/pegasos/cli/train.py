"""``pegasos train``: read, fit, certify, judge, save."""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pegasos.cli import _output
from pegasos.cli._exit import NOT_CONVERGED, OK, Failure
from pegasos.cli._models import format_of
from pegasos.cli._progress import Progress


def run(args: argparse.Namespace) -> int:
    """Train as the arguments say; the exit code."""
    _check_usage(args)
    from pegasos.cli import _plan

    try:
        plan = _plan.Plan.of(args)
    except ValueError as error:
        args.usage_error(str(error))
    return _Training(args, plan).run()


def _check_usage(args: argparse.Namespace) -> None:
    """Refuse what no data could make right, before anything is read."""
    if args.model is None and args.folds is None:
        args.usage_error("name the file to write with -m MODEL, or ask for cross-validation with -v K")
    if args.model is None:
        for name in ("test", "record", "checkpoint", "format"):
            if getattr(args, name) is not None:
                args.usage_error(f"--{name} needs a model: add -m MODEL")
    if args.model == "-":
        args.usage_error("the model cannot go to standard output; name a file with -m MODEL")
    if args.resume and args.checkpoint is None:
        args.usage_error("--resume needs --checkpoint FILE, the file to go on from")
    if args.data == "-" and args.test == "-":
        args.usage_error("only one of DATA and --test can be standard input")
    _check_format(args)
    outputs = {"the model": args.model, "the record": args.record, "the checkpoint": args.checkpoint}
    for what, path in outputs.items():
        if path is not None:
            _output.check_target(path, what)
    _output.check_distinct({"the data": args.data, "the test rows": args.test}, outputs)
    if args.checkpoint is not None and not args.resume and os.path.exists(args.checkpoint):
        raise Failure(f"{args.checkpoint}: there already; add --resume to go on from it, or remove it to begin anew")


def _check_format(args: argparse.Namespace) -> None:
    """Refuse a format that cannot hold the model before it is trained."""
    if args.model is None or args.kernel is None:
        return
    form = format_of(args.model, args.format)
    if form == "liblinear" or (form == "libsvm" and args.kernel in ("laplacian", "chi2")):
        args.usage_error(f"a {form} model has no {args.kernel} kernel machines; use the format pegasos or onnx")


class _Training:
    """One run, from reading to saving. What it finds out on the way is kept for the record."""

    model: Any
    advice: str | None = None

    def __init__(self, args: argparse.Namespace, plan: Any) -> None:
        self.args, self.plan = args, plan
        self.seconds: dict[str, float] = {}
        self.test: Any = None
        self.scores: Any = None

    def run(self) -> int:
        args = self.args
        with Progress(quiet=args.quiet) as progress:
            with self._timed("read"):
                self._read(progress)
            if args.folds is not None:
                with self._timed("cross-validate"):
                    self._cross_validate(progress)
            if args.model is not None:
                with self._timed("fit"):
                    self._fit(progress)
                progress.stage("evaluating and saving")
                with _undisturbed():
                    record, test = self._finish()
        if args.model is None:
            return self._say_scores()
        return self._say(record, test)

    def _read(self, progress: Progress) -> None:
        from pegasos.cli import _rows

        args = self.args
        options = {"regression": self.plan.regression, "zero_based": args.zero_based, "threads": args.threads}
        progress.stage(f"reading {args.data}")
        self.rows = _rows.read(args.data, n_features=args.n_features, **options)
        self.names = self._feature_names()
        if args.test is not None:
            progress.stage(f"reading {args.test}")
            self.test = _rows.read(args.test, n_features=None, **options)

    def _feature_names(self) -> list[str] | None:
        path = self.args.feature_names
        if path is None:
            return self.rows.names
        try:
            names = Path(path).read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise Failure(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from None
        columns = self.rows.X.shape[1]
        if len(names) != columns:
            raise Failure(f"{path}: has {len(names)} names, one a line, but {self.rows.source} has {columns} features")
        return names

    def _cross_validate(self, progress: Progress) -> None:
        from pegasos.cli import _folds

        self.scores = _folds.cross_validate(self.plan, self.rows, self.args.folds, progress)

    def _fit(self, progress: Progress) -> None:
        args = self.args
        if args.resume and not os.path.exists(args.checkpoint) and not args.quiet:
            print(f"pegasos: {args.checkpoint}: not there, so the fit begins anew", file=sys.stderr)
        every = {} if args.checkpoint_every is None else {"checkpoint_every": args.checkpoint_every}
        model = self.plan.estimator(checkpoint=args.checkpoint, **every)
        epochs = None if self.plan.kernel else model.max_iter  # that of a kernel machine counts steps
        progress.fitting(self.rows.X.shape[0], model.tol, epochs, model.max_time)
        model.set_params(callback=progress.callback, on_interrupt="keep")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                self.rows.fit(model)
            except ValueError as error:
                raise Failure(f"{self.rows.source}: {error}") from None
        # The model file is the same however the run was watched.
        self.model = model.set_params(callback=None, on_interrupt="raise", checkpoint=None)
        self.advice = "\n".join(str(warning.message) for warning in caught) or None

    def _finish(self) -> tuple[Any, Any]:
        """Judge and save; the record, if one is asked for, and the evaluation on the test rows."""
        from pegasos import _record
        from pegasos.cli import _models
        from pegasos.cli._judge import judge

        args = self.args
        with self._timed("evaluate"):
            wanted = self.test is not None and not self._interrupted
            test = judge(self.model, self.test.blocks(), self.test.source) if wanted else None
            record = self._record(test) if args.record is not None or args.json else None
        _models.save(self.model, args.model, format_of(args.model, args.format))
        if record is not None and args.record is not None:
            with _output.writing(args.record) as file:
                file.write(_record.to_json(record))
        return record, test

    @property
    def _interrupted(self) -> bool:
        return bool(self.model.certificate_.reason == "interrupted")

    def _record(self, test: Any) -> Any:
        from pegasos import _record
        from pegasos.cli import _describe
        from pegasos.cli._judge import judge

        rows, model = self.rows, self.model
        return _record.Run(
            schema=_record.SCHEMA,
            name=self.args.name or Path(self.args.model).stem,
            created=_describe.now(),
            command=("pegasos", *self.args.words),
            seed=self.args.seed,
            data=_describe.data(rows.source, rows.X, rows.y, classes=not self.plan.regression),
            model=_describe.model(model),
            certificate=_describe.certificate(model),
            trace=_describe.trace(model),
            training=None if self._interrupted else judge(model, rows.blocks(), rows.source),
            test=test,
            cross_validation=self.scores,
            features=_describe.features(model, self.names),
            seconds={name: round(value, 6) for name, value in self.seconds.items()},
            versions=_describe.versions(),
            kernel=_describe.kernel(model),
        )

    def _say_scores(self) -> int:
        import json
        from dataclasses import asdict

        from pegasos.cli import _say

        if self.args.json:
            print(json.dumps({"cross_validation": asdict(self.scores)}))
        else:
            print(_say.cross_validation(self.scores))
        return OK

    def _say(self, record: Any, test: Any) -> int:
        """Results to standard output, what went wrong to standard error; the exit code."""
        from pegasos import _record
        from pegasos.cli import _describe, _say

        args, certificate = self.args, self.model.certificate_
        if args.json:
            sys.stdout.write(_record.to_json(record))
        elif not args.quiet:
            data = _describe.data(self.rows.source, self.rows.X, self.rows.y, classes=not self.plan.regression)
            print(f"{data.source}: {data.rows:,} rows, {data.columns:,} columns, {data.entries:,} entries")
            print(_say.classes(data.classes))
            print(certificate)
            if (kernel := _describe.kernel(self.model)) is not None:
                print(_say.kernel(kernel))
            if self.scores is not None:
                print(_say.cross_validation(self.scores))
            if test is not None:
                print(_say.evaluation(test))
            print(f"model: {args.model}")
        if self._interrupted:
            gap = f"relative gap {certificate.relative_gap:.2e}"
            print(f"pegasos: interrupted; the model so far ({gap}) is saved in {args.model}", file=sys.stderr)
            return 128 + int(args.signals.last)
        if not args.quiet and self.advice is not None:
            print(f"pegasos: {_as_options(self.advice)}", file=sys.stderr)
        return OK if certificate.converged else NOT_CONVERGED

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[step] = time.perf_counter() - began


def _as_options(advice: str) -> str:
    """Advice that names parameters of estimators, in the words of the command line."""
    options = {"max_iter": "--max-iter", "max_time": "--max-time", "tol": "--tol", "C": "-c", "lam": "--lam"}
    return re.sub(r"\b(max_iter|max_time|tol|C|lam)\b", lambda word: options[word[0]], advice)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ctrl-C and SIGTERM wait until the model is saved."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    try:
        before = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    except ValueError:  # not the main thread, which gets no signals anyway
        yield
        return
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
