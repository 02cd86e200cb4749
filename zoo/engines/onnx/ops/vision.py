"""Images: (B, Y, X, C) in the model, planes (B, C, Y, X) in ONNX.

The transposes between two of these ops cancel.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ....ops import on_numpy
from . import winograd
from .activations import activate
from .arrays import arange, cat, where
from .dims import is_fixed, is_same
from .symbol import FLOAT, INT, Symbol

Pair = tuple[int, int]


def planes(x: Symbol) -> Symbol:
    return x.transpose(0, 3, 1, 2)


def image(x: Symbol) -> Symbol:
    return x.transpose(0, 2, 3, 1)


def conv2d(
    x: Symbol,
    weight: Symbol,
    bias: Symbol | None,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    act: str | None,
    residual: Symbol | None,
    post: str | None,
    prepared: Any,
    groups: int,
) -> Symbol:
    if groups == 1 and winograd.pays(planes(x), weight, stride, dilation):
        y = winograd.conv3x3(planes(x), weight, bias, padding)
    else:
        O, _, *kernel = weight.shape  # noqa: E741
        size = [_windows(*of) for of in zip(x.shape[1:3], kernel, stride, padding, dilation, strict=True)]
        inputs = [planes(x), weight] if bias is None else [planes(x), weight, bias]
        window = {
            "kernel_shape": kernel,
            "strides": list(stride),
            "pads": [*padding, *padding],
            "dilations": list(dilation),
            "group": groups,
        }
        y = x.new("Conv", inputs, (x.shape[0], O, *size), **window)
    y = activate(y, act)
    return image(activate(y if residual is None else y + planes(residual), post))


def depthwise_conv2d(
    x: Symbol, weight: Symbol, bias: Symbol | None, act: str | None, stride: Pair, padding: Pair, dilation: Pair
) -> Symbol:
    (B, *size, C), (_, _, *kernel) = x.shape, weight.shape
    inputs = [planes(x), weight] if bias is None else [planes(x), weight, bias]
    window = {"kernel_shape": kernel, "strides": list(stride), "pads": [*padding, *padding], "group": C}
    window["dilations"] = list(dilation)
    Y, X = (_windows(*of) for of in zip(size, kernel, stride, padding, dilation, strict=True))
    return image(activate(x.new("Conv", inputs, (B, C, Y, X), **window), act))


def pad_images(x: Symbol, rows: Pair, columns: Pair) -> Symbol:
    B, Y, X, C = x.shape
    pads = x.graph.lengths(tuple(n for side in (0, 1) for n in (0, 0, rows[side], columns[side])))
    return image(planes(x).new("Pad", [planes(x), pads], (B, C, Y + sum(rows), X + sum(columns))))


def _windows(n: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    return (n + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def prepare_conv(weight: Symbol, stride: Pair, dilation: Pair) -> None:
    return None


def conv_transpose2d(
    x: Symbol, weight: Symbol, bias: Symbol | None, stride: Pair, padding: Pair, act: str | None
) -> Symbol:
    _, O, *kernel = weight.shape  # noqa: E741
    size = [(n - 1) * s + k - 2 * p for n, s, k, p in zip(x.shape[1:3], stride, kernel, padding, strict=True)]
    inputs = [planes(x), weight] if bias is None else [planes(x), weight, bias]
    window = {"kernel_shape": kernel, "strides": list(stride), "pads": [*padding, *padding]}
    return image(activate(x.new("ConvTranspose", inputs, (x.shape[0], O, *size), **window), act))


def fold_norm(weight, bias, gamma, beta, mean, var, eps, axis):
    """A norm folded into a convolution; all arrays are constants."""
    arrays = [None if a is None else a.value for a in (weight, bias, gamma, beta, mean, var)]
    return tuple(weight.constant(a) for a in on_numpy.fold_norm(*arrays, eps, axis))  # type: ignore[arg-type]


def merge_convs(weights, biases):
    """One convolution for several; all arrays are constants."""
    merged = on_numpy.merge_convs([weight.value for weight in weights], [bias.value for bias in biases])
    return tuple(map(weights[0].constant, merged))


def grouped_conv1d(x: Symbol, weight: Symbol, bias: Symbol, groups: int, act: str | None) -> Symbol:
    (B, T, _), (O, _, k) = x.shape, weight.shape  # noqa: E741
    window = {"kernel_shape": [k], "strides": [1], "pads": [k // 2, (k - 1) // 2], "group": groups}
    rows = x.transpose(0, 2, 1)
    return activate(rows.new("Conv", [rows, weight, bias], (B, O, T), **window), act).transpose(0, 2, 1)


def fold_weight_norm(length: Symbol, direction: Symbol) -> Symbol:
    """Both are constants."""
    return direction.constant(on_numpy.fold_weight_norm(length.value, direction.value))


def max_pool2d(x: Symbol, kernel: Pair, stride: Pair, padding: Pair) -> Symbol:
    size = [_windows(*of, 1) for of in zip(x.shape[1:3], kernel, stride, padding, strict=True)]
    window = {"kernel_shape": list(kernel), "strides": list(stride), "pads": [*padding, *padding]}
    return image(x.new("MaxPool", [planes(x)], (x.shape[0], x.shape[3], *size), **window))


def adaptive_avg_pool2d(x: Symbol, size: Pair) -> Symbol:
    for axis, count in zip((1, 2), size, strict=True):
        n, bands = x.shape[axis], []
        for i in range(count):
            band = slice(i * n // count, ((i + 1) * n + count - 1) // count)
            band = x[:, band] if axis == 1 else x[:, :, band]
            shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
            bands.append(band.new("ReduceMean", [band, np.array([axis])], shape, keepdims=1))
        x = cat(bands, axis)
    return x


def pixel_shuffle(x: Symbol, factor: int) -> Symbol:
    B, Y, X, D = x.shape
    shape = (B, D // factor**2, Y * factor, X * factor)
    return image(x.new("DepthToSpace", [planes(x)], shape, blocksize=factor, mode="CRD"))


def avg_pool2d(x: Symbol, size: Pair) -> Symbol:
    Y, X = ((n + k - 1) // k for n, k in zip(x.shape[1:3], size, strict=True))
    window = {"kernel_shape": list(size), "strides": list(size), "ceil_mode": 1}
    return image(x.new("AveragePool", [planes(x)], (x.shape[0], x.shape[3], Y, X), **window))


def sample(x: Symbol, points: Symbol, weights: Symbol) -> Symbol:
    (B, Y, X, H, K), (_, Q, _, P, _) = x.shape, points.shape
    images = x.transpose(0, 3, 4, 1, 2).reshape(B * H, K, Y, X)
    places = (points * 2.0 - 1.0).transpose(0, 2, 1, 3, 4).reshape(B * H, Q, P, 2)
    found = images.new("GridSample", [images, places], (B * H, K, Q, P), mode="linear", padding_mode="zeros")
    shared = found * weights.transpose(0, 2, 1, 3).reshape(B * H, 1, Q, P)
    summed = shared.new("ReduceSum", [shared, np.array([3])], (B * H, K, Q), keepdims=0)
    return summed.reshape(B, H, K, Q).transpose(0, 3, 1, 2)


def boxes_of_masks(masks: Symbol) -> Symbol:
    B, Q, *size = masks.shape
    firsts, lasts = [], []
    for axis, n in ((2, size[1]), (3, size[0])):
        some = masks.new("ReduceMax", [masks, np.array([axis])], (B, Q, n), keepdims=0) > 0.0
        at, count = arange(n, masks).to(FLOAT), (masks.constant(np.array(0)) + n).to(FLOAT)
        after, before = (
            of.new("ReduceMax", [of, np.array([2])], (B, Q, 1), keepdims=1)
            for of in (where(some, x, x * 0.0) for x in ((at + 1.0)[None, None], (count - at)[None, None]))
        )
        firsts.append(where(after > 0.0, (count - before) / count, after * 0.0))
        lasts.append(after / count)
    first, last = cat(firsts, 2), cat(lasts, 2)
    return cat([(first + last) * 0.5, last - first], 2)


def centres(grid: tuple[int, int], like: Symbol) -> Symbol:
    numbers = (((arange(n, like).to(FLOAT) + 0.5) / (like.constant(np.array(0)) + n).to(FLOAT)) for n in grid)
    (Y, X), (y, x) = grid, numbers
    return cat([cat([x[None]] * Y, 0).reshape(Y * X, 1), cat([y[:, None]] * X, 1).reshape(Y * X, 1)], 1)


def top_rows(scores: Symbol, count: int) -> Symbol:
    B, N, _ = scores.shape
    best = scores.new("ReduceMax", [scores, np.array([2])], (B, N), keepdims=0)
    names = best.graph.node("TopK", [best.name, best.graph.store(np.array([count], np.int64))], 2, axis=1)
    return Symbol(best.graph, names[1], (B, count), INT)


def take_rows(x: Symbol, index: Symbol) -> Symbol:
    return x.new("GatherND", [x, index[:, :, None]], (*index.shape, x.shape[2]), batch_dims=1)


def logit(x: Symbol, eps: float) -> Symbol:
    low, high = (x.new("Clip", [y, np.float32(eps), np.float32(1)], x.shape) for y in (x, 1.0 - x))
    ratio = low / high
    return ratio.new("Log", [ratio], ratio.shape)


def windows(x: Symbol, size: int, shift: int) -> Symbol:
    B, Y, X, C = x.shape
    down, across = ((n + size - 1) // size for n in (Y, X))
    if x.is_constant and all(is_fixed(n) for n in x.shape):
        return x.constant(on_numpy.windows(x.value, size, shift))
    added = x.graph.lengths((0, 0, 0, 0, 0, down * size - Y, across * size - X, 0))
    x = _roll(x.new("Pad", [x, added], (B, down * size, across * size, C)), shift)
    parts = x.reshape(B, down, size, across, size, C).transpose(0, 1, 3, 2, 4, 5)
    return parts.reshape(B * down * across, size * size, C)


def from_windows(x: Symbol, size: int, grid: tuple[int, int], shift: int) -> Symbol:
    (down, across), C = ((n + size - 1) // size for n in grid), x.shape[-1]
    B = x.shape[0] // (down * across)
    parts = x.reshape(B, down, across, size, size, C).transpose(0, 1, 3, 2, 4, 5)
    out = _roll(parts.reshape(B, down * size, across * size, C), -shift)
    return out[:, : grid[0], : grid[1]]


def _roll(x: Symbol, shift: int) -> Symbol:
    """The images moved up and left, or with a negative `shift` down and right."""
    if shift:
        x = cat([x[:, shift:], x[:, :shift]], 1)
        x = cat([x[:, :, shift:], x[:, :, :shift]], 2)
    return x


def interpolate(x: Symbol, size: tuple[int, int], mode: str) -> Symbol:
    B, Y, X, C = x.shape
    if is_same(Y, size[0]) and is_same(X, size[1]):
        return x
    if x.is_constant and all(is_fixed(n) for n in size):
        return x.constant(on_numpy.interpolate(x.value, size, mode))
    if mode not in _AS_RESIZE:
        for axis, count in zip((1, 2), size, strict=True):
            if not is_same(x.shape[axis], count):
                x = _INTERPOLATIONS[mode](x, axis, count)
        return x
    sizes, how = x.graph.lengths((B, C, *size)), {"mode": "linear", "coordinate_transformation_mode": _AS_RESIZE[mode]}
    return image(x.new("Resize", [planes(x), "", "", sizes], (B, C, *size), **how))


def _take(x: Symbol, at: Symbol, axis: int) -> Symbol:
    """x at the indices `at` (N,) along an axis."""
    return x.new("Gather", [x, at], (*x.shape[:axis], at.shape[0], *x.shape[axis + 1 :]), axis=axis)


def _cubic(x: Symbol, axis: int, count: int, corners: bool = False) -> Symbol:
    """Bicubic along an axis, by plain operators: ONNX Runtime's own cannot shrink images whose channels come first."""
    n, a = x.shape[axis], -0.75
    # The place of the i-th sample, as an exact integer and a fraction: i (n - 1) / (count - 1) with corners that stay,
    # else (2 i + 1) n / (2 count) - 1 / 2.
    before, after = (x.constant(np.array(0)) + m for m in (n, count))
    if corners:
        whole = after.new("Max", [after - 1, np.array(1)], ())
        at = arange(count, x) * (before - 1) + whole
    else:
        whole = after * 2
        at = (arange(count, x) * 2 + 1) * before + after
    first, t = at // whole - 1, (at % whole).to(FLOAT) / whole.to(FLOAT)
    total = None
    for k, d in ((-1, t + 1.0), (0, t), (1, 1.0 - t), (2, 2.0 - t)):
        near = ((d * (a + 2)) - (a + 3)) * d * d + 1.0
        far = ((d * a - 5 * a) * d + 8 * a) * d - 4 * a
        place = first + k
        place = place.new("Clip", [place, np.array(0), (x.constant(np.array(0)) + n) - 1], place.shape)
        part = _take(x, place, axis) * (near if k in (0, 1) else far)[(slice(None), *[None] * (x.ndim - 1 - axis))]
        total = part if total is None else total + part
    assert total is not None
    return total


def _nearest(x: Symbol, axis: int, count: int) -> Symbol:
    """Nearest along an axis, as torch multiplies: ONNX's own operator divides, which rounds differently.

    A standard graph computes in whole numbers, since not every runtime divides exactly: with 55 / 110 a bit too small,
    OpenVINO takes every other row from its neighbour.  torch's own rounding does so for 2 % of pairs of sizes, none of
    which are a power of two apart.
    """
    n = x.shape[axis]
    before, after = (x.constant(np.array(0)) + m for m in (n, count))
    if x.graph.standard:
        at = arange(count, x) * before // after
    else:
        at = arange(count, x).to(FLOAT) * (before / after)
        at = at.new("Floor", [at], at.shape).to(INT)
        at = at.new("Min", [at, before - 1], at.shape)
    return _take(x, at, axis)


def _antialias(x: Symbol, axis: int, count: int, cubic: bool = False) -> Symbol:
    """Antialiased along an axis, by a matrix of the weights of samples: ONNX's own operator has it from opset 18 on."""
    n = x.shape[axis]
    step = (x.constant(np.array(0)) + n).to(FLOAT) / (x.constant(np.array(0)) + count).to(FLOAT)
    places, samples = (arange(m, x).to(FLOAT) + 0.5 for m in (count, n))
    apart = (places * step)[:, None] - samples[None]
    apart = apart.new("Abs", [apart], apart.shape)
    d = apart / step.new("Max", [step, np.array(1, np.float32)], ())
    if cubic:
        near, far = (d * 1.5 - 2.5) * d * d + 1.0, ((d * -0.5 + 2.5) * d - 4.0) * d + 2.0
        near = where(d < 1.0, near, where(d < 2.0, far, d * 0.0))
    else:
        near = 1.0 - d
        near = near.new("Relu", [near], near.shape)
    weights = near / near.new("ReduceSum", [near, np.array([1])], (count, 1), keepdims=1)
    B, Y, X, C = x.shape
    if axis == 2:
        return x.new("MatMul", [weights, x], (B, Y, count, C))
    rows = x.reshape(B, Y, X * C)
    return x.new("MatMul", [weights, rows], (B, count, X * C)).reshape(B, count, X, C)


_AS_RESIZE = {"bilinear": "half_pixel", "bilinear corners": "align_corners"}
_INTERPOLATIONS = {
    "nearest": _nearest,
    "bicubic": _cubic,
    "bicubic corners": partial(_cubic, corners=True),
    "bilinear antialias": _antialias,
    "bicubic antialias": partial(_antialias, cubic=True),
}
