"""Gemma 3 checkpoints of texts."""

from __future__ import annotations

from functools import partial

from .common import Spec, labels

CONFIG = {"vocab_size": 262144, "hidden_size": 640, "intermediate_size": 2048, "num_hidden_layers": 18}
CONFIG |= {"num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256, "rms_norm_eps": 1e-6}
CONFIG |= {"hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 32768, "rope_theta": 1000000.0}
CONFIG |= {"rope_local_base_freq": 10000.0, "rope_scaling": None, "query_pre_attn_scalar": 256, "sliding_window": 512}
CONFIG |= {"attention_bias": False, "attn_logit_softcapping": None, "final_logit_softcapping": None}
CONFIG |= {"bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0}
TINY = {"vocab_size": 500, "hidden_size": 64, "intermediate_size": 112, "num_hidden_layers": 4, "head_dim": 16}
TINY |= {"num_attention_heads": 4, "max_position_embeddings": 256, "sliding_window": 6, "sliding_window_pattern": 3}

_gemma3 = partial(Spec, model_type="gemma3_text", config=CONFIG, tiny=TINY, dtype="BF16")

SPECS: dict[str, Spec] = {
    "gemma-3-270m": _gemma3(like="google/gemma-3-270m", architecture="Gemma3ForCausalLM", full=True),
    "gemma-3-scaled": _gemma3(
        like="save_pretrained",
        architecture="Gemma3ForCausalLM",
        tiny={**TINY, "rope_scaling": {"rope_type": "linear", "factor": 8.0}, "final_logit_softcapping": 3.0},
    ),
    "embeddinggemma-300m": _gemma3(
        like="google/embeddinggemma-300m",
        architecture="Gemma3TextModel",
        config={**CONFIG, "use_bidirectional_attention": True},
        tiny={**TINY, "sliding_window": 9},
    ),
    "gemma-3-bare": _gemma3(like="save_pretrained", architecture="Gemma3TextModel", dtype="F32"),
    "gemma-3-classifier": _gemma3(
        like="save_pretrained",
        architecture="Gemma3TextForSequenceClassification",
        config={**CONFIG, **labels(count=3)},
    ),
}
