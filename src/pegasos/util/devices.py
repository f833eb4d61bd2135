"""Targets that cannot be replaced, only written to: devices, pipes, and the descriptors of the process."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_MOST_LINKS = 40  # one after the other, as the system follows them


def descriptor_of(path: str | os.PathLike[str]) -> int | None:
    """N if ``path`` is ``/dev/fd/N`` of this process or leads there, as ``/dev/stdout`` does; else None."""
    descriptors = re.compile(rf"/dev/fd|/proc/{os.getpid()}(/task/\d+)?/fd")
    place = os.fspath(path)
    for _ in range(_MOST_LINKS):
        folder, name = os.path.split(place)
        folder = os.path.realpath(folder)
        if descriptors.fullmatch(folder) and name.isdecimal():
            return int(name)
        place = os.path.join(folder, name)
        if not os.path.islink(place):
            return None
        place = os.path.join(folder, os.readlink(place))
    return None


def check_descriptor(number: int) -> None:
    """Raise OSError if the descriptor is not open for writing."""
    import fcntl  # there are no paths of descriptors where there is none

    if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


def is_device(path: str | os.PathLike[str]) -> bool:
    """Whether there is something at ``path``, links followed, that is neither a file nor a folder."""
    place = Path(path)
    return place.exists() and not place.is_file() and not place.is_dir()


def is_special(path: str | os.PathLike[str]) -> bool:
    """Whether ``path`` is a device, a pipe or a descriptor."""
    return descriptor_of(path) is not None or is_device(path)


def open_special(path: str | os.PathLike[str]) -> IO[bytes] | None:
    """A device, pipe or descriptor, open for bytes; None if ``path`` is a file or nothing yet."""
    if (number := descriptor_of(path)) is not None:
        # Opened anew it would be written from the beginning, over what is there; and sockets cannot be.
        with naming(path):
            return stream(os.dup(number), path)
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not is_device(path):
        return None
    return stream(os.open(path, os.O_WRONLY), path)


def stream(handle: int, path: str | os.PathLike[str]) -> IO[bytes]:
    """The open file ``handle`` for bytes; errors while writing name ``path``."""
    return io.BufferedWriter(_Named(handle, path), 1 << 16)


class _Named(io.FileIO):
    """A raw file whose errors say which one it is."""

    def __init__(self, handle: int, path: str | os.PathLike[str]) -> None:
        super().__init__(handle, "wb")
        self._path = path

    def write(self, data: ReadableBuffer, /) -> int:
        with naming(self._path):
            return super().write(data)


@contextlib.contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Errors of the system inside name ``path``, whatever file they happen to be about."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
