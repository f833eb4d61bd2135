"""Checkpoints: a fit that was killed, however often, ends with the same bits as one that never was."""

import contextlib
import errno
import json
import os
import select
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path

import killable
import numpy as np
import processes
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from pegasos import SDCA, SVR, LinearSVC, LinearSVR, Pegasos
from pegasos.fit import resume
from pegasos.fit.interrupt import Interrupts
from pegasos.fit.resume import CheckpointFile, Header, read, read_header, write
from pegasos.solvers.linear import auto
from pegasos.util import digests

POSIX = pytest.mark.skipif(os.name != "posix", reason="forks, kills or limits processes")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.ckpt"


def same(found, expected):
    assert found.keys() == expected.keys()
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


class Crash(Exception):
    """What stands in for a kill where no process is to die."""


class Crashing:
    """Lets a fit 'die' right after writing a checkpoint on its way; the write at the end of a fit is no such one."""

    def __init__(self, monkeypatch, writes=1):
        self.left = writes
        self.under_way = False
        save = CheckpointFile.save

        def due(_):
            self.under_way = True
            return True

        def save_and_die(file, arrays, progress):
            if self.left <= 0:
                return  # the dead write nothing
            save(file, arrays, progress)
            if self.under_way:
                self.left, self.under_way = self.left - 1, False
                if self.left == 0:
                    raise Crash

        monkeypatch.setattr(CheckpointFile, "due", due)
        monkeypatch.setattr(CheckpointFile, "save", save_and_die)


def stopped_fit(path, monkeypatch, name="sdca", writes=5, **changes):
    """Leave the checkpoint of a fit that died after so many writes."""
    with monkeypatch.context() as patch:
        Crashing(patch, writes)
        with pytest.raises(Crash):
            killable.fit(name, checkpoint=path, checkpoint_every=0, **changes)
    assert path.exists()


# --- the same bits ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", killable.FITS)
def test_every_piece_of_work_in_a_life_of_its_own(name, path, monkeypatch):
    """Each life reads the checkpoint, does one piece of work, writes, and dies."""
    straight = killable.outcome(killable.fit(name, warm_start=True))
    crashing, lives = Crashing(monkeypatch), 0
    fitted = None
    while fitted is None:
        crashing.left = 1
        with contextlib.suppress(Crash):
            fitted = killable.fit(name, checkpoint=path, checkpoint_every=0, warm_start=True)
        lives += 1
    assert lives > 5
    same(killable.outcome(fitted), straight)


def test_auto_dies_in_every_stage(path, monkeypatch):
    """The fits above do what their names say."""
    seen = set()
    honest = auto.AutoEngine.restore

    def restore(self, state):
        honest(self, state)
        seen.add(self.stage)

    monkeypatch.setattr(auto.AutoEngine, "restore", restore)
    test_every_piece_of_work_in_a_life_of_its_own("auto", path, monkeypatch)
    test_every_piece_of_work_in_a_life_of_its_own("auto at once", path, monkeypatch)
    assert seen == set(auto.STAGES)


@pytest.fixture(scope="module")
def nursery():
    """A process that makes fits in children of its own and kills them; see ``killable.py``."""
    variables = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "2"}
    variables["PYTHONPATH"] = os.pathsep.join(sys.path)
    pipe = subprocess.PIPE
    # It forks: without the packages that start threads when they are imported.
    code = "import sys; sys.modules.update(pandas=None, pyarrow=None); import killable; killable.main()"
    command = [sys.executable, "-W", "error::DeprecationWarning", "-c", code]
    with processes.started(command, limit=3600, stdin=pipe, stdout=pipe, text=True, env=variables) as process:

        def attempt(name, checkpoint, result, delay=None):
            line = "\t".join([name, str(checkpoint), str(result), "" if delay is None else f"{delay:.6f}"])
            process.stdin.write(line + "\n")
            process.stdin.flush()
            assert select.select([process.stdout], [], [], processes.LIMIT)[0], "it hangs"
            seconds, how = process.stdout.readline().rstrip("\n").split(" ", 1)
            return float(seconds), how

        yield attempt


def kill_often(nursery, name, folder, kills, seed):
    """Kill a fit at random moments, resuming it in between; how often that was, and whether the bits are the same."""
    rng = np.random.default_rng(seed)
    straight = killable.outcome(killable.fit(name, warm_start=True))
    result = folder / "result.npz"
    duration, how = nursery(name, folder / "whole.ckpt", result)
    assert how == "finished"
    reach, killed, path = duration / 4, 0, folder / "run.ckpt"
    for _ in range(20 * kills):
        _, how = nursery(name, path, result, rng.uniform(0, reach))
        assert how in ("killed", "finished")
        if how == "killed":
            killed += 1
        else:  # faster than it was before: aim earlier
            same(dict(np.load(result)), straight)
            reach /= 2
        if killed == kills:
            break
    result.unlink(missing_ok=True)
    _, how = nursery(name, path, result)
    assert how == "finished"
    same(dict(np.load(result)), straight)
    left = {entry.name for entry in folder.iterdir()} - {"result.npz", "whole.ckpt", "run.ckpt"}
    assert not left  # what writes in progress left behind was swept up
    assert path.exists() == (bytes(straight["reason"].tobytes()) == b"max_iter reached")
    return killed


#: One fit of each kind of engine, and those whose state is largest; the others die in the slow tests.
KILLED = [
    "pegasos average iid",
    "pegasos random",
    "norma",
    "sdca",
    "sdca blocks",
    "sdca ten classes",
    "search",
    "search by pegasos",
    "cutting_plane",
    "interior_point three classes",
    "smoothed_newton three classes",
    "newton",
    "auto",
    "svc",
    "svc three classes",
    "svr",
]


@POSIX
@pytest.mark.unsanitized
@pytest.mark.parametrize("name", KILLED)
def test_killed_fits_end_with_the_same_bits(nursery, name, tmp_path):
    assert kill_often(nursery, name, tmp_path, kills=4, seed=len(name)) == 4


@POSIX
@pytest.mark.slow
@pytest.mark.unsanitized
@pytest.mark.parametrize("name", killable.FITS)
def test_fits_killed_many_times(nursery, name, tmp_path):
    assert kill_often(nursery, name, tmp_path, kills=25, seed=1 + len(name)) == 25


@pytest.mark.parametrize(
    "name",
    ["pegasos suffix fixed", "sdca ten classes", "cutting_plane", "sequences block_frank_wolfe", "sequences auto log"],
)
def test_a_higher_limit_goes_on_as_if_there_had_been_none_before(name, path):
    straight = killable.outcome(killable.fit(name, warm_start=True, max_iter=40))
    short = killable.fit(name, warm_start=True, max_iter=11, checkpoint=path)
    assert path.exists()
    same(killable.outcome(killable.fit(name, warm_start=True, max_iter=11, checkpoint=path)), killable.outcome(short))
    same(killable.outcome(killable.fit(name, warm_start=True, max_iter=40, checkpoint=path)), straight)


def test_threads_may_change(path, monkeypatch):
    straight = killable.outcome(killable.fit("sdca blocks", warm_start=True))
    stopped_fit(path, monkeypatch, "sdca blocks")
    same(killable.outcome(killable.fit("sdca blocks", warm_start=True, n_jobs=1, checkpoint=path)), straight)


def test_a_warm_start_is_resumed_too(path, monkeypatch):
    X, y = killable.data("two")

    def second(**how):
        first = killable.fit("sdca", warm_start=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return first.set_params(lam=5e-4, **how).fit(X, y)

    straight = killable.outcome(second())
    with monkeypatch.context() as patch:
        Crashing(patch, 5)
        with pytest.raises(Crash):
            second(checkpoint=path, checkpoint_every=0)
    resumed = killable.fit("sdca", lam=5e-4, warm_start=True, checkpoint=path)  # knows nothing of the first fit
    same(killable.outcome(resumed), straight)


def test_the_seconds_of_all_lives_add_up(path, monkeypatch):
    stopped_fit(path, monkeypatch)
    before = read_header(path).progress["seconds"]
    header, arrays = read(path)
    write(path, header, arrays | {"loop.seconds": np.array([before + 1000])})
    fitted = killable.fit("sdca", checkpoint=path)
    assert fitted.certificate_.seconds > before + 1000
    assert fitted.trace_[-1].seconds > before + 1000


def test_the_seconds_of_all_lives_count_against_max_time(path, monkeypatch):
    stopped_fit(path, monkeypatch, max_time=500)
    header, arrays = read(path)
    write(path, header, arrays | {"loop.seconds": np.array([1000.0])})
    fitted = killable.fit("sdca", checkpoint=path, max_time=500)
    assert fitted.certificate_.reason == "max_time reached"
    more = killable.fit("sdca", checkpoint=path, max_time=5000)
    assert more.certificate_.reason == "max_iter reached"
    np.testing.assert_array_equal(more.coef_, killable.fit("sdca").coef_)


# --- what becomes of the file ----------------------------------------------------------------------------------------


def test_a_fit_that_converges_removes_its_checkpoint(path, tmp_path):
    written = []
    fitted = killable.fit(
        "sdca converging", checkpoint=path, checkpoint_every=0, callback=lambda c: written.append(path.exists())
    )
    assert fitted.certificate_.converged
    assert all(written)
    assert list(tmp_path.iterdir()) == []


def test_the_warning_says_how_to_go_on(path):
    with pytest.warns(ConvergenceWarning, match=r"With a higher limit the fit goes on from '.*run\.ckpt'"):
        killable.model("sdca", checkpoint=path).fit(*killable.data("two"))


def test_checkpoints_are_as_far_apart_as_asked(path, monkeypatch):
    clock, writes = [0.0], []
    monkeypatch.setattr(resume.time, "perf_counter", lambda: clock[0])

    def slow_write(*args):
        clock[0] += 3.0
        writes.append(clock[0])

    monkeypatch.setattr(resume, "write", slow_write)
    file = CheckpointFile(path, 30.0, {})
    for now in range(200):
        clock[0] = max(clock[0], float(now))
        if file.due():
            file.save({}, {})
    assert writes == [33.0, 66.0, 99.0, 132.0, 165.0, 198.0]  # 30 s from the end of one to the start of the next


def test_nothing_is_written_when_there_is_no_time_for_it(path, monkeypatch):
    saves = []
    monkeypatch.setattr(CheckpointFile, "save", lambda self, *args: saves.append(args))
    killable.fit("sdca converging", checkpoint=path)
    assert not saves


def test_what_a_callback_raises_leaves_a_checkpoint_of_that_moment(path):
    straight = killable.outcome(killable.fit("sdca", warm_start=True))
    seen = []

    def trouble(point):
        seen.append(point.epochs)
        if len(seen) == 3:
            raise Crash

    with pytest.raises(Crash):
        killable.fit("sdca", checkpoint=path, callback=trouble)
    assert read_header(path).progress["epochs"] == seen[-1]
    resumed = []
    fitted = killable.fit("sdca", warm_start=True, checkpoint=path, callback=lambda c: resumed.append(c.epochs))
    same(killable.outcome(fitted), straight)
    assert resumed[0] == seen[-1]  # the certificate that was broken off is made again
    assert seen[:2] + resumed == [c.epochs for c in fitted.trace_]


def test_a_callback_that_stops_the_fit_leaves_a_checkpoint(path):
    early = killable.fit("sdca", checkpoint=path, callback=lambda c: c.epochs > 6)
    assert early.certificate_.reason == "stopped by the callback"
    np.testing.assert_array_equal(killable.fit("sdca", checkpoint=path).coef_, killable.fit("sdca").coef_)


def test_links_are_followed(path, tmp_path, monkeypatch):
    link = tmp_path / "link"
    link.symlink_to(path)
    killable.fit("sdca", checkpoint=link)
    assert link.is_symlink()
    assert path.is_file()


def test_a_change_of_folder_changes_nothing(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    killable.fit("sdca", checkpoint="run.ckpt", callback=lambda c: os.chdir(tmp_path / "elsewhere"))
    assert (tmp_path / "run.ckpt").exists()
    assert not any((tmp_path / "elsewhere").iterdir())


# --- Ctrl-C ----------------------------------------------------------------------------------------------------------

INTERRUPTED = """
    import sys, warnings
    import killable
    warnings.simplefilter("ignore")
    path, how, name = sys.argv[1:]
    print("ready", flush=True)
    try:
        fitted = killable.fit(name, checkpoint=path, max_iter=10**7, tol=0, lam=1e-8, on_interrupt=how, verbose=True)
        print(fitted.certificate_.reason)
    except KeyboardInterrupt:
        print("raised")
"""


@POSIX
@pytest.mark.unsanitized
@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("pegasos", "raise"),
        ("sdca ten classes", "keep"),
        pytest.param("pegasos", "keep", marks=pytest.mark.slow),
        pytest.param("sdca ten classes", "raise", marks=pytest.mark.slow),
        pytest.param("cutting_plane three classes", "raise", marks=pytest.mark.slow),
        pytest.param("cutting_plane three classes", "keep", marks=pytest.mark.slow),
    ],
)
def test_an_interrupt_leaves_a_checkpoint(name, how, path):
    """However long it ran: the checkpoint is continued to exactly what a straight fit has then.

    With next to no regularisation none of the fits is over before the signal comes.
    """
    command = [sys.executable, "-c", textwrap.dedent(INTERRUPTED), str(path), how, name]
    variables = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    pipe = subprocess.PIPE
    with processes.started(command, stdout=pipe, stderr=pipe, text=True, env=variables) as child:
        assert child.stdout.readline() == "ready\n"
        child.stderr.readline()  # the table's head: the loop is running
        child.stderr.readline()
        time.sleep(0.2)
        assert not path.exists()  # it is not yet time for a checkpoint
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert "Traceback" not in err
    assert out == {"raise": "raised\n", "keep": "interrupted\n"}[how]
    epochs = int(read_header(path).progress["epochs"])
    assert epochs > 0
    limits = {"warm_start": True, "max_iter": epochs + 20, "tol": 0, "lam": 1e-8}
    straight = killable.outcome(killable.fit(name, **limits))
    same(killable.outcome(killable.fit(name, **limits, checkpoint=path)), straight)


@POSIX
@pytest.mark.parametrize(
    "name",
    ["auto", "sdca", "interior_point three classes", "smoothed_newton three classes", "pegasos", "sequences auto"],
)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # between open and with, only the collector closes a file
def test_interrupts_between_any_two_lines(name, seed, path, interruptible):
    """Ctrl-C in the middle of learn, advance or a certificate: the checkpoint is whole."""
    straight = killable.outcome(killable.fit(name, warm_start=True))
    rng = np.random.default_rng(seed)
    left = [int(rng.integers(1, 4000))]
    inside = str(Path(resume.__file__).parent)

    def trace(frame, event, arg):
        if not frame.f_code.co_filename.startswith(inside):
            return None
        left[0] -= 1
        if left[0] == 0:
            signal.raise_signal(signal.SIGINT)
        return trace

    for _ in range(3):
        sys.settrace(trace)
        try:
            killable.fit(name, checkpoint=path, checkpoint_every=1000)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        left[0] = int(rng.integers(1, 4000))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    same(killable.outcome(killable.fit(name, warm_start=True, checkpoint=path)), straight)


def test_a_second_interrupt_leaves_a_checkpoint_too(path):
    """While the weights of an interrupted fit are certified, a second Ctrl-C ends it at once; the work is not lost."""
    seen = []

    def impatient(point):
        seen.append(point.epochs)
        if len(seen) >= 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        killable.fit("sdca", checkpoint=path, on_interrupt="keep", callback=impatient)
    assert len(seen) == 4
    assert read_header(path).progress["epochs"] == seen[-1]
    straight = killable.outcome(killable.fit("sdca", warm_start=True))
    same(killable.outcome(killable.fit("sdca", warm_start=True, checkpoint=path)), straight)


@POSIX
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_handlers_that_mean_ctrl_c_wait_for_the_end_of_a_change(number):
    """Those of the command line, for one; and each gets its own signal."""
    got = []

    def handler(received, frame):
        got.append(received)
        raise KeyboardInterrupt

    def change():
        with interrupts.change():
            signal.raise_signal(number)
            assert got == []

    handler.interrupts = True
    before = signal.signal(number, handler)
    try:
        interrupts = Interrupts()
        with interrupts.deferred():
            with pytest.raises(KeyboardInterrupt):
                change()
            assert (got, interrupts.whole) == ([number], True)
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(number)
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)


@POSIX
def test_handlers_of_others_are_left_alone(path):
    calls = []
    before = signal.signal(signal.SIGINT, lambda *_: calls.append(1))
    try:
        killable.fit("sdca", checkpoint=path, callback=lambda c: signal.raise_signal(signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)
    assert calls


# --- whose checkpoint it is ------------------------------------------------------------------------------------------


def refused(path, message, name="sdca", data=None, **changes):
    before = path.read_bytes()
    with pytest.raises(ValueError, match=message):
        killable.model(name, checkpoint=path, **changes).fit(*(data or killable.data("two")))
    assert path.read_bytes() == before


def test_another_fit_is_refused_by_what_differs(path, monkeypatch):
    stopped_fit(path, monkeypatch)
    X, y = killable.data("two")
    other, turned = X.copy(), y.copy()
    other[17, 3] = np.nextafter(other[17, 3], 9)
    turned[5] = not turned[5]
    refused(path, r"'.*run\.ckpt' belongs to another fit: the entries of X differ\. .*delete the file", data=(other, y))
    refused(path, "another fit: the labels or targets y differ", data=(X, turned))
    refused(path, "rows is 300 there and 299 here", data=(X[:-1], y[:-1]))
    refused(path, "dtype is float64 there and float32 here", data=(X.astype(np.float32), y))
    refused(path, r"fit: lam is 0\.001 there and 0\.002 here\.", lam=2e-3)
    refused(path, "tol is 0.0 there and 0.1 here", tol=0.1)
    refused(path, r"solver is SDCA\(shrinking=True, .* there and SDCA\(shrinking=False", solver=SDCA(shrinking=False))
    refused(path, r"loss is Hinge\(\) there and Log\(\) here", loss="log")
    refused(path, "random_state is 3 there and 4 here", random_state=4)
    refused(path, "intercept is unregularized there and feature here", intercept="feature")
    refused(path, "intercept is unregularized there and none here", fit_intercept=False)
    refused(path, "the sample or class weights differ", class_weight={False: 2.0})
    refused(path, "blocks=None.* there and .*blocks=16", solver=SDCA(blocks=16))
    killable.fit("sdca", checkpoint=path, verbose=False, max_time=1e6, on_interrupt="keep", n_jobs=2)  # these may


def test_another_kernel_machine_is_refused_by_what_differs(path, monkeypatch):
    stopped_fit(path, monkeypatch, "svc", gamma=0.1)
    X, y = killable.data("two")
    other, turned = X.copy(), y.copy()
    other[17, 3] = np.nextafter(other[17, 3], 9)
    turned[5] = not turned[5]

    def different(message, data=None, **changes):
        refused(path, message, "svc", data, **({"gamma": 0.1} | changes))

    different(r"'.*run\.ckpt' belongs to another fit: the entries of X differ\.", (other, y))
    different("another fit: the labels or targets y differ", (X, turned))
    different("rows is 300 there and 299 here", (X[:-1], y[:-1]))
    different("layout is dense there and CSR here", (sparse.csr_matrix(X), y))
    different("dtype is float64 there and float32 here", (X.astype(np.float32), y))
    different(r"lam is 0\.001 there and 0\.002 here", lam=2e-3)
    different("tol is 1e-06 there and 0.1 here", tol=0.1)
    different(r"kernel is rbf gamma=0\.1 .* there and rbf gamma=0\.5", gamma=0.5)
    different("kernel is rbf .* there and laplacian", kernel="laplacian")
    different(r"solver is SMO\(working_set=16\) there and SMO\(working_set=None\) here", solver="auto")
    different("the sample or class weights differ", class_weight={False: 2.0})
    with pytest.raises(ValueError, match=r"loss is Hinge\(\) there and EpsilonInsensitive"):
        SVR(checkpoint=path).fit(X, np.where(y, 1.0, -1.0))
    killable.fit(
        "svc", gamma=0.1, checkpoint=path, verbose=False, max_time=1e6, on_interrupt="keep", n_jobs=2
    )  # these may


def test_numbers_of_another_type_are_the_same_fit(path, monkeypatch):
    stopped_fit(path, monkeypatch, solver=Pegasos(batch_size=np.int64(2), t0=np.float64(3.0)))
    killable.fit("sdca", solver=Pegasos(batch_size=2, t0=3.0), checkpoint=path)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_any_changed_entry_changes_the_digest(data):
    """Beyond the size that is hashed as a whole, too; blocks and sample are made small enough to matter here."""
    hashed = data.draw(st.sampled_from([1 << 26, 1 << 14]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    wide = rng.standard_normal((data.draw(st.integers(900, 1100)), 7)).astype(data.draw(st.sampled_from(["f4", "f8"])))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digests, "HASHED_BYTES", hashed)
        patch.setattr(digests, "BYTES_PER_PASS", 1 << 14)
        X = wide[:, :4] if data.draw(st.booleans()) else wide  # gaps between the rows
        before = digests.digest(X)
        assert before == digests.digest(np.ascontiguousarray(X))
        changed = X.copy()
        i, j = data.draw(st.integers(0, len(X) - 1)), data.draw(st.integers(0, X.shape[1] - 1))
        changed[i, j] = np.nextafter(changed[i, j], np.inf, dtype=X.dtype)
        assert digests.digest(changed) != before
        assert digests.digest(X[:, ::-1].copy()) != before
        assert digests.digest(X[:-1]) != before


def test_estimators_are_cloned_with_their_checkpoint(path):
    for kind in (LinearSVC, LinearSVR):
        other = clone(kind(checkpoint=path, checkpoint_every=5))
        assert (other.checkpoint, other.checkpoint_every) == (path, 5)
        assert other.set_params(checkpoint=None).get_params()["checkpoint"] is None


# --- paths that cannot be written -------------------------------------------------------------------------------------


def nothing_trained(monkeypatch):
    def never(*args):
        raise AssertionError("trained")

    monkeypatch.setattr("pegasos.estimators.base.run", never)


def test_bad_paths_are_refused_before_training(tmp_path, monkeypatch):
    nothing_trained(monkeypatch)
    X, y = killable.data("two")
    with pytest.raises(FileNotFoundError, match=r"folder of the checkpoint does not exist.*nowhere"):
        LinearSVC(checkpoint=tmp_path / "nowhere" / "run.ckpt").fit(X, y)
    with pytest.raises(ValueError, match="no ordinary file"):
        LinearSVC(checkpoint=tmp_path).fit(X, y)
    for bad in ("", 3, b"run.ckpt", "a\0b", True):
        with pytest.raises(ValueError, match="checkpoint="):
            LinearSVC(checkpoint=bad).fit(X, y)
    for every in (-1, np.nan, np.inf, None, "30"):
        with pytest.raises(ValueError, match="checkpoint_every"):
            LinearSVC(checkpoint=tmp_path / "run.ckpt", checkpoint_every=every).fit(X, y)
    assert list(tmp_path.iterdir()) == []


@POSIX
def test_pipes_are_refused_and_not_waited_for(tmp_path, monkeypatch):
    nothing_trained(monkeypatch)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="no ordinary file"):
        LinearSVC(checkpoint=tmp_path / "pipe").fit(*killable.data("two"))


def test_a_folder_without_permission_is_refused(path, monkeypatch):
    """As root one may do everything: the refusal of the system is put on."""
    nothing_trained(monkeypatch)

    def forbidden(place):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(resume, "probe", forbidden)
    with pytest.raises(PermissionError, match=r"checkpoint cannot be written \(Permission denied\).*run\.ckpt"):
        LinearSVC(checkpoint=path).fit(*killable.data("two"))


FULL = """
    import resource, sys, warnings
    import killable
    path = sys.argv[1]
    whole = killable.fit("sdca", warm_start=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = killable.fit("sdca", warm_start=True, checkpoint=path, checkpoint_every=0)
    texts = {str(w.message) for w in caught}
    print(len(texts), texts.pop())
    print((fitted.coef_ == whole.coef_).all(), fitted.certificate_.epochs)
"""


@POSIX
@pytest.mark.unsanitized
@pytest.mark.parametrize("before", [True, False])
def test_a_full_disk_costs_a_warning_and_not_the_fit(before, path, tmp_path, monkeypatch):
    """A limit on the size of files stands in for the disk: the write fails half-way, for real."""
    if before:
        stopped_fit(path, monkeypatch)
        content = path.read_bytes()
    command = [sys.executable, "-c", textwrap.dedent(FULL), str(path), "3000"]
    variables = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = processes.run(command, capture_output=True, text=True, check=True, env=variables)
    warning, result = done.stdout.splitlines()
    assert warning.startswith("1 checkpoint '")
    assert "could not be written (File too large); the fit goes on, and the file is as it was before" in warning
    assert result.startswith("True 30")
    assert {p.name for p in tmp_path.iterdir()} == ({"run.ckpt"} if before else set())
    if before:
        assert path.read_bytes() == content


# --- damage ----------------------------------------------------------------------------------------------------------


def test_a_header_says_how_far_the_fit_was(path, monkeypatch):
    stopped_fit(path, monkeypatch, writes=20)
    header = read_header(path)
    assert 19 < header.progress["epochs"] <= 20
    assert header.progress["dual"] <= header.progress["primal"]
    assert header.fingerprint["rows"] == "300"
    with pytest.raises(FileNotFoundError):
        read_header(path.with_name("other"))


def test_other_files_are_refused_by_name(path):
    X, y = killable.data("two")
    for content in (
        b"",
        b"\0",
        b"some text that is no checkpoint at all",
        b"\xff" * 100,
        b"\x08" + bytes(7) + b"{}      ",
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"run\.ckpt"):
            LinearSVC(checkpoint=path).fit(X, y)
        with pytest.raises(ValueError, match=r"run\.ckpt"):
            read_header(path)
        assert path.read_bytes() == content
    save_file({"coef": np.zeros(3)}, path, {"format": "something else"})
    with pytest.raises(ValueError, match=r"run\.ckpt' is no checkpoint"):
        read_header(path)
    save_file({"coef": np.zeros(3)}, path, {"format": resume.FORMAT, "version": "7"})
    with pytest.raises(
        ValueError, match=rf"run\.ckpt' has format version 7; this library reads 2 and {resume.VERSION}"
    ):
        read_header(path)
    good = {"format": resume.FORMAT, "version": str(resume.VERSION)}
    for wrong in ({}, {"fingerprint": "{}"}, {"fingerprint": "[" * 10**5, "progress": "{}"}):
        save_file({"coef": np.zeros(3)}, path, good | wrong)
        with pytest.raises(ValueError, match=r"run\.ckpt' is damaged \(its header cannot be read\)"):
            read_header(path)
    whole = good | {"fingerprint": json.dumps({}), "progress": json.dumps({})}
    save_file({"coef": np.zeros(3, np.float32)}, path, whole)
    with pytest.raises(ValueError, match=r"run\.ckpt' is damaged \(coef holds F32\)"):
        read(path)


@pytest.fixture(scope="module")
def specimen(tmp_path_factory):
    """The bytes of a checkpoint."""
    path = tmp_path_factory.mktemp("specimen") / "run.ckpt"
    with pytest.MonkeyPatch.context() as patch:
        stopped_fit(path, patch, writes=20)
    return path.read_bytes()


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_bytes_are_refused(specimen, path, data):
    """Cut off, lengthened, or with a byte changed anywhere."""
    content = bytearray(specimen)
    how = data.draw(st.sampled_from(["cut", "add", "change"]))
    if how == "cut":
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    elif how == "add":
        content += data.draw(st.binary(min_size=1, max_size=20))
    else:
        ends = st.integers(0, 3000) if data.draw(st.booleans()) else st.integers(0, len(content) - 1)
        content[data.draw(ends)] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"run\.ckpt"):
        killable.fit("sdca", checkpoint=path)
    assert path.read_bytes() == content


def test_a_state_in_which_nothing_is_left_to_do_is_refused(path, monkeypatch):
    """No solver would work any more, and the limits, which count work, would never be reached."""
    stopped_fit(path, monkeypatch, "search in ten classes")
    header, arrays = read(path)
    forged = {"engine.finished": np.ones(10), "engine.round": np.array([1e300, 2.0])}
    assert forged.keys() <= arrays.keys()
    write(path, header, arrays | forged)
    with pytest.raises(ValueError, match=r"run\.ckpt' is damaged \(state: nothing is left to do\)"):
        killable.fit("search in ten classes", checkpoint=path)


SPECIAL = [0.0, -1.0, 0.5, 1.0, 7.0, 299.0, 300.0, 1e9, 2.0**53, 2.0**63, -(2.0**63), 1e300, np.inf, -np.inf, np.nan]


def mutate(arrays, data):
    """Change, cut, lengthen, reshape or drop an array of a checkpoint."""
    name = data.draw(st.sampled_from(sorted(arrays)))
    array = arrays[name].copy()
    how = data.draw(st.sampled_from(["value", "value", "value", "all", "cut", "longer", "reshape", "integer", "drop"]))
    special = st.sampled_from(SPECIAL)
    if how == "value" and array.size:
        array = array.astype(float)
        array.flat[data.draw(st.integers(0, array.size - 1))] = data.draw(special)
    elif how == "all":
        array = np.full(array.shape, data.draw(special))
    elif how == "cut":
        array = array[: data.draw(st.integers(0, max(0, len(array) - 1)))]
    elif how == "longer":
        array = np.concatenate([array, array, np.full((1, *array.shape[1:]), data.draw(special))])
    elif how == "reshape":
        array = array.reshape(data.draw(st.sampled_from([(1, -1), (-1, 1)])) if array.size else (0, 3))
    elif how == "integer":
        with np.errstate(invalid="ignore"):
            array = array.astype(np.int64)
    rest = {key: value for key, value in arrays.items() if key != name}
    return rest if how == "drop" else rest | {name: array}


class Refused(Exception):
    """A refusal in the words it should have."""


def refusing(name, **changes):
    try:
        return killable.fit(name, **changes)
    except ValueError as error:
        if "run.ckpt' is damaged" in str(error) or "weights left the range" in str(error):
            raise Refused from None
        raise


@pytest.mark.parametrize("name", killable.FITS)
def test_forged_states_are_refused_or_harmless(name, path, monkeypatch):
    """With a digest that fits, any array may hold anything: the core is never led outside its memory, nor to hang."""
    stopped_fit(path, monkeypatch, name, writes=6)
    header, arrays = read(path)

    @settings(deadline=None, max_examples=25, database=None)
    @given(st.data())
    def forged(data):
        changed = arrays
        for _ in range(data.draw(st.integers(1, 3))):
            changed = mutate(changed, data)
        write(path, header, changed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with contextlib.suppress(Refused):
                fitted = refusing(name, checkpoint=path, max_iter=12, warm_start=True)
                assert np.isfinite(killable.outcome(fitted)["coef"]).all()

    forged()


@pytest.mark.parametrize("name", ["search", "search by pegasos", "cutting_plane"])
@pytest.mark.parametrize("field", ["loop.best.W", "loop.best.b"])
def test_forged_models_that_are_no_numbers_are_refused(name, field, path, monkeypatch):
    """However good a forged file says they are."""
    stopped_fit(path, monkeypatch, name, writes=6)
    header, arrays = read(path)
    assert field in arrays
    write(path, header, arrays | {field: np.full_like(arrays[field], np.inf), "loop.best.primal": np.zeros(1)})
    with pytest.raises(Refused):
        refusing(name, checkpoint=path)


def test_headers_round_trip(path):
    header = Header({"lam": "1"}, {"epochs": 2.0})
    arrays = {"a": np.arange(3.0), "b": np.zeros((0, 2)), "c": np.array(5.0), "d": np.arange(4)}
    write(path, header, arrays)
    back, found = read(path)
    assert back == header == read_header(path)
    assert found.keys() == arrays.keys()
    np.testing.assert_array_equal(found["d"], arrays["d"])
