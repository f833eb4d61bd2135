"""The one loop around every solver, its contract with engines, traces, checkpoints and interrupts."""
