"""The config of a GPT-NeoX checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...errors import ConfigError
from ...rope import Rope, rope_of
from ..llama3.config import LlamaConfig


@dataclass(frozen=True, kw_only=True)
class GPTNeoXConfig(LlamaConfig):
    """rotary_emb_base and rotary_pct are what hub files have; rope_parameters is transformers 5's name of both."""

    model_type: str = "gpt_neox"
    vocab_size: int = 50432
    hidden_size: int = 6144
    num_hidden_layers: int = 44
    num_attention_heads: int = 64
    intermediate_size: int = 24576
    hidden_act: str = "gelu"
    hidden_dropout: float = 0.0
    classifier_dropout: float | None = 0.1
    layer_norm_eps: float = 1e-5
    attention_bias: bool = True
    use_parallel_residual: bool = True
    rotary_emb_base: float = 10000.0
    rotary_pct: float = 0.25
    rotates_part: ClassVar[bool] = True
    bos_token_id: int | None = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.fractions("hidden_dropout")
        self.above_zero("layer_norm_eps")
        self.require(num_key_value_heads=None, head_dim=None, rope_theta=10000.0)

    @property
    def partial_rotary_factor(self) -> float:
        """The part of a head's features that positions rotate."""
        found = (self.rope_scaling or self.rope_parameters or {}).get("partial_rotary_factor", self.rotary_pct)
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found <= 1:
            raise ConfigError(f"rotary_pct = {found!r} is out of range, expected a number above 0, at most 1")
        return float(found)

    def rope(self) -> Rope:
        """The rotary positions of queries and keys."""
        given = {"rope_theta": self.rotary_emb_base, **(self.rope_scaling or self.rope_parameters or {})}
        return rope_of(given, int(self.head_size * self.partial_rotary_factor), self.max_position_embeddings)
