"""Values of images at points, boxes of masks, and the rows with the largest scores."""

from __future__ import annotations

import numpy as np

from . import threads
from .scratch import result, scratch

PIECE = 1 << 16  # elements of a block


def sample(x: np.ndarray, points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    (B, Y, X, H, K), (_, Q, _, P, _) = x.shape, points.shape
    rows = np.ascontiguousarray(x).reshape(B, Y * X * H, K)
    with np.errstate(invalid="ignore"):
        at = points * np.array([X, Y], points.dtype) - np.array(0.5, points.dtype)
        # Whatever is further out sees zeros alone, as this does; and no integer is too large.
        at = np.clip(np.where(np.isfinite(at), at, -2), -2, max(X, Y) + 1)
    low = np.floor(at)
    part, low = at - low, low.astype(np.intp)
    index = np.empty((B, Q, H, 4, P), np.intp)
    share = np.empty((B, Q, H, 4, P), x.dtype)
    for corner, (down, right) in enumerate(((0, 0), (0, 1), (1, 0), (1, 1))):
        column, row = low[..., 0] + right, low[..., 1] + down
        inside = (column >= 0) & (column < X) & (row >= 0) & (row < Y)
        across, along = (part[..., i] if far else 1 - part[..., i] for i, far in ((0, right), (1, down)))
        np.multiply(across * along * inside, weights, out=share[..., corner, :])
        index[..., corner, :] = np.where(inside, (row * X + column) * H + np.arange(H)[:, None], 0)
    out = result((B, Q, H, K), x.dtype)
    step = max(1, PIECE // (4 * P * H * K))
    work = [(b, slice(q, q + step)) for b in range(B) for q in range(0, Q, step)]

    def block(i: int) -> None:
        b, own = work[i]
        of = index[b, own]
        found = scratch("block", (*of.shape, K), x.dtype)
        np.take(rows[b], of, axis=0, out=found, mode="clip")
        n = len(of) * H
        np.matmul(share[b, own].reshape(n, 1, 4 * P), found.reshape(n, 4 * P, K), out=out[b, own].reshape(n, 1, K))

    threads.run(block, len(work), cost=float(index.size * K))
    return out


def boxes_of_masks(masks: np.ndarray) -> np.ndarray:
    x, y = (np.any(masks > 0, axis) for axis in (2, 3))
    first, last = (np.stack([bound(of) for of in (x, y)], -1) for bound in (_start, _end))
    return np.concatenate([(first + last) / 2, last - first], -1).astype(masks.dtype)


def _start(of: np.ndarray) -> np.ndarray:
    """of (B, Q, N) bool -> (B, Q): where the true ones begin, as a part of N; 0 without any."""
    return of.argmax(-1) / of.shape[-1]


def _end(of: np.ndarray) -> np.ndarray:
    """of (B, Q, N) bool -> (B, Q): where the true ones end, as a part of N; 0 without any."""
    return of.any(-1) * (1 - _start(of[..., ::-1]))


def centres(grid: tuple[int, int], like: np.ndarray) -> np.ndarray:
    y, x = ((np.arange(n, dtype=like.dtype) + like.dtype.type(0.5)) / like.dtype.type(n) for n in grid)
    return np.stack([np.tile(x, grid[0]), np.repeat(y, grid[1])], 1)


def top_rows(scores: np.ndarray, count: int) -> np.ndarray:
    return np.argsort(-scores.max(-1), axis=1, kind="stable")[:, :count]


def take_rows(x: np.ndarray, index: np.ndarray) -> np.ndarray:
    return np.take_along_axis(x, index[:, :, None], 1)


def true_indices(mask: np.ndarray, count: int | None) -> tuple[np.ndarray, np.ndarray]:
    own = mask.sum(1)
    most = max(int(own.max()), 1) if count is None else count
    return np.argsort(~mask, axis=1, kind="stable")[:, :most], np.arange(most) < own[:, None]


def logit(x: np.ndarray, eps: float) -> np.ndarray:
    x = np.clip(x, 0, 1)
    return np.log(np.maximum(x, eps) / np.maximum(1 - x, eps))
