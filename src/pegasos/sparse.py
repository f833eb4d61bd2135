"""Kernel classifiers with few support vectors: compressing fitted ones, and an estimator that does both."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

from pegasos import _slant
from pegasos._data import Array
from pegasos._reference import Pair, Reference
from pegasos._span import project
from pegasos._sparse_path import Guarantee, RandomizedClassifier, SparsePath

__all__ = ["Guarantee", "RandomizedClassifier", "SparsePath", "sparsify"]

Variant = Literal["projection", "aggressive", "basic"]

#: Candidates for support vectors: so many for each one wanted, within these limits.
EACH, FEWEST, MOST = 24, 4000, 20000

#: The share of the reference's support vectors that is kept if nothing is said.
SHARE = 0.1


def sparsify(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    max_support: int | None = None,
    tol: float = 0.5,
    step: float | Literal["polyak"] = "polyak",
    variant: Variant = "projection",
    bias: Literal["learn", "keep"] = "learn",
    refit: bool = True,
    validation: tuple[Any, Any] | None = None,
    sample_weight: Any = None,
    max_iter: int = 1_000_000,
    cache_size: float = 200,
    n_jobs: int | None = None,
) -> SparsePath:
    """Compress a fitted kernel classifier: nearly its decisions, from a few support vectors.

    Parameters
    ----------
    model : SVC or sklearn.svm.SVC
        Fitted.
    X, y, sample_weight
        What it was fitted on (X the kernel matrix, for a precomputed kernel); other data is refused. Rows of weight 0
        are left out, other weights multiply losses.
    max_support : int, default=None
        Most support vectors, distinct ones if there are several pairs of classes. None: a tenth of the reference's for
        "projection", no limit for the others.
    tol : float, default=0.5
        ε of the published variants: they end when no row that the reference gets right falls short of its target by
        more. The theorem is about ½.
    step : float or "polyak", default="polyak"
        η of the published variants; "polyak" is violation/K_ii. The paper has ½.
    variant : {"projection", "aggressive", "basic"}, default="projection"
        How support vectors are chosen. "basic" is the algorithm of the paper, "aggressive" its section 6.1, which
        steps on those it has before it takes a new one. "projection" takes the rows on which the projection of the
        reference comes closest to it; it has no bound on their number, and better errors in all our measurements.
    bias : {"learn", "keep"}, default="learn"
        Learn a new bias, or keep the reference's.
    refit : bool, default=True
        Fit the coefficients of the chosen vectors anew, on all rows with the squared hinge loss and the reference's C.
        False, which "projection" does not have: those of the paper, with its guarantee.
    validation : tuple (X, y), default=None
        Rows that choose the size which ``path.at()`` returns.
    max_iter : int, default=1000000
        Most steps of the published variants, for each pair of classes.
    cache_size : float, default=200
        Megabytes of kernel rows kept.
    n_jobs : int, default=None
        Threads; the same bits for any number. None: those of the model, or one.

    Returns
    -------
    SparsePath
        Models of every size up to the last.

    References
    ----------
    A. Cotter, S. Shalev-Shwartz, N. Srebro. Learning Optimally Sparse Support Vector Machines. ICML 2013.

    Examples
    --------
    >>> from pegasos import SVC, sparsify
    >>> from pegasos.datasets import make_moons
    >>> X, y = make_moons(400, noise=0.3, random_state=0)
    >>> model = SVC(C=10, gamma=1).fit(X, y)
    >>> small = sparsify(model, X, y, max_support=12).at(12)
    >>> len(model.support_) > 80, len(small.support_)
    (True, 12)
    >>> bool(small.score(X, y) > model.score(X, y) - 0.02)
    True
    """
    _check(max_support, tol, step, variant, bias, refit, max_iter, cache_size)
    n_jobs = getattr(model, "n_jobs", None) if n_jobs is None else n_jobs
    ref = Reference(model, X, y, sample_weight, float(cache_size), n_jobs)
    learn = bias == "learn"
    if variant == "projection":
        most = max(1, int(np.ceil(SHARE * ref.n_support))) if max_support is None else int(max_support)
        path = _projected(ref, most, learn)
    else:
        most = ref.m if max_support is None else int(max_support)
        path = _published(ref, most, learn, refit, variant, float(tol), step, int(max_iter))
    if validation is not None:
        path.best_n_support = path._best_size(*validation)
    return path


def _check(max_support: Any, tol: Any, step: Any, variant: Any, bias: Any, refit: Any, max_iter: Any, cache: Any) -> None:
    """Refuse parameters that no data could make right."""

    def number(value: Any) -> bool:
        return isinstance(value, Real) and not isinstance(value, bool) and bool(np.isfinite(float(value)))

    def whole(value: Any, low: int) -> bool:
        return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= low

    if max_support is not None and not whole(max_support, 0):
        raise ValueError(f"max_support={max_support!r} must be a whole number >= 0 or None")
    if not number(tol) or tol <= 0:
        raise ValueError(f"tol={tol!r} must be a number > 0")
    if step != "polyak" and (not number(step) or step <= 0):
        raise ValueError(f"step={step!r} must be 'polyak' or a number > 0")
    if variant not in ("projection", "aggressive", "basic"):
        raise ValueError(f"variant={variant!r} is none of 'projection', 'aggressive', 'basic'")
    if bias not in ("learn", "keep"):
        raise ValueError(f"bias={bias!r} is neither 'learn' nor 'keep'")
    if not isinstance(refit, bool | np.bool_):
        raise ValueError(f"refit={refit!r} must be True or False")
    if variant == "projection" and not refit:
        raise ValueError("refit=False needs variant='aggressive' or 'basic': 'projection' chooses vectors only")
    if not whole(max_iter, 1):
        raise ValueError(f"max_iter={max_iter!r} must be a whole number >= 1")
    if not number(cache) or cache <= 0:
        raise ValueError(f"cache_size={cache!r} must be a number > 0")


def _merged(orders: list[Array], most: int) -> tuple[Array, list[Array]]:
    """The distinct vectors of several sequences, taken in turn, and for each sequence its sizes of the union.

    The k-th number of a share is the size of the union from which the sequence has its first k vectors.
    """
    if len(orders) == 1:
        order = orders[0][:most]
        return order, [np.arange(1, len(order) + 1)]
    union: dict[int, int] = {}
    shares: list[list[int]] = [[] for _ in orders]
    for k in range(max((len(order) for order in orders), default=0)):
        for order, share in zip(orders, shares, strict=True):
            if k < len(order) and len(share) == k:
                row = int(order[k])
                if row not in union:
                    if len(union) == most:
                        continue
                    union[row] = len(union) + 1
                share.append(max(union[row], share[-1] if share else 0))
    return np.array(list(union), dtype=np.int64), [np.array(share, dtype=np.int64) for share in shares]


def _published(
    ref: Reference, most: int, learn: bool, refit: bool, variant: str, tol: float, step: Any, max_iter: int
) -> SparsePath:
    runs = []
    for pair in ref.pairs:
        plain = ref.scores(pair, pair.rows)
        at = np.searchsorted(pair.rows, pair.support)
        squared_norm = max(0.0, float(pair.coef @ plain[at]))
        runs.append(
            _slant.run(
                ref.part(pair),
                pair.sign,
                plain,
                pair.bias,
                squared_norm=squared_norm,
                tol=tol,
                step=step,
                aggressive=variant == "aggressive",
                learn=learn,
                max_support=most,
                max_iter=max_iter,
                usable=pair.cost > 0,
            )
        )
    orders = [pair.rows[np.array(run.order, dtype=np.int64)] for pair, run in zip(ref.pairs, runs, strict=True)]
    order, shares = _merged(orders, most)
    return SparsePath(ref, order, variant=variant, refit=refit, learn=learn, runs=runs, starts=[], shares=shares)


def _projected(ref: Reference, most: int, learn: bool) -> SparsePath:
    orders, starts = [], []
    for pair in ref.pairs:
        candidates = _candidates(pair, most)
        order, u = project(ref.rows, candidates, ref.scores(pair, candidates), most)
        orders.append(order)
        starts.append(u)
    order, shares = _merged(orders, most)
    # with several pairs each has vectors of the others, too, and its coordinates are other ones
    starts = starts if len(orders) == 1 else []
    return SparsePath(
        ref, order, variant="projection", refit=True, learn=learn, runs=[], starts=starts, shares=shares
    )


def _candidates(pair: Pair, wanted: int) -> Array:
    """Rows among which support vectors are chosen: all, or a sample that is half support vectors, and half not.

    Others than support vectors count: those beyond the margin lie where the function is smooth. Each half has as many
    of either class as there are.
    """
    rows = pair.rows[pair.cost > 0]
    limit = min(MOST, max(FEWEST, EACH * wanted))
    if len(rows) <= limit:
        return rows
    sign = np.zeros(int(pair.rows[-1]) + 1)
    sign[pair.rows] = pair.sign
    held = np.isin(rows, pair.support)
    random = np.random.default_rng(0)
    chosen: list[Array] = []
    room = limit
    groups = [rows[held & (sign[rows] == s)] for s in (1, -1)] + [rows[~held & (sign[rows] == s)] for s in (1, -1)]
    for k, group in enumerate(sorted(groups, key=len)):
        take = min(len(group), room // (4 - k))
        chosen.append(random.permutation(group)[:take])
        room -= take
    return np.sort(np.concatenate(chosen))
