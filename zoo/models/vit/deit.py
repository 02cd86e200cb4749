"""DeiT (Touvron et al. 2020, https://arxiv.org/abs/2012.12877): ViT with one more token, which learns from a teacher.

Checkpoints that were trained without a teacher have no such token: their model_type is vit.  Shapes: as for ViT.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ...nn import Linear
from ...pretrained import Pretrained
from ...typing import Array
from ...weights import Layout, Weights
from .config import DeiTConfig
from .model import BODY, LAYER_NAMES, Embeddings, PixelDecoder, ViTModel

LAYOUT = Layout(
    prefix="deit",
    body=BODY,
    renames=LAYER_NAMES,
    # They stay in files whose head no longer uses them.
    ignored=(r"^(deit\.)?pooler\.", r"(^|\.)embeddings\.mask_token$"),
)


class DeiTForImageClassificationWithTeacherOutput(NamedTuple):
    logits: Array  # (B, L): the mean of the other two
    cls_logits: Array  # (B, L)
    distillation_logits: Array  # (B, L)


class DeiTEmbeddings(Embeddings):
    tokens = ("cls_token", "distillation_token")


class DeiTPretrained(Pretrained):
    config_class = DeiTConfig
    layout = LAYOUT


class DeiTModel(ViTModel):
    """ViT's stack with two special tokens."""

    config_class = DeiTConfig
    layout = replace(LAYOUT, ignored=(*LAYOUT.ignored, r"^(cls_|distillation_)?classifier\.", r"^decoder\."))
    embeddings_class = DeiTEmbeddings


class DeiTForImageClassification(DeiTPretrained):
    """A classifier of the class token alone."""

    def __init__(self, w: Weights, cfg: DeiTConfig):
        self.config = cfg
        self.body = DeiTModel(w / "deit", cfg, pooler=False)
        self.classifier = Linear(w / "classifier", cfg.hidden_size, cfg.num_labels)

    def __call__(self, pixel_values: Array, interpolate_pos_encoding: bool = False) -> Array:
        """pixel_values (B, Y, X, C) -> logits (B, L)."""
        x = self.body(pixel_values, interpolate_pos_encoding=interpolate_pos_encoding).last_hidden_state
        return self.classifier(x[:, 0])


class DeiTForImageClassificationWithTeacher(DeiTPretrained):
    """A classifier of the class token, and one of the token that learned what the teacher says."""

    def __init__(self, w: Weights, cfg: DeiTConfig):
        self.config = cfg
        self.body = DeiTModel(w / "deit", cfg, pooler=False)
        self.cls_classifier = Linear(w / "cls_classifier", cfg.hidden_size, cfg.num_labels)
        self.distillation_classifier = Linear(w / "distillation_classifier", cfg.hidden_size, cfg.num_labels)

    def __call__(
        self, pixel_values: Array, interpolate_pos_encoding: bool = False
    ) -> DeiTForImageClassificationWithTeacherOutput:
        """pixel_values (B, Y, X, C) -> logits (B, L) of both classifiers, and their mean."""
        x = self.body(pixel_values, interpolate_pos_encoding=interpolate_pos_encoding).last_hidden_state
        own, taught = self.cls_classifier(x[:, 0]), self.distillation_classifier(x[:, 1])
        return DeiTForImageClassificationWithTeacherOutput((own + taught) / 2, own, taught)


class DeiTForMaskedImageModeling(DeiTPretrained):
    """SimMIM (Xie et al. 2021, https://arxiv.org/abs/2111.09886)."""

    def __init__(self, w: Weights, cfg: DeiTConfig):
        self.config = cfg
        self.body = DeiTModel(w / "deit", cfg, pooler=False, mask_token=True)
        self.decoder = PixelDecoder(w / "decoder", cfg)

    def __call__(
        self,
        pixel_values: Array,
        bool_masked_pos: Array | None = None,
        interpolate_pos_encoding: bool = False,
    ) -> Array:
        """pixel_values (B, Y, X, C), bool_masked_pos (B, N) -> the reconstruction (B, Y, X, C)."""
        x = self.body(pixel_values, bool_masked_pos, interpolate_pos_encoding).last_hidden_state
        return self.decoder(x[:, 2:], self.body.embeddings.grid(pixel_values))
