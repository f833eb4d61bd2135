"""Benchmarks: libraries are adapters, one judge measures all, results are kept with their configuration."""
