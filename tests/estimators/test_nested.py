"""Parameters of solvers and losses through scikit-learn's ``get_params`` and ``set_params``."""

import pickle
from dataclasses import dataclass, fields

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pegasos
from pegasos import SDCA, SMO, SVC, SVR, LinearSVC, LinearSVR, Nystroem, Pegasos, SparseSVC
from pegasos.losses import LOSSES, CrammerSinger, EpsilonInsensitive, Hinge, Huber, SmoothedHinge
from pegasos.solvers import KERNEL_SOLVERS, SOLVERS, Auto, Solver

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 3))
T = X @ [1.0, -0.5, 0.25] + 0.3 * RANDOM.normal(size=60)
Y = (T > 0).astype(int)
ALL = [LinearSVC, LinearSVR, SVC, SVR, SparseSVC]


# --- get_params ------------------------------------------------------------------------------------------------------


def test_objects_show_their_parameters():
    model = LinearSVR(solver=Pegasos(batch_size=8), loss=Huber(2.0))
    shallow, deep = model.get_params(deep=False), model.get_params()
    own = {f"solver__{f.name}": getattr(model.solver, f.name) for f in fields(Pegasos)}
    assert deep == shallow | own | {"loss__delta": 2.0}
    assert not [name for name in shallow if "__" in name]


@pytest.mark.parametrize("kind", ALL)
def test_names_show_none(kind):
    """So that what get_params returns, set_params leaves as it is."""
    model = kind()
    assert model.get_params() == model.get_params(deep=False)
    assert model.set_params(**model.get_params()).get_params() == kind().get_params()


def test_what_get_params_returns_can_be_set():
    model = LinearSVR(solver=Pegasos(batch_size=8, t0=3.0), loss=Huber(2.0), C=3.0)
    assert LinearSVR().set_params(**model.get_params()).get_params() == model.get_params()


# --- set_params ------------------------------------------------------------------------------------------------------


def test_objects_are_replaced():
    solver = Pegasos(batch_size=8, projection=True)
    model = LinearSVC(solver=solver)
    assert model.set_params(solver__batch_size=32, C=2.0) is model
    assert model.solver == Pegasos(batch_size=32, projection=True)
    assert model.C == 2.0
    assert solver == Pegasos(batch_size=8, projection=True)  # it may be somebody else's, too


@pytest.mark.parametrize("table", [SOLVERS, KERNEL_SOLVERS, LOSSES], ids=["linear", "kernel", "losses"])
def test_every_parameter_of_every_object(table):
    """By name and as an object, each can be set to what it is."""
    name = "loss" if table is LOSSES else "solver"
    for key, kind in table.items():
        for given in (key, kind()):
            for field in fields(kind):
                model = SVC() if table is KERNEL_SOLVERS else LinearSVR()
                model.set_params(**{name: given, f"{name}__{field.name}": getattr(kind(), field.name)})
                assert getattr(model, name) == kind()


def test_a_name_becomes_the_object():
    assert LinearSVC(solver="pegasos").set_params(solver__batch_size=16).solver == Pegasos(batch_size=16)
    assert LinearSVC().set_params(solver__blocks=4).solver == Auto(blocks=4)
    assert SVC(solver="nystroem").set_params(solver__n_components=7).solver == Nystroem(n_components=7)
    assert SVC(loss="smoothed_hinge").set_params(loss__gamma=0.5).loss == SmoothedHinge(0.5)
    # The tube of a loss given by name is the estimator's; from now on it is the loss's.
    model = LinearSVR(epsilon=0.5).set_params(loss__epsilon=0.25)
    assert (model.loss, model.epsilon) == (EpsilonInsensitive(0.25), 0.5)


@pytest.mark.parametrize("solver", ["sdca", SDCA()], ids=repr)
def test_object_and_parameter_in_one_call(solver):
    """In either order: the parameter is that of the new solver."""
    for names in (("solver", "solver__shrinking"), ("solver__shrinking", "solver")):
        given = {"solver": solver, "solver__shrinking": False}
        model = LinearSVC(solver=Pegasos()).set_params(**{name: given[name] for name in names})
        assert model.solver == SDCA(shrinking=False)


def test_own_solvers_can_be_set():
    @dataclass(frozen=True)
    class Mine(Solver):
        name = "mine"
        speed: float = 1.0

    assert LinearSVC(solver=Mine()).set_params(solver__speed=2.0).solver == Mine(2.0)


#: An estimator, the parameter set, and what is said.
WRONG = [
    (
        LinearSVC(solver="pegasos"),
        "solver__batchsize",
        r"solver__batchsize: solver='pegasos' has no parameter 'batchsize' \(did you mean 'batch_size'\?\); it has ba",
    ),
    (LinearSVC(solver=SDCA()), "solver__shrink", r"'shrink' \(did you mean 'shrinking'\?\)"),
    (
        LinearSVC(),
        "solver__batch_size",
        "solver='auto' has no parameter 'batch_size'; it has blocks. 'pegasos', 'norma', .* have it: set solver",
    ),
    (
        SVC(),
        "solver__batch_size",
        "'auto' has no parameters of its own; set solver as well, to an object or one of smo",
    ),
    (SVC(solver="smo"), "solver__tau", "'lasvm' has it: set solver as well"),
    (LinearSVC(), "loss__epsilon", "'hinge' has no parameter 'epsilon'; it has none. 'epsilon_insensitive', "),
    (
        LinearSVC(loss=Hinge()),
        "loss__gama",
        r"Hinge\(\) has no parameter 'gama' \(did you mean 'gamma'\?\); it has none",
    ),
    (LinearSVC(solver="pegassos"), "solver__batch_size", r"'pegassos' has no .* \(did you mean 'pegasos'\?\)"),
    (LinearSVC(solver=None), "solver__batch_size", "solver=None has no parameters"),
    (LinearSVC(solver=Pegasos), "solver__batch_size", "has no parameters of its own"),
    (LinearSVC(solver="pegasos"), "solver__t0__x", "no parameter 't0__x'"),
    (LinearSVC(solver="pegasos"), "solver__batch_size", "Pegasos: batch_size=-1 must be"),
    (SparseSVC(), "loss__gamma", "Invalid parameter 'loss'"),
    (LinearSVC(), "solvr__batch_size", "Invalid parameter 'solvr'"),
]


@pytest.mark.parametrize(
    ("model", "name", "message"), WRONG, ids=[f"{name}, {k}" for k, (_, name, _) in enumerate(WRONG)]
)
def test_what_is_wrong_is_said_and_changes_nothing(model, name, message):
    before = model.get_params()
    with pytest.raises(ValueError, match=message):
        model.set_params(**{name: -1, "C": 7.0})
    assert model.get_params() == before


# --- where scikit-learn uses them ------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["pegasos", Pegasos(projection=True)], ids=repr)
def test_a_search_over_the_size_of_batches(solver):
    base = LinearSVC(lam=0.1, solver=solver, tol=0.1)
    search = GridSearchCV(base, {"solver__batch_size": [1, 4, 16]}, cv=2).fit(X, Y)
    assert isinstance(search.best_estimator_.solver, Pegasos)
    assert search.best_estimator_.solver.batch_size == search.best_params_["solver__batch_size"]
    assert base.solver == solver
    for size, mean in zip([1, 4, 16], search.cv_results_["mean_test_score"], strict=True):
        one = LinearSVC(lam=0.1, solver=Pegasos(batch_size=size, projection=solver != "pegasos"), tol=0.1)
        assert mean == GridSearchCV(one, {"C": [1.0]}, cv=2).fit(X, Y).best_score_


@pytest.mark.parametrize("model", [LinearSVR(), LinearSVR(loss=EpsilonInsensitive()), SVR()], ids=repr)
def test_a_search_over_the_tube(model):
    tubes = [0.0, 0.5, 2.0]
    search = GridSearchCV(model, {"loss__epsilon": tubes, "C": [1.0]}, cv=3).fit(X, T)
    named = clone(model).set_params(loss="epsilon_insensitive")
    expected = GridSearchCV(named, {"epsilon": tubes}, cv=3).fit(X, T)
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"])
    assert search.best_estimator_.loss == EpsilonInsensitive(search.best_params_["loss__epsilon"])


def test_searches_over_solvers_and_their_parameters():
    grid = [
        {"solver": ["pegasos"], "solver__batch_size": [2, 4]},
        {"solver": [SDCA()], "solver__shrinking": [True, False]},
    ]
    search = GridSearchCV(LinearSVC(tol=0.1), grid, cv=2).fit(X, Y)
    assert len(search.cv_results_["params"]) == 4
    RandomizedSearchCV(SVC(solver=SMO()), {"solver__working_set": [4, 8]}, n_iter=2, cv=2, random_state=0).fit(X, Y)


def test_in_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), LinearSVC(solver=Pegasos()))
    assert pipeline.get_params()["linearsvc__solver__batch_size"] == 1
    pipeline.set_params(linearsvc__solver__batch_size=8, linearsvc__loss="log")
    assert pipeline[-1].solver == Pegasos(batch_size=8)


MODELS = [
    LinearSVC(solver=Pegasos(batch_size=4), tol=0.1),
    LinearSVC(loss=CrammerSinger(((0.0, 1.0), (2.0, 0.0)))),
    LinearSVR(loss=Huber(2.0), solver=SDCA()),
    SVC(solver=SMO(working_set=8)),
    SparseSVC(solver=SMO(), max_support=4),
    SVR(loss=Huber(0.5)),
]


@pytest.mark.parametrize("model", MODELS, ids=[f"{type(m).__name__} {k}" for k, m in enumerate(MODELS)])
def test_copies(model, tmp_path):
    """clone, repr, pickle and model files have the objects, and nothing beside; scikit-learn's checks run elsewhere."""
    fitted = clone(model).fit(X, T if isinstance(model, LinearSVR | SVR) else Y)
    pegasos.save(fitted, tmp_path / "model")
    for again in (clone(model), pickle.loads(pickle.dumps(fitted)), pegasos.load(tmp_path / "model")):
        assert again.get_params() == model.get_params()
    assert "__" not in repr(model)
    assert type(model).__name__ in model._repr_html_()
    assert eval(repr(model), globals()).get_params() == model.get_params()
