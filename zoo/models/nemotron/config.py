"""The config of a Nemotron checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..llama3.config import LlamaConfig


@dataclass(frozen=True, kw_only=True)
class NemotronConfig(LlamaConfig):
    rotates_part: ClassVar[bool] = True
    default_rotary_factor: ClassVar[float] = 0.5
    model_type: str = "nemotron"
    vocab_size: int = 256000
    hidden_size: int = 6144
    intermediate_size: int = 24576
    num_attention_heads: int = 48
    hidden_act: str = "relu2"
    max_position_embeddings: int = 4096
    norm_eps: float = 1e-5
    bos_token_id: int | None = 2
    eos_token_id: int | list[int] | None = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        self.above_zero("norm_eps")
