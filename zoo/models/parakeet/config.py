"""The config of a Parakeet checkpoint, and of its encoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ...config import Config, read_part
from ...errors import ConfigError

HOP = 160  # samples from one frame of the extractor to the next


@dataclass(frozen=True, kw_only=True)
class ParakeetEncoderConfig(Config):
    model_type: str = "parakeet_encoder"
    hidden_size: int = 1024
    num_hidden_layers: int = 24
    num_attention_heads: int = 8
    intermediate_size: int = 4096
    hidden_act: str = "silu"
    attention_bias: bool = True
    convolution_bias: bool = True
    conv_kernel_size: int = 9
    subsampling_factor: int = 8
    subsampling_conv_channels: int = 256
    num_mel_bins: int = 80
    subsampling_conv_kernel_size: int = 3
    subsampling_conv_stride: int = 2
    dropout: float = 0.1
    dropout_positions: float = 0.0
    activation_dropout: float = 0.1
    attention_dropout: float = 0.1
    scale_input: bool = True

    def __post_init__(self) -> None:
        self.positive("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
        self.positive("conv_kernel_size", "subsampling_conv_channels", "num_mel_bins")
        self.divides("num_attention_heads", "hidden_size")
        self.fractions("dropout", "dropout_positions", "activation_dropout", "attention_dropout")
        self.require(subsampling_conv_kernel_size=3, subsampling_conv_stride=2)
        if self.hidden_size % 2:
            raise ConfigError(f"hidden_size = {self.hidden_size}, expected an even number, for sines and cosines")
        if not self.conv_kernel_size % 2:
            raise ConfigError(f"conv_kernel_size = {self.conv_kernel_size}, expected an odd number")
        if self.subsampling_factor not in (2, 4, 8, 16, 32):
            raise ConfigError(f"subsampling_factor = {self.subsampling_factor}, expected 2, 4, 8, 16 or 32")
        self.divides("subsampling_factor", "num_mel_bins")

    @property
    def halvings(self) -> int:
        """The convolutions that halve the number of frames, and that of bins."""
        return self.subsampling_factor.bit_length() - 1

    # What `zoo.inputs.frames` asks for.
    frame_size = property(lambda self: self.num_mel_bins)
    frame_samples = property(lambda self: 2 * HOP)  # a frame alone has no variance
    frame_step = property(lambda self: HOP)
    step = property(lambda self: self.subsampling_factor)


@dataclass(frozen=True, kw_only=True)
class ParakeetCTCConfig(Config):
    part_classes: ClassVar[Mapping[str, type[Config]]] = {"encoder_config": ParakeetEncoderConfig}

    model_type: str = "parakeet_ctc"
    vocab_size: int = 1025
    ctc_loss_reduction: str = "mean"
    ctc_zero_infinity: bool = True
    encoder_config: ParakeetEncoderConfig = field(default_factory=ParakeetEncoderConfig)
    pad_token_id: int | None = 1024

    def __post_init__(self) -> None:
        self.positive("vocab_size")
        if self.ctc_loss_reduction not in ("mean", "sum"):
            raise ConfigError(f"ctc_loss_reduction = {self.ctc_loss_reduction!r}, expected 'mean' or 'sum'")

    @classmethod
    def from_dict(cls, raw: dict[str, Any]) -> ParakeetCTCConfig:
        encoder = read_part("encoder_config", raw.get("encoder_config") or {}, ParakeetEncoderConfig)
        return super().from_dict({**raw, "encoder_config": encoder})

    # The encoder's, which reads the frames.
    hidden_size = property(lambda self: self.encoder_config.hidden_size)
    num_mel_bins = property(lambda self: self.encoder_config.num_mel_bins)
    frame_size = property(lambda self: self.encoder_config.frame_size)
    frame_samples = property(lambda self: self.encoder_config.frame_samples)
    frame_step = property(lambda self: self.encoder_config.frame_step)
    step = property(lambda self: self.encoder_config.step)
    halvings = property(lambda self: self.encoder_config.halvings)
