"""The config of a GPT-J checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import ConfigError
from ...rope import Rope, rope_of
from ..gpt2.config import GPT2Config


@dataclass(frozen=True, kw_only=True)
class GPTJConfig(GPT2Config):
    """rotary_dim: the features of each head that positions rotate."""

    model_type: str = "gptj"
    vocab_size: int = 50400
    n_positions: int = 2048
    n_embd: int = 4096
    n_layer: int = 28
    n_head: int = 16
    rotary_dim: int = 64
    resid_pdrop: float = 0.0
    embd_pdrop: float = 0.0
    attn_pdrop: float = 0.0
    tie_word_embeddings: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.rotary_dim <= self.head_size:
            raise ConfigError(f"rotary_dim = {self.rotary_dim} of heads of {self.head_size} features")
        self.rope()

    @property
    def head_size(self) -> int:
        return self.n_embd // self.n_head

    @property
    def key_heads(self) -> int:
        return self.n_head

    @property
    def max_positions(self) -> int:
        """The length of the longest text that the positions allow."""
        return self.n_positions

    @property
    def ropes(self) -> tuple[Rope, ...]:
        return (self.rope(),)

    def rope(self) -> Rope:
        """The rotary positions of queries and keys."""
        return rope_of({"rope_theta": 10000.0}, self.rotary_dim, self.n_positions)

    def window(self, layer: int) -> int | None:
        """The number of tokens before itself that a token of this layer attends to: all."""
        return None
