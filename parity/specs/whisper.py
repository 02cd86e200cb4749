"""Whisper checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from ..vocabularies import write_json
from .common import Spec, labels

CONFIG = {f"{side}_layers": 6 for side in ("encoder", "decoder")}
CONFIG |= {f"{side}_attention_heads": 8 for side in ("encoder", "decoder")}
CONFIG |= {f"{side}_ffn_dim": 2048 for side in ("encoder", "decoder")}
CONFIG |= {"vocab_size": 51865, "num_mel_bins": 80, "d_model": 512, "activation_function": "gelu"}
CONFIG |= {"max_source_positions": 1500, "max_target_positions": 448, "num_hidden_layers": 6, "scale_embedding": False}
CONFIG |= {"pad_token_id": 50257, "bos_token_id": 50257, "eos_token_id": 50257, "decoder_start_token_id": 50258}
TINY = {f"{side}_layers": 2 for side in ("encoder", "decoder")}
TINY |= {"encoder_attention_heads": 2, "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 72}
TINY |= {"vocab_size": 500, "num_mel_bins": 20, "d_model": 48, "max_source_positions": 50, "max_target_positions": 40}
TINY |= {"num_hidden_layers": 2, "pad_token_id": 438, "bos_token_id": 438}
TINY |= {"eos_token_id": 438, "decoder_start_token_id": 439}


@dataclass(frozen=True, kw_only=True)
class WhisperSpec(Spec):
    masks_states: ClassVar[bool] = False

    def write_files(self, folder: Path, config: Mapping[str, Any]) -> None:
        super().write_files(folder, config)
        is_tiny, first = config["vocab_size"] == TINY["vocab_size"], config["decoder_start_token_id"] + 1
        times = 51 if is_tiny else 1501
        features = {"chunk_length": 1, "hop_length": 160} if is_tiny else {"chunk_length": 30, "hop_length": 160}
        features |= {"feature_size": config["num_mel_bins"], "sampling_rate": 16000, "n_fft": 400}
        write_json(
            folder / "preprocessor_config.json", {"feature_extractor_type": "WhisperFeatureExtractor", **features}
        )
        generation: dict[str, Any] = {"lang_to_id": {"<|en|>": first, "<|de|>": first + 1}, "is_multilingual": True}
        generation |= {"task_to_id": {"transcribe": first + 2, "translate": first + 3}}
        generation |= {"suppress_tokens": [first + 4, 9], "alignment_heads": [[0, 1], [1, 0], [1, 3]]}
        generation |= {"no_timestamps_token_id": config["vocab_size"] - times - 1, "begin_suppress_tokens": [11]}
        generation |= {"max_initial_timestamp_index": 20, "max_length": config["max_target_positions"]}
        generation |= {"prev_sot_token_id": first + 5}
        names = ("eos_token_id", "bos_token_id", "pad_token_id", "decoder_start_token_id")
        generation |= {name: config[name] for name in names}
        write_json(folder / "generation_config.json", generation)

    @staticmethod
    def arguments(given: dict[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
        """The decoder alone has another name for the states that it is given."""
        if config["architectures"] != ["WhisperForCausalLM"]:
            return given
        return {"encoder_outputs" if name == "encoder_hidden_states" else name: x for name, x in given.items()}


_whisper = partial(
    WhisperSpec, model_type="whisper", architecture="WhisperForConditionalGeneration", tokenizer="bpe, named"
)

SPECS: dict[str, Spec] = {
    "whisper-base": _whisper(like="openai/whisper-base", config=CONFIG, tiny=TINY, full=True),
    "whisper-large-v3": _whisper(
        like="openai/whisper-large-v3",
        config={**CONFIG, "num_mel_bins": 128},
        tiny={**TINY, "num_mel_bins": 24},
        dtype="F16",
    ),
    "whisper-bare": _whisper(like="save_pretrained", architecture="WhisperModel", config=CONFIG, tiny=TINY),
    "whisper-decoder": _whisper(
        like="save_pretrained",
        architecture="WhisperForCausalLM",
        config={**CONFIG, "is_decoder": True, "is_encoder_decoder": False},
        tiny=TINY,
    ),
    "whisper-classifier": _whisper(
        like="save_pretrained",
        architecture="WhisperForAudioClassification",
        config={**CONFIG, "use_weighted_layer_sum": True, **labels(count=7)},
        tiny=TINY,
    ),
    "whisper-medium-fleurs-lang-id": _whisper(
        like="sanchit-gandhi/whisper-medium-fleurs-lang-id",
        architecture="WhisperForAudioClassification",
        config={**CONFIG, **labels(count=102)},
        tiny={**TINY, **labels(count=5), "classifier_proj_size": 24},
    ),
}
