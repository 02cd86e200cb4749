"""The config of an ESM checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ...config import Config
from ...errors import ConfigError, UnsupportedError, nearest
from ...rope import Rope, rope_of

POSITIONS = ("absolute", "rotary")  # ESM-1b's and ESM-2's


@dataclass(frozen=True, kw_only=True)
class EsmConfig(Config):
    """token_dropout: <mask> is a vector of zeros, and the others are scaled as if tokens had been dropped."""

    model_type: str = "esm"
    vocab_size: int | None = None
    mask_token_id: int | None = None
    pad_token_id: int | None = None
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 1026
    rope_theta: float = 10000.0
    layer_norm_eps: float = 1e-12
    position_embedding_type: str = "absolute"
    emb_layer_norm_before: bool | None = None
    token_dropout: bool | None = False
    is_folding_model: bool | None = False

    def __post_init__(self) -> None:
        self.positive("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
        self.positive("max_position_embeddings", *["vocab_size"] * (self.vocab_size is not None))
        self.fractions("hidden_dropout_prob", "attention_probs_dropout_prob")
        self.divides("num_attention_heads", "hidden_size")
        self.above_zero("layer_norm_eps", "rope_theta")
        if self.position_embedding_type not in POSITIONS:
            found = self.position_embedding_type
            raise UnsupportedError(
                f"position_embedding_type = {found!r} is not implemented, only {' and '.join(POSITIONS)} are"
                f"{nearest(found, POSITIONS)}"
            )
        self.require(is_decoder=False, add_cross_attention=False)
        if self.is_folding_model:
            raise UnsupportedError("is_folding_model = True: ESMFold's structures are not implemented")
        if self.position_embedding_type == "rotary":
            self.rope()
        if self.token_dropout and self.mask_token_id is None:
            raise ConfigError("token_dropout = True needs mask_token_id, the token that it is about")

    @property
    def words(self) -> int:
        """The size of the vocabulary, which has no default."""
        if self.vocab_size is None:
            raise ConfigError("vocab_size is missing: expected the number of tokens, 33 in ESM-2")
        return self.vocab_size

    @property
    def first_position(self) -> int:
        """The position of padding, after which learned ones begin."""
        pad = self.pad_token_id
        if pad is None or not 0 <= pad < self.max_position_embeddings - 1:
            raise ConfigError(f"pad_token_id = {pad!r}, expected a token, after which positions begin")
        return pad

    @property
    def hidden_act(self) -> str:
        """The activation, whatever the file says, as in transformers."""
        return "gelu"

    @property
    def head_dropout(self) -> float:
        """The dropout before a classifier."""
        return self.hidden_dropout_prob

    @property
    def ropes(self) -> tuple[Rope, ...]:
        return (self.rope(),) if self.position_embedding_type == "rotary" else ()

    def rope(self) -> Rope:
        """The rotary positions of queries and keys."""
        size = self.hidden_size // self.num_attention_heads
        return rope_of({"rope_theta": self.rope_theta}, size, self.max_position_embeddings)
