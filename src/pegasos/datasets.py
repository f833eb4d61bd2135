"""Data to try things on: a text-like generator, and the named real sets of the papers.

The generator needs nothing but NumPy. The real sets are read from the folder named by the environment variable
``PEGASOS_DATA`` (svmlight text compressed with xz; MNIST as npz); they are not part of the package.
"""

from __future__ import annotations

import io
import lzma
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.optimize import brentq
from scipy.special import ndtri

__all__ = ["available", "demo", "load", "make_text"]

Split = Literal["train", "test", "all"]

_CHUNK = 16_384  # documents generated at a time: part of what random_state means, so a constant
_POSITIVE_SHARE = 0.47  # share of positive labels before noise, as in CCAT
_LENGTH_SIGMA = 0.69  # spread of the logarithm of the document length (measured on RCV1)
_LEAN = 0.75  # how strongly a document leans towards the words of its side


def make_text(
    n_samples: int = 781_265,
    n_features: int = 47_236,
    nnz_per_row: float = 76,
    *,
    noise: float = 0.03,
    random_state: int = 0,
    dtype: npt.DTypeLike = np.float32,
) -> tuple[sp.csr_matrix, npt.NDArray[np.int64]]:
    r"""Draw text-like sparse rows with labels from a sparse hidden linear model.

    Words follow the Zipf–Mandelbrot law :math:`p_j \propto (\mathrm{rank}_j + q)^{-1.8}`, document lengths a log-normal
    one. A fifth of the words carry a hidden weight :math:`g_j \sim N(0, 1)`; each document leans to one side,
    :math:`\theta_i = \pm 0.75`, and draws its words with probability :math:`\propto p_j e^{\theta_i g_j}`. Values are
    :math:`(1 + \ln \mathrm{tf}) \ln(1/\mathrm{df})`, rows have unit Euclidean norm. The label is the sign of
    :math:`\langle g, x_i \rangle - c`, with ``c`` such that 47 % are positive, and a share ``noise`` of the labels is
    flipped. The defaults have the size and, at ``lam=1e-4``, about the error (6 %) of the Pegasos paper's CCAT.

    Parameters
    ----------
    n_samples : int
        Number of rows, the documents.
    n_features : int
        Number of columns, the words.
    nnz_per_row : float
        Average number of distinct words in a document.
    noise : float
        Share of labels flipped at random.
    random_state : int
        Seed. The same arguments give the same bits.
    dtype : numpy dtype
        Type of the values.

    Returns
    -------
    X : scipy.sparse.csr_matrix of shape (n_samples, n_features)
        Canonical: ``int32`` column indices, sorted and unique within each row.
    y : ndarray of shape (n_samples,)
        Labels, -1 or 1.

    Examples
    --------
    >>> from pegasos.datasets import make_text
    >>> X, y = make_text(1000, 5000, nnz_per_row=30)
    >>> X.shape, X.indices.dtype, sorted(set(y.tolist()))
    ((1000, 5000), dtype('int32'), [-1, 1])
    """
    if n_samples < 1 or n_features < 1:
        raise ValueError(f"n_samples and n_features must be positive, got {n_samples} and {n_features}")
    if not 1 <= nnz_per_row <= n_features / 2:
        raise ValueError(f"nnz_per_row must lie between 1 and n_features / 2 = {n_features / 2:g}, got {nnz_per_row}")
    if not 0 <= noise <= 1:
        raise ValueError(f"noise is a share of the labels, between 0 and 1, got {noise}")

    model_seed, label_seed, *chunk_seeds = np.random.SeedSequence(random_state).spawn(2 + -(-n_samples // _CHUNK))
    rng = np.random.default_rng(model_seed)
    popularity = (np.arange(n_features) + min(250.0, 1 + n_features / 20)) ** -1.8
    popularity = rng.permutation(popularity / popularity.sum())
    hidden = np.where(rng.random(n_features) < 0.2, rng.standard_normal(n_features), 0.0)
    tilted = [popularity * np.exp(lean * hidden) for lean in (-_LEAN, _LEAN)]
    sides = [np.asarray(side / side.sum(), dtype=np.float64) for side in tilted]
    quantiles = _length_quantiles(sides, nnz_per_row)
    idf = -np.log(_document_frequency(sides, quantiles))
    cumulative = [np.cumsum(side) for side in sides]

    parts = []
    scores = []
    for start, seed in zip(range(0, n_samples, _CHUNK), chunk_seeds, strict=True):
        rows = min(_CHUNK, n_samples - start)
        chunk = _documents(np.random.default_rng(seed), rows, cumulative, quantiles, idf, np.dtype(dtype))
        parts.append(chunk)
        scores.append(chunk @ hidden)
    X = _stack(parts, n_features)
    rng = np.random.default_rng(label_seed)
    flipped = rng.random(n_samples) < noise
    score = np.concatenate(scores) + 1e-9 * rng.random(n_samples)  # documents without a word that matters: a coin
    y = np.where(score > np.quantile(score, 1 - _POSITIVE_SHARE), 1, -1).astype(np.int64)
    y[flipped] *= -1
    return X, y


def _document_frequency(
    sides: list[npt.NDArray[np.float64]], lengths: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the expected share of documents that hold each word; a word of probability p misses exp(-p length)."""
    absent = np.mean([np.exp(-length * side) for length in lengths[4::8] for side in sides], axis=0)
    return np.asarray(1 - absent, dtype=np.float64)


def _length_quantiles(sides: list[npt.NDArray[np.float64]], nnz_per_row: float) -> npt.NDArray[np.float64]:
    """Return 256 quantiles of the document length whose mean count of distinct words is ``nnz_per_row``."""
    shape = np.exp(_LENGTH_SIGMA * ndtri((np.arange(256) + 0.5) / 256))

    def excess(log_scale: float) -> float:
        return float(_document_frequency(sides, np.exp(log_scale) * shape).sum() - nnz_per_row)

    log_scale = float(brentq(excess, np.log(nnz_per_row) - 2, np.log(nnz_per_row) + 12, xtol=1e-6))
    return np.asarray(shape * np.exp(log_scale), dtype=np.float64)


def _documents(
    rng: np.random.Generator,
    rows: int,
    cumulative: list[npt.NDArray[np.float64]],
    quantiles: npt.NDArray[np.float64],
    idf: npt.NDArray[np.float64],
    dtype: np.dtype[Any],
) -> sp.csr_matrix:
    """Draw ``rows`` documents, each of a random side, tf-idf weighted and normalised."""
    n_features = len(idf)
    length = np.maximum(1, rng.poisson(rng.choice(quantiles, rows)))
    side = rng.integers(0, 2, rows)
    row = np.repeat(np.arange(rows), length)
    word = np.empty(len(row), dtype=np.int64)
    for s, distribution in enumerate(cumulative):
        mine = side[row] == s
        word[mine] = np.searchsorted(distribution, rng.random(int(mine.sum())) * distribution[-1], side="right")
    # A document is a set of (row, word) keys: sorting them makes the columns sorted and the repeats adjacent.
    key = np.sort(row * n_features + np.minimum(word, n_features - 1))
    first = np.flatnonzero(np.diff(key, prepend=-1))
    count = np.diff(first, append=len(key))
    row, word = np.divmod(key[first], n_features)
    value = (1 + np.log(count)) * idf[word]
    value /= np.sqrt(np.bincount(row, weights=value**2, minlength=rows))[row]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=rows))])
    return sp.csr_matrix((value.astype(dtype), word.astype(np.int32), indptr), shape=(rows, n_features))


def _stack(parts: list[sp.csr_matrix], n_features: int) -> sp.csr_matrix:
    """Stack canonical CSR chunks into one canonical CSR matrix with ``int32`` column indices."""
    lengths = np.concatenate([np.diff(part.indptr) for part in parts])
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    index = np.int32 if indptr[-1] <= np.iinfo(np.int32).max else np.int64
    data = np.concatenate([part.data for part in parts])
    indices = np.concatenate([part.indices for part in parts]).astype(index, copy=False)
    X = sp.csr_matrix((data, indices, indptr.astype(index)), shape=(len(lengths), n_features))
    X.has_canonical_format = True
    return X


def demo() -> tuple[sp.csr_matrix, sp.csr_matrix, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Make the demonstration data: 60,000 training and 20,000 test documents of 20,000 words, in about two seconds.

    Returns
    -------
    X_train, X_test, y_train, y_test
        As scikit-learn's ``train_test_split`` returns them.

    Examples
    --------
    >>> from pegasos.datasets import demo
    >>> X_train, X_test, y_train, y_test = demo()
    >>> X_train.shape, X_test.shape
    ((60000, 20000), (20000, 20000))
    """
    X, y = make_text(80_000, 20_000, nnz_per_row=60)
    return X[:60_000], X[60_000:], y[:60_000], y[60_000:]


@dataclass(frozen=True)
class _Source:
    """One real set: ``<stem>.train.<suffix>`` and ``.test``, or one file ``.all`` of which ``n_train`` rows train."""

    stem: str
    n_features: int
    n_train: int | None = None
    suffix: str = "svm.xz"
    positive: int | None = None
    regression: bool = False
    prepare: Callable[[Any, Any], Any] | None = None

    def file(self, part: str) -> str:
        return f"{self.stem}.{part}.{self.suffix}"

    def files(self) -> tuple[str, ...]:
        return tuple(self.file(part) for part in (("train", "test") if self.n_train is None else ("all",)))


def _unit_columns(X: Any, reference: Any) -> npt.NDArray[np.float32]:
    """Scale the ten quantities of covtype to [0, 1]; the other columns are 0/1 already."""
    dense: npt.NDArray[np.float32] = X.toarray()
    quantities = reference[:, :10].toarray()
    low, high = quantities.min(axis=0), quantities.max(axis=0)
    dense[:, :10] = (dense[:, :10] - low) / (high - low)
    return dense


def _tf_idf(X: Any, reference: Any) -> Any:
    """Weigh word counts by the inverse document frequency in the training rows, then normalise the rows."""
    from sklearn.feature_extraction.text import TfidfTransformer  # slow to import, and used by one dataset

    return TfidfTransformer().fit(reference).transform(X)


_SOURCES: dict[str, _Source] = {
    "20news": _Source("20news-bydate", 53_195, prepare=_tf_idf),
    "a9a": _Source("a9a", 123),
    "cadata": _Source("cadata", 8, n_train=16_512, regression=True),
    "cov1": _Source("covtype", 54, n_train=522_911, positive=1, prepare=_unit_columns),
    "covtype": _Source("covtype", 54, n_train=522_911, prepare=_unit_columns),
    "ijcnn1": _Source("ijcnn1", 22),
    "letter": _Source("letter", 16),
    "mnist": _Source("mnist", 784, suffix="npz"),
    "mnist8": _Source("mnist", 784, suffix="npz", positive=8),
    "rcv1": _Source("rcv1sub-ccat", 47_236),
    "reuters": _Source("reuters-money-fx", 8_315),
    "sector": _Source("sector", 55_197),
    "usps": _Source("usps", 256),
    "usps8": _Source("usps", 256, positive=8),
    "w7a": _Source("w7a", 300),
}


def load(name: str, split: Split = "train") -> tuple[Any, npt.NDArray[Any]]:
    """Load a real set from the folder named by the environment variable ``PEGASOS_DATA``.

    ========  ========  ======  =======  ====================================================================
    name      train     test    columns  task
    ========  ========  ======  =======  ====================================================================
    20news    11,314    7,532   53,195   20 classes; tf-idf with the training rows' idf, unit rows
    a9a       32,561    16,281  123      two classes (Adult)
    cadata    16,512    4,128   8        regression, unscaled
    cov1      522,911   58,101  54       cover type 1 against the rest (Pegasos paper); dense
    covtype   522,911   58,101  54       7 classes; dense, the ten quantities scaled to [0, 1]
    ijcnn1    49,990    91,701  22       two classes
    letter    15,000    5,000   16       26 classes
    mnist     60,000    10,000  784      10 classes; dense, pixels divided by 255
    mnist8    60,000    10,000  784      digit 8 against the rest (Pegasos paper); dense
    rcv1      14,401    13,212  47,236   CCAT, a subset of the Pegasos paper's set
    reuters   7,770     3,299   8,315    money-fx against the rest (Pegasos paper)
    sector    6,412     3,207   55,197   105 classes
    usps      7,291     2,007   256      10 classes
    usps8     7,291     2,007   256      digit 8 against the rest (Pegasos paper)
    w7a       24,692    25,057  300      two classes
    ========  ========  ======  =======  ====================================================================

    Sets without an official split (cadata, cov1, covtype) are cut after a fixed permutation of the rows. Where the
    environment variable ``PEGASOS_CACHE`` names a folder, parsed files are kept there as npz for the next time.

    Parameters
    ----------
    name : str
        One of the names above.
    split : {"train", "test", "all"}
        Which rows; "all" is the training rows followed by the test rows.

    Returns
    -------
    X : scipy.sparse.csr_matrix or ndarray, float32
        CSR with ``int32`` indices, or a C-ordered array for the sets marked dense.
    y : ndarray
        Labels as ``int64`` (-1 and 1 for two classes), targets as ``float64`` for regression.

    Raises
    ------
    FileNotFoundError
        When the files are not there.

    Examples
    --------
    >>> from pegasos.datasets import available, load
    >>> if "a9a" in available():
    ...     X, y = load("a9a", "test")
    ...     assert X.shape == (16_281, 123)
    """
    if name not in _SOURCES:
        raise ValueError(f"unknown data set {name!r}; known: {', '.join(_SOURCES)}")
    if split not in ("train", "test", "all"):
        raise ValueError(f"split must be 'train', 'test' or 'all', got {split!r}")
    source = _SOURCES[name]
    wanted = ("train", "test") if split == "all" else (split,)
    if source.n_train is None:
        needed = wanted if source.prepare is None else ("train", *wanted)
        parts = {part: _read(name, source, part) for part in dict.fromkeys(needed)}
        X, y = _concatenate([parts[part] for part in wanted])
        if source.prepare is not None:
            X = source.prepare(X, parts["train"][0])
    else:
        X, y = _read(name, source, "all")
        if source.prepare is not None:
            X = source.prepare(X, X)
        order = np.random.default_rng(0).permutation(len(y))
        cut = {"train": slice(source.n_train), "test": slice(source.n_train, None), "all": slice(None)}[split]
        X, y = X[order[cut]], y[order[cut]]
    if source.positive is not None:
        y = np.where(y == source.positive, 1, -1)
    return X, y.astype(np.float64 if source.regression else np.int64)


def available() -> tuple[str, ...]:
    """Name the real sets whose files are in the folder ``PEGASOS_DATA``; none where the variable is not set.

    Examples
    --------
    >>> from pegasos.datasets import available
    >>> names = available()
    >>> set(names) <= {"20news", "a9a", "cadata", "cov1", "covtype", "ijcnn1", "letter", "mnist", "mnist8", "rcv1",
    ...                "reuters", "sector", "usps", "usps8", "w7a"}
    True
    """
    folder = os.environ.get("PEGASOS_DATA")
    if not folder:
        return ()
    return tuple(n for n, source in _SOURCES.items() if all((Path(folder) / f).is_file() for f in source.files()))


def _read(name: str, source: _Source, part: str) -> tuple[Any, npt.NDArray[Any]]:
    """Read one file as it is, through the cache if there is one."""
    folder = os.environ.get("PEGASOS_DATA")
    path = Path(folder or "") / source.file(part)
    if not folder or not path.is_file():
        where = f"PEGASOS_DATA={folder}" if folder else "the environment variable PEGASOS_DATA, which is not set"
        raise FileNotFoundError(
            f"data set {name!r} needs the file {path.name} in the folder named by {where}. "
            f"Sets found: {', '.join(available()) or 'none'}. pegasos.datasets.make_text needs no files."
        )
    if source.suffix == "npz":
        with np.load(path) as file:
            return file["X"].astype(np.float32) / np.float32(255), file["y"]
    cache = os.environ.get("PEGASOS_CACHE")
    if not cache:
        return _parse(path, source.n_features)
    cached = Path(cache) / f"{path.name.removesuffix('.svm.xz')}.npz"
    if not cached.is_file():
        X, y = _parse(path, source.n_features)
        cached.parent.mkdir(parents=True, exist_ok=True)
        fresh = cached.with_suffix(f".{os.getpid()}.npz")  # written aside and moved: a reader never sees half a file
        np.savez(fresh, data=X.data, indices=X.indices, indptr=X.indptr, y=y)
        fresh.replace(cached)
    with np.load(cached) as file:
        shape = (len(file["y"]), source.n_features)
        return sp.csr_matrix((file["data"], file["indices"], file["indptr"]), shape=shape), file["y"]


def _parse(path: Path, n_features: int) -> tuple[sp.csr_matrix, npt.NDArray[np.float64]]:
    """Parse an xz-compressed svmlight file into canonical CSR with ``int32`` indices."""
    from sklearn.datasets import load_svmlight_file  # slow to import

    with lzma.open(path) as file:
        text = io.BytesIO(file.read())
    X, y = load_svmlight_file(text, n_features=n_features, dtype=np.float32, zero_based=False)
    arrays = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
    return sp.csr_matrix(arrays, shape=X.shape), y


def _concatenate(parts: list[tuple[Any, npt.NDArray[Any]]]) -> tuple[Any, npt.NDArray[Any]]:
    """Join row blocks, dense or CSR, without a copy when there is only one."""
    if len(parts) == 1:
        return parts[0]
    blocks = [X for X, _ in parts]
    X = _stack(blocks, blocks[0].shape[1]) if sp.issparse(blocks[0]) else np.concatenate(blocks)
    return X, np.concatenate([y for _, y in parts])
