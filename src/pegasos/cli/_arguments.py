"""Kinds of arguments, and options that several commands share. Only the standard library is imported here."""

from __future__ import annotations

import argparse
import math
from typing import TypeAlias

#: What arguments are added to: a parser, or a group of one.
Container: TypeAlias = argparse._ActionsContainer

DATA = "svmlight text (plain, .gz, .bz2, .xz or .zst; - is standard input) or a folder made by pegasos convert"
MODEL = "a model file of pegasos, or a text model of LIBLINEAR or LIBSVM"
FORMATS = ("pegasos", "liblinear", "libsvm", "onnx")


def add_reading(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Options of every command that reads rows; the group, for more of them."""
    group = parser.add_argument_group("reading svmlight text")
    group.add_argument("--zero-based", action="store_true", help="indices begin at 0, not 1")
    return group


def add_width(group: Container) -> None:
    """An option of commands for which the number of columns is not settled by a model."""
    group.add_argument("--n-features", metavar="N", type=count, help="columns (default: the largest index seen)")


def add_threads(group: Container) -> None:
    """An option of commands that only read."""
    group.add_argument("--threads", metavar="N", type=threads, help="threads to read with (default 1)")


def add_memory(group: Container, *, default: int) -> None:
    """An option of commands that read block by block; ``default`` in megabytes."""
    group.add_argument(
        "--memory",
        metavar="MB",
        type=megabytes,
        default=default << 20,
        help=f"megabytes that a block of rows may take while it is read (default {default})",
    )


def add_talking(parser: Container, *, json: str | None = None, quiet: str = "say nothing but errors") -> None:
    """What to print: ``json`` says what as JSON."""
    if json:
        parser.add_argument("--json", action="store_true", help=f"print {json} as JSON, and nothing else")
    if quiet:
        parser.add_argument("-q", "--quiet", action="store_true", help=quiet)


def number(text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not finite")
    return value


def positive(text: str) -> float:
    """A number above 0."""
    if (value := number(text)) <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} must be greater than 0")
    return value


def not_negative(text: str) -> float:
    """A number that is not below 0."""
    if (value := number(text)) < 0:
        raise argparse.ArgumentTypeError(f"{text!r} must not be negative")
    return value


def whole(text: str, low: int, high: int) -> int:
    """A whole number between two others."""
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"{text!r} must lie between {low} and {high}")
    return value


def count(text: str) -> int:
    """At least 1."""
    return whole(text, 1, 2**62)


def iterations(text: str) -> float:
    """At least 1, or a number above 0 that is not whole."""
    try:
        int(text)
    except ValueError:
        return positive(text)
    return count(text)


def size(text: str) -> int:
    """At least 0."""
    return whole(text, 0, 2**62)


def megabytes(text: str) -> int:
    """Bytes, given in megabytes."""
    return whole(text, 1, 2**40) << 20


def folds(text: str) -> int:
    """At least 2 folds."""
    return whole(text, 2, 10_000)


def gamma(text: str) -> float | str:
    """A number that is not below 0, or a name for one."""
    return text if text in ("scale", "auto") else not_negative(text)


def degree(text: str) -> int:
    """A degree."""
    return whole(text, 0, 2**31 - 1)


def seed(text: str) -> int:
    """A seed."""
    return whole(text, 0, 2**64 - 1)


def threads(text: str) -> int:
    """A number of threads; −1 is all cores."""
    if (value := whole(text, -1024, 1024)) == 0:
        raise argparse.ArgumentTypeError("0 threads do nothing; -1 means all cores")
    return value
