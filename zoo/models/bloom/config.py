"""The config of a BLOOM checkpoint."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...config import Config


@dataclass(frozen=True, kw_only=True)
class BloomConfig(Config):
    aliases: ClassVar[Mapping[str, str]] = {
        "n_embed": "hidden_size",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    }
    model_type: str = "bloom"
    vocab_size: int = 250880
    hidden_size: int = 64
    n_layer: int = 2
    n_head: int = 8
    layer_norm_epsilon: float = 1e-5
    apply_residual_connection_post_layernorm: bool = False
    hidden_dropout: float = 0.0
    attention_dropout: float = 0.0
    pretraining_tp: int = 1
    slow_but_exact: bool = False
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    pad_token_id: int | None = None

    def __post_init__(self) -> None:
        self.positive("vocab_size", "hidden_size", "n_layer", "n_head", "pretraining_tp")
        self.fractions("hidden_dropout", "attention_dropout")
        self.above_zero("layer_norm_epsilon")
        self.divides("n_head", "hidden_size")
        if self.pretraining_tp > 1:  # whose sums are rounded part by part
            self.require(slow_but_exact=False)

    # The other families' names for these fields.

    @property
    def num_hidden_layers(self) -> int:
        return self.n_layer

    @property
    def num_attention_heads(self) -> int:
        return self.n_head

    @property
    def slopes(self) -> list[float]:
        """How much less a head attends to a key for each token that it is further away: powers of two."""
        whole = 2 ** math.floor(math.log2(self.n_head))
        more = [2 ** (-4 * i / whole) for i in range(1, 2 * (self.n_head - whole), 2)]
        return [2 ** (-8 * i / whole) for i in range(1, whole + 1)] + more
