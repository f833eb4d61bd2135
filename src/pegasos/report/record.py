"""What one training run was, as plain JSON: ``pegasos train --record`` writes it, ``pegasos report`` reads it.

The dataclasses below are the schema; what was added to it later has a default. Reading is strict: a missing or unknown
key, a wrong type, a number that is not finite or lists that do not fit together are refused with the place where they
stand. Numbers that may be infinite (the bounds of a fit that diverged) are null in the file and None here.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, NoReturn, cast, get_args, get_origin, get_type_hints

SCHEMA = 1
_LARGEST_FILE = 64 * 2**20
_LARGEST_WHOLE = 2**63

Scalar = str | int | float | bool | None

#: The parameters of kernels, and the kernels that have each.
KERNEL_PARAMETERS = {
    "gamma": ("poly", "rbf", "sigmoid", "laplacian", "chi2"),
    "degree": ("poly",),
    "coef0": ("poly", "sigmoid"),
}

#: Parameters that say which problem is solved.
_CHOSEN = ("loss", "epsilon", "multi_class", "class_weight", "cost", "grammar", "all_possible_transitions")


@dataclass(frozen=True)
class ClassCount:
    """A class of the training data and its rows."""

    label: str
    rows: int


@dataclass(frozen=True)
class Data:
    """What was trained on; ``classes`` is None for regression. Rows of a tagger are tokens, its columns attributes."""

    source: str
    rows: int
    columns: int
    entries: int
    classes: tuple[ClassCount, ...] | None
    sequences: int | None = None


@dataclass(frozen=True)
class Model:
    """The estimator, its parameters, and the λ they meant."""

    type: str
    parameters: dict[str, Scalar]
    lam: float


@dataclass(frozen=True)
class Kernel:
    """The kernel of a kernel machine with γ as a number, and what the fit came to."""

    name: str
    gamma: float
    degree: int
    coef0: float
    support_vectors: int
    evaluations: int

    def parameters(self) -> dict[str, float]:
        """The parameters that the kernel has."""
        return {name: getattr(self, name) for name, kernels in KERNEL_PARAMETERS.items() if self.name in kernels}


@dataclass(frozen=True)
class Point:
    """A checkpoint of the fit."""

    epochs: float
    seconds: float
    primal: float | None
    dual: float | None
    gap: float | None
    relative_gap: float | None


@dataclass(frozen=True)
class Estimate:
    """What the objective is about: a mean over some rows, with its 95 % confidence interval."""

    value: float
    low: float
    high: float
    rows: int

    def __post_init__(self) -> None:
        if not self.low <= self.value <= self.high:
            raise ValueError("low, value and high of an estimate must be in this order")


@dataclass(frozen=True)
class Outcome:
    """The certificate."""

    primal: float | None
    dual: float | None
    gap: float | None
    relative_gap: float | None
    converged: bool
    reason: str
    epochs: float
    seconds: float
    goal_reached: bool = False
    restricted_gap: float | None = None
    estimate: Estimate | None = None


@dataclass(frozen=True)
class Confusion:
    """``counts[i][j]`` rows of class ``labels[i]`` were predicted as ``labels[j]``."""

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if len(self.counts) != len(self.labels) or any(len(row) != len(self.labels) for row in self.counts):
            raise ValueError(f"counts must be a square table with a row for each of the {len(self.labels)} labels")
        if any(count < 0 for row in self.counts for count in row):
            raise ValueError("counts must not be negative")

    def of_each_class(self) -> Iterator[tuple[str, int, int, int]]:
        """Label, rows predicted right, rows of the class, and rows predicted to be of it."""
        for i, (label, row) in enumerate(zip(self.labels, self.counts, strict=True)):
            yield label, row[i], sum(row), sum(other[i] for other in self.counts)


@dataclass(frozen=True)
class EntityCount:
    """A type of entities: how many there are, were found, and were found rightly."""

    type: str
    support: int
    found: int
    correct: int

    def __post_init__(self) -> None:
        if not 0 <= self.correct <= min(self.support, self.found):
            raise ValueError("correct must be a number of entities that there are and that were found")


@dataclass(frozen=True)
class Entities:
    """The same of all types together, and of each."""

    support: int
    found: int
    correct: int
    types: tuple[EntityCount, ...]

    def __post_init__(self) -> None:
        for name in ("support", "found", "correct"):
            if getattr(self, name) != sum(getattr(each, name) for each in self.types):
                raise ValueError(f"{name} must be the sum over the types")


@dataclass(frozen=True)
class Evaluation:
    """How good the predictions on some rows are. ``sequences``: how many these are of, where rows are tokens."""

    source: str
    rows: int
    metrics: dict[str, float]
    confusion: Confusion | None
    sequences: int | None = None
    entities: Entities | None = None


@dataclass(frozen=True)
class CrossValidation:
    """The score of each fold."""

    metric: str
    scores: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean over the folds."""
        return sum(self.scores) / len(self.scores)

    @property
    def spread(self) -> float:
        """The standard deviation over the folds."""
        mean = self.mean
        return float((sum((score - mean) ** 2 for score in self.scores) / len(self.scores)) ** 0.5)


@dataclass(frozen=True)
class Weight:
    """A feature and its weight."""

    feature: str
    weight: float


@dataclass(frozen=True)
class TopFeatures:
    """The features that speak most for (positive) and against (negative) a label; "" for regression."""

    label: str
    positive: tuple[Weight, ...]
    negative: tuple[Weight, ...]


@dataclass(frozen=True)
class Features:
    """The weights in short; ``transitions``: the largest of a tagger, from label to label."""

    total: int
    nonzero: int
    top: tuple[TopFeatures, ...]
    transitions: tuple[Weight, ...] = ()


@dataclass(frozen=True)
class Run:
    """One training run."""

    schema: int
    name: str
    created: str
    command: tuple[str, ...]
    seed: int
    data: Data
    model: Model
    certificate: Outcome
    trace: tuple[Point, ...]
    training: Evaluation | None
    test: Evaluation | None
    cross_validation: CrossValidation | None
    features: Features | None
    seconds: dict[str, float]
    versions: dict[str, str]
    kernel: Kernel | None = None

    def problem(self) -> tuple[object, ...]:
        """What two runs must share for their objectives to be comparable: data, loss, λ and kind of bias."""
        data, parameters = self.data, self.model.parameters
        bias: Scalar = "none"
        if parameters.get("fit_intercept", True):
            bias = parameters.get("intercept_scaling") if parameters.get("intercept") == "feature" else "free"
        chosen = tuple(parameters.get(key) for key in _CHOSEN)
        shape = data.rows, data.columns, data.entries, data.classes, data.sequences
        kernel = None if self.kernel is None else (self.kernel.name, *self.kernel.parameters().values())
        return (*shape, self.model.type, self.model.lam, bias, chosen, kernel)


def to_json(run: Run) -> str:
    """The run as JSON text with a final newline."""
    return json.dumps(_finite(dataclasses.asdict(run)), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def from_json(text: str) -> Run:
    """The run that a text holds.

    Raises ValueError with the place and the reason if the text is no run record.
    """
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply to be a run record") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error}") from None
    if not isinstance(value, dict) or "schema" not in value:
        raise ValueError("it is JSON, but no run record: 'schema' is missing")
    if value["schema"] != SCHEMA or isinstance(value["schema"], bool):
        raise ValueError(f"schema {_short(value['schema'])} is not {SCHEMA}, the only one this version reads")
    return cast("Run", _decode(Run, value, ""))


def read(path: Path) -> Run:
    """The run of a file.

    Raises ValueError naming the file if it is no run record, and OSError if it cannot be read.
    """
    with open(path, "rb") as file:
        raw = file.read(_LARGEST_FILE + 1)
    if len(raw) > _LARGEST_FILE:
        raise ValueError(f"{path}: larger than {_LARGEST_FILE >> 20} MB, which no run record is")
    try:
        return from_json(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}; write one with pegasos train … --record RUN.json") from None


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object; a key given twice is refused, since readers differ on which counts."""
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {_short(next(key for key in keys if keys.count(key) > 1))} is given twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _decode(kind: Any, value: Any, where: str) -> object:
    """``value`` as ``kind``, a dataclass of the schema or a type its fields have."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:
        if value is None and NoneType in inner:
            return None
        fitting = [option for option in inner if option is not NoneType and _fits(option, value)]
        return _decode(fitting[0] if fitting else inner[0], value, where)
    if not _fits(kind, value):
        raise ValueError(f"{where or 'the whole'} must be {_name(kind)}, not {_short(value)}")
    if origin is tuple:
        return tuple(_decode(inner[0], item, f"{where}[{i}]") for i, item in enumerate(value))
    if origin is dict:
        return {key: _decode(inner[1], item, f"{where}[{key!r}]") for key, item in value.items()}
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        late = {field.name for field in dataclasses.fields(kind) if field.default is not dataclasses.MISSING}
        if missing := [name for name in hints if name not in value and name not in late]:
            raise ValueError(f"{where or 'the record'} lacks {missing[0]!r}")
        if unknown := [key for key in value if key not in hints]:
            raise ValueError(f"{where or 'the record'} has an unknown key {_short(unknown[0])}")
        given = {name: hint for name, hint in hints.items() if name in value}
        fields = {name: _decode(hint, value[name], f"{where}.{name}".lstrip(".")) for name, hint in given.items()}
        try:
            return kind(**fields)  # type: ignore[operator]
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
    return float(value) if kind is float else value


def _fits(kind: Any, value: object) -> bool:
    if kind is bool or kind is str:
        return isinstance(value, kind)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST_WHOLE
    if kind is float:
        return _fits(int, value) or (isinstance(value, float) and math.isfinite(value))
    return isinstance(value, list if get_origin(kind) is tuple else dict)


def _name(kind: Any) -> str:
    names = {bool: "true or false", str: "text", int: "a whole number", float: "a finite number"}
    return names.get(kind) or ("a list" if get_origin(kind) is tuple else "an object")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
