"""Kernel classifiers with few support vectors: compressing fitted ones, and an estimator that does both."""

from typing import TYPE_CHECKING

from pegasos.util import lazy

if TYPE_CHECKING:
    from pegasos.sparse.compress import sparsify
    from pegasos.sparse.path import SparsePath
    from pegasos.sparse.randomized import Guarantee, RandomizedClassifier
    from pegasos.sparse.svc import SparseSVC

__all__ = ["Guarantee", "RandomizedClassifier", "SparsePath", "SparseSVC", "sparsify"]

__getattr__, __dir__ = lazy.names(
    __name__,
    {
        "compress": ("sparsify",),
        "path": ("SparsePath",),
        "randomized": ("Guarantee", "RandomizedClassifier"),
        "svc": ("SparseSVC",),
    },
)
