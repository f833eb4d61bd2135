"""What a tagger of sequences is made of, in model files: names of attributes, weights, and what may follow what.

Arrays: ``attributes_.text`` (the names in UTF-8 one after the other) and ``attributes_.offsets`` (where each begins and
the last ends); ``coef_``, those rows of the weights that are not all zero, and ``coef_.rows``, which ones these are;
``transitions_``; the flags ``grammar.next``, ``grammar.first`` and ``grammar.final``; ``dev_scores_`` where there were
development sequences. The header's ``tagger`` says what kind of input there was, and how the command line made
attributes of columns (``columns``: the template's text, delimiter, comments and encoding), if it did.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pegasos.estimators.sequence import SequenceSVC
from pegasos.io.data.column_reader import ColumnReader
from pegasos.io.data.templates import Template
from pegasos.io.models.checks import Rule, as_array, check_names, checked_array
from pegasos.io.models.labels import decode_list, encode_list
from pegasos.io.models.plain import fits
from pegasos.problems.chain import PADDING
from pegasos.problems.grammar import Grammar
from pegasos.rows.sequences import Encoder
from pegasos.util.arrays import Array, first_true

COLUMNS = ("template", "delimiter", "comments", "encoding")
KINDS = ("attributes", "columns")

#: Of rows that are zero a file holds only the names. This many times the file's bytes the weights may take in memory:
#: what is beyond has all its rows in the file.
MAX_SPREAD = 32


def encode(estimator: SequenceSVC) -> tuple[dict[str, Any], dict[str, Array]]:
    """Entries of the header, and the arrays of a fitted tagger."""
    encoder, coef = estimator._encoder, as_array(estimator.coef_, Rule(()), "coef_")
    header: dict[str, Any] = {"classes": encode_list(estimator.classes_), "tagger": {"kind": encoder.kind}}
    if (reader := estimator.template_) is not None:
        header["tagger"]["columns"] = _encode_reader(reader)
    text, offsets = encoder.arrays()
    used = coef.any(axis=1) if coef.ndim == 2 else np.ones(len(coef), dtype=bool)
    if coef.nbytes > MAX_SPREAD * (text.nbytes + offsets.nbytes + coef[used].nbytes):
        used = np.ones(len(coef), dtype=bool)
    arrays = {
        "attributes_.text": text,
        "attributes_.offsets": offsets,
        "coef_": coef[used],
        "coef_.rows": np.flatnonzero(used).astype(np.int32),
        "transitions_": as_array(estimator.transitions_, Rule(()), "transitions_"),
    }
    arrays |= {f"grammar.{name}": flags for name, flags in estimator._grammar._asdict().items()}
    if "dev_scores_" in vars(estimator):
        arrays["dev_scores_"] = as_array(estimator.dev_scores_, Rule(()), "dev_scores_")
    return header, arrays


def _encode_reader(reader: object) -> dict[str, Any]:
    if not isinstance(reader, ColumnReader):
        raise ValueError(f"template_={reader!r:.100} cannot be saved; it is for the command line, and None elsewhere")
    return {
        "template": reader.template.text,
        "delimiter": reader.delimiter,
        "comments": list(reader.comments),
        "encoding": reader.encoding,
    }


def decode(estimator: SequenceSVC, header: dict[str, Any], arrays: dict[str, Array], sizes: dict[str, int]) -> None:
    """Set the attributes of a tagger, all of them checked; what is used of ``arrays`` is taken out."""
    found = header.get("tagger")
    check_names(f"tagger={found!r:.200}", found, ("kind",), ("columns",))
    assert found is not None
    classes = decode_list(header.get("classes"))
    sizes["labels"] = len(classes)
    text, offsets, rows, coef, transitions = (
        checked_array(name, arrays.pop(name, None), rule, sizes)
        for name, rule in {
            "attributes_.text": Rule(("bytes",), "uint8"),
            "attributes_.offsets": Rule(("pointers",), "int64"),
            "coef_.rows": Rule(("rows",), "int32"),
            "coef_": Rule(("rows", "labels")),
            "transitions_": Rule(("labels", "labels")),
        }.items()
    )
    encoder = _encoder(found["kind"], text, offsets, sizes["features"])
    W = _weights(rows, coef, transitions, len(encoder), text.nbytes + offsets.nbytes)
    grammar = Grammar(*(_flags(name, arrays, sizes) for name in Grammar._fields))
    if "dev_scores_" in arrays:
        scores = checked_array("dev_scores_", arrays.pop("dev_scores_"), Rule(("scores",)), sizes)
        if not ((scores >= 0) & (scores <= 1)).all():
            raise ValueError("dev_scores_ should be numbers between 0 and 1")
        estimator.dev_scores_ = scores.tolist()
    estimator.template_ = _reader(found["columns"]) if "columns" in found else None
    estimator.classes_, estimator._encoder, estimator._grammar = list(classes), encoder, grammar
    estimator._keep_weights(W)


def _encoder(kind: Any, text: Array, offsets: Array, features: int) -> Encoder:
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"kind={kind!r:.50} is none of {', '.join(KINDS)}")
    if len(offsets) != features + 1:
        raise ValueError(f"attributes_.offsets has {len(offsets)} numbers, but n_features={features} needs one more")
    try:
        return Encoder.of_arrays(kind, text, offsets)  # type: ignore[arg-type]
    except ValueError as error:
        raise ValueError(f"attributes_: {error}") from None


def _weights(rows: Array, coef: Array, transitions: Array, attributes: int, names: int) -> Array:
    """All weights, as the core wants them; ``names``: bytes that the names of attributes take in the file."""
    labels = len(transitions)
    if len(rows):
        if int(rows.min()) < 0 or int(rows.max()) >= attributes:
            wrong = int(rows[(rows < 0) | (rows >= attributes)][0])
            raise ValueError(f"coef_.rows has {wrong}, which is no number of one of the {attributes} attributes")
        if (k := first_true(np.diff(rows) <= 0)) is not None:
            raise ValueError(f"coef_.rows should increase, but has {rows[k + 1]} behind {rows[k]}")
    if len(rows) < attributes and 8 * attributes * labels > MAX_SPREAD * (names + coef.nbytes):
        raise ValueError(
            f"coef_ has {len(rows)} rows of {attributes}: so few that the weights take more than {MAX_SPREAD} times "
            "the memory of what is in the file"
        )
    W = np.zeros((attributes + labels) * labels + PADDING)
    W[: attributes * labels].reshape(attributes, labels)[rows] = coef
    W[attributes * labels : len(W) - PADDING] = transitions.ravel()
    return W


def _flags(name: str, arrays: dict[str, Array], sizes: dict[str, int]) -> Array:
    shape = ("labels", "labels") if name == "next" else ("labels",)
    flags = checked_array(f"grammar.{name}", arrays.pop(f"grammar.{name}", None), Rule(shape, "uint8"), sizes)
    if (flags > 1).any():
        raise ValueError(f"grammar.{name} has a flag that is neither 0 nor 1")
    return flags


def _reader(found: Any) -> ColumnReader:
    check_names(f"columns={found!r:.200}", found, COLUMNS)
    template, delimiter, comments, encoding = (found[name] for name in COLUMNS)
    wanted = {"template": str, "delimiter": str | None, "comments": tuple[str, ...], "encoding": str}
    for name, hint in wanted.items():
        if not fits(found[name], hint):
            raise ValueError(f"columns: {name}={found[name]!r:.100} is not what reads a column file")
    return ColumnReader(Template.parse(template, "the model's template"), delimiter, tuple(comments), encoding)
