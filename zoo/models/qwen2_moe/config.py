"""The config of a Qwen2 checkpoint with experts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...errors import ConfigError
from ..llama3.windows_config import WindowedLayersConfig


@dataclass(frozen=True, kw_only=True)
class Qwen2MoeConfig(WindowedLayersConfig):
    """mlp_only_layers: the layers without experts, beside those that decoder_sparse_step leaves out."""

    reads_attention_bias: ClassVar[bool] = False
    reads_mlp_bias: ClassVar[bool] = False
    model_type: str = "qwen2_moe"
    vocab_size: int = 151936
    hidden_size: int = 2048
    intermediate_size: int = 5632
    num_hidden_layers: int = 24
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 16
    max_position_embeddings: int = 32768
    use_sliding_window: bool = False
    sliding_window: int | None = 4096
    max_window_layers: int = 28
    decoder_sparse_step: int = 1
    moe_intermediate_size: int = 1408
    shared_expert_intermediate_size: int = 5632
    num_experts: int = 60
    num_experts_per_tok: int = 4
    norm_topk_prob: bool = False
    mlp_only_layers: list[int] | None = None
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None

    def __post_init__(self) -> None:
        if not self.use_sliding_window:  # transformers then writes 0
            object.__setattr__(self, "sliding_window", None)
        super().__post_init__()
        self.positive("decoder_sparse_step", "moe_intermediate_size", "shared_expert_intermediate_size")
        self.positive("num_experts", "num_experts_per_tok")
        if self.num_experts_per_tok > self.num_experts:
            raise ConfigError(f"num_experts_per_tok = {self.num_experts_per_tok} of num_experts = {self.num_experts}")

    @property
    def qkv_bias(self) -> bool:
        found = self.extra.get("qkv_bias", True)
        if not isinstance(found, bool):
            raise ConfigError(f"qkv_bias = {found!r}, expected true or false")
        return found

    def slides(self, layer: int) -> bool:
        return self.use_sliding_window and super().slides(layer)

    def slides_by_default(self, layer: int) -> bool:
        return layer % 2 == 0 and layer < self.max_window_layers

    def has_experts(self, layer: int) -> bool:
        """True if a layer has experts instead of one MLP."""
        return layer not in (self.mlp_only_layers or ()) and (layer + 1) % self.decoder_sparse_step == 0
