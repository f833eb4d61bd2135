"""Losses of the core against the oracles: values, slopes, conjugates, domains, dual steps, kinks and extremes."""

from __future__ import annotations

import numpy as np
import oracles as o
import pytest
from conftest import CASES, JOINT, MARGIN, SCALAR, oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from pegasos import losses
from pegasos.losses import LOSSES

K = 4
scalar = pytest.mark.parametrize("loss", SCALAR, ids=repr)
joint = pytest.mark.parametrize("loss", [losses.CrammerSinger(), losses.Multinomial()], ids=repr)
several = settings(deadline=None, derandomize=True, max_examples=25)

scores = st.floats(-30, 30)
curvatures = st.floats(1e-3, 1e3)


def targets(loss, count, rng):
    return rng.choice([-1.0, 1.0], count) if loss.kind == "margin" else rng.normal(0, 2, count)


def inside(loss, y, rng):
    """Dual variables in the domain, some of them on its border."""
    lo, hi = oracle(loss).domain(y)
    u = rng.uniform(np.maximum(lo, -3), np.minimum(hi, 3))
    return np.where(rng.random(len(y)) < 0.1, np.maximum(lo, -3), u)


def sample(loss, count=400, seed=0):
    rng = np.random.default_rng(seed)
    y = targets(loss, count, rng)
    return rng.normal(0, 2, count), y, inside(loss, y, rng)


# ----------------------------------------------------------------------------------------------------- scalar losses


def test_every_loss_has_a_case():
    assert {loss.name for loss in CASES} == set(LOSSES)
    assert all(name == cls.name == cls().name for name, cls in LOSSES.items())


@scalar
def test_value_slope_conjugate_match_the_oracle(loss):
    z, y, u = sample(loss)
    core, ref = loss.core(), oracle(loss)
    assert_allclose(core.value(z, y), ref.value(z, y), rtol=1e-14, atol=1e-15)
    assert_allclose(core.slope(z, y), ref.slope(z, y), rtol=1e-14, atol=1e-15)
    assert_allclose(core.conjugate(u, y), ref.conjugate(u, y), rtol=1e-13, atol=1e-14)


@scalar
def test_clip_is_the_projection_onto_the_domain(loss):
    z, y, _ = sample(loss)
    lo, hi = oracle(loss).domain(y)
    assert_allclose(loss.core().clip(3 * z, y), np.clip(3 * z, lo, hi), rtol=0, atol=0)


@scalar
def test_value_is_convex_and_nonnegative(loss):
    z = np.linspace(-6, 6, 1201)
    for y in (1.0, -1.0):
        value = loss.core().value(z, np.full_like(z, y))
        assert value.min() >= 0
        assert np.diff(value, 2).min() >= -1e-12


@scalar
def test_slope_by_finite_differences(loss):
    z, y, _ = sample(loss)
    core, h = loss.core(), 1e-6
    assert_allclose(core.slope(z, y), (core.value(z - h, y) - core.value(z + h, y)) / (2 * h), atol=1e-5)


@scalar
def test_curvature_by_finite_differences(loss):
    z, y, _ = sample(loss)
    core, h = loss.core(), 1e-6
    assert_allclose(core.curvature(z, y), (core.slope(z - h, y) - core.slope(z + h, y)) / (2 * h), rtol=1e-5, atol=1e-5)


@scalar
def test_smoothness_bounds_the_curvature(loss):
    z, y, _ = sample(loss, 4000)
    assert loss.smooth == np.isfinite(loss.smoothness)
    assert loss.core().curvature(z, y).max() <= loss.smoothness * (1 + 1e-12)
    if loss.smooth:
        assert loss.core().curvature(z, y).max() >= 0.9 * loss.smoothness


@scalar
def test_fenchel_young(loss):
    """ℓ(z) + uz ≥ −ℓ*(−u), equal where u = g(z)."""
    z, y, u = sample(loss)
    core = loss.core()
    assert (core.value(z, y) + u * z - core.conjugate(u, y)).min() >= -1e-12
    g = core.slope(z, y)
    assert_allclose(core.value(z, y) + g * z, core.conjugate(g, y), rtol=1e-12, atol=1e-12)


@scalar
@several
@given(seed=st.integers(0, 10**6), z=scores, q=curvatures)
def test_dual_step_is_the_maximiser(loss, seed, z, q):
    rng = np.random.default_rng(seed)
    y = targets(loss, 1, rng)
    u0 = float(inside(loss, y, rng)[0])
    y = float(y[0])
    step = loss.core().dual_step(u0, z, y, q)
    exact = o.exact_step(oracle(loss), u0, z, y, q)
    assert_allclose(step, exact, rtol=1e-9, atol=1e-11)
    best = o.step_objective(oracle(loss), o.brute_step(oracle(loss), u0, z, y, q), u0, z, y, q)
    assert o.step_objective(oracle(loss), step, u0, z, y, q) >= best - 1e-10 * (1 + abs(best))


@scalar
def test_dual_step_stays_where_it_is_optimal(loss):
    """u = g(z) maximises whatever q."""
    z, y, _ = sample(loss, 100)
    core = loss.core()
    u = core.slope(z, y)
    for q in (1e-3, 1.0, 1e3):
        stepped = [core.dual_step(*row, q) for row in zip(u, z, y, strict=True)]
        assert_allclose(stepped, u, rtol=1e-12, atol=1e-12)


@scalar
@pytest.mark.parametrize("q", [1e-9, 1.0, 1e9])
def test_extremes_stay_finite_and_feasible(loss, q):
    core = loss.core()
    for z in (-1e3, -40.0, 0.0, 40.0, 1e3):
        for y in (1.0, -1.0):
            one = np.array([z]), np.array([y])
            values = [*core.value(*one), *core.slope(*one), *core.curvature(*one)]
            lo, hi = oracle(loss).domain(y)
            steps = [core.dual_step(u0, z, y, q) for u0 in np.clip([0.0, 0.3 * y, y], lo, hi)]
            assert np.isfinite(values + steps).all()
            assert np.min(steps) >= lo
            assert np.max(steps) <= hi
            assert np.isfinite(core.conjugate(np.array(steps), np.full(3, y))).all()


@scalar
@pytest.mark.parametrize("q", [1e-9, 1e-4, 1e4, 1e9])
@pytest.mark.parametrize("z", [-1e3, -40.0, 0.5, 40.0, 1e3])
def test_extreme_steps_match_the_oracle(loss, z, q):
    for y in (1.0, -1.0):
        lo, hi = oracle(loss).domain(y)
        for u0 in np.clip([0.0, 0.3 * y, y], lo, hi):
            assert_allclose(
                loss.core().dual_step(u0, z, y, q), o.exact_step(oracle(loss), u0, z, y, q), rtol=1e-9, atol=1e-9
            )


def test_kinks():
    """The slope is 0 at a kink."""

    def slope(loss, z, y):
        return float(loss.core().slope(np.array([z]), np.array([y]))[0])

    assert slope(losses.Hinge(), 1.0, 1.0) == 0
    assert slope(losses.Hinge(), np.nextafter(1.0, 0.0), 1.0) == 1
    assert slope(losses.Hinge(), -1.0, -1.0) == 0
    assert slope(losses.EpsilonInsensitive(0.5), 1.0, 1.5) == 0
    assert slope(losses.EpsilonInsensitive(0.5), 2.0, 1.5) == 0
    assert slope(losses.EpsilonInsensitive(), 1.0, 1.0) == 0
    assert slope(losses.Quantile(0.3), 1.0, 1.0) == 0
    assert slope(losses.SquaredHinge(), 1.0, 1.0) == 0
    assert slope(losses.Huber(0.5), 0.0, 0.5) == 0.5


@pytest.mark.parametrize("loss", MARGIN, ids=repr)
def test_margin_losses_are_symmetric(loss):
    z, y, u = sample(loss)
    core = loss.core()
    assert (core.value(-z, -y) == core.value(z, y)).all()
    assert (core.slope(-z, -y) == -core.slope(z, y)).all()
    assert (core.conjugate(-u, -y) == core.conjugate(u, y)).all()


# ------------------------------------------------------------------------------------------------------ joint losses


def random_cost(seed):
    cost = np.random.default_rng(seed).uniform(0, 3, (K, K))
    np.fill_diagonal(cost, 0)
    return losses.CrammerSinger(cost)


def joint_sample(seed, count=50):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, count).astype(np.int32)
    return rng.normal(0, 2, (count, K)), y, np.eye(K)[y] - rng.dirichlet(0.5 * np.ones(K), count)


def with_costs(loss, seed):
    return random_cost(seed) if isinstance(loss, losses.CrammerSinger) and seed % 2 else loss


@joint
@several
@given(seed=st.integers(0, 10**6))
def test_joint_matches_the_oracle(loss, seed):
    loss = with_costs(loss, seed)
    z, y, u = joint_sample(seed)
    core, ref = loss.core(K), oracle(loss, K)
    assert core.classes == K
    assert_allclose(core.value(z, y), ref.value(z, y), rtol=1e-13, atol=1e-13)
    assert_allclose(core.slopes(z, y), ref.slope(z, y), rtol=1e-13, atol=1e-13)
    assert_allclose(core.conjugate(u, y), ref.conjugate(u, y), rtol=1e-12, atol=1e-13)


@joint
@several
@given(seed=st.integers(0, 10**6))
def test_joint_fenchel_young(loss, seed):
    loss = with_costs(loss, seed)
    z, y, u = joint_sample(seed)
    core = loss.core(K)
    assert core.value(z, y).min() >= 0
    assert (core.value(z, y) + (u * z).sum(1) - core.conjugate(u, y)).min() >= -1e-12
    g = core.slopes(z, y)
    assert_allclose(core.value(z, y) + (g * z).sum(1), core.conjugate(g, y), rtol=1e-12, atol=1e-12)


@joint
def test_joint_slopes_by_finite_differences(loss):
    z, y, _ = joint_sample(3)
    core, h = loss.core(K), 1e-6
    for k in range(K):
        e = h * np.eye(K)[k]
        fd = (core.value(z - e, y) - core.value(z + e, y)) / (2 * h)
        assert_allclose(core.slopes(z, y)[:, k], fd, atol=1e-5)


def on_simplex(u, y):
    alpha = -u.copy()
    alpha[y] += 1
    return alpha.min() >= -1e-12 and abs(alpha.sum() - 1) <= 1e-12


@joint
@several
@given(seed=st.integers(0, 10**6), log_q=st.floats(-3, 3))
def test_joint_dual_step_is_the_maximiser(loss, seed, log_q):
    loss, q = with_costs(loss, seed), 10.0**log_q
    z, y, u0 = (a[0] for a in joint_sample(seed, 1))
    step = loss.core(K).dual_step(u0, z, y, q)
    ref = oracle(loss, K)
    assert on_simplex(step, y)
    assert_allclose(step, o.exact_step(ref, u0, z, int(y), q), rtol=1e-8, atol=1e-9)
    best = o.step_objective(ref, step, u0, z, y, q)
    for other in joint_sample(seed + 1, 20)[2] - np.eye(K)[joint_sample(seed + 1, 20)[1]] + np.eye(K)[y]:
        assert o.step_objective(ref, 0.9 * step + 0.1 * other, u0, z, y, q) <= best + 1e-9 * (1 + abs(best))


@joint
@pytest.mark.parametrize("q", [1e-9, 1e-4, 1.0, 1e4, 1e9])
@pytest.mark.parametrize("size", [1.0, 40.0, 1e3])
def test_joint_extremes(loss, q, size):
    rng = np.random.default_rng(0)
    core, ref = loss.core(K), oracle(loss, K)
    for y in range(K):
        z, u0 = size * rng.normal(size=K), np.eye(K)[y] - rng.dirichlet(np.ones(K))
        label = np.array([y], dtype=np.int32)
        assert np.isfinite([*core.value(z[None], label), *core.slopes(z[None], label)[0]]).all()
        step = core.dual_step(u0, z, y, q)
        assert np.isfinite(step).all()
        assert on_simplex(step, y)
        assert_allclose(step, o.exact_step(ref, u0, z, y, q), rtol=1e-6, atol=1e-7)


def test_crammer_singer_ties():
    """The true label wins ties at zero loss, then the lowest index."""
    core = losses.CrammerSinger().core(3)
    assert (core.slopes(np.array([[0.0, -1.0, -2.0]]), np.array([0], dtype=np.int32)) == 0).all()
    assert (core.slopes(np.zeros((1, 3)), np.array([2], dtype=np.int32)) == [[-1, 0, 1]]).all()


def test_two_classes_joint_equal_binary():
    """With two classes Crammer–Singer is the hinge, and multinomial the log loss, of the difference of the scores."""
    rng = np.random.default_rng(0)
    z, label = rng.normal(0, 2, (100, 2)), rng.integers(0, 2, 100).astype(np.int32)
    difference, y = np.ascontiguousarray(z[:, 1] - z[:, 0]), 2.0 * label - 1
    for both, single in ((losses.CrammerSinger(), losses.Hinge()), (losses.Multinomial(), losses.Log())):
        assert_allclose(both.core(2).value(z, label), single.core().value(difference, y), rtol=1e-12, atol=1e-13)
        assert_allclose(both.core(2).slopes(z, label)[:, 1], single.core().slope(difference, y), rtol=1e-12, atol=1e-13)


# -------------------------------------------------------------------------------------------------------- parameters


BAD = {
    "gamma": (losses.SmoothedHinge, [0.0, -1.0, np.nan, np.inf, "1", None, 1j]),
    "epsilon": (losses.EpsilonInsensitive, [-1e-9, np.nan, np.inf, "1", None, 1j]),
    "delta": (losses.Huber, [0.0, -1.0, np.nan, np.inf, "1", None, 1j]),
    "tau": (losses.Quantile, [0.0, 1.0, -0.5, 2.0, np.nan, "1", None, 1j]),
}


@pytest.mark.parametrize(
    ("field", "value"), [(field, value) for field, (_, values) in BAD.items() for value in values], ids=repr
)
def test_bad_parameters_are_named(field, value):
    with pytest.raises(ValueError, match=rf"{BAD[field][0].__name__}.*{field}"):
        BAD[field][0](value)


def test_squared_epsilon_insensitive_checks_epsilon():
    with pytest.raises(ValueError, match=r"SquaredEpsilonInsensitive.*epsilon"):
        losses.SquaredEpsilonInsensitive(-1.0)


@pytest.mark.parametrize(
    "cost",
    [((0, 1), (1, 0)), ((0, 1, 1), (1, 0, 1)), ((1, 1, 1), (1, 0, 1), (1, 1, 0)), ((0, -1, 1), (1, 0, 1), (1, 1, 0))],
)
def test_bad_cost_matrices_are_named(cost):
    with pytest.raises(ValueError, match=r"CrammerSinger.*cost"):
        losses.CrammerSinger(cost).core(3)


def test_not_finite_costs_are_refused():
    cost = np.ones((3, 3)) - np.eye(3)
    cost[0, 1] = np.nan
    with pytest.raises(ValueError, match=r"CrammerSinger.*cost"):
        losses.CrammerSinger(cost).core(3)


def test_costs_make_hashable_equal_losses():
    cost = np.ones((3, 3)) - np.eye(3)
    assert losses.CrammerSinger(cost) == losses.CrammerSinger(cost.tolist())
    assert hash(losses.CrammerSinger(cost)) == hash(losses.CrammerSinger(cost.tolist()))


def test_resolve_names_what_is_accepted():
    assert losses.resolve("hinge", ("margin",), "LinearSVC") == losses.Hinge()
    assert losses.resolve(losses.Huber(2.0), ("regression",), "LinearSVR") == losses.Huber(2.0)
    for loss in ("nonsense", "squared", losses.Squared(), 3):
        with pytest.raises(ValueError, match=r"LinearSVC.*accepts hinge"):
            losses.resolve(loss, ("margin", "joint"), "LinearSVC")


@pytest.mark.parametrize("loss", JOINT, ids=repr)
def test_joint_core_checks_shapes(loss):
    core = loss.core(3)
    with pytest.raises(ValueError, match="columns"):
        core.value(np.zeros((2, 4)), np.zeros(2, dtype=np.int32))
    with pytest.raises(ValueError, match="length"):
        core.value(np.zeros((2, 3)), np.zeros(5, dtype=np.int32))


# -------------------------------------------------------------------------------------------- the Moreau envelope

PIECEWISE = [loss for loss in SCALAR if loss.piecewise_linear]


@pytest.mark.parametrize("loss", PIECEWISE, ids=repr)
@pytest.mark.parametrize("count", [0, 1, 7, 8, 13, 400])
@pytest.mark.parametrize("delta", [1e-3, 0.4, 30.0])
def test_envelope(loss, count, delta):
    """Its slope is the dual step from the centre; its curvature, the slope's slope; its sums, those of the loss."""
    core, rng = loss.core(1), np.random.default_rng(1)
    z, y, u0 = sample(loss, count)
    h, dz = rng.uniform(0, 2, count), rng.normal(size=count)
    u, curvature, value, conjugate = core.smooth(z, y, h, u0, delta)
    steps = lambda z: np.array([core.dual_step(*row, delta) for row in zip(u0, z, y, strict=True)])  # noqa: E731
    assert_allclose(u, steps(z), rtol=1e-12, atol=1e-12)
    assert_allclose(value, h @ core.value(z, y), rtol=1e-12)
    assert_allclose(conjugate, h @ core.conjugate(u, y), rtol=1e-10, atol=1e-10)
    slope = core.smooth_slope(z, y, h, u0, delta, dz, 0.7)
    assert_allclose(slope, (h * dz) @ steps(z + 0.7 * dz), rtol=1e-10, atol=1e-10)
    tiny = 1e-7 * delta
    left, right = steps(z - tiny), steps(z + tiny)
    smooth_here = np.isclose(right - u, u - left, atol=1e-9)  # corners have two slopes
    assert count < 100 or smooth_here.mean() > 0.9
    assert_allclose(
        curvature[smooth_here], (h * (left - right) / (2 * tiny))[smooth_here], rtol=1e-6, atol=1e-6 / delta
    )


@scalar
def test_facts_agree_with_the_core(loss):
    """What Python says of a loss is what the core's struct has."""
    one, core = np.ones(1), loss.core()
    if loss.piecewise_linear:
        core.smooth(one, one, one, one, 0.1)
    else:
        with pytest.raises(ValueError, match="not piecewise linear"):
            core.smooth(one, one, one, one, 0.1)
    assert core.single == (loss.name in ("hinge", "squared_hinge", "smoothed_hinge"))
    z, y, _ = sample(loss)
    steepest = np.abs(core.slope(1e6 * np.sign(z), y)).max()
    assert np.isclose(steepest, loss.steepness) if np.isfinite(loss.steepness) else steepest > 1e5
    curvature = core.curvature(z, y)
    assert curvature.max() <= loss.smoothness if loss.smooth else not curvature.any()


@scalar
def test_boxes_are_the_loss(loss):
    """ℓ(z) = Σ max(0, height (p − s z)), and ``sides`` counts the boxes that kernel machines make variables of."""
    z, y, _ = sample(loss)
    if not loss.piecewise_linear:
        assert loss.sides == 0
        with pytest.raises(NotImplementedError, match=loss.name):
            loss.boxes(y)
        return
    s, p, heights = loss.boxes(y)
    assert loss.sides in (0, len(heights))
    assert_allclose(
        sum(h * np.maximum(0, b - a * z) for a, b, h in zip(s, p, heights, strict=True)), loss.core().value(z, y)
    )
    if loss.sides:
        assert set(heights) == {1.0}


@scalar
def test_flat_rows_have_no_loss(loss):
    """Not even after moving as far as was said; a loss that does not know of any says so."""
    z, y, _ = sample(loss)
    for reach in (0.0, 0.1, 0.3):
        flat = loss.flat(z, y, np.full(len(z), reach))
        assert not flat.any() or loss.sides
        for moved in (z - reach, z, z + reach):
            assert loss.core().value(moved, y)[flat].max(initial=0.0) <= 1e-15
    assert losses.Hinge().flat(np.array([2.0, 2.0]), np.array([1.0, -1.0]), np.array([0.5, 0.5])).tolist() == [
        True,
        False,
    ]


def test_links_of_whatever_is_given():
    assert [name for name in LOSSES if losses.link_of(name)] == ["log", "multinomial"]
    assert losses.link_of(losses.Log()) == "sigmoid"
    assert losses.link_of("multinomial") == "softmax"
    assert [losses.link_of(x) for x in ("nonsense", None, 3, ["log"], losses.Log, losses.Hinge())] == [None] * 6


def test_a_loss_by_name_takes_the_parameters_of_the_estimator_that_it_has():
    found = [losses.resolve(name, ("regression",), "SVR", epsilon=0.3) for name in ("epsilon_insensitive", "huber")]
    assert found == [losses.EpsilonInsensitive(0.3), losses.Huber()]
    own = losses.EpsilonInsensitive(0.1)
    assert losses.resolve(own, ("regression",), "SVR", epsilon=0.3) == own


def test_envelope_is_for_piecewise_linear_losses():
    one = np.ones(1)
    with pytest.raises(ValueError, match="not piecewise linear"):
        losses.Log().core(1).smooth(one, one, one, one, 0.1)
    with pytest.raises(ValueError, match="delta must be positive"):
        losses.Hinge().core(1).smooth(one, one, one, one, 0.0)
