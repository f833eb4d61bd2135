"""Solvers of structured support vector machines."""
