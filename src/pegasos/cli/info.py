"""``pegasos info``: what a file is."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from pegasos.cli import _models
from pegasos.cli._exit import OK


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


def _facts(args: argparse.Namespace) -> dict[str, Any]:
    path = args.path
    if path != "-" and not Path(path).is_dir():
        if _models.kind_of(path) is not None:
            return _model(path)
        with open(path, "rb") as file:
            if file.read(1) == b"{":
                return _run(path)
    return _data(args)


def _model(path: str) -> dict[str, Any]:
    form = _models.kind_of(path)
    model = _models.load(path)
    from pegasos.cli import _describe
    from pegasos.cli._labels import label_text

    facts: dict[str, Any] = {"kind": f"{form} model", "estimator": type(model).__name__}
    facts |= _kernel(model) if hasattr(model, "kernel") else {"loss": _describe.scalar(model.loss)}
    facts["features"] = int(model.n_features_in_)
    if hasattr(model, "classes_"):
        facts["classes"] = [label_text(label) for label in model.classes_]
    if (certificate := getattr(model, "certificate_", None)) is not None:
        if hasattr(model, "lam_"):  # a SparseSVC of an earlier version need not have it
            facts["lambda"] = float(model.lam_)
        for name in ("primal", "dual", "relative_gap"):
            facts[name.replace("_", " ")] = _describe.finite(getattr(certificate, name))
        facts |= {"converged": certificate.converged, "reason": certificate.reason}
        if certificate.goal_reached:
            facts["goal reached"] = True
        if certificate.restricted_gap is not None:
            facts["restricted gap"] = _describe.finite(certificate.restricted_gap)
        facts |= {"epochs": float(certificate.epochs), "seconds": float(certificate.seconds)}
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


def _kernel(model: Any) -> dict[str, Any]:
    """The kernel with the parameters it has, and the support vectors."""
    name = str(model.kernel)
    facts: dict[str, Any] = {"kernel": name}
    facts |= {"gamma": float(model._gamma)} if name not in ("linear", "precomputed") else {}
    facts |= {"degree": int(model.degree)} if name == "poly" else {}
    facts |= {"coef0": float(model.coef0)} if name in ("poly", "sigmoid") else {}
    facts["support vectors"] = int(model.n_support_.sum())
    if hasattr(model, "classes_"):
        facts["of each class"] = [int(count) for count in model.n_support_]
    if hasattr(model, "n_kernel_evaluations_"):
        facts["kernel evaluations"] = int(model.n_kernel_evaluations_)
    return facts


def _run(path: str) -> dict[str, Any]:
    from pegasos.report import record as run_record

    run = run_record.read(Path(path))
    facts: dict[str, Any] = {"kind": "run record", "name": run.name, "created": run.created}
    facts |= {"estimator": run.model.type, "lambda": run.model.lam, "data": run.data.source, "rows": run.data.rows}
    if run.kernel is not None:
        facts |= {"kernel": run.kernel.name, "support vectors": run.kernel.support_vectors}
    facts |= {"relative gap": run.certificate.relative_gap, "converged": run.certificate.converged}
    if run.test is not None:
        facts |= {f"test {name.replace('_', ' ')}": value for name, value in run.test.metrics.items()}
    return facts


def _data(args: argparse.Namespace) -> dict[str, Any]:
    """Rows, columns, entries and targets, block by block."""
    import numpy as np

    from pegasos.cli import _rows
    from pegasos.cli._labels import label_text

    folder = args.path != "-" and Path(args.path).is_dir()
    rows = columns = entries = 0
    counts: dict[Any, int] = {}
    low, high, targets = float("inf"), float("-inf"), False
    blocks = _rows.blocks(args.path, zero_based=args.zero_based, threads=args.threads, memory=args.memory)
    for X, y in blocks.pieces:
        rows, columns = rows + X.shape[0], max(columns, X.shape[1])
        entries += int(X.nnz) if hasattr(X, "nnz") else int(X.size)
        if y is None:
            continue
        targets = True
        if len(counts) <= _MOST_LABELS:
            found, times = np.unique(y, return_counts=True)
            for label, count in zip(found.tolist(), times.tolist(), strict=True):
                counts[label] = counts.get(label, 0) + count
        if y.dtype.kind in "iuf" and len(y):
            low, high = min(low, float(y.min())), max(high, float(y.max()))
    facts: dict[str, Any] = {"kind": "dataset folder" if folder else "svmlight text"}
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


_MOST_LABELS = 1000


def _shown(value: Any) -> str:
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
