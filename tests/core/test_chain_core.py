"""The border of the chain's core: shapes, types, numbers and places that it does not know are refused, and harmless."""

import numpy as np
import pytest

from pegasos import _core

L, A, SIZE = 3, 4, (4 + 3) * 3 + 8

#: Two sequences, of two tokens and of one.
GIVEN = {
    "offsets": np.array([0, 2, 3]),
    "indptr": np.array([0, 2, 2, 3]),
    "ids": np.array([0, 3, 1], dtype=np.int32),
    "values": None,
    "attributes": A,
    "labels": L,
    "next": np.ones((L, L), np.uint8),
    "first": np.ones(L, np.uint8),
    "final": np.ones(L, np.uint8),
}
TAUGHT = {
    "tags": np.array([0, 1, 2], dtype=np.uint16),
    "cost": 1.0 - np.eye(L),
    "learnt": np.ones((L, L), np.uint8),
}
STEPS = {
    "weight": None, "rule": "pegasos", "loss": "hinge", "mean": "window", "lam": 0.1, "t0": 2.0, "aggressiveness": 1.0,
    "radius": 0.0, "batch_size": 1, "sampling": "permutation", "seed": 0, "exact": False,
}  # fmt: skip
PLANES = {"weight": None, "lam": 0.1, "total": 2.0, "unused_passes": 3.0, "seed": 0}
W, ONES, ROWS = np.zeros(SIZE), np.ones(2), np.arange(2)
LABELS = np.array([1, 1, 0], dtype=np.uint16)


def chain(**changes):
    return _core.Chain(**(GIVEN | changes))


def taught(grammar=None, **changes):
    corpus = chain(**(grammar or {}))
    corpus.teach(**(TAUGHT | changes))
    return corpus


def steps(**changes):
    return _core.ChainSteps(taught(), **(STEPS | changes))


def planes(**changes):
    return _core.ChainPlanes(taught(), **(PLANES | changes))


def uint16(*labels):
    return np.array(labels, dtype=np.uint16)


NO_SECOND = {"next": np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1]], dtype=np.uint8)}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: chain(offsets=np.array([0, 2])), "offsets should run from 0 to 3"),
        (lambda: chain(offsets=np.array([1, 3])), "offsets should run from 0 to 3"),
        (lambda: chain(offsets=np.array([0, 4, 2, 3])), "offsets should not decrease"),
        (lambda: chain(offsets=np.zeros(0, dtype=np.int64)), "offsets should run from 0 to 3"),
        (lambda: chain(indptr=np.array([0, 3, 2, 3])), "indptr should not decrease"),
        (lambda: chain(indptr=np.array([0, 2, 2, 4])), "indptr should run from 0 to 3"),
        (lambda: chain(values=np.ones(2)), "values"),
        (lambda: chain(labels=0), "labels"),
        (lambda: chain(labels=65536), "labels"),
        (lambda: chain(labels=4), "next"),
        (lambda: chain(attributes=-1), "attributes"),
        (lambda: chain(attributes=2**31), "attributes"),
        (lambda: chain(first=np.ones(2, np.uint8)), "first"),
        (lambda: chain(final=np.ones(4, np.uint8)), "final"),
        (lambda: chain(next=np.ones((2, 3), np.uint8)), "next"),
        (lambda: taught(tags=uint16(0, 1)), "tags"),
        (lambda: taught(tags=uint16(0, 1, 3)), "sequence 1 has tags that are not allowed"),
        (lambda: taught(NO_SECOND, tags=uint16(1, 1, 0)), "sequence 0 has tags that are not allowed"),
        (lambda: taught({"first": uint16(1, 1, 0).astype(np.uint8)}), "sequence 1 has tags that are not allowed"),
        (lambda: taught({"offsets": np.array([0, 2, 2, 3])}), "sequence 1 is empty"),
        (lambda: taught(cost=np.ones((2, 2))), "cost"),
        (lambda: taught(cost=np.ones((L, L))), "0 on the diagonal"),
        (lambda: taught(cost=np.eye(L) - 1), "numbers >= 0"),
        (lambda: taught(cost=np.where(np.eye(L), 0, np.nan)), "numbers >= 0"),
        (lambda: taught(cost=np.where(np.eye(L), 0, np.inf)), "numbers >= 0"),
        (lambda: taught(learnt=np.ones(L, np.uint8)[:, None]), "learnt"),
        (lambda: chain().hinge(W, False, 1), "no tags"),
        (lambda: chain().log_losses(W, ONES, 1), "no tags"),
        (lambda: chain().plane_costs(ROWS, LABELS), "no tags"),
        (lambda: chain().products(W, ONES, LABELS[None], 1), "no tags"),
        (lambda: _core.ChainSteps(chain(), **STEPS), "no tags"),
        (lambda: _core.ChainPlanes(chain(), **PLANES), "no tags"),
        (lambda: chain().tag(W[1:], 1), "weights"),
        (lambda: chain().tag(np.ones(SIZE), 1), "weights should end in zeros"),
        (lambda: chain().marginals(W[1:], 1), "weights"),
        (lambda: taught().hinge(np.zeros(SIZE + 1), True, 1), "weights"),
        (lambda: taught().log_losses(W, np.ones(3), 1), "weight"),
        (lambda: taught().plane_weights(ROWS, LABELS, np.ones(3)), "share"),
        (lambda: taught().plane_weights(ROWS, LABELS[:2], ONES), "too few labels"),
        (lambda: taught().plane_costs(ROWS[:1], LABELS), "too many labels"),
        (lambda: taught().plane_costs(ROWS, uint16(1, 3, 0)), "sequence 0 is not allowed"),
        (lambda: taught(NO_SECOND).plane_costs(ROWS, LABELS), "sequence 0 is not allowed"),
        (lambda: taught().products(W, ONES, LABELS[None, :2], 1), "a label a token"),
        (lambda: taught().products(W, np.ones(1), LABELS[None], 1), "weight"),
        (lambda: steps(rule="pegasus"), "rule 'pegasus' is none of pegasos, perceptron, passive_aggressive"),
        (lambda: steps(loss="hinges"), "loss 'hinges' is none of hinge, log"),
        (lambda: steps(mean="most"), "mean 'most' is none of none, all, window"),
        (lambda: steps(sampling="any"), "sampling 'any' is none of"),
        (lambda: steps(lam=0.0), "should be > 0"),
        (lambda: steps(lam=np.nan), "should be > 0"),
        (lambda: steps(t0=-1.0), "t0 and radius >= 0"),
        (lambda: steps(radius=np.nan), "t0 and radius >= 0"),
        (lambda: steps(batch_size=0), "should be > 0"),
        (lambda: steps(aggressiveness=0.0), "should be > 0"),
        (lambda: steps(rule="perceptron", loss="log"), "the log loss is for Pegasos' steps"),
        (lambda: steps(weight=np.ones(3)), "weight"),
        (lambda: planes(lam=0.0), "should be > 0"),
        (lambda: planes(total=np.nan), "should be > 0"),
        (lambda: planes(unused_passes=0.0), "should be > 0"),
        (lambda: planes(weight=np.ones(1)), "weight"),
        (lambda: planes().set_weights(W[:-1]), "W"),
        (lambda: planes().add(ROWS, LABELS, np.array([0.5, 1.5]), None), "alpha"),
        (lambda: planes().add(ROWS, LABELS, np.array([0.5, np.nan]), None), "alpha"),
        (lambda: planes().add(ROWS, LABELS, np.array([0.5, -0.5]), None), "alpha"),
        (lambda: planes().add(ROWS, LABELS, ONES, np.ones(1)), "unused"),
        (lambda: planes().go_on(0, 3, 0.0, 0.0), "progress"),
        (lambda: planes().go_on(0, -1, 0.0, 0.0), "progress"),
        (lambda: planes().go_on(-2, 0, 0.0, 0.0), "progress"),
        (lambda: planes().go_on(-1, 0, 0.0, 0.0), "progress"),
    ],
)
def test_what_is_wrong_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: chain(ids=np.array([0, 4, 1], dtype=np.int32)),
        lambda: chain(ids=np.array([0, -1, 1], dtype=np.int32)),
        lambda: taught().plane_costs(np.array([0, 2]), LABELS),
        lambda: taught().plane_costs(np.array([-1, 1]), LABELS),
        lambda: taught().products(W, ONES, uint16(0, 1, 3)[None], 1),
    ],
)
def test_places_outside_are_refused(call):
    with pytest.raises(IndexError):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: chain(next=np.ones(L * L, np.uint8)),
        lambda: chain(offsets=np.array([[0, 2, 3]])),
        lambda: chain(ids=np.array(["0", "3", "1"])),
        lambda: taught(tags=[0, 1, 2]),
        lambda: chain().tag(W[:, None], 1),
        lambda: chain().tag(None, 1),
        lambda: taught().products(W, ONES, LABELS, 1),
    ],
)
def test_other_types_and_dimensions_are_refused(call):
    with pytest.raises(TypeError):
        call()


PROGRESS = (0.0, 1.0, 1.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    "bad",
    [
        {"progress": (-1.0, *PROGRESS[1:])},
        {"progress": (np.nan, *PROGRESS[1:])},
        {"progress": (1e300, *PROGRESS[1:])},
        {"progress": (0.0, 3.0, *PROGRESS[2:])},
        {"progress": (0.0, -1.0, *PROGRESS[2:])},
        {"progress": (0.0, np.nan, *PROGRESS[2:])},
        {"progress": (0.0, 1.0, 0.0, *PROGRESS[3:])},
        {"progress": (0.0, 1.0, np.nan, *PROGRESS[3:])},
        {"V": W[1:]},
        {"U": np.ones(SIZE)},
        {"rows": np.array([0, 2])},
        {"rows": np.array([1, 1])},
        {"labels": uint16(1, 3, 0)},
        {"labels": LABELS[:2]},
        {"visits": np.ones(3)},
    ],
    ids=str,
)
def test_forged_states_of_steps_are_refused(bad):
    core = steps()
    good = {"progress": PROGRESS, "V": W, "U": W, "rows": ROWS, "labels": LABELS, "visits": ONES}
    core.restore(**good)
    with pytest.raises((ValueError, IndexError)):
        core.restore(**(good | bad))
    core.advance(10**6)
    assert np.isfinite(core.weights(True)).all()


def test_corpora_without_tokens():
    """Nothing to be tagged is nothing; sequences without tokens among others have no labels."""
    nothing = {"offsets": np.zeros(1, np.int64), "indptr": np.zeros(1, np.int64), "ids": np.zeros(0, np.int32)}
    empty = chain(**nothing)
    assert empty.tag(W, 1)[0].shape == (0,)
    assert empty.marginals(W, 1)[0].shape == (0, L)
    empty.teach(uint16(), TAUGHT["cost"], TAUGHT["learnt"])
    assert empty.hinge(W, True, 1)[0].shape == (0,)
    assert empty.log_losses(W, np.zeros(0), 1)[1].tolist() == W.tolist()
    with pytest.raises(ValueError, match="the corpus is empty"):
        _core.ChainSteps(empty, **STEPS)
    with pytest.raises(ValueError, match="the corpus is empty"):
        _core.ChainPlanes(empty, **PLANES)
    holes = chain(offsets=np.array([0, 0, 2, 2, 3, 3]))
    assert holes.tag(W, 1)[1] == -1
    assert holes.marginals(W, 1)[1] == -1
    lengthless = chain(**(nothing | {"offsets": np.zeros(3, np.int64)}))
    assert lengthless.tag(W, 1)[1] == -1
    for call in (
        lambda c: c.log_losses(W, ONES, 1),
        lambda c: c.hinge(W, True, 1),
        lambda c: c.plane_costs(ROWS, uint16()),
    ):
        with pytest.raises(ValueError, match="no tags"):
            call(lengthless)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e308])
@pytest.mark.parametrize("grammar", [{}, NO_SECOND], ids=["free", "grammar"])
def test_weights_that_are_no_numbers_lead_nowhere_else(bad, grammar):
    """What comes out may be as senseless, but labels are labels and nothing breaks."""
    weights = W.copy()
    weights[:-8:2] = bad
    corpus = taught(grammar)
    assert corpus.tag(weights, 1)[0].max() < L
    assert corpus.hinge(weights, True, 1)[1].max() < L
    corpus.marginals(weights, 1)
    corpus.log_losses(weights, ONES, 1)
    core = _core.ChainPlanes(corpus, **PLANES)
    core.set_weights(weights)
    core.advance(10**6, False)
    assert core.table()[1].max(initial=0) < L
