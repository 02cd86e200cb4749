"""The config of a Cohere2 checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..llama3.windows_config import WindowedLayersConfig


@dataclass(frozen=True, kw_only=True)
class Cohere2Config(WindowedLayersConfig):
    use_qk_norm: ClassVar[bool] = False
    model_type: str = "cohere2"
    vocab_size: int = 256000
    hidden_size: int = 8192
    intermediate_size: int = 22528
    num_hidden_layers: int = 40
    num_attention_heads: int = 64
    max_position_embeddings: int = 8192
    layer_norm_eps: float = 1e-5
    logit_scale: float = 0.0625
    sliding_window: int | None = 4096
    sliding_window_pattern: int = 4
    tie_word_embeddings: bool = True
    pad_token_id: int | None = 0
    bos_token_id: int | None = 5
    eos_token_id: int | list[int] | None = 255001

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("sliding_window_pattern")
        self.above_zero("layer_norm_eps")
        self.require(mlp_bias=False, use_qk_norm=False, use_parallel_block=True, use_gated_activation=True)
        self.require(position_embedding_type="rope_gptj", rotary_pct=1.0)

    def slides_by_default(self, layer: int) -> bool:
        return (layer + 1) % self.sliding_window_pattern != 0

    def rotates(self, layer: int) -> bool:
        return self.window(layer) is not None
