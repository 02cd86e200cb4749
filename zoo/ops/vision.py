"""The ops of images, whose backends are found as those of `zoo.ops`, which has all of these names too.

Images are (B, Y, X, C): channels come last.  A pair is (vertical, horizontal).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import InputError, UnsupportedError
from ..typing import Array
from .dispatch import backend
from .memory_budget import charge


def conv2d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] = 0,
    dilation: int | tuple[int, int] = 1,
    act: str | None = None,
    residual: Array | None = None,
    post: str | None = None,
    prepared: Array | None = None,
    groups: int = 1,
) -> Array:
    """post(act(convolution + bias) + residual), over images with zeros around them.

    x (B, Y, X, C), weight (O, C / groups, kY, kX), bias (O,), residual (B, Y', X', O) -> (B, Y', X', O), where
    Y' = (Y + 2 padding - dilation (kY - 1) - 1) // stride + 1.  A pair is (vertical, horizontal).  `act` and `post` are
    values of `ACTIVATIONS`; `post` is for networks that add before their activation, as ResNets do.  `prepared`
    is the result of `prepare_conv`; if `reads_prepared_weights`, the weight's elements are then not read.  Each of
    `groups` equal parts of the O outputs sees the channels of one part of the C.
    """
    stride, padding, dilation = pair(stride), pair(padding), pair(dilation)
    check_kernel(x, weight.shape[2:], padding, dilation)
    return backend(x).conv2d(x, weight, bias, stride, padding, dilation, act, residual, post, prepared, groups)


def prepare_conv(weight: Array, stride: int | tuple[int, int] = 1, dilation: int | tuple[int, int] = 1) -> Array | None:
    """The weight transformed to make `conv2d` faster; None if there is no faster form."""
    return backend(weight).prepare_conv(weight, pair(stride), pair(dilation))


def depthwise_conv2d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    act: str | None = None,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] | None = None,
    dilation: int | tuple[int, int] = 1,
) -> Array:
    """act(convolution of each channel by itself + bias), over images with zeros around them.

    x (B, Y, X, C), weight (C, 1, kY, kX), bias (C,) -> (B, Y', X', C), as `conv2d` has them.  Without a `padding`, for
    weights of odd sizes, Y' is Y / stride rounded up.  `act` is a value of `ACTIVATIONS`.
    """
    stride, dilation, (kY, kX) = pair(stride), pair(dilation), weight.shape[2:]
    padding = (kY // 2 * dilation[0], kX // 2 * dilation[1]) if padding is None else pair(padding)
    check_kernel(x, (kY, kX), padding, dilation)
    return backend(x).depthwise_conv2d(x, weight, bias, act, stride, padding, dilation)


def pad_images(x: Array, rows: tuple[int, int], columns: tuple[int, int]) -> Array:
    """Images with zeros around them: rows above and below, columns on the left and on the right.

    x (B, Y, X, C) -> (B, Y + sum(rows), X + sum(columns), C).
    """
    return backend(x).pad_images(x, rows, columns)


def conv_transpose2d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] = 0,
    act: str | None = None,
) -> Array:
    """act(transposed convolution + bias): every pixel adds to a window of the output.

    x (B, Y, X, C), weight (C, O, kY, kX), bias (O,) -> (B, Y', X', O), where Y' = (Y - 1) stride + kY - 2 padding.
    """
    return backend(x).conv_transpose2d(x, weight, bias, pair(stride), pair(padding), act)


def fold_norm(
    weight: Array, bias: Array | None, gamma: Array, beta: Array, mean: Array, var: Array, eps: float, axis: int = 0
) -> tuple[Array, Array]:
    """The weight and bias of a convolution with the batch norm after it (of fixed statistics) folded in.

    gamma, beta, mean, var (O,); axis: the axis of `weight` with its O outputs, or its only one -> (weight, bias).
    """
    return backend(weight).fold_norm(weight, bias, gamma, beta, mean, var, eps, axis)


def merge_convs(weights: Sequence[Array], biases: Sequence[Array]) -> tuple[Array, Array]:
    """The weight and bias of one convolution for several of the same image whose outputs are added.

    weights (O, c, kY, kX) of odd sizes, of which the smaller ones come into the middle of the largest, or (O,) for the
    image itself, times these, where it has O channels; biases (O,).
    """
    return backend(weights[0]).merge_convs(weights, biases)


def interpolate(x: Array, size: Sequence[int], mode: str = "bilinear") -> Array:
    """Resize images; pixels are areas, not points (torch's align_corners=False).

    x (B, Y, X, C) -> (B, *size, C).  mode: "bilinear", "bicubic" (a = -0.75), both without antialiasing;
    "bilinear antialias", "bicubic antialias" (a = -0.5), which average over all pixels that become one (torch's
    antialias=True); "bilinear corners", "bicubic corners" (a = -0.75), in which pixels are points, and those in the
    corners stay there (torch's align_corners=True); or "nearest" (torch's: pixel floor(i * before / after), in
    float32), which takes arrays of any type, such as masks.
    """
    modes = ("bilinear", "bilinear corners", "bilinear antialias", "nearest")
    modes = (*modes, "bicubic", "bicubic corners", "bicubic antialias")
    if mode not in modes:
        raise UnsupportedError(f"interpolation {mode!r} is not implemented, expected one of {', '.join(modes)}")
    charge((x.shape[0], *size, x.shape[-1]), "an image", 4)
    return backend(x).interpolate(x, tuple(size), mode)


def max_pool2d(
    x: Array, kernel: int | tuple[int, int], stride: int | tuple[int, int], padding: int | tuple[int, int] = 0
) -> Array:
    """The largest value in each window; windows may reach beyond the image by `padding`.

    x (B, Y, X, C) -> (B, Y', X', C), where Y' = (Y + 2 padding - kernel) // stride + 1.
    """
    return backend(x).max_pool2d(x, pair(kernel), pair(stride), pair(padding))


def avg_pool2d(x: Array, size: int | tuple[int, int]) -> Array:
    """The means of windows of `size` pixels, side by side; at the bottom and on the right, of what is left there.

    x (B, Y, X, C) -> (B, Y', X', C), where Y' is Y / size rounded up.
    """
    return backend(x).avg_pool2d(x, pair(size))


def adaptive_avg_pool2d(x: Array, size: int | tuple[int, int]) -> Array:
    """The means of size[0] x size[1] windows that cover the image, overlapping if necessary.

    x (B, Y, X, C) -> (B, *size, C).
    """
    return backend(x).adaptive_avg_pool2d(x, pair(size))


def pixel_shuffle(x: Array, factor: int) -> Array:
    """Rearrange features into pixels.  x (B, Y, X, C r r) -> (B, Y r, X r, C), with r = factor."""
    return backend(x).pixel_shuffle(x, factor)


def sample(x: Array, points: Array, weights: Array) -> Array:
    """Weighted sums of an image's values at points between its pixels, for each query and head at points of its own.

    x (B, Y, X, H, K), points (B, Q, H, P, 2) of (x, y) as parts of the image, weights (B, Q, H, P) -> (B, Q, H, K).
    Values are bilinear, with pixels as areas (torch's align_corners=False) and zeros around the image.
    """
    charge((*points.shape[:-1], 4, x.shape[-1]), "values at points", 4)
    return backend(x).sample(x, points, weights)


def boxes_of_masks(masks: Array) -> Array:
    """The box around the pixels of each mask that are above 0: centre x and y, width and height, as parts of the image.

    masks (B, Q, Y, X) -> (B, Q, 4); zeros for a mask without such a pixel.
    """
    return backend(masks).boxes_of_masks(masks)


def centres(grid: tuple[int, int], like: Array) -> Array:
    """(x, y) of the middle of each of a grid's Y X pixels, row by row, as parts of the image.  -> (Y X, 2)."""
    charge((grid[0], grid[1], 2), "points")
    return backend(like).centres(grid, like)


def windows(x: Array, size: int, shift: int = 0) -> Array:
    """Cut images into n windows each, row by row.  Before, zeros are added at the bottom and on the right, to multiples
    of `size`, and the images are moved up and left by `shift`: what leaves on one side comes in on the other.

    x (B, Y, X, C) -> (B n, size size, C).
    """
    charge((*x.shape[:1], x.shape[1] + size, x.shape[2] + size, x.shape[3]), "windows", 4)
    return backend(x).windows(x, size, shift)


def from_windows(x: Array, size: int, grid: tuple[int, int], shift: int = 0) -> Array:
    """The images that `windows` was given.  x (B n, size size, C), grid (Y, X) -> (B, Y, X, C)."""
    return backend(x).from_windows(x, size, grid, shift)


def check_kernel(x: Array, kernel: Sequence[int], padding: tuple[int, int], dilation: tuple[int, int]) -> None:
    """Refuse images (B, Y, X, C) that are smaller than a convolution's kernel."""
    for size, k, p, d in zip(x.shape[1:3], kernel, padding, dilation, strict=True):
        if size + 2 * p < d * (k - 1) + 1:
            raise InputError(f"an image of {x.shape[1]} x {x.shape[2]} is smaller than a kernel of {d * (k - 1) + 1}")


def pair(value: int | tuple[int, int]) -> tuple[int, int]:
    """(vertical, horizontal) of a size that may be one number for both."""
    return (value, value) if isinstance(value, int) else (value[0], value[1])
