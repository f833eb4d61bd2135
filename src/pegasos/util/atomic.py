"""Writing a file so that its readers see the old content or the new, whatever happens in between.

The new content is written to a file beside the old one, which is locked until it takes its place. What a killed process
leaves is not locked any more: the next write to the same place removes it, and never what another process still writes.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from pegasos.util.devices import naming, open_special, stream

try:
    import fcntl
except ImportError:  # Windows, where a file that is open cannot be removed
    fcntl = None  # type: ignore[assignment]

_LONGEST_NAME = 200  # in bytes, of a file that others lie beside: their names are longer, and names have a limit


@contextlib.contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """What is at ``path``, open for bytes. A file is replaced when all is written, see :func:`replacing`.

    Devices, pipes and ``/dev/fd/N`` (``/dev/stdout``, say) are written to as they are.
    """
    special = open_special(path)
    with replacing(path) if special is None else special as file:
        yield file


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A new file beside ``path``, open for bytes, which takes its place when it is complete and safe on the disk.

    A link is followed, so that what it points to is replaced. A file that is there keeps its permissions; a new one
    gets those of any new file (the umask decides). An error inside leaves everything as it was; only a kill that
    nothing can catch leaves the file beside it behind, and the next write to the same place removes it.
    """
    target = Path(os.path.realpath(path))
    mode = None
    with contextlib.suppress(FileNotFoundError):
        mode = target.stat().st_mode
        if not stat.S_ISREG(mode):
            raise ValueError(f"{os.fspath(path)} is no regular file, and only such a file can be replaced")
    sweep(target)
    with naming(path):
        handle, beside = open_beside(target)
    try:
        with stream(handle, path) as file:
            if mode is not None:
                os.chmod(beside, stat.S_IMODE(mode))
            yield file
            file.flush()
            with naming(path):
                os.fsync(file.fileno())
                if fcntl is not None:  # while it is open, hence locked
                    os.replace(beside, target)
        if fcntl is None:
            os.replace(beside, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise
    with contextlib.suppress(OSError):  # not every system can open folders
        sync_folder(target.parent)


def replace_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace the file ``path`` by ``data``; see :func:`replacing`."""
    with replacing(path) as file:
        file.write(data)


def probe(path: Path) -> None:
    """Create a file beside ``path``, write a little and remove it: an OSError if :func:`replacing` could not."""
    with naming(path):
        handle, beside = open_beside(path)
        try:
            os.write(handle, bytes(2560))  # the disk may be full; less than this some keep where there is always room
        finally:
            os.close(handle)
            os.unlink(beside)


def open_beside(path: Path) -> tuple[int, Path]:
    """Create a file next to ``path``, under a name of its own, and lock it: its handle and path."""
    while True:
        beside = path.with_name(f"{_prefix(path)}{secrets.token_hex(8)}.tmp")
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        hold(handle)
        if os.fstat(handle).st_nlink:
            return handle, beside
        os.close(handle)  # taken for a dead process's before it was locked


def sweep(path: Path) -> None:
    """Delete what killed processes left beside ``path``: files of exactly such names that no process has locked."""
    name = re.compile(re.escape(_prefix(path)) + r"[0-9a-f]{16}\.tmp")
    with contextlib.suppress(OSError), os.scandir(path.parent) as entries:
        for entry in entries:
            if name.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with contextlib.suppress(OSError), abandoned(entry.path):
                    os.unlink(entry.path)


def hold(handle: int) -> None:
    """Lock what is open, until it is closed or the process ends, so that :func:`sweep` leaves it alone."""
    if fcntl is not None:
        with contextlib.suppress(OSError):  # not every file system has locks: there nothing is swept either
            fcntl.flock(handle, fcntl.LOCK_EX)


@contextlib.contextmanager
def abandoned(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold the file or folder ``path`` while inside; OSError if another process does, or if that cannot be known."""
    if fcntl is None:
        yield
        return
    folder = os.path.isdir(path)
    handle = os.open(path, (os.O_RDONLY if folder else os.O_RDWR) | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _prefix(path: Path) -> str:
    """How the names of the files beside ``path`` begin: different for any two paths of a folder."""
    name = os.fsencode(path.name)
    return f".{path.name if len(name) <= _LONGEST_NAME else hashlib.sha256(name).hexdigest()}."


def sync_folder(folder: Path) -> None:
    """See that the entries of a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
