"""Results as people read them."""

from __future__ import annotations

from pegasos.report.record import ClassCount, Confusion, CrossValidation, Evaluation, Kernel
from pegasos.util.numbers import number, percent, whole

_SHARES = ("accuracy", "balanced_accuracy", "f1_macro")


def metric(name: str, value: float) -> str:
    """A metric's value."""
    return percent(value) if name in _SHARES else number(value, 6)


def evaluation(found: Evaluation) -> str:
    """The metrics of some rows, in a line."""
    parts = [f"{name.replace('_', ' ')} {metric(name, value)}" for name, value in found.metrics.items()]
    return f"{found.source}: {', '.join(parts) or 'nothing to measure'} ({whole(found.rows)} rows)"


def cross_validation(found: CrossValidation) -> str:
    """Mean and standard deviation over the folds."""
    mean = sum(found.scores) / len(found.scores)
    spread = (sum((score - mean) ** 2 for score in found.scores) / len(found.scores)) ** 0.5
    shown = f"{metric(found.metric, mean)} ± {metric(found.metric, spread)}"
    return f"cross-validation {found.metric} {shown} ({len(found.scores)} folds)"


def kernel(found: Kernel) -> str:
    """A kernel machine in a line."""
    parameters = [f"gamma {number(found.gamma, 6)}"] if found.name != "linear" else []
    parameters += [f"degree {found.degree}"] if found.name == "poly" else []
    parameters += [f"coef0 {number(found.coef0, 6)}"] if found.name in ("poly", "sigmoid") else []
    work = f"{whole(found.support_vectors)} support vectors, {whole(found.evaluations)} kernel evaluations"
    return f"{', '.join([f'{found.name} kernel', *parameters])}: {work}"


def classes(counts: tuple[ClassCount, ...] | None) -> str:
    """The classes with their rows, the first few of many."""
    if counts is None:
        return "real targets"
    few = ", ".join(f"{c.label} ({whole(c.rows)})" for c in counts[:8])
    return f"{len(counts)} classes: {few}{', …' if len(counts) > 8 else ''}"


def confusion(found: Confusion) -> str:
    """A table of rows: true classes down, predicted ones across, with precision and recall."""
    k = len(found.labels)
    columns = [sum(row[j] for row in found.counts) for j in range(k)]
    lines = [["true \\ predicted", *found.labels, "recall"]]
    for i, label in enumerate(found.labels):
        total = sum(found.counts[i])
        recall = percent(found.counts[i][i] / total) if total else "–"
        lines.append([label, *map(whole, found.counts[i]), recall])
    said = [percent(found.counts[j][j] / columns[j]) if columns[j] else "–" for j in range(k)]
    lines.append(["precision", *said, ""])
    widths = [max(len(line[j]) for line in lines) for j in range(k + 2)]
    return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)
