"""The steps of CONTRIBUTING.md for a loss are all that it takes: no other source file names one for what it is."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import pegasos
from pegasos import SVC, SVR, LinearSVC, LinearSVR, losses
from pegasos.cli import _parser, _train_arguments
from pegasos.cli._plan import Plan
from pegasos.io import to_onnx, write_liblinear
from pegasos.losses import LOSSES, Loss
from pegasos.solvers import KERNEL_SOLVERS, SOLVERS, resolve

pytestmark = [pytest.mark.unsanitized, pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")]

ROOT = Path(__file__).parents[1]
JOINT_ONLY, SCALAR_ONLY = "cpp/pegasos/core/joint_losses.hpp", "cpp/pegasos/core/losses.hpp"

#: Losses that other code may name: the defaults of estimators, what a parameter of scikit-learn or of an experiment is
#: called, and a name that is also a word of matplotlib.
NAMED_ELSEWHERE = {"hinge", "epsilon_insensitive", "crammer_singer", "squared_hinge", "log"}


def words_of_python(text):
    """Names, and the values of strings that are no docstrings or parts of longer texts."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            yield token.string
        elif token.type == tokenize.STRING and not token.string.lower().startswith(("f", "rf", "fr")):
            yield f'"{ast.literal_eval(token.string)}"'


def words_of_cpp(text):
    """Identifiers and strings, without comments."""
    code = re.sub(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', lambda m: m[1] or " ", text, flags=re.DOTALL)
    for match in re.finditer(r'"(?:\\.|[^"\\\n])*"|\w+', code):
        yield match[0]


def sources():
    for path in sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "cpp").rglob("*.?pp")]):
        text = path.read_text("utf-8")
        yield path.relative_to(ROOT).as_posix(), set((words_of_python if path.suffix == ".py" else words_of_cpp)(text))


SOURCES = dict(sources())


def naming(cls):
    """The source files that name a loss as code, by its class or by its registered name."""
    return {path for path, words in SOURCES.items() if words & {cls.__name__, f'"{cls.name}"'}}


def steps(cls):
    """The source files that CONTRIBUTING.md's steps name, for a loss of this kind."""
    section = re.search(r"^## Adding a loss\n(.*?)^## ", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.M | re.S)
    assert section
    numbered = " ".join(re.findall(r"^\d\. (.*)$", section[1], re.M))
    named = set(re.findall(r"`((?:src|cpp)/[^`]+\.\w+)`", numbered))
    return named - {SCALAR_ONLY if cls.kind == "joint" else JOINT_ONLY}


def test_words():
    assert set(words_of_python('"""Doc Huber."""\nx = Log("huber")  # Quantile\n')) == {
        '"Doc Huber."',
        "x",
        "Log",
        '"huber"',
    }
    assert list(words_of_cpp('// Huber\nLog l; /* Quantile */ f("a // b");')) == ["Log", "l", "f", '"a // b"']


@pytest.mark.parametrize("name", [name for name in LOSSES if name not in NAMED_ELSEWHERE])
def test_no_step_is_missing(name):
    assert naming(LOSSES[name]) == steps(LOSSES[name])


@pytest.mark.parametrize("name", sorted(NAMED_ELSEWHERE))
def test_the_steps_hold_for_the_others_too(name):
    assert steps(LOSSES[name]) <= naming(LOSSES[name])


def test_every_kind_is_among_them():
    assert {LOSSES[name].kind for name in set(LOSSES) - NAMED_ELSEWHERE} == {"margin", "regression", "joint"}


def test_the_other_steps_are_done_for_every_loss():
    for name, cls in LOSSES.items():
        assert cls.__name__ in losses.__all__
        assert f'`"{name}"`' in (ROOT / "docs/guide/losses.md").read_text("utf-8")
        assert f"losses.{cls.__name__}\n" in (ROOT / "docs/api/index.md").read_text("utf-8")
        kinds = (
            (LinearSVR, SVR) if cls.kind == "regression" else (LinearSVC,) if cls.kind == "joint" else (LinearSVC, SVC)
        )
        assert all(f'"{name}"' in kind.__doc__ for kind in kinds)


def test_the_command_lists_every_loss():
    regression = {name for name, cls in LOSSES.items() if cls.kind == "regression"}
    assert set(_train_arguments.REGRESSION_LOSSES) == regression
    assert set(_train_arguments.LOSSES) == set(LOSSES) - regression


# ------------------------------------------------------------------------------------------- losses from elsewhere


@dataclass(frozen=True)
class Plain(Loss):
    """A loss of which nothing is known but its kind."""

    name: ClassVar[str] = "plain"
    kind: ClassVar[losses.Kind] = "margin"

    def scalar(self):
        return losses.Log().scalar()


@dataclass(frozen=True)
class PlainRegression(Plain):
    name: ClassVar[str] = "plain_regression"
    kind: ClassVar[losses.Kind] = "regression"

    def scalar(self):
        return losses.Huber(1.0).scalar()


@dataclass(frozen=True)
class PlainJoint(Plain):
    """Smooth, but without the link that Newton's method on joint losses needs."""

    name: ClassVar[str] = "plain_joint"
    kind: ClassVar[losses.Kind] = "joint"
    smooth: ClassVar[bool] = True

    def core(self, n_classes=2):
        return losses.Multinomial().core(n_classes)


@dataclass(frozen=True)
class Another(losses.Hinge):
    """One that has every fact of the hinge loss."""

    name: ClassVar[str] = "another"

    def scalar(self):
        return losses.Hinge().scalar()


@dataclass(frozen=True)
class AnotherTube(losses.EpsilonInsensitive):
    name: ClassVar[str] = "another_tube"

    def scalar(self):
        return losses.EpsilonInsensitive(self.epsilon).scalar()


@dataclass(frozen=True)
class AnotherSoftmax(losses.Multinomial):
    name: ClassVar[str] = "another_softmax"


#: Each with a loss of the package that has the same formula.
TWINS = {
    Plain: losses.Log(),
    PlainRegression: losses.Huber(1.0),
    PlainJoint: losses.Multinomial(),
    Another: losses.Hinge(),
    AnotherTube: losses.EpsilonInsensitive(0.1),
    AnotherSoftmax: losses.Multinomial(),
}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
REAL = X @ [1.0, -2.0, 0.5] + 0.3 * RNG.normal(size=60)
LABELS = np.digitize(REAL, [-1.0, 1.0])


@pytest.fixture(params=list(TWINS), ids=lambda cls: cls.name)
def toy(request, monkeypatch):
    monkeypatch.setitem(LOSSES, request.param.name, request.param)
    return request.param


def estimator(cls, kernel, **parameters):
    kind = (SVR if kernel else LinearSVR) if cls.kind == "regression" else (SVC if kernel else LinearSVC)
    more = {"epsilon": 0.1} if cls.kind == "regression" else {}
    return kind(random_state=0, max_iter=20, **more, **parameters)


def fit(model):
    return model.fit(X, REAL if isinstance(model, LinearSVR | SVR) else LABELS)


@pytest.mark.parametrize("solver", SOLVERS)
def test_linear_solvers_accept_or_refuse_by_name(toy, solver):
    """Whoever accepts a loss has bounds of the optimum of its twin, too."""
    free = "unregularized" in SOLVERS[solver].intercepts
    how = {"solver": solver, "intercept": "unregularized" if free else "feature"}
    model = estimator(toy, False, loss=toy.name, **how)
    if toy.name not in SOLVERS[solver].losses:
        with pytest.raises(ValueError, match=f"solver '{solver}' cannot minimise loss '{toy.name}'; it can "):
            fit(model)
        return
    bounds = fit(model).certificate_
    twin = fit(estimator(toy, False, loss=TWINS[toy], **how)).certificate_
    assert bounds.dual <= twin.primal * (1 + 1e-9)
    assert twin.dual <= bounds.primal * (1 + 1e-9)


@pytest.mark.parametrize("solver", ["auto", *KERNEL_SOLVERS])
def test_kernel_solvers_accept_or_refuse_by_name(toy, solver):
    model = estimator(toy, True, loss=toy.name, solver=solver)
    if toy.kind == "joint":
        with pytest.raises(ValueError, match=f"loss='{toy.name}' is not for SVC"):
            fit(model)
    elif solver != "auto" and toy.name not in resolve(solver, "kernel").losses:
        with pytest.raises(ValueError, match=f"solver '{solver}' cannot minimise loss '{toy.name}' with a kernel"):
            fit(model)
    else:
        bounds = fit(model).certificate_
        twin = fit(estimator(toy, True, loss=TWINS[toy], solver=solver)).certificate_
        assert bounds.dual <= twin.primal * (1 + 1e-9)
        assert twin.dual <= bounds.primal * (1 + 1e-9)


def test_who_accepts_what():
    """By facts: nothing but its formula is needed of a loss by the first-order solvers."""
    with pytest.MonkeyPatch.context() as patch:
        for cls in TWINS:
            patch.setitem(LOSSES, cls.name, cls)
        able = {name: {cls.name for cls in TWINS if cls.name in solver.losses} for name, solver in SOLVERS.items()}
        kernel = {
            name: {cls.name for cls in TWINS if cls.name in resolve(name, "kernel").losses} for name in KERNEL_SOLVERS
        }
    everything = {cls.name for cls in TWINS}
    scalar = everything - {"plain_joint", "another_softmax"}
    assert able.pop("interior_point") == {"another", "another_tube", "another_softmax"}
    assert able.pop("smoothed_newton") == {"another", "another_tube"}
    assert able.pop("cutting_plane") == scalar
    assert able.pop("lbfgs") == set()  # it needs to be told that a loss is smooth
    assert able.pop("passive_aggressive") == {"another", "another_tube"}
    assert set(map(frozenset, able.values())) == {frozenset(everything)}
    assert kernel["smo"] == kernel["lasvm"] == {"another", "another_tube"}
    assert kernel["sbp"] == {"another"}
    assert kernel["sdca"] == kernel["pegasos"] == kernel["nystroem"] == scalar


@pytest.mark.parametrize("kernel", [False, True])
@pytest.mark.parametrize("by_name", [False, True])
def test_files(toy, kernel, by_name, tmp_path, monkeypatch):
    """Saved and loaded while the loss is in the table, refused by name once it is not."""
    if kernel and toy.kind == "joint":
        return
    model = fit(estimator(toy, kernel, loss=toy.name if by_name else toy()))
    path = tmp_path / "model"
    pegasos.save(model, path)
    assert np.array_equal(pegasos.load(path).predict(X), model.predict(X))
    monkeypatch.delitem(LOSSES, toy.name)
    with pytest.raises(ValueError, match=toy.name):
        pegasos.load(path)


def test_liblinear_refuses_by_name(toy, tmp_path):
    model = fit(estimator(toy, False, loss=toy()))
    if toy.liblinear is None:
        with pytest.raises(ValueError, match=f"loss '{toy.name}' cannot be written as a LIBLINEAR model, .* hinge, "):
            write_liblinear(model, tmp_path / "model")
        assert not (tmp_path / "model").exists()
    else:
        write_liblinear(model, tmp_path / "model")
        assert np.array_equal(pegasos.io.read_liblinear(tmp_path / "model").predict(X), model.predict(X))


@pytest.mark.parametrize("kernel", [False, True])
def test_onnx_has_probabilities_where_there_is_a_link(toy, kernel):
    pytest.importorskip("onnx")
    if kernel and toy.kind == "joint":
        return
    model = fit(estimator(toy, kernel, loss=toy()))
    assert hasattr(model, "predict_proba") == (toy.link is not None)
    outputs = {output.name for output in to_onnx(model).graph.output}
    assert ("probabilities" in outputs) == (toy.link is not None)
    assert ("label" in outputs) == (toy.kind != "regression")


def test_the_command_takes_it(toy):
    words = ["train", "data", "-m", "model", "--loss", toy.name, *["--regression"] * (toy.kind == "regression")]
    plan = Plan.of(_parser.parse(words))
    assert plan.parameters["loss"] == toy.name
    with pytest.raises(ValueError, match=f"it can be hinge, .*, {toy.name}$"):
        Plan.of(_parser.parse([*words, "--loss", "nonsense"]))
