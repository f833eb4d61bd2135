"""``pegasos train``: read, fit, certify, judge, save."""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegasos.cli import _output
from pegasos.cli._exit import NOT_CONVERGED, OK, Failure, reason
from pegasos.cli._models import check_classes, format_of
from pegasos.cli._options import as_options
from pegasos.cli._progress import Progress
from pegasos.util.devices import is_special

if TYPE_CHECKING:
    from pegasos.cli._match import Match
    from pegasos.cli._models import AnyModel
    from pegasos.cli._plan import Plan
    from pegasos.cli._rows import Rows
    from pegasos.fit.resume import CheckpointFile
    from pegasos.report.record import CrossValidation, Evaluation, Run


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
    outputs = {"the model": args.model, "the record": args.record, "the checkpoint": args.checkpoint}
    for what, path in outputs.items():
        if path is not None:
            _output.check_target(path, what)
    _output.check_distinct({"the data": args.data, "the test rows": args.test}, outputs)
    _check_format(args)
    if args.checkpoint is not None and not args.resume and os.path.exists(args.checkpoint):
        raise Failure(f"{args.checkpoint}: there already; add --resume to go on from it, or remove it to begin anew")


def _check_format(args: argparse.Namespace) -> None:
    """Refuse a format that cannot hold the model before it is trained."""
    if args.model is None:
        return
    form = format_of(args.model, args.format)
    if args.kernel is None:
        return
    if form == "liblinear" or (form == "libsvm" and args.kernel in ("laplacian", "chi2")):
        args.usage_error(f"a {form} model has no {args.kernel} kernel machines; use the format pegasos or onnx")


class _Training:
    """One run, from reading to saving. What it finds out on the way is kept for the record."""

    model: AnyModel
    rows: Rows
    advice: str | None = None

    def __init__(self, args: argparse.Namespace, plan: Plan) -> None:
        self.args, self.plan = args, plan
        self.seconds: dict[str, float] = {}
        self.test: tuple[Rows, Match] | None = None
        self.scores: CrossValidation | None = None
        self.checkpoints: list[CheckpointFile] = []
        self.interrupted = self.saved = False

    def run(self) -> int:
        try:
            return self._run()
        except KeyboardInterrupt:
            if not self.saved:
                raise
            raise Failure(f"interrupted; the model is saved in {self.args.model}", self.args.signals.code) from None

    def _run(self) -> int:
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
                progress.stage(f"saving {args.model}")
                with self._undisturbed(args.model):
                    self._save()
                record, test = self._judged(progress)
        if args.model is None:
            assert self.scores is not None
            return self._say_scores(self.scores)
        return self._say(record, test)

    def _read(self, progress: Progress) -> None:
        from pegasos.cli import _match, _rows

        args = self.args
        options = {"regression": self.plan.regression, "zero_based": args.zero_based, "threads": args.threads}
        progress.stage(f"reading {args.data}")
        self.rows = _rows.read(args.data, n_features=args.n_features, **options)
        if self.plan.kernel:
            self.rows.check_support()
        if args.model is not None and not self.plan.regression:
            check_classes(format_of(args.model, args.format), self.rows.y, kernel=self.plan.kernel)
        self.names = self._feature_names()
        if args.test is not None:
            progress.stage(f"reading {args.test}")
            test = _rows.read(args.test, n_features=None, **options)
            _rows.check_alike(test, self.rows)
            match = _match.Match(test.source, test.names, self.rows.X.shape[1], self.rows.names, progress.say)
            self.test = test, match
            match(test.matrix[:0])  # too few or too many columns are found out before the fit

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
        from pegasos.fit.resume import kept_until

        args = self.args
        if args.resume and not os.path.exists(args.checkpoint) and not args.quiet:
            print(f"pegasos: {args.checkpoint}: not there, so the fit begins anew", file=sys.stderr)
        every = {} if args.checkpoint_every is None else {"checkpoint_every": args.checkpoint_every}
        model = self.plan.estimator(checkpoint=args.checkpoint, **every)
        epochs = None if self.plan.kernel else model.max_iter  # that of a kernel machine counts steps
        progress.fitting(self.rows.X.shape[0], model.tol, epochs, model.max_time)
        model.set_params(callback=progress.callback, on_interrupt="keep")
        told = _Told(progress, self._in_options)
        with told, kept_until(self.checkpoints):
            try:
                args.signals.check()
                self.rows.fit(model)
            except ValueError as error:
                raise Failure(f"{self.rows.source}: {error}") from None
        # The model file is the same however the run was watched.
        self.model = model.set_params(callback=None, on_interrupt="raise", checkpoint=None)
        self.advice = told.later()
        self.interrupted = model.certificate_.reason == "interrupted"
        if self.interrupted:
            args.signals.pending = False

    def _save(self) -> None:
        """Write the model. The checkpoint is what there is to go on from until that has succeeded."""
        from pegasos.cli import _models

        args = self.args
        try:
            _models.save(self.model, args.model, format_of(args.model, args.format))
        except BrokenPipeError:
            raise
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            message = f"{args.model}: the model could not be saved: {why}"
            if args.checkpoint is not None and os.path.exists(args.checkpoint):
                message += f"; {args.checkpoint} holds the fit: add --resume to go on from it"
            raise Failure(message) from None
        self.saved = True
        for file in self.checkpoints:
            file.remove()

    def _judged(self, progress: Progress) -> tuple[Run | None, Evaluation | None]:
        """The record, if one is asked for, and the evaluation on the test rows. The model is safe by now."""
        from pegasos.cli import _match
        from pegasos.report import record as run_record

        args, rows = self.args, self.rows
        recorded = args.record is not None or args.json
        test = training = None
        record = None
        try:
            with suppress(KeyboardInterrupt):
                if not self.interrupted:
                    args.signals.check()
                    progress.stage("evaluating")
                    if self.test is not None:
                        test = self._judge(*self.test)
                    if recorded:
                        match = _match.Match.with_model(rows.source, rows.names, self.model, lambda remark: None)
                        training = self._judge(rows, match)
            if recorded:
                record = self._record(training, test)
            if args.record is not None and record is not None:
                with self._undisturbed(args.record), _output.writing(args.record) as file:
                    file.write(run_record.to_json(record))
        except BrokenPipeError:
            raise
        except (Failure, OSError, ValueError, MemoryError) as error:
            raise Failure(f"{reason(error).rstrip('.')}; the model is saved in {args.model}") from None
        return record, test

    def _judge(self, rows: Rows, match: Match) -> Evaluation:
        from pegasos.cli._judge import judge

        try:
            return judge(self.model, rows.blocks(), match)
        except ValueError as error:
            raise Failure(f"{rows.source}: {error}") from None

    def _record(self, training: Evaluation | None, test: Evaluation | None) -> Run:
        from pegasos.cli import _describe
        from pegasos.report import record as run_record

        rows, model = self.rows, self.model
        return run_record.Run(
            schema=run_record.SCHEMA,
            name=self.args.name or Path(self.args.model).stem,
            created=_describe.now(),
            command=("pegasos", *self.args.words),
            seed=self.args.seed,
            data=_describe.data(rows.source, rows.X, rows.y, classes=not self.plan.regression),
            model=_describe.model(model),
            certificate=_describe.certificate(model),
            trace=_describe.trace(model),
            training=training,
            test=test,
            cross_validation=self.scores,
            features=_describe.features(model, self.names),
            seconds={name: round(value, 6) for name, value in self.seconds.items()},
            versions=_describe.versions(),
            kernel=_describe.kernel(model),
        )

    def _say_scores(self, scores: CrossValidation) -> int:
        import json
        from dataclasses import asdict

        from pegasos.cli import _say

        if self.args.json:
            print(json.dumps({"cross_validation": asdict(scores)}))
        else:
            print(_say.cross_validation(scores))
        return OK

    def _say(self, record: Run | None, test: Evaluation | None) -> int:
        """Results to standard output, what went wrong to standard error; the exit code."""
        from pegasos.cli import _describe, _say
        from pegasos.report import record as run_record

        args, certificate = self.args, self.model.certificate_
        if record is not None and args.json:
            print(run_record.to_json(record), end="")
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
        if self.interrupted:
            gap = f"relative gap {certificate.relative_gap:.2e}"
            print(f"pegasos: interrupted; the model so far ({gap}) is saved in {args.model}", file=sys.stderr)
            return int(args.signals.code)
        if args.signals.pending:
            print(f"pegasos: interrupted after the fit; the model is saved in {args.model}", file=sys.stderr)
            return int(args.signals.code)
        if not args.quiet and self.advice is not None:
            print(f"pegasos: {self._in_options(self.advice)}", file=sys.stderr)
        return OK if certificate.converged or certificate.goal_reached else NOT_CONVERGED

    def _in_options(self, message: str) -> str:
        """A message that names parameters of estimators, in the words of the command line."""
        return as_options(message, self.args.parser.options, self.args.words)

    def _undisturbed(self, path: str) -> AbstractContextManager[None]:
        """Signals wait until the file is written. A pipe can take any time."""
        held: AbstractContextManager[None] = nullcontext() if is_special(path) else self.args.signals.held()
        return held

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[step] = time.perf_counter() - began


class _Told:
    """A context manager for warnings: those that advise at the end of a fit wait, all others are told at once.

    What is said of every failed write of a checkpoint, for one, is said when it fails, and once.
    """

    def __init__(self, progress: Progress, in_options: Callable[[str], str]) -> None:
        self._progress, self._in_options = progress, in_options
        self._advice: list[str] = []
        self._said: set[str] = set()

    def __enter__(self) -> None:
        self._catching = warnings.catch_warnings()
        self._catching.__enter__()
        warnings.simplefilter("always")
        warnings.showwarning = self._show

    def __exit__(self, *error: Any) -> None:
        self._catching.__exit__(*error)

    def _show(self, message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        if issubclass(category, UserWarning):
            self._advice.append(str(message))
        elif str(message) not in self._said:
            self._said.add(str(message))
            self._progress.warn(self._in_options(str(message)))

    def later(self) -> str | None:
        """The advice, if there is any."""
        return "\n".join(self._advice) or None
