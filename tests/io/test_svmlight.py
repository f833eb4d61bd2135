"""The svmlight reader and writer: against a slow oracle, against scikit-learn, and against everything that is wrong."""

import bz2
import gzip
import io
import lzma
import os
import pickle
import sys
from pathlib import Path

import numpy as np
import processes
import pytest
import svmlight_oracle as oracle
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

from pegasos import _core
from pegasos.io import SvmlightError, iter_svmlight, read_svmlight, write_svmlight
from pegasos.io.data import svmlight as svmlight_module

zstandard = pytest.importorskip("zstandard") if sys.version_info < (3, 14) else None
CORPUS = sorted((Path(__file__).parents[2] / "fuzz" / "corpus" / "svmlight").iterdir())


def outcome(read, text, **options):
    """What a reader makes of a text: arrays as bytes, or where and why it refused."""
    try:
        found = read(text, **options)
    except SvmlightError as error:
        return error.line, error.column, error.text, error.reason
    X, y, *query = found
    indices, indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X.shape, X.data.tobytes(), indices.tobytes(), indptr.tobytes(), y.tobytes(), [q.tobytes() for q in query]


def chunked(text, memory=1 << 16, **options):
    """All blocks of a text as one matrix, and so on."""
    blocks = list(iter_svmlight(text, memory=memory, **options))
    if not blocks:
        return read_svmlight(b"", **options)
    X = sparse.vstack([sparse.csr_matrix(X, shape=(X.shape[0], blocks[-1][0].shape[1])) for X, *_ in blocks], "csr")
    return X, *(np.concatenate(parts) for parts in list(zip(*blocks, strict=True))[1:])


def in_pieces(text, size, *, threads, zero_based=False, n_features=None, query_id=False, dtype=np.float64):
    """The core with pieces of any size, which the package leaves alone."""
    found = _core.svmlight_read(
        np.frombuffer(text, np.uint8) if text else np.empty(0, np.uint8),
        single=dtype == np.float32,
        wide=True,
        zero_based=zero_based,
        n_features=-1 if n_features is None else n_features,
        query=query_id,
        first_line=1,
        threads=threads,
        piece=size,
    )
    things = {name: getattr(found, name) for name in dir(found) if not name.startswith("_")}
    return {name: thing.tobytes() if isinstance(thing, np.ndarray) else thing for name, thing in things.items()}


def agrees_with_oracle(text, **options):
    dtype = options.get("dtype", np.float64)
    place = table = None
    try:
        table = oracle.read(text, **options)
    except oracle.Refused as refused:
        place = refused.place
    if table is None:
        with pytest.raises(SvmlightError) as caught:
            read_svmlight(text, **options)
        assert (caught.value.line, caught.value.column) == place
        return
    X, y, *query = read_svmlight(text, **options)
    entries = [entry for row in table.rows for entry in row]
    assert X.shape == (len(table.rows), table.columns if options.get("n_features") is None else options["n_features"])
    assert X.indices.tolist() == [j for j, _ in entries]
    assert X.data.tobytes() == np.array([x for _, x in entries], dtype).tobytes()
    assert np.diff(X.indptr).tolist() == [len(row) for row in table.rows]
    assert y.tobytes() == np.array(table.labels, float).tobytes()
    assert [q.tolist() for q in query] == ([table.queries] if options.get("query_id") else [])


AFTER = b"\n#" + 80 * b"."  # far from the end of the text there are quicker ways to read

NUMBERS = st.one_of(
    st.from_regex(rb"-?[0-9]\.[0-9]{1,16}", fullmatch=True),
    st.from_regex(rb"[+-]?[0-9]{1,25}(\.[0-9]{0,25})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.from_regex(rb"[+-]?\.[0-9]{1,20}", fullmatch=True),
    st.floats(allow_nan=False).map(lambda x: repr(x).encode()),
    st.sampled_from([b"nan", b"inf", b"-", b".", b"1e", b"0x1", b"1_0", b"\xd9\xa1", b"1\x00", b"1,2", b"16777217"]),
)
INDICES = st.one_of(
    st.integers(0, 120).map(lambda j: b"%d" % j),
    st.sampled_from([b"0001", b"2147483647", b"9223372036854775806", b"9223372036854775808", b"-1", b"+1", b"x", b""]),
)
PAIRS = st.tuples(INDICES, st.sampled_from([b":"] * 8 + [b": ", b":\t ", b" :", b"", b"::"]), NUMBERS).map(b"".join)
ODDITIES = st.sampled_from([b"\r", b"\r\n", b"\n", b"#", b"\x00", b"qid:1", b"qid:", b"  ", b"\t", b"\xef\xbb\xbf"])


@st.composite
def texts(draw):
    """Lines that are mostly in order."""
    lines = []
    for _ in range(draw(st.integers(0, 5))):
        label = draw(st.one_of(st.sampled_from([b"1", b"-1", b"+1", b"0.5"]), NUMBERS))
        query = draw(st.sampled_from([b"", b"", b" qid:3", b" qid:-9223372036854775807", b" qid:x"]))
        count = draw(st.integers(0, 4))
        start = np.cumsum(draw(st.lists(st.integers(1, 30), min_size=count, max_size=count)))
        pairs = [b"%d:%s" % (j, draw(NUMBERS)) for j in start]
        if draw(st.integers(0, 3)) == 0:
            pairs.append(draw(st.one_of(PAIRS, ODDITIES)))
        end = draw(st.sampled_from([b"", b"", b" ", b"\r", b" # 1:2", b"#\x00" if draw(st.booleans()) else b"#"]))
        lines.append(b" ".join([label + query, *pairs]) + end)
        if draw(st.integers(0, 3)) == 0:
            lines.append(draw(st.sampled_from([b"", b"  ", b"# comment 1:1", b"\r"])))
    return draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf"])) + b"\n".join(lines) + draw(st.sampled_from([b"", b"\n"]))


OPTIONS = st.fixed_dictionaries(
    {
        "zero_based": st.booleans(),
        "n_features": st.sampled_from([None, None, 0, 50, 2**40]),
        "query_id": st.booleans(),
        "dtype": st.sampled_from([np.float32, np.float64]),
    }
)


@settings(max_examples=400, deadline=None)
@given(texts(), OPTIONS)
def test_oracle(text, options):
    agrees_with_oracle(text, **options)
    agrees_with_oracle(text + AFTER, **options)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(PAIRS, ODDITIES, NUMBERS), max_size=12).map(b" ".join), OPTIONS)
def test_oracle_on_nonsense(text, options):
    agrees_with_oracle(text, **options)
    agrees_with_oracle(b"1 " + text + AFTER, **options)


@settings(max_examples=500, deadline=None)
@given(NUMBERS, st.sampled_from([np.float32, np.float64]))
@example(b"1.00000005960464477539062500001", np.float32)  # a hair above the middle of two floats, which doubles miss
@example(b"9007199254740993", np.float64)
@example(b"7.0064923216240853e-46", np.float32)  # half the smallest float
@example(b"3.4028235677973366e38", np.float32)  # where rounding becomes infinite
@example(b"0." + b"0" * 400 + b"1", np.float64)
@example(b"1" + b"0" * 400 + b"e-400", np.float64)
@example(b"0e99999999999999999999", np.float32)
@example(b"-1e-99999999999999999999", np.float64)
def test_numbers_are_rounded_correctly(number, dtype):
    agrees_with_oracle(b"1 1:" + number, dtype=dtype)
    agrees_with_oracle(number + b" 1:1", dtype=dtype)
    agrees_with_oracle(b"1 1:1 2:" + number + b" 3:0.5" + AFTER, dtype=dtype)


@settings(max_examples=200, deadline=None)
@given(texts(), OPTIONS, st.integers(1, 60))
def test_pieces_threads_and_blocks_do_not_matter(text, options, size):
    whole = in_pieces(text, 1 << 20, threads=1, **options)
    assert in_pieces(text, size, threads=1, **options) == whole
    assert in_pieces(text, size, threads=3, **options) == whole
    expected = outcome(read_svmlight, text, **options)
    assert outcome(chunked, text, **options) == expected
    with pytest.MonkeyPatch.context() as patch:  # in parts, from memory and from a stream
        patch.setattr(svmlight_module, "_PART", size)
        assert outcome(read_svmlight, text, **options) == expected
        assert outcome(read_svmlight, io.BytesIO(text), **options) == expected


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_corpus(path):
    text = path.read_bytes()[1:]  # the first byte is the fuzzer's choice of options
    for zero_based in (False, True):
        for query_id in (False, True):
            for n_features in (None, 100):
                for dtype in (np.float32, np.float64):
                    options = {"zero_based": zero_based, "query_id": query_id}
                    options |= {"n_features": n_features, "dtype": dtype}
                    agrees_with_oracle(text, **options)
                    assert outcome(chunked, text, **options) == outcome(read_svmlight, text, **options)
                    assert in_pieces(text, 7, threads=3, **options) == in_pieces(text, 10**6, threads=1, **options)


def long_text(rows=4000, seed=0):
    rng = np.random.default_rng(seed)
    X = sparse.random(rows, 300, 0.05, "csr", random_state=rng)
    file = io.BytesIO()
    write_svmlight(X, rng.integers(0, 5, rows), file, query_id=np.arange(rows), comment="head\nand more")
    return file.getvalue()


def text_of(X, y):
    file = io.BytesIO()
    write_svmlight(X, y, file)
    return file.getvalue()


def test_long_text_in_blocks():
    text = long_text()
    options = {"query_id": True, "n_jobs": 2}
    assert outcome(chunked, text, **options) == outcome(read_svmlight, text, **options)
    assert len(list(iter_svmlight(text, memory=1 << 16))) > 50


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_the_first_offence_is_reported(n_jobs):
    lines = (b"1 1:0.5 2:0.25\n" * 300_000).split(b"\n")
    lines[170_000] = b"1 2:1 2:1"
    lines[90_000] = b"1 1:0.5 2:oops # first"
    lines[250_000] = b"1 0:1"
    text = b"\n".join(lines)
    for read in (read_svmlight, lambda *a, **k: list(iter_svmlight(*a, **k))):
        with pytest.raises(SvmlightError, match=r"<bytes>, line 90001, column 11: the value 'oops' is not a number"):
            read(text, n_jobs=n_jobs)


REFUSED = [
    (b"1 1:1\n1 2:x3 4:1", 2, 5, "x3", "is not a number"),
    (b"1 2:nan", 1, 5, "nan", "not a finite number"),
    (b"1 2:-Inf", 1, 5, "-Inf", "not a finite number"),
    (b"nan 2:1", 1, 1, "nan", "not a finite number"),
    (b"1 2:1e309", 1, 5, "1e309", "too large for float64"),
    (b"1e309 2:1", 1, 1, "1e309", "too large for float64"),
    (b"1 0:1", 1, 3, "0:1", "zero_based=True"),
    (b"1 3:1 2:1", 1, 7, "2:1", "comes after 3"),
    (b"1 3:1 3:1", 1, 7, "3:1", "twice"),
    (b"1 9223372036854775808:1", 1, 3, "9223372036854775808:1", "does not fit int64"),
    (b"1 1:1\n\n1\x00 2:1", 3, 2, "\x00", "NUL"),
    (b"1 1:1 # \x00", 1, 9, "\x00", "NUL"),
    (b"1 7 8:1", 1, 3, "7", "no colon"),
    (b"1 7 :1", 1, 3, "7", "no colon"),
    (b"1 7:", 1, 3, "7:", "no value"),
    (b"1,2 7:1", 1, 1, "1,2", "list of labels"),
    (b"\n 7:1", 2, 2, "7:1", "not with a label"),
    (b"spam 7:1", 1, 1, "spam", "label 'spam' is not a number"),
    (b"1 a:1", 1, 3, "a:1", "whole number as index"),
    (b"1 -1:1", 1, 3, "-1:1", "whole number as index"),
    (b"1 1.0:1", 1, 3, "1.0:1", "whole number as index"),
    (b"1 qid:x 1:1", 1, 3, "qid:x", "whole number"),
    (b"1 qid:9223372036854775808 1:1", 1, 3, "qid:9223372036854775808", "does not fit int64"),
    (b"1 1:1 qid:1", 1, 7, "qid:1", "right behind the label"),
    (b"1 1:1\r2 1:1\n", 1, 6, "\r", "carriage return"),
    (b"1 1:0x1p3", 1, 5, "0x1p3", "is not a number"),
    (b"1 1:1" + b"0" * 400, 1, 5, "1" + "0" * 59, "too large"),
    ("1 1:½".encode(), 1, 5, "½", "is not a number"),
]


@pytest.mark.parametrize(("text", "line", "column", "word", "reason"), REFUSED)
def test_refusals(text, line, column, word, reason, tmp_path):
    path = tmp_path / "bad.svm"
    path.write_bytes(text)
    for read in (read_svmlight, lambda source: list(iter_svmlight(source))):
        with pytest.raises(ValueError, match=r"bad\.svm, line") as caught:
            read(path)
        error = caught.value
        assert (error.source, error.line, error.column, error.text) == (str(path), line, column, word)
        assert reason in str(error)
        assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_refusals_that_depend_on_options():
    with pytest.raises(SvmlightError, match=r"column 7: the index of '11:1' is beyond n_features=10"):
        read_svmlight(b"1 1:1 11:1", n_features=10)
    with pytest.raises(SvmlightError, match="beyond n_features=10"):
        read_svmlight(b"1 10:1", n_features=10, zero_based=True)
    with pytest.raises(SvmlightError, match=r"too large for float32; read with dtype=np\.float64"):
        read_svmlight(b"1 1:1e39", dtype=np.float32)
    with pytest.raises(SvmlightError, match=r"too large for float32$"):
        read_svmlight(b"1 1:1e399", dtype=np.float32)
    with pytest.raises(SvmlightError, match=r"does not fit int32; read with index_dtype=np\.int64"):
        read_svmlight(b"1 2147483648:1", index_dtype=np.int32)
    with pytest.raises(SvmlightError, match="line 2, column 1: the row has no qid"):
        read_svmlight(b"1 qid:1 1:1\n2 1:1", query_id=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_features": -1}, "n_features=-1"),
        ({"n_features": 2.0}, "n_features=2.0"),
        ({"n_features": True}, "n_features=True"),
        ({"n_features": 2**63}, "does not fit int64"),
        ({"n_features": 2**31, "index_dtype": np.int32}, "does not fit index_dtype int32"),
        ({"dtype": np.int32}, "float32 or float64"),
        ({"index_dtype": np.uint8}, "int32 or int64"),
        ({"n_jobs": 0}, "n_jobs=0"),
    ],
)
def test_bad_parameters(options, message):
    for read in (read_svmlight, iter_svmlight):  # at once, not when the first block is asked for
        with pytest.raises(ValueError, match=message):
            read(b"1 1:1", **options)


@pytest.mark.parametrize("memory", [0, 65535, 1e6, True, "1 GB"])
def test_bad_memory(memory):
    with pytest.raises(ValueError, match="memory="):
        iter_svmlight(b"", memory=memory)


def test_sources_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.svm"):
        read_svmlight(tmp_path / "nothing.svm")
    with pytest.raises(FileNotFoundError):
        list(iter_svmlight(tmp_path / "nothing.svm"))
    with pytest.raises(TypeError, match="text mode"):
        read_svmlight(io.StringIO("1 1:1"))
    with pytest.raises(TypeError, match="must be a path"):
        read_svmlight(7)


def test_types():
    X, y = read_svmlight(b"1 1:1 2147483647:2")
    assert (X.data.dtype, X.indices.dtype, X.indptr.dtype, y.dtype) == (np.float64, np.int32, np.int32, np.float64)
    assert X.shape == (1, 2**31 - 1)
    assert X.has_canonical_format
    X, _ = read_svmlight(b"1 1:1 2147483648:2")
    assert (X.indices.dtype, X.indptr.dtype, X.shape) == (np.int64, np.int64, (1, 2**31))
    X, _ = read_svmlight(b"1 1:1", index_dtype="int64", dtype="float32")
    assert (X.data.dtype, X.indices.dtype, X.indptr.dtype) == (np.float32, np.int64, np.int64)
    X, y = read_svmlight(b"")
    assert X.shape == (0, 0)
    X, y = read_svmlight(b"# nothing\n\n", n_features=3)
    assert (X.shape, y.shape) == ((0, 3), (0,))
    assert list(iter_svmlight(b"# nothing\n\n")) == []


def test_indices_widen_on_the_way(monkeypatch):
    """What was read before the first index that needs 64 bits stays, and nothing is read twice: a pipe could not be."""
    text = b"1 qid:7 3:1 5:2\n-1 qid:8 2147483648:4\n1 qid:9 1:5\n"
    wanted = outcome(read_svmlight, text, query_id=True)
    for part in (1, 20, 60):
        monkeypatch.setattr(svmlight_module, "_PART", part)
        for dtype in (np.float32, np.float64):
            X, _, query = read_svmlight(io.BytesIO(text), query_id=True, dtype=dtype)
            assert (X.data.dtype, X.indices.dtype, X.indptr.dtype) == (dtype, np.int64, np.int64)
            assert query.tolist() == [7, 8, 9]
        assert outcome(read_svmlight, io.BytesIO(text), query_id=True) == wanted
        with pytest.raises(SvmlightError, match=r"line 2.*does not fit int32"):
            read_svmlight(io.BytesIO(text), index_dtype=np.int32)


class Spy:
    """The core's reader; ``watch`` sees every part that it is given."""

    def __init__(self, watch, monkeypatch):
        real = _core.SvmlightReader

        class Reader:
            def __init__(self, **options):
                self.real = real(**options)
                self.widen, self.finish = self.real.widen, self.real.finish

            def add(self, text, *, last):
                watch(len(text))
                return self.real.add(text, last=last)

        class Core:
            SvmlightReader = Reader
            svmlight_read = staticmethod(_core.svmlight_read)
            SvmlightRefusal = _core.SvmlightRefusal

        monkeypatch.setattr(svmlight_module, "_core", Core)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_python_gets_a_word_in_between(n_jobs, tmp_path, monkeypatch):
    """A Ctrl-C has to wait for one part, however long the text is."""
    parts, text = [], long_text(20_000)
    path = tmp_path / "data.svm"
    path.write_bytes(text)
    Spy(parts.append, monkeypatch)
    monkeypatch.setattr(svmlight_module, "_PART", 1 << 14)
    for source in (text, path, io.BytesIO(gzip.compress(text))):
        parts.clear()
        read_svmlight(source, n_jobs=n_jobs)
        assert max(parts) <= n_jobs << 14
        assert sum(parts) >= len(text)
    assert len(parts) > 10


@pytest.mark.parametrize("rest", [0, 1000])
def test_a_file_that_is_cut_while_it_is_read_is_refused(rest, tmp_path, monkeypatch):
    """With what is left of a mapped file the process would be gone, and what is left of a read one is not the file."""
    path, text = tmp_path / "data.svm", long_text(20_000)
    monkeypatch.setattr(svmlight_module, "_PART", 1 << 14)
    Spy(lambda _: os.truncate(path, rest), monkeypatch)
    path.write_bytes(text)
    with pytest.raises(ValueError, match=rf"data\.svm: was cut from {len(text)} to {rest} bytes while it was read"):
        read_svmlight(path)
    path.write_bytes(text)
    blocks = iter_svmlight(path, memory=1 << 16)
    next(blocks)
    os.truncate(path, rest)
    with pytest.raises(ValueError, match=r"data\.svm: was cut"):
        list(blocks)


def test_a_file_that_is_written_to_while_it_is_read_harms_nothing(tmp_path, monkeypatch):
    """Parts are copies: whatever comes after, what was counted in one is what is read from it."""
    path, text = tmp_path / "data.svm", b"1 1:1\n" * 10_000
    monkeypatch.setattr(svmlight_module, "_PART", 1 << 10)
    Spy(lambda _: path.write_bytes(b"1 1:1 2:1 3:1\n" * 10_000), monkeypatch)
    path.write_bytes(text)
    try:
        X, _ = read_svmlight(path)
        assert X.nnz <= len(text) // 4
    except SvmlightError:
        pass  # two lines may have become one


def test_a_file_that_grows_while_it_is_read_is_read_as_it_was(tmp_path, monkeypatch):
    path, text = tmp_path / "data.svm", b"1 1:1\n" * 10_000
    monkeypatch.setattr(svmlight_module, "_PART", 1 << 10)

    def append(_):
        with open(path, "ab") as file:
            file.write(b"1 1:oops")

    Spy(append, monkeypatch)
    path.write_bytes(text)
    assert read_svmlight(path)[0].shape == (10_000, 1)


def compressed(kind, data):
    """With a checksum, which of them all only zstd leaves out unless asked: damage is then found for certain."""
    if kind == "zst":
        if zstandard is None:
            from compression import zstd

            return zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1})
        return zstandard.ZstdCompressor(write_checksum=True).compress(data)
    return {"plain": bytes, "gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[kind](data)


KINDS = ["plain", "gz", "bz2", "xz", "zst"]


@pytest.mark.parametrize("kind", KINDS)
def test_sources(kind, tmp_path):
    text = long_text(500)
    wanted = outcome(read_svmlight, text)
    half = text.index(b"\n", len(text) // 2) + 1
    parts = compressed(kind, text[:half]) + compressed(kind, text[half:])  # members, streams and frames can follow
    for data in (compressed(kind, text), parts):
        path = tmp_path / "data"  # known by what is in it, not by its name
        path.write_bytes(data)
        for read in (read_svmlight, chunked):
            assert outcome(read, path) == wanted
            assert outcome(read, str(path)) == wanted
            assert outcome(read, data) == wanted
            assert outcome(read, bytearray(data)) == wanted
            assert outcome(read, memoryview(data)) == wanted
            assert outcome(read, io.BytesIO(data)) == wanted
            with path.open("rb") as file:
                assert outcome(read, file) == wanted
                assert not file.closed
            with path.open("rb", buffering=0) as file:
                assert outcome(read, file) == wanted


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("harm", ["cut", "flipped"])
def test_damaged_compression(kind, harm):
    data = bytearray(compressed(kind, long_text(2000)))
    if harm == "cut":
        del data[-20:]
    else:
        data[len(data) // 2] ^= 0xFF
    for read in (read_svmlight, lambda source: list(iter_svmlight(source))):
        with pytest.raises(ValueError, match=r"<bytes>.*(damaged|line)"):
            read(bytes(data))


def test_zstd_without_its_package(monkeypatch):
    if zstandard is None:
        pytest.skip("Python has zstd itself")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ImportError, match=r"pegasos\[zstd\]"):
        read_svmlight(compressed("zst", b"1 1:1"))


@pytest.mark.unsanitized
@pytest.mark.parametrize("call", ["read_svmlight('-')", "next(iter_svmlight('-'))"])
def test_standard_streams(call):
    code = (
        f"from pegasos.io import iter_svmlight, read_svmlight, write_svmlight; X, y = {call}; write_svmlight(X, y, '-')"
    )
    for data in (b"1 1:0.5 2:1e-07\n-1 2:3\n", b"1 1:0.5 2:1e-07\n-1 2:3"):
        done = processes.run([sys.executable, "-c", code], input=gzip.compress(data), capture_output=True, check=True)
        assert done.stdout == b"1 1:0.5 2:1e-07\n-1 2:3\n"
    done = processes.run([sys.executable, "-c", code], input=b"1 1:y", capture_output=True, check=False)
    assert b"<stdin>, line 1, column 5: the value 'y' is not a number" in done.stderr


def test_a_line_longer_than_memory_allows():
    text = b"1 1:1\n2 " + b" ".join(b"%d:1" % j for j in range(1, 2000)) + b"\n"
    blocks = iter_svmlight(text, memory=1 << 16)
    with pytest.raises(SvmlightError, match=r"line 2, column 1: the line is longer than 3276 bytes.*memory=65536"):
        list(blocks)
    assert [len(y) for _, y in iter_svmlight(text, memory=1 << 19)] == [2]
    assert read_svmlight(text)[0].nnz == 2000


@pytest.mark.unsanitized
@pytest.mark.parametrize(
    "line", [b"1\n", b"1 1:1\n", b"1 qid:1 1:1 2:1 3:1\n", b"# 1:1 2:2 3:3 4:4\n", b"1 1:0.123456\n"]
)
def test_blocks_keep_within_memory(line, tmp_path):
    memory = 1 << 20
    path = tmp_path / "long.svm"
    path.write_bytes(line * (20 * memory // len(line) // 8))
    code = f"""if True:
        import resource, sys
        from pegasos.io import iter_svmlight
        unit = 1 if sys.platform == "darwin" else 1024
        def peak(): return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        def rows(memory):
            blocks = iter_svmlight({str(path)!r}, memory=memory, index_dtype="int64")
            return sum(len(y) for X, y in blocks)
        n = rows(1 << 16)
        before = peak()
        assert rows({memory}) == n
        print(n, peak() - before)
    """
    done = processes.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    n, grown = map(int, done.stdout.split())
    assert n == (0 if line.startswith(b"#") else path.stat().st_size // len(line))
    assert grown <= memory + (1 << 19)  # what the allocator keeps for itself


def test_huge_lines():
    text = b"1 " + b" ".join(b"%d:%d.5" % (j, j) for j in range(1, 400_001)) + b"\n"
    text = text * 2 + b"2 5:1"
    X, y = read_svmlight(text, n_jobs=2)
    assert X.shape == (3, 400_000)
    assert y.tolist() == [1, 1, 2]
    assert np.array_equal(X.data[:400_000], np.arange(1, 400_001) + 0.5)


FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def matrices(draw):
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    m, n = draw(st.integers(0, 6)), draw(st.integers(1, 6))
    values = st.floats(width=8 * dtype().itemsize, allow_nan=False, allow_infinity=False)
    mask = np.array(draw(st.lists(st.booleans(), min_size=m * n, max_size=m * n)), bool).reshape(m, n)
    X = sparse.csr_matrix(mask.astype(dtype))
    X.data = np.array(draw(st.lists(values, min_size=X.nnz, max_size=X.nnz)), dtype)
    if draw(st.booleans()):
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X, np.array(draw(st.lists(FLOATS, min_size=m, max_size=m)))


@settings(max_examples=300, deadline=None)
@given(matrices(), st.booleans(), st.booleans(), st.integers(1, 3))
def test_round_trip_to_the_bit(data, zero_based, with_query, n_jobs):
    X, y = data
    query = np.arange(len(y), dtype=np.int64) * -(2**60) if with_query else None
    file = io.BytesIO()
    write_svmlight(X, y, file, zero_based=zero_based, query_id=query, comment="ünï\ncode", n_jobs=n_jobs)
    A, b, *q = read_svmlight(
        file.getvalue(), zero_based=zero_based, query_id=with_query, dtype=X.dtype, n_features=X.shape[1]
    )
    assert A.shape == X.shape
    assert A.data.tobytes() == X.data.tobytes()  # -0.0 and stored zeros too
    assert A.indices.tolist() == X.indices.tolist()
    assert A.indptr.tolist() == X.indptr.tolist()
    assert b.tobytes() == y.tobytes()
    assert [part.tolist() for part in q] == ([] if query is None else [query.tolist()])


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz", ".zst"])
def test_targets(suffix, tmp_path):
    text = long_text(300)
    X, y = read_svmlight(text)
    path = tmp_path / f"data.svm{suffix}"
    write_svmlight(X, y, path)
    first = path.read_bytes()
    kind = suffix[1:] or "plain"
    assert first == text_of(X, y) if kind == "plain" else first.startswith(compressed(kind, b"1")[:2])
    assert outcome(read_svmlight, path) == outcome(read_svmlight, text)
    os.chmod(path, 0o640)
    write_svmlight(X, y, str(path), n_jobs=2)
    assert path.read_bytes() == first  # same data, same bytes
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == [path.name]


def test_writing_is_all_or_nothing(tmp_path, monkeypatch):
    path = tmp_path / "data.svm"
    path.write_text("old")
    X = sparse.csr_matrix(np.eye(3))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(OSError, match="No space"):
            write_svmlight(X, [1, 2, 3], path)
    with pytest.raises(ValueError, match="y has shape"):
        write_svmlight(X, [1, 2], path)
    assert path.read_text() == "old"
    link = tmp_path / "link.svm"
    link.symlink_to(path)
    write_svmlight(X, [1, 2, 3], link)
    assert link.is_symlink()
    assert path.read_text() == "1 1:1\n2 2:1\n3 3:1\n"
    assert sorted(os.listdir(tmp_path)) == ["data.svm", "link.svm"]


@pytest.mark.parametrize(
    ("X", "y", "options", "message"),
    [
        ([[1.0, np.nan]], [1], {}, "NaN at row 0, column 1"),
        ([[1.0, np.inf]], [1], {}, "infinity at row 0, column 1"),
        ([1.0], [1], {}, "two dimensions"),
        ([["a"]], [1], {}, "real numbers"),
        ([[1j]], [1], {}, "real numbers"),
        ([[2**53 + 1]], [1], {}, "float64 cannot hold"),
        ([[1.0]], [2**53 + 1], {}, "float64 cannot hold"),
        ([[1.0]], [np.inf], {}, "y is not finite at row 0"),
        ([[1.0]], ["yes"], {}, "real numbers"),
        ([[1.0]], [[1]], {}, "y has shape"),
        ([[1.0]], [1], {"query_id": [1, 2]}, "query_id has shape"),
        ([[1.0]], [1], {"query_id": [1.5]}, "whole numbers"),
        ([[1.0]], [1], {"query_id": np.array([2**63], np.uint64)}, "fit int64"),
        ([[1.0]], [1], {"comment": "a\0b"}, "NUL"),
    ],
)
def test_what_cannot_be_written(X, y, options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        write_svmlight(X, y, tmp_path / "data.svm", **options)
    assert os.listdir(tmp_path) == []


def test_targets_that_are_none(tmp_path):
    with pytest.raises(TypeError, match="text mode"):
        write_svmlight([[1.0]], [1], io.StringIO())
    with pytest.raises(TypeError, match="must be a path"):
        write_svmlight([[1.0]], [1], 7)
    with pytest.raises(FileNotFoundError):
        write_svmlight([[1.0]], [1], tmp_path / "no" / "folder")
    with pytest.raises(IsADirectoryError):
        write_svmlight([[1.0]], [1], tmp_path)


def test_unsorted_rows_are_sorted():
    X = sparse.csr_matrix((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    file = io.BytesIO()
    write_svmlight(X, [1], file)
    assert file.getvalue() == b"1 1:2 3:4\n"
    assert X.indices.tolist() == [2, 0, 2]


@pytest.mark.parametrize("name", ["a9a.test", "rcv1sub-ccat.test", "cadata.all", "usps.test", "20news-bydate.test"])
def test_scikit_learn_reads_the_same(name):
    from sklearn.datasets import load_svmlight_file

    path = Path(os.environ.get("PEGASOS_DATA", "")) / f"{name}.svm.xz"
    if "PEGASOS_DATA" not in os.environ or not path.is_file():
        pytest.skip(f"{name} is not in the folder named by PEGASOS_DATA")
    text = lzma.decompress(path.read_bytes())
    for dtype in (np.float32, np.float64):
        A, b = load_svmlight_file(io.BytesIO(text), dtype=np.float64, zero_based=False)
        X, y = read_svmlight(path, dtype=dtype, n_jobs=2)
        assert X.shape == A.shape
        assert np.array_equal(X.indices, A.indices)
        assert np.array_equal(X.indptr, A.indptr)
        assert np.array_equal(X.data, A.data.astype(dtype))
        assert np.array_equal(y, b)
    C, c = chunked(path, 1 << 22)
    assert np.array_equal(C.data, X.data)
    assert np.array_equal(c, y)
