"""The config of a Conditional DETR checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ..detr.config import DetrConfig


@dataclass(frozen=True, kw_only=True)
class ConditionalDetrConfig(DetrConfig):
    model_type: str = "conditional_detr"
    num_queries: int = 300
    class_cost: int | float = 2

    @property
    def max_objects(self) -> int:
        """The most objects of an image, as in transformers: pairs of a query and a label."""
        return 100
