"""Files in and out: svmlight text, datasets larger than memory, model files (safetensors, LIBLINEAR, LIBSVM, ONNX)."""

from typing import TYPE_CHECKING

from pegasos import _lazy

if TYPE_CHECKING:
    from pegasos.io._liblinear import read_liblinear, write_liblinear
    from pegasos.io._libsvm import read_libsvm, write_libsvm
    from pegasos.io._model import load, save
    from pegasos.io._onnx import to_onnx

__all__ = [
    "load",
    "read_liblinear",
    "read_libsvm",
    "save",
    "to_onnx",
    "write_liblinear",
    "write_libsvm",
]

# Reading data needs no estimators, and importing those takes longer than reading a small file.
__getattr__, __dir__ = _lazy.names(
    __name__,
    {
        "load": "_model",
        "read_liblinear": "_liblinear",
        "read_libsvm": "_libsvm",
        "save": "_model",
        "to_onnx": "_onnx",
        "write_liblinear": "_liblinear",
        "write_libsvm": "_libsvm",
    },
)
