"""StructuredSVC goes on: from a checkpoint to the same bits, and from an earlier fit with fewer decodings."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import structured_oracles as so
from sklearn.exceptions import ConvergenceWarning
from structured_fits import SOLVERS, X, Y, fitted, outcome

from pegasos import Pegasos, StructuredSVC
from pegasos.fit.resume import CheckpointFile

# --- checkpoints -----------------------------------------------------------------------------------------------------


class Crash(Exception):
    """What stands in for a kill."""


@pytest.mark.parametrize("solver", [*SOLVERS, Pegasos(output="suffix", batch_size=3), Pegasos(output="random")])
def test_every_piece_of_work_in_a_life_of_its_own(solver, tmp_path, monkeypatch):
    how = {"solver": solver, "tol": 1e-9, "max_iter": 7}
    straight = outcome(fitted(how))
    save, lives, path = CheckpointFile.save, 0, tmp_path / "run.ckpt"

    def save_and_die(file, arrays, progress):
        save(file, arrays, progress)
        if progress["epochs"] < 7:
            raise Crash

    monkeypatch.setattr(CheckpointFile, "save", save_and_die)
    model = None
    while model is None:
        lives += 1
        try:
            model = fitted(how, checkpoint=path, checkpoint_every=0)
        except Crash:
            assert path.exists()
    assert lives > 5
    assert outcome(model) == straight
    more = how | {"max_iter": 12}
    monkeypatch.undo()
    assert outcome(fitted(more, checkpoint=path)) == outcome(fitted(more))


def test_a_checkpoint_of_other_data_is_refused(tmp_path):
    path = tmp_path / "run.ckpt"
    fitted(tol=1e-9, max_iter=3, checkpoint=path)
    x = [a.copy() for a in X]
    x[0][0, 0] += 1e-6
    model = StructuredSVC(so.Tags(), tol=1e-9, max_iter=3, checkpoint=path)
    with pytest.raises(ValueError, match="belongs to another fit: the oracle's answers differ"):
        model.fit(x, Y)
    with pytest.raises(ValueError, match=r"lam is .* there and .* here"):
        model.set_params(C=2.0).fit(X, Y)
    with pytest.raises(ValueError, match=r"solver is OracleAuto\(\) there and OraclePegasos"):
        model.set_params(C=1.0, solver="pegasos").fit(X, Y)


def test_a_fit_that_converges_removes_its_checkpoint(tmp_path):
    path = tmp_path / "run.ckpt"
    written = []
    model = StructuredSVC(
        so.Tags(), checkpoint=path, checkpoint_every=0, callback=lambda c: written.append(path.exists())
    )
    assert model.fit(X, Y).certificate_.converged
    assert all(written)
    assert not path.exists()


# --- warm starts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "block_frank_wolfe", "cutting_plane"])
def test_a_warm_start_needs_fewer_epochs(solver):
    how = {"solver": solver, "tol": 1e-5, "max_iter": 2000}
    cold = StructuredSVC(so.Tags(), C=1.1, **how).fit(X, Y)
    warm = StructuredSVC(so.Tags(), C=1.0, warm_start=True, **how).fit(X, Y)
    warm.set_params(C=1.1).fit(X, Y)
    assert warm.certificate_.epochs < cold.certificate_.epochs
    assert warm.certificate_.converged
    assert warm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2e-5)


def test_pegasos_goes_on():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = StructuredSVC(so.Tags(), solver="pegasos", tol=1e-9, max_iter=3, warm_start=True).fit(X, Y)
        model.set_params(max_iter=6).fit(X, Y)
    np.testing.assert_array_equal(model.coef_, fitted(solver="pegasos", tol=1e-9, max_iter=6).coef_)


@pytest.mark.parametrize("change", ["data", "weights"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_planes_of_other_rows_are_not_used(solver, change):
    """They would prove bounds of another problem."""
    how = {"solver": solver, "tol": 1e-6, "max_iter": 6}
    x, y = so.toy(rows=10, seed=8) if change == "data" else (X, Y)
    weight = None if change == "data" else np.arange(1.0, 11.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warm = StructuredSVC(so.Tags(), warm_start=True, **how).fit(X, Y).fit(x, y, weight)
        cold = StructuredSVC(so.Tags(), **how).fit(x, y, weight)
    assert outcome(warm) == outcome(cold)
