"""The control groups that this process is in: containers and batch systems set limits there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

#: Where a process finds which groups it is in, and where those are mounted.
PROCESS, MOUNTS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def folders(controller: str, groups: Path, mounts: Path) -> Iterator[tuple[int, Path]]:
    """The version, 1 or 2, and the folder of each group that may limit what ``controller`` counts.

    A group is limited by those around it, too. Inside a container only the outermost may exist, as the mount.
    """
    try:
        lines = groups.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        controllers, _, path = line.partition(":")[2].partition(":")
        names = [name for name in path.split("/") if name not in ("", "..")]
        if controllers == "":
            roots, version = {mounts}, 2
        elif controller in controllers.split(","):
            roots, version = {mounts / controller, mounts / controllers}, 1
        else:
            continue
        for root in sorted(roots):
            for depth in range(len(names) + 1):
                yield version, root.joinpath(*names[:depth])
