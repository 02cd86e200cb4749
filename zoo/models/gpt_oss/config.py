"""The config of a gpt-oss checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...errors import ConfigError
from ..llama3.windows_config import WindowedLayersConfig

YARN = {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False}
YARN |= {"original_max_position_embeddings": 4096}


@dataclass(frozen=True, kw_only=True)
class GptOssConfig(WindowedLayersConfig):
    """swiglu_alpha, swiglu_limit: the steepness of the experts' gates, and the bound of what passes through them."""

    aliases: ClassVar[Mapping[str, str]] = {"num_experts": "num_local_experts"}
    reads_mlp_bias: ClassVar[bool] = False
    model_type: str = "gpt_oss"
    vocab_size: int = 201088
    hidden_size: int = 2880
    intermediate_size: int = 2880
    num_hidden_layers: int = 36
    num_attention_heads: int = 64
    num_key_value_heads: int | None = 8
    head_dim: int | None = 64
    max_position_embeddings: int = 131072
    rms_norm_eps: float = 1e-5
    rope_theta: float = 150000.0
    attention_bias: bool = True
    sliding_window: int | None = 128
    num_local_experts: int = 128
    num_experts_per_tok: int = 4
    swiglu_alpha: float = 1.702
    swiglu_limit: float = 7.0
    pad_token_id: int | None = None
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None

    def __post_init__(self) -> None:
        if not self.rope_scaling and not self.rope_parameters:
            object.__setattr__(self, "rope_parameters", {**YARN, "rope_theta": self.rope_theta})
        super().__post_init__()
        self.positive("num_local_experts", "num_experts_per_tok")
        self.above_zero("swiglu_alpha", "swiglu_limit")
        self.require(hidden_act="silu")
        if self.num_experts_per_tok > self.num_local_experts:
            raise ConfigError(
                f"num_experts_per_tok = {self.num_experts_per_tok} of num_local_experts = {self.num_local_experts}"
            )

    def slides_by_default(self, layer: int) -> bool:
        return layer % 2 == 0
