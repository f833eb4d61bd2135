"""Model files of taggers: everything comes back to the bit, and nothing that is wrong with a file is believed."""

import json
import pickle
import struct
from contextlib import suppress
from io import BytesIO

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from safetensors.numpy import save as pack
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import pegasos
from pegasos import SequenceSVC
from pegasos.io import Template, to_onnx, write_liblinear, write_libsvm
from pegasos.io.data.column_reader import ColumnReader
from pegasos.io.models import container, native

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

WORDS = ["the dog barks", "dogs bark", "the cats see the dog", "cats", "bark the dog"]
TAGS = {"the": "D", "dog": "N", "dogs": "N", "cats": "N", "bark": "V", "barks": "V", "see": "V"}
X = [[{"word": word, "end": word[-1:], "length": float(len(word))} for word in line.split()] for line in WORDS]
Y = [[TAGS[word] for word in line.split()] for line in WORDS]
BIO = [[f"{'I' if k and a == b else 'B'}-{b}" for k, (a, b) in enumerate(zip(y[:1] + y, y, strict=False))] for y in Y]
NUMBERS = [np.array([[len(token["word"]), k, 1.0] for k, token in enumerate(x)]) for x in X]
LEARNT = [("D", "N"), ("N", "V"), ("V", "D"), (None, "D"), (None, "N"), (None, "V"), ("N", None), ("V", None)]
READER = ColumnReader(Template.parse("U00:%x[0,0]\nB\n"), "\t", ("#", "-DOCSTART-"), "latin-1")

FITS = {
    "plain": lambda: SequenceSVC().fit(X, Y),
    "log": lambda: SequenceSVC(C=0.5, loss="log", tol=1e-4).fit(X, Y, X[:2], Y[:2]),
    "columns": lambda: SequenceSVC(solver=pegasos.BlockFrankWolfe()).fit(NUMBERS, Y),
    "numbers": lambda: SequenceSVC(max_iter=3).fit(X, [[len(tag) + ord(tag) for tag in y] for y in Y]),
    "booleans": lambda: SequenceSVC(class_weight={True: 2.0}).fit(X, [[tag == "N" for tag in y] for y in Y]),
    "mixed": lambda: SequenceSVC(max_iter=2).fit(X, [[{"D": 0.5, "N": "n", "V": False}[tag] for tag in y] for y in Y]),
    "learnt": lambda: SequenceSVC(grammar="learnt", lam=0.01).fit(X, Y),
    "bio": lambda: SequenceSVC(grammar="bio", all_possible_transitions=False).fit(X, BIO),
    "pairs": lambda: SequenceSVC(grammar=LEARNT, random_state=7).fit(X, Y),
    "cost table": lambda: SequenceSVC(cost=1 - np.eye(3)).fit(X, Y),
    "cost pairs": lambda: SequenceSVC(cost={("N", "V"): 3.0}, class_weight="balanced").fit(X, Y),
    "crfsuite": lambda: SequenceSVC(algorithm="lbfgs", c2=0.1, max_iterations=50).fit(X, Y),
    "one label": lambda: SequenceSVC().fit(X, [["N"] * len(y) for y in Y]),
    "no attributes": lambda: SequenceSVC(min_freq=99).fit(X, Y),
}


@pytest.fixture(scope="module")
def fitted():
    with pytest.warns(ConvergenceWarning):  # some have limits
        return {name: fit() for name, fit in FITS.items()}


def loaded(data):
    return native.decode(BytesIO(data), len(data))


def rows_of(name):
    return NUMBERS if name == "columns" else X


# --- there and back --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FITS)
def test_everything_comes_back(name, fitted, tmp_path):
    model, path, rows = fitted[name], tmp_path / "model", rows_of(name)
    pegasos.save(model, path)
    again = pegasos.load(path)
    assert again.classes_ == model.classes_
    assert list(map(type, again.classes_)) == list(map(type, model.classes_))
    assert_array_equal(again.coef_, model.coef_)
    assert_array_equal(again.transitions_, model.transitions_)
    assert again.coef_.flags.writeable
    assert again.attributes_ == model.attributes_
    assert again.state_features_ == model.state_features_
    for ours, theirs in zip(again._grammar, model._grammar, strict=True):
        assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype
    for attribute in ("lam_", "n_iter_", "n_features_in_", "certificate_", "template_"):
        assert getattr(again, attribute) == getattr(model, attribute)
    assert [vars(point) for point in again.trace_] == [vars(point) for point in model.trace_]
    assert getattr(again, "dev_scores_", None) == getattr(model, "dev_scores_", None)
    assert str(again.get_params()) == str(model.get_params())
    assert again.predict(rows) == model.predict(rows)
    if hasattr(model, "predict_marginals"):
        assert again.predict_marginals(rows) == model.predict_marginals(rows)
    assert hasattr(again, "predict_marginals") == hasattr(model, "predict_marginals")
    pegasos.save(again, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes() == native.encode(pickle.loads(pickle.dumps(model)))


@pytest.mark.parametrize("name", FITS)
def test_a_loaded_tagger_fits_again(name, fitted):
    model, rows = loaded(native.encode(fitted[name])), rows_of(name)
    tags = model.predict(rows)
    assert_array_equal(clone(model).fit(rows, tags).coef_, clone(fitted[name]).fit(rows, tags).coef_)


def test_weights_that_were_set_are_saved(fitted):
    model = pickle.loads(pickle.dumps(fitted["plain"]))
    model.coef_ = np.zeros_like(model.coef_)
    model.coef_[2, 1] = 4.0
    again = loaded(native.encode(model))
    assert_array_equal(again.coef_, model.coef_)
    assert again.predict(X) == model.predict(X)


def test_rows_of_zeros_are_left_out(fitted):
    model = pickle.loads(pickle.dumps(fitted["plain"]))
    model.coef_[[0, 3]] = 0.0
    _, arrays = parts(native.encode(model))
    assert arrays["coef_"].shape == (len(model.coef_) - 2, 3)
    assert not {0, 3} & set(arrays["coef_.rows"].tolist())


def test_weights_that_are_nearly_all_zero_take_no_more_memory_than_files_warrant():
    """Then all rows are in the file: what a file can make of itself in memory is bounded."""
    labels = 80
    y = [[f"tag {k}" for k in range(labels)]]
    model = SequenceSVC(max_iter=1, tol=10).fit([[[f"{k:03}{j}" for j in range(20)] for k in range(labels)]], y)
    model.coef_[1:] = 0.0
    data = native.encode(model)
    header, arrays = parts(data)
    assert arrays["coef_"].shape == model.coef_.shape
    assert_array_equal(loaded(data).coef_, model.coef_)
    few = arrays | {"coef_": arrays["coef_"][:1], "coef_.rows": arrays["coef_.rows"][:1]}
    with pytest.raises(ValueError, match="more than 32 times the memory"):
        loaded(rebuilt(header, few))


def test_a_template_comes_back(fitted):
    model = pickle.loads(pickle.dumps(fitted["plain"]))
    model.template_ = READER
    again = loaded(native.encode(model))
    assert again.template_ == READER
    assert again.fit(X, Y).template_ is None  # a fit in Python makes its own attributes


@pytest.mark.parametrize(
    "pairs", [set(LEARNT), tuple(LEARNT), [list(pair) for pair in LEARNT]], ids=["set", "tuple", "lists"]
)
def test_pairs_of_a_grammar_can_be_any_collection(pairs):
    again = loaded(native.encode(SequenceSVC(grammar=pairs).fit(X, Y)))
    assert sorted(map(str, again.grammar)) == sorted(str(tuple(pair)) for pair in pairs)
    assert again.predict(X) == SequenceSVC(grammar=LEARNT).fit(X, Y).predict(X)


# --- what is not saved -----------------------------------------------------------------------------------------------


def spoilt(**attributes):
    model = SequenceSVC().fit(X, Y)
    for name, value in attributes.items():
        setattr(model, name, value)
    return model


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: SequenceSVC().fit([["a", "b"]], [[("N", 1), "V"]]),
            r"the label \('N', 1\) of type tuple cannot be saved",
        ),
        (lambda: SequenceSVC().fit([["a", "b"]], [[b"N", "V"]]), "the label b'N' of type bytes"),
        (lambda: SequenceSVC().fit([["a", "b"]], [[np.inf, 1.0]]), "the label inf of type float"),
        (lambda: SequenceSVC().fit([["a", "b"]], [[2**64, 1]]), "beyond 64 bits"),
        (lambda: SequenceSVC(grammar=iter(LEARNT)).fit(X, Y), "grammar=.* can be read only once"),
        (lambda: spoilt(grammar=7), "grammar=7 can be read only once"),
        (lambda: spoilt(grammar=[("D", b"N")]), "parameter grammar=.* is no plain data"),
        (lambda: spoilt(cost={"N": 1.0}), "cost=.* should have pairs"),
        (lambda: spoilt(cost=np.full((3, 3), np.nan)), r"cost=array\(\[\[nan(.|\n)* is no plain data"),
        (lambda: spoilt(cost=-np.ones((3, 3))), "below 0"),
        (lambda: spoilt(cost=np.ones(3)), "a square table"),
        (lambda: spoilt(coef_=np.full((3, 3), np.nan)), "coef_ has values that are not finite"),
        (lambda: spoilt(coef_=np.ones(3)), "coef_ has shape"),
        (lambda: spoilt(transitions_=np.ones((2, 2))), "transitions_ has shape"),
        (lambda: spoilt(classes_=["D", "N"]), "coef_ has shape"),
        (lambda: spoilt(loss="squared"), "loss='squared'"),
        (lambda: spoilt(C=-1.0), "C=-1.0"),
        (lambda: spoilt(template_="U00:%x[0,0]"), "template_=.* cannot be saved"),
    ],
)
def test_what_cannot_be_saved_is_refused_before_writing(make, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        pegasos.save(make(), tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("write", [write_liblinear, write_libsvm, lambda model, _: to_onnx(model)])
def test_other_formats_have_no_taggers(write, fitted, tmp_path):
    with pytest.raises(ValueError, match="SequenceSVC"):
        write(fitted["plain"], tmp_path / "model")
    assert not list(tmp_path.iterdir())


# --- what is not loaded ----------------------------------------------------------------------------------------------


def parts(data):
    return container.unpack(BytesIO(data), len(data))


def rebuilt(header, arrays):
    return bytes(pack(arrays, metadata={container.KEY: json.dumps(header)}))


@pytest.fixture(scope="module")
def valid(fitted):
    model = pickle.loads(pickle.dumps(fitted["log"]))
    model.template_ = READER
    return native.encode(model)


def put(table, *path, value):
    for key in path[:-1]:
        table = table[key]
    table[path[-1]] = value


def dropped(table, *path):
    for key in path[:-1]:
        table = table[key]
    del table[path[-1]]


HEADERS = [
    (lambda h: dropped(h, "tagger"), "tagger=None"),
    (lambda h: put(h, "tagger", value=[]), r"tagger=\[\]"),
    (lambda h: put(h, "tagger", "more", value=1), "has more; upgrade"),
    (lambda h: dropped(h, "tagger", "kind"), "lacks kind"),
    (lambda h: put(h, "tagger", "kind", value="rows"), "kind='rows' is none of"),
    (lambda h: put(h, "tagger", "kind", value=["columns"]), r"kind=\['columns'\] is none of"),
    (lambda h: put(h, "tagger", "columns", value=None), "columns=None"),
    (lambda h: dropped(h, "tagger", "columns", "template"), "lacks template"),
    (lambda h: put(h, "tagger", "columns", "template", value=7), "template=7"),
    (lambda h: put(h, "tagger", "columns", "template", value="X"), "the model's template: line 1"),
    (lambda h: put(h, "tagger", "columns", "template", value=""), "makes no attributes"),
    (lambda h: put(h, "tagger", "columns", "delimiter", value="ab"), "delimiter='ab'"),
    (lambda h: put(h, "tagger", "columns", "delimiter", value="\n"), "delimiter="),
    (lambda h: put(h, "tagger", "columns", "comments", value="#"), "comments='#'"),
    (lambda h: put(h, "tagger", "columns", "comments", value=[""]), "comments="),
    (lambda h: put(h, "tagger", "columns", "encoding", value="rot13"), "encoding='rot13'"),
    (lambda h: put(h, "tagger", "columns", "encoding", value="os.system"), "encoding="),
    (lambda h: put(h, "tagger", "columns", "encoding", value="a\0b"), "null"),
    (lambda h: dropped(h, "classes"), "classes should have dtype 'list'"),
    (lambda h: put(h, "classes", "dtype", value="str"), "classes should have dtype 'list'"),
    (lambda h: put(h, "classes", "values", value=[]), "classes should have texts"),
    (lambda h: put(h, "classes", "values", value="DNV"), "classes should have texts"),
    (lambda h: put(h, "classes", "values", value=["D", "N", None]), "classes should have texts"),
    (lambda h: put(h, "classes", "values", value=["D", "N", ["V"]]), "classes should have texts"),
    (lambda h: put(h, "classes", "values", value=["D", "N", "D"]), "each label once"),
    (lambda h: put(h, "classes", "values", value=[1, True, "N"]), "each label once"),
    (lambda h: put(h, "classes", "values", value=["D", "N"]), r"coef_ has shape .* labels=2"),
    (lambda h: put(h, "n_features", value=3), "n_features=3 needs"),
    (lambda h: put(h, "n_features", value=2**52), "n_features=4503599627370496 needs"),
    (lambda h: put(h, "n_features", value=-1), "n_features=-1"),
    (lambda h: put(h, "feature_names", value=["a"]), "has no 'feature_names'"),
    (lambda h: put(h, "stream", value={}), "has no 'stream'"),
    (lambda h: put(h, "kernel", value={}), "has no 'kernel'"),
    (lambda h: put(h, "estimator", value="LinearSVC"), "LinearSVC has no parameter"),
    (lambda h: put(h, "scalars", "lam_", value="1"), "lam_='1'"),
    (lambda h: put(h, "parameters", "checkpoint", value="/etc/passwd"), "no parameter 'checkpoint'"),
    (lambda h: put(h, "parameters", "solver", value="smo"), "solver='smo' is unknown"),
    (lambda h: put(h, "parameters", "solver", value={"name": "sdca"}), "names none of pegasos"),
    (lambda h: put(h, "parameters", "algorithm", value="arow"), "arow"),
    (lambda h: put(h, "parameters", "loss", value="squared"), "loss='squared'"),
    (lambda h: put(h, "parameters", "grammar", value={}), "parameter grammar={}"),
    (lambda h: put(h, "parameters", "grammar", value=["DN"]), "grammar has 'DN'"),
    (lambda h: put(h, "parameters", "grammar", value=[["D", []]]), "grammar has"),
    (lambda h: put(h, "parameters", "cost", value="free"), "cost='free'"),
    (lambda h: put(h, "parameters", "cost", value=[[0, 1], [1]]), "a square table"),
    (lambda h: put(h, "parameters", "cost", value={"pairs": [["a", "b"]]}), "two labels and a number"),
    (lambda h: put(h, "parameters", "cost", value={"pairs": [["a", "b", -1]]}), "a number >= 0"),
    (lambda h: put(h, "parameters", "cost", value={"pairs": [["a", "b", 1], ["a", "b", 2]]}), "comes once"),
]


@pytest.mark.parametrize(("change", "message"), HEADERS)
def test_wrong_headers(change, message, valid, tmp_path):
    header, arrays = parts(valid)
    change(header)
    (tmp_path / "model").write_bytes(rebuilt(header, arrays))
    with pytest.raises(ValueError, match=message) as caught:
        pegasos.load(tmp_path / "model")
    assert str(tmp_path / "model") in str(caught.value)


def changed(name, change):
    """A function that changes a copy of an array."""

    def apply(arrays):
        array = arrays[name].copy()
        found = change(array)
        arrays[name] = array if found is None else found

    return apply


def at(place, value):
    def change(array):
        array[place] = value

    return change


ARRAYS = [
    (lambda a: a.pop("coef_"), "the array coef_ is missing"),
    (lambda a: a.pop("coef_.rows"), "the array coef_.rows is missing"),
    (lambda a: a.pop("transitions_"), "the array transitions_ is missing"),
    (lambda a: a.pop("grammar.first"), "the array grammar.first is missing"),
    (lambda a: a.pop("attributes_.text"), "the array attributes_.text is missing"),
    (lambda a: a.update(intercept_=np.zeros(3)), "has no 'intercept_'"),
    (changed("attributes_.offsets", at(1, -1)), "attributes_: "),
    (changed("attributes_.offsets", at(2, 0)), "attributes_: "),
    (changed("attributes_.offsets", at(0, 1)), "attributes_: "),
    (changed("attributes_.offsets", at(-1, 2**62)), "attributes_: "),
    (changed("attributes_.offsets", lambda o: o[:-1]), "attributes_.offsets has"),
    (changed("attributes_.offsets", lambda o: o.astype(np.int32)), "attributes_.offsets is int32"),
    (changed("attributes_.text", at(0, 0xFF)), "attributes_: "),
    (changed("attributes_.text", lambda t: t[:-1]), "attributes_: "),
    (changed("attributes_.text", lambda t: np.full_like(t, ord("a"))), "attributes_: "),  # names twice
    (changed("coef_.rows", at(0, -1)), "coef_.rows has -1, which is no number"),
    (changed("coef_.rows", at(-1, 2**30)), "coef_.rows has 1073741824, which is no number"),
    (changed("coef_.rows", lambda r: r[::-1].copy()), "coef_.rows should increase"),
    (changed("coef_.rows", at(1, 0)), "coef_.rows should increase, but has 0 behind 0"),
    (changed("coef_.rows", lambda r: r[:-1]), "coef_ has shape"),
    (changed("coef_.rows", lambda r: r.astype(np.int64)), "coef_.rows is int64"),
    (changed("coef_", at((0, 0), np.nan)), "coef_ has values that are not finite"),
    (changed("coef_", at((0, 0), 1e200)), "squares overflow"),
    (changed("coef_", lambda c: c.T.copy()), "coef_ has shape"),
    (changed("coef_", lambda c: c.astype(np.float32)), "coef_ is float32"),
    (changed("transitions_", at((0, 0), np.inf)), "transitions_ has values that are not finite"),
    (changed("transitions_", lambda t: t[:2]), "transitions_ has shape"),
    (changed("grammar.next", at((0, 0), 2)), "grammar.next has a flag that is neither 0 nor 1"),
    (changed("grammar.first", at(0, 255)), "grammar.first has a flag"),
    (changed("grammar.final", lambda f: f[:1]), "grammar.final has shape"),
    (changed("dev_scores_", at(0, 1.5)), "dev_scores_ should be numbers between 0 and 1"),
    (changed("dev_scores_", at(0, np.nan)), "dev_scores_ has values that are not finite"),
]


@pytest.mark.parametrize(("change", "message"), ARRAYS)
def test_wrong_arrays(change, message, valid):
    header, arrays = parts(valid)
    change(arrays)
    with pytest.raises(ValueError, match=message):
        loaded(rebuilt(header, arrays))


def test_a_size_that_is_announced_is_not_believed(valid):
    length = int.from_bytes(valid[:8], "little")
    table = json.loads(valid[8 : 8 + length])
    table["coef_"]["shape"] = [2**40, 2**20]
    text = json.dumps(table).encode()
    with pytest.raises(ValueError, match="shape that cannot be"):
        loaded(struct.pack("<Q", len(text)) + text + valid[8 + length :])


def test_every_truncation_is_noticed(valid):
    for length in range(0, len(valid), 7):
        with pytest.raises(ValueError, match="truncated"):
            loaded(valid[:length])


def test_the_largest_weights_give_labels(valid):
    """Sums that overflow are no crash: a labelling is one of the grammar's, whatever the scores."""
    header, arrays = parts(valid)
    arrays["coef_"] = np.where(np.arange(arrays["coef_"].size).reshape(arrays["coef_"].shape) % 2, 1e150, -1e150)
    model = loaded(rebuilt(header, arrays))
    huge = [[dict.fromkeys(model.attributes_, 1e150) for _ in range(5)]]
    assert set(model.predict(huge)[0]) <= set(model.classes_)


def test_a_grammar_without_a_way_is_said_when_it_is_used(valid):
    header, arrays = parts(valid)
    arrays["grammar.first"] = np.zeros(3, np.uint8)
    with pytest.raises(ValueError, match="the grammar allows no labelling"):
        loaded(rebuilt(header, arrays)).predict(X)


def test_random_damage_is_refused_or_harmless(valid):
    random = np.random.default_rng(0)
    for _ in range(1500):
        data = bytearray(valid)
        for place in random.integers(8, len(data), size=random.integers(1, 4)):
            data[place] = random.integers(256)
        with suppress(ValueError):  # refused, or a grammar without a way
            model = loaded(bytes(data))
            rows = X if model._encoder.kind == "attributes" else [np.ones((2, model.n_features_in_))]
            assert set(model.predict(rows)[0]) <= set(model.classes_)
