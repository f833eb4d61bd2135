"""Ranking the documents of a query: every pair in the wrong order costs, and decoding is sorting.

A row is a query: a matrix of documents and their relevances. A labelling says of every pair of documents of different
relevance which one comes first, Δ is the share of pairs in the wrong order, and φ is the mean over the pairs of half
the difference of the two documents, better minus worse as the labelling has it. Swapping a pair (i, j) then adds
1 − (s_i − s_j), s = Xw, to what is maximised: the pairs with s_i − s_j < 1 are swapped. There are O(n²) of them, but ψ
needs only how often each document is in one, and sorted scores tell that in O(n log n) for each level of relevance
(Joachims 2006).

The data are read from svmlight text with ``qid``, as ranking data are mostly stored.

    python examples/structured_ranking.py
"""

from __future__ import annotations

import io

import numpy as np
from scipy import sparse
from sklearn.model_selection import GridSearchCV

from pegasos import StructuredSVC
from pegasos.io import read_svmlight, write_svmlight


class Ranking:
    """X: a matrix of documents (n_q × features, dense or CSR) for each query; y: an array of relevances for each."""

    def bind(self, X, y):
        return BoundRanking(X, y)

    def predict(self, w, X):
        """The documents of each query, best first."""
        return [np.argsort(-(documents @ w), kind="stable") for documents in X]

    def loss(self, y, y_hat):
        """The share of the pairs of each query that are in the wrong order."""
        return np.array([wrong_pairs(relevance, order) for relevance, order in zip(y, y_hat, strict=True)])


def wrong_pairs(relevance, order) -> float:
    place = np.argsort(order).astype(float)
    _, swapped, pairs = swapped_pairs(-place, relevance, margin=0.0)
    return swapped / pairs if pairs else 0.0


def swapped_pairs(score, relevance, margin):
    """Of all pairs with relevance_i > relevance_j, those with score_i − score_j < margin.

    Returns for each document in how many of them it is the better one, minus in how many the worse one; the number of
    such pairs, and of all pairs.
    """
    count, swapped, pairs = np.zeros(len(score)), 0, 0
    for level in np.unique(relevance)[1:]:
        high, low = np.flatnonzero(relevance == level), np.flatnonzero(relevance < level)
        lowered = score[high] - margin  # compared as it is in both counts, so that rounding does not tell them apart
        of_high = len(low) - np.searchsorted(np.sort(score[low]), lowered, side="right")
        count[high] += of_high
        count[low] -= np.searchsorted(np.sort(lowered), score[low], side="left")
        swapped += int(of_high.sum())
        pairs += len(high) * len(low)
    return count, swapped, pairs


class BoundRanking:
    """The decoder of some queries. All documents are in one matrix: few calls are faster than many."""

    def __init__(self, X, y):
        for query, (documents, relevance) in enumerate(zip(X, y, strict=True)):
            if documents.shape[0] != len(relevance):
                raise ValueError(f"query {query} has {documents.shape[0]} documents and {len(relevance)} relevances")
        self.X, self.y = sparse.vstack([sparse.csr_array(x) for x in X], format="csr"), [np.asarray(r) for r in y]
        self.begin = np.concatenate([[0], np.cumsum([len(r) for r in y])])
        self.n_rows, self.size = len(self.y), self.X.shape[1]

    def decode(self, w, rows):
        documents = [np.arange(self.begin[q], self.begin[q + 1]) for q in rows]
        scores = np.split(self.X[np.concatenate(documents)] @ w, np.cumsum([len(d) for d in documents])[:-1])
        counts, loss = [], np.zeros(len(rows))
        for k, (query, score) in enumerate(zip(rows, scores, strict=True)):
            count, swapped, pairs = swapped_pairs(score, self.y[query], margin=1.0)
            counts.append(count / max(pairs, 1))
            loss[k] = swapped / max(pairs, 1)
        ends = np.concatenate([[0], np.cumsum([len(d) for d in documents])])
        shape = len(rows), self.X.shape[0]
        share = sparse.csr_array((np.concatenate(counts), np.concatenate(documents), ends), shape=shape)
        return share @ self.X, loss


def by_query(X, y, qid):
    """Documents and relevances of each query."""
    queries = [np.flatnonzero(qid == query) for query in np.unique(qid)]
    return [X[q] for q in queries], [y[q] for q in queries]


def generated(queries: int = 60, documents: int = 20, words: int = 300, seed: int = 0) -> bytes:
    """svmlight text: documents that use one in twenty words, and have a relevance of 0 to 3."""
    rng = np.random.default_rng(seed)
    truth, shape = rng.standard_normal(words), (queries * documents, words)
    X = sparse.csr_array(np.where(rng.random(shape) < 0.05, rng.standard_normal(shape), 0.0))
    y = np.digitize(X @ truth + 1.5 * rng.standard_normal(shape[0]), [0.0, 2.0, 5.0])
    file = io.BytesIO()
    write_svmlight(X, y, file, query_id=np.repeat(np.arange(queries), documents))
    return file.getvalue()


def main() -> None:
    X, y = by_query(*read_svmlight(generated(), n_features=300, query_id=True))
    train, test = slice(0, 40), slice(40, None)

    search = GridSearchCV(StructuredSVC(Ranking(), tol=0.05), {"C": [0.1, 1.0, 10.0]}, cv=4)
    search.fit(X[train], y[train])
    print("      C   wrong pairs in 4 folds")
    for k, (C, score) in enumerate(zip(search.param_grid["C"], search.cv_results_["mean_test_score"], strict=True)):
        print(f"{C:7g}   {-score:.3f}{'   <- chosen' if k == search.best_index_ else ''}")

    model = search.best_estimator_.set_params(tol=1e-3).fit(X[train], y[train])
    print(f"\nfinal fit: {model.certificate_}")
    chance = np.mean([wrong_pairs(r, np.random.default_rng(0).permutation(len(r))) for r in y[test]])
    wrong = -model.score(X[test], y[test])
    print(f"wrong pairs of {len(y[test])} new queries: {wrong:.3f} (in random order {chance:.3f})")


if __name__ == "__main__":
    main()
