"""ViT (Dosovitskiy et al. 2020, https://arxiv.org/abs/2010.11929): an image is cut into patches, which pre-norm layers
read as BERT's read tokens; and the heads trained on top of it.

Shapes: B batch, Y and X height and width in pixels, C channels, N = h w patches, T = N and the special tokens before
them, D hidden_size, F intermediate_size, H heads, L labels.  Images are (B, Y, X, C): channels come last.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ... import ops
from ...errors import InputError
from ...nn import Conv2d, LayerNorm, Linear, Memo, Module
from ...pretrained import Pretrained
from ...typing import Array
from ...weights import Layout, Weights
from .config import VisionConfig, ViTConfig

# Since version 5 transformers calls the layers' parts in memory otherwise than in its files.
LAYER_NAMES = {
    r"(^|\.)layers\.(\d+)\.": r"\1encoder.layer.\2.",
    r"\.attention\.q_proj\.": ".attention.attention.query.",
    r"\.attention\.k_proj\.": ".attention.attention.key.",
    r"\.attention\.v_proj\.": ".attention.attention.value.",
    r"\.attention\.o_proj\.": ".attention.output.dense.",
    r"\.mlp\.fc1\.": ".intermediate.dense.",
    r"\.mlp\.fc2\.": ".output.dense.",
}

BODY = ("embeddings", "encoder", "layernorm", "pooler")

LAYOUT = Layout(
    prefix="vit",
    body=BODY,
    renames=LAYER_NAMES,
    # They stay in files whose head no longer uses them.
    ignored=(r"^(vit\.)?pooler\.", r"(^|\.)embeddings\.mask_token$"),
)


class ViTModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, D)
    pooler_output: Array | None  # (B, pooler_output_size), None if the checkpoint has no pooler


class Positions(Module):
    """A vector for each special token, and one for each patch of a grid, which is resized for another grid."""

    def __init__(self, w: Weights, name: str, cfg: VisionConfig, special: int):
        self.grid, self.special = cfg.grid, special
        self.table = w.get(name, (1, special + cfg.grid[0] * cfg.grid[1], cfg.hidden_size))
        self._resized = Memo()

    def __call__(self, grid: tuple[int, int]) -> tuple[Array, Array]:
        """-> those of the special tokens (1, special, D) and of the patches (1, h w, D)."""
        return self.table[:, : self.special], self._resized(grid, lambda: self._patches(grid))

    def _patches(self, grid: tuple[int, int]) -> Array:
        # For the checkpoint's own grid this changes no number, but the order in memory to that of the patches.
        own = self.table[:, self.special :].reshape(1, *self.grid, -1)
        return ops.interpolate(own, grid, "bicubic").reshape(1, grid[0] * grid[1], -1)


class Embeddings(Module):
    """The special tokens, then the patches row by row, with their positions added."""

    tokens: tuple[str, ...] = ("cls_token",)

    def __init__(self, w: Weights, cfg: VisionConfig, mask_token: bool, positions: bool = True):
        D = cfg.hidden_size
        self.channels, self.patch, self.image = cfg.num_channels, cfg.patch, cfg.image
        self.special = [w.get(name, (1, 1, D)) for name in self.tokens]
        self.mask = w.get("mask_token", (1, 1, D)) if mask_token else None
        self.projection = Conv2d(w / "patch_embeddings.projection", cfg.num_channels, D, cfg.patch, stride=cfg.patch)
        self.positions = Positions(w, "position_embeddings", cfg, len(self.special)) if positions else None

    def grid(self, pixel_values: Array) -> tuple[int, int]:
        """How many patches images have, from top to bottom and from left to right."""
        return pixel_values.shape[1] // self.patch[0], pixel_values.shape[2] // self.patch[1]

    def pixels(self, pixel_values: Array, any_size: bool) -> Array:
        """Images as the projection takes them; refuses what is not one, or not of the size of the checkpoint's."""
        x = ops.as_pixels(pixel_values, self.projection.weight, self.channels)
        size = tuple(x.shape[1:3])
        if not any_size and size != self.image:
            raise InputError(
                f"pixel_values are {size[0]} x {size[1]}, the checkpoint's images {self.image[0]} x {self.image[1]}; "
                "interpolate_pos_encoding=True makes it take others"
            )
        if min(self.grid(x)) < 1:
            raise InputError(f"pixel_values are {size[0]} x {size[1]}, smaller than a patch, {self.patch}")
        return x

    def patches(self, x: Array, bool_masked_pos: Array | None) -> Array:
        """x (B, Y, X, C), bool_masked_pos (B, N) -> (B, N, D)."""
        B, N = len(x), self.grid(x)[0] * self.grid(x)[1]
        y = self.projection(x).reshape(B, N, -1)
        if bool_masked_pos is None:
            return y
        if self.mask is None:
            raise InputError("bool_masked_pos needs a checkpoint with a mask token, and this one has none")
        masked = ops.as_mask(bool_masked_pos, self.mask, "bool_masked_pos", (B, N))
        return ops.where(masked[:, :, None], self.mask, y)

    def __call__(self, pixel_values: Array, bool_masked_pos: Array | None, interpolate_pos_encoding: bool) -> Array:
        """pixel_values (B, Y, X, C), bool_masked_pos (B, N) -> (B, T, D)."""
        x = self.pixels(pixel_values, interpolate_pos_encoding)
        special, patches = ops.cat(self.special, 1), self.patches(x, bool_masked_pos)
        if self.positions is not None:
            first, rest = self.positions(self.grid(x))
            special, patches = special + first, patches + rest
        return ops.cat([ops.cat([special] * len(x), 0), patches], 1)


class Attention(Module):
    def __init__(self, w: Weights, cfg: ViTConfig):
        D = cfg.hidden_size
        self.heads = cfg.num_attention_heads
        self.qkv = Linear.fused(w / "attention", ["query", "key", "value"], D, [D, D, D], bias=cfg.qkv_bias)
        self.out = Linear(w / "output.dense", D, D)

    def __call__(self, x: Array) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        q, k, v = ops.split_heads(self.qkv(x), self.heads)
        return self.out(ops.attention(q, k, v).reshape(x.shape))


class Layer(Module):
    def __init__(self, w: Weights, cfg: ViTConfig):
        D, F = cfg.hidden_size, cfg.intermediate_size
        self.norm_before = LayerNorm(w / "layernorm_before", D, cfg.layer_norm_eps)
        self.attention = Attention(w / "attention", cfg)
        self.norm_after = LayerNorm(w / "layernorm_after", D, cfg.layer_norm_eps)
        self.up = Linear(w / "intermediate.dense", D, F, act=cfg.hidden_act)
        self.down = Linear(w / "output.dense", F, D)

    def __call__(self, x: Array) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        y, x = self.norm_after.add(self.attention(self.norm_before(x)), x)
        return self.down(self.up(y), residual=x)


class ViTPretrained(Pretrained):
    config_class = ViTConfig
    layout = LAYOUT


class ViTModel(ViTPretrained):
    """The stack, and of its output a summary: the pooler's act(dense(class token)), if the checkpoint has one.

    pooler, mask_token: whether it must be there (True), is left out (False), or is taken if it is there (None).
    """

    is_body = True
    layout = replace(LAYOUT, ignored=(*LAYOUT.ignored, r"^classifier\.", r"^decoder\."))
    embeddings_class = Embeddings

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

    def __call__(
        self,
        pixel_values: Array,
        bool_masked_pos: Array | None = None,
        interpolate_pos_encoding: bool = False,
    ) -> ViTModelOutput:
        """pixel_values (B, Y, X, C) floats, bool_masked_pos (B, N), true for a patch to hide -> states of every token.

        interpolate_pos_encoding: take images of any size, for which the positions are resized.
        """
        x = self.embeddings(pixel_values, bool_masked_pos, interpolate_pos_encoding)
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        return ViTModelOutput(x, None if self.pooler is None else self.pooler(x[:, 0]))


class PixelDecoder(Module):
    """Patches back to pixels: encoder_stride x encoder_stride of them for each patch."""

    def __init__(self, w: Weights, cfg: ViTConfig):
        self.stride = cfg.encoder_stride
        self.conv = Conv2d(w / 0, cfg.hidden_size, self.stride**2 * cfg.num_channels, 1)

    def __call__(self, x: Array, grid: tuple[int, int]) -> Array:
        """x (B, N, D), N = h w -> (B, h stride, w stride, C)."""
        return ops.pixel_shuffle(self.conv(x.reshape(len(x), *grid, -1)), self.stride)


class ViTForImageClassification(ViTPretrained):
    def __init__(self, w: Weights, cfg: ViTConfig):
        self.config = cfg
        self.body = ViTModel(w / "vit", cfg, pooler=False)
        self.classifier = Linear(w / "classifier", cfg.hidden_size, cfg.num_labels)

    def __call__(self, pixel_values: Array, interpolate_pos_encoding: bool = False) -> Array:
        """pixel_values (B, Y, X, C) -> logits (B, L)."""
        x = self.body(pixel_values, interpolate_pos_encoding=interpolate_pos_encoding).last_hidden_state
        return self.classifier(x[:, 0])


class ViTForMaskedImageModeling(ViTPretrained):
    """SimMIM (Xie et al. 2021, https://arxiv.org/abs/2111.09886)."""

    def __init__(self, w: Weights, cfg: ViTConfig):
        self.config = cfg
        self.body = ViTModel(w / "vit", cfg, pooler=False, mask_token=True)
        self.decoder = PixelDecoder(w / "decoder", cfg)

    def __call__(
        self,
        pixel_values: Array,
        bool_masked_pos: Array | None = None,
        interpolate_pos_encoding: bool = False,
    ) -> Array:
        """pixel_values (B, Y, X, C), bool_masked_pos (B, N) -> the reconstruction (B, Y, X, C)."""
        x = self.body(pixel_values, bool_masked_pos, interpolate_pos_encoding).last_hidden_state
        return self.decoder(x[:, 1:], self.body.embeddings.grid(pixel_values))
