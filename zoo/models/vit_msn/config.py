"""The config of a ViT-MSN checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ..vit.config import ViTConfig


@dataclass(frozen=True, kw_only=True)
class ViTMSNConfig(ViTConfig):
    model_type: str = "vit_msn"
    layer_norm_eps: float = 1e-6
