"""Files: svmlight text."""

from pegasos.io._svmlight import SvmlightError, iter_svmlight, read_svmlight, write_svmlight

__all__ = ["SvmlightError", "iter_svmlight", "read_svmlight", "write_svmlight"]
