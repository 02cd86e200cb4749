"""The config of a SmolLM3 checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import ConfigError
from ..llama3.windows_config import WindowedLayersConfig


@dataclass(frozen=True, kw_only=True)
class SmolLM3Config(WindowedLayersConfig):
    """no_rope_layers: for each layer 1 if it has rotary positions, 0 if it has none (as transformers has it)."""

    model_type: str = "smollm3"
    vocab_size: int = 128256
    hidden_size: int = 2048
    num_hidden_layers: int = 36
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 4
    max_position_embeddings: int = 32768
    rope_theta: float = 2000000.0
    use_sliding_window: bool = False
    no_rope_layers: list[int] | None = None
    no_rope_layer_interval: int = 4
    tie_word_embeddings: bool = True
    pad_token_id: int | None = 128004
    bos_token_id: int | None = 128000
    eos_token_id: int | list[int] | None = 128001

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("no_rope_layer_interval")
        layers, given = self.num_hidden_layers, self.no_rope_layers
        if given is not None and (len(given) < layers or any(one not in (0, 1) for one in given)):
            raise ConfigError(f"no_rope_layers = {given}, expected 0 or 1 for each of {layers} layers")

    def rotates(self, layer: int) -> bool:
        if self.no_rope_layers is None:
            return (layer + 1) % self.no_rope_layer_interval != 0
        return bool(self.no_rope_layers[layer])

    def slides_by_default(self, layer: int) -> bool:
        return self.use_sliding_window and not self.rotates(layer)
