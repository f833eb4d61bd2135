"""``pegasos train`` on rows: linear and kernel machines."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pegasos.cli._exit import Failure
from pegasos.cli._models import check_classes
from pegasos.cli._progress import Progress
from pegasos.cli._training import Training, model_format

if TYPE_CHECKING:
    from pegasos.cli._match import Match
    from pegasos.cli._models import AnyModel
    from pegasos.cli._plan import Plan
    from pegasos.cli._rows import Rows
    from pegasos.report.record import Data, Evaluation, Features


class RowTraining(Training["AnyModel"]):
    """A run on the rows of a file or folder."""

    rows: Rows
    test: tuple[Rows, Match] | None = None

    def __init__(self, args: argparse.Namespace, plan: Plan) -> None:
        super().__init__(args)
        self.plan = plan

    def _read(self, progress: Progress) -> None:
        from pegasos.cli import _match, _rows

        args = self.args
        options = {"regression": self.plan.regression, "zero_based": args.zero_based, "threads": args.threads}
        progress.stage(f"reading {args.data}")
        self.rows = _rows.read(args.data, n_features=args.n_features, **options)
        self.source = self.rows.source
        if self.plan.kernel:
            self.rows.check_support()
        if args.model is not None and not self.plan.regression:
            check_classes(model_format(args), self.rows.y, kernel=self.plan.kernel)
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

    def _new(self, **more: object) -> AnyModel:
        return self.plan.estimator(**more)

    def _begin(self, model: AnyModel, progress: Progress) -> None:
        epochs = None if self.plan.kernel else model.max_iter  # that of a kernel machine counts steps
        progress.fitting(self.rows.X.shape[0], model.tol, epochs, model.max_time)

    def _fit_model(self, model: AnyModel) -> None:
        self.rows.fit(model)

    def _judge_test(self) -> Evaluation | None:
        return None if self.test is None else self._judge(*self.test)

    def _judge_training(self) -> Evaluation:
        from pegasos.cli import _match

        rows = self.rows
        return self._judge(rows, _match.Match.with_model(rows.source, rows.names, self.model, lambda remark: None))

    def _judge(self, rows: Rows, match: Match) -> Evaluation:
        from pegasos.cli._judge import judge

        try:
            return judge(self.model, rows.blocks(), match)
        except ValueError as error:
            raise Failure(f"{rows.source}: {error}") from None

    def _data(self) -> Data:
        from pegasos.cli import _describe

        return _describe.data(self.source, self.rows.X, self.rows.y, classes=not self.plan.regression)

    def _features(self) -> Features | None:
        from pegasos.cli import _describe

        return _describe.features(self.model, self.names)

    def _say_data(self, data: Data) -> None:
        from pegasos.cli import _say

        print(f"{data.source}: {data.rows:,} rows, {data.columns:,} columns, {data.entries:,} entries")
        print(_say.classes(data.classes))
