"""What it costs to label a token wrongly, for each pair of labels."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from pegasos.rows.views import Array

#: The largest cost. Those of a whole sequence stay far below what marks labellings that a grammar forbids.
MAX_COST = 1e15


def label_costs(cost: Any, class_weight: Any, classes: list[Hashable], tags: Array, loss: str) -> Array:
    """Costs of (right label, other label): 1, or as given, times the weight of the right label."""
    labels = len(classes)
    if loss == "log" and (cost is not None or class_weight is not None):
        name = "cost" if cost is not None else "class_weight"
        raise ValueError(f"{name} is for the hinge loss: the log loss knows no costs; sample_weight weighs sequences")
    costs = 1.0 - np.eye(labels)
    if isinstance(cost, Mapping):
        costs = _of_pairs(cost, classes, costs)
    elif cost is not None:
        costs = _matrix(cost, labels)
    costs = np.ascontiguousarray(costs * _class_weights(class_weight, classes, tags)[:, None])
    if not float(costs.max(initial=0.0)) <= MAX_COST:
        raise ValueError(f"costs must be at most {MAX_COST:g}, not {costs.max():g}")
    return costs


def _of_pairs(cost: Mapping[Any, Any], classes: list[Hashable], costs: Array) -> Array:
    number = {tag: k for k, tag in enumerate(classes)}
    for pair, value in cost.items():
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ValueError(f"cost: {pair!r:.100} is no pair (label, other label)")
        for tag in pair:
            if tag not in number:
                raise ValueError(f"cost: the label {tag!r} of {pair!r} does not occur in y")
        _check(value, f"cost[{pair!r}]")
        if pair[0] == pair[1] and value != 0:
            raise ValueError(f"cost[{pair!r}]={value!r}: what is right costs 0")
        costs[number[pair[0]], number[pair[1]]] = float(value)
    return costs


def _matrix(cost: Any, labels: int) -> Array:
    try:
        costs = np.array(cost, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"cost={cost!r:.100} is no matrix of numbers, nor a dict of pairs of labels") from None
    if costs.shape != (labels, labels):
        raise ValueError(
            f"cost has shape {costs.shape}, but there are {labels} labels: it should be ({labels}, {labels})"
        )
    bad = np.argwhere(~((costs >= 0) & np.isfinite(costs)))
    if len(bad):
        k, j = bad[0].tolist()
        raise ValueError(f"cost[{k}, {j}]={costs[k, j]} must be a number >= 0")
    if np.diagonal(costs).any():
        k = int(np.flatnonzero(np.diagonal(costs))[0])
        raise ValueError(f"cost[{k}, {k}]={costs[k, k]}: what is right costs 0")
    return costs


def _class_weights(class_weight: Any, classes: list[Hashable], tags: Array) -> Array:
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(f"class_weight={class_weight!r} must be a dict or 'balanced'")
        counts = np.bincount(tags, minlength=len(classes))
        return np.asarray(len(tags) / (len(classes) * np.maximum(counts, 1)))
    if not isinstance(class_weight, Mapping):
        raise ValueError(f"class_weight={class_weight!r} must be a dict or 'balanced'")
    for tag, value in class_weight.items():
        if tag not in classes:
            raise ValueError(f"class_weight: the label {tag!r} does not occur in y")
        _check(value, f"class_weight[{tag!r}]")
    return np.array([float(class_weight.get(tag, 1.0)) for tag in classes])


def _check(value: Any, name: str) -> None:
    good = isinstance(value, int | float | np.number) and not isinstance(value, bool) and 0 <= float(value) < np.inf
    if not good:
        raise ValueError(f"{name}={value!r} must be a number >= 0")
