"""Write small model and checkpoint files as the installed version writes them, and what they predict.

``python tools/write_released_files.py`` makes ``tests/data/files_MAJOR.MINOR/``, once for each release, and
``tests/io/test_released_files.py`` holds every later version to reading them. The folder of a release is not written
again. Its ``expected.json`` has the rows and targets, what each model predicts, and the fits of the checkpoints.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import pegasos
from pegasos.losses import Huber

HERE = Path(__file__).parents[1] / "tests" / "data"


def rows() -> tuple[np.ndarray[Any, Any], dict[str, list[Any]]]:
    """A few rows, and targets for each kind of estimator: short decimals, which JSON keeps to the bit."""
    random = np.random.default_rng(0)
    X = random.normal(size=(36, 3)).round(3)
    score = X @ [1.0, -0.5, 0.25] + 0.4 * random.normal(size=len(X))
    names = np.array(["no", "perhaps", "yes"])[np.searchsorted(np.quantile(score, [0.3, 0.7]), score)]
    return X, {"two": (score > 0.1).astype(int).tolist(), "three": names.tolist(), "real": score.round(3).tolist()}


def tokens(X: Any) -> list[list[str]]:
    """The rows as tokens with a few attributes."""
    return [[f"{j}:{value:.0f}" for j, value in enumerate(row)] for row in X.tolist()]


def models(X: Any, y: dict[str, list[Any]]) -> dict[str, Any]:
    """A fitted estimator for each file."""
    half = len(X) // 2
    stream, numbers = pegasos.LinearSVC(lam=0.05), pegasos.LinearSVR(lam=0.05, solver=pegasos.Pegasos(output="average"))
    kernel = pegasos.SVC(lam=0.05, gamma=0.5)
    for part in (slice(half), slice(half, None)):
        stream.partial_fit(X[part], y["three"][part], classes=["no", "perhaps", "yes"])
        numbers.partial_fit(X[part], y["real"][part])
        kernel.partial_fit(X[part], y["two"][part], classes=[0, 1])
    return {
        "linear_svc": pegasos.LinearSVC(C=2.0, class_weight={0: 1.0, 1: 2.0}).fit(X, y["two"]),
        "linear_svc_classes": pegasos.LinearSVC(loss="log", solver=pegasos.SDCA(shrinking=False)).fit(X, y["three"]),
        "linear_svc_stream": stream,
        "linear_svr": pegasos.LinearSVR(loss=Huber(0.5), lam=0.01).fit(X, y["real"]),
        "linear_svr_stream": numbers,
        "svc": pegasos.SVC(C=5.0, gamma=0.5).fit(X, y["three"]),
        "svc_stream": kernel,
        "svr": pegasos.SVR(kernel="poly", degree=2, gamma=0.3, coef0=1.0).fit(X, y["real"]),
        "sparse_svc": pegasos.SparseSVC(max_support=5, gamma=0.5).fit(X, y["two"]),
    }


#: Of taggers the rows are sequences of six.
LENGTHS = [6] * 6


def taggers(X: Any, y: dict[str, list[Any]]) -> dict[str, tuple[Any, str]]:
    """A fitted tagger for each file, and whether its tokens are rows or attributes."""
    table = {("no", "yes"): 2.0}
    hinge = pegasos.SequenceSVC(cost=table, grammar="learnt", class_weight={"yes": 2.0}, tol=1e-3)
    return {
        "sequence_svc": (hinge.fit(tokens(X), y["three"], lengths=LENGTHS), "attributes"),
        "sequence_svc_log": (pegasos.SequenceSVC(loss="log").fit(X, y["two"], lengths=LENGTHS), "columns"),
    }


#: Fits that are cut short and leave a checkpoint: estimator, parameters, target, and the limit.
FITS: dict[str, tuple[str, dict[str, Any], str, int]] = {
    "linear_svc": ("LinearSVC", {"solver": "sdca", "tol": 1e-10, "lam": 0.01}, "three", 4),
    "linear_svr": ("LinearSVR", {"solver": "pegasos", "tol": 1e-2, "lam": 0.1}, "real", 4),
    "svc": ("SVC", {"solver": "smo", "tol": 1e-8, "C": 20.0, "gamma": 0.5}, "two", 10),
    "svr": ("SVR", {"solver": "sdca", "tol": 1e-8, "gamma": 0.5}, "real", 4),
}


def scores(model: Any, X: Any) -> list[Any]:
    """What a model says of every row, as numbers."""
    found = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    return list(found.tolist())


def write(folder: Path) -> None:
    """Fill an empty folder."""
    X, y = rows()
    expected: dict[str, Any] = {"version": pegasos.__version__, "X": X.tolist(), "y": y}
    expected |= {"models": {}, "checkpoints": {}}
    for name, model in models(X, y).items():
        pegasos.save(model, folder / f"{name}.model")
        expected["models"][name] = {"predicted": model.predict(X).tolist(), "scores": scores(model, X)}
    for name, (model, kind) in taggers(X, y).items():
        pegasos.save(model, folder / f"{name}.model")
        rows_or_tokens = tokens(X) if kind == "attributes" else X
        said = {"kind": kind, "tokens": tokens(X), "lengths": LENGTHS}
        expected["models"][name] = said | {"predicted": model.predict(rows_or_tokens, LENGTHS)}
        if hasattr(model, "predict_marginals"):
            marginals = model.predict_marginals(rows_or_tokens, LENGTHS)
            expected["models"][name]["scores"] = [[list(p.values()) for p in sequence] for sequence in marginals]
    for name, (kind, parameters, target, limit) in FITS.items():
        path = folder / f"{name}.checkpoint"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            getattr(pegasos, kind)(**parameters, max_iter=limit, checkpoint=path).fit(X, y[target])
        assert path.exists(), f"the fit {name} has left no checkpoint"
        whole = getattr(pegasos, kind)(**parameters).fit(X, y[target])
        expected["checkpoints"][name] = {
            "estimator": kind,
            "parameters": parameters,
            "target": target,
            "primal": whole.certificate_.primal,
            "scores": scores(whole, X),
        }
    (folder / "expected.json").write_text(json.dumps(expected) + "\n", encoding="utf-8")


if __name__ == "__main__":
    chosen = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / f"files_{'.'.join(pegasos.__version__.split('.')[:2])}"
    chosen.mkdir(parents=True)  # of a release that is there already nothing is written
    write(chosen)
    print(chosen)
