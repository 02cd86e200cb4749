"""Checks of the kernels that need no GPU: a strict interpreter, ahead-of-time compilation, mutants."""
