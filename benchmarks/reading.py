"""Reading the text problem's svmlight file: ``python -m benchmarks.reading``.

The file is written once, with :func:`pegasos.io.write_svmlight`, and read from the page cache. The libraries take
turns, so that whatever else the machine does meets all of them; ratios are of the best time of each.
"""

from __future__ import annotations

import argparse
import csv
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.problems import PROBLEMS
from pegasos.io import read_svmlight, write_svmlight


def _pegasos(path: Path, threads: int) -> Any:
    return read_svmlight(path, n_jobs=threads)


def _scikit_learn(path: Path, threads: int) -> Any:
    from sklearn.datasets import load_svmlight_file

    return load_svmlight_file(path)  # one thread is all it has


def _xgboost(path: Path, threads: int) -> Any:
    import xgboost

    with xgboost.config_context(verbosity=0):
        return xgboost.DMatrix(f"{path}?format=libsvm", nthread=threads)


READERS: dict[str, Callable[[Path, int], Any]] = {
    "pegasos": _pegasos,
    "scikit-learn": _scikit_learn,
    "XGBoost": _xgboost,
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", default="text", choices=list(PROBLEMS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args(arguments)
    # XGBoost parses with as many threads as OpenMP would use.
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    problem = PROBLEMS[options.problem]()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.svm"
        start = time.perf_counter()
        write_svmlight(problem.X, problem.y, path, n_jobs=options.threads)
        megabytes = path.stat().st_size / 1e6
        print(f"written {megabytes:.0f} MB in {time.perf_counter() - start:.2f} s", flush=True)
        entries = problem.X.nnz
        del problem
        for repeat in range(options.repeats):
            for name, read in READERS.items():
                cpu, start = time.process_time(), time.perf_counter()
                try:
                    data = read(path, options.threads)
                except ImportError:
                    continue
                seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
                del data
                rows.append(
                    {
                        "problem": options.problem,
                        "library": name,
                        "threads": options.threads,
                        "repeat": repeat,
                        "megabytes": round(megabytes, 1),
                        "entries": entries,
                        "seconds": round(seconds, 4),
                        "cpu_seconds": round(cpu, 4),
                    }
                )
    best = {
        name: min(row["seconds"] for row in rows if row["library"] == name)
        for name in READERS
        if any(row["library"] == name for row in rows)
    }
    for row in rows:
        row["times_ours"] = round(best[row["library"]] / best["pegasos"], 2)
    for name, seconds in best.items():
        print(f"{name:14} {seconds:8.3f} s  {megabytes / seconds:7.0f} MB/s  {seconds / best['pegasos']:6.1f} × ours")
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / "reading.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
