"""SAM 2 (Ravi et al. 2024, https://arxiv.org/abs/2408.00714) for pictures: SAM's prompts and decoder over the maps of
Hiera (vision.py), the two larger of which make masks finer.  What remembers frames of videos is left unread.

Shapes: N images, h w the smallest map, C channels of what both encoders give; M objects of an image, R = N M, P tokens
of prompts, T tokens in all, J masks of an object.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ... import ops
from ...inputs import ImageInputs
from ...inputs.mask_generation import BOTTOM_RIGHT, NO_PLACE, TOP_LEFT, MaskGenerator, PromptInputs, most_stable
from ...nn import Conv2d
from ...typing import Array, RecordField
from ...weights import NameMap, Weights
from ..sam.model import (
    FINAL_EPS,
    FeedForward,
    MaskDecoder,
    PromptEncoder,
    TokenAttention,
    TwoWayLayer,
    TwoWayTransformer,
    fourier_features,
)
from .config import Sam2Config, Sam2MaskDecoderConfig, Sam2VideoConfig
from .vision import VisionEncoder

NAME_MAP = NameMap(
    prefix="sam2",
    base=("shared_image_embedding", "vision_encoder", "prompt_encoder", "mask_decoder", "no_memory_embedding"),
    ignored=(  # of frames before
        r"^memory_(attention|encoder)\.",
        r"^memory_temporal_positional_encoding$",
        r"^(mask_downsample|object_pointer_proj|temporal_positional_encoding_projection_layer)\.",
        r"^(no_memory_positional_encoding|no_object_pointer|occlusion_spatial_embedding_parameter)$",
    ),
)


class FeatureMaps(NamedTuple):
    """What the decoder of masks reads of an image, whatever the prompts are."""

    finest: Array  # (N, 4 h, 4 w, C / 8)
    finer: Array  # (N, 2 h, 2 w, C / 4)
    image_embeddings: Array  # (N, h, w, C)

    fields = (
        RecordField("finest", "finest", ("B", "rows4", "columns4", "channels4"), "float32"),
        RecordField("finer", "finer", ("B", "rows2", "columns2", "channels2"), "float32"),
        RecordField("image_embeddings", "image_embeddings", ("B", "rows", "columns", "channels"), "float32"),
    )


class Sam2Output(NamedTuple):
    iou_scores: Array  # (N, M, J), 0 ... 1
    pred_masks: Array  # (N, M, J, y, x): logits
    object_score_logits: Array  # (N, M, 1): above 0 if the object is there


class Sam2PromptEncoder(PromptEncoder):
    def read_kinds(self, w: Weights, C: int) -> list[Array]:
        return [w.get("point_embed.weight", (4, C))]


class Sam2Attention(TokenAttention):
    out_name = "o_proj"


class Sam2TwoWayLayer(TwoWayLayer):
    attention = Sam2Attention
    mlp_names = "proj_in", "proj_out"


class Sam2TwoWayTransformer(TwoWayTransformer):
    layer = Sam2TwoWayLayer


class Sam2MaskDecoder(MaskDecoder):
    """With a token of whether the object is there, and finer maps of the image."""

    transformer_class = Sam2TwoWayTransformer

    def __init__(self, w: Weights, cfg: Sam2MaskDecoderConfig):
        C = cfg.hidden_size
        super().__init__(w, replace(cfg, hidden_act="relu", layer_norm_eps=FINAL_EPS))  # in spite of the fields
        self.object_token = w.get("obj_score_token.weight", (1, C))
        self.object_score = FeedForward(w / "pred_obj_score_head", C, C, 1, 3)
        self.finest, self.finer = Conv2d(w / "conv_s0", C, C // 8, 1), Conv2d(w / "conv_s1", C, C // 4, 1)

    def output(self, features: FeatureMaps, x: Array, positions: Array, prompts: Array) -> Sam2Output:
        """x (N, h, w, C), which are image_embeddings with masks added, positions (h w, C), prompts (N, M, P, C)."""
        own = ops.cat([self.object_token, self.iou_token, self.mask_tokens], 0)
        t, pixels = self.decode(own, x, positions, prompts, features.finer, features.finest)
        scores, masks = self.read(t[:, 1:], pixels, prompts)
        there = self.object_score(t[:, 0]).reshape(*prompts.shape[:2], 1)
        return Sam2Output(ops.activate(scores, "sigmoid"), masks, there)


class Sam2Model(MaskGenerator):
    config_class = Sam2Config
    name_map = NAME_MAP
    record = FeatureMaps
    box_labels = TOP_LEFT, BOTTOM_RIGHT, NO_PLACE

    def __init__(self, w: Weights, cfg: Sam2Config):
        self.config, C = cfg, cfg.prompt_encoder_config.hidden_size
        self.directions = w.get("shared_image_embedding.positional_embedding", (2, C // 2))
        self.vision_model = VisionEncoder(w / "vision_encoder", cfg.vision_config)
        self.prompt_encoder = Sam2PromptEncoder(w / "prompt_encoder", cfg.prompt_encoder_config)
        self.mask_decoder = Sam2MaskDecoder(w / "mask_decoder", cfg.mask_decoder_config)
        self.no_memory = w.get("no_memory_embedding", (1, 1, C))

    def image_features(self, p: ImageInputs) -> FeatureMaps:
        finest, finer, x = self.vision_model.encode(p)
        return FeatureMaps(self.mask_decoder.finest(finest), self.mask_decoder.finer(finer), x + self.no_memory)

    def masks(self, features: FeatureMaps, prompts: PromptInputs) -> Sam2Output:
        x = features.image_embeddings + self.prompt_encoder.dense(prompts.input_masks)
        positions = fourier_features(ops.centres(self.config.vision_config.grid, x), self.directions)
        return self.mask_decoder.output(features, x, positions, self.prompt_encoder(prompts))

    def forward(self, p: ImageInputs, prompts: PromptInputs) -> Sam2Output:
        return self.masks(self.image_features(p), prompts)

    def choose_masks(self, output: Sam2Output, multimask_output: bool) -> Sam2Output:
        cfg = self.config.mask_decoder_config
        if multimask_output or not cfg.dynamic_multimask_via_stability:
            return super().choose_masks(output, multimask_output)
        return most_stable(output, cfg.dynamic_multimask_stability_delta, cfg.dynamic_multimask_stability_thresh)


class Sam2VideoModel(Sam2Model):
    """A checkpoint for videos, of which pictures are read alone."""

    config_class = Sam2VideoConfig
