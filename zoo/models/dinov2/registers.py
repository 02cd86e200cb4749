"""DINOv2 with registers (Darcet et al. 2023, https://arxiv.org/abs/2309.16588): tokens beside the class token, in which
the layers keep what is no part of the image.

Shapes: B batch, h w = N patches, R num_register_tokens, T = 1 + R + N, D hidden_size.
"""

from __future__ import annotations

from dataclasses import replace

from ... import ops
from ...inputs import ImageInputs
from ...typing import Array
from ...weights import Weights
from ..vit import model as vit
from . import model as dinov2
from .config import Dinov2WithRegistersConfig

NAME_MAP = replace(dinov2.NAME_MAP, prefix="dinov2_with_registers")


class Positions(vit.Positions):
    def _patches(self, grid: tuple[int, int]) -> Array:
        own = self.table[:, self.prefix_tokens :].reshape(1, *self.grid, -1)
        return ops.interpolate(own, grid, "bicubic antialias").reshape(1, grid[0] * grid[1], -1)


class Embeddings(dinov2.Embeddings):
    """The class token and the patches, with their positions added, and between them the registers."""

    def __init__(self, w: Weights, cfg: Dinov2WithRegistersConfig, mask_token: bool):
        super().__init__(w, cfg, mask_token)
        self.positions = Positions(w, "position_embeddings", cfg, len(cfg.prefix_tokens))
        self.prefix_tokens.append(w.get("register_tokens", (1, cfg.num_register_tokens, cfg.hidden_size)))

    def __call__(self, p: ImageInputs) -> Array:
        """-> (B, T, D)."""
        assert self.positions is not None
        of_class, of_patches = self.positions(p.grid)
        patches = self.patches(p) + of_patches
        prefix = ops.cat([self.prefix_tokens[0] + of_class, self.prefix_tokens[1]], 1)
        return self.dropout(ops.cat([ops.cat([prefix] * patches.shape[0], 0), patches], 1))


class Dinov2WithRegistersPretrained(dinov2.Dinov2Pretrained):
    config_class = Dinov2WithRegistersConfig
    name_map = NAME_MAP


class Dinov2WithRegistersModel(Dinov2WithRegistersPretrained, dinov2.Dinov2Model):
    embeddings_class = Embeddings


class Dinov2WithRegistersForImageClassification(Dinov2WithRegistersPretrained, dinov2.Dinov2ForImageClassification):
    base_class = Dinov2WithRegistersModel


class Dinov2WithRegistersBackbone(Dinov2WithRegistersPretrained, dinov2.Dinov2Backbone):
    base_class = Dinov2WithRegistersModel
