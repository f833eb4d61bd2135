"""A loss of a user's own: its conjugate from values and slopes, its best bias, and what is found wrong with it."""

from __future__ import annotations

import pickle

import numpy as np
import own_losses as own
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegasos import _core
from pegasos.losses import CustomLoss, Hinge, Log
from pegasos.losses.checked import CheckedLoss
from pegasos.losses.numeric import best_offset, lower_conjugates

LOSSES = own.MARGIN | own.REGRESSION
RNG = np.random.default_rng(0)


def targets(loss, m, scale=1.0):
    return RNG.choice([-1.0, 1.0], m) if loss.kind == "margin" else scale * RNG.normal(size=m)


def loose(loss):
    """The loss without its conjugate."""
    return CheckedLoss(CustomLoss(loss.value, loss.slope, kind=loss.kind))


# --- conjugates ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LOSSES)
def test_conjugate_of_a_slope_touches(name):
    """−ℓ*(−u) = ℓ(z) + u z at u = −ℓ′(z): from below, and to many digits."""
    loss = LOSSES[name]
    y = targets(loss, 400, 3.0)
    z = y * (loss.kind == "regression") + 4.0 * RNG.normal(size=400)
    u = loose(loss).slope(z, y)
    exact = loss.value(z, y) + u * z
    found = loose(loss).conjugate(u, y)
    assert (found <= exact + 1e-15 * np.abs(exact)).all()
    np.testing.assert_allclose(found, exact, rtol=1e-10, atol=1e-12 * (1 + np.abs(u * z).max()))


@pytest.mark.parametrize("name", LOSSES)
def test_conjugate_is_the_lowest_sum(name):
    """Against a fine grid, at mixtures of two slopes: at kinks, and between."""
    loss = LOSSES[name]
    y = targets(loss, 40)
    a, b = (-loss.slope(3.0 * RNG.normal(size=40), y) for _ in range(2))
    share = RNG.uniform(size=40)
    u = share * a + (1 - share) * b
    found = loose(loss).conjugate(u, y)
    for k in range(40):
        lowest = -own.conjugate(loss, -u[k], y[k])
        assert found[k] <= lowest + 1e-12 * (1 + abs(lowest))
        assert found[k] == pytest.approx(lowest, abs=1e-7)


@pytest.mark.parametrize("name", ["hinge*", "log*", "huber*"])
def test_conjugate_against_the_given_one(name):
    loss = LOSSES[name]
    y = targets(loss, 300)
    u = -loss.slope(RNG.normal(size=300), y) * RNG.uniform(size=300)
    np.testing.assert_allclose(loose(loss).conjugate(u, y), CheckedLoss(loss).conjugate(u, y), rtol=1e-9, atol=1e-12)


def test_conjugate_at_and_beyond_the_border():
    y = np.array([1.0, -1.0, 1.0, 1.0, -1.0, 1.0])
    u = np.array([1.0, -1.0, 0.0, 1.5, 0.1, -1e-9])
    found = loose(own.HINGE).conjugate(u, y)
    np.testing.assert_allclose(found, [1.0, 1.0, 0.0, -np.inf, -np.inf, -np.inf])
    np.testing.assert_array_equal(loose(own.HINGE).clip(u, y), [1.0, -1.0, 0.0, 1.0, 0.0, 0.0])


def test_conjugate_where_slopes_fade_slowly():
    """1/z far out: slopes that are not reached get the chord to 0, which is below the conjugate 2√u."""

    def value(z, y):
        return np.where(y * z > 1, 1 / np.maximum(y * z, 1), 2 - y * z)

    def slope(z, y):
        return -y / np.maximum(y * z, 1) ** 2

    y, u = np.ones(3), np.array([1e-4, 1e-13, 0.0])
    found = CheckedLoss(CustomLoss(value, slope)).conjugate(u, y)
    assert (found <= 2 * np.sqrt(u) + 1e-18).all()
    assert found[0] == pytest.approx(2e-2)
    assert found[1] > 0
    assert found[2] == 0


def test_conjugate_of_what_overflows():
    """exp(−yz) and the naive logistic loss are infinite, or no number, far out."""
    y = np.array([1.0, -1.0, 1.0])
    u = y * np.array([0.5, 3.0, 1e-6])
    with np.errstate(over="ignore"):
        found = lower_conjugates(
            lambda z, y: np.exp(-y * z), lambda z, y: y * np.exp(-y * z), u, y, np.zeros(3)
        )  # min_z exp(−yz) + u z = p − p log p for p = yu
        p = y * u
        np.testing.assert_allclose(found, p - p * np.log(p), rtol=1e-9)
        naive = CheckedLoss(
            CustomLoss(lambda z, y: np.log(1 + np.exp(-y * z)), lambda z, y: -y * np.exp(-y * z) / (1 + np.exp(-y * z)))
        )
        u = y * np.array([0.5, 0.9, 0.01])
        np.testing.assert_allclose(naive.conjugate(naive.clip(u, y), y), Log().scalar().conjugate(u, y), rtol=1e-9)


# --- the best bias ---------------------------------------------------------------------------------------------------


def balance(loss, z, y, c, b):
    return c @ -loss.slope(z + b, y)


@pytest.mark.parametrize("name", LOSSES)
@given(seed=st.integers(0, 10**6), m=st.integers(2, 40))
def test_best_offset(name, seed, m):
    """Σ c u is positive on the left of what is found and negative on the right of it, or zero."""
    loss, rng = LOSSES[name], np.random.default_rng(seed)
    y = rng.permutation(np.where(np.arange(m) % 2, 1.0, -1.0)) if loss.kind == "margin" else 5 * rng.normal(size=m)
    z, c = rng.normal(size=m) * 10.0 ** rng.uniform(-2, 2), rng.uniform(0.1, 2.0, size=m)
    lo, hi, flat = CheckedLoss(loss).best_offset(z, y, c, rng.normal())
    size = c @ np.abs(loss.slope(z + lo, y)) + c.sum()
    if flat:
        assert abs(balance(loss, z, y, c, 0.5 * (lo + hi))) <= 1e-9 * size
    else:
        assert np.nextafter(lo, hi) == hi or hi - lo < 1e-9 * (1 + abs(lo))
        assert balance(loss, z, y, c, lo) >= 0 >= balance(loss, z, y, c, hi)


def test_best_offset_is_the_cores():
    """The stretch of equally good biases of the hinge loss, from wherever it is looked for."""
    z, y, c = RNG.normal(size=60), targets(own.HINGE, 60), np.ones(60)
    for start in (-30.0, 0.0, 0.4, 1e3):
        low, high, flat = Hinge().scalar().best_offset(z, y, c, start)
        found = CheckedLoss(own.HINGE).best_offset(z, y, c, start)
        assert found[2] == flat
        np.testing.assert_allclose(found[:2], [low, high], rtol=1e-12, atol=1e-12)


def test_best_offset_of_one_class():
    """Loss and slope vanish towards one side: any bias far enough, and no search without end."""
    z, c = RNG.normal(size=9), np.ones(9)
    for loss in (own.HINGE, own.LOG):
        lo, hi, flat = best_offset(CheckedLoss(loss).slope, z, np.ones(9), c, 0.0)
        assert flat
        assert np.isfinite([lo, hi]).all()
        assert loss.value(z + 0.5 * (lo + hi), np.ones(9)).max() < 1e-9


# --- what is wrong with a loss ---------------------------------------------------------------------------------------


def examine(loss, u=None):
    y = targets(loss, 30)
    loss.examine(RNG.normal(size=30), u, y)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e5])
def test_good_losses_pass(name, scale):
    loss = LOSSES[name]
    y = targets(loss, 50, scale)
    z = y * (loss.kind == "regression") + RNG.normal(size=50) * (scale if loss.kind == "regression" else 1.0)
    loss.examine(z, CheckedLoss(loss).slope(z, y), y)


WRONG = {
    "ramp": (lambda z, y: np.clip(1 - y * z, 0, 2), lambda z, y: -y * (np.abs(z) < 1), "the loss is not convex"),
    "sign": (own.log, lambda z, y: -own.log_slope(z, y), "must be the derivative of value|the loss is not convex"),
    "half": (own.log, lambda z, y: 0.5 * own.log_slope(z, y), "must be the derivative of value"),
    "margin": (own.log, lambda z, y: y * own.log_slope(z, y), "must be the derivative|the loss is not convex"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_slopes(name):
    value, slope, message = WRONG[name]
    with pytest.raises(ValueError, match=f"not the slope of a convex loss.*fails at p=.*({message})"):
        examine(CustomLoss(value, slope))


@pytest.mark.parametrize(
    "conjugate",
    [
        lambda a, y: own.log_conjugate(-a, y),  # of u, not of the slope
        lambda a, y: -own.log_conjugate(a, y),
        lambda a, y: own.log_conjugate(a, y) + 1e-3,
        lambda a, y: np.zeros(len(a)),
    ],
)
def test_wrong_conjugates(conjugate):
    with pytest.raises(ValueError, match=r"value\(p\) \+ conjugate\(slope\(p\)\) = slope\(p\) p fails at p="):
        examine(CustomLoss(own.log, own.log_slope, conjugate))


def test_a_conjugate_wrong_where_no_slope_is():
    """The hinge's slopes are 0 and 1 only, but dual variables lie between, too: there the data's own gap shows it."""
    bad = CustomLoss(own.hinge, own.hinge_slope, lambda a, y: np.where(y * a * (1 + y * a) == 0, y * a, -5.0))
    examine(bad)
    with pytest.raises(ValueError, match=r"value\(z\) \+ conjugate\(a\) >= a z fails at z=.*, a="):
        bad.examine(np.array([0.3]), np.array([0.5]), np.array([1.0]))


def test_wrong_facts():
    with pytest.raises(ValueError, match=r"smoothness=0.1, but with y=.* the slope changes by"):
        examine(CustomLoss(own.log, own.log_slope, smoothness=0.1))
    with pytest.raises(ValueError, match=r"steepness=0.5, but slope\(.*\) is"):
        examine(CustomLoss(own.log, own.log_slope, steepness=0.5))


ANSWERS = {
    "negative": (lambda z, y: own.log(z, y) - 1, own.log_slope, r"value\(.*, y=1\) is -.*, but must be a finite"),
    "nan": (lambda z, y: np.where(z > 1, np.nan, 0 * z), own.log_slope, r"value\(2, y=1\) is nan, but must be"),
    "infinite": (own.log, lambda z, y: np.where(z > 1, np.inf, 0 * z), r"slope\(2, y=1\) is inf, but must be"),
    "shape": (lambda z, y: own.log(z, y).sum(), own.log_slope, r"value returned shape \(\) for 2 rows, not \(2,\)"),
    "column": (own.log, lambda z, y: own.log_slope(z, y)[:, None], r"slope returned shape \(2, 1\) for 2 rows"),
    "type": (lambda z, y: np.array(["a", "b"]), own.log_slope, "value returned <U1 for float64"),
    "single": (own.log, lambda z, y: own.log_slope(z, y).astype("f"), "slope returned float32 for float64"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers(name):
    value, slope, message = ANSWERS[name]
    checked, z, y = CheckedLoss(CustomLoss(value, slope)), np.array([0.9, 2.0]), np.ones(2)
    with pytest.raises(ValueError, match=f"CustomLoss: {message}"):
        (checked.value(z, y), checked.slope(z, y))


def test_conjugate_answers():
    checked = CheckedLoss(CustomLoss(own.log, own.log_slope, lambda a, y: a * np.log(a)))
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match=r"conjugate\(-0.5, y=1\) is nan, but must be"):
        checked.conjugate(np.array([0.5]), np.ones(1))


def test_writing_to_what_is_not_ones_own():
    def value(z, y):
        z *= y
        return np.exp(-z)

    with pytest.raises(ValueError, match="read-only"):
        CheckedLoss(CustomLoss(value, own.log_slope)).value(np.zeros(2), np.ones(2))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"value": 3}, "value=3 must be a function"),
        ({"slope": None}, "slope=None must be a function"),
        ({"conjugate": "no"}, "conjugate='no' must be a function of .scores, y. or None"),
        ({"value": dict}, "value=<class 'dict'> is a class"),
        ({"kind": "joint"}, "kind='joint' must be 'margin' or 'regression'"),
        ({"smoothness": 0}, "smoothness=0 must be a number > 0"),
        ({"steepness": "steep"}, "steepness='steep' must be a number > 0"),
    ],
)
def test_parameters(given, message):
    with pytest.raises(ValueError, match=f"CustomLoss: {message}"):
        CustomLoss(**({"value": own.log, "slope": own.log_slope} | given))


def test_what_it_is_known_by():
    """Two losses with functions of the same name are told apart by what these return; copies are the same."""
    one, other = (CustomLoss(lambda z, y, k=k: k * own.log(z, y), lambda z, y: own.log_slope(z, y)) for k in (1, 2))
    assert one.spelled() != other.spelled()
    assert pickle.loads(pickle.dumps(own.LOG_DUAL)) == own.LOG_DUAL
    assert "0x" not in one.spelled()


def test_the_core_does_not_know_it():
    with pytest.raises(TypeError, match="Python functions"):
        own.LOG.core()
    assert isinstance(Log().by_rows(), _core.Loss)
