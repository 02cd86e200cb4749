"""Llama checkpoints: 3, 3.1, 3.2, and the variants that other models of that kind have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .common import Spec, labels

_COMMON = {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32}
_COMMON |= {"num_key_value_heads": 8, "vocab_size": 128256, "hidden_act": "silu", "max_position_embeddings": 8192}
_COMMON |= {"initializer_range": 0.02, "rms_norm_eps": 1e-5, "attention_bias": False, "attention_dropout": 0.0}
_COMMON |= {"mlp_bias": False, "pretraining_tp": 1, "tie_word_embeddings": False, "use_cache": True}
_COMMON |= {"bos_token_id": 128000, "eos_token_id": 128001, "transformers_version": "4.45.0"}
_TINY = {"hidden_size": 64, "intermediate_size": 112, "num_hidden_layers": 3, "num_attention_heads": 8}
_TINY |= {"num_key_value_heads": 2, "vocab_size": 500, "max_position_embeddings": 256}  # four heads share a key
_TINY |= {"bos_token_id": 1, "eos_token_id": 2}


def _llama(
    like: str,
    config: Mapping[str, Any] | None = None,
    head: str = "ForCausalLM",
    tiny: Mapping[str, Any] | None = None,
    theta: float | None = 500000.0,
    scaling: Mapping[str, Any] | None = None,
    **more: Any,
) -> Spec:
    """scaling: of the rotary positions, which at tiny size begin from 64 tokens."""
    full = {**_COMMON, **({"rope_theta": theta} if theta else {}), "rope_scaling": scaling, **(config or {})}
    small = {**_TINY, **(tiny or {})}
    if scaling and "original_max_position_embeddings" in scaling:
        small["rope_scaling"] = {**scaling, "original_max_position_embeddings": 64}
    options = {"config": full, "tiny": small, "dtype": "BF16", **more}
    return Spec(like=like, model_type="llama", architecture=f"Llama{head}", **options)


_LLAMA3 = {"rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0}
_LLAMA3 |= {"original_max_position_embeddings": 8192}
_1B = {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "head_dim": 64}
_1B |= {"max_position_embeddings": 131072, "tie_word_embeddings": True}
_BIASES = {"attention_bias": True, "mlp_bias": True, "num_key_value_heads": 1, "head_dim": 24}
_YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 64}

SPECS: dict[str, Spec] = {
    "Llama-3.2-1B": _llama(
        "meta-llama/Llama-3.2-1B", _1B, tiny={"head_dim": 16}, scaling={**_LLAMA3, "factor": 32.0}, full=True
    ),
    "Llama-3-8B": _llama("meta-llama/Meta-Llama-3-8B", format="sharded"),
    "Llama-3.1-8B-float16": _llama("meta-llama/Llama-3.1-8B", dtype="F16", scaling={**_LLAMA3, "factor": 8.0}),
    "llama-biases": _llama("save_pretrained", _BIASES, tiny={"head_dim": 16, "num_key_value_heads": 1}, dtype="F32"),
    "llama-linear": _llama("save_pretrained", theta=10000.0, scaling={"rope_type": "linear", "factor": 4.0}),
    "llama-dynamic": _llama("save_pretrained", theta=10000.0, scaling={"rope_type": "dynamic", "factor": 2.0}),
    "llama-yarn": _llama("save_pretrained", {"rope_parameters": _YARN}, theta=None),
    "llama-classifier": _llama("save_pretrained", {**labels(count=3), "pad_token_id": 0}, "ForSequenceClassification"),
    "llama-tagger": _llama("save_pretrained", labels(count=9), "ForTokenClassification"),
    "llama-bare": _llama("save_pretrained", head="Model"),
    "llama-squad2": _llama("save_pretrained", head="ForQuestionAnswering"),
    "llama-outliers": _llama("save_pretrained", dtype="F32", massive=1),
}
