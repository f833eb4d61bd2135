"""Datasets on disk: conversion equals reading, damage is refused, and training from the maps gives the same bits."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io as std_io
import json
import lzma
import os
import sys
import textwrap

import numpy as np
import processes
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal
from scipy import sparse

from pegasos import SDCA, SGD, LinearSVC, LinearSVR, Norma, Pegasos, _core, io
from pegasos.fit.engine import Options
from pegasos.io.data import convert, csv_source, npz_source

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

FLOATS = st.floats(-1e30, 1e30, allow_subnormal=True).map(lambda x: x + 0.0)
quiet = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch):
    """What a crash of the machine would do cannot be seen here; do not wait for the disk."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def rows(m=60, n=7, *, layout="csr", dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n)).astype(dtype)
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(m) > 0, 1, -1)
    if layout == "dense":
        return X, y
    X[rng.random((m, n)) < 0.6] = 0
    return sparse.csr_matrix(X), y


def dense(X):
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def contents(folder):
    return sorted(path.name for path in folder.iterdir())


# --- there and back --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["csr", "dense"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_come_back_as_they_were(tmp_path, layout, dtype):
    X, y = rows(layout=layout, dtype=dtype)
    weight = np.linspace(0, 2, len(y))
    data = io.write_dataset(X, y, tmp_path / "d", sample_weight=weight, feature_names=list("abcdefg"))
    assert data.dtype == dtype
    assert data.shape == X.shape
    assert data.feature_names == tuple("abcdefg")
    assert_array_equal(dense(data.X), dense(X))
    assert_array_equal(data.y, y)
    assert_array_equal(data.sample_weight, weight)
    assert isinstance(data.y, np.memmap)
    assert data.X.indices.dtype == data.X.indptr.dtype if layout == "csr" else isinstance(data.X, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        data.y[0] = 5


@quiet
@given(
    X=hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=6), elements=FLOATS),
    words=st.lists(
        st.text(min_size=1, max_size=5).filter(lambda s: "\0" not in s), min_size=2, max_size=3, unique=True
    ),
    as_csr=st.booleans(),
)
def test_any_finite_matrix_and_any_labels_round_trip(tmp_path, X, words, as_csr):
    y = np.array(words, dtype=object)[np.arange(len(X)) % len(words)]
    data = io.write_dataset(sparse.csr_matrix(X) if as_csr else X, y, tmp_path / "d", overwrite=True)
    assert_array_equal(dense(data.X), X)
    assert data.y.tolist() == y.tolist()


def test_unsorted_and_repeated_columns_are_put_in_order(tmp_path):
    X = sparse.csr_matrix((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 4))
    data = io.write_dataset(X, [1], tmp_path / "d")
    assert data.X.indices.tolist() == [0, 2]
    assert data.X.data.tolist() == [2.0, 4.0]


def test_wide_indices_are_written_wide_from_where_they_are_needed(tmp_path):
    X = sparse.csr_matrix((2, 2**31 + 5), dtype=np.float32)
    X.data, X.indices, X.indptr = np.ones(2, np.float32), np.array([3, 2**31 + 4]), np.array([0, 1, 2])
    data = io.write_dataset(X, [0, 1], tmp_path / "d")
    assert data.X.indices.dtype == data.X.indptr.dtype == np.int64
    assert data.X.indices.tolist() == [3, 2**31 + 4]


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0, np.nan]], [1], "row 0, column 1: NaN"),
        ([[1.0, 2.0], [np.inf, 1.0]], [1, 2], "row 1, column 0: infinity"),
        ([[1.0]], [np.nan], "row 0: the target is nan"),
        ([[1.0]], [1, 2], r"y has the shape \(2,\), but X has 1 rows"),
        ([["a"]], [1], "matrix of numbers"),
        (np.empty((0, 3)), [], "holds no rows"),
    ],
)
def test_bad_arrays_are_refused_and_leave_nothing(tmp_path, X, y, message):
    with pytest.raises(ValueError, match=message):
        io.write_dataset(X, y, tmp_path / "d")
    assert contents(tmp_path) == []


def test_values_too_large_for_float32_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"row 1, column 2: .* does not fit into float32"):
        io.write_dataset(sparse.csr_matrix([[1.0, 0, 0], [0, 0, 1e39]]), [0, 1], tmp_path / "d", dtype="float32")
    assert contents(tmp_path) == []


# --- formats ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", [1 << 16, 1 << 26])
def test_svmlight_equals_scikit_learns_reader(tmp_path, memory):
    from sklearn.datasets import dump_svmlight_file, load_svmlight_file

    X, y = rows(3000, 40)
    dump_svmlight_file(X, y, str(tmp_path / "d.svm"), zero_based=False)
    expected, labels = load_svmlight_file(str(tmp_path / "d.svm"), n_features=40)
    data = io.convert(tmp_path / "d.svm", tmp_path / "d", n_features=40, memory=memory)
    assert_array_equal(dense(data.X), expected.toarray())
    assert_array_equal(data.y, labels)


def csv_text(X, y, header=True, newline="\n"):
    lines = [",".join([*(f"f{j}" for j in range(X.shape[1])), "label"])] if header else []
    lines += [",".join([*(repr(float(v)) for v in x), str(t)]) for x, t in zip(X, y, strict=True)]
    return newline.join(lines) + newline


@pytest.mark.parametrize("labels", ["numbers", "text"])
@pytest.mark.parametrize("memory", [1 << 16, 1 << 26])
def test_csv_equals_the_numbers_it_was_made_of(tmp_path, memory, labels):
    X, y = rows(2500, 6, layout="dense")
    y = y if labels == "numbers" else np.where(y > 0, "größer", "kleiner")
    (tmp_path / "d.csv").write_text(csv_text(X, y), encoding="utf-8")
    data = io.convert(tmp_path / "d.csv", tmp_path / "d", memory=memory)
    assert_array_equal(data.X, X)
    assert_array_equal(data.y, y)
    assert data.feature_names == tuple(f"f{j}" for j in range(6))
    assert contents(tmp_path) == ["d", "d.csv"]


@quiet
@given(
    X=hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=5), elements=FLOATS),
    newline=st.sampled_from(["\n", "\r\n", "\r"]),
    quoted=st.booleans(),
    padded=st.booleans(),
    bom=st.booleans(),
    header=st.booleans(),
)
def test_csv_in_many_dresses(tmp_path, X, newline, quoted, padded, bom, header):
    """The slow way (quotes) and NumPy's fast one read the same numbers."""
    cell = (lambda v: f'"{v!r}"') if quoted else (lambda v: f" {v!r} ") if padded else repr
    lines = [",".join(f"f{j}" for j in range(X.shape[1])) + ",t"] if header else []
    lines += [",".join([*(cell(float(v)) for v in x), str(i)]) for i, x in enumerate(X)]
    text = ("\ufeff" if bom else "") + (newline * 2).join(lines)
    data = io.convert(std_io.BytesIO(text.encode()), tmp_path / "d", format="csv", target=-1, overwrite=True)
    assert_array_equal(data.X, X)
    assert data.y.tolist() == list(range(len(X)))


def test_csv_quotes_hide_delimiters_line_ends_and_quotes(tmp_path):
    text = 'a,"b,c",label\n1,2,"one ""x"", two\nthree"\n3,"4",z\n'
    data = io.convert(std_io.BytesIO(text.encode()), tmp_path / "d", format="csv")
    assert data.feature_names == ("a", "b,c")
    assert data.y.tolist() == ['one "x", two\nthree', "z"]


@pytest.mark.parametrize("squeeze", [gzip.compress, bz2.compress, lzma.compress], ids=["gz", "bz2", "xz"])
def test_compressed_csv(tmp_path, squeeze):
    X, y = rows(300, 3, layout="dense")
    whole = squeeze(csv_text(X, y).encode())
    (tmp_path / "d.csv.z").write_bytes(whole)
    data = io.convert(tmp_path / "d.csv.z", tmp_path / "d", format="csv")
    assert_array_equal(data.X, X)
    (tmp_path / "cut.csv").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"cut\.csv"):
        io.convert(tmp_path / "cut.csv", tmp_path / "e")
    assert not (tmp_path / "e").exists()


def test_zstandard_csv(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    (tmp_path / "d.csv.zst").write_bytes(zstandard.compress(b"a,y\n1,2\n3,4\n"))
    assert io.convert(tmp_path / "d.csv.zst", tmp_path / "d").y.tolist() == [2, 4]


BAD_CSV = [
    ("a,y\n1,2\nx,3\n", {}, r"line 3, column 1 \(a\): 'x' is not a finite number"),
    ("a,y\n1,2\n,3\n", {}, r"line 3, column 1 \(a\): is empty"),
    ("a,y\n1,2\nnan,3\n", {}, "line 3, column 1"),
    ("a,y\n1,2\n1e999,3\n", {}, "line 3, column 1"),
    ("a,y\n1,2\n1_0,3\n", {}, "line 3, column 1"),
    ("a,y\n1,2\n\n\n1,2,3\n", {}, "line 5: 3 fields, where the first line has 2"),
    ("a,y\n1,2\n7\n", {}, "line 3: 1 fields"),
    ("a,y\n1,\n", {}, "line 2, column 2: the target is empty"),
    ("a,b\n1,2\n", {}, "which column is the target.*'a', 'b'"),
    ("y,label\n1,2\n", {}, "more than one column"),
    ("1,2\n", {}, "which column is the target"),
    ("1,2\n", {"target": "z"}, "no column is called target='z'"),
    ("1,2\n", {"target": 2}, "target=2 is no position among 2 columns"),
    ("1,2\n", {"target": "z", "header": False}, "has no header"),
    ("1,x,2\n", {"target": 2}, "line 1, column 2: 'x' is not a finite number; if the line names .* header=True"),
    ("a,a,y\n1,2,3\n", {}, "names 'a' twice"),
    ("y\n1\n", {}, "no column is left for the features"),
    ('a,y\n1,"2\n', {}, "never closed"),
    ("a,y\n", {}, "holds no rows"),
    ("", {}, "holds no rows"),
    ("a,y\n1,2\n", {"sample_weight": "y"}, "the same column"),
    ("a,w,y\n1,-1,2\n", {"sample_weight": "w"}, "the weight -1.0 is not a number >= 0"),
]


@pytest.mark.parametrize(("text", "options", "message"), BAD_CSV)
def test_bad_csv_is_refused_by_line_and_column(tmp_path, text, options, message):
    (tmp_path / "d.csv").write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        io.convert(tmp_path / "d.csv", tmp_path / "d", **options)
    assert "d.csv" in str(caught.value)
    assert contents(tmp_path) == ["d.csv"]


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "d.csv").write_bytes(b"a,y\n1,2\n\xff\xfe,3\n")
    with pytest.raises(ValueError, match="is not UTF-8"):
        io.convert(tmp_path / "d.csv", tmp_path / "d")


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_source, "LONGEST_LINE", 100)
    with pytest.raises(ValueError, match="line 2 is longer than 100 characters"):
        io.convert(std_io.BytesIO(b"a,y\n" + b"1" * 500), tmp_path / "d", format="csv")


def test_labels_that_begin_as_numbers_are_refused_with_the_remedy(tmp_path):
    text = "a,y\n" + "1,2\n" * 20_000 + "1,cat\n"
    with pytest.raises(ValueError, match=r"line 20002, column 2.*text_target=True"):
        io.convert(std_io.BytesIO(text.encode()), tmp_path / "d", format="csv", memory=1 << 16)
    data = io.convert(std_io.BytesIO(text.encode()), tmp_path / "d", format="csv", memory=1 << 16, text_target=True)
    assert data.classes == ("2", "cat")


def test_the_callers_file_stays_open(tmp_path):
    with std_io.BytesIO(b"a,y\n1,2\n3,x\n") as file:
        io.convert(file, tmp_path / "d", format="csv")
        assert not file.closed


@pytest.mark.parametrize("groups", [7, 1000])
def test_parquet_equals_the_table(tmp_path, groups):
    X, y = rows(500, 4, layout="dense")
    table = pa.table({**{f"f{j}": X[:, j] for j in range(4)}, "y": np.where(y > 0, "a", "b"), "w": np.ones(500)})
    pq.write_table(table, tmp_path / "d.parquet", row_group_size=groups)
    data = io.convert(tmp_path / "d.parquet", tmp_path / "d", sample_weight="w", memory=1 << 16)
    assert_array_equal(data.X, X)
    assert_array_equal(data.y, np.where(y > 0, "a", "b"))
    assert data.feature_names == ("f0", "f1", "f2", "f3")
    assert_array_equal(data.sample_weight, np.ones(500))


def test_parquet_types(tmp_path):
    from decimal import Decimal

    columns = {
        "small": pa.array([1, 2], pa.int8()),
        "yes": pa.array([True, False]),
        "money": pa.array([Decimal("1.50"), Decimal("2.25")]),
        "half": pa.array(np.array([0.5, 2], np.float16)),
        "class": pa.array(["x", "y"]).dictionary_encode(),
    }
    pq.write_table(pa.table(columns), tmp_path / "d")
    data = io.convert(tmp_path / "d", tmp_path / "out")
    assert data.X.tolist() == [[1, 1, 1.5, 0.5], [2, 0, 2.25, 2]]
    assert data.y.tolist() == ["x", "y"]
    pq.write_table(pa.table({"a": pa.array([1.0], pa.float32()), "y": [1]}), tmp_path / "single.pq")
    assert io.convert(tmp_path / "single.pq", tmp_path / "single").dtype == np.float32


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1.0, None], "y": [1, 2]}, "row 1, column 'a': is null"),
        ({"a": ["p", "q"], "y": [1, 2]}, "column 'a' holds string, not numbers"),
        ({"a": [1.0, float("nan")], "y": [1, 2]}, r"row 1, column 0 \(a\): NaN"),
        ({"a": [1.0], "b": [1]}, "which column is the target"),
    ],
)
def test_bad_parquet_is_refused(tmp_path, columns, message):
    pq.write_table(pa.table(columns), tmp_path / "d.parquet")
    with pytest.raises(ValueError, match=message):
        io.convert(tmp_path / "d.parquet", tmp_path / "d")
    assert contents(tmp_path) == ["d.parquet"]


def test_damaged_parquet_is_refused(tmp_path):
    pq.write_table(pa.table({"a": np.arange(1000.0), "y": np.arange(1000)}), tmp_path / "d.parquet")
    whole = (tmp_path / "d.parquet").read_bytes()
    for cut in (4, 100, len(whole) - 1):
        (tmp_path / "cut.parquet").write_bytes(whole[:cut])
        with pytest.raises(ValueError, match=r"cut\.parquet"):
            io.convert(tmp_path / "cut.parquet", tmp_path / "d")
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("memory", [1 << 16, 1 << 26])
@pytest.mark.parametrize("compressed", [False, True])
def test_scipys_archive(tmp_path, compressed, memory):
    X, y = rows(4000, 30, dtype=np.float32)
    sparse.save_npz(tmp_path / "d.npz", X, compressed=compressed)
    data = io.convert(tmp_path / "d.npz", tmp_path / "d", target=y, memory=memory)
    assert_array_equal(dense(data.X), X.toarray())
    assert_array_equal(data.y, y)
    assert data.dtype == np.float32
    with pytest.raises(ValueError, match="has no member 'y'"):
        io.convert(tmp_path / "d.npz", tmp_path / "e")
    assert io.convert(tmp_path / "d.npz", tmp_path / "e", target=None).y is None


@pytest.mark.parametrize("memory", [1 << 16, 1 << 26])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_numpys_archive(tmp_path, save, memory):
    X, y = rows(3000, 9, layout="dense")
    save(tmp_path / "d.npz", X=X, y=np.where(y > 0, "p", "q"), c=np.full(3000, 2.0))
    data = io.convert(tmp_path / "d.npz", tmp_path / "d", sample_weight="c", memory=memory)
    assert_array_equal(data.X, X)
    assert_array_equal(data.y, np.where(y > 0, "p", "q"))
    assert_array_equal(data.sample_weight, np.full(3000, 2.0))


def bad_npz():
    X, y = np.ones((3, 2)), np.arange(3)
    csr = {"data": np.ones(2), "indices": np.array([0, 1]), "indptr": np.array([0, 1, 1, 2]), "shape": np.array([3, 2])}
    yield "short y", {"X": X, "y": y[:2]}, "y has 2 entries, fewer than there are rows"
    yield "long y", {"X": X, "y": np.arange(4)}, "y has 4 entries for 3 rows"
    yield "square y", {"X": X, "y": X}, "y must be a vector"
    yield "no X", {"A": X, "B": X, "y": y}, "has no member 'X'"
    yield "vector", {"X": y, "y": y}, "must be a matrix of numbers"
    yield "fortran", {"X": np.asfortranarray(np.ones((3, 2))), "y": y}, "Fortran order"
    yield "index", {**csr, "indices": np.array([0, 2]), "y": y}, "row 2 has column index 2, outside 0 … 1"
    yield "negative", {**csr, "indices": np.array([-1, 0]), "y": y}, "row 0 has column index -1"
    yield "decreasing", {**csr, "indptr": np.array([0, 2, 1, 2]), "y": y}, "decreases at row 1"
    yield "beyond", {**csr, "indptr": np.array([0, 1, 1, 9]), "y": y}, "points beyond the 2 entries"
    yield "short", {**csr, "indptr": np.array([0, 1, 1, 1]), "y": y}, "ends with 1, but there are 2"
    yield "begin", {**csr, "indptr": np.array([1, 1, 1, 2]), "y": y}, "begins with 1"
    yield "lengths", {**csr, "data": np.ones(3), "y": y}, "do not fit"
    yield "shape", {**csr, "shape": np.array([3]), "y": y}, "two whole numbers"
    yield "nan", {**csr, "data": np.array([1, np.nan]), "y": y}, "row 2, column 1: NaN"
    yield "csc", {**csr, "format": np.array(b"csc"), "y": y}, "format 'csc'"


@pytest.mark.parametrize(("members", "message"), [pytest.param(m, t, id=k) for k, m, t in bad_npz()])
def test_bad_archives_are_refused(tmp_path, members, message):
    np.savez(tmp_path / "d.npz", **members)
    with pytest.raises(ValueError, match=message):
        io.convert(tmp_path / "d.npz", tmp_path / "d")
    assert contents(tmp_path) == ["d.npz"]


def test_objects_in_an_archive_are_never_loaded(tmp_path):
    np.savez(tmp_path / "d.npz", X=np.ones((2, 1)), y=np.array([{}, []], dtype=object))
    with pytest.raises(ValueError, match="Python objects"):
        io.convert(tmp_path / "d.npz", tmp_path / "d")


@quiet
@given(data=st.data())
def test_a_damaged_archive_is_refused_or_read_right(tmp_path, data):
    X, y = rows(40, 5)
    file = std_io.BytesIO()
    np.savez_compressed(file, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=y)
    whole = bytearray(file.getvalue())
    if data.draw(st.booleans()):
        whole = whole[: data.draw(st.integers(0, len(whole) - 1))]
    else:
        whole[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        found = io.convert(std_io.BytesIO(bytes(whole)), tmp_path / "d", format="npz", overwrite=True)
    except ValueError:
        return
    assert_array_equal(dense(found.X), X.toarray())
    assert_array_equal(found.y, y)


def test_members_are_streamed(tmp_path, monkeypatch):
    """No read asks for more than the bound."""
    X, y = rows(20_000, 30)
    np.savez(tmp_path / "d.npz", data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=y)
    taken = []
    take = npz_source.Member.take

    def spy(self, count):
        taken.append(count * self.dtype.itemsize)
        return take(self, count)

    monkeypatch.setattr(npz_source.Member, "take", spy)
    io.convert(tmp_path / "d.npz", tmp_path / "d", memory=1 << 16)
    assert sum(taken) > 20 * (1 << 16)
    assert max(taken) <= 1 << 16


# --- the folder ------------------------------------------------------------------------------------------------------


def test_what_is_there_is_not_replaced_unless_asked(tmp_path):
    X, y = rows()
    io.write_dataset(X, y, tmp_path / "d")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        io.write_dataset(X, y, tmp_path / "d")
    io.write_dataset(2 * X, y, tmp_path / "d", overwrite=True)
    assert_array_equal(dense(io.open_dataset(tmp_path / "d").X), 2 * X.toarray())
    with pytest.raises(ValueError, match="NaN"):
        io.write_dataset(np.full((2, 2), np.nan), [0, 1], tmp_path / "d", overwrite=True)
    assert_array_equal(dense(io.open_dataset(tmp_path / "d").X), 2 * X.toarray())
    assert contents(tmp_path) == ["d"]


def test_nothing_but_a_dataset_is_ever_replaced(tmp_path):
    X, y = rows()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    io.write_dataset(X, y, tmp_path / "mixed")
    (tmp_path / "mixed" / "letter.txt").write_text("dear")
    (tmp_path / "file").write_text("dear")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    for name in ("mine", "mixed", "file", "link"):
        with pytest.raises(FileExistsError, match="is not a dataset"):
            io.write_dataset(X, y, tmp_path / name, overwrite=True)
    assert contents(tmp_path) == ["file", "link", "mine", "mixed"]
    with pytest.raises(FileNotFoundError, match="no such folder to write"):
        io.write_dataset(X, y, tmp_path / "nowhere" / "d")


def test_a_failed_rename_puts_the_old_folder_back(tmp_path, monkeypatch):
    X, y = rows()
    io.write_dataset(X, y, tmp_path / "d")
    rename = type(tmp_path).rename

    def fail(self, target):
        if self.name.endswith(".new"):
            raise OSError("no")
        return rename(self, target)

    monkeypatch.setattr(type(tmp_path), "rename", fail)
    with pytest.raises(OSError, match="no"):
        io.write_dataset(2 * X, y, tmp_path / "d", overwrite=True)
    assert contents(tmp_path) == ["d"]
    assert_array_equal(dense(io.open_dataset(tmp_path / "d").X), X.toarray())


def edit(folder, **changes):
    fields = json.loads((folder / "dataset.json").read_text())
    for key, value in changes.items():
        *path, last = key.split("__")
        place = fields
        for step in path:
            place = place[step]
        if value is ...:
            del place[last]
        else:
            place[last] = value
    (folder / "dataset.json").write_text(json.dumps(fields))


MANGLED = [
    ({"format": "other"}, "field 'format'"),
    ({"version": 2}, "field 'version' is 2"),
    ({"rows": ...}, "field 'rows' is missing"),
    ({"rows": 61}, "field 'arrays.*shape'"),
    ({"rows": -1}, "field 'rows' must be a whole number"),
    ({"rows": True}, "field 'rows'"),
    ({"rows": 1e3}, "field 'rows'"),
    ({"rows": 10**30}, "field 'rows'"),
    ({"columns": 0}, "field 'columns'"),
    ({"entries": 1}, "field 'arrays"),
    ({"layout": "coo"}, "field 'layout'"),
    ({"layout": "dense"}, "field '"),
    ({"layout": []}, "field 'layout'"),
    ({"extra": 1}, "field 'extra' is not known"),
    ({"arrays": []}, "field 'arrays'"),
    ({"arrays__indices": ...}, "field 'arrays.indices' is missing"),
    ({"arrays__other": {}}, "field 'arrays.other'"),
    ({"arrays__values__dtype": "|O"}, "field 'arrays.values.dtype'"),
    ({"arrays__values__dtype": ["<f8"]}, "field 'arrays.values.dtype'"),
    ({"arrays__values__dtype": "<f4"}, "values.npy: holds <f8"),
    ({"arrays__values__shape": [1]}, "field 'arrays.values.shape'"),
    ({"arrays__y": 3}, "field 'arrays.y'"),
    ({"arrays__y__dtype": "<f8"}, "y.npy: holds <i8"),
    ({"arrays__y__dtype": "<i4"}, "field 'classes'"),
    ({"arrays__indptr__dtype": "<i8"}, "field 'arrays.indptr.dtype'"),
    ({"classes": ["a", "b"]}, "field 'classes'"),
    ({"classes": "ab"}, "field 'classes'"),
    ({"feature_names": ["a"]}, "field 'feature_names' has 1 names for 7"),
    ({"feature_names": ["a"] * 7}, "field 'feature_names' names something twice"),
    ({"feature_names": [1] * 7}, "field 'feature_names'"),
]


@pytest.mark.parametrize(("changes", "message"), MANGLED, ids=lambda v: str(v)[:40])
def test_a_mangled_description_is_refused_by_file_and_field(tmp_path, changes, message):
    io.write_dataset(*rows(), tmp_path / "d")
    edit(tmp_path / "d", **changes)
    with pytest.raises(ValueError, match=message) as caught:
        io.open_dataset(tmp_path / "d")
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b'{"rows": ' + b"9" * 5000 + b"}"])
def test_a_description_that_is_no_json_is_refused(tmp_path, text):
    io.write_dataset(*rows(), tmp_path / "d")
    (tmp_path / "d" / "dataset.json").write_bytes(text)
    with pytest.raises(ValueError, match=r"dataset\.json"):
        io.open_dataset(tmp_path / "d")


def test_missing_and_cut_files_are_refused(tmp_path):
    folder = tmp_path / "d"
    io.write_dataset(*rows(), folder, sample_weight=np.ones(60))
    for path in sorted(folder.glob("*.npy")):
        whole = path.read_bytes()
        for damaged in (whole[:-1], whole + b"\0", whole[:100], b"", b"x" * len(whole), whole.replace(b"<", b">", 1)):
            path.write_bytes(damaged)
            with pytest.raises(ValueError, match=path.name):
                io.open_dataset(folder)
        path.unlink()
        with pytest.raises(FileNotFoundError, match=path.name):
            io.open_dataset(folder)
        path.write_bytes(whole)
    (folder / "dataset.json").unlink()
    with pytest.raises(FileNotFoundError, match="not a dataset"):
        io.open_dataset(folder)
    with pytest.raises(FileNotFoundError, match="no such folder"):
        io.open_dataset(tmp_path / "other")


@quiet
@given(data=st.data())
def test_a_flipped_bit_never_crashes(tmp_path, data):
    """A damaged folder is refused on opening, on fitting or predicting, or is just other numbers."""
    folder = tmp_path / "d"
    io.write_dataset(*rows(20, 3), folder, overwrite=True)
    path = data.draw(st.sampled_from(sorted(folder.iterdir())))
    whole = bytearray(path.read_bytes())
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(bytes(whole))
    model = LinearSVC(max_iter=5, tol=1.0)
    with contextlib.suppress(ValueError):
        found = io.open_dataset(folder)
        assert len(model.fit(found).predict(found)) == 20
    fitted = LinearSVC(max_iter=5, tol=1.0).fit(*rows(20, 3))
    with contextlib.suppress(ValueError):
        assert len(fitted.predict(io.open_dataset(folder))) == 20


@pytest.mark.parametrize("name", ["<a4", "i4", "float32", "<i4, <i4", "<q", "<i3", "f4"])
def test_types_that_are_not_written_are_not_read(tmp_path, name):
    """Among them names that NumPy takes with a warning, or for several columns."""
    io.write_dataset(*rows(20, 3), tmp_path / "d")
    path = tmp_path / "d" / "y.npy"
    text = repr({"descr": name, "fortran_order": False, "shape": (20,)}).encode("ascii").ljust(117) + b"\n"
    path.write_bytes(b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text + bytes(80))
    with pytest.raises(ValueError, match=r"y\.npy: the \.npy header is damaged"):
        LinearSVC().fit(io.open_dataset(tmp_path / "d"))


def test_labels_out_of_range_are_refused(tmp_path):
    data = io.write_dataset([[1.0], [2.0]], ["a", "b"], tmp_path / "d")
    del data
    codes = np.load(tmp_path / "d" / "y.npy")
    codes[1] = 7
    np.save(tmp_path / "d" / "y.npy", codes)
    with pytest.raises(ValueError, match=r"y\.npy has 7 at row 1"):
        LinearSVC().fit(io.open_dataset(tmp_path / "d"))


def test_what_a_dataset_says_of_itself(tmp_path):
    data = io.write_dataset(rows()[0], None, tmp_path / "d")
    assert (
        repr(data)
        == f"Dataset(60 rows x 7 columns, csr float64, {data.nnz} entries, no targets, folder='{tmp_path}/d')"
    )
    assert len(data) == 60
    with pytest.raises(AttributeError):
        data.X = 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "xml"}, "format='xml' is none of"),
        ({"dtype": "int8"}, "dtype='int8'"),
        ({"memory": 5}, "memory=5"),
        ({"n_features": 0}, "n_features=0"),
        ({"n_features": 3}, "n_features=3 is for svmlight"),
        ({"delimiter": ";;"}, "delimiter=';;'"),
    ],
)
def test_parameters_are_checked_first(tmp_path, options, message):
    (tmp_path / "d.csv").write_text("a,y\n1,2\n")
    with pytest.raises(ValueError, match=message):
        io.convert(tmp_path / "d.csv", tmp_path / "d", **options)
    with pytest.raises(IsADirectoryError, match="open_dataset"):
        io.convert(tmp_path, tmp_path / "d")
    assert contents(tmp_path) == ["d.csv"]


def test_formats_are_known_by_content_and_name(tmp_path):
    for name, start, expected in [
        ("x.csv", b"PAR1....", "parquet"),
        ("x", b"PK\3\4....", "npz"),
        ("x.tsv.gz", b"\x1f\x8b", "csv"),
        ("a9a", b"1 2:3", "svmlight"),
    ]:
        (tmp_path / name).write_bytes(start)
        file = std_io.BytesIO(start)
        file.name = name
        assert convert.format_of(tmp_path / name) == convert.format_of(str(tmp_path / name)) == expected
        assert convert.format_of(file) == expected
        assert file.read() == start


# --- training --------------------------------------------------------------------------------------------------------

SOLVERS = [Pegasos, SGD, Norma, SDCA]


@pytest.mark.parametrize("layout", ["csr", "dense"])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_same_bits_as_in_memory_with_the_same_order(tmp_path, solver, layout):
    X, y = rows(700, 12, layout=layout, dtype=np.float32)
    data = io.write_dataset(X, y, tmp_path / "d")
    options = {"lam": 1e-2, "max_iter": 6, "random_state": 3}
    on_disk = LinearSVC(solver=solver(), **options).fit(data)
    in_memory = LinearSVC(solver=solver(sampling="chunked"), **options).fit(X, y)
    assert_array_equal(on_disk.coef_, in_memory.coef_)
    assert_array_equal(on_disk.intercept_, in_memory.intercept_)
    assert on_disk.certificate_.dual == in_memory.certificate_.dual
    # So few rows are one lot of chunks, shuffled as a whole.
    assert_array_equal(LinearSVC(solver=solver(), **options).fit(data.X, data.y).coef_, on_disk.coef_)


@pytest.mark.parametrize("solver", ["auto", "sdca", "pegasos", "interior_point", "cutting_plane"])
def test_certified_and_near_the_fit_in_memory(tmp_path, solver):
    X, y = rows(900, 5)
    data = io.write_dataset(X, y, tmp_path / "d")
    options = {"lam": 0.05, "tol": 1e-2, "solver": solver, "fit_intercept": False}
    a, b = LinearSVC(**options).fit(data).certificate_, LinearSVC(**options).fit(X, y).certificate_
    assert a.converged
    assert a.dual <= b.primal * (1 + 1e-14)  # the gap of some is rounding
    assert b.dual <= a.primal * (1 + 1e-14)


@pytest.mark.parametrize("solver", ["sdca", "pegasos"])
def test_same_bits_for_any_number_of_threads(tmp_path, solver):
    X, y = rows(600, 8)
    labels = np.array(["a", "b", "c"])[1 * (y > 0) + (X.toarray()[:, 1] > 0)]
    for name, target in (("two", y), ("three", labels)):
        data = io.write_dataset(X, target, tmp_path / name)
        fits = [LinearSVC(lam=0.05, tol=0.02, solver=solver, n_jobs=k).fit(data) for k in (1, 2)]
        assert_array_equal(fits[0].coef_, fits[1].coef_)
        assert_array_equal(fits[0].decision_function(data), fits[1].decision_function(data))


def test_weights_names_prediction_and_score(tmp_path):
    X, y = rows(300, 5, layout="dense")
    labels, weight = np.where(y > 0, "up", "down"), np.linspace(0.5, 2, 300)
    data = io.write_dataset(X, labels, tmp_path / "d", sample_weight=weight, feature_names=list("pqrst"))
    model = LinearSVC(tol=1e-6).fit(data)
    plain = LinearSVC(tol=1e-6).fit(X, labels, weight)
    assert model.feature_names_in_.tolist() == list("pqrst")
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-2, atol=1e-4)
    assert_array_equal(model.predict(data), plain.set_params().predict(X))
    assert model.score(data) == pytest.approx(plain.score(X, labels, weight))
    np.testing.assert_allclose(model.decision_function(data), X @ model.coef_[0] + model.intercept_[0], atol=1e-12)
    other = io.write_dataset(X, labels, tmp_path / "e", feature_names=list("pqrsz"))
    with pytest.raises(ValueError, match="column 4 of the dataset is 'z', but was 't'"):
        model.predict(other)
    with pytest.raises(ValueError, match="X has 2 features, but LinearSVC is expecting 5"):
        model.predict(io.write_dataset(X[:, :2], labels, tmp_path / "f"))
    with pytest.raises(ValueError, match="leave y out"):
        model.fit(data, labels)
    with pytest.raises(ValueError, match="leave sample_weight out"):
        model.fit(data, sample_weight=weight)


def test_a_dataset_without_targets_predicts_but_does_not_fit(tmp_path):
    X, y = rows(50, 3)
    bare = io.write_dataset(X, None, tmp_path / "d")
    model = LinearSVC().fit(X, y)
    assert_array_equal(model.predict(bare), model.predict(X))
    for call in (model.fit, model.score, LinearSVR().fit):
        with pytest.raises(ValueError, match="written without targets"):
            call(bare)


def test_regression_and_partial_fit(tmp_path):
    X, _ = rows(200, 4, layout="dense")
    data = io.write_dataset(X, X @ [1.0, 2, 3, 4], tmp_path / "d")
    assert LinearSVR(C=100).fit(data).score(data) > 0.99
    assert_array_equal(LinearSVR(lam=0.1).partial_fit(data).coef_.shape, (4,))
    labels = io.write_dataset(X, X[:, 0] > 0, tmp_path / "e")
    assert LinearSVC(lam=0.1).partial_fit(labels, classes=[0, 1]).score(labels) > 0.8


def test_prediction_goes_block_by_block(tmp_path, monkeypatch):
    X, y = rows(1000, 6)
    data = io.write_dataset(X, y, tmp_path / "d")
    model = LinearSVC().fit(data)
    whole = model.decision_function(data)
    blocks = list(data.blocks(entries=100))
    assert len(blocks) > 10
    assert_array_equal(np.vstack([b.toarray() for _, b in blocks]), X.toarray())
    monkeypatch.setattr(type(data), "blocks", lambda self: iter(blocks))
    assert_array_equal(model.decision_function(data), whole)


@pytest.mark.parametrize(
    ("name", "at", "value", "message"),
    [("indices", 5, 99, "column index 99"), ("values", 7, np.nan, "NaN"), ("indptr", 30, 10**6, "indptr")],
)
def test_wrong_numbers_are_found_where_they_are_used(tmp_path, name, at, value, message):
    X, y = rows(60, 7)
    fitted = LinearSVC().fit(X, y)
    io.write_dataset(X, y, tmp_path / "d")
    array = np.load(tmp_path / "d" / f"{name}.npy")
    array[at] = value
    np.save(tmp_path / "d" / f"{name}.npy", array)
    data = io.open_dataset(tmp_path / "d")
    for use in (LinearSVC().fit, fitted.predict, fitted.score):
        with pytest.raises(ValueError, match=message):
            use(data)


# --- the order -------------------------------------------------------------------------------------------------------


@quiet
@given(m=st.integers(1, 20_000), chunk=st.integers(1, 300), seed=st.integers(0, 2**63), epoch=st.integers(0, 9))
def test_a_chunked_epoch_visits_every_row_once_and_stays_close(m, chunk, seed, epoch):
    order = _core.epoch_order(m, "chunked", seed, epoch, chunk)
    assert_array_equal(np.sort(order), np.arange(m))
    chunks = order // chunk
    _, begin = np.unique(chunks, return_index=True)
    _, left = np.unique(chunks[::-1], return_index=True)
    change = np.zeros(m + 1, dtype=int)  # of the number of chunks that have begun and not ended
    np.add.at(change, begin, 1)
    np.add.at(change, m - left, -1)
    assert np.cumsum(change).max() <= 256
    assert_array_equal(order, _core.epoch_order(m, "chunked", seed, epoch, chunk))


def test_chunked_orders_differ_by_seed_and_epoch_and_are_pinned():
    orders = [_core.epoch_order(1000, "chunked", s, e, 10).tolist() for s, e in [(0, 0), (0, 1), (1, 0)]]
    assert orders[0] != orders[1] != orders[2] != orders[0]
    assert _core.epoch_order(8, "chunked", 0, 0, 4).tolist() == _core.epoch_order(8, "permutation", 0, 0).tolist()
    assert _core.epoch_order(1000, "chunked", 0, 0, 1)[:8].tolist() == [916, 964, 314, 755, 600, 569, 38, 536]


@pytest.mark.parametrize(("m", "chunk"), [(6000, 5), (2570, 10), (51_200, 10)])
def test_every_part_of_an_epoch_is_drawn_from_the_whole_file(m, chunk):
    """Each lot of 256 chunks takes at most one from each of 256 equal stretches of the file, and lots are of a size."""
    order = np.asarray(_core.epoch_order(m, "chunked", 1, 2, chunk))
    chunks = -(-m // chunk)
    lots = -(-chunks // 256)
    bounds = np.arange(257) * chunks // 256
    stretch = np.searchsorted(bounds, order // chunk, side="right") - 1
    # A lot ends where a stretch gives another chunk than before.
    seen, lot = {}, 0
    sizes = [0]
    for s, c in zip(stretch.tolist(), (order // chunk).tolist(), strict=True):
        if seen.setdefault(s, c) != c:
            seen, lot = {s: c}, lot + 1
            sizes.append(0)
        sizes[lot] += 1
    assert lot + 1 == lots
    assert min(sizes) > 0.7 * m / lots


@pytest.mark.parametrize(
    "solver", [Pegasos(sampling="chunked"), SDCA(sampling="chunked"), SDCA(sampling="chunked", blocks=4)]
)
def test_a_chunked_run_resumes_to_the_same_bits(solver):
    from conftest import problem

    from pegasos import losses

    X, y = rows(400, 6)
    p = problem(X, y.astype(float), losses.Hinge(), 1e-2)
    straight, halted = (solver.engine(p, Options("none", 5)) for _ in range(2))
    for _ in range(3):
        straight.lanes.solvers[0].advance(130)
        halted.lanes.solvers[0].advance(130)
    resumed = solver.engine(p, Options("none", 5))
    resumed.restore(halted.state())
    for engine in (straight, resumed):
        while engine.epochs < 4:
            engine.advance()
    assert_array_equal(straight.model()[0], resumed.model()[0])


# --- memory ----------------------------------------------------------------------------------------------------------

CHILD = """
    import resource, sys
    import numpy as np
    from pegasos import LinearSVC, io

    data = io.open_dataset(sys.argv[1])
    limit = data.nbytes // 4
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    try:
        np.ones(limit // 8)
    except MemoryError:
        print("limited")
    model = LinearSVC(lam=1e-2, tol=1e-2, solver=sys.argv[2]).fit(data)
    print(model.certificate_.converged, model.score(data) > 0.8)
"""


@pytest.mark.slow
@pytest.mark.unsanitized
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_DATA counts anonymous memory on Linux only")
@pytest.mark.parametrize("solver", ["auto", "pegasos"])
def test_a_fit_under_a_limit_of_a_quarter_of_the_data(tmp_path, solver):
    """The limit holds for all that is allocated, interpreter and libraries included."""
    rng = np.random.default_rng(0)
    m, n = 100_000, 3500  # 1.4 GB that the disk need not hold: most columns are zero, hence holes
    X = np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", dtype=np.float32, shape=(m, n))
    X[:, :4] = rng.standard_normal((m, 4))
    y = np.where(X[:, 0] > 0, 1, -1)
    del X
    folder = tmp_path / "d"
    io.write_dataset(np.zeros((2, n), dtype=np.float32), [1, -1], folder)
    os.replace(tmp_path / "X.npy", folder / "X.npy")
    np.save(folder / "y.npy", y)
    edit(folder, rows=m, entries=m * n, arrays__X__shape=[m, n], arrays__y__shape=[m])
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(CHILD), str(folder), solver]
    done = processes.run(command, capture_output=True, text=True, env=environment, check=False, timeout=900)
    assert done.stderr == ""
    assert done.stdout.split() == ["limited", "True", "True"]
