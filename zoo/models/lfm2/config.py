"""The config of an LFM2 checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...errors import ConfigError
from ...rope import FULL_ATTENTION, check_layer_types
from ..llama3.config import LlamaConfig

CONV = "conv"


@dataclass(frozen=True, kw_only=True)
class Lfm2Config(LlamaConfig):
    """conv_L_cache: the tokens that a convolution sees, its own included.  layer_types: of each layer "conv" or
    "full_attention"; by default the layers in full_attn_idxs attend, or all.
    """

    aliases: ClassVar[Mapping[str, str]] = {"tie_embedding": "tie_word_embeddings", "block_ff_dim": "intermediate_size"}
    reads_attention_bias: ClassVar[bool] = False
    reads_mlp_bias: ClassVar[bool] = False
    model_type: str = "lfm2"
    vocab_size: int = 65536
    hidden_size: int = 2560
    intermediate_size: int = 12288
    num_hidden_layers: int = 32
    num_key_value_heads: int | None = 8
    max_position_embeddings: int = 128_000
    norm_eps: float = 1e-5
    rope_theta: float = 1_000_000.0
    tie_word_embeddings: bool = True
    conv_bias: bool = False
    conv_L_cache: int = 3  # noqa: N815 - transformers' name
    block_multiple_of: int = 256
    block_ffn_dim_multiplier: float | None = 1.0
    block_auto_adjust_ff_dim: bool = True
    full_attn_idxs: list[int] | None = None
    layer_types: list[str] | None = None
    pad_token_id: int | None = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("conv_L_cache", "block_multiple_of")
        self.above_zero("norm_eps", "block_ffn_dim_multiplier")
        self.require(hidden_act="silu", attention_dropout=0.0)
        if self.hidden_size % 2:
            raise ConfigError(f"hidden_size = {self.hidden_size} is odd")
        if self.mlp_width < 1:
            raise ConfigError(f"intermediate_size = {self.intermediate_size} leaves MLPs of no features")
        if self.layer_types is not None:
            check_layer_types(self.layer_types, self.num_hidden_layers, (CONV, FULL_ATTENTION))

    def convolves(self, layer: int) -> bool:
        """True if this layer has a convolution in the place of attention."""
        if self.layer_types is not None:
            return self.layer_types[layer] == CONV
        return self.full_attn_idxs is not None and layer not in self.full_attn_idxs

    def window(self, layer: int) -> int | None:
        return self.conv_L_cache - 1 if self.convolves(layer) else None

    @property
    def mlp_width(self) -> int:
        """The features within an MLP: two thirds of intermediate_size, rounded up."""
        if not self.block_auto_adjust_ff_dim:
            return self.intermediate_size
        width, factor, whole = (
            int(2 * self.intermediate_size / 3),
            self.block_ffn_dim_multiplier,
            self.block_multiple_of,
        )
        return -(-(width if factor is None else int(factor * width)) // whole) * whole
