"""What a fit is, in words and digests: two fits with the same fingerprint go through the same iterates."""

from __future__ import annotations

from pegasos.problems.base import M, Problem
from pegasos.util.digests import spelled

#: The entries that are digests: that they differ can be said, but not how.
DIGESTS = {
    "data": "the entries of X",
    "targets": "the labels or targets y",
    "weights": "the sample or class weights",
    "oracle": "the oracle's answers",
    "start": "coef_init or intercept_init",
}


def fingerprint(problem: Problem[M], solver: object, *, intercept: str, seed: int, tol: float) -> dict[str, str]:
    """Everything that decides the iterates; limits, threads, callbacks and progress lines do not."""
    return problem.digests() | {
        "intercept": intercept,
        "solver": spelled(solver),
        "random_state": str(seed),
        "tol": repr(float(tol)),
    }


def differences(saved: dict[str, str], here: dict[str, str]) -> list[str]:
    """In words, what differs between two fingerprints."""
    found = []
    for name in dict.fromkeys((*here, *saved)):
        there, now = saved.get(name, "missing"), here.get(name, "missing")
        if there != now:
            found.append(f"{DIGESTS[name]} differ" if name in DIGESTS else f"{name} is {there} there and {now} here")
    return found
