"""Rows taken out of a matrix that nobody has looked at."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from pegasos.io import open_dataset, write_dataset
from pegasos.rows.taken import taken

ROWS = np.array([3, 0, 3, 11, 7])


def matrix():
    A = sparse.random(12, 9, 0.4, random_state=np.random.default_rng(0)).toarray().astype(np.float32)
    A[7] = 0  # a row without entries
    return sparse.csr_matrix(A)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("rows", [ROWS, ROWS[:1], np.arange(12)])
def test_they_are_what_scipy_takes(index, rows):
    X = matrix()
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    found = taken(X, rows)
    assert found.dtype == X.dtype
    assert_array_equal(found.toarray(), X.toarray()[rows])
    assert_array_equal(taken(X.toarray(), rows), X.toarray()[rows])
    assert not np.shares_memory(found.data, X.data)


def test_indices_of_two_types():
    X = matrix()
    X.indptr = X.indptr.astype(np.int64)
    assert_array_equal(taken(X, ROWS).toarray(), X.toarray()[ROWS])


def test_rows_on_disk(tmp_path):
    for X in (matrix(), matrix().toarray()):
        write_dataset(X, np.arange(12.0), tmp_path / "data", overwrite=True)
        found = taken(open_dataset(tmp_path / "data").X, ROWS)
        assert_array_equal(found.toarray() if sparse.issparse(found) else found, matrix().toarray()[ROWS])


@pytest.mark.parametrize("wrong", [-1, 10**6, 2**31 - 1])
@pytest.mark.parametrize("place", [3, 4])
def test_pointers_are_looked_at_before_they_are_followed(wrong, place):
    X = matrix()
    X.indptr[place] = wrong
    with pytest.raises(ValueError, match="X is not a valid CSR matrix: indptr is wrong at row 3"):
        taken(X, ROWS)
    assert taken(X, ROWS[[1, 3, 4]]).shape == (3, 9)
    short = matrix()
    short.indices = short.indices[:2]
    with pytest.raises(ValueError, match="indptr is wrong at row 3"):
        taken(short, ROWS)


def test_a_file_that_is_cut_short_is_an_error(tmp_path):
    X = sparse.csr_matrix(np.ones((40_000, 9), dtype=np.float32))
    for rows in (X, X.toarray()):
        folder = write_dataset(rows, np.arange(40_000.0), tmp_path / "data", overwrite=True).folder
        data = open_dataset(folder)
        for path in folder.glob("*.npy"):
            if path.stat().st_size > 500_000:
                with path.open("r+b") as file:
                    file.truncate(4096)
        with pytest.raises(ValueError, match="cut short while it was read"):
            taken(data.X, np.array([39_000]))
