"""How many processors this process may use: all of them rarely, in containers and under batch systems."""

from __future__ import annotations

import math
import os
from functools import cache
from pathlib import Path

from pegasos.util import control_groups


def usable_cores() -> int:
    """The processors of the affinity mask, but no more than the control groups grant time for; at least 1."""
    # From Python 3.13 on, process_cpu_count looks at the mask; before, only some systems tell it.
    if hasattr(os, "process_cpu_count"):
        allowed = os.process_cpu_count() or 1
    elif hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    else:
        allowed = os.cpu_count() or 1
    return max(1, math.ceil(min(allowed, _granted())))


@cache
def _granted() -> float:
    """Processors' worth of time that the control groups of this process grant; infinite if they do not say.

    Read once: reading takes longer than deciding about a small fit, and a limit is set before a process is started.
    """
    return quota(control_groups.PROCESS, control_groups.MOUNTS)


def quota(groups: Path, mounts: Path) -> float:
    """The smallest share of processors among the control groups listed in ``groups``, and those around them."""
    files = {1: ("cpu.cfs_quota_us", "cpu.cfs_period_us"), 2: ("cpu.max",)}
    found = control_groups.folders("cpu", groups, mounts)
    return min((_share(*(folder / name for name in files[version])) for version, folder in found), default=math.inf)


def _share(*files: Path) -> float:
    """Quota over period, which stand in one file or in two; infinite where there is no limit, or none can be read."""
    try:
        granted, period = (int(word) for file in files for word in file.read_text().split())
    except (OSError, ValueError):  # no such file, or "max"
        return math.inf
    return granted / period if granted > 0 and period > 0 else math.inf
