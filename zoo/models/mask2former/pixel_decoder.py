"""Mask2Former's pixel decoder (https://arxiv.org/abs/2112.01527): the encoder of Deformable DETR over three sizes of a
backbone's features, whose largest output is made larger by earlier features.

Shapes: B batch, h and w of one size of features, N = the sum of h w, D feature_size, M mask_feature_size, y and x
height and width of the masks.
"""

from __future__ import annotations

from collections.abc import Sequence

from ... import ops
from ...nn import CacheLast, Conv2d, GroupNorm, Module
from ...typing import Array
from ...weights import Weights
from ..deformable_detr.config import GROUPS
from ..deformable_detr.encoder import EncoderContext, EncoderLayer, Grid, Levels, Project
from ..detr.model import EPS
from ..detr.positions import SinePositions
from .config import LEVELS, Mask2FormerConfig


class Fusion(Module):
    """The features so far, in the size of earlier ones, and these."""

    def __init__(self, w: Weights, number: int, d_in: int, D: int):
        side, own = w / f"adapter_{number}", w / f"layer_{number}"
        self.side, self.side_norm = Conv2d(side / 0, d_in, D, 1, bias=False), GroupNorm(side / 1, D, GROUPS, EPS)
        self.conv, self.norm = Conv2d(own / 0, D, D, 3, padding=1, bias=False), GroupNorm(own / 1, D, GROUPS, EPS)

    def __call__(self, x: Array, earlier: Array) -> Array:
        """x (B, h, w, D), earlier (B, y, x, d_in) -> (B, y, x, D)."""
        x = self.side_norm(self.side(earlier)) + ops.interpolate(x, earlier.shape[1:3])
        return ops.activate(self.norm(self.conv(x)), "relu")


class PixelDecoder(Module):
    def __init__(self, w: Weights, cfg: Mask2FormerConfig):
        D, own, widths = cfg.feature_size, cfg.pixel_encoder, cfg.widths
        smallest_first = enumerate(widths[: -LEVELS - 1 : -1])
        self.projects = [Project(w / "input_projections" / i, own, width, 1) for i, width in smallest_first]
        self.level_embed = w.get("level_embed", (LEVELS, D))
        self.tables, self._whole = SinePositions(w, own), CacheLast()
        self.encoder_layers = [EncoderLayer(w / "encoder.layers" / i, own) for i in range(cfg.encoder_layers)]
        self.fusions = [Fusion(w, i + 1, width, D) for i, width in enumerate(widths[: cfg.larger_levels])]
        self.mask_projection = Conv2d(w / "mask_projection", D, cfg.mask_feature_size, 1)

    def positions(self, grids: tuple[Grid, ...]) -> Array:
        """-> (1, N, D): of each feature by its place, and by its size."""
        like = self.level_embed
        return ops.cat([self.tables(grid, None, like) + like[i] for i, grid in enumerate(grids)], 1)

    def __call__(self, maps: Sequence[Array]) -> tuple[Array, list[Array]]:
        """maps of the backbone, the largest first -> features of masks (B, y, x, M), and features (B, h, w, D) of three
        sizes, the smallest first.
        """
        found = [project(x) for project, x in zip(self.projects, maps[::-1], strict=False)]
        grids = tuple((x.shape[1], x.shape[2]) for x in found)
        B, D = found[0].shape[0], found[0].shape[3]
        x = ops.cat([x.reshape(B, -1, D) for x in found], 1)
        places = ops.cat([ops.centres(grid, x)[None] for grid in grids], 1)
        c = EncoderContext(self._whole(grids, lambda: self.positions(grids)), places, Levels(grids, None, None))
        for layer in self.encoder_layers:
            x = layer(x, c)
        found, start = [], 0
        for h, w in grids:
            found.append(x[:, start : start + h * w].reshape(B, h, w, D))
            start += h * w
        largest = found[-1]
        for fusion, earlier in zip(self.fusions[::-1], maps[: len(self.fusions)][::-1], strict=True):
            largest = fusion(largest, earlier)
        return self.mask_projection(largest), found
