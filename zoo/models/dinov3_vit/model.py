"""DINOv3's ViTs (Siméoni et al. 2025, https://arxiv.org/abs/2508.10104): DINOv2's layers with rotary positions of
patches in the plane, and registers (Darcet et al. 2023, https://arxiv.org/abs/2309.16588) beside the class token.

Shapes: B batch, h w patches, T = h w + the prefix tokens, D hidden_size, F intermediate_size, H heads, K = D / H.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from ... import ops
from ...inputs import ImageInputs, ImageModel
from ...nn import Conv2d, Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..vit import model as vit
from ..vit.backbone import select_states
from .config import DINOv3ViTConfig

NAME_MAP = NameMap(
    prefix="model",
    base=("embeddings", "layer", "norm"),
    renames={r"^model\.layer\.": "layer."},  # transformers' name in memory
    ignored=(r"(^|\.)embeddings\.mask_token$", r"(^|\.)rope_embeddings\."),
)


class Embeddings(vit.Embeddings):
    def __init__(self, w: Weights, cfg: DINOv3ViTConfig, mask_token: bool):
        D, R = cfg.hidden_size, cfg.num_register_tokens
        self.prefix_tokens = [w.get("cls_token", (1, 1, D)), w.get("register_tokens", (1, R, D))]
        self.mask = w.get("mask_token", (1, 1, D)) if mask_token else None
        self.projection = Conv2d(w / "patch_embeddings", cfg.num_channels, D, cfg.patch, stride=cfg.patch)
        self.positions, self.dropout = None, Dropout(0.0)


class Layer(Module):
    def __init__(self, w: Weights, cfg: DINOv3ViTConfig):
        D, F, eps, a = cfg.hidden_size, cfg.intermediate_size, cfg.layer_norm_eps, w / "attention"
        self.heads = cfg.num_attention_heads
        self.attention_norm, self.mlp_norm = LayerNorm(w / "norm1", D, eps), LayerNorm(w / "norm2", D, eps)
        self.query, self.key = Linear(a / "q_proj", D, D, cfg.query_bias), Linear(a / "k_proj", D, D, cfg.key_bias)
        self.value, self.out = Linear(a / "v_proj", D, D, cfg.value_bias), Linear(a / "o_proj", D, D, cfg.proj_bias)
        self.dropout = Dropout(cfg.attention_dropout)
        self.is_gated, self.act = cfg.use_gated_mlp, ops.activation(cfg.hidden_act)
        if self.is_gated:
            self.up = Linear.fuse(w / "mlp", ["gate_proj", "up_proj"], D, [F, F], cfg.mlp_bias)
        else:
            self.up = Linear(w / "mlp.up_proj", D, F, cfg.mlp_bias, act=cfg.hidden_act)
        self.down = Linear(w / "mlp.down_proj", F, D, cfg.mlp_bias)
        self.scale_1, self.scale_2 = (w.get(f"layer_scale{i}.lambda1", (D,)) for i in (1, 2))
        self.drop_path = Dropout(cfg.drop_path_rate, of_rows=True)

    def attention(self, x: Array, cos_sin: tuple[Array, Array]) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        split = (*x.shape[:2], self.heads, -1)
        q, k = (ops.rope(part(x).reshape(split), *cos_sin) for part in (self.query, self.key))
        a = ops.attention(q, k, self.value(x).reshape(split), dropout=self.dropout.rate)
        return self.out(a.reshape(x.shape))

    def mlp(self, x: Array) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        y = self.up(x)
        return self.down(ops.glu(y, self.act) if self.is_gated else y)

    def __call__(self, x: Array, cos_sin: tuple[Array, Array]) -> Array:
        """x (B, T, D), cos_sin two of (1, T, K / 2) -> (B, T, D)."""
        x = ops.add_scaled(x, self.drop_path(self.attention(self.attention_norm(x), cos_sin)), self.scale_1)
        return ops.add_scaled(x, self.drop_path(self.mlp(self.mlp_norm(x))), self.scale_2)


class DINOv3ViTPretrained(ImageModel):
    config_class = DINOv3ViTConfig
    name_map = NAME_MAP
    is_base_model = any_size = True


class DINOv3ViTModel(DINOv3ViTPretrained):
    inputs = ("bool_masked_pos",)

    def __init__(self, w: Weights, cfg: DINOv3ViTConfig, mask_token: bool | None = None):
        self.config = cfg
        mask_token = "embeddings.mask_token" in w if mask_token is None else mask_token
        self.embeddings = Embeddings(w / "embeddings", cfg, mask_token)
        self.layers = [Layer(w / "layer" / i, cfg) for i in range(cfg.num_hidden_layers)]
        self.norm = LayerNorm(w / "norm", cfg.hidden_size, cfg.layer_norm_eps)

    @property
    def like(self) -> Array:
        return self.embeddings.projection.weight

    def rotations(self, grid: tuple[int, int]) -> tuple[Array, Array]:
        """The rotations of patches by where their centres are, from -1 to 1 in height and width; none of the prefix.

        -> two of (1, T, K / 2).
        """
        prefix, (h, w) = 1 + self.config.num_register_tokens, grid
        at = ops.arange(prefix + h * w, self.like) - prefix
        inside = (at >= 0) * 1
        at = at * inside
        turns = [((i + 0.5) / n * 2 - 1) * (2 * math.pi) * inside for i, n in ((at // w, h), (at % w, w))]
        parts = [ops.rotary(turn[None], self.config.frequencies, 1.0, self.like) for turn in turns]
        cos, sin = (ops.cat([part[i] for part in parts], 2) for i in (0, 1))
        return cos, sin

    def hidden_states(self, p: ImageInputs) -> Iterator[Array]:
        """Yield the first layer's input, then the output of each layer, all (B, T, D)."""
        x, cos_sin = self.embeddings(p), self.rotations(p.grid)
        yield x
        for layer in self.layers:
            x = layer(x, cos_sin)
            yield x

    def encode(self, p: ImageInputs) -> Array:
        """-> (B, T, D) of every token."""
        (x,) = deque(self.hidden_states(p), maxlen=1)
        return self.norm(x)

    def forward(self, p: ImageInputs) -> vit.ViTModelOutput:
        x = self.encode(p)
        return vit.ViTModelOutput(x, x[:, 0])


class DINOv3ViTBackboneOutput(NamedTuple):
    feature_maps: tuple[Array, ...]  # (B, h, w, D), or as the config says (B, h w, D)
    cls_tokens: tuple[Array, ...] | None  # (B, D), if the config asks for them


class DINOv3ViTBackbone(DINOv3ViTPretrained):
    """The layers as other models use them: some of their hidden states, in order."""

    def __init__(self, w: Weights, cfg: DINOv3ViTConfig):
        self.config = cfg
        self.base_model = DINOv3ViTModel(w, cfg)

    @property
    def like(self) -> Array:
        return self.base_model.like

    def forward(self, p: ImageInputs) -> DINOv3ViTBackboneOutput:
        """-> the hidden states that the config names."""
        cfg, last, prefix = self.config, self.config.num_hidden_layers, 1 + self.config.num_register_tokens
        found = select_states(self.base_model.hidden_states(p), cfg.outputs)
        pairs = zip(cfg.outputs, found, strict=True)
        found = [self.base_model.norm(x) if cfg.apply_layernorm or i == last else x for i, x in pairs]
        maps = [x[:, prefix:] for x in found]
        if cfg.reshape_hidden_states:
            maps = [x.reshape(x.shape[0], *p.grid, -1) for x in maps]
        tokens = tuple(x[:, 0] for x in found) if cfg.return_class_token else None
        return DINOv3ViTBackboneOutput(tuple(maps), tokens)
