"""Linear chains against the enumeration of all labellings: losses, marginals, planes, certificates."""

import numpy as np
import pytest
from chain_oracles import Corpus, Sizes, corpus
from hypothesis import given, settings
from hypothesis import strategies as st

from pegasos.problems.base import Point
from pegasos.problems.chain import PADDING, ChainModel, Labellings, corpus_of
from pegasos.problems.grammar import Grammar
from pegasos.rows.sequences import Sequences

#: Every number of lanes, full and not, with sequences as long as enumeration allows; and sequences of one token.
SIZES = [
    Sizes(1, (3, 1, 2)),
    Sizes(2, (4, 1, 6, 2)),
    Sizes(3, (4, 1, 3, 2)),
    Sizes(7, (3, 1, 2)),
    Sizes(8, (3, 1, 2)),
    Sizes(9, (1, 3, 2)),
    Sizes(17, (2, 1, 2)),
]
KINDS = [
    {"values": False, "costs": False},
    {"values": True, "weighted": True},
    {"values": True, "grammar": True, "unlearnt": True},
    {"values": False, "grammar": True, "unlearnt": True, "weighted": True},
]
every_size = pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: f"{sizes.labels} labels")
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: " ".join(kind))


def labels_of(c, chosen):
    return np.concatenate([np.array(y, dtype=np.uint16) for y in chosen])


@every_size
@every_kind
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0])
def test_passes_against_enumeration(sizes, kind, scale):
    c = corpus(sizes, seed=sizes.labels, **kind)
    rng = np.random.default_rng(1)
    core, W = c.problem().corpus, c.weights(rng, scale)
    flat = c.flat(W)
    close = {"rtol": 1e-10, "atol": 1e-10 * max(scale, 1.0)}

    losses, cut = core.hinge(flat, True, 1)
    np.testing.assert_allclose(losses, c.losses(W), **close)
    np.testing.assert_array_equal(core.hinge(flat, False, 1)[0], losses)
    chosen = c.planes_of(Labellings(np.arange(c.n), cut, np.zeros(c.n)))
    heights = [c.cost_of(i, y) - np.vdot(W, c.psi(i, y)) for i, y, _ in chosen]
    np.testing.assert_allclose(heights, losses, **close)
    assert all(c.allows(y) for _, y, _ in chosen)

    best, without = core.tag(flat, 1)
    assert without == -1
    for i, y, _ in c.planes_of(Labellings(np.arange(c.n), best, np.zeros(c.n))):
        assert c.allows(y)
        assert -np.vdot(W, c.psi(i, y)) == pytest.approx(max(-np.vdot(W, psi) for _, psi, _ in c.planes[i]), rel=1e-10)

    p, without = core.marginals(flat, 1)
    assert without == -1
    np.testing.assert_allclose(p, np.concatenate([c.marginals(W, i) for i in range(c.n)]), atol=1e-10)

    weight = rng.uniform(0, 2, c.n)
    losses, G = core.log_losses(flat, weight, 1)
    np.testing.assert_allclose(losses, [c.probabilities(W, i)[1] for i in range(c.n)], **close)
    np.testing.assert_allclose(
        c.matrix(G), sum(weight[i] * c.loss_gradient(W, i) for i in range(c.n)), rtol=1e-9, atol=1e-9
    )


@every_size
@every_kind
def test_planes_against_enumeration(sizes, kind):
    c = corpus(sizes, seed=10 + sizes.labels, **kind)
    rng = np.random.default_rng(2)
    core = c.problem().corpus
    drawn = [(i, *c.planes[i][rng.integers(len(c.planes[i]))]) for i in rng.integers(0, c.n, 12)]
    rows = np.array([i for i, *_ in drawn])
    labels, share = labels_of(c, [y for _, y, _, _ in drawn]), rng.normal(size=12)
    np.testing.assert_allclose(
        c.matrix(core.plane_weights(rows, labels, share)),
        sum(s * psi for s, (_, _, psi, _) in zip(share, drawn, strict=True)),
        atol=1e-12,
    )
    np.testing.assert_allclose(core.plane_costs(rows, labels), [cost for *_, cost in drawn], rtol=1e-12)

    whole = [[c.planes[i][rng.integers(len(c.planes[i]))] for i in range(c.n)] for _ in range(3)]
    labellings = np.stack([labels_of(c, [y for y, _, _ in planes]) for planes in whole])
    W, weight = c.weights(rng), rng.uniform(0, 2, c.n)
    products = [sum(weight[i] * np.vdot(W, psi) for i, (_, psi, _) in enumerate(planes)) for planes in whole]
    np.testing.assert_allclose(core.products(c.flat(W), weight, labellings, 1), products, atol=1e-10)


@pytest.mark.parametrize("scale", [1e2, 1e3, 1e5])
@pytest.mark.parametrize("grammar", [False, True])
@pytest.mark.parametrize("labels", [2, 3, 9])
@pytest.mark.parametrize("seed", range(4))
def test_extreme_weights(scale, grammar, labels, seed):
    """Where sums of products leave the range of numbers, logarithms do not."""
    c = corpus(Sizes(labels, (3, 1, 2, 3)), seed=seed, grammar=grammar)
    W = c.weights(np.random.default_rng(seed), scale)
    core, flat = c.problem().corpus, c.flat(W)
    losses, G = core.log_losses(flat, np.ones(c.n), 1)
    np.testing.assert_allclose(losses, [c.probabilities(W, i)[1] for i in range(c.n)], rtol=1e-10, atol=1e-9 * scale)
    np.testing.assert_allclose(c.matrix(G), sum(c.loss_gradient(W, i) for i in range(c.n)), atol=1e-9)
    p, _ = core.marginals(flat, 1)
    np.testing.assert_allclose(p, np.concatenate([c.marginals(W, i) for i in range(c.n)]), atol=1e-9)
    np.testing.assert_allclose(
        core.hinge(flat, False, 1)[0], [c.hinge(W, i) for i in range(c.n)], rtol=1e-10, atol=1e-9
    )


def two_roads(gains, *, labels=2):
    """One attribute a token, and two labels that may not follow each other: ``gains`` of the second over the first."""
    tokens = [[[(t, 1.0)] for t in range(len(gains))]]
    grammar = Grammar.free(labels)
    grammar.next[:] = np.eye(labels)
    c = Corpus(
        tokens, [(0,) * len(gains)], len(gains), labels, grammar, 1.0 - np.eye(labels),
        np.ones((labels, labels), np.uint8), np.ones(1), 1.0, "log",
    )  # fmt: skip
    W = np.zeros(c.shape)
    W[: len(gains), 1] = gains
    return c, W


@pytest.mark.parametrize(
    "gains",
    [
        [-760.0, 390.0, 390.0],
        [-400.0, -400.0, 300.0, 300.0, 300.0],
        [390.0, 390.0, -760.0],
        [-500.0] * 4 + [600.0] * 4 + [-500.0] * 4 + [600.0] * 3,
        [-60.0] * 20 + [61.0] * 20,
    ],
    ids=str,
)
def test_a_road_that_seems_lost_is_not(gains):
    """What falls below the smallest number at one token may still be the best at the end."""
    c, W = two_roads(gains)
    core, total = c.problem().corpus, sum(gains)
    losses, G = core.log_losses(c.flat(W), np.ones(1), 1)
    p = 1 / (1 + np.exp(-total))
    np.testing.assert_allclose(losses, np.logaddexp(0.0, total), rtol=1e-9)
    np.testing.assert_allclose(core.marginals(c.flat(W), 1)[0], [[1 - p, p]] * len(gains), atol=1e-12)
    np.testing.assert_allclose(c.matrix(G)[: len(gains)], [[-p, p]] * len(gains), atol=1e-12)


@pytest.mark.parametrize("gains", [[0.0, 400.0, 400.0], [0.0, 5000.0], [0.0] + [90.0] * 30], ids=str)
def test_a_road_that_no_sequence_can_begin_with(gains):
    """However good the weights say it is."""
    c, W = two_roads(gains)
    c.grammar.first[1] = 0
    core = c.problem().corpus
    losses, G = core.log_losses(c.flat(W), np.ones(1), 1)
    assert losses.tolist() == [0.0]
    assert not G.any()
    np.testing.assert_array_equal(core.marginals(c.flat(W), 1)[0], [[1.0, 0.0]] * len(gains))


def test_a_grammar_whose_labels_take_turns():
    """Labels that can be reached at every third token alone, and more such cycles than their sets are kept for."""
    cycles = (3, 4, 5, 7)
    labels = sum(cycles)
    grammar = Grammar(np.zeros((labels, labels), np.uint8), np.zeros(labels, np.uint8), np.ones(labels, np.uint8))
    first = 0
    for length in cycles:
        grammar.first[first] = 1
        for k in range(length):
            grammar.next[first + k, first + (k + 1) % length] = 1
        first += length
    rng = np.random.default_rng(0)
    tokens = 500  # 3 · 4 · 5 · 7 = 420 different sets
    scores = rng.normal(0, 30, (tokens, labels))
    sequences = Sequences(np.array([0, tokens]), np.arange(tokens + 1), np.arange(tokens, dtype=np.int32), None, tokens)
    core = corpus_of(sequences, labels, grammar)
    roads = np.array([[sum(cycles[:j]) + t % n for t in range(tokens)] for j, n in enumerate(cycles)])
    totals = scores[np.arange(tokens), roads].sum(axis=1)
    W = np.concatenate([scores.ravel(), np.zeros(labels**2 + PADDING)])
    p = np.exp(totals - totals.max())
    expected = np.zeros((tokens, labels))
    for road, share in zip(roads, p / p.sum(), strict=True):
        expected[np.arange(tokens), road] += share
    np.testing.assert_allclose(core.marginals(W, 1)[0], expected, atol=1e-9)
    np.testing.assert_array_equal(core.tag(W, 1)[0], roads[totals.argmax()])


def test_without_a_path():
    """A corpus to be tagged may have lengths for which the grammar allows nothing: the first one is named."""
    c = corpus(Sizes(2, (1, 2, 1, 2)))
    grammar = Grammar(np.zeros((2, 2), np.uint8), np.ones(2, np.uint8), np.ones(2, np.uint8))
    core = corpus_of(c.sequences, 2, grammar)
    W = c.flat(c.weights(np.random.default_rng(0)))
    assert core.tag(W, 1)[1] == 1
    assert core.marginals(W, 1)[1] == 1
    ends = corpus_of(c.sequences, 2, Grammar(np.ones((2, 2), np.uint8), np.zeros(2, np.uint8), np.ones(2, np.uint8)))
    assert ends.tag(W, 1)[1] == 0
    assert ends.marginals(W, 1)[1] == 0


@pytest.mark.parametrize("kind", [{}, {"values": False, "grammar": True, "unlearnt": True}])
def test_threads_change_no_bit(kind):
    c = corpus(Sizes(60, (40,) * 450 + (5000,), attributes=60), seed=3, **kind)
    assert c.sequences.ids.size * 64 / 4 >= 2**19  # work enough for threads
    core = c.problem().corpus
    rng = np.random.default_rng(4)
    W, weight = c.flat(c.weights(rng)), rng.uniform(0, 1, c.n)
    cut = core.hinge(W, True, 1)[1]
    for threads in (2, 3):
        for one, several in [
            (core.hinge(W, True, 1), core.hinge(W, True, threads)),
            (core.tag(W, 1), core.tag(W, threads)),
            (core.marginals(W, 1), core.marginals(W, threads)),
            (core.log_losses(W, weight, 1), core.log_losses(W, weight, threads)),
        ]:
            np.testing.assert_array_equal(one[0], several[0])
            np.testing.assert_array_equal(one[1], several[1])
        both = [core.products(W, weight, np.stack([cut, c.flat_tags]), k) for k in (1, threads)]
        np.testing.assert_array_equal(*both)


# --- certificates ----------------------------------------------------------------------------------------------------

SMALL = Sizes(3, (3, 1, 4, 2, 3))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: " ".join(kind))
@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_bounds_against_the_oracle(kind, loss):
    c = corpus(SMALL, seed=5, loss=loss, **kind)
    p, rng = c.problem(), np.random.default_rng(6)
    for scale in (0.0, 0.3, 3.0, 100.0):
        W = c.weights(rng, scale)
        bounds = p.certify(Point(ChainModel(c.flat(W))))
        assert bounds.primal[0] == pytest.approx(c.primal(W), rel=1e-10)
        assert bounds.primal[0] >= c.optimum * (1 - 1e-9)
        if loss == "log":
            assert bounds.dual[0] == pytest.approx(c.log_dual(W), rel=1e-8, abs=1e-10)
            assert bounds.dual[0] <= c.optimum * (1 + 1e-9)
            gap = float(np.vdot(c.gradient(W), c.gradient(W))) / (2 * c.lam)
            assert bounds.primal[0] - bounds.dual[0] == pytest.approx(gap, rel=1e-6, abs=1e-10)
    at_zero = c.primal(np.zeros(c.shape))
    assert p.at_zero()[0] >= at_zero * (1 - 1e-12)
    assert "grammar" in kind or p.at_zero()[0] == pytest.approx(at_zero)


def random_planes(c, rng, count):
    """(sequence, labelling) pairs, some of them several times."""
    rows = rng.integers(0, c.n, count)
    return rows, labels_of(c, [c.planes[i][rng.integers(min(4, len(c.planes[i])))][0] for i in rows])


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_forged_dual_point_proves_nothing_false(data):
    """Whatever α are said to be, and however often a plane comes: D ≤ P*."""
    seed = data.draw(st.integers(0, 10**6))
    c = CORPORA[data.draw(st.integers(0, len(CORPORA) - 1))]
    p, rng = c.problem(), np.random.default_rng(seed)
    count = data.draw(st.integers(1, 12))
    rows, labels = random_planes(c, rng, count)
    numbers = st.floats(allow_nan=True, allow_infinity=True) | st.floats(0, 1) | st.sampled_from([-1.0, 1.0, 1e308])
    alpha = np.array(data.draw(st.lists(numbers, min_size=count, max_size=count)))
    with np.errstate(all="ignore"):
        bounds = p.certify(Point(ChainModel(None), Labellings(rows, labels, alpha)))
    assert bounds.dual[0] <= c.optimum * (1 + 1e-9)
    assert bounds.primal[0] >= c.optimum * (1 - 1e-9)


CORPORA = [corpus(SMALL, seed=5, **kind) for kind in KINDS]


@pytest.mark.parametrize("c", CORPORA, ids=lambda c: f"λ={c.lam}")
def test_feasible_planes_have_the_oracles_dual_value(c):
    p, rng = c.problem(), np.random.default_rng(8)
    for count in (1, 5, 30):
        rows, labels = random_planes(c, rng, count)
        alpha = rng.uniform(0, 1, count)
        alpha /= np.maximum(np.bincount(rows, weights=alpha, minlength=c.n), 1.0)[rows]
        planes = Labellings(rows, labels, alpha)
        bounds = p.certify(Point(ChainModel(None), planes))
        assert bounds.dual[0] == pytest.approx(c.dual(c.planes_of(planes)), rel=1e-10, abs=1e-12)
        own = sum(c.share[i] * a / c.lam * c.psi(i, y) for i, y, a in c.planes_of(planes))
        np.testing.assert_allclose(c.matrix(bounds.model.W), own, atol=1e-12)
        assert bounds.primal[0] == pytest.approx(c.primal(own), rel=1e-10)


def test_labellings_that_the_grammar_forbids_are_no_planes():
    c = CORPORA[2]
    p = c.problem()
    forbidden = next(y for y in np.ndindex(*(3,) * 3) if not c.allows(y))
    planes = Labellings(np.array([0]), np.array(forbidden, dtype=np.uint16), np.ones(1))
    with pytest.raises(ValueError, match="sequence 0 is not allowed"):
        p.certify(Point(ChainModel(np.zeros(p.size)), planes))


@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_numbers_out_of_range_prove_nothing(loss):
    c = corpus(SMALL, seed=5, loss=loss)
    W = np.zeros(c.problem().size)
    for bad in (np.nan, np.inf, 1e200):
        W[:-PADDING] = bad
        with np.errstate(all="ignore"):
            bounds = c.problem().certify(Point(ChainModel(W.copy())))
        assert bounds.primal[0] == np.inf
        assert bounds.dual[0] <= c.optimum * (1 + 1e-9)


def test_weights_of_a_saved_model_are_those_of_this_problem():
    """Of transitions that have no weight there must be none: their objective would be that of another problem."""
    c = corpus(SMALL, seed=5, grammar=True, unlearnt=True)
    p, W = c.problem(), c.weights(np.random.default_rng(0))
    forged = W.copy()
    forged[c.attributes :] += 1.0 - c.learnt
    assert (c.learnt == 0).any()
    np.testing.assert_array_equal(p.model_of({"W": c.flat(W)}).W, c.flat(W))
    with pytest.raises(ValueError, match="state: 'W'"):
        p.model_of({"W": c.flat(forged)})
