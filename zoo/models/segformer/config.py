"""The config of a SegFormer checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...config import Config
from ...errors import ConfigError

Numbers = list[int] | tuple[int, ...]  # one for each stage


@dataclass(frozen=True, kw_only=True)
class SegformerConfig(Config):
    aliases: ClassVar[Mapping[str, str]] = {"num_hidden_layers": "num_encoder_blocks"}
    model_type: str = "segformer"
    num_channels: int = 3
    num_encoder_blocks: int = 4
    depths: Numbers = (2, 2, 2, 2)
    sr_ratios: Numbers = (8, 4, 2, 1)
    hidden_sizes: Numbers = (32, 64, 160, 256)
    patch_sizes: Numbers = (7, 3, 3, 3)
    strides: Numbers = (4, 2, 2, 2)
    num_attention_heads: Numbers = (1, 2, 5, 8)
    mlp_ratios: list[int | float] | tuple[int | float, ...] = (4, 4, 4, 4)
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    classifier_dropout_prob: float = 0.1
    drop_path_rate: float = 0.1
    decoder_hidden_size: int = 256
    semantic_loss_ignore_index: int = 255

    def __post_init__(self) -> None:
        self.positive("num_channels", "num_encoder_blocks", "decoder_hidden_size")
        self.fractions("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout_prob")
        self.fractions("drop_path_rate")
        whole = ("depths", "sr_ratios", "hidden_sizes", "patch_sizes", "strides", "num_attention_heads")
        for name in (*whole, "mlp_ratios"):
            value = getattr(self, name)
            kinds = (int,) if name in whole else (int, float)
            if len(value) != self.num_encoder_blocks or not all(type(n) in kinds and 0 < n <= 100_000 for n in value):
                raise ConfigError(f"{name} = {value!r}, expected {self.num_encoder_blocks} numbers in 1 ... 100000")
        for i, (width, heads) in enumerate(zip(self.hidden_sizes, self.num_attention_heads, strict=True)):
            if width % heads:
                raise ConfigError(f"num_attention_heads[{i}] = {heads} does not divide hidden_sizes[{i}] = {width}")
        if any(ratio * width < 1 for ratio, width in zip(self.mlp_ratios, self.hidden_sizes, strict=True)):
            found = f"mlp_ratios = {self.mlp_ratios} of hidden_sizes = {self.hidden_sizes}"
            raise ConfigError(f"{found} leave no features, expected one or more")
        self.require(reshape_last_stage=True)

    @property
    def hidden_size(self) -> int:
        """The width of the last stage."""
        return self.hidden_sizes[-1]
