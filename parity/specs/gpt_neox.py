"""GPT-NeoX checkpoints: Pythia's have the causal masks and rotary frequencies as buffers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from .common import Spec, labels

CONFIG = {"vocab_size": 50304, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12}
CONFIG |= {"num_attention_heads": 12, "max_position_embeddings": 2048, "layer_norm_eps": 1e-5, "hidden_act": "gelu"}
CONFIG |= {"rotary_emb_base": 10000, "rotary_pct": 0.25, "use_parallel_residual": True, "initializer_range": 0.02}
CONFIG |= {"bos_token_id": 0, "eos_token_id": 0, "tie_word_embeddings": False}
TINY = {"vocab_size": 500, "hidden_size": 96, "intermediate_size": 144, "num_hidden_layers": 3}
TINY |= {"num_attention_heads": 4, "max_position_embeddings": 128}


class GPTNeoXSpec(Spec):
    def file_name(self, name: str) -> str:
        return name.replace("lm_head.", "embed_out.")


class HubSpec(GPTNeoXSpec):
    def unread_tensors(self, config: Mapping[str, Any], names: Collection[str]) -> Iterator[tuple[str, np.ndarray]]:
        size = config["max_position_embeddings"]
        for layer in range(config["num_hidden_layers"]):
            prefix = f"gpt_neox.layers.{layer}.attention"
            yield f"{prefix}.bias", np.tril(np.ones((1, 1, size, size), np.uint8))
            yield f"{prefix}.masked_bias", np.array(-6e4, np.float32)
            yield f"{prefix}.rotary_emb.inv_freq", np.ones(3, np.float32)


_gpt_neox = partial(GPTNeoXSpec, like="save_pretrained", model_type="gpt_neox", config=CONFIG, tiny=TINY)

SPECS: dict[str, Spec] = {
    "pythia-160m": HubSpec(
        like="EleutherAI/pythia-160m",
        model_type="gpt_neox",
        architecture="GPTNeoXForCausalLM",
        config=CONFIG,
        tiny=TINY,
        full=True,
        dtype="F16",
    ),
    "gpt-neox-in-turn": _gpt_neox(
        architecture="GPTNeoXForCausalLM",
        config={**CONFIG, "use_parallel_residual": False, "rotary_pct": 1.0, "attention_bias": False},
    ),
    "gpt-neox-bare": _gpt_neox(architecture="GPTNeoXModel", format="sharded"),
    "gpt-neox-classifier": _gpt_neox(
        architecture="GPTNeoXForSequenceClassification", config={**CONFIG, **labels(count=3), "pad_token_id": 1}
    ),
    "gpt-neox-tagger": _gpt_neox(architecture="GPTNeoXForTokenClassification", config={**CONFIG, **labels(count=9)}),
    "gpt-neox-squad": _gpt_neox(architecture="GPTNeoXForQuestionAnswering", dtype="BF16"),
}
