"""``pegasos train --format conll``: taggers of sentences."""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from pegasos.cli._exit import Failure
from pegasos.cli._progress import Progress
from pegasos.cli._training import Training

if TYPE_CHECKING:
    from pegasos.cli._corpus import Sentences
    from pegasos.cli._tagger_plan import TaggerPlan
    from pegasos.estimators.sequence import SequenceSVC
    from pegasos.report.record import Data, Evaluation, Features


class TaggerTraining(Training["SequenceSVC"]):
    """A run on the tagged sentences of a column file."""

    sentences: Sentences
    test: Sentences | None = None

    def __init__(self, args: argparse.Namespace, plan: TaggerPlan) -> None:
        super().__init__(args)
        self.plan = plan

    def _read(self, progress: Progress) -> None:
        from pegasos.cli import _corpus

        args = self.args
        if self.plan.grammar is not None:
            grammar = _corpus.read_grammar(self.plan.grammar)
            self.plan = replace(self.plan, parameters=self.plan.parameters | {"grammar": grammar})
        progress.stage(f"reading {args.data}")
        self.sentences = _corpus.read(args.data, self.plan)
        self.source = self.sentences.source
        if args.test is not None:
            progress.stage(f"reading {args.test}")
            self.test = _corpus.read_like(args.test, self.sentences.reader)

    def _cross_validate(self, progress: Progress) -> None:
        """Entity F1 of each fold, or the share of right tags where tags are no parts of entities."""
        import numpy as np

        from pegasos.cli._tag_metrics import TagTally
        from pegasos.report.record import CrossValidation

        sentences, folds = self.sentences, self.args.folds
        if folds > len(sentences):
            raise Failure(
                f"{self.source}: {len(sentences)} sentences cannot be cut into {folds} folds; use a smaller -v"
            )
        order = np.random.default_rng(self.plan.seed).permutation(len(sentences)).tolist()
        known = {tag for tags in sentences.tags for tag in tags}
        metric, scores = "accuracy", []
        for k in range(folds):
            progress.stage(f"cross-validation: fold {k + 1} of {folds}")
            model = self._new()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a gap that is not quite closed matters little to a score
                sentences.take(sentence for i, sentence in enumerate(order) if i % folds != k).fit(model)
            held = sentences.take(order[k::folds])
            tally = TagTally(known)
            tally.add(held.tags, model.predict(map(held.reader.attributes, held.corpus.sentences)))
            found = tally.evaluation("").metrics
            metric = "f1" if "f1" in found else "accuracy"
            scores.append(found[metric])
        self.scores = CrossValidation(metric, tuple(scores))

    def _new(self, **more: object) -> SequenceSVC:
        return self.plan.estimator(**more)

    def _begin(self, model: SequenceSVC, progress: Progress) -> None:
        progress.fitting(self.sentences.tokens, model.tol, model.max_iter, model.max_time, unit="tokens")

    def _fit_model(self, model: SequenceSVC) -> None:
        self.sentences.fit(model)

    def _judge_test(self) -> Evaluation | None:
        return None if self.test is None else self._judge(self.test)

    def _judge_training(self) -> Evaluation:
        return self._judge(self.sentences)

    def _judge(self, sentences: Sentences) -> Evaluation:
        from pegasos.cli._tag_metrics import judge

        tally = judge(self.model, sentences.reader, sentences.numbered(), sentences.source)
        return tally.evaluation(sentences.source)

    def _data(self) -> Data:
        from pegasos.report.record import ClassCount, Data

        sentences = self.sentences
        counts = Counter(tag for tags in sentences.tags for tag in tags)
        a_token = len(sentences.reader.attributes(sentences.corpus.sentences[0])[0])
        return Data(
            self.source,
            sentences.tokens,
            int(self.model.n_features_in_),
            sentences.tokens * a_token,
            tuple(ClassCount(tag, counts[tag]) for tag in sorted(counts)),
            len(sentences),
        )

    def _features(self) -> Features:
        from pegasos.cli import _describe

        return _describe.tagger_features(self.model)

    def _say_data(self, data: Data) -> None:
        from pegasos.cli import _say

        print(f"{data.source}: {len(self.sentences):,} sentences, {data.rows:,} tokens, {data.columns:,} attributes")
        print(_say.classes(data.classes, "tags"))
