"""3 x 3 convolutions with a quarter of the multiplications: Winograd's F(4 x 4, 3 x 3).

Lavin and Gray 2015, https://arxiv.org/abs/1509.09308: tiles of 6 x 6 pixels and the weights are each transformed to 36
values, multiplied there (a matrix product over the channels for each of the 36), and 4 x 4 output pixels come back.
The points that are mostly taken, 0, 1, -1, 2, -2, lose a digit to rounding; with these, the error is that of torch's
float32 convolutions but for a factor of two (measured against float64).
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from . import threads
from .activations import finish
from .images import blocks, padded
from .scratch import result, scratch

POINTS = (0.0, 0.5**0.5, -(0.5**0.5), 2**0.5, -(2**0.5))  # and infinity
TILES = 176  # of a block: what a step makes of them stays about in the L2 cache
WEIGHTS = 4096  # kernels that are transformed at a time
NARROW = 768  # columns up to which OpenBLAS multiplies by a transform without packing


def _at_points(n: int) -> np.ndarray:
    """The matrix that takes a polynomial's n coefficients to its values at the points, (6, n)."""
    return np.vstack([np.vander(POINTS, n, increasing=True), np.eye(n)[-1]])


# Of images as vectors, row by row: output = OUT @ ((WEIGHT @ weight) * (IN @ tile)).
_IN, _WEIGHT, _OUT = (np.kron(m, m) for m in (np.linalg.inv(_at_points(6)).T, _at_points(3), _at_points(4).T))


def transform(weight: np.ndarray) -> np.ndarray:
    """weight (D, C, 3, 3) -> (36, C, D)."""
    D, C = weight.shape[:2]
    columns = weight.transpose(2, 3, 1, 0).reshape(9, C * D)
    out = np.empty((36, C * D), weight.dtype)

    def block(i: int) -> None:
        own = slice(i * WEIGHTS, (i + 1) * WEIGHTS)
        out[:, own] = _WEIGHT @ columns[:, own].astype(np.float64)

    threads.run(block, -(-C * D // WEIGHTS), cost=100.0 * C * D)
    return out.reshape(36, C, D)


def conv3x3(
    x: np.ndarray,
    U: np.ndarray,
    bias: np.ndarray | None,
    padding: tuple[int, int],
    act: str | None,
    residual: np.ndarray | None,
    post: str | None,
) -> np.ndarray:
    """x (B, Y, X, C), U as `transform` made it, residual (B, Y', X', D) or None -> (B, Y', X', D), row-major."""
    (B, Y, X, C), D, dtype = x.shape, U.shape[2], x.dtype
    Y, X = Y + 2 * padding[0] - 2, X + 2 * padding[1] - 2
    tX = -(-X // 4)
    to, back = _IN.astype(dtype), _OUT.astype(dtype)
    parts, parts_back = _parts(tX * C), _parts(tX * D)
    out = result((B, Y, X, D), dtype)
    work = blocks(B, -(-Y // 4), tX, TILES)

    def block(i: int) -> None:
        own, rows = work[i]
        pixels = slice(4 * rows.start, min(4 * rows.stop, Y))
        first, left = pixels.start - padding[0], -padding[1]
        images = padded(x[own], (first, first + 4 * (rows.stop - rows.start) + 2), (left, left + 4 * tX + 2))
        G, R = len(images), rows.stop - rows.start
        b, y, z, c = images.strides
        # Pixels by their column in a tile: the 36 of all tiles in a row are then rows of a matrix.
        tiles = scratch(3, (G, 4 * R + 2, 6, tX, C), dtype)
        np.copyto(tiles, as_strided(images, tiles.shape, (b, y, z, 4 * z, c)))
        b, y, _, _, c = tiles.strides
        width = tX * C // parts
        shape, strides = (G, R, parts, 36, width), (b, 4 * y, width * c, y // 6, c)
        V = scratch(4, (36, G * R * tX, C), dtype)
        np.matmul(to, as_strided(tiles, shape, strides), out=V.reshape(36, G, R, parts, width).transpose(1, 2, 3, 0, 4))
        M = scratch(5, (36, G * R * tX, D), dtype)
        np.matmul(V, U, out=M)
        tiles = scratch(3, (G, 4 * R, 4, tX, D), dtype)
        np.matmul(
            back,
            M.reshape(36, G * R, parts_back, -1).transpose(1, 2, 0, 3),
            out=tiles.reshape(G * R, 16, parts_back, -1).transpose(0, 2, 1, 3),
        )
        for j in range(4):
            pixel = out[own, pixels, j::4]
            np.copyto(pixel, tiles[:, : pixel.shape[1], j, : pixel.shape[2]])
        y = out[own, pixels].reshape(-1, D)
        R = None if residual is None else residual[own, pixels].reshape(-1, D)
        finish(y, None if bias is None else bias[None], act, R)
        finish(y, None, post, None)

    threads.run(block, len(work), cost=out.size * C * 9 / 160)
    return out


def _parts(columns: int) -> int:
    """How many equal parts of at most NARROW columns, or thereabouts, there are."""
    return next((n for n in range(-(-columns // NARROW), columns // 128 + 1) if columns % n == 0), 1)
