"""Grounding DINO (Liu et al. 2023, https://arxiv.org/abs/2303.05499): a Deformable DETR that reads.  A text of phrases
("a cat. a remote control.") goes with the image through the encoder, features that fit one of its tokens become
queries, and each query's logits are its products with the tokens.

Shapes: B batch, h and w of one level (size of features), N = the sum of h w, G num_feature_levels, T tokens, M
max_text_len, Q num_queries, D d_model, H heads.  Places are x and y, and boxes centre x and y, width and height, as
parts of the image without its padding.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

from ... import ops
from ...config import Config
from ...errors import InputError
from ...inputs import Context, ImageInputs, TextInputs
from ...inputs.phrases import PhraseDetector, Phrases
from ...nn import CacheLast, LayerNorm, Linear
from ...typing import Array
from ...weights import NameMap, Weights
from ..deformable_detr.encoder import Levels, Project, place_levels
from ..deformable_detr.model import correct_boxes
from ..deformable_detr.queries import anchors
from ..rt_detr_v2.decoder import Mlp
from ..swin.model import MEMORY_NAMES
from .backbones import POSITIONS, Backbone, Net, TextNet
from .config import GroundingDinoConfig
from .decoder import Contrast, DecoderContext, DecoderLayer
from .encoder import DELIMITERS, EncoderContext, EncoderLayer, find_phrases

NAME_MAP = NameMap(
    prefix="model",
    base=(
        *("backbone", "input_proj_vision", "text_backbone", "text_projection", "query_position_embeddings", "encoder"),
        *("decoder", "level_embed", "enc_output", "enc_output_norm"),
        *("encoder_output_bbox_embed", "encoder_output_class_embed"),
    ),
    # Swin's parts have a prefix of their own since version 5 of transformers, in memory alone.
    renames={**MEMORY_NAMES, r"(conv_encoder\.model\.)(embeddings|encoder)\.": r"\1swin.\2."},
    ignored=(
        *(r"\.relative_position_index$", r"conv_encoder\.model\.swin\.(layernorm\.|embeddings\.mask_token$)"),
        *(r"text_backbone\.pooler\.", r"text_backbone\.embeddings\.position_ids$"),
    ),
)


BASE_NAME_MAP = replace(NAME_MAP, ignored=(*NAME_MAP.ignored, r"^(decoder\.)?(class|bbox)_embed\."))


class GroundingDinoModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, Q, D)
    encoder_last_hidden_state_vision: Array  # (B, N, D)
    encoder_last_hidden_state_text: Array  # (B, T, D)


class GroundingDinoObjectDetectionOutput(NamedTuple):
    logits: Array  # (B, Q, M): of each token; -inf for padding, and where the text has ended
    pred_boxes: Array  # (B, Q, 4)
    last_hidden_state: Array  # (B, Q, D)
    encoder_last_hidden_state_vision: Array  # (B, N, D)
    encoder_last_hidden_state_text: Array  # (B, T, D)


class GroundingDinoPretrained(PhraseDetector):
    config_class = GroundingDinoConfig
    name_map = NAME_MAP
    # The norm of a Swin that classifies images, which files have and nothing here calls.
    only_saved = (r"conv_encoder\.model\.swin\.layernorm\.",)
    contrast_class: ClassVar[type[Contrast]] = Contrast
    delimiters = DELIMITERS

    @property
    def like(self) -> Array:
        return self.base_model.level_embed

    @property
    def vision_model(self) -> Net:
        return self.base_model.backbone.net

    @property
    def text_model(self) -> TextNet:
        return self.base_model.text_backbone


class GroundingDinoModel(GroundingDinoPretrained):
    """The layers: an image and a text to the state of each query.  Without the heads, boxes stay where they were first.

    refines: each layer of the decoder corrects the boxes, with heads that are part of it.
    """

    is_base_model = True
    name_map = BASE_NAME_MAP

    def __init__(self, w: Weights, cfg: GroundingDinoConfig, refines: bool = False):
        D, G, eps, self.config = cfg.d_model, cfg.num_feature_levels, cfg.layer_norm_eps, cfg
        self.backbone = Backbone(w / "backbone", cfg)
        widths = [cfg.swin.embed_dim * 2 ** max(i - 1, 0) for i in cfg.swin.outputs]
        projects = [(width, 1) for width in widths] + [(width, 3) for width in [widths[-1], *[D] * G]]
        self.projects = [Project(w / "input_proj_vision" / i, cfg, *one) for i, one in enumerate(projects[:G])]
        self.tables = POSITIONS[cfg.position_embedding_type](w / "backbone.position_embedding", cfg)
        self.level_embed, self._whole = w.get("level_embed", (G, D)), CacheLast()
        self.text_backbone = TextNet(w / "text_backbone", cfg)
        self.text_projection = Linear(w / "text_projection", cfg.text_config.hidden_size, D)
        self.encoder_layers = [EncoderLayer(w / "encoder.layers" / i, cfg) for i in range(cfg.encoder_layers)]
        self.query_table = w.get("query_position_embeddings.weight", (cfg.num_queries, D))
        self.propose, self.propose_norm = Linear(w / "enc_output", D, D), LayerNorm(w / "enc_output_norm", D, eps)
        self.first_score = self.contrast_class(w / "encoder_output_class_embed", cfg)
        self.first_box = Mlp(w / "encoder_output_bbox_embed", D, D, D, 4)
        self.place = Mlp(w / "decoder.reference_points_head", 2 * D, D, D)
        self.decoder_layers = [DecoderLayer(w / "decoder.layers" / i, cfg) for i in range(cfg.decoder_layers)]
        self.decoder_norm = LayerNorm(w / "decoder.layer_norm", D, eps)
        layers = range(cfg.decoder_layers if refines else 0)
        self.corrections = [Mlp(w / "decoder.bbox_embed" / i, D, D, D, 4) for i in layers]

    def text_states(self, t: TextInputs) -> Array:
        phrases, positions = find_phrases(t.ids)
        apart = t._replace(position_ids=positions, context=Context(texts=phrases))
        return self.text_projection(self.text_backbone.encode(apart))

    def features(self, p: ImageInputs) -> list[Array]:
        """-> (B, h, w, D) of each level."""
        seen, found = self.backbone(p), []
        for i, project in enumerate(self.projects):
            found.append(project(seen[i] if i < len(seen) else seen[-1] if i == len(seen) else found[-1]))
        return found

    def encode(self, p: ImageInputs, q: Phrases) -> tuple[DecoderContext, Array]:
        """-> what the decoder looks at, and places (1 or B, N, 2) of the features."""
        maps = self.features(p)
        grids = tuple((m.shape[1], m.shape[2]) for m in maps)
        levels, positions, places = place_levels(grids, p.pixel_mask, self.tables, self.level_embed, self._whole)
        x, text = ops.cat([m.reshape(m.shape[0], -1, m.shape[3]) for m in maps], 1), q.text_states
        phrases, at = find_phrases(q.input_ids)
        bias: Any = Context(texts=phrases).other_texts_bias(text)
        waves = ops.sinusoids(at * (2 * math.pi), text.shape[2], text)
        c = EncoderContext(positions, places, levels, waves, bias, q.attention_mask)
        for layer in self.encoder_layers:
            x, text = layer(x, text, c)
        return DecoderContext(x, levels, text, q.attention_mask), places

    def first_boxes(self, c: DecoderContext, places: Array) -> Array:
        """places (1 or B, N, 2) -> boxes (B, Q, 4) around those features that fit a token best."""
        Q, N = self.config.num_queries, c.memory.shape[1]
        if N < Q:
            raise InputError(f"the image has {N} places, too few for num_queries = {Q}")
        boxes, is_inside = anchors(places, c.levels)
        x = ops.where(is_inside, c.memory, ops.zeros((1, 1, 1), c.memory))
        x = self.propose_norm(self.propose(x))
        best = ops.top_rows(self.first_score(x, c.text, c.text_mask), Q)
        return ops.activate(ops.take_rows(self.first_box(x) + boxes, best), "sigmoid")

    def query_positions(self, at: Array, levels: Levels) -> Array:
        """boxes at (B, Q, 4) -> (B, Q, D)."""
        if levels.parts is not None:
            at = at * ops.cat([levels.parts[:, :1]] * 2, 2)
        at = ops.cat([at[..., 1:2], at[..., :1], at[..., 2:]], 2) * (2 * math.pi)
        waves = ops.sinusoids(at, self.config.d_model // 2, at)
        return self.place(waves.reshape(*at.shape[:2], 2 * self.config.d_model))

    def objects(self, p: ImageInputs, q: Phrases) -> tuple[GroundingDinoModelOutput, Array]:
        """-> the output, and the boxes (B, Q, 4) where the last layer looked."""
        c, places = self.encode(p, q)
        at = self.first_boxes(c, places)
        x = ops.cat([self.query_table[None]] * at.shape[0], 0)
        for i, layer in enumerate(self.decoder_layers):
            if i and self.corrections:
                at = correct_boxes(at, self.corrections[i - 1](x))
            x = layer(x, at, self.query_positions(at, c.levels), c)
        return GroundingDinoModelOutput(self.decoder_norm(x), c.memory, c.text), at

    def forward(self, p: ImageInputs, t: TextInputs) -> GroundingDinoModelOutput:
        return self.detect(p, Phrases(self.text_states(t), t.ids, t.context.mask))

    def detect(self, p: ImageInputs, q: Phrases) -> GroundingDinoModelOutput:
        return self.objects(p, q)[0]


class GroundingDinoForObjectDetection(GroundingDinoPretrained):
    base_class: ClassVar[type[GroundingDinoModel]] = GroundingDinoModel

    @classmethod
    def ties(cls, config: Config) -> dict[str, str]:
        """The decoder's heads are those outside of it, and these, where they are shared, the first one's."""
        assert isinstance(config, GroundingDinoConfig)
        found = {}
        for name, parts, is_shared in cls.heads(config):
            for i in range(config.decoder_layers if config.is_tied else 0):
                owner = f"{name}.{0 if is_shared else i}"
                found |= {f"model.decoder.{name}.{i}.{part}": f"{owner}.{part}" for part in parts}
                found |= {f"{name}.{i}.{part}": f"{owner}.{part}" for part in parts if i and is_shared}
        return found

    @classmethod
    def heads(cls, config: GroundingDinoConfig) -> list[tuple[str, list[str], bool]]:
        """The heads that each layer of the decoder has: name, tensors, and whether all layers share one."""
        boxes = [f"layers.{i}.{kind}" for i in range(3) for kind in ("weight", "bias")]
        return [("bbox_embed", boxes, config.decoder_bbox_embed_share)]

    def __init__(self, w: Weights, cfg: GroundingDinoConfig):
        D, layers, self.config = cfg.d_model, range(cfg.decoder_layers), cfg
        self.base_model = self.base_class(w / "model", cfg, refines=True)
        # All but those of the last layer are for training.
        self.bbox_embed = [Mlp(w / "bbox_embed" / i, D, D, D, 4) for i in layers]
        self.class_embed = [self.contrast_class(w / "class_embed" / i, cfg) for i in layers]

    def text_states(self, t: TextInputs) -> Array:
        return self.base_model.text_states(t)

    def forward(self, p: ImageInputs, t: TextInputs) -> GroundingDinoObjectDetectionOutput:
        return self.detect(p, Phrases(self.text_states(t), t.ids, t.context.mask))

    def detect(self, p: ImageInputs, q: Phrases) -> GroundingDinoObjectDetectionOutput:
        """-> one object for each query."""
        (x, memory, text), at = self.base_model.objects(p, q)
        last, (B, Q, _), T = self.config.decoder_layers - 1, x.shape, text.shape[1]
        boxes = correct_boxes(at, self.bbox_embed[last](x))
        logits = self.class_embed[last](x, text, q.attention_mask)
        rest = ops.zeros((B, Q, self.config.max_text_len - T), x) - math.inf
        return GroundingDinoObjectDetectionOutput(ops.cat([logits, rest], 2), boxes, x, memory, text)
