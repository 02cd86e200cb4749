"""SAM's encoder of images (Kirillov et al. 2023, https://arxiv.org/abs/2304.02643): a ViT whose patches attend within
windows, or to all others, with scores that depend on the distance.

Shapes: N images, h w patches, S patches of a window or all, E hidden_size, H heads, K = E / H, F mlp_dim, C
output_channels.
"""

from __future__ import annotations

from ... import ops
from ...inputs import ImageInputs, ImageModel
from ...nn import Conv2d, Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from .config import SamVisionConfig

NORM_EPS = 1e-6  # for norms that no field of the config is about

Grid = tuple[int, int]  # h, w


class Embeddings(Module):
    """The patches, with their positions added."""

    def __init__(self, w: Weights, cfg: SamVisionConfig):
        E, self.mask = cfg.hidden_size, None
        self.projection = Conv2d(w / "patch_embed.projection", cfg.num_channels, E, cfg.patch, stride=cfg.patch)
        self.position = w.get("pos_embed", (1, *cfg.grid, E))

    def __call__(self, p: ImageInputs) -> Array:
        """-> (N, h w, E)."""
        x = self.projection(p.pixel_values) + self.position
        return x.reshape(x.shape[0], -1, x.shape[3])


class Attention(Module):
    """Attention whose scores depend on how many rows, and how many columns, a key is away from its query, by products
    of these distances' vectors with the query.

    Such a product is one of the query's with a key, where both get more features: the query its products with the
    vectors of all rows and all columns, the key a 1 at its own row and its own column.
    """

    def __init__(self, w: Weights, cfg: SamVisionConfig, side: int):
        E, self.heads = cfg.hidden_size, cfg.num_attention_heads
        self.qkv = Linear(w / "qkv", E, 3 * E, bias=cfg.qkv_bias)
        self.rows, self.columns = (w.get(f"rel_pos_{axis}", (2 * side - 1, E // self.heads)) for axis in "hw")
        self.dropout = Dropout(cfg.attention_dropout)
        self.out = Linear(w / "proj", E, E)

    def __call__(self, x: Array, side: int) -> Array:
        """x (N, S, E), of a square of `side` rows of patches -> (N, S, E)."""
        q, k, v = ops.split_heads(self.qkv(x), self.heads)
        N, S, H, K = q.shape
        patch = ops.arange(S, x)
        y, column = patch // side, patch % side
        turn = ops.cat([(column * side + y)[None]] * N, 0)  # where a square has each patch of its mirror image
        of_columns = self._products(ops.take_rows(q.reshape(N, S, H * K), turn), self.columns, side)
        of_rows = self._products(q, self.rows, side)
        more = [part.reshape(N, S, H, side) for part in (of_rows, ops.take_rows(of_columns, turn))]
        own = [(at[:, None] == ops.arange(side, x)[None])[None, :, None] for at in (y, column)]
        nothing = ops.zeros((N, S, H, 2 * side), q)
        ones = ops.where(ops.cat(own, 3), nothing + 1, nothing)
        query = ops.cat([q * K**-0.5, *more], 3)
        a = ops.attention(query, ops.cat([k, ones], 3), ops.cat([v, nothing], 3), scale=1.0, dropout=self.dropout.rate)
        return self.out(a[..., :K].reshape(x.shape))

    def _products(self, q: Array, table: Array, side: int) -> Array:
        """Of queries (N, S, H K) with the vectors of the distances from their rows to all rows -> (N, S, H side)."""
        at = ops.arange(side, q)
        distances = ops.embedding(at[:, None] - at[None] + (side - 1), table, "distances")  # (side, side, K)
        N, K = q.shape[0], table.shape[1]
        keys = ops.cat([distances[None]] * N, 0).reshape(N * side, side, 1, K)
        return ops.scores(q.reshape(N * side, -1, 1, K), keys).reshape(N, side**2, -1)


class VisionLayer(Module):
    def __init__(self, w: Weights, cfg: SamVisionConfig, layer: int):
        E, F, self.window = cfg.hidden_size, cfg.mlp_size, cfg.window(layer)
        self.attention_norm = LayerNorm(w / "layer_norm1", E, cfg.layer_norm_eps)
        self.attention = Attention(w / "attn", cfg, self.window or cfg.grid[0])
        self.mlp_norm = LayerNorm(w / "layer_norm2", E, cfg.layer_norm_eps)
        self.up, self.down = Linear(w / "mlp.lin1", E, F, act=cfg.hidden_act), Linear(w / "mlp.lin2", F, E)

    def __call__(self, x: Array, grid: Grid) -> Array:
        """x (N, h w, E) -> (N, h w, E)."""
        y = self.attention_norm(x)
        if self.window:  # with zeros where the last ones are not full, which are attended to as patches are
            cut = ops.windows(y.reshape(y.shape[0], *grid, -1), self.window)
            y = ops.from_windows(self.attention(cut, self.window), self.window, grid).reshape(x.shape)
        else:
            y = self.attention(y, grid[0])
        y, x = self.mlp_norm.add(y, x)
        return self.down(self.up(y), residual=x)


class Neck(Module):
    """E features of a patch -> C, which see those of the patches around it."""

    def __init__(self, w: Weights, cfg: SamVisionConfig):
        E, C = cfg.hidden_size, cfg.output_channels
        self.narrow, self.norm = Conv2d(w / "conv1", E, C, 1, bias=False), LayerNorm(w / "layer_norm1", C, NORM_EPS)
        self.conv = Conv2d(w / "conv2", C, C, 3, padding=1, bias=False)
        self.last_norm = LayerNorm(w / "layer_norm2", C, NORM_EPS)

    def __call__(self, x: Array) -> Array:
        """x (N, h, w, E) -> (N, h, w, C)."""
        return self.last_norm(self.conv(self.norm(self.narrow(x))))


class VisionEncoder(ImageModel):
    config_class = SamVisionConfig

    def __init__(self, w: Weights, cfg: SamVisionConfig):
        self.config = cfg
        self.embeddings = Embeddings(w, cfg)
        self.layers = [VisionLayer(w / "layers" / i, cfg, i) for i in range(cfg.num_hidden_layers)]
        self.neck = Neck(w / "neck", cfg)

    def encode(self, p: ImageInputs) -> Array:
        """-> (N, h w, C)."""
        x = self.embeddings(p)
        for layer in self.layers:
            x = layer(x, p.grid)
        x = self.neck(x.reshape(x.shape[0], *p.grid, -1))
        return x.reshape(x.shape[0], -1, x.shape[3])
