"""Files in and out: svmlight text, datasets larger than memory, model files (safetensors, LIBLINEAR, LIBSVM, ONNX)."""

from typing import TYPE_CHECKING

from pegasos import _lazy

if TYPE_CHECKING:
    from pegasos._dataset import Dataset
    from pegasos.io._convert import convert, write_dataset
    from pegasos.io._dataset import open_dataset
    from pegasos.io._liblinear import read_liblinear, write_liblinear
    from pegasos.io._libsvm import read_libsvm, write_libsvm
    from pegasos.io._model import load, save
    from pegasos.io._onnx import to_onnx
    from pegasos.io._svmlight import SvmlightError, iter_svmlight, read_svmlight, write_svmlight

__all__ = [
    "Dataset",
    "SvmlightError",
    "convert",
    "iter_svmlight",
    "load",
    "open_dataset",
    "read_liblinear",
    "read_libsvm",
    "read_svmlight",
    "save",
    "to_onnx",
    "write_dataset",
    "write_liblinear",
    "write_libsvm",
    "write_svmlight",
]

# Reading data needs no estimators, and importing those takes longer than reading a small file.
__getattr__, __dir__ = _lazy.names(
    __name__,
    {
        "Dataset": "_dataset",
        "SvmlightError": "_svmlight",
        "convert": "_convert",
        "iter_svmlight": "_svmlight",
        "load": "_model",
        "open_dataset": "_dataset",
        "read_liblinear": "_liblinear",
        "read_libsvm": "_libsvm",
        "read_svmlight": "_svmlight",
        "save": "_model",
        "to_onnx": "_onnx",
        "write_dataset": "_convert",
        "write_liblinear": "_liblinear",
        "write_libsvm": "_libsvm",
        "write_svmlight": "_svmlight",
    },
)
