"""The config of a dense Hunyuan checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from ...errors import ConfigError
from ...rope import Rope, rope_of
from ..llama3.config import LlamaConfig


@dataclass(frozen=True, kw_only=True)
class HunYuanDenseV1Config(LlamaConfig):
    reads_mlp_bias: ClassVar[bool] = False
    model_type: str = "hunyuan_v1_dense"
    vocab_size: int = 290943
    rms_norm_eps: float = 1e-5
    pad_token_id: int | None = 0

    def rope(self) -> Rope:
        """The rotary positions of queries and keys.  "dynamic" with an `alpha` is a longer base at every length."""
        given = self.rope_scaling or self.rope_parameters or {}
        alpha = given.get("alpha")
        if not alpha or given.get("rope_type", given.get("type")) != "dynamic":
            return super().rope()
        if isinstance(alpha, bool) or not isinstance(alpha, int | float) or alpha <= 0:
            raise ConfigError(f"alpha = {alpha!r} of rotary positions, expected a number above 0")
        K = self.head_size
        if K < 4:
            raise ConfigError(f"alpha of rotary positions for heads of {K} features: expected at least 4")
        plain = replace(self, rope_scaling=None, rope_parameters=None)
        theta = float(given.get("rope_theta", plain.rope_theta)) * alpha ** (K / (K - 2))
        return rope_of({"rope_theta": theta}, K, self.max_position_embeddings)
