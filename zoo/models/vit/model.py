"""ViT (Dosovitskiy et al. 2020, https://arxiv.org/abs/2010.11929): an image is cut into patches, which pre-norm layers
read as BERT's read tokens; and the heads trained on top of it.

Shapes: B batch, Y and X height and width in pixels, C channels, N = h w patches, T = N + the prefix tokens,
D hidden_size, F intermediate_size, H heads, L labels.  Images are (B, Y, X, C): channels come last.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, NamedTuple

from ... import ops
from ...inputs import ImageInputs, ImageModel
from ...nn import CacheLast, Conv2d, Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from .config import VisionConfig, ViTConfig

# Since version 5 transformers has other names for the layers' parts in memory than in its files.
LAYER_NAMES = {
    r"(^|\.)layers\.(\d+)\.": r"\1encoder.layer.\2.",
    r"\.attention\.q_proj\.": ".attention.attention.query.",
    r"\.attention\.k_proj\.": ".attention.attention.key.",
    r"\.attention\.v_proj\.": ".attention.attention.value.",
    r"\.attention\.o_proj\.": ".attention.output.dense.",
    r"\.mlp\.fc1\.": ".intermediate.dense.",
    r"\.mlp\.fc2\.": ".output.dense.",
}

BASE = ("embeddings", "encoder", "layernorm", "pooler")

NAME_MAP = NameMap(
    prefix="vit",
    base=BASE,
    renames=LAYER_NAMES,
    # Files keep them after another head was trained.
    ignored=(r"^(vit\.)?pooler\.", r"(^|\.)embeddings\.mask_token$"),
)


class ViTModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, D)
    pooler_output: Array | None  # (B, pooler_output_size), None if the checkpoint has no pooler


class Positions(Module):
    """A vector for each prefix token and for each patch of a grid; those of patches are resized for another grid."""

    def __init__(self, w: Weights, name: str, cfg: VisionConfig, prefix_tokens: int):
        self.grid, self.prefix_tokens = cfg.grid, prefix_tokens
        self.table = w.get(name, (1, prefix_tokens + cfg.grid[0] * cfg.grid[1], cfg.hidden_size))
        self._resized = CacheLast()

    def __call__(self, grid: tuple[int, int]) -> tuple[Array, Array]:
        """-> positions of the prefix tokens (1, prefix_tokens, D) and of the patches (1, h w, D)."""
        return self.table[:, : self.prefix_tokens], self._resized(grid, lambda: self._patches(grid))

    def _patches(self, grid: tuple[int, int]) -> Array:
        # For the checkpoint's own grid this changes only the order in memory.
        own = self.table[:, self.prefix_tokens :].reshape(1, *self.grid, -1)
        return ops.interpolate(own, grid, "bicubic").reshape(1, grid[0] * grid[1], -1)


class Embeddings(Module):
    """The prefix tokens (class, ...), then the patches row by row, with their positions added."""

    def __init__(self, w: Weights, cfg: VisionConfig, mask_token: bool, positions: bool = True):
        D = cfg.hidden_size
        self.prefix_tokens = [w.get(name, (1, 1, D)) for name in cfg.prefix_tokens]
        self.mask = w.get("mask_token", (1, 1, D)) if mask_token else None
        self.projection = Conv2d(w / "patch_embeddings.projection", cfg.num_channels, D, cfg.patch, stride=cfg.patch)
        self.positions = Positions(w, "position_embeddings", cfg, len(self.prefix_tokens)) if positions else None
        self.dropout = Dropout(cfg.hidden_dropout_prob)

    def patches(self, p: ImageInputs) -> Array:
        """-> (B, N, D)."""
        y = self.projection(p.pixel_values)
        y = y.reshape(y.shape[0], -1, y.shape[3])
        if p.bool_masked_pos is None or self.mask is None:
            return y
        return ops.where(p.bool_masked_pos[:, :, None], self.mask, y)

    def __call__(self, p: ImageInputs) -> Array:
        """-> (B, T, D)."""
        prefix, patches = ops.cat(self.prefix_tokens, 1), self.patches(p)
        if self.positions is not None:
            of_prefix, of_patches = self.positions(p.grid)
            prefix, patches = prefix + of_prefix, patches + of_patches
        return self.dropout(ops.cat([ops.cat([prefix] * patches.shape[0], 0), patches], 1))


class Attention(Module):
    def __init__(self, w: Weights, cfg: ViTConfig):
        D = cfg.hidden_size
        self.heads = cfg.num_attention_heads
        self.qkv = Linear.fuse(w / "attention", ["query", "key", "value"], D, [D, D, D], bias=cfg.qkv_bias)
        self.dropout = Dropout(cfg.attention_probs_dropout_prob)
        self.out = Linear(w / "output.dense", D, D, dropout=cfg.hidden_dropout_prob)

    def __call__(self, x: Array) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        q, k, v = ops.split_heads(self.qkv(x), self.heads)
        return self.out(ops.attention(q, k, v, dropout=self.dropout.rate).reshape(x.shape))


class Layer(Module):
    def __init__(self, w: Weights, cfg: ViTConfig):
        D, F = cfg.hidden_size, cfg.intermediate_size
        self.attention_norm = LayerNorm(w / "layernorm_before", D, cfg.layer_norm_eps)
        self.attention = Attention(w / "attention", cfg)
        self.mlp_norm = LayerNorm(w / "layernorm_after", D, cfg.layer_norm_eps)
        self.up = Linear(w / "intermediate.dense", D, F, act=cfg.hidden_act)
        self.down = Linear(w / "output.dense", F, D, dropout=cfg.hidden_dropout_prob)

    def __call__(self, x: Array) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        y, x = self.mlp_norm.add(self.attention(self.attention_norm(x)), x)
        return self.down(self.up(y), residual=x)


class ViTPretrained(ImageModel):
    config_class = ViTConfig
    name_map = NAME_MAP
    inputs = ("interpolate_pos_encoding",)


class ViTModel(ViTPretrained):
    """The layers, and the pooler's act(dense(class token)) if the checkpoint has one.

    pooler, mask_token: True if it is required, False to leave it out, None to take it if it is there.
    """

    is_base_model = True
    inputs = ("bool_masked_pos", "interpolate_pos_encoding")
    embeddings_class: ClassVar[type[Embeddings]] = Embeddings
    name_map = replace(NAME_MAP, ignored=(*NAME_MAP.ignored, r"^classifier\.", r"^decoder\."))

    def __init__(self, w: Weights, cfg: ViTConfig, pooler: bool | None = None, mask_token: bool | None = None):
        D = cfg.hidden_size
        self.config = cfg
        if mask_token is None:
            mask_token = "embeddings.mask_token" in w
        self.embeddings = self.embeddings_class(w / "embeddings", cfg, mask_token)
        self.layers = [Layer(w / "encoder.layer" / i, cfg) for i in range(cfg.num_hidden_layers)]
        self.norm = LayerNorm(w / "layernorm", D, cfg.layer_norm_eps)
        if pooler is None:
            pooler = "pooler" in w
        self.pooler = Linear(w / "pooler.dense", D, cfg.pooler_size, act=cfg.pooler_act) if pooler else None

    def encode(self, p: ImageInputs) -> Array:
        """-> (B, T, D) of every token."""
        x = self.embeddings(p)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)

    def forward(self, p: ImageInputs) -> ViTModelOutput:
        x = self.encode(p)
        return ViTModelOutput(x, None if self.pooler is None else self.pooler(x[:, 0]))


class ViTHead(ViTPretrained):
    """The base of the classes with a head: the base model under its name in the checkpoint."""

    base_class: ClassVar[type[ViTModel]] = ViTModel

    def __init__(self, w: Weights, cfg: ViTConfig, mask_token: bool | None = None):
        self.config = cfg
        self.base_model = self.base_class(w / self.name_map.prefix, cfg, pooler=False, mask_token=mask_token)


class PixelDecoder(Module):
    """Patches back to pixels: encoder_stride x encoder_stride of them for each patch."""

    def __init__(self, w: Weights, cfg: ViTConfig):
        self.stride = cfg.encoder_stride
        self.conv = Conv2d(w / 0, cfg.hidden_size, self.stride**2 * cfg.num_channels, 1)

    def __call__(self, x: Array, grid: tuple[int, int]) -> Array:
        """x (B, N, D), N = h w -> (B, h stride, w stride, C)."""
        return ops.pixel_shuffle(self.conv(x.reshape(x.shape[0], *grid, -1)), self.stride)


class ViTForImageClassification(ViTHead):
    def __init__(self, w: Weights, cfg: ViTConfig):
        super().__init__(w, cfg)
        self.classifier = Linear(w / "classifier", cfg.hidden_size, cfg.num_labels)

    def forward(self, p: ImageInputs) -> Array:
        """-> logits (B, L)."""
        return self.classifier(self.base_model.encode(p)[:, 0])


class ViTForMaskedImageModeling(ViTHead):
    """SimMIM (Xie et al. 2021, https://arxiv.org/abs/2111.09886)."""

    inputs = ViTModel.inputs

    def __init__(self, w: Weights, cfg: ViTConfig):
        super().__init__(w, cfg, mask_token=True)
        self.decoder = PixelDecoder(w / "decoder", cfg)

    def forward(self, p: ImageInputs) -> Array:
        """-> the reconstruction (B, Y, X, C)."""
        return self.decoder(self.base_model.encode(p)[:, len(self.base_model.embeddings.prefix_tokens) :], p.grid)
