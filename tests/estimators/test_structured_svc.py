"""StructuredSVC: a full estimator around any oracle."""

from __future__ import annotations

import os
import pickle
import signal
import warnings

import numpy as np
import pytest
import structured_oracles as so
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_validate
from structured_fits import SOLVERS, X, Y, fitted, outcome

from pegasos import BlockFrankWolfe, CuttingPlane, Pegasos, StructuredSVC

# --- the way of a fit ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_fit(solver):
    weight = np.random.default_rng(0).uniform(0.5, 2, len(X))
    model = StructuredSVC(so.Tags(), C=0.5, solver=solver, tol=0.1, max_iter=500).fit(X, Y, sample_weight=weight)
    lam = 1 / (0.5 * weight.sum())
    assert model.lam_ == pytest.approx(lam)
    planes = so.Tags().bind(X, Y).planes
    c, star = model.certificate_, so.optimum(planes, lam, weight)
    assert c.converged
    assert c.primal == pytest.approx(so.objective(planes, model.coef_, lam, weight))
    assert c.dual <= star * (1 + 1e-9) <= c.primal * (1 + 2e-9)
    assert model.n_iter_ == int(np.ceil(c.epochs))
    assert len(model.trace_) >= 1
    assert model.oracle_ is model.oracle
    predicted = model.predict(X)
    assert model.score(X, Y, weight) == pytest.approx(-np.average(so.Tags().loss(Y, predicted), weights=weight))


def test_lam_and_C_are_the_same():
    assert outcome(fitted(C=2.0)) == outcome(fitted(lam=1 / (2.0 * len(X))))


def test_an_oracle_that_has_its_rows():
    bound = so.Tags().bind(X, Y)
    model = StructuredSVC(bound).fit()
    assert outcome(model) == outcome(fitted())
    assert not hasattr(model, "predict")
    with pytest.raises(AttributeError, match=r"has no method predict"):
        model.predict(X)
    with pytest.raises(ValueError, match=r"no method bind\(X, y\): its rows are its own"):
        StructuredSVC(bound).fit(X, Y)


class Learning:
    """Learns at binding which tags there are, and how many."""

    def __init__(self, labels=None):
        self.labels = labels

    def bind(self, X, y):
        bound = so.Tags(labels=1 + max(int(t.max()) for t in y)).bind(X, y)
        bound.predictor = so.Tags(labels=bound.model.labels)
        return bound


def test_what_binding_learns_predicts():
    model = StructuredSVC(Learning())
    assert not hasattr(model, "predict")
    model.fit(X, Y)
    assert model.oracle_ == so.Tags(labels=3)
    assert model.oracle.labels is None
    assert model.score(X, Y) == fitted().score(X, Y)


def test_errors_before_a_fit():
    with pytest.raises(NotFittedError):
        StructuredSVC(so.Tags()).predict(X)
    with pytest.raises(ValueError, match="is a class: make an object of it"):
        StructuredSVC(so.Tags).fit(X, Y)
    with pytest.raises(ValueError, match=r"has neither a method bind\(X, y\) nor decode\(w, rows\)"):
        StructuredSVC("crf").fit(X, Y)
    with pytest.raises(ValueError, match="fit needs X and y"):
        StructuredSVC(so.Tags()).fit()
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        StructuredSVC(so.Tags()).fit(X, Y[:-1])
    with pytest.raises(ValueError, match="solver='smo' is unknown"):
        StructuredSVC(so.Tags(), solver="smo").fit(X, Y)
    for name, bad in {"C": 0, "lam": -1.0, "tol": -1, "max_iter": 0, "warm_start": 3, "on_interrupt": "stop"}.items():
        with pytest.raises(ValueError, match=f"{name}="):
            StructuredSVC(so.Tags(), **{name: bad}).fit(X, Y)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(3), r"sample_weight has shape \(3,\)"),
        (-np.ones(10), "sample_weight is negative at row 0"),
        (np.full(10, np.nan), "not finite at row 0"),
        (np.zeros(10), "zero for every row"),
    ],
)
def test_weights_that_are_wrong(weight, message):
    with pytest.raises(ValueError, match=message):
        StructuredSVC(so.Tags()).fit(X, Y, sample_weight=weight)


class Lying(so.Tags):
    """Answers wrongly about one row, once the weights are not zero."""

    def bind(self, X, y):
        bound = super().bind(X, y)
        honest = bound.decode

        def decode(w, rows):
            psi, loss = honest(w, rows)
            if w.any() and 4 in rows:
                psi = psi.toarray()
                psi[rows == 4] = np.nan
            return psi, loss

        bound.decode = decode
        return bound


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_lie_leaves_the_estimator_as_it_was(solver):
    model = fitted(solver=solver, max_iter=20)
    before = dict(vars(model))
    model.oracle = Lying()
    with pytest.raises(ValueError, match="psi of row 4 has nan in column 0"):
        model.fit(X, Y)
    assert vars(model) == before | {"oracle": model.oracle}


# --- approximate oracles ---------------------------------------------------------------------------------------------


class Lazy(so.Tags):
    """Looks at every third labelling only, and says so."""

    def bind(self, X, y):
        bound = so.Tags(exact=False).bind(X, y)
        bound.planes = [(psi[::3], loss[::3]) for psi, loss in bound.planes]
        return bound


@pytest.mark.parametrize("tol", [1e-12, 1e-2, 0.5, 10.0])
@pytest.mark.parametrize("solver", SOLVERS)
def test_an_approximate_oracle_is_never_certified(solver, tol):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = StructuredSVC(Lazy(), solver=solver, tol=tol, max_iter=100).fit(X, Y)
    c = model.certificate_
    assert not c.converged
    assert (c.primal, c.gap) == (np.inf, np.inf)
    assert "the oracle is not exact, so that the objective is unknown and nothing is certified" in c.reason
    star = so.optimum(so.Tags().bind(X, Y).planes, model.lam_)
    assert 0 <= c.dual <= star * (1 + 1e-9)  # labellings are labellings, whoever finds them
    if tol >= 1e-2 and solver != "pegasos":
        assert c.goal_reached
        assert c.reason.startswith("the oracle is approximate: the gap to the labellings that it finds is within tol")


def test_a_limit_is_named_for_approximate_oracles_too():
    with pytest.warns(ConvergenceWarning, match=r"\(max_iter reached\).*Note that the oracle is not exact"):
        model = StructuredSVC(Lazy(), tol=1e-12, max_iter=2).fit(X, Y)
    assert model.certificate_.reason.startswith("max_iter reached; the oracle is not exact")


def test_a_fit_with_an_approximate_oracle_goes_on(tmp_path):
    """Its lower bound may be above what it thinks P(0) is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        how = {"tol": 0.0, "lam": 10.0}
        straight = StructuredSVC(Lazy(), max_iter=6, **how).fit(X, Y)
        path = tmp_path / "run.ckpt"
        resumed = [StructuredSVC(Lazy(), max_iter=k, checkpoint=path, **how).fit(X, Y) for k in (3, 6)][1]
    np.testing.assert_array_equal(resumed.coef_, straight.coef_)
    assert resumed.certificate_.dual == straight.certificate_.dual


def test_projections_need_an_objective():
    with pytest.raises(ValueError, match="projection=True needs an exact oracle"):
        StructuredSVC(Lazy(), solver=Pegasos(projection=True)).fit(X, Y)


def test_an_oracle_that_contradicts_itself_is_refused():
    class Wrong(Lazy):
        def bind(self, X, y):
            bound = super().bind(X, y)
            few, everything = bound.planes, so.Tags().bind(X, y).planes
            bound.exact, honest = True, bound.decode

            def decode(w, rows):  # it tries harder for single rows
                bound.planes = everything if len(rows) == 1 else few
                return honest(w, rows)

            bound.decode = decode
            return bound

    with pytest.raises(ValueError, match=r"oracle\.decode does not maximise"):
        StructuredSVC(Wrong(), solver="block_frank_wolfe").fit(X, Y)


# --- a citizen of scikit-learn ---------------------------------------------------------------------------------------


def test_clones_and_pickles():
    model = StructuredSVC(so.Tags(first=2.0), C=3.0, solver=Pegasos(batch_size=2), tol=0.3)
    copy = clone(model)
    assert copy.oracle == model.oracle
    assert copy.get_params() == model.get_params()
    model.fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    assert outcome(again) == outcome(model) == outcome(copy.fit(X, Y))
    assert [y.tolist() for y in again.predict(X)] == [y.tolist() for y in model.predict(X)]
    assert "Tags" in repr(model)


def test_parameters_reach_into_oracle_and_solver():
    model = StructuredSVC(so.Tags(), solver="block_frank_wolfe")
    assert model.get_params()["oracle__first"] == 1.0
    model.set_params(oracle__first=4.0, solver__batch_size=3)
    assert model.oracle == so.Tags(first=4.0)
    assert model.solver == BlockFrankWolfe(batch_size=3)
    with pytest.raises(ValueError, match=r"oracle__labels: oracle=.* has no parameters of its own; .* a dataclass"):
        StructuredSVC(Learning()).set_params(oracle__labels=3)
    with pytest.raises(ValueError, match=r"oracle__frist: .*did you mean 'first'"):
        model.set_params(oracle__frist=1.0)


def test_cross_validation():
    scores = cross_validate(StructuredSVC(so.Tags(), tol=0.1), X, Y, cv=3, return_train_score=True)
    assert scores["test_score"].shape == (3,)
    assert (scores["train_score"] <= 0).all()


def test_grid_search():
    grid = {"C": [1e-3, 1.0], "oracle__first": [1.0, 2.0], "solver": ["auto", CuttingPlane(max_planes=30)]}
    search = GridSearchCV(StructuredSVC(so.Tags(), tol=0.2, max_iter=100), grid, cv=2).fit(X, Y)
    assert len(search.cv_results_["params"]) == 8
    assert search.best_estimator_.certificate_.converged
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])


def test_a_score_needs_a_loss_of_each_row():
    class Summed(so.Tags):
        def loss(self, y, y_hat):
            return super().loss(y, y_hat).sum()

    model = StructuredSVC(Summed()).fit(X, Y)
    with pytest.raises(ValueError, match=r"must return a loss for each row, but has shape \(\)"):
        model.score(X, Y)


# --- what surrounds every fit ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
def test_callbacks(solver):
    seen = []

    def callback(checkpoint):
        seen.append(checkpoint)
        checkpoint.coef[:] = 7.0  # its own copy
        return len(seen) == 3

    model = StructuredSVC(so.Tags(), solver=solver, tol=1e-12, callback=callback).fit(X, Y)
    assert len(seen) == len(model.trace_) == 3
    assert model.certificate_.reason == "stopped by the callback"
    assert not (model.coef_ == 7).any()
    planes = so.Tags().bind(X, Y).planes
    assert seen[-1].primal == pytest.approx(so.objective(planes, model.coef_, model.lam_))


def test_a_fit_that_stops_early_warns():
    with pytest.warns(ConvergenceWarning) as caught:
        model = StructuredSVC(so.Tags(), tol=1e-9, max_iter=2).fit(X, Y)
    (warning,) = caught
    assert warning.filename == __file__
    text = str(warning.message)
    assert text.startswith(
        "StructuredSVC stopped before the gap reached tol=1e-09 times the objective (max_iter reached)"
    )
    assert "Raise max_iter or max_time" in text
    assert model.n_iter_ == 2


def test_max_time():
    model = fitted(tol=0.0, max_time=0.05, max_iter=10**9, solver="pegasos")
    assert model.certificate_.reason == "max_time reached"


@pytest.mark.parametrize("solver", ["auto", "cutting_plane"])
def test_the_end_of_accuracy_is_noticed(solver):
    model = fitted(tol=0.0, max_iter=3000, solver=solver)
    assert model.certificate_.relative_gap < 1e-12
    assert model.certificate_.epochs < 300


def test_verbose(capsys):
    fitted(verbose=True, tol=0.1)
    assert "relative gap" in capsys.readouterr().err


class Interrupted(so.Tags):
    """Ctrl-C, when so many rows have been decoded."""

    rows = 85

    def bind(self, X, y):
        bound = super().bind(X, y)
        honest, left = bound.decode, [self.rows]

        def decode(w, rows):
            before, left[0] = left[0], left[0] - len(rows)
            if left[0] <= 0 < before:
                os.kill(os.getpid(), signal.SIGINT)
            return honest(w, rows)

        bound.decode = decode
        return bound


@pytest.mark.parametrize("file", [False, True])
@pytest.mark.parametrize("solver", SOLVERS)
def test_interrupts(solver, file, interruptible, tmp_path):
    path = tmp_path / "run.ckpt" if file else None
    how = {"solver": solver, "tol": 1e-12, "max_iter": 200, "checkpoint": path}
    model = StructuredSVC(Interrupted(), **how)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert not hasattr(model, "coef_")
    assert file == (path is not None and path.exists())
    if file:
        assert outcome(fitted(how)) == outcome(fitted(how | {"checkpoint": None}))
        path.unlink(missing_ok=True)
    model = StructuredSVC(Interrupted(), **how, on_interrupt="keep").fit(X, Y)
    c = model.certificate_
    assert (c.reason, c.converged) == ("interrupted", False)
    planes = so.Tags().bind(X, Y).planes
    star = so.optimum(planes, model.lam_)
    assert c.dual <= star * (1 + 1e-9) <= c.primal * (1 + 2e-9)
    assert c.primal == pytest.approx(so.objective(planes, model.coef_, model.lam_))


def test_an_oracle_that_forgets_the_loss_is_told_so():
    class Forgets:
        def bind(self, X, y):
            self.X, self.y = X, y
            self.n_rows, self.size = X.shape
            return self

        def decode(self, w, rows):
            yx = self.y[rows, None] * self.X[rows]
            wrong = yx @ w < 0
            return yx * wrong[:, None], wrong.astype(float)

    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.warns(UserWarning, match="must maximise the loss plus the score"):
        StructuredSVC(Forgets()).fit(X, np.sign(X[:, 0]))
