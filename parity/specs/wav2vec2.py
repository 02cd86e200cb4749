"""wav2vec 2.0 checkpoints."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..vocabularies import write_json
from .common import Spec, labels

CONFIG: dict[str, Any] = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}
CONFIG |= {"intermediate_size": 3072, "hidden_act": "gelu", "vocab_size": 32, "pad_token_id": 0, "layer_norm_eps": 1e-5}
CONFIG |= {"feat_extract_norm": "group", "feat_extract_activation": "gelu", "conv_bias": False}
CONFIG |= {"conv_dim": [512] * 7, "conv_stride": [5, *[2] * 6], "conv_kernel": [10, 3, 3, 3, 3, 2, 2]}
CONFIG |= {"num_conv_pos_embeddings": 128, "num_conv_pos_embedding_groups": 16, "do_stable_layer_norm": False}
CONFIG |= {"mask_time_prob": 0.05, "bos_token_id": 1, "eos_token_id": 2, "ctc_loss_reduction": "mean"}
# Pre-norm layers, and norms of channels instead of one over time.
LARGE_CONFIG = {"feat_extract_norm": "layer", "conv_bias": True, "do_stable_layer_norm": True}
TINY_CONFIG: dict[str, Any] = {
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 72,
}
TINY_CONFIG |= {"conv_dim": [24, 16, 16], "conv_stride": [4, 3, 2], "conv_kernel": [9, 3, 2]}
TINY_CONFIG |= {"num_conv_pos_embeddings": 14, "num_conv_pos_embedding_groups": 4, "classifier_proj_size": 20}
LETTERS = "|ETAONIHSRDLUMWCFGYPBVK'XJQZ"
TOKENS = ("<pad>", "<s>", "</s>", "<unk>", *LETTERS)


@dataclass(frozen=True, kw_only=True)
class SpeechSpec(Spec):
    """names: "old" for a weight norm's tensors as the Hub's files call them, "new" as transformers writes them."""

    new_names: ClassVar[dict[str, str]] = {
        "weight_g": "parametrizations.weight.original0",
        "weight_v": "parametrizations.weight.original1",
    }

    names: str = "old"

    def file_name(self, name: str) -> str:
        stem, _, last = name.rpartition(".")
        return f"{stem}.{self.new_names[last]}" if self.names == "new" and last in self.new_names else name

    def unread_tensors(self, config: Mapping[str, Any], names: Collection[str]) -> Iterator[tuple[str, np.ndarray]]:
        yield f"{self.prefix}masked_spec_embed", np.full(config["hidden_size"], 0.25, np.float32)

    def write_files(self, folder: Path, config: Mapping[str, Any]) -> None:
        features = {"feature_extractor_type": "Wav2Vec2FeatureExtractor", "feature_size": 1, "sampling_rate": 16000}
        features |= {"padding_value": 0.0, "do_normalize": True}
        features["return_attention_mask"] = config["feat_extract_norm"] == "layer"
        write_json(folder / "preprocessor_config.json", features)
        if self.architecture.endswith("ForCTC"):
            write_json(folder / "vocab.json", {token: i for i, token in enumerate(TOKENS)})
            names = {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
            more = {"word_delimiter_token": "|", "do_lower_case": False, "tokenizer_class": "Wav2Vec2CTCTokenizer"}
            write_json(folder / "tokenizer_config.json", {**names, **more})
            write_json(folder / "special_tokens_map.json", names)


_wav2vec2 = partial(SpeechSpec, model_type="wav2vec2", architecture="Wav2Vec2ForCTC", gains={"conv": 8.0})

SPECS: dict[str, Spec] = {
    "wav2vec2-base-960h": _wav2vec2(like="facebook/wav2vec2-base-960h", config=CONFIG, tiny=TINY_CONFIG, full=True),
    "wav2vec2-large-960h-lv60": _wav2vec2(
        like="facebook/wav2vec2-large-960h-lv60-self",
        config={**CONFIG, **LARGE_CONFIG, "adapter_attn_dim": 16},
        tiny=TINY_CONFIG,
        names="new",
    ),
    "wav2vec2-base-superb-ks": _wav2vec2(
        like="superb/wav2vec2-base-superb-ks",
        architecture="Wav2Vec2ForSequenceClassification",
        config={**CONFIG, **LARGE_CONFIG, "use_weighted_layer_sum": True, **labels("yes", "no", "up", "down")},
        tiny=TINY_CONFIG,
    ),
    "wav2vec2-base": _wav2vec2(
        like="facebook/wav2vec2-base", architecture="Wav2Vec2Model", config=CONFIG, tiny=TINY_CONFIG
    ),
}
