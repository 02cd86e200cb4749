"""The config of an OLMo 2 checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ..llama3.config import LlamaConfig


@dataclass(frozen=True, kw_only=True)
class Olmo2Config(LlamaConfig):
    model_type: str = "olmo2"
    vocab_size: int = 50304
    rms_norm_eps: float = 1e-5
    pad_token_id: int | None = 1
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = 50279

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(clip_qkv=None)
