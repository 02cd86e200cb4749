"""Qwen2.5-VL (Bai et al. 2025, https://arxiv.org/abs/2502.13923): Qwen2-VL with gated MLPs and RMS norms in its encoder
of images, most of whose layers attend within windows.

Shapes: N images, h w patches, n windows, s patches along a side of a window, E width of the encoder, F its
intermediate_size, H heads, K head size, D width of the decoder.
"""

from __future__ import annotations

from ... import ops
from ...inputs import ImageInputs
from ...nn import Linear, Module, RMSNorm
from ...typing import Array
from ...weights import Weights
from ..qwen2_vl import model as qwen2_vl
from ..qwen2_vl.model import EPS
from .config import Qwen2_5_VLConfig, Qwen2_5_VLTextConfig, Qwen2_5_VLVisionConfig


class VisionLayer(Module):
    """Attention of all patches, or of those of a window, and a gated MLP."""

    def __init__(self, w: Weights, cfg: Qwen2_5_VLVisionConfig, layer: int):
        E, F = cfg.width, cfg.mlp_width
        self.heads, self.window = cfg.num_heads, cfg.window_patches
        self.sees_all = layer in cfg.fullatt_block_indexes
        self.attention_norm, self.mlp_norm = RMSNorm(w / "norm1", E, EPS), RMSNorm(w / "norm2", E, EPS)
        self.qkv, self.out = Linear(w / "attn.qkv", E, 3 * E), Linear(w / "attn.proj", E, E)
        self.gate_up = Linear.fuse(w / "mlp", ["gate_proj", "up_proj"], E, [F, F])
        self.down = Linear(w / "mlp.down_proj", F, E)
        self.act = ops.activation(cfg.hidden_act)

    def attention(self, x: Array, cos_sin: tuple[Array, Array], grid: tuple[int, int]) -> Array:
        """x (N, h w, E), cos_sin two of (1, h w, K / 2) -> (N, h w, E)."""
        q, k, v = ops.split_heads(self.qkv(x), self.heads)
        q, k = (ops.rope(part, *cos_sin) for part in (q, k))
        if self.sees_all:
            return self.out(ops.attention(q, k, v).reshape(x.shape))
        (N, _, E), s = x.shape, self.window
        q, k, v = (
            ops.windows(part.reshape(N, *grid, E), s).reshape(-1, s * s, self.heads, E // self.heads)
            for part in (q, k, v)
        )
        is_patch = ops.windows(ops.zeros((N, *grid, 1), x) + 1, s)[:, :, 0] > 0  # others fill up windows at the edges
        a = ops.attention(q, k, v, mask=is_patch).reshape(-1, s * s, E)
        return self.out(ops.from_windows(a, s, grid).reshape(x.shape))

    def __call__(self, x: Array, cos_sin: tuple[Array, Array], grid: tuple[int, int]) -> Array:
        """x (N, h w, E), cos_sin two of (1, h w, K / 2) -> (N, h w, E)."""
        y, x = self.mlp_norm.add(self.attention(self.attention_norm(x), cos_sin, grid), x)
        return self.down(ops.glu(self.gate_up(y), self.act), x)


class VisionTower(qwen2_vl.VisionTower):
    """The encoder."""

    config_class = Qwen2_5_VLVisionConfig
    layer_class = VisionLayer

    def encode(self, p: ImageInputs) -> Array:
        """-> (N, h w, E)."""
        x, cos_sin = self.embeddings(p), self.rotations(p.grid)
        for layer in self.layers:
            x = layer(x, cos_sin, p.grid)
        return x


class Connector(qwen2_vl.Connector):
    norm_class = RMSNorm


class LanguageModel(qwen2_vl.LanguageModel):
    config_class = Qwen2_5_VLTextConfig


class Qwen2_5_VLModel(qwen2_vl.Qwen2VLModel):  # noqa: N801
    """The encoder, the connector and the decoder's layers."""

    config_class = Qwen2_5_VLConfig
    tower_class, connector_class, layers_class = VisionTower, Connector, LanguageModel


class Decoder(qwen2_vl.Decoder):
    config_class = Qwen2_5_VLTextConfig


class Qwen2_5_VLForConditionalGeneration(qwen2_vl.Qwen2VLForConditionalGeneration):  # noqa: N801
    """Logits of the next token after images and text."""

    config_class = Qwen2_5_VLConfig
    base_class = Qwen2_5_VLModel
    decoder_class = Decoder
