"""The config of an M2M-100 or NLLB checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...errors import ConfigError
from ..mbart.config import MBartConfig


@dataclass(frozen=True, kw_only=True)
class M2M100Config(MBartConfig):
    learned: ClassVar[bool] = False
    # What TrOCR's embeddings, which may have the same positions, ask of a config.
    use_learned_position_embeddings: ClassVar[bool] = False
    layernorm_embedding: ClassVar[bool] = False
    model_type: str = "m2m_100"
    vocab_size: int = 128112
    activation_function: str = "relu"
    scale_embedding: bool = True
    attention_dropout: float = 0.1
    decoder_start_token_id: int | None = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pad_token_id is None or not 0 <= self.pad_token_id < self.vocab_size:
            raise ConfigError(
                f"pad_token_id = {self.pad_token_id}, and positions count from it: expected 0 ... {self.vocab_size - 1}"
            )
