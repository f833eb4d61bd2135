# Made by tools/core_stub.py from the compiled core, see cpp/bind/: not to be edited. After a change there: make stub.
from collections.abc import Iterable, Iterator
from typing import overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import CapsuleType

def instruction_set() -> str: ...

class Chain:
    def __init__(
        self,
        offsets: NDArray[np.int64],
        indptr: NDArray[np.int64],
        ids: NDArray[np.int32],
        values: NDArray[np.float64] | None,
        attributes: int,
        labels: int,
        next: NDArray[np.uint8],
        first: NDArray[np.uint8],
        final: NDArray[np.uint8],
    ) -> None: ...
    def teach(self, tags: NDArray[np.uint16], cost: NDArray[np.float64], learnt: NDArray[np.uint8]) -> None: ...
    def tag(self, weights: NDArray[np.float64], threads: int) -> tuple[NDArray[np.uint16], int]: ...
    def marginals(self, weights: NDArray[np.float64], threads: int) -> tuple[NDArray[np.float64], int]: ...
    def hinge(
        self, weights: NDArray[np.float64], cut: bool, threads: int
    ) -> tuple[NDArray[np.float64], NDArray[np.uint16] | None]: ...
    def log_losses(
        self, weights: NDArray[np.float64], weight: NDArray[np.float64], threads: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def plane_weights(
        self, rows: NDArray[np.int64], labels: NDArray[np.uint16], share: NDArray[np.float64]
    ) -> NDArray[np.float64]: ...
    def plane_costs(self, rows: NDArray[np.int64], labels: NDArray[np.uint16]) -> NDArray[np.float64]: ...
    def products(
        self, weights: NDArray[np.float64], weight: NDArray[np.float64], labellings: NDArray[np.uint16], threads: int
    ) -> NDArray[np.float64]: ...

class ChainSteps:
    def __init__(
        self,
        chain: Chain,
        weight: NDArray[np.float64] | None,
        *,
        rule: str,
        loss: str,
        mean: str,
        lam: float,
        t0: float,
        aggressiveness: float,
        radius: float,
        batch_size: int,
        sampling: str,
        seed: int,
        exact: bool,
    ) -> None: ...
    def advance(self, tokens: int) -> None: ...
    def begin_window(self) -> None: ...
    @property
    def epochs(self) -> float: ...
    @property
    def epoch_ended(self) -> bool: ...
    def weights(self, mean: bool) -> NDArray[np.float64]: ...
    def decoded(self) -> tuple[NDArray[np.int64], NDArray[np.uint16], NDArray[np.float64]]: ...
    def progress(self) -> tuple[float, float, float, float, float, float]: ...
    def sums(self, lag: bool) -> NDArray[np.float64]: ...
    def restore(
        self,
        progress: tuple[float, float, float, float, float, float],
        V: NDArray[np.float64],
        U: NDArray[np.float64],
        rows: NDArray[np.int64],
        labels: NDArray[np.uint16],
        visits: NDArray[np.float64],
    ) -> None: ...

class ChainPlanes:
    def __init__(
        self,
        chain: Chain,
        weight: NDArray[np.float64] | None,
        *,
        lam: float,
        total: float,
        unused_passes: float,
        seed: int,
    ) -> None: ...
    def advance(self, tokens: int, cached: bool) -> None: ...
    @property
    def pass_ended(self) -> bool: ...
    @property
    def gap(self) -> float: ...
    @property
    def loss(self) -> float: ...
    @property
    def at(self) -> int: ...
    @property
    def passes(self) -> int: ...
    @property
    def exact(self) -> bool: ...
    @property
    def squares(self) -> float: ...
    def weights(self) -> NDArray[np.float64]: ...
    def set_weights(self, W: NDArray[np.float64]) -> None: ...
    def set_double(self) -> None: ...
    def table(self) -> tuple[NDArray[np.int64], NDArray[np.uint16], NDArray[np.float64], NDArray[np.float64]]: ...
    def add(
        self,
        rows: NDArray[np.int64],
        labels: NDArray[np.uint16],
        alpha: NDArray[np.float64],
        unused: NDArray[np.float64] | None,
    ) -> None: ...
    def go_on(self, passes: int, at: int, gap: float, loss: float) -> None: ...

class KernelRows:
    def __init__(self, rows: Rows, kernel: str, gamma: float, coef0: float, degree: int, threads: int) -> None: ...
    @property
    def rows(self) -> int: ...
    def diagonal(self) -> NDArray[np.float64]: ...
    def norms(self) -> NDArray[np.float64]: ...
    @overload
    def block(self, a: NDArray[np.int64], b: NDArray[np.int64], out: NDArray[np.float32], threads: int) -> None: ...
    @overload
    def block(self, a: NDArray[np.int64], b: NDArray[np.int64], out: NDArray[np.float64], threads: int) -> None: ...
    @overload
    def fill_add(
        self,
        store: NDArray[np.float32],
        missing: NDArray[np.int64],
        missing_slots: NDArray[np.int64],
        slots: NDArray[np.int64],
        coef: NDArray[np.float64],
        F: NDArray[np.float64],
        threads: int,
    ) -> None: ...
    @overload
    def fill_add(
        self,
        store: NDArray[np.float64],
        missing: NDArray[np.int64],
        missing_slots: NDArray[np.int64],
        slots: NDArray[np.int64],
        coef: NDArray[np.float64],
        F: NDArray[np.float64],
        threads: int,
    ) -> None: ...
    def scores(
        self,
        a_index: NDArray[np.int64] | None,
        coef: NDArray[np.float64],
        x: KernelRows,
        x_index: NDArray[np.int64] | None,
        threads: int,
        single: bool = False,
    ) -> NDArray[np.float64]: ...
    @overload
    def cross(self, x: KernelRows, out: NDArray[np.float32], threads: int) -> None: ...
    @overload
    def cross(self, x: KernelRows, out: NDArray[np.float64], threads: int) -> None: ...
    def pull(
        self, coef: NDArray[np.float64], z: KernelRows, threads: int, single: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...

def raw_matrix(rows: int, cols: int) -> NDArray[np.float64]: ...
def nonzeros(rows: Rows, of_row: NDArray[np.int64], of_column: NDArray[np.int64], threads: int) -> None: ...
@overload
def renumber(
    rows: Rows,
    rank: NDArray[np.int32],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[np.float32],
    threads: int,
) -> None: ...
@overload
def renumber(
    rows: Rows,
    rank: NDArray[np.int32],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[np.float64],
    threads: int,
) -> None: ...
@overload
def add_slots(
    store: NDArray[np.float32],
    slots: NDArray[np.int64],
    coef: NDArray[np.float64],
    F: NDArray[np.float64],
    threads: int,
) -> None: ...
@overload
def add_slots(
    store: NDArray[np.float64],
    slots: NDArray[np.int64],
    coef: NDArray[np.float64],
    F: NDArray[np.float64],
    threads: int,
) -> None: ...
@overload
def smo_block(
    K: NDArray[np.float32],
    diagonal: NDArray[np.float64],
    g: NDArray[np.float64],
    a: NDArray[np.float64],
    lo: NDArray[np.float64],
    hi: NDArray[np.float64],
    k: int,
    relative: float,
    absolute: float,
    max_steps: int,
    free_bias: bool,
) -> tuple[int, float, float, bool]: ...
@overload
def smo_block(
    K: NDArray[np.float64],
    diagonal: NDArray[np.float64],
    g: NDArray[np.float64],
    a: NDArray[np.float64],
    lo: NDArray[np.float64],
    hi: NDArray[np.float64],
    k: int,
    relative: float,
    absolute: float,
    max_steps: int,
    free_bias: bool,
) -> tuple[int, float, float, bool]: ...
@overload
def kernel_pegasos_steps(
    loss: Loss,
    K: NDArray[np.float32],
    rows: NDArray[np.int64],
    score: NDArray[np.float64],
    change: NDArray[np.float64],
    y: NDArray[np.float64],
    weight: NDArray[np.float64],
    U: NDArray[np.float64],
    average: NDArray[np.float64],
    random: NDArray[np.float64],
    progress: NDArray[np.float64],
    *,
    lam: float,
    t0: float,
    radius: float,
    feature: float,
    batch_size: int,
    subgradient: bool,
    bias_rate: float,
    seed: int,
) -> None: ...
@overload
def kernel_pegasos_steps(
    loss: Loss,
    K: NDArray[np.float64],
    rows: NDArray[np.int64],
    score: NDArray[np.float64],
    change: NDArray[np.float64],
    y: NDArray[np.float64],
    weight: NDArray[np.float64],
    U: NDArray[np.float64],
    average: NDArray[np.float64],
    random: NDArray[np.float64],
    progress: NDArray[np.float64],
    *,
    lam: float,
    t0: float,
    radius: float,
    feature: float,
    batch_size: int,
    subgradient: bool,
    bias_rate: float,
    seed: int,
) -> None: ...
@overload
def kernel_sdca_steps(
    loss: Loss,
    K: NDArray[np.float32],
    rows: NDArray[np.int64],
    score: NDArray[np.float64],
    change: NDArray[np.float64],
    y: NDArray[np.float64],
    weight: NDArray[np.float64],
    u: NDArray[np.float64],
    sum: float,
    unit: float,
    feature: float,
    offset: float,
) -> float: ...
@overload
def kernel_sdca_steps(
    loss: Loss,
    K: NDArray[np.float64],
    rows: NDArray[np.int64],
    score: NDArray[np.float64],
    change: NDArray[np.float64],
    y: NDArray[np.float64],
    weight: NDArray[np.float64],
    u: NDArray[np.float64],
    sum: float,
    unit: float,
    feature: float,
    offset: float,
) -> float: ...
def lasvm_extremes(
    members: NDArray[np.int64],
    count: int,
    row: NDArray[np.int64],
    t: NDArray[np.float64],
    lo: NDArray[np.float64],
    hi: NDArray[np.float64],
    alpha: NDArray[np.float64],
    F: NDArray[np.float64],
    rounding: float,
) -> tuple[int, int, bool]: ...
def lasvm_leave(
    members: NDArray[np.int64],
    count: int,
    row: NDArray[np.int64],
    t: NDArray[np.float64],
    lo: NDArray[np.float64],
    hi: NDArray[np.float64],
    alpha: NDArray[np.float64],
    F: NDArray[np.float64],
    inside: NDArray[np.bool_],
    high: float,
    low: float,
) -> int: ...

class Loss:
    def __init__(self, name: str, parameter: float | None) -> None: ...
    @property
    def single(self) -> bool: ...
    def value(self, z: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def slope(self, z: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def curvature(self, z: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def conjugate(self, u: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def clip(self, u: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def dual_step(self, u0: float, z: float, y: float, q: float) -> float: ...
    def best_offset(
        self, z: NDArray[np.float64], y: NDArray[np.float64], weight: NDArray[np.float64], start: float
    ) -> tuple[float, float, bool]: ...
    def smooth(
        self,
        z: NDArray[np.float64],
        y: NDArray[np.float64],
        weight: NDArray[np.float64],
        u0: NDArray[np.float64],
        delta: float,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], float, float]: ...
    def smooth_slope(
        self,
        z: NDArray[np.float64],
        y: NDArray[np.float64],
        weight: NDArray[np.float64],
        u0: NDArray[np.float64],
        delta: float,
        dz: NDArray[np.float64],
        t: float,
    ) -> float: ...

class JointLoss:
    @staticmethod
    def crammer_singer(cost: NDArray[np.float64]) -> JointLoss: ...
    @staticmethod
    def multinomial(classes: int) -> JointLoss: ...
    @property
    def classes(self) -> int: ...
    def value(self, scores: NDArray[np.float64], label: NDArray[np.int32]) -> NDArray[np.float64]: ...
    def conjugate(self, u: NDArray[np.float64], label: NDArray[np.int32]) -> NDArray[np.float64]: ...
    def slopes(self, scores: NDArray[np.float64], label: NDArray[np.int32]) -> NDArray[np.float64]: ...
    def dual_step(
        self, u0: NDArray[np.float64], scores: NDArray[np.float64], label: int, q: float
    ) -> NDArray[np.float64]: ...

@overload
def pair_winners(
    K: NDArray[np.float32],
    rows: int,
    coef: NDArray[np.float64],
    starts: NDArray[np.int64],
    bias: NDArray[np.float64],
    rank: NDArray[np.int64],
    out: NDArray[np.int64],
    threads: int,
) -> int: ...
@overload
def pair_winners(
    K: NDArray[np.float64],
    rows: int,
    coef: NDArray[np.float64],
    starts: NDArray[np.int64],
    bias: NDArray[np.float64],
    rank: NDArray[np.int64],
    out: NDArray[np.int64],
    threads: int,
) -> int: ...
@overload
def pair_decisions(
    K: NDArray[np.float32],
    rows: int,
    coef: NDArray[np.float64],
    starts: NDArray[np.int64],
    bias: NDArray[np.float64],
    out: NDArray[np.float64],
    threads: int,
) -> None: ...
@overload
def pair_decisions(
    K: NDArray[np.float64],
    rows: int,
    coef: NDArray[np.float64],
    starts: NDArray[np.int64],
    bias: NDArray[np.float64],
    out: NDArray[np.float64],
    threads: int,
) -> None: ...
@overload
def pair_scores(
    K: NDArray[np.float32],
    rows: int,
    coef: NDArray[np.float64],
    starts: NDArray[np.int64],
    bias: NDArray[np.float64],
    out: NDArray[np.float64],
    threads: int,
) -> None: ...
@overload
def pair_scores(
    K: NDArray[np.float64],
    rows: int,
    coef: NDArray[np.float64],
    starts: NDArray[np.int64],
    bias: NDArray[np.float64],
    out: NDArray[np.float64],
    threads: int,
) -> None: ...

class WholeSMO:
    def __init__(
        self,
        C: float,
        lam: float,
        total: float,
        tol: float,
        max_steps: int,
        piece: int,
        beyond: int,
        shift: float,
        free_bias: bool,
    ) -> None: ...
    def look_at(
        self,
        begin: int,
        goal: NDArray[np.float64],
        violation: NDArray[np.float64],
        primal: NDArray[np.float64],
        dual: NDArray[np.float64],
        bias: NDArray[np.float64],
        steps: NDArray[np.int64],
        over: NDArray[np.int8],
    ) -> None: ...
    @property
    def values(self) -> int: ...
    @property
    def work(self) -> int: ...
    def visit(
        self,
        K: NDArray[np.float64],
        y: NDArray[np.float64],
        weight: NDArray[np.float64],
        alpha: NDArray[np.float64],
        part: int,
    ) -> int: ...
    def visit_pair(
        self,
        starts: NDArray[np.int64],
        weight: NDArray[np.float64],
        table: NDArray[np.float64],
        i: int,
        j: int,
        K: NDArray[np.float64],
    ) -> int: ...
    def visit_pairs(
        self,
        starts: NDArray[np.int64],
        weight: NDArray[np.float64],
        table: NDArray[np.float64],
        i: int,
        first: int,
        last: int,
        own: NDArray[np.float64],
        strip: NDArray[np.float64],
        others: NDArray[np.float64],
        offsets: NDArray[np.int64],
        budget: int,
    ) -> tuple[int, int]: ...

class Inspection:
    @property
    def squared_norms(self) -> NDArray[np.float64]: ...
    @property
    def bad_value_row(self) -> int: ...
    @property
    def bad_value_col(self) -> int: ...
    @property
    def bad_index_row(self) -> int: ...
    @property
    def bad_index(self) -> int: ...
    @property
    def bad_pointer_row(self) -> int: ...
    @property
    def repeated(self) -> bool: ...

class Rows:
    @overload
    @staticmethod
    def dense(a: NDArray[np.float32], mapped: bool = False) -> Rows: ...
    @overload
    @staticmethod
    def dense(a: NDArray[np.float64], mapped: bool = False) -> Rows: ...
    @overload
    @staticmethod
    def csr(
        data: NDArray[np.float32],
        indices: NDArray[np.int32],
        indptr: NDArray[np.int32],
        cols: int,
        mapped: bool = False,
    ) -> Rows: ...
    @overload
    @staticmethod
    def csr(
        data: NDArray[np.float32],
        indices: NDArray[np.int64],
        indptr: NDArray[np.int64],
        cols: int,
        mapped: bool = False,
    ) -> Rows: ...
    @overload
    @staticmethod
    def csr(
        data: NDArray[np.float64],
        indices: NDArray[np.int32],
        indptr: NDArray[np.int32],
        cols: int,
        mapped: bool = False,
    ) -> Rows: ...
    @overload
    @staticmethod
    def csr(
        data: NDArray[np.float64],
        indices: NDArray[np.int64],
        indptr: NDArray[np.int64],
        cols: int,
        mapped: bool = False,
    ) -> Rows: ...
    @property
    def rows(self) -> int: ...
    @property
    def cols(self) -> int: ...
    @property
    def nnz(self) -> int: ...
    def inspect(self, threads: int) -> Inspection: ...
    def verify(self, threads: int) -> None: ...
    def scores(
        self, W: NDArray[np.float64], b: NDArray[np.float64], threads: int, index: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]: ...
    def scores_unchecked(
        self, W: NDArray[np.float64], b: NDArray[np.float64], threads: int
    ) -> tuple[NDArray[np.float64], bool]: ...
    def adjoint(
        self, C: NDArray[np.float64], threads: int, index: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]: ...
    def scores_and_squares(
        self, W: NDArray[np.float64], b: NDArray[np.float64], C: NDArray[np.float64], threads: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def dual_model(
        self, C: NDArray[np.float64], b: NDArray[np.float64], threads: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]: ...
    def gram(
        self, d: NDArray[np.float64], threads: int, index: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]: ...
    def column_scales(self) -> NDArray[np.float64]: ...

class MappedGuard:
    def __init__(self, a: NDArray[np.generic]) -> None: ...
    @property
    def torn(self) -> bool: ...

def epoch_order(
    rows: int, sampling: str, seed: int, epoch: int, chunk: int = 1, batch: int = 1, whole: bool = True
) -> NDArray[np.int64]: ...
def visit_shares(rows: int, sampling: str, seed: int, since: int, until: int) -> NDArray[np.float64]: ...
def simplex_qp(
    H: NDArray[np.float64], b: NDArray[np.float64], start: NDArray[np.float64], tolerance: float, steps: int
) -> NDArray[np.float64]: ...

class Lapack:
    def __init__(self, potrf: CapsuleType) -> None: ...

def solve_normal(lapack: Lapack, M: NDArray[np.float64], r: NDArray[np.float64]) -> NDArray[np.float64]: ...

class BoxSteps:
    def __init__(
        self,
        lapack: Lapack,
        rows: Rows,
        index: NDArray[np.int64] | None,
        bias: bool,
        threads: int,
        h: NDArray[np.float64],
        s: NDArray[np.float64],
        p: NDArray[np.float64],
        R: NDArray[np.float64],
        beta: NDArray[np.float64],
        nearness: float,
    ) -> None: ...
    def step(self) -> None: ...
    @property
    def rows(self) -> int: ...
    @property
    def gap(self) -> float: ...
    @property
    def loss(self) -> float: ...
    @property
    def relative_gap(self) -> float: ...
    @property
    def length(self) -> float: ...
    @property
    def steps(self) -> int: ...
    def beta(self) -> NDArray[np.float64]: ...
    def duals(self) -> NDArray[np.float64]: ...
    def path(self) -> NDArray[np.float64]: ...
    def restore(self, path: NDArray[np.float64], beta: NDArray[np.float64], length: float, steps: int) -> None: ...

class Vocabulary:
    def __init__(self, bytes: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None: ...
    @staticmethod
    def learn(
        X: Iterator[Iterable[Iterable[str]]], begins: NDArray[np.int64] | None, min_freq: float, limit: int = 2147483646
    ) -> tuple[
        Vocabulary, tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.float64] | None]
    ]: ...
    def encode(
        self, X: Iterator[Iterable[Iterable[str]]], begins: NDArray[np.int64] | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.float64] | None]: ...
    def __len__(self) -> int: ...
    def names(self) -> list[str]: ...
    def arrays(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]: ...

class Pegasos:
    def __init__(
        self,
        rows: Rows,
        loss: Loss | JointLoss,
        targets: NDArray[np.float64] | NDArray[np.int32],
        weight: NDArray[np.float64] | None,
        total: float,
        first: int,
        count: int,
        *,
        lam: float,
        schedule: str,
        rate: float,
        t0: float,
        batch_size: int,
        whole_batches: bool,
        sampling: str,
        radius: float,
        average: bool,
        random: bool,
        bias: str,
        bias_start: float,
        bias_rate: float,
        feature: float,
        seed: int,
    ) -> None: ...
    def select(self, which: str) -> None: ...
    def start(self, W: NDArray[np.float64], b: NDArray[np.float64] | None) -> None: ...
    @property
    def steps(self) -> int: ...
    def keep_scores(self) -> None: ...
    def write_scores(self, z: NDArray[np.float64], first: int, early: int) -> None: ...
    def advance(self, rows: int) -> None: ...
    @property
    def epochs(self) -> float: ...
    @property
    def epoch_ended(self) -> bool: ...
    def weights(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def write_weights(self, W: NDArray[np.float64], b: NDArray[np.float64]) -> None: ...
    def duals(self) -> NDArray[np.float64]: ...
    def write_duals(self, u: NDArray[np.float64], first: int) -> None: ...
    def state(self) -> dict[str, NDArray[np.float64]]: ...
    def restore(self, state: dict[str, NDArray[np.float64]]) -> None: ...

def write_first_visits(rows: Rows, sampling: str, seed: int, batch: int, out: NDArray[np.int64]) -> None: ...

class Sdca:
    def __init__(
        self,
        rows: Rows,
        loss: Loss | JointLoss,
        targets: NDArray[np.float64] | NDArray[np.int32],
        weight: NDArray[np.float64] | None,
        total: float,
        first: int,
        count: int,
        *,
        squared_norms: NDArray[np.float64],
        lam: float,
        feature: float,
        multiplier: bool,
        shrinking: bool,
        blocks: int,
        threads: int,
        single: bool,
        sampling: str,
        seed: int,
    ) -> None: ...
    def start(self, u: NDArray[np.float64], W: NDArray[np.float64], offset: NDArray[np.float64]) -> None: ...
    def reactivate(self, z: NDArray[np.float64]) -> None: ...
    def leave_out(self, z: NDArray[np.float64], slack: float) -> None: ...
    def offsets(self) -> NDArray[np.float64]: ...
    def biases(self) -> NDArray[np.float64]: ...
    def write_averages(self, u: NDArray[np.float64], first: int) -> None: ...
    @property
    def active(self) -> int: ...
    def online(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def penalties(self) -> NDArray[np.float64]: ...
    def advance(self, rows: int) -> None: ...
    @property
    def epochs(self) -> float: ...
    @property
    def epoch_ended(self) -> bool: ...
    def weights(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def write_weights(self, W: NDArray[np.float64], b: NDArray[np.float64]) -> None: ...
    def duals(self) -> NDArray[np.float64]: ...
    def write_duals(self, u: NDArray[np.float64], first: int) -> None: ...
    def state(self) -> dict[str, NDArray[np.float64]]: ...
    def restore(self, state: dict[str, NDArray[np.float64]]) -> None: ...

class SvmlightRows:
    @property
    def data(self) -> NDArray[np.float32] | NDArray[np.float64]: ...
    @property
    def indices(self) -> NDArray[np.int32] | NDArray[np.int64]: ...
    @property
    def indptr(self) -> NDArray[np.int32] | NDArray[np.int64]: ...
    @property
    def label(self) -> NDArray[np.float64]: ...
    @property
    def query(self) -> NDArray[np.int64]: ...
    @property
    def columns(self) -> int: ...
    @property
    def lines(self) -> int: ...

class SvmlightRefusal:
    @property
    def offence(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...
    @property
    def text(self) -> bytes: ...
    @property
    def previous(self) -> int: ...

def svmlight_read(
    text: NDArray[np.uint8],
    *,
    single: bool,
    wide: bool,
    zero_based: bool,
    n_features: int,
    query: bool,
    first_line: int,
    threads: int,
    piece: int = 1048576,
) -> SvmlightRows | SvmlightRefusal: ...

class SvmlightReader:
    def __init__(
        self,
        *,
        single: bool,
        wide: bool,
        zero_based: bool,
        n_features: int,
        query: bool,
        threads: int,
        piece: int = 1048576,
        total: int = 0,
    ) -> None: ...
    def add(self, text: NDArray[np.uint8], *, last: bool) -> int | SvmlightRefusal: ...
    def widen(self) -> None: ...
    def finish(self) -> SvmlightRows: ...

@overload
def svmlight_write(
    data: NDArray[np.float32],
    indices: NDArray[np.int32],
    indptr: NDArray[np.int32],
    label: NDArray[np.float64],
    query: NDArray[np.int64] | None,
    zero_based: bool,
    first: int,
    last: int,
    threads: int,
) -> bytes: ...
@overload
def svmlight_write(
    data: NDArray[np.float32],
    indices: NDArray[np.int64],
    indptr: NDArray[np.int64],
    label: NDArray[np.float64],
    query: NDArray[np.int64] | None,
    zero_based: bool,
    first: int,
    last: int,
    threads: int,
) -> bytes: ...
@overload
def svmlight_write(
    data: NDArray[np.float64],
    indices: NDArray[np.int32],
    indptr: NDArray[np.int32],
    label: NDArray[np.float64],
    query: NDArray[np.int64] | None,
    zero_based: bool,
    first: int,
    last: int,
    threads: int,
) -> bytes: ...
@overload
def svmlight_write(
    data: NDArray[np.float64],
    indices: NDArray[np.int64],
    indptr: NDArray[np.int64],
    label: NDArray[np.float64],
    query: NDArray[np.int64] | None,
    zero_based: bool,
    first: int,
    last: int,
    threads: int,
) -> bytes: ...
