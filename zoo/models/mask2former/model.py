"""Mask2Former (Cheng et al. 2021, https://arxiv.org/abs/2112.01527): learned queries, each of which attends only to
those features of an image that lie in the mask it has found so far, and becomes a mask with a label.

Shapes: B batch, h and w of one size of features, N = h w, y and x height and width of the masks, Q num_queries, D
hidden_dim, d feature_size, M mask_feature_size, C the width of the backbone's last features, L labels.
"""

from __future__ import annotations

from typing import NamedTuple

from ... import ops
from ...inputs import ImageInputs, ImageModel
from ...nn import Conv2d, Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..detr.model import EPS, Attention
from ..detr.positions import SinePositions
from ..resnet.config import ResNetConfig
from ..resnet.model import ResNetBackbone
from ..swin.backbone import SwinBackbone
from ..swin.model import MEMORY_NAMES
from .config import LEVELS, Mask2FormerConfig
from .pixel_decoder import PixelDecoder

# A Swin's names in memory, and those of version 4 of transformers, to those of its backbone.
_NET = {**MEMORY_NAMES, r"^(embeddings|encoder\.layers)\.": r"swin.\1."}
NAME_MAP = NameMap(
    prefix="model",
    base=("pixel_level_module", "transformer_module"),
    part_renames={"model.pixel_level_module.encoder": _NET, "pixel_level_module.encoder": _NET},
    # The loss's weights of labels, indices that follow from sizes, a norm that is not called, a counter of training.
    ignored=(
        *(r"^criterion\.", r"\.relative_position_index$", r"\.num_batches_tracked$"),
        *(r"encoder\.swin\.layernorm\.", r"^class_predictor\."),
    ),
)


class Mask2FormerModelOutput(NamedTuple):
    encoder_last_hidden_state: Array  # (B, h, w, C) of the backbone
    pixel_decoder_last_hidden_state: Array  # (B, y, x, M)
    transformer_decoder_last_hidden_state: Array  # (B, Q, D)
    masks_queries_logits: tuple[Array, ...]  # (B, Q, y, x) before the first layer, and after each


class Mask2FormerSegmentationOutput(NamedTuple):
    class_queries_logits: Array  # (B, Q, L + 1): the last is that of no object
    masks_queries_logits: Array  # (B, Q, y, x)
    encoder_last_hidden_state: Array  # (B, h, w, C) of the backbone
    pixel_decoder_last_hidden_state: Array  # (B, y, x, M)
    transformer_decoder_last_hidden_state: Array  # (B, Q, D)


class Found(NamedTuple):
    """All that a head reads."""

    features: Array  # (B, h, w, C): the backbone's last
    mask_features: Array  # (B, y, x, M)
    last: Array  # (B, Q, D)
    states: list[Array]  # (B, Q, D) before the first layer, and after each, with a norm


class Memory(NamedTuple):
    """Features of one size."""

    values: Array  # (B, N, D)
    keys: Array  # (B, N, D): with their positions
    masks: Array  # (B, N, M): the features of masks in this size


class CrossAttention(Module):
    """torch's MultiheadAttention, with a bias of keys that each query does not see."""

    def __init__(self, w: Weights, D: int, heads: int, dropout: float):
        self.weight, self.bias = w.get("in_proj_weight", (3 * D, D)), w.get("in_proj_bias", (3 * D,))
        self.heads, self.dropout = heads, Dropout(dropout)
        self.out = Linear(w / "out_proj", D, D, dropout=dropout)

    def __call__(self, queries: Array, keys: Array, values: Array, bias: Array) -> Array:
        """queries (B, Q, D), keys and values (B, N, D), bias (B, 1, Q, N) -> (B, Q, D)."""
        D, of_heads = queries.shape[2], []
        for i, x in enumerate((queries, keys, values)):
            rows = slice(i * D, (i + 1) * D)
            of_heads.append(ops.linear(x, self.weight[rows], self.bias[rows]).reshape(*x.shape[:2], self.heads, -1))
        return self.out(ops.attention(*of_heads, bias=bias, dropout=self.dropout.rate).reshape(queries.shape))


class DecoderLayer(Module):
    def __init__(self, w: Weights, cfg: Mask2FormerConfig):
        D, F, heads, self.pre_norm = cfg.hidden_dim, cfg.dim_feedforward, cfg.num_attention_heads, cfg.pre_norm
        self.cross_attention = CrossAttention(w / "cross_attn", D, heads, cfg.dropout)
        self.cross_norm = LayerNorm(w / "cross_attn_layer_norm", D, EPS)
        self.attention = Attention(w / "self_attn", D, heads, cfg.attention)
        self.norm = LayerNorm(w / "self_attn_layer_norm", D, EPS)
        self.up = Linear(w / "fc1", D, F, act=cfg.activation_function, dropout=cfg.dropout)
        self.down = Linear(w / "fc2", F, D, dropout=cfg.dropout)
        self.final_norm = LayerNorm(w / "final_layer_norm", D, EPS)

    def __call__(self, x: Array, places: Array, memory: Memory, bias: Array) -> Array:
        """x (B, Q, D), places (Q, D) of the queries, bias (B, 1, Q, N) -> (B, Q, D)."""
        if self.pre_norm:
            x = x + self.cross_attention(self.cross_norm(x) + places, memory.keys, memory.values, bias)
            y = self.norm(x)
            x = x + self.attention(y + places, y + places, y)
            return self.down(self.up(self.final_norm(x)), residual=x)
        x = self.cross_norm(self.cross_attention(x + places, memory.keys, memory.values, bias), residual=x)
        x = self.norm(self.attention(x + places, x + places, x), residual=x)
        return self.final_norm(self.down(self.up(x)), residual=x)


class MaskPredictor(Module):
    """A query's vector, whose product with the features of masks is its mask."""

    def __init__(self, w: Weights, cfg: Mask2FormerConfig):
        D, w = cfg.hidden_dim, w / "mask_embedder"
        self.steps = [Linear(w / i / 0, D, D, act="relu") for i in range(2)]
        self.last = Linear(w / 2 / 0, D, cfg.mask_feature_size)

    def __call__(self, x: Array, features: Array) -> Array:
        """x (B, Q, D), features (B, N, M) -> logits (B, Q, N)."""
        for step in self.steps:
            x = step(x)
        return ops.scores(self.last(x)[:, :, None], features[:, :, None])[..., 0]


class TransformerDecoder(Module):
    def __init__(self, w: Weights, cfg: Mask2FormerConfig):
        D, d, own = cfg.hidden_dim, cfg.feature_size, w / "decoder"
        self.places, self.queries = (
            w.get(f"{name}.weight", (cfg.num_queries, D)) for name in ("queries_embedder", "queries_features")
        )
        self.level_embed, self.tables = w.get("level_embed.weight", (LEVELS, D)), SinePositions(w, cfg.attention)
        projects = range(LEVELS if d != D or cfg.enforce_input_projection else 0)
        self.projects = [Conv2d(w / "input_projections" / i, d, D, 1) for i in projects]
        self.decoder_layers = [DecoderLayer(own / "layers" / i, cfg) for i in range(cfg.decoder_layers - 1)]
        self.norm, self.predict = LayerNorm(own / "layernorm", D, EPS), MaskPredictor(own / "mask_predictor", cfg)

    def memory(self, i: int, x: Array, mask_features: Array) -> Memory:
        """The features x (B, h, w, d) of size i.  That masks are made smaller is left to the features they are of."""
        B, h, w, _ = x.shape
        x = self.projects[i](x) if self.projects else x
        values = x.reshape(B, h * w, -1) + self.level_embed[i]
        smaller = ops.interpolate(mask_features, (h, w)).reshape(B, h * w, -1)
        return Memory(values, values + self.tables((h, w), None, self.level_embed), smaller)

    def __call__(self, features: list[Array], mask_features: Array) -> tuple[Array, list[Array]]:
        """features (B, h, w, d) of three sizes, mask_features (B, y, x, M) -> x (B, Q, D), states as of `Found`."""
        memories = [self.memory(i, x, mask_features) for i, x in enumerate(features)]
        x = ops.cat([self.queries[None]] * mask_features.shape[0], 0)
        states = [self.norm(x)]
        for i, layer in enumerate(self.decoder_layers):
            memory = memories[i % LEVELS]
            x = layer(x, self.places, memory, hide_others(self.predict(states[-1], memory.masks)))
            states.append(self.norm(x))
        return x, states


def hide_others(logits: Array) -> Array:
    """Masks' logits (B, Q, N) -> the bias (B, 1, Q, N) by which a query sees what is in its mask, or all if nothing
    is.
    """
    is_inside, none = logits >= 0, ops.zeros((1, 1, 1), logits)
    share = ops.mean(ops.where(is_inside, none + 1, none), 2)
    return ops.where(is_inside | (share == 0)[:, :, None], none, none - float("inf"))[:, None]


class Mask2FormerPretrained(ImageModel):
    config_class = Mask2FormerConfig
    name_map = NAME_MAP
    only_saved = (r"^criterion\.", r"encoder\.swin\.layernorm\.", r"\.num_batches_tracked$")
    any_size = True

    @property
    def like(self) -> Array:
        return self.base_model.transformer.queries

    @property
    def channels(self) -> int:
        return self.config.network.num_channels

    @property
    def patch(self) -> tuple[int, int]:
        return self.config.network.patch

    def grid(self, pixel_values: Array) -> tuple[int, int]:
        """Rows and columns of the backbone's patches."""
        return self.base_model.backbone.grid(pixel_values)


class Mask2FormerModel(Mask2FormerPretrained):
    """The layers: an image to the state of each query."""

    is_base_model = True

    def __init__(self, w: Weights, cfg: Mask2FormerConfig):
        self.config, net, inside = cfg, cfg.network, w / "pixel_level_module"
        own = inside / "encoder"
        self.backbone = ResNetBackbone(own, net) if isinstance(net, ResNetConfig) else SwinBackbone(own, net)
        self.pixel_decoder = PixelDecoder(inside / "decoder", cfg)
        self.transformer = TransformerDecoder(w / "transformer_module", cfg)

    def find(self, p: ImageInputs) -> Found:
        maps = self.backbone.forward(p).feature_maps
        mask_features, features = self.pixel_decoder(maps)
        return Found(maps[-1], mask_features, *self.transformer(features, mask_features))

    def masks(self, state: Array, features: Array) -> Array:
        """state (B, Q, D), features (B, y, x, M) -> logits (B, Q, y, x)."""
        B, y, x, M = features.shape
        return self.transformer.predict(state, features.reshape(B, y * x, M)).reshape(B, -1, y, x)

    def forward(self, p: ImageInputs) -> Mask2FormerModelOutput:
        features, mask_features, last, states = self.find(p)
        masks = tuple(self.masks(state, mask_features) for state in states)
        return Mask2FormerModelOutput(features, mask_features, last, masks)


class Mask2FormerForUniversalSegmentation(Mask2FormerPretrained):
    def __init__(self, w: Weights, cfg: Mask2FormerConfig):
        self.config, self.base_model = cfg, Mask2FormerModel(w / "model", cfg)
        self.class_predictor = Linear(w / "class_predictor", cfg.hidden_dim, cfg.num_labels + 1)

    def forward(self, p: ImageInputs) -> Mask2FormerSegmentationOutput:
        """-> a mask and its label for each query."""
        found = self.base_model.find(p)
        labels = self.class_predictor(found.states[-1])
        masks = self.base_model.masks(found.states[-1], found.mask_features)
        return Mask2FormerSegmentationOutput(labels, masks, found.features, found.mask_features, found.last)
