"""The positions of DETR's features (https://arxiv.org/abs/2005.12872).

Shapes: B batch, h and w height and width of features, N = h w, D d_model.
"""

from __future__ import annotations

import math
from typing import Protocol

from ... import ops
from ...errors import InputError
from ...nn import CacheLast, Module
from ...typing import Array
from ...weights import Weights

MAX_SIDE = 50  # features along a side for which there are learned positions


class Width(Protocol):
    """The field of a config that positions read."""

    @property
    def d_model(self) -> int: ...


class Positions(Module):
    """The positions of features; those of a whole grid are kept for the next image of its size."""

    def __init__(self, w: Weights, cfg: Width):
        self.size = cfg.d_model // 2
        self._whole = CacheLast()

    def __call__(self, grid: tuple[int, int], mask: Array | None, like: Array) -> Array:
        """mask (B, h, w), false where there is padding -> (1 or B, N, D)."""
        if mask is not None:
            return self._flat_table(mask, like)
        return self._whole(
            grid, lambda: self._flat_table((ops.arange(grid[0] * grid[1], like) >= 0).reshape(1, *grid), like)
        )

    def _flat_table(self, mask: Array, like: Array) -> Array:
        table = self.table(mask, like)
        return table.reshape(table.shape[0], -1, 2 * self.size)

    def table(self, mask: Array, like: Array) -> Array:
        """mask (B, h, w) -> (1 or B, h, w, D)."""
        raise NotImplementedError


class SinePositions(Positions):
    """Sines and cosines of a feature's y and x, as parts of the image without its padding."""

    def table(self, mask: Array, like: Array) -> Array:
        y, x = ops.cumsum(mask, 1), ops.cumsum(mask, 2)
        y = y / (y[:, -1:] + 1e-6) * (2 * math.pi)
        x = x / (x[:, :, -1:] + 1e-6) * (2 * math.pi)
        return ops.cat([ops.sinusoids(y, self.size, like), ops.sinusoids(x, self.size, like)], 3)


class LearnedPositions(Positions):
    """A vector for each column and one for each row, wherever the padding is."""

    def __init__(self, w: Weights, cfg: Width):
        super().__init__(w, cfg)
        self.rows = w.get("row_embeddings.weight", (MAX_SIDE, self.size))
        self.columns = w.get("column_embeddings.weight", (MAX_SIDE, self.size))

    def table(self, mask: Array, like: Array) -> Array:
        _, h, w = mask.shape
        if h > MAX_SIDE or w > MAX_SIDE:
            raise InputError(f"an image of {h} x {w} features is too large: positions end at {MAX_SIDE} x {MAX_SIDE}")
        columns, rows = self.columns[None, None, :w], self.rows[None, :h, None]
        return ops.cat([ops.cat([columns] * h, 1), ops.cat([rows] * w, 2)], 3)


POSITIONS = {"sine": SinePositions, "learned": LearnedPositions}
