"""Model files: a fitted estimator as a safetensors file with a JSON header, and back. No code runs on load.

A file holds the parameters as plain data, the weights or support vectors, the labels, feature names, certificate and
trace, and what ``partial_fit`` needs to go on. Which arrays an estimator has, with their types and shapes, is one entry
of ``LAYOUTS``; those of kernel machines are in ``support.py``, those of taggers in ``tagger.py``.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from io import BytesIO
from typing import Any, BinaryIO, get_type_hints

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pegasos.estimators.linear import LinearSVC, LinearSVR
from pegasos.estimators.sequence import SequenceSVC
from pegasos.estimators.svc import SVC
from pegasos.estimators.svr import SVR
from pegasos.fit.certificate import Certificate
from pegasos.fit.trace import UNNAMED_COLUMNS, Trace
from pegasos.io.models import stream as streams
from pegasos.io.models import support as support_arrays
from pegasos.io.models import tagger as tagger_arrays
from pegasos.io.models.checks import Rule, as_array, check_names, checked_array, whole
from pegasos.io.models.container import pack, unpack
from pegasos.io.models.labels import check_labels, decode_labels, encode_labels
from pegasos.io.models.plain import decode_parameters, encode_parameters, fits, plain
from pegasos.rows.views import Array
from pegasos.sparse.randomized import Guarantee
from pegasos.sparse.svc import SparseSVC
from pegasos.util.atomic import replace_file

FORMAT = "pegasos model"
VERSION = 1


@dataclass(frozen=True)
class Layout:
    """What a fitted estimator is made of beside what all have; ``outputs`` is 1 for two classes, else their number."""

    kind: type
    arrays: Mapping[str, Rule]
    scalars: Mapping[str, type] = field(default_factory=lambda: {"n_iter_": int})
    classifier: bool = False
    kernel: bool = False
    tagger: bool = False
    records: Mapping[str, type] = field(default_factory=lambda: {"certificate": Certificate})

    @property
    def streams(self) -> bool:
        """Whether the file has an entry of its own for what ``partial_fit`` needs."""
        return not (self.kernel or self.tagger)

    def check(self, estimator: Any) -> None:
        """Refuse parameters that ``fit`` would refuse."""
        estimator._check_parameters()
        estimator._loss()
        if not self.kernel:
            estimator._seed()


LAYOUTS = {
    "LinearSVC": Layout(
        LinearSVC,
        {"coef_": Rule(("outputs", "features")), "intercept_": Rule(("outputs",))},
        classifier=True,
    ),
    "LinearSVR": Layout(LinearSVR, {"coef_": Rule(("features",)), "intercept_": Rule((1,))}),
    "SVC": Layout(
        SVC,
        {"class_weight_": Rule(("classes",)), "n_iter_": Rule(("functions",), "int32", optional=True)},
        {"fit_status_": int, "n_kernel_evaluations_": int},
        classifier=True,
        kernel=True,
    ),
    "SparseSVC": Layout(
        SparseSVC,
        {
            "class_weight_": Rule(("classes",)),
            "n_iter_": Rule(("functions",), "int32", optional=True),
            "cv_shares_": Rule(("shares",), optional=True),
            "cv_errors_": Rule(("shares",), optional=True),
        },
        {"fit_status_": int, "n_kernel_evaluations_": int, "n_reference_support_": int, "lam_": float},
        classifier=True,
        kernel=True,
        records={"certificate": Certificate, "guarantee": Guarantee},
    ),
    "SVR": Layout(SVR, {}, {"fit_status_": int, "n_kernel_evaluations_": int, "n_iter_": int}, kernel=True),
    "SequenceSVC": Layout(SequenceSVC, {}, {"n_iter_": int, "lam_": float}, tagger=True),
}

#: What the JSON header has, and what it may have.
NEEDED_KEYS = {"format", "version", "estimator", "parameters", "n_features", "scalars"}
OPTIONAL_KEYS = {"feature_names", "classes", "certificate", "guarantee", "trace", "stream", "kernel", "tagger"}


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a model file, in place of what was there.

    The file is a safetensors file: weights, labels, parameters, certificate and trace, and no code. The same estimator
    gives the same bytes. It is written beside ``path`` first, so that a crash leaves the old file as it was.

    Left out are what ``warm_start`` keeps, the callback, and a ``random_state`` that is a generator rather than a
    number: the loaded estimator has None there.

    Parameters
    ----------
    estimator : LinearSVC, LinearSVR, SVC, SVR, SparseSVC or SequenceSVC
        Fitted. A kernel that is a function cannot be saved: it is code. The labels of a tagger must be
        texts, finite numbers or booleans.
    path : str or path
        The file to write; ``.safetensors`` is a good ending.

    Raises
    ------
    ValueError
        If the estimator is not fitted, or has what a model file cannot hold. Nothing has been written then.

    See Also
    --------
    load : The way back.

    Examples
    --------
    >>> import tempfile
    >>> import pegasos
    >>> model = pegasos.LinearSVC().fit([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pegasos.save(model, f"{folder}/model.safetensors")
    ...     print(pegasos.load(f"{folder}/model.safetensors").predict([[3.0]]))
    ['yes']
    """
    data = encode(estimator)
    try:
        decode(BytesIO(data), len(data))
    except ValueError as error:
        raise ValueError(f"this {type(estimator).__name__} cannot be saved: {error}") from None
    replace_file(path, data)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model file that :func:`save` wrote.

    Safe on files from untrusted sources: no code runs, and everything is checked before it is used. The certificate is
    read as it was written, and is not computed again.

    Parameters
    ----------
    path : str or path
        A model file.

    Returns
    -------
    LinearSVC, LinearSVR, SVC, SVR, SparseSVC or SequenceSVC
        Fitted: it predicts to the same bits, ``fit`` starts afresh, and ``partial_fit`` goes on from its weights, λ and
        count of rows.

    Raises
    ------
    ValueError
        If the file is not a valid model file: the message names the file and what is wrong.
    OSError
        If it cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> import pegasos
    >>> model = pegasos.LinearSVR(C=10.0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pegasos.save(model, f"{folder}/model.safetensors")
    ...     again = pegasos.load(f"{folder}/model.safetensors")
    >>> again.certificate_ == model.certificate_
    True
    """
    name = os.fspath(path)
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError(f"{name}: no regular file")
    with open(path, "rb") as file:
        try:
            return decode(file, os.fstat(file.fileno()).st_size)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None


# --- to bytes --------------------------------------------------------------------------------------------------------


def encode(estimator: Any) -> bytes:
    """The bytes of the model file of a fitted estimator."""
    layout = layout_of(estimator)
    check_is_fitted(estimator)
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "estimator": layout.kind.__name__,
        "parameters": encode_parameters(estimator),
        "n_features": plain(estimator.n_features_in_),
        "scalars": {name: plain(vars(estimator)[name]) for name in layout.scalars if name in vars(estimator)},
    }
    arrays = {
        name: as_array(getattr(estimator, name), rule, name)
        for name, rule in layout.arrays.items()
        if not rule.optional or hasattr(estimator, name)
    }
    if layout.kernel:
        header["kernel"], support = support_arrays.encode(estimator)
        arrays |= support
    if layout.tagger:
        entries, parts = tagger_arrays.encode(estimator)
        header |= entries
        arrays |= parts
    if layout.classifier:
        labels = encode_labels(estimator.classes_)
        if isinstance(labels, dict):
            header["classes"] = labels
        else:
            arrays["classes_"] = labels
    if (names := getattr(estimator, "feature_names_in_", None)) is not None:
        header["feature_names"] = plain(list(names))
    for name, kind in layout.records.items():
        if (record := getattr(estimator, f"{name}_", None)) is not None:
            values = {f.name: getattr(record, f.name) for f in fields(kind)}
            # What only some certificates have is left out of all others: earlier versions can read those.
            usual = {f.name for f in fields(kind) if f.default in (None, False) and values[f.name] is f.default}
            header[name] = {key: _number_or_name(value) for key, value in values.items() if key not in usual}
    if (trace := getattr(estimator, "trace_", None)) is not None:
        columns = trace.columns()
        header["trace"], arrays["trace_"] = list(columns), np.column_stack(list(columns.values()))
    if layout.streams and estimator._stream is not None:
        header["stream"], sums = streams.encode(estimator._stream)
        arrays |= sums
    try:
        return pack(header, arrays)
    except (TypeError, ValueError) as error:
        raise ValueError(f"this {layout.kind.__name__} cannot be saved: {error}") from None


def layout_of(estimator: Any) -> Layout:
    """The layout of an estimator's own class; what a subclass adds would be lost without a word."""
    layout = LAYOUTS.get(type(estimator).__name__)
    if layout is None or type(estimator) is not layout.kind:
        raise ValueError(
            f"model files are for {', '.join(LAYOUTS)} themselves, not for {type(estimator).__qualname__}; "
            "of a pipeline or search save the fitted estimator inside"
        )
    return layout


def _number_or_name(value: Any) -> Any:
    """JSON has no infinities: they go by name."""
    if isinstance(value, tuple):
        return [_number_or_name(item) for item in value]
    value = plain(value)
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


# --- from bytes ------------------------------------------------------------------------------------------------------


def decode(file: BinaryIO, size: int) -> Any:
    """The estimator in a model file of ``size`` bytes; ValueError says what is wrong with it."""
    header, arrays = unpack(file, size)
    layout = _checked_layout(header)
    sizes: dict[str, int] = {"features": whole(header, "n_features", low=0 if layout.tagger else 1)}
    estimator = layout.kind(**decode_parameters(layout.kind, header["parameters"]))
    layout.check(estimator)
    state: dict[str, Any] = {"n_features_in_": sizes["features"]}
    if "feature_names" in header and not layout.tagger:
        state["feature_names_in_"] = _feature_names(header["feature_names"], sizes["features"])
    if layout.classifier:
        labels = decode_labels(header["classes"]) if "classes" in header else arrays.pop("classes_", None)
        state["classes_"] = check_labels(labels)
        sizes["classes"] = len(state["classes_"])
        sizes["outputs"] = 1 if sizes["classes"] == 2 else sizes["classes"]
    if layout.kernel:
        support_arrays.decode(estimator, header.get("kernel"), arrays, sizes)
    if layout.tagger:
        tagger_arrays.decode(estimator, header, arrays, sizes)
    for name, rule in layout.arrays.items():
        if not rule.optional or name in arrays:
            state[name] = checked_array(name, arrays.pop(name, None), rule, sizes)
    state |= _scalars(header["scalars"], layout)
    for name, kind in layout.records.items():
        if name in header:
            state[f"{name}_"] = _record(name, kind, header[name])
    if "trace_" in arrays:
        state["trace_"] = _trace(arrays.pop("trace_"), header.get("trace", list(UNNAMED_COLUMNS)))
    if "stream" in header and layout.streams:
        estimator._stream = streams.decode(header["stream"], arrays, state.get("trace_"), sizes["features"])
    if (lam := _lam(estimator, state)) is not None:
        state["lam_"] = lam
    own = {
        "feature_names": not layout.tagger,
        "classes": layout.classifier or layout.tagger,
        "trace": "trace_" in state,
        "stream": layout.streams,
        "kernel": layout.kernel,
        "tagger": layout.tagger,
        "guarantee": "guarantee" in layout.records,
    }
    foreign = [name for name, has in own.items() if name in header and not has]
    if surplus := next(iter((*arrays, *foreign)), None):
        raise ValueError(f"a {layout.kind.__name__} has no {surplus!r:.100}")
    vars(estimator).update(state)
    return estimator


def _checked_layout(header: dict[str, Any]) -> Layout:
    """The layout that the header names, once its format, version and keys are known to be ours."""
    if header.get("format") != FORMAT:
        raise ValueError(f"not a model file of this package: the format is {header.get('format')!r:.100}")
    version = whole(header, "version", low=1)
    if version > VERSION:
        raise ValueError(f"format version {version} is newer than {VERSION}, the last known here; upgrade pegasos")
    if missing := NEEDED_KEYS - set(header):
        raise ValueError(f"the model header lacks {', '.join(sorted(missing))}")
    if unknown := set(header) - NEEDED_KEYS - OPTIONAL_KEYS:
        raise ValueError(f"the model header has unknown keys: {', '.join(sorted(unknown)):.200}")
    name = header["estimator"]
    if not isinstance(name, str) or name not in LAYOUTS:
        raise ValueError(f"estimator {name!r:.100} is none of {', '.join(LAYOUTS)}; upgrade pegasos if it is a new one")
    return LAYOUTS[name]


def _scalars(found: Any, layout: Layout) -> dict[str, Any]:
    if not isinstance(found, dict) or not set(found) <= set(layout.scalars):
        raise ValueError(f"scalars={found!r:.200} should have {', '.join(layout.scalars)} and nothing else")
    for name, value in found.items():
        if not fits(value, layout.scalars[name]) or value < 0:
            raise ValueError(f"{name}={value!r:.100} should be {layout.scalars[name].__name__} >= 0")
    return dict(found)


def _lam(estimator: Any, state: dict[str, Any]) -> float | None:
    """λ of the fit: what partial_fit goes on with, where rows can follow; None of models that were not fitted here.

    A SparseSVC has it as a number of its own; files that were written before it did have it only if it was given.
    """
    if isinstance(estimator, SparseSVC):
        lam = state.get("lam_", estimator.lam)
        return None if lam is None else float(lam)
    return None if estimator._stream is None else float(estimator._stream.lam)


def _feature_names(found: Any, features: int) -> Array:
    if not fits(found, tuple[str, ...]) or len(found) != features:
        raise ValueError(f"feature_names should be {features} texts")
    names = np.empty(features, dtype=object)
    names[:] = found
    return names


def _record(what: str, kind: type, found: Any) -> Any:
    """A record by the names of its fields: those with a default may be missing, unknown ones only tell more."""
    hints = get_type_hints(kind)
    check_names(f"the {what}", found, [f.name for f in fields(kind) if f.default is MISSING], others=True)
    values = {f.name: _with_infinities(found[f.name]) for f in fields(kind) if f.name in found}
    for name in values:
        if not fits(values[name], hints[name]):
            raise ValueError(f"the {what}'s {name} is {values[name]!r:.100}")
        if isinstance(values[name], list):
            values[name] = tuple(map(float, values[name]))
    return kind(**values)


def _with_infinities(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_infinities(item) for item in value]
    return {"inf": np.inf, "-inf": -np.inf}.get(value, value) if isinstance(value, str) else value


def _trace(array: Array, names: Any) -> Trace:
    """The trace whose columns have these names; NaN is what is not known."""
    if not fits(names, tuple[str, ...]) or len(set(names)) < len(names):
        raise ValueError(f"trace={names!r:.200} should be the names of the columns of trace_")
    if array.dtype != np.float64 or array.ndim != 2 or array.shape[1] != len(names):
        raise ValueError(f"trace_ should be checkpoints × {len(names)} float64 numbers")
    return Trace.of_columns(dict(zip(names, array.T, strict=True)))
