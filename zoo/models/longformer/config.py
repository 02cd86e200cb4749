"""The config of a Longformer checkpoint: RoBERTa's, with the width of each layer's window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import ConfigError
from ..roberta.config import RobertaConfig


@dataclass(frozen=True, kw_only=True)
class LongformerConfig(RobertaConfig):
    model_type: str = "longformer"
    vocab_size: int = 30522
    attention_window: int | list[int] = 512
    sep_token_id: int | None = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        window_sides(self.attention_window, self.num_hidden_layers)

    @property
    def windows(self) -> tuple[int, ...]:
        """Of each layer the tokens that a token attends to on either side."""
        return window_sides(self.attention_window, self.num_hidden_layers)

    @property
    def head_dropout(self) -> float:
        return self.hidden_dropout_prob


def window_sides(attention_window: int | Sequence[int], layers: int) -> tuple[int, ...]:
    """Of each layer the tokens on either side of a token's own, half of the config's attention_window."""
    each = [attention_window] * layers if isinstance(attention_window, int) else list(attention_window)
    if len(each) != layers:
        raise ConfigError(f"attention_window has {len(each)} numbers, expected one for each of the {layers} layers")
    if wrong := [one for one in each if one <= 0 or one % 2]:
        raise ConfigError(f"attention_window = {wrong[0]}, expected an even number above 0")
    return tuple(one // 2 for one in each)
