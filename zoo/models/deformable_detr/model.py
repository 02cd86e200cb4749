"""Deformable DETR (Zhu et al. 2020, https://arxiv.org/abs/2010.04159): DETR on features of several sizes, in which a
query attends to a few points of each size, near its place.

Shapes: B batch, h and w of one level (size of features), N = the sum of h w, G num_feature_levels, Q num_queries (of
two stages two_stage_num_proposals), D d_model, L labels.  Places are x and y, and boxes centre x and y, width and
height, as parts of the image without its padding.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ... import ops
from ...config import Config
from ...errors import UnsupportedError
from ...inputs import ImageInputs
from ...nn import CacheLast, Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from ..detr import model as detr
from ..detr.model import EPS
from ..resnet.model import ResNet
from ..rt_detr_v2.decoder import Mlp
from .config import DeformableDetrConfig
from .encoder import (
    POSITIONS,
    EncoderContext,
    EncoderLayer,
    Levels,
    PointAttention,
    Project,
    place_levels,
)
from .queries import Proposals, Queries

BASE = ("backbone", "input_proj", "level_embed", "query_position_embeddings", "reference_points", "encoder", "decoder")
NAME_MAP = replace(
    detr.NAME_MAP, base=(*BASE, "enc_output", "enc_output_norm", "pos_trans", "pos_trans_norm"),
)  # fmt: skip
BASE_NAME_MAP = replace(NAME_MAP, ignored=(*NAME_MAP.ignored, r"^(decoder\.)?(class|bbox)_embed\."))


class DeformableDetrModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, Q, D)
    encoder_last_hidden_state: Array  # (B, N, D)


class DeformableDetrObjectDetectionOutput(NamedTuple):
    logits: Array  # (B, Q, L)
    pred_boxes: Array  # (B, Q, 4)
    last_hidden_state: Array  # (B, Q, D)
    encoder_last_hidden_state: Array  # (B, N, D)


class DecoderContext(NamedTuple):
    """The arguments of every layer of the decoder besides its input and its places."""

    queries: Array  # (1 or B, Q, D)
    memory: Array  # (B, N, D): the encoder's output
    levels: Levels


class DecoderLayer(Module):
    def __init__(self, w: Weights, cfg: DeformableDetrConfig):
        D, F, heads = cfg.d_model, cfg.decoder_ffn_dim, cfg.decoder_attention_heads
        self.attention = detr.Attention(w / "self_attn", D, heads, cfg)
        self.norm = LayerNorm(w / "self_attn_layer_norm", D, EPS)
        self.cross_attention = PointAttention(w / "encoder_attn", cfg, heads, cfg.decoder_n_points)
        self.cross_norm = LayerNorm(w / "encoder_attn_layer_norm", D, EPS)
        self.up = Linear(w / "fc1", D, F, act=cfg.activation_function, dropout=cfg.activation_dropout)
        self.down = Linear(w / "fc2", F, D, dropout=cfg.dropout)
        self.final_norm = LayerNorm(w / "final_layer_norm", D, EPS)

    def __call__(self, x: Array, at: Array, c: DecoderContext) -> Array:
        """x (B, Q, D), at (1 or B, Q, 2 or 4) -> (B, Q, D)."""
        placed = x + c.queries
        x = self.norm(self.attention(placed, placed, x), residual=x)
        x = self.cross_norm(self.cross_attention(x + c.queries, at, c.memory, c.levels), residual=x)
        return self.final_norm(self.down(self.up(x)), residual=x)


class DeformableDetrPretrained(detr.DetrPretrained):
    config_class = DeformableDetrConfig
    name_map = NAME_MAP

    @property
    def like(self) -> Array:
        return self.base_model.level_embed


class DeformableDetrModel(DeformableDetrPretrained):
    """The layers: an image to the state of each query.  Without the heads, places stay where they were first."""

    is_base_model = True
    name_map = BASE_NAME_MAP

    def __init__(self, w: Weights, cfg: DeformableDetrConfig, refines: bool = False):
        """refines: each layer of the decoder corrects the boxes, with heads that are part of it."""
        D, G, self.config = cfg.d_model, cfg.num_feature_levels, cfg
        if cfg.two_stage and not refines:
            raise UnsupportedError("two_stage = True needs the heads, which DeformableDetrModel does not have")
        self.backbone = ResNet(w / "backbone.conv_encoder.model", cfg.resnet)
        widths = [cfg.resnet.hidden_sizes[i - 1] for i in cfg.resnet.outputs]
        more = [widths[-1], *[D] * G][: G - len(widths)]
        projects = [(width, 1) for width in widths] + [(width, 3) for width in more]
        self.projects = [Project(w / "input_proj" / i, cfg, *one) for i, one in enumerate(projects)]
        self.level_embed = w.get("level_embed", (G, D))
        self.tables = POSITIONS[cfg.position_embedding_type](w / "backbone.position_embedding", cfg)
        self.dropout, self._whole = Dropout(cfg.dropout), CacheLast()
        self.encoder_layers = [EncoderLayer(w / "encoder.layers" / i, cfg) for i in range(cfg.encoder_layers)]
        self.propose = Proposals(w, cfg) if cfg.two_stage else Queries(w, cfg)
        self.decoder_layers = [DecoderLayer(w / "decoder.layers" / i, cfg) for i in range(cfg.decoder_layers)]
        layers = range(cfg.decoder_layers if refines else 0)
        self.corrections = [Mlp(w / "decoder.bbox_embed" / i, D, D, D, 4) for i in layers]

    def features(self, pixels: Array) -> list[Array]:
        """pixels (B, Y, X, C) -> (B, h, w, D) of each level."""
        stages = self.backbone(pixels)
        seen, found = [stages[i - 1] for i in self.config.resnet.outputs], []
        for i, project in enumerate(self.projects):
            found.append(project(seen[i] if i < len(seen) else seen[-1] if i == len(seen) else found[-1]))
        return found

    def objects(self, p: ImageInputs) -> tuple[DeformableDetrModelOutput, Array]:
        """-> the output, and the places or boxes (1 or B, Q, 2 or 4) where the last layer looked."""
        maps = self.features(p.pixel_values)
        grids = tuple((m.shape[1], m.shape[2]) for m in maps)
        levels, positions, places = place_levels(grids, p.pixel_mask, self.tables, self.level_embed, self._whole)
        x = self.dropout(ops.cat([m.reshape(m.shape[0], -1, m.shape[3]) for m in maps], 1))
        c = EncoderContext(positions, places, levels)
        for layer in self.encoder_layers:
            x = layer(x, c)
        memory = x
        x, queries, at = self.propose(memory, places, levels)
        d = DecoderContext(queries, memory, levels)
        for i, layer in enumerate(self.decoder_layers):
            if i and self.corrections:
                at = correct_boxes(at, self.corrections[i - 1](x))
            x = layer(x, at, d)
        return DeformableDetrModelOutput(x, memory), at

    def forward(self, p: ImageInputs) -> DeformableDetrModelOutput:
        return self.objects(p)[0]


def correct_boxes(at: Array, change: Array) -> Array:
    """Places or boxes at (1 or B, Q, 2 or 4), changed by a head's logits (B, Q, 4) -> boxes (B, Q, 4)."""
    before, known = ops.logit(at, EPS), at.shape[2]
    parts = [change[..., :known] + before, change[..., known:]]
    return ops.activate(parts[0] if known == 4 else ops.cat(parts, 2), "sigmoid")


class DeformableDetrForObjectDetection(DeformableDetrPretrained):
    @classmethod
    def ties(cls, config: Config) -> dict[str, str]:
        """Heads are those of the decoder, where it has them, or else the first one's (the rule of transformers)."""
        assert isinstance(config, DeformableDetrConfig)
        boxes = [f"layers.{i}.{kind}" for i in range(3) for kind in ("weight", "bias")]
        found = {}
        for name, parts, is_inside in (
            ("bbox_embed", boxes, config.with_box_refine),
            ("class_embed", ["weight", "bias"], config.two_stage),
        ):
            for i in range(config.heads_of_boxes if config.is_tied else 0):
                owner = f"model.decoder.{name}.{i}" if is_inside else f"{name}.0"
                found |= {f"{name}.{i}.{part}": f"{owner}.{part}" for part in parts if owner != f"{name}.{i}"}
        return found

    def __init__(self, w: Weights, cfg: DeformableDetrConfig):
        D, heads, self.config = cfg.d_model, range(cfg.heads_of_boxes), cfg
        self.base_model = DeformableDetrModel(w / "model", cfg, cfg.with_box_refine)
        # All but those of the last layer are for training.
        self.class_embed = [Linear(w / "class_embed" / i, D, cfg.num_labels) for i in heads]
        self.bbox_embed = [Mlp(w / "bbox_embed" / i, D, D, D, 4) for i in heads]
        inside = w / "model.decoder.class_embed"
        self.training_embed = [
            Linear(inside / i, D, cfg.num_labels) for i in range(cfg.decoder_layers if cfg.two_stage else 0)
        ]

    def forward(self, p: ImageInputs) -> DeformableDetrObjectDetectionOutput:
        """-> one object for each query."""
        (x, memory), at = self.base_model.objects(p)
        last = self.config.decoder_layers - 1
        boxes = correct_boxes(at, self.bbox_embed[last](x))
        return DeformableDetrObjectDetectionOutput(self.class_embed[last](x), boxes, x, memory)
