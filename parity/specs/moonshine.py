"""Moonshine checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..vocabularies import write_json
from .common import Spec

CONFIG: dict[str, Any] = {"vocab_size": 32768, "hidden_size": 288, "intermediate_size": 1152}
CONFIG |= {f"{side}_num_hidden_layers": 6 for side in ("encoder", "decoder")}
CONFIG |= {f"{side}_num_attention_heads": 8 for side in ("encoder", "decoder")}
CONFIG |= {f"{side}_num_key_value_heads": 8 for side in ("encoder", "decoder")}
CONFIG |= {"encoder_hidden_act": "gelu", "decoder_hidden_act": "silu", "max_position_embeddings": 194}
CONFIG |= {"partial_rotary_factor": 0.9, "rope_theta": 10000.0, "rope_scaling": None, "attention_bias": False}
CONFIG |= {"bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "is_encoder_decoder": True}
CONFIG |= {"pad_head_dim_to_multiple_of": 8}
ROPE = {"rope_theta": 10000.0, "rope_type": "default", "partial_rotary_factor": 0.7}
TINY: dict[str, Any] = {"vocab_size": 500, "hidden_size": 48, "intermediate_size": 72, "max_position_embeddings": 40}
TINY |= {"encoder_num_hidden_layers": 2, "decoder_num_hidden_layers": 3, "partial_rotary_factor": 0.7}
TINY |= {f"{side}_num_attention_heads": 4 for side in ("encoder", "decoder")}
TINY |= {f"{side}_num_key_value_heads": 4 for side in ("encoder", "decoder")}


@dataclass(frozen=True, kw_only=True)
class MoonshineSpec(Spec):
    def write_files(self, folder: Path, config: Mapping[str, Any]) -> None:
        super().write_files(folder, config)
        features = {"feature_extractor_type": "Wav2Vec2FeatureExtractor", "feature_size": 1, "sampling_rate": 16000}
        features |= {"padding_value": 0.0, "padding_side": "right", "do_normalize": False}
        write_json(folder / "preprocessor_config.json", {**features, "return_attention_mask": True})
        names = ("eos_token_id", "bos_token_id", "decoder_start_token_id")
        ids = {name: config[name] for name in names}
        write_json(folder / "generation_config.json", {**ids, "max_length": config["max_position_embeddings"]})


_moonshine = partial(
    MoonshineSpec, model_type="moonshine", config=CONFIG, tiny=TINY, tokenizer="bpe, named", gains={"conv1": 8.0}
)

SPECS = {
    "moonshine-tiny": _moonshine(
        like="UsefulSensors/moonshine-tiny", architecture="MoonshineForConditionalGeneration", full=True
    ),
    "moonshine-finetuned": _moonshine(
        like="save_pretrained",
        architecture="MoonshineForConditionalGeneration",
        config={**CONFIG, "pad_token_id": 2, "rope_parameters": ROPE},
        dtype="BF16",
    ),
    "moonshine-bare": _moonshine(
        like="save_pretrained", architecture="MoonshineModel", config={**CONFIG, "attention_bias": True}
    ),
}
