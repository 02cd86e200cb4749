"""The config of an MPT checkpoint."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...config import Config
from ...errors import ConfigError, UnsupportedError

# The fields of attn_config that transformers reads, or that would change the result, and the values implemented.
IMPLEMENTED_VALUES = {"attn_type": "multihead_attention", "prefix_lm": False, "qk_ln": False, "alibi": True}
IMPLEMENTED_VALUES |= {"attn_uses_sequence_id": False, "alibi_bias_max": 8}


@dataclass(frozen=True, kw_only=True)
class MptConfig(Config):
    aliases: ClassVar[Mapping[str, str]] = {
        "num_attention_heads": "n_heads",
        "hidden_size": "d_model",
        "num_hidden_layers": "n_layers",
    }
    model_type: str = "mpt"
    d_model: int = 2048
    n_heads: int = 16
    n_layers: int = 24
    max_seq_len: int = 2048
    vocab_size: int = 50368
    layer_norm_epsilon: float = 1e-5
    attn_config: dict[str, Any] | None = None
    classifier_dropout: float | None = None
    hidden_dropout: float | None = None
    pad_token_id: int | None = None
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None

    def __post_init__(self) -> None:
        self.positive("d_model", "n_heads", "n_layers", "max_seq_len", "vocab_size")
        self.fractions("classifier_dropout", "hidden_dropout")
        self.above_zero("layer_norm_epsilon")
        self.divides("n_heads", "d_model")
        self.require(expansion_ratio=4, no_bias=True, logit_scale=None)
        for name, wanted in IMPLEMENTED_VALUES.items():
            if (found := (self.attn_config or {}).get(name, wanted)) != wanted:
                raise UnsupportedError(f"mpt: {name} = {found!r} of attn_config is not implemented, only {wanted!r} is")
        if not 0 <= self.attention_dropout < 1 or (self.largest_value or 1) < 0:
            raise ConfigError(f"attn_config = {self.attn_config} has a number that is out of range")

    def _number(self, name: str, default: float | None) -> float | None:
        """A number of attn_config."""
        found = (self.attn_config or {}).get(name, default)
        if found is None or (type(found) in (int, float) and math.isfinite(found)):
            return found
        raise ConfigError(f"{name} of attn_config is {found!r}, expected a number")

    @property
    def attention_dropout(self) -> float:
        return self._number("attn_pdrop", 0.0) or 0.0

    @property
    def largest_value(self) -> float | None:
        """The largest size of the numbers in queries, keys and values; None: there is none."""
        return self._number("clip_qkv", None) or None

    @property
    def scale(self) -> float | None:
        """The factor of scores, if it is not that of the head size."""
        return self._number("softmax_scale", None)

    @property
    def slopes(self) -> list[float]:
        """How much less a head attends to a key for each token that it is further away: powers of two."""
        whole = 2 ** math.ceil(math.log2(self.n_heads))
        all_ = [2 ** (-8 * i / whole) for i in range(1, whole + 1)]
        return all_ if whole == self.n_heads else [*all_[1::2], *all_[::2]][: self.n_heads]

    # The other families' names for these fields.

    @property
    def hidden_size(self) -> int:
        return self.d_model

    @property
    def num_hidden_layers(self) -> int:
        return self.n_layers

    @property
    def num_attention_heads(self) -> int:
        return self.n_heads

    @property
    def head_dropout(self) -> float:
        """The rate before a token's classifier."""
        rates = (self.classifier_dropout, self.hidden_dropout)
        return next((rate for rate in rates if rate is not None), 0.1)
