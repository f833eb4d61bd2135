"""Files in and out: svmlight text, tagged sentences in columns, datasets larger than memory, and model files.

Models are kept as safetensors, LIBLINEAR's and LIBSVM's text, or ONNX.
"""

from typing import TYPE_CHECKING

from pegasos.util import lazy

if TYPE_CHECKING:
    from pegasos.io.data.conll import Corpus, iter_conll, read_conll, write_conll
    from pegasos.io.data.convert import convert, write_dataset
    from pegasos.io.data.dataset import open_dataset
    from pegasos.io.data.svmlight import SvmlightError, iter_svmlight, read_svmlight
    from pegasos.io.data.svmlight_writer import write_svmlight
    from pegasos.io.data.templates import Template
    from pegasos.io.models.liblinear import read_liblinear, write_liblinear
    from pegasos.io.models.libsvm import read_libsvm, write_libsvm
    from pegasos.io.models.native import load, save
    from pegasos.io.models.onnx import to_onnx
    from pegasos.rows.dataset import Dataset

__all__ = [
    "Corpus",
    "Dataset",
    "SvmlightError",
    "Template",
    "convert",
    "iter_conll",
    "iter_svmlight",
    "load",
    "open_dataset",
    "read_conll",
    "read_liblinear",
    "read_libsvm",
    "read_svmlight",
    "save",
    "to_onnx",
    "write_conll",
    "write_dataset",
    "write_liblinear",
    "write_libsvm",
    "write_svmlight",
]

# Reading data needs no estimators, and importing those takes longer than reading a small file.
__getattr__, __dir__ = lazy.names(
    __name__,
    {
        "data.conll": ("Corpus", "iter_conll", "read_conll", "write_conll"),
        "data.convert": ("convert", "write_dataset"),
        "data.dataset": ("Dataset", "open_dataset"),
        "data.svmlight": ("SvmlightError", "iter_svmlight", "read_svmlight"),
        "data.svmlight_writer": ("write_svmlight",),
        "data.templates": ("Template",),
        "models.liblinear": ("read_liblinear", "write_liblinear"),
        "models.libsvm": ("read_libsvm", "write_libsvm"),
        "models.native": ("load", "save"),
        "models.onnx": ("to_onnx",),
    },
)
