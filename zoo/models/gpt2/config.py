"""The config of a GPT-2 checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...config import Config
from ...errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class GPT2Config(Config):
    aliases: ClassVar[Mapping[str, str]] = {
        "hidden_size": "n_embd",
        "max_position_embeddings": "n_positions",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    }
    model_type: str = "gpt2"
    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    n_inner: int | None = None
    activation_function: str = "gelu_new"
    resid_pdrop: float = 0.1
    embd_pdrop: float = 0.1
    attn_pdrop: float = 0.1
    classifier_dropout: float | None = None
    layer_norm_epsilon: float = 1e-5
    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False
    pad_token_id: int | None = None
    bos_token_id: int | None = 50256
    eos_token_id: int | list[int] | None = 50256

    def __post_init__(self) -> None:
        self.positive("vocab_size", "n_positions", "n_embd", "n_layer", "n_head")
        self.fractions("resid_pdrop", "embd_pdrop", "attn_pdrop", "classifier_dropout")
        self.above_zero("layer_norm_epsilon")
        self.divides("n_head", "n_embd")
        if self.n_inner is not None:
            self.positive("n_inner")
        if self.layer_norm_epsilon <= 0:
            raise ConfigError(f"layer_norm_epsilon = {self.layer_norm_epsilon} is out of range, expected above 0")
        self.require(add_cross_attention=False)

    @property
    def hidden_size(self) -> int:
        """The width, by the name that tasks know."""
        return self.n_embd

    @property
    def num_hidden_layers(self) -> int:
        return self.n_layer

    @property
    def num_attention_heads(self) -> int:
        return self.n_head

    def scale(self, layer: int) -> float:
        """The factor of the products of queries and keys."""
        scale = (self.n_embd // self.n_head) ** -0.5 if self.scale_attn_weights else 1.0
        return scale / (layer + 1) if self.scale_attn_by_inverse_layer_idx else scale
