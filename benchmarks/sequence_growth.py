"""Cost of a pass over sequences, and memory, as corpus and labels grow: ``python -m benchmarks.sequence_growth``.

CoNLL-2000 once to ten times over, with its 22 labels, and once with 3 to 50 labels: B, I and O alone, or chunk tags
split by part of speech. Each fit runs in a process of its own. Seconds a pass are those of a fit of many passes less
those of a fit of few, by the passes between: encoding and writing a model are in *once*. A pass should cost
O(attribute uses × labels + tokens × labels²), and memory be O(attributes × labels + data).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from benchmarks.sequence_adapters import ADAPTERS
from benchmarks.sequences import Fit, in_child, write_rows

COPIES = (1, 2, 5, 10)
LABELS = (3, 22, 35, 50)
FEW, MANY = 2, 10


def fit(library: str, copies: int, labels: int, passes: int) -> Fit:
    """A fit of so many passes."""
    options = ADAPTERS[library].passes(passes).options
    return in_child({"problem": "conll", "library": library, "options": options, "copies": copies, "labels": labels})


def measure(library: str, copies: int, labels: int) -> dict[str, Any]:
    """Seconds a pass, seconds of the rest, and memory."""
    few, many = (fit(library, copies, labels, passes) for passes in (FEW, MANY))
    a_pass = {what: (getattr(many, what) - getattr(few, what)) / (MANY - FEW) for what in ("seconds", "cpu_seconds")}
    return {
        "library": many.library,
        "version": many.version,
        "copies": copies,
        "labels": many.labels,
        "tokens": many.tokens,
        "uses": many.uses,
        "seconds_a_pass": round(a_pass["seconds"], 4),
        "cpu_seconds_a_pass": round(a_pass["cpu_seconds"], 4),
        "cpu_seconds_once": round(few.cpu_seconds - FEW * a_pass["cpu_seconds"], 3),
        "extra_mb": many.extra_mb,
        "cpu": many.cpu,
        "measured": many.measured,
    }


def main() -> None:
    """Measure, print, write sequence_growth.csv."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--libraries", nargs="+", default=["pegasos", "python-crfsuite"], choices=list(ADAPTERS))
    parser.add_argument("--copies", type=int, nargs="+", default=COPIES)
    parser.add_argument("--labels", type=int, nargs="+", default=LABELS)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    cases = dict.fromkeys([*((copies, 22) for copies in options.copies), *((1, labels) for labels in options.labels)])
    rows: list[dict[str, Any]] = []
    for copies, labels in cases:
        for library in options.libraries:
            if ADAPTERS[library].available():
                rows.append(measure(library, copies, labels))
                print(", ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    write_rows(options.out / "sequence_growth.csv", rows)


if __name__ == "__main__":
    main()
