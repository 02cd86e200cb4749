"""The config of a Falcon-H1 checkpoint."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from ...errors import ConfigError
from ..llama3.config import LlamaConfig
from ..mamba2.config import check_time_steps


@dataclass(frozen=True, kw_only=True)
class FalconH1Config(LlamaConfig):
    """mamba_*: the states' heads and sizes, as Mamba2's; mamba_d_ssm is the width of all heads, mamba_expand times
    hidden_size by default.  The multipliers are muP's (Yang et al. 2022, https://arxiv.org/abs/2203.03466):
    mlp_multipliers of gate and result, ssm_multipliers of gates, values, keys, queries and time steps.
    """

    model_type: str = "falcon_h1"
    vocab_size: int = 128_000
    intermediate_size: int = 14336
    num_key_value_heads: int | None = 8
    max_position_embeddings: int = 8192
    rms_norm_eps: float = 1e-5
    mamba_d_ssm: int | None = 1024
    mamba_n_heads: int = 128
    mamba_d_head: str | int | None = None
    mamba_n_groups: int = 1
    mamba_d_state: int = 256
    mamba_d_conv: int = 4
    mamba_expand: int = 2
    mamba_conv_bias: bool = True
    mamba_proj_bias: bool = False
    mamba_norm_before_gate: bool = True
    mamba_rms_norm: bool = False
    projectors_bias: bool = False
    time_step_limit: list[Any] | tuple[Any, ...] = field(default_factory=lambda: [0.0, math.inf])
    embedding_multiplier: float = 1.0
    lm_head_multiplier: float = 1.0
    key_multiplier: float = 1.0
    attention_in_multiplier: float = 1.0
    attention_out_multiplier: float = 1.0
    ssm_in_multiplier: float = 1.0
    ssm_out_multiplier: float = 1.0
    mlp_multipliers: list[float] | None = None
    ssm_multipliers: list[float] | None = None
    pad_token_id: int | None = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("mamba_n_heads", "mamba_n_groups", "mamba_d_state", "mamba_d_conv", "mamba_expand")
        if self.mamba_d_ssm is not None:
            self.positive("mamba_d_ssm")
        self.divides("mamba_n_groups", "mamba_n_heads")
        size, width, heads = self.mamba_d_head, self.inner_size, self.mamba_n_heads
        if width % heads or (size not in ("auto", None) and size != width // heads):
            raise ConfigError(
                f"mamba_n_heads = {heads} of mamba_d_head = {size} are not as wide as mamba_d_ssm = {width}"
            )
        for name, count in (("mlp_multipliers", 2), ("ssm_multipliers", 5)):
            if (given := getattr(self, name)) is not None and len(given) != count:
                raise ConfigError(f"{name} has {len(given)} numbers, expected {count}")
        check_time_steps(self.model_type, self.time_step_limit)

    @property
    def inner_size(self) -> int:
        """The features of all heads of a state."""
        return self.mamba_expand * self.hidden_size if self.mamba_d_ssm is None else self.mamba_d_ssm

    @property
    def key_width(self) -> int:
        """The features of all keys of a state."""
        return self.mamba_n_groups * self.mamba_d_state

    @property
    def conv_width(self) -> int:
        """The features that pass through a convolution: values, keys and queries."""
        return self.inner_size + 2 * self.key_width
