"""Files that commands write: whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import io
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

from pegasos.cli._exit import Failure
from pegasos.io.files import writing as writing_bytes
from pegasos.util.atomic import probe
from pegasos.util.devices import check_descriptor, descriptor_of, is_device, is_special


def check_target(path: str, what: str) -> None:
    """Refuse early what could not be written at the end of a long run."""
    if (number := descriptor_of(path)) is not None:
        with _refusing(path):
            check_descriptor(number)
        return
    target = Path(os.path.realpath(path))
    if is_device(target):
        if not os.access(target, os.W_OK):
            raise Failure(f"{path}: cannot be written to: {os.strerror(errno.EACCES)}")
        return
    if target.is_dir():
        raise Failure(f"{path}: is a folder; name a file for {what}")
    if not target.parent.is_dir():
        raise Failure(f"{path}: the folder {target.parent} does not exist; make it first")
    with _refusing(path):
        probe(target)


@contextlib.contextmanager
def _refusing(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Failure(f"{path}: cannot be written to: {error.strerror}") from None


def check_distinct(inputs: Mapping[str, str | None], outputs: Mapping[str, str | None]) -> None:
    """Refuse an output that would overwrite an input or another output; of devices and pipes nothing is overwritten."""
    seen = {os.path.realpath(path): what for what, path in inputs.items() if path is not None and path != "-"}
    for what, path in outputs.items():
        if path is None or path == "-" or is_special(path):
            continue
        real = os.path.realpath(path)
        if real in seen:
            raise Failure(f"{path}: given both as {seen[real]} and as {what}; name two different files")
        seen[real] = what


@contextlib.contextmanager
def writing(path: str) -> Iterator[TextIO]:
    """A text file that takes its place when it is complete; ``-`` is standard output."""
    with writing_bytes(path) as raw:
        text = io.TextIOWrapper(raw, encoding="utf-8", newline="\n")
        try:
            yield text
            text.flush()
        finally:
            # The file is not ours to close. What cannot be written any more was complained about above.
            with contextlib.suppress(OSError, ValueError):
                text.detach()
