"""Benchmarks: zoo and its peers in one run, on the same weights.  Run as `python -m benchmarks.<name>`."""
