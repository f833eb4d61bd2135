"""Why solvers of kernel machines stop."""

from __future__ import annotations

#: What is reached where there is no lower bound that a gap could be measured from: LIBSVM's criterion, or MET.
CONDITIONS = "no pair of dual variables violates the optimality conditions by more than tol"
MET = "the dual value came within tol of the objective"
