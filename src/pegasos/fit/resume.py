"""The file a long fit keeps beside itself, so that a killed process goes on where it was.

A safetensors file: the arrays of engine and loop, and as metadata the format's version, the fit's fingerprint, how far
it was, and a digest over all of it. It is replaced as a whole or not at all. Nothing in it is executed, and every value
is checked before it is used; what it says about bounds and weights is believed, as one believes one's own files.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import stat
import time
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pegasos.fit.fingerprint import differences
from pegasos.rows.views import Array
from pegasos.util.atomic import probe, replace_file, sweep

FORMAT, VERSION = "pegasos-checkpoint", 3

#: The versions that can be read. In the second the trace was one table without names.
READABLE_VERSIONS = ("2", "3")

#: The types of number a checkpoint may hold, as safetensors calls them.
DTYPES = ("F64", "I64")


@dataclass(frozen=True)
class Header:
    """What a checkpoint says about itself: the fit it belongs to, and how far that was.

    ``progress`` holds ``epochs``, ``seconds`` and, after the first certificate, ``primal``, ``dual`` and
    ``relative_gap``.
    """

    fingerprint: dict[str, str]
    progress: dict[str, float]


def read_header(path: str | os.PathLike[str]) -> Header:
    """The header of the checkpoint ``path``.

    Raises FileNotFoundError if there is no such file, ValueError if it is no checkpoint, of a version that cannot be
    read, or damaged as far as the header shows.
    """
    with _opened(path) as file:
        return _header(path, file.metadata())


def read(path: str | os.PathLike[str]) -> tuple[Header, dict[str, Array]]:
    """Header and arrays of the checkpoint ``path``, its digest checked; refusals as for :func:`read_header`."""
    with _opened(path) as file:
        metadata = file.metadata()
        header = _header(path, metadata)
        for name in file.keys():  # noqa: SIM118 - not a dict
            if (dtype := file.get_slice(name).get_dtype()) not in DTYPES:
                raise _damaged(path, f"{name} holds {dtype}")
        arrays = {name: np.asarray(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
    if _digest(metadata, arrays) != metadata.get("digest"):
        raise _damaged(path, "its digest does not fit its content")
    return header, arrays


def write(path: str | os.PathLike[str], header: Header, arrays: dict[str, Array]) -> None:
    """Replace the file ``path`` by a checkpoint, atomically; OSError if that is impossible, the old one then stays."""
    from safetensors.numpy import save  # only fits with a checkpoint need it

    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    metadata = {
        "format": FORMAT,
        "version": str(VERSION),
        "fingerprint": json.dumps(header.fingerprint),
        "progress": json.dumps(header.progress),
    }
    replace_file(path, save(arrays, metadata | {"digest": _digest(metadata, arrays)}))


def check_path(path: str | os.PathLike[str]) -> Path:
    """The absolute path, links followed, of a checkpoint that can be written there; ValueError or OSError if not."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str) or not os.fspath(path):
        raise ValueError(f"checkpoint={path!r} must be the path of a file, or None")
    if "\0" in os.fspath(path):
        raise ValueError(f"checkpoint={path!r} holds a null character")
    place = Path(os.path.realpath(path))
    if not place.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "the folder of the checkpoint does not exist; make it first", str(path))
    if os.path.lexists(place) and not stat.S_ISREG(place.stat().st_mode):
        raise ValueError(f"checkpoint={os.fspath(path)!r} is no ordinary file; name a file to be written")
    try:
        probe(place)
    except OSError as error:
        raise type(error)(
            error.errno, f"the checkpoint cannot be written ({error.strerror}); choose another folder", str(path)
        ) from None
    return place


#: Fits that are done but whose files stay for now, inside ``kept_until``.
_KEPT: ContextVar[list[CheckpointFile] | None] = ContextVar("_KEPT", default=None)


@contextlib.contextmanager
def kept_until(safe: list[CheckpointFile]) -> Iterator[None]:
    """Fits inside that are done leave their checkpoints, as of their ends, and add them to ``safe``.

    For callers that lose a model if they cannot save it: they ``remove`` the files when the model is safe.
    """
    token = _KEPT.set(safe)
    try:
        yield
    finally:
        _KEPT.reset(token)


class CheckpointFile:
    """The checkpoint of one fit: read when it begins, written every so often, removed when it is done.

    See :func:`kept_until` for fits that are done before their models are safe.
    """

    def __init__(self, path: Path, every: float, fingerprint: dict[str, str]) -> None:
        self.path, self.every, self.fingerprint = path, every, fingerprint
        self.written = time.perf_counter()

    def load(self) -> dict[str, Array] | None:
        """The arrays to go on from; None if there is no file. ValueError if it is another fit's, or damaged."""
        sweep(self.path)
        if not self.path.exists():
            return None
        header = read_header(self.path)
        if found := differences(header.fingerprint, self.fingerprint):
            raise ValueError(
                f"checkpoint {str(self.path)!r} belongs to another fit: {'; '.join(found)}. Repeat that fit to go on "
                "from it, delete the file to start anew, or name another one"
            )
        return read(self.path)[1]

    def due(self) -> bool:
        """Whether ``every`` seconds have passed since the end of the last write."""
        return time.perf_counter() - self.written >= self.every

    def save(self, arrays: dict[str, Array], progress: dict[str, float]) -> None:
        """Write; a disk that is full, say, costs a warning and not the fit: the last checkpoint stays."""
        try:
            write(self.path, Header(self.fingerprint, progress), arrays)
        except OSError as error:
            warnings.warn(
                f"checkpoint {str(self.path)!r} could not be written ({error.strerror or error}); the fit goes on, and "
                f"the file is as it was before",
                RuntimeWarning,
                stacklevel=2,
            )
        finally:
            self.written = time.perf_counter()

    def damaged(self, why: object) -> ValueError:
        """The error for a checkpoint whose arrays loop or engine have refused, though its digest is right."""
        return _damaged(self.path, str(why), ", or another version of pegasos wrote it")

    def done(self, save: Callable[[], None]) -> None:
        """Nothing is left to do: remove the file, or ``save`` once more and leave the removal to who asked for it."""
        if (kept := _KEPT.get()) is None:
            self.remove()
        else:
            save()
            kept.append(self)

    def remove(self) -> None:
        """Delete the file, and what a killed process may have left of a write."""
        with contextlib.suppress(OSError):
            self.path.unlink()
        sweep(self.path)


def _opened(path: str | os.PathLike[str]) -> Any:
    """A context manager around safetensors' reader."""
    from safetensors import SafetensorError, safe_open  # only fits with a checkpoint need it

    with open(path, "rb"):  # its own errors do not name the file
        pass

    @contextlib.contextmanager
    def reader() -> Any:
        try:
            with safe_open(path, framework="numpy") as file:
                yield file
        except (SafetensorError, OverflowError, MemoryError) as error:
            raise _damaged(path, str(error)) from None

    return reader()


def _header(path: str | os.PathLike[str], metadata: dict[str, str] | None) -> Header:
    if not metadata or metadata.get("format") != FORMAT:
        raise ValueError(f"{os.fspath(path)!r} is no checkpoint of a fit")
    if (version := metadata.get("version")) not in READABLE_VERSIONS:
        known = " and ".join(READABLE_VERSIONS)
        raise ValueError(f"checkpoint {os.fspath(path)!r} has format version {version}; this library reads {known}")
    try:
        fingerprint, progress = json.loads(metadata["fingerprint"]), json.loads(metadata["progress"])
    except (KeyError, ValueError, RecursionError):
        raise _damaged(path, "its header cannot be read") from None
    good = isinstance(fingerprint, dict) and all(isinstance(v, str) for v in fingerprint.values())
    if not good or not isinstance(progress, dict) or not all(isinstance(v, int | float) for v in progress.values()):
        raise _damaged(path, "its header cannot be read")
    return Header(fingerprint, {name: float(v) for name, v in progress.items() if math.isfinite(v)})


def _digest(metadata: dict[str, str], arrays: dict[str, Array]) -> str:
    """SHA-256 over metadata, names, shapes and bytes."""
    said = sorted((key, value) for key, value in metadata.items() if key != "digest")
    shapes = [(name, arrays[name].dtype.str, arrays[name].shape) for name in sorted(arrays)]
    total = hashlib.sha256(json.dumps([said, shapes]).encode())
    for name in sorted(arrays):
        total.update(np.ascontiguousarray(arrays[name]).data)
    return total.hexdigest()


def _damaged(path: str | os.PathLike[str], why: str, unless: str = "") -> ValueError:
    return ValueError(f"checkpoint {os.fspath(path)!r} is damaged ({why}){unless}; delete it to start anew")
