"""Files that are replaced whole, what killed processes leave beside them, and what cannot be replaced."""

import errno
import os
import sys

import numpy as np
import processes
import pytest

import pegasos
from pegasos import LinearSVC, io
from pegasos.io import write_svmlight
from pegasos.util import atomic
from pegasos.util import devices as devices_module

pytestmark = [
    pytest.mark.unsanitized,
    pytest.mark.skipif(os.name != "posix", reason="locks, devices and pipes"),
]


def beside(name, token="0123456789abcdef"):
    return f".{name}.{token}.tmp"


# --- what is left beside ---------------------------------------------------------------------------------------------


def test_only_files_of_exactly_that_name_are_swept(tmp_path):
    swept = [beside("news"), beside("news", "f" * 16)]
    kept = [
        beside("news.model"), beside("news.old"), beside("newsx"), beside("xnews"), beside("news", "f" * 15),
        beside("news", "f" * 17), beside("news", "F" * 16), ".news.tmp", ".news..tmp", "news",
        "news.0123456789abcdef.tmp",
    ]  # fmt: skip
    for name in swept + kept:
        (tmp_path / name).write_text("something")
    (tmp_path / beside("news", "a" * 16)).mkdir()
    (tmp_path / beside("news", "b" * 16)).symlink_to(tmp_path / "news")
    atomic.sweep(tmp_path / "news")
    assert sorted(os.listdir(tmp_path)) == sorted([*kept, beside("news", "a" * 16), beside("news", "b" * 16)])


def test_letters_that_mean_something_in_patterns_mean_themselves(tmp_path):
    (tmp_path / beside("newsXmodel")).write_text("something")
    atomic.sweep(tmp_path / "news.model")
    atomic.sweep(tmp_path / "n*")
    assert os.listdir(tmp_path) == [beside("newsXmodel")]


def test_long_names_differ_beside_too(tmp_path):
    one, other = ("x" * 250 + end for end in "ab")
    with atomic.replacing(tmp_path / one) as file:
        file.write(b"new")
        atomic.sweep(tmp_path / other)
        with atomic.replacing(tmp_path / other) as second:
            second.write(b"newer")
    assert (tmp_path / one).read_bytes() == b"new"
    with atomic.replacing(tmp_path / ("ü" * 127)) as file:  # 254 bytes, of 255 that a name may have
        file.write(b"new")
    assert len(os.listdir(tmp_path)) == 3


def test_a_live_file_is_left_alone_and_a_dead_one_is_not(tmp_path):
    path = tmp_path / "news"
    code = (
        "import sys; from pegasos.util import atomic\n"
        "with atomic.replacing(sys.argv[1]) as file:\n"
        "    file.write(b'theirs'); file.flush(); print('ready', flush=True); sys.stdin.readline()\n"
    )
    words = [sys.executable, "-c", code, path]
    pipe = processes.subprocess.PIPE
    with processes.started(words, stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdout.readline() == "ready\n"
        atomic.sweep(path)
        atomic.replace_file(path, b"ours")
        assert len(os.listdir(tmp_path)) == 2
        other.communicate("go on\n", timeout=60)
        assert other.returncode == 0
    assert path.read_bytes() == b"theirs"
    with processes.started(words, stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdout.readline() == "ready\n"
        other.kill()
        other.wait(60)
    assert len(os.listdir(tmp_path)) == 2
    atomic.replace_file(path, b"ours")
    assert os.listdir(tmp_path) == ["news"]
    assert path.read_bytes() == b"ours"


def test_a_file_swept_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    hold, made = atomic.hold, []

    def too_late(handle):
        if not made:
            os.unlink(next(tmp_path.iterdir()))
        made.append(handle)
        hold(handle)

    monkeypatch.setattr(atomic, "hold", too_late)
    atomic.replace_file(tmp_path / "news", b"ours")
    assert len(made) == 2
    assert os.listdir(tmp_path) == ["news"]


CONVERT = """
import os, sys
from pathlib import Path
from pegasos import io
from pegasos.io.data import convert
from pegasos.io.data import dataset_writer
source, folder, when = sys.argv[1:]
if when == "writing":
    dataset_writer.DatasetWriter.finish = lambda *_: os.kill(os.getpid(), 9)
else:
    rename = Path.rename
    def killed(self, target):
        if self.name.endswith(".new"):
            os.kill(os.getpid(), 9)
        return rename(self, target)
    Path.rename = killed
io.convert(source, folder, overwrite=True)
"""


@pytest.mark.parametrize("when", ["writing", "renaming"])
def test_a_killed_convert_leaves_nothing_that_a_later_one_does_not_clean(tmp_path, when):
    source, folder = tmp_path / "data.svm", tmp_path / "data"
    write_svmlight(np.eye(3), [1, 2, 3], source)
    io.convert(source, folder)
    others = tmp_path / ".data.old.0123456789ab.new"  # of a folder data.old
    others.mkdir()
    killed = processes.run([sys.executable, "-c", CONVERT, source, folder, when])
    assert killed.returncode == -9
    left = {path.suffix for path in tmp_path.iterdir() if path.name.startswith(".") and path != others}
    assert left == ({".new"} if when == "writing" else {".new", ".old"})
    write_svmlight(2 * np.eye(3), [1, 2, 3], source)
    io.convert(source, folder, overwrite=True)
    assert sorted(os.listdir(tmp_path)) == [others.name, "data", "data.svm"]
    assert io.open_dataset(folder).X.toarray()[0, 0] == 2


def test_a_convert_under_way_is_left_alone(tmp_path):
    source, folder = tmp_path / "data.svm", tmp_path / "data"
    write_svmlight(np.eye(3), [1, 2, 3], source)
    from pegasos.io.data.dataset_writer import new_folder

    with new_folder(folder, overwrite=True) as fresh:
        io.convert(source, folder)
        assert fresh.is_dir()
        io.write_dataset(np.eye(2), [1, 2], fresh / "d")
    assert (folder / "d").is_dir()
    assert sorted(os.listdir(tmp_path)) == ["data", "data.svm"]


# --- errors name the file --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["fsync", "replace", "open"])
def test_errors_name_the_file_that_was_asked_for(call, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "something else")

    monkeypatch.setattr(atomic.os, call, fail)
    with pytest.raises(OSError, match=r"No space left on device: '.*news'$") as caught:
        atomic.replace_file(tmp_path / "news", b"data")
    assert caught.value.filename == str(tmp_path / "news")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_device_is_named(tmp_path):
    link = tmp_path / "news"
    link.symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"No space left on device: '.*news'$"):
        write_svmlight([[1.0]], [1], link)


# --- devices, pipes, descriptors -------------------------------------------------------------------------------------


def test_descriptors_are_known_by_their_paths(tmp_path):
    read, write = os.pipe()
    link = tmp_path / "out"
    link.symlink_to(f"/dev/fd/{write}")
    (tmp_path / "again").symlink_to("out")
    try:
        for path in (f"/dev/fd/{write}", f"/proc/self/fd/{write}", link, tmp_path / "again"):
            if os.path.exists(path):
                assert devices_module.descriptor_of(path) == write
        assert devices_module.descriptor_of("/dev/stdout") == 1
        for path in ("/dev/null", tmp_path / "1", tmp_path, "1", "/dev/fd", "", "/dev/fd/x", tmp_path / ".."):
            assert devices_module.descriptor_of(path) is None
    finally:
        os.close(read)
        os.close(write)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert devices_module.descriptor_of(loop) is None


def test_a_descriptor_is_written_where_it_stands(tmp_path):
    """Not from the beginning, over what is there; and the file is not replaced by another one."""
    path = tmp_path / "out.gz"
    with open(path, "wb", buffering=0) as file:
        file.write(b"# before\n")
        write_svmlight([[1.0]], [1], f"/dev/fd/{file.fileno()}")
        file.write(b"# after\n")
        assert os.fstat(file.fileno()).st_ino == path.stat().st_ino
    assert path.read_bytes() == b"# before\n1 1:1\n# after\n"


def test_pipes_are_written_to(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_svmlight([[1.0]], [1], path)
        assert os.read(reader, 100) == b"1 1:1\n"
    finally:
        os.close(reader)
    assert os.listdir(tmp_path) == ["pipe"]


def test_models_are_files(tmp_path):
    """They are read back, which a pipe cannot be; the command line writes them to pipes all the same."""
    model = LinearSVC().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="no regular file"):
        pegasos.save(model, "/dev/null")


def test_a_probe_leaves_nothing(tmp_path, monkeypatch):
    atomic.probe(tmp_path / "news")
    assert os.listdir(tmp_path) == []

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic.os, "write", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*news'$"):
        atomic.probe(tmp_path / "news")
    assert os.listdir(tmp_path) == []
