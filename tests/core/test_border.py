"""The border between Python and the core: words, codes and places that it does not know are refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from pegasos import _core

X, Y = np.ascontiguousarray(np.arange(12.0).reshape(6, 2)), np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
LABELS = np.arange(6, dtype=np.int32) % 3
COMMON = {"weight": None, "total": 6.0, "first": 0, "count": 1, "lam": 0.1, "feature": 0.0, "seed": 0}


def pegasos(loss=None, targets=Y, **changes):
    options = {"schedule": "pegasos", "rate": 0.0, "t0": 0.0, "batch_size": 1, "whole_batches": True}
    options |= {
        "sampling": "permutation",
        "radius": 0.0,
        "average": False,
        "random": False,
        "bias": "none",
        "bias_start": 0.0,
    }
    options |= {"bias_rate": 1.0} | COMMON | changes
    given = {name: value for name, value in options.items() if value is not ...}
    return _core.Pegasos(_core.Rows.dense(X), loss or _core.Loss("hinge", None), targets, **given)


def sdca(loss=None, targets=Y, **changes):
    options = {"squared_norms": (X**2).sum(axis=1), "multiplier": False, "shrinking": True, "blocks": 0, "threads": 1}
    options |= {"single": False, "sampling": "permutation"} | COMMON | changes
    given = {name: value for name, value in options.items() if value is not ...}
    return _core.Sdca(_core.Rows.dense(X), loss or _core.Loss("hinge", None), targets, **given)


def kernel_rows(name, degree=3):
    return _core.KernelRows(_core.Rows.dense(X), name, 1.0, 0.0, degree, 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pegasos(schedule="pegasus"), "schedule 'pegasus' is none of pegasos, norma, constant"),
        (lambda: pegasos(bias="subgradent"), "bias 'subgradent' is none of none, subgradient, batch"),
        (
            lambda: pegasos(sampling="permuted"),
            "sampling 'permuted' is none of iid, fixed, permutation, streams, chunked",
        ),
        (lambda: sdca(sampling="permuted"), "sampling 'permuted' is none of iid, fixed, permutation, streams, chunked"),
        (
            lambda: pegasos().select("avarage"),
            "iterate 'avarage' is none of last, average, suffix, first_random, second_random",
        ),
        (
            lambda: _core.epoch_order(6, "iit", 0, 0),
            "sampling 'iit' is none of iid, fixed, permutation, streams, chunked",
        ),
        (lambda: _core.Loss("hinges", None), "loss 'hinges' is none of hinge, squared_hinge, .*, quantile$"),
        (lambda: _core.Loss("huber", None), "loss 'huber' needs a parameter"),
        (lambda: _core.Loss("hinge", 0.1), "loss 'hinge' has no parameter"),
        (lambda: kernel_rows("rbff"), "kernel 'rbff' is none of linear, poly, sigmoid, rbf, laplacian, chi2"),
        (lambda: kernel_rows("poly", degree=-1), "degree must be at least 0"),
        (lambda: pegasos(batch_size=0), "batch_size must be at least 1"),
        (lambda: pegasos(count=0), "count must be at least 1"),
        (lambda: pegasos().select("average"), "not asked for when the solver was made"),
        (lambda: pegasos().select("second_random"), "not asked for when the solver was made"),
    ],
)
def test_unknown_words_and_codes_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    "call", [lambda: _core.Loss("huber"), lambda: sdca(shrinking=...), lambda: pegasos(bias_rate=...)]
)
def test_the_core_has_no_defaults_of_its_own(call):
    """Those are written once, in Python."""
    with pytest.raises(TypeError):
        call()


@pytest.mark.parametrize("label", [-1, 3])
def test_labels_that_are_no_class_are_refused(label):
    loss, wrong = _core.JointLoss.multinomial(3), LABELS.copy()
    wrong[4] = label
    scores = np.zeros((6, 3))
    calls = [
        lambda: loss.value(scores, wrong),
        lambda: loss.conjugate(scores, wrong),
        lambda: loss.slopes(scores, wrong),
        lambda: loss.dual_step(scores[0], scores[0], label, 1.0),
        lambda: pegasos(loss, wrong, count=3),
        lambda: sdca(loss, wrong, count=3),
    ]
    for call in calls:
        with pytest.raises(IndexError, match="label"):
            call()


@pytest.mark.parametrize("make", [pegasos, sdca])
@pytest.mark.parametrize(
    "changes",
    [
        {"targets": Y.astype(np.float32)},
        {"targets": Y[::2].repeat(2)[::-1]},
        {"targets": Y.tolist()},
        {"targets": None},
        {"weight": np.ones(6, np.float32)},
        {"weight": [1.0] * 6},
        {"loss": "hinge"},
    ],
)
def test_what_is_no_array_or_loss_of_the_right_type_is_refused_not_converted(make, changes):
    with pytest.raises(TypeError, match="incompatible function arguments"):
        make(**changes)


@pytest.mark.parametrize("make", [pegasos, sdca])
def test_solvers_keep_alive_what_they_borrow(make):
    """Arrays that nobody else knows are not overwritten by what comes after them."""

    def weights(solver):
        noise = [np.full(6, 7.0 + k) for k in range(50)]
        solver.advance(6)
        assert len(noise) == 50
        return solver.weights()[0]

    kept = {"targets": Y.copy(), "weight": np.arange(1.0, 7.0)}
    np.testing.assert_array_equal(
        weights(make(targets=Y.copy(), weight=np.arange(1.0, 7.0), total=21.0)), weights(make(**kept, total=21.0))
    )


def test_known_words_are_taken():
    for schedule in ("pegasos", "norma", "constant"):
        for bias in ("none", "subgradient", "batch"):
            pegasos(schedule=schedule, bias=bias, rate=0.1).advance(6)
    solver = pegasos(average=True, random=True)
    for which in ("last", "average", "suffix", "first_random", "second_random"):
        solver.select(which)
    for sampling in ("iid", "fixed", "permutation", "streams", "chunked", "subset"):
        assert len(_core.epoch_order(6, sampling, 0, 0)) == 6
    for name in ("linear", "poly", "sigmoid", "rbf", "laplacian", "chi2"):
        assert kernel_rows(name).rows == 6
