"""What several test files share: losses beside their oracles, small problems, and ways to run an engine on them."""

from __future__ import annotations

import signal
from dataclasses import asdict
from functools import cache

import numpy as np
import oracles as o
import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

from pegasos import losses
from pegasos.fit import loop
from pegasos.fit.engine import Options
from pegasos.kernels.functions import Kernel
from pegasos.kernels.gram import PartRows
from pegasos.losses import LOSSES
from pegasos.problems.base import Point
from pegasos.problems.kernel import KernelProblem
from pegasos.problems.linear import LinearProblem, Weights
from pegasos.problems.part import Part
from pegasos.rows.views import examples

# Nothing is written beside the sources, which may be read-only; what fails is printed so that it can be tried again.
settings.register_profile("read-only", database=None, print_blob=True)
settings.load_profile("read-only")


@pytest.fixture
def threads_that_do_not_wait():
    """LIBSVM's threads wait for each other in loops, which takes minutes where others use the processor, too."""
    with threadpool_limits(1, user_api="openmp"):
        yield


@pytest.fixture
def interruptible():
    """SIGINT means Ctrl-C, and other signals the end, though the tests may have been started where they are ignored."""
    ends = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    means = {signal.SIGINT: signal.default_int_handler} | dict.fromkeys(ends, signal.SIG_DFL)
    before = {number: signal.signal(number, handler) for number, handler in means.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


COST = ((0.0, 1.0, 2.0), (0.5, 0.0, 1.0), (3.0, 1.0, 0.0))

#: Every loss with its defaults, and those with parameters once more.
CASES = [cls() for cls in LOSSES.values()] + [
    losses.SmoothedHinge(0.3),
    losses.EpsilonInsensitive(0.2),
    losses.SquaredEpsilonInsensitive(0.2),
    losses.Huber(0.5),
    losses.Quantile(0.3),
    losses.CrammerSinger(COST),
]
SCALAR = [loss for loss in CASES if loss.kind != "joint"]
JOINT = [loss for loss in CASES if loss.kind == "joint"]
MARGIN = [loss for loss in CASES if loss.kind == "margin"]

#: How the oracle calls the kinds of bias.
ORACLE_BIAS = {"none": "none", "feature": "feature", "free": "unregularized"}


def oracle(loss, classes=3):
    """The oracle of a loss of the package."""
    if isinstance(loss, losses.CrammerSinger):
        return o.CrammerSinger(loss.matrix(classes))
    if isinstance(loss, losses.Multinomial):
        return o.Multinomial(classes)
    return o.SCALAR[loss.name](**asdict(loss))


def toy(loss, m=40, n=4, *, classes=None, seed=0):
    """Rows and targets that suit a loss, off centre; ``classes`` makes a one-vs-rest problem of a margin loss."""
    kind = "real" if loss.kind == "regression" else "multiclass" if classes or loss.kind == "joint" else "binary"
    X, y = o.toy(m, n, kind=kind, classes=classes or 3, seed=seed)
    return X + 0.2, y + 0.5 if kind == "real" else y


def problem(X, y, loss, lam, *, weight=None, bias="none", feature=1.0, threads=1):
    """A Problem: integer targets are classes, others ±1 or real."""
    y = np.asarray(y)
    several = y.dtype.kind == "i"
    return LinearProblem(
        examples=examples(X, threads=threads),
        loss=loss,
        target=np.ascontiguousarray(y, dtype=np.int32 if several else np.float64),
        outputs=int(y.max()) + 1 if several else 1,
        lam=lam,
        weight=weight,
        bias=bias,
        feature=feature,
        threads=threads,
    )


def kind_of(intercept):
    """The kind of bias an intercept means."""
    return intercept if intercept in ("none", "feature") else "free"


def dual_value(p, u):
    """D of the feasible point next to u, for each part."""
    return p.certify(Point(Weights(None, np.zeros(p.outputs)), u)).dual


def optimum(p):
    """The oracle's optima, one for each part."""
    loss = oracle(p.loss, p.outputs)
    options = {"loss": loss, "lam": p.lam, "weight": p.weight, "bias": ORACLE_BIAS[p.bias], "B": p.feature}
    targets = [p.target] if p.joint else [p.targets(k) for k in range(p.n_parts)]
    return [o.optimum(p.examples.array, y, **options) for y in targets]


@cache
def standard(loss, bias, classes=None, m=40, n=4, lam=0.05, seed=0):
    """A problem that is used again and again, and its optimal value."""
    X, y = toy(loss, m, n, classes=classes, seed=seed)
    p = problem(X, y, loss, lam, bias=bias)
    return p, sum(part.primal for part in optimum(p))


def kernel_problem(X, y, loss, lam, *, kernel=None, weight=None, bias="none", feature=1.0, parts=None, cache=200.0):
    """A KernelProblem of one part; a list ``parts`` of (index, targets) makes several."""
    kernel = Kernel("linear") if kernel is None else kernel
    weight = np.ones(len(X)) if weight is None else weight
    total = float(weight.sum())
    parts = [(None, np.asarray(y, dtype=float))] if parts is None else parts
    pieces = tuple(Part(i, t, weight if i is None else weight[i], loss, 1 / (lam * total)) for i, t in parts)
    rows = PartRows(X, kernel, [part.index for part in pieces], cache, 1)
    return KernelProblem(X, kernel, pieces, lam, total, rows, bias, feature)


def features(K):
    """Rows whose inner products are the kernel matrix K."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0))


def advance(engine, epochs):
    """Run an engine until it has done so many epochs."""
    while engine.epochs < epochs - 1e-9:
        engine.advance()
    return engine


def solve(p, solver, intercept="none", *, tol=1e-9, max_iter=1000, seed=0):
    """What a fit does, without the warning."""
    solver.check(p, intercept)
    engine = solver.engine(p, Options(intercept, seed))
    return loop.run(p, engine, loop.Limits(tol, max_iter), loop.Watch())
