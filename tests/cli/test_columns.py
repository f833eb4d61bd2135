"""Columns by name and position: files whose headers, targets and orders are told, guessed, matched or refused."""

from __future__ import annotations

import io as std_io

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_iris

import pegasos
from pegasos import SVC, SVR, LinearSVC, LinearSVR, SparseSVC, io
from pegasos.cli import main
from pegasos.cli._options import as_options
from pegasos.io.data.csv_header import guess_header

pytestmark = pytest.mark.unsanitized

NAMES = ["sepal length", "sepal width", "petal length", "petal width"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder of its own to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capfd):
    """Runs a command; what it printed, once its exit code is the expected one."""

    def call(*words, code=0):
        capfd.readouterr()
        got = main([str(word) for word in words])
        printed = capfd.readouterr()
        assert got == code, printed
        return printed

    return call


def frames():
    """Iris in a random order with text labels, two thirds to train on and the rest."""
    frame = load_iris(as_frame=True).frame.set_axis([*NAMES, "target"], axis=1)
    frame["target"] = np.array(["setosa", "versicolor", "virginica"])[frame["target"]]
    frame = frame.sample(frac=1, random_state=0)
    return frame[:100], frame[100:]


@pytest.fixture
def iris(place, run):
    """Folders ``train`` and ``test``, and a model; the accuracy on ``test`` is 0.96."""
    train, test = frames()
    for name, frame in (("train", train), ("test", test)):
        frame.to_csv(f"{name}.csv", index=False)
        run("convert", f"{name}.csv", name, "-q")
    run("train", "train", "-m", "iris.model", "-q")
    return test


def written(run, frame, name, form="csv", **options):
    if form == "csv":
        frame.to_csv(f"{name}.csv", index=False)
    else:
        frame.to_parquet(f"{name}.parquet", index=False)
    run("convert", f"{name}.{form}", name, "-q", *[word for item in options.items() for word in item])
    return name


# --- columns in another order ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_columns_in_another_order_are_matched_by_name(iris, run, form):
    expected = run("predict", "test", "-m", "iris.model").out
    shuffled = written(run, iris[[NAMES[3], "target", NAMES[2], NAMES[0], NAMES[1]]], "shuffled", form)
    assert run("predict", "test", "-m", "iris.model").err == ""
    said = run("predict", shuffled, "-m", "iris.model")
    assert said.out == expected
    assert said.err == (
        "pegasos: shuffled: the columns are in another order than in training; they are matched by name\n"
    )
    assert run("predict", shuffled, "-m", "iris.model", "-q").err == ""
    assert "accuracy 96.00 %" in run("evaluate", shuffled, "-m", "iris.model").out
    assert "accuracy 96.00 %" in run("train", "train", "-m", "again.model", "--test", shuffled).out


def test_columns_that_the_model_does_not_know_are_ignored_by_name(iris, run):
    expected = run("predict", "test", "-m", "iris.model").out
    wider = written(run, iris.assign(age=7.0, id=3.0)[["id", *NAMES[::-1], "age", "target"]], "wider")
    said = run("predict", wider, "-m", "iris.model")
    assert said.out == expected
    assert "wider: the columns 'id', 'age' are unknown to the model and ignored" in said.err


def test_a_missing_column_is_refused_before_anything_is_computed(iris, run, place):
    short = written(run, iris.rename(columns={"petal width": "petal with"}), "short")
    for words in (
        ["predict", short, "-m", "iris.model", "-o", "out.txt"],
        ["evaluate", short, "-m", "iris.model"],
        ["train", "train", "-m", "other.model", "--test", short],
    ):
        said = run(*words, code=1)
        assert "short: lacks the column 'petal width' that the model was trained on" in said.err
        assert "did you mean 'petal with'?" in said.err
    assert not (place / "out.txt").exists()
    assert not (place / "other.model").exists()


def test_without_names_columns_are_matched_by_position_and_that_is_said(iris, run):
    iris.to_csv("plain.csv", index=False, header=False)
    run("convert", "plain.csv", "plain", "--target", "-1", "-q")
    expected = run("predict", "test", "-m", "iris.model").out
    said = run("predict", "plain", "-m", "iris.model")
    assert said.out == expected
    assert "plain: has no column names, so columns are matched by position: 'sepal length'" in said.err
    run("train", "plain", "-m", "plain.model", "-q")
    assert (
        "test: the model has no column names, so columns are matched by position"
        in run("evaluate", "test", "-m", "plain.model").err
    )
    assert run("evaluate", "plain", "-m", "plain.model").err == ""


def test_test_rows_that_cannot_be_judged_are_refused_before_the_fit(iris, run, place):
    iris[[*NAMES[:3], "target"]].to_csv("narrow.csv", index=False, header=False)
    run("convert", "narrow.csv", "narrow", "--target", "-1", "-q")
    iris.to_csv("train_plain.csv", index=False, header=False)
    run("convert", "train_plain.csv", "train_plain", "--target", "-1", "-q")
    said = run("train", "train_plain", "-m", "a.model", "--test", "narrow", code=1)
    assert "narrow: has 3 columns, but the model was trained on 4" in said.err
    (place / "numbers.svm").write_text("1 1:1\n2 2:1\n")
    said = run("train", "train", "-m", "a.model", "--test", "numbers.svm", code=1)
    assert "numbers.svm: the targets are numbers, but those of train are text" in said.err
    assert not (place / "a.model").exists()


def test_sparse_rows_with_names_are_matched_too(place, run):
    rng = np.random.default_rng(0)
    X = sparse.random(80, 6, density=0.5, random_state=0, format="csr")
    y = np.where(X @ rng.normal(size=6) > 0.3, 1, 0)
    names = list("abcdef")
    io.write_dataset(X, y, place / "train", feature_names=names)
    order = [3, 1, 5, 0, 2, 4]
    wider = sparse.hstack([X[:, order], np.ones((80, 1))]).tocsr()
    io.write_dataset(wider, y, place / "other", feature_names=[*(names[j] for j in order), "g"])
    run("train", "train", "-m", "a.model", "-q")
    assert run("predict", "other", "-m", "a.model").out == run("predict", "train", "-m", "a.model").out
    np.testing.assert_array_equal(pegasos.load("a.model").feature_names_in_, names)
    indices = np.lib.format.open_memmap(place / "other" / "indices.npy", mode="r+")
    indices[5] = 1 << 30
    indices.flush()
    assert "other: has a column index outside 0 … 6" in run("predict", "other", "-m", "a.model", code=1).err


def test_sparsify_matches_columns(iris, run):
    train, _ = frames()
    run("train", "train", "-m", "kernel.model", "--kernel", "rbf", "-q")
    run("sparsify", "kernel.model", "train", "-m", "small.model", "--max-support", "9", "-q")
    shuffled = written(run, train[[NAMES[2], "target", NAMES[0], NAMES[3], NAMES[1]]], "shuffled")
    said = run("sparsify", "kernel.model", shuffled, "-m", "same.model", "--max-support", "9")
    assert "matched by name" in said.err
    expected = run("predict", "test", "-m", "small.model").out
    assert run("predict", "test", "-m", "same.model").out == expected


@pytest.mark.parametrize("kind", [LinearSVC, LinearSVR, SVC, SVR, SparseSVC])
def test_model_files_keep_the_names_of_columns(tmp_path, kind):
    train, _ = frames()
    y = (train["target"] == "virginica").astype(int)
    model = kind().fit(train[NAMES], y)
    pegasos.save(model, tmp_path / "a.model")
    again = pegasos.load(tmp_path / "a.model")
    assert again.feature_names_in_.tolist() == NAMES
    np.testing.assert_array_equal(again.predict(train[NAMES]), model.predict(train[NAMES]))
    with pytest.raises(ValueError, match="feature names should match"):
        again.predict(train[NAMES[::-1]])


def test_in_python_a_dataset_of_another_order_is_refused_and_one_without_names_warned_of(tmp_path):
    train, _ = frames()
    X, y = train[NAMES], train["target"].to_numpy()
    model = LinearSVC().fit(io.write_dataset(X, y, tmp_path / "named"))
    with pytest.raises(ValueError, match="column 0 of the dataset is 'petal width', but was 'sepal length'"):
        model.predict(io.write_dataset(X[NAMES[::-1]], y, tmp_path / "reversed"))
    plain = io.write_dataset(X.to_numpy(), y, tmp_path / "plain")
    with pytest.warns(UserWarning, match="X does not have feature names, but the estimator does"):
        expected = model.predict(plain)
    np.testing.assert_array_equal(expected, model.predict(X))
    other = LinearSVC().fit(plain)
    with pytest.warns(UserWarning, match="the estimator does not have feature names, but X does"):
        other.predict(io.open_dataset(tmp_path / "named"))


# --- headers, targets and rows that number themselves ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "auto", "header"),
    [
        ("a,b,label", "1,2,x", True, True),
        ("a,b,label", None, True, True),
        ("1,2,3.5", "4,5,6", True, False),
        ("5.1,3.5,setosa", "4.9,3.0,setosa", False, False),
        ("5.1,3.5,setosa", None, False, False),
        ("id,2019,2020", "7,1.5,2.5", False, True),  # a word above a number
        ("5.1,NA,setosa", "4.9,3.0,setosa", False, False),  # a missing value is no name
        ("5.1,,setosa", "4.9,3.0,setosa", False, False),
        (",a,b", "0,1,2", True, True),
        ("0,1,2,label", "5.1,3.5,1.4,x", True, True),  # the columns of a frame that were never named
        (",0,1,2", "0,5.1,3.5,1", False, True),
        ("0,1,2,3", "5.1,3.5,1.4,1", False, None),
        ("1,2,3", "4,5,6", False, None),
        ("1,2", "3,4", False, False),
        ("2.5,3.5,y", "4.9,3.0,n", True, None),  # a label, or the name of the labels
        ("2.5,3.5,y", "4.9,3.0,n", False, False),
        ("2.5,3.5,y", "4.9,3.0,7", True, True),
    ],
)
def test_headers_are_told_from_rows(first, second, auto, header):
    assert guess_header(first.split(","), second and second.split(","), (), auto=auto) is header


def test_a_name_that_is_asked_for_makes_a_header():
    assert guess_header(["1", "2"], ["3", "4"], {"2"}, auto=False) is True


def convert(text, folder, **options):
    return io.convert(std_io.BytesIO(text.encode()), folder, format="csv", **options)


def test_the_first_row_of_a_file_without_header_is_kept(tmp_path):
    text = "5.1,3.5,setosa\n4.9,3.0,setosa\n6.0,2.0,virginica\n"
    told = []
    data = convert(text, tmp_path / "a", target=-1, tell=told.append)
    assert data.X.tolist() == [[5.1, 3.5], [4.9, 3.0], [6.0, 2.0]]
    assert data.y.tolist() == ["setosa", "setosa", "virginica"]
    assert data.feature_names is None
    assert told == ["<BytesIO>: there is no header, line 1 is a row"]
    data = convert(text, tmp_path / "b", target="setosa", header=True)
    assert data.feature_names == ("5.1", "3.5")
    with pytest.raises(
        ValueError, match=r"line 1 could name the columns or be a row; pass header=True or header=False"
    ):
        convert("0,1,2\n1,2,3\n", tmp_path / "c", target=0)
    assert convert("0,1,2\n1,2,3\n", tmp_path / "c", target=0, header=False).y.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("header", "left_out"),
    [
        (",a,y", ["1, without a name"]),
        ('"",a,y', ["1, without a name"]),
        ("Unnamed: 0,a,y", ["1, called 'Unnamed: 0'"]),
        (",,a,y", ["1, without a name", "2, without a name"]),
    ],
)
def test_columns_without_a_name_that_number_the_rows_are_left_out(tmp_path, header, left_out):
    numbers = ",".join(["row 1"] * len(left_out))
    text = f"{header}\n{numbers},1.5,2\n{numbers},2.5,3\n"
    with pytest.warns(UserWarning, match="is left out: it seems to number the rows") as caught:
        data = convert(text, tmp_path / "d")
    assert len(caught) == len(left_out)
    assert data.feature_names == ("a",)
    assert data.X.tolist() == [[1.5], [2.5]]
    told = []
    convert(text, tmp_path / "e", tell=told.append)
    assert [said.split(" column ")[1].split(", is")[0] for said in told[1:]] == left_out


def test_other_columns_without_a_name_are_refused(tmp_path):
    with pytest.raises(ValueError, match="column 2 has no name; name it in the header, or remove it"):
        convert("a,,y\n1,2,3\n", tmp_path / "d")
    with pytest.raises(ValueError, match="2 fields, where the first line has 1"):
        convert("a\n1,2\n", tmp_path / "d", target=None)
    with pytest.raises(ValueError, match="line 2: 3 fields, where the first line has 2; name the first column too"):
        convert("a,y\nrow1,2,3\n", tmp_path / "d")  # as R writes row names


def test_the_index_of_a_frame_in_parquet_is_left_out(tmp_path):
    train, _ = frames()
    train.to_parquet(tmp_path / "d.parquet")  # shuffled rows: pandas stores their numbers
    with pytest.warns(UserWarning, match="'__index_level_0__', is left out"):
        data = io.convert(tmp_path / "d.parquet", tmp_path / "d")
    assert data.feature_names == tuple(NAMES)


def test_frames_are_refused_by_the_name_of_the_column(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0], "colour": ["red", "blue"], "b": [True, False]})
    with pytest.raises(ValueError, match="column 'colour' has 'red' at row 0, which is no number"):
        io.write_dataset(frame, [0, 1], tmp_path / "d")
    with pytest.raises(ValueError, match=r"row 1, column 0 \(a\): NaN"):
        io.write_dataset(frame[["a", "b"]].assign(a=[1.0, np.nan]), [0, 1], tmp_path / "d")
    assert io.write_dataset(frame[["a", "b"]], [0, 1], tmp_path / "d").X.tolist() == [[1, 1], [2, 0]]


def test_options_of_one_format_are_refused_for_another(tmp_path):
    (tmp_path / "d.svm").write_text("1 1:1\n")
    for options, message in [
        ({"header": False}, "header=False is for csv files, not for svmlight"),
        ({"delimiter": ";"}, "delimiter=';' is for csv files"),
        ({"text_target": True}, "text_target=True is for csv files"),
        ({"target": "a"}, "target='a' is for tables, .*; if this is CSV, pass format='csv'"),
    ]:
        with pytest.raises(ValueError, match=message):
            io.convert(tmp_path / "d.svm", tmp_path / "d", **options)
    with pytest.raises(ValueError, match="zero_based=True is for svmlight files, not for csv"):
        convert("a,y\n1,2\n", tmp_path / "d", zero_based=True)
    assert io.convert(tmp_path / "d.svm", tmp_path / "d", target=None).y is None  # labels that are there are left out


# --- at the shell ----------------------------------------------------------------------------------------------------


def test_convert_takes_positions_from_1_and_says_what_it_did(place, run):
    (place / "d.csv").write_text("5.1,3.5,setosa\n4.9,3.0,virginica\n")
    assert (
        "there is no header, line 1 is a row; the target is column 3\n"
        in run("convert", "d.csv", "a", "--target", "3").err
    )
    assert io.open_dataset("a").shape == (2, 2)
    run("convert", "d.csv", "b", "--target", "-1", "--header", "no", "-q")
    assert io.open_dataset("b").y.tolist() == ["setosa", "virginica"]
    said = run("convert", "d.csv", "c", "--target", "4", code=1).err
    assert "--target 4 is neither the name of a column nor a position among 3, counted from 1" in said
    assert "--target 0 " in run("convert", "d.csv", "c", "--target", "0", code=1).err
    said = run("convert", "d.csv", "c", "--target", "species", code=1).err
    assert "no column is called --target species: the file has no header." in said
    assert "pass --header yes" in said


def test_a_column_named_1_is_a_name(place, run):
    (place / "d.csv").write_text("a,b,1\n5,6,7\n8,9,10\n")
    said = run("convert", "d.csv", "d", "--target", "1").err
    assert "line 1 names the columns; the target is column 3, '1'" in said
    assert io.open_dataset("d").y.tolist() == [7, 10]
    said = run("convert", "d.csv", "e", "--target", "2").err
    assert "the target is column 2, 'b'" in said
    assert io.open_dataset("e").y.tolist() == [6, 9]


def test_new_rows_without_targets_are_predicted(iris, run):
    iris[NAMES].to_csv("new.csv", index=False)
    said = run("convert", "new.csv", "new", code=1).err
    assert "or --no-target if there is none" in said
    run("convert", "new.csv", "new", "--no-target")
    assert run("predict", "new", "-m", "iris.model").out == run("predict", "test", "-m", "iris.model").out
    assert "new: was converted without targets" in run("evaluate", "new", "-m", "iris.model", code=1).err
    assert "new: was converted without targets" in run("train", "new", "-m", "a.model", code=1).err


@pytest.mark.parametrize(("delimiter", "word"), [(";", ";"), ("\t", "tab"), ("\t", "\\t"), ("|", "|"), (" ", "space")])
def test_other_delimiters(place, run, delimiter, word):
    (place / "d.csv").write_text("a,b,y\n1,2,3\n4,5,6\n".replace(",", delimiter))
    if delimiter != " ":
        said = run("convert", "d.csv", "d", code=1).err
        assert f"line 1 has no ',' but {delimiter!r}; pass --delimiter " in said
    run("convert", "d.csv", "d", "--delimiter", word, "-q")
    assert io.open_dataset("d").X.tolist() == [[1, 2], [4, 5]]


def test_weights_and_labels_that_look_like_numbers(place, run):
    (place / "d.csv").write_text("a,y,w\n1,2,0.5\n4,5,2\n")
    run("convert", "d.csv", "d", "--sample-weight", "w", "--text-target", "-q")
    data = io.open_dataset("d")
    assert data.y.tolist() == ["2", "5"]
    assert data.sample_weight.tolist() == [0.5, 2]


def test_csv_under_another_name_is_recognised_for_what_it_may_be(place, run):
    (place / "iris.data").write_text("5.1,3.5,setosa\n4.9,3.0,virginica\n")
    for words in (["convert", "iris.data", "d"], ["train", "iris.data", "-m", "a.model"], ["info", "iris.data"]):
        assert "if this is CSV, pegasos convert reads it with" in run(*words, code=1).err
    run("convert", "iris.data", "d", "--format", "csv", "--target", "3", "-q")
    assert "convert it first: pegasos convert d.csv.gz FOLDER" in _refused_by_name(place, run)


def _refused_by_name(place, run):
    import gzip

    (place / "d.csv.gz").write_bytes(gzip.compress(b"a,y\n1,2\n"))
    return run("train", "d.csv.gz", "-m", "a.model", code=1).err


def test_info_lists_the_names(iris, run):
    for path in ("test", "iris.model"):
        assert f"names{' ' * 4}" in run("info", path).out
        assert ", ".join(NAMES) in run("info", path).out


def test_export_says_that_names_are_lost(place, run):
    io.write_dataset([[0.0], [1.0]], [1, 2], place / "d", feature_names=["a"])
    run("train", "d", "-m", "a.model", "-q")
    assert "liblinear models have no column names" in run("export", "a.model", "a.liblinear").err
    assert run("export", "a.model", "b.safetensors").err == ""
    assert "the model has no column names" in run("predict", "d", "-m", "a.liblinear").err
    assert run("export", "a.model", "a.libsvm", "--dtype", "float64", code=2).err.endswith(
        "--dtype is for ONNX models, not for libsvm\n"
    )


# --- messages --------------------------------------------------------------------------------------------------------

CONVERT = ["--target", "--no-target", "--header", "--delimiter", "--force", "--memory", "--n-features", "--dtype"]


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("pass target='name', its position, or target=None", "pass --target name, its position, or --no-target"),
        ("exists; choose another name or pass overwrite=True", "exists; choose another name or pass --force"),
        ("pass header=True or header=False", "pass --header yes or --header no"),
        ("pass delimiter=';'", "pass --delimiter ';'"),
        ("is beyond n_features=3", "is beyond --n-features 3"),
        ("what memory=67108864 allows; raise memory", "what --memory 64 allows; raise --memory"),
        ("read with dtype=np.float64", "read with --dtype float64"),
        ("raise max_iter", "raise max_iter"),  # convert has no such option
        ("the columns 'target=None', 'C' (lam)", "the columns 'target=None', 'C' (lam)"),
        ("n_features.csv: pass n_features", "n_features.csv: pass --n-features"),
        ("--n-features is for svmlight", "--n-features is for svmlight"),
    ],
)
def test_parameters_become_options(message, said):
    assert as_options(message, CONVERT, ["convert", "n_features.csv", "folder"]) == said


def test_solvers_are_written_as_the_command_line_writes_them():
    said = "use 'sdca', or raise --solver interior_point:max_columns=..."
    assert as_options("use 'sdca', or raise InteriorPoint(max_columns=...)", ["--solver"]) == said
    assert as_options("solver=Nystroem(n_components=...) chooses", ["--solver"]) == (
        "--solver nystroem:n_components=... chooses"
    )


def test_advice_about_a_fit_names_options():
    advice = "a smaller C (larger lam) is easier; raise max_iter, or a larger tol: 'tol' (up to 3), tol=0.001"
    said = "a smaller -c (larger --lam) is easier; raise --max-iter, or a larger --tol: 'tol' (up to 3), --tol 0.001"
    assert as_options(advice, ["-c", "--lam", "--max-iter", "--tol"]) == said


def test_no_message_of_convert_names_a_parameter_of_python(place, run):
    (place / "a.csv").write_text("a,b\n1,2\n")
    (place / "semi.csv").write_text("a;y\n1;2\n")
    (place / "either.csv").write_text("1,2,3\n4,5,6\n")
    (place / "zero.svm").write_text("1 0:1\n")
    (place / "empty.svm").write_text("1\n-1\n")
    (place / "large.svm").write_text("1 1:1e300\n")
    (place / "late.csv").write_text("a,y\n" + "1,2\n" * 40_000 + "1,cat\n")
    (place / "long.svm").write_text("1 " + " ".join(f"{j}:1" for j in range(1, 20_000)) + "\n")
    np.savez(place / "none.npz", X=np.ones((2, 2)))
    io.write_dataset([[1.0]], [1], place / "there")
    for words, remedy in [
        (["a.csv", "d"], "--no-target"),
        (["semi.csv", "d"], "--delimiter ';'"),
        (["either.csv", "d", "--target", "1"], "--header yes or --header no"),
        (["zero.svm", "d"], "--zero-based"),
        (["empty.svm", "d"], "--n-features"),
        (["large.svm", "d", "--dtype", "float32"], "--dtype float64"),
        (["late.csv", "d", "--memory", "1"], "--text-target"),
        (["long.svm", "d", "--memory", "1"], "--memory 1 allows; raise --memory"),
        (["none.npz", "d"], "--target member"),
        (["a.csv", "there", "--target", "b"], "--force"),
        (["a.csv", "d", "--target", "b", "--n-features", "3"], "--n-features 3"),
    ]:
        said = run("convert", *words, code=1).err.splitlines()[-1]
        assert remedy in said
        assert not any(f"{name}=" in said or f"pass {name}" in said for name in io.convert.__kwdefaults__), said


def test_labels_that_a_format_cannot_hold_are_refused_before_the_fit(iris, run, place):
    for ending in ("liblinear", "libsvm"):
        said = run("train", "train", "-m", f"a.{ending}", "-c", "1e9", code=1).err
        assert f"a {ending} model has whole numbers below 2**31 as labels" in said
        assert "or use --format pegasos" in said
    (place / "three.svm").write_text("1 1:1\n2 2:1\n3 3:1\n")
    assert "compares them in pairs" in run("train", "three.svm", "-m", "a.libsvm", code=1).err
    run("train", "three.svm", "-m", "b.libsvm", "--kernel", "linear", "-q")
