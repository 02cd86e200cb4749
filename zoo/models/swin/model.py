"""Swin (Liu et al. 2021, https://arxiv.org/abs/2103.14030): layers in stages, each of which sees half as many rows and
columns as the one before; in a layer a patch sees its window alone, and in every other layer the windows are shifted.

An image may have any size: zeros are added to it where it is no whole number of patches, and of windows in each stage.

Shapes: B batch, Y and X height and width in pixels, N = h w patches of a stage, D its width, n windows of T = s s
patches, s window_size, H heads, L labels.  Images are (B, Y, X, C): channels come last.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

from ... import ops
from ...errors import InputError
from ...inputs import ImageInputs, ImageModel
from ...nn import CacheLast, Conv2d, Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from .config import SwinConfig

Grid = tuple[int, int]  # h, w

# Since version 5 transformers has other names for the layers' parts in memory than in its files.
MEMORY_NAMES = {
    r"\.attention\.q_proj\.": ".attention.self.query.",
    r"\.attention\.k_proj\.": ".attention.self.key.",
    r"\.attention\.v_proj\.": ".attention.self.value.",
    r"\.attention\.o_proj\.": ".attention.output.dense.",
    r"\.attention\.relative_position_bias\.": ".attention.self.",
    r"\.mlp\.fc1\.": ".intermediate.dense.",
    r"\.mlp\.fc2\.": ".output.dense.",
}
NAME_MAP = NameMap(
    prefix="swin",
    base=("embeddings", "encoder", "layernorm"),
    renames=MEMORY_NAMES,
    ignored=(r"\.relative_position_index$", r"(^|\.)embeddings\.mask_token$"),  # an index that follows from the sizes
)

EPS = 1e-5  # the norms' before the stages and between them, whatever layer_norm_eps says
MASK_BIAS = -100.0  # added to the score of a patch that the shift has brought from the other side
CACHED_BIAS = 1 << 22  # elements: a larger bias is computed again for the next image of its size


class SwinModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, N, D)
    pooler_output: Array  # (B, D)


class Embeddings(Module):
    def __init__(self, w: Weights, cfg: SwinConfig, mask_token: bool):
        D, self.patch = cfg.embed_dim, cfg.patch
        self.prefix_tokens: list[Array] = []
        self.projection = Conv2d(w / "patch_embeddings.projection", cfg.num_channels, D, cfg.patch, stride=cfg.patch)
        self.norm = LayerNorm(w / "norm", D, EPS)
        self.mask = w.get("mask_token", (1, 1, D)) if mask_token else None
        self.dropout = Dropout(cfg.hidden_dropout_prob)

    def __call__(self, p: ImageInputs) -> Array:
        """-> (B, N, D)."""
        x = p.pixel_values
        (B, Y, X, C), (py, px) = x.shape, self.patch
        if Y % py:
            x = ops.cat([x, ops.zeros((B, py - Y % py, X, C), x)], 1)
        if X % px:
            x = ops.cat([x, ops.zeros((B, x.shape[1], px - X % px, C), x)], 2)
        x = self.projection(x)
        x = self.norm(x.reshape(B, -1, x.shape[3]))
        if p.bool_masked_pos is not None and self.mask is not None:
            x = ops.where(p.bool_masked_pos[:, :, None], self.mask, x)
        return self.dropout(x)


class Attention(Module):
    """Attention within windows, by the distance of patches too; shift: of the windows, in patches."""

    mask_bias: ClassVar[float] = MASK_BIAS

    def __init__(self, w: Weights, cfg: SwinConfig, D: int, heads: int, shift: int):
        s = cfg.window_size
        self.heads, self.size, self.shift = heads, s, shift
        self.always = False  # whether windows are shifted, and filled up, in images of any size: in a backbone
        self.qkv = Linear.fuse(w / "self", ["query", "key", "value"], D, [D, D, D], bias=cfg.qkv_bias)
        self.table = w.get("self.relative_position_bias_table", ((2 * s - 1) ** 2, heads))
        self.dropout = Dropout(cfg.attention_probs_dropout_prob)
        self.out = Linear(w / "output.dense", D, D, dropout=cfg.hidden_dropout_prob)
        self._bias = CacheLast(CACHED_BIAS)

    def __call__(self, x: Array, grid: Grid) -> Array:
        """x (B, N, D) -> (B, N, D)."""
        B, s = x.shape[0], self.size
        if not self.always and any(n < s for n in grid):
            raise InputError(
                f"a stage has {grid[0]} x {grid[1]} patches, less than a window, {s}: the image is too small"
            )
        shift = (
            self.shift if self.always or all(n > s for n in grid) else 0
        )  # a single window has nothing to be shifted to
        cut = ops.windows(x.reshape(B, *grid, -1), s, shift)
        bias = self._bias(grid, lambda: self.bias(grid, shift))
        if shift:
            bias = ops.cat([bias] * B, 0)
        return ops.from_windows(self.out(self.attend(cut, bias)), s, grid, shift).reshape(x.shape)

    def attend(self, x: Array, bias: Array) -> Array:
        """x (B n, T, D), bias (1 or B n, H, T, T) -> (B n, T, D)."""
        q, k, v = ops.split_heads(self.qkv(x), self.heads)
        return ops.attention(q, k, v, bias=bias, dropout=self.dropout.rate).reshape(x.shape)

    def bias_table(self) -> Array:
        """The bias of each distance of two patches of a window ((2 s - 1)^2, H)."""
        return self.table

    def bias(self, grid: Grid, shift: int) -> Array:
        """-> (1 or n, H, T, T)."""
        s, table = self.size, self.bias_table()
        patch = ops.arange(s * s, table)
        y, x = patch // s, patch % s
        index = (y[:, None] - y[None] + (s - 1)) * (2 * s - 1) + x[:, None] - x[None] + (s - 1)
        bias = ops.gather_bias(table, index)
        if not shift:
            return bias
        # Along an axis: 1 from where the last window begins, 2 from where it has what came from the other side.
        sides = [(n + s - 1) // s * s for n in grid]
        y, x = ((at + s) // n + (at + shift) // n for n in sides for at in [ops.arange(n, table)])
        region = ops.windows((3 * y[:, None] + x[None])[None, :, :, None], s)[:, :, 0]
        return ops.where((region[:, :, None] != region[:, None])[:, None], bias + self.mask_bias, bias)


class Layer(Module):
    """drop_path: the share of images for which training skips the attention."""

    def __init__(self, w: Weights, cfg: SwinConfig, D: int, heads: int, shift: int, drop_path: float):
        F = int(cfg.mlp_ratio * D)
        self.attention_norm = LayerNorm(w / "layernorm_before", D, cfg.layer_norm_eps)
        self.attention = Attention(w / "attention", cfg, D, heads, shift)
        self.drop_path = Dropout(drop_path, of_rows=True)
        self.mlp_norm = LayerNorm(w / "layernorm_after", D, cfg.layer_norm_eps)
        self.up = Linear(w / "intermediate.dense", D, F, act=cfg.hidden_act)
        self.down = Linear(w / "output.dense", F, D, dropout=cfg.hidden_dropout_prob)

    def __call__(self, x: Array, grid: Grid) -> Array:
        """x (B, N, D) -> (B, N, D)."""
        y, x = self.mlp_norm.add(self.drop_path(self.attention(self.attention_norm(x), grid)), x)
        return self.down(self.up(y), residual=x)


class Merging(Module):
    """Four patches become one, of twice the width."""

    def __init__(self, w: Weights, D: int):
        self.norm = LayerNorm(w / "norm", 4 * D, EPS)
        self.reduction = Linear(w / "reduction", 4 * D, 2 * D, bias=False)

    def __call__(self, x: Array, grid: Grid) -> Array:
        """x (B, N, D) -> (B, N / 4, 2 D)."""
        B = x.shape[0]
        fours = ops.windows(x.reshape(B, *grid, -1), 2)
        down_first = ops.cat([fours[:, i] for i in (0, 2, 1, 3)], 1)
        return self.reduce(down_first).reshape(B, -1, 2 * x.shape[2])

    def reduce(self, x: Array) -> Array:
        """x (..., 4 D) -> (..., 2 D)."""
        return self.reduction(self.norm(x))


class Stage(Module):
    def __init__(self, w: Weights, cfg: SwinConfig, i: int):
        D, depth, before = cfg.embed_dim * 2**i, cfg.depths[i], sum(cfg.depths[:i])
        step = cfg.drop_path_rate / max(sum(cfg.depths) - 1, 1)
        self.blocks = [
            Layer(w / "blocks" / j, cfg, D, cfg.num_heads[i], j % 2 * (cfg.window_size // 2), step * (before + j))
            for j in range(depth)
        ]
        self.downsample = Merging(w / "downsample", D) if i + 1 < len(cfg.depths) else None

    def __call__(self, x: Array, grid: Grid) -> tuple[Array, Array]:
        """x (B, N, D) -> (B, N / 4, 2 D) for the next stage, or of the last (B, N, D); and (B, N, D) before merging."""
        for block in self.blocks:
            x = block(x, grid)
        return (x if self.downsample is None else self.downsample(x, grid)), x


class SwinPretrained(ImageModel):
    config_class = SwinConfig
    name_map = NAME_MAP
    any_size = True

    @property
    def like(self) -> Array:
        return self.base_model.embeddings.projection.weight

    def grid(self, pixel_values: Array) -> Grid:
        """Rows and columns of patches, the last of which may be filled up with zeros."""
        h, w = ((n + p - 1) // p for n, p in zip(pixel_values.shape[1:3], self.patch, strict=True))
        return h, w


class SwinModel(SwinPretrained):
    is_base_model = True
    name_map = replace(NAME_MAP, ignored=(*NAME_MAP.ignored, r"^classifier\.", r"^decoder\."))
    stage_class: ClassVar[type[Any]] = Stage

    def __init__(self, w: Weights, cfg: SwinConfig, mask_token: bool = False, normed: bool = True):
        self.config = cfg
        self.embeddings = Embeddings(w / "embeddings", cfg, mask_token)
        self.layers = [self.stage_class(w / "encoder.layers" / i, cfg, i) for i in range(len(cfg.depths))]
        self.norm = LayerNorm(w / "layernorm", cfg.hidden_size, cfg.layer_norm_eps) if normed else None

    def last_grid(self, grid: Grid) -> Grid:
        """Rows and columns in the last stage."""
        h, w = grid
        for _ in self.layers[1:]:
            h, w = (h + 1) // 2, (w + 1) // 2
        return h, w

    def encode(self, p: ImageInputs) -> Array:
        """-> (B, N, D) of the last stage."""
        x, (h, w) = self.embeddings(p), p.grid
        for stage in self.layers:
            x, _ = stage(x, (h, w))
            h, w = (h + 1) // 2, (w + 1) // 2
        return x if self.norm is None else self.norm(x)

    def forward(self, p: ImageInputs) -> SwinModelOutput:
        x = self.encode(p)
        return SwinModelOutput(x, ops.mean(x, 1))


class SwinForImageClassification(SwinPretrained):
    def __init__(self, w: Weights, cfg: SwinConfig):
        self.config = cfg
        self.base_model = SwinModel(w / "swin", cfg)
        self.classifier = Linear(w / "classifier", cfg.hidden_size, cfg.num_labels)

    def forward(self, p: ImageInputs) -> Array:
        """-> logits (B, L)."""
        return self.classifier(ops.mean(self.base_model.encode(p), 1))
