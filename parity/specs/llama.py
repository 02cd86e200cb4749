"""Llama checkpoints: 3, 3.1, 3.2, and the variants that other models of that kind have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .common import Size, Spec, labels


@dataclass(frozen=True)
class LlamaSpec(Spec):
    """A decoder whose texts are ids: what they stand for is nothing to the model."""


COMMON = {
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "hidden_act": "silu",
    "max_position_embeddings": 8192,
    "initializer_range": 0.02,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
    "rope_scaling": None,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "mlp_bias": False,
    "pretraining_tp": 1,
    "tie_word_embeddings": False,
    "use_cache": True,
    "bos_token_id": 128000,
    "eos_token_id": 128001,
    "transformers_version": "4.45.0",
}
GROUPS = 2  # of key heads at tiny size, at most: 8 query heads then share them in fours
TINY = {
    "hidden_size": 64,
    "intermediate_size": 112,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "vocab_size": 500,
    "max_position_embeddings": 256,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def _llama(like: str, architecture: str = "LlamaForCausalLM", **more: Any) -> LlamaSpec:
    return LlamaSpec(like, "llama", architecture, **{"dtype": "BF16", **more})


def _scaling(kind: str, **numbers: Any) -> dict[str, Any]:
    return {"rope_scaling": {"rope_type": kind, **numbers}}


_LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
_1B = {
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "head_dim": 64,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": True,
    **_scaling("llama3", factor=32.0, **_LLAMA3),
}

SPECS: dict[str, LlamaSpec] = {
    "Llama-3.2-1B": _llama("meta-llama/Llama-3.2-1B", config=_1B),
    "Llama-3-8B": _llama("meta-llama/Meta-Llama-3-8B", format="sharded"),
    "Llama-3.1-8B-float16": _llama(
        "meta-llama/Llama-3.1-8B", dtype="F16", config=_scaling("llama3", factor=8.0, **_LLAMA3)
    ),
    "llama-biases": _llama(
        "save_pretrained",
        dtype="F32",
        config={"attention_bias": True, "mlp_bias": True, "num_key_value_heads": 1, "head_dim": 24},
    ),
    "llama-linear": _llama("save_pretrained", config={"rope_theta": 10000.0, **_scaling("linear", factor=4.0)}),
    "llama-dynamic": _llama("save_pretrained", config={"rope_theta": 10000.0, **_scaling("dynamic", factor=2.0)}),
    "llama-yarn": _llama(
        "save_pretrained",
        config={
            "rope_theta": None,
            "rope_scaling": None,
            "rope_parameters": {
                "rope_type": "yarn",
                "rope_theta": 10000.0,
                "factor": 4.0,
                "original_max_position_embeddings": 64,
            },
        },
    ),
    "llama-classifier": _llama(
        "save_pretrained", "LlamaForSequenceClassification", config={**labels(3), "pad_token_id": 0}
    ),
    "llama-tagger": _llama("save_pretrained", "LlamaForTokenClassification", config=labels(9)),
    "llama-bare": _llama("save_pretrained", "LlamaModel"),
    "llama-squad2": _llama("save_pretrained", "LlamaForQuestionAnswering"),
    "llama-outliers": _llama("save_pretrained", dtype="F32", massive=1),
}
FULL = ("Llama-3.2-1B",)


def config_of(spec: LlamaSpec, size: Size) -> dict[str, Any]:
    config = {"architectures": [spec.architecture], "model_type": spec.model_type, **COMMON, **spec.config}
    if size == "tiny":
        config |= TINY
        config["num_key_value_heads"] = min(config["num_key_value_heads"], GROUPS)
        if "head_dim" in spec.config:
            config["head_dim"] = 16
        scaling = config["rope_scaling"]
        if scaling and "original_max_position_embeddings" in scaling:
            config["rope_scaling"] = {**scaling, "original_max_position_embeddings": 64}
    return {name: value for name, value in config.items() if name != "rope_theta" or value is not None}
