"""The config of a ModernBERT checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...config import Config
from ...errors import ConfigError, nearest
from ...rope import FULL_ATTENTION, SLIDING_ATTENTION, Rope, check_layer_types, rope_of


@dataclass(frozen=True, kw_only=True)
class ModernBertConfig(Config):
    """global_attn_every_n_layers and the two thetas are what hub files have; layer_types and rope_parameters are
    transformers 5's names of the same.
    """

    model_type: str = "modernbert"
    vocab_size: int = 50368
    hidden_size: int = 768
    intermediate_size: int = 1152
    num_hidden_layers: int = 22
    num_attention_heads: int = 12
    hidden_activation: str = "gelu"
    max_position_embeddings: int = 8192
    norm_eps: float = 1e-5
    norm_bias: bool = False
    pad_token_id: int | None = 50283
    attention_bias: bool = False
    attention_dropout: float = 0.0
    layer_types: list[str] | None = None
    rope_parameters: dict[str, Any] | None = None
    rope_scaling: dict[str, Any] | None = None
    global_attn_every_n_layers: int = 3
    global_rope_theta: float = 160_000.0
    local_rope_theta: float = 10_000.0
    local_attention: int = 128
    embedding_dropout: float = 0.0
    mlp_bias: bool = False
    mlp_dropout: float = 0.0
    decoder_bias: bool = True
    classifier_pooling: str = "cls"
    classifier_dropout: float = 0.0
    classifier_bias: bool = False
    classifier_activation: str = "gelu"

    def __post_init__(self) -> None:
        self.positive("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
        self.positive("max_position_embeddings", "local_attention", "global_attn_every_n_layers")
        self.fractions("attention_dropout", "embedding_dropout", "mlp_dropout", "classifier_dropout")
        self.divides("num_attention_heads", "hidden_size")
        self.above_zero("norm_eps")
        if self.classifier_pooling not in ("cls", "mean"):
            guess = nearest(self.classifier_pooling, ("cls", "mean"))
            raise ConfigError(f"classifier_pooling = {self.classifier_pooling!r}, expected 'cls' or 'mean'{guess}")
        if self.layer_types is not None:
            check_layer_types(self.layer_types, self.num_hidden_layers)
        for local in (False, True):
            self.rope(local)

    @property
    def head_size(self) -> int:
        return self.hidden_size // self.num_attention_heads

    def is_local(self, layer: int) -> bool:
        """True if a layer's tokens attend to those around them alone."""
        if self.layer_types is None:
            return layer % self.global_attn_every_n_layers != 0
        return self.layer_types[layer] == SLIDING_ATTENTION

    @property
    def ropes(self) -> tuple[Rope, ...]:
        return self.rope(local=False), self.rope(local=True)

    def rope(self, local: bool) -> Rope:
        """The rotary positions of the local layers, or of the others."""
        kind, theta = (SLIDING_ATTENTION, self.local_rope_theta) if local else (FULL_ATTENTION, self.global_rope_theta)
        given = (self.rope_parameters or {}).get(kind) or {}
        if not isinstance(given, dict):
            raise ConfigError(f"rope_parameters[{kind!r}] is {given!r}, expected an object")
        parameters = {"rope_theta": theta, **given, **(self.rope_scaling or {})}
        return rope_of(parameters, self.head_size, self.max_position_embeddings)
