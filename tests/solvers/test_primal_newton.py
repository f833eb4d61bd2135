"""The primal Newton method for kernel machines: Chapelle's iterates, and the exact machine to the last digits."""

import numpy as np
import primal_oracles
import pytest
from conftest import CASES, features, kernel_problem, oracle, toy
from judging import judged
from kernel_cases import three_classes, two_classes
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import pairwise
from sklearn.svm import LinearSVC as TheirLinearSVC

from pegasos import SVC, SVR, LinearSVC, PrimalNewton, losses
from pegasos.fit.engine import Options
from pegasos.kernels.functions import Kernel
from pegasos.kernels.leading import LeadingBlocks

GAMMA = 0.5

#: Smooth losses, but for the one whose kink is at the score zero of the start.
SMOOTH = [loss for loss in CASES if loss.name in PrimalNewton.losses and loss != losses.SmoothedHinge()]

ALL = PrimalNewton(first_rows=10_000)
LEVELS = PrimalNewton(first_rows=10)


def made(X, y, loss, C, bias="free", weight=None, cache=200.0):
    weight = np.ones(len(y)) if weight is None else weight
    lam = 1 / (C * weight.sum())
    kernel = Kernel("rbf", GAMMA)
    return kernel_problem(X, y, loss, lam, kernel=kernel, weight=weight, bias=bias, feature=0.7, cache=cache)


def after(problem, steps, solver=ALL):
    """The coefficients after so many steps, or fewer if no more of them would change anything."""
    engine = solver.engine(problem, Options(tol=0.0, seed=3))
    while engine.steps[0] < steps and engine.current is not None:
        engine.advance()
    return engine.point().model.coef


def test_the_losses_are_those_that_are_smooth():
    assert set(PrimalNewton.losses) == {
        "squared_hinge",
        "smoothed_hinge",
        "log",
        "squared",
        "huber",
        "squared_epsilon_insensitive",
    }


def test_a_step_for_the_squared_hinge_is_chapelles():
    X, y = two_classes(80)
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y))
    K, problem = pairwise.rbf_kernel(X, gamma=GAMMA), made(X, y, losses.SquaredHinge(), 3.0, "none", weight)
    for steps in (1, 2, 3, 4):
        theirs = primal_oracles.chapelle(K, y, 3.0 * weight, steps)
        np.testing.assert_allclose(after(problem, steps), theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("bias", ["none", "feature", "free"])
@pytest.mark.parametrize("loss", SMOOTH, ids=str)
def test_iterates_are_those_of_the_oracle(loss, bias):
    X, y = toy(loss, 50, 3)
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y))
    weight[4:9] = 0.0
    K = pairwise.rbf_kernel(X, gamma=GAMMA) + (0.7**2 if bias == "feature" else 0.0)
    problem = made(X, y, loss, 2.0, bias, weight)
    for steps in (1, 2, 3):
        theirs = primal_oracles.newton(K, y, 2.0 * weight, oracle(loss), steps, free=bias == "free")
        np.testing.assert_allclose(after(problem, steps), theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("solver", [ALL, LEVELS], ids=["all at once", "levels"])
@pytest.mark.parametrize("C", [0.1, 100.0])
def test_the_optimum_is_that_of_others(C, solver):
    X, y = two_classes(200)
    K = pairwise.rbf_kernel(X, gamma=GAMMA)
    shared = {"C": C, "gamma": GAMMA, "tol": 1e-12, "solver": solver}
    model = SVC(loss="squared_hinge", fit_intercept=False, **shared).fit(X, y)
    theirs = TheirLinearSVC(C=C, tol=1e-10, fit_intercept=False, dual=False, max_iter=10_000).fit(features(K), y)
    np.testing.assert_allclose(model.decision_function(X), theirs.decision_function(features(K)), atol=1e-5)
    sdca = SVC(loss="squared_hinge", gamma=GAMMA, C=C, tol=1e-8, solver="sdca", max_iter=10_000).fit(X, y)
    free = SVC(loss="squared_hinge", **shared).fit(X, y)
    assert free.certificate_.relative_gap <= 1e-12
    assert free.certificate_.primal == pytest.approx(sdca.certificate_.primal, rel=1e-7)
    ridge = SVR(loss="squared", fit_intercept=False, **shared).fit(X, X[:, 0])
    theirs = KernelRidge(alpha=1 / C, kernel="precomputed").fit(K, X[:, 0])  # ours has ½ before its squares
    np.testing.assert_allclose(ridge.predict(X), theirs.predict(K), atol=1e-8)


def test_only_rows_of_margin_below_one_have_coefficients():
    X, y = two_classes(300)
    model = SVC(loss="squared_hinge", gamma=GAMMA, C=5.0, tol=1e-12, solver=LEVELS).fit(X, y)
    margins = np.where(y == 1, 1, -1) * model.decision_function(X)
    assert set(model.support_) == set(np.flatnonzero(margins < 1))
    assert 0 < len(model.support_) < 300


def test_halves_come_first():
    X, y = two_classes(300)
    problem = made(X, y, losses.SquaredHinge(), 5.0)
    engine = LEVELS.engine(problem, Options(tol=1e-9, seed=0))
    (state,), levels = engine.states, []
    assert state.sizes == [10, 19, 38, 75, 150, 300]
    while engine.current is not None:
        levels.append(state.n)
        assert np.count_nonzero(engine.point().model.coef) <= state.n
        engine.advance()
    assert sorted(set(levels)) == state.sizes
    assert levels == sorted(levels)
    assert judged(engine).within(1e-9)[0]


def test_layouts_threads_and_room_make_no_difference():
    X, y = two_classes(150)
    X[np.abs(X) < 0.5] = 0.0
    shared = {"loss": "squared_hinge", "gamma": GAMMA, "tol": 1e-10, "solver": LEVELS, "random_state": 5}
    one = SVC(**shared).fit(X, y)
    np.testing.assert_array_equal(SVC(n_jobs=2, **shared).fit(X, y).dual_coef_, one.dual_coef_)
    csr = SVC(**shared).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(csr.dual_coef_.toarray(), one.dual_coef_, atol=1e-9)
    small = SVC(cache_size=1e-3, **shared).fit(X, y)  # nothing is kept
    np.testing.assert_allclose(small.dual_coef_, one.dual_coef_, atol=1e-9)
    assert small.n_kernel_evaluations_ > one.n_kernel_evaluations_ > 0
    assert one.n_kernel_evaluations_ <= 150**2
    other = SVC(**shared | {"random_state": 6}).fit(X, y)
    np.testing.assert_allclose(other.decision_function(X), one.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("solver", [ALL, LEVELS], ids=["all at once", "levels"])
def test_a_weight_of_two_is_a_row_twice(solver):
    X, y = two_classes(80)
    weight = np.where(np.arange(80) % 3 == 0, 2.0, 1.0)
    twice = np.repeat(np.arange(80), weight.astype(int))
    shared = {"loss": "squared_hinge", "gamma": GAMMA, "tol": 1e-12, "solver": solver}
    weighted = SVC(**shared).fit(X, y, sample_weight=weight)
    repeated = SVC(**shared).fit(X[twice], y[twice])
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-7)
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-10)


def test_several_classes():
    X, y = three_classes(150)
    for multi_class in ("ovo", "ovr"):
        shared = {"loss": "squared_hinge", "gamma": GAMMA, "multi_class": multi_class}
        newton = SVC(solver=LEVELS, tol=1e-10, **shared).fit(X, y)
        sdca = SVC(solver="sdca", tol=1e-8, max_iter=10_000, **shared).fit(X, y)
        assert newton.certificate_.converged
        np.testing.assert_allclose(newton.certificate_.primal_per_class, sdca.certificate_.primal_per_class, rtol=1e-7)
        np.testing.assert_array_equal(newton.predict(X), sdca.predict(X))


@pytest.mark.parametrize("loss", ["squared_hinge", "log"])
def test_huge_costs_of_equal_rows_need_jitter_and_get_it(loss):
    X, y = two_classes(60)
    X, y = np.repeat(X, 3, axis=0), np.repeat(y, 3)
    with np.errstate(all="raise", under="ignore"):
        model = SVC(loss=loss, gamma=0.01, C=1e10, tol=1e-3, solver="newton").fit(X, y)
    assert model.certificate_.relative_gap <= 1e-3
    assert model.certificate_.converged


def test_linear_kernels_are_linear_machines():
    X, y = two_classes(120)
    kernel = SVC(kernel="linear", loss="log", C=2.0, tol=1e-10, solver="newton").fit(X, y)
    linear = LinearSVC(loss="log", C=2.0, tol=1e-10, solver="interior_point").fit(X, y)
    np.testing.assert_allclose(kernel.coef_, linear.coef_, atol=1e-6)
    np.testing.assert_allclose(kernel.intercept_, linear.intercept_, atol=1e-6)


# --- the loop --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cache", [200.0, 1e-3], ids=["kept", "not kept"])
@pytest.mark.parametrize("loss", [losses.SquaredHinge(), losses.Log()], ids=str)
def test_resumed_is_straight(loss, cache):
    X, y = two_classes(200)
    t = y.astype(float)
    weight, halves = np.ones(200), [(np.arange(0, 200, 2), t[::2].copy()), (np.arange(1, 200, 2), t[1::2].copy())]

    def make():
        kernel = Kernel("rbf", GAMMA)
        p = kernel_problem(X, y, loss, 1 / 400, kernel=kernel, weight=weight, bias="free", parts=halves, cache=cache)
        return LEVELS.engine(p, Options(tol=1e-10, seed=0))

    def go_on(engine, keep=None):
        while True:
            if keep is not None:
                keep.append(engine.state())
            engine.advance()
            if engine.due(1e-10):
                bounds = judged(engine)
                if bounds.within(1e-10).all():
                    return
                assert engine.stuck is None
                engine.learn(bounds)

    straight, states = make(), []
    go_on(straight, states)
    assert len(states) > 10
    for state in states:
        resumed = make()
        resumed.restore(state)
        go_on(resumed)
        for name in ("beta", "F", "numbers"):
            np.testing.assert_array_equal(resumed.state()[name], straight.state()[name], err_msg=name)


def test_a_state_is_believed_in_nothing():
    problem = made(*two_classes(60), losses.SquaredHinge(), 1.0)
    engine = LEVELS.engine(problem, Options(tol=1e-9, seed=0))
    for _ in range(4):
        engine.advance()
    good = engine.state()
    LEVELS.engine(problem, Options(tol=1e-9, seed=0)).restore(good)
    for name, bad in (
        ("beta", good["beta"][:-1]),
        ("F", good["F"] * np.nan),
        ("numbers", good["numbers"] + 0.5),
        ("numbers", good["numbers"] * np.nan),
        ("counts", -good["counts"]),
    ):
        with pytest.raises(ValueError, match="state"):
            LEVELS.engine(problem, Options(tol=1e-9, seed=0)).restore(good | {name: bad})


def test_limits_and_checkpoints(tmp_path):
    X, y = three_classes(300)
    file = tmp_path / "fit.ckpt"
    shared = {"gamma": 1.0, "tol": 1e-10, "solver": LEVELS, "C": 100.0, "loss": "squared_hinge"}
    straight = SVC(**shared).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="max_iter reached"):
        short = SVC(max_iter=2, checkpoint=file, **shared).fit(X, y)
    assert not short.certificate_.converged
    assert list(short.n_iter_) == [2, 2, 2]
    assert short.certificate_.dual <= straight.certificate_.primal * (1 + 1e-9)
    resumed = SVC(checkpoint=file, **shared).fit(X, y)
    assert not file.exists()
    np.testing.assert_array_equal(resumed.dual_coef_, straight.dual_coef_)
    with pytest.warns(ConvergenceWarning, match="max_time reached"):
        SVC(max_time=1e-9, checkpoint=file, **shared).fit(X, y)
    resumed = SVC(checkpoint=file, **shared).fit(X, y)
    np.testing.assert_array_equal(resumed.dual_coef_, straight.dual_coef_)


@pytest.mark.parametrize("product", [1, 3, 8, 12, 20])
def test_an_interrupt_in_the_midst_of_a_step_leaves_a_model(product, monkeypatch, tmp_path):
    X, y = two_classes(300)
    shared = {"loss": "squared_hinge", "gamma": GAMMA, "C": 5.0, "tol": 1e-10, "solver": LEVELS}
    straight, calls, times = SVC(**shared).fit(X, y), [], LeadingBlocks.times

    def interrupted(self, v):
        calls.append(len(v))
        if len(calls) == product:
            raise KeyboardInterrupt
        return times(self, v)

    monkeypatch.setattr(LeadingBlocks, "times", interrupted)
    model = SVC(on_interrupt="keep", **shared).fit(X, y)
    assert model.certificate_.reason == "interrupted"
    assert (
        model.certificate_.dual <= straight.certificate_.primal * (1 + 1e-9) <= model.certificate_.primal * (1 + 2e-9)
    )
    calls.clear()
    file = tmp_path / "fit.ckpt"
    with pytest.raises(KeyboardInterrupt):
        SVC(checkpoint=file, checkpoint_every=1e-9, **shared).fit(X, y)
    monkeypatch.setattr(LeadingBlocks, "times", times)
    np.testing.assert_array_equal(SVC(checkpoint=file, **shared).fit(X, y).dual_coef_, straight.dual_coef_)


def test_callbacks_see_the_steps():
    X, y = two_classes(100)
    gaps = []
    SVC(
        loss="squared_hinge", gamma=GAMMA, tol=1e-9, solver=ALL, callback=lambda now: gaps.append(now.relative_gap)
    ).fit(X, y)
    assert len(gaps) > 2
    assert gaps[-1] <= 1e-9 < gaps[0]


def test_too_many_active_rows_are_named():
    X, y = two_classes(100)
    with pytest.warns(ConvergenceWarning, match="more rows are active than max_active"):
        model = SVC(loss="log", gamma=GAMMA, solver=PrimalNewton(max_active=50)).fit(X, y)
    assert "max_active" in model.certificate_.reason
    assert 0 <= model.certificate_.dual <= model.certificate_.primal
    enough = SVC(loss="squared_hinge", gamma=GAMMA, C=10, solver=PrimalNewton(max_active=90, first_rows=20)).fit(X, y)
    assert enough.certificate_.converged


@pytest.mark.parametrize("seed", range(3))
def test_kernels_that_are_not_positive_semi_definite_have_no_lower_bound(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, 3)), np.where(np.arange(60) % 2, 1.0, -1.0)
    for gamma, coef0, C in ((0.06, 0.0, 0.3), (5.0, -2.0, 10.0)):
        model = SVC(kernel="sigmoid", gamma=gamma, coef0=coef0, C=C, loss="squared_hinge", solver="newton")
        if gamma > 1:
            with pytest.warns(ConvergenceWarning, match="not positive semi-definite"):
                model.fit(X, y)
        else:
            model.fit(X, y)
            assert model.certificate_.goal_reached
        assert (model.certificate_.dual, model.certificate_.converged) == (-np.inf, False)
        assert "not positive semi-definite" in model.certificate_.reason


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PrimalNewton(first_rows=0), "first_rows=0"),
        (lambda: PrimalNewton(max_active=2.5), "max_active=2.5"),
        (lambda: SVC(solver="newton").fit([[0.0], [1.0]], [0, 1]), "'newton' cannot minimise loss 'hinge'"),
        (lambda: SVC(solver="newton", loss="log", intercept="subgradient").fit([[0.0], [1.0]], [0, 1]), "subgradient"),
        (lambda: LinearSVC(solver=ALL).fit([[0.0], [1.0]], [0, 1]), "unknown"),
        (
            lambda: SVC(kernel="poly", gamma=1e200, loss="log", solver=ALL).fit([[1.0], [2.0]], [0, 1]),
            "kernel of rows 0 and 0|kernel of rows 1 and 1|range",
        ),
    ],
)
def test_bad_requests_are_refused_by_name(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_leading_blocks_are_those_of_the_matrix():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    problem, order = made(X, np.sign(X[:, 0]), losses.Log(), 1.0), rng.permutation(40)
    K = (pairwise.rbf_kernel(X, gamma=GAMMA) + 0.3)[np.ix_(order, order)]
    for megabytes in (200.0, 0.0):
        blocks = LeadingBlocks(problem.rows(0), order, megabytes, 0.3, lambda *_: None)
        for n, share in ((10, 0.2), (20, 0.9), (20, 0.1), (40, 0.3), (40, 1.0), (40, 0.0)):
            v = rng.normal(size=n) * (rng.uniform(size=n) < share)
            np.testing.assert_allclose(blocks.times(v), K[:n, :n] @ v, atol=1e-12)
            at = rng.choice(n, 5, replace=False)
            np.testing.assert_allclose(blocks.square(at, n), K[np.ix_(at, at)], atol=1e-12)
        assert blocks.evaluations == 1600 if megabytes else blocks.evaluations > 0
