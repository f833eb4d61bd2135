"""Files that earlier versions wrote stay readable: those of every release, and those of versions still to come.

``tests/data/files_*`` hold what releases wrote, by ``tools/write_released_files.py``. The rule: a field with a default
may be missing, and one without is named where it is; see "Adding an estimator to model files" in
``docs/architecture.md``.
"""

import importlib.util
import json
import math
import shutil
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import pegasos
from pegasos.fit import loop, resume, trace
from pegasos.fit.certificate import Certificate
from pegasos.fit.trace import Checkpoint, Trace
from pegasos.io.models import container, native
from pegasos.util import digests

ROOT = Path(__file__).parents[2]
FOLDERS = sorted((ROOT / "tests" / "data").glob("files_*"))

#: Checkpoints, as folder/name, of engines whose state has changed since, with what is said of them. Models never come
#: here: whatever was saved once can be loaded for good.
REFUSED: dict[str, str] = {}


def expected(folder):
    return json.loads((folder / "expected.json").read_text(encoding="utf-8"))


def files(ending):
    found = [(folder, path.stem) for folder in FOLDERS for path in sorted(folder.glob(f"*.{ending}"))]
    return pytest.mark.parametrize(("folder", "name"), found, ids=[f"{folder.name}/{name}" for folder, name in found])


def check_model(folder, name, tmp_path):
    """It predicts what it did, can be saved again, and learns on if it could."""
    facts = expected(folder)
    X, said = np.array(facts["X"]), facts["models"][name]
    model = pegasos.load(folder / f"{name}.model")
    pegasos.save(model, tmp_path / "again")
    for each in (model, pegasos.load(tmp_path / "again")):
        assert len(each.trace_)
        assert math.isfinite(each.certificate_.primal)
        if isinstance(each, pegasos.SequenceSVC):
            check_tagger(each, X, said)
            continue
        numbers = each.decision_function(X) if hasattr(each, "decision_function") else each.predict(X)
        assert_allclose(numbers, said["scores"], rtol=1e-9, atol=1e-12)
        if hasattr(each, "classes_"):
            assert each.predict(X).tolist() == said["predicted"]
        if name != "sparse_svc":
            assert each.lam_ > 0
            target = each.predict(X)
            rows = each._stream.rows
            assert rows == len(X)
            each.partial_fit(X[:9], target[:9])
            assert each._stream.rows == rows + 9


def check_tagger(model, X, said):
    rows = said["tokens"] if said["kind"] == "attributes" else X
    assert model.lam_ > 0
    assert model.predict(rows, said["lengths"]) == said["predicted"]
    if "scores" in said:
        marginals = model.predict_marginals(rows, said["lengths"])
        assert_allclose([[list(p.values()) for p in each] for each in marginals], said["scores"], rtol=1e-9)


def check_checkpoint(folder, name, tmp_path, capsys):
    """The fit goes on from it, and ends where it would have ended then."""
    facts = expected(folder)
    fit, path = facts["checkpoints"][name], tmp_path / "file"
    shutil.copy(folder / f"{name}.checkpoint", path)
    epochs = resume.read_header(path).progress["epochs"]
    model = getattr(pegasos, fit["estimator"])(**fit["parameters"], checkpoint=path, verbose=True)
    rows, target = np.array(facts["X"]), facts["y"][fit["target"]]
    if f"{folder.name}/{name}" in REFUSED:
        with pytest.raises(ValueError, match=REFUSED[f"{folder.name}/{name}"]):
            model.fit(rows, target)
        return None
    model.fit(rows, target)
    assert f"resumed after {epochs:.2f} epochs" in capsys.readouterr().err
    assert model.certificate_.converged
    assert model.certificate_.epochs > epochs
    assert not path.exists()
    assert model.certificate_.primal == pytest.approx(fit["primal"], rel=2 * model.tol)
    numbers = model.decision_function(rows) if hasattr(model, "decision_function") else model.predict(rows)
    # A gap of tol · P leaves the weights within √(2·tol·P/λ), and scores of short rows near that.
    assert_allclose(numbers, fit["scores"], atol=10 * math.sqrt(2 * model.tol * fit["primal"] / model.lam_))
    return model


# --- files of releases -----------------------------------------------------------------------------------------------


def test_there_are_files_of_this_version():
    """Each release leaves a folder, made by tools/write_released_files.py."""
    assert f"files_{'.'.join(pegasos.__version__.split('.')[:2])}" in [folder.name for folder in FOLDERS]
    for folder in FOLDERS:
        facts = expected(folder)
        assert sorted(facts["models"]) == sorted(path.stem for path in folder.glob("*.model"))
        assert sorted(facts["checkpoints"]) == sorted(path.stem for path in folder.glob("*.checkpoint"))
        assert sum(path.stat().st_size for path in folder.iterdir()) < 200_000


@files("model")
def test_models_of_releases(folder, name, tmp_path):
    check_model(folder, name, tmp_path)


@files("checkpoint")
def test_checkpoints_of_releases(folder, name, tmp_path, capsys):
    check_checkpoint(folder, name, tmp_path, capsys)


def test_the_tool_that_writes_them(tmp_path, capsys):
    """What it writes now can be read now, and has everything that the folders of releases have."""
    spec = importlib.util.spec_from_file_location("tool", ROOT / "tools" / "write_released_files.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    folder = tmp_path / "files_now"
    folder.mkdir()
    tool.write(folder)
    facts = expected(folder)
    assert {type(pegasos.load(path)).__name__ for path in folder.glob("*.model")} == set(native.LAYOUTS)
    for name in facts["models"]:
        check_model(folder, name, tmp_path)
    for name in facts["checkpoints"]:
        check_checkpoint(folder, name, tmp_path, capsys)


# --- files of a version with one field more or less ------------------------------------------------------------------


@dataclass(frozen=True)
class LaterCheckpoint(Checkpoint):
    """A checkpoint with a number more."""

    rate: float = math.nan


@dataclass(frozen=True)
class LaterCertificate(Certificate):
    """A certificate with a field more."""

    slope: float = 7.0


@pytest.fixture
def later(monkeypatch):
    """The package as a later version might be: the trace has a column more, the certificate of a fit a field."""
    monkeypatch.setattr(trace, "Checkpoint", LaterCheckpoint)
    monkeypatch.setattr(trace, "FIELDS", ("epochs", "rate", *trace.FIELDS[1:]))
    honest = Trace.append
    monkeypatch.setattr(Trace, "append", lambda self, record: honest(self, LaterCheckpoint(**vars(record), rate=2.0)))
    monkeypatch.setattr(loop, "Certificate", LaterCertificate)
    records = {"certificate": LaterCertificate}
    layouts = {name: replace(layout, records=layout.records | records) for name, layout in native.LAYOUTS.items()}
    monkeypatch.setattr(native, "LAYOUTS", layouts)


@files("model")
def test_models_from_before_a_field(folder, name, later, tmp_path):
    model = pegasos.load(folder / f"{name}.model")
    assert all(math.isnan(point.rate) and point.primal >= 0 for point in model.trace_)
    assert model.certificate_.slope == 7.0
    check_model(folder, name, tmp_path)


@files("checkpoint")
def test_checkpoints_from_before_a_column(folder, name, later, tmp_path, capsys):
    """What was not known then stays unknown, what is recorded now is known, and a model of both can be saved."""
    before = resume.read(folder / f"{name}.checkpoint")[1]
    model = check_checkpoint(folder, name, tmp_path, capsys)
    if model is None:
        return
    count = len(before.get("loop.trace", before.get("loop.trace.epochs", [])))
    rates = [point.rate for point in model.trace_]
    assert_array_equal(rates, [math.nan] * count + [2.0] * (len(rates) - count))
    pegasos.save(model, tmp_path / "model")
    assert_array_equal([point.rate for point in pegasos.load(tmp_path / "model").trace_], rates)


def rewritten(path, change):
    """The model in a file whose header and arrays a function has changed."""
    with open(path, "rb") as file:
        header, arrays = container.unpack(file, path.stat().st_size)
    change(header, arrays)
    data = container.pack(header, arrays)
    return native.decode(BytesIO(data), len(data))


@files("model")
def test_models_with_a_field_more_and_less(folder, name):
    """Columns of the trace go by their names: the unknown is passed over, what is missing is NaN."""
    plain = pegasos.load(folder / f"{name}.model")

    def change(header, arrays):
        columns = plain.trace_.columns() | {"colour": np.arange(len(plain.trace_), dtype=float)}
        del columns["gap"]
        header["trace"] = sorted(columns)
        arrays["trace_"] = np.column_stack([columns[name] for name in sorted(columns)])
        header["certificate"] |= {"colour": "blue"}
        del header["certificate"]["primal_per_class"], header["certificate"]["dual_per_class"]

    model = rewritten(folder / f"{name}.model", change)
    assert model.certificate_ == replace(plain.certificate_, primal_per_class=(), dual_per_class=())
    for found, known in zip(model.trace_, plain.trace_, strict=True):
        assert math.isnan(found.gap)
        assert replace(found, gap=known.gap) == known
    again = BytesIO(native.encode(model))
    assert_array_equal(native.decode(again, len(again.getvalue())).trace_.columns()["gap"], math.nan)


@files("model")
def test_a_field_without_a_default_is_named(folder, name):
    for key, message in {"gap": "lacks gap", "reason": "lacks reason"}.items():
        with pytest.raises(ValueError, match=message):
            rewritten(folder / f"{name}.model", lambda header, _, key=key: header["certificate"].pop(key))


@files("checkpoint")
def test_checkpoints_with_a_column_more_and_less(folder, name, tmp_path, capsys):
    """So for checkpoints, as this version writes them: arrays of other versions are passed over."""
    header, arrays = resume.read(folder / f"{name}.checkpoint")
    if (table := arrays.pop("loop.trace", None)) is not None:
        arrays |= {f"loop.trace.{key}": column for key, column in zip(trace.UNNAMED_COLUMNS, table.T, strict=True)}
    del arrays["loop.trace.relative_gap"]
    count = len(arrays["loop.trace.epochs"])
    arrays |= {"loop.trace.colour": np.ones(count), "loop.mood": np.ones((2, 3)), "other": np.zeros(1)}
    (tmp_path / folder.name).mkdir()
    resume.write(tmp_path / folder.name / f"{name}.checkpoint", header, arrays)
    shutil.copy(folder / "expected.json", tmp_path / folder.name)
    model = check_checkpoint(tmp_path / folder.name, name, tmp_path, capsys)
    if model is not None:
        assert [math.isnan(point.relative_gap) for point in model.trace_[:count]] == [True] * count
        assert not any(math.isnan(point.relative_gap) for point in model.trace_[count:])


@pytest.mark.parametrize("missing", ["loop.dual", "loop.seconds", "loop.advanced", "loop.trace.epochs"])
def test_a_checkpoint_that_lacks_what_it_needs(missing, tmp_path):
    folder = FOLDERS[-1]
    fit = expected(folder)["checkpoints"]["linear_svc"]
    header, arrays = resume.read(folder / "linear_svc.checkpoint")
    if (table := arrays.pop("loop.trace", None)) is not None:
        arrays |= {f"loop.trace.{key}": column for key, column in zip(trace.UNNAMED_COLUMNS, table.T, strict=True)}
    del arrays[missing]
    resume.write(tmp_path / "file", header, arrays)
    model = pegasos.LinearSVC(**fit["parameters"], checkpoint=tmp_path / "file")
    with pytest.raises(ValueError, match=rf"is damaged \(.*{missing.split('.')[-1]}.* another version of pegasos"):
        model.fit(np.array(expected(folder)["X"]), expected(folder)["y"][fit["target"]])


def test_what_a_solver_got_later_leaves_the_fit_the_same():
    """A field with a default that means what was done before is part of the fingerprint only where it differs."""

    @dataclass(frozen=True)
    class Solver:
        size: int = 1
        momentum: float = field(default=0.0, metadata=digests.LATER)

    assert digests.spelled(Solver(2)) == "Solver(size=2)"
    assert digests.spelled(Solver(2, 0.5)) == "Solver(size=2, momentum=0.5)"
