"""The config of a Gemma 2 checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...errors import UnsupportedError
from ..llama3.windows_config import WindowedLayersConfig


@dataclass(frozen=True, kw_only=True)
class Gemma2Config(WindowedLayersConfig):
    """attn_logit_softcapping, final_logit_softcapping: the bounds of scores and of logits; None: there are none."""

    model_type: str = "gemma2"
    vocab_size: int = 256000
    hidden_size: int = 2304
    intermediate_size: int = 9216
    num_hidden_layers: int = 26
    num_attention_heads: int = 8
    num_key_value_heads: int | None = 4
    head_dim: int | None = 256
    hidden_activation: str = "gelu_pytorch_tanh"
    max_position_embeddings: int = 8192
    query_pre_attn_scalar: float = 256
    sliding_window: int | None = 4096
    attn_logit_softcapping: float | None = 50.0
    final_logit_softcapping: float | None = 30.0
    use_bidirectional_attention: bool | None = None
    tie_word_embeddings: bool = True
    pad_token_id: int | None = 0
    bos_token_id: int | None = 2
    eos_token_id: int | list[int] | None = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.above_zero("query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping")
        self.divides("num_attention_heads", "hidden_size")
        if self.use_bidirectional_attention:
            raise UnsupportedError("gemma2: use_bidirectional_attention = True is not implemented, only False is")

    def slides_by_default(self, layer: int) -> bool:
        return layer % 2 == 0

    def to_dict(self) -> dict[str, Any]:
        """The object for config.json; transformers takes a whole scale only as an integer."""
        scale = self.query_pre_attn_scalar
        return super().to_dict() | {"query_pre_attn_scalar": int(scale) if scale == int(scale) else scale}
