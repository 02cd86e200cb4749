"""The config of a GPT-Neo checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...config import MAX_LAYERS, Config
from ...errors import ConfigError

GLOBAL, LOCAL = "global", "local"  # the kinds of layers


@dataclass(frozen=True, kw_only=True)
class GPTNeoConfig(Config):
    """attention_types: pairs of a list of kinds of layers, and how often it is repeated."""

    aliases: ClassVar[Mapping[str, str]] = {"num_attention_heads": "num_heads", "num_hidden_layers": "num_layers"}
    model_type: str = "gpt_neo"
    vocab_size: int = 50257
    max_position_embeddings: int = 2048
    hidden_size: int = 2048
    num_layers: int = 24
    num_heads: int = 16
    attention_types: list[Any] | None = None
    intermediate_size: int | None = None
    window_size: int = 256
    activation_function: str = "gelu_new"
    resid_dropout: float = 0.0
    embed_dropout: float = 0.0
    attention_dropout: float = 0.0
    classifier_dropout: float = 0.1
    layer_norm_epsilon: float = 1e-5
    pad_token_id: int | None = None
    bos_token_id: int | None = 50256
    eos_token_id: int | list[int] | None = 50256

    def __post_init__(self) -> None:
        self.positive("vocab_size", "max_position_embeddings", "hidden_size", "num_layers", "num_heads", "window_size")
        if self.intermediate_size is not None:
            self.positive("intermediate_size")
        self.fractions("resid_dropout", "embed_dropout", "attention_dropout", "classifier_dropout")
        self.above_zero("layer_norm_epsilon")
        self.divides("num_heads", "hidden_size")
        if len(self.attention_layers) != self.num_layers:
            raise ConfigError(
                f"attention_types says {len(self.attention_layers)} layers, expected num_layers = {self.num_layers}"
            )

    @property
    def attention_layers(self) -> list[str]:
        """The kind of each layer."""
        found: list[str] = []
        for item in self.attention_types or [[[GLOBAL, LOCAL], 12]]:
            given: Any = item if isinstance(item, list) and len(item) == 2 else (None, None)
            kinds, count = given
            fits = isinstance(kinds, list) and all(kind in (GLOBAL, LOCAL) for kind in kinds)
            if not fits or isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MAX_LAYERS:
                raise ConfigError(
                    f"attention_types has {str(item)[:80]}, expected a list of {GLOBAL!r} and {LOCAL!r}, and a number"
                )
            if len(found) + len(kinds) * count > MAX_LAYERS:
                raise ConfigError(f"attention_types says more than {MAX_LAYERS} layers")
            found += kinds * count
        return found

    @property
    def num_hidden_layers(self) -> int:
        return self.num_layers

    @property
    def num_attention_heads(self) -> int:
        return self.num_heads

    def window(self, layer: int) -> int | None:
        """The number of tokens before itself that a token of this layer attends to; None for all."""
        return self.window_size - 1 if self.attention_layers[layer] == LOCAL else None
