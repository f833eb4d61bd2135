"""Results as people read them."""

from __future__ import annotations

from pegasos.report.record import ClassCount, Confusion, CrossValidation, Evaluation, Kernel
from pegasos.util.numbers import number, percent, whole

_SHARES = ("accuracy", "balanced_accuracy", "f1_macro", "precision", "recall", "f1")


def metric(name: str, value: float) -> str:
    """A metric's value."""
    return percent(value) if name in _SHARES else number(value, 6)


def evaluation(found: Evaluation) -> str:
    """The metrics of some rows, in a line."""
    parts = [f"{name.replace('_', ' ')} {metric(name, value)}" for name, value in found.metrics.items()]
    size = f"{whole(found.rows)} rows"
    if found.sequences is not None:
        size = f"{whole(found.rows)} tokens in {whole(found.sequences)} sentences"
    return f"{found.source}: {', '.join(parts) or 'nothing to measure'} ({size})"


def cross_validation(found: CrossValidation) -> str:
    """Mean and standard deviation over the folds."""
    shown = f"{metric(found.metric, found.mean)} ± {metric(found.metric, found.spread)}"
    return f"cross-validation {found.metric} {shown} ({len(found.scores)} folds)"


def kernel(found: Kernel) -> str:
    """A kernel machine in a line."""
    parameters = [f"{name} {number(value, 6)}" for name, value in found.parameters().items()]
    work = f"{whole(found.support_vectors)} support vectors, {whole(found.evaluations)} kernel evaluations"
    return f"{', '.join([f'{found.name} kernel', *parameters])}: {work}"


def classes(counts: tuple[ClassCount, ...] | None, name: str = "classes") -> str:
    """The classes with their rows, the first few of many."""
    if counts is None:
        return "real targets"
    few = ", ".join(f"{c.label} ({whole(c.rows)})" for c in counts[:8])
    return f"{len(counts)} {name}: {few}{', …' if len(counts) > 8 else ''}"


def confusion(found: Confusion) -> str:
    """A table of rows: true classes down, predicted ones across, with precision and recall."""
    lines, precision = [["true \\ predicted", *found.labels, "recall"]], []
    for row, (label, right, true, predicted) in zip(found.counts, found.of_each_class(), strict=True):
        lines.append([label, *map(whole, row), percent(right / true) if true else "–"])
        precision.append(percent(right / predicted) if predicted else "–")
    lines.append(["precision", *precision, ""])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)
