"""The stochastic batch perceptron: its level, its own bounds, and the estimator's around them."""

from dataclasses import replace

import bias_oracles as b
import numpy as np
import oracles as o
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judging import judged
from kernel_cases import problem, three_classes, two_classes
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise

from pegasos import SBP, SMO, SVC, SVR
from pegasos.fit.engine import Options
from pegasos.solvers.kernel.batch_perceptron_part import LEVEL_REACHED
from pegasos.solvers.kernel.slack_level import SlackLevels

GAMMA = 0.5


def hinge_and_norm(model, X, y, weight=None):
    """The mean hinge loss and the norm of a binary model's weights, from its own attributes."""
    weight = np.ones(len(y)) if weight is None else weight
    scores = model.decision_function(X)
    signs = np.where(y == model.classes_[1], 1.0, -1.0)
    square = float(model.dual_coef_[0] @ (scores[model.support_] - model.intercept_[0]))
    return float(weight @ np.maximum(0, 1 - signs * scores)) / weight.sum(), np.sqrt(square)


# --- the level -------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.floats(-3, 3), st.booleans(), st.floats(0.1, 4)), min_size=2, max_size=30),
    st.floats(0, 20),
)
@settings(max_examples=60, deadline=None)
def test_the_level_is_the_oracles(rows, volume):
    margins, positive, weight = (np.array(column) for column in zip(*rows, strict=True))
    y = np.where(positive, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    level = SlackLevels(y, weight, bias=True).best(margins, volume)
    expected, _ = o.best_slack_level(margins, y, weight, volume)
    assert level.level == pytest.approx(expected, abs=1e-7)
    # The bias reaches the level, and the level uses all of the slack.
    assert o.slack_level(margins + y * level.b, weight, volume) == pytest.approx(level.level, abs=1e-9)


@given(st.integers(0, 10_000), st.floats(0, 3))
@settings(max_examples=60, deadline=None)
def test_the_distribution_is_a_supergradient(seed, volume):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 15))
    margins, weight = rng.normal(size=m), rng.choice([0.5, 1.0, 2.0], size=m)
    y = np.where(rng.random(m) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    levels = SlackLevels(y, weight, bias=True)
    level = levels.best(margins, volume)
    p = np.zeros(m)
    for rows, chances in zip(level.rows, level.chances, strict=True):
        assert chances.sum() == pytest.approx(1)
        assert (chances >= 0).all()
        p[rows] += 0.5 * chances
    assert p @ y == pytest.approx(0, abs=1e-12)
    # Tight here, and above the level everywhere.
    assert p @ margins + volume * (p / weight).max() == pytest.approx(level.level, abs=1e-9)
    for _ in range(5):
        other = margins + rng.normal(size=m)
        assert levels.best(other, volume).level <= level.level + p @ (other - margins) + 1e-9


def test_rows_without_weight_stay_outside():
    y = np.array([1.0, 1.0, -1.0, -1.0])
    level = SlackLevels(y, np.array([1.0, 0.0, 1.0, 0.0]), bias=True).best(np.array([0.0, -5.0, 1.0, -7.0]), 0.0)
    assert level.level == pytest.approx(0.5)
    assert level.b == pytest.approx(0.5)


@given(
    st.lists(st.tuples(st.floats(-3, 3), st.floats(0.1, 4)), min_size=1, max_size=30),
    st.floats(0, 20),
    st.integers(0, 100),
)
@settings(max_examples=60, deadline=None)
def test_the_level_of_all_rows_is_the_oracles(rows, volume, seed):
    """Without a bias; and its distribution is a supergradient."""
    margins, weight = (np.array(column) for column in zip(*rows, strict=True))
    levels = SlackLevels(np.ones(len(rows)), weight, bias=False)
    level = levels.best(margins, volume)
    assert level.b == 0
    assert level.level == pytest.approx(o.slack_level(margins, weight, volume), abs=1e-9)
    (below,), (chances,) = level.rows, level.chances
    p = np.zeros(len(rows))
    p[below] = chances
    assert p.sum() == pytest.approx(1)
    assert p @ margins + volume * (p / weight).max() == pytest.approx(level.level, abs=1e-9)
    other = margins + np.random.default_rng(seed).normal(size=len(rows))
    assert levels.best(other, volume).level <= level.level + p @ (other - margins) + 1e-9


# --- the bounds ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bias", [True, False])
def test_bounds_enclose_the_machine_that_nu_comes_from(C, weighted, bias):
    X, y = two_classes(80)
    weight = np.random.default_rng(1).uniform(0.2, 3, size=len(y)) if weighted else None
    shared = {"C": C, "gamma": GAMMA, "fit_intercept": bias}
    exact = SVC(tol=1e-10, **shared).fit(X, y, sample_weight=weight)
    loss, norm = hinge_and_norm(exact, X, y, weight)
    model = SVC(tol=0.05, solver=SBP(nu=loss / norm), **shared).fit(X, y, sample_weight=weight)
    (own,) = model.sbp_
    # ν = hinge(w*)/‖w*‖ means γ* = 1/‖w*‖.
    assert own.level <= 1 / norm * (1 + 1e-9)
    assert own.upper >= 1 / norm * (1 - 1e-9)
    assert own.level > 0.8 / norm
    loss_here, norm_here = hinge_and_norm(model, X, y, weight)
    assert loss_here <= own.nu / own.level * (1 + 1e-9)
    assert norm_here <= 1 / own.level * (1 + 1e-9)
    c = model.certificate_
    assert c.dual <= exact.certificate_.primal * (1 + 1e-9)
    assert c.primal >= exact.certificate_.dual * (1 - 1e-9)


def test_a_weight_of_two_is_the_row_twice():
    X, y = two_classes(60)
    counts = np.random.default_rng(0).integers(0, 3, size=60)
    shared = {"gamma": GAMMA, "tol": 0.03, "solver": SBP(nu=0.1)}
    weighted = SVC(**shared).fit(X, y, sample_weight=counts)
    repeated = SVC(**shared).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    bounds = [(model.sbp_[0].level, model.sbp_[0].upper) for model in (weighted, repeated)]
    # One and the same optimum lies between both.
    assert max(low for low, _ in bounds) <= min(high for _, high in bounds)
    assert weighted.certificate_.dual <= repeated.certificate_.primal * (1 + 1e-12)
    assert repeated.certificate_.dual <= weighted.certificate_.primal * (1 + 1e-12)


def test_nu_comes_from_a_quick_solution():
    X, y = two_classes(120)
    model = SVC(gamma=GAMMA, tol=0.03, solver="sbp").fit(X, y)
    exact = SVC(gamma=GAMMA, tol=1e-8).fit(X, y)
    loss, norm = hinge_and_norm(exact, X, y)
    assert model.certificate_.converged
    assert model.sbp_[0].nu == pytest.approx(loss / norm, rel=0.05)
    assert model.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=0.03)
    np.testing.assert_allclose(model.decision_function(X), exact.decision_function(X), atol=0.3)
    assert not hasattr(SVC(gamma=GAMMA).fit(X, y), "sbp_")
    assert not hasattr(model.set_params(solver="smo").fit(X, y), "sbp_")


def test_a_given_nu_has_a_goal_of_its_own():
    X, y = two_classes(60)
    model = SVC(gamma=GAMMA, tol=0.02, solver=SBP(nu=0.2)).fit(X, y)  # no warning
    assert model.certificate_.reason == LEVEL_REACHED
    own = model.sbp_[0]
    assert own.level <= own.upper <= own.level / (1 - 0.02) * (1 + 1e-12)
    assert (
        model.certificate_.dual <= SVC(gamma=GAMMA, tol=1e-9).fit(X, y).certificate_.primal <= model.certificate_.primal
    )


def test_no_slack_is_the_hard_margin():
    X = np.array([[0.0], [1.0], [3.0], [4.0]])
    y = np.array([0, 0, 1, 1])
    model = SVC(kernel="linear", tol=0.02, solver=SBP(nu=0.0)).fit(X, y)
    assert model.sbp_[0].level == pytest.approx(1.0, rel=0.02)
    assert model.coef_[0, 0] == pytest.approx(1.0, rel=0.03)
    # And where no hyperplane separates, there is no margin: the weights are zero.
    with pytest.warns(ConvergenceWarning, match="steps"):
        hopeless = SVC(kernel="linear", tol=0.02, solver=SBP(nu=0.0, max_steps=300)).fit(X, [0, 1, 0, 1])
    assert hopeless.sbp_[0].level <= hopeless.sbp_[0].upper
    assert np.isfinite(hopeless.decision_function(X)).all()


def test_identical_rows_have_no_weights():
    X, y = np.ones((6, 2)), np.array([0, 0, 1, 1, 1, 0])
    model = SVC(gamma=1.0, tol=1e-3, solver=SBP()).fit(X, y)
    assert model.certificate_.converged
    np.testing.assert_allclose(model.decision_function(X), model.intercept_[0], atol=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "precomputed", "function"])
def test_pairs_of_classes(kernel):
    X, y = three_classes()
    K = pairwise.rbf_kernel(X, gamma=GAMMA)
    chosen = {
        "rbf": "rbf",
        "precomputed": "precomputed",
        "function": lambda A, B: pairwise.rbf_kernel(A, B, gamma=GAMMA),
    }
    model = SVC(kernel=chosen[kernel], gamma=GAMMA, tol=0.1, solver="sbp").fit(K if kernel == "precomputed" else X, y)
    assert model.certificate_.converged
    assert len(model.sbp_) == 3
    assert all(own.level <= own.upper for own in model.sbp_)
    assert model.score(K if kernel == "precomputed" else X, y) > 0.7
    assert list(model.n_iter_) == [own.steps for own in model.sbp_]
    assert (model.n_kernel_evaluations_ == 0) == (kernel == "precomputed")


def test_steps_are_the_oracles():
    engine = SBP(nu=0.1).engine(problem(80), Options(tol=1e-9, seed=3))
    part, state = engine.problem.parts[0], engine.states[0]
    engine.advance()
    K = pairwise.rbf_kernel(engine.problem.X[part.index], gamma=0.5)
    draws = [np.random.default_rng([3, 0, t]).random(2) for t in range(1, state.steps + 1)]
    alpha = o.batch_perceptron(K, part.y, nu=0.1, draws=draws)
    np.testing.assert_allclose(state.alpha, alpha, atol=1e-12)


def test_steps_without_a_bias_are_the_papers():
    engine = SBP(nu=0.1).engine(replace(problem(80), bias="none"), Options(tol=1e-9, seed=3))
    part, state = engine.problem.parts[0], engine.states[0]
    engine.advance()
    K = pairwise.rbf_kernel(engine.problem.X[part.index], gamma=0.5)
    draws = [np.random.default_rng([3, 0, t]).random(1)[0] for t in range(1, state.steps + 1)]
    alpha = b.batch_perceptron(K, part.y, nu=0.1, draws=draws)
    assert len(np.unique(draws)) > 20
    np.testing.assert_allclose(state.alpha, alpha, atol=1e-12)


# --- the loop --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nu", [None, 0.1])
@pytest.mark.parametrize("bias", ["free", "none"])
def test_resumed_is_straight(nu, bias):
    solver, tol = SBP(nu=nu), 0.05
    straight = solver.engine(replace(problem(), bias=bias), Options(tol=tol, max_steps=400, seed=0))
    states = []

    def go_on(engine, keep=None):
        while True:
            if keep is not None:
                keep.append(engine.state())
            engine.advance()
            if engine.due(tol):
                bounds = judged(engine)
                if engine.stuck is not None:
                    return
                engine.learn(bounds)

    go_on(straight, states)
    for state in states[:: max(1, len(states) // 4)]:
        resumed = solver.engine(replace(problem(), bias=bias), Options(tol=tol, max_steps=400, seed=0))
        resumed.restore(state)
        go_on(resumed)
        resumed.before = straight.evaluations - resumed.problem.rows.evaluations
        for name, array in straight.state().items():
            np.testing.assert_array_equal(resumed.state()[name], array, err_msg=name)


def test_a_state_is_believed_in_nothing():
    engine = SBP(nu=0.1).engine(problem(), Options(tol=1e-3, seed=0))
    engine.advance()
    good = engine.state()
    for name, bad in (
        ("table", good["table"][:, :-1]),
        ("table", good["table"] * np.nan),
        ("numbers", good["numbers"] + 0.5),
        ("numbers", good["numbers"] - 1000),
        ("counts", good["counts"] + 1),
    ):
        with pytest.raises(ValueError, match="state"):
            SBP(nu=0.1).engine(problem(), Options(tol=1e-3, seed=0)).restore(good | {name: bad})


def test_limits_and_checkpoints(tmp_path):
    X, y = two_classes(150)
    file = tmp_path / "fit.ckpt"
    shared = {"gamma": 1.0, "tol": 0.05, "solver": SBP(), "random_state": 5}
    straight = SVC(**shared).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="max_iter reached"):
        SVC(max_iter=50, checkpoint=file, **shared).fit(X, y)
    resumed = SVC(checkpoint=file, **shared).fit(X, y)
    assert not file.exists()
    np.testing.assert_array_equal(resumed.dual_coef_, straight.dual_coef_)
    assert resumed.sbp_ == straight.sbp_
    with pytest.warns(ConvergenceWarning, match="max_time reached"):
        early = SVC(max_time=1e-9, **shared).fit(X, y)
    assert early.certificate_.dual <= straight.certificate_.primal <= early.certificate_.primal
    other = SVC(**(shared | {"random_state": 6})).fit(X, y)
    assert not np.array_equal(other.dual_coef_.shape, straight.dual_coef_.shape) or (
        not np.array_equal(other.dual_coef_, straight.dual_coef_)
    )


@pytest.mark.parametrize("nu", [None, 0.1])
def test_kernels_that_are_not_positive_semi_definite_end(nu):
    X, y = two_classes(200)
    with pytest.warns(ConvergenceWarning, match="not positive semi-definite"):
        model = SVC(kernel="sigmoid", gamma=5.0, coef0=-2.0, tol=0.05, solver=SBP(nu=nu, max_steps=500)).fit(X, y)
    assert model.certificate_.dual == -np.inf
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: SBP(nu=-0.1), "nu=-0.1"),
        (lambda: SBP(nu=float("nan")), "nu=nan"),
        (lambda: SBP(nu=True), "nu=True"),
        (lambda: SBP(max_steps=0), "max_steps=0"),
        (lambda: SVR(solver=SBP()).fit([[0.0], [1.0]], [0.0, 1.0]), "epsilon_insensitive.*hinge"),
        (lambda: SVC(solver=SBP).fit([[0.0], [1.0]], [0, 1]), "parentheses"),
        (
            lambda: SVC(kernel="poly", gamma=1e200, solver=SBP(nu=0.1)).fit([[1.0], [2.0]], [0, 1]),
            "kernel of row 0",
        ),
    ],
)
def test_bad_requests_are_refused_by_name(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_smo_is_still_the_default():
    assert SVC().solver == "auto"
    X, y = two_classes()
    np.testing.assert_array_equal(SVC().fit(X, y).dual_coef_, SVC(solver=SMO()).fit(X, y).dual_coef_)
