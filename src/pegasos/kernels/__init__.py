"""Kernel functions, blocks of their values, bounds of their rounding errors, and machines of all pairs of classes."""
