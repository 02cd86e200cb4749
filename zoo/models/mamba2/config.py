"""The config of a Mamba2 checkpoint."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from ...config import Config
from ...errors import ConfigError, UnsupportedError
from ...files.json_file import INFINITY


@dataclass(frozen=True, kw_only=True)
class Mamba2Config(Config):
    """num_heads, head_dim: the heads of a layer's state, together expand times as wide as hidden_size.  n_groups: the
    groups of heads that share keys and queries, of state_size features.  conv_kernel: the tokens that a convolution
    sees, its own included.
    """

    model_type: str = "mamba2"
    vocab_size: int = 32768
    hidden_size: int = 4096
    num_hidden_layers: int = 64
    num_heads: int = 128
    head_dim: int = 64
    state_size: int = 128
    n_groups: int = 8
    expand: int = 2
    conv_kernel: int = 4
    use_bias: bool = False
    use_conv_bias: bool = True
    hidden_act: str = "silu"
    layer_norm_epsilon: float = 1e-5
    time_step_limit: list[Any] | tuple[Any, ...] = field(default_factory=lambda: [0.0, math.inf])
    tie_word_embeddings: bool = False
    pad_token_id: int | None = 1
    bos_token_id: int | None = 0
    eos_token_id: int | list[int] | None = 2

    def __post_init__(self) -> None:
        self.positive("vocab_size", "hidden_size", "num_hidden_layers", "num_heads", "head_dim", "state_size")
        self.positive("n_groups", "expand", "conv_kernel")
        self.above_zero("layer_norm_epsilon")
        self.divides("n_groups", "num_heads")
        if self.inner_size != self.expand * self.hidden_size:
            raise ConfigError(
                f"num_heads = {self.num_heads} times head_dim = {self.head_dim} is not expand = {self.expand} times "
                f"hidden_size = {self.hidden_size}"
            )
        check_time_steps(self.model_type, self.time_step_limit)
        self.require(rescale_prenorm_residual=False)  # by which transformers divides out_proj as it reads a file

    @property
    def inner_size(self) -> int:
        """The features of all heads."""
        return self.num_heads * self.head_dim

    @property
    def key_width(self) -> int:
        """The features of all keys."""
        return self.n_groups * self.state_size

    @property
    def conv_width(self) -> int:
        """The features that pass through a convolution: values, keys and queries."""
        return self.inner_size + 2 * self.key_width


def check_time_steps(model_type: str, limit: Any) -> None:
    """Refuse bounds of time steps, which transformers applies to prompts and not to single tokens."""
    if not isinstance(limit, list | tuple) or len(limit) != 2:
        raise ConfigError(f"time_step_limit = {limit!r}, expected a list of two numbers")
    low, high = limit
    if isinstance(low, bool) or not isinstance(low, int | float) or low > 0 or high not in (INFINITY, math.inf):
        raise UnsupportedError(f"{model_type}: time_step_limit = {limit!r} is not implemented, only [0, Infinity] is")
