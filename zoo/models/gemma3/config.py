"""The config of a Gemma 3 checkpoint of texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ...errors import ConfigError
from ...rope import FULL_ATTENTION, SLIDING_ATTENTION, Rope, rope_of
from ..llama3.windows_config import WindowedLayersConfig


@dataclass(frozen=True, kw_only=True)
class Gemma3TextConfig(WindowedLayersConfig):
    """rope_theta is that of the layers that see all tokens, rope_local_base_freq that of the others."""

    type_vocab_size: ClassVar[int] = 2  # beside images: 1 for the tokens of one
    model_type: str = "gemma3_text"
    vocab_size: int = 262_208
    hidden_size: int = 2304
    intermediate_size: int = 9216
    num_hidden_layers: int = 26
    num_attention_heads: int = 8
    num_key_value_heads: int | None = 4
    head_dim: int | None = 256
    hidden_activation: str = "gelu_pytorch_tanh"
    max_position_embeddings: int = 131_072
    rope_theta: float = 1_000_000.0
    rope_local_base_freq: float = 10_000.0
    query_pre_attn_scalar: float = 256
    sliding_window: int | None = 4096
    sliding_window_pattern: int = 6
    final_logit_softcapping: float | None = None
    use_bidirectional_attention: bool | None = False
    tie_word_embeddings: bool = True
    pad_token_id: int | None = 0
    bos_token_id: int | None = 2
    eos_token_id: int | list[int] | None = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("sliding_window_pattern")
        self.above_zero("query_pre_attn_scalar", "final_logit_softcapping")
        self.require(attn_logit_softcapping=None)
        self.local_rope()

    def to_dict(self) -> dict[str, Any]:
        """The object for config.json; transformers takes a whole scale only as an integer."""
        scale = self.query_pre_attn_scalar
        return super().to_dict() | {"query_pre_attn_scalar": int(scale) if scale == int(scale) else scale}

    def slides_by_default(self, layer: int) -> bool:
        return (layer + 1) % self.sliding_window_pattern != 0

    def window(self, layer: int) -> int | None:
        found = super().window(layer)
        return found if found is None or not self.use_bidirectional_attention else (found + 1) // 2

    @property
    def ropes(self) -> tuple[Rope, ...]:
        return self.rope(), self.local_rope()

    def rope(self) -> Rope:
        given = {**self._parameters(FULL_ATTENTION), **(self.rope_scaling or {})}
        return rope_of({"rope_theta": self.rope_theta, **given}, self.head_size, self.max_position_embeddings)

    def local_rope(self) -> Rope:
        """The rotary positions of the layers whose tokens attend to the last ones alone."""
        given = {"rope_theta": self.rope_local_base_freq, **self._parameters(SLIDING_ATTENTION)}
        return rope_of(given, self.head_size, self.max_position_embeddings)

    def _parameters(self, kind: str) -> dict[str, object]:
        found = (self.rope_parameters or {}).get(kind) or {}
        if not isinstance(found, dict):
            raise ConfigError(f"rope_parameters[{kind!r}] is {found!r}, expected an object")
        return found
