"""What problems share whose model is one array of weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pegasos.util.arrays import Array
from pegasos.util.fields import MAX_FINITE, saved


class OneVector:
    """A problem of one part; a model is w, ``size`` numbers."""

    if TYPE_CHECKING:  # a dataclass would take it for a default of its field

        @property
        def size(self) -> int: ...

    @property
    def n_parts(self) -> int:
        """All rows share the weights."""
        return 1

    def choose(self, first: Array, one: Array, other: Array) -> Array:
        """One or the other."""
        return one if bool(first[0]) else other

    def arrays(self, model: Array) -> dict[str, Array]:
        """The weights."""
        return {"w": model}

    def model_of(self, arrays: Mapping[str, Array]) -> Array:
        """What ``arrays`` wrote."""
        return saved(arrays, "w", (self.size,), low=-MAX_FINITE, high=MAX_FINITE)
