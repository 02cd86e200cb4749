"""The config of a Cohere checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..llama3.config import LlamaConfig


@dataclass(frozen=True, kw_only=True)
class CohereConfig(LlamaConfig):
    reads_mlp_bias: ClassVar[bool] = False
    model_type: str = "cohere"
    vocab_size: int = 256000
    hidden_size: int = 8192
    intermediate_size: int = 22528
    num_hidden_layers: int = 40
    num_attention_heads: int = 64
    max_position_embeddings: int = 8192
    layer_norm_eps: float = 1e-5
    logit_scale: float = 0.0625
    rope_theta: float = 500_000.0
    use_qk_norm: bool = False
    tie_word_embeddings: bool = True
    pad_token_id: int | None = 0
    bos_token_id: int | None = 5
    eos_token_id: int | list[int] | None = 255001

    def __post_init__(self) -> None:
        super().__post_init__()
        self.above_zero("layer_norm_eps")
