"""Files that commands write: whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

from pegasos.cli._exit import Failure


def check_target(path: str, what: str) -> None:
    """Refuse early what could not be written at the end of a long run."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise Failure(f"{path}: is a folder; name a file for the {what}")
    if not target.parent.is_dir():
        raise Failure(f"{path}: the folder {target.parent} does not exist; make it first")
    if not os.access(target.parent, os.W_OK):
        raise Failure(f"{path}: the folder {target.parent} cannot be written to")


def check_distinct(inputs: Mapping[str, str | None], outputs: Mapping[str, str | None]) -> None:
    """Refuse an output that would overwrite an input or another output."""
    seen = {os.path.realpath(path): what for what, path in inputs.items() if path is not None and path != "-"}
    for what, path in outputs.items():
        if path is None or path == "-":
            continue
        real = os.path.realpath(path)
        if real in seen:
            raise Failure(f"{path}: given both as {seen[real]} and as {what}; name two different files")
        seen[real] = what


@contextlib.contextmanager
def writing(path: str) -> Iterator[TextIO]:
    """A text file that takes its place when it is complete; ``-`` and what is no regular file are written at once."""
    if path == "-":
        yield sys.stdout
        sys.stdout.flush()
        return
    target = Path(os.path.realpath(path))
    if target.exists() and not stat.S_ISREG(target.stat().st_mode):
        with open(target, "w", encoding="utf-8", newline="\n") as file:
            yield file
        return
    beside = target.with_name(f".pegasos-{secrets.token_hex(8)}.tmp")
    try:
        with open(beside, "x", encoding="utf-8", newline="\n") as file:
            if target.exists():
                os.chmod(beside, target.stat().st_mode & 0o777)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
