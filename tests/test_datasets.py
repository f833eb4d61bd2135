"""The generator makes what it says; the real sets load with the sizes their table states."""

from __future__ import annotations

import functools
import lzma

import numpy as np
import pytest
import scipy.sparse as sp

from pegasos import datasets

# name: rows train, rows test, columns, non-zeros train (None: dense), classes
SIZES = {
    "20news": (11_314, 7_532, 53_195, 1_563_144, 20),
    "a9a": (32_561, 16_281, 123, 451_592, 2),
    "cov1": (522_911, 58_101, 54, None, 2),
    "ijcnn1": (49_990, 91_701, 22, 649_869, 2),
    "letter": (15_000, 5_000, 16, None, 26),
    "mnist8": (60_000, 10_000, 784, None, 2),
    "rcv1": (14_401, 13_212, 47_236, 1_119_728, 2),
    "reuters": (7_770, 3_299, 8_315, 339_837, 2),
    "sector": (6_412, 3_207, 55_197, 1_045_412, 105),
    "usps": (7_291, 2_007, 256, 1_866_151, 10),
    "w7a": (24_692, 25_057, 300, 288_148, 2),
}
QUICK = ("a9a", "letter", "rcv1", "sector", "w7a")


def need(name: str) -> None:
    if name not in datasets.available():
        pytest.skip(f"real set {name} not found: the environment variable PEGASOS_DATA names no folder with its files")


@pytest.fixture
def parse_once(monkeypatch):
    """Parse each file once in a test that loads several splits."""
    monkeypatch.setattr(datasets, "_parse", functools.cache(datasets._parse))


@pytest.fixture(scope="module")
def text():
    return datasets.make_text(20_000, 10_000, nnz_per_row=40, random_state=3)


def test_text_is_canonical_csr(text):
    X, y = text
    assert X.shape == (20_000, 10_000)
    assert y.shape == (20_000,)
    assert X.dtype == np.float32
    assert X.indices.dtype == np.int32
    assert X.indptr.dtype == np.int32
    inside = np.ones(X.nnz, dtype=bool)
    inside[X.indptr[:-1]] = False  # the first entry of a row has no neighbour on its left
    assert (np.diff(X.indices, prepend=0)[inside] > 0).all(), "columns sorted and unique in each row"
    assert np.diff(X.indptr).min() >= 1
    assert X.indices.min() >= 0
    assert X.indices.max() < 10_000


def test_text_looks_like_text(text):
    X, y = text
    assert (X.data > 0).all()
    np.testing.assert_allclose(X.multiply(X).sum(axis=1), 1, rtol=1e-5)
    lengths = np.diff(X.indptr)
    assert abs(lengths.mean() / 40 - 1) < 0.03
    assert 0.5 < np.log(lengths).std() < 0.8
    share = np.sort(np.bincount(X.indices, minlength=10_000))[::-1] / len(y)
    assert share[0] > 20 * share[1_000] > 100 * share[9_000]
    assert abs((y == 1).mean() - 0.47) < 0.02
    assert set(np.unique(y)) == {-1, 1}


def test_text_is_learnable_but_noisy(text):
    from sklearn.linear_model import SGDClassifier

    X, y = text
    model = SGDClassifier(alpha=1e-4, fit_intercept=False, max_iter=5, tol=None, random_state=0)
    model.fit(X[:15_000], y[:15_000])
    assert 0.03 < 1 - model.score(X[15_000:], y[15_000:]) < 0.2


def test_text_same_seed_same_bits():
    a, ya = datasets.make_text(17_000, 500, nnz_per_row=5, random_state=7)  # two chunks
    b, yb = datasets.make_text(17_000, 500, nnz_per_row=5, random_state=7)
    c, yc = datasets.make_text(17_000, 500, nnz_per_row=5, random_state=8)
    assert (a.data == b.data).all()
    assert (a.indices == b.indices).all()
    assert (a.indptr == b.indptr).all()
    assert (ya == yb).all()
    assert a.nnz != c.nnz or (a.indices != c.indices).any()
    assert (ya != yc).any()


def test_text_noise_flips_that_share():
    clean = datasets.make_text(5_000, 500, nnz_per_row=5, noise=0)[1]
    noisy = datasets.make_text(5_000, 500, nnz_per_row=5, noise=0.2)[1]
    assert abs((clean != noisy).mean() - 0.2) < 0.03
    assert abs((clean == 1).mean() - 0.47) < 0.01


def test_text_float64_is_the_same_data():
    single = datasets.make_text(300, 400, nnz_per_row=8)[0]
    double = datasets.make_text(300, 400, nnz_per_row=8, dtype=np.float64)[0]
    assert double.dtype == np.float64
    assert (single.indices == double.indices).all()
    np.testing.assert_allclose(single.data, double.data, rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"n_samples": 0}, "n_samples"),
        ({"nnz_per_row": 0}, "nnz_per_row"),
        ({"n_features": 10, "nnz_per_row": 9}, "nnz_per_row"),
        ({"noise": 1.5}, "noise"),
    ],
)
def test_text_refuses(arguments, word):
    with pytest.raises(ValueError, match=word):
        datasets.make_text(**{"n_samples": 10, "n_features": 100, "nnz_per_row": 5, **arguments})


def test_demo():
    X_train, X_test, y_train, y_test = datasets.demo()
    assert X_train.shape == (60_000, 20_000)
    assert X_test.shape == (20_000, 20_000)
    assert len(y_train) == 60_000
    assert len(y_test) == 20_000
    assert X_train.dtype == np.float32
    assert X_train.indices.dtype == np.int32


def test_load_without_the_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("PEGASOS_DATA", raising=False)
    assert datasets.available() == ()
    with pytest.raises(FileNotFoundError, match=r"a9a\.train\.svm\.xz.*PEGASOS_DATA, which is not set.*make_text"):
        datasets.load("a9a")
    monkeypatch.setenv("PEGASOS_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"covtype\.all\.svm\.xz"):
        datasets.load("cov1")


def test_load_refuses_unknown_names():
    with pytest.raises(ValueError, match="known: 20news"):
        datasets.load("iris")
    with pytest.raises(ValueError, match="split"):
        datasets.load("a9a", "valid")


def write(folder, name, text):
    with lzma.open(folder / name, "wt") as file:
        file.write(text)


def test_load_small_files_through_the_cache(monkeypatch, tmp_path):
    data, cache = tmp_path / "data", tmp_path / "cache"
    data.mkdir()
    write(data, "w7a.train.svm.xz", "+1 1:0.5 300:2\n-1 7:1\n+1\n")
    write(data, "w7a.test.svm.xz", "-1 2:1\n")  # never uses the last column
    monkeypatch.setenv("PEGASOS_DATA", str(data))
    monkeypatch.delenv("PEGASOS_CACHE", raising=False)
    assert datasets.available() == ("w7a",)
    plain, y = datasets.load("w7a", "all")
    assert list(y) == [1, -1, 1, -1]
    assert y.dtype == np.int64
    assert plain.shape == (4, 300)
    assert plain[0, 299] == 2
    assert plain[3, 1] == 1
    assert datasets.load("w7a", "test")[0].shape == (1, 300)

    monkeypatch.setenv("PEGASOS_CACHE", str(cache))
    for _ in ("written", "read"):
        X, yc = datasets.load("w7a", "all")
        assert (plain != X).nnz == 0
        assert (yc == y).all()
        assert X.indices.dtype == np.int32
        assert X.dtype == np.float32
        assert sorted(f.name for f in cache.iterdir()) == ["w7a.test.npz", "w7a.train.npz"]


@pytest.mark.parametrize("name", QUICK)
def test_real_set(name):
    need(name)
    m, _, n, nnz, classes = SIZES[name]
    X, y = datasets.load(name)
    assert X.shape == (m, n)
    assert y.shape == (m,)
    assert len(np.unique(y)) == classes
    assert X.dtype == np.float32
    assert y.dtype == np.int64
    assert sp.issparse(X)
    assert X.indices.dtype == np.int32
    assert X.has_sorted_indices
    if nnz is not None:
        assert X.nnz == nnz


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SIZES if name not in QUICK])
def test_real_set_slow(name):
    need(name)
    m, held, n, nnz, classes = SIZES[name]
    X, y = datasets.load(name)
    Xt, yt = datasets.load(name, "test")
    assert X.shape == (m, n)
    assert y.shape == (m,)
    assert Xt.shape == (held, n)
    assert yt.shape == (held,)
    assert len(np.unique(y)) == classes
    assert X.dtype == np.float32
    assert Xt.dtype == np.float32
    if nnz is not None:
        assert X.nnz == nnz


def test_tf_idf_uses_the_training_idf(parse_once):
    need("20news")
    X, _ = datasets.load("20news", "test")
    np.testing.assert_allclose(X.multiply(X).sum(axis=1), 1, rtol=1e-5)
    both, _ = datasets.load("20news", "all")
    assert abs(both[11_314:] - X).max() == 0


@pytest.mark.slow
def test_cov1_is_scaled_dense_and_split_alike(parse_once):
    need("cov1")
    X, y = datasets.load("cov1", "all")
    Xt, yt = datasets.load("cov1", "test")
    assert isinstance(X, np.ndarray)
    assert X.flags.c_contiguous
    assert X.dtype == np.float32
    assert X.min() == 0
    assert X.max() == 1
    assert (X[522_911:] == Xt).all()
    assert (y[522_911:] == yt).all()
    assert abs((y == 1).mean() - 211_840 / 581_012) < 1e-9


def test_cadata_is_regression():
    need("cadata")
    X, y = datasets.load("cadata", "test")
    assert X.shape == (4_128, 8)
    assert y.dtype == np.float64
    assert y.max() == 500_001
