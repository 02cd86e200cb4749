"""The config of a Qwen3 checkpoint with experts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...errors import ConfigError
from ..llama3.windows_config import WindowedConfig


@dataclass(frozen=True, kw_only=True)
class Qwen3MoeConfig(WindowedConfig):
    """mlp_only_layers: the layers without experts, beside those that decoder_sparse_step leaves out."""

    aliases: ClassVar[Mapping[str, str]] = {"num_local_experts": "num_experts"}
    reads_mlp_bias: ClassVar[bool] = False
    model_type: str = "qwen3_moe"
    vocab_size: int = 151936
    hidden_size: int = 2048
    intermediate_size: int = 6144
    num_hidden_layers: int = 24
    num_attention_heads: int = 32
    num_key_value_heads: int | None = 4
    max_position_embeddings: int = 32768
    use_sliding_window: bool = False
    sliding_window: int | None = 4096
    decoder_sparse_step: int = 1
    moe_intermediate_size: int = 768
    num_experts: int = 128
    num_experts_per_tok: int = 8
    norm_topk_prob: bool = False
    mlp_only_layers: list[int] | None = None
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("decoder_sparse_step", "moe_intermediate_size", "num_experts", "num_experts_per_tok")
        if self.num_experts_per_tok > self.num_experts:
            raise ConfigError(f"num_experts_per_tok = {self.num_experts_per_tok} of num_experts = {self.num_experts}")

    def slides(self, layer: int) -> bool:
        return self.use_sliding_window

    def has_experts(self, layer: int) -> bool:
        """True if a layer has experts instead of one MLP."""
        return layer not in (self.mlp_only_layers or ()) and (layer + 1) % self.decoder_sparse_step == 0
