"""SAM 2's encoder of images (Ravi et al. 2024, https://arxiv.org/abs/2408.00714): Hiera (Ryali et al. 2023,
https://arxiv.org/abs/2306.00989), in which attention within windows halves the map at each stage, and a pyramid of its
maps.

Shapes: N images, Y X patches of a map, S patches of a window or all, D width of a stage, H heads, K = D / H, C
fpn_hidden_size, h w the smallest map that is returned.
"""

from __future__ import annotations

from ... import ops
from ...inputs import ImageInputs, ImageModel
from ...nn import Conv2d, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from .config import Sam2HieraDetConfig, Sam2VisionConfig


def channels_last(table: Array) -> Array:
    """(1, D, Y, X) -> (1, Y, X, D)."""
    _, D, Y, X = table.shape
    at = ops.arange(Y * X, table)
    nothing = ops.zeros((Y * X, Y * X), table)
    return ops.linear(ops.where(at[:, None] == at[None], nothing + 1, nothing), table.reshape(D, -1)).reshape(
        1, Y, X, D
    )


class Embeddings(Module):
    """The patches, with positions in the image, resized, and in a window, repeated (Bolya et al. 2023,
    https://arxiv.org/abs/2311.05613).
    """

    def __init__(self, w: Weights, cfg: Sam2HieraDetConfig):
        D, window, self.mask = cfg.hidden_size, cfg.window_size_per_stage[0], None
        self.projection = Conv2d(w / "patch_embed.projection", cfg.num_channels, D, 7, stride=4, padding=3)
        self.position = w.get("pos_embed", (1, D, *cfg.pair("window_positional_embedding_background_size")))
        self.of_window = w.get("pos_embed_window", (1, D, window, window))

    def __call__(self, p: ImageInputs) -> Array:
        """-> (N, Y, X, D)."""
        x = self.projection(p.pixel_values)
        Y, X = x.shape[1:3]
        window = channels_last(self.of_window)
        row = ops.cat([window] * (X // window.shape[2]), 2)
        whole = ops.interpolate(channels_last(self.position), (Y, X), "bicubic")
        return x + (whole + ops.cat([row] * (Y // window.shape[1]), 1))


class VisionLayer(Module):
    """A layer of Hiera; the first of a stage is wider than what it reads, and halves the map."""

    def __init__(self, w: Weights, cfg: Sam2HieraDetConfig, block: int):
        stage, is_first = cfg.blocks[block]
        self.pools = is_first and stage > 0
        D, before = cfg.embed_dim_per_stage[stage], cfg.embed_dim_per_stage[stage - self.pools]
        window = cfg.window_size_per_stage[stage - self.pools]
        self.window = 0 if block in cfg.global_attention_blocks else window
        self.heads = cfg.num_attention_heads_per_stage[stage]
        self.attention_norm = LayerNorm(w / "layer_norm1", before, cfg.layer_norm_eps)
        self.qkv, self.out = Linear(w / "attn.qkv", before, 3 * D), Linear(w / "attn.proj", D, D)
        self.wider = Linear(w / "proj", before, D) if before != D else None
        self.mlp_norm = LayerNorm(w / "layer_norm2", D, cfg.layer_norm_eps)
        F = int(D * cfg.mlp_ratio)
        self.up, self.down = Linear(w / "mlp.proj_in", D, F, act=cfg.hidden_act), Linear(w / "mlp.proj_out", F, D)

    def __call__(self, x: Array) -> Array:
        """x (N, Y, X, D) -> (N, Y', X', D')."""
        y = self.attention_norm(x)
        grid = y.shape[1], y.shape[2]
        if self.wider is not None:
            x = self._pool(self.wider(y))
        if self.window:  # with zeros where the last ones are not full, which are attended to as patches are
            y = self._attend(ops.windows(y, self.window), (self.window, self.window))
            y = ops.from_windows(y, self.window // 2 if self.pools else self.window, (x.shape[1], x.shape[2]))
        else:
            y = self._attend(y.reshape(y.shape[0], -1, y.shape[3]), grid).reshape(*x.shape)
        y, x = self.mlp_norm.add(self.out(y), x)
        return self.down(self.up(y), residual=x)

    def _attend(self, x: Array, grid: tuple[int, int]) -> Array:
        """x (n, S, D) of a grid of patches -> (n, S', D')."""
        q, k, v = ops.split_heads(self.qkv(x), self.heads)
        if self.pools:
            pooled = self._pool(q.reshape(q.shape[0], *grid, -1))
            q = pooled.reshape(q.shape[0], -1, self.heads, q.shape[3])
        a = ops.attention(q, k, v)
        return a.reshape(a.shape[0], a.shape[1], -1)

    def _pool(self, x: Array) -> Array:
        return ops.max_pool2d(x, 2, 2) if self.pools else x


class VisionEncoder(ImageModel):
    config_class = Sam2VisionConfig

    def __init__(self, w: Weights, cfg: Sam2VisionConfig):
        self.config, of = cfg, cfg.backbone_config
        self.embeddings = Embeddings(w / "backbone", of)
        self.layers = [VisionLayer(w / "backbone.blocks" / i, of, i) for i in range(len(of.blocks))]
        C = cfg.fpn_hidden_size
        self.laterals = [Conv2d(w / "neck.convs" / i, D, C, 1) for i, D in enumerate(cfg.backbone_channel_list)]

    def encode(self, p: ImageInputs) -> list[Array]:
        """-> the maps (N, 4 h, 4 w, C), (N, 2 h, 2 w, C) and (N, h, w, C)."""
        x, maps = self.embeddings(p), list[Array]()
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if i in self.config.backbone_config.stage_ends:
                maps.insert(0, x)  # the smallest first
        found = list[Array]()
        for i, (lateral, x) in enumerate(zip(self.laterals, maps, strict=True)):
            y = lateral(x)
            if i and len(maps) - 1 - i in self.config.fpn_top_down_levels:
                y = y + ops.interpolate(found[0], (x.shape[1], x.shape[2]), "nearest")
            found.insert(0, y)
        return found[:3]
