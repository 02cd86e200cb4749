"""PaddleOCR-VL (Cui et al. 2025, https://arxiv.org/abs/2510.14528): SigLIP's encoder of images (Zhai et al. 2023,
https://arxiv.org/abs/2303.15343) for images of any size, whose patches have also rotary positions in the plane, squares
of four patches as one vector, and ERNIE 4.5's layers, whose positions have the three axes of Qwen2-VL's, and turn
Llama's pairs of features.

Shapes: N images, h w patches, E width of the encoder, K its head size, m spatial_merge_size, I = h w / m m tokens of an
image, D width of the decoder.
"""

from __future__ import annotations

from typing import Any

from ... import ops
from ...inputs import ImageInputs
from ...nn import Conv2d, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..clip.model import Layer
from ..qwen2_vl import model as qwen2_vl
from .config import PaddleOCRTextConfig, PaddleOCRVisionConfig, PaddleOCRVLConfig

NAME_MAP = NameMap(
    prefix="model",
    base=("visual", "projector", "language_model"),
    renames={
        r"^visual\.": "model.visual.",
        r"^mlp_AR\.": "model.projector.",
        r"^model\.(?!visual\.|projector\.|language_model\.)": "model.language_model.",
    },
    ignored=(
        *(r"(^|\.)rotary_emb\.inv_freq$", r"^lm_head\.", r"(^|\.)embeddings\.position_ids$"),
        *(r"(^|\.)packing_position_embedding\.", r"(^|\.)vision_model\.head\."),  # SigLIP's, which nothing reads
    ),
)
EPS = 1e-5


class PatchEmbeddings(Module):
    """The patches, with trained positions, which are resized to the grid of an image."""

    def __init__(self, w: Weights, cfg: PaddleOCRVisionConfig):
        E, self.side = cfg.hidden_size, cfg.position_side
        self.projection = Conv2d(w / "patch_embedding", cfg.num_channels, E, cfg.patch, stride=cfg.patch)
        self.position = w.get("position_embedding.weight", (self.side**2, E))

    def __call__(self, p: ImageInputs) -> Array:
        """-> (N, h w, E)."""
        x = self.projection(p.pixel_values)
        square = self.position.reshape(1, self.side, self.side, -1)
        return (x + ops.interpolate(square, p.grid, "bilinear")).reshape(x.shape[0], -1, x.shape[3])


class VisionLayer(Layer):
    def __init__(self, w: Weights, cfg: Any):
        super().__init__(w, cfg)

    def __call__(self, x: Array, cos_sin: tuple[Array, Array]) -> Array:  # type: ignore[override]
        """x (N, h w, E), cos_sin two of (1, h w, K / 2) -> (N, h w, E)."""
        q, k, v = ops.split_heads(self.qkv(self.attention_norm(x)), self.heads)
        a = ops.attention(ops.rope(q, *cos_sin), ops.rope(k, *cos_sin), v, dropout=self.dropout.rate)
        y, x = self.mlp_norm.add(self.out(a.reshape(x.shape)), x)
        return self.down(self.up(y), residual=x)


class VisionTower(qwen2_vl.VisionTower):
    """The encoder."""

    config_class = PaddleOCRVisionConfig

    def __init__(self, w: Weights, cfg: PaddleOCRVisionConfig):
        self.config = cfg
        self.embeddings = PatchEmbeddings(w / "embeddings", cfg)
        self.layers = [VisionLayer(w / "encoder.layers" / i, cfg) for i in range(cfg.num_hidden_layers)]
        self.norm = LayerNorm(w / "post_layernorm", cfg.hidden_size, cfg.layer_norm_eps)

    @property
    def like(self) -> Array:
        return self.norm.weight

    def encode(self, p: ImageInputs) -> Array:
        """-> (N, h w, E)."""
        return self.norm(super().encode(p))


class Connector(Module):
    """m m neighbouring patches -> one vector of the decoder's width."""

    def __init__(self, w: Weights, cfg: PaddleOCRVLConfig):
        E, self.factor = cfg.vision_config.hidden_size, cfg.vision_config.spatial_merge_size
        inner = E * self.factor**2
        self.norm = LayerNorm(w / "pre_norm", E, EPS)
        self.up = Linear(w / "linear_1", inner, inner, act="gelu")
        self.down = Linear(w / "linear_2", inner, cfg.text_config.hidden_size)

    def __call__(self, x: Array, grid: tuple[int, int]) -> Array:
        """x (N, h w, E) -> (N, I, D)."""
        (N, count, E), m = x.shape, self.factor
        squares = ops.windows(self.norm(x).reshape(N, *grid, E), m)
        return self.down(self.up(squares.reshape(N, count // m**2, m * m * E)))


class LanguageModel(qwen2_vl.LanguageModel):
    config_class = PaddleOCRTextConfig


class PaddleOCRVLPretrained(qwen2_vl.Qwen2VLPretrained):
    config_class = PaddleOCRVLConfig
    name_map = NAME_MAP


class PaddleOCRVLModel(PaddleOCRVLPretrained, qwen2_vl.Qwen2VLModel):
    """The encoder, the connector and the decoder's layers."""

    def __init__(self, w: Weights, cfg: PaddleOCRVLConfig):
        self.config = cfg
        self.vision_model = VisionTower(w / "visual.vision_model", cfg.vision_config)
        self.connector = Connector(w / "projector", cfg)
        self.language_model = LanguageModel(w / "language_model", cfg.text_config)


class Decoder(qwen2_vl.Decoder):
    config_class = PaddleOCRTextConfig


class PaddleOCRVLForConditionalGeneration(PaddleOCRVLPretrained, qwen2_vl.Qwen2VLForConditionalGeneration):
    """Logits of the next token after images and text."""

    base_class = PaddleOCRVLModel
    decoder_class = Decoder
