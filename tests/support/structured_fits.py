"""Small fits of StructuredSVC."""

from __future__ import annotations

import warnings

import structured_oracles as so
from sklearn.exceptions import ConvergenceWarning

from pegasos import StructuredSVC

X, Y = so.toy(rows=10)
SOLVERS = ["auto", "pegasos", "block_frank_wolfe", "cutting_plane"]


def outcome(model):
    c = model.certificate_
    return model.coef_.tobytes(), c.primal, c.dual, c.epochs, [r.primal for r in model.trace_]


def fitted(how=None, **more):
    """A fit that may stop early."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return StructuredSVC(so.Tags(), **(how or {}) | more).fit(X, Y)
