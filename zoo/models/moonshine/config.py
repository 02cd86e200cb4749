"""The config of a Moonshine checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...config import Config
from ...errors import ConfigError, UnsupportedError
from ...rope import Rope, rope_of


@dataclass(frozen=True, kw_only=True)
class MoonshineConfig(Config):
    """rope_theta, rope_scaling and partial_rotary_factor are what Hub files have, rope_parameters all of these."""

    aliases: ClassVar[Mapping[str, str]] = {
        "num_key_value_heads": "decoder_num_key_value_heads",
        "num_attention_heads": "decoder_num_attention_heads",
        "num_hidden_layers": "decoder_num_hidden_layers",
        "hidden_act": "decoder_hidden_act",
    }
    conv_kernel: ClassVar[tuple[int, ...]] = (127, 7, 3)
    conv_stride: ClassVar[tuple[int, ...]] = (64, 3, 2)

    model_type: str = "moonshine"
    vocab_size: int = 32768
    hidden_size: int = 288
    intermediate_size: int = 1152
    encoder_num_hidden_layers: int = 6
    decoder_num_hidden_layers: int = 6
    encoder_num_attention_heads: int = 8
    decoder_num_attention_heads: int = 8
    encoder_num_key_value_heads: int | None = None
    decoder_num_key_value_heads: int | None = None
    encoder_hidden_act: str = "gelu"
    decoder_hidden_act: str = "silu"
    max_position_embeddings: int = 512
    decoder_start_token_id: int = 1
    rope_theta: float = 10000.0
    rope_scaling: dict[str, Any] | None = None
    rope_parameters: dict[str, Any] | None = None
    partial_rotary_factor: float = 0.9
    attention_bias: bool = False
    attention_dropout: float = 0.0
    bos_token_id: int | None = 1
    eos_token_id: int = 2
    pad_token_id: int | None = None

    def __post_init__(self) -> None:
        self.positive("vocab_size", "hidden_size", "intermediate_size", "max_position_embeddings")
        self.positive("encoder_num_hidden_layers", "decoder_num_hidden_layers", "decoder_num_attention_heads")
        self.divides("decoder_num_attention_heads", "hidden_size")
        self.fractions("attention_dropout")
        heads = self.decoder_num_attention_heads
        # transformers' own layers fail with fewer heads of keys, and their encoder has the decoder's heads.
        for name in ("encoder_num_attention_heads", "encoder_num_key_value_heads", "decoder_num_key_value_heads"):
            if (found := getattr(self, name)) not in (None, heads):
                raise UnsupportedError(f"moonshine: {name} = {found} is not implemented, only {heads} heads are")
        self.rope()

    # What `zoo.inputs.encoder_decoder` asks for.
    d_model = property(lambda self: self.hidden_size)
    decoder_layers = property(lambda self: self.decoder_num_hidden_layers)
    decoder_attention_heads = property(lambda self: self.decoder_num_attention_heads)

    @property
    def ropes(self) -> tuple[Rope, ...]:
        return (self.rope(),)

    def rope(self) -> Rope:
        """The rotary positions of queries and keys, which turn a part of each head."""
        given = self.rope_parameters or self.rope_scaling or {}
        share = given.get("partial_rotary_factor", self.partial_rotary_factor)
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise ConfigError(f"partial_rotary_factor = {share!r} is out of range, expected a number in 0 ... 1")
        size = int(self.hidden_size // self.decoder_num_attention_heads * share)
        return rope_of({"rope_theta": self.rope_theta, **given}, size, self.max_position_embeddings)
