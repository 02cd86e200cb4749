"""The config of a CodeGen checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...errors import ConfigError
from ..gptj.config import GPTJConfig


@dataclass(frozen=True, kw_only=True)
class CodeGenConfig(GPTJConfig):
    parts: ClassVar[int] = 4  # The heads of a part are beside each other in the projection.
    model_type: str = "codegen"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_head % self.parts:
            raise ConfigError(f"n_head = {self.n_head}, expected a multiple of {self.parts}")
