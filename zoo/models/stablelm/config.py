"""The config of a StableLM checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..llama3.config import LlamaConfig


@dataclass(frozen=True, kw_only=True)
class StableLmConfig(LlamaConfig):
    reads_attention_bias: ClassVar[bool] = False
    reads_mlp_bias: ClassVar[bool] = False
    rotates_part: ClassVar[bool] = True
    default_rotary_factor: ClassVar[float] = 0.25
    model_type: str = "stablelm"
    vocab_size: int = 50304
    hidden_size: int = 2560
    intermediate_size: int = 6912
    num_key_value_heads: int | None = 32
    max_position_embeddings: int = 4096
    layer_norm_eps: float = 1e-5
    use_qkv_bias: bool = False
    qk_layernorm: bool = False
    use_parallel_residual: bool = False
    hidden_dropout: float = 0.0
    bos_token_id: int | None = 0
    eos_token_id: int | list[int] | None = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.above_zero("layer_norm_eps")
        self.fractions("hidden_dropout")
        self.require(head_dim=None)

    @property
    def qkv_bias(self) -> bool:
        return self.use_qkv_bias
