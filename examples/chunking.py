"""A chunker: finds the noun, verb and prepositional phrases of sentences whose parts of speech are known.

The attributes of a token are those of CRFsuite's chunking tutorial: words and tags around it, and pairs and triples of
them. The training file of CoNLL-2000 has 335,677 of them, used 4,055,890 times.

    python examples/chunking.py                                 # CoNLL-2000 if PEGASOS_DATA has it, else generated text
    python examples/chunking.py train.txt test.txt --C 0.1      # columns: word, part of speech, chunk tag; .xz as well
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from pegasos import SequenceSVC
from pegasos.io import read_conll
from pegasos.metrics import entity_scores

#: What is seen from a token: the words and the tags at these offsets, together.
WORD_WINDOWS = ((-2,), (-1,), (0,), (1,), (2,), (-1, 0), (0, 1))
TAG_WINDOWS = ((-2,), (-1,), (0,), (1,), (2,), (-2, -1), (-1, 0), (0, 1), (1, 2), (-2, -1, 0), (-1, 0, 1), (0, 1, 2))

Sentence = list[tuple[str, ...]]  # of tokens: word, part of speech, chunk tag


class Corpus(NamedTuple):
    """A list of attributes a token, and a chunk tag a token, sentence by sentence."""

    X: list[list[list[str]]]
    y: list[list[str]]


def read_sentences(path: str | Path) -> list[Sentence]:
    """The sentences of a file with three columns."""
    found = read_conll(path)
    if found.n_columns != 3:
        raise ValueError(f"{path}: expected word, part of speech and chunk tag, got {found.n_columns} columns")
    return found.sentences


def sentence_attributes(words: Sequence[str], tags: Sequence[str]) -> list[list[str]]:
    """The attributes of every token of a sentence.

    A window that reaches beyond the sentence gives none, but for single words: there the empty word stands, which
    tells the first two tokens and the last two. The attribute "bias" is the same for all tokens.
    """
    attributes = [["bias"] for _ in words]
    for name, values, windows in (("w", words, WORD_WINDOWS), ("pos", tags, TAG_WINDOWS)):
        for offsets in windows:
            prefix = "|".join(f"{name}[{offset}]" for offset in offsets) + "="
            first = max(0, -offsets[0])
            last = max(first, len(words) - max(0, offsets[-1]))
            seen = zip(*(values[first + offset : last + offset] for offset in offsets), strict=True)
            for token, window in zip(attributes[first:last], seen, strict=True):
                token.append(prefix + "|".join(window))
            if name == "w" and len(offsets) == 1:
                for token in (*attributes[:first], *attributes[last:]):
                    token.append(prefix)
    return attributes


def corpus(sentences: Iterable[Sentence]) -> Corpus:
    """Attributes and chunk tags of sentences."""
    X, y = [], []
    for sentence in sentences:
        words, tags, chunks = zip(*sentence, strict=True)
        X.append(sentence_attributes(words, tags))
        y.append(list(chunks))
    return Corpus(X, y)


#: A small language: what a phrase is made of, and the words of each part of speech. Some words have two.
PHRASES = {"NP": ("DT NN", "DT JJ NN", "PRP", "NNS", "JJ NNS", "DT NN NN"), "VP": ("VBD", "MD VB", "VBD VBN")}
WORDS = {
    "DT": "the a this every",
    "JJ": "old late heavy quiet cold green",
    "NN": "train station river cold price report market saw",
    "NNS": "trains prices boats reports people",
    "PRP": "she they it",
    "VBD": "left saw was crossed raised",
    "VB": "leave cross report raise",
    "VBN": "delayed crossed raised reported",
    "MD": "will may",
    "IN": "in near after of",
}


def generated(count: int, seed: int) -> list[Sentence]:
    """Random sentences of the small language: subject, verb, object, and now and then a prepositional phrase."""
    draw = random.Random(seed)

    def phrase(kind: str) -> Sentence:
        parts = ["IN"] if kind == "PP" else draw.choice(PHRASES[kind]).split()
        return [(draw.choice(WORDS[part].split()), part, f"{'I' if k else 'B'}-{kind}") for k, part in enumerate(parts)]

    sentences = []
    for _ in range(count):
        plan = ["NP", "VP", "NP", *draw.choice(([], ["PP", "NP"], ["PP", "NP", "PP", "NP"]))]
        sentences.append([token for kind in plan for token in phrase(kind)] + [(".", ".", "O")])
    return sentences


def data(paths: Sequence[Path]) -> tuple[list[Sentence], list[Sentence]]:
    """Sentences to train on and to test on."""
    folder = Path(os.environ.get("PEGASOS_DATA", ""))
    known = [folder / f"conll2000.{part}.txt.xz" for part in ("train", "test")]
    if not paths and all(path.is_file() for path in known):
        paths = known
    if not paths:
        print("No files given, and no CoNLL-2000 in the folder PEGASOS_DATA: generated sentences.")
        return generated(300, seed=0), generated(100, seed=1)
    train, test = paths
    return read_sentences(train), read_sentences(test)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="*", metavar="TRAIN TEST", help="two column files")
    parser.add_argument("--C", type=float, default=0.1)
    parser.add_argument("--tol", type=float, default=1e-2, help="certified relative gap to stop at")
    options = parser.parse_args()
    if len(options.files) not in (0, 2):
        parser.error(f"give two files, one to train on and one to test on, or none; got {len(options.files)}")

    train, test = (corpus(sentences) for sentences in data(options.files))
    uses = sum(len(token) for sentence in train.X for token in sentence)
    print(f"{len(train.X):,} training sentences, {sum(map(len, train.X)):,} tokens, {uses:,} attributes of tokens")

    began = time.perf_counter()
    model = SequenceSVC(C=options.C, tol=options.tol).fit(train.X, train.y)
    print(f"fitted in {time.perf_counter() - began:.2f} s: {len(model.classes_)} labels\n{model.certificate_}")

    began = time.perf_counter()
    found = model.predict(test.X)
    print(f"{len(test.X):,} test sentences tagged in {time.perf_counter() - began:.3f} s")
    print(f"entity F1 {entity_scores(test.y, found).f1:.4f}")


if __name__ == "__main__":
    main()
