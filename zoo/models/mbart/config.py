"""The config of an mBART checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...config import Config
from ...errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class MBartConfig(Config):
    learned: ClassVar[bool] = True  # positions and a norm of embeddings; False: sines and cosines, and no norm
    aliases: ClassVar[Mapping[str, str]] = {
        "hidden_size": "d_model",
        "num_attention_heads": "encoder_attention_heads",
        "num_hidden_layers": "encoder_layers",
    }
    model_type: str = "mbart"
    vocab_size: int = 50265
    d_model: int = 1024
    encoder_layers: int = 12
    encoder_attention_heads: int = 16
    encoder_ffn_dim: int = 4096
    decoder_layers: int = 12
    decoder_attention_heads: int = 16
    decoder_ffn_dim: int = 4096
    max_position_embeddings: int = 1024
    activation_function: str = "gelu"
    scale_embedding: bool = False
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    pad_token_id: int | None = 1
    bos_token_id: int | None = 0
    eos_token_id: int | list[int] | None = 2
    decoder_start_token_id: int | None = None

    def __post_init__(self) -> None:
        self.positive("vocab_size", "d_model", "max_position_embeddings")
        for side in ("encoder", "decoder"):
            self.positive(f"{side}_layers", f"{side}_attention_heads", f"{side}_ffn_dim")
            self.divides(f"{side}_attention_heads", "d_model")
        self.fractions("dropout", "attention_dropout", "activation_dropout")
        self.require(normalize_before=True, normalize_embedding=self.learned, add_final_layer_norm=True)
        start = self.decoder_start_token_id
        if start is not None and not 0 <= start < self.vocab_size:
            raise ConfigError(f"decoder_start_token_id = {start} is out of range, expected 0 ... {self.vocab_size - 1}")
        if not self.learned and (self.d_model < 4 or self.d_model % 2):
            raise ConfigError(f"d_model = {self.d_model}: sinusoidal positions need an even number of at least 4")

    @property
    def hidden_size(self) -> int:
        """The width, by the name that tasks know."""
        return self.d_model
