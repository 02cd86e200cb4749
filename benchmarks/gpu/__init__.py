"""Measurements for a day with a GPU: `python -m benchmarks.gpu`."""
