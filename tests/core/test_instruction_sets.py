"""The core at each instruction set of this machine, which PEGASOS_SIMD names."""

import os
import sys

import processes
import pytest

from pegasos import _core

pytestmark = pytest.mark.unsanitized

LEVELS = ["baseline", "avx2", "avx512"]
NAMES = dict(zip(["baseline", "v3", "v4"], LEVELS, strict=True))


def best():
    """The best level of this machine, whatever these tests have been told to run at."""
    if "PEGASOS_SIMD" not in os.environ:
        return _core.instruction_set()
    free = {name: value for name, value in os.environ.items() if name != "PEGASOS_SIMD"}
    ask = "from pegasos import _core; print(_core.instruction_set())"
    return processes.run([sys.executable, "-c", ask], env=free, capture_output=True, text=True).stdout.strip()


HERE = LEVELS.index(NAMES[best()])

FIT = """
import numpy as np, scipy.sparse as sp
from pegasos import LinearSVC, SVC, _core
rng = np.random.default_rng(0)
X = rng.standard_normal((300, 40)) * (rng.random((300, 40)) < 0.5)
y = np.sign(X @ rng.standard_normal(40) + 0.3 * rng.standard_normal(300))
labels = rng.integers(0, 5, 300)
for rows in (X, X.astype(np.float32), sp.csr_matrix(X), sp.csr_matrix(X.astype(np.float32))):
    for solver in ("sdca", "pegasos", "auto"):
        certificate = LinearSVC(lam=0.01, solver=solver, tol=1e-2, max_iter=300).fit(rows, y).certificate_
        assert certificate.converged and certificate.dual <= certificate.primal
    assert LinearSVC(lam=0.01, tol=1e-2).fit(rows, labels).certificate_.converged
    assert SVC(gamma=0.1).fit(rows, y).certificate_.converged
print(_core.instruction_set())
"""


def run(level):
    environment = {**os.environ, "PEGASOS_SIMD": level}
    return processes.run([sys.executable, "-c", FIT], env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("level", LEVELS[: HERE + 1])
def test_fits_are_certified_at_every_level(level):
    done = run(level)
    assert done.returncode == 0, done.stderr
    assert NAMES[done.stdout.strip()] == level


@pytest.mark.parametrize("level", ["sse9", *LEVELS[HERE + 1 :]])
def test_a_level_that_is_not_there_is_an_error_that_names_the_others(level):
    done = run(level)
    assert done.returncode != 0
    assert f"PEGASOS_SIMD={level}" in done.stderr
    assert "here it can be baseline" in done.stderr
