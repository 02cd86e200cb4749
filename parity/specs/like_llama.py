"""Checkpoints of the decoders that descend from Llama."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from .common import Spec, labels

TINY = {"hidden_size": 64, "intermediate_size": 112, "num_hidden_layers": 4, "num_attention_heads": 8}
TINY |= {"num_key_value_heads": 2, "vocab_size": 500, "max_position_embeddings": 256}
TINY |= {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": None}
_COMMON = {"hidden_act": "silu", "rms_norm_eps": 1e-6, "attention_dropout": 0.0, "initializer_range": 0.02}


def _spec(
    like: str,
    head: str = "ForCausalLM",
    *,
    prefix: str,
    base: Mapping[str, Any],
    config: Mapping[str, Any] | None = None,
    tiny: Mapping[str, Any] | None = None,
    small: Mapping[str, Any] | None = None,
    **more: Any,
) -> Spec:
    """small: what a family has in `tiny` for every head."""
    options = {"dtype": "BF16", **more}
    return Spec(
        like=like,
        architecture=prefix + head,
        config={**_COMMON, **base, **(config or {})},
        tiny={**TINY, **(small or {}), **(tiny or {})},
        **options,
    )


def _heads(make: Any, name: str, *more: str) -> dict[str, Spec]:
    """The heads besides the language model's."""
    of_texts = {"config": {**labels(count=3), "pad_token_id": 0}, "tiny": {"pad_token_id": 0}}
    found = {
        f"{name}-bare": make("save_pretrained", "Model", dtype="F32"),
        f"{name}-classifier": make("save_pretrained", "ForSequenceClassification", **of_texts),
        f"{name}-tagger": make("save_pretrained", "ForTokenClassification", config=labels(count=9)),
        f"{name}-squad2": make("save_pretrained", "ForQuestionAnswering", dtype="F16"),
    }
    return {spec: found[spec] for spec in found if not more or spec.removeprefix(f"{name}-") in more}


_MISTRAL = {"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32}
_MISTRAL |= {"num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 32768}
_MISTRAL |= {"rms_norm_eps": 1e-5, "rope_theta": 10000.0, "sliding_window": 4096, "bos_token_id": 1, "eos_token_id": 2}
_QWEN2 = {"vocab_size": 151936, "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24}
_QWEN2 |= {"num_attention_heads": 14, "num_key_value_heads": 2, "max_position_embeddings": 32768}
_QWEN2 |= {"rope_theta": 1000000.0, "tie_word_embeddings": True, "use_sliding_window": False, "sliding_window": 32768}
_QWEN2 |= {"max_window_layers": 21, "bos_token_id": 151643, "eos_token_id": 151645}
_QWEN3 = {"vocab_size": 151936, "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28}
_QWEN3 |= {"num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 40960}
_QWEN3 |= {"rope_theta": 1000000, "rope_scaling": None, "tie_word_embeddings": True, "attention_bias": False}
_QWEN3 |= {"use_sliding_window": False, "sliding_window": None, "max_window_layers": 28}
_QWEN3 |= {"bos_token_id": 151643, "eos_token_id": 151645}
YARN = {"rope_type": "yarn", "rope_theta": 1000000.0, "factor": 16.0, "original_max_position_embeddings": 16384}
YARN |= {"beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1}
TINY_YARN = {**YARN, "original_max_position_embeddings": 8, "llama_4_scaling_beta": 0.7}
_MINISTRAL3 = {"vocab_size": 131072, "hidden_size": 3072, "intermediate_size": 9216, "num_hidden_layers": 26}
_MINISTRAL3 |= {"num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "rms_norm_eps": 1e-5}
_MINISTRAL3 |= {"max_position_embeddings": 262144, "rope_parameters": YARN, "sliding_window": None}
_MINISTRAL3 |= {"tie_word_embeddings": True, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 11}
_SMOLLM3 = {"vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36}
_SMOLLM3 |= {"num_attention_heads": 16, "num_key_value_heads": 4, "max_position_embeddings": 65536}
_SMOLLM3 |= {"rope_theta": 5000000.0, "no_rope_layer_interval": 4, "no_rope_layers": [1, 1, 1, 0] * 9}
_SMOLLM3 |= {"use_sliding_window": False, "sliding_window": None, "mlp_bias": False, "attention_bias": False}
_SMOLLM3 |= {"bos_token_id": 128000, "eos_token_id": 128012, "pad_token_id": 128004}
_OLMO2 = {"vocab_size": 100352, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16}
_OLMO2 |= {"num_attention_heads": 16, "num_key_value_heads": 16, "max_position_embeddings": 4096}
_OLMO2 |= {"rope_theta": 500000, "tie_word_embeddings": False, "attention_bias": False}
_OLMO2 |= {"eos_token_id": 100257, "pad_token_id": 100277}
_PHI3 = {"vocab_size": 32064, "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32}
_PHI3 |= {"num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 4096}
_PHI3 |= {"original_max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "rope_scaling": None}
_PHI3 |= {"sliding_window": 2047, "bos_token_id": 1, "eos_token_id": 32000, "pad_token_id": 32000}

_MOE = {**_QWEN3, "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 48, "moe_intermediate_size": 768}
_MOE |= {"num_attention_heads": 32, "num_key_value_heads": 4, "num_experts": 128, "num_experts_per_tok": 8}
_MOE |= {"decoder_sparse_step": 1, "mlp_only_layers": [], "norm_topk_prob": True, "tie_word_embeddings": False}
_mistral = partial(_spec, model_type="mistral", prefix="Mistral", base=_MISTRAL, tiny={"sliding_window": 5})
_ministral3 = partial(
    _spec,
    model_type="ministral3",
    prefix="Ministral3",
    base=_MINISTRAL3,
    tiny={"head_dim": 16, "rope_parameters": TINY_YARN},
)
_qwen2 = partial(_spec, model_type="qwen2", prefix="Qwen2", base=_QWEN2)
_qwen3 = partial(_spec, model_type="qwen3", prefix="Qwen3", base=_QWEN3, tiny={"head_dim": 16})
_moe = partial(
    _spec,
    model_type="qwen3_moe",
    prefix="Qwen3Moe",
    base=_MOE,
    small={"head_dim": 16, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 48},
    # None of the tokens that are compared lies so near to a tie of two experts that rounding chooses the other.
    gains={"mlp.gate": 4.5},
)
_smollm3 = partial(_spec, model_type="smollm3", prefix="SmolLM3", base=_SMOLLM3)
_olmo2 = partial(_spec, model_type="olmo2", prefix="Olmo2", base=_OLMO2)
_phi3 = partial(_spec, model_type="phi3", prefix="Phi3", base=_PHI3)
_LONGROPE = {"original_max_position_embeddings": 64, "sliding_window": None, "partial_rotary_factor": 0.75}
_LONGROPE |= {"rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.1, 1.4], "long_factor": [1.0, 2.5, 9.0]}}
_SLIDES = {"use_sliding_window": True, "sliding_window": 6}

SPECS: dict[str, Spec] = {
    "Mistral-7B-v0.1": _mistral("mistralai/Mistral-7B-v0.1"),
    "Mistral-7B-Instruct-v0.3": _mistral(
        "mistralai/Mistral-7B-Instruct-v0.3", config={"vocab_size": 32768, "sliding_window": None}, tiny={}
    ),
    **_heads(_mistral, "mistral"),
    "Ministral-3-3B-Base-2512": _ministral3("mistralai/Ministral-3-3B-Base-2512"),
    **_heads(_ministral3, "ministral3"),
    "Qwen2.5-0.5B": _qwen2("Qwen/Qwen2.5-0.5B", full=True),
    "qwen2-windows": _qwen2("save_pretrained", tiny={**_SLIDES, "max_window_layers": 2}),
    **_heads(_qwen2, "qwen2"),
    "Qwen3-0.6B": _qwen3("Qwen/Qwen3-0.6B", full=True),
    "qwen3-windows": _qwen3("save_pretrained", tiny={**_SLIDES, "max_window_layers": 2, "head_dim": 24}),
    **_heads(_qwen3, "qwen3", "classifier", "tagger", "squad2"),
    "Qwen3-Embedding-0.6B": _qwen3("Qwen/Qwen3-Embedding-0.6B", "Model"),
    "Qwen3-30B-A3B": _moe("Qwen/Qwen3-30B-A3B"),
    **_heads(_moe, "qwen3-moe"),
    "SmolLM3-3B": _smollm3("HuggingFaceTB/SmolLM3-3B"),
    "smollm3-windows": _smollm3("save_pretrained", tiny={**_SLIDES, "no_rope_layers": None}),
    "Phi-3-mini-4k-instruct": _phi3("microsoft/Phi-3-mini-4k-instruct", tiny={"sliding_window": 7}),
    "Phi-4-mini-instruct": _phi3("microsoft/Phi-4-mini-instruct", tiny=_LONGROPE),
    **_heads(_phi3, "phi3", "bare", "classifier", "tagger"),
    **_heads(_smollm3, "smollm3"),
    "OLMo-2-0425-1B": _olmo2("allenai/OLMo-2-0425-1B", full=True),
    **_heads(_olmo2, "olmo2", "bare", "classifier"),
}
