"""Engines of kernel machines."""
