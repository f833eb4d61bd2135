"""What ``partial_fit`` of a linear machine needs to go on, in model files.

The header's ``stream`` has λ, the rows and steps so far, t0, seconds, and what is known of rows and targets (``seen``).
The weights are the model's own, unless those are a mean of iterates: then ``stream.last`` holds the last iterate and
``stream.sums`` the three sums of :class:`~pegasos.estimators.averages.Averages` below each other, with the biases as
last column; their counts are in the header's ``averages``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos.estimators.averages import Averages, Sum
from pegasos.estimators.partial_fit import Stream
from pegasos.fit.trace import Trace
from pegasos.io.models.checks import Rule, check_names, checked_array, real, whole
from pegasos.io.models.plain import fits, plain
from pegasos.rows.views import Array
from pegasos.solvers.units import Seen

NUMBERS = ("lam", "rows", "t0", "seconds")
#: What files may lack: then it is as at the beginning of a stream.
OPTIONAL = ("steps", "seen", "averages")
#: How many numbers every ``seen`` has.
SEEN_LENGTH = 5


def encode(stream: Stream) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header's entry and the arrays of a stream."""
    header = {name: plain(getattr(stream, name)) for name in NUMBERS}
    header |= {"steps": stream.steps, "seen": list(map(float, stream.seen)), "averages": None}
    if stream.averages is None or stream.last is None:
        return header, {}
    sums = Averages.of(stream.averages)
    header["averages"] = {"rows": [plain(s.rows) for s in sums], "steps": [float(s.steps[0]) for s in sums]}
    return header, {
        "stream.last": np.column_stack(stream.last),
        "stream.sums": np.concatenate([np.column_stack([s.W, s.b]) for s in sums]),
    }


def decode(found: Any, arrays: dict[str, Array], trace: Trace | None, features: int) -> Stream:
    """Where ``partial_fit`` goes on: from the weights, as after a fit, with the step sizes it had got to."""
    check_names(f"stream={found!r:.200}", found, NUMBERS, OPTIONAL)
    stream = Stream(real(found, "lam"), whole(found, "rows", low=1))
    if stream.lam == 0:
        raise ValueError("the stream's lam should be a number > 0")
    stream.seconds = real(found, "seconds")
    if found["t0"] is not None:
        stream.t0 = real(found, "t0")
        stream.trace = Trace() if trace is None else trace
        stream.calls = int(stream.trace[-1].epochs) if len(stream.trace) else 0
    if "steps" in found:
        stream.steps = real(found, "steps")
    if "seen" in found:
        stream.seen = tuple(_seen(found["seen"]))
    if found.get("averages") is not None:
        stream.last, averages = _averages(found["averages"], arrays, features)
        stream.averages = averages.plain()
    return stream


def _seen(found: Any) -> Seen:
    """What the first numbers of it are; those that came later have defaults."""
    names, most = ", ".join(Seen._fields), len(Seen._fields)
    if not fits(found, tuple[float, ...]) or not SEEN_LENGTH <= len(found) <= most or min(found[:3] + found[4:]) < 0:
        raise ValueError(f"the stream's seen={found!r:.200} should be {most} numbers: {names}")
    return Seen(*map(float, found))


def _averages(found: Any, arrays: dict[str, Array], features: int) -> tuple[tuple[Array, Array], Averages]:
    check_names(f"the stream's averages={found!r:.200}", found, ("rows", "steps"))
    for name, hint in (("rows", tuple[int, ...]), ("steps", tuple[float, ...])):
        values = found[name]
        if not fits(values, hint) or len(values) != 3 or min(values) < 0 or max(values) > 2**53:
            raise ValueError(f"the stream's averages have {name}={values!r:.100} in place of three counts")
    sizes = {"columns": features + 1}
    last = checked_array("stream.last", arrays.pop("stream.last", None), Rule(("streams", "columns")), sizes)
    sums = checked_array("stream.sums", arrays.pop("stream.sums", None), Rule((3 * len(last), "columns")), sizes)
    parts = [
        Sum(rows, np.full(len(last), float(steps)), *_split(table))
        for rows, steps, table in zip(found["rows"], found["steps"], np.split(sums, 3), strict=True)
    ]
    return _split(last), Averages(*parts)


def _split(table: Array) -> tuple[Array, Array]:
    return np.ascontiguousarray(table[:, :-1]), np.ascontiguousarray(table[:, -1])
