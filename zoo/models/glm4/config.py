"""The config of a GLM-4 checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..llama3.config import LlamaConfig


@dataclass(frozen=True, kw_only=True)
class Glm4Config(LlamaConfig):
    reads_mlp_bias: ClassVar[bool] = False
    rotates_part: ClassVar[bool] = True
    default_rotary_factor: ClassVar[float] = 0.5
    model_type: str = "glm4"
    vocab_size: int = 151552
    intermediate_size: int = 13696
    num_hidden_layers: int = 40
    num_key_value_heads: int | None = 2
    head_dim: int | None = 128
    max_position_embeddings: int = 131072
    rms_norm_eps: float = 1.5625e-07
    attention_bias: bool = True
    pad_token_id: int | None = 151329
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None

    def __post_init__(self) -> None:
        if self.eos_token_id is None:
            object.__setattr__(self, "eos_token_id", [151329, 151336, 151338])
        super().__post_init__()

    @property
    def qkv_bias(self) -> bool:
        return self.attention_bias

    @property
    def out_bias(self) -> bool:
        return False
