"""The config of an OPT checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ...config import Config


@dataclass(frozen=True, kw_only=True)
class OPTConfig(Config):
    model_type: str = "opt"
    vocab_size: int = 50272
    hidden_size: int = 768
    num_hidden_layers: int = 12
    ffn_dim: int = 3072
    max_position_embeddings: int = 2048
    do_layer_norm_before: bool = True
    word_embed_proj_dim: int | None = None
    dropout: float = 0.1
    attention_dropout: float = 0.0
    num_attention_heads: int = 12
    activation_function: str = "relu"
    enable_bias: bool = True
    pad_token_id: int | None = 1
    bos_token_id: int | None = 2
    eos_token_id: int | list[int] | None = 2

    def __post_init__(self) -> None:
        self.positive("vocab_size", "hidden_size", "num_hidden_layers", "ffn_dim", "max_position_embeddings")
        self.positive("num_attention_heads", *["word_embed_proj_dim"] * (self.word_embed_proj_dim is not None))
        self.fractions("dropout", "attention_dropout")
        self.divides("num_attention_heads", "hidden_size")
        self.require(layer_norm_elementwise_affine=True, _remove_final_layer_norm=False)

    @property
    def embedding_size(self) -> int:
        """The width of the words' embeddings, and of the states that the heads are given."""
        return self.hidden_size if self.word_embed_proj_dim is None else self.word_embed_proj_dim
