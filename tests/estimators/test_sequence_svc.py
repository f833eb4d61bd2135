"""SequenceSVC: input in all its forms, predictions, what was learnt, grammars, costs, sklearn-crfsuite's words."""

import copy
import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from pegasos import BlockFrankWolfe, Pegasos, SequenceSVC

WORDS = {"the": "D", "a": "D", "dog": "N", "cat": "N", "barks": "V", "sees": "V"}


def text(n=30, seed=0):
    """Sentences as lists of words, and tags with some noise."""
    rng = np.random.default_rng(seed)
    names = list(WORDS)
    X = [[names[k] for k in rng.integers(0, len(names), rng.integers(1, 7))] for _ in range(n)]
    return X, [[WORDS[w] if rng.random() > 0.1 else "N" for w in sentence] for sentence in X]


WORD_LISTS, TAGS = text()
STRINGS = [[[f"w:{word}", "bias"] for word in sentence] for sentence in WORD_LISTS]
DICTS = [[{"w": word, "bias": True} for word in sentence] for sentence in WORD_LISTS]
NAMES = list(dict.fromkeys(name for sentence in STRINGS for token in sentence for name in token))


def one_hot(sentence):
    rows = np.zeros((len(sentence), len(NAMES)))
    for t, token in enumerate(sentence):
        rows[t, [NAMES.index(name) for name in token]] = 1.0
    return rows


DENSE = [one_hot(sentence) for sentence in STRINGS]
LENGTHS = [len(sentence) for sentence in STRINGS]


@pytest.fixture(scope="module")
def fitted():
    return SequenceSVC(C=0.3, tol=1e-4).fit(STRINGS, TAGS)


@pytest.fixture(scope="module")
def crf():
    return SequenceSVC(C=0.3, loss="log", tol=1e-6).fit(STRINGS, TAGS)


# --- input -----------------------------------------------------------------------------------------------------------

FORMS = {
    "dicts": (DICTS, TAGS, {}),
    "strings again": (STRINGS, TAGS, {}),
    "tuples": (tuple(map(tuple, STRINGS)), tuple(map(tuple, TAGS)), {}),
    "generators": (None, None, {}),
    "csr": ([sparse.csr_matrix(rows) for rows in DENSE], TAGS, {}),
    "dense": (DENSE, TAGS, {}),
    "float32": ([rows.astype(np.float32) for rows in DENSE], TAGS, {}),
    "flat strings": ([t for s in STRINGS for t in s], [t for s in TAGS for t in s], {"lengths": LENGTHS}),
    "flat csr": (sparse.csr_matrix(np.vstack(DENSE)), TAGS, {"lengths": LENGTHS}),
    "flat dense": (np.vstack(DENSE), np.array([t for s in TAGS for t in s]), {"lengths": np.array(LENGTHS)}),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_all_forms_are_one(form, loss, fitted, crf):
    X, y, given = FORMS[form]
    if form == "generators":
        X, y = (iter(s) for s in STRINGS), (iter(s) for s in TAGS)
    reference = crf if loss == "log" else fitted
    found = clone(reference).fit(X, y, **given)
    np.testing.assert_array_equal(found.coef_, reference.coef_)
    np.testing.assert_array_equal(found.transitions_, reference.transitions_)
    assert found.certificate_.primal == reference.certificate_.primal
    X = (iter(s) for s in STRINGS) if form == "generators" else X
    assert found.predict(X, **given) == reference.predict(STRINGS)
    if form != "generators":
        assert found.score(X, y, **given) == reference.score(STRINGS, TAGS)


def test_values_are_weights_of_attributes():
    """A value of 2 is the attribute twice."""
    twice = [[[*token, token[0]] for token in s] for s in STRINGS]
    values = [[{token[0]: 2.0, token[1]: 1.0} for token in s] for s in STRINGS]
    one, other = (SequenceSVC(C=0.1, tol=1e-9).fit(X, TAGS) for X in (twice, values))
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-4)
    assert one.certificate_.primal == pytest.approx(other.certificate_.primal, rel=1e-8)


@pytest.mark.parametrize(
    ("tags", "classes"),
    [
        ({"D": 7, "N": 3, "V": 5}, [3, 5, 7]),
        ({"D": ("d", 1), "N": None, "V": frozenset("v")}, None),
        ({"D": True, "N": False, "V": False}, [False, True]),
        ({"D": 1.5, "N": -2, "V": 0}, [-2, 0, 1.5]),
    ],
)
def test_labels_may_be_anything_hashable(tags, classes, fitted):
    tags = {key: ("none",) if value is None else value for key, value in tags.items()}
    y = [[tags[tag] for tag in s] for s in TAGS]
    model = SequenceSVC(C=0.3, tol=1e-4).fit(STRINGS, y)
    assert model.classes_ == classes if classes else set(model.classes_) == set(tags.values())
    found = model.predict(STRINGS)
    assert {type(tag) for s in found for tag in s} <= {type(tag) for tag in tags.values()}
    if len(set(tags.values())) == 3:
        assert np.mean([a == tags[b] for s, r in zip(found, fitted.predict(STRINGS), strict=True)
                        for a, b in zip(s, r, strict=True)]) > 0.95  # fmt: skip


def test_predictions_are_lists(fitted):
    for X in (STRINGS, STRINGS[:1], [STRINGS[0], [], STRINGS[1]], []):
        found = fitted.predict(X)
        assert isinstance(found, list)
        assert [len(s) for s in found] == [len(s) for s in X]
        assert all(isinstance(s, list) and all(type(tag) is str for tag in s) for s in found)
    arrays = SequenceSVC(C=0.3, tol=1e-4).fit(DENSE, [np.array(s) for s in TAGS])
    assert arrays.predict(np.vstack(DENSE), lengths=LENGTHS) == fitted.predict(STRINGS)
    assert arrays.classes_ == ["D", "N", "V"]
    assert fitted.predict_single(STRINGS[3]) == fitted.predict(STRINGS)[3]


def test_what_was_not_seen_is_passed_over(fitted):
    with_new = [[[*token, "w:unheard"] for token in s] for s in STRINGS]
    assert fitted.predict(with_new) == fitted.predict(STRINGS)
    assert len(fitted.predict([[["w:unheard"], []]])[0]) == 2


def test_scores(fitted):
    found = fitted.predict(STRINGS)
    right = [[a == b for a, b in zip(*pair, strict=True)] for pair in zip(found, TAGS, strict=True)]
    assert fitted.score(STRINGS, TAGS) == pytest.approx(np.mean([r for mine in right for r in mine]))
    weight = np.arange(len(TAGS), dtype=float)
    expected = sum(w * sum(r) for w, r in zip(weight, right, strict=True)) / sum(
        w * len(r) for w, r in zip(weight, right, strict=True)
    )
    assert fitted.score(STRINGS, TAGS, sample_weight=weight) == pytest.approx(expected)
    assert fitted.score([[["w:dog"]]], [["never seen"]]) == 0.0
    with pytest.raises(NotFittedError):
        SequenceSVC().predict(STRINGS)


def marginals(model, sentence):
    """By enumeration of all labellings."""
    names, L = {name: k for k, name in enumerate(model.attributes_)}, len(model.classes_)
    scores = [sum((model.coef_[names[name]] for name in token), np.zeros(L)) for token in sentence]
    found, total = np.zeros((len(sentence), L)), 0.0
    for y in np.ndindex(*(L,) * len(sentence)):
        score = sum(s[k] for s, k in zip(scores, y, strict=True)) + sum(
            model.transitions_[a, b] for a, b in pairwise(y)
        )
        p = np.exp(score)
        found[np.arange(len(y)), y] += p
        total += p
    return found / total


def test_marginals(crf, fitted):
    found = crf.predict_marginals(STRINGS[:8])
    for s, rows in zip(STRINGS[:8], found, strict=True):
        assert all(list(row) == crf.classes_ and sum(row.values()) == pytest.approx(1) for row in rows)
        np.testing.assert_allclose([list(row.values()) for row in rows], marginals(crf, s), atol=1e-10)
    assert crf.predict_marginals_single(STRINGS[2]) == found[2]
    for name in ("predict_marginals", "predict_marginals_single"):
        assert not hasattr(fitted, name)
        with pytest.raises(AttributeError, match=r"the hinge loss has no probabilities.*loss='log'"):
            getattr(fitted, name)
    assert not hasattr(SequenceSVC(algorithm="nothing"), "predict_marginals")


def test_what_was_learnt(fitted):
    assert fitted.attributes_ == NAMES
    assert fitted.coef_.shape == (len(NAMES), 3)
    state = fitted.state_features_
    assert state[("w:dog", "N")] == fitted.coef_[NAMES.index("w:dog"), 1] > 0
    assert len(state) == np.count_nonzero(fitted.coef_)
    transitions = fitted.transition_features_
    assert all(transitions[a, b] == fitted.transitions_["DNV".index(a), "DNV".index(b)] for a, b in transitions)
    assert len(transitions) == np.count_nonzero(fitted.transitions_)
    assert fitted.n_features_in_ == len(NAMES)


@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_weights_may_be_changed(loss):
    """In place or by others: predictions follow."""
    model = SequenceSVC(C=0.3, loss=loss, tol=1e-2).fit(STRINGS, TAGS)
    model.coef_[:] = 0
    model.transitions_[:] = 0
    model.coef_[:, 2] = 1
    assert model.predict([STRINGS[0]]) == [["V"] * len(STRINGS[0])]
    model.coef_ = -model.coef_
    assert "V" not in model.predict([STRINGS[0]])[0]


# --- sklearn-crfsuite's words ----------------------------------------------------------------------------------------


def test_crfsuites_words():
    def weights(**how):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return SequenceSVC(tol=1e-4, **how).fit(STRINGS, TAGS)

    for theirs, ours in [
        ({"c2": 2.0, "algorithm": "lbfgs"}, {"C": 0.25, "loss": "log"}),
        ({"c2": 0.5, "c1": 0.0}, {"C": 1.0}),
        ({"algorithm": "l2sgd"}, {"loss": "log"}),
        ({"algorithm": "pa", "max_iterations": 3}, {"solver": "passive_aggressive", "max_iter": 3}),
        ({"algorithm": "ap", "max_iterations": 4}, {"solver": "averaged_perceptron", "max_iter": 4}),
    ]:
        one, other = weights(**theirs), weights(**ours)
        np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-12, err_msg=str(theirs))
        assert one.lam_ == pytest.approx(other.lam_, rel=1e-15)
        assert one.n_iter_ == other.n_iter_
    assert hasattr(SequenceSVC(algorithm="lbfgs"), "predict_marginals")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"c1": 0.1}, "c1=0.1: an L1 penalty is not offered"),
        ({"c1": -1}, "c1=-1 must be"),
        ({"c2": 0}, "c2=0 must be"),
        ({"c2": 1.0, "lam": 1.0}, "lam and c2 say the same thing"),
        ({"algorithm": "arow"}, "algorithm='arow' is not offered"),
        ({"algorithm": "lbgfs"}, "algorithm='lbgfs' is none of.*did you mean 'lbfgs'"),
        ({"algorithm": "pa", "solver": "pegasos"}, "algorithm and solver say the same thing"),
        ({"max_iterations": 0}, "max_iterations=0 must be"),
        ({"min_freq": -1}, "min_freq=-1 must be"),
        ({"all_possible_transitions": 2}, "all_possible_transitions=2 must be"),
        ({"loss": "squared"}, "loss='squared' is neither 'hinge' nor 'log'"),
        ({"solver": "lbfgs"}, "solver 'lbfgs' cannot minimise loss 'hinge'"),
        ({"solver": "cutting_plane", "loss": "log"}, "solver 'cutting_plane' cannot minimise loss 'log'"),
        ({"solver": Pegasos(output="random")}, "output='random' is not offered for sequences"),
        ({"solver": Pegasos(sampling="chunked")}, "sampling='chunked' has no meaning"),
        ({"solver": BlockFrankWolfe(batch_size=2)}, "batch_size is for oracles"),
        ({"solver": "sdca"}, "sdca"),
    ],
)
def test_parameters_that_mean_nothing(how, message):
    with pytest.raises((ValueError, TypeError), match=message):
        SequenceSVC(**how).fit(STRINGS, TAGS)


def test_rare_attributes_and_unseen_transitions():
    model = SequenceSVC(tol=1e-2, min_freq=2).fit([["a", "b"], ["a", "c"]], [["A", "B"], ["A", "B"]])
    assert model.attributes_ == ["a"]
    y = [["D" if k == 0 else "N" for k in range(len(s))] for s in STRINGS]
    some = SequenceSVC(tol=1e-3, C=0.1, all_possible_transitions=False).fit(STRINGS, y)
    assert set(some.transition_features_) <= {("D", "N"), ("N", "N")}
    allowed = SequenceSVC(tol=1e-3, C=0.1).fit(STRINGS, y)
    assert some.certificate_.primal >= allowed.certificate_.dual  # fewer weights do no better


# --- costs -----------------------------------------------------------------------------------------------------------


def test_costs():
    def bounds(**how):
        model = SequenceSVC(C=0.3, tol=1e-5, **how).fit(STRINGS, TAGS)
        return model.certificate_.primal, model.coef_

    matrix = np.array([[0, 2, 2], [3, 0, 3], [1, 1, 0]])
    weights = {"D": 2.0, "N": 3}
    one, same = bounds(class_weight=weights), bounds(cost=matrix)
    np.testing.assert_array_equal(one[1], same[1])
    single = bounds(cost={("D", "N"): 5.0})
    other = bounds(cost=np.array([[0, 5, 1], [1, 0, 1], [1, 1, 0.0]]))
    np.testing.assert_array_equal(single[1], other[1])
    counts = {tag: sum(s.count(tag) for s in TAGS) for tag in "DNV"}
    tokens = sum(LENGTHS)
    balanced = bounds(class_weight={tag: tokens / (3 * count) for tag, count in counts.items()})
    np.testing.assert_allclose(bounds(class_weight="balanced")[1], balanced[1], rtol=1e-9)
    assert one[0] != single[0] != balanced[0]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"cost": np.ones((2, 2))}, r"cost has shape \(2, 2\), but there are 3 labels"),
        ({"cost": np.ones((3, 3))}, r"cost\[0, 0\]=1.0: what is right costs 0"),
        ({"cost": [[0, 1, 1], [1, 0, -1], [1, 1, 0]]}, r"cost\[1, 2\]=-1.0 must be a number >= 0"),
        ({"cost": [[0, 1, 1], [np.nan, 0, 1], [1, 1, 0]]}, r"cost\[1, 0\]=nan must be"),
        ({"cost": {("D", "Q"): 1}}, "cost: the label 'Q'.*does not occur in y"),
        ({"cost": {"D": 1}}, "'D' is no pair"),
        ({"cost": {("D", "D"): 1}}, "what is right costs 0"),
        ({"cost": {("D", "N"): "much"}}, "must be a number >= 0"),
        ({"cost": {("D", "N"): 1e30}}, "costs must be at most"),
        ({"class_weight": {"Q": 1}}, "class_weight: the label 'Q' does not occur in y"),
        ({"class_weight": {"D": -1}}, "must be a number >= 0"),
        ({"class_weight": "even"}, "class_weight='even' must be a dict or 'balanced'"),
        ({"class_weight": 3}, "class_weight=3 must be"),
        ({"cost": {("D", "N"): 2}, "loss": "log"}, "cost is for the hinge loss"),
        ({"class_weight": "balanced", "loss": "log"}, "class_weight is for the hinge loss"),
    ],
)
def test_costs_that_mean_nothing(how, message):
    with pytest.raises(ValueError, match=message):
        SequenceSVC(**how).fit(STRINGS, TAGS)


# --- scikit-learn ----------------------------------------------------------------------------------------------------


def test_in_scikit_learns_tools():
    scores = cross_validate(SequenceSVC(C=0.3), STRINGS, TAGS, cv=3, error_score="raise")["test_score"]
    assert scores.min() > 0.6
    grid = {"C": [0.01, 0.3], "solver__output": ["last", "suffix"]}
    search = GridSearchCV(SequenceSVC(solver="pegasos", tol=0.5, max_iter=50), grid, cv=2, error_score="raise")
    search.fit(STRINGS, TAGS)
    assert search.best_estimator_.get_params()["solver__output"] == search.best_params_["solver__output"]
    words = FunctionTransformer(lambda X: [[[f"w:{word}"] for word in s] for s in X])
    pipeline = Pipeline([("attributes", words), ("tag", SequenceSVC(C=0.3))]).fit(WORD_LISTS, TAGS)
    assert pipeline.predict([["the", "dog"]]) == [["D", "N"]]
    assert pipeline.score(WORD_LISTS, TAGS) > 0.8


def test_copies(fitted, crf):
    for model in (fitted, crf):
        for same in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)):
            assert same.predict(STRINGS) == model.predict(STRINGS)
            np.testing.assert_array_equal(same.coef_, model.coef_)
            assert same.attributes_ == model.attributes_
        deep = copy.deepcopy(model)
        deep.coef_[:] = 0
        assert model.coef_.any()
        with pytest.raises(NotFittedError):
            clone(model).predict(STRINGS)
    assert crf.predict_marginals(STRINGS[:2]) == pickle.loads(pickle.dumps(crf)).predict_marginals(STRINGS[:2])


def test_the_loss_of_the_fit_decides_over_marginals(crf, fitted):
    with pytest.raises(AttributeError, match="no probabilities"):
        _ = copy.deepcopy(fitted).set_params(loss="log").predict_marginals
    assert copy.deepcopy(crf).set_params(loss="hinge").predict_marginals(STRINGS[:1])


@pytest.mark.parametrize(("grammar", "tags"), [("bio", ["O", "S-X"]), ("bioes", ["U-X", "L-X"]), ("bio", ["B", "O"])])
def test_a_grammar_of_chunks_refuses_tags_that_it_does_not_know(grammar, tags):
    with pytest.raises(ValueError, match=f"grammar='{grammar}': the tag .* is neither O nor one of"):
        SequenceSVC(grammar=grammar).fit([["a", "b"]], [tags])


def test_comparisons_that_minimise_nothing_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SequenceSVC(algorithm="pa").fit(STRINGS, TAGS)
    assert model.n_iter_ == 100
    assert not model.certificate_.converged


def test_a_refit_starts_where_the_last_fit_ended():
    X, y = text(150, seed=1)
    model = SequenceSVC(loss="log", warm_start=True, tol=1e-3).fit(X, y)
    first = model.n_iter_
    assert model.fit(X, y).n_iter_ <= 2 < first
