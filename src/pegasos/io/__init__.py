"""Files: svmlight text, and datasets larger than memory."""

from pegasos._dataset import Dataset
from pegasos.io._convert import convert, write_dataset
from pegasos.io._dataset import open_dataset
from pegasos.io._svmlight import SvmlightError, iter_svmlight, read_svmlight, write_svmlight

__all__ = [
    "Dataset",
    "SvmlightError",
    "convert",
    "iter_svmlight",
    "open_dataset",
    "read_svmlight",
    "write_dataset",
    "write_svmlight",
]
