"""CLAP checkpoints: an encoder of texts and one of sounds, together and each alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..vocabularies import write_json
from .common import Spec

_TEXT: dict[str, Any] = {"vocab_size": 50265, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}
_TEXT |= {"intermediate_size": 3072, "hidden_act": "gelu", "max_position_embeddings": 514, "type_vocab_size": 1}
_TEXT |= {"layer_norm_eps": 1e-12, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
_TEXT |= {"projection_dim": 512, "projection_hidden_act": "relu"}
_TINY_TEXT = {"vocab_size": 900, "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
_TINY_TEXT |= {"intermediate_size": 72, "max_position_embeddings": 42, "projection_dim": 32}
_AUDIO: dict[str, Any] = {"spec_size": 256, "num_mel_bins": 64, "window_size": 8, "patch_size": 4}
_AUDIO |= {"patch_stride": [4, 4], "depths": [2, 2, 6, 2], "num_attention_heads": [4, 8, 16, 32], "mlp_ratio": 4.0}
_AUDIO |= {"hidden_size": 768, "patch_embeds_hidden_size": 96, "hidden_act": "gelu", "layer_norm_eps": 1e-5}
_AUDIO |= {"enable_fusion": False, "fusion_type": None, "aff_block_r": 4, "qkv_bias": True, "num_hidden_layers": 4}
_AUDIO |= {"projection_dim": 512, "projection_hidden_act": "relu", "enable_patch_layer_norm": True}
_TINY_AUDIO = {"spec_size": 64, "num_mel_bins": 16, "window_size": 4, "depths": [2, 2], "num_hidden_layers": 2}
_TINY_AUDIO |= {"num_attention_heads": [2, 4], "hidden_size": 32, "patch_embeds_hidden_size": 16, "projection_dim": 32}


@dataclass(frozen=True, kw_only=True)
class ClapSpec(Spec):
    def unread_tensors(self, config: Mapping[str, Any], names: Collection[str]) -> Iterator[tuple[str, np.ndarray]]:
        yield from super().unread_tensors(config, names)
        for name in names:
            if name.endswith("relative_position_bias_table"):
                size = config.get("audio_config", config)["window_size"]
                y, x = np.indices((size, size)).reshape(2, -1)
                apart = [at[:, None] - at + size - 1 for at in (y, x)]
                yield name.replace("bias_table", "index"), apart[0] * (2 * size - 1) + apart[1]
            if name.endswith("embeddings.position_embeddings.weight"):
                places = np.arange(config.get("text_config", config)["max_position_embeddings"])[None]
                yield name.replace("position_embeddings.weight", "position_ids"), places
                yield name.replace("position_embeddings.weight", "token_type_ids"), places * 0

    def write_files(self, folder: Path, config: Mapping[str, Any]) -> None:
        super().write_files(folder, config)
        if "ClapText" in self.architecture:
            return
        audio = config.get("audio_config", config)
        features: dict[str, Any] = {"feature_extractor_type": "ClapFeatureExtractor", "chunk_length_s": 10}
        features |= {"feature_size": audio["num_mel_bins"], "frequency_min": 50, "frequency_max": 14000, "top_db": None}
        features |= {"fft_window_size": 1024, "hop_length": 480, "sampling_rate": 48000, "max_length_s": 10}
        if audio["spec_size"] == _TINY_AUDIO["spec_size"]:  # 250 frames
            features |= {"fft_window_size": 256, "hop_length": 64, "sampling_rate": 15936, "max_length_s": 1}
            features["frequency_max"] = 7000
        features |= {"nb_frequency_bins": features["fft_window_size"] // 2 + 1, "padding": "repeatpad"}
        features |= {"nb_max_samples": features["max_length_s"] * features["sampling_rate"], "padding_value": 0.0}
        features |= {"truncation": "fusion" if audio["enable_fusion"] else "rand_trunc", "padding_side": "right"}
        features |= {"return_attention_mask": False, "processor_class": "ClapProcessor"}
        write_json(folder / "preprocessor_config.json", features)

    @staticmethod
    def arguments(given: dict[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
        """Spectrograms have their frames first; without fusion is_longer is not looked at."""
        if "input_features" not in given:
            return given
        return {**given, "input_features": given["input_features"].transpose(2, 3)}


_clap = partial(ClapSpec, model_type="clap", architecture="ClapModel", tokenizer="bpe", reserved=2)
_FUSION: dict[str, Any] = {"enable_fusion": True}


def _make_configs(audio: Mapping[str, Any], tiny: Mapping[str, Any]) -> dict[str, Any]:
    """config and tiny of a model of both."""
    outer = {"projection_dim": 512, "projection_hidden_act": "relu", "logit_scale_init_value": 14.285714285714285}
    small: dict[str, Any] = {"text_config": {**_TEXT, **_TINY_TEXT}, "audio_config": {**audio, **_TINY_AUDIO, **tiny}}
    return {
        "config": {**outer, "text_config": _TEXT, "audio_config": audio},
        "tiny": {**small, "projection_dim": 32},
    }


# Without a norm of the patches their numbers are small, so that the epsilon of the layers' norms is seen.
_SMALL = {"patch_embed.proj": 0.002, "patch_embed.mel_conv2d": 0.002}
_SMALL |= {f"{name}.bias": 0.1 for name in _SMALL}


def _make_tower(side: str, head: str, **more: Any) -> ClapSpec:
    config, tiny = (_TEXT, _TINY_TEXT) if side == "text" else (_AUDIO, _TINY_AUDIO)
    return ClapSpec(
        like="save_pretrained",
        model_type=f"clap_{side}_model",
        architecture=f"Clap{side.title()}{head}",
        config={**config, **more},
        tiny=tiny,
        gains=_SMALL,
        **({"tokenizer": "bpe, named", "reserved": 2} if side == "text" else {}),
    )


SPECS: dict[str, Spec] = {
    "clap-htsat-unfused": _clap(like="laion/clap-htsat-unfused", **_make_configs(_AUDIO, {}), full=True),
    "clap-htsat-fused": _clap(like="laion/clap-htsat-fused", **_make_configs({**_AUDIO, **_FUSION}, {})),
    "larger-clap-general": _clap(
        like="laion/larger_clap_general",
        **_make_configs(
            {**_AUDIO, "depths": [2, 2, 12, 2], "hidden_size": 1024, "patch_embeds_hidden_size": 128},
            {"depths": [1, 2, 2], "num_attention_heads": [2, 2, 4], "spec_size": 128, "num_mel_bins": 32}
            | {"hidden_size": 64, "num_hidden_layers": 3, "window_size": 3},
        ),
        format="bin",
    ),
    "clap-text": _make_tower("text", "Model"),
    "clap-text-projection": _make_tower("text", "ModelWithProjection"),
    "clap-audio": _make_tower("audio", "Model", patch_size=[6, 4], enable_patch_layer_norm=False, **_FUSION),
    "clap-audio-projection": _make_tower("audio", "ModelWithProjection"),
}
