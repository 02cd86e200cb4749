"""GLM-OCR (Duan et al. 2026, https://arxiv.org/abs/2603.10910): an encoder of images of any size with gated MLPs and
normed queries and keys, squares of four patches as one vector, and a GLM-4, whose positions have the three axes of
Qwen2-VL's.  The layer that predicts further tokens is not read.

Shapes: N images, h w patches, E width of the encoder, H heads, K head size, m spatial_merge_size, I = h w / m m tokens
of an image, D width of the decoder, F width of an MLP.
"""

from __future__ import annotations

from dataclasses import replace

from ... import ops
from ...inputs import ImageInputs
from ...nn import Conv2d, Dropout, LayerNorm, Linear, Module, RMSNorm
from ...typing import Array
from ...weights import Weights
from ..glm4.model import Layer
from ..qwen2_vl import model as qwen2_vl
from .config import GlmOcrConfig, GlmOcrTextConfig, GlmOcrVisionConfig

NAME_MAP = replace(
    qwen2_vl.NAME_MAP,
    renames={},
    ignored=(*qwen2_vl.NAME_MAP.ignored, r"^model\.language_model\.layers\.16\."),
)
EPS = 1e-5


class PatchEmbeddings(qwen2_vl.PatchEmbeddings):
    def __init__(self, w: Weights, cfg: GlmOcrVisionConfig):
        super().__init__(w, cfg)
        self.bias = w.get("patch_embed.proj.bias", (cfg.width,))

    def __call__(self, p: ImageInputs) -> Array:
        """-> (N, h w, E)."""
        return super().__call__(p) + self.bias


class MLP(Module):
    """A gated MLP."""

    def __init__(self, w: Weights, width: int, inner: int, act: str, bias: bool):
        self.gate_up = Linear.fuse(w, ["gate_proj", "up_proj"], width, [inner, inner], bias)
        self.down, self.act = Linear(w / "down_proj", inner, width, bias), ops.activation(act)

    def __call__(self, x: Array, residual: Array | None = None) -> Array:
        return self.down(ops.glu(self.gate_up(x), self.act), residual)


class VisionLayer(Module):
    def __init__(self, w: Weights, cfg: GlmOcrVisionConfig, layer: int):
        E, K, eps, bias = cfg.width, cfg.head_size, cfg.rms_norm_eps, cfg.attention_bias
        self.heads = cfg.num_heads
        self.attention_norm, self.mlp_norm = RMSNorm(w / "norm1", E, eps), RMSNorm(w / "norm2", E, eps)
        self.qkv, self.out = Linear(w / "attn.qkv", E, 3 * E, bias), Linear(w / "attn.proj", E, E, bias)
        self.query_norm, self.key_norm = RMSNorm(w / "attn.q_norm", K, eps), RMSNorm(w / "attn.k_norm", K, eps)
        self.dropout = Dropout(cfg.attention_dropout)
        self.mlp = MLP(w / "mlp", E, cfg.mlp_width, cfg.hidden_act, bias)

    def __call__(self, x: Array, cos_sin: tuple[Array, Array]) -> Array:
        """x (N, h w, E), cos_sin two of (1, h w, K / 2) -> (N, h w, E)."""
        q, k, v = ops.split_heads(self.qkv(self.attention_norm(x)), self.heads)
        q, k = ops.rope(self.query_norm(q), *cos_sin), ops.rope(self.key_norm(k), *cos_sin)
        a = ops.attention(q, k, v, dropout=self.dropout.rate)
        y, x = self.mlp_norm.add(self.out(a.reshape(x.shape)), x)
        return self.mlp(y, x)


class VisionTower(qwen2_vl.VisionTower):
    """The encoder."""

    config_class = GlmOcrVisionConfig
    embeddings_class, layer_class = PatchEmbeddings, VisionLayer

    def __init__(self, w: Weights, cfg: GlmOcrVisionConfig):
        super().__init__(w, cfg)
        self.norm = RMSNorm(w / "post_layernorm", cfg.width, cfg.rms_norm_eps)

    def encode(self, p: ImageInputs) -> Array:
        """-> (N, h w, E)."""
        return self.norm(super().encode(p))


class Connector(Module):
    """m m neighbouring patches -> one vector of the decoder's width: a convolution, and a gated MLP."""

    def __init__(self, w: Weights, cfg: GlmOcrVisionConfig):
        D, m = cfg.output_width, cfg.spatial_merge_size
        self.merge = Conv2d(w / "downsample", cfg.width, D, m, stride=m)
        self.projection = Linear(w / "merger.proj", D, D, bias=False)
        self.norm = LayerNorm(w / "merger.post_projection_norm", D, EPS)
        self.mlp = MLP(w / "merger", D, D * cfg.in_channels, cfg.hidden_act, bias=False)

    def __call__(self, x: Array, grid: tuple[int, int]) -> Array:
        """x (N, h w, E) -> (N, I, D)."""
        x = self.merge(x.reshape(x.shape[0], *grid, -1))
        x = self.projection(x.reshape(x.shape[0], -1, x.shape[3]))
        return self.mlp(ops.activate(self.norm(x), "gelu"))


class LanguageModel(qwen2_vl.LanguageModel):
    config_class = GlmOcrTextConfig
    layer_class = Layer


class GlmOcrPretrained(qwen2_vl.Qwen2VLPretrained):
    config_class = GlmOcrConfig
    name_map = NAME_MAP


class GlmOcrModel(GlmOcrPretrained, qwen2_vl.Qwen2VLModel):
    """The encoder, the connector and the decoder's layers."""

    tower_class, layers_class = VisionTower, LanguageModel

    def __init__(self, w: Weights, cfg: GlmOcrConfig):
        self.config = cfg
        self.vision_model = VisionTower(w / "visual", cfg.vision_config)
        self.connector = Connector(w / "visual", cfg.vision_config)
        self.language_model = LanguageModel(w / "language_model", cfg.text_config)


class Decoder(qwen2_vl.Decoder):
    config_class = GlmOcrTextConfig


class GlmOcrForConditionalGeneration(GlmOcrPretrained, qwen2_vl.Qwen2VLForConditionalGeneration):
    """Logits of the next token after images and text."""

    base_class = GlmOcrModel
    decoder_class = Decoder
