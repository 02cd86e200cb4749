"""Qwen3-VL (Bai et al. 2025, https://arxiv.org/abs/2511.21631): Qwen2-VL with trained positions of patches in its image
encoder, a Qwen3, whose frequencies have the three axes in turn, and DeepStack (Meng et al. 2024,
https://arxiv.org/abs/2406.04334): what layers of the encoder make of an image is added to its tokens after the first
layers of the decoder.

Shapes: N images, h w patches, E width of the encoder, m spatial_merge_size, I = h w / m m tokens of an image, B rows,
T tokens, D width of the decoder, L deepstack_layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ... import ops
from ...inputs import ImageInputs, TextInputs
from ...nn import LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from ..llama3 import model as llama
from ..qwen2_vl import model as qwen2_vl
from ..qwen2_vl.model import EPS
from ..qwen3.model import Layer
from .config import Qwen3VLConfig, Qwen3VLTextConfig, Qwen3VLVisionConfig


class PatchEmbeddings(qwen2_vl.PatchEmbeddings):
    """With a bias, and trained positions, which are resized to the grid of an image."""

    def __init__(self, w: Weights, cfg: Qwen3VLVisionConfig):
        super().__init__(w, cfg)
        self.bias, self.side = w.get("patch_embed.proj.bias", (cfg.width,)), cfg.position_side
        self.position = w.get("pos_embed.weight", (cfg.num_position_embeddings, cfg.width))

    def __call__(self, p: ImageInputs) -> Array:
        """-> (N, h w, E)."""
        x = super().__call__(p) + self.bias
        square = self.position.reshape(1, self.side, self.side, x.shape[2])
        return x + ops.interpolate(square, p.grid, "bilinear corners").reshape(1, x.shape[1], x.shape[2])


class VisionLayer(qwen2_vl.VisionLayer):
    mlp_names = ("mlp.linear_fc1", "mlp.linear_fc2")


class Connector(Module):
    """m m neighbouring patches -> one vector of the decoder's width; the norm is that of patches, or of all m m."""

    norms_patches: ClassVar[bool] = True

    def __init__(self, w: Weights, cfg: Qwen3VLVisionConfig):
        self.factor, inner = cfg.spatial_merge_size, cfg.width * cfg.spatial_merge_size**2
        self.norm = LayerNorm(w / "norm", cfg.width if self.norms_patches else inner, EPS)
        self.up = Linear(w / "linear_fc1", inner, inner, act="gelu")
        self.down = Linear(w / "linear_fc2", inner, cfg.output_width)

    def __call__(self, x: Array, grid: tuple[int, int]) -> Array:
        """x (N, h w, E) -> (N, I, D)."""
        (N, count, E), m = x.shape, self.factor
        x = self.norm(x) if self.norms_patches else x
        squares = ops.windows(x.reshape(N, *grid, E), m).reshape(N, count // m**2, m * m * E)
        return self.down(self.up(squares if self.norms_patches else self.norm(squares)))


class StackConnector(Connector):
    norms_patches = False


class VisionTower(qwen2_vl.VisionTower):
    """The encoder."""

    config_class = Qwen3VLVisionConfig
    embeddings_class, layer_class = PatchEmbeddings, VisionLayer

    def __init__(self, w: Weights, cfg: Qwen3VLVisionConfig):
        super().__init__(w, cfg)
        self.stack_indexes = cfg.deepstack_visual_indexes
        self.mergers = [StackConnector(w / "deepstack_merger_list" / i, cfg) for i in range(len(self.stack_indexes))]

    def encode_stack(self, p: ImageInputs) -> tuple[Array, list[Array]]:
        """-> (N, h w, E), and L of (N, I, D) for the decoder's first layers."""
        x, cos_sin = self.embeddings(p), self.rotations(p.grid)
        stack: list[Array] = []
        for i, layer in enumerate(self.layers):
            x = layer(x, cos_sin)
            if i in self.stack_indexes:
                stack.append(self.mergers[self.stack_indexes.index(i)](x, p.grid))
        return x, stack

    def encode(self, p: ImageInputs) -> Array:
        """-> (N, h w, E)."""
        return self.encode_stack(p)[0]


class Embeddings(llama.Embeddings):
    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D), also of inputs_embeds (B, T, (1 + L) D)."""
        return super().__call__(t)[:, :, : self.word.shape[1]]


class LanguageModel(qwen2_vl.LanguageModel):
    """Qwen3's layers, after the first L of which what inputs_embeds have besides is added."""

    config_class = Qwen3VLTextConfig
    embeddings_class, layer_class = Embeddings, Layer
    inputs: ClassVar[Mapping[str, str]] = {**qwen2_vl.LanguageModel.inputs, "inputs_embeds": "embeds_width"}

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x, D = self.embeddings(t), self.config.hidden_size
        c = self.context(t, x)
        for i, (layer, cache) in enumerate(t.with_cache(self.layers)):
            x = layer(x, c, cache)
            if t.inputs_embeds is not None and i < self.config.deepstack_layers:
                x = x + t.inputs_embeds[:, :, (i + 1) * D : (i + 2) * D]
        return self.norm(x)


class Qwen3VLPretrained(qwen2_vl.Qwen2VLPretrained):
    config_class = Qwen3VLConfig

    def image_features(self, p: ImageInputs) -> Array:
        """-> (N, I, (1 + L) D): the vectors that the decoder reads, and those that its first layers add."""
        base = self.base_model
        x, stack = base.vision_model.encode_stack(p)
        return ops.cat([base.connector(x, p.grid), *stack], 2)

    def word_embeddings(self, t: TextInputs) -> Array:
        """-> (B, T, (1 + L) D); nothing is added to words."""
        x, cfg = self.embeddings(t), self.config.text_config
        return ops.cat([x, ops.zeros((*x.shape[:2], cfg.embeds_width - cfg.hidden_size), x)], 2)


class Qwen3VLModel(Qwen3VLPretrained, qwen2_vl.Qwen2VLModel):
    """The encoder, the connector and the decoder's layers."""

    tower_class, connector_class, layers_class = VisionTower, Connector, LanguageModel


class Decoder(qwen2_vl.Decoder):
    config_class = Qwen3VLTextConfig
    inputs = LanguageModel.inputs


class Qwen3VLForConditionalGeneration(Qwen3VLPretrained, qwen2_vl.Qwen2VLForConditionalGeneration):
    """Logits of the next token after images and text."""

    base_class = Qwen3VLModel
    decoder_class = Decoder
