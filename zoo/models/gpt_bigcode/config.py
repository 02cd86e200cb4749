"""The config of a GPTBigCode checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ..gpt2.config import GPT2Config


@dataclass(frozen=True, kw_only=True)
class GPTBigCodeConfig(GPT2Config):
    """multi_query: all heads of queries share one of keys and values."""

    model_type: str = "gpt_bigcode"
    activation_function: str = "gelu_pytorch_tanh"
    multi_query: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(scale_attn_by_inverse_layer_idx=False)
