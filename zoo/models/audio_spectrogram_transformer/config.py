"""The config of an Audio Spectrogram Transformer checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ...config import Config
from ...errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class ASTConfig(Config):
    model_type: str = "audio-spectrogram-transformer"
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    layer_norm_eps: float = 1e-12
    patch_size: int = 16
    qkv_bias: bool = True
    frequency_stride: int = 10
    time_stride: int = 10
    max_length: int = 1024
    num_mel_bins: int = 128

    def __post_init__(self) -> None:
        self.positive("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "patch_size")
        self.positive("frequency_stride", "time_stride", "max_length", "num_mel_bins")
        self.fractions("hidden_dropout_prob", "attention_probs_dropout_prob")
        self.divides("num_attention_heads", "hidden_size")
        self.above_zero("layer_norm_eps")
        self.require(head_dim=self.hidden_size // self.num_attention_heads)
        if self.patch_size > min(self.max_length, self.num_mel_bins):
            raise ConfigError(
                f"patch_size = {self.patch_size} is larger than a spectrogram of {self.num_mel_bins} x "
                f"{self.max_length}"
            )

    @property
    def frames(self) -> int:
        """The length of a spectrogram, by the name that tasks know."""
        return self.max_length

    @property
    def grid(self) -> tuple[int, int]:
        """Rows (of frequencies) and columns (of time) of patches, which overlap."""
        rows = (self.num_mel_bins - self.patch_size) // self.frequency_stride
        return rows + 1, (self.max_length - self.patch_size) // self.time_stride + 1
