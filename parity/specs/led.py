"""LED checkpoints: BART for long texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .bart import BartSpec
from .common import Spec

CONFIG = {"vocab_size": 50265, "d_model": 768, "encoder_layers": 6, "decoder_layers": 6, "num_hidden_layers": 6}
CONFIG |= {f"{side}_attention_heads": 12 for side in ("encoder", "decoder")}
CONFIG |= {f"{side}_ffn_dim": 3072 for side in ("encoder", "decoder")}
CONFIG |= {"max_encoder_position_embeddings": 16384, "max_decoder_position_embeddings": 1024}
CONFIG |= {"attention_window": [1024] * 6, "activation_function": "gelu", "dropout": 0.1, "is_encoder_decoder": True}
CONFIG |= {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2, "init_std": 0.02}
TINY = {"vocab_size": 500, "d_model": 48, "encoder_layers": 2, "decoder_layers": 2, "num_hidden_layers": 2}
TINY |= {"encoder_attention_heads": 2, "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 72}
TINY |= {"max_encoder_position_embeddings": 96, "max_decoder_position_embeddings": 40, "attention_window": [8, 4]}


@dataclass(frozen=True, kw_only=True)
class LEDSpec(BartSpec):
    @staticmethod
    def from_stages(
        found: dict[str, np.ndarray], arrays: Mapping[str, np.ndarray], config: Mapping[str, Any]
    ) -> dict[str, np.ndarray]:
        """The encoder's without the padding to whole windows."""
        T = arrays["input_ids"].shape[1]
        return {name: x[:, :T] if name.startswith("encoder.") else x for name, x in found.items()}


_led = partial(
    LEDSpec,
    model_type="led",
    tokenizer="bpe",
    config=CONFIG,
    tiny=TINY,
    like="save_pretrained",
    inert=(*Spec.inert, r"\.key_global\.bias$"),
)

SPECS: dict[str, Spec] = {
    "led-base-16384": _led(
        like="allenai/led-base-16384", architecture="LEDForConditionalGeneration", full=True, format="bin"
    ),
    "led-bare": _led(architecture="LEDModel", format="sharded"),
    "led-squad": _led(architecture="LEDForQuestionAnswering", dtype="F16"),
}
