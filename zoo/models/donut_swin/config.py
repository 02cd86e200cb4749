"""The config of Donut's encoder."""

from __future__ import annotations

from dataclasses import dataclass

from ..swin.config import SwinConfig


@dataclass(frozen=True, kw_only=True)
class DonutSwinConfig(SwinConfig):
    model_type: str = "donut-swin"
