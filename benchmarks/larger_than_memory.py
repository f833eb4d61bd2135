"""Training on rows that do not fit into memory: ``python -m benchmarks.larger_than_memory``.

Each layout is written to disk as a dataset and fitted in processes of their own:

*in memory*
    the rows are copied into memory first; the fit is the yardstick.
*mapped*
    the dataset is fitted from its memory maps, with the file in the page cache. The process may *allocate* a quarter
    of the data's size and no more: ``RLIMIT_DATA``, which the kernel enforces.
*mapped, resident <= 1/4*
    in addition a warden gives mapped pages back whenever the process holds too many, so that all that is *resident*,
    the rows included, stays below a quarter of the data's size. The figure is ``VmHWM``, the kernel's high-water mark.
*mapped, resident <= 1/4, from disk*
    in addition the page cache is emptied of the file before the fit and whenever the warden acts, so that the rows are
    read from the disk again and again: what a machine with that little memory would do.

The warden stands in for a control group, which takes rights that a benchmark should not ask for. Where a user has
them, ``systemd-run --user --scope -p MemoryMax=... python -m benchmarks.larger_than_memory --child FOLDER mapped`` is
the same measurement with the kernel as the warden. Linux only.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.memory import forget_peak, resident
from pegasos import LinearSVC, io

MODES = ("in memory", "mapped", "mapped, resident <= 1/4", "mapped, resident <= 1/4, from disk")
LAM, TOL = 1e-4, 1e-3


def sparse_rows(m: int = 1_000_000, n: int = 47_236, k: int = 300) -> tuple[Any, Any]:
    """CSR rows of unit norm with k entries each, and noisy labels of a hidden linear model."""
    rng = np.random.default_rng(0)
    indices = np.empty((m, k), dtype=np.int32)
    edges = (n * (np.arange(k + 1) / k) ** 3).astype(np.int64) + np.arange(k + 1)  # frequent words come first
    edges = np.minimum(edges, n - (k - np.arange(k + 1)))
    for j in range(k):
        indices[:, j] = rng.integers(edges[j], edges[j + 1], m, dtype=np.int32)
    X = sp.csr_matrix((m, n), dtype=np.float32)
    X.data = np.full(m * k, 1 / np.sqrt(k), dtype=np.float32)
    X.indices, X.indptr = indices.ravel(), np.arange(0, m * k + 1, k, dtype=np.int32)
    scores = X @ rng.standard_normal(n)
    return X, np.where(scores + 0.1 * rng.standard_normal(m) > 0, 1, -1)


def dense_rows(m: int = 1_000_000, n: int = 600) -> tuple[Any, Any]:
    """Dense normal rows, and noisy labels of a hidden linear model."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, n), dtype=np.float32) / np.float32(np.sqrt(n))
    scores = X @ rng.standard_normal(n, dtype=np.float32)
    return X, np.where(scores + 0.3 * rng.standard_normal(m) > 0, 1, -1)


LAYOUTS = {"CSR float32, int32 indices": sparse_rows, "dense float32": dense_rows}


def maps(data: io.Dataset) -> list[np.memmap[Any, Any]]:
    """The dataset's big memory maps."""
    X = data.X
    return [X.data, X.indices, X.indptr] if sp.issparse(X) else [X]


def read_bytes() -> int:
    """Bytes that this process has had to fetch from the disk."""
    return int(Path("/proc/self/io").read_text().split("read_bytes:")[1].split()[0])


@contextmanager
def warden(data: io.Dataset, limit: int, *, evict: bool) -> Iterator[None]:
    """Give mapped pages back whenever three fifths of ``limit`` are resident."""
    import mmap

    files = [os.open(array.filename, os.O_RDONLY) for array in maps(data)]
    done = threading.Event()

    def give_back() -> None:
        for array, file in zip(maps(data), files, strict=True):
            array._mmap.madvise(mmap.MADV_DONTNEED)
            if evict:
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)

    def watch() -> None:
        while not done.wait(0.002):
            if resident() > 0.6 * limit:
                give_back()

    give_back()
    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        for file in files:
            os.close(file)


def measure(folder: Path, mode: str) -> dict[str, Any]:
    """Fit in this process, and return what it took."""
    import resource

    data = io.open_dataset(folder)
    size, limit = data.nbytes, data.nbytes // 4
    for array in maps(data):  # into the page cache
        with open(array.filename, "rb") as file:
            while file.read(1 << 24):
                pass
    model = LinearSVC(lam=LAM, tol=TOL, fit_intercept=False, solver="sdca", max_iter=50)
    small = data.X[:1000].copy(), np.arange(1000) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(max_iter=1).fit(*small)  # imports and pools are not the fit's
    model.set_params(max_iter=50)
    arguments: tuple[Any, ...] = (data,)
    if mode == "in memory":
        X = data.X
        X = (
            sp.csr_matrix((X.data.copy(), X.indices.copy(), X.indptr.copy()), X.shape)
            if sp.issparse(X)
            else np.array(X)
        )
        arguments = X, np.array(data.y)
    else:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    forget_peak()
    before = read_bytes()
    wall, cpu = time.perf_counter(), time.process_time()
    if "<=" in mode:
        with warden(data, limit, evict="disk" in mode):
            model.fit(*arguments)
    else:
        model.fit(*arguments)
    return {
        "mode": mode,
        "data_mb": round(size / 2**20, 1),
        "limit_mb": "" if mode == "in memory" else round(limit / 2**20, 1),
        "allocated_after_mb": round(resident("VmData") / 2**20, 1),
        "peak_resident_mb": round(resident("VmHWM") / 2**20, 1),
        "read_from_disk_mb": round((read_bytes() - before) / 2**20, 1),
        "seconds": round(time.perf_counter() - wall, 3),
        "cpu_seconds": round(time.process_time() - cpu, 3),
        "epochs": round(model.certificate_.epochs, 2),
        "primal": model.certificate_.primal,
        "relative_gap": model.certificate_.relative_gap,
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="rows, as a multiple of the usual number")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--child", nargs=2, metavar=("FOLDER", "MODE"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        print(json.dumps(measure(Path(options.child[0]), options.child[1])))
        return
    rows = []
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as place:
        for layout, make in LAYOUTS.items():
            folder = Path(place, "rows")
            X, y = make(int(options.scale * make.__defaults__[0]))  # type: ignore[attr-defined]
            io.write_dataset(X, y, folder, overwrite=True)
            del X, y
            for mode in MODES:
                command = [sys.executable, "-m", "benchmarks.larger_than_memory", "--child", str(folder), mode]
                runs = []
                for _ in range(options.repeats):
                    child = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
                    runs.append(json.loads(child.stdout.splitlines()[-1]))
                best = {"layout": layout} | min(runs, key=lambda run: run["seconds"])
                yardstick = next((r["seconds"] for r in rows if r["layout"] == layout), best["seconds"])
                best["times_in_memory"] = round(best["seconds"] / yardstick, 2)
                busy = next((r["cpu_seconds"] for r in rows if r["layout"] == layout), best["cpu_seconds"])
                best["times_in_memory_cpu"] = round(best["cpu_seconds"] / busy, 2)
                rows.append(best)
                print(
                    f"{layout:28} {mode:34} {best['seconds']:8.2f} s  x {best['times_in_memory']:5.2f}  "
                    f"resident {best['peak_resident_mb']:8} of {best['data_mb']} MB, limit {best['limit_mb']}",
                    flush=True,
                )
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / "larger_than_memory.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
