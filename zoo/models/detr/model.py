"""DETR (Carion et al. 2020, https://arxiv.org/abs/2005.12872): a ResNet reads the image, and each of a fixed number of
queries finds one object in its features.

Shapes: B batch, Y and X height and width in pixels, C channels, h and w the same in features (1 / 32, rounded up),
N = h w, Q num_queries, D d_model, L labels.  Images are (B, Y, X, C): channels come last.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Protocol

from ... import ops
from ...inputs import ImageInputs, ImageModel
from ...nn import Conv2d, Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..resnet.model import ResNet
from .config import TIMM_NAMES, DetrConfig
from .positions import POSITIONS

# Since version 5 transformers has other names for some parts in memory than in its files.
MEMORY_NAMES = {
    r"(^|\.)backbone\.model\.": r"\1backbone.conv_encoder.model.",
    r"^((?:detr\.)?model\.)?position_embedding\.": r"\1backbone.position_embedding.",
    r"_attn\.o_proj\.": "_attn.out_proj.",
    r"\.mlp\.(fc[12])\.": r".\1.",
}

NAME_MAP = NameMap(
    prefix="model",
    base=("backbone", "input_projection", "query_position_embeddings", "encoder", "decoder"),
    renames={**MEMORY_NAMES, **TIMM_NAMES},
    ignored=(r"\.num_batches_tracked$",),  # a counter of training
)
BASE_NAME_MAP = replace(NAME_MAP, ignored=(*NAME_MAP.ignored, r"^(class_labels_classifier|bbox_predictor)\."))

EPS = 1e-5


class DetrModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, Q, D): the object of each query
    encoder_last_hidden_state: Array  # (B, N, D)
    intermediate_hidden_states: Array | None  # (decoder layers, B, Q, D), with auxiliary_loss


class DetrObjectDetectionOutput(NamedTuple):
    logits: Array  # (B, Q, L + 1): the last is that of no object
    pred_boxes: Array  # (B, Q, 4): centre x and y, width and height, as parts of the image without its padding
    last_hidden_state: Array  # (B, Q, D)
    encoder_last_hidden_state: Array  # (B, N, D)


class Rates(Protocol):
    """The fields of a config that attention reads."""

    @property
    def dropout(self) -> float: ...

    @property
    def attention_dropout(self) -> float: ...


class Attention(Module):
    def __init__(self, w: Weights, D: int, heads: int, cfg: Rates):
        self.heads = heads
        self.q, self.k, self.v = (Linear(w / f"{part}_proj", D, D) for part in ("q", "k", "v"))
        self.dropout = Dropout(cfg.attention_dropout)
        self.out = Linear(w / "out_proj", D, D, dropout=cfg.dropout)

    def __call__(self, queries: Array, keys: Array, values: Array, mask: Array | None = None) -> Array:
        """queries (B, T, D), keys and values (B, S, D), mask (B, S), false for a key to hide -> (B, T, D)."""
        q, k, v = (y.reshape(*y.shape[:2], self.heads, -1) for y in (self.q(queries), self.k(keys), self.v(values)))
        return self.out(ops.attention(q, k, v, mask=mask, dropout=self.dropout.rate).reshape(queries.shape))


class EncoderLayer(Module):
    def __init__(self, w: Weights, cfg: DetrConfig):
        D, F = cfg.d_model, cfg.encoder_ffn_dim
        self.norm = LayerNorm(w / "self_attn_layer_norm", D, EPS)
        self.attention = Attention(w / "self_attn", D, cfg.encoder_attention_heads, cfg)
        self.final_norm = LayerNorm(w / "final_layer_norm", D, EPS)
        self.up = Linear(w / "fc1", D, F, act=cfg.activation_function, dropout=cfg.activation_dropout)
        self.down = Linear(w / "fc2", F, D, dropout=cfg.dropout)

    def __call__(self, x: Array, positions: Array, mask: Array | None) -> Array:
        """x (B, N, D), positions (1 or B, N, D), mask (B, N) -> (B, N, D)."""
        placed = x + positions
        x = self.norm(self.attention(placed, placed, x, mask), residual=x)
        return self.final_norm(self.down(self.up(x)), residual=x)


class DecoderContext(NamedTuple):
    """The arguments of every layer of the decoder besides its input."""

    queries: Array  # (Q, D)
    memory: Array  # (B, N, D): the encoder's output
    placed_memory: Array  # (B, N, D): the same with their positions
    mask: Array | None  # (B, N): false for a feature of padding


class Sight(NamedTuple):
    """All that a segmentation reads of a model besides its output."""

    stages: list[Array]  # (B, y, x, C) of the backbone
    features: Array  # (B, h, w, D): its last stage, projected
    memory: Array  # (B, N, D): the encoder's output
    mask: Array | None  # (B, N): false for a feature of padding


class DecoderLayer(Module):
    def __init__(self, w: Weights, cfg: DetrConfig):
        D, F, heads = cfg.d_model, cfg.decoder_ffn_dim, cfg.decoder_attention_heads
        self.norm = LayerNorm(w / "self_attn_layer_norm", D, EPS)
        self.attention = Attention(w / "self_attn", D, heads, cfg)
        self.cross_norm = LayerNorm(w / "encoder_attn_layer_norm", D, EPS)
        self.cross_attention = Attention(w / "encoder_attn", D, heads, cfg)
        self.final_norm = LayerNorm(w / "final_layer_norm", D, EPS)
        self.up = Linear(w / "fc1", D, F, act=cfg.activation_function, dropout=cfg.activation_dropout)
        self.down = Linear(w / "fc2", F, D, dropout=cfg.dropout)

    def __call__(self, x: Array, c: DecoderContext) -> Array:
        """x (B, Q, D) -> (B, Q, D)."""
        placed = x + c.queries
        x = self.norm(self.attention(placed, placed, x), residual=x)
        x = self.cross_norm(self.cross_attention(x + c.queries, c.placed_memory, c.memory, c.mask), residual=x)
        return self.final_norm(self.down(self.up(x)), residual=x)


class DetrPretrained(ImageModel):
    config_class = DetrConfig
    name_map = NAME_MAP
    inputs = ("pixel_mask",)
    any_size = True

    @property
    def like(self) -> Array:
        return self.base_model.queries

    @property
    def channels(self) -> int:
        return self.config.resnet.num_channels

    @property
    def patch(self) -> tuple[int, int]:
        return 1, 1


class DetrModel(DetrPretrained):
    """The layers: an image to the object of each query."""

    is_base_model = True
    name_map = BASE_NAME_MAP
    encoder_layer: ClassVar[type[EncoderLayer]] = EncoderLayer
    decoder_layer: ClassVar[type[DecoderLayer]] = DecoderLayer

    def __init__(self, w: Weights, cfg: DetrConfig):
        D = cfg.d_model
        self.config = cfg
        self.backbone = ResNet(w / "backbone.conv_encoder.model", cfg.resnet)
        self.input_projection = Conv2d(w / "input_projection", cfg.resnet.hidden_sizes[-1], D, 1)
        self.positions = POSITIONS[cfg.position_embedding_type](w / "backbone.position_embedding", cfg)
        self.dropout = Dropout(cfg.dropout)
        self.encoder_layers = [self.encoder_layer(w / "encoder.layers" / i, cfg) for i in range(cfg.encoder_layers)]
        self.queries = w.get("query_position_embeddings.weight", (cfg.num_queries, D))
        self.decoder_layers = self.make_decoder(w / "decoder.layers", cfg)
        self.decoder_norm = LayerNorm(w / "decoder.layernorm", D, EPS)

    def make_decoder(self, w: Weights, cfg: Any) -> list[Any]:
        """The decoder's layers."""
        return [self.decoder_layer(w / i, cfg) for i in range(cfg.decoder_layers)]

    def encode(self, x: Array, positions: Array, mask: Array | None) -> Array:
        """x (B, N, D), positions (1 or B, N, D), mask (B, N) -> (B, N, D)."""
        for layer in self.encoder_layers:
            x = layer(x, positions, mask)
        return x

    def decode(self, memory: Array, positions: Array, mask: Array | None) -> tuple[Array, Array | None]:
        """memory (B, N, D), positions (1 or B, N, D), mask (B, N) -> x (B, Q, D), that of each layer or None."""
        c = DecoderContext(self.queries, memory, memory + positions, mask)
        x = ops.zeros((memory.shape[0], *self.queries.shape), self.queries)
        steps = []
        for layer in self.decoder_layers:
            x = layer(x, c)
            if self.config.auxiliary_loss:  # for training; it also changes the next layer's input
                x = self.decoder_norm(x)
                steps.append(x[None])
        return self.decoder_norm(x), ops.cat(steps, 0) if steps else None

    def forward(self, p: ImageInputs) -> DetrModelOutput:
        return self.look(p)[0]

    def look(self, p: ImageInputs) -> tuple[DetrModelOutput, Sight]:
        """The output, and what was seen on the way."""
        stages = self.backbone(p.pixel_values)
        features = self.input_projection(stages[-1])
        B, h, w, D = features.shape
        mask = None if p.pixel_mask is None else visible(p.pixel_mask, (h, w))
        positions = self.positions((h, w), mask, self.queries)
        mask = None if mask is None else mask.reshape(B, h * w)

        memory = self.encode(self.dropout(features.reshape(B, h * w, D)), positions, mask)
        x, steps = self.decode(memory, positions, mask)
        return DetrModelOutput(x, memory, steps), Sight(stages, features, memory, mask)


def visible(pixel_mask: Array, grid: tuple[int, int]) -> Array | None:
    """The mask (B, h, w), false for features of padding; None without padding."""
    mask = ops.interpolate(pixel_mask[:, :, :, None], grid, "nearest")[:, :, :, 0]
    return None if ops.all_true(mask) else mask


class DetrForObjectDetection(DetrPretrained):
    base_class: ClassVar[type[DetrModel]] = DetrModel

    def __init__(self, w: Weights, cfg: DetrConfig):
        D = cfg.d_model
        self.config = cfg
        self.base_model = self.base_class(w / "model", cfg)
        self.class_labels_classifier = Linear(w / "class_labels_classifier", D, cfg.num_labels + 1)
        boxes = w / "bbox_predictor.layers"
        self.bbox_predictor = [
            Linear(boxes / 0, D, D, act="relu"),
            Linear(boxes / 1, D, D, act="relu"),
            Linear(boxes / 2, D, 4, act="sigmoid"),
        ]

    def objects(self, x: Array) -> tuple[Array, Array]:
        """The decoder's output x (B, Q, D) -> logits (B, Q, L + 1) and boxes (B, Q, 4)."""
        boxes = x
        for layer in self.bbox_predictor:
            boxes = layer(boxes)
        return self.class_labels_classifier(x), boxes

    def forward(self, p: ImageInputs) -> DetrObjectDetectionOutput:
        """-> one object for each query."""
        found = self.base_model.forward(p)
        x = found.last_hidden_state
        return DetrObjectDetectionOutput(*self.objects(x), x, found.encoder_last_hidden_state)
