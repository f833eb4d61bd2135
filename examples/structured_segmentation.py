"""Cutting sequences into labelled segments: a semi-Markov machine, decoded exactly by dynamic programming.

A labelling of a sequence of T observations is a list of segments (begin, end, label) that covers it. φ sums, over the
segments, their observations in the block of their label, an indicator of label and length, and one of each pair of
neighbouring labels; Δ counts observations with the wrong label. The best segmentation that ends at t with label l is
the best over the lengths of its last segment and the label before: O(T · lengths · labels²), exact.

Observations are so noisy here that no single one tells its label. Lengths do help: segments of one label are short, of
the other long.

    python examples/structured_segmentation.py
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pegasos import LinearSVC, StructuredSVC


@dataclass(frozen=True)
class Segmentation:
    """Segments of ``labels`` labels, none longer than ``longest``. X: an array T × features for each sequence."""

    labels: int
    longest: int

    def bind(self, X, y):
        return BoundSegmentation(self, [np.asarray(x, dtype=float) for x in X], y)

    def size(self, features):
        return self.labels * (features + self.longest + self.labels)

    def parts(self, w):
        """Weights of observations (label × feature), lengths (label × length), neighbours (label × label)."""
        rest = self.labels * (self.longest + self.labels)
        emission, length, neighbour = np.split(w, [len(w) - rest, len(w) - self.labels**2])
        return [a.reshape(self.labels, -1) for a in (emission, length, neighbour)]

    def phi(self, x, segments):
        w = np.zeros(self.size(x.shape[1]))
        emission, length, neighbour = self.parts(w)
        for k, (begin, end, label) in enumerate(segments):
            emission[label] += x[begin:end].sum(axis=0)
            length[label, end - begin - 1] += 1
            if k:
                neighbour[segments[k - 1][2], label] += 1
        return np.concatenate([a.ravel() for a in (emission, length, neighbour)])

    def best(self, w, x, cost=None):
        """The best segmentation; ``cost`` (T × labels) is added to the scores of observations."""
        emission, length, neighbour = self.parts(w)
        score = x @ emission.T + (0.0 if cost is None else cost)
        until = np.vstack([np.zeros(self.labels), np.cumsum(score, axis=0)])
        value = np.full((len(x) + 1, self.labels), -np.inf)  # the best that ends at t with a segment of each label
        entry = np.full((len(x) + 1, self.labels), -np.inf)  # the best that ends at t, and the step to each label
        entry[0] = 0.0
        taken = np.zeros((len(x) + 1, self.labels), dtype=int)  # the lengths of those segments
        for t in range(1, len(x) + 1):
            begin = np.arange(t - 1, max(t - self.longest, 0) - 1, -1)
            found = entry[begin] + until[t] - until[begin] + length[:, : len(begin)].T
            taken[t] = np.argmax(found, axis=0) + 1
            value[t] = found.max(axis=0)
            entry[t] = (value[t][:, None] + neighbour).max(axis=0)
        segments, t, label = [], len(x), int(np.argmax(value[-1]))
        while t > 0:
            begin = t - int(taken[t, label])
            segments.append((begin, t, label))
            t, label = begin, int(np.argmax(value[begin] + neighbour[:, label]))
        return segments[::-1]

    def predict(self, w, X):
        return [self.best(w, np.asarray(x, dtype=float)) for x in X]

    def loss(self, y, y_hat):
        return np.array([float(np.sum(spelled(a) != spelled(b))) for a, b in zip(y, y_hat, strict=True)])


class BoundSegmentation:
    """The decoder of some sequences."""

    def __init__(self, model, X, y):
        self.model, self.X, self.y = model, X, y
        self.n_rows, self.size = len(X), model.size(X[0].shape[1])
        for row, (x, segments) in enumerate(zip(X, y, strict=True)):
            if any(end - begin > model.longest for begin, end, _ in segments) or segments[-1][1] != len(x):
                raise ValueError(f"sequence {row}: segments up to {model.longest} must cover its {len(x)} observations")
        self.phi = [model.phi(x, segments) for x, segments in zip(X, y, strict=True)]
        self.cost = [np.arange(model.labels) != spelled(segments)[:, None] for segments in y]

    def decode(self, w, rows):
        psi, loss = np.empty((len(rows), self.size)), np.empty(len(rows))
        for k, i in enumerate(rows):
            segments = self.model.best(w, self.X[i], self.cost[i])
            psi[k] = self.phi[i] - self.model.phi(self.X[i], segments)
            loss[k] = np.sum(spelled(segments) != spelled(self.y[i]))
        return psi, loss


def spelled(segments):
    """The label of each observation."""
    return np.repeat([label for *_, label in segments], [end - begin for begin, end, _ in segments])


def generated(count, seed):
    """Sequences of short segments of label 0 and long ones of label 1 and 2, with noisy observations."""
    rng = np.random.default_rng(seed)
    centre = np.array([[1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9]])
    X, y = [], []
    for _ in range(count):
        segments, end = [], 0
        while end < 30:
            label = int(rng.integers(3)) if not segments else int((segments[-1][2] + rng.integers(1, 3)) % 3)
            begin, end = end, end + int(rng.integers(1, 4) if label == 0 else rng.integers(5, 9))
            segments.append((begin, end, label))
        x = centre[spelled(segments)] + 0.9 * rng.standard_normal((end, 2))
        X.append(np.column_stack([x, np.ones(end)]))
        y.append(segments)
    return X, y


def shares(y, y_hat):
    """Of the observations, those with the wrong label; of the true segments, those that were found."""
    wrong = np.mean(np.concatenate([spelled(a) != spelled(b) for a, b in zip(y, y_hat, strict=True)]))
    found = sum(len(set(a) & set(b)) for a, b in zip(y, y_hat, strict=True)) / sum(map(len, y))
    return wrong, found


def runs(labels):
    """Segments of equal labels."""
    cuts = np.flatnonzero(np.diff(labels)) + 1
    return [(int(a), int(b), int(labels[a])) for a, b in zip([0, *cuts], [*cuts, len(labels)], strict=True)]


def main() -> None:
    (X, y), (X_test, y_test) = generated(100, seed=0), generated(200, seed=1)
    single = LinearSVC(loss="crammer_singer").fit(np.vstack(X), np.concatenate([spelled(s) for s in y]))
    model = StructuredSVC(Segmentation(labels=3, longest=8), C=0.1, tol=1e-2).fit(X, y)
    print(f"semi-Markov: {model.certificate_}\n")
    print(f"{'':<32} {'wrong labels':>12} {'segments found':>15}")
    for name, found in {
        "one observation at a time": [runs(single.predict(x)) for x in X_test],
        "segments": model.predict(X_test),
    }.items():
        wrong, exact = shares(y_test, found)
        print(f"{name:<32} {wrong:12.3f} {exact:15.3f}")


if __name__ == "__main__":
    main()
