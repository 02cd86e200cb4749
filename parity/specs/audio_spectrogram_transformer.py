"""Audio Spectrogram Transformer checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..vocabularies import write_json
from .common import Spec, labels

CONFIG = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
CONFIG |= {"hidden_act": "gelu", "layer_norm_eps": 1e-12, "patch_size": 16, "qkv_bias": True, "max_length": 1024}
CONFIG |= {"frequency_stride": 10, "time_stride": 10, "num_mel_bins": 128, **labels(count=527)}
TINY = {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 72}
TINY |= {"max_length": 60, "num_mel_bins": 24, "patch_size": 8, "frequency_stride": 5, "time_stride": 6}


@dataclass(frozen=True, kw_only=True)
class ASTSpec(Spec):
    def write_files(self, folder: Path, config: Mapping[str, Any]) -> None:
        super().write_files(folder, config)
        features = {"feature_extractor_type": "ASTFeatureExtractor", "do_normalize": True, "sampling_rate": 16000}
        features |= {"mean": -4.2677393, "std": 4.5689974, "feature_size": 1, "padding_value": 0.0}
        features |= {name: config[name] for name in ("max_length", "num_mel_bins")}
        write_json(folder / "preprocessor_config.json", features)

    @staticmethod
    def arguments(given: dict[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
        """Spectrograms have another name, and their frames come first."""
        return {"input_values": given["input_features"].transpose(1, 2)}


_ast = partial(ASTSpec, model_type="audio-spectrogram-transformer", config=CONFIG)

SPECS: dict[str, Spec] = {
    "ast-finetuned-audioset": _ast(
        like="MIT/ast-finetuned-audioset-10-10-0.4593",
        architecture="ASTForAudioClassification",
        tiny={**TINY, **labels(count=7)},
        full=True,
    ),
    "ast-bare": _ast(like="save_pretrained", architecture="ASTModel", tiny=TINY),
}
