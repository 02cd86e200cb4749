"""The config of a Phi checkpoint: Phi-1, 1.5 and 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..llama3.config import LlamaConfig


@dataclass(frozen=True, kw_only=True)
class PhiConfig(LlamaConfig):
    reads_attention_bias: ClassVar[bool] = False
    reads_mlp_bias: ClassVar[bool] = False
    rotates_part: ClassVar[bool] = True
    default_rotary_factor: ClassVar[float] = 0.5
    model_type: str = "phi"
    vocab_size: int = 51200
    hidden_size: int = 2048
    intermediate_size: int = 8192
    num_hidden_layers: int = 24
    hidden_act: str = "gelu_new"
    layer_norm_eps: float = 1e-5
    embd_pdrop: float = 0.0
    resid_pdrop: float = 0.0
    qk_layernorm: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.above_zero("layer_norm_eps")
        self.fractions("embd_pdrop", "resid_pdrop")
