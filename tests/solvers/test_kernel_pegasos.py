"""Kernel Pegasos: the decisions of the printed algorithm whatever the blocks, linear Pegasos, bounds, streams."""

import pickle
import re
import signal
import threading
import warnings
from pathlib import Path

import numpy as np
import oracles as o
import pytest
from batch_oracles import batches
from conftest import ORACLE_BIAS, SCALAR, advance, features, kernel_problem, oracle, problem, toy
from hypothesis import given, settings
from hypothesis import strategies as st
from judging import judged
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise

from pegasos import SDCA, SVC, SVR, LinearSVC, LinearSVR, Norma, Pegasos, _core, losses
from pegasos.fit.engine import Options
from pegasos.fit.loop import Limits, Watch, run
from pegasos.kernels.functions import Kernel
from pegasos.losses import Hinge
from pegasos.solvers import kernel_solver, resolve
from pegasos.solvers.kernel.pegasos import Progress

SAMPLINGS = ("iid", "fixed", "permutation", "subset")
TIGHT = {"rtol": 1e-10, "atol": 1e-12}
RBF = Kernel("rbf", 0.5)

every = pytest.mark.parametrize("loss", SCALAR, ids=repr)


def test_progress_has_the_names_and_the_order_of_the_core():
    header = Path(__file__).parents[2] / "cpp" / "pegasos" / "kernel" / "steps.hpp"
    struct = re.search(r"struct PegasosProgress \{(.*?)\};", header.read_text(encoding="utf-8"), re.S)[1]
    fields = [name for line in re.findall(r"double ([^;]+);", struct) for name in line.split(", ")]
    assert fields == [number.name.lower() for number in Progress]


def safe_t0(loss):
    return 60.0 if loss.name.startswith("squared") else 0.0


def engine_of(p, solver, *, tol=-1.0, max_steps=10**6, seed=0):
    return resolve(solver, "kernel").engine(p, Options(tol=tol, max_steps=max_steps, seed=seed))


def certify(p, engine, tol=1e-3):
    return run(p, engine, Limits(tol, 2**60), Watch())


def quiet(model, *data, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*data, **more)


# --- the decisions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1, 3, 16, 256])
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_blocks_make_the_decisions_of_the_printed_algorithm(block, sampling, kernel, monkeypatch):
    monkeypatch.setattr("pegasos.solvers.kernel.blocks.BLOCK_ROWS", block)
    X, y = toy(Hinge(), 60)
    kind = RBF if kernel == "rbf" else Kernel("poly", 0.5, 1.0, 3)
    K = pairwise.rbf_kernel(X, gamma=0.5) if kernel == "rbf" else (0.5 * X @ X.T + 1) ** 3
    p = kernel_problem(X, y, Hinge(), 0.02, kernel=kind)
    engine = advance(engine_of(p, Pegasos(t0=0, sampling=sampling), seed=3), 4)
    order = [int(b[0]) for b in batches(60, 4, sampling=sampling, seed=3)]
    counts = o.kernel_counts(K, y, order, lam=0.02)
    assert counts.max() > 1
    np.testing.assert_array_equal(engine.own[0].U * y, counts)
    assert_allclose(engine.own[0].F, K @ (counts * y), **TIGHT)


@given(st.integers(1, 40), st.integers(0, 2**32), st.floats(1e-3, 1.0))
@settings(max_examples=25, deadline=None)
def test_any_block_makes_the_same_decisions(block, seed, lam):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(30, 2)), rng.choice([-1.0, 1.0], size=30)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pegasos.solvers.kernel.blocks.BLOCK_ROWS", block)
        engine = advance(engine_of(kernel_problem(X, y, Hinge(), lam, kernel=RBF), Pegasos(t0=0), seed=seed), 3)
    counts = o.kernel_counts(
        pairwise.rbf_kernel(X, gamma=0.5), y, [int(b[0]) for b in batches(30, 3, seed=seed)], lam=lam
    )
    np.testing.assert_array_equal(engine.own[0].U * y, counts)


@every
@pytest.mark.parametrize("k", [1, 7, 60])
@pytest.mark.parametrize("projection", [False, True])
def test_all_losses_batches_weights_and_projection(loss, k, projection, monkeypatch):
    """Blocks of at most 16 rows: batches of 7 share a block, the batch of all rows is longer than one."""
    monkeypatch.setattr("pegasos.solvers.kernel.blocks.BLOCK_ROWS", 16)
    X, y = toy(loss, 60)
    c, t0 = np.random.default_rng(0).uniform(0.2, 3, 60), safe_t0(loss)
    c[:3] = 0.0
    p = kernel_problem(X, y, loss, 0.03, kernel=RBF, weight=c)
    engine = advance(engine_of(p, Pegasos(batch_size=k, t0=t0, projection=projection)), 3)
    expected = o.kernel_pegasos(
        pairwise.rbf_kernel(X, gamma=0.5),
        y,
        batches(60, 3, k=k),
        lam=0.03,
        loss=oracle(loss),
        weight=c,
        t0=t0,
        projection=projection,
    )
    assert_allclose(engine.coefficients(), expected[-1], **TIGHT)


@every
@pytest.mark.parametrize("bias", ["none", "feature", "free"])
@pytest.mark.parametrize("output", ["last", "average", "suffix", "random"])
def test_the_linear_kernel_is_linear_pegasos(loss, bias, output):
    X, y = toy(loss)
    intercept = "unregularized" if bias == "free" else bias
    c = np.random.default_rng(0).uniform(0.2, 3, len(y))
    solver = Pegasos(batch_size=3, output=output, projection=bias == "feature")
    linear = solver.engine(problem(X, y, loss, 0.05, weight=c, bias=bias, feature=0.7), Options(intercept, 5))
    kernel = engine_of(kernel_problem(X, y, loss, 0.05, weight=c, bias=bias, feature=0.7), solver, seed=5)
    for epochs in (1, 2, 3, 5):
        advance(linear, epochs)
        advance(kernel, epochs)
        coef = kernel.coefficients()
        assert_allclose(coef @ X, linear.model()[0][0], rtol=1e-9, atol=1e-11)
        assert_allclose(kernel.point().duals, linear.duals()[:, 0], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("size", [1, 40])
@pytest.mark.parametrize("output", ["last", "average"])
def test_an_iterate_that_is_shrunk_without_end_keeps_its_digits(size, output, monkeypatch):
    """A projection so hard that π vanishes: everything is scaled by it now and then, within blocks and without."""
    monkeypatch.setattr("pegasos.solvers.kernel.blocks.BLOCK_ROWS", 32)
    X, y = toy(Hinge(), 40)
    X, solver = X * 1e6, Pegasos(t0=0, projection=True, batch_size=size, output=output)
    engine = advance(engine_of(kernel_problem(X, y, Hinge(), 1e-2), solver), 3)
    linear = advance(solver.engine(problem(X, y, Hinge(), 1e-2), Options("none", 0)), 3)
    # A sum of iterates is a difference of far longer sums.
    assert_allclose(engine.coefficients() @ X, linear.model()[0][0], rtol=1e-6 if output == "last" else 1e-3)
    assert_allclose(engine.point().duals, linear.duals()[:, 0], rtol=1e-6, atol=1e-9)


def test_estimators_of_the_linear_kernel_agree():
    X, y = toy(Hinge(), 60)
    for more in ({}, {"intercept": "feature", "intercept_scaling": 0.5}, {"fit_intercept": False}):
        shared = {"solver": Pegasos(batch_size=2), "lam": 0.1, "tol": 1e-12, "max_iter": 8, "random_state": 3} | more
        kernel, linear = quiet(SVC(kernel="linear", **shared), X, y), quiet(LinearSVC(**shared), X, y)
        assert_allclose(kernel.coef_, linear.coef_, rtol=1e-9)
        assert_allclose(kernel.intercept_, linear.intercept_, rtol=1e-9)
        assert kernel.certificate_.primal == pytest.approx(linear.certificate_.primal, rel=1e-9)
        assert kernel.certificate_.dual <= kernel.certificate_.primal
    X, y = toy(losses.Huber(), 60)
    shared = {"solver": "pegasos", "lam": 0.1, "tol": 1e-12, "max_iter": 8, "loss": "huber"}
    kernel, linear = quiet(SVR(kernel="linear", **shared), X, y), quiet(LinearSVR(**shared), X, y)
    assert_allclose(kernel.coef_[0], linear.coef_, rtol=1e-9)


# --- bounds ----------------------------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("bias", ["none", "feature", "free"])
def test_the_bounds_enclose_an_independent_optimum(loss, bias):
    X, y = toy(loss, 50)
    c = np.random.default_rng(1).uniform(0.2, 3, 50)
    p = kernel_problem(X, y, loss, 0.05, kernel=RBF, weight=c, bias=bias, feature=0.8)
    K = features(pairwise.rbf_kernel(X, gamma=0.5))
    best = o.optimum(K, y, loss=oracle(loss), lam=0.05, weight=c, bias=ORACLE_BIAS[bias], B=0.8).primal
    engine = engine_of(p, Pegasos(), tol=1e-3, max_steps=60)
    result = certify(p, engine)
    for record in result.trace:
        assert record.dual <= best * (1 + 1e-9) + 1e-12
        assert record.primal >= best * (1 - 1e-9)
        assert record.gap >= 0
    assert result.certificate.relative_gap < 0.1


@pytest.mark.parametrize("output", ["last", "average", "suffix", "random"])
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_outputs_and_orders_stay_within_the_bounds(output, sampling):
    X, y = toy(Hinge(), 50)
    p = kernel_problem(X, y, Hinge(), 0.05, kernel=RBF)
    best = o.optimum(features(pairwise.rbf_kernel(X, gamma=0.5)), y, loss="hinge", lam=0.05).primal
    result = certify(p, engine_of(p, Pegasos(output=output, sampling=sampling, batch_size=4), max_steps=20), 0.0)
    assert result.certificate.reason == "max_iter reached"
    assert 0 < result.certificate.dual <= best * (1 + 1e-9)
    assert best * (1 - 1e-9) <= result.certificate.primal < 1.2 * best


def test_the_free_estimate_is_the_certificate():
    X, y = toy(Hinge(), 80)
    p = kernel_problem(X, y, Hinge(), 0.02, kernel=RBF)
    engine = advance(engine_of(p, Pegasos()), 6)
    bounds = judged(engine)
    gap, primal = engine.own[0].estimate()
    assert primal == pytest.approx(bounds.primal[0], rel=1e-12)
    assert gap == pytest.approx(bounds.gap[0], rel=1e-9)


# --- estimators ------------------------------------------------------------------------------------------------------


def three_classes(m=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 3))
    return X, np.array(["a", "b", "c"])[np.digitize(X[:, 0] + 0.3 * rng.normal(size=m), [-0.4, 0.5])]


@pytest.mark.parametrize("solver", ["smo", "sdca", "pegasos"])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_one_vs_rest_is_a_machine_for_each_class(solver, layout, kernel):
    X, y = three_classes()
    shared = {"kernel": kernel, "gamma": 0.5, "lam": 0.02, "solver": solver}
    shared |= {"tol": 1e-6} if solver == "smo" else {"tol": 1e-12, "max_iter": 6}
    model = quiet(SVC(multi_class="ovr", **shared), layout(X), y)
    assert model.dual_coef_.shape == (3, len(model.support_))
    assert model.intercept_.shape == model.n_iter_.shape == (3,)
    assert model.n_support_.sum() == len(model.support_)
    scores = model.decision_function(layout(X))
    assert scores.shape == (120, 3)
    for k, label in enumerate("abc"):
        alone = quiet(SVC(**shared), layout(X), y == label)
        tolerance = {"atol": 0.01} if solver == "smo" else {"rtol": 1e-9, "atol": 1e-10}
        assert_allclose(scores[:, k], alone.decision_function(layout(X)), **tolerance)
    np.testing.assert_array_equal(model.predict(layout(X)), model.classes_[scores.argmax(axis=1)])
    assert model.score(layout(X), y) > 0.7
    assert len(model.certificate_.primal_per_class) == 3
    if kernel == "linear":
        coef = model.coef_.toarray() if sparse.issparse(model.coef_) else model.coef_
        assert_allclose(X @ coef.T + model.intercept_, scores, atol=1e-9)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(layout(X)), model.predict(layout(X)))


def test_one_vs_rest_shares_kernel_rows():
    X, y = three_classes(300)
    shared = {"gamma": 0.5, "lam": 0.02, "tol": 1e-12, "max_iter": 3, "solver": "sdca"}
    together = quiet(SVC(multi_class="ovr", cache_size=0.01, **shared), X, y).n_kernel_evaluations_
    apart = sum(quiet(SVC(cache_size=0.01, **shared), X, y == k).n_kernel_evaluations_ for k in "abc")
    assert together < 0.6 * apart


def test_one_vs_one_parts_without_shared_rows():
    X, y = three_classes(200)
    shared = {"gamma": 0.5, "lam": 0.02, "tol": 1e-12, "max_iter": 5, "solver": "pegasos"}
    one, other = quiet(SVC(**shared), X, y), quiet(SVC(cache_size=0.01, **shared), X, y)
    assert_allclose(other.decision_function(X), one.decision_function(X), atol=1e-9)
    assert other.n_kernel_evaluations_ > 0
    assert one.dual_coef_.shape[0] == 2


@pytest.mark.parametrize("solver", [Pegasos(), Pegasos(batch_size=300), SDCA()])
@pytest.mark.parametrize("kind", [SVC, SVR])
def test_threads_do_not_change_a_bit(solver, kind, monkeypatch):
    monkeypatch.setattr("pegasos.kernels.gram.MAX_DOUBLE_ROWS", 10)
    X, y = toy(Hinge(), 700)
    fits = [quiet(kind(gamma=0.5, solver=solver, max_iter=4, n_jobs=n), X, y) for n in (1, 2)]
    np.testing.assert_array_equal(fits[0].dual_coef_, fits[1].dual_coef_)
    assert fits[0].certificate_.dual == fits[1].certificate_.dual


@pytest.mark.parametrize("solver", [Pegasos(), SDCA()])
def test_single_precision_is_left_where_it_is_not_enough(solver, monkeypatch):
    X, y = toy(Hinge(), 120)
    shared = {"gamma": 0.5, "solver": solver, "lam": 0.5, "fit_intercept": False, "max_iter": 4000}
    tol = 1e-9 if isinstance(solver, SDCA) else 1e-5
    double = quiet(SVC(tol=tol, **shared), X, y)
    monkeypatch.setattr("pegasos.kernels.gram.MAX_DOUBLE_ROWS", 10)
    single = quiet(SVC(tol=tol, **shared), X, y)
    assert single.certificate_.converged
    assert single.certificate_.primal == pytest.approx(double.certificate_.primal, rel=2 * tol)


def test_seeds_and_counts():
    X, y = toy(Hinge(), 400)
    shared = {"gamma": 0.5, "solver": "pegasos", "tol": 1e-9, "max_iter": 2, "lam": 0.01}
    one, same, other = (quiet(SVC(random_state=s, **shared), X, y) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.dual_coef_, same.dual_coef_)
    assert not np.array_equal(one.decision_function(X), other.decision_function(X))
    assert one.n_iter_.tolist() == [2]
    assert one.certificate_.reason == "max_iter reached"
    # Blocks of 256 and 144 rows twice, and a row of the matrix for each row that ever moved.
    moved = one.n_kernel_evaluations_ - 2 * (256**2 + 144**2)
    assert moved % 400 == 0
    assert len(one.support_) * 400 <= moved <= 400**2
    assert quiet(SVC(**(shared | {"max_iter": -1, "tol": 0.5})), X, y).certificate_.converged
    evaluations = quiet(SVC(**(shared | {"kernel": "precomputed"})), pairwise.rbf_kernel(X), y).n_kernel_evaluations_
    assert evaluations == 0


@pytest.mark.parametrize("solver", ["pegasos", "sdca"])
@pytest.mark.parametrize("kind", ["precomputed", "function"])
def test_kernels_of_the_user_are_the_same_kernels(solver, kind):
    X, y = three_classes()
    shared = {"solver": solver, "lam": 0.05, "tol": 1e-2, "multi_class": "ovr"}
    named = SVC(gamma=0.5, **shared).fit(X, y)
    if kind == "precomputed":
        other = SVC(kernel="precomputed", **shared).fit(pairwise.rbf_kernel(X, gamma=0.5), y)
        scores = other.decision_function(pairwise.rbf_kernel(X, gamma=0.5))
    else:
        other = SVC(kernel=lambda A, B: pairwise.rbf_kernel(A, B, gamma=0.5), **shared).fit(X, y)
        scores = other.decision_function(X)
    assert_allclose(scores, named.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("solver", ["pegasos", "sdca"])
@pytest.mark.parametrize("kernel", ["sigmoid", "precomputed"])
def test_kernels_that_are_not_positive_semi_definite_end(solver, kernel):
    X, y = toy(Hinge(), 200)
    A = np.random.default_rng(0).normal(size=(200, 200))
    X = X if kernel == "sigmoid" else A + A.T
    model = SVC(C=10.0, kernel=kernel, gamma=5.0, coef0=-2.0, solver=solver)
    with pytest.warns(ConvergenceWarning, match="not positive semi-definite"):
        model.fit(X, y)
    assert not model.certificate_.converged
    assert model.certificate_.dual == -np.inf
    assert np.isfinite(model.decision_function(X)).all()


def test_a_definite_matrix_of_the_user_is_not_accused():
    X, y = toy(Hinge(), 200)
    K = np.ones((200, 200)) + 1e-9 * np.eye(200)
    assert SVC(kernel="precomputed", solver="pegasos", tol=0.3).fit(K, y).certificate_.converged
    assert SVC(kernel="precomputed", solver="sdca", tol=0.1).fit(X @ X.T, y).certificate_.converged


def test_zero_rows_and_tiny_sets():
    for solver in ("pegasos", "sdca"):
        model = quiet(SVC(kernel="linear", solver=solver), np.zeros((4, 2)), [0, 1, 1, 1])
        assert np.isfinite(model.decision_function(np.ones((2, 2)))).all()
        assert model.certificate_.primal >= model.certificate_.dual
        pair = quiet(SVC(solver=solver), [[0.0], [1.0]], [0, 1])
        np.testing.assert_array_equal(pair.predict([[0.0], [1.0]]), [0, 1])


# --- the loop around it ----------------------------------------------------------------------------------------------

OPTIONS = [Pegasos(), Pegasos(batch_size=7, output="average", projection=True), Pegasos(output="random"), SDCA()]


def several(kind):
    X, y = toy(Hinge(), 90)
    classes = np.digitize(X[:, 0], [-0.3, 0.5])
    if kind == "ovr":
        parts = [(None, np.where(classes == k, 1.0, -1.0)) for k in range(3)]
    else:
        halves = [np.arange(0, 90, 2), np.arange(1, 90, 2)]
        parts = [(index, y[index].astype(float)) for index in halves]
    return kernel_problem(X, y, Hinge(), 0.02, kernel=RBF, bias="free", parts=parts)


@pytest.mark.parametrize("solver", OPTIONS, ids=repr)
@pytest.mark.parametrize("kind", ["ovr", "halves"])
def test_resumed_is_straight(solver, kind, monkeypatch):
    monkeypatch.setattr("pegasos.solvers.kernel.blocks.BLOCK_ROWS", 32)
    monkeypatch.setattr("pegasos.solvers.kernel.blocks.VALUES_PER_CALL", 1)

    def go(engine, pieces):
        for _ in range(pieces):
            engine.advance()
            if engine.due(1e-9):
                engine.learn(judged(engine))
        return engine

    straight = engine_of(several(kind), solver)
    states = [go(straight, 3).state() for _ in range(4)]
    end = go(straight, 8).state()
    for k, state in enumerate(states):
        fresh = engine_of(several(kind), solver)
        fresh.restore(state)
        resumed = go(fresh, 3 * (3 - k) + 8)
        resumed.before = straight.evaluations - resumed.problem.rows.evaluations
        for name, array in end.items():
            np.testing.assert_array_equal(resumed.state()[name], array, err_msg=name)


@pytest.mark.parametrize("solver", OPTIONS, ids=repr)
def test_a_state_is_believed_in_nothing(solver):
    engine = engine_of(several("ovr"), solver)
    engine.advance()
    good = engine.state()
    array = "u" if isinstance(solver, SDCA) else "U"
    bad = [
        ("F", good["F"][:-1]),
        ("scalars", good["scalars"] * np.nan),
        ("scalars", good["scalars"][:, :-1]),
        ("groups", good["groups"] + 1000),
        ("groups", good["groups"] + 0.5),
        ("progress", good["progress"] - 7),
        ("wide", good["wide"] + 7),
        ("counts", good["counts"] - 10**9),
        (array, good[array][:-1]),
    ]
    bad.append(("u", good["u"] + 10) if isinstance(solver, SDCA) else ("scalars", good["scalars"] * 0.0))
    for name, array in bad:
        with pytest.raises(ValueError, match="state"):
            engine_of(several("ovr"), solver).restore(good | {name: array})


@pytest.mark.parametrize("solver", ["pegasos", "sdca"])
def test_limits_callbacks_and_checkpoints(solver, tmp_path):
    X, y = toy(Hinge(), 600)
    file = tmp_path / "fit.ckpt"
    shared = {"C": 10.0, "gamma": 1.0, "tol": 2e-2, "solver": solver}
    straight = SVC(**shared).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="max_iter reached"):
        SVC(max_iter=2, checkpoint=file, **shared).fit(X, y)
    assert file.exists()
    resumed = SVC(checkpoint=file, **shared).fit(X, y)
    assert not file.exists()
    np.testing.assert_array_equal(resumed.dual_coef_, straight.dual_coef_)
    assert resumed.certificate_.dual == straight.certificate_.dual
    with pytest.warns(ConvergenceWarning, match="max_time reached"):
        SVC(max_time=1e-9, checkpoint=file, **shared).fit(X, y)
    with pytest.raises(ValueError, match="random_state"):
        SVC(checkpoint=file, random_state=5, **shared).fit(X, y)
    with pytest.raises(ValueError, match="intercept"):
        SVC(checkpoint=file, intercept="feature", **shared).fit(X, y)
    stopped = SVC(callback=lambda c: True, **shared).fit(X, y)
    assert stopped.certificate_.reason == "stopped by the callback"


@pytest.mark.unsanitized
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("solver", ["pegasos", "sdca"])
def test_interrupts(solver, keep, interruptible):
    X, y = toy(Hinge(), 3000)
    shared = {"C": 1e6, "gamma": 1.0, "tol": 1e-12, "solver": solver, "max_iter": 10**6}
    model = SVC(on_interrupt="keep" if keep else "raise", **shared)
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    if keep:
        model.fit(X, y)
        assert model.certificate_.reason == "interrupted"
        assert 0 <= model.certificate_.dual <= model.certificate_.primal
    else:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert not hasattr(model, "support_")
    timer.join()


# --- streams ---------------------------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("more", [{}, {"intercept": "feature", "intercept_scaling": 0.7}, {"fit_intercept": False}])
@pytest.mark.parametrize("output", ["last", "average", "suffix"])
def test_streams_of_the_linear_kernel_are_those_of_linear_machines(loss, more, output):
    X, y = toy(loss, 90)
    solver = Pegasos(batch_size=3, projection="intercept" in more, output=output)
    shared = {"loss": loss, "solver": solver, "lam": 0.05, "random_state": 2} | more
    margin = loss.kind == "margin"
    kernel = SVC(kernel="linear", **shared) if margin else SVR(kernel="linear", **shared)
    linear = LinearSVC(**shared) if margin else LinearSVR(**shared)
    for first, last in ((0, 40), (40, 41), (41, 90)):
        first_call = {"classes": [-1, 1]} if margin and first == 0 else {}
        kernel.partial_fit(X[first:last], y[first:last], **first_call)
        linear.partial_fit(X[first:last], y[first:last], **first_call)
        assert_allclose(kernel.coef_[0], np.ravel(linear.coef_), rtol=1e-8, atol=1e-10)
        assert_allclose(kernel.intercept_, linear.intercept_, rtol=1e-8, atol=1e-10)
        assert kernel.certificate_.primal == pytest.approx(linear.certificate_.primal, rel=1e-8)
    assert kernel.certificate_.reason == linear.certificate_.reason
    assert "not certified" in kernel.certificate_.reason
    assert kernel.certificate_.dual == -np.inf
    assert kernel.shape_fit_ == (90, X.shape[1])


def test_one_piece_is_one_epoch():
    """On demand or with all responses: the same decisions."""
    X, y = toy(Hinge(), 700)
    shared = {"gamma": 0.5, "lam": 0.01, "solver": Pegasos(t0=0), "fit_intercept": False}
    stream = SVC(**shared).partial_fit(X, y, classes=[-1, 1])
    fitted = quiet(SVC(max_iter=1, tol=1e-12, **shared), X, y)
    np.testing.assert_array_equal(stream.support_, fitted.support_)
    assert_allclose(stream.dual_coef_, fitted.dual_coef_, rtol=1e-10)
    assert stream.n_kernel_evaluations_ > 0


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
def test_streams_of_several_classes(multi_class, layout):
    X, y = three_classes(400)
    model = SVC(gamma=0.5, lam=0.01, multi_class=multi_class)
    for first in range(0, 400, 100):
        part = slice(first, first + 100)
        model.partial_fit(layout(X[part]), y[part], classes=["a", "b", "c"])
    assert model.score(layout(X), y) > 0.75
    assert model.n_iter_.tolist() == [4, 4, 4]
    assert model.n_support_.sum() == len(model.support_)
    np.testing.assert_array_equal(
        model.support_vectors_.toarray() if layout is sparse.csr_matrix else model.support_vectors_, X[model.support_]
    )
    assert len(model.trace_) == 4
    if multi_class == "ovo":
        pairs = model.set_params(decision_function_shape="ovo").decision_function(layout(X))
        inside = np.isin(y, ["a", "b"])
        assert np.mean((pairs[inside, 0] > 0) == (y[inside] == "a")) > 0.8


@pytest.mark.parametrize("t0", [0.0, "auto"])
def test_classes_may_come_late(t0):
    X, y = three_classes(300)
    model = SVC(gamma=0.5, lam=0.01, loss="smoothed_hinge", solver=Pegasos(t0=t0))
    early = y != "c"
    model.partial_fit(X[early], y[early], classes=["a", "b", "c"])
    assert np.isfinite(model.decision_function(X)).all()
    assert np.isfinite(model.certificate_.primal)
    model.partial_fit(X, y)
    assert model.score(X, y) > 0.6


def test_streams_of_rows_far_too_long_are_projected():
    rows, y = toy(Hinge(), 90)
    for scale, batch_size in ((1.0, 1), (1e6, 1), (1e6, 300)):
        X, solver = rows * scale, Pegasos(t0=0, projection=True, batch_size=batch_size)
        model = SVC(kernel="linear", lam=0.01, fit_intercept=False, solver=solver)
        for part in (slice(0, 50), slice(50, 90)):
            model.partial_fit(X[part], y[part], classes=[-1, 1])
            w = model.coef_[0]
            assert np.linalg.norm(w) <= 10 * (1 + 1e-9)
            signs = np.where(y[part] > 0, 1.0, -1.0)
            primal = 0.005 * w @ w + np.maximum(0, 1 - signs * (X[part] @ w)).mean()
            assert model.certificate_.primal == pytest.approx(primal, rel=1e-6)


def test_a_kernel_value_that_is_none_is_named_in_streams():
    X, y = three_classes(40)
    X = X.copy()
    X[31] = 1e50
    with pytest.raises(ValueError, match=r"rows 31 and 31|rows \d+ and 31|rows 31 and \d+"):
        SVC(kernel="poly", degree=9, gamma=1.0, lam=0.1).partial_fit(X, y, classes=["a", "b", "c"])


def test_layouts_may_change_within_a_stream():
    X, y = toy(Hinge(), 90)
    one = SVC(gamma=0.5, lam=0.05).partial_fit(X[:50], y[:50], classes=[-1, 1]).partial_fit(X[50:], y[50:])
    two = SVC(gamma=0.5, lam=0.05).partial_fit(X[:50], y[:50], classes=[-1, 1])
    two.partial_fit(sparse.csr_matrix(X[50:]), y[50:])
    three = SVC(gamma=0.5, lam=0.05).partial_fit(sparse.csr_matrix(X[:50]), y[:50], classes=[-1, 1])
    three.partial_fit(X[50:], y[50:])
    assert_allclose(two.decision_function(X), one.decision_function(X), rtol=1e-9)
    assert_allclose(three.decision_function(X), one.decision_function(X), rtol=1e-9)
    assert sparse.issparse(three.support_vectors_)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_a_stream_goes_on_from_a_fit(multi_class):
    X, y = three_classes(300)
    model = SVC(gamma=0.5, lam=0.01, multi_class=multi_class).fit(X[:200], y[:200])
    before = model.decision_function(X)
    again = pickle.loads(pickle.dumps(model)).partial_fit(X[200:201], y[200:201])
    assert_allclose(again.decision_function(X), before, atol=0.1)
    model.partial_fit(X[200:], y[200:])
    assert model.score(X, y) > 0.75
    assert model.support_.max() >= 200
    x, t = X[:, :1], np.sin(2 * X[:, 0])
    curve = SVR(C=10.0, epsilon=0.01).fit(x[:200], t[:200])
    assert curve.partial_fit(x[200:], t[200:]).score(x, t) > 0.5


def test_a_stream_after_a_linear_fit_is_the_linear_one():
    X, y = toy(Hinge(), 90)
    shared = {"lam": 0.05, "tol": 1e-10}
    kernel, linear = SVC(kernel="linear", **shared).fit(X[:50], y[:50]), LinearSVC(**shared).fit(X[:50], y[:50])
    kernel.partial_fit(X[50:], y[50:])
    linear.partial_fit(X[50:], y[50:])
    assert_allclose(kernel.coef_, linear.coef_, atol=1e-5)


def test_a_stream_that_fails_changes_nothing():
    X, y = toy(Hinge(), 40)
    model = SVC(gamma=0.5, lam=0.05).partial_fit(X[:20], y[:20], classes=[-1, 1])
    scores, rows = model.decision_function(X), model._stream.rows
    with pytest.raises(ValueError, match=r"y\[1\] = 7"):
        model.partial_fit(X[20:], np.r_[1, 7, y[22:]])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[20:, :2], y[20:])
    np.testing.assert_array_equal(model.decision_function(X), scores)
    assert model._stream.rows == rows


# --- refusals --------------------------------------------------------------------------------------------------------

X0, Y0 = toy(Hinge(), 20)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"solver": Pegasos(sampling="chunked")}, "chunked.*kernel"),
        ({"solver": SDCA(sampling="chunked")}, "chunked.*kernel"),
        ({"solver": SDCA(blocks=4)}, "blocks=4.*kernel"),
        ({"solver": Pegasos}, r"Pegasos\(\)"),
        ({"solver": Norma()}, "linear estimators"),
        ({"solver": "smo", "intercept": "subgradient"}, "'smo' cannot do intercept='subgradient'"),
        ({"solver": "smo", "intercept": "feature"}, "'smo' cannot do intercept='feature'"),
        ({"solver": "smo", "loss": "log"}, "'smo' cannot minimise loss 'log'"),
        ({"solver": "pegasos", "intercept": "batch"}, "'pegasos' cannot do intercept='batch'"),
        ({"solver": "sdca", "intercept": "search"}, "'sdca' cannot do intercept='search'"),
        ({"intercept": "free"}, "intercept='free'"),
        ({"intercept_scaling": 0.0}, "intercept_scaling=0.0"),
        ({"loss": "squared"}, "loss='squared'"),
        ({"loss": "crammer_singer"}, "crammer_singer"),
        ({"multi_class": "all"}, "multi_class='all'"),
        ({"multi_class": "ovr", "decision_function_shape": "ovo"}, "decision_function_shape='ovo'"),
        ({"random_state": -1, "solver": "sdca"}, "random_state=-1"),
        ({"kernel": "poly", "gamma": 1e200, "solver": "sdca"}, "kernel of rows"),
        ({"kernel": lambda A, B: np.full((len(A), len(B)), np.nan), "solver": "pegasos"}, "returned nan"),
    ],
)
def test_bad_parameters_are_refused_by_name(parameters, words):
    model = SVC(**parameters)
    with pytest.raises(ValueError, match=words):
        model.fit(X0, Y0)
    assert not hasattr(model, "support_")


def test_the_core_refuses_arrays_that_do_not_fit():
    loss, m, k = Hinge().core(), 5, 3
    good = {
        "K": np.eye(k, 8),
        "rows": np.arange(k),
        "score": np.zeros(k),
        "change": np.zeros(k),
        "y": np.ones(m),
        "weight": np.ones(m),
    }
    pegasos = {"U": np.zeros(m), "average": np.zeros((2, 0)), "random": np.zeros((2, 0)), "progress": np.ones(13)}
    options = {"lam": 1.0, "t0": 0.0, "radius": 0.0, "feature": 0.0, "batch_size": 1, "subgradient": False, "seed": 0}
    options |= {"bias_rate": 1.0}
    _core.kernel_pegasos_steps(loss, **good, **pegasos, **options)
    sdca = {"u": np.zeros(m), "sum": 0.0, "unit": 1.0, "feature": 0.0, "offset": 0.0}
    _core.kernel_sdca_steps(loss, **good, **sdca)
    for name, bad in {
        "K": np.eye(k + 1),
        "rows": np.array([0, 1, m]),
        "score": np.zeros(k + 1),
        "change": np.zeros(k - 1),
        "weight": np.ones(m - 1),
    }.items():
        with pytest.raises((ValueError, IndexError)):
            _core.kernel_pegasos_steps(loss, **(good | {name: bad}), **pegasos, **options)
        with pytest.raises((ValueError, IndexError)):
            _core.kernel_sdca_steps(loss, **(good | {name: bad}), **sdca)
    for name, bad in {
        "U": np.zeros(m + 1),
        "average": np.zeros((1, m)),
        "random": np.zeros((2, m - 1)),
        "progress": np.ones(12),
    }.items():
        with pytest.raises(ValueError, match=name):
            _core.kernel_pegasos_steps(loss, **good, **(pegasos | {name: bad}), **options)
    with pytest.raises(ValueError, match="one mini-batch"):
        _core.kernel_pegasos_steps(loss, **(good | {"K": np.zeros((0, 0))}), **pegasos, **options)
    with pytest.raises(ValueError, match="empty"):
        _core.kernel_sdca_steps(loss, **(good | {"K": np.zeros((0, 0))}), **sdca)


def test_an_explosion_is_named():
    X, y = toy(losses.Squared(), 40)
    with pytest.raises(ValueError, match="range of floating-point numbers"):
        SVR(loss="squared", lam=1e-12, solver=Pegasos(t0=0), kernel="linear").fit(X * 1e9, y)


def test_bad_streams_are_refused_by_name():
    with pytest.raises(ValueError, match="classes must be passed"):
        SVC().partial_fit(X0, Y0)
    with pytest.raises(ValueError, match="at least 2 classes"):
        SVC().partial_fit(X0, Y0, classes=[1])
    with pytest.raises(AttributeError) as refused:
        SVC(kernel="precomputed").partial_fit(X0 @ X0.T, Y0, classes=[-1, 1])
    assert "precomputed" in str(refused.value)
    with pytest.raises(ValueError, match="two random iterates"):
        SVC(solver=Pegasos(output="random")).partial_fit(X0, Y0, classes=[-1, 1])
    with pytest.raises(ValueError, match="balanced"):
        SVC(class_weight="balanced").partial_fit(X0, Y0, classes=[-1, 1])
    with pytest.raises(ValueError, match="intercept='search'"):
        SVC(intercept="search").partial_fit(X0, Y0, classes=[-1, 1])
    model = SVC().partial_fit(X0, Y0, classes=[-1, 1])
    with pytest.raises(ValueError, match="differ"):
        model.partial_fit(X0, Y0, classes=[0, 1])
    with pytest.raises(ValueError, match="kernel or its parameters"):
        model.set_params(gamma=3.0).partial_fit(X0, Y0)
    many = SVC().partial_fit(X0, np.arange(20) % 3, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="multi_class='ovr'"):
        many.set_params(multi_class="ovr").partial_fit(X0, np.arange(20) % 3)


def test_auto_takes_what_can():
    X, y = toy(Hinge(), 30)
    p = kernel_problem(X, y, Hinge(), 0.1, kernel=RBF, bias="free")
    assert kernel_solver("auto", p, "unregularized").name == "smo"
    assert kernel_solver("auto", p, "none").name == "smo"
    assert kernel_solver("auto", p, "feature").name == "sdca"
    smooth = kernel_problem(X, y, losses.Log(), 0.1, kernel=RBF, bias="free")
    assert kernel_solver("auto", smooth, "unregularized").name == "sdca"
