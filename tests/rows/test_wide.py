"""Rows with more columns than there is memory for weights are refused before any is allocated."""

from __future__ import annotations

import sys

import numpy as np
import processes
import pytest
from scipy import sparse

from pegasos import SDCA, LinearSVC, LinearSVR, io
from pegasos.solvers import Auto
from pegasos.util import memory as memory_of_machine
from pegasos.util.memory import TooManyColumns, available_memory

pytestmark = pytest.mark.unsanitized

TEXT = b"# a comment\n\n1 1:1\n-1 2147483648:1\n"


@pytest.fixture
def gigabyte(monkeypatch):
    """A machine with a gigabyte to spare."""
    monkeypatch.setattr(memory_of_machine, "available_memory", lambda: 10**9)


def rows(columns):
    return sparse.csr_matrix((np.ones(4), [0, 5, columns - 1, 3], [0, 1, 2, 3, 4]), shape=(4, columns))


@pytest.mark.parametrize(
    "fit",
    [
        lambda X, y: LinearSVC().fit(X, y),
        lambda X, y: LinearSVC(solver="pegasos").fit(X, y),
        lambda X, y: LinearSVC(solver=SDCA()).fit(X, y),
        lambda X, y: LinearSVC().partial_fit(X, y, classes=[0, 1]),
        lambda X, y: LinearSVR().fit(X, y),
        lambda X, y: LinearSVR().partial_fit(X, y),
    ],
    ids=["auto", "pegasos", "sdca", "partial_fit", "regression", "regression in pieces"],
)
def test_weights_beyond_the_memory_are_refused(gigabyte, fit):
    with pytest.raises(
        TooManyColumns, match=r"X has 2000000000 columns: .* and 1\.0 GB are free\. .* row 2\."
    ) as caught:
        fit(rows(2 * 10**9), [0, 1, 0, 1])
    assert isinstance(caught.value, MemoryError)
    assert (caught.value.columns, caught.value.row) == (2 * 10**9, 2)


def test_every_class_has_weights_of_its_own(gigabyte):
    X = rows(10**7)
    LinearSVC(max_iter=1, tol=0.9).fit(X, [0, 1, 0, 1])
    with pytest.raises(TooManyColumns, match=r"for each of 4 classes takes about 1\.3 GB"):
        LinearSVC().fit(X, [0, 1, 2, 3])


def test_small_fits_do_not_look(monkeypatch):
    def fail():
        raise AssertionError

    monkeypatch.setattr(memory_of_machine, "available_memory", fail)
    LinearSVC().fit(np.eye(4), [0, 1, 0, 1])


def test_the_estimate_is_near_the_truth():
    """What a fit takes, by the count of the system, is neither far below what is promised nor twice as much."""
    code = """
import numpy as np
from scipy import sparse
from pegasos import LinearSVC
X = sparse.csr_matrix((np.ones(4), [0, 5, 3_999_999, 3], [0, 1, 2, 3, 4]), shape=(4, 4_000_000))
LinearSVC().fit(X[:, :9], [0, 1, 0, 1])
open("/proc/self/clear_refs", "w").write("5")  # the peak is counted from here
peak = lambda: next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
before = peak()
LinearSVC().fit(X, [0, 1, 0, 1])
print((peak() - before) * 1024 / 32e6)
"""
    done = processes.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    kept = float(done.stdout)
    expected = Auto().numbers_per_weight(1)
    assert expected / 2 < kept < 2 * expected


def test_there_is_memory():
    assert 1 << 20 < available_memory() < 1 << 50


def group(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)


def test_control_groups_of_version_2(tmp_path):
    (tmp_path / "cgroup").write_text("0::/a/b\n")
    group(tmp_path / "fs" / "a", {"memory.max": "1000\n", "memory.current": "300\n", "memory.stat": "anon 1\n"})
    stat = "anon 7\ninactive_file 50\n"
    group(tmp_path / "fs" / "a" / "b", {"memory.max": "max\n", "memory.current": "200\n", "memory.stat": stat})
    assert list(memory_of_machine._groups(tmp_path / "cgroup", tmp_path / "fs")) == [700]
    (tmp_path / "fs" / "a" / "b" / "memory.max").write_text("240\n")
    assert sorted(memory_of_machine._groups(tmp_path / "cgroup", tmp_path / "fs")) == [90, 700]


def test_control_groups_of_version_1_and_those_that_are_not_there(tmp_path):
    (tmp_path / "cgroup").write_text("5:cpu,memory:/job\n4:devices:/x\n")
    names = {"memory.limit_in_bytes": "500", "memory.usage_in_bytes": "600", "memory.stat": "total_inactive_file 0\n"}
    group(tmp_path / "fs" / "memory", names)  # a container sees its own group as the root
    assert list(memory_of_machine._groups(tmp_path / "cgroup", tmp_path / "fs")) == [0]
    assert list(memory_of_machine._groups(tmp_path / "none", tmp_path / "fs")) == []


# --- at the shell ----------------------------------------------------------------------------------------------------


def run(*words, stdin=None):
    """A command that may have four gigabytes, so that nothing worse happens where it is not refused."""
    program = (
        "import resource, runpy; resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)); "
        "runpy.run_module('pegasos', run_name='__main__', alter_sys=True)"
    )
    return processes.run([sys.executable, "-c", program, *words], input=stdin, capture_output=True, timeout=120)


@pytest.mark.slow
def test_line_index_and_remedy_are_named(tmp_path):
    (tmp_path / "wide.svm").write_bytes(TEXT)
    io.convert(tmp_path / "wide.svm", tmp_path / "folder")
    for words, stdin, where in [
        (["wide.svm"], None, "wide.svm, line 4: index 2147483648 makes 2147483648 columns"),
        (["wide.svm", "--zero-based"], None, "wide.svm, line 4: index 2147483648 makes 2147483649 columns"),
        (["-"], TEXT, "standard input, row 2: index 2147483648 makes"),
        (["folder"], None, "folder, row 2: index 2147483648 makes"),
    ]:
        source = words[0] if words[0] == "-" else tmp_path / words[0]
        done = run("train", source, *words[1:], "-m", tmp_path / "a.model", stdin=stdin)
        said = done.stderr.decode()
        assert done.returncode == 1
        assert where in said
        assert "Correct the index if it is a mistake" in said
    done = run("train", tmp_path / "wide.svm", "-m", tmp_path / "a.model", "--n-features", 10**10)
    assert "wide.svm: has 10000000000 columns, and a weight for each takes about" in done.stderr.decode()
    assert not (tmp_path / "a.model").exists()


def test_folds_and_kernel_machines_name_them_too(tmp_path):
    (tmp_path / "wide.svm").write_bytes(TEXT + b"1 2:1\n-1 3:1\n1 2:2\n-1 3:2\n")
    said = run("train", tmp_path / "wide.svm", "-v", "2").stderr.decode()
    assert "wide.svm, line 4: index 2147483648 makes" in said
    said = run("train", tmp_path / "wide.svm", "-m", tmp_path / "a.model", "--kernel", "rbf").stderr.decode()
    assert (
        "wide.svm, line 4: index 2147483648 makes 2147483648 columns, and the support vectors of a model file" in said
    )
