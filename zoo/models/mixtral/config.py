"""The config of a Mixtral checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...errors import ConfigError
from ..llama3.windows_config import WindowedConfig


@dataclass(frozen=True, kw_only=True)
class MixtralConfig(WindowedConfig):
    aliases: ClassVar[Mapping[str, str]] = {"num_experts": "num_local_experts"}
    reads_attention_bias: ClassVar[bool] = False
    reads_mlp_bias: ClassVar[bool] = False
    model_type: str = "mixtral"
    intermediate_size: int = 14336
    num_key_value_heads: int | None = 8
    max_position_embeddings: int = 4096 * 32
    rms_norm_eps: float = 1e-5
    rope_theta: float = 1_000_000.0
    num_experts_per_tok: int = 2
    num_local_experts: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("num_experts_per_tok", "num_local_experts")
        self.require(layer_types=None)
        if self.num_experts_per_tok > self.num_local_experts:
            raise ConfigError(
                f"num_experts_per_tok = {self.num_experts_per_tok} of num_local_experts = {self.num_local_experts}"
            )
