"""Run records as one self-contained page: what was trained, how near the optimum it is, how good it is."""

from pegasos.report.page import page

__all__ = ["page"]
