"""act(x @ weight.T + bias) + residual, directly on the weight in its file."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...quant import QuantRows, QuantTensor
from . import blas, quantised, threads
from .activations import finish
from .byte_copies import ByteRows, byte_copies
from .layout import MAX_UNPACKED_MNK, ROW_MAJOR_TOKENS, columns, logical, multipliable
from .scratch import result, scratch

ROW_MAJOR_OUTPUTS = 16384  # outputs from which rows are written: logits of a vocabulary, as their readers expect
MAX_UNSPLIT_K, SPLIT_K = 1024, 384  # features summed at once, and the size of partial sums if there are more
MAX_CACHED_ELEMENTS = 1 << 21  # elements of a weight that caches hold: reading a larger one from memory takes the time
# Elements of a weight from which a single row is left to BLAS's own threads.  They read memory twice as fast as ours,
# which sleep between products; but BLAS's keep spinning for a while after the last.
ONE_ROW = 1 << 20
SMALL_OUT = 1200  # M * N of a product on a transposed operand, up to which OpenBLAS does not pack


def linear(
    x: np.ndarray,
    weight: np.ndarray | QuantTensor,
    bias: np.ndarray | None,
    act: str | None,
    residual: np.ndarray | None,
) -> np.ndarray:
    weights = quantised.parts_of(weight)
    lead, D, dtype = x.shape[:-1], x.shape[-1], x.dtype
    N = math.prod(lead)
    if N == 1:
        weights = [tile for w in weights for tile in (byte_copies(w) if isinstance(w, QuantRows) else (w,))]
    heights = tuple(len(w) for w in weights)
    E = sum(heights)
    X = columns(x)
    R = None if residual is None else columns(np.broadcast_to(residual, (*lead, E)))
    rowwise = N <= ROW_MAJOR_TOKENS or E >= ROW_MAJOR_OUTPUTS
    tile = None if rowwise or dtype != np.float32 or not blas.needs_no_packing() else _tile(N, D)
    copied = tile is not None and not _lies_well(X, tile)
    plain = [w for w in weights if isinstance(w, np.ndarray)]
    narrow = len(plain) < len(weights)
    if rowwise:
        Y, R = result((N, E), dtype), None if R is None else R.T
        X = X.T if N > ROW_MAJOR_TOKENS else np.ascontiguousarray(X.T)
    else:
        Y = result((E, tile.columns if tile else N), dtype)
        if tile and narrow and copied:
            X, copied = _pad_columns(X, tile.columns), False  # once, not for every tile of a weight
    if N == 1 and D * E >= ONE_ROW and not narrow and threads.as_many_in_blas():
        at = 0
        for W in plain:
            _row_product(X, W, Y[:, at : at + len(W)])
            at += len(W)
        finish(Y, None if bias is None else bias[None], act, R)
        return Y.reshape(*lead, E)
    cost = D * E * max(N / 40, 0.2 if narrow else 0.25 if D * E > MAX_CACHED_ELEMENTS else 0)
    shares = _shares(heights, threads.count(cost), N, tile is not None, copied)
    operands = quantised.operands(X, weights, rowwise) if narrow else []

    def share(i: int) -> None:
        if tile and not narrow:
            _tiled_product(
                [(plain[which][a:b], Y[at : at + b - a]) for which, a, b, at, _ in shares[i]], X, tile, copied
            )
        for which, a, b, at, tokens in shares[i]:
            own = slice(at, at + b - a)
            if rowwise:
                y = Y[:, own]
                if narrow:
                    _packed_product(weights[which][a:b], operands[which], y, True, None)
                else:
                    _row_product(X, plain[which][a:b], y)
                finish(y, None if bias is None else bias[None, own], act, None if R is None else R[:, own])
            else:
                y = Y[own, tokens]
                if narrow:
                    _packed_product(weights[which][a:b], [x[:, tokens] for x in operands[which]], y, False, tile)
                elif not tile:
                    W = plain[which][a:b]
                    np.matmul(W if multipliable(W) else np.ascontiguousarray(W), X[:, tokens], out=y)
                finish(y, None if bias is None else bias[own, None], act, None if R is None else R[own, tokens])

    threads.run(share, len(shares), cost)
    return Y.reshape(*lead, E) if rowwise else logical(Y[:, :N], lead)


def _packed_product(
    W: np.ndarray | QuantRows | ByteRows, xs: list[np.ndarray], y: np.ndarray, rowwise: bool, tile: Tile | None
) -> None:
    """The product of a quantised matrix, dequantised some rows at a time; xs: from `quantised.operands`.

    y (N, E), xs (N, D or D / 2) if rowwise, else y (E, N), xs (D or D / 2, N).
    """
    if isinstance(W, ByteRows):
        W.multiply(xs[0][0], y[0])
        return
    if rowwise and len(y) == 1 and isinstance(W, QuantRows):
        if len(xs) == 2:
            quantised.words_product(W, xs, y[0])
            return
        if W.kind.affine:
            quantised.groups_product(W, xs[0][0], y[0])
            return
    width = W.shape[1] // len(xs)
    # With more tokens the cache of a tile matters less, and the cost of each tile more.
    room = quantised.TILE * (1 if rowwise and len(y) <= ROW_MAJOR_TOKENS else 4 if tile else 8)
    step = max(16, room // max(1, width) // 16 * 16)
    for a in range(0, len(W), step):
        rows = slice(a, a + step)
        out = y[:, rows] if rowwise else y[rows]
        for k, (part, x) in enumerate(zip(quantised.widen_rows(W[rows], len(xs)), xs, strict=True)):
            z = out if k == 0 else scratch("rest", out.shape, y.dtype)
            if rowwise:
                _row_product(x, part, z)
            elif tile:
                _tiled_product([(part, z)], x, tile, False)
            else:
                np.matmul(part, x, out=z)
            if k:
                np.add(out, z, out=out)
        quantised.scale(W[rows], out.T if rowwise else out)


class Tile(NamedTuple):
    """The tiles of a product: tokens padded to `columns`, `width` of them at a time, with `rows` of the weight.

    Partial sums are over `depth` features, for accuracy.
    """

    columns: int
    width: int
    rows: int
    depth: int


@lru_cache(256)
def _tile(N: int, D: int) -> Tile | None:
    """Tiles for BLAS kernels that do not pack the weight (`blas.needs_no_packing`).

    They take up to a quarter less time for few tokens, and need multiples of 32 columns that begin at cache lines;
    None if padding would cost what they gain.
    """
    columns = -(-N // 32) * 32
    if N > 256 or columns * (0.75 if N < 64 else 0.9) > N:
        return None
    width, depth = min(128, columns), D if D <= MAX_UNSPLIT_K else SPLIT_K
    return Tile(columns, width, min(16, MAX_UNPACKED_MNK // (width * depth) // 4 * 4), depth)


def _lies_well(X: np.ndarray, tile: Tile) -> bool:
    row, column = X.strides
    if tile.columns != X.shape[1] or X.itemsize != column or row % 64:
        return False
    return X.__array_interface__["data"][0] % 64 == 0


def _pad_columns(X: np.ndarray, width: int) -> np.ndarray:
    out = scratch("columns", (len(X), width), X.dtype)
    np.copyto(out[:, : X.shape[1]], X)
    out[:, X.shape[1] :] = 0
    return out


def _tiled_product(parts: list[tuple[np.ndarray, np.ndarray]], X: np.ndarray, tile: Tile, copied: bool) -> None:
    """y = W @ X for each (W, y), as stacks of products of `tile.rows` rows each."""
    for c in range(0, tile.columns, tile.width):
        width = min(tile.width, tile.columns - c)
        for d in range(0, len(X), tile.depth):
            x = X[d : d + tile.depth, c : c + width]
            if copied:
                x = _pad_columns(x, width)
            for W, y in parts:
                y = y[:, c : c + width]
                out = y if d == 0 else scratch("product", y.shape, y.dtype)
                _stacked_product(W, d, x, out, tile.rows)
                if d:
                    np.add(y, out, out=y)


def _stacked_product(W: np.ndarray, d: int, x: np.ndarray, y: np.ndarray, rows: int) -> None:
    """y = W[:, d : d + len(x)] @ x."""
    n = len(W) // rows if W.flags.c_contiguous else 0
    if n:
        whole = n * rows
        stack = W[:whole].reshape(n, rows, W.shape[1])[..., d : d + len(x)]
        np.matmul(stack, x, out=y[:whole].reshape(n, rows, x.shape[1]))
        W, y = W[whole:], y[whole:]
    if len(W):
        W = W[:, d : d + len(x)]
        np.matmul(W if multipliable(W) else np.ascontiguousarray(W), x, out=y)


def _row_product(x: np.ndarray, W: np.ndarray, y: np.ndarray) -> None:
    """y = x @ W.T, row-major, as a stack of products that are so small that BLAS does not pack the weights."""
    (N, D), E = x.shape, len(W)
    # AVX2 kernels take four rows at a time, and the rest one by one.
    if 1 < N < 8 and N % 4 and not blas.needs_no_packing():
        rows, out = scratch("rows", (-(-N // 4) * 4, D), x.dtype), scratch("rows out", (-(-N // 4) * 4, E), y.dtype)
        rows[:N], rows[N:] = x, 0
        _row_product(rows, W, out)
        np.copyto(y, out[:N])
        return
    b = min(MAX_UNPACKED_MNK // max(1, N * D), SMALL_OUT // max(1, N)) // 8 * 8
    n = E // b if 1 < N <= ROW_MAJOR_TOKENS and b and W.flags.c_contiguous else 0
    if n > 1:
        whole = n * b
        stack = y[:, :whole].reshape(N, n, b).transpose(1, 0, 2)
        np.matmul(x, W[:whole].reshape(n, b, D).swapaxes(1, 2), out=stack)
        W, y = W[whole:], y[:, whole:]
    if len(W):
        np.matmul(x, (W if multipliable(W) else np.ascontiguousarray(W)).T, out=y)


Piece = tuple[int, int, int, int, slice]  # matrix, first row, end row, first output, tokens


@lru_cache(256)
def _shares(heights: tuple[int, ...], threads: int, N: int, tiled: bool, copied: bool) -> list[list[Piece]]:
    """Split a product into shares of the outputs, or of the tokens if there are more of them.

    Two shares a thread balance the load; but large products are faster whole, and each share makes its own copy of
    the input if it needs one.
    """
    E = sum(heights)
    if threads > 1 and not tiled and ROW_MAJOR_TOKENS < N > 1.25 * E and E < ROW_MAJOR_OUTPUTS:
        size = -(-N // (threads * 16)) * 16
        starts = np.cumsum((0, *heights)).tolist()
        return [
            [(which, 0, height, starts[which], slice(c, c + size)) for which, height in enumerate(heights)]
            for c in range(0, N, size)
        ]
    count = 1 if threads == 1 else threads if copied or N >= 384 else 2 * threads
    size = max(64, -(-E // (count * 32)) * 32)
    shares: list[list[Piece]] = [[]]
    room, at = size, 0
    for which, height in enumerate(heights):
        a = 0
        while a < height:
            b = min(height, a + room)
            shares[-1].append((which, a, b, at, slice(None)))
            at, room, a = at + b - a, room - (b - a), b
            if not room:
                shares.append([])
                room = size
    return [share for share in shares if share]
