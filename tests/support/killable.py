"""Small fits of every kind for the tests of checkpoints, and a process that runs and kills them.

Its ``main`` reads lines ``name checkpoint result delay`` and, for each, forks a child that makes the fit and
writes what came out to ``result``; after ``delay`` seconds (if there is one) the child is killed with SIGKILL. A line
tells how it ended: the seconds it took, "killed" or "finished". The child is ready at once, since all imports and data
are there before the fork, and only this process, whose child it is, ever kills it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
import warnings
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from unittest import mock

import numpy as np
import processes
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from pegasos import (
    LBFGS,
    SDCA,
    SGD,
    SMO,
    SVC,
    SVR,
    AveragedPerceptron,
    BlockFrankWolfe,
    CuttingPlane,
    InteriorPoint,
    LinearSVC,
    LinearSVR,
    Norma,
    PassiveAggressive,
    Pegasos,
    SequenceSVC,
    SmoothedNewton,
)


@cache
def data(kind):
    """Rows and targets: two classes dense or sparse, ten classes, three classes, or numbers; or sequences and tags."""
    rng = np.random.default_rng(7)
    if kind == "sequences":
        words = [rng.integers(0, 9, rng.integers(1, 9)) for _ in range(40)]
        tags = [(word % 3 + (rng.random(len(word)) < 0.3)) % 3 for word in words]
        return [[[f"w{w}", f"k{w // 2}"] for w in word] for word in words], [tag.tolist() for tag in tags]
    m, n = 300, 12
    X = rng.standard_normal((m, n)) + 0.2
    score = X @ rng.standard_normal((n, 10)) + 2 * rng.standard_normal((m, 10))
    if kind == "two":
        return X, score[:, 0] > 0.5
    if kind == "sparse":
        return sparse.csr_matrix(np.where(rng.random((m, n)) < 0.4, X, 0)).astype(np.float32), score[:, 0] > 0.5
    if kind == "numbers":
        return X, score[:, 0]
    return X, score[:, : int(kind)].argmax(axis=1)


#: Makes the second-order methods rehearse on samples of these few rows.
REHEARSE = {
    "pegasos.solvers.linear.smoothed_newton.SmoothedNewtonEngine.MIN_SAMPLE_ROWS": 60,
    "pegasos.solvers.linear.smoothed_newton.SmoothedNewtonEngine.MIN_SAMPLE_ROWS_PER_COLUMN": 1,
    "pegasos.solvers.linear.interior_point.InteriorPointEngine.MIN_SAMPLE_ROWS": 60,
    "pegasos.solvers.linear.interior_point.InteriorPointEngine.MIN_SAMPLE_ROWS_PER_COLUMN": 1,
}
#: Makes "auto" begin with Pegasos on these few rows, and change over to SDCA and then to a second-order method.
SWITCH = {
    "pegasos.solvers.linear.auto.TINY_COST_NS": 0.0,
    "pegasos.solvers.linear.auto.first_order_cost": lambda _: -np.inf,
    "pegasos.solvers.linear.auto.SECOND_ORDER_ITERATIONS": 2,
}

#: Makes kernel machines keep rows of these few in single precision.
SINGLE = {"pegasos.kernels.gram.MAX_DOUBLE_ROWS": 0}

#: Makes solvers of sequences do these few tokens at a time.
SHORT = {
    "pegasos.solvers.structured.chain_steps.CHUNK_TOKENS": 50,
    "pegasos.solvers.structured.chain_planes.CHUNK_TOKENS": 50,
}

#: name: data, estimator's parameters, what is patched. Those with "loss" of regression are LinearSVR, those with
#: "kernel" SVC or, for numbers, SVR; those of sequences SequenceSVC.
FITS = {
    "pegasos": ("two", {"solver": Pegasos(), "max_iter": 60}, {}),
    "pegasos average iid": ("sparse", {"solver": Pegasos(output="average", sampling="iid"), "max_iter": 60}, {}),
    "pegasos suffix fixed": (
        "two",
        {"solver": Pegasos(output="suffix", sampling="fixed", batch_size=7), "max_iter": 60},
        {},
    ),
    "pegasos random": ("10", {"solver": Pegasos(output="random"), "max_iter": 50}, {}),
    "pegasos projection": (
        "two",
        {"solver": Pegasos(projection=True, t0=0), "intercept": "feature", "max_iter": 60},
        {},
    ),
    "pegasos batch bias": (
        "two",
        {"solver": Pegasos(batch_size=10), "intercept": "batch", "loss": "log", "max_iter": 50},
        {},
    ),
    "pegasos multinomial": ("3", {"solver": Pegasos(output="average"), "loss": "multinomial", "max_iter": 50}, {}),
    "norma": ("two", {"solver": Norma(output="average"), "max_iter": 60}, {}),
    "sgd": ("two", {"solver": SGD(eta=1e-3, output="suffix"), "loss": "squared_hinge", "max_iter": 60}, {}),
    "sdca": ("two", {"solver": SDCA(), "max_iter": 30}, {}),
    "sdca iid": ("sparse", {"solver": SDCA(sampling="iid", shrinking=False), "loss": "log", "max_iter": 80}, {}),
    "sdca blocks": ("two", {"solver": SDCA(blocks=16), "n_jobs": 2, "max_iter": 100}, {}),
    "sdca ten classes": ("10", {"solver": SDCA(), "tol": 1e-2, "max_iter": 100}, {}),
    "sdca crammer_singer": ("3", {"solver": SDCA(), "loss": "crammer_singer", "max_iter": 80}, {}),
    "sdca regression": ("numbers", {"solver": SDCA(), "loss": "huber", "max_iter": 120}, {}),
    "sdca converging": ("two", {"solver": SDCA(), "lam": 1e-2, "tol": 1e-3, "max_iter": 5000}, {}),
    "search": ("two", {"solver": SDCA(), "intercept": "search", "max_iter": 25}, {}),
    "search by pegasos": (
        "two",
        {"solver": Pegasos(output="average"), "intercept": "search", "max_iter": 60},
        {},
    ),
    "search in ten classes": ("10", {"solver": SDCA(), "intercept": "search", "max_iter": 40}, {}),
    "cutting_plane": ("two", {"solver": CuttingPlane(max_planes=20), "max_iter": 60}, {}),
    "cutting_plane three classes": (
        "3",
        {"solver": CuttingPlane(), "loss": "log", "intercept": "feature", "max_iter": 40},
        {},
    ),
    "interior_point": ("two", {"solver": InteriorPoint(), "tol": 1e-9}, REHEARSE),
    "interior_point three classes": ("3", {"solver": InteriorPoint(), "tol": 1e-6}, REHEARSE),
    "interior_point quantile": ("numbers", {"solver": InteriorPoint(), "loss": "quantile", "tol": 1e-9}, {}),
    "smoothed_newton": ("two", {"solver": SmoothedNewton(), "tol": 1e-9}, REHEARSE),
    "smoothed_newton three classes": ("3", {"solver": SmoothedNewton(), "tol": 1e-6}, REHEARSE),
    "smoothed_newton quantile": ("numbers", {"solver": SmoothedNewton(), "loss": "quantile", "tol": 1e-9}, {}),
    "newton": ("10", {"solver": InteriorPoint(), "loss": "log", "tol": 1e-12}, {}),
    "newton multinomial": ("3", {"solver": InteriorPoint(), "loss": "multinomial", "tol": 1e-9}, {}),
    "auto": ("two", {"solver": "auto", "lam": 1e-4, "tol": 1e-7, "max_iter": 300}, SWITCH),
    "auto ten classes": ("10", {"solver": "auto", "lam": 1e-4, "tol": 1e-5, "max_iter": 120}, SWITCH),
    "auto at once": ("two", {"solver": "auto", "tol": 1e-9}, {}),
    "svc": ("two", {"kernel": "rbf", "solver": SMO(working_set=16), "tol": 1e-6}, {}),
    "svc sparse, single": ("sparse", {"kernel": "laplacian", "solver": SMO(working_set=32), "tol": 1e-6}, SINGLE),
    "svc three classes": ("3", {"kernel": "poly", "coef0": 1.0, "solver": SMO(working_set=32), "tol": 1e-4}, {}),
    "svc limited": ("two", {"kernel": "linear", "solver": SMO(working_set=8), "tol": 1e-9, "max_iter": 300}, {}),
    "svr": ("numbers", {"kernel": "rbf", "gamma": 0.1, "solver": SMO(working_set=16), "tol": 1e-6}, {}),
    "sequences pegasos": ("sequences", {"solver": Pegasos(output="suffix"), "max_iter": 12}, SHORT),
    "sequences pegasos projected": (
        "sequences",
        {"solver": Pegasos(output="average", t0=0, projection=True, sampling="iid", batch_size=3), "max_iter": 12},
        SHORT,
    ),
    "sequences pegasos log": ("sequences", {"solver": Pegasos(), "loss": "log", "max_iter": 12}, SHORT),
    "sequences perceptron": ("sequences", {"solver": AveragedPerceptron(), "max_iter": 9}, SHORT),
    "sequences passive_aggressive": ("sequences", {"solver": PassiveAggressive(), "max_iter": 9}, SHORT),
    "sequences block_frank_wolfe": ("sequences", {"solver": BlockFrankWolfe(), "max_iter": 14}, SHORT),
    "sequences cutting_plane": ("sequences", {"solver": CuttingPlane(max_planes=12), "max_iter": 25}, {}),
    "sequences lbfgs": ("sequences", {"solver": LBFGS(memory=3), "loss": "log", "tol": 1e-9}, {}),
    "sequences auto": ("sequences", {"solver": "auto", "grammar": "learnt", "tol": 1e-4, "max_iter": 20}, SHORT),
    "sequences auto log": ("sequences", {"solver": "auto", "loss": "log", "tol": 1e-6, "max_iter": 50}, SHORT),
}
REGRESSION = ("huber", "quantile")


def model(name, **changes):
    """The estimator of a fit, with an unreachable tolerance unless it says otherwise."""
    rows, how, _ = FITS[name]
    if "kernel" in how:
        changes = {key: value for key, value in changes.items() if key != "warm_start"}  # they have none
        return (SVR if rows == "numbers" else SVC)(**({"lam": 1e-3} | how | changes))
    kind = LinearSVR if how.get("loss") in REGRESSION else SequenceSVC if rows == "sequences" else LinearSVC
    return kind(**({"lam": 1e-3, "tol": 0.0, "random_state": 3} | how | changes))


def fit(name, **changes):
    """Make a fit, with what it needs patched and its warning about a gap left out."""
    kind, _, patches = FITS[name]
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for target, value in patches.items():
            stack.enter_context(mock.patch(target, value))
        return model(name, **changes).fit(*data(kind))


def outcome(fitted):
    """All that must be the same to the bit, however often a fit was killed: every number but the seconds."""
    c = fitted.certificate_
    certificate = [
        c.primal,
        c.dual,
        c.gap,
        c.relative_gap,
        c.epochs,
        c.converged,
        *c.primal_per_class,
        *c.dual_per_class,
    ]
    intercept = getattr(fitted, "intercept_", 0.0)
    if isinstance(fitted, SequenceSVC):
        coef = np.concatenate([fitted.coef_.ravel(), fitted.transitions_.ravel()])
        planes = fitted._last_fit["duals"]
        duals = np.zeros(0) if planes is None else np.concatenate([np.asarray(part, dtype=float) for part in planes])
    elif isinstance(fitted, SVC | SVR):
        coef, duals = fitted._dense_coefficients(), np.append(fitted.support_, fitted.n_iter_)
    else:
        coef, duals = fitted.coef_, np.zeros(0) if fitted._last_fit["u"] is None else fitted._last_fit["u"]
    return {
        "coef": coef,
        "intercept": np.atleast_1d(intercept),
        "certificate": np.array(certificate, dtype=float),
        "reason": np.frombuffer(c.reason.encode(), dtype=np.uint8),
        "trace": np.array([[r.epochs, r.primal, r.dual, r.gap, r.relative_gap] for r in fitted.trace_]),
        "duals": duals,
    }


def _child(name, checkpoint, result):
    status = 1
    try:
        found = outcome(fit(name, checkpoint=checkpoint, checkpoint_every=0, warm_start=True))
        np.savez(result, **found)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def _attempt(name, checkpoint, result, delay):
    began = time.monotonic()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        processes.die_with(parent)
        _child(name, checkpoint, result)
    status = 0
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        if delay is not None and time.monotonic() - began >= delay:
            os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            break
        time.sleep(0.0005)
    if os.WIFSIGNALED(status):
        how = "killed" if os.WTERMSIG(status) == signal.SIGKILL and delay is not None else f"died {os.WTERMSIG(status)}"
    else:
        how = "finished" if os.WEXITSTATUS(status) == 0 else "failed"
    return f"{time.monotonic() - began:.4f} {how}"


def main():
    """Serve; see the module's docstring."""
    for kind, _, _ in FITS.values():
        data(kind)
    fit("auto at once", warm_start=True)  # whatever is imported late is imported now
    import safetensors.numpy  # noqa: F401

    for line in sys.stdin:
        name, checkpoint, result, delay = line.rstrip("\n").split("\t")
        print(_attempt(name, Path(checkpoint), Path(result), float(delay) if delay else None), flush=True)
