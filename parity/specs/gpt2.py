"""GPT-2 checkpoints."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from .common import Spec, labels

CONFIG = {"vocab_size": 50257, "n_positions": 1024, "n_ctx": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12}
CONFIG |= {"activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "bos_token_id": 50256, "eos_token_id": 50256}
CONFIG |= {"attn_pdrop": 0.1, "embd_pdrop": 0.1, "resid_pdrop": 0.1, "summary_type": "cls_index"}
TINY = {"vocab_size": 500, "n_positions": 128, "n_embd": 48, "n_layer": 3, "n_head": 4}
TINY |= {"bos_token_id": 1, "eos_token_id": 2}


class HubSpec(Spec):
    """OpenAI's files: without a prefix, and with the causal masks as buffers."""

    def file_name(self, name: str) -> str:
        return name.removeprefix("transformer.")

    def unread_tensors(self, config: Mapping[str, Any], names: Collection[str]) -> Iterator[tuple[str, np.ndarray]]:
        size = config["n_positions"]
        for layer in range(config["n_layer"]):
            yield f"h.{layer}.attn.bias", np.tril(np.ones((1, 1, size, size), np.float32))


_gpt2 = partial(Spec, model_type="gpt2", like="save_pretrained", config=CONFIG, tiny=TINY)

SPECS: dict[str, Spec] = {
    "gpt2": HubSpec(
        like="openai-community/gpt2",
        model_type="gpt2",
        architecture="GPT2LMHeadModel",
        config=CONFIG,
        tiny=TINY,
        full=True,
    ),
    "gpt2-scaled": _gpt2(
        architecture="GPT2LMHeadModel", config={**CONFIG, "scale_attn_by_inverse_layer_idx": True}, dtype="F16"
    ),
    "gpt2-bare": _gpt2(architecture="GPT2Model"),
    "gpt2-classifier": _gpt2(
        architecture="GPT2ForSequenceClassification", config={**CONFIG, **labels(count=3), "pad_token_id": 0}
    ),
    "gpt2-tagger": _gpt2(architecture="GPT2ForTokenClassification", config={**CONFIG, **labels(count=9)}),
    "gpt2-squad2": _gpt2(architecture="GPT2ForQuestionAnswering", dtype="BF16"),
}
