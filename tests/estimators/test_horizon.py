"""T steps or a part of an epoch, an estimate in place of the certificate, and rows that are not looked at."""

import re
import warnings

import numpy as np
import oracles as o
import pytest
import sklearn
import structured_fits
import structured_oracles as so
from batch_oracles import batches
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.stats import t as student

import pegasos
from pegasos import SGD, SVC, LinearSVC, LinearSVR, Norma, Pegasos, SequenceSVC, StructuredSVC, _core
from pegasos.estimators.drawn import judged_rows
from pegasos.io import open_dataset, write_dataset
from pegasos.losses import CustomLoss
from pegasos.rows.views import view

LAM = 0.05
VOUCHED = {"assume_finite": True}


def rows(m=4000, n=6, *, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n))
    scores = X @ rng.standard_normal((n, classes)) + 0.5 * rng.standard_normal((m, classes))
    return X, scores.argmax(axis=1)


def few(T=50, n=40, k=1, **more):
    return Pegasos(max_steps=T, estimate=n, batch_size=k, **more)


def fit(model, X, *y, vouched=True, **more):
    with sklearn.config_context(assume_finite=vouched):
        return model.fit(X, *y, **more)


def visited(X, T, n, *, k=1, sampling="iid", seed=0):
    """The rows of the steps, and those judged by."""
    order = np.empty(T * k, dtype=np.int64)
    _core.write_first_visits(view(X), sampling, seed, k, order)
    return order, judged_rows(X.shape[0], n, seed)


# ------------------------------------------------------------------------------------------------------- T in steps


@pytest.mark.parametrize("T", [1, 7, 40, 57])
@pytest.mark.parametrize("k", [1, 4, 7, 60])
@pytest.mark.parametrize("sampling", ["permutation", "subset", "iid"])
def test_so_many_steps_of_figure_1_and_2(T, k, sampling):
    X, y = rows(60)
    solver = Pegasos(max_steps=T, batch_size=k, t0=0, sampling=sampling)
    model = LinearSVC(solver=solver, lam=LAM, fit_intercept=False, tol=0).fit(X, y)
    steps = batches(60, T, k=k, sampling=sampling)[:T]
    assert_allclose(model.coef_[0], o.pegasos(X, 2 * y - 1, steps, lam=LAM)[-1], rtol=1e-12, atol=1e-12)
    c = model.certificate_
    assert (c.reason, c.goal_reached, c.converged) == ("max_steps reached", True, False)
    # A batch that runs over the end of an epoch counts as the end.
    assert c.epochs in (T * k / 60, T * k // 60)
    best = o.optimum(X, 2 * y - 1, loss="hinge", lam=LAM, bias="none")
    assert c.dual <= best.primal + 1e-9 <= c.primal + 2e-9
    assert_allclose(c.primal, o.primal(X, 2 * y - 1, model.coef_[0], loss="hinge", lam=LAM), rtol=1e-12)


@pytest.mark.parametrize("T", [1, 7, 57])
def test_a_loss_of_ones_own_makes_so_many_steps(T):
    X, y = rows(60)
    own = CustomLoss(lambda z, y: np.maximum(0, 1 - y * z), lambda z, y: -y * (y * z < 1))
    solver = Pegasos(max_steps=T, batch_size=7, t0=0, sampling="permutation")
    ours, core = (LinearSVC(loss=loss, solver=solver, lam=LAM, tol=0).fit(X, y) for loss in (own, "hinge"))
    assert_allclose(ours.coef_, core.coef_, rtol=1e-9)
    assert ours.certificate_.reason == core.certificate_.reason == "max_steps reached"
    assert ours.certificate_.epochs == core.certificate_.epochs
    with pytest.raises(ValueError, match="estimate is not for a CustomLoss"):
        LinearSVC(loss=own, solver=Pegasos(batch_size=7, estimate=20)).fit(X, y)


@pytest.mark.parametrize("limit", ["max_steps", "estimate"])
def test_a_search_for_the_bias_makes_many_runs(limit):
    X, y = rows(60)
    with pytest.raises(ValueError, match=f"{limit} is not for intercept='search'"):
        LinearSVC(solver=Pegasos(**{limit: 20}), intercept="search").fit(X, y)


@pytest.mark.parametrize("sampling", ["iid", "subset", "permutation"])
@pytest.mark.parametrize("k", [1, 7])
def test_first_visits_are_those_of_the_first_steps(sampling, k):
    order, _ = visited(rows(400)[0], 5, 1, k=k, sampling=sampling)
    assert_array_equal(order, np.concatenate(batches(400, 1, k=k, sampling=sampling)[:5]))


def test_the_other_two_make_so_many_steps():
    X, y = rows(60)
    order = _core.epoch_order(60, "iid", 0, 0)[:25]
    options = {"max_steps": 25, "sampling": "iid"}
    for solver, w in (
        (Norma(p=0.5, **options), o.norma(X, 2 * y - 1, order, lam=LAM, p=0.5)[-1]),
        (SGD(eta=0.1, **options), o.sgd(X, 2 * y - 1, order, lam=LAM, eta=0.1)[-1]),
    ):
        model = LinearSVC(solver=solver, lam=LAM, fit_intercept=False, tol=0).fit(X, y)
        assert_allclose(model.coef_[0], w, rtol=1e-12, atol=1e-12)


def test_more_classes_than_lanes_step_together():
    X, y = rows(200, classes=11)
    some, all_of_one = (
        LinearSVC(solver=Pegasos(max_steps=T, t0=0, sampling="fixed"), lam=LAM, tol=0, fit_intercept=False).fit(X, y)
        for T in (130, 200)
    )
    order = _core.epoch_order(200, "fixed", 0, 0)
    for k in (0, 10):
        w = o.pegasos(X, np.where(y == k, 1, -1), order[:, None], lam=LAM)
        assert_allclose(some.coef_[k], w[130], rtol=1e-12, atol=1e-12)
        assert_allclose(all_of_one.coef_[k], w[200], rtol=1e-12, atol=1e-12)


def test_a_limit_of_epochs_or_the_gap_may_come_first():
    X, y = rows(60)
    solver = Pegasos(max_steps=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LinearSVC(solver=solver, lam=LAM, tol=0, max_iter=2).fit(X, y)
    assert (model.certificate_.reason, model.certificate_.epochs) == ("max_iter reached", 2.0)
    model = LinearSVC(solver=solver, lam=LAM, tol=0.9).fit(X, y)
    assert model.certificate_.converged
    assert not model.certificate_.goal_reached


def test_a_fit_of_so_many_steps_has_nothing_left_to_do():
    X, y = rows(60)
    model = LinearSVC(solver=Pegasos(max_steps=70), lam=LAM, tol=0, warm_start=True).fit(X, y)
    before, epochs = model.coef_.copy(), model.certificate_.epochs
    model.fit(X, y)
    assert_array_equal(model.coef_, before)
    assert model.certificate_.epochs == epochs


def test_a_checkpoint_within_an_epoch_goes_on_to_the_same_bits(tmp_path):
    X, y = rows(500)
    path = tmp_path / "run.ckpt"
    solver = Pegasos(max_steps=1700, output="average", batch_size=3)
    straight = LinearSVC(solver=solver, lam=LAM, tol=0).fit(X, y)
    cut = LinearSVC(solver=solver, lam=LAM, tol=0, max_iter=4.3, checkpoint=path)
    with pytest.warns(match="max_iter"):
        cut.fit(X, y)
    assert cut.certificate_.epochs == pytest.approx(4.3, abs=0.01)
    resumed = cut.set_params(max_iter=1000).fit(X, y)
    assert resumed.certificate_.reason == "max_steps reached"
    assert_array_equal(resumed.coef_, straight.coef_)
    assert_array_equal(resumed.intercept_, straight.intercept_)
    assert not path.exists()


def test_parts_of_an_epoch():
    X, y = rows(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for share, steps in ((0.25, 15), (0.7, 42), (1.5, 90), (1 / 3, 20), (1e-9, 1)):
            solver = Pegasos(sampling="fixed")
            part = LinearSVC(solver=solver, lam=LAM, tol=0, max_iter=share).fit(X, y)
            counted = LinearSVC(solver=Pegasos(sampling="fixed", max_steps=steps), lam=LAM, tol=0).fit(X, y)
            assert_array_equal(part.coef_, counted.coef_)
            assert part.certificate_.reason == "max_iter reached"
            assert part.certificate_.epochs == steps / 60
        for solver in ("norma", "sgd"):
            assert LinearSVC(solver=solver, lam=LAM, tol=0, max_iter=0.5).fit(X, y).certificate_.epochs == 0.5


def test_who_has_no_parts_of_an_epoch_says_so():
    X, y = rows(60)
    for solver in ("auto", "sdca", "interior_point", "cutting_plane", "smoothed_newton"):
        said = f"max_iter=0.25 must be a whole number >= 1: solver '{solver}' has no partial epochs"
        with pytest.raises(ValueError, match=re.escape(said)):
            LinearSVC(solver=solver, max_iter=0.25).fit(X, y)
    for bad in (0, -1, 0.0, -0.5, np.nan, np.inf, True, "many", None):
        with pytest.raises(ValueError, match="max_iter="):
            LinearSVC(solver="pegasos", max_iter=bad).fit(X, y)


@pytest.mark.parametrize("solver", [Pegasos, Norma, SGD])
@pytest.mark.parametrize(
    "bad", [{"max_steps": 0}, {"max_steps": 2.5}, {"max_steps": True}, {"estimate": 1}, {"estimate": "many"}]
)
def test_numbers_that_mean_nothing(solver, bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        solver(**bad)


@pytest.mark.parametrize("more", [{"max_steps": 5}, {"estimate": 5}])
def test_machines_that_have_neither(more):
    X, y = rows(60)
    name = next(iter(more))
    with pytest.raises(ValueError, match=f"Pegasos: {name}=5 has no meaning with a kernel"):
        SVC(solver=Pegasos(**more)).fit(X, y)
    with pytest.raises(ValueError, match=f"Pegasos: {name}=5 has no meaning with sequences"):
        SequenceSVC(solver=Pegasos(**more)).fit([["a", "b"]], [["A", "B"]])
    with pytest.raises(ValueError, match=f"Pegasos: {name}=5 has no meaning with an oracle"):
        StructuredSVC(so.Tags(), solver=Pegasos(**more)).fit(structured_fits.X, structured_fits.Y)
    with pytest.raises(ValueError, match="max_steps and estimate"):
        LinearSVC(solver=Pegasos(**more)).partial_fit(X, y, classes=[0, 1])


# ------------------------------------------------------------------------------------------------------ the estimate


@pytest.mark.parametrize("vouched", [False, True])
@pytest.mark.parametrize("more", [{}, {"intercept": "feature", "intercept_scaling": 0.5}, {"fit_intercept": False}])
def test_the_estimate_is_the_mean_of_those_rows(vouched, more):
    X, y = rows()
    c = np.random.default_rng(1).uniform(0.2, 3, len(y))
    model = fit(LinearSVC(solver=few(), C=1e-3, **more), X, y, sample_weight=c, vouched=vouched)
    _, judged = visited(X, 50, 40)
    assert model.lam_ == pytest.approx(1 / (1e-3 * c.sum()), rel=1e-12)
    z = X @ model.coef_[0] + model.intercept_[0]
    r = len(y) / c.sum() * c[judged] * np.maximum(0, 1 - (2 * y - 1) * z)[judged]
    w = np.append(model.coef_[0], model.intercept_[0] / 0.5 if more.get("intercept") == "feature" else 0)
    half = student.ppf(0.975, 39) * r.std(ddof=1) / np.sqrt(40)
    a = model.certificate_
    middle = model.lam_ / 2 * w @ w + r.mean()
    low = max(middle - half, model.lam_ / 2 * w @ w)
    assert_allclose((a.estimate, a.estimate_low, a.estimate_high), (middle, low, middle + half), rtol=1e-12)
    assert a.estimate_rows == 40


def test_an_estimate_is_no_certificate():
    X, y = rows()
    seen = []
    model = fit(LinearSVC(solver=few(), lam=LAM, callback=seen.append), X, y)
    c = model.certificate_
    assert (c.primal, c.dual, c.gap, c.relative_gap) == (np.inf, -np.inf, np.inf, np.inf)
    assert (c.primal_per_class, c.dual_per_class) == ((np.inf,), (-np.inf,))
    assert not c.converged
    assert c.goal_reached
    assert c.state == "not certified"
    assert str(c).startswith("not certified (max_steps reached): the objective is estimated as 0.")
    assert "from 40 rows drawn at random; 0.0125 epochs" in str(c)
    assert [point.primal for point in seen] == [point.primal for point in model.trace_] == [np.inf]
    assert_array_equal(seen[0].coef, model.coef_)


def test_a_certificate_has_no_estimate():
    c = LinearSVC(lam=LAM).fit(*rows(60)).certificate_
    assert (c.estimate, c.estimate_low, c.estimate_high, c.estimate_rows) == (None, None, None, None)


def test_a_part_of_an_epoch_and_an_estimate():
    X, y = rows()
    model = fit(LinearSVC(solver=few(None), lam=LAM, max_iter=0.0123), X, y)
    assert model.certificate_.epochs == 50 / 4000
    assert model.certificate_.reason == "max_iter reached"
    other = fit(LinearSVC(solver=few(50), lam=LAM), X, y)
    assert_array_equal(model.coef_, other.coef_)


def test_an_estimate_is_kept_in_model_files(tmp_path):
    model = fit(LinearSVC(solver=few(), lam=LAM), *rows())
    pegasos.save(model, tmp_path / "m.safetensors")
    again = pegasos.load(tmp_path / "m.safetensors")
    assert again.certificate_ == model.certificate_
    assert again.solver == model.solver


def test_a_checkpoint_and_a_warm_start_of_estimated_fits(tmp_path):
    X, y = rows()
    path = tmp_path / "run.ckpt"
    straight = fit(LinearSVC(solver=few(), lam=LAM, max_iter=0.01), X, y)
    cut = fit(LinearSVC(solver=few(), lam=LAM, max_iter=0.005, checkpoint=path, warm_start=True), X, y)
    assert (cut.certificate_.reason, cut.certificate_.epochs) == ("max_iter reached", 0.005)
    assert path.exists()
    fit(cut.set_params(max_iter=0.01), X, y)
    assert cut.certificate_.epochs == 0.01
    assert cut.score(X, y) == pytest.approx(straight.score(X, y), abs=0.05)  # the sizes of steps are of other rows
    path.unlink()
    before = cut.coef_.copy()
    fit(cut.set_params(max_iter=1000, checkpoint=None), X, y)
    assert (cut.certificate_.reason, cut.certificate_.epochs) == ("max_steps reached", 0.0125)
    assert not np.array_equal(cut.coef_, before)


def test_progress_lines_say_that_it_is_an_estimate(capsys):
    c = fit(LinearSVC(solver=few(), lam=LAM, verbose=True), *rows()).certificate_
    assert f"objective estimated as {c.estimate:.7g}" in capsys.readouterr().err


def test_interrupted_and_stopped_by_time():
    X, y = rows()
    endless = Pegasos(estimate=40)
    c = fit(LinearSVC(solver=endless, lam=LAM, max_iter=10**9, max_time=0.05), X, y).certificate_
    assert c.reason == "max_time reached"
    assert c.estimate > 0


# ---------------------------------------------------------------------------------------------- rows that are looked at


LAYOUTS = [np.asarray, lambda X: X.astype(np.float32), sparse.csr_matrix]
CHOICES = [
    {},
    {"k": 7},
    {"sampling": "permutation"},
    {"sampling": "fixed", "k": 3},
    {"output": "average"},
    {"output": "suffix"},
    {"output": "random"},
    {"projection": True},
]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_the_same_fit_whether_rows_are_taken_out_or_not(layout, choice):
    X, y = rows()
    X = layout(X)
    here, there = (fit(LinearSVC(solver=few(t0=0, **choice), lam=LAM), X, y, vouched=v) for v in (False, True))
    if choice.get("output") == "random":  # the better of two on all rows, and on those visited
        return assert_allclose(there.certificate_.epochs, here.certificate_.epochs)
    assert_array_equal(here.coef_, there.coef_)
    assert_array_equal(here.intercept_, there.intercept_)
    a, b = here.certificate_, there.certificate_
    assert_allclose((a.estimate, a.estimate_low, a.epochs), (b.estimate, b.estimate_low, b.epochs), rtol=1e-12)


def test_the_same_where_only_others_have_a_weight_other_than_one():
    X, y = rows()
    c = np.ones(len(y))
    unseen = np.setdiff1d(np.arange(len(y)), np.concatenate(visited(X, 50, 40)))
    c[unseen[:100]] = 70.0
    models = [fit(LinearSVC(solver=few(t0=0), C=1e-3), X, y, sample_weight=c, vouched=v) for v in (False, True)]
    assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-12)
    assert_allclose(models[0].certificate_.estimate, models[1].certificate_.estimate, rtol=1e-12)


@pytest.mark.parametrize("loss", ["hinge", "log", "crammer_singer"])
def test_the_same_of_several_classes(loss):
    X, y = rows(classes=3)
    y = np.array(["low", "middle", "top"])[y]
    models = [fit(LinearSVC(solver=few(t0=1, k=2), loss=loss, lam=LAM), X, y, vouched=v) for v in (False, True)]
    assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-12)
    assert_array_equal(models[0].classes_, models[1].classes_)
    assert_allclose(models[0].certificate_.estimate, models[1].certificate_.estimate, rtol=1e-12)


def test_the_same_of_regressions():
    X, y = rows()
    y = X[:, 0] + 0.1 * y
    models = [fit(LinearSVR(solver=few(t0=0), lam=LAM), X, y, vouched=v) for v in (False, True)]
    assert_array_equal(models[0].coef_, models[1].coef_)
    assert_allclose(models[0].certificate_.estimate, models[1].certificate_.estimate, rtol=1e-12)


def test_step_sizes_by_the_rows_that_were_seen_do_as_well():
    X, y = rows()
    models = [fit(LinearSVC(solver=few(400, 1000), lam=LAM), X, y, vouched=v) for v in (False, True)]
    best = LinearSVC(lam=LAM, tol=1e-6).fit(X, y).certificate_.dual
    for model in models:
        assert model.certificate_.estimate < 1.3 * best
    assert models[0].score(X, y) == pytest.approx(models[1].score(X, y), abs=0.02)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_other_row_is_looked_at(layout):
    """All others are made what no fit would accept: entries, column numbers, row pointers, labels."""
    X, y = rows()
    X, y = layout(X), y.astype(float)
    before = fit(LinearSVC(solver=few(), lam=LAM), X, y)
    unseen = np.setdiff1d(np.arange(len(y)), np.concatenate(visited(X, 50, 40)))
    y[unseen] = np.nan
    if sparse.issparse(X):
        for i in unseen:
            X.data[X.indptr[i] : X.indptr[i + 1]] = np.nan
            X.indices[X.indptr[i] : X.indptr[i + 1]] = 2**31 - 1
        lone = [i for i in unseen[1:-1] if {i - 1, i + 1} <= set(unseen)]
        X.indptr[lone] = -7
    else:
        X[unseen] = np.nan
    after = fit(LinearSVC(solver=few(), lam=LAM), X, y)
    assert_array_equal(after.coef_, before.coef_)
    assert after.certificate_.estimate == before.certificate_.estimate
    with pytest.raises(ValueError, match=r"NaN|indptr"):
        fit(LinearSVC(solver=few(), lam=LAM), X, y, vouched=False)


@pytest.mark.parametrize("which", [0, 1])
def test_what_is_met_is_checked_and_called_by_its_number(which):
    X, y = rows()
    met = int(visited(X, 50, 40)[which][10])
    model = LinearSVC(solver=few(), lam=LAM)
    bad = X.copy()
    bad[met, 2] = np.inf
    with pytest.raises(ValueError, match=f"infinity at row {met}, column 2"):
        fit(model, bad, y)
    labels = y.astype(float)
    labels[met] = np.nan
    with pytest.raises(ValueError, match=f"NaN at row {met}"):
        fit(model, X, labels)
    with pytest.raises(ValueError, match=f"NaN at row {met}"):
        fit(LinearSVR(solver=few(), lam=LAM), X, labels)
    words = np.where(y, "yes", "no").astype(object)
    words[met] = None
    with pytest.raises(ValueError, match=f"NaN at row {met}: a label is missing"):
        fit(model, X, words)
    mixed = ["yes" if label else "no" for label in y]
    mixed[met] = 3
    with pytest.raises(ValueError, match=f"y mixes text and other labels: .* row {met}"):
        fit(model, X, mixed)
    A = sparse.csr_matrix(X)
    A.indices[A.indptr[met] + 1] = 99
    with pytest.raises(ValueError, match=f"row {met} has column index 99"):
        fit(model, A, y)
    A = sparse.csr_matrix(X)
    A.indptr[met + 1] = 10**6
    with pytest.raises(ValueError, match=f"indptr is wrong at row {met}"):
        fit(model, A, y)
    c = np.ones(len(y))
    c[0] = -1
    with pytest.raises(ValueError, match="sample_weight is negative at row 0"):
        fit(model, X, y, sample_weight=c)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fit(model, X, y[:-1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fit(model, X, y.tolist()[:-1])


def test_columns_that_come_twice_are_summed():
    X, y = rows()
    A = sparse.csr_matrix(np.hstack([X, X]))
    A.indices[A.indices >= 6] -= 6
    B = sparse.csr_matrix((A.data, A.indices, A.indptr), shape=X.shape)
    twice = fit(LinearSVC(solver=few(t0=0), lam=LAM), B, y)
    plain = fit(LinearSVC(solver=few(t0=0), lam=LAM), 2 * X, y)
    assert_allclose(twice.coef_, plain.coef_, rtol=1e-12)


def test_classes_are_those_that_were_met():
    X, y = rows()
    order, _ = visited(X, 50, 40)
    labels = np.zeros(len(y), dtype=int)
    with pytest.raises(ValueError, match="the 90 rows drawn from y have one class only: 0"):
        fit(LinearSVC(solver=few(), lam=LAM), X, labels)
    labels[order[3]] = 5
    assert_array_equal(fit(LinearSVC(solver=few(), lam=LAM), X, labels).classes_, [0, 5])


def test_class_weights_take_all_labels():
    X, y = rows()
    y = np.where(np.arange(len(y)) % 5 == 0, y, 0)
    models = [fit(LinearSVC(solver=few(), lam=LAM, class_weight="balanced"), X, y, vouched=v) for v in (False, True)]
    assert_array_equal(models[0].coef_, models[1].coef_)
    X[visited(X, 50, 40)[0][0] - 1, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        fit(LinearSVC(solver=few(), lam=LAM, class_weight="balanced"), X, y)


@pytest.mark.parametrize("labels", [[0, 1], ["no", "yes"]])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
def test_a_folder_needs_nobody_to_vouch_for_it(tmp_path, labels, layout):
    X, y = rows()
    y = np.array(labels)[y]
    c = np.random.default_rng(2).uniform(0.5, 2, len(y))
    write_dataset(layout(X), y, tmp_path / "data", sample_weight=c)
    data = open_dataset(tmp_path / "data")
    model = LinearSVC(solver=few(), C=1e-3)
    stored = model.fit(data)
    coef, found, lam = stored.coef_.copy(), stored.certificate_, stored.lam_
    here = fit(model, layout(X), y, sample_weight=c)
    assert_array_equal(here.coef_, coef)
    assert_array_equal(here.classes_, labels)
    assert (here.certificate_.estimate, here.lam_) == (found.estimate, lam)


def test_going_on_counts_all_rows():
    X, y = rows()
    model = fit(LinearSVC(solver=few(), lam=LAM), X, y)
    assert model._stream.rows == len(y)
    assert model.n_iter_ == 1
