"""SVC with many classes: what the core solves, certifies and decides for all pairs, against one pair at a time."""

import pickle
import signal
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracles import optimum
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC as ScikitSVC
from sklearn.utils.multiclass import _ovr_decision_function

from pegasos import SMO, SVC, _core, io
from pegasos.fit.engine import Options
from pegasos.kernels.functions import Kernel
from pegasos.kernels.gram import PartRows
from pegasos.kernels.pairs import PairMachine, class_starts, pair_count, pairs_of
from pegasos.losses import Hinge
from pegasos.problems import pair_parts, pair_visits
from pegasos.problems.kernel import KernelProblem
from pegasos.problems.pair_parts import PairIndices, PairParts
from pegasos.problems.pairs import PairProblem
from pegasos.problems.part import Part
from pegasos.solvers.kernel import whole_smo


def blobs(classes, each, seed=0, columns=5):
    """Classes of so many rows (a number, or one for each) that overlap, in random order."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(classes), each)
    X = rng.normal(size=(classes, columns))[y] + 0.7 * rng.normal(size=(len(y), columns))
    order = rng.permutation(len(y))
    return X[order], y[order]


# --- decisions -------------------------------------------------------------------------------------------------------


def functions(machine, K):
    """The scores of all pairs, one at a time."""
    starts, out = class_starts(machine.sizes), []
    for p, (i, j) in enumerate(combinations(range(machine.classes), 2)):
        own, other = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
        first = machine.coef[j - 1, own] @ K[own].astype(float)
        out.append(first + machine.coef[i, other] @ K[other].astype(float) + machine.bias[p])
    return np.array(out).T


def winner(scores, rank):
    """LIBSVM's rule, with the classes in the order of their ranks, for one row."""
    k, wins = len(rank), np.zeros(len(rank))
    for score, (i, j) in zip(scores, combinations(range(k), 2), strict=True):
        if rank[i] < rank[j]:
            wins[i if score > 0 else j] += 1
        else:
            wins[j if -score > 0 else i] += 1
    return min(range(k), key=lambda c: (-wins[c], rank[c]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("classes", [3, 8, 17, 33, 70])
def test_decisions_of_all_pairs(classes, dtype):
    rng = np.random.default_rng(classes)
    sizes = rng.integers(0, 12, size=classes)
    sizes[0] = 20
    # Small whole numbers: sums are exact in any order, and scores of zero and ties are frequent.
    coef = rng.integers(-1, 2, size=(classes - 1, sizes.sum())).astype(float)
    bias = rng.integers(-1, 2, size=pair_count(classes)).astype(float)
    for rank in (np.arange(classes), rng.permutation(classes)):
        machine = PairMachine(coef, sizes, bias, rank, 2)
        for rows in (1, 2, 8, 9, 16, 17, 40):
            K = np.zeros((sizes.sum(), -(-rows // 8) * 8), dtype=dtype)
            K[:, :rows] = rng.integers(-1, 2, size=(sizes.sum(), rows))
            expected = functions(machine, K[:, :rows])
            assert_array_equal(machine.scores(K, rows), expected)
            votes = np.array([winner(row, rank) for row in expected])
            found, bad = machine.winners(K, rows)
            assert bad == -1
            assert_array_equal(found, votes)
            assert_array_equal(machine.winners_by(expected), votes)
            theirs = _ovr_decision_function(expected < 0, -expected, classes)
            assert_allclose(machine.decisions(K, rows), theirs, rtol=1e-14)
            if rows > 2:
                K[-1, 2] = np.nan
                assert machine.winners(K, rows)[1] == (2 if coef[:, -1].any() or sizes[-1] else -1)
    assert_array_equal(machine.table() @ np.eye(sizes.sum()), machine.weights(np.eye(sizes.sum())))
    assert_allclose(machine.largest_norm(), np.sqrt((machine.table() ** 2).sum(axis=1).max()))


def test_numbers_of_pairs():
    k = 6
    pairs = list(combinations(range(k), 2))
    for i in range(k):
        first, second = pairs_of(i, k)
        assert [pairs[p] for p in range(*first.indices(len(pairs)))] == [(i, j) for j in range(i + 1, k)]
        assert [pairs[p] for p in second] == [(h, i) for h in range(i)]


def test_no_table_of_pairs_is_made(monkeypatch):
    X, y = blobs(12, 6)
    model = SVC().fit(X, y)
    monkeypatch.setattr(PairMachine, "table", lambda self: pytest.fail("a table of pairs × support vectors"))
    model.predict(X)
    model.decision_function(X)
    model.set_params(decision_function_shape="ovo").decision_function(X)
    assert SVC(kernel="linear").fit(X, y).coef_.shape == (66, 5)


# --- fits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("together", [0, 12, 1000])
@pytest.mark.parametrize("C", [0.5, 1000.0])
def test_bounds_of_every_pair(together, C, monkeypatch):
    """D ≤ P* ≤ P, by an independent QP, for pairs put together from strips of kernel values and for others."""
    monkeypatch.setattr(pair_visits, "MAX_JOINT_ROWS", together)
    monkeypatch.setattr(pair_visits, "STRIP_VALUES", 100)
    X, y = blobs(5, [1, 2, 9, 14, 5])
    weight = np.random.default_rng(1).uniform(0.2, 2.0, size=len(y))
    model = SVC(C=C, gamma=0.4, tol=1e-5).fit(X, y, weight)
    c = model.certificate_
    assert c.converged
    values, vectors = np.linalg.eigh(rbf_kernel(X, gamma=0.4))
    features = vectors * np.sqrt(np.maximum(values, 0))
    scores = model.set_params(decision_function_shape="ovo").decision_function(X)
    table = model._pair_machine().table()
    lam = 1 / (C * weight.sum())
    for p, (i, j) in enumerate(combinations(range(5), 2)):
        rows = np.flatnonzero((y == i) | (y == j))
        sign = np.where(y[rows] == i, 1.0, -1.0)
        own = 1 / (C * weight[rows].sum())
        best = optimum(features[rows], sign, loss="hinge", lam=own, weight=weight[rows], bias="unregularized")
        best = best.primal / own * lam
        assert c.dual_per_class[p] <= best * (1 + 1e-9)
        assert best <= c.primal_per_class[p] * (1 + 1e-9)
        w = table[p] @ features[model.support_]
        loss = weight[rows] @ np.maximum(0.0, 1 - sign * scores[rows, p]) / weight.sum()
        assert c.primal_per_class[p] == pytest.approx(0.5 * lam * w @ w + loss, rel=1e-9)


@pytest.mark.parametrize("classes", [3, 40])
def test_the_same_as_scikit_learn(classes):
    X, y = blobs(classes, 7)
    ours, theirs = SVC(C=10, tol=1e-10).fit(X, y), ScikitSVC(C=10, tol=1e-10).fit(X, y)
    rows = np.random.default_rng(0).normal(size=(300, 5))
    assert_array_equal(ours.predict(rows), theirs.predict(rows))
    assert_allclose(ours.decision_function(rows), theirs.decision_function(rows), atol=1e-5)
    shape = {"decision_function_shape": "ovo"}
    found, expected = (m.set_params(**shape).decision_function(rows) for m in (ours, theirs))
    assert_allclose(found, expected, atol=1e-5)
    assert_array_equal(ours.predict(rows[:1]), theirs.predict(rows[:1]))


def test_layouts_kernels_and_threads_give_the_same():
    X, y = blobs(9, 6)
    X = np.where(np.abs(X) > 0.5, X, 0)
    model = SVC(gamma=0.4, tol=1e-8).fit(X, y)
    K, rows = rbf_kernel(X, gamma=0.4), X[:20]
    expected = model.decision_function(rows)
    for other, train, test in (
        (SVC(kernel="precomputed", tol=1e-8), K, K[:20]),
        (SVC(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.4), tol=1e-8), X, rows),
        (SVC(gamma=0.4, tol=1e-8), sparse.csr_matrix(X), sparse.csr_matrix(rows)),
        (SVC(gamma=0.4, tol=1e-8, n_jobs=2), X, rows),
    ):
        other.fit(train, y)
        assert_allclose(other.decision_function(test), expected, atol=1e-6)
        assert_array_equal(other.predict(test), model.predict(rows))
    again = SVC(gamma=0.4, tol=1e-8, n_jobs=2).fit(X, y)
    assert_array_equal(again.dual_coef_, model.dual_coef_)
    assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(rows), expected)


def test_one_against_the_rest_shares_a_matrix():
    X, y = blobs(12, 6)
    model = SVC(multi_class="ovr", gamma=0.4, tol=1e-9).fit(X, y)
    for k, column in enumerate(model.decision_function(X).T):
        alone = ScikitSVC(gamma=0.4, tol=1e-10).fit(X, y == k)
        assert_allclose(column, alone.decision_function(X), atol=1e-5)
    assert model.n_kernel_evaluations_ == len(X) ** 2


def test_hard_pairs_are_helped_by_newtons_method():
    rng = np.random.default_rng(0)
    X, y = rng.normal(loc=100, size=(90, 2)), rng.integers(0, 3, size=90)
    model = SVC(kernel="poly", coef0=1.0).fit(X, y)
    assert model.certificate_.converged
    assert model.n_iter_.max() > whole_smo.STEPS_PER_CALL


def test_weights_are_repetitions():
    X, y = blobs(6, 5)
    weight = np.random.default_rng(0).integers(0, 3, size=len(y))
    weight[np.unique(y, return_index=True)[1]] = 1
    rows = np.repeat(np.arange(len(y)), weight)
    weighted, repeated = SVC(gamma=0.4, tol=1e-9).fit(X, y, weight), SVC(gamma=0.4, tol=1e-9).fit(X[rows], y[rows])
    assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-6)
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-9)


# --- the loop around it ----------------------------------------------------------------------------------------------


def many(classes=6, each=8):
    """A problem of pairs, and one of each class against the rest."""
    X, y = blobs(classes, each)
    kernel, m = Kernel("rbf", 0.5), len(y)
    pairs = PairParts(y, classes, np.ones(m), Hinge(), 1.0)
    whole = [Part(None, np.where(y == k, 1.0, -1.0), np.ones(m), Hinge(), 1.0) for k in range(classes)]
    return [
        PairProblem(X, kernel, pairs, 1 / m, float(m), PartRows(X, kernel, PairIndices(pairs), 200.0, 1)),
        KernelProblem(X, kernel, whole, 1 / m, float(m), PartRows(X, kernel, [None] * classes, 200.0, 1)),
    ]


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("together", [0, 1000])
@pytest.mark.parametrize("bias", ["free", "none"])
def test_resumed_is_straight(bias, kind, together, monkeypatch):
    monkeypatch.setattr(whole_smo, "WORK_PER_CALL", 1)
    monkeypatch.setattr(pair_visits, "MAX_JOINT_ROWS", together)

    def one_more():
        return SMO().engine(replace(many()[kind], bias=bias), Options(tol=1e-6, seed=0))

    engine = one_more()
    assert isinstance(engine, whole_smo.WholeSMOEngine)
    states = []
    while not engine.due(1e-6):
        states.append({name: array.copy() for name, array in engine.state().items()})
        engine.advance()
    assert len(states) >= engine.problem.n_parts / 2
    for state in states[:: len(states) // 4]:
        resumed = one_more()
        resumed.restore(state)
        while not resumed.due(1e-6):
            resumed.advance()
        for name in ("gamma", "steps", "over"):
            assert_array_equal(resumed.state()[name], engine.state()[name])
        for name in ("primal", "dual", "bias"):
            assert_array_equal(getattr(resumed, name), getattr(engine, name))


@pytest.mark.parametrize("kind", [0, 1])
def test_a_state_is_believed_in_nothing(kind):
    engine = SMO().engine(many()[kind], Options(tol=1e-3, seed=0))
    engine.advance()
    good = engine.state()
    moved = good["gamma"].copy()
    at = np.unravel_index(np.argmax((moved > 0) & (moved < 0.9)), moved.shape)
    moved[at] *= 0.5
    for name, value, message in (
        ("gamma", np.where(good["gamma"] == good["gamma"].max(), 7.0, good["gamma"]), "outside its bounds"),
        ("gamma", moved, "does not add up to zero"),
        ("gamma", good["gamma"][:1], "shape"),
        ("over", good["over"] + 9, "outside"),
        ("steps", good["steps"] + 0.5, "not whole"),
        ("aim", -good["aim"], "outside"),
    ):
        fresh = SMO().engine(many()[kind], Options(tol=1e-3, seed=0))
        with pytest.raises(ValueError, match=message):
            fresh.restore(good | {name: value})


@pytest.mark.parametrize("options", [{}, {"C": 100.0, "max_iter": 3}], ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_stretches_of_pairs_change_nothing(options, monkeypatch):
    """Of most pairs little is kept; however many are looked at together, the bits are the same."""
    X, y = blobs(9, 5)
    whole = SVC(**options).fit(X, y)
    monkeypatch.setattr(pair_parts, "STRETCH_PAIRS", 3)
    parts = PairParts(y, 9, np.ones(len(y)), Hinge(), 1.0)
    begins, ends = zip(*parts.stretches(), strict=True)
    assert len(begins) == 7
    assert (0, *ends) == (*begins, len(parts))
    pieces = SVC(**options).fit(X, y)
    assert_array_equal(pieces.dual_coef_, whole.dual_coef_)
    assert_array_equal(pieces.intercept_, whole.intercept_)
    assert_array_equal(pieces.n_iter_, whole.n_iter_)
    assert pieces.certificate_.primal_per_class == whole.certificate_.primal_per_class
    assert pieces.certificate_.dual_per_class == whole.certificate_.dual_per_class
    assert pieces.certificate_.reason == whole.certificate_.reason


def test_the_core_looks_at_no_other_parts():
    core = _core.WholeSMO(1.0, 0.1, 10.0, 1e-3, 10, 10, 0, 0.0, True)
    room, K, table = [np.zeros(3) for _ in range(5)], np.zeros((2, 8)), np.zeros((3, 4))
    starts, weight = np.arange(5), np.ones(4)
    core.look_at(2, *room, np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int8))
    for i, j in ((0, 1), (0, 2), (2, 3)):  # pairs 0, 1 and 5
        with pytest.raises(IndexError, match="part"):
            core.visit_pair(starts, weight, table, i, j, K)
    with pytest.raises(IndexError, match="part"):
        core.visit(K, np.ones(2), np.ones(2), np.zeros(2), 5)
    with pytest.raises(MemoryError):
        _core.raw_matrix(-1, 8)


@pytest.mark.parametrize("kind", [0, 1])
def test_a_point_is_a_copy_where_the_state_may_be_asked_for(kind):
    for resumable in (True, False):
        engine = SMO().engine(many()[kind], Options(tol=1e-3))
        engine.resumable = resumable
        assert not np.shares_memory(engine.point().model.coef, engine.alpha)  # the fit goes on
        while not engine.due(1e-3):
            engine.advance()
        assert np.shares_memory(engine.point().model.coef, engine.alpha) == (not resumable)


def test_steps_are_limited_for_each_pair():
    X, y = blobs(8, 6)
    with pytest.warns(ConvergenceWarning, match="max_iter reached"):
        model = SVC(C=100, max_iter=3).fit(X, y)
    assert model.n_iter_.max() == 3
    assert model.certificate_.reason == "max_iter reached"
    assert model.certificate_.dual <= SVC(C=100, tol=1e-6).fit(X, y).certificate_.primal <= model.certificate_.primal


def test_the_callback_sees_what_would_be_fitted():
    X, y = blobs(5, [3, 4, 5, 6, 2])
    seen = []
    model = SVC(gamma=0.4, callback=seen.append).fit(X, y)
    assert_array_equal(seen[-1].coef, model.dual_coef_)
    assert_array_equal(seen[-1].support, model.support_)
    assert_array_equal(seen[-1].intercept, model.intercept_)


@pytest.mark.parametrize("keep", [True, False])
def test_interrupts_and_checkpoints(keep, tmp_path, monkeypatch):
    monkeypatch.setattr(whole_smo, "WORK_PER_CALL", 1)
    X, y = blobs(12, 6)
    advance, calls = whole_smo.WholeSMOEngine.advance, []

    def interrupted(self):
        advance(self)
        calls.append(0)
        if len(calls) == 9:
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr(whole_smo.WholeSMOEngine, "advance", interrupted)
        options = {"checkpoint": tmp_path / "fit", "checkpoint_every": 0.0}
        model = SVC(on_interrupt="keep" if keep else "raise", **options)
        if keep:
            assert model.fit(X, y).certificate_.reason == "interrupted"
            assert 0 <= model.certificate_.dual <= model.certificate_.primal
        else:
            with pytest.raises(KeyboardInterrupt):
                model.fit(X, y)
        assert (tmp_path / "fit").exists()
        resumed = model.fit(X, y)
    finally:
        signal.signal(signal.SIGINT, before)
    straight = SVC().fit(X, y)
    assert_array_equal(resumed.dual_coef_, straight.dual_coef_)
    assert_array_equal(resumed.intercept_, straight.intercept_)
    assert resumed.certificate_.primal_per_class == straight.certificate_.primal_per_class
    assert not (tmp_path / "fit").exists()


def test_time_is_limited(monkeypatch):
    monkeypatch.setattr(whole_smo, "WORK_PER_CALL", 1)
    X, y = blobs(12, 6)
    with pytest.warns(ConvergenceWarning, match="max_time reached"):
        model = SVC(max_time=1e-9).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    best = SVC(tol=1e-9).fit(X, y).certificate_
    assert model.certificate_.dual <= best.primal
    assert best.dual <= model.certificate_.primal


def test_kernel_values_that_overflow_are_named():
    X, y = blobs(4, 4)
    X[7] *= 1e120
    with pytest.raises(ValueError, match=r"the kernel of rows 0 and 7 is inf: scale the features"):
        SVC(kernel="poly", degree=3, gamma=1.0).fit(X, y)


def test_a_thousand_classes(tmp_path):
    """Half a million pairs: quick, or this test would be noticed."""
    X, y = blobs(1000, 2, columns=8)
    model = SVC(gamma=0.5).fit(X, y)
    assert model.certificate_.converged
    assert (model.dual_coef_.shape, model.intercept_.shape) == ((999, 2000), (499_500,))
    theirs = ScikitSVC(gamma=0.5).fit(X, y)
    assert np.mean(model.predict(X[:100]) == theirs.predict(X[:100])) > 0.98
    assert_array_equal(model.predict(X[:1]), model.predict(X[:20])[:1])
    io.write_libsvm(SVC(gamma=0.5).fit(X[y < 30], y[y < 30]), tmp_path / "model")
    assert io.read_libsvm(tmp_path / "model").score(X[y < 30], y[y < 30]) > 0.9
