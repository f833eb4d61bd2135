"""``lam_``: the λ of the fit, wherever the fit came from."""

from io import BytesIO

import numpy as np
import pytest
from sklearn.base import clone

import pegasos
from pegasos import SVC, SVR, LinearSVC, LinearSVR, SparseSVC, sparsify
from pegasos.cli import main
from pegasos.io.models import container, native

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(40, 3))
Y = (X[:, 0] + 0.5 * RANDOM.normal(size=40) > 0).astype(int)
ALL = [LinearSVC(), LinearSVR(), SVC(), SVR(), SparseSVC(max_support=4)]
STREAMS = [LinearSVC(), LinearSVR(), SVC(), SVR()]


def through_a_file(model, change=lambda header: None):
    """A model saved and loaded, its header changed by a function in between."""
    data = native.encode(model)
    header, arrays = container.unpack(BytesIO(data), len(data))
    change(header)
    data = container.pack(header, arrays)
    return native.decode(BytesIO(data), len(data))


@pytest.mark.parametrize("given", ALL, ids=lambda e: type(e).__name__)
def test_the_lam_of_a_fit(given):
    """As given, or 1/(C·M); loaded, it is the same number."""
    weight = RANDOM.uniform(0.5, 2, size=len(X))
    assert not hasattr(given, "lam_")
    for parameters, expected in ({"C": 4.0}, 1 / (4.0 * weight.sum())), ({"lam": 0.125, "C": 4.0}, 0.125):
        model = clone(given).set_params(**parameters).fit(X, Y, sample_weight=weight)
        assert model.lam_ == pytest.approx(expected, rel=1e-15)
        assert type(model.lam_) is float
        assert through_a_file(model).lam_ == model.lam_
        assert not hasattr(clone(model), "lam_")


@pytest.mark.parametrize("given", STREAMS, ids=lambda e: type(e).__name__)
def test_the_lam_of_a_stream_is_that_of_its_first_call(given):
    classes = {"classes": [0, 1]} if isinstance(given, LinearSVC | SVC) else {}
    model = clone(given).set_params(C=2.0).partial_fit(X[:10], Y[:10], **classes)
    assert model.lam_ == 1 / (2.0 * 10)
    model.partial_fit(X[10:], Y[10:])
    assert model.lam_ == 1 / (2.0 * 10)
    again = through_a_file(model)
    assert again.lam_ == model.lam_
    model = clone(given).set_params(C=2.0).fit(X, Y)
    assert model.partial_fit(X[:10], Y[:10]).lam_ == 1 / (2.0 * len(X))


def test_only_one_class_has_weight():
    model = SVC(C=2.0).fit(X, Y, sample_weight=(Y == 1).astype(float))
    assert model.lam_ == 1 / (2.0 * Y.sum())


@pytest.mark.parametrize("lam", [None, 0.25])
def test_files_of_before(lam, tmp_path, capsys):
    """A SparseSVC did not save it: then it is known where it was given, and nobody fails where it was not."""
    model = SparseSVC(max_support=4, lam=lam).fit(X, Y)
    again = through_a_file(model, lambda header: header["scalars"].pop("lam_"))
    assert getattr(again, "lam_", None) == lam
    pegasos.save(again, tmp_path / "model")
    assert getattr(pegasos.load(tmp_path / "model"), "lam_", None) == lam
    assert main(["info", str(tmp_path / "model")]) == 0
    assert ("lambda" in capsys.readouterr().out) == (lam is not None)


def test_models_that_were_not_fitted_have_none(tmp_path):
    reference = SVC().fit(X, Y)
    small = sparsify(reference, X, Y, max_support=4).at()
    pegasos.io.write_libsvm(reference, tmp_path / "model")
    for model in (small, pegasos.io.read_libsvm(tmp_path / "model")):
        assert not hasattr(model, "lam_")
        assert not hasattr(through_a_file(model), "lam_")
