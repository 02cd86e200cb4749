"""The config of a ConvNeXt V2 checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ..convnext.config import ConvNextConfig


@dataclass(frozen=True, kw_only=True)
class ConvNextV2Config(ConvNextConfig):
    """layer_scale_init_value, which ConvNeXt has, changes nothing: there is no such scale."""

    model_type: str = "convnextv2"
