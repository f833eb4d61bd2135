"""The arguments of ``pegasos train``. Only the standard library is imported here."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeAlias

from pegasos.cli import _arguments as kind

Add: TypeAlias = Callable[..., argparse.Action]

EXAMPLES = """\
  pegasos train heart.svm -m heart.model
  pegasos train heart.svm -m heart.model -c 0.1 -w1 2 --test heart.t --record run.json
  pegasos train big.svm.zst -m big.model --lam 1e-5 --solver pegasos:batch_size=64 --max-time 60
  pegasos train heart.svm -v 5 -q
  pegasos train prices.svm -m prices.model --regression --loss huber:delta=2
  pegasos train heart.svm -m heart.model --kernel rbf --gamma 0.1 -c 10
  pegasos train chunks.conll -m chunks.model --format conll -c 0.1 --test chunks.t"""

KERNELS = ("linear", "poly", "rbf", "sigmoid", "laplacian", "chi2")
#: What --loss can be; the defaults come first.
LOSSES = ("hinge", "squared_hinge", "smoothed_hinge", "log", "crammer_singer", "multinomial")
REGRESSION_LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive", "squared", "huber", "quantile")
#: Options that only --format conll has.
TAGGER_OPTIONS = ("template", "delimiter", "comments", "encoding", "grammar")
INTERCEPTS = ("unregularized", "feature", "subgradient", "batch", "search", "none")


def add_train(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("data", metavar="DATA", help=f"{kind.DATA}; with --format conll sentences in columns")
    parser.add_argument("-m", "--model", metavar="MODEL", help="the file to write; needed unless only -v is asked for")
    _problem(parser.add_argument_group("the problem").add_argument)
    _kernel(parser.add_argument_group("kernel machines").add_argument)
    _solver(parser.add_argument_group("the solver").add_argument)
    kind.add_width(kind.add_reading(parser))
    _tagging(parser.add_argument_group("tagged sentences (--format conll)").add_argument)
    group = parser.add_argument_group("judging and recording")
    _judging(group.add_argument)
    kind.add_talking(group, json="the run record")


def _choice(names: tuple[str, ...]) -> str:
    return ", ".join((f"{names[0]} (default)", *names[1:]))


def _problem(add: Add) -> None:
    add("-c", "--C", dest="C", metavar="C", type=kind.positive, help="weight of the losses (default 1)")
    add("--lam", metavar="LAMBDA", type=kind.positive, help="λ = 1/(C · rows), in place of -c")
    add(
        "--loss",
        metavar="LOSS",
        help=f"{_choice(LOSSES)}; with --regression {_choice(REGRESSION_LOSSES)}; with --format conll hinge "
        "(default), log. Parameters: huber:delta=2",
    )
    add("--regression", action="store_true", help="real targets in place of classes")
    add(
        "-s",
        dest="type",
        metavar="TYPE",
        type=int,
        help="LIBLINEAR's number of a loss: 0, 7 log; 1, 2 squared_hinge; 3 hinge; 4 crammer_singer; "
        "11, 12 squared_epsilon_insensitive; 13 epsilon_insensitive",
    )
    add(
        "-p",
        "--epsilon",
        metavar="EPSILON",
        type=kind.not_negative,
        help="half width of the tube of the ε-insensitive losses (default 0; with --kernel 0.1)",
    )
    add(
        "-B",
        dest="bias",
        metavar="BIAS",
        type=kind.number,
        help="as in LIBLINEAR: > 0 adds a constant feature of this value, < 0 trains without intercept. Without -B "
        "the intercept is exact and unregularised",
    )
    add("--intercept", choices=INTERCEPTS, help="how to learn the intercept")
    add(
        "--class-weight",
        action="append",
        default=[],
        metavar="LABEL=W",
        help="multiply the losses of a class; also written -wLABEL W, as in LIBLINEAR. 'balanced' weighs all alike",
    )


def _kernel(add: Add) -> None:
    add(
        "--kernel",
        choices=KERNELS,
        help="train a kernel machine (SVC, with --regression SVR); without it the machine is linear, and much faster",
    )
    add("-g", "--gamma", metavar="GAMMA", type=kind.gamma, help="γ of all kernels but linear: a number, scale or auto")
    add("-d", "--degree", metavar="DEGREE", type=kind.degree, help="degree of poly (default 3)")
    add("-r", "--coef0", metavar="COEF0", type=kind.number, help="coef0 of poly and sigmoid (default 0)")
    add("--cache-size", metavar="MB", type=kind.positive, help="megabytes of kernel rows to keep (default 200)")


def _solver(add: Add) -> None:
    add(
        "--solver",
        metavar="SOLVER",
        default="auto",
        help="auto (default), pegasos, sdca, smoothed_newton, interior_point, cutting_plane, lbfgs, norma, sgd, "
        "proximal, dual_averaging, passive_aggressive. "
        "Parameters: pegasos:batch_size=64,projection=true. "
        "With --kernel: auto, smo, pegasos, sdca, lasvm, sbp, nystroem, newton, low_rank. "
        "With --format conll: auto, pegasos, block_frank_wolfe, cutting_plane, lbfgs, passive_aggressive, "
        "averaged_perceptron",
    )
    add(
        "-e",
        "--tol",
        metavar="TOL",
        type=kind.not_negative,
        help="stop when the gap is at most TOL times the objective (default 0.001; of taggers 0.01)",
    )
    add(
        "--max-iter",
        metavar="N",
        type=kind.iterations,
        help="stop after N epochs (default 1000; with pegasos, norma and sgd 0.25, say, too; with --kernel: N steps, "
        "no limit)",
    )
    add("--max-time", metavar="SECONDS", type=kind.positive, help="stop after so many seconds of training")
    add(
        "--threads",
        metavar="N",
        type=kind.threads,
        help="threads to read and train with; -1: all cores (default: one, and the serial algorithms)",
    )
    add("--seed", metavar="SEED", type=kind.seed, default=0, help="seed of the order of the rows (default 0)")
    add("--checkpoint", metavar="FILE", help="write the state of the fit there now and then")
    add("--checkpoint-every", metavar="SECONDS", type=kind.not_negative, help="how often (default 30)")
    add(
        "--resume",
        action="store_true",
        help="go on from --checkpoint if it is there; the result has the same bits as a run that never stopped",
    )


def _tagging(add: Add) -> None:
    add(
        "--template",
        metavar="FILE",
        help="which columns make the attributes of a token, as CRF++ writes it (default: words and all other columns "
        "of two tokens to either side)",
    )
    add("--delimiter", metavar="CHAR", help="what separates columns, or tab (default: any run of spaces and tabs)")
    add(
        "--comments",
        action="append",
        default=[],
        metavar="PREFIX",
        help="leave out lines that begin so; can be given several times",
    )
    add("--encoding", metavar="NAME", help="of DATA (default utf-8)")
    add(
        "--grammar",
        metavar="GRAMMAR",
        help="which tags may follow each other: learnt (what DATA have), bio, bioes, or a file with two tags a line; "
        "<s> TAG may begin a sentence, TAG </s> end it",
    )


def _judging(add: Add) -> None:
    add(
        "-v",
        "--cv",
        dest="folds",
        metavar="K",
        type=kind.folds,
        help="K-fold cross-validation; without -m nothing else is done",
    )
    add("--test", metavar="DATA", help="rows to evaluate the model on")
    add("--record", metavar="RUN.json", help="write what pegasos report shows")
    add("--name", help="name of the run in reports (default: the model's)")
    add("--feature-names", metavar="FILE", help="a name for each feature, one a line")
    add(
        "--format",
        choices=(*kind.FORMATS, "conll"),
        help="format of MODEL (default: pegasos, or by its ending .liblinear, .libsvm, .onnx); "
        "conll: DATA are tagged sentences in columns, and the model is a tagger",
    )
