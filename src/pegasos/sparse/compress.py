"""Compressing fitted kernel classifiers to few support vectors."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal, TypeGuard

import numpy as np

from pegasos.kernels.pairs import class_starts
from pegasos.rows.views import Array
from pegasos.sparse import published
from pegasos.sparse.pair_compression import project_pairs
from pegasos.sparse.path import SparsePath
from pegasos.sparse.reduced import reduced_set
from pegasos.sparse.reference import Pair, PairsOfClasses, Reference
from pegasos.sparse.refine import DEFAULT_WORK, movable, suited
from pegasos.sparse.span import project
from pegasos.util.suggest import did_you_mean
from pegasos.util.threads import with_one_blas_thread

Variant = Literal["projection", "aggressive", "basic"]
Move = bool | Literal["auto", "nested"]

#: Candidates for each support vector wanted: rows themselves, or rows where the search for a point begins; and limits.
CANDIDATES_PER_ROW, CANDIDATES_PER_POINT, MIN_CANDIDATES, MAX_CANDIDATES = 24, 12, 4000, 20000

#: Of searches for points: the exponent in the choice of where they begin, their steps at most, the relative gain of a
#: step below which they end, and how many go through the rows together.
START_POWER, MAX_SEARCH_STEPS, MIN_SEARCH_GAIN, SEARCHES_PER_BATCH = 0.25, 5, 0.02, 32

#: The share of the reference's support vectors that is kept by default.
DEFAULT_SHARE = 0.1


@with_one_blas_thread
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
    move: Move = "auto",
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
        Learn a new bias, or keep the reference's. That of a reference without one (``fit_intercept=False``) stays 0.
    refit : bool, default=True
        Fit the coefficients of the chosen vectors anew, on all rows with the squared hinge loss ½·3C·slack², C the
        reference's: few vectors cannot follow single rows, and may be held to all of them more strictly. False, which
        "projection" does not have: those of the paper, with its guarantee.
    move : bool, "auto" or "nested", default="auto"
        Whether support vectors may be other points than rows of X (``support_`` then says at which rows the searches
        for them began), for kernel="rbf" and two classes. "nested": "projection" finds points instead of rows, better
        by far at few vectors, and those of a model are among those of every larger one. True: for each size they then
        move to where the objective of the refit is lower, in steps that take time. "auto": the points, which move for
        sizes where that is quick; False beyond 512 columns, since points are dense. False: rows.
    validation : tuple (X, y), default=None
        Rows that choose the size which ``path.at()`` returns.
    max_iter : int, default=1000000
        Most steps of the published variants, for each pair of classes.
    cache_size : float, default=200
        Megabytes of kernel rows kept.
    n_jobs : int, default=None
        Threads, used where they pay; the same bits for any number. None: those of the model, or one. −1: all
        processors this process may use.

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
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(400, noise=0.3, random_state=0)
    >>> model = SVC(C=10, gamma=1).fit(X, y)
    >>> small = sparsify(model, X, y, max_support=12).at(12)
    >>> len(model.support_) > 80, len(small.support_)
    (True, 12)
    >>> bool(small.score(X, y) > model.score(X, y) - 0.02)
    True
    """
    check_parameters(max_support, tol, step, variant, bias, refit, max_iter, cache_size)
    check_move(move, refit, variant)
    n_jobs = getattr(model, "n_jobs", None) if n_jobs is None else n_jobs
    ref = Reference(model, X, y, sample_weight, float(cache_size), n_jobs)
    learn = bias == "learn" and bool(getattr(model, "fit_intercept", True))
    free, work = _freedom(move, refit, ref)
    if variant == "projection":
        most = max(1, int(np.ceil(DEFAULT_SHARE * ref.n_support))) if max_support is None else int(max_support)
        path = _projected(ref, most, learn, free, work)
    else:
        most = ref.m if max_support is None else int(max_support)
        path = _published(ref, most, learn, refit, work, variant, float(tol), step, int(max_iter))
    if validation is not None:
        path.best_n_support = path._best_size(*validation)
    return path


def check_parameters(
    max_support: object,
    tol: object,
    step: object,
    variant: object,
    bias: object,
    refit: object,
    max_iter: object,
    cache: object,
) -> None:
    """Refuse parameters that no data could make right."""

    def number(value: object) -> TypeGuard[float]:
        return isinstance(value, Real) and not isinstance(value, bool) and bool(np.isfinite(float(value)))

    def whole(value: object, low: int) -> TypeGuard[int]:
        return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= low

    if max_support is not None and not whole(max_support, 0):
        raise ValueError(f"max_support={max_support!r} must be a whole number >= 0 or None")
    if not number(tol) or tol <= 0:
        raise ValueError(f"tol={tol!r} must be a number > 0")
    if not (isinstance(step, str) and step == "polyak") and (not number(step) or step <= 0):
        raise ValueError(f"step={step!r} must be 'polyak' or a number > 0")
    variants = ("projection", "aggressive", "basic")
    if not isinstance(variant, str) or variant not in variants:
        hint = did_you_mean(variant, variants)
        raise ValueError(f"variant={variant!r} is none of 'projection', 'aggressive', 'basic'{hint}")
    if not isinstance(bias, str) or bias not in ("learn", "keep"):
        raise ValueError(f"bias={bias!r} is neither 'learn' nor 'keep'{did_you_mean(bias, ('learn', 'keep'))}")
    if not isinstance(refit, bool | np.bool_):
        raise ValueError(f"refit={refit!r} must be True or False")
    if variant == "projection" and not refit:
        raise ValueError("refit=False needs variant='aggressive' or 'basic': 'projection' chooses vectors only")
    if not whole(max_iter, 1):
        raise ValueError(f"max_iter={max_iter!r} must be a whole number >= 1")
    if not number(cache) or cache <= 0:
        raise ValueError(f"cache_size={cache!r} must be a number > 0")


def _merged(counts: Array, rows: Array, most: int) -> tuple[Array, Array, Array]:
    """The distinct vectors of several sequences, taken in turn, and how far each sequence comes with them.

    ``rows`` has so many numbers of each sequence as ``counts`` says. Of each sequence there are returned the length of
    the part that is in the union and, in the layout of ``rows``, the size of the union from which it has its first k.
    """
    begins = class_starts(counts)[:-1]
    place = np.zeros(int(rows.max(initial=-1)) + 1, dtype=np.int64)  # in the union, from 1 on
    union, size = [np.empty(0, dtype=np.int64)], 0
    on, lengths, shares = np.flatnonzero(counts), np.zeros_like(counts), np.zeros_like(rows)
    last, k = np.zeros_like(counts), 0
    while len(on):
        next_ = rows[begins[on] + k]
        fresh = next_[place[next_] == 0]
        new = fresh[np.sort(np.unique(fresh, return_index=True)[1])][: most - size]
        place[new] = np.arange(size + 1, size + 1 + len(new))
        union.append(new)
        size += len(new)
        # a sequence whose next vector finds no room ends there
        on, next_ = on[place[next_] > 0], next_[place[next_] > 0]
        last[on] = shares[begins[on] + k] = np.maximum(last[on], place[next_])
        k += 1
        lengths[on] = k
        on = on[counts[on] > k]
    return np.concatenate(union), lengths, shares


def _published(
    ref: Reference,
    most: int,
    learn: bool,
    refit: bool,
    work: float,
    variant: str,
    tol: float,
    step: float | Literal["polyak"],
    max_iter: int,
) -> SparsePath:
    runs = []
    for pair in ref.pairs:
        plain = ref.scores(pair, pair.rows)
        at = np.searchsorted(pair.rows, pair.support)
        squared_norm = max(0.0, float(pair.coef @ plain[at]))
        runs.append(
            published.run(
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
    counts = np.array([len(order) for order in orders])
    order, lengths, sizes = _merged(counts, np.concatenate(orders), most)
    shares = [sizes[begin : begin + length] for begin, length in zip(class_starts(counts), lengths, strict=False)]
    return SparsePath(ref, order, variant=variant, refit=refit, learn=learn, runs=runs, shares=shares, work=work)


def _projected(ref: Reference, most: int, learn: bool, free: bool, work: float) -> SparsePath:
    numbers, counts, rows = np.empty((3, 0), dtype=np.int64)
    if isinstance(ref.pairs, PairsOfClasses):
        numbers, counts, rows = project_pairs(ref, ref.pairs, most)
    left, orders, points = np.setdiff1d(np.arange(len(ref.pairs)), numbers), [], None
    for p in left.tolist():
        pair = ref.pairs[p]
        candidates = _candidates(pair, most * (CANDIDATES_PER_POINT if free else CANDIDATES_PER_ROW))
        plain = ref.scores(pair, candidates, approximate=True)
        if free:
            V, starts = ref.X[pair.support], ref.X[candidates]
            points = reduced_set(
                V,
                pair.coef,
                ref.kernel.gamma,
                starts,
                plain,
                most,
                power=START_POWER,
                steps=MAX_SEARCH_STEPS,
                gain=MIN_SEARCH_GAIN,
                together=SEARCHES_PER_BATCH,
                single=ref.rows.dtype == np.float32,
                threads=ref.threads,
            )
            orders.append(candidates[points.starts])
        else:
            orders.append(project(ref.rows, candidates, plain, most))
    counts = np.concatenate([counts, [len(order) for order in orders]]).astype(np.int64)
    turn = np.argsort(np.concatenate([numbers, left]))
    rows = _rearranged(np.concatenate([rows, *orders]), counts, turn)
    order = _merged(counts[turn], rows, most)[0]
    return SparsePath(
        ref, order, variant="projection", refit=True, learn=learn, runs=[], shares=[], points=points, work=work
    )


def _rearranged(rows: Array, counts: Array, turn: Array) -> Array:
    """Sequences of so many numbers, one after the other, in another order."""
    begins, ends = class_starts(counts)[turn], np.cumsum(counts[turn])
    return np.asarray(rows[np.arange(len(rows)) + np.repeat(begins - (ends - counts[turn]), counts[turn])])


def check_move(move: object, refit: bool, variant: str) -> None:
    if not isinstance(move, bool | np.bool_) and move not in ("auto", "nested"):
        raise ValueError(f"move={move!r} must be True, False, 'auto' or 'nested'")
    if move not in (False, "auto") and not refit:
        raise ValueError(f"move={move!r} needs refit=True: vectors that move need other coefficients")
    if move == "nested" and variant != "projection":
        raise ValueError(f"move='nested' needs variant='projection': {variant!r} chooses rows")


def _freedom(move: bool | str, refit: bool, ref: Reference) -> tuple[bool, float]:
    """Whether vectors may be no rows, and how much work may go into moving them; refuse what cannot be."""
    able = len(ref.pairs) == 1 and movable(ref.kernel, ref.X)
    if move not in (False, "auto") and not able:
        raise ValueError(
            f"move={move!r} needs kernel='rbf', two classes, and features of moderate size; leave it 'auto'"
        )
    if not refit or not able or not move or (move == "auto" and not suited(ref.X)):
        return False, 0.0
    return True, {"auto": DEFAULT_WORK, "nested": 0.0}.get(str(move), np.inf)


def _candidates(pair: Pair, wanted: int) -> Array:
    """Rows among which support vectors are chosen, or at which searches for them begin.

    All rows, or a sample with as many of each class, support vectors or not, as there are. Others than support vectors
    count: those beyond the margin lie where the function is smooth.
    """
    rows = pair.rows[pair.cost > 0]
    limit = min(MAX_CANDIDATES, max(MIN_CANDIDATES, wanted))
    if len(rows) <= limit:
        return rows
    sign = np.zeros(int(pair.rows[-1]) + 1)
    sign[pair.rows] = pair.sign
    held = np.isin(rows, pair.support)
    random = np.random.default_rng(0)
    chosen, room = [], limit
    groups = [rows[(held == own) & (sign[rows] == s)] for own in (True, False) for s in (1, -1)]
    for k, group in enumerate(sorted(groups, key=len)):
        take = min(len(group), room // (4 - k))
        chosen.append(random.permutation(group)[:take])
        room -= take
    return np.sort(np.concatenate(chosen))
