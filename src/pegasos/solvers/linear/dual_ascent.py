"""The engine of SDCA: the dual is maximised over one row's variables at a time."""

from __future__ import annotations

import numpy as np

from pegasos import _core
from pegasos.problems.base import Bounds, Point
from pegasos.problems.linear import LinearProblem, Weights, best_biases, feasible
from pegasos.rows.views import Array
from pegasos.solvers.linear.lanes import GROUP, SINGLE_GROUP, LaneEngine, LaneGroups, common_arguments
from pegasos.util.fields import State, saved

#: Relative gap down to which single precision is trusted to go.
MIN_SINGLE_GAP = 1e-4

#: Largest curvature q of a row's dual problem, and range of ‖x‖², for which single precision is worth a try.
MAX_SINGLE_CURVATURE, SINGLE_NORMS = 100.0, (1e-12, 1e12)


class DualAscentEngine(LaneEngine[_core.Sdca]):
    """SDCA; see ``cpp/pegasos/linear/sdca.hpp``."""

    def __init__(
        self,
        problem: LinearProblem,
        *,
        shrinking: bool,
        sampling: str,
        blocks: int,
        seed: int,
        single: bool,
        feature: float | None = None,
    ) -> None:
        self.problem = problem
        self.ended = False
        self.next_check = 8.0 if problem.n_parts == 1 else 20.0
        self.best_online, self.guess = np.full(problem.n_parts, np.inf), np.full(problem.n_parts, np.inf)
        self.refreshed, self.tol, self.spent, self.reached = 0.0, 0.0, 0.0, np.inf
        self.finished = np.zeros(problem.n_parts, dtype=bool)
        if problem.bias == "feature":
            self.feature = problem.feature
        elif problem.bias == "free":
            # A constant feature of about the rows' size makes the method of multipliers fast.
            own = 0.5 * float(np.sqrt(max(problem.mean_squared_norm, 1e-12)))
            self.feature = own if feature is None else feature
        else:
            self.feature = 0.0
        self.shrinking, self.sampling, self.blocks, self.seed = shrinking, sampling, blocks, seed
        self.lanes = self._lanes(single and self._suits_single())

    def _suits_single(self) -> bool:
        """Whether to begin in single precision: several classes, a loss the core knows, rows of a sensible size."""
        problem = self.problem
        if problem.n_parts == 1 or problem.joint or not problem.scalar.single:
            return False
        squares = problem.examples.squared_norms
        stiffest = float(np.max(problem.c * (squares + self.feature**2))) / (problem.lam * problem.total)
        return stiffest <= MAX_SINGLE_CURVATURE and SINGLE_NORMS[0] <= float(squares.max()) <= SINGLE_NORMS[1]

    def _lanes(self, single: bool) -> LaneGroups[_core.Sdca]:
        problem, self.single = self.problem, single

        def make(first: int, count: int) -> _core.Sdca:
            return _core.Sdca(
                *common_arguments(problem, first, count),
                squared_norms=problem.examples.squared_norms,
                lam=problem.lam,
                feature=float(self.feature),
                multiplier=problem.bias == "free",
                threads=problem.threads,
                single=single,
                shrinking=self.shrinking,
                sampling=self.sampling,
                blocks=self.blocks,
                seed=self.seed,
            )

        return LaneGroups(problem, make, SINGLE_GROUP if single else GROUP)

    @property
    def epochs(self) -> float:
        return self.spent + self.lanes.epochs

    def start(self, point: Point[Weights]) -> None:
        """Begin at the dual variables of the point, and, if the bias is free, at its offsets."""
        if point.duals is not None:
            self.begin_at(feasible(self.problem, point.duals), point.model.b)

    def begin_at(self, u: Array, b: Array, W: Array | None = None) -> None:
        """Begin at the dual point u, W = W(u) (computed unless given), and, if the bias is free, at the offset b."""
        W = self.problem.dual_weights(u) if W is None else W
        offset = b if self.problem.bias == "free" else np.zeros_like(b)
        for solver, part in self.lanes.parts():
            solver.start(
                np.ascontiguousarray(u[:, part]), np.ascontiguousarray(W[part]), np.ascontiguousarray(offset[part])
            )

    def model(self) -> tuple[Array | None, Array]:
        # Weights in single precision are only near W(u), which a certificate computes anyway.
        return (None, self._biases()) if self.single else self.lanes.weights()

    def duals(self) -> Array | None:
        return self.lanes.averages()

    def online(self) -> tuple[Array, Array]:
        """Gap and loss of each part as the rows saw them when last visited."""
        pairs = [s.online() for s in self.lanes.solvers]
        return np.concatenate([gap for gap, _ in pairs]), np.concatenate([loss for _, loss in pairs])

    def due(self, tol: float) -> bool:
        if not self.ended:
            return False
        self.tol = tol
        if self.epochs >= self.next_check:
            return True
        # The gaps seen while visiting cost nothing. Each was true before its row's step, so that together they are two
        # or three times what is left at the end of the epoch; look closely when that promises success. Of many parts
        # some are late, and their certificate costs as much as some epochs.
        hope = max(tol, MIN_SINGLE_GAP if self.single else 0.0) * (2.5 if self.problem.n_parts == 1 else 1.4)
        gap, loss = self.online()
        # Norms are computed only when it can be close. −ℓ*(−u) ≤ ℓ(0) and D(u) ≥ D(0) ≥ 0 bound the penalty by P(0),
        # and primal values change little between epochs that are near the end.
        most = hope * np.minimum(loss + self.problem.at_zero(), 1.1 * self.guess)
        if not np.all((gap <= np.minimum(most, 0.5 * self.best_online)) | self.finished):
            return False
        self.guess = loss + np.concatenate([s.penalties() for s in self.lanes.solvers])
        return bool(np.all((gap <= hope * self.guess) | self.finished))

    def leave_out(self, Z: Array, W: Array) -> None:
        """Begin without the rows that are settled at the scores Z (NaN: not known), true some time before W = W(u).

        Their slack is three times the root mean square by which scores have moved since, measured on some rows.
        """
        problem = self.problem
        some = np.linspace(0, problem.examples.m - 1, min(problem.examples.m, 1000)).astype(np.int64)
        now = problem.examples.rows.scores(W, self._biases(), problem.threads, some)
        slack = 3 * float(np.sqrt(np.nanmean((now - Z[some]) ** 2)))
        for solver, part in self.lanes.parts():
            solver.leave_out(np.ascontiguousarray(Z[:, part]), slack)

    def reactivate(self, Z: Array) -> None:
        """Make those shrunk rows active again that are not settled at the scores Z."""
        for solver, part in self.lanes.parts():
            solver.reactivate(np.ascontiguousarray(Z[:, part]))

    def state(self) -> State:
        check = np.array([self.next_check, self.refreshed, self.tol, self.spent, self.reached, float(self.single)])
        return super().state() | {
            "check": check,
            "best_online": self.best_online.copy(),
            "guess": self.guess.copy(),
            "finished": self.finished * 1.0,
        }

    def restore(self, state: State) -> None:
        parts = (self.problem.n_parts,)
        check = saved(state, "check", (6,))
        self.next_check, self.refreshed, self.tol, self.spent, self.reached, single = map(float, check)
        if single not in (0.0, float(self.single)) or not 0 <= self.spent <= 1e15:
            raise ValueError("state: 'check' belongs to another problem")
        if self.single and not single:
            self.lanes = self._lanes(single=False)
        self.best_online, self.guess = (saved(state, name, parts) for name in ("best_online", "guess"))
        self.finished = saved(state, "finished", parts, low=0, high=1, whole=True).astype(bool)
        if self.finished.all():  # such a fit has ended; gone on with, it would wait for ever for work to be done
            raise ValueError("state: nothing is left to do")
        self.lanes.rest(self.finished)
        super().restore(state)

    def learn(self, bounds: Bounds[Weights]) -> None:
        self.best_online = self.online()[0]
        self.next_check = 1.5 * self.epochs + 1.0
        self.finished = bounds.within(self.tol)
        if self.single and self._exhausted(bounds):
            self._widen()
            return
        self.lanes.rest(self.finished)
        assert bounds.scores is not None
        self.reactivate(bounds.scores - bounds.model.b + self._biases())
        if self.epochs >= self.refreshed + 50:  # w = w(u) drifts apart by rounding; make it exact again
            self.refreshed = self.epochs
            self.begin_at(self.lanes.duals(), self._offsets())

    def _exhausted(self, bounds: Bounds[Weights]) -> bool:
        """Whether single precision has done what it can: it is near its limit, or has stopped making progress."""
        rest = ~self.finished
        if not rest.any():
            return False
        before, self.reached = self.reached, float(np.max(bounds.gap[rest] / bounds.primal[rest]))
        return not 4 * MIN_SINGLE_GAP < self.reached < 0.7 * before

    def _widen(self) -> None:
        """Go on from here in double precision."""
        u, offsets = self.lanes.duals(), self._offsets()
        self.spent += self.lanes.epochs
        self.lanes = self._lanes(single=False)
        self.lanes.rest(self.finished)
        self.begin_at(u, offsets)

    def _biases(self) -> Array:
        return np.concatenate([s.biases() for s in self.lanes.solvers])

    def _offsets(self) -> Array:
        return np.concatenate([s.offsets() for s in self.lanes.solvers])


def warm_bias(problem: LinearProblem, W: Array) -> Array:
    """The best free bias for the weights W (zero for the other kinds of bias)."""
    zero = np.zeros(problem.outputs)
    if problem.bias != "free" or problem.joint:
        return zero
    return best_biases(problem, problem.scores(W, zero))
