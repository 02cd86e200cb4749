"""DINOv2 with registers (Darcet et al. 2023, https://arxiv.org/abs/2309.16588): tokens beside the class token, in which
the layers keep what is no part of the image.

Shapes: B batch, h w = N patches, R num_register_tokens, T = 1 + R + N, D hidden_size, L labels.
"""

from __future__ import annotations

from dataclasses import replace

from ... import ops
from ...inputs import ImageInputs
from ...nn import LayerNorm, Linear
from ...typing import Array
from ...weights import Weights
from ..vit import model as vit
from ..vit.backbone import BackboneOutput, chosen
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
    def __init__(self, w: Weights, cfg: Dinov2WithRegistersConfig, mask_token: bool | None = None):
        self.config = cfg
        mask_token = "embeddings.mask_token" in w if mask_token is None else mask_token
        self.embeddings = Embeddings(w / "embeddings", cfg, mask_token)
        self.layers = [dinov2.Layer(w / "encoder.layer" / i, cfg) for i in range(cfg.num_hidden_layers)]
        self.norm = LayerNorm(w / "layernorm", cfg.hidden_size, cfg.layer_norm_eps)


class Dinov2WithRegistersForImageClassification(Dinov2WithRegistersPretrained):
    """A linear layer on the class token and the mean of the patches."""

    def __init__(self, w: Weights, cfg: Dinov2WithRegistersConfig):
        self.config = cfg
        self.base_model = Dinov2WithRegistersModel(w / "dinov2_with_registers", cfg, mask_token=False)
        self.classifier = Linear(w / "classifier", 2 * cfg.hidden_size, cfg.num_labels)

    def forward(self, p: ImageInputs) -> Array:
        """-> logits (B, L)."""
        x, first = self.base_model.encode(p), 1 + self.config.num_register_tokens
        return self.classifier(ops.cat([x[:, 0], ops.mean(x[:, first:], 1)], 1))


class Dinov2WithRegistersBackbone(Dinov2WithRegistersPretrained):
    """The layers as other models use them: some of their hidden states, in order."""

    is_base_model = True

    def __init__(self, w: Weights, cfg: Dinov2WithRegistersConfig):
        self.config = cfg
        self.base_model = Dinov2WithRegistersModel(w, cfg)

    def forward(self, p: ImageInputs) -> BackboneOutput:
        """-> the hidden states that the config names."""
        cfg, found = self.config, chosen(self.base_model.hidden_states(p), self.config.outputs)
        if cfg.apply_layernorm:
            found = [self.base_model.norm(x) for x in found]
        if cfg.reshape_hidden_states:
            found = [x[:, 1 + cfg.num_register_tokens :].reshape(x.shape[0], *p.grid, -1) for x in found]
        return BackboneOutput(tuple(found))
