"""The config of an LED checkpoint: BART's, with the windows of the encoder and two numbers of positions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..bart.config import BartConfig
from ..longformer.config import window_sides


@dataclass(frozen=True, kw_only=True)
class LEDConfig(BartConfig):
    aliases: ClassVar[Mapping[str, str]] = {**BartConfig.aliases, "attention_probs_dropout_prob": "attention_dropout"}
    default_labels: ClassVar[int] = 2
    model_type: str = "led"
    max_encoder_position_embeddings: int = 16384
    max_decoder_position_embeddings: int = 1024
    attention_window: int | list[int] = 512

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("max_encoder_position_embeddings", "max_decoder_position_embeddings")
        window_sides(self.attention_window, self.encoder_layers)

    @property
    def windows(self) -> tuple[int, ...]:
        """Of each layer of the encoder the tokens that a token attends to on either side."""
        return window_sides(self.attention_window, self.encoder_layers)
