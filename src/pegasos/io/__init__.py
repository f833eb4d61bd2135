"""Model files: safetensors, LIBLINEAR and LIBSVM text, ONNX."""

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
