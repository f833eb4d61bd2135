"""How much memory is left, and whether the weights of a linear machine fit into it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pegasos.util import control_groups
from pegasos.util.arrays import Matrix

#: Below this many bytes the free memory is not looked up: that takes as long as a small fit.
MIN_CHECKED_BYTES = 1 << 28


class TooManyColumns(MemoryError):
    """The weights would not fit into memory.

    Parameters
    ----------
    columns, outputs : int
        How many weights there would be: columns × outputs.
    need, free : int
        Bytes the fit takes at least, and bytes there are.
    row : int or None
        A row that has an entry in the last column, if there is one.
    """

    def __init__(self, columns: int, outputs: int, need: int, free: int, row: int | None) -> None:
        super().__init__(columns, outputs, need, free, row)
        self.columns, self.outputs, self.need, self.free, self.row = columns, outputs, need, free, row

    @property
    def cost(self) -> str:
        """What does not go together, in words."""
        each = f" for each of {self.outputs} classes" if self.outputs > 1 else ""
        return f"a weight for each{each} takes about {_size(self.need)} in this fit, and {_size(self.free)} are free"

    def __str__(self) -> str:
        where = f" The last one is asked for by row {self.row}." if self.row is not None else ""
        return (
            f"X has {self.columns} columns: {self.cost}.{where} Leave out the columns that are empty "
            "(X[:, np.unique(X.indices)]), or hash them to fewer (sklearn.feature_extraction.FeatureHasher)."
        )


def check_weights_fit(array: Matrix, outputs: int, kept: int) -> None:
    """Raise TooManyColumns if ``kept`` numbers for each weight of these rows need more memory than there is."""
    columns = int(array.shape[1])
    need = 8 * kept * columns * outputs
    if need < MIN_CHECKED_BYTES or (free := available_memory()) is None or need <= free:
        return
    raise TooManyColumns(columns, outputs, need, free, row_of_last_column(array))


def row_of_last_column(array: Matrix) -> int | None:
    """A row of a CSR matrix that has an entry in the last column; None of dense rows, or if there is none."""
    if isinstance(array, np.ndarray) or not array.nnz:
        return None
    last = int(np.argmax(array.indices))
    found = int(np.searchsorted(array.indptr, last, side="right")) - 1
    return found if int(array.indices[last]) == array.shape[1] - 1 else None


def available_memory() -> int | None:
    """Bytes that this process can still have before it fails or is killed; None if the system does not say.

    The least of what the machine has free (swap included), what its control groups leave, and its own limit.
    """
    return min((found for found in (_machine(), *_groups(), _own_limit()) if found is not None), default=None)


def _machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        table = {name: int(rest.split()[0]) << 10 for name, _, rest in (line.partition(":") for line in lines)}
        return table["MemAvailable"] + table.get("SwapFree", 0)
    except (OSError, KeyError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")  # no system says less
    except (AttributeError, OSError, ValueError):
        return None


#: The limit, what is used of it, and what could be given back of that, by the version of control groups.
_FILES = {
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    2: ("memory.max", "memory.current", "inactive_file"),
}


def _groups(processes: Path = control_groups.PROCESS, mounted: Path = control_groups.MOUNTS) -> Iterator[int]:
    """What each control group that this process is in leaves, versions 1 and 2; containers are such groups."""
    for version, folder in control_groups.folders("memory", processes, mounted):
        limit, used, reclaimable = _FILES[version]
        try:
            most = int((folder / limit).read_text(encoding="ascii"))
            stat = (line.split() for line in (folder / "memory.stat").read_text(encoding="ascii").splitlines())
            cache = next((int(value) for name, value in stat if name == reclaimable), 0)
            yield max(0, most - int((folder / used).read_text(encoding="ascii")) + cache)
        except (OSError, ValueError):  # no such group, or "max": no limit
            continue


def _own_limit() -> int | None:
    try:
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most == resource.RLIM_INFINITY:
            return None
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (ImportError, OSError, ValueError, IndexError):
        return None
    return max(0, most - used)


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
