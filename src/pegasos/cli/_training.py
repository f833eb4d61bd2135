"""One run of ``pegasos train``, from reading to saving, whatever it is trained on."""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pegasos.cli import _output
from pegasos.cli._exit import NOT_CONVERGED, OK, Failure, reason
from pegasos.cli._models import format_of
from pegasos.cli._options import as_options
from pegasos.cli._progress import Progress
from pegasos.util.devices import is_special

if TYPE_CHECKING:
    from pegasos.cli._models import SavedModel
    from pegasos.fit.resume import CheckpointFile
    from pegasos.report.record import CrossValidation, Data, Evaluation, Features, Run

Model = TypeVar("Model", bound="SavedModel")


def model_format(args: argparse.Namespace) -> str:
    """The format of the model to write; ``--format conll`` is that of the data."""
    return format_of(args.model, None if args.format == "conll" else args.format)


class Training(ABC, Generic[Model]):
    """One run. What it finds out on the way is kept for the record."""

    model: Model
    #: What is trained on, as messages call it.
    source: str
    advice: str | None = None

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.seconds: dict[str, float] = {}
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

    # --- what depends on the data ------------------------------------------------------------------------------------

    @abstractmethod
    def _read(self, progress: Progress) -> None:
        """Read all data, and refuse what could not be used after an hour of training."""

    @abstractmethod
    def _cross_validate(self, progress: Progress) -> None:
        """Set ``scores``."""

    @abstractmethod
    def _new(self, **more: object) -> Model:
        """A new estimator with these parameters beside those of the plan."""

    @abstractmethod
    def _begin(self, model: Model, progress: Progress) -> None:
        """Tell the progress line what begins."""

    @abstractmethod
    def _fit_model(self, model: Model) -> None:
        """Fit a model to the data."""

    @abstractmethod
    def _judge_test(self) -> Evaluation | None:
        """How good the model is on the test data, if there are any."""

    @abstractmethod
    def _judge_training(self) -> Evaluation:
        """How good the model is on what it was trained on."""

    @abstractmethod
    def _data(self) -> Data:
        """The facts about the training data."""

    @abstractmethod
    def _features(self) -> Features | None:
        """The largest weights."""

    @abstractmethod
    def _say_data(self, data: Data) -> None:
        """Print what was trained on."""

    # --- fitting and saving ------------------------------------------------------------------------------------------

    def _fit(self, progress: Progress) -> None:
        from pegasos.fit.resume import kept_until

        args = self.args
        if args.resume and not os.path.exists(args.checkpoint) and not args.quiet:
            print(f"pegasos: {args.checkpoint}: not there, so the fit begins anew", file=sys.stderr)
        every = {} if args.checkpoint_every is None else {"checkpoint_every": args.checkpoint_every}
        model = self._new(checkpoint=args.checkpoint, **every)
        self._begin(model, progress)
        model.set_params(callback=progress.callback, on_interrupt="keep")
        told = _Told(progress, self._in_options)
        with told, kept_until(self.checkpoints):
            try:
                args.signals.check()
                self._fit_model(model)
            except ValueError as error:
                raise Failure(f"{self.source}: {error}") from None
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
            _models.save(self.model, args.model, model_format(args))
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
        from pegasos.report import record as run_record

        args = self.args
        recorded = args.record is not None or args.json
        test = training = None
        record = None
        try:
            with suppress(KeyboardInterrupt):
                if not self.interrupted:
                    args.signals.check()
                    progress.stage("evaluating")
                    test = self._judge_test()
                    if recorded:
                        training = self._judge_training()
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

    def _record(self, training: Evaluation | None, test: Evaluation | None) -> Run:
        from pegasos.cli import _describe
        from pegasos.report import record as run_record

        model = self.model
        return run_record.Run(
            schema=run_record.SCHEMA,
            name=self.args.name or Path(self.args.model).stem,
            created=_describe.now(),
            command=("pegasos", *self.args.words),
            seed=self.args.seed,
            data=self._data(),
            model=_describe.model(model),
            certificate=_describe.certificate(model),
            trace=_describe.trace(model),
            training=training,
            test=test,
            cross_validation=self.scores,
            features=self._features(),
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
            self._say_data(self._data())
            print(certificate)
            if (kernel := _describe.kernel(self.model)) is not None:
                print(_say.kernel(kernel))
            if self.scores is not None:
                print(_say.cross_validation(self.scores))
            if test is not None:
                print(_say.evaluation(test))
            print(f"model: {args.model}")
        if self.interrupted:
            estimated = certificate.estimate is not None
            gap = certificate.state if estimated else f"relative gap {certificate.relative_gap:.2e}"
            print(f"pegasos: interrupted; the model so far ({gap}) is saved in {args.model}", file=sys.stderr)
            return int(args.signals.code)
        if args.signals.pending:
            print(f"pegasos: interrupted after the fit; the model is saved in {args.model}", file=sys.stderr)
            return int(args.signals.code)
        if not args.quiet and self.advice is not None:
            print(f"pegasos: {self._in_options(self.advice)}", file=sys.stderr)
        # Who asks for an estimate has forgone the certificate.
        done = certificate.converged or certificate.goal_reached or certificate.estimate is not None
        return OK if done else NOT_CONVERGED

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
