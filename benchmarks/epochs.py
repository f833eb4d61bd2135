"""One epoch of Pegasos against one epoch of SGDClassifier on the text problem: ``python -m benchmarks.epochs``.

Whole fits are timed: checking the input is in, and so is the certificate that ours ends with.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

from benchmarks import judge
from benchmarks.adapters import ADAPTERS
from benchmarks.problems import PROBLEMS


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", default="text", choices=list(PROBLEMS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args(arguments)
    problem = PROBLEMS[options.problem]()
    fits = []
    for key in ("pegasos-sgd", "sgd"):
        adapter = ADAPTERS[key]
        if not adapter.available():
            continue
        data = adapter.prepare(problem)
        mine = [judge.timed(problem, adapter, data, {"max_iter": 1}, 1, repeat) for repeat in range(options.repeats)]
        fits += mine
        seconds = statistics.median(fit.seconds for fit in mine)
        print(
            f"{adapter.name:28} {seconds:.4f} s  (cpu {statistics.median(f.cpu_seconds for f in mine):.4f} s)",
            flush=True,
        )
    options.out.mkdir(parents=True, exist_ok=True)
    judge.write_fits(options.out / "epochs.csv", fits)


if __name__ == "__main__":
    main()
