"""Throw damaged model files at the readers: python fuzz/fuzz_model.py [libFuzzer options] [corpus folder].

Needs atheris. Every input is taken for a model file (with the length of its header made right for every other input),
and for the JSON header of one or for a text model of LIBLINEAR or LIBSVM. The readers must refuse it with ValueError or
give a model whose scores are finite and which survives being saved again.
"""

import contextlib
import json
import sys
import tempfile
from io import BytesIO
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["pegasos.io", "json"]):
    import numpy as np

    import pegasos
    from pegasos.io import read_liblinear, read_libsvm, write_liblinear, write_libsvm
    from pegasos.io.models import container, native

from safetensors.numpy import save
from scipy.sparse import csr_matrix

SCRATCH = Path(tempfile.mkdtemp(prefix="pegasos-fuzz-")) / "model"


def models() -> dict[str, object]:
    """Small models of several kinds."""
    X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.5]], np.array([0, 0, 1, 1])
    return {
        "binary": pegasos.LinearSVC().fit(X, y),
        "texts": pegasos.LinearSVC(loss=pegasos.losses.SmoothedHinge(), solver=pegasos.SDCA()).fit(X, list("aabc")),
        "booleans": pegasos.LinearSVC(class_weight={False: 2.0}).fit(X, y == 1),
        "stream": pegasos.LinearSVC(lam=0.1, solver=pegasos.Pegasos()).partial_fit(X, y, classes=[0, 1, 2]),
        "regression": pegasos.LinearSVR(loss="huber").fit(X, y),
        "kernel": pegasos.SVC(kernel="poly", solver=pegasos.SMO(working_set=64)).fit(X, y),
        "kernel texts": pegasos.SVC(kernel="chi2", decision_function_shape="ovo").fit(csr_matrix(X), list("aabc")),
        "kernel regression": pegasos.SVR(kernel="laplacian", gamma=0.5).fit(np.float32(X), [0.0, 1.0, 0.0, 2.0]),
        "precomputed": pegasos.SVC(kernel="precomputed").fit(np.eye(4), y),
        "tagger": pegasos.SequenceSVC(grammar=[("a", "b"), ("b", "a")]).fit([["u", "v"], ["v"]], [["a", "b"], ["b"]]),
        "tagger of columns": pegasos.SequenceSVC(loss="log").fit([np.array(X)], [[1, 2, 0, 1]]),
    }


def parts(model: object) -> tuple[dict[str, object], dict[str, np.ndarray]]:
    """The JSON header and the arrays of a model's file."""
    data = native.encode(model)
    return container.unpack(BytesIO(data), len(data))


MODELS = models()
ARRAYS = [parts(model)[1] for model in MODELS.values()]


def seeds(folder: Path) -> None:
    """Valid files to begin with."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in MODELS.items():
        pegasos.save(model, folder / f"{name}.safetensors")
        (folder / f"{name}.json").write_text(json.dumps(parts(model)[0]))
    for name in ("binary", "regression"):
        write_liblinear(MODELS[name], folder / f"{name}.liblinear")
        write_libsvm(MODELS[name], folder / f"{name}.libsvm")
    for name in ("kernel", "precomputed"):
        write_libsvm(MODELS[name], folder / f"{name}.libsvm")


def usable_tagger(model: pegasos.SequenceSVC) -> None:
    """A labelling is one of its labels, unless its grammar allows none."""
    tokens = [["u", "w"], ["v"]]
    rows = [tokens] if model._encoder.kind == "attributes" else [np.ones((2, model.n_features_in_))]
    with contextlib.suppress(ValueError):
        assert set(model.predict(rows)[0]) <= set(model.classes_)


def usable(model: object) -> None:
    """What every accepted model must do."""
    data = native.encode(model)
    assert native.encode(native.decode(BytesIO(data), len(data))) == data
    if isinstance(model, pegasos.SequenceSVC):
        usable_tagger(model)
        return
    row = csr_matrix((1, model.n_features_in_)) if model.n_features_in_ > 1000 else np.ones((1, model.n_features_in_))
    if hasattr(model, "kernel"):
        with contextlib.suppress(
            ValueError, TypeError
        ):  # a score may overflow; a sparse row is no row of kernel values
            assert len(model.predict(row)) == 1
    else:
        assert np.isfinite(model._scores(row)).all()
        assert len(model.predict(row)) == 1


def binary(data: bytes) -> None:
    if len(data) > 8 and data[-1] % 2:
        end = data.rfind(b"}") - 7
        data = max(end, 0).to_bytes(8, "little") + data[8:]
    decoded(data)


def header(data: bytes) -> None:
    for arrays in ARRAYS:
        decoded(save(arrays, metadata={container.KEY: data.decode("utf-8", "replace")}))


def decoded(data: bytes) -> None:
    try:
        model = native.decode(BytesIO(data), len(data))
    except ValueError:
        return
    if hasattr(model, "feature_names_in_"):
        del model.feature_names_in_  # scikit-learn would warn about rows without names
    usable(model)


def text(data: bytes) -> None:
    SCRATCH.write_bytes(data)
    for read in (read_liblinear, read_libsvm):
        try:
            model = read(SCRATCH)
        except ValueError:
            continue
        if model.n_features_in_ <= 1000:  # wide ones take long, and show nothing new
            usable(model)


def one_input(data: bytes) -> None:
    binary(data)
    if data.lstrip()[:1] == b"{":
        header(data)
    else:
        text(data)


if __name__ == "__main__":
    if folders := [argument for argument in sys.argv[1:] if not argument.startswith("-")]:
        seeds(Path(folders[0]))
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
