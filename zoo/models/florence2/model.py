"""Florence-2 (Xiao et al. 2023, https://arxiv.org/abs/2311.06242): DaViT (Ding et al. 2022,
https://arxiv.org/abs/2204.03645) reads an image, BART's encoder its vectors and a question, and BART's decoder answers,
with places as tokens.

A block of DaViT attends within windows of patches, and then between channels, whose features are all patches.

Shapes: C images and texts, T tokens, h and w rows and columns of a stage, N = h w, E its width, n windows of s s
patches, H heads or groups of channels, I = N + 1 vectors of an image, D d_model, V vocab_size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import ops
from ...errors import InputError
from ...inputs import ImageInputs, ImageModel, TextInputs
from ...inputs.image_text_encoder import ImageTextToText
from ...nn import Conv2d, DepthwiseConv2d, Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..bart import model as bart
from .config import Florence2Config, Florence2VisionConfig

EPS = 1e-5
NAME_MAP = NameMap(prefix="model", base=(), ignored=(r"^model\.language_model\.shared\.weight$", r"^lm_head\."))
LANGUAGE = "model.language_model"
TIED_WEIGHTS = dict.fromkeys(
    ("lm_head.weight", *(f"{LANGUAGE}.{side}.embed_tokens.weight" for side in ("encoder", "decoder"))),
    f"{LANGUAGE}.shared.weight",
)


class PatchMerging(Module):
    """A convolution makes fewer patches, with a norm before or after it."""

    def __init__(self, w: Weights, cfg: Florence2VisionConfig, i: int):
        before, E = cfg.in_channels if i == 0 else cfg.embed_dim[i - 1], cfg.embed_dim[i]
        self.norms_first = cfg.patch_prenorm[i]
        self.conv = Conv2d(w / "conv", before, E, cfg.patch_size[i], cfg.patch_stride[i], cfg.patch_padding[i])
        self.norm = LayerNorm(w / "norm", before if self.norms_first else E, EPS)

    def __call__(self, x: Array) -> Array:
        """x (C, h, w, E) of the stage before -> (C, h, w, E) of this one."""
        return self.conv(self.norm(x)) if self.norms_first else self.norm(self.conv(x))


class WindowAttention(Module):
    def __init__(self, w: Weights, cfg: Florence2VisionConfig, i: int):
        E, self.size, self.heads = cfg.embed_dim[i], cfg.window_size, cfg.num_heads[i]
        self.qkv, self.out = Linear(w / "qkv", E, 3 * E, bias=cfg.qkv_bias), Linear(w / "proj", E, E)

    def __call__(self, x: Array) -> Array:
        """x (C, h, w, E) -> (C, h, w, E)."""
        cut = ops.windows(x, self.size)  # patches that fill windows up take part in the attention
        q, k, v = ops.split_heads(self.qkv(cut), self.heads)
        y = self.out(ops.attention(q, k, v).reshape(cut.shape))
        return ops.from_windows(y, self.size, (x.shape[1], x.shape[2]))


class ChannelAttention(Module):
    def __init__(self, w: Weights, cfg: Florence2VisionConfig, i: int):
        E, self.groups = cfg.embed_dim[i], cfg.num_groups[i]
        self.qkv, self.out = Linear(w / "qkv", E, 3 * E, bias=cfg.qkv_bias), Linear(w / "proj", E, E)

    def __call__(self, x: Array) -> Array:
        """x (C, h, w, E) -> (C, h, w, E)."""
        flat = x.reshape(x.shape[0], -1, x.shape[3])
        q, k, v = ops.split_heads(self.qkv(flat), self.groups)
        return self.out(ops.channel_attention(q, k, v).reshape(flat.shape)).reshape(x.shape)


class HalfBlock(Module):
    """An attention and an MLP, with the neighbours of each patch added before both."""

    def __init__(
        self, w: Weights, cfg: Florence2VisionConfig, i: int, attention: Callable[[Array], Array], drop_path: float
    ):
        E, F = cfg.embed_dim[i], int(cfg.embed_dim[i] * cfg.mlp_ratio)
        self.attention, self.drop_path = attention, Dropout(drop_path, of_rows=True)
        self.conv1, self.conv2 = DepthwiseConv2d(w / "conv1", E, 3), DepthwiseConv2d(w / "conv2", E, 3)
        self.norm1, self.norm2 = LayerNorm(w / "norm1", E, EPS), LayerNorm(w / "norm2", E, EPS)
        self.up, self.down = Linear(w / "ffn.fc1", E, F, act=cfg.activation_function), Linear(w / "ffn.fc2", F, E)

    def __call__(self, x: Array) -> Array:
        """x (C, h, w, E) -> (C, h, w, E)."""
        x = self.conv1(x) + x
        x = x + self.drop_path(self.attention(self.norm1(x)))
        x = self.conv2(x) + x
        return x + self.drop_path(self.down(self.up(self.norm2(x))))


class DaViT(ImageModel):
    config_class = Florence2VisionConfig
    name_map = NAME_MAP
    any_size = True

    def __init__(self, w: Weights, cfg: Florence2VisionConfig):
        self.config = cfg
        self.convs = [PatchMerging(w / "convs" / i, cfg, i) for i in range(len(cfg.depths))]
        self.blocks: list[list[HalfBlock]] = []
        step, before = cfg.drop_path_rate / max(2 * sum(cfg.depths) - 1, 1), 0
        for i, depth in enumerate(cfg.depths):
            halves = list[HalfBlock]()
            for j in range(depth):
                at, rate = w / "blocks" / i / j, step * (before + 2 * j)
                spatial, channel = at / "spatial_block", at / "channel_block"
                halves.append(HalfBlock(spatial, cfg, i, WindowAttention(spatial / "window_attn", cfg, i), rate))
                attention = ChannelAttention(channel / "channel_attn", cfg, i)
                halves.append(HalfBlock(channel, cfg, i, attention, rate + step))
            self.blocks.append(halves)
            before += 2 * depth

    def nearest_size(self, size: tuple[int, int]) -> tuple[int, int]:
        """Any size will do."""
        return size

    def grid(self, pixel_values: Array) -> tuple[int, int]:
        """Rows and columns of the last stage."""
        height, width = pixel_values.shape[1:3]
        found, most = self.config.grid_of(height, width), self.config.max_position_embeddings
        if min(found) < 1 or max(found) > most:
            raise InputError(
                f"an image of {height} x {width} has {found[0]} x {found[1]} patches, expected 1 ... {most}"
            )
        return found

    def encode(self, p: ImageInputs) -> Array:
        """-> (C, N, E) of the last stage."""
        x = p.pixel_values
        for conv, halves in zip(self.convs, self.blocks, strict=True):
            x = conv(x)
            for half in halves:
                x = half(x)
        return x.reshape(x.shape[0], -1, x.shape[3])


class Projector(Module):
    """The vectors that BART reads: the mean of all patches, and each patch, with learned positions."""

    fixed = ("time",)

    def __init__(self, w: Weights, cfg: Florence2VisionConfig):
        E, D, most = cfg.embed_dim[-1], cfg.projection_dim, cfg.max_position_embeddings
        self.rows = w.get("image_position_embed.row_embeddings.weight", (most, E // 2))
        self.columns = w.get("image_position_embed.column_embeddings.weight", (most, E - E // 2))
        self.time = w.get("visual_temporal_embed.pos_idx_to_embed", (cfg.max_temporal_embeddings, E))
        self.projection = Linear(w / "image_projection", E, D, bias=False)
        self.norm = LayerNorm(w / "image_proj_norm", D, EPS)

    def __call__(self, x: Array, grid: tuple[int, int]) -> Array:
        """x (C, N, E) -> (C, I, D)."""
        at = ops.arange(grid[0] * grid[1], self.rows)
        columns, rows = (ops.embedding(i, t) for i, t in ((at % grid[1], self.columns), (at // grid[1], self.rows)))
        x = x + ops.cat([columns, rows], 1) + self.time[:1]
        return self.norm(self.projection(ops.cat([ops.mean(x, 1)[:, None], x], 1)))


class Encoder(bart.Encoder):
    """BART's, whose words are those of the table that both sides share, whatever its own."""

    def __init__(self, w: Weights, cfg: Any):
        super().__init__(w, cfg)
        self.own_words = self.embeddings.word  # which transformers has, too, and does not read
        self.embeddings.word = w.embedding("shared.weight", cfg.vocab_size, cfg.d_model)


class Decoder(bart.Decoder):
    def __init__(self, w: Weights, cfg: Any):
        self.config = cfg
        self.base_model = bart.DecoderStack(w / LANGUAGE, cfg)
        self.head = Linear(w / "lm_head", cfg.d_model, cfg.vocab_size, bias=False, vocab=True)


class Florence2ForConditionalGeneration(ImageTextToText):
    """An encoder of an image and a text, in which each token `image_token_id` is the place of a vector."""

    config_class = Florence2Config
    name_map = NAME_MAP
    tied = TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: Florence2Config):
        self.config = cfg
        self.vision_model = DaViT(w / "model.vision_tower", cfg.vision_config)
        self.connector = Projector(w / "model.multi_modal_projector", cfg.vision_config)
        self.encoder = Encoder(w / LANGUAGE, cfg.text_config)
        self.decoder = Decoder(w, cfg.text_config)

    def image_length(self, grid: tuple[int, int]) -> int:
        """I: the number of tokens of an image."""
        return grid[0] * grid[1] + 1

    def image_features(self, p: ImageInputs) -> Array:
        """-> (C, I, D)."""
        return self.connector(self.vision_model.encode(p), p.grid)

    def word_embeddings(self, t: TextInputs) -> Array:
        """-> (C, T, D), the vectors of words, without positions."""
        return self.encoder.embeddings.words(t)
