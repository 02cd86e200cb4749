"""The config of TrOCR's decoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...config import Config
from ...errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class TrOCRConfig(Config):
    aliases: ClassVar[Mapping[str, str]] = {
        "hidden_size": "d_model",
        "num_attention_heads": "decoder_attention_heads",
        "num_hidden_layers": "decoder_layers",
    }
    model_type: str = "trocr"
    vocab_size: int = 50265
    d_model: int = 1024
    decoder_layers: int = 12
    decoder_attention_heads: int = 16
    decoder_ffn_dim: int = 4096
    activation_function: str = "gelu"
    max_position_embeddings: int = 512
    scale_embedding: bool = False
    use_learned_position_embeddings: bool = True
    layernorm_embedding: bool = True
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    cross_attention_hidden_size: int | None = None
    decoder_start_token_id: int | None = 2
    pad_token_id: int | None = 1
    bos_token_id: int | None = 0
    eos_token_id: int | list[int] | None = 2

    def __post_init__(self) -> None:
        self.positive("vocab_size", "d_model", "decoder_layers", "decoder_attention_heads", "decoder_ffn_dim")
        self.positive("max_position_embeddings")
        self.fractions("dropout", "attention_dropout", "activation_dropout")
        self.divides("decoder_attention_heads", "d_model")
        if self.cross_attention_hidden_size is not None:
            self.positive("cross_attention_hidden_size")
        if not self.use_learned_position_embeddings:
            if self.d_model < 4 or self.d_model % 2:
                raise ConfigError(f"d_model = {self.d_model}: sinusoidal positions need an even number of at least 4")
            if self.pad_token_id is None or not 0 <= self.pad_token_id < self.vocab_size:
                raise ConfigError(
                    f"pad_token_id = {self.pad_token_id}, and sinusoidal positions count from it: "
                    f"expected 0 ... {self.vocab_size - 1}"
                )

    @property
    def cross_size(self) -> int:
        """The width of the encoder's hidden states in cross-attention."""
        return self.d_model if self.cross_attention_hidden_size is None else self.cross_attention_hidden_size
