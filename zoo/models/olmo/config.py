"""The config of an OLMo checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..llama3.config import LlamaConfig


@dataclass(frozen=True, kw_only=True)
class OlmoConfig(LlamaConfig):
    """clip_qkv: the largest size of the numbers in queries, keys and values; None: there is none."""

    reads_mlp_bias: ClassVar[bool] = False
    model_type: str = "olmo"
    vocab_size: int = 50304
    clip_qkv: float | None = None
    pad_token_id: int | None = 1
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = 50279

    def __post_init__(self) -> None:
        super().__post_init__()
        self.above_zero("clip_qkv")
