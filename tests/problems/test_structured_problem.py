"""Problems with an oracle: its answers are checked, and bounds hold whatever a solver proposes."""

from __future__ import annotations

import numpy as np
import pytest
import structured_oracles as so
from scipy import sparse

from pegasos.problems.base import Point
from pegasos.problems.oracle import CheckedOracle, Plane
from pegasos.problems.planes import ALL_ROWS, Planes
from pegasos.problems.structured import OracleProblem

LAM = 0.05
X, Y = so.toy()


def bound(**how):
    return so.Tags(**how).bind(X, Y)


def problem(oracle=None, weight=None, lam=LAM):
    return OracleProblem(CheckedOracle(bound() if oracle is None else oracle), lam, weight)


class Answers:
    """An oracle of three rows and four weights that answers as it is told."""

    size, n_rows = 4, 3

    def __init__(self, psi=None, loss=None, **more):
        self.psi = np.zeros((2, 4)) if psi is None else psi
        self.loss = np.zeros(2) if loss is None else loss
        vars(self).update(more)

    def decode(self, w, rows):
        return self.psi, self.loss


def ask(oracle, w=None, rows=(2, 0)):
    return CheckedOracle(oracle).decode(np.ones(4) if w is None else w, np.array(rows))


# --- what an oracle says of itself -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"size": 0}, r"oracle\.size=0 must be a whole number > 0, the number of weights"),
        ({"size": 2.5}, r"oracle\.size=2\.5 must be"),
        ({"size": None}, r"oracle\.size=None must be"),
        ({"n_rows": -1}, r"oracle\.n_rows=-1 must be a whole number > 0, the number of rows"),
        ({"n_rows": None}, r"oracle\.n_rows=None must be"),
        ({"exact": "yes"}, r"oracle\.exact='yes' must be True or False"),
        ({"decode": None}, r"has no method decode\(w, rows\)"),
    ],
)
def test_what_an_oracle_must_have(more, message):
    with pytest.raises(ValueError, match=message):
        CheckedOracle(Answers(**more))


def test_rows_may_be_a_length():
    class Sized(Answers):
        n_rows = None

        def __len__(self):
            return 7

    assert CheckedOracle(Sized()).n_rows == 7
    assert CheckedOracle(Answers(n_rows=np.int64(5))).n_rows == 5


# --- what it answers -------------------------------------------------------------------------------------------------

GOOD = np.array([[0.5, 0.0, -1.0, 0.0], [0.0, 2.0, 0.0, 0.0]])


def broken(indices=None, indptr=None, data=None):
    """A CSR matrix whose arrays do not fit together."""
    matrix = sparse.csr_array(GOOD)
    for name, value in {"indices": indices, "indptr": indptr, "data": data}.items():
        if value is not None:
            setattr(matrix, name, np.array(value, dtype=getattr(matrix, name).dtype))
    return matrix


@pytest.mark.parametrize(
    ("psi", "loss", "message"),
    [
        (np.zeros((3, 4)), None, r"psi of shape \(3, 4\) for 2 rows and 4 weights"),
        (np.zeros(4), None, r"psi of shape \(4,\) for 2 rows"),
        (sparse.csr_array((2, 5)), None, r"psi of shape \(2, 5\)"),
        (GOOD.astype(complex), None, "psi of type complex128, not of numbers"),
        (GOOD.astype(object), None, "psi of type object"),
        (np.where(GOOD == 2, np.nan, GOOD), [3.0, 3.0], "psi of row 0 has nan in column 1"),
        (sparse.csr_array(np.where(GOOD == -1, np.inf, GOOD)), [3.0, 3.0], "psi of row 2 has inf in column 2"),
        (broken(indices=[0, 2, 4]), [3.0, 3.0], r"psi of row 0 has column 4, outside 0 … 3"),
        (broken(indices=[-1, 2, 1]), [3.0, 3.0], "psi of row 2 has column -1"),
        (broken(indptr=[0, 3, 2]), [3.0, 3.0], "its row pointers are wrong"),
        (broken(indptr=[0, 2, 9]), [3.0, 3.0], "its row pointers are wrong"),
        (broken(indptr=[1, 2, 3]), [3.0, 3.0], "its row pointers are wrong"),
        (None, np.zeros(3), r"losses of shape \(3,\) for 2 rows"),
        (None, 1.0, r"losses of shape \(\) for 2 rows"),
        (None, ["a", "b"], "losses that are numbers"),
        (None, [0.0, np.nan], "the loss of row 0 is nan, but must be a number >= 0"),
        (None, [np.inf, 0.0], "the loss of row 2 is inf"),
        (None, [0.0, -1e-9], "the loss of row 0 is -1e-09"),
        (GOOD, [1.0, 1.5], r"labelling of row 0 has loss - <w, psi> = 1\.5 - 2 = -0\.5, but the true labelling has 0"),
    ],
)
def test_answers_that_are_wrong(psi, loss, message):
    with pytest.raises(ValueError, match=message):
        ask(Answers(psi, loss))


@pytest.mark.parametrize("answer", [None, np.zeros((2, 4)), (1, 2, 3)])
def test_answers_are_pairs(answer):
    with pytest.raises(ValueError, match=r"must return \(psi, loss\)"):
        ask(Answers(decode=lambda w, rows: answer))


@pytest.mark.parametrize("what", ["w", "rows"])
def test_arguments_are_read_only(what):
    def decode(w, rows):
        {"w": w, "rows": rows}[what][0] = 7
        return GOOD, [3.0, 3.0]

    w = np.ones(4)
    with pytest.raises(ValueError, match=r"writes to w or rows, which are not its own .*let it change a copy"):
        ask(Answers(decode=decode), w)
    assert (w == 1).all()


def test_an_error_of_the_oracle_is_its_own():
    def decode(w, rows):
        raise ValueError("no such verb")

    with pytest.raises(ValueError, match=r"^no such verb$"):
        ask(Answers(decode=decode))


LAYOUTS = {
    "dense": GOOD,
    "list": GOOD.tolist(),
    "columns first": np.asfortranarray(GOOD),
    "float32": GOOD.astype(np.float32),
    "csr": sparse.csr_array(GOOD),
    "csr_matrix": sparse.csr_matrix(GOOD),
    "coo": sparse.coo_array(GOOD),
    "csc": sparse.csc_array(GOOD),
    "unsorted": sparse.csr_array((np.array([-1.0, 0.5, 2.0]), np.array([2, 0, 1]), np.array([0, 2, 3])), shape=(2, 4)),
    "twice": sparse.csr_array(
        (np.array([0.25, -1.0, 0.25, 2.0, 1.0, -1.0]), np.array([0, 2, 0, 1, 3, 3]), np.array([0, 3, 6])), shape=(2, 4)
    ),
    "stored zero": sparse.csr_array(
        (np.array([0.5, 0.0, -1.0, 2.0]), np.array([0, 1, 2, 1]), np.array([0, 3, 4])), shape=(2, 4)
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout):
    w = np.array([0.3, 0.1, -0.2, 5.0])
    found = ask(Answers(LAYOUTS[layout], [3, 2]), w)
    np.testing.assert_array_equal(found.begin, [0, 2, 3])
    np.testing.assert_array_equal(found.columns, [0, 2, 1])
    np.testing.assert_array_equal(found.entries, [0.5, -1.0, 2.0])
    np.testing.assert_allclose(found.value, [3 - 0.35, 2 - 0.2], rtol=1e-15)
    assert found.entries.dtype == np.float64
    np.testing.assert_allclose(found.mean(np.array([0.5, 2.0]), 4), [0.25, 4.0, -0.5, 0.0])


def test_rows_without_entries():
    psi = np.zeros((4, 4))
    psi[2, 3] = 1.0
    for layout in (np.asarray, sparse.csr_array):
        found = ask(Answers(layout(psi), [0.0, 1.0, 2.0, 0.0]), rows=[0, 1, 2, 0])
        np.testing.assert_array_equal(found.value, [0.0, 1.0, 1.0, 0.0])
        assert [found.plane(k).empty for k in range(4)] == [True, False, False, True]


def test_answers_are_copied():
    """An oracle may use its arrays again."""
    psi, loss = sparse.csr_array(GOOD), np.array([3.0, 3.0])
    found = ask(Answers(psi, loss))
    psi.data[:], loss[:] = 9.0, 9.0
    np.testing.assert_array_equal(found.entries, [0.5, -1.0, 2.0])
    np.testing.assert_array_equal(found.loss, [3.0, 3.0])


def test_rounding_is_no_lie():
    w = np.full(4, 1e8)
    found = ask(Answers(GOOD, [0.0, 2e8 * (1 - 1e-9)]), w * [1, 1, 0.5, 1])
    np.testing.assert_array_equal(found.value, [0.0, 0.0])


def test_what_an_approximate_oracle_finds_is_at_least_the_truth():
    found = ask(Answers(GOOD, [1.0, 1.5], exact=False))
    np.testing.assert_array_equal(found.value, [1.5, 0.0])
    np.testing.assert_array_equal(found.loss, [1.0, 0.0])
    assert found.plane(1).empty
    np.testing.assert_array_equal(found.plane(0).values, [0.5, -1.0])


# --- certificates ----------------------------------------------------------------------------------------------------


def planes_of(oracle, rng, count=30, spread=1.0):
    """Some labellings of random rows, with shares that sum to anything."""
    rows = rng.integers(0, oracle.n_rows, count)
    some = []
    for i in rows:
        psi, loss = oracle.planes[i]
        k = int(rng.integers(len(loss)))
        columns = np.flatnonzero(psi[k])
        some.append(Plane(columns, psi[k][columns], float(loss[k])))
    return Planes.of(rows.tolist(), some, rng.uniform(-0.2, spread, count), oracle.size)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_bounds_hold_for_any_point(seed, weighted):
    rng = np.random.default_rng(seed)
    oracle = bound(first=2.5, layout="dense" if seed % 2 else "csr")
    weight = rng.uniform(0, 2, oracle.n_rows) * (np.arange(oracle.n_rows) != 3) if weighted else None
    p = problem(oracle, weight)
    star = so.optimum(oracle.planes, LAM, weight)
    for spread in (0.2, 1.0, 5.0):
        planes = planes_of(oracle, rng, spread=spread)
        w = rng.standard_normal(oracle.size) * spread
        found = p.certify(Point(w, planes))
        assert found.dual[0] <= star * (1 + 1e-9)
        assert found.primal[0] == pytest.approx(so.objective(oracle.planes, w, LAM, weight), rel=1e-12)
        assert found.primal[0] >= star * (1 - 1e-9)
        assert found.model is w


def test_the_dual_value_is_what_the_formula_says():
    rng = np.random.default_rng(3)
    oracle = bound()
    weight = rng.uniform(0.5, 2, oracle.n_rows)
    p, planes = problem(oracle, weight), planes_of(oracle, rng, count=oracle.n_rows)
    planes = planes._replace(row=np.arange(oracle.n_rows), alpha=rng.uniform(0, 1, oracle.n_rows))
    share = weight / weight.sum() * planes.alpha
    w = (share @ planes.psi.toarray()) / LAM
    np.testing.assert_allclose(p.dual_weights(planes), w, rtol=1e-13)
    assert p.dual_value(planes) == pytest.approx(share @ planes.loss - LAM / 2 * w @ w, rel=1e-13)


def test_shares_are_made_feasible():
    some = [Plane(np.array([0]), np.array([1.0]), 1.0)] * 6
    planes = Planes.of([0, 0, 1, 1, 2, ALL_ROWS], some, [0.5, 1.0, -1.0, np.nan, 0.3, 0.0], 4)
    np.testing.assert_allclose(planes.feasible(3), [1 / 3, 2 / 3, 0, 0, 0.3, 0])
    planes = planes._replace(alpha=np.array([0.5, 1.0, 0.1, 0.1, np.inf, 0.25]))
    np.testing.assert_allclose(planes.feasible(3), [0.25, 0.5, 0.1, 0.1, 0, 0.25])
    planes = planes._replace(alpha=np.array([0.5, 1.0, 0.1, 0.1, 0.1, 4.0]))
    np.testing.assert_allclose(planes.feasible(3), [0, 0, 0, 0, 0, 1.0])


def test_a_plane_of_all_rows_is_the_mean_of_one_of_each():
    oracle = bound()
    p, w = problem(oracle, np.arange(1.0, oracle.n_rows + 1)), np.random.default_rng(0).standard_normal(oracle.size)
    cut = p.cut(w)
    found = p.oracle.decode(w, np.arange(oracle.n_rows))
    each = Planes.of(range(oracle.n_rows), map(found.plane, range(oracle.n_rows)), np.ones(oracle.n_rows), oracle.size)
    point = p.mixture([cut], np.ones(1))
    assert p.dual_value(point.duals) == pytest.approx(p.dual_value(each), rel=1e-13)
    np.testing.assert_allclose(point.model, p.dual_weights(each), rtol=1e-12, atol=1e-15)
    both = Planes.of([ALL_ROWS], [cut.plane], [0.4], oracle.size)
    mixed = Planes(
        np.append(each.row, ALL_ROWS),
        sparse.vstack([each.psi, both.psi], format="csr"),
        np.append(each.loss, both.loss),
        np.append(0.6 * each.alpha, 0.4),
    )
    assert p.dual_value(mixed) == pytest.approx(p.dual_value(each), rel=1e-13)
    # As cuts to begin with, the rows' planes are one.
    ours, theirs = p.first_cuts(Point(w, mixed))
    assert ours.plane.loss == cut.height
    assert theirs.height == pytest.approx(0.6 * cut.height)


@pytest.mark.parametrize("w", [np.inf, np.nan])
def test_weights_that_are_no_numbers_have_no_value(w):
    oracle = bound()
    found = problem(oracle).certify(Point(np.full(oracle.size, w)))
    assert (found.primal[0], found.dual[0]) == (np.inf, -np.inf)
    assert not oracle.asked


def test_an_approximate_oracle_has_a_lower_bound_and_no_objective():
    rng = np.random.default_rng(0)
    oracle, exact = bound(exact=False), bound()
    planes, w = planes_of(oracle, rng), rng.standard_normal(oracle.size)
    found, proven = (problem(o).certify(Point(w, planes)) for o in (oracle, exact))
    assert found.primal[0] == np.inf
    assert found.dual == proven.dual
    np.testing.assert_allclose(found.estimate, proven.primal)
    assert proven.estimate is None
    assert (problem(oracle).at_zero()[0], problem(exact).at_zero()[0]) == (
        np.inf,
        pytest.approx(so.objective(exact.planes, np.zeros(exact.size), LAM)),
    )


class Forgetful(so.BoundTags):
    """Says that it is exact, but knows only half of the labellings, which half depending on w."""

    def decode(self, w, rows):
        everything, few = self.planes, []
        for psi, loss in everything:
            some = (np.arange(len(loss)) % 2 == int(w[0] > 0)) | (loss == 0)
            few.append((psi[some], loss[some]))
        vars(self)["planes"] = few
        try:
            return super().decode(w, rows)
        finally:
            vars(self)["planes"] = everything


def test_an_oracle_that_contradicts_itself_is_refused():
    oracle = Forgetful(so.Tags(), [np.asarray(x) for x in X], Y)
    p, n = problem(oracle), oracle.n_rows
    w = 0.1 * np.random.default_rng(1).standard_normal(oracle.size)
    halves = [np.concatenate([[first], w[1:]]) for first in (1e-9, -1e-9)]  # nearly the same, but half of all to it
    found = p.oracle.decode(halves[0], np.arange(n))
    planes = Planes.of(range(n), map(found.plane, range(n)), np.ones(n), oracle.size)
    p.certify(Point(halves[0], planes))
    with pytest.raises(ValueError, match=r"does not maximise: for row \d+ it found .* labelling that it found before"):
        p.certify(Point(halves[1], planes))
    cuts = [p.cut(half) for half in halves]
    better = int(np.argmax([cut.height - cut.plane.values @ w[cut.plane.columns] for cut in cuts]))
    with pytest.raises(ValueError, match="does not maximise: for the rows together it found"):
        p.certify(Point(halves[1 - better], p.mixture([cuts[better]], np.ones(1)).duals))


def test_rows_without_weight_are_not_decoded():
    oracle = bound()
    weight = np.ones(oracle.n_rows)
    weight[[1, 4]] = 0
    p = problem(oracle, weight)
    p.certify(Point(np.zeros(oracle.size)))
    p.cut(np.zeros(oracle.size))
    p.at_zero()
    assert not {1, 4} & set(oracle.asked)
    assert set(oracle.asked) == set(p.rows.tolist())


def test_a_pass_is_cut_into_pieces(monkeypatch):
    oracle = bound()
    w = np.random.default_rng(0).standard_normal(oracle.size)
    whole, cut = problem(oracle).losses(w), problem(oracle).cut(w)
    monkeypatch.setattr("pegasos.problems.structured.MOST_ROWS", 3)
    np.testing.assert_array_equal(problem(oracle).losses(w), whole)
    np.testing.assert_allclose(problem(oracle).cut(w).plane.values, cut.plane.values, rtol=1e-13)


# --- what a problem is -----------------------------------------------------------------------------------------------


def test_digests_tell_problems_apart():
    same = problem().digests()
    assert problem().digests() == same
    assert problem(bound(layout="dense")).digests() == same  # the same answers
    others = {
        "lam": problem(lam=0.06),
        "weights": problem(weight=np.arange(1.0, 9.0)),
        "exact": problem(bound(exact=False)),
        "oracle": problem(bound(first=2.0)),
    }
    for name, other in others.items():
        changed = {key for key, value in other.digests().items() if value != same[key]}
        assert changed == {name}
    x = [a.copy() for a in X]
    x[5][0, 0] += 1e-9
    assert problem(so.Tags().bind(x, Y)).digests()["oracle"] != same["oracle"]


def test_an_oracle_may_have_a_digest_of_its_own():
    oracle = bound()
    oracle.digest = lambda: "mine"
    assert problem(oracle).digests()["oracle"] == "mine"
    assert not oracle.asked


def test_models_are_written_and_read():
    p, w = problem(), np.arange(15.0)
    np.testing.assert_array_equal(p.model_of(p.arrays(w)), w)
    assert p.choose(np.array([True]), 1, 2) == 1
    assert p.choose(np.array([False]), 1, 2) == 2
    for bad in (np.arange(3.0), np.full(15, np.inf)):
        with pytest.raises(ValueError, match="state: 'w'"):
            p.model_of({"w": bad})
