"""The arguments of all commands. Only the standard library is imported here."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from importlib import import_module
from typing import TypeAlias

import pegasos
from pegasos.cli._arguments import (
    DATA,
    FORMATS,
    MODEL,
    add_memory,
    add_reading,
    add_talking,
    add_threads,
    add_width,
    positive,
    size,
)
from pegasos.cli._exit import TABLE
from pegasos.cli._train_arguments import EXAMPLES, add_train
from pegasos.util.suggest import did_you_mean

#: What commands are added to.
Commands: TypeAlias = "argparse._SubParsersAction[Parser]"


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The arguments of a command line; ``run`` is the function of its command.

    Raises SystemExit, as argparse does, after having said what is wrong.
    """
    made = _class_weights(list(words))
    parser, commands = _parser()
    if made and made[0].startswith("--"):
        parser.check_options(made[:1])
    elif made and made[0] in commands:
        commands[made[0]].check_options(made[1:])
    args, rest = parser.parse_known_args(made)
    if rest:
        args.parser.refuse(rest[0])
    return args


def _class_weights(words: list[str]) -> list[str]:
    """LIBLINEAR's ``-w1 5 -w-1 0.5``, which argparse cannot know, as ``--class-weight 1=5 --class-weight -1=0.5``."""
    if not words or words[0] != "train":
        return words
    made: list[str] = []
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


class Parser(argparse.ArgumentParser):
    """A parser that says what a misspelt word may have been meant for."""

    @property
    def options(self) -> list[str]:
        """Every option, as it is written."""
        return list(self._option_string_actions)

    def check_options(self, words: Sequence[str]) -> None:
        """Refuse a long option that is unknown before another one is missed for it."""
        for word in words:
            if word == "--":
                return
            if word.startswith("--") and word.partition("=")[0] not in self._option_string_actions:
                self.refuse(word)

    def refuse(self, word: str) -> None:
        """End with what is wrong about a word that nothing was made of."""
        if not word.startswith("-"):
            self.error(f"one argument too many: {word!r}")
        name = word.partition("=")[0]
        self.error(f"unknown option {name!r}{did_you_mean(name, self.options)}; {self.prog} --help lists all")

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        near = did_you_mean(str(value), known)
        raise argparse.ArgumentError(action, f"invalid choice: {value!r}{near}; choose from {', '.join(known)}")


def _parser() -> tuple[Parser, dict[str, Parser]]:
    """The parser, and those of the commands."""
    parser = Parser(
        prog="pegasos",
        description="Support vector machines that say how far from the optimum they stopped.",
        epilog="pegasos COMMAND --help explains a command.\n\n" + TABLE,
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"pegasos {pegasos.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in (_train, _predict, _evaluate, _convert, _export, _sparsify, _info, _report):
        add(commands)
    return parser, commands.choices


def _command(commands: Commands, name: str, summary: str, examples: str, usage: str | None = None) -> Parser:
    """A command whose ``run`` imports its own module when it is called."""
    parser = commands.add_parser(
        name,
        usage=usage,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"examples:\n{examples}",
        formatter_class=_Formatter,
        allow_abbrev=False,
    )

    def run(args: argparse.Namespace) -> int:
        return int(import_module(f"pegasos.cli.{name}").run(args))

    parser.set_defaults(run=run, usage_error=parser.error, parser=parser)
    return parser


def _train(commands: Commands) -> None:
    usage = "pegasos train DATA -m MODEL [options]"
    add_train(_command(commands, "train", "train a model and certify it", EXAMPLES, usage))


def _add_rows(parser: argparse.ArgumentParser) -> None:
    """The arguments of commands that judge or predict rows."""
    parser.add_argument("data", metavar="DATA", help=f"{DATA}; for a tagger sentences in columns")
    parser.add_argument("-m", "--model", metavar="MODEL", required=True, help=MODEL)


def _add_output(parser: argparse.ArgumentParser) -> None:
    help = "the file to write (default: standard output)"
    parser.add_argument("-o", "--output", metavar="OUT", default="-", help=help)


def _add_blocks(parser: argparse.ArgumentParser) -> None:
    """Options of commands that read rows block by block."""
    group = add_reading(parser)
    add_threads(group)
    add_memory(group, default=256)


def _predict(commands: Commands) -> None:
    p = _command(
        commands,
        "predict",
        "predict a label for each row",
        "  pegasos predict heart.t -m heart.model -o heart.out\n"
        "  zcat big.svm.gz | pegasos predict - -m big.model > labels.txt\n"
        "  pegasos predict heart.t -m heart.model -b 1 -o probabilities.txt\n"
        "  pegasos predict chunks.t -m chunks.model -o tagged.conll",
    )
    _add_rows(p)
    _add_output(p)
    kind = p.add_mutually_exclusive_group()
    kind.add_argument(
        "-b",
        dest="probabilities",
        metavar="{0,1}",
        type=int,
        choices=(0, 1),
        default=0,
        help="1: probabilities beside each label, as LIBLINEAR writes them, where the loss has them",
    )
    kind.add_argument("--scores", action="store_true", help="scores beside each label")
    _add_blocks(p)
    add_talking(p)


def _evaluate(commands: Commands) -> None:
    p = _command(
        commands,
        "evaluate",
        "compare predictions with the labels of the rows",
        "  pegasos evaluate heart.t -m heart.model\n"
        "  pegasos evaluate heart.t -m heart.model --json | jq .metrics.accuracy",
    )
    _add_rows(p)
    _add_blocks(p)
    add_talking(p, json="metrics and confusion", quiet="leave out the confusion table and remarks")


def _convert(commands: Commands) -> None:
    p = _command(
        commands,
        "convert",
        "turn a data file into a folder that is trained on from disk, larger than memory if need be",
        "  pegasos convert big.svm.zst big\n"
        "  pegasos convert sales.csv sales --target price\n"
        "  pegasos convert iris.data iris --format csv --header no --target -1\n"
        "  pegasos convert new.csv new --no-target\n"
        "  pegasos train big -m big.model",
    )
    p.add_argument("source", metavar="SRC", help="svmlight text, CSV, Parquet or .npz")
    p.add_argument("folder", metavar="FOLDER", help="the folder to make")
    p.add_argument(
        "--format", choices=("svmlight", "csv", "parquet", "npz"), help="format of SRC (default: by content and ending)"
    )
    p.add_argument("--dtype", choices=("float32", "float64"), help="type of the stored values")
    p.add_argument("--force", "--overwrite", action="store_true", help="replace FOLDER if it is a dataset")
    _columns(p.add_argument_group("columns of CSV and Parquet, members of .npz"))
    group = add_reading(p)
    add_width(group)
    add_memory(group, default=64)
    add_talking(p)


def _columns(group: argparse._ArgumentGroup) -> None:
    target = group.add_mutually_exclusive_group()
    target.add_argument(
        "--target",
        metavar="COLUMN",
        help="the column of the targets: its name, or else its position from 1 (-1: the last). Without it the column "
        "called y, target, label or class",
    )
    target.add_argument("--no-target", action="store_true", help="there are no targets: rows to be predicted")
    group.add_argument("--sample-weight", metavar="COLUMN", help="the column of the rows' weights, likewise")
    group.add_argument("--text-target", action="store_true", help="targets of CSV are labels even if they are numbers")
    group.add_argument(
        "--header",
        choices=("auto", "yes", "no"),
        default="auto",
        help="whether the first line of CSV names the columns (default auto: what is guessed is said)",
    )
    group.add_argument(
        "--delimiter", metavar="CHAR", help="what separates the fields of CSV, or tab (default: comma, tab for .tsv)"
    )


def _export(commands: Commands) -> None:
    p = _command(
        commands,
        "export",
        "write a model in another format",
        "  pegasos export heart.model heart.onnx\n  pegasos export heart.liblinear heart.model --format pegasos",
    )
    p.add_argument("model", metavar="MODEL", help=MODEL)
    p.add_argument("output", metavar="OUT", help="the file to write")
    p.add_argument("--format", choices=FORMATS, help="format of OUT (default: by its ending)")
    p.add_argument("--dtype", choices=("float32", "float64"), help="numbers of an ONNX model (default float32)")
    add_talking(p)


def _sparsify(commands: Commands) -> None:
    p = _command(
        commands,
        "sparsify",
        "compress a kernel classifier to few support vectors",
        "  pegasos sparsify heart.model heart.svm -m small.model --max-support 500\n"
        "  pegasos sparsify heart.model heart.svm -m small.model --validation other.svm",
    )
    p.add_argument("model", metavar="MODEL", help=MODEL)
    p.add_argument("data", metavar="DATA", help="the rows that MODEL was trained on")
    p.add_argument("-m", "--output", metavar="OUT", required=True, help="the model to write")
    p.add_argument("--max-support", type=size, metavar="N", help="most support vectors (default: a tenth of MODEL's)")
    p.add_argument("--validation", metavar="DATA", help="rows that choose the size, up to N")
    p.add_argument(
        "--variant", choices=("projection", "aggressive", "basic"), default="projection", help="how they are chosen"
    )
    p.add_argument("--no-refit", action="store_true", help="the coefficients of the paper; not for projection")
    p.add_argument("--tol", type=positive, default=0.5, help="where the published variants end")
    p.add_argument("--format", choices=FORMATS, help="format of OUT (default: by its ending)")
    add_threads(add_reading(p))
    add_talking(p, json="the outcome")


def _info(commands: Commands) -> None:
    p = _command(
        commands,
        "info",
        "say what a file is: a model, a data file or folder, or a run record",
        "  pegasos info heart.model\n  pegasos info heart.svm --json",
    )
    p.add_argument("path", metavar="MODEL|DATA", help=f"{MODEL}, {DATA}")
    _add_blocks(p)
    add_talking(p, json="the facts", quiet="")


def _report(commands: Commands) -> None:
    p = _command(
        commands,
        "report",
        "show runs on one page of HTML that needs no other file",
        "  pegasos train heart.svm -m heart.model --test heart.t --record run.json\n"
        "  pegasos report run.json -o report.html",
    )
    p.add_argument("runs", metavar="RUN.json", nargs="+", help="what pegasos train --record wrote")
    _add_output(p)
    p.add_argument("--title", help="heading of the page")
