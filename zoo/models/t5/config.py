"""The configs of T5 and mT5 checkpoints."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...config import Config
from ...errors import ConfigError, UnsupportedError

POSITIONS = 1 << 20  # tokens of a text: distances have no end, and memory has


@dataclass(frozen=True, kw_only=True)
class T5Config(Config):
    aliases: ClassVar[Mapping[str, str]] = {
        "hidden_size": "d_model",
        "num_attention_heads": "num_heads",
        "num_hidden_layers": "num_layers",
        "head_dim": "d_kv",
    }
    model_type: str = "t5"
    vocab_size: int = 32128
    d_model: int = 512
    d_kv: int = 64
    d_ff: int = 2048
    num_layers: int = 6
    num_decoder_layers: int | None = None
    num_heads: int = 8
    relative_attention_num_buckets: int = 32
    relative_attention_max_distance: int = 128
    dropout_rate: float = 0.1
    classifier_dropout: float = 0.0
    layer_norm_epsilon: float = 1e-6
    feed_forward_proj: str = "relu"
    scale_decoder_outputs: bool | None = None  # whether logits are scaled by d_model^-0.5
    dense_act_fn: str | None = None  # these two say what feed_forward_proj says, and count where they differ
    is_gated_act: bool | None = None
    pad_token_id: int | None = 0
    eos_token_id: int | list[int] | None = 1
    decoder_start_token_id: int | None = 0

    @classmethod
    def from_dict(cls, raw: dict[str, Any]) -> T5Config:
        if "num_hidden_layers" in raw:  # the alias is no default of the decoder's number
            raw = {"num_decoder_layers": raw.get("num_layers", cls.num_layers), **raw}
        return super().from_dict(raw)

    def __post_init__(self) -> None:
        self.positive("vocab_size", "d_model", "d_kv", "d_ff", "num_layers", "num_heads")
        self.positive("relative_attention_num_buckets", "relative_attention_max_distance")
        self.fractions("dropout_rate", "classifier_dropout")
        self.require(is_decoder=False)  # of the whole: T5's decoder is one without it
        self.above_zero("layer_norm_epsilon")
        if self.num_decoder_layers is not None:
            self.positive("num_decoder_layers")
        if self.relative_attention_num_buckets < 4 or self.relative_attention_num_buckets % 2:
            count = self.relative_attention_num_buckets
            raise ConfigError(f"relative_attention_num_buckets = {count}: expected an even number from 4")
        if not self.relative_attention_num_buckets // 2 < self.relative_attention_max_distance <= POSITIONS:
            raise ConfigError(
                f"relative_attention_max_distance = {self.relative_attention_max_distance}: expected more than half of "
                f"the buckets, and at most {POSITIONS}"
            )
        parts = self.feed_forward_proj.split("-")
        if len(parts) > 2 or (len(parts) == 2 and parts[0] != "gated"):
            raise UnsupportedError(
                f"feed_forward_proj = {self.feed_forward_proj!r}, expected ACTIVATION or gated-ACTIVATION"
            )

    @property
    def hidden_size(self) -> int:
        """The width, by the name that tasks know."""
        return self.d_model

    @property
    def max_position_embeddings(self) -> int:
        """The tokens of the longest text."""
        return POSITIONS

    @property
    def decoder_layers(self) -> int:
        return self.num_layers if self.num_decoder_layers is None else self.num_decoder_layers

    @property
    def is_gated(self) -> bool:
        return self.feed_forward_proj.startswith("gated-") if self.is_gated_act is None else self.is_gated_act

    @property
    def activation(self) -> str:
        if self.dense_act_fn is not None:
            return self.dense_act_fn
        return "gelu_new" if self.feed_forward_proj == "gated-gelu" else self.feed_forward_proj.removeprefix("gated-")

    @property
    def is_tied(self) -> bool:
        # A file that has several matrices of words keeps them, whatever the config says.
        return True

    def has_distances(self, layer: int) -> bool:
        """True if this layer has a bias of distances of its own; the others add that of a layer before."""
        return layer == 0

    @property
    def scales_logits(self) -> bool:
        # Before version 5 of transformers `tie_word_embeddings` said so.
        return self.tie_word_embeddings if self.scale_decoder_outputs is None else self.scale_decoder_outputs

    def require_tokens(self) -> None:
        """Raise ConfigError unless each of the ids that heads on the decoder's states need is one token's."""
        for name in ("eos_token_id", "decoder_start_token_id"):
            value = getattr(self, name)
            if not isinstance(value, int) or not 0 <= value < self.vocab_size:
                raise ConfigError(f"{name} = {value!r}: a head on the decoder's states needs the id of a token")

    def buckets(self, both_sides: bool) -> np.ndarray:
        """The row of the bias table for each distance of a key from its query, -M ... M; further ones have the ends'.

        both_sides: True for an encoder; a decoder's keys come before their query.
        """
        count, most = self.relative_attention_num_buckets, self.relative_attention_max_distance
        distance = np.arange(-most, most + 1)
        rows = np.zeros_like(distance)
        if both_sides:
            count //= 2
            rows += (distance > 0) * count
            distance = np.abs(distance)
        else:
            distance = -np.minimum(distance, 0)
        # In float32, as transformers has it: a distance at the edge of a range would fall into another one in float64.
        exact = count // 2  # as many are for one distance each; the others' ranges grow, to the last from M on
        share = np.log(np.maximum(distance, 1).astype(np.float32) / np.float32(exact)) / np.float32(
            math.log(most / exact)
        )
        wide = exact + (share * np.float32(count - exact)).astype(np.int64)
        return rows + np.where(distance < exact, distance, np.minimum(wide, count - 1))


@dataclass(frozen=True, kw_only=True)
class MT5Config(T5Config):
    model_type: str = "mt5"
    vocab_size: int = 250112
    d_ff: int = 1024
    num_layers: int = 8
    num_heads: int = 6
    feed_forward_proj: str = "gated-gelu"

    @property
    def scales_logits(self) -> bool:
        return False  # as in version 5 of transformers: version 4 did where `tie_word_embeddings` was true


@dataclass(frozen=True, kw_only=True)
class UMT5Config(MT5Config):
    """tie_word_embeddings, which the first files have as false, changes nothing, as in transformers."""

    model_type: str = "umt5"

    def has_distances(self, layer: int) -> bool:
        return True

    @property
    def scales_logits(self) -> bool:
        return True
