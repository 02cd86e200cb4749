"""The order of activations in memory.

An array of logical shape (B, T, D) is feature-major if its memory is (D, B * T): then every linear layer is W @ X with
W as its file has it, and the slices of a fused projection, and heads, are blocks.  Up to FEW tokens are row-major,
(B * T, D), which suits BLAS kernels for small products, and so are logits over a vocabulary, for their readers.
"""

from __future__ import annotations

import math

import numpy as np

ROW_MAJOR_TOKENS = 24  # tokens, up to which row-major is faster
MAX_UNPACKED_MNK = 1_000_000  # M * N * K of a product that OpenBLAS's kernels for AVX-512 do without packing


def columns(x: np.ndarray) -> np.ndarray:
    """x (..., D) as a (D, N) matrix: a view if x is row-major or feature-major, else a feature-major copy."""
    D, N = x.shape[-1], math.prod(x.shape[:-1])
    if x.flags.c_contiguous:
        return x.reshape(N, D).T
    X = x.transpose(x.ndim - 1, *range(x.ndim - 1)).reshape(D, N)
    return X if multipliable(X) else np.ascontiguousarray(X)


def multipliable(X: np.ndarray) -> bool:
    """True if BLAS takes a matrix, or a stack of them, without a copy."""
    for step, leap, size in ((X.strides[-1], X.strides[-2], X.shape[-1]), (X.strides[-2], X.strides[-1], X.shape[-2])):
        if step == X.itemsize and leap >= size * X.itemsize and leap % X.itemsize == 0:
            return True
    return False


def logical(Y: np.ndarray, lead: tuple[int, ...]) -> np.ndarray:
    """The feature-major (D, N) matrix Y as (*lead, D)."""
    return Y.reshape(len(Y), *lead).transpose(*range(1, len(lead) + 1), 0)
