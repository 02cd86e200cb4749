"""The config of a Whisper checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...config import Config


@dataclass(frozen=True, kw_only=True)
class WhisperConfig(Config):
    aliases: ClassVar[Mapping[str, str]] = {
        "num_key_value_heads": "encoder_attention_heads",
        "hidden_size": "d_model",
        "num_attention_heads": "encoder_attention_heads",
        "num_hidden_layers": "encoder_layers",
    }
    model_type: str = "whisper"
    vocab_size: int = 51865
    num_mel_bins: int = 80
    d_model: int = 384
    encoder_layers: int = 4
    encoder_attention_heads: int = 6
    encoder_ffn_dim: int = 1536
    decoder_layers: int = 4
    decoder_attention_heads: int = 6
    decoder_ffn_dim: int = 1536
    max_source_positions: int = 1500
    max_target_positions: int = 448
    activation_function: str = "gelu"
    dropout: float = 0.0
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    use_weighted_layer_sum: bool = False
    classifier_proj_size: int = 256
    median_filter_width: int = 7
    pad_token_id: int | None = 50256
    eos_token_id: int = 50256
    decoder_start_token_id: int = 50257

    def __post_init__(self) -> None:
        self.positive(
            "vocab_size",
            "num_mel_bins",
            "d_model",
            "max_source_positions",
            "max_target_positions",
            "classifier_proj_size",
            "median_filter_width",
        )
        for side in ("encoder", "decoder"):
            self.positive(f"{side}_layers", f"{side}_attention_heads", f"{side}_ffn_dim")
            self.divides(f"{side}_attention_heads", "d_model")
        self.fractions("dropout", "attention_dropout", "activation_dropout")
        self.require(scale_embedding=False)

    @property
    def frames(self) -> int:
        """The frames of a window: two for each state of the encoder."""
        return 2 * self.max_source_positions
