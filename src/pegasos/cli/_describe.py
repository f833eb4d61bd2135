"""An estimator and its fit as a run record."""

from __future__ import annotations

import dataclasses
import datetime
import math
import platform
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import pegasos
from pegasos.cli._labels import label_text
from pegasos.report.record import (
    ClassCount,
    Data,
    Estimate,
    Features,
    Kernel,
    Model,
    Outcome,
    Point,
    Scalar,
    TopFeatures,
    Weight,
)
from pegasos.util.arrays import Array, Matrix

if TYPE_CHECKING:
    from pegasos.cli._models import AnyModel, SavedModel
    from pegasos.estimators.sequence import SequenceSVC
    from pegasos.fit.certificate import Certificate
    from pegasos.fit.trace import Checkpoint
    from pegasos.rows.dataset import Dataset

#: Parameters that say nothing about the run: who watched it, and what scikit-learn's signature asks for.
_LEFT_OUT = """
callback verbose on_interrupt checkpoint checkpoint_every penalty dual warm_start random_state shrinking probability
algorithm c1 c2 max_iterations
"""
_BOUNDS = ("primal", "dual", "gap", "relative_gap")


def data(source: str, X: Matrix | Dataset, y: Array, *, classes: bool) -> Data:
    """The facts about the training rows."""
    counts = None
    if classes:
        labels, rows = np.unique(y, return_counts=True)
        counts = tuple(ClassCount(label_text(label), int(count)) for label, count in zip(labels, rows, strict=True))
    return Data(source, int(X.shape[0]), int(X.shape[1]), entries(X), counts)


def entries(X: Matrix | Dataset) -> int:
    """Stored entries."""
    return int(X.size if isinstance(X, np.ndarray) else X.nnz)


def model(estimator: SavedModel) -> Model:
    """Type, parameters and λ of a fitted estimator."""
    given, left_out = estimator.get_params(deep=False), _LEFT_OUT.split()
    parameters = {name: scalar(value) for name, value in given.items() if name not in left_out}
    return Model(type(estimator).__name__, parameters, float(estimator.lam_))


def kernel(estimator: SavedModel) -> Kernel | None:
    """What a kernel machine came to; None of a linear one."""
    if not hasattr(estimator, "kernel"):
        return None
    return Kernel(
        name=str(estimator.kernel),
        gamma=float(estimator._gamma),
        degree=int(estimator.degree),
        coef0=float(estimator.coef0),
        support_vectors=int(np.sum(estimator.n_support_)),
        evaluations=int(estimator.n_kernel_evaluations_),
    )


def certificate(estimator: SavedModel) -> Outcome:
    """The certificate."""
    c = estimator.certificate_
    return Outcome(
        **bounds(c),
        converged=c.converged,
        reason=c.reason,
        epochs=float(c.epochs),
        seconds=float(c.seconds),
        goal_reached=c.goal_reached,
        restricted_gap=None if c.restricted_gap is None else finite(c.restricted_gap),
        estimate=estimate(c),
    )


def estimate(c: Certificate) -> Estimate | None:
    """What the objective is about, where it is only estimated."""
    if c.estimate is None or c.estimate_low is None or c.estimate_high is None or c.estimate_rows is None:
        return None
    return Estimate(float(c.estimate), float(c.estimate_low), float(c.estimate_high), int(c.estimate_rows))


def trace(estimator: SavedModel) -> tuple[Point, ...]:
    """The checkpoints."""
    return tuple(Point(float(point.epochs), float(point.seconds), **bounds(point)) for point in estimator.trace_)


def bounds(found: Certificate | Checkpoint) -> dict[str, float | None]:
    """The bounds of a fit, or of a moment of it."""
    return {name: finite(getattr(found, name)) for name in _BOUNDS}


def features(estimator: AnyModel, names: list[str] | None, *, most: int = 10) -> Features | None:
    """The largest weights of every output, by name; without names features are numbered from 1, as in their file.

    None of a kernel machine, whose features have no weights.
    """
    if hasattr(estimator, "kernel"):
        return None
    coef = np.atleast_2d(estimator.coef_)
    labels = [label_text(label) for label in getattr(estimator, "classes_", [""])][-len(coef) :]

    def name(j: int) -> str:
        return names[j] if names else f"feature {j + 1}"

    top = tuple(_top(label, weights, name, most) for label, weights in zip(labels, coef, strict=True))
    return Features(int(coef.shape[1]), int(np.any(coef != 0, axis=0).sum()), top)


def tagger_features(estimator: SequenceSVC, *, most: int = 10) -> Features:
    """The largest weights of attributes for every label, and those of transitions."""
    text, offsets = estimator._encoder.arrays()
    labels = list(map(str, estimator.classes_))
    count = len(labels)

    def name(j: int) -> str:  # of the few that are shown: there may be millions
        return bytes(text[offsets[j] : offsets[j + 1]]).decode()

    def transition(j: int) -> str:
        return f"{labels[j // count]} → {labels[j % count]}"

    coef = estimator.coef_
    top = tuple(_top(label, np.ascontiguousarray(coef[:, k]), name, most) for k, label in enumerate(labels))
    between = _top("", estimator.transitions_.ravel(), transition, most)
    transitions = (*between.positive, *reversed(between.negative))
    return Features(len(coef), int(np.any(coef != 0, axis=1).sum()), top, transitions)


def _top(label: str, weights: Array, name: Callable[[int], str], most: int) -> TopFeatures:
    """The largest of some weights; only those are sorted."""
    count = min(most, len(weights))
    if not count:
        return TopFeatures(label, (), ())
    high = np.argpartition(-weights, count - 1)[:count]
    low = np.argpartition(weights, count - 1)[:count]

    def listed(chosen: Array, sign: int) -> tuple[Weight, ...]:
        order = sorted((j for j in chosen.tolist() if sign * weights[j] > 0), key=lambda j: (-sign * weights[j], j))
        return tuple(Weight(name(j), float(weights[j])) for j in order)

    return TopFeatures(label, listed(high, 1), listed(low, -1))


def versions() -> dict[str, str]:
    """Of everything that could change a bit of the result."""
    from importlib import metadata

    found = {"pegasos": pegasos.__version__, "python": platform.python_version()}
    return found | {name: metadata.version(name) for name in ("numpy", "scipy", "scikit-learn")}


def now() -> str:
    """The time, in UTC."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def finite(value: float) -> float | None:
    """None for infinity and NaN, which JSON cannot say."""
    return float(value) if math.isfinite(value) else None


def spec(thing: Any) -> str:
    """A solver or loss as the command line writes it: ``pegasos:batch_size=64,projection=true``."""
    defaults = type(thing)()
    said = [
        f"{field.name}={_word(value)}"
        for field in dataclasses.fields(thing)
        if (value := getattr(thing, field.name)) != getattr(defaults, field.name)
    ]
    return f"{thing.name}:{','.join(said)}" if said else str(thing.name)


def _word(value: object) -> str:
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def scalar(value: object) -> Scalar:
    """A parameter as JSON can hold it."""
    if dataclasses.is_dataclass(value) and hasattr(value, "name"):  # a loss or a solver
        return spec(value)
    if isinstance(value, dict):
        return ", ".join(f"{label_text(key)}: {item:g}" for key, item in value.items())
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
