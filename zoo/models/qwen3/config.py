"""The config of a Qwen3 checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ..qwen2.config import QwenConfig


@dataclass(frozen=True, kw_only=True)
class Qwen3Config(QwenConfig):
    model_type: str = "qwen3"
    head_dim: int | None = 128
