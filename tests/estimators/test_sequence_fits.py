"""How SequenceSVC fits: grammars, development sequences, weights, warm starts, limits, interrupts, and bad input."""

import signal
import warnings
from itertools import pairwise

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from pegasos import AveragedPerceptron, BlockFrankWolfe, CuttingPlane, PassiveAggressive, Pegasos, SequenceSVC


def corpus(n=40, seed=0, noise=0.2):
    """Lists of words, and tags of chunks that the words tell with some noise."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        words = rng.integers(0, 8, rng.integers(1, 8)).tolist()
        inside, tags = None, []
        for word in words:
            kind = ("B-X", "I-X", "B-Y", "O")[(word if rng.random() > noise else int(rng.integers(4))) % 4]
            tags.append("B-X" if kind == "I-X" and inside != "X" else kind)
            inside = tags[-1][2:] or None
        X.append([f"w{word}" for word in words])
        y.append(tags)
    return X, y


X, Y = corpus()
CLASSES = ["B-X", "B-Y", "I-X", "O"]
#: Words that speak for labels that the grammar forbids there.
TRAP = [["w1"], ["w3", "w1", "w1"], ["w2", "w1"]]


def quiet(model, *data, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*(data or (X, Y)), **given)


# --- grammars --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grammar", ["bio", "learnt", "pairs"])
@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_predictions_keep_the_grammar(grammar, loss):
    pairs = [(a, b) for a in CLASSES for b in CLASSES if b != "I-X" or a in ("B-X", "I-X")]
    pairs += [(None, tag) for tag in CLASSES if tag != "I-X"]
    free, kept = (
        SequenceSVC(C=0.3, loss=loss, grammar=wanted).fit(X, Y)
        for wanted in (None, pairs if grammar == "pairs" else grammar)
    )
    assert free.predict(TRAP)[0] == ["I-X"]  # without a grammar it is broken
    for tags in kept.predict(TRAP + X):
        assert tags[0] != "I-X"
        assert all(b != "I-X" or a in ("B-X", "I-X") for a, b in pairwise(tags))
    if loss == "log":
        for rows in kept.predict_marginals(TRAP):
            assert rows[0]["I-X"] == 0.0
            assert all(sum(row.values()) == pytest.approx(1) for row in rows)


def test_bioes():
    y = [["B-X", "E-X", "O", "S-Y"], ["B-X", "I-X", "E-X"]]
    words = [["a", "b", "c", "d"], ["a", "e", "b"]]
    model = SequenceSVC(grammar="bioes", tol=1e-4).fit(words, y)
    assert model.predict([["a"]])[0][0] in ("O", "S-Y")
    assert model.predict([["a", "e", "e"]]) == [["B-X", "I-X", "E-X"]]
    with pytest.raises(ValueError, match="sequence 1, position 2: the grammar does not let a sequence end with 'I-X'"):
        SequenceSVC(grammar="bioes").fit(words, [y[0], ["B-X", "I-X", "I-X"]])


@pytest.mark.parametrize(
    ("grammar", "message"),
    [
        ("bio", "sequence 1, position 0: the grammar does not let a sequence begin with 'I-X'"),
        ([("B-X", "O"), ("O", "O")], "sequence 0, position 2: the grammar does not allow 'I-X' after 'O'"),
        ([("B-X", "O"), ("O", "I-X"), ("I-X", None)], "sequence 2, position 0: .*does not let a sequence end with 'O'"),
        ([], "sequence 0, position 1: the grammar does not allow 'O' after 'B-X'"),
        ([("B-X", "Q")], "the tag 'Q' of .* does not occur in y"),
        ([(None, None)], "has no tag"),
        (["BO"], "'BO' is no pair of tags"),
        (3, "grammar=3 is neither a name nor a list of pairs"),
        ("boi", "did you mean 'bio'"),
    ],
)
def test_tags_that_break_the_grammar_are_named(grammar, message):
    with pytest.raises((ValueError, TypeError), match=message):
        SequenceSVC(grammar=grammar).fit([["a", "b", "c"], ["d"], ["e"]], [["B-X", "O", "I-X"], ["I-X"], ["O"]])


def test_a_grammar_without_a_path():
    """Which is found out when a sequence is as long: fitting has none that long."""
    model = SequenceSVC(grammar=[("A", "B")], tol=1e-3).fit([["a", "b"], ["b"]], [["A", "B"], ["B"]])
    crf = SequenceSVC(grammar=[("A", "B")], loss="log").fit([["a", "b"], ["b"]], [["A", "B"], ["B"]])
    bad = [["a"], ["a", "b"], ["a", "b", "a"]]
    for call in (model.predict, crf.predict_marginals, lambda bad: model.score(bad, [["A"] * len(s) for s in bad])):
        with pytest.raises(ValueError, match="sequence 2: the grammar allows no labelling of 3 tokens"):
            call(bad)
    with pytest.raises(ValueError, match="X_dev: sequence 2: the grammar allows no labelling of 3 tokens"):
        SequenceSVC(grammar=[("A", "B")]).fit([["a", "b"]], [["A", "B"]], bad, [["A"] * len(s) for s in bad])


# --- development sequences -------------------------------------------------------------------------------------------


def test_development_sequences():
    models = []
    model = SequenceSVC(C=0.3, tol=1e-6, callback=lambda c: models.append(c.coef.copy()))
    model.fit(X, Y, *corpus(10, seed=9))
    assert len(model.dev_scores_) == len(model.trace_) == len(models) > 1
    assert model.dev_scores_[-1] == model.score(*corpus(10, seed=9))
    plain = SequenceSVC(C=0.3, tol=1e-6).fit(X, Y)
    np.testing.assert_array_equal(plain.coef_, model.coef_)
    assert not hasattr(plain, "dev_scores_")
    assert not hasattr(model.fit(X, Y), "dev_scores_")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((X, None), "belong together"),
        ((None, Y), "belong together"),
        ((X, [["Q"] * len(s) for s in Y]), "X_dev, y_dev: sequence 0, position 0: the tag 'Q' is none of"),
        ((X[:2], Y[:3]), "X_dev, y_dev: X has 2 sequences, but y has 3"),
        ((X[:1], [Y[0][:-1]]), "X_dev, y_dev: sequence 0 has"),
    ],
)
def test_bad_development_sequences(data, message):
    with pytest.raises(ValueError, match=message):
        SequenceSVC().fit(X, Y, *data)


# --- weights ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_weights_of_sequences(loss):
    weight = np.arange(len(X)) % 3
    some = [i for i in range(len(X)) if weight[i]]
    often = np.repeat(np.arange(len(X)), weight)
    how = {"C": 0.3, "loss": loss, "tol": 1e-9}
    weighted = SequenceSVC(**how).fit(X, Y, sample_weight=weight)
    left = SequenceSVC(**how).fit([X[i] for i in some], [Y[i] for i in some], sample_weight=weight[some])
    twice = SequenceSVC(**how).fit([X[i] for i in often], [Y[i] for i in often])
    for other in (left, twice):
        assert other.lam_ == pytest.approx(weighted.lam_)
        assert other.certificate_.primal == pytest.approx(weighted.certificate_.primal, rel=1e-8)
        assert other.predict(X) == weighted.predict(X)
    one = [SequenceSVC(**how).fit(X, Y), SequenceSVC(**how).fit(X, Y, sample_weight=np.full(len(X), 1.0))]
    assert one[0].certificate_.primal == pytest.approx(one[1].certificate_.primal, rel=1e-8)


@pytest.mark.parametrize("grammar", [None, "learnt"])
@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_labels_without_weight_are_known_and_never_used(grammar, loss):
    how = {"C": 0.3, "loss": loss, "tol": 1e-9, "grammar": grammar}
    rare = [["w1", "w3", "w3", "w0"], *X], [["A", "A", "O", "O"], *Y]
    model = SequenceSVC(**how).fit(*rare, sample_weight=[0.0] + [1.0] * len(X))
    left_out = SequenceSVC(**how).fit(X, Y)
    assert model.classes_ == ["A", *CLASSES]
    assert model.certificate_.primal == pytest.approx(left_out.certificate_.primal, rel=1e-8)
    assert model.predict([["unheard"], *X]) == left_out.predict([["unheard"], *X])
    if loss == "log":
        assert model.predict_marginals([["unheard"]])[0][0]["A"] == 0.0


@pytest.mark.parametrize("weight", [[1.0], np.full(len(X), -1.0), np.zeros(len(X)), np.full(len(X), np.nan)])
def test_bad_weights(weight):
    with pytest.raises(ValueError, match="weight"):
        SequenceSVC().fit(X, Y, sample_weight=weight)


# --- going on --------------------------------------------------------------------------------------------------------

SOLVERS = [
    ("hinge", "auto"), ("hinge", Pegasos(output="suffix")), ("hinge", BlockFrankWolfe()), ("hinge", CuttingPlane()),
    ("hinge", AveragedPerceptron()), ("hinge", PassiveAggressive()), ("log", "auto"), ("log", "lbfgs"),
    ("log", "pegasos"),
]  # fmt: skip


@pytest.mark.parametrize(("loss", "solver"), SOLVERS, ids=str)
def test_warm_starts(loss, solver):
    """Of the same sequences with another C, or another solver; of others there is nothing to start from."""
    model = SequenceSVC(C=0.1, loss=loss, solver=solver, warm_start=True, tol=1e-3, max_iter=40)
    quiet(model)
    quiet(model.set_params(C=0.2))
    cold = SequenceSVC(C=0.2, loss=loss, tol=1e-8).fit(X, Y)
    assert model.certificate_.dual <= cold.certificate_.primal * (1 + 1e-12)
    assert model.certificate_.primal >= cold.certificate_.dual * (1 - 1e-12)
    model.set_params(solver="auto", tol=1e-6, max_iter=1000).fit(X, Y)
    assert model.certificate_.converged
    assert model.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2e-6)
    quiet(model.set_params(solver=solver), X[::2], Y[::2])
    half = SequenceSVC(C=0.2, loss=loss, tol=1e-8).fit(X[::2], Y[::2])
    assert model.certificate_.dual <= half.certificate_.primal * (1 + 1e-12)


def test_a_warm_start_at_the_optimum_is_quick():
    model = SequenceSVC(C=0.1, solver="block_frank_wolfe", warm_start=True, tol=1e-4).fit(X, Y)
    first = model.n_iter_
    assert model.fit(X, Y).n_iter_ < first


def test_callbacks_see_weights_and_may_stop():
    seen = []

    def callback(checkpoint):
        seen.append(checkpoint)
        return len(seen) == 2

    model = SequenceSVC(C=0.3, solver="block_frank_wolfe", tol=0.0, callback=callback).fit(X, Y)
    assert model.certificate_.reason == "stopped by the callback"
    np.testing.assert_array_equal(seen[-1].coef, model.coef_)
    assert seen[0].coef.shape == model.coef_.shape
    assert seen[-1].primal == model.certificate_.primal


def test_limits_and_their_warning():
    with pytest.warns(ConvergenceWarning, match=r"stopped before the gap.*max_iter reached.*Raise max_iter"):
        model = SequenceSVC(tol=1e-9, max_iter=3, solver="pegasos").fit(X, Y)
    assert model.n_iter_ == 3
    with pytest.warns(ConvergenceWarning, match="max_time reached"):
        SequenceSVC(tol=0.0, max_time=1e-9).fit(X, Y)
    with pytest.warns(ConvergenceWarning, match="size of rounding errors: ask for a tol"):
        SequenceSVC(tol=0.0, loss="log", solver="lbfgs").fit(X, Y)


def test_interrupts(interruptible):
    calls = []

    def once(checkpoint):
        calls.append(checkpoint)
        if len(calls) == 1:
            signal.raise_signal(signal.SIGINT)

    how = {"C": 0.3, "solver": "block_frank_wolfe", "tol": 0.0, "callback": once}
    model = SequenceSVC(on_interrupt="keep", **how).fit(X, Y)
    assert model.certificate_.reason == "interrupted"
    assert model.predict(X)
    calls.clear()
    model = SequenceSVC(**how)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize(("loss", "solver", "tol"), [("hinge", "auto", 1e-5), ("log", "pegasos", 0.5)])
def test_jobs_and_seeds_change_what_they_say(loss, solver, tol):
    how = {"C": 0.3, "loss": loss, "solver": solver, "tol": tol, "random_state": 3}
    one, *others = (SequenceSVC(n_jobs=jobs, **how).fit(X, Y) for jobs in (None, 1, 2, -1))
    for other in others:
        np.testing.assert_array_equal(one.coef_, other.coef_)
        assert other.predict(X) == one.predict(X)
    other = SequenceSVC(**(how | {"random_state": 4})).fit(X, Y)
    assert (other.coef_ != one.coef_).any()


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([["a"], ["b"]], [["A"], ["A", "B"]], "sequence 1 has 1 tokens but 2 tags"),
        ([["a"], ["b"]], [["A"]], "X has 2 sequences, but y has 1"),
        ([], [], "X has no sequences"),
        ([["a"], []], [["A"], []], "sequence 1 has no tokens"),
        ([[{"a": np.nan}]], [["A"]], "sequence 0, position 0: attribute 'a' is NaN"),
        ([[{"a": 1.0}, {"a": np.inf}]], [["A", "B"]], "sequence 0, position 1: attribute 'a' is infinity"),
        ([np.array([[1.0], [np.nan]])], [["A", "B"]], "sequence 0, position 1: column 0 is NaN"),
        ([["a", "b"]], [["A", None]], "sequence 0, position 1: the tag is None"),
        ([["a", "b"]], [["A", float("nan")]], "sequence 0, position 1: the tag is nan"),
        ([["a", "b"]], [["A", ["B"]]], "sequence 0, position 1: the tag is of type list"),
        ([["a", 3]], [["A", "B"]], "sequence 0, position 1"),
    ],
)
def test_bad_input_is_named(x, y, message):
    model = quiet(SequenceSVC(C=0.3))
    before = vars(model).copy()
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(x, y)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
    assert model.predict(X) == quiet(SequenceSVC(C=0.3)).predict(X)


@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_one_label_only(loss):
    model = SequenceSVC(loss=loss).fit(X, [["A"] * len(s) for s in X])
    assert model.certificate_.converged
    assert model.certificate_.primal == 0.0
    assert model.predict(X) == [["A"] * len(s) for s in X]
    if loss == "log":
        assert model.predict_marginals([["w1"]]) == [[{"A": 1.0}]]


@pytest.mark.parametrize("solver", ["auto", "pegasos", "block_frank_wolfe", "cutting_plane"])
@pytest.mark.parametrize("C", [1e-300, 1e-30, 1e-12])
def test_next_to_no_weight_of_the_losses(solver, C):
    """The optimum is at zero, and costs are by far larger than scores: a grammar is kept all the same."""
    model = SequenceSVC(C=C, solver=solver, grammar="bio").fit(X, Y)
    assert model.certificate_.converged
    assert np.abs(model.coef_).max() < 100 * C


@pytest.mark.parametrize("solver", ["auto", "block_frank_wolfe", "cutting_plane"])
@pytest.mark.parametrize(("C", "cost"), [(1e4, 1.0), (1e8, 1.0), (1e-5, 1e-9), (0.1, 1e-9), (1e15, 1e9)])
def test_objectives_next_to_zero(solver, C, cost):
    """Single precision cannot tell them from zero, whatever the unit of the costs is."""
    x, y = [["a", "b"], ["b", "c", "a"], ["c"]], [["A", "B"], ["B", "C", "A"], ["C"]]
    model = SequenceSVC(C=C, solver=solver, cost=cost * (1 - np.eye(3)), tol=1e-4).fit(x, y)
    assert model.certificate_.converged
    assert 0 < model.certificate_.primal < 10 * cost**2 / C


@pytest.mark.parametrize("value", [1e4, 1e12, 1e30])
@pytest.mark.parametrize(("loss", "solver"), [("log", "lbfgs"), ("log", "auto"), ("hinge", "auto")])
def test_values_of_any_size(value, loss, solver):
    x = [[{"a": value}, {"b": value}], [{"b": value}, {"a": value}]]
    model = quiet(SequenceSVC(loss=loss, solver=solver), x, [["A", "B"], ["B", "A"]])
    assert model.certificate_.converged or value > 1e4  # objectives of 1e-20 are rounding
    assert model.certificate_.dual <= model.certificate_.primal < 1e-6
    assert model.predict(x[:1]) == [["A", "B"]]


@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_a_sequence_of_many_tokens(loss):
    """Beside short ones, in memory that grows with the tokens alone."""
    n = 100_000
    words = np.random.default_rng(0).integers(0, 4, n)
    long = [f"w{w}" for w in words]
    tags = ["AB"[w % 2] for w in words]
    model = quiet(SequenceSVC(loss=loss, tol=0.5, max_iter=3, lam=1.0), [long, ["w1", "w2"]], [tags, ["B", "A"]])
    assert np.isfinite(model.certificate_.primal)
    assert model.certificate_.dual <= model.certificate_.primal
    (found,) = model.predict([long])
    assert np.mean(np.array(found) == tags) > 0.99
    if loss == "log":
        (rows,) = model.predict_marginals([long])
        assert len(rows) == n
        assert rows[-1]["A"] + rows[-1]["B"] == pytest.approx(1)
