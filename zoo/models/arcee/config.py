"""The config of an Arcee checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ..llama3.config import LlamaConfig


@dataclass(frozen=True, kw_only=True)
class ArceeConfig(LlamaConfig):
    model_type: str = "arcee"
    hidden_size: int = 2560
    intermediate_size: int = 18432
    hidden_act: str = "relu2"
    max_position_embeddings: int = 4096
    rms_norm_eps: float = 1e-5
    bos_token_id: int | None = 128000
    eos_token_id: int | list[int] | None = 128001

    def __post_init__(self) -> None:
        super().__post_init__()
        self.divides("num_attention_heads", "hidden_size")
