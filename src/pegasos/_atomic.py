"""Writing a file so that its readers see the old content or the new, whatever happens in between."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A new file beside ``path``, open for bytes, which takes its place when it is complete and safe on the disk.

    A link is followed, so that what it points to is replaced. A file that is there keeps its permissions; a new one
    gets those of any new file (the umask decides). An error inside leaves everything as it was; only a kill that
    nothing can catch leaves the file beside it behind.
    """
    target = Path(os.path.realpath(path))
    mode = None
    with contextlib.suppress(FileNotFoundError):
        mode = target.stat().st_mode
        if not stat.S_ISREG(mode):
            raise ValueError(f"{os.fspath(path)} is no regular file, and only such a file can be replaced")
    handle, beside = open_beside(target)
    try:
        with open(handle, "wb") as file:
            if mode is not None:
                os.chmod(beside, stat.S_IMODE(mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise
    _settle(target.parent)


def replace_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace the file ``path`` by ``data``; see :func:`replacing`."""
    with replacing(path) as file:
        file.write(data)


def open_beside(path: Path) -> tuple[int, Path]:
    """Create a file next to ``path``, under a name of its own: its handle and path."""
    prefix, suffix = affixes(path)
    beside = path.with_name(f"{prefix}{secrets.token_hex(8)}{suffix}")
    return os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666), beside


def affixes(path: Path) -> tuple[str, str]:
    """How the names of the files beside ``path`` begin and end; long names are cut, for names have a limit."""
    return f".{path.name[:150]}.", ".tmp"


def sweep(path: Path) -> None:
    """Delete what killed processes left beside ``path``; nobody else may be writing it."""
    prefix, suffix = affixes(path)
    with contextlib.suppress(OSError), os.scandir(path.parent) as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and entry.name.endswith(suffix):
                os.unlink(entry.path)


def _settle(folder: Path) -> None:
    """Ask for the folder's entry to reach the disk too, where folders can be asked."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
