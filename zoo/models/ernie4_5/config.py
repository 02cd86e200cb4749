"""The config of an ERNIE 4.5 checkpoint of texts, without experts."""

from __future__ import annotations

from dataclasses import dataclass

from ..llama3.config import LlamaConfig


@dataclass(frozen=True, kw_only=True)
class Ernie4_5Config(LlamaConfig):  # noqa: N801 - transformers' name
    model_type: str = "ernie4_5"
    vocab_size: int = 103424
    hidden_size: int = 1024
    intermediate_size: int = 3072
    num_hidden_layers: int = 18
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 2
    head_dim: int | None = 128
    max_position_embeddings: int = 131072
    rms_norm_eps: float = 1e-5
    rope_theta: float = 500_000.0
    use_bias: bool = False
    tie_word_embeddings: bool = True
    pad_token_id: int | None = 0

    @property
    def out_bias(self) -> bool:
        """True if all projections have a bias."""
        return self.use_bias

    @property
    def feedforward_bias(self) -> bool:
        return self.use_bias
