"""Wav2Vec2-BERT checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..vocabularies import write_json
from .common import Spec, labels
from .wav2vec2 import SpeechSpec

CONFIG: dict[str, Any] = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16}
CONFIG |= {"intermediate_size": 4096, "hidden_act": "swish", "layer_norm_eps": 1e-5, "pad_token_id": 0}
CONFIG |= {"feature_projection_input_dim": 160, "position_embeddings_type": "relative_key"}
CONFIG |= {"left_max_position_embeddings": 64, "right_max_position_embeddings": 8, "conv_depthwise_kernel_size": 31}
CONFIG |= {"mask_time_prob": 0.05, "ctc_loss_reduction": "mean", "vocab_size": 32, "add_adapter": False}
ADAPTER = {"add_adapter": True, "adapter_act": "relu", "adapter_kernel_size": 3, "adapter_stride": 2}
ADAPTER |= {"num_adapter_layers": 1, "output_hidden_size": 1024, "use_intermediate_ffn_before_adapter": False}
TINY: dict[str, Any] = {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 72}
TINY |= {"left_max_position_embeddings": 5, "right_max_position_embeddings": 2}
TINY |= {"conv_depthwise_kernel_size": 5, "classifier_proj_size": 20}


@dataclass(frozen=True, kw_only=True)
class FrameSpec(SpeechSpec):
    def write_files(self, folder: Path, config: Mapping[str, Any]) -> None:
        super().write_files(folder, {**config, "feat_extract_norm": "layer"})
        size = config["feature_projection_input_dim"] // 2
        features = {"feature_extractor_type": "SeamlessM4TFeatureExtractor", "feature_size": size, "stride": 2}
        features |= {"num_mel_bins": size, "sampling_rate": 16000, "padding_value": 0.0, "padding_side": "right"}
        write_json(folder / "preprocessor_config.json", {**features, "return_attention_mask": True})


_GAINS = {"residual_conv": 0.3, "self_attn_conv": 0.3}  # an adapter's numbers would grow beyond what can be compared
_bert = partial(FrameSpec, model_type="wav2vec2-bert", config=CONFIG, gains=_GAINS)
_bert = partial(_bert, inert=(*Spec.inert, r"\.linear_k\.bias$"))

SPECS = {
    "w2v-bert-2.0-ctc": _bert(
        like="hf-audio/wav2vec2-bert-CV16-en",
        architecture="Wav2Vec2BertForCTC",
        config={**CONFIG, **ADAPTER},
        tiny={**TINY, "output_hidden_size": 48},
        full=True,
    ),
    "w2v-bert-2.0": _bert(like="facebook/w2v-bert-2.0", architecture="Wav2Vec2BertModel", tiny=TINY),
    "w2v-bert-without-positions": _bert(
        like="save_pretrained",
        architecture="Wav2Vec2BertForCTC",
        config={**CONFIG, **ADAPTER, "position_embeddings_type": None},
        tiny={**TINY, "output_hidden_size": 32, "num_adapter_layers": 2, "use_intermediate_ffn_before_adapter": True},
        format="bin",
    ),
    "w2v-bert-classes": _bert(
        like="save_pretrained",
        architecture="Wav2Vec2BertForSequenceClassification",
        config={**CONFIG, "use_weighted_layer_sum": True, **labels("yes", "no", "up", "down")},
        tiny=TINY,
    ),
}
