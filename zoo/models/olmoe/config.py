"""The config of an OLMoE checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...errors import ConfigError
from ..llama3.config import LlamaConfig


@dataclass(frozen=True, kw_only=True)
class OlmoeConfig(LlamaConfig):
    aliases: ClassVar[Mapping[str, str]] = {"num_local_experts": "num_experts"}
    reads_mlp_bias: ClassVar[bool] = False
    model_type: str = "olmoe"
    vocab_size: int = 50304
    hidden_size: int = 2048
    intermediate_size: int = 2048
    num_hidden_layers: int = 16
    num_attention_heads: int = 16
    max_position_embeddings: int = 4096
    rms_norm_eps: float = 1e-5
    num_experts: int = 64
    num_experts_per_tok: int = 8
    norm_topk_prob: bool = False
    pad_token_id: int | None = 1
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = 50279

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("num_experts", "num_experts_per_tok")
        self.require(clip_qkv=None, sliding_window=None, head_dim=None)
        if self.num_experts_per_tok > self.num_experts:
            raise ConfigError(f"num_experts_per_tok = {self.num_experts_per_tok} of num_experts = {self.num_experts}")

    @property
    def moe_intermediate_size(self) -> int:
        """The width of an expert, by Qwen3's name."""
        return self.intermediate_size
