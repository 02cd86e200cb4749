"""The config of a Granite checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import ConfigError
from ..llama3.config import LlamaConfig


@dataclass(frozen=True, kw_only=True)
class GraniteConfig(LlamaConfig):
    """The multipliers are muP's (Yang et al. 2022, https://arxiv.org/abs/2203.03466)."""

    model_type: str = "granite"
    embedding_multiplier: float = 1.0
    attention_multiplier: float = 1.0  # scales the products of queries and keys, in place of 1 / sqrt(head size)
    residual_multiplier: float = 1.0
    logits_scaling: float = 1.0  # the logits are divided by it

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.logits_scaling == 0:
            raise ConfigError("logits_scaling = 0 is out of range: the logits are divided by it")
