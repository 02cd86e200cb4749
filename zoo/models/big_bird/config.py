"""The config of a BigBird checkpoint: BERT's, with blocks of tokens."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import ConfigError, UnsupportedError, nearest
from ..bert.config import BertConfig

KINDS = ("block_sparse", "original_full")


@dataclass(frozen=True, kw_only=True)
class BigBirdConfig(BertConfig):
    model_type: str = "big_bird"
    vocab_size: int = 50358
    hidden_act: str = "gelu_new"
    max_position_embeddings: int = 4096
    sep_token_id: int | None = 66
    attention_type: str = "block_sparse"
    use_bias: bool = True
    rescale_embeddings: bool = False
    block_size: int = 64
    num_random_blocks: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("block_size")
        if self.num_random_blocks < 0:
            raise ConfigError(f"num_random_blocks = {self.num_random_blocks}, expected a number of blocks")
        if self.attention_type not in KINDS:
            guess = nearest(self.attention_type, KINDS)
            raise ConfigError(f"attention_type = {self.attention_type!r}, expected {' or '.join(KINDS)}{guess}")
        if self.add_cross_attention:  # in transformers such a layer attends to the encoder's states alone, twice
            raise UnsupportedError("add_cross_attention = True is not implemented, only False is")
        if self.is_decoder and self.attention_type != "original_full":
            raise UnsupportedError(
                "a decoder's attention_type = 'block_sparse' is not implemented, only 'original_full' is"
            )

    @property
    def full_tokens(self) -> int | None:
        """The tokens of the longest text whose tokens all attend to each other; None: those of any text do."""
        if self.attention_type == "original_full":
            return None
        return (5 + 2 * self.num_random_blocks) * self.block_size
