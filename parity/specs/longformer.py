"""Longformer checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .common import labels
from .text import BASE, TextSpec

CONFIG = {**BASE, "attention_mode": "longformer", "attention_window": [512] * 12, "hidden_act": "gelu"}
CONFIG |= {"attention_probs_dropout_prob": 0.1, "hidden_dropout_prob": 0.1, "layer_norm_eps": 1e-05}
CONFIG |= {"max_position_embeddings": 4098, "type_vocab_size": 1, "vocab_size": 50265, "ignore_attention_mask": False}
CONFIG |= {"bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1, "sep_token_id": 2}
TINY = {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 72}
TINY |= {"vocab_size": 900, "max_position_embeddings": 98, "attention_window": [8, 4, 8]}


@dataclass(frozen=True, kw_only=True)
class LongformerSpec(TextSpec):
    @staticmethod
    def from_stages(
        found: dict[str, np.ndarray], arrays: Mapping[str, np.ndarray], config: Mapping[str, Any]
    ) -> dict[str, np.ndarray]:
        """Without the padding to whole windows."""
        T = arrays["input_ids"].shape[-1]
        return {name: x[:, :T] if x.ndim == 3 else x for name, x in found.items()}


_longformer = partial(
    LongformerSpec,
    like="save_pretrained",
    model_type="longformer",
    config=CONFIG,
    tiny=TINY,
    tokenizer="bpe",
    reserved=2,
    inert=(r"\.key(_global)?\.bias$",),
)

SPECS: dict[str, LongformerSpec] = {
    "longformer-base-4096": _longformer(
        like="allenai/longformer-base-4096",
        architecture="LongformerForMaskedLM",
        pooler=True,
        position_ids=True,
        format="bin",
        full=True,
    ),
    "longformer-bare": _longformer(architecture="LongformerModel", pooler=True, format="sharded"),
    "longformer-classifier": _longformer(
        architecture="LongformerForSequenceClassification", config={**CONFIG, **labels(count=3)}, dtype="F16"
    ),
    "longformer-ner": _longformer(
        architecture="LongformerForTokenClassification",
        config={**CONFIG, **labels(count=9)},
        tiny={**TINY, "attention_window": 8},
    ),
    "longformer-large-4096-finetuned-triviaqa": _longformer(
        like="allenai/longformer-large-4096-finetuned-triviaqa",
        architecture="LongformerForQuestionAnswering",
        position_ids=True,
    ),
    "longformer-swag": _longformer(architecture="LongformerForMultipleChoice", pooler=True),
}
