"""The config of a Seed-OSS checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ..llama3.config import LlamaConfig


@dataclass(frozen=True, kw_only=True)
class SeedOssConfig(LlamaConfig):
    model_type: str = "seed_oss"
    vocab_size: int = 155136
    intermediate_size: int = 27648
    num_hidden_layers: int = 64
    num_attention_heads: int = 80
    num_key_value_heads: int | None = 8
    head_dim: int | None = 128
    max_position_embeddings: int = 524288
    attention_bias: bool = True
    attention_out_bias: bool = False
    attention_dropout: float | None = 0.1
    residual_dropout: float = 0.1
    pad_token_id: int | None = 1
    bos_token_id: int | None = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.fractions("residual_dropout")

    @property
    def qkv_bias(self) -> bool:
        return self.attention_bias

    @property
    def out_bias(self) -> bool:
        return self.attention_out_bias
