"""The encoder of Deformable DETR (Zhu et al. 2020, https://arxiv.org/abs/2010.04159): features of several sizes, each
of which attends to a few points of each size, near its place.

Shapes: B batch, h and w of one level (size of features), N = the sum of h w, G levels, D d_model, H heads, P points of
a head in each level.  Places are x and y, and boxes centre x and y, width and height, as parts of the image without its
padding.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

from ... import ops
from ...nn import CacheLast, Conv2d, GroupNorm, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from ..detr.model import EPS
from ..detr.positions import LearnedPositions, Positions, SinePositions
from .config import GROUPS, DeformableDetrConfig

Grid = tuple[int, int]  # h, w


class Levels(NamedTuple):
    """What features of several sizes have in common; None: no image has padding."""

    grids: tuple[Grid, ...]
    mask: Array | None  # (B, N): false for a feature of padding
    parts: Array | None  # (B, G, 2): how much of a level's width and height is no padding


class HalfPixelSines(SinePositions):
    """Sines and cosines of the middle of each feature."""

    def table(self, mask: Array, like: Array) -> Array:
        y, x = ops.cumsum(mask, 1), ops.cumsum(mask, 2)
        y = (y - 0.5) / (y[:, -1:] + 1e-6) * (2 * math.pi)
        x = (x - 0.5) / (x[:, :, -1:] + 1e-6) * (2 * math.pi)
        return ops.cat([ops.sinusoids(y, self.size, like), ops.sinusoids(x, self.size, like)], 3)


POSITIONS = {"sine": HalfPixelSines, "learned": LearnedPositions}


class PointConfig(Protocol):
    """The fields of a config that attention to points reads."""

    @property
    def d_model(self) -> int: ...

    @property
    def num_feature_levels(self) -> int: ...

    @property
    def dropout(self) -> float: ...


class Project(Module):
    """Features of the backbone, or of the level before, to one level."""

    def __init__(self, w: Weights, cfg: PointConfig, d_in: int, kernel: int):
        stride = 1 if kernel == 1 else 2
        self.conv = Conv2d(w / 0, d_in, cfg.d_model, kernel, stride, kernel // 2)
        self.norm = GroupNorm(w / 1, cfg.d_model, GROUPS, EPS)

    def __call__(self, x: Array) -> Array:
        """x (B, y, x, d_in) -> (B, h, w, D)."""
        return self.norm(self.conv(x))


class PointAttention(Module):
    """Each head of a query reads a few points of each level, whose distances from a place are in features, or from the
    centre of a box in parts of it.
    """

    def __init__(self, w: Weights, cfg: PointConfig, heads: int, points: int):
        D, self.heads, self.points = cfg.d_model, heads, points
        count = heads * cfg.num_feature_levels * points
        self.offsets, self.shares = (
            Linear(w / "sampling_offsets", D, 2 * count),
            Linear(w / "attention_weights", D, count),
        )
        self.value, self.out = Linear(w / "value_proj", D, D), Linear(w / "output_proj", D, D, dropout=cfg.dropout)

    def __call__(self, x: Array, at: Array, memory: Array, levels: Levels) -> Array:
        """x (B, Q, D), at (1 or B, Q, 2 or 4) places or boxes, memory (B, N, D) -> (B, Q, D)."""
        (B, Q, D), H, P, start, found = x.shape, self.heads, self.points, 0, []
        values = self.value(memory)
        if levels.mask is not None:
            values = ops.where(levels.mask[:, :, None], values, ops.zeros((1, 1, 1), values))
        offsets = self.offsets(x).reshape(B, Q, H, -1, 2)
        shares = ops.softmax(self.shares(x).reshape(B, Q, H, -1))
        for i, (h, w) in enumerate(levels.grids):
            part = 1 if levels.parts is None else levels.parts[:, i : i + 1, None, None]
            own, image = slice(i * P, (i + 1) * P), values[:, start : start + h * w].reshape(B, h, w, H, D // H)
            step = offsets[:, :, :, own]
            if at.shape[2] == 4:
                step = step * (at[:, :, None, None, 2:] * part * (0.5 / P))
            else:
                step = ops.cat([step[..., :1] / w, step[..., 1:] / h], 4)
            found.append(ops.sample(image, at[:, :, None, None, :2] * part + step, shares[:, :, :, own]))
            start += h * w
        return self.out(sum(found[1:], found[0]).reshape(B, Q, D))


class EncoderContext(NamedTuple):
    """The arguments of every layer of the encoder besides its input."""

    positions: Array  # (1 or B, N, D)
    places: Array  # (1 or B, N, 2) of the features
    levels: Levels


class EncoderLayer(Module):
    def __init__(self, w: Weights, cfg: DeformableDetrConfig):
        D, F = cfg.d_model, cfg.encoder_ffn_dim
        self.attention = PointAttention(w / "self_attn", cfg, cfg.encoder_attention_heads, cfg.encoder_n_points)
        self.norm = LayerNorm(w / "self_attn_layer_norm", D, EPS)
        self.up = Linear(w / "fc1", D, F, act=cfg.activation_function, dropout=cfg.activation_dropout)
        self.down = Linear(w / "fc2", F, D, dropout=cfg.dropout)
        self.final_norm = LayerNorm(w / "final_layer_norm", D, EPS)

    def __call__(self, x: Array, c: EncoderContext) -> Array:
        """x (B, N, D) -> (B, N, D)."""
        x = self.norm(self.attention(x + c.positions, c.places, x, c.levels), residual=x)
        return self.final_norm(self.down(self.up(x)), residual=x)


def resize_mask(pixel_mask: Array, grid: Grid) -> Array:
    """pixel_mask (B, Y, X) -> (B, h, w), false for features of padding."""
    return ops.interpolate(pixel_mask[:, :, :, None], grid, "nearest")[:, :, :, 0]


def part_of(mask: Array, like: Array) -> Array:
    """mask (B, h, w) -> (B, 1, 2): how much of the width of the first row, and of the height, is no padding."""
    _, h, w = mask.shape
    x, y = ops.cumsum(mask[:, 0], 1)[:, -1:], ops.cumsum(mask[:, :, 0], 1)[:, -1:]
    none = ops.zeros((1, 1), like)
    return ops.cat([(x + none) / w, (y + none) / h], 1)[:, None]


def place_levels(
    grids: tuple[Grid, ...], pixel_mask: Array | None, tables: Positions, level_embed: Array, keep: CacheLast
) -> tuple[Levels, Array, Array]:
    """-> what the levels have in common, positions (1 or B, N, D) and places (1 or B, N, 2) of their features.

    level_embed (G, D) is a part of the positions.  keep: for the positions of images without padding.
    """
    masks = None if pixel_mask is None else [resize_mask(pixel_mask, grid) for grid in grids]
    if masks is None or all(ops.all_true(mask) for mask in masks):
        whole = Levels(grids, None, None)
        positions = keep(grids, lambda: ops.cat([tables(grid, None, level_embed) for grid in grids], 1))
        places = ops.cat([ops.centres(grid, level_embed)[None] for grid in grids], 1)
    else:
        positions = ops.cat([tables(grid, mask, level_embed) for grid, mask in zip(grids, masks, strict=True)], 1)
        shares = [part_of(mask, level_embed) for mask in masks]
        places = [ops.centres(grid, level_embed) / share for grid, share in zip(grids, shares, strict=True)]
        places, flat = ops.cat(places, 1), ops.cat([mask.reshape(mask.shape[0], -1) for mask in masks], 1)
        whole = Levels(grids, flat, ops.cat(shares, 1))
    levels = [ops.zeros((1, h * w, 1), level_embed) + level_embed[i] for i, (h, w) in enumerate(grids)]
    return whole, positions + ops.cat(levels, 1), places
