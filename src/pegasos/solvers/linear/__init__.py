"""Engines of linear machines."""
