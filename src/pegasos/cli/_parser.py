"""The arguments of all commands. Only the standard library is imported here."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import pegasos
from pegasos.cli._exit import TABLE

_DATA = "svmlight text (plain, .gz, .bz2, .xz or .zst; - is standard input) or a folder made by pegasos convert"
_MODEL = "a model file of pegasos, or a text model of LIBLINEAR or LIBSVM"


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The arguments of a command line; ``run`` is the function of its command.

    Raises SystemExit, as argparse does, after having said what is wrong.
    """
    return _parser().parse_args(_class_weights(list(words)))


def _class_weights(words: list[str]) -> list[str]:
    """LIBLINEAR's ``-w1 5 -w-1 0.5``, which argparse cannot know, as ``--class-weight 1=5 --class-weight -1=0.5``."""
    if not words or words[0] != "train":
        return words
    made = []
    position = 0
    while position < len(words):
        word = words[position]
        if word == "--":
            return made + words[position:]
        if re.fullmatch(r"-w[^=]+", word) and position + 1 < len(words):
            made.append(f"--class-weight={word[2:]}={words[position + 1]}")
            position += 1
        else:
            made.append(word)
        position += 1
    return made


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=100)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pegasos",
        description="Linear support vector machines that say how far from the optimum they stopped.",
        epilog="pegasos COMMAND --help explains a command.\n\n" + TABLE,
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"pegasos {pegasos.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in (_train, _predict, _evaluate, _convert, _export, _info, _report):
        add(commands)
    return parser


def _command(commands: Any, name: str, summary: str, examples: str) -> argparse.ArgumentParser:
    """A command whose ``run`` imports its own module when it is called."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"examples:\n{examples}",
        formatter_class=_Formatter,
        allow_abbrev=False,
    )

    def run(args: argparse.Namespace) -> int:
        return int(import_module(f"pegasos.cli.{name}").run(args))

    parser.set_defaults(run=run, usage_error=parser.error)
    return parser


def _train(commands: Any) -> None:
    p = _command(
        commands,
        "train",
        "train a model and certify it",
        "  pegasos train heart.svm -m heart.model\n"
        "  pegasos train heart.svm -m heart.model -c 0.1 -w1 2 --test heart.t --record run.json\n"
        "  pegasos train big.svm.zst -m big.model --lam 1e-5 --solver pegasos:batch_size=64,projection=true --max-time 60\n"
        "  pegasos train heart.svm -v 5 -q\n"
        "  pegasos train prices.svm -m prices.model --regression --loss huber:delta=2",
    )
    p.add_argument("data", metavar="DATA", help=_DATA)
    p.add_argument("-m", "--model", metavar="MODEL", help="the file to write; needed unless only -v is asked for")

    g = p.add_argument_group("the problem")
    g.add_argument("-c", dest="C", metavar="C", type=_positive, help="weight of the losses (default 1)")
    g.add_argument("--lam", metavar="LAMBDA", type=_positive, help="λ = 1/(C · rows), in place of -c")
    g.add_argument("--loss", metavar="LOSS", help="hinge (default), squared_hinge, smoothed_hinge, log, crammer_singer, "
                   "multinomial; with --regression epsilon_insensitive (default), squared_epsilon_insensitive, squared, "
                   "huber, quantile. Parameters: huber:delta=2")  # fmt: skip
    g.add_argument("--regression", action="store_true", help="real targets in place of classes")
    g.add_argument("-s", dest="type", metavar="TYPE", type=int, help="LIBLINEAR's number of a loss: 0, 7 log; 1, 2 "
                   "squared_hinge; 3 hinge; 4 crammer_singer; 11, 12 squared_epsilon_insensitive; 13 epsilon_insensitive")  # fmt: skip
    g.add_argument("-p", "--epsilon", metavar="EPSILON", type=_not_negative, help="half width of the tube of the "
                   "ε-insensitive losses (default 0)")  # fmt: skip
    g.add_argument("-B", dest="bias", metavar="BIAS", type=_number, help="as in LIBLINEAR: ≥ 0 adds a constant feature of "
                   "this value, < 0 trains without intercept. Without -B the intercept is exact and unregularised")  # fmt: skip
    g.add_argument("--intercept", choices=("unregularized", "feature", "subgradient", "batch", "search", "none"),
                   help="how to learn the intercept")  # fmt: skip
    g.add_argument("--class-weight", action="append", default=[], metavar="LABEL=W", help="multiply the losses of a class; "
                   "also written -wLABEL W, as in LIBLINEAR. 'balanced' weighs all classes alike")  # fmt: skip

    g = p.add_argument_group("the solver")
    g.add_argument("--solver", metavar="SOLVER", default="auto", help="auto (default), pegasos, sdca, interior_point, "
                   "cutting_plane, norma, sgd. Parameters: pegasos:batch_size=64,projection=true")  # fmt: skip
    g.add_argument("-e", "--tol", metavar="TOL", type=_not_negative, help="stop when the gap is at most TOL times the "
                   "objective (default 0.001)")  # fmt: skip
    g.add_argument("--max-iter", metavar="N", type=_count, help="stop after N epochs (default 1000)")
    g.add_argument("--max-time", metavar="SECONDS", type=_positive, help="stop after so many seconds of training")
    g.add_argument("--threads", metavar="N", type=_threads, help="threads to read and train with; -1: all cores "
                   "(default: one, and the serial algorithms)")  # fmt: skip
    g.add_argument("--seed", metavar="SEED", type=_seed, default=0, help="seed of the order of the rows (default 0)")
    g.add_argument("--checkpoint", metavar="FILE", help="write the state of the fit there now and then")
    g.add_argument("--checkpoint-every", metavar="SECONDS", type=_not_negative, help="how often (default 30)")
    g.add_argument("--resume", action="store_true", help="go on from --checkpoint if it is there; the result has the same "
                   "bits as a run that never stopped")  # fmt: skip

    _add_reading(p)
    g = p.add_argument_group("judging and recording")
    g.add_argument("-v", "--cv", dest="folds", metavar="K", type=_folds, help="K-fold cross-validation; without -m nothing "
                   "else is done")  # fmt: skip
    g.add_argument("--test", metavar="DATA", help="rows to evaluate the model on")
    g.add_argument("--record", metavar="RUN.json", help="write what pegasos report shows")
    g.add_argument("--name", help="name of the run in reports (default: the model's)")
    g.add_argument("--feature-names", metavar="FILE", help="a name for each feature, one a line")
    g.add_argument("--format", choices=("pegasos", "liblinear", "libsvm", "onnx"), help="format of MODEL (default: pegasos, or by "
                   "its ending .liblinear, .libsvm, .onnx)")  # fmt: skip
    _add_talking(g, json="the run record")


def _predict(commands: Any) -> None:
    p = _command(
        commands,
        "predict",
        "predict a label for each row",
        "  pegasos predict heart.t -m heart.model -o heart.out\n"
        "  zcat big.svm.gz | pegasos predict - -m big.model > labels.txt\n"
        "  pegasos predict heart.t -m heart.model -b 1 -o probabilities.txt",
    )
    p.add_argument("data", metavar="DATA", help=_DATA)
    p.add_argument("-m", "--model", metavar="MODEL", required=True, help=_MODEL)
    p.add_argument("-o", "--output", metavar="OUT", default="-", help="the file to write (default: standard output)")
    kind = p.add_mutually_exclusive_group()
    kind.add_argument("-b", dest="probabilities", metavar="{0,1}", type=int, choices=(0, 1), default=0, help="1: probabilities beside "
                      "each label, as LIBLINEAR writes them (log and multinomial losses)")  # fmt: skip
    kind.add_argument("--scores", action="store_true", help="scores beside each label")
    _add_reading(p, threads=True)
    _add_talking(p)


def _evaluate(commands: Any) -> None:
    p = _command(
        commands,
        "evaluate",
        "compare predictions with the labels of the rows",
        "  pegasos evaluate heart.t -m heart.model\n  pegasos evaluate heart.t -m heart.model --json | jq .metrics.accuracy",
    )
    p.add_argument("data", metavar="DATA", help=_DATA)
    p.add_argument("-m", "--model", metavar="MODEL", required=True, help=_MODEL)
    _add_reading(p, threads=True)
    _add_talking(p, json="metrics and confusion")


def _convert(commands: Any) -> None:
    p = _command(
        commands,
        "convert",
        "turn a data file into a folder that is trained on from disk, larger than memory if need be",
        "  pegasos convert big.svm.zst big\n"
        "  pegasos convert sales.csv sales --target price\n"
        "  pegasos train big -m big.model",
    )
    p.add_argument("source", metavar="SRC", help="svmlight text, CSV, Parquet or .npz")
    p.add_argument("folder", metavar="FOLDER", help="the folder to make")
    p.add_argument("--target", metavar="NAME", help="the column of the targets, in CSV and Parquet")
    p.add_argument("--dtype", choices=("float32", "float64"), help="type of the stored values")
    p.add_argument("--force", action="store_true", help="replace FOLDER if it is there")
    _add_reading(p, threads=True)
    _add_talking(p)


def _export(commands: Any) -> None:
    p = _command(
        commands,
        "export",
        "write a model in another format",
        "  pegasos export heart.model heart.onnx\n  pegasos export heart.liblinear heart.model --format pegasos",
    )
    p.add_argument("model", metavar="MODEL", help=_MODEL)
    p.add_argument("output", metavar="OUT", help="the file to write")
    p.add_argument("--format", choices=("pegasos", "liblinear", "libsvm", "onnx"), help="format of OUT (default: by its ending)")
    _add_talking(p)


def _info(commands: Any) -> None:
    p = _command(
        commands,
        "info",
        "say what a file is: a model, a data file or folder, or a run record",
        "  pegasos info heart.model\n  pegasos info heart.svm --json",
    )
    p.add_argument("path", metavar="MODEL|DATA", help=f"{_MODEL}, {_DATA}")
    _add_reading(p, threads=True)
    _add_talking(p, json="the facts", quiet=False)


def _report(commands: Any) -> None:
    p = _command(
        commands,
        "report",
        "show runs on one page of HTML that needs no other file",
        "  pegasos train heart.svm -m heart.model --test heart.t --record run.json\n  pegasos report run.json -o report.html",
    )
    p.add_argument("runs", metavar="RUN.json", nargs="+", help="what pegasos train --record wrote")
    p.add_argument("-o", "--output", metavar="OUT", default="-", help="the file to write (default: standard output)")
    p.add_argument("--title", help="heading of the page")


# --- shared ----------------------------------------------------------------------------------------------------------


def _add_reading(parser: argparse.ArgumentParser, *, threads: bool = False) -> None:
    group = parser.add_argument_group("reading svmlight text")
    group.add_argument("--n-features", metavar="N", type=_count, help="columns (default: the largest index seen)")
    group.add_argument("--zero-based", action="store_true", help="indices begin at 0, not 1")
    if threads:
        group.add_argument("--threads", metavar="N", type=_threads, help="threads to read with (default 1)")


def _add_talking(parser: Any, *, json: str | None = None, quiet: bool = True) -> None:
    if json:
        parser.add_argument("--json", action="store_true", help=f"print {json} as JSON on standard output, and nothing else")
    if quiet:
        parser.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors")


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not finite")
    return value


def _positive(text: str) -> float:
    if (value := _number(text)) <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} must be greater than 0")
    return value


def _not_negative(text: str) -> float:
    if (value := _number(text)) < 0:
        raise argparse.ArgumentTypeError(f"{text!r} must not be negative")
    return value


def _whole(text: str, low: int, high: int) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"{text!r} must lie between {low} and {high}")
    return value


def _count(text: str) -> int:
    return _whole(text, 1, 2**62)


def _folds(text: str) -> int:
    return _whole(text, 2, 10_000)


def _seed(text: str) -> int:
    return _whole(text, 0, 2**64 - 1)


def _threads(text: str) -> int:
    if (value := _whole(text, -1024, 1024)) == 0:
        raise argparse.ArgumentTypeError("0 threads do nothing; -1 means all cores")
    return value
