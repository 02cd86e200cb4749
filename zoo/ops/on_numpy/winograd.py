"""3 x 3 convolutions with a quarter of the multiplications: Winograd's F(4 x 4, 3 x 3); or 4 / 9, F(2 x 2, 3 x 3).

Lavin and Gray 2015, https://arxiv.org/abs/1509.09308: tiles of 6 x 6 pixels and the weights are each transformed to 36
values, multiplied there (a matrix product over the channels for each of the 36), and 4 x 4 output pixels come back.
The usual points 0, 1, -1, 2, -2 lose a digit to rounding; with the points here, the error is at most twice that of
torch's float32 convolutions (measured against float64).

The widest weights use tiles of 4 x 4, 16 values and 2 x 2 pixels: 36 values would take four times the weight's memory,
and layers with such weights have too few pixels for 36 products to be faster than 16.

Shapes: m height and width of a tile's output, n = m + 2 of the tile.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.stride_tricks import as_strided

from . import threads
from .activations import finish
from .images import blocks, pad_block
from .scratch import result, scratch

# The interpolation points by m, besides infinity.
POINTS = {4: (0.0, 0.5**0.5, -(0.5**0.5), 2**0.5, -(2**0.5)), 2: (0.0, 1.0, -1.0)}
MIN_KERNELS_FOR_M2 = 384 * 384  # kernels of a weight from which m is 2
TILES = 176  # tiles of a block: their arrays about fit into the L2 cache
WEIGHTS = 4096  # kernels that are transformed at a time
MAX_UNPACKED_COLUMNS = 768  # columns up to which OpenBLAS multiplies by a transform without packing


def _at_points(m: int, k: int) -> np.ndarray:
    """The matrix (n, k) that maps a polynomial's k coefficients to its values at the points."""
    return np.vstack([np.vander(POINTS[m], k, increasing=True), np.eye(k)[-1]])


# With tiles as vectors, row by row: output = OUT @ ((WEIGHT @ weight) * (IN @ tile)).
INPUT_TRANSFORM, _WEIGHT_TRANSFORM, OUTPUT_TRANSFORM = (
    {m: np.kron(a, a) for m, a in of.items()}
    for of in (
        {m: np.linalg.inv(_at_points(m, m + 2)).T for m in POINTS},
        {m: _at_points(m, 3) for m in POINTS},
        {m: _at_points(m, m).T for m in POINTS},
    )
)


def tile(kernels: int) -> int:
    """The size m of a tile, by the number of a weight's kernels."""
    return 2 if kernels >= MIN_KERNELS_FOR_M2 else 4


def transform(weight: np.ndarray) -> np.ndarray:
    """weight (D, C, 3, 3) -> (n n, C, D)."""
    D, C = weight.shape[:2]
    columns = weight.transpose(2, 3, 1, 0).reshape(9, C * D)
    to = _WEIGHT_TRANSFORM[tile(C * D)]
    out = np.empty((len(to), C * D), weight.dtype)

    def block(i: int) -> None:
        own = slice(i * WEIGHTS, (i + 1) * WEIGHTS)
        out[:, own] = to @ columns[:, own].astype(np.float64)

    threads.run(block, -(-C * D // WEIGHTS), cost=100.0 * C * D)
    return out.reshape(len(to), C, D)


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
    n = math.isqrt(len(U))
    m = n - 2
    Y, X = Y + 2 * padding[0] - 2, X + 2 * padding[1] - 2
    tX = -(-X // m)
    to, back = INPUT_TRANSFORM[m].astype(dtype), OUTPUT_TRANSFORM[m].astype(dtype)
    parts, parts_back = _parts(tX * C), _parts(tX * D)
    out = result((B, Y, X, D), dtype)
    work = blocks(B, -(-Y // m), tX, TILES * 36 // len(U))

    def block(i: int) -> None:
        own, rows = work[i]
        pixels = slice(m * rows.start, min(m * rows.stop, Y))
        first, left = pixels.start - padding[0], -padding[1]
        images = pad_block(x[own], (first, first + m * (rows.stop - rows.start) + 2), (left, left + m * tX + 2))
        G, R = len(images), rows.stop - rows.start
        b, y, z, c = images.strides
        # Pixels by their column in a tile: the n n values of all tiles in a row become rows of a matrix.
        tiles = scratch("tiles", (G, m * R + 2, n, tX, C), dtype)
        np.copyto(tiles, as_strided(images, tiles.shape, (b, y, z, m * z, c)))
        b, y, _, _, c = tiles.strides
        width = tX * C // parts
        shape, strides = (G, R, parts, n * n, width), (b, m * y, width * c, y // n, c)
        V = scratch("columns", (n * n, G * R * tX, C), dtype)
        by_tile = V.reshape(n * n, G, R, parts, width).transpose(1, 2, 3, 0, 4)
        np.matmul(to, as_strided(tiles, shape, strides), out=by_tile)
        M = scratch("product", (n * n, G * R * tX, D), dtype)
        np.matmul(V, U, out=M)
        tiles = scratch("tiles", (G, m * R, m, tX, D), dtype)
        np.matmul(
            back,
            M.reshape(n * n, G * R, parts_back, -1).transpose(1, 2, 0, 3),
            out=tiles.reshape(G * R, m * m, parts_back, -1).transpose(0, 2, 1, 3),
        )
        for j in range(m):
            pixel = out[own, pixels, j::m]
            np.copyto(pixel, tiles[:, : pixel.shape[1], j, : pixel.shape[2]])
        y = out[own, pixels].reshape(-1, D)
        R = None if residual is None else residual[own, pixels].reshape(-1, D)
        finish(y, None if bias is None else bias[None], act, R)
        finish(y, None, post, None)

    threads.run(block, len(work), cost=out.size * C * 9 / 160)
    return out


def _parts(columns: int) -> int:
    """The number of equal parts of about NARROW columns at most."""
    return next((n for n in range(-(-columns // MAX_UNPACKED_COLUMNS), columns // 128 + 1) if columns % n == 0), 1)
