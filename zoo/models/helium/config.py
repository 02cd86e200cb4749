"""The config of a Helium checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import ConfigError
from ..llama3.config import LlamaConfig


@dataclass(frozen=True, kw_only=True)
class HeliumConfig(LlamaConfig):
    model_type: str = "helium"
    vocab_size: int = 48000
    hidden_size: int = 2560
    intermediate_size: int = 7040
    num_hidden_layers: int = 24
    num_attention_heads: int = 20
    num_key_value_heads: int | None = 20
    head_dim: int | None = 128
    max_position_embeddings: int = 4096
    rms_norm_eps: float = 1e-8
    rope_theta: float = 100_000.0
    pad_token_id: int | None = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_attention_heads * self.head_size != self.hidden_size:
            raise ConfigError(
                f"num_attention_heads = {self.num_attention_heads} of head_dim = {self.head_size} are not "
                f"hidden_size = {self.hidden_size} together"
            )

    @property
    def qkv_bias(self) -> bool:
        return self.attention_bias

    @property
    def out_bias(self) -> bool:
        return False
