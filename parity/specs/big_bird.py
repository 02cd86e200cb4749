"""BigBird checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .common import Loaded, Spec, labels
from .text import BASE

CONFIG = {**BASE, "attention_type": "block_sparse", "block_size": 64, "num_random_blocks": 3, "hidden_act": "gelu_new"}
CONFIG |= {"attention_probs_dropout_prob": 0.1, "hidden_dropout_prob": 0.1, "layer_norm_eps": 1e-12, "use_bias": True}
CONFIG |= {"max_position_embeddings": 4096, "type_vocab_size": 2, "vocab_size": 50358, "rescale_embeddings": False}
CONFIG |= {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "sep_token_id": 66}
TINY = {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 72}
TINY |= {"vocab_size": 900, "max_position_embeddings": 96, "block_size": 4, "num_random_blocks": 1}
TINY |= {"sep_token_id": 4}  # that of the tokenizer which is written
DECODER = {**CONFIG, "is_decoder": True, "attention_type": "original_full"}


@dataclass(frozen=True, kw_only=True)
class BigBirdSpec(Spec):
    @staticmethod
    def load_reference(model_class: Any, folder: Path, config: Mapping[str, Any], dtype: Any) -> Loaded:
        """transformers' model, which a short text would change for the longer ones after it."""
        model, info = Spec.load_reference(model_class, folder, config, dtype)
        body, kind = getattr(model, "bert", model), config["attention_type"]
        body.register_forward_pre_hook(lambda module, given: module.set_attention_type(kind))
        return model, info

    @staticmethod
    def from_stages(
        found: dict[str, np.ndarray], arrays: Mapping[str, np.ndarray], config: Mapping[str, Any]
    ) -> dict[str, np.ndarray]:
        """Without the padding to whole blocks."""
        T = arrays["input_ids"].shape[-1]
        return {name: x[:, :T] if x.ndim == 3 else x for name, x in found.items()}


_bird = partial(
    BigBirdSpec,
    like="save_pretrained",
    model_type="big_bird",
    config=CONFIG,
    tiny=TINY,
    tokenizer="wordpiece, json",
)

SPECS: dict[str, BigBirdSpec] = {
    "bigbird-roberta-base": _bird(
        like="google/bigbird-roberta-base", architecture="BigBirdForPreTraining", format="bin", pooler=True, full=True
    ),
    "bigbird-masked": _bird(architecture="BigBirdForMaskedLM", tiny={**TINY, "num_random_blocks": 2}),
    "bigbird-bare": _bird(architecture="BigBirdModel", pooler=True, format="sharded"),
    "bigbird-classifier": _bird(
        architecture="BigBirdForSequenceClassification",
        config={**CONFIG, **labels(count=3), "rescale_embeddings": True},
        dtype="F16",
    ),
    "bigbird-ner": _bird(
        architecture="BigBirdForTokenClassification", config={**CONFIG, **labels(count=9), "use_bias": False}
    ),
    "bigbird-base-trivia-itc": _bird(like="google/bigbird-base-trivia-itc", architecture="BigBirdForQuestionAnswering"),
    "bigbird-swag": _bird(architecture="BigBirdForMultipleChoice", pooler=True),
    "bigbird-decoder": _bird(architecture="BigBirdForCausalLM", config=DECODER),
}
