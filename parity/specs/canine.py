"""CANINE checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..vocabularies import write_json
from .common import Spec, labels

CONFIG = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
CONFIG |= {"hidden_act": "gelu", "max_position_embeddings": 16384, "type_vocab_size": 16, "layer_norm_eps": 1e-12}
CONFIG |= {"pad_token_id": 0, "bos_token_id": 57344, "eos_token_id": 57345, "downsampling_rate": 4}
CONFIG |= {"upsampling_kernel_size": 4, "num_hash_functions": 8, "num_hash_buckets": 16384}
CONFIG |= {"local_transformer_stride": 128}
TINY = {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 72}
TINY |= {"max_position_embeddings": 210, "num_hash_buckets": 500, "local_transformer_stride": 32}
# A text's vector is that of molecules, after which the layers over characters come.
_CHARACTER_LAYERS = (*Spec.inert, r"^canine\.(projection|final_char_encoder)\.")


@dataclass(frozen=True, kw_only=True)
class CanineSpec(Spec):
    def write_files(self, folder: Path, config: Mapping[str, Any]) -> None:
        """A tokenizer without a vocabulary."""
        most = min(config["max_position_embeddings"], 2048)
        write_json(folder / "tokenizer_config.json", {"tokenizer_class": "CanineTokenizer", "model_max_length": most})


_canine = partial(CanineSpec, model_type="canine", like="save_pretrained", config=CONFIG, tiny=TINY)

SPECS: dict[str, Spec] = {
    "canine-s": _canine(like="google/canine-s", architecture="CanineModel", pooler=True, format="bin", full=True),
    "canine-classifier": _canine(
        architecture="CanineForSequenceClassification",
        config={**CONFIG, **labels(count=3), "upsampling_kernel_size": 3},
        inert=_CHARACTER_LAYERS,
    ),
    "canine-ner": _canine(
        architecture="CanineForTokenClassification",
        config={**CONFIG, **labels(count=9), "downsampling_rate": 3, "num_hash_functions": 16},
        # Whole molecules, as on the Hub: where one reaches into a block of padding, transformers' gradient goes through
        # scores that its sum with float32's least number has lost.
        tiny={**TINY, "local_transformer_stride": 33},
    ),
    "canine-squad": _canine(architecture="CanineForQuestionAnswering", dtype="F16"),
    "canine-swag": _canine(architecture="CanineForMultipleChoice", format="sharded", inert=_CHARACTER_LAYERS),
}
