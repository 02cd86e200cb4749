"""The config of a Nomic BERT checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ...rope import Rope, rope_of
from ..bert.config import BertConfig


@dataclass(frozen=True, kw_only=True)
class RotaryBertConfig(BertConfig):
    """BERT's fields, with rotary positions."""

    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    rope_parameters: dict[str, Any] | None = None
    rope_scaling: dict[str, Any] | None = None
    rope_theta: float | None = None
    default_theta: ClassVar[float]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(head_dim=self.head_size)
        self.rope()

    @property
    def head_size(self) -> int:
        return self.hidden_size // self.num_attention_heads

    @property
    def ropes(self) -> tuple[Rope, ...]:
        return (self.rope(),)

    def rope(self) -> Rope:
        """The rotary positions of queries and keys."""
        given = self.rope_scaling or self.rope_parameters or {}  # as in transformers
        theta = self.default_theta if self.rope_theta is None else self.rope_theta
        return rope_of({"rope_theta": theta, **given}, self.head_size, self.max_position_embeddings)


# The fields of files that were made for Nomic's own code -> transformers' names.
FIRST_NAMES = {"n_embd": "hidden_size", "n_layer": "num_hidden_layers", "n_head": "num_attention_heads"}
FIRST_NAMES |= {"n_inner": "intermediate_size", "layer_norm_epsilon": "layer_norm_eps", "rotary_emb_base": "rope_theta"}
FIRST_NAMES |= {"max_trained_positions": "max_position_embeddings", "resid_pdrop": "hidden_dropout_prob"}
FIRST_NAMES |= {"attn_pdrop": "attention_probs_dropout_prob"}


@dataclass(frozen=True, kw_only=True)
class NomicBertConfig(RotaryBertConfig):
    model_type: str = "nomic_bert"
    vocab_size: int = 30528
    hidden_act: str = "silu"
    max_position_embeddings: int = 2048
    default_theta: ClassVar[float] = 1000.0

    @classmethod
    def from_dict(cls, raw: dict[str, Any]) -> NomicBertConfig:
        return super().from_dict({FIRST_NAMES.get(name, name): value for name, value in raw.items()})

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(activation_function="swiglu", prenorm=False, causal=False, use_rms_norm=False, qkv_proj_bias=False)
        self.require(mlp_fc1_bias=False, mlp_fc2_bias=False, rotary_emb_fraction=1.0, rotary_emb_interleaved=False)
        self.require(parallel_block=False, moe_every_n_layers=-1)
