"""LASVM: kernel machines from one pass over the rows (Bordes, Ertekin, Weston & Bottou 2005).

A set S of variables is kept, with g_s = t_s − F(x_s) of each. Visiting a variable k means

    PROCESS(k)   k joins S, and moves together with the variable of S that violates most against it;
    REPROCESS    the most violating pair of S moves, and variables at zero that violate against no other leave S.

A pair (i, j) moves by min((g_i − g_j)/(K_ii + K_jj − 2K_ij), hi_i − α_i, α_j − lo_j), if g_i − g_j > τ. Without a bias
no constraint joins the variables: k moves alone, as does the variable of S that violates most, by g_i/K_ii as far as
its bounds allow, if that is upwards and g_i > τ or downwards and −g_i > τ; those at zero that do not violate leave S.

Here F is kept of all rows, not of S alone: a visit then costs kernel values only where something moves, and the rows of
the next visits that will are computed together. What LASVM calls finishing, REPROCESS until no pair violates, is done
over all variables and with the batches of SMO, which goes on from α and F as they are. As in SMO, α is signed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pegasos import _core
from pegasos.fit.engine import Engine, Options
from pegasos.problems.kernel import Coefficients, KernelProblem
from pegasos.problems.part import Part, check_values
from pegasos.rows.views import Array
from pegasos.solvers.base import KernelSolver, check_count, check_flag, check_positive
from pegasos.solvers.kernel.reasons import Ending
from pegasos.solvers.kernel.smo_engine import SMOEngine
from pegasos.solvers.kernel.smo_part import SMOPart
from pegasos.util.fields import State, saved

#: Visits in one call of ``advance``; the kernel rows that they are likely to need are computed together.
VISITS_PER_CALL = 64


class _Online:
    """The online part of one problem: the set S, in the order of joining, and how many visits were made."""

    def __init__(self, part: Part, *, pairs: bool) -> None:
        self.part, self.pairs = part, pairs
        self.movable = np.flatnonzero(part.lo < part.hi)
        self.room, self.count = np.zeros(part.size, dtype=np.int64), 0
        self.inside = np.zeros(part.size, dtype=bool)
        self.visits = 0
        # The two of a pair that met no bound have the same g: rounding errors must not decide which is the extreme.
        self.rounding = 1e-12 * float(np.abs(part.t).max(initial=0.0))
        self.top = self.bottom = -1  # the extremes of S: which can rise and has the largest g, or fall and the smallest

    def slopes(self, state: SMOPart, variables: Array) -> Array:
        """Their g = t − F."""
        return np.asarray(self.part.t[variables] - state.F[self.part.row[variables]])

    def slope(self, state: SMOPart, v: int) -> float:
        """The g of one variable."""
        return float(self.part.t[v] - state.F[self.part.row[v]])

    @property
    def members(self) -> Array:
        """The variables of S."""
        return self.room[: self.count]

    def join(self, state: SMOPart, v: int) -> None:
        """Put v, whose α is zero, into S; the extremes are kept up to date."""
        self.room[self.count] = v
        self.count += 1
        self.inside[v] = True
        g = self.slope(state, v)
        if self.part.hi[v] > 0 and (self.top < 0 or g - self.slope(state, self.top) > self.rounding):
            self.top = v
        if self.part.lo[v] < 0 and (self.bottom < 0 or self.slope(state, self.bottom) - g > self.rounding):
            self.bottom = v

    def find_extremes(self, state: SMOPart) -> None:
        """The variable of S with the largest g that can rise, and the one with the smallest g that can fall."""
        self.top, self.bottom, finite = _core.lasvm_extremes(*self._set(state), self.rounding)
        if not finite:
            raise ValueError("the scores left the range of floating-point numbers; scale the features or lower C")

    def violates(self, state: SMOPart, i: int, j: int, tau: float) -> bool:
        """Whether g_i − g_j, what a unit up of α_i and down of α_j gains, is above τ."""
        return i >= 0 and j >= 0 and self.slope(state, i) - self.slope(state, j) > tau

    def leave(self, state: SMOPart) -> None:
        """Variables at zero that violate against no other of S, or without a bias not by themselves, leave it."""
        high = low = 0.0
        if self.pairs:
            if self.top < 0 or self.bottom < 0:
                return
            high, low = self.slope(state, self.top), self.slope(state, self.bottom)
        self.count = _core.lasvm_leave(*self._set(state), self.inside, high, low)
        if not all(v < 0 or self.inside[v] for v in (self.top, self.bottom)):
            self.find_extremes(state)

    def worst(self, state: SMOPart) -> int:
        """The variable of S that violates most by itself, −1 if S is empty."""
        rising = self.slope(state, self.top) if self.top >= 0 else -np.inf
        falling = -self.slope(state, self.bottom) if self.bottom >= 0 else -np.inf
        return self.top if rising >= falling else self.bottom

    def violation(self, state: SMOPart, v: int) -> float:
        """What a unit's move of one variable the way it can go gains."""
        g, alpha = self.slope(state, v), float(state.alpha[v])
        return max(g if alpha < self.part.hi[v] else -np.inf, -g if alpha > self.part.lo[v] else -np.inf)

    def _set(self, state: SMOPart) -> tuple[Array, int, Array, Array, Array, Array, Array, Array]:
        part = self.part
        return self.room, self.count, part.row, part.t, part.lo, part.hi, state.alpha, state.F


class LASVMEngine(SMOEngine):
    """Passes over the variables of one part after the other, each followed by SMO where ``finish`` is set."""

    endings = (*SMOEngine.endings, Ending.PASSES_DONE)

    def __init__(
        self,
        problem: KernelProblem,
        options: Options,
        *,
        epochs: int,
        finish: bool,
        tau: float,
    ) -> None:
        super().__init__(problem, options)
        self.seed, self.passes, self.finish, self.tau = options.seed, epochs, finish, tau
        self.online = [_Online(part, pairs=self.balance) for part in problem.parts]
        self._order: tuple[int, int, Array] | None = None
        self._moves: list[tuple[int, float]] = []  # of these visits

    def advance(self) -> None:
        """Some visits, or a round of SMO, of one part."""
        self.whole = False
        self._advance()
        self.whole = True

    def _advance(self) -> None:
        for k, (state, online) in enumerate(zip(self.states, self.online, strict=True)):
            if state.ending:
                continue
            if online.visits < self.passes * len(online.movable):
                self._visits(k, state, online)
                return
            if not state.rests:
                self._round(k, state)
                return

    def due(self, tol: float) -> bool:
        """As for SMO; but while rows are visited certificates are rare, since nothing is decided by them."""
        passing = any(
            online.visits < self.passes * len(online.movable) and not state.ending
            for state, online in zip(self.states, self.online, strict=True)
        )
        return super().due(tol) and (not passing or self.work > 2 * self.certified_at)

    # --- visits ------------------------------------------------------------------------------------------------------

    def _visits(self, k: int, state: SMOPart, online: _Online) -> None:
        epoch, first = divmod(online.visits, len(online.movable))
        variables = self._epoch_order(k, epoch)[first : first + VISITS_PER_CALL]
        self._fetch(k, state, online, variables)
        for v in variables.tolist():
            self._visit(k, state, online, v)
            online.visits += 1
            if self.max_steps is not None and state.steps >= self.max_steps:
                state.ending = Ending.MAX_STEPS
                break
        self._note_moves(k, state)
        if state.ending:
            return
        if not self.finish and online.visits >= self.passes * len(online.movable):
            state.ending = Ending.PASSES_DONE

    def _epoch_order(self, k: int, epoch: int) -> Array:
        if self._order is None or self._order[:2] != (k, epoch):
            order = np.random.default_rng([self.seed, k, epoch]).permutation(self.online[k].movable)
            self._order = k, epoch, order
        return self._order[2]

    def _fetch(self, k: int, state: SMOPart, online: _Online, variables: Array) -> None:
        """Compute the kernel rows of variables outside S that violate now, so that the cache has them."""
        part, new = online.part, variables[~online.inside[variables]]
        g = online.slopes(state, new)
        high = low = 0.0
        if online.pairs:
            low = online.slope(state, online.bottom) if online.bottom >= 0 else np.inf
            high = online.slope(state, online.top) if online.top >= 0 else -np.inf
        due = np.where(part.hi[new] > 0, g - low, high - g) > self.tau
        wanted = np.unique(part.row[new[due]])
        self.problem.rows(k).add(wanted, np.zeros(len(wanted)), np.zeros(part.m))

    def _visit(self, k: int, state: SMOPart, online: _Online, v: int) -> None:
        """PROCESS(v) and REPROCESS."""
        if not online.pairs:
            self._visit_alone(k, state, online, v)
            return
        if not online.inside[v]:
            online.join(state, v)
            i, j = (v, online.bottom) if online.part.hi[v] > 0 else (online.top, v)
            if online.violates(state, i, j, self.tau):
                self._move(k, state, i, j)
                online.find_extremes(state)
        if online.violates(state, online.top, online.bottom, self.tau):
            self._move(k, state, online.top, online.bottom)
            online.find_extremes(state)
            online.leave(state)

    def _visit_alone(self, k: int, state: SMOPart, online: _Online, v: int) -> None:
        """The same without a bias."""
        if not online.inside[v]:
            online.join(state, v)
            if online.violation(state, v) > self.tau:
                self._move_alone(k, state, v)
                online.find_extremes(state)
        if (worst := online.worst(state)) >= 0 and online.violation(state, worst) > self.tau:
            self._move_alone(k, state, worst)
            online.find_extremes(state)
            online.leave(state)

    def _move_alone(self, k: int, state: SMOPart, i: int) -> None:
        """The best step of α_i."""
        part, rows = state.part, self.problem.rows(k)
        row = part.row[[i]]
        bend, slope = float(self._diagonal_of(k, rows)[row[0]]), float(part.t[i] - state.F[row[0]])
        self.indefinite |= bend < 0
        if not np.isfinite(bend):
            check_values(np.array([[bend]]), self.problem.numbers(k, row))
        before = float(state.alpha[i])
        state.alpha[i] = min(max(before + slope / max(bend, 1e-12), float(part.lo[i])), float(part.hi[i]))
        step = float(state.alpha[i]) - before
        rows.add(row, np.array([step]), state.F)
        self._moves.append((int(row[0]), step))
        state.objective += step * (slope - 0.5 * step * max(bend, 0.0))
        state.steps += 1
        self.work += part.m

    def _move(self, k: int, state: SMOPart, i: int, j: int) -> None:
        """The best step along α_i + δ, α_j − δ."""
        part, rows, diagonal = state.part, self.problem.rows(k), self._diagonal_of(k, self.problem.rows(k))
        pair = part.row[[i, j]]
        a, b = int(pair[0]), int(pair[1])
        value = float(self._values(k, np.array([i, j]), rows)[0, 1])
        bend = float(diagonal[a] + diagonal[b] - 2 * value)
        self.indefinite |= bend < -1e-5 * abs(float(max(diagonal[a], diagonal[b])))
        slope = float((part.t[i] - state.F[a]) - (part.t[j] - state.F[b]))
        wanted = slope / max(bend, 1e-12)
        room_i, room_j = float(part.hi[i] - state.alpha[i]), float(state.alpha[j] - part.lo[j])
        step = min(wanted, room_i, room_j)
        # The variable that stops the step gets its bound exactly.
        state.alpha[i] = part.hi[i] if step == room_i else state.alpha[i] + step
        state.alpha[j] = part.lo[j] if step == room_j else state.alpha[j] - step
        if a != b:
            rows.add(pair, np.array([step, -step]), state.F)
            self._moves += [(a, step), (b, step)]
        state.objective += step * (slope - 0.5 * step * max(bend, 0.0))
        state.steps += 1
        self.work += 2 * part.m

    def _note_moves(self, k: int, state: SMOPart) -> None:
        """Bring the bound of the scores' rounding errors up to date, for all moves of these visits."""
        if self._moves:
            moved, step = (np.array(column) for column in zip(*self._moves, strict=True))
            self._added(k, state, moved, step, single=self.problem.rows(k).single)
            self._moves = []

    # --- the state ---------------------------------------------------------------------------------------------------

    def state(self) -> State:
        return super().state() | {
            "members": np.concatenate([online.members for online in self.online]).astype(np.float64),
            "online": np.array([(online.count, online.visits) for online in self.online], dtype=np.float64),
        }

    def restore(self, state: State) -> None:
        sizes = [part.size for part in self.problem.parts]
        table = saved(state, "online", (len(sizes), 2), low=0, high=2**53, whole=True).astype(np.int64)
        members = saved(state, "members", (int(table[:, 0].sum()),), low=0, high=max(sizes) - 1, whole=True)
        each = np.split(members.astype(np.int64), np.cumsum(table[:, 0])[:-1])
        for size, mine in zip(sizes, each, strict=True):
            if len(np.unique(mine)) < len(mine) or (len(mine) and mine.max() >= size):
                raise ValueError("state: 'members' names a variable twice, or one that is not there")
        super().restore(state)
        for part_state, online, mine, visits in zip(self.states, self.online, each, table[:, 1], strict=True):
            online.count, online.visits = len(mine), int(visits)
            online.room[: len(mine)] = mine
            online.inside[:] = False
            online.inside[mine] = True
            online.find_extremes(part_state)


@dataclass(frozen=True)
class LASVM(KernelSolver):
    """LASVM: a good kernel machine from one pass over the rows, and the optimum after finishing.

    Every row is looked at once, in random order: it moves together with the row that violates the optimality conditions
    most against it (PROCESS), then the worst pair of all that are kept moves (REPROCESS), and rows that will not matter
    leave the set. Finishing repeats REPROCESS over all rows until the fit's ``tol``, with the batches of :class:`SMO`.
    With ``fit_intercept=False`` rows move one by one. Bordes, Ertekin, Weston & Bottou (2005).

    Parameters
    ----------
    epochs : int, default=1
        Passes over the rows.
    finish : bool, default=True
        Whether to go on to the optimum. Without, the fit ends after its passes, with whatever gap there is.
    tau : float, default=1e-3
        Pairs, or without a bias rows, that violate by no more are left alone in the passes.

    Examples
    --------
    >>> from pegasos import LASVM, SVC
    >>> model = SVC(solver=LASVM(epochs=2), gamma=1.0).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 1, 0])
    >>> model.predict([[0.0], [1.5]])
    array([0, 1])
    """

    epochs: int = 1
    finish: bool = True
    tau: float = 1e-3
    name: ClassVar[str] = "lasvm"
    intercepts: ClassVar[tuple[str, ...]] = ("unregularized", "none")

    def __post_init__(self) -> None:
        check_count(self, "epochs")
        check_flag(self, "finish")
        check_positive(self, "tau")

    def engine(self, problem: KernelProblem, options: Options) -> Engine[Coefficients]:
        return LASVMEngine(
            problem,
            options,
            epochs=int(self.epochs),
            finish=bool(self.finish),
            tau=float(self.tau),
        )
