"""Matrices of each kind that the kernels multiply by, of any bits that are numbers, and what a product with them is."""

from __future__ import annotations

import numpy as np
import torch
from closeness import wide
from torch import Tensor

from tests.ops import naive
from zoo.quant import QUANT_TYPES, QuantRows, QuantTensor


def rows(kind: str, outputs: int, inputs: int, seed: int = 0) -> QuantRows:
    """A packed matrix of NumPy arrays, with values about as large as a layer's weights."""
    rng, arrays = np.random.default_rng(seed), []
    for field, shape in zip(QUANT_TYPES[kind].fields, QUANT_TYPES[kind].shapes(outputs, inputs), strict=True):
        dtype = np.dtype(field.dtype)
        if dtype.kind == "f":  # of both signs, and nearly all different
            most = 8 if "INT4" in kind else 127
            if field.name.endswith("_step"):  # of integers up to 255
                most *= 128
            arrays.append((rng.standard_normal(shape) / most / inputs**0.5).astype(dtype))
        else:
            least = -127 if dtype.kind == "i" else 0
            most = 16 if field.name == "zero" else np.iinfo(dtype).max + 1
            arrays.append(rng.integers(least, most, shape, dtype))
    return QuantRows(QUANT_TYPES[kind], inputs, tuple(arrays))


def fields(matrix: QuantRows, device: str) -> tuple[Tensor, ...]:
    return tuple(torch.from_numpy(array).to(device) for array in matrix.arrays)


def exact(x: Tensor, matrix: QuantRows, bias=None, act=None, residual=None) -> np.ndarray:
    """By the float64 twin."""
    y = naive.linear(wide(x), QuantTensor([matrix]), None if bias is None else wide(bias), act)
    return y if residual is None else y + wide(residual)
