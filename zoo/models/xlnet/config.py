"""The config of an XLNet checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...config import Config
from ...errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class XLNetConfig(Config):
    aliases: ClassVar[Mapping[str, str]] = {
        "n_token": "vocab_size",
        "hidden_size": "d_model",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    }
    model_type: str = "xlnet"
    vocab_size: int = 32000
    d_model: int = 1024
    n_layer: int = 24
    n_head: int = 16
    d_inner: int = 4096
    d_head: int | None = None
    ff_activation: str = "gelu"
    layer_norm_eps: float = 1e-12
    dropout: float = 0.1
    summary_use_proj: bool = True
    summary_activation: str | None = "tanh"
    summary_last_dropout: float = 0.1
    pad_token_id: int | None = 5
    type_vocab_size: ClassVar[int] = 5  # segments of a tokenizer: two texts, the last token, and padding
    max_position_embeddings: ClassVar[int] = 4096  # none in the files; a layer's scores take T * T numbers of each head
    head_dropout: ClassVar[float] = 0.0  # the states have passed one

    def __post_init__(self) -> None:
        self.positive("vocab_size", "d_model", "n_layer", "n_head", "d_inner")
        self.divides("n_head", "d_model")
        self.fractions("dropout", "summary_last_dropout")
        self.above_zero("layer_norm_eps")
        if self.d_model % 2:
            raise ConfigError(f"d_model = {self.d_model}, expected an even number: half of it are sines")
        if self.d_head not in (None, 0, self.d_model // self.n_head):
            raise ConfigError(f"d_head = {self.d_head}, expected d_model / n_head = {self.d_model // self.n_head}")
        self.require(attn_type="bi", bi_data=False, summary_type="last", summary_proj_to_labels=False)
        if (found := self.extra.get("clamp_len", -1)) != -1:
            self.require(clamp_len=found if isinstance(found, int) and found <= 0 else -1)

    @property
    def hidden_size(self) -> int:
        """The width, by the name that tasks know."""
        return self.d_model

    @property
    def num_hidden_layers(self) -> int:
        return self.n_layer

    @property
    def num_attention_heads(self) -> int:
        return self.n_head
