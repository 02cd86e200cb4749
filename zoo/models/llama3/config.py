"""The config of a Llama checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ...config import Config
from ...errors import ConfigError, UnsupportedError
from ...rope import Rope, rope_of


@dataclass(frozen=True, kw_only=True)
class LlamaConfig(Config):
    """rope_theta and rope_scaling are what hub files have; rope_parameters is transformers 5's name of both in one."""

    model_type: str = "llama"
    vocab_size: int = 32000
    hidden_size: int = 4096
    intermediate_size: int = 11008
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    hidden_act: str = "silu"
    max_position_embeddings: int = 2048
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0
    rope_scaling: dict[str, Any] | None = None
    rope_parameters: dict[str, Any] | None = None
    attention_bias: bool = False
    mlp_bias: bool = False
    attention_dropout: float | None = 0.0
    classifier_dropout: float | None = None
    tie_word_embeddings: bool = False
    rotates_part: ClassVar[bool] = False  # True if the family's attention can rotate a part of a head's features
    default_rotary_factor: ClassVar[float] = 1.0  # where the config says no part
    # False: the family has no such bias, whatever the field says, which transformers ignores.
    reads_attention_bias: ClassVar[bool] = True
    reads_mlp_bias: ClassVar[bool] = True
    pad_token_id: int | None = None
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2

    def __post_init__(self) -> None:
        self.positive("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
        self.positive("max_position_embeddings")
        self.fractions("attention_dropout", "classifier_dropout")
        self.require(is_causal=True)  # gte-Qwen2's tokens see those after them, by code of its own
        if self.head_dim is None:
            self.divides("num_attention_heads", "hidden_size")
        else:
            self.positive("head_dim")
        if self.num_key_value_heads is not None:
            self.positive("num_key_value_heads")
            self.divides("num_key_value_heads", "num_attention_heads")
        self.above_zero("rms_norm_eps")
        ends = self.eos_token_id if isinstance(self.eos_token_id, list) else []
        if any(isinstance(end, bool) or not isinstance(end, int) for end in ends):
            raise ConfigError(f"eos_token_id = {ends!r}, expected an id or a list of ids")
        if self.partial_rotary_factor != 1 and not self.rotates_part:
            raise UnsupportedError(
                f"{self.model_type}: partial_rotary_factor = {self.partial_rotary_factor} is not implemented, only 1 is"
            )
        self.rope()

    @property
    def head_size(self) -> int:
        return self.hidden_size // self.num_attention_heads if self.head_dim is None else self.head_dim

    @property
    def key_heads(self) -> int:
        return self.num_attention_heads if self.num_key_value_heads is None else self.num_key_value_heads

    @property
    def qkv_bias(self) -> bool:
        """True if the projections to queries, keys and values have a bias."""
        return self.out_bias

    @property
    def out_bias(self) -> bool:
        """True if attention's output projection has a bias."""
        return self.attention_bias and self.reads_attention_bias

    @property
    def feedforward_bias(self) -> bool:
        """True if the MLP's projections have a bias."""
        return self.mlp_bias and self.reads_mlp_bias

    def window(self, layer: int) -> int | None:
        """The number of tokens before itself that a token of this layer attends to; None for all."""
        return None

    def rotates(self, layer: int) -> bool:
        """True if this layer has rotary positions."""
        return True

    @property
    def max_positions(self) -> int:
        """The length of the longest text that the positions allow."""
        return self.rope().max_positions

    @property
    def partial_rotary_factor(self) -> float:
        """The part of a head's features that positions rotate."""
        given = self.rope_scaling or self.rope_parameters or {}
        found = given.get("partial_rotary_factor", self.extra.get("partial_rotary_factor", self.default_rotary_factor))
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found <= 1:
            raise ConfigError(f"partial_rotary_factor = {found!r} is out of range, expected a number in 0 ... 1")
        return float(found)

    @property
    def ropes(self) -> tuple[Rope, ...]:
        return (self.rope(),)

    def rope(self) -> Rope:
        """The rotary positions of queries and keys."""
        given = [d for d in (self.rope_scaling, self.rope_parameters) if d]
        if len(given) == 2 and given[0] != given[1]:
            raise ConfigError(f"rope_scaling = {given[0]} and rope_parameters = {given[1]} disagree: give one of them")
        parameters = {"rope_theta": self.rope_theta, **(given[0] if given else {})}
        original = "original_max_position_embeddings"
        if (own := getattr(self, original, self.extra.get(original))) is not None:
            parameters[original] = own
        return rope_of(parameters, int(self.head_size * self.partial_rotary_factor), self.max_position_embeddings)
