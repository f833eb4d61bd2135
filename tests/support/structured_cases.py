"""Small problems with an oracle, and the solvers in all their forms."""

from __future__ import annotations

from functools import cache

import numpy as np
import structured_oracles as so

from pegasos import BlockFrankWolfe, CuttingPlane, Pegasos
from pegasos.fit import loop
from pegasos.fit.engine import Options
from pegasos.problems.oracle import CheckedOracle
from pegasos.problems.structured import OracleProblem
from pegasos.solvers import resolve

LAM = 0.05

FORMS = {
    "auto": "auto",
    "pegasos": Pegasos(),
    "pegasos as published": Pegasos(t0=0, sampling="iid"),
    "pegasos batches": Pegasos(batch_size=3, output="average"),
    "pegasos suffix": Pegasos(output="suffix", sampling="fixed"),
    "pegasos random": Pegasos(output="random"),
    "pegasos projection": Pegasos(projection=True, t0=0),
    "block_frank_wolfe": BlockFrankWolfe(),
    "block_frank_wolfe plain": BlockFrankWolfe(cached_passes=0, unused_passes=1),
    "block_frank_wolfe batches": BlockFrankWolfe(batch_size=3, cached_passes=2),
    "cutting_plane": CuttingPlane(),
    "cutting_plane few": CuttingPlane(max_planes=6),
}

#: Those that reach small gaps.
FAST = ["auto", "block_frank_wolfe", "block_frank_wolfe plain", "block_frank_wolfe batches", "cutting_plane"]


@cache
def oracle(seed=0, rows=8, **how):
    return so.Tags(**how).bind(*so.toy(rows=rows, seed=seed))


@cache
def weights(seed=0, rows=8):
    found = np.random.default_rng(seed).uniform(0.2, 2, rows)
    found[3] = 0.0
    return found


@cache
def star(seed, weighted, lam):
    return so.optimum(oracle(seed).planes, lam, weights(seed) if weighted else None)


def problem(bound=None, weight=None, lam=LAM):
    return OracleProblem(CheckedOracle(oracle() if bound is None else bound), lam, weight)


def engine(form, p=None, *, seed=0, tol=1e-3):
    return resolve(FORMS.get(form, form), "oracle").engine(problem() if p is None else p, Options("none", seed, tol))


def solve(form, p, *, tol=1e-3, max_iter=300, seed=0):
    return loop.run(p, engine(form, p, seed=seed, tol=tol), loop.Limits(tol, max_iter), loop.Watch())
