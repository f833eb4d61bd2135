"""``pegasos info``: what a file is."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pegasos.cli import _models
from pegasos.cli._exit import OK

if TYPE_CHECKING:
    from pegasos.cli._models import AnyModel, SavedModel
    from pegasos.estimators.svc import SVC
    from pegasos.estimators.svr import SVR

#: What is said of a file, by name.
Facts: TypeAlias = dict[str, object]

_MOST_LABELS = 1000


def run(args: argparse.Namespace) -> int:
    """Say what a file or folder is; the exit code."""
    facts = _facts(args)
    if args.json:
        print(json.dumps(facts, ensure_ascii=False))
        return OK
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name.ljust(width)}  {_shown(value)}")
    return OK


def _facts(args: argparse.Namespace) -> Facts:
    path = args.path
    if path != "-" and not Path(path).is_dir():
        if _models.kind_of(path) is not None:
            return _model(path)
        with open(path, "rb") as file:
            if file.read(1) == b"{":
                return _run(path)
    return _data(args)


def _model(path: str) -> Facts:
    form = _models.kind_of(path)
    model = _models.load(path)
    from pegasos.estimators.sequence import SequenceSVC

    facts: Facts = {"kind": f"{form} model", "estimator": type(model).__name__}
    if isinstance(model, SequenceSVC):
        from pegasos.cli import _tagger

        return facts | _tagger.facts(model) | _certificate(model) | _tagger.top(model)
    return facts | _row_model(model) | _certificate(model) | _weights(model)


def _row_model(model: AnyModel) -> Facts:
    from pegasos.cli import _describe
    from pegasos.cli._labels import label_text

    facts: Facts = _kernel(model) if hasattr(model, "kernel") else {"loss": _describe.scalar(model.loss)}
    facts["features"] = int(model.n_features_in_)
    if hasattr(model, "classes_"):
        facts["classes"] = [label_text(label) for label in model.classes_]
    return facts


def _certificate(model: SavedModel) -> Facts:
    """What is known of the fit."""
    from pegasos.cli import _describe

    facts: Facts = {}
    if (certificate := getattr(model, "certificate_", None)) is not None:
        if hasattr(model, "lam_"):  # a SparseSVC of an earlier version need not have it
            facts["lambda"] = float(model.lam_)
        for name in ("primal", "dual", "relative_gap"):
            facts[name.replace("_", " ")] = _describe.finite(getattr(certificate, name))
        facts |= {"converged": certificate.converged, "reason": certificate.reason}
        if certificate.goal_reached:
            facts["goal reached"] = True
        if (estimate := _describe.estimate(certificate)) is not None:
            facts |= {"objective estimated": estimate.value, "95 % confidence": [estimate.low, estimate.high]}
            facts["rows estimated from"] = estimate.rows
        if certificate.restricted_gap is not None:
            facts["restricted gap"] = _describe.finite(certificate.restricted_gap)
        facts |= {"epochs": float(certificate.epochs), "seconds": float(certificate.seconds)}
    return facts


def _weights(model: AnyModel) -> Facts:
    """Names of the columns, and the largest weights."""
    from pegasos.cli import _describe

    facts: Facts = {}
    if (names := getattr(model, "feature_names_in_", None)) is not None:
        facts["names"] = list(names)
    features = _describe.features(model, None if names is None else list(names), most=5)
    if features is None:
        return facts
    facts["nonzero weights"] = features.nonzero
    for top in features.top[:20]:
        what = f"top features{f' of {top.label}' if top.label else ''}"
        facts[what] = {weight.feature: weight.weight for weight in (*top.positive, *reversed(top.negative))}
    return facts


def _kernel(model: SVC | SVR) -> Facts:
    """The kernel with the parameters it has, and the support vectors."""
    from pegasos.report.record import KERNEL_PARAMETERS

    name = str(model.kernel)
    facts: Facts = {"kernel": name}
    values = {"gamma": float(model._gamma), "degree": int(model.degree), "coef0": float(model.coef0)}
    facts |= {parameter: values[parameter] for parameter, kernels in KERNEL_PARAMETERS.items() if name in kernels}
    facts["support vectors"] = int(model.n_support_.sum())
    if hasattr(model, "classes_"):
        facts["of each class"] = [int(count) for count in model.n_support_]
    if hasattr(model, "n_kernel_evaluations_"):
        facts["kernel evaluations"] = int(model.n_kernel_evaluations_)
    return facts


def _run(path: str) -> Facts:
    from pegasos.report import record as run_record

    run = run_record.read(Path(path))
    facts: Facts = {"kind": "run record", "name": run.name, "created": run.created}
    facts |= {"estimator": run.model.type, "lambda": run.model.lam, "data": run.data.source, "rows": run.data.rows}
    if run.data.sequences is not None:
        facts["sequences"] = run.data.sequences
    if run.kernel is not None:
        facts |= {"kernel": run.kernel.name, "support vectors": run.kernel.support_vectors}
    facts |= {"relative gap": run.certificate.relative_gap, "converged": run.certificate.converged}
    if run.test is not None:
        facts |= {f"test {name.replace('_', ' ')}": value for name, value in run.test.metrics.items()}
    return facts


def _data(args: argparse.Namespace) -> Facts:
    """Rows, columns, entries and targets, block by block."""
    import numpy as np

    from pegasos.cli import _describe, _rows
    from pegasos.cli._labels import label_text

    folder = args.path != "-" and Path(args.path).is_dir()
    rows = columns = entries = 0
    counts: Counter[int | float | str] = Counter()
    low, high, targets = float("inf"), float("-inf"), False
    blocks = _rows.blocks(args.path, zero_based=args.zero_based, threads=args.threads, memory=args.memory)
    for X, y in blocks.pieces:
        rows, columns = rows + X.shape[0], max(columns, X.shape[1])
        entries += _describe.entries(X)
        if y is None:
            continue
        targets = True
        if len(counts) <= _MOST_LABELS:
            found, times = np.unique(y, return_counts=True)
            counts.update(dict(zip(found.tolist(), times.tolist(), strict=True)))
        if y.dtype.kind in "iuf" and len(y):
            low, high = min(low, float(y.min())), max(high, float(y.max()))
    facts: Facts = {"kind": "dataset folder" if folder else "svmlight text"}
    facts |= {"rows": rows, "columns": columns, "entries": entries}
    if blocks.names is not None:
        facts["names"] = list(blocks.names)
    facts["density"] = entries / (rows * columns) if rows and columns else 0.0
    if 0 < len(counts) <= _MOST_LABELS:
        facts["labels"] = {label_text(label): count for label, count in sorted(counts.items())}
    elif targets and rows:
        facts["targets"] = f"numbers from {low:g} to {high:g}"
    else:
        facts["targets"] = "none"
    return facts


def _shown(value: object) -> str:
    if isinstance(value, dict):
        few = [f"{name} ({count:.4g})" for name, count in list(value.items())[:12]]
        return ", ".join(few) + (", …" if len(value) > 12 else "")
    if isinstance(value, list):
        return ", ".join(map(str, value[:12])) + (", …" if len(value) > 12 else "")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    return "unknown" if value is None else str(value)
