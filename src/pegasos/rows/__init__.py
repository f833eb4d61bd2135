"""Rows as users bring them: arrays and files to checked, borrowed views; labels, targets and weights."""
