"""The config of a Falcon checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...errors import UnsupportedError
from ..llama3.config import LlamaConfig


@dataclass(frozen=True, kw_only=True)
class FalconConfig(LlamaConfig):
    """new_decoder_architecture: num_kv_heads heads of keys, as in Falcon 40B and 2, whatever multi_query says."""

    aliases: ClassVar[Mapping[str, str]] = {"n_embed": "hidden_size"}
    model_type: str = "falcon"
    vocab_size: int = 65024
    hidden_size: int = 4544
    num_attention_heads: int = 71
    num_kv_heads: int | None = None
    num_ln_in_parallel_attn: int | None = None
    ffn_hidden_size: int | None = None
    layer_norm_epsilon: float = 1e-5
    hidden_dropout: float = 0.0
    activation: str = "gelu"
    bias: bool = False
    alibi: bool = False
    multi_query: bool = True
    parallel_attn: bool = True
    new_decoder_architecture: bool = False
    tie_word_embeddings: bool = True
    bos_token_id: int | None = 11
    eos_token_id: int | list[int] | None = 11

    def __post_init__(self) -> None:
        super().__post_init__()
        self.above_zero("layer_norm_epsilon")
        self.fractions("hidden_dropout")
        self.require(alibi=False, head_dim=None)
        if self.num_kv_heads is not None:
            self.positive("num_kv_heads")
            self.divides("num_kv_heads", "num_attention_heads")
        if self.ffn_hidden_size is not None:
            self.positive("ffn_hidden_size")
        norms = self.num_ln_in_parallel_attn
        if norms not in (None, 1, 2) or (norms == 2 and not self.new_decoder_architecture):
            raise UnsupportedError(
                f"falcon: num_ln_in_parallel_attn = {norms} is not implemented for this architecture"
            )
        if self.new_decoder_architecture and not self.parallel_attn:
            raise UnsupportedError("falcon: parallel_attn = False is not implemented for new_decoder_architecture")

    @property
    def key_heads(self) -> int:
        if self.new_decoder_architecture and self.num_kv_heads is not None:
            return self.num_kv_heads
        # Without the new architecture each head of queries has its own of keys, whatever num_kv_heads says.
        return 1 if self.multi_query and not self.new_decoder_architecture else self.num_attention_heads

    @property
    def has_two_norms(self) -> bool:
        """True if attention and MLP, which read the same states, have a norm each."""
        return self.new_decoder_architecture and self.num_ln_in_parallel_attn in (None, 2)
