"""A user's loss, as its own functions of arrays give it: asked, and not believed where it can be seen to be wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, Protocol

import numpy as np

from pegasos.losses.numeric import REACH, best_offset, lower_conjugates
from pegasos.util.arrays import Array, first_true

#: Rows at whose targets a loss is looked at, and scores for each of them.
SAMPLED_ROWS, SAMPLED_SCORES = 64, 24

#: Rows whose dual variables are looked at where there is no conjugate.
COMPUTED_ROWS = 512

#: How far an inequality may be missed, relative to the terms in it; and an equality, whose terms may cancel. Beside
#: that, what rounding leaves of values near 0 that are a difference of numbers about 1.
INEQUALITY, EQUALITY, LEAST = 1e-9, 1e-6, 1e-12

#: The reaches at which the largest slopes are looked for, the first at which they are numbers.
REACHES = (REACH, 2.0**13, 2.0**8, 2.0**5, 1.0)

Function = Callable[[Array, Array], Any]


class Functions(Protocol):
    """What is asked of the loss itself."""

    @property
    def value(self) -> Function: ...
    @property
    def slope(self) -> Function: ...
    @property
    def conjugate(self) -> Function | None: ...
    @property
    def kind(self) -> str: ...
    @property
    def smoothness(self) -> float: ...
    @property
    def steepness(self) -> float: ...


class CheckedLoss:
    """A ``RowLoss`` of a user's functions, with −ℓ′ and −ℓ*(−u) where the user's are ℓ′ and ℓ*.

    What they return is copied, and checked: shape, type, and that it is a number. Their exceptions are let through.
    """

    def __init__(self, own: Functions) -> None:
        self.own = own

    # --- asking ------------------------------------------------------------------------------------------------------

    def _ask(self, name: str, at: Array, y: Array) -> Array:
        at, y = at.view(), y.view()
        at.flags.writeable = y.flags.writeable = False
        found = np.asarray(getattr(self.own, name)(at, y))
        if found.dtype.kind not in "biuf" or (found.dtype.kind == "f" and found.dtype.itemsize < 8):
            raise ValueError(
                f"CustomLoss: {name} returned {found.dtype} for float64, but certificates need float64 numbers"
            )
        if found.shape != at.shape:
            raise ValueError(f"CustomLoss: {name} returned shape {found.shape} for {len(at)} rows, not ({len(at)},)")
        return np.array(found, dtype=np.float64)

    def value(self, z: Array, y: Array) -> Array:
        """ℓ(z) of each row, a number of at least 0."""
        found = self._ask("value", z, y)
        if (k := first_true(~(np.isfinite(found) & (found >= 0)))) is not None:
            self._bad("value", z[k], y[k], found[k], "a finite number >= 0, as a loss is")
        return found

    def slope(self, z: Array, y: Array) -> Array:
        """−ℓ′(z) of each row."""
        found = self._ask("slope", z, y)
        if (k := first_true(~np.isfinite(found))) is not None:
            self._bad("slope", z[k], y[k], found[k], "a finite number")
        return -found

    def conjugate(self, u: Array, y: Array) -> Array:
        """−ℓ*(−u) of each row: the user's, or a lower bound made of values and slopes."""
        if self.own.conjugate is None:
            return lower_conjugates(self._loose_value, self._loose_slope, u, y, self._centre(y))
        found = self._ask("conjugate", -u, y)
        if (k := first_true(np.isnan(found) | (found == -np.inf))) is not None:
            self._bad("conjugate", -u[k], y[k], found[k], "a number, or inf outside the range of slopes")
        return -found

    def _bad(self, name: str, at: float, y: float, found: float, wanted: str) -> NoReturn:
        raise ValueError(f"CustomLoss: {name}({at:.17g}, y={y:.17g}) is {found}, but must be {wanted}")

    def _loose_value(self, z: Array, y: Array) -> Array:
        """Far out, where exponentials overflow, what is no number only ends the search."""
        return self._ask("value", z, y)

    def _loose_slope(self, z: Array, y: Array) -> Array:
        return -self._ask("slope", z, y)

    def _centre(self, y: Array) -> Array:
        """Where the scores of rows with these targets are: about them, for a regression."""
        return y if self.own.kind == "regression" else np.zeros(len(y))

    # --- what certificates and methods of arrays need besides ---------------------------------------------------------

    def clip(self, u: Array, y: Array) -> Array:
        """u between the slopes far out on both sides, and 0."""
        centre = self._centre(y)
        far = np.maximum(1.0, np.abs(centre))
        low, high = np.full((2, len(u)), np.nan)
        with np.errstate(all="ignore"):
            for reach in REACHES:
                unknown = np.flatnonzero(np.isnan(low) | np.isnan(high))
                if not len(unknown):
                    break
                low[unknown] = self._loose_slope(centre[unknown] + reach * far[unknown], y[unknown])
                high[unknown] = self._loose_slope(centre[unknown] - reach * far[unknown], y[unknown])
        # fmin and fmax: 0 where nothing is known.
        return np.clip(u, np.fmin(low, 0.0), np.fmax(high, 0.0))

    def best_offset(self, z: Array, y: Array, weight: Array, start: float) -> tuple[float, float, bool]:
        """The best bias for these scores."""
        return best_offset(self._loose_slope, z, y, weight, start)

    # --- is it what it says? -----------------------------------------------------------------------------------------

    def examine(self, z: Array, u: Array | None, y: Array) -> None:
        """Refuse a loss whose functions contradict each other at scores about these, or at these dual variables."""
        some = np.linspace(0, len(z) - 1, min(len(z), SAMPLED_ROWS)).astype(np.int64)
        p, targets = self._scores_about(z[some], y[some])
        with np.errstate(all="ignore"):  # far from the data an exponential may overflow
            value, a = self._ask("value", p, targets), self._ask("slope", p, targets)
            good = np.isfinite(value) & np.isfinite(a)
            if (k := first_true(np.isnan(value) | np.isnan(a))) is not None:
                name = "value" if np.isnan(value[k]) else "slope"
                self._bad(name, p[k], targets[k], np.nan, "a number")
        table = np.where(good, np.stack([p, value, a]), np.nan).reshape(3, -1, SAMPLED_SCORES)
        self._check_tangents(table[0], table[1], table[2], y[some])
        self._check_facts(table[0], table[2], y[some])
        if self.own.conjugate is not None:
            self._check_conjugate(p[good], value[good], a[good], targets[good])
        if u is not None:
            # A conjugate that has to be computed takes tens of calls, for all rows once more.
            step = 1 if self.own.conjugate is not None else -(-len(z) // COMPUTED_ROWS)
            self._check_duals(z[::step].copy(), u[::step].copy(), y[::step].copy())

    def _scores_about(self, z: Array, y: Array) -> tuple[Array, Array]:
        """Scores near and far from those of some rows, the same for every call, and the rows' targets."""
        rng = np.random.default_rng(0)
        about = np.stack([z, self._centre(y)], axis=1)[:, rng.integers(0, 2, SAMPLED_SCORES)]
        size = 0.5 + np.median(np.abs(z - self._centre(y)))
        away = rng.standard_normal(about.shape) * 10.0 ** rng.uniform(-3.0, 1.0, about.shape) * size
        away[:, 0] = 0.0
        return (about + away).ravel(), np.repeat(y, SAMPLED_SCORES)

    def _check_tangents(self, p: Array, value: Array, a: Array, y: Array) -> None:
        """ℓ(q) ≥ ℓ(p) + ℓ′(p)(q − p) for all pairs of a row's scores."""
        with np.errstate(invalid="ignore", over="ignore"):
            step = p[:, None, :] - p[:, :, None]
            rise = a[:, :, None] * step
            below = value[:, :, None] + rise - value[:, None, :]
            size = np.abs(value[:, :, None]) + np.abs(rise) + np.abs(value[:, None, :])
            wrong = below > INEQUALITY * size + LEAST
        if (at := first_true(wrong.ravel())) is None:
            return
        row, i, j = np.unravel_index(at, wrong.shape)
        with np.errstate(invalid="ignore", over="ignore"):
            falls = (step[row] * (a[row][None, :] - a[row][:, None]) < 0).any()
        raise ValueError(
            f"CustomLoss: slope is not the slope of a convex loss: with y={y[row]:.6g}, value(q) >= value(p) + "
            f"slope(p) (q - p) fails at p={p[row, i]:.17g}, q={p[row, j]:.17g}: {value[row, j]:.6g} is less than "
            f"{value[row, i]:.6g} + {rise[row, i, j]:.6g}. "
            + (
                "The slope falls as the score grows: the loss is not convex, or the slope has the wrong sign"
                if falls
                else "slope must be the derivative of value with respect to the scores"
            )
        )

    def _check_facts(self, p: Array, a: Array, y: Array) -> None:
        """No slope above ``steepness``, no change of one above ``smoothness`` times the way."""
        steep = np.abs(a) > self.own.steepness * (1 + INEQUALITY)
        if (at := first_true(steep.ravel())) is not None:
            row, i = np.unravel_index(at, steep.shape)
            raise ValueError(
                f"CustomLoss: steepness={self.own.steepness:.6g}, but slope({p[row, i]:.17g}, y={y[row]:.6g}) is "
                f"{a[row, i]:.6g}"
            )
        if not np.isfinite(self.own.smoothness):
            return
        order = np.argsort(p, axis=1)
        p, a = np.take_along_axis(p, order, 1), np.take_along_axis(a, order, 1)
        slack = INEQUALITY * (np.abs(a[:, 1:]) + np.abs(a[:, :-1]) + self.own.smoothness)
        rough = np.diff(a, axis=1) > self.own.smoothness * np.diff(p, axis=1) + slack
        if (at := first_true(rough.ravel())) is not None:
            row, i = np.unravel_index(at, rough.shape)
            raise ValueError(
                f"CustomLoss: smoothness={self.own.smoothness:.6g}, but with y={y[row]:.6g} the slope changes by "
                f"{a[row, i + 1] - a[row, i]:.6g} from {p[row, i]:.17g} to {p[row, i + 1]:.17g}"
            )

    def _check_conjugate(self, p: Array, value: Array, a: Array, y: Array) -> None:
        """ℓ(p) + ℓ*(ℓ′(p)) = ℓ′(p) p: Fenchel and Young, with equality."""
        with np.errstate(over="ignore"):
            dual, product = -self.conjugate(-a, y), a * p
        missed = np.abs(value + dual - product) > EQUALITY * (np.abs(value) + np.abs(product) + 1e-3)
        if (k := first_true(missed)) is not None:
            raise ValueError(
                f"CustomLoss: with y={y[k]:.6g}, value(p) + conjugate(slope(p)) = slope(p) p fails at "
                f"p={p[k]:.17g}: slope(p) is {a[k]:.6g}, value(p) is {value[k]:.6g}, conjugate(slope(p)) is "
                f"{dual[k]:.6g}, and slope(p) p is {product[k]:.6g}"
            )

    def _check_duals(self, z: Array, u: Array, y: Array) -> None:
        """ℓ(z) + ℓ*(−u) ≥ −u z, row by row: the certificate's own gap."""
        value, below, product = self.value(z, y), self.conjugate(u, y), u * z
        size = value + np.abs(product) + np.where(np.isfinite(below), np.abs(below), 0.0)
        wrong = below - value - product > INEQUALITY * size + LEAST
        if (k := first_true(wrong)) is not None:
            if self.own.conjugate is None:
                what = f"a score with a lower value(p) + {u[k]:.6g} p lies outside of the tangents at others"
                raise ValueError(
                    f"CustomLoss: slope is not the slope of a convex loss: with y={y[k]:.6g}, {what} (at {z[k]:.17g})"
                )
            raise ValueError(
                f"CustomLoss: with y={y[k]:.6g}, value(z) + conjugate(a) >= a z fails at z={z[k]:.17g}, "
                f"a={-u[k]:.17g}: {value[k]:.6g} + {-below[k]:.6g} is less than {-product[k]:.6g}"
            )
