"""Files in and out: datasets larger than memory."""

from pegasos._dataset import Dataset
from pegasos.io._convert import convert, write_dataset
from pegasos.io._dataset import open_dataset

__all__ = ["Dataset", "convert", "open_dataset", "write_dataset"]
