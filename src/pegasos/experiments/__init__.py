"""The sparse kernel machines that the 2013 paper "Learning optimally sparse SVMs" compares itself with, and more.

Every method of :data:`METHODS` is a function of a :class:`Task` and the sizes that are wanted, and returns a list of
:class:`Expansion`; :func:`alpha_sgd` is one of steps, not of sizes. Runs of Pegasos whose guarantees are those of its
analysis have a file of their own.
"""

from __future__ import annotations

from collections.abc import Callable

from pegasos.experiments.baselines.alpha_sgd import alpha_sgd
from pegasos.experiments.baselines.budget_perceptron import budget_perceptron
from pegasos.experiments.baselines.cpsp import cpsp
from pegasos.experiments.baselines.csvm import csvm
from pegasos.experiments.baselines.curvature import zhan_shen
from pegasos.experiments.baselines.forgetron import forgetron
from pegasos.experiments.baselines.margin_perceptron import margin_perceptron
from pegasos.experiments.baselines.margin_surrogate import MarginLosses, margin_surrogate
from pegasos.experiments.baselines.norma import norma
from pegasos.experiments.baselines.osuna_girosi import osuna_girosi
from pegasos.experiments.baselines.passive_aggressive import passive_aggressive
from pegasos.experiments.baselines.perceptron import perceptron
from pegasos.experiments.baselines.ramp import ramp
from pegasos.experiments.baselines.random_basis import random_basis
from pegasos.experiments.baselines.reduced_set import reduced_set
from pegasos.experiments.baselines.rsvm import rsvm
from pegasos.experiments.baselines.spsvm import spsvm
from pegasos.experiments.baselines.task import Expansion, Task
from pegasos.experiments.online import OnlineRun, StoppedRun, online_to_batch, stopped_pegasos

__all__ = [
    "METHODS",
    "Expansion",
    "MarginLosses",
    "OnlineRun",
    "StoppedRun",
    "Task",
    "alpha_sgd",
    "budget_perceptron",
    "cpsp",
    "csvm",
    "forgetron",
    "margin_perceptron",
    "margin_surrogate",
    "norma",
    "online_to_batch",
    "osuna_girosi",
    "passive_aggressive",
    "perceptron",
    "ramp",
    "random_basis",
    "reduced_set",
    "rsvm",
    "spsvm",
    "stopped_pegasos",
    "zhan_shen",
]

#: Every method by the name that its results carry.
METHODS: dict[str, Callable[..., list[Expansion]]] = {
    "random": random_basis,
    "rsvm": rsvm,
    "spsvm": spsvm,
    "cpsp": cpsp,
    "csvm": csvm,
    "osuna-girosi": osuna_girosi,
    "zhan-shen": zhan_shen,
    "reduced-set": reduced_set,
    "ramp": ramp,
    "forgetron": forgetron,
    "rbp": budget_perceptron,
    "perceptron": perceptron,
    "margin-perceptron": margin_perceptron,
    "passive-aggressive": passive_aggressive,
    "norma": norma,
}
