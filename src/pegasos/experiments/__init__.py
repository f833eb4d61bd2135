"""The sparse kernel machines that the 2013 paper "Learning optimally sparse SVMs" compares itself with, and more.

Every method is a function of a :class:`Task` and the sizes that are wanted, and returns a list of
:class:`Expansion`; :data:`METHODS` has them by name.
"""

from __future__ import annotations

from collections.abc import Callable

from pegasos.experiments._task import Expansion, Task
from pegasos.experiments.budget_perceptron import budget_perceptron
from pegasos.experiments.cpsp import cpsp
from pegasos.experiments.forgetron import forgetron
from pegasos.experiments.osuna_girosi import osuna_girosi
from pegasos.experiments.perceptron import perceptron
from pegasos.experiments.ramp import ramp
from pegasos.experiments.random_basis import random_basis
from pegasos.experiments.reduced_set import reduced_set
from pegasos.experiments.spsvm import spsvm

__all__ = [
    "METHODS",
    "Expansion",
    "Task",
    "budget_perceptron",
    "cpsp",
    "forgetron",
    "osuna_girosi",
    "perceptron",
    "ramp",
    "random_basis",
    "reduced_set",
    "spsvm",
]

#: Every method by the name that its results carry.
METHODS: dict[str, Callable[..., list[Expansion]]] = {
    "random": random_basis,
    "spsvm": spsvm,
    "cpsp": cpsp,
    "osuna-girosi": osuna_girosi,
    "reduced-set": reduced_set,
    "ramp": ramp,
    "forgetron": forgetron,
    "rbp": budget_perceptron,
    "perceptron": perceptron,
}
