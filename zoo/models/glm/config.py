"""The config of a GLM checkpoint in transformers' form."""

from __future__ import annotations

from dataclasses import dataclass

from ..glm4.config import Glm4Config


@dataclass(frozen=True, kw_only=True)
class GlmConfig(Glm4Config):
    model_type: str = "glm"
