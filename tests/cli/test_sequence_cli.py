"""Taggers on the command line: train, predict, evaluate, info, report, and what is refused."""

from __future__ import annotations

import io as streams
import json
import os
import re
import signal
import subprocess
import sys
import time

import conlleval_oracle as oracle
import numpy as np
import processes
import pytest

import pegasos
from pegasos import SequenceSVC
from pegasos.cli import main
from pegasos.cli._tag_metrics import scheme_of
from pegasos.io import Template, read_conll, write_conll
from pegasos.metrics import entity_scores
from pegasos.report import page
from pegasos.report import record as run_record

NOUNS, VERBS, ADJECTIVES = ["dog", "cat", "run", "walk"], ["saw", "liked", "run", "walk"], ["old", "red"]


def sentences(count, seed):
    """Words, parts of speech and chunks; some words have two, and some tags are wrong."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        rows = []
        for _ in range(random.integers(1, 4)):
            adjectives = random.choice(ADJECTIVES, size=random.integers(0, 3)).tolist()
            rows += [("the", "DT", "B-NP"), *((word, "JJ", "I-NP") for word in adjectives)]
            rows += [(str(random.choice(NOUNS)), "NN", "I-NP"), (str(random.choice(VERBS)), "VBD", "B-VP")]
        rows.append((".", ".", "O"))
        wrong = random.random(len(rows)) < 0.05
        found.append([(*row[:2], "O") if bad else row for row, bad in zip(rows, wrong, strict=True)])
    return found


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_conll(sentences(80, 0), "train.conll")
    write_conll(sentences(30, 1), "test.conll")
    return tmp_path


def run(capsys, *words, code=0):
    assert main(list(words)) == code, capsys.readouterr()
    return capsys.readouterr()


def direct(template=None, data="train.conll", **parameters):
    """The same fit in Python."""
    corpus, template = read_conll(data), template or Template.default(2)
    return SequenceSVC(random_state=0, **parameters).fit(map(template.attributes, corpus.sentences), corpus.column(-1))


# --- the whole way ---------------------------------------------------------------------------------------------------


def test_the_whole_way(place, capsys):
    words = ["--format", "conll", "-c", "0.5", "--grammar", "learnt", "--test", "test.conll", "--record", "a.json"]
    said = run(capsys, "train", "train.conll", "-m", "a.model", *words).out
    expected, model = direct(C=0.5, grammar="learnt"), pegasos.load("a.model")
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    test, template = read_conll("test.conll"), Template.default(2)
    found = expected.predict(map(template.attributes, test.sentences))
    scores = entity_scores(test.column(-1), found)
    tokens = sum(map(len, sentences(80, 0)))
    assert f"train.conll: 80 sentences, {tokens} tokens, {len(expected.attributes_)} attributes\n" in said
    assert "4 tags: B-NP (" in said
    assert f"test.conll: accuracy {100 * scores.accuracy:.2f} %, precision" in said
    assert f"f1 {100 * scores.f1:.2f} % ({scores.tokens} tokens in 30 sentences)\n" in said
    assert said.endswith("model: a.model\n")
    out = run(capsys, "predict", "test.conll", "-m", "a.model", "-o", "out.conll")
    assert out.out == ""
    tagged = read_conll("out.conll")
    assert tagged.column(-1) == found
    assert [[row[:3] for row in sentence] for sentence in tagged.sentences] == test.sentences
    said = run(capsys, "evaluate", "test.conll", "-m", "a.model").out
    assert said.split("\n", 1)[1] == oracle.Counts(tagged.column(2), tagged.column(3)).text
    assert said.count("\n") == 5
    quiet = run(capsys, "evaluate", "test.conll", "-m", "a.model", "-q").out
    assert quiet == said.split("\n", 1)[0] + "\n"
    facts = json.loads(run(capsys, "evaluate", "test.conll", "-m", "a.model", "--json").out)
    assert facts == {"source": "test.conll", "sequences": 30, **scores.to_dict()}
    record = json.loads((place / "a.json").read_text("utf-8"))
    assert (record["data"]["sequences"], record["data"]["rows"]) == (80, tokens)
    assert record["data"]["columns"] == len(expected.attributes_)
    assert record["test"]["metrics"]["f1"] == scores.f1
    assert record["test"]["entities"]["support"] == scores.support
    assert record["training"]["sequences"] == 80
    run(capsys, "report", "a.json", "-o", "a.html")
    page = (place / "a.html").read_text("utf-8")
    assert f"{tokens} tokens in 80 sequences" in page
    assert "B-NP → I-NP" in page
    assert "Entities" in page


def test_what_a_tagger_is(place, capsys):
    (place / "t").write_text("# words\nU00:%x[0,0]\nU01:%x[0,1]\nB\n")
    run(capsys, "train", "train.conll", "-m", "a.model", "--format", "conll", "--template", "t", "-q")
    facts = json.loads(run(capsys, "info", "a.model", "--json").out)
    model = direct(Template.read("t"))
    assert facts["estimator"] == "SequenceSVC"
    assert facts["labels"] == ["B-NP", "B-VP", "I-NP", "O"]
    assert facts["attributes"] == len(model.attributes_)
    assert facts["template"] == ["U00:%x[0,0]", "U01:%x[0,1]"]
    assert facts["converged"]
    weights = {f"{a} → {b}": value for (a, b), value in model.transition_features_.items()}
    best = max(weights, key=weights.get)
    assert next(iter(facts["top transitions"])) == best
    assert facts["top transitions"] == {name: weights[name] for name in facts["top transitions"]}
    state = {name: value for (name, label), value in model.state_features_.items() if label == "B-VP"}
    assert next(iter(facts["top features of B-VP"])) == max(state, key=state.get)
    assert "top transitions" in run(capsys, "info", "a.model").out


def test_probabilities(place, capsys):
    run(capsys, "train", "train.conll", "-m", "a.model", "--format", "conll", "--loss", "log", "-q")
    lines = run(capsys, "predict", "test.conll", "-m", "a.model", "-b", "1").out
    tagged, model = read_conll(lines.encode()), direct(loss="log")
    X = list(map(Template.default(2).attributes, read_conll("test.conll").sentences))
    assert tagged.column(3) == model.predict(X)
    marginals = model.predict_marginals(X)
    expected = [
        [f"{p[tag]:.6f}" for p, tag in zip(*pair, strict=True)]
        for pair in zip(marginals, tagged.column(3), strict=True)
    ]
    assert tagged.column(4) == expected
    run(capsys, "train", "train.conll", "-m", "h.model", "--format", "conll", "-q")
    assert "train with --loss log" in run(capsys, "predict", "test.conll", "-m", "h.model", "-b", "1", code=1).err
    assert "scores whole sentences" in run(capsys, "predict", "test.conll", "-m", "h.model", "--scores", code=1).err


def test_options_reach_the_estimator(place, capsys):
    words = [
        "--solver",
        "pegasos:batch_size=8",
        "--lam",
        "0.02",
        "-e",
        "0.2",
        "-wO",
        "3",
        "--seed",
        "5",
        "--threads",
        "2",
    ]
    run(capsys, "train", "train.conll", "-m", "a.model", "--format", "conll", *words, "-q")
    found = pegasos.load("a.model").get_params(deep=False)
    expected = {"solver": pegasos.Pegasos(batch_size=8), "lam": 0.02, "tol": 0.2, "class_weight": {"O": 3.0}}
    assert {name: found[name] for name in expected} == expected
    assert (found["random_state"], found["n_jobs"]) == (5, 2)


def test_numbers_are_tags_like_others(place, capsys):
    (place / "n.conll").write_text("a 1\nb 2\n\nb 2\na 1\n")
    run(capsys, "train", "n.conll", "-m", "a.model", "--format", "conll", "-w1", "2", "-q")
    assert pegasos.load("a.model").classes_ == ["1", "2"]
    assert pegasos.load("a.model").class_weight == {"1": 2.0}


def test_tags_without_prefixes_have_an_accuracy_and_no_entities(place, capsys):
    rows = [[(word, tag) for word, tag, _ in sentence] for sentence in sentences(60, 2)]
    write_conll(rows, "pos.conll")
    said = run(capsys, "train", "pos.conll", "-m", "a.model", "--format", "conll", "--test", "pos.conll").out
    assert re.search(r"pos.conll: accuracy \S+ % \(\d+ tokens in 60 sentences\)", said)
    said = run(capsys, "evaluate", "pos.conll", "-m", "a.model").out
    assert said.count("\n") == 1
    facts = json.loads(run(capsys, "evaluate", "pos.conll", "-m", "a.model", "--json").out)
    assert sorted(facts) == ["accuracy", "correct_tokens", "sequences", "source", "tokens"]
    assert facts["accuracy"] == facts["correct_tokens"] / facts["tokens"]


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        (["B-NP", "I-NP", "O"], "bio"),
        (["I", "O"], "bio"),
        (["I-X", "E-X", "O"], "bio"),
        (["B-X", "E-X", "O"], "bioes"),
        (["B-X", "S-X"], "bioes"),
        (["O"], None),
        (["NN", "B-NP"], None),
        ([1, 2], None),
    ],
)
def test_what_prefixes_mean(tags, scheme):
    assert scheme_of(tags) == scheme


def test_many_batches_are_counted_as_one(place, capsys, monkeypatch):
    run(capsys, "train", "train.conll", "-m", "a.model", "--format", "conll", "-q")
    whole = run(capsys, "evaluate", "test.conll", "-m", "a.model").out
    tagged = run(capsys, "predict", "test.conll", "-m", "a.model").out
    monkeypatch.setattr("pegasos.cli._corpus._BATCH", 4)
    assert run(capsys, "evaluate", "test.conll", "-m", "a.model").out == whole
    assert run(capsys, "predict", "test.conll", "-m", "a.model").out == tagged


def test_cross_validation(place, capsys):
    said = run(capsys, "train", "train.conll", "--format", "conll", "-v", "4").out
    assert re.fullmatch(r"cross-validation f1 \S+ % ± \S+ % \(4 folds\)\n", said)
    assert (
        "81 folds; use a smaller -v" in run(capsys, "train", "train.conll", "--format", "conll", "-v", "81", code=1).err
    )


def test_delimiters_comments_and_encodings_are_kept_with_the_model(place, capsys):
    text = "# eins\nde r\tDT\tB-NP\nHünd\tNN\tI-NP\n\n# zwei\nbellt\tVB\tO\n"
    (place / "a.conll").write_text(text, encoding="latin-1")
    words = ["--delimiter", "tab", "--comments", "#", "--comments", "%%", "--encoding", "latin-1"]
    run(capsys, "train", "a.conll", "-m", "a.model", "--format", "conll", *words, "-q")
    run(capsys, "predict", "a.conll", "-m", "a.model", "-o", "out.conll")
    lines = (place / "out.conll").read_text(encoding="latin-1").splitlines()
    assert lines == ["de r\tDT\tB-NP\tB-NP", "Hünd\tNN\tI-NP\tI-NP", "", "bellt\tVB\tO\tO", ""]
    assert "accuracy 100.00 %" in run(capsys, "evaluate", "a.conll", "-m", "a.model").out


def test_files_without_tags_are_tagged(place, capsys):
    run(capsys, "train", "train.conll", "-m", "a.model", "--format", "conll", "-q")
    write_conll([[row[:2] for row in sentence] for sentence in sentences(30, 1)], "bare.conll")
    bare = read_conll(run(capsys, "predict", "bare.conll", "-m", "a.model").out.encode())
    full = read_conll(run(capsys, "predict", "test.conll", "-m", "a.model").out.encode())
    assert bare.column(2) == full.column(3)


def test_standard_input(place, capsys, monkeypatch):
    run(capsys, "train", "train.conll", "-m", "a.model", "--format", "conll", "-q")
    expected = run(capsys, "predict", "test.conll", "-m", "a.model").out

    def given(path):
        monkeypatch.setattr(sys, "stdin", streams.TextIOWrapper(streams.BytesIO((place / path).read_bytes())))

    given("train.conll")
    run(capsys, "train", "-", "-m", "b.model", "--format", "conll", "-q")
    assert (place / "b.model").stat().st_size == (place / "a.model").stat().st_size
    given("test.conll")
    assert run(capsys, "predict", "-", "-m", "b.model").out == expected
    given("test.conll")
    assert "<stdin>: accuracy" in run(capsys, "evaluate", "-", "-m", "b.model").out


def test_a_grammar_of_pairs(place, capsys):
    pairs = [
        ("B-NP", "I-NP"),
        ("I-NP", "I-NP"),
        ("I-NP", "B-VP"),
        ("B-VP", "B-NP"),
        ("B-VP", "O"),
        ("<s>", "B-NP"),
        ("O", "</s>"),
    ]
    clean = [[("the", "B-NP"), ("dog", "I-NP"), ("saw", "B-VP"), (".", "O")]] * 3
    write_conll(clean, "clean.conll")
    (place / "g").write_text("".join(f"{a} {b}\n" for a, b in pairs))
    run(capsys, "train", "clean.conll", "-m", "a.model", "--format", "conll", "--grammar", "g", "-q")
    model = pegasos.load("a.model")
    assert model.grammar == [tuple(None if tag in ("<s>", "</s>") else tag for tag in pair) for pair in pairs]
    write_conll([[("dog",), ("dog",)]], "short.conll")
    said = run(capsys, "predict", "short.conll", "-m", "a.model", code=1).err
    assert "short.conll: the sentence that begins on line 1: the grammar allows no labelling of 2 tokens" in said
    (place / "g").write_text("B-NP\n")
    words = ["train", "clean.conll", "-m", "b.model", "--format", "conll", "--grammar"]
    assert "g: line 1: has 1 columns in place of two tags" in run(capsys, *words, "g", code=1).err
    assert (
        "--grammar bia: is none of learnt, bio, bioes, and there is no file" in run(capsys, *words, "bia", code=1).err
    )


@pytest.fixture
def recorded(place, capsys):
    words = ["--format", "conll", "-c", "0.5", "--test", "test.conll", "--record", "a.json", "--json"]
    return json.loads(run(capsys, "train", "train.conll", "-m", "a.model", *words).out)


def test_records_of_taggers_read_back_and_are_checked(recorded):
    record = run_record.from_json(json.dumps(recorded))
    assert json.loads(run_record.to_json(record)) == recorded
    assert record.test.entities.types[0].type == "NP"
    for name, value, message in [
        ("support", 1, "test.entities: support must be the sum over the types"),
        ("types", [], "test.entities: support must be the sum"),
        ("types", [{"type": "NP", "support": 1, "found": 1, "correct": 2}], r"types\[0\]: correct must be"),
        ("more", 1, "test.entities has an unknown key 'more'"),
    ]:
        with pytest.raises(ValueError, match=message):
            run_record.from_json(json.dumps(recorded | {"test": spoilt_entities(recorded["test"], name, value)}))


def spoilt_entities(evaluation, name, value):
    return evaluation | {"entities": evaluation["entities"] | {name: value}}


def test_records_from_before_taggers_are_read(recorded):
    """What came later has a default."""
    late = {"data": ["sequences"], "test": ["sequences", "entities"], "training": ["sequences", "entities"]}
    late["features"] = ["transitions"]
    for key, names in late.items():
        for name in names:
            del recorded[key][name]
    record = run_record.from_json(json.dumps(recorded))
    assert record.data.sequences is None
    assert record.features.transitions == ()
    assert "Entities" not in page([record])


def test_tags_are_escaped_in_reports(place, capsys):
    (place / "x.conll").write_text("a B-<b>\nb I-<b>\nc O\n")
    run(
        capsys,
        "train",
        "x.conll",
        "-m",
        "x.model",
        "--format",
        "conll",
        "--test",
        "x.conll",
        "--record",
        "x.json",
        "-q",
    )
    run(capsys, "report", "x.json", "-o", "x.html")
    assert "<b>" not in (place / "x.html").read_text("utf-8")
    assert "B-&lt;b&gt; → I-&lt;b&gt;" in (place / "x.html").read_text("utf-8")


# --- limits, checkpoints and signals ---------------------------------------------------------------------------------


def test_a_limit_is_said_and_resumed(place, capsys):
    words = ["train", "train.conll", "-m", "a.model", "--format", "conll", "--checkpoint", "a.ckpt", "-e", "1e-3"]
    words += ["--solver", "block_frank_wolfe"]
    said = run(capsys, *words, "--max-iter", "3", code=3).err
    assert "Raise --max-iter or --max-time" in said
    assert (place / "a.ckpt").exists()
    run(capsys, *words, "--resume", "-q")
    assert not (place / "a.ckpt").exists()
    run(capsys, "train", "train.conll", "-m", "b.model", *words[4:6], *words[8:], "-q")
    found, straight = pegasos.load("a.model"), pegasos.load("b.model")
    np.testing.assert_array_equal(found.coef_, straight.coef_)
    assert found.certificate_.converged


@pytest.mark.unsanitized
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_signal_keeps_the_model(place):
    words = ["train", "train.conll", "-m", "a.model", "--format", "conll", "--solver", "pegasos", "--lam", "1e-7"]
    words += ["--tol", "0", "--max-iter", "1000000000", "--checkpoint", "c", "--checkpoint-every", "0"]
    command = [sys.executable, "-m", "pegasos", *words]
    with processes.started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + processes.LIMIT
        while not (place / "c").exists():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < end, "waited in vain"
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; the model so far" in err
    model = pegasos.load("a.model")
    assert model.certificate_.reason == "interrupted"
    assert len(model.predict([Template.default(2).attributes([("the", "DT")])])) == 1


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--format", "conll", "--kernel", "rbf"], "--kernel does not go with --format conll"),
        (["--format", "conll", "-g", "1"], "--gamma does not go with"),
        (["--format", "conll", "-d", "0"], "--degree does not go with"),
        (["--format", "conll", "-r", "0"], "--coef0 does not go with"),
        (["--format", "conll", "-B", "1"], "-B does not go with"),
        (["--format", "conll", "--intercept", "none"], "--intercept does not go with"),
        (["--format", "conll", "--regression"], "--regression does not go with"),
        (["--format", "conll", "-s", "3"], "-s does not go with"),
        (["--format", "conll", "-p", "0"], "-p does not go with"),
        (["--format", "conll", "--n-features", "5"], "--n-features does not go with"),
        (["--format", "conll", "--zero-based"], "--zero-based does not go with"),
        (["--format", "conll", "--feature-names", "f"], "--feature-names does not go with"),
        (
            ["--format", "conll", "--loss", "squared"],
            "--loss squared is not for tagged sentences; it can be hinge or log",
        ),
        (
            ["--format", "conll", "--solver", "sdca"],
            "--solver sdca is not for tagged sentences; it can be auto, pegasos",
        ),
        (["--format", "conll", "--solver", "magic"], "'magic' is unknown"),
        (["--format", "conll", "--solver", "lbfgs"], "--solver lbfgs is for --loss log, not for hinge"),
        (["--format", "conll", "--loss", "log", "-wO", "2"], "class weights are for --loss hinge"),
        (["--format", "conll", "-c", "1", "--lam", "1"], "say the same thing"),
        (["--format", "conll", "--delimiter", "ab"], "--delimiter 'ab' must be one character, or tab"),
        (["--template", "t"], "--template is for tagged sentences; add --format conll"),
        (["--grammar", "bio"], "--grammar is for tagged sentences; add --format conll"),
        (["--comments", "#"], "--comments is for tagged sentences; add --format conll"),
        (["--kernel", "rbf", "--encoding", "x"], "--encoding is for tagged sentences; add --format conll"),
    ],
)
def test_wrong_usage(words, message, place, capsys):
    assert message in run(capsys, "train", "train.conll", "-m", "x", *words, code=2).err
    assert not (place / "x").exists()


def test_formats_that_hold_no_taggers(place, capsys):
    words = ["train", "train.conll", "--format", "conll", "-m"]
    assert "the format onnx holds no taggers" in run(capsys, *words, "x.onnx", code=2).err
    run(capsys, *words, "a.model", "-q")
    for name in ("a.onnx", "a.liblinear", "a.libsvm"):
        assert "SequenceSVC" in run(capsys, "export", "a.model", name, code=1).err
        assert not (place / name).exists()
    run(capsys, "export", "a.model", "b.model")
    assert (place / "b.model").read_bytes() == (place / "a.model").read_bytes()
    said = run(capsys, "sparsify", "a.model", "train.conll", "-m", "s.model", code=1).err
    assert "a.model: is a SequenceSVC; only kernel classifiers" in said
    assert (
        "only one of DATA and --template" in run(capsys, "train", "-", *words[2:], "x", "--template", "-", code=2).err
    )
    assert (
        "--zero-based is for svmlight"
        in run(capsys, "predict", "test.conll", "-m", "a.model", "--zero-based", code=1).err
    )


def test_wrong_files_are_named_with_their_lines(place, capsys):
    words = ["-m", "a.model", "--format", "conll"]
    (place / "ragged.conll").write_text("a DT B-NP\nb NN\n")
    (place / "words.conll").write_text("a\nb\n")
    (place / "none.conll").write_text("\n\n")
    (place / "bytes.conll").write_bytes(b"a DT B-NP\n\xff NN I-NP\n")
    (place / "t").write_text("U00:%x[0,0]\nU01:%x[0,2]\n")
    (place / "bad").write_text("U00:%x[0,0]\nV01\n")
    assert (
        "ragged.conll: line 2: 2 columns, where line 1 has 3"
        in run(capsys, "train", "ragged.conll", *words, code=1).err
    )
    assert "words.conll: has one column" in run(capsys, "train", "words.conll", *words, code=1).err
    assert "none.conll: holds no sentences" in run(capsys, "train", "none.conll", *words, code=1).err
    assert "bytes.conll: line 2: is not utf-8 text" in run(capsys, "train", "bytes.conll", *words, code=1).err
    said = run(capsys, "train", "train.conll", *words, "--template", "t", code=1).err
    assert "train.conll: t: line 2: %x[0,2] asks for column 2, but tokens have 2" in said
    assert (
        "bad: line 2: 'V01' begins neither"
        in run(capsys, "train", "train.conll", *words, "--template", "bad", code=1).err
    )
    said = run(capsys, "train", "train.conll", *words, "--test", "ragged.conll", code=1).err
    assert "ragged.conll: line 2" in said
    said = run(capsys, "train", "train.conll", *words, "--encoding", "klingon", code=1).err
    assert "--encoding klingon is not known" in said
    assert not (place / "a.model").exists()


def test_tags_that_break_a_grammar_are_found(place, capsys):
    (place / "a.conll").write_text("a B-NP\n\nb B-NP\nc I-VP\n")
    said = run(capsys, "train", "a.conll", "-m", "a.model", "--format", "conll", "--grammar", "bio", code=1).err
    assert (
        "a.conll: the sentence that begins on line 3, token 2: the grammar does not allow 'I-VP' after 'B-NP'" in said
    )


def test_wrong_files_for_a_tagger(place, capsys):
    run(capsys, "train", "train.conll", "-m", "a.model", "--format", "conll", "-q")
    (place / "ragged.conll").write_text("a DT B-NP\n\nb NN\n")
    (place / "words.conll").write_text("a\nb\n")
    (place / "two.conll").write_text("a DT\nb NN\n")
    (place / "odd.conll").write_text("a DT B-NP\n\nb NN I-NP\nb NN X-NP\n")
    for command in ("predict", "evaluate"):
        said = run(capsys, command, "ragged.conll", "-m", "a.model", code=1).err
        assert "ragged.conll: line 3: 2 columns, where line 1 has 3" in said
        said = run(capsys, command, "words.conll", "-m", "a.model", code=1).err
        assert "words.conll: the model's template: line" in said
    assert "two.conll: the model's template" in run(capsys, "evaluate", "two.conll", "-m", "a.model", code=1).err
    said = run(capsys, "evaluate", "odd.conll", "-m", "a.model", code=1).err
    assert "odd.conll: the sentence that begins on line 3, token 2 is 'X-NP', which is not O" in said
    assert "carries no" not in said
    assert not run(capsys, "predict", "ragged.conll", "-m", "a.model", "-o", "out", code=1).out
    assert not (place / "out").exists()


def test_taggers_of_python_have_no_template(place, capsys):
    pegasos.save(SequenceSVC().fit([["a", "b"]], [["x", "y"]]), "p.model")
    for command in ("predict", "evaluate"):
        assert "p.model: was trained in Python" in run(capsys, command, "test.conll", "-m", "p.model", code=1).err
    assert "template" not in json.loads(run(capsys, "info", "p.model", "--json").out)
