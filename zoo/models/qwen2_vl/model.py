"""Qwen2-VL (Wang et al. 2024, https://arxiv.org/abs/2409.12191): an encoder of images of any size, whose patches have
rotary positions in the plane, squares of four patches as one vector, and a Qwen2 that reads these in the places of
<|image_pad|> tokens, with positions in time, height and width (M-RoPE).  Videos are not implemented.

Shapes: N images, h w patches, E width of the encoder, H heads, K head size, m spatial_merge_size, I = h w / m m tokens
of an image, B rows, T tokens, D width of the decoder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from ... import ops
from ...inputs import ImageInputs, ImageModel, TextInputs
from ...inputs.image_text import ImageTextCausalLM, ImageTextModel
from ...nn import LayerNorm, Linear, Module, RMSNorm
from ...typing import Array
from ...weights import NameMap, Weights
from ..llama3.model import INPUTS, LlamaForCausalLM, LlamaModel
from .config import Qwen2VLConfig, Qwen2VLTextConfig, Qwen2VLVisionConfig, QwenVisionConfig

NAME_MAP = NameMap(
    prefix="model",
    base=("visual", "language_model"),
    renames={r"^visual\.": "model.visual.", r"^model\.(?!visual\.|language_model\.)": "model.language_model."},
    ignored=(r"(^|\.)rotary_emb\.inv_freq$", r"^lm_head\."),
)
TIED_WEIGHTS = {"lm_head.weight": "model.language_model.embed_tokens.weight"}
EPS = 1e-6


class Qwen2VLModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, D)


class PatchEmbeddings(Module):
    """A convolution over patches.  The weight has also an axis of time, along which an image is repeated."""

    def __init__(self, w: Weights, cfg: QwenVisionConfig):
        self.times, self.patch = cfg.temporal_patch_size, cfg.patch
        self.weight = w.get("patch_embed.proj.weight", (cfg.width, cfg.in_channels, self.times, *cfg.patch))

    def __call__(self, p: ImageInputs) -> Array:
        """-> (N, h w, E)."""
        weight = self.weight[:, :, 0]
        for i in range(1, self.times):
            weight = weight + self.weight[:, :, i]
        x = ops.conv2d(p.pixel_values, weight, None, self.patch)
        return x.reshape(x.shape[0], p.grid[0] * p.grid[1], -1)


class VisionLayer(Module):
    mlp_names: ClassVar[tuple[str, str]] = "mlp.fc1", "mlp.fc2"

    def __init__(self, w: Weights, cfg: Any, layer: int):
        E, F, (up, down) = cfg.width, cfg.mlp_width, self.mlp_names
        self.heads = cfg.num_heads
        self.attention_norm, self.mlp_norm = LayerNorm(w / "norm1", E, EPS), LayerNorm(w / "norm2", E, EPS)
        self.qkv, self.out = Linear(w / "attn.qkv", E, 3 * E), Linear(w / "attn.proj", E, E)
        self.up, self.down = Linear(w / up, E, F, act=cfg.hidden_act), Linear(w / down, F, E)

    def __call__(self, x: Array, cos_sin: tuple[Array, Array]) -> Array:
        """x (N, h w, E), cos_sin two of (1, h w, K / 2) -> (N, h w, E)."""
        q, k, v = ops.split_heads(self.qkv(self.attention_norm(x)), self.heads)
        a = ops.attention(ops.rope(q, *cos_sin), ops.rope(k, *cos_sin), v)
        y, x = self.mlp_norm.add(self.out(a.reshape(x.shape)), x)
        return self.down(self.up(y), residual=x)


class VisionTower(ImageModel):
    """The encoder."""

    config_class = Qwen2VLVisionConfig
    any_size = True
    embeddings_class: ClassVar[type[PatchEmbeddings]] = PatchEmbeddings
    layer_class: ClassVar[type[Any]] = VisionLayer  # made of weights, config and its number

    def __init__(self, w: Weights, cfg: QwenVisionConfig):
        self.config = cfg
        self.embeddings = self.embeddings_class(w, cfg)
        self.layers = [self.layer_class(w / "blocks" / i, cfg, i) for i in range(cfg.depth)]

    @property
    def like(self) -> Array:
        return self.embeddings.weight

    def nearest_size(self, size: tuple[int, int]) -> tuple[int, int]:
        factor = self.config.factor
        high, wide = (max(1, round(side / factor)) * factor for side in size)
        return high, wide

    def rotations(self, grid: tuple[int, int]) -> tuple[Array, Array]:
        """The rotations of patches by their rows and columns, two of (1, h w, K / 2)."""
        at = ops.arange(grid[0] * grid[1], self.like)
        parts = [ops.rotary(i[None], self.config.frequencies, 1.0, self.like) for i in (at // grid[1], at % grid[1])]
        cos, sin = (ops.cat([part[i] for part in parts], 2) for i in (0, 1))
        return cos, sin

    def encode(self, p: ImageInputs) -> Array:
        """-> (N, h w, E)."""
        x, cos_sin = self.embeddings(p), self.rotations(p.grid)
        for layer in self.layers:
            x = layer(x, cos_sin)
        return x


class Connector(Module):
    """m m neighbouring patches -> one vector of the decoder's width."""

    norm_class: ClassVar[type[LayerNorm | RMSNorm]] = LayerNorm

    def __init__(self, w: Weights, cfg: QwenVisionConfig):
        self.factor, inner = cfg.spatial_merge_size, cfg.width * cfg.spatial_merge_size**2
        self.norm = self.norm_class(w / "ln_q", cfg.width, EPS)
        self.up = Linear(w / "mlp.0", inner, inner, act="gelu")
        self.down = Linear(w / "mlp.2", inner, cfg.output_width)

    def __call__(self, x: Array, grid: tuple[int, int]) -> Array:
        """x (N, h w, E) -> (N, I, D)."""
        (N, count, E), m = x.shape, self.factor
        squares = ops.windows(self.norm(x).reshape(N, *grid, E), m)
        return self.down(self.up(squares.reshape(N, count // m**2, m * m * E)))


class LanguageModel(LlamaModel):
    """Qwen2's layers, whose positions have three axes."""

    config_class = Qwen2VLTextConfig
    inputs: ClassVar[Mapping[str, str]] = {**INPUTS, "mrope_position_ids": "max_positions"}

    def rotations(self, t: TextInputs) -> tuple[Array, Array]:
        """-> two of (B or 1, T, K / 2)."""
        at = t.mrope_position_ids
        if at is None:
            shift = 0 if t.cache is None else t.cache.shift
            return super().rotations(t._replace(context=t.context._replace(start=t.start + shift)))
        every, axes = self.rope.frequencies(t.length), self.config.axes
        # An angle is that of one axis: the cosines of the others are 1, and their sines 0.
        turns = [
            ops.rotary(at[:, :, i], tuple(f * (axis == i) for f, axis in zip(every, axes, strict=True)), 1.0, self.like)
            for i in range(3)
        ]
        (cos, sin), scale = turns[0], self.rope.scale
        for more_cos, more_sin in turns[1:]:
            cos, sin = cos * more_cos, sin + more_sin
        return (cos, sin) if scale == 1 else (cos * scale, sin * scale)


class Qwen2VLPretrained(ImageTextModel):
    config_class = Qwen2VLConfig
    name_map = NAME_MAP

    def token_grid(self, grid: tuple[int, int]) -> tuple[int, int]:
        m = self.config.vision_config.spatial_merge_size
        return grid[0] // m, grid[1] // m

    def image_length(self, grid: tuple[int, int]) -> int:
        rows, columns = self.token_grid(grid)
        return rows * columns


class Qwen2VLModel(Qwen2VLPretrained):
    """The encoder, the connector and the decoder's layers."""

    is_base_model = True
    tower_class: ClassVar[type[VisionTower]] = VisionTower
    connector_class: ClassVar[type[Any]] = Connector
    layers_class: ClassVar[type[Any]] = LanguageModel

    def __init__(self, w: Weights, cfg: Qwen2VLConfig):
        self.config = cfg
        self.vision_model = self.tower_class(w / "visual", cfg.vision_config)
        self.connector = self.connector_class(w / "visual.merger", cfg.vision_config)
        self.language_model = self.layers_class(w / "language_model", cfg.text_config)

    def forward(self, t: TextInputs, p: ImageInputs | None = None) -> Qwen2VLModelOutput:
        return Qwen2VLModelOutput(super().forward(t, p).last_hidden_state)


class Decoder(LlamaForCausalLM):
    """Qwen2 with its head, whose layers are those of the bare model."""

    config_class = Qwen2VLTextConfig
    inputs = LanguageModel.inputs

    def __init__(self, w: Weights, cfg: Qwen2VLConfig, base_model: LlamaModel):
        self.config, self.base_model = cfg.text_config, base_model
        sizes = cfg.text_config.hidden_size, cfg.text_config.vocab_size
        self.head = Linear(w / "lm_head", *sizes, bias=False, vocab=True)


class Qwen2VLForConditionalGeneration(ImageTextCausalLM, Qwen2VLPretrained):
    """Logits of the next token after images and text."""

    tied = TIED_WEIGHTS
    base_class: ClassVar[type[Qwen2VLModel]] = Qwen2VLModel
    decoder_class: ClassVar[type[Any]] = Decoder

    def __init__(self, w: Weights, cfg: Qwen2VLConfig):
        self.config, self.base_model = cfg, self.base_class(w / "model", cfg)
        self.language_model = self.decoder_class(w, cfg, self.base_model.language_model)
