"""The config of a Ministral 3 checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...errors import ConfigError
from ..llama3.windows_config import WindowedConfig

BETA, CONTEXT = "llama_4_scaling_beta", "original_max_position_embeddings"
YARN: Mapping[str, Any] = {
    "type": "yarn",
    "rope_type": "yarn",
    "rope_theta": 1000000.0,
    "factor": 16.0,
    CONTEXT: 16384,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "mscale_all_dim": 1.0,
    "mscale": 1.0,
    BETA: 0.1,
}
MAX_SCALES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Ministral3Config(WindowedConfig):
    reads_attention_bias: ClassVar[bool] = False
    reads_mlp_bias: ClassVar[bool] = False
    model_type: str = "ministral3"
    vocab_size: int = 131072
    intermediate_size: int = 14336
    num_hidden_layers: int = 34
    num_key_value_heads: int | None = 8
    head_dim: int | None = 128
    max_position_embeddings: int = 262144
    rms_norm_eps: float = 1e-5
    pad_token_id: int | None = 11

    def __post_init__(self) -> None:
        if self.rope_parameters is None and self.rope_scaling is None:
            given = {**YARN, "max_position_embeddings": self.max_position_embeddings}
            object.__setattr__(self, "rope_parameters", given)
        super().__post_init__()
        for name in (BETA, CONTEXT):
            value = self._rope_fields.get(name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ConfigError(
                    f"{name} = {value!r} of rotary positions, expected a number: queries are scaled by it"
                )
        if self.max_positions // self.rope().context > MAX_SCALES:
            context = self._rope_fields[CONTEXT]
            raise ConfigError(f"{CONTEXT} = {context} for {self.max_positions} positions, expected a larger number")

    @property
    def _rope_fields(self) -> dict[str, Any]:
        return self.rope_scaling or self.rope_parameters or {}

    @property
    def query_beta(self) -> float:
        """How fast the factors of queries grow with the logarithm of their positions."""
        return float(self._rope_fields[BETA])
