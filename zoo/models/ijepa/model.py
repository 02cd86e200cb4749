"""I-JEPA (Assran et al. 2023, https://arxiv.org/abs/2301.08243): ViT without a class token, trained to predict the
states of hidden parts of an image.

Shapes: B batch, N patches, D hidden_size, L labels.
"""

from __future__ import annotations

from dataclasses import replace

from ... import ops
from ...inputs import ImageInputs
from ...typing import Array
from ...weights import Weights
from ..vit import model as vit
from .config import IJepaConfig

NAME_MAP = replace(
    vit.NAME_MAP, prefix="ijepa", ignored=(r"^(ijepa\.)?pooler\.", r"(^|\.)embeddings\.mask_token$", r"^classifier\.")
)


class Embeddings(vit.Embeddings):
    """The patches row by row, with their positions added."""

    def __call__(self, p: ImageInputs) -> Array:
        """-> (B, N, D)."""
        assert self.positions is not None
        return self.dropout(self.patches(p) + self.positions(p.grid)[1])


class IJepaModel(vit.ViTModel):
    config_class = IJepaConfig
    name_map = NAME_MAP
    embeddings_class = Embeddings

    def __init__(self, w: Weights, cfg: IJepaConfig, pooler: bool = False, mask_token: bool | None = None):
        super().__init__(w, cfg, pooler=False, mask_token=mask_token)


class IJepaForImageClassification(vit.ViTForImageClassification):
    """A linear layer on the mean of the patches."""

    config_class = IJepaConfig
    name_map = NAME_MAP
    base_class = IJepaModel

    def forward(self, p: ImageInputs) -> Array:
        """-> logits (B, L)."""
        return self.classifier(ops.mean(self.base_model.encode(p), 1))
