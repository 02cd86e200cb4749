"""The config of a Table Transformer checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ..detr.config import DetrConfig


@dataclass(frozen=True, kw_only=True)
class TableTransformerConfig(DetrConfig):
    model_type: str = "table-transformer"
