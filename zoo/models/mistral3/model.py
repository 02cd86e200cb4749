"""Mistral Small 3.1 (Mistral AI 2025, https://mistral.ai/news/mistral-small-3-1) and Ministral 3 (Liu et al. 2026,
https://arxiv.org/abs/2601.08584): Pixtral's encoder of images of any size (Agrawal et al. 2024,
https://arxiv.org/abs/2410.07073), whose patches have rotary positions in the plane, squares of patches as one vector,
and a Mistral, which reads these in the places of [IMG] tokens.

Shapes: N images, h w patches, E width of the encoder, F its intermediate_size, H heads, K head size, m
spatial_merge_size, I = (h // m) (w // m) tokens of an image, B rows, T tokens, D width of the decoder.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import ops
from ...errors import InputError
from ...inputs import ImageInputs, ImageModel, TextInputs
from ...inputs.image_text import ImageTextModel
from ...nn import Conv2d, Dropout, Linear, Module, RMSNorm
from ...typing import Array
from ...weights import Weights
from ..llama3.model import LlamaModel
from ..llava.model import NAME_MAP, LlavaForConditionalGeneration
from ..ministral3.config import Ministral3Config
from ..ministral3.model import Ministral3Model
from .config import Mistral3Config, PixtralVisionConfig

EPS = 1e-5

Grid = tuple[int, int]  # h, w


class Mistral3ModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, D)


class PatchEmbeddings(Module):
    def __init__(self, w: Weights, cfg: PixtralVisionConfig):
        E, self.mask = cfg.hidden_size, None
        self.projection = Conv2d(w / "patch_conv", cfg.num_channels, E, cfg.patch, stride=cfg.patch, bias=False)
        self.norm = RMSNorm(w / "ln_pre", E, EPS)

    def __call__(self, p: ImageInputs) -> Array:
        """-> (N, h w, E)."""
        x = self.projection(p.pixel_values)
        return self.norm(x.reshape(x.shape[0], -1, x.shape[3]))


class VisionLayer(Module):
    def __init__(self, w: Weights, cfg: PixtralVisionConfig):
        E, F, self.heads = cfg.hidden_size, cfg.intermediate_size, cfg.num_attention_heads
        self.attention_norm, self.mlp_norm = RMSNorm(w / "attention_norm", E, EPS), RMSNorm(w / "ffn_norm", E, EPS)
        self.qkv = Linear.fuse(w / "attention", ["q_proj", "k_proj", "v_proj"], E, [E, E, E], bias=False)
        self.dropout = Dropout(cfg.attention_dropout)
        self.out = Linear(w / "attention.o_proj", E, E, bias=False)
        self.gate_up = Linear.fuse(w / "feed_forward", ["gate_proj", "up_proj"], E, [F, F], bias=False)
        self.down = Linear(w / "feed_forward.down_proj", F, E, bias=False)
        self.act = ops.activation(cfg.hidden_act)

    def __call__(self, x: Array, cos_sin: tuple[Array, Array]) -> Array:
        """x (N, h w, E), cos_sin two of (1, h w, K / 2) -> (N, h w, E)."""
        q, k, v = ops.split_heads(self.qkv(self.attention_norm(x)), self.heads)
        a = ops.attention(ops.rope(q, *cos_sin), ops.rope(k, *cos_sin), v, dropout=self.dropout.rate)
        y, x = self.mlp_norm.add(self.out(a.reshape(x.shape)), x)
        return self.down(ops.glu(self.gate_up(y), self.act), x)


class VisionTower(ImageModel):
    """Pixtral's encoder."""

    config_class = PixtralVisionConfig
    any_size = True
    merged: int  # patches along the side of a square that becomes one token
    layers_read: int | None = None  # those before the states that the decoder reads; None: all

    def __init__(self, w: Weights, cfg: PixtralVisionConfig):
        self.config = cfg
        self.embeddings = PatchEmbeddings(w, cfg)
        self.layers = [VisionLayer(w / "transformer.layers" / i, cfg) for i in range(cfg.num_hidden_layers)]

    def nearest_size(self, size: tuple[int, int]) -> tuple[int, int]:
        high, wide = (max(self.merged, round(n / p)) * p for n, p in zip(size, self.patch, strict=True))
        return high, wide

    def rotations(self, grid: Grid) -> tuple[Array, Array]:
        """The rotations of patches by their rows and columns, two of (1, h w, K / 2)."""
        at, every = ops.arange(grid[0] * grid[1], self.like), self.config.rope().frequencies(1)
        places = (at // grid[1], every[0::2]), (at % grid[1], every[1::2])
        parts = [ops.rotary(place[None], frequencies, 1.0, self.like) for place, frequencies in places]
        cos, sin = (ops.cat([part[i] for part in parts], 2) for i in (0, 1))
        return cos, sin

    def encode(self, p: ImageInputs) -> Array:
        """-> (N, h w, E)."""
        x, cos_sin = self.embeddings(p), self.rotations(p.grid)
        for layer in self.layers[: self.layers_read]:
            x = layer(x, cos_sin)
        return x


class Connector(Module):
    """m m neighbouring patches -> one vector of the decoder's width.  What is no whole square is left out."""

    def __init__(self, w: Weights, cfg: Any):
        E, D, self.factor = cfg.vision_config.hidden_size, cfg.text_config.hidden_size, cfg.spatial_merge_size
        self.norm = RMSNorm(w / "norm", E, cfg.text_config.rms_norm_eps)
        # Of a square all numbers of the first feature, then all of the second: a convolution.
        self.merging = w.get("patch_merger.merging_layer.weight", (E, E * self.factor**2))
        self.up = Linear(w / "linear_1", E, D, cfg.multimodal_projector_bias, act=cfg.projector_hidden_act)
        self.down = Linear(w / "linear_2", D, D, cfg.multimodal_projector_bias)

    def __call__(self, x: Array, grid: Grid) -> Array:
        """x (N, h w, E) -> (N, I, D)."""
        (N, _, E), m = x.shape, self.factor
        x = ops.conv2d(self.norm(x).reshape(N, *grid, E), self.merging.reshape(E, E, m, m), None, m)
        return self.down(self.up(x.reshape(N, -1, E)))


class MergedPatches(ImageTextModel):
    """The base of the models whose images are squares of patches."""

    def token_grid(self, grid: Grid) -> Grid:
        rows, columns = (n // self.config.spatial_merge_size for n in grid)
        if not rows * columns:
            raise InputError(f"is {grid[0]} x {grid[1]} patches, which is less than a token", argument="image")
        return rows, columns

    def image_length(self, grid: Grid) -> int:
        rows, columns = self.token_grid(grid)
        return rows * columns


class Mistral3Pretrained(MergedPatches):
    config_class = Mistral3Config
    name_map = NAME_MAP


class Mistral3Model(Mistral3Pretrained):
    """The encoder, the connector and the decoder's layers."""

    is_base_model = True

    def __init__(self, w: Weights, cfg: Mistral3Config):
        self.config, texts = cfg, cfg.text_config
        self.vision_model = VisionTower(w / "vision_tower", cfg.vision_config)
        self.vision_model.merged, self.vision_model.layers_read = cfg.spatial_merge_size, cfg.feature_layers
        self.connector = Connector(w / "multi_modal_projector", cfg)
        words = w / "language_model"
        has_scales = isinstance(texts, Ministral3Config)
        self.language_model = Ministral3Model(words, texts) if has_scales else LlamaModel(words, texts)

    def forward(self, t: TextInputs, p: ImageInputs | None = None) -> Mistral3ModelOutput:
        return Mistral3ModelOutput(super().forward(t, p).last_hidden_state)


class Mistral3ForConditionalGeneration(Mistral3Pretrained, LlavaForConditionalGeneration):
    """Logits of the next token after images and text."""

    base_class = Mistral3Model
