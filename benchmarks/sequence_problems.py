"""Sequences every library is measured on: chunks of CoNLL-2000, letters of handwritten words.

Attributes are lists of strings, as users of CRFsuite have them: those of ``examples/chunking.py``, and a string for
each black pixel of a letter and one for all. The files are looked for in the folder ``PEGASOS_DATA``.
"""

from __future__ import annotations

import lzma
import os
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from examples.chunking import Corpus, Sentence, corpus, read_sentences
from pegasos.metrics import entity_scores, token_accuracy

Tags = list[str]


@dataclass(frozen=True)
class SequenceProblem:
    """Sequences to train on and to test on, and the C that suits them."""

    name: str
    train: Corpus
    test: Corpus
    C: float

    def f1(self, found: Sequence[Sequence[str]]) -> float:
        """The F1 of chunks by conlleval's rules; NaN where labels are not chunk tags."""
        if self.name.startswith("ocr"):
            return float("nan")
        return entity_scores(self.test.y, found).f1

    def error(self, found: Sequence[Sequence[str]]) -> float:
        """The share of tokens with a wrong label."""
        return 1 - token_accuracy(self.test.y, found)


def _file(name: str) -> Path:
    path = Path(os.environ.get("PEGASOS_DATA", "")) / name
    if not path.is_file():
        raise FileNotFoundError(
            f"the file {name} is needed in the folder named by the environment variable PEGASOS_DATA"
        )
    return path


def split_labels(sentences: Sequence[Sentence], wanted: int) -> list[Sentence]:
    """Give the most frequent pairs of chunk tag and part of speech labels of their own, until there are ``wanted``."""
    pairs = Counter(token[1:] for sentence in sentences for token in sentence)
    own = {pair for pair, _ in pairs.most_common(wanted - len({tag for _, tag in pairs}))}
    return [
        [(word, part, f"{tag}/{part}" if (part, tag) in own else tag) for word, part, tag in sentence]
        for sentence in sentences
    ]


def conll(seed: int, copies: int = 1, labels: int = 22) -> SequenceProblem:
    """Chunks of CoNLL-2000, sentences in an order of their own for each seed but 0.

    ``copies`` of the training sentences stand one after the other, so that attributes stay as many as they are; fewer
    labels than 22 are B, I and O, more are tags split by part of speech.
    """
    train, test = (read_sentences(_file(f"conll2000.{part}.txt.xz")) for part in ("train", "test"))
    if labels < 22:
        train, test = ([[(*token[:2], token[2][0]) for token in each] for each in part] for part in (train, test))
    elif labels > 22:
        train = split_labels(train, labels)
    _shuffle(train, seed)
    return SequenceProblem("conll", corpus(train * copies), corpus(test), 0.1)


def ocr(name: str, seed: int) -> SequenceProblem:
    """Letters of handwritten words, in ten folds.

    "ocr-1" is the setting of the max-margin Markov network paper: train on fold ``seed``, test on the nine others.
    "ocr-9" trains on folds 1 to 9, the words in an order of their own for each seed but 0, and tests on fold 0.
    """
    folds: list[Corpus] = [Corpus([], []) for _ in range(10)]
    with lzma.open(_file("ocr-letters.data.xz"), "rt") as file:
        last = ""
        for line in file:
            _, letter, _, word, _, fold, *pixels = line.rstrip().split("\t")
            X, y = folds[int(fold)]
            if word != last:
                X.append([])
                y.append([])
                last = word
            X[-1].append(["bias", *(f"pixel {k}" for k, value in enumerate(pixels) if value == "1")])
            y[-1].append(letter)
    alone = seed % 10 if name == "ocr-1" else 0
    rest = [(x, z) for k, (X, y) in enumerate(folds) if k != alone for x, z in zip(X, y, strict=True)]
    if name == "ocr-1":
        return SequenceProblem(name, folds[alone], _corpus(rest), 0.1)
    _shuffle(rest, seed)
    return SequenceProblem(name, _corpus(rest), folds[0], 1.0)


def _corpus(pairs: Sequence[tuple[list[list[str]], Tags]]) -> Corpus:
    return Corpus([x for x, _ in pairs], [y for _, y in pairs])


def _shuffle(values: list, seed: int) -> None:  # type: ignore[type-arg]
    if seed:
        random.Random(seed).shuffle(values)


PROBLEMS: dict[str, Callable[[int], SequenceProblem]] = {
    "conll": conll,
    "ocr-9": lambda seed: ocr("ocr-9", seed),
    "ocr-1": lambda seed: ocr("ocr-1", seed),
}
