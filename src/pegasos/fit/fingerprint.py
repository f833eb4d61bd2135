"""What a fit is, in words and digests: two fits with the same fingerprint go through the same iterates."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy import sparse

from pegasos.problems.kernel import KernelProblem
from pegasos.problems.linear import Problem
from pegasos.rows.views import Array, Examples

#: Bytes of an array that are hashed; of longer ones so many, spread evenly, and the sums of all blocks.
HASHED, BLOCK = 1 << 26, 1 << 12

#: Bytes looked at in one go.
PIECE = 1 << 24

#: The metadata of a field that a loss or solver got after a release, with a default that means what was done before:
#: checkpoints that were written before it came then still belong to their fits.
LATER = MappingProxyType({"later": True})

#: The entries that are digests: that they differ can be said, but not how.
DIGESTS = {"data": "the entries of X", "targets": "the labels or targets y", "weights": "the sample or class weights"}


def fingerprint(problem: Problem, solver: object, *, intercept: str, seed: int, tol: float) -> dict[str, str]:
    """Everything that decides the iterates; limits, threads and who looks on do not."""
    examples = problem.examples
    return {
        "rows": str(examples.m),
        "columns": str(examples.n),
        "layout": "CSR" if examples.is_sparse else "dense",
        "dtype": " ".join(str(a.dtype) for a in _arrays(examples)),
        "data": digest(*_arrays(examples)),
        "targets": digest(problem.target),
        "weights": "none" if problem.weight is None else digest(problem.weight),
        "outputs": str(problem.outputs),
        "loss": _spelled(problem.loss),
        "lam": repr(float(problem.lam)),
        "intercept": intercept,
        "intercept_scaling": repr(float(problem.feature)),
        "solver": _spelled(solver),
        "random_state": str(seed),
        "tol": repr(float(tol)),
    }


def kernel_fingerprint(problem: KernelProblem, solver: object, *, seed: int, tol: float) -> dict[str, str]:
    """The same for a kernel machine; a kernel function is known by its name only."""
    X, kernel = problem.X, problem.kernel
    arrays = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    function = kernel.function
    named = "" if function is None else f" {getattr(function, '__qualname__', type(function).__qualname__)}"
    return {
        "rows": str(X.shape[0]),
        "columns": str(X.shape[1]),
        "layout": "CSR" if sparse.issparse(X) else "dense",
        "dtype": " ".join(str(a.dtype) for a in arrays),
        "data": digest(*arrays),
        "targets": digest(*problem.targets()),
        "weights": digest(*problem.weights()),
        "outputs": str(problem.parts),
        "loss": _spelled(problem.pieces[0].loss),
        "lam": repr(float(problem.lam)),
        "kernel": f"{kernel.name}{named} gamma={kernel.gamma!r} coef0={kernel.coef0!r} degree={kernel.degree}",
        "intercept": problem.bias,
        "intercept_scaling": repr(float(problem.feature)),
        "sharing of kernel rows": "yes" if problem.rows.whole is not None else "no",
        "solver": _spelled(solver),
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


def digest(*arrays: Array) -> str:
    """SHA-256 of the arrays' bytes; beyond ``HASHED`` bytes, of a sample of them and of the sums of every block.

    The sums, of 64-bit words modulo 2⁶⁴, see every entry at the speed of memory; the sample sees what sums do not, such
    as columns changing places.
    """
    total = hashlib.sha256()
    for array in arrays:
        total.update(f"{array.shape}{array.dtype}".encode())
        pieces = _pieces(array)
        if array.nbytes <= HASHED:
            for piece in pieces:
                total.update(piece.data)
            continue
        stride = -(-array.nbytes // HASHED)
        for piece in pieces:
            whole = len(piece) // BLOCK
            blocks = piece[: whole * BLOCK].reshape(whole, BLOCK)
            total.update(blocks.view(np.uint64).sum(axis=1, dtype=np.uint64).data)
            total.update(np.ascontiguousarray(blocks[::stride]).data)
            total.update(piece[whole * BLOCK :].data)
    return total.hexdigest()


def _pieces(array: Array) -> Iterator[Array]:
    """The bytes of an array, some megabytes at a time; rows with gaps between them are copied piece by piece."""
    rows = max(1, PIECE // max(1, array.nbytes // max(1, len(array))))
    for first in range(0, len(array), rows):
        yield np.ascontiguousarray(array[first : first + rows]).reshape(-1).view(np.uint8)


def _arrays(examples: Examples) -> tuple[Array, ...]:
    X = examples.array
    return (X.data, X.indices, X.indptr) if examples.is_sparse else (X,)


def _spelled(thing: Any) -> str:
    """A loss or solver with its parameters, the same for 2, np.int64(2) and np.float64(0.5) or 0.5.

    Fields that are ``LATER`` are left out where they are what they always were.
    """
    everything = ((f, getattr(thing, f.name)) for f in fields(thing))
    values = ((f.name, value) for f, value in everything if not f.metadata.get("later") or value != f.default)
    plain = (f"{name}={value.item() if isinstance(value, np.generic) else value!r}" for name, value in values)
    return f"{type(thing).__name__}({', '.join(plain)})"
