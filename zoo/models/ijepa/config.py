"""The config of an I-JEPA checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..vit.config import ViTConfig


@dataclass(frozen=True, kw_only=True)
class IJepaConfig(ViTConfig):
    prefix_tokens: ClassVar[tuple[str, ...]] = ()
    model_type: str = "ijepa"
