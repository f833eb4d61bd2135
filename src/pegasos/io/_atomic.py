"""Writing a file so that its readers see the old content or the new, whatever happens in between."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path


def replace_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Write ``data`` to ``path``: to a new file beside it first, which takes its place when it is safe on the disk.

    A link is followed, so that what it points to is replaced. A file that is there keeps its permissions; a new one
    gets those of any new file (the umask decides). Only a kill that nothing can catch leaves the file beside it behind.
    """
    target = Path(os.path.realpath(path))
    mode = None
    with contextlib.suppress(FileNotFoundError):
        mode = target.stat().st_mode
        if not stat.S_ISREG(mode):
            raise ValueError(f"{os.fspath(path)} is no regular file, and only such a file can be replaced")
    beside = target.with_name(f".pegasos-{secrets.token_hex(8)}.tmp")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with open(handle, "wb") as file:
            if mode is not None:
                os.chmod(beside, mode & 0o777)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise
    _settle(target.parent)


def _settle(folder: Path) -> None:
    """Ask for the folder's entry to reach the disk too, where folders can be asked."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
