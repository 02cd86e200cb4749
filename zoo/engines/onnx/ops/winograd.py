"""3 x 3 convolutions of many channels as products with fewer multiplications, see `zoo.ops.on_numpy.winograd`.

ONNX Runtime's own convolutions come near to what a CPU multiplies in a second.  These take 0.6 of their time with 256
channels, 0.8 with 128, and more than theirs with 64; the weights take 4 times the memory, from 384 channels on 1.8.
"""

from __future__ import annotations

import numpy as np

from ....ops.on_numpy import winograd
from .dims import is_fixed
from .graph import Made, Recipe
from .symbol import Symbol

CHANNELS = 128 * 128  # kernels of a weight from which it pays
SIDE = 16  # pixels: smaller images read all of the larger weights for few products


def pays(planes: Symbol, weight: Symbol, stride: tuple[int, int], dilation: tuple[int, int]) -> bool:
    """planes (B, C, Y, X), weight (D, C, 3, 3)."""
    D, C, *kernel = weight.shape
    small = any(is_fixed(n) and n < SIDE for n in planes.shape[2:])
    plain = kernel == [3, 3] and (*stride, *dilation) == (1, 1, 1, 1)
    return planes.graph.on_cpu and plain and D * C >= CHANNELS and weight.is_constant and not small


def conv3x3(planes: Symbol, weight: Symbol, bias: Symbol | None, padding: tuple[int, int]) -> Symbol:
    """planes (B, C, Y, X), weight (D, C, 3, 3) -> (B, D, Y', X')."""
    (B, C, Y, X), D = planes.shape, weight.shape[0]
    m = winograd.tile(C * D)
    n, (down, across) = m + 2, padding
    height, width = Y + 2 * down - 2, X + 2 * across - 2
    rows, columns = (height + m - 1) // m, (width + m - 1) // m
    into = winograd.INPUT_TRANSFORM[m].astype(np.float32).reshape(n * n, 1, n, n)
    window = {"kernel_shape": [n, n], "strides": [m, m], "pads": [down, across, down + m - 1, across + m - 1]}
    tiles = planes.new("Conv", [planes.reshape(B * C, 1, Y, X), into], (B * C, n * n, rows, columns), **window)
    tiles = tiles.reshape(B, C, n * n, rows * columns).transpose(2, 1, 0, 3).reshape(n * n, C, B * rows * columns)
    products = tiles.new("MatMul", [_transform_weight(weight), tiles], (n * n, D, B * rows * columns))
    products = products.reshape(n * n, D * B * rows * columns)
    back = winograd.OUTPUT_TRANSFORM[m].astype(np.float32)
    y = products.new("MatMul", [back, products], (m * m, D * B * rows * columns))
    # One axis at a time, which ONNX Runtime moves fast.
    y = y.reshape(m, m, D * B * rows * columns).transpose(0, 2, 1).reshape(m, D, B, rows, columns * m)
    y = y.transpose(2, 1, 3, 0, 4).reshape(B, D, rows * m, columns * m)
    y = y[:, :, :height, :width]
    return y if bias is None else y + bias.reshape(D, 1, 1)


def _transform_weight(weight: Symbol) -> Symbol:
    """The weight (n n, D, C), which is computed when it is written."""
    D, C = weight.shape[:2]
    graph, key, size = weight.graph, ("winograd", weight.name), (winograd.tile(C * D) + 2) ** 2
    if key not in graph.memo:
        value = weight.value
        recipe = Recipe(lambda: [np.ascontiguousarray(winograd.transform(value).transpose(0, 2, 1))])
        made = Made(recipe, 0, (size, D, C), np.dtype(np.float32))
        graph.memo[key] = graph.store(made, name=f"{weight.name}.winograd")
    return Symbol(graph, graph.memo[key], (size, D, C), np.dtype(np.float32))
