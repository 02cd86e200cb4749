"""BEiT (Bao et al. 2021, https://arxiv.org/abs/2106.08254), and DiT (Li et al. 2022, https://arxiv.org/abs/2203.02378),
which is BEiT on documents: ViT with positions in the scores and a learned scale on every layer's contribution.

An image may have any size: the checkpoint's positions are resized to it.

Shapes: B batch, Y and X height and width in pixels, C channels, N = h w patches, T = N + 1, D hidden_size, F
intermediate_size, H heads, L labels, V vocab_size.  Images are (B, Y, X, C): channels come last.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, NamedTuple

from ... import ops
from ...inputs import ImageInputs, ImageModel
from ...nn import CacheLast, Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..vit.model import BASE, LAYER_NAMES, Embeddings
from .config import BeitConfig

NAME_MAP = NameMap(
    prefix="beit",
    base=BASE,
    renames={
        **LAYER_NAMES,
        r"(^|\.)shared_position_bias\.": r"\1encoder.relative_position_bias.",
        r"(layer\.\d+)\.relative_position_bias\.": r"\1.attention.attention.relative_position_bias.",
        r"^fpn\.fpn1\.conv_transpose1\.": "fpn1.0.",
        r"^fpn\.fpn1\.normalization\.": "fpn1.1.",
        r"^fpn\.fpn1\.conv_transpose2\.": "fpn1.3.",
        r"^fpn\.fpn2\.": "fpn2.0.",
        r"^decode_head\.psp_bottleneck\.": "decode_head.bottleneck.",
        r"^decode_head\.psp_modules\.blocks\.(\d+)\.conv\.": r"decode_head.psp_modules.\1.1.",
        r"^((decode|auxiliary)_head\..*)\.convolution\.": r"\1.conv.",
        r"^((decode|auxiliary)_head\..*)\.normalization\.": r"\1.bn.",
    },
    # An index that follows from the sizes, a counter of training, and parts that files keep after a change of the head.
    ignored=(
        r"\.relative_position_index$",
        r"\.num_batches_tracked$",
        r"^(beit\.)?pooler\.",
        r"(^|\.)embeddings\.mask_token$",
    ),
)
BASE_NAME_MAP = replace(
    NAME_MAP, ignored=(*NAME_MAP.ignored, r"^(classifier|lm_head|layernorm|decode_head|auxiliary_head|fpn\d)\.")
)

CACHED_BIAS = 1 << 22  # elements: a larger bias is computed again for the next image of its size


class BeitModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, D), not normed where patches are averaged
    pooler_output: Array | None  # (B, D), None if the checkpoint has no norm for it


class BiasContext(NamedTuple):
    """The arguments of every layer besides its input."""

    grid: tuple[int, int]  # h, w
    bias_index: Array | None  # (T, T), from `relative_index`, where there are relative positions
    shared_bias: Array | None  # (1, H, T, T): added to the scores of all layers


class RelativeBias(Module):
    """A bias added to the attention score of two tokens, by the distance of their patches."""

    def __init__(self, w: Weights, cfg: BeitConfig):
        h, x = cfg.grid
        self.span = 2 * h - 1, 2 * x - 1
        self.table = w.get("relative_position_bias_table", (self.span[0] * self.span[1] + 3, cfg.num_attention_heads))
        self._gathered = CacheLast(CACHED_BIAS)

    def __call__(self, grid: tuple[int, int], index: Array) -> Array:
        """index (T, T), from `relative_index` -> (1, H, T, T)."""
        span = 2 * grid[0] - 1, 2 * grid[1] - 1
        return self._gathered(grid, lambda: ops.gather_bias(self._resize(span), index))

    def _resize(self, span: tuple[int, int]) -> Array:
        # transformers reads the table as width x height, which matters where a checkpoint is not square.
        rows, columns = self.span[1], self.span[0]
        distances = ops.interpolate(self.table[:-3].reshape(1, rows, columns, -1), span)
        return ops.cat([distances.reshape(span[0] * span[1], -1), self.table[-3:]], 0)


def relative_index(grid: tuple[int, int], like: Array) -> Array:
    """The row of the bias table for each pair of tokens, (T, T); the table's last three rows are the class token's."""
    h, w = grid
    patch = ops.arange(h * w, like)
    y, x = patch // w, patch % w
    down, right = y[:, None] - y[None] + (h - 1), x[:, None] - x[None] + (w - 1)
    rows = (2 * h - 1) * (2 * w - 1)
    to_class = patch[:, None] * 0 + (rows + 1)
    from_class = patch[None] * 0 + rows
    corner = to_class[:1] + 1
    patches = down * (2 * w - 1) + right
    return ops.cat([ops.cat([corner, from_class], 1), ops.cat([to_class, patches], 1)], 0)


class Attention(Module):
    def __init__(self, w: Weights, cfg: BeitConfig):
        D = cfg.hidden_size
        self.heads = cfg.num_attention_heads
        parts = w / "attention"
        self.weight = parts.linear(["query.weight", "key.weight", "value.weight"], [D, D, D], D)
        self.query_bias, self.value_bias = parts.get("query.bias", (D,)), parts.get("value.bias", (D,))
        self._key_bias = ops.zeros((D,), self.query_bias)  # a key bias adds the same to all scores of a query
        self.dropout = Dropout(cfg.attention_probs_dropout_prob)
        self.out = Linear(w / "output.dense", D, D, dropout=cfg.hidden_dropout_prob)

    def __call__(self, x: Array, bias: Array | None) -> Array:
        """x (B, T, D), bias (1, H, T, T) -> (B, T, D)."""
        own_bias = ops.cat([self.query_bias, self._key_bias, self.value_bias], 0)
        q, k, v = ops.split_heads(ops.linear(x, self.weight, own_bias), self.heads)
        return self.out(ops.attention(q, k, v, bias=bias, dropout=self.dropout.rate).reshape(x.shape))


class Layer(Module):
    """drop_path: the share of images for which training skips the layer."""

    def __init__(self, w: Weights, cfg: BeitConfig, drop_path: float):
        D, F = cfg.hidden_size, cfg.intermediate_size
        self.attention_norm = LayerNorm(w / "layernorm_before", D, cfg.layer_norm_eps)
        self.attention = Attention(w / "attention", cfg)
        self.bias = None
        if cfg.use_relative_position_bias:
            self.bias = RelativeBias(w / "attention.attention.relative_position_bias", cfg)
        self.mlp_norm = LayerNorm(w / "layernorm_after", D, cfg.layer_norm_eps)
        self.up = Linear(w / "intermediate.dense", D, F, act=cfg.hidden_act)
        self.down = Linear(w / "output.dense", F, D, dropout=cfg.hidden_dropout_prob)
        scaled = cfg.layer_scale_init_value > 0
        self.lambda_1 = w.get("lambda_1", (D,)) if scaled else None
        self.lambda_2 = w.get("lambda_2", (D,)) if scaled else None
        self.drop_path = Dropout(drop_path, of_rows=True)

    def __call__(self, x: Array, c: BiasContext) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        bias = c.shared_bias
        if self.bias is not None and c.bias_index is not None:
            bias = self.bias(c.grid, c.bias_index) if bias is None else self.bias(c.grid, c.bias_index) + bias
        y = self.drop_path(self.attention(self.attention_norm(x), bias))
        x = x + y if self.lambda_1 is None else ops.add_scaled(x, y, self.lambda_1)
        y = self.drop_path(self.down(self.up(self.mlp_norm(x))))
        return x + y if self.lambda_2 is None else ops.add_scaled(x, y, self.lambda_2)


class BeitPretrained(ImageModel):
    config_class = BeitConfig
    name_map = NAME_MAP
    only_saved = (r"(^|\.)embeddings\.mask_token$",)
    any_size = True


class BeitModel(BeitPretrained):
    """The layers, and a pooler: the normed mean of all patches, or the class token.

    pooler: True if the mean's norm is required, False to leave it out, None to take it if it is there.
    """

    is_base_model = True
    name_map = BASE_NAME_MAP
    inputs = ("bool_masked_pos",)

    def __init__(self, w: Weights, cfg: BeitConfig, pooler: bool | None = None):
        D = cfg.hidden_size
        self.config = cfg
        self.embeddings = Embeddings(
            w / "embeddings", cfg, cfg.use_mask_token, positions=cfg.use_absolute_position_embeddings
        )
        self.bias = None
        if cfg.use_shared_relative_position_bias:
            self.bias = RelativeBias(w / "encoder.relative_position_bias", cfg)
        rates = [cfg.drop_path_rate * i / max(cfg.num_hidden_layers - 1, 1) for i in range(cfg.num_hidden_layers)]
        self.layers = [Layer(w / "encoder.layer" / i, cfg, rate) for i, rate in enumerate(rates)]
        if pooler is None:
            pooler = "pooler" in w
        self.norm = self.pooler = None
        if not cfg.use_mean_pooling:
            self.norm = LayerNorm(w / "layernorm", D, cfg.layer_norm_eps)
        elif pooler:
            self.pooler = LayerNorm(w / "pooler.layernorm", D, cfg.layer_norm_eps)

    def hidden_states(self, p: ImageInputs) -> Iterator[Array]:
        """Yield the first layer's input, then the output of each layer, all (B, T, D)."""
        x, c = self.embeddings(p), self.context(p.grid)
        yield x
        for layer in self.layers:
            x = layer(x, c)
            yield x

    def context(self, grid: tuple[int, int]) -> BiasContext:
        cfg, index, shared = self.config, None, None
        if cfg.use_relative_position_bias or cfg.use_shared_relative_position_bias:
            index = relative_index(grid, self.like)
        if self.bias is not None and index is not None:
            shared = self.bias(grid, index)
        return BiasContext(grid, index, shared)

    def encode(self, p: ImageInputs) -> Array:
        """-> (B, T, D) of every token."""
        (x,) = deque(self.hidden_states(p), maxlen=1)
        return x if self.norm is None else self.norm(x)

    def forward(self, p: ImageInputs) -> BeitModelOutput:
        x = self.encode(p)
        if self.norm is not None:
            return BeitModelOutput(x, x[:, 0])
        return BeitModelOutput(x, None if self.pooler is None else self.pooler(ops.mean(x[:, 1:], 1)))


class BeitForImageClassification(BeitPretrained):
    base_class: ClassVar[type[BeitModel]] = BeitModel

    def __init__(self, w: Weights, cfg: BeitConfig):
        self.config = cfg
        self.base_model = self.base_class(w / self.name_map.prefix, cfg, pooler=True)
        self.classifier = Linear(w / "classifier", cfg.hidden_size, cfg.num_labels)

    def forward(self, p: ImageInputs) -> Array:
        """-> logits (B, L)."""
        return self.classifier(self.base_model.forward(p).pooler_output)


class BeitForMaskedImageModeling(BeitPretrained):
    """The visual token, of a vocabulary, that each patch shows."""

    inputs = BeitModel.inputs

    def __init__(self, w: Weights, cfg: BeitConfig):
        self.config = cfg
        self.base_model = BeitModel(w / "beit", cfg, pooler=False)
        self.norm = LayerNorm(w / "layernorm", cfg.hidden_size, cfg.layer_norm_eps)
        self.lm_head = Linear(w / "lm_head", cfg.hidden_size, cfg.vocab_size)

    def forward(self, p: ImageInputs) -> Array:
        """-> logits (B, N, V)."""
        return self.lm_head(self.norm(self.base_model.encode(p)[:, 1:]))
