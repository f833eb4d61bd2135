"""The command line when it is disturbed: signals at any moment, full disks, closed streams, pipes, and other users."""

from __future__ import annotations

import errno
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import processes
import pytest

import pegasos
from pegasos import io
from pegasos.cli import _models, main
from pegasos.cli._signals import Signals
from pegasos.datasets import make_text
from pegasos.fit import resume as resume_file

pytestmark = [
    pytest.mark.unsanitized,
    pytest.mark.skipif(os.name != "posix", reason="signals, pipes and descriptors"),
]

COMMAND = [sys.executable, "-m", "pegasos"]
ENVIRONMENT = {**os.environ, "PYTHONWARNINGS": "error", "PEGASOS_TRACEBACK": "1"}
ENDLESS = ["--solver", "pegasos", "--lam", "1e-7", "--tol", "1e-12", "--max-iter", "1000000000"]
PIPE = subprocess.PIPE


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Files that the tests read and never write: rows, a model, and a problem that takes all the time it is given."""
    folder = tmp_path_factory.mktemp("data")
    X, y = make_text(600, 80, nnz_per_row=8)
    io.write_svmlight(X[:400], y[:400], folder / "train.svm")
    io.write_svmlight(X[400:], y[400:], folder / "test.svm")
    rng = np.random.default_rng(0)
    io.write_svmlight(rng.normal(size=(4000, 60)), np.where(rng.random(4000) < 0.5, 1, -1), folder / "hard.svm")
    assert main(["train", str(folder / "train.svm"), "-m", str(folder / "a.model"), "-q"]) == 0
    os.chmod(folder, 0o755)
    return folder


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder of its own to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words, **options):
    """Run the command; everything it printed, and its exit code."""
    settings = {"capture_output": True, "text": True, "env": ENVIRONMENT, "stdin": subprocess.DEVNULL}
    return processes.run([*COMMAND, *words], **(settings | options))


def files(folder):
    return sorted(path.name for path in folder.rglob("*"))


def wait_for(condition, process):
    end = time.monotonic() + processes.LIMIT
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


# --- signals are not lost --------------------------------------------------------------------------------------------

SWALLOWS = """
import signal, time
try:
    signal.raise_signal(signal.SIGINT)
    for _ in range(10):
        time.sleep(0.01)
    calm = True
except BaseException:
    calm = False
"""


def test_an_import_neither_swallows_a_signal_nor_is_broken_by_it(place, monkeypatch, interruptible):
    (place / "swallows.py").write_text(SWALLOWS)
    monkeypatch.syspath_prepend(place)
    signals = Signals()

    def imports():
        with signals:
            assert importlib.import_module("swallows").calm
            time.sleep(60)

    with pytest.raises(KeyboardInterrupt):
        imports()
    assert signals.code == 130


def test_a_second_signal_does_not_wait_for_an_import(place, monkeypatch, interruptible):
    (place / "impatient.py").write_text("import signal\nfor _ in range(2):\n    signal.raise_signal(signal.SIGINT)\n")
    monkeypatch.syspath_prepend(place)
    with pytest.raises(KeyboardInterrupt), Signals():
        importlib.import_module("impatient")
    assert "impatient" not in sys.modules


@pytest.mark.parametrize("delay", [0.0, 0.1, *(pytest.param(s, marks=pytest.mark.slow) for s in (0.2, 0.3, 0.5))])
def test_a_signal_at_the_beginning_ends_the_command(data, place, delay):
    # A signal while Python itself starts may be lost: we wait until it has come to us, as its list of imports tells.
    python, *rest = COMMAND
    words = [python, "-X", "importtime", *rest, "train", data / "hard.svm", "-m", "a.model", *ENDLESS]
    with processes.started(words, stdout=subprocess.DEVNULL, stderr=PIPE, text=True) as process:
        while not process.stderr.readline().endswith(" pegasos.cli._startup\n"):
            assert process.poll() is None
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        err = process.stderr.read()
        assert process.wait(60) in (130, -signal.SIGINT), err
    assert "Exception ignored" not in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_what_is_ignored_at_the_beginning_stays_ignored(data, place, number):
    shell = ["sh", "-c", f"trap '' {number.name[3:]}; exec \"$@\"", "sh", *COMMAND]
    words = ["train", data / "hard.svm", "-m", "a.model", *ENDLESS, "--max-time", "2", "--checkpoint", "c"]
    with processes.started([*shell, *words, "--checkpoint-every", "0"], stdout=PIPE, env=ENVIRONMENT) as process:
        wait_for(lambda: (place / "c").exists(), process)  # the fit is under way
        process.send_signal(number)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 3
    assert b"max_time reached" in out


def test_handlers_of_a_program_that_runs_a_command_are_left_alone(data, place, monkeypatch):
    def mine(*_):
        pass

    before = [signal.signal(number, mine) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    try:
        with Signals():
            assert signal.getsignal(signal.SIGTERM) is mine
        assert main(["train", str(data / "train.svm"), "-m", "a.model", "-q"]) == 0
        assert signal.getsignal(signal.SIGINT) is mine
    finally:
        for number, handler in zip((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), before, strict=True):
            signal.signal(number, handler)


def test_handlers_are_given_back(data, place, interruptible):
    assert main(["train", str(data / "train.svm"), "-m", "a.model", "-q"]) == 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


# --- after the fit ---------------------------------------------------------------------------------------------------


def train(data, *words):
    return main(["train", str(data / "train.svm"), "-m", "a.model", "--record", "run.json", *map(str, words)])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_wait_while_the_model_is_saved(data, place, monkeypatch, capsys, interruptible, number):
    save = _models._save_file

    def disturbed(*args):
        for _ in range(3):
            signal.raise_signal(number)
        save(*args)
        signal.raise_signal(number)

    monkeypatch.setattr(_models, "_save_file", disturbed)
    assert train(data, "--test", data / "test.svm", "--checkpoint", "run.ckpt") == 128 + number
    assert "interrupted after the fit; the model is saved in a.model" in capsys.readouterr().err
    assert pegasos.load("a.model").certificate_.converged
    assert json.loads((place / "run.json").read_text())["test"] is None  # there is no time for that
    assert files(place) == ["a.model", "run.json"]


def test_a_signal_while_evaluating_finds_the_model_saved(data, place, monkeypatch, capsys, interruptible):
    def disturbed(*_):
        assert Path("a.model").exists()
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("pegasos.cli._judge.judge", disturbed)
    assert train(data, "--test", data / "test.svm") == 143
    assert "interrupted after the fit; the model is saved in a.model" in capsys.readouterr().err
    assert json.loads((place / "run.json").read_text())["certificate"]["converged"]
    assert files(place) == ["a.model", "run.json"]


def test_an_evaluation_that_fails_does_not_cost_the_model(data, place, capsys):
    X, y = io.read_svmlight(data / "test.svm", n_features=80)
    io.write_dataset(X, y, place / "rotten")
    # Rows on disk are checked when they are used.
    np.lib.format.open_memmap(place / "rotten" / "values.npy", mode="r+")[3] = np.nan
    assert train(data, "--test", "rotten", "--checkpoint", "run.ckpt") == 1
    err = capsys.readouterr().err
    assert err.startswith("pegasos: rotten: ")
    assert err.endswith("; the model is saved in a.model\n")
    assert pegasos.load("a.model").certificate_.converged
    assert not (place / "run.ckpt").exists()


# --- disks that are full ---------------------------------------------------------------------------------------------


def no_space(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("more", [[], ["--max-iter", "2", "--solver", "sdca", "--tol", "1e-9"]])
def test_a_model_that_cannot_be_saved_leaves_its_checkpoint(data, place, monkeypatch, capsys, more):
    words = ["train", str(data / "train.svm"), "-m", "a.model", "-q", "--checkpoint", "run.ckpt", *more]
    with monkeypatch.context() as patch:
        patch.setattr("pegasos.io.models.native.replace_file", no_space)
        assert main(words) == 1
    err = capsys.readouterr().err
    assert err == (
        "pegasos: a.model: the model could not be saved: No space left on device; run.ckpt holds the fit: "
        "add --resume to go on from it\n"
    )
    assert files(place) == ["run.ckpt"]
    code = main([*words, "--resume"])
    assert code == (3 if more else 0)
    resumed = pegasos.load("a.model")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(exist_ok=True)
    os.chdir(place)
    assert main(["train", str(data / "train.svm"), "-m", "b.model", "-q", *more]) == code
    straight = pegasos.load("b.model")
    np.testing.assert_array_equal(resumed.coef_, straight.coef_)
    assert resumed.certificate_.epochs == straight.certificate_.epochs


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_device_is_named_and_leaves_the_checkpoint(data, place):
    done = run("train", data / "train.svm", "-m", "/dev/full", "-q", "--checkpoint", "run.ckpt")
    assert done.returncode == 1
    assert done.stderr.startswith("pegasos: /dev/full: the model could not be saved: No space left on device; run.ckpt")
    assert files(place) == ["run.ckpt"]


def test_targets_are_tried_before_training(data, place, monkeypatch, capsys):
    monkeypatch.setattr("pegasos.cli._plan.Plan.of", lambda _: pytest.fail("trained"))
    monkeypatch.setattr("pegasos.util.atomic.os.write", no_space)
    for target in ("-m a.model", "-m /dev/null --record run.json", "-m /dev/null --checkpoint run.ckpt"):
        assert main(["train", str(data / "train.svm"), *target.split()]) == 1
        assert f"pegasos: {target.split()[-1]}: cannot be written to: No space left" in capsys.readouterr().err
    assert main(["predict", str(data / "test.svm"), "-m", str(data / "a.model"), "-o", "labels.txt"]) == 1
    assert "labels.txt: cannot be written to: No space left" in capsys.readouterr().err
    assert files(place) == []


LIMITED = """
import resource, sys
from pegasos.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
sys.exit(main(sys.argv[1:]))
"""


def test_a_checkpoint_that_cannot_be_written_is_told_at_once(data, place):
    """A limit on the size of files stands in for the disk."""
    words = [
        "train",
        data / "hard.svm",
        "-m",
        "a.model",
        "-q",
        *ENDLESS,
        "--checkpoint",
        "c",
        "--checkpoint-every",
        "0",
    ]
    words = [sys.executable, "-c", LIMITED, *words]
    with processes.started(words, stderr=PIPE, text=True, env=ENVIRONMENT) as process:
        first = process.stderr.readline()
        assert process.poll() is None  # it trains on
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 143
    assert re.fullmatch(
        r"pegasos: checkpoint '.*/c' could not be written \(File too large\); the fit goes on.*\n", first
    )
    assert "could not be written" not in err  # once
    assert files(place) == ["a.model"]


def test_fits_whose_checkpoints_are_kept_name_them(tmp_path):
    path, kept = tmp_path / "run.ckpt", []
    model = pegasos.LinearSVC(checkpoint=path)
    X, y = make_text(200, 30, nnz_per_row=5)
    with resume_file.kept_until(kept):
        model.fit(X, y)
    assert path.exists()
    [file] = kept
    again = pegasos.LinearSVC(checkpoint=path).fit(X, y)  # goes on from the end, and removes the file
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert not path.exists()
    file.remove()  # nothing is there any more


# --- streams that are closed, and pipes -------------------------------------------------------------------------------


def in_shell(text, data):
    """Run a line of bash in which ``pegasos`` is the command and $data the folder of the data."""
    words = " ".join(f"'{word}'" for word in COMMAND)
    line = f'pegasos() {{ {words} "$@"; }}; {text}'
    variables = {**ENVIRONMENT, "data": str(data)}
    return processes.run(["bash", "-c", line], capture_output=True, text=True, env=variables)


CLOSED = ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"]
USERS_OF_STREAMS = [
    "train $data/train.svm -m a.model --record run.json",
    "train $data/train.svm -m a.model --json",
    "predict $data/test.svm -m $data/a.model -o labels.txt",
    "evaluate $data/test.svm -m $data/a.model",
]


# Each stream for one command; the other commands close all of them, and the rest is slow.
@pytest.mark.parametrize(
    ("words", "closed"),
    [
        pytest.param(
            words, closed, marks=[] if words == USERS_OF_STREAMS[1] or closed == CLOSED[-1] else pytest.mark.slow
        )
        for words in USERS_OF_STREAMS
        for closed in CLOSED
    ],
)
def test_closed_streams_harm_nothing(data, place, words, closed):
    done = in_shell(f"pegasos {words} {closed}", data)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    made = {"train": "a.model", "predict": "labels.txt"}.get(words.split()[0])
    if made is not None:
        assert (place / made).exists()
    if made == "labels.txt":
        assert set((place / made).read_text().split()) == {"1", "-1"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("pegasos train - -m a.model <&-", "<stdin>: it is closed"),
        ("pegasos predict $data/test.svm -m $data/a.model >&-", "<stdout>: it is closed"),
        ("pegasos predict $data/test.svm -m $data/a.model -o /dev/stdout >&-", "/dev/stdout: cannot be written to"),
        ("pegasos predict $data/test.svm -m $data/a.model -o /dev/fd/9", "/dev/fd/9: cannot be written to: Bad file"),
    ],
)
def test_what_needs_a_closed_stream_says_so(data, place, line, message):
    done = in_shell(line, data)
    assert done.returncode == 1
    assert done.stderr.startswith(f"pegasos: {message}")


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("pegasos predict $data/test.svm -m $data/a.model -o /dev/stdout | cat", marks=pytest.mark.slow),
        "pegasos predict $data/test.svm -m $data/a.model -o /dev/fd/3 3>&1 >/dev/null | cat",
        pytest.param(
            "ln -s /dev/stdout link; pegasos predict $data/test.svm -m $data/a.model -o link | cat",
            marks=pytest.mark.slow,
        ),
        "mkfifo pipe; cat pipe & pegasos predict $data/test.svm -m $data/a.model -o pipe; wait",
        "pegasos predict $data/test.svm -m $data/a.model -o /dev/stdout > labels; cat labels",
        pytest.param("pegasos predict $data/test.svm -m $data/a.model -o labels; cat labels", marks=pytest.mark.slow),
    ],
)
def test_pipes_and_descriptors_get_what_files_get(data, place, line):
    done = in_shell(line, data)
    assert (done.returncode, done.stderr) == (0, "")
    expected = run("predict", data / "test.svm", "-m", data / "a.model").stdout
    assert done.stdout == expected
    assert expected.count("\n") == 200


def test_models_and_reports_go_to_pipes(data, place):
    done = in_shell("pegasos export $data/a.model /dev/stdout --format liblinear -q | head -1", data)
    assert (done.stdout.split()[0], done.stderr) == ("solver_type", "")
    done = in_shell("pegasos train $data/train.svm -m /dev/stdout -q | cat > b.model", data)
    assert (done.returncode, done.stderr) == (0, "")
    np.testing.assert_array_equal(pegasos.load("b.model").coef_, pegasos.load(data / "a.model").coef_)


def test_output_goes_on_where_it_was(data, place):
    line = "{ echo before; pegasos predict $data/test.svm -m $data/a.model -o /dev/stdout; echo after; } > all; cat all"
    lines = in_shell(line, data).stdout.splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("before", "after", 202)


def test_a_reader_that_leaves_is_no_error_of_ours(data, place):
    io.write_svmlight(np.ones((200_000, 1)), np.ones(200_000), place / "long.svm")
    for output in ("-", "/dev/stdout"):
        line = f"pegasos predict long.svm -m $data/a.model -o {output} | head -1; echo ${{PIPESTATUS[0]}}"
        done = in_shell(line, data)
        assert (done.stdout.split()[1], done.stderr) == ("141", "")


def test_devices_may_be_named_twice(data, place):
    done = run("train", data / "train.svm", "-m", "/dev/null", "--record", "/dev/null", "-q")
    assert (done.returncode, done.stderr) == (0, "")


# --- another user ----------------------------------------------------------------------------------------------------


@pytest.fixture
def open_folder(data):
    """A folder with the data that everybody may enter and only its owner may write to."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in data.iterdir():
            shutil.copy(path, folder)
            (folder / path.name).chmod(0o644)
        folder.chmod(0o755)
        yield folder


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="root can be somebody else")
def test_a_user_who_is_not_root(open_folder):
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

    def run_as_nobody(*words):
        done = processes.run([*nobody, *COMMAND, *words], capture_output=True, text=True, cwd=open_folder)
        return done.returncode, done.stderr

    if run_as_nobody("info", "a.model") != (0, ""):
        pytest.skip("nobody may not read the package")
    assert run_as_nobody("predict", "test.svm", "-m", "a.model", "-o", "/dev/null") == (0, "")
    refusal = "cannot be written to: Permission denied\n"
    assert run_as_nobody("predict", "test.svm", "-m", "a.model", "-o", "x.txt") == (1, f"pegasos: x.txt: {refusal}")
    assert run_as_nobody("train", "train.svm", "-m", "x.model") == (1, f"pegasos: x.model: {refusal}")
    assert run_as_nobody("train", "train.svm", "-m", "a.model") == (1, f"pegasos: a.model: {refusal}")
    assert run_as_nobody("train", "train.svm", "-m", "/dev/null", "--checkpoint", "x") == (1, f"pegasos: x: {refusal}")
