"""Bytes in and out: paths, open files, bytes and "-"; compression; files that are replaced whole or not at all."""

from __future__ import annotations

import bz2
import contextlib
import errno
import gzip
import io
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Literal, Protocol, TypeAlias, cast

from pegasos.util import atomic
from pegasos.util.devices import descriptor_of, naming

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

#: What can be read: a path, an open binary file, the bytes themselves, or "-" for standard input.
Source: TypeAlias = "str | os.PathLike[str] | IO[bytes] | bytes | bytearray | memoryview"
#: What can be written: a path, an open binary file, or "-" for standard output.
Target: TypeAlias = "str | os.PathLike[str] | IO[bytes]"

_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_LONGEST_MAGIC = max(map(len, _MAGIC))
_SUFFIXES = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}


def name_of(source: object) -> str:
    """How messages call a source or target."""
    if isinstance(source, bytes | bytearray | memoryview):
        return "<bytes>"
    if isinstance(source, str | os.PathLike):
        return "<stdin>" if source == "-" else os.fspath(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else f"<{type(source).__name__}>"


def compression(start: bytes) -> str | None:
    """The compression that data beginning like this are in; None for none that is known."""
    if len(start) >= 4 and start[1:4] == b"\x2a\x4d\x18" and 0x50 <= start[0] <= 0x5F:
        return "zstd"  # a skippable frame, which parallel compressors begin with
    return next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), None)


@contextlib.contextmanager
def reading(source: Source) -> Iterator[IO[bytes]]:
    """Open a source as a stream of its decompressed bytes. Damaged compressed data raise ValueError."""
    with contextlib.ExitStack() as stack:
        raw: IO[bytes] | io.RawIOBase
        if isinstance(source, bytes | bytearray | memoryview):
            raw = io.BytesIO(memoryview(source).cast("B"))
        elif isinstance(source, str | os.PathLike):
            raw = _standard_input() if source == "-" else stack.enter_context(_File(source))
        elif hasattr(source, "read"):
            raw = source
        else:
            raise TypeError(f"source must be a path, a binary file, bytes or '-', got {type(source).__name__}")
        start = b""
        while len(start) < _LONGEST_MAGIC and (more := raw.read(_LONGEST_MAGIC - len(start))):
            if not isinstance(more, bytes):
                raise TypeError(f"{name_of(source)} is open in text mode; open it with mode 'rb'")
            start += more
        kind = compression(start)
        stream = io.BufferedReader(_Rejoined(start, raw))
        try:
            yield stream if kind is None else _coded(stream, kind, "rb")
        except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, _Damaged) as error:
            raise ValueError(f"{name_of(source)}: the {kind} data are damaged or cut off: {error}") from error
        except OSError as error:
            if kind != "bzip2" or error.errno is not None:  # a broken bzip2 stream is an OSError without number
                raise
            raise ValueError(f"{name_of(source)}: the bzip2 data are damaged or cut off: {error}") from error


class SupportsReadInto(Protocol):
    """A stream that fills what it is given."""

    def readinto(self, buffer: memoryview, /) -> int: ...


@contextlib.contextmanager
def text_of(source: Source) -> Iterator[memoryview | SupportsReadInto]:
    """The decompressed bytes of a source: where they lie in memory, as a view, or else as a stream to ``readinto``."""
    with contextlib.ExitStack() as stack:
        if isinstance(source, bytes | bytearray | memoryview):
            view = memoryview(source).cast("B")
            if not compression(bytes(view[:_LONGEST_MAGIC])):
                yield view
                return
        elif isinstance(source, str | os.PathLike) and source != "-":
            file = stack.enter_context(_File(source))
            if file.seekable():  # read right into its place, without a buffer in between
                kind = compression(file.read(_LONGEST_MAGIC))
                file.seek(0)
                if kind is None:
                    yield file
                    return
            source = file
        yield cast("SupportsReadInto", stack.enter_context(reading(source)))


class _File(io.FileIO):
    """A file, open for bytes. A regular one that is cut while it is read is refused, and not taken for shorter."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(os.fspath(path), "rb")
        about = os.fstat(self.fileno())
        self.size = about.st_size if stat.S_ISREG(about.st_mode) else 0

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        if not self.size:
            return super().readinto(buffer)
        room, left = memoryview(buffer), self.size - self.tell()
        count = super().readinto(room[: max(left, 0)])
        if left > 0 and not count and len(room):
            now = os.fstat(self.fileno()).st_size
            raise ValueError(
                f"{self.name}: was cut from {self.size} to {now} bytes while it was read; read it again when it is "
                "complete"
            )
        return count


class _Rejoined(io.RawIOBase):
    """Bytes that were read to look at them, and the rest of the stream."""

    def __init__(self, start: bytes, rest: IO[bytes] | io.RawIOBase) -> None:
        self._start, self._rest = start, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        if not self._start and hasattr(self._rest, "readinto"):
            return int(self._rest.readinto(buffer) or 0)
        room = memoryview(buffer)
        data = self._start[: len(room)] or self._rest.read(len(room)) or b""
        self._start = self._start[len(data) :]
        room[: len(data)] = data
        return len(data)


class _Damaged(Exception):
    """Compressed data that do not make sense, where the library has no name for it."""


def _coded(file: IO[bytes], kind: str, mode: Literal["rb", "wb"]) -> IO[bytes]:
    """What is read from the result comes decompressed from ``file``; what is written to it goes there compressed."""
    if kind == "gzip":
        return cast("IO[bytes]", gzip.GzipFile(filename="", mode=mode, fileobj=file, mtime=0))  # no date: same bytes
    if kind == "bzip2":
        return bz2.BZ2File(file, mode)
    if kind == "xz":
        return lzma.LZMAFile(file, mode)
    return io.BufferedReader(_ZstdFrames(file)) if mode == "rb" else _zstd()[2](file)


class _Decompressor(Protocol):
    """Of one frame."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


def _zstd() -> tuple[Callable[[], _Decompressor], type[Exception], Callable[[IO[bytes]], IO[bytes]]]:
    """What makes a decompressor of one frame, the error it raises, and what makes a compressing writer."""
    if sys.version_info >= (3, 14):
        from compression import zstd

        return zstd.ZstdDecompressor, zstd.ZstdError, lambda file: zstd.ZstdFile(file, "wb")
    try:
        import zstandard
    except ImportError as error:
        raise ImportError(
            "zstd-compressed files need the package zstandard before Python 3.14: pip install 'pegasos[zstd]'"
        ) from error
    return (
        lambda: zstandard.ZstdDecompressor().decompressobj(),
        zstandard.ZstdError,
        lambda file: zstandard.ZstdCompressor().stream_writer(file, closefd=False),
    )


class _ZstdFrames(io.RawIOBase):
    """Frame after frame. The stream reader of zstandard takes a frame that is cut off for one that has ended."""

    # Fed so little at a time that not even a hostile file (128 KiB of output from 4 bytes) makes much of it.
    _READ_BYTES = 512

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._decompressor, self._error, _ = _zstd()
        self._frame: _Decompressor | None = None
        self._input = self._output = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        while not self._output:
            self._input = self._input or self._stream.read(self._READ_BYTES)
            if not self._input:
                if self._frame is not None:
                    raise EOFError("the last frame has no end")
                return 0
            if self._frame is None:
                self._frame = self._decompressor()
            try:
                self._output = self._frame.decompress(self._input)
            except self._error as error:
                raise _Damaged(str(error)) from error
            self._input = self._frame.unused_data if self._frame.eof else b""
            if self._frame.eof:
                self._frame = None
        room = memoryview(buffer)
        taken = self._output[: len(room)]
        self._output = self._output[len(taken) :]
        room[: len(taken)] = taken
        return len(taken)


@contextlib.contextmanager
def writing(target: Target) -> Iterator[IO[bytes]]:
    """Open a target for bytes. A path ending in .gz, .bz2, .xz or .zst is compressed.

    A file at a path is replaced when all has been written and is on the disk; an error leaves what was there. Devices,
    pipes and ``/dev/fd/N`` are written to as they are.
    """
    if not isinstance(target, str | os.PathLike):
        if not hasattr(target, "write"):
            raise TypeError(f"target must be a path, a binary file or '-', got {type(target).__name__}")
        if isinstance(target, io.TextIOBase):
            raise TypeError(f"{name_of(target)} is open in text mode; open it with mode 'wb'")
        yield target
    elif target == "-":
        if sys.stdout is None:
            raise OSError(errno.EBADF, "it is closed", "<stdout>")
        yield sys.stdout.buffer
        with naming("<stdout>"):
            sys.stdout.buffer.flush()
    else:
        # Of a symbolic link the file is replaced, not the link, and the file's name counts.
        ending = "" if descriptor_of(target) is not None else os.path.splitext(os.path.realpath(target))[1]
        kind = _SUFFIXES.get(ending.lower())
        with (
            atomic.writing(target) as file,
            _coded(file, kind, "wb") if kind else contextlib.nullcontext(file) as stream,
        ):
            yield stream


def _standard_input() -> IO[bytes]:
    if sys.stdin is None:
        raise OSError(errno.EBADF, "it is closed", "<stdin>")
    return sys.stdin.buffer
