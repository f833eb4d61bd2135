"""How many threads run: what ``n_jobs`` means, what this process may use, and where threads do not pay."""

import os
import sys

import numpy as np
import processes
import pytest
from conftest import problem
from scipy import sparse

from pegasos import SDCA, SVC, LinearSVC, LinearSVR, losses
from pegasos.fit.engine import Options
from pegasos.util import cores
from pegasos.util import threads as threads_module
from pegasos.util.cores import quota, usable_cores
from pegasos.util.threads import thread_count

# --- processors ------------------------------------------------------------------------------------------------------


@pytest.fixture
def groups(tmp_path):
    """Write /proc/self/cgroup and files of the mounted tree; the quota that is read from them."""

    def read(lines, files):
        for name, text in files.items():
            file = tmp_path / "mounts" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        (tmp_path / "cgroup").write_text(lines)
        return quota(tmp_path / "cgroup", tmp_path / "mounts")

    return read


@pytest.mark.parametrize(
    ("lines", "files", "expected"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/\n", {"cpu.max": "max 100000\n"}, np.inf),
        ("0::/\n", {}, np.inf),
        # A limit of any group around this one holds as well, whichever is the smallest.
        ("0::/a.slice/b.scope\n", {"a.slice/b.scope/cpu.max": "max 100000", "a.slice/cpu.max": "50000 100000"}, 0.5),
        ("0::/a.slice/b.scope\n", {"a.slice/b.scope/cpu.max": "200000 100000", "a.slice/cpu.max": "400000 1000"}, 2.0),
        # In a container the path may be that of the host, and only the mount itself be there.
        ("0::/../../docker/1f\n", {"cpu.max": "300000 100000"}, 3.0),
        ("4:cpu,cpuacct:/job\n", {"cpu,cpuacct/job/cpu.cfs_quota_us": "250000\n"}, np.inf),
        (
            "5:memory:/x\n4:cpu,cpuacct:/job\n0::/\n",
            {"cpu,cpuacct/job/cpu.cfs_quota_us": "250000\n", "cpu,cpuacct/job/cpu.cfs_period_us": "100000\n"},
            2.5,
        ),
        ("1:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, np.inf),
        ("1:cpu:/a\n", {"cpu/cpu.cfs_quota_us": "100000", "cpu/cpu.cfs_period_us": "100000"}, 1.0),
        ("nonsense\n\n1:cpu\n", {"cpu.max": "much too much\n"}, np.inf),
        ("0::/\n", {"cpu.max": "100000 0\n"}, np.inf),
    ],
)
def test_limits_of_control_groups(groups, lines, files, expected):
    assert groups(lines, files) == expected


def test_no_control_groups(tmp_path):
    assert quota(tmp_path / "none", tmp_path) == np.inf


@pytest.mark.parametrize(("granted", "expected"), [(np.inf, 6), (100.0, 6), (2.5, 3), (1.0, 1), (0.2, 1)])
def test_usable_cores_are_the_smaller_of_mask_and_quota(granted, expected, monkeypatch):
    monkeypatch.setattr(cores, "_granted", lambda: granted)
    monkeypatch.setattr(os, "process_cpu_count", lambda: 6, raising=False)
    assert usable_cores() == expected


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity masks")
@pytest.mark.unsanitized
def test_the_affinity_mask_is_respected():
    program = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
        "from pegasos.util.threads import thread_count; print(thread_count(-1), thread_count(-5), thread_count(3))"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    done = processes.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=120, check=True
    )
    assert done.stdout.split() == ["1", "1", "3"]


@pytest.mark.parametrize(
    ("n_jobs", "limit", "expected"),
    [
        (None, "", 1),
        (1, "", 1),
        (5, "", 5),
        (-1, "", 4),
        (-2, "", 3),
        (-9, "", 1),
        (-1, "2", 2),
        (5, "3", 3),
        (2, "x", 2),
    ],
)
def test_what_n_jobs_means(n_jobs, limit, expected, monkeypatch):
    monkeypatch.setattr(threads_module, "usable_cores", lambda: 4)
    monkeypatch.setenv("OMP_NUM_THREADS", limit)
    assert thread_count(n_jobs) == expected


# --- where threads do not pay ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "sdca", "pegasos"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_n_jobs_does_not_choose_another_algorithm(solver, monkeypatch):
    """The serial way is the fastest for one output; whoever writes n_jobs=-1 gets it, to the bit."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    rng = np.random.default_rng(0)
    X = sparse.random(2000, 4000, 0.01, format="csr", random_state=rng)
    y = X @ rng.normal(size=4000)
    for kind, target in ((LinearSVC, y > 0), (LinearSVR, y)):
        plain, *others = (kind(solver=solver, max_iter=8, n_jobs=jobs).fit(X, target) for jobs in (None, 1, 2, 5, -1))
        for other in others:
            np.testing.assert_array_equal(other.coef_, plain.coef_)
            np.testing.assert_array_equal(other.intercept_, plain.intercept_)
            assert other.certificate_.epochs == plain.certificate_.epochs


def test_few_rows_of_many_classes_are_left_to_one_thread():
    rng = np.random.default_rng(0)
    for m, columns, threads in ((300, 8, 1), (6000, 80, 2)):
        p = problem(rng.normal(size=(m, columns)), np.arange(m) % 20, losses.Hinge(), 0.01, threads=2)
        assert SDCA().engine(p, Options("none", 0)).lanes.threads == threads


@pytest.mark.parametrize("kind", ["one-vs-one", "one-vs-rest"])
def test_kernel_machines_have_the_same_bits(kind, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 5))
    y = np.digitize(X[:, 0] + 0.5 * X[:, 1] ** 2, [-0.3, 0.7])
    multi_class = {"one-vs-one": "ovo", "one-vs-rest": "ovr"}[kind]
    plain, *others = (SVC(gamma=0.3, multi_class=multi_class, n_jobs=jobs).fit(X, y) for jobs in (None, 1, 2, 3))
    for other in others:
        np.testing.assert_array_equal(other.dual_coef_, plain.dual_coef_)
        np.testing.assert_array_equal(other.decision_function(X), plain.decision_function(X))
