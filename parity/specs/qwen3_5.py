"""Qwen3.5 checkpoints of texts."""

from __future__ import annotations

from functools import partial

from .common import Spec, labels

CONFIG = {"vocab_size": 248320, "hidden_size": 1024, "intermediate_size": 3584, "num_hidden_layers": 24}
CONFIG |= {"num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256, "rms_norm_eps": 1e-6}
CONFIG |= {"linear_num_key_heads": 16, "linear_num_value_heads": 16, "max_position_embeddings": 262144}
CONFIG |= {"hidden_act": "silu", "attention_bias": False, "tie_word_embeddings": True, "eos_token_id": 248044}
ROPE = {"rope_type": "default", "rope_theta": 10000000, "partial_rotary_factor": 0.25}
CONFIG |= {"rope_parameters": {**ROPE, "mrope_section": [11, 11, 10], "mrope_interleaved": True}}
TINY = {"vocab_size": 500, "hidden_size": 64, "intermediate_size": 112, "num_hidden_layers": 4, "head_dim": 16}
TINY |= {"num_attention_heads": 4, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 32}
TINY |= {"linear_value_head_dim": 16, "max_position_embeddings": 256, "full_attention_interval": 3}
TINY |= {"rope_parameters": {**ROPE, "rope_theta": 10000, "mrope_section": [1, 1, 0], "mrope_interleaved": True}}
TINY |= {"eos_token_id": 3, "pad_token_id": 0, "rms_norm_eps": 1e-3}

_qwen3_5 = partial(
    Spec,
    model_type="qwen3_5_text",
    config=CONFIG,
    tiny=TINY,
    dtype="BF16",
    # The norms' factors are 1 + weight, about 2: scores would be four times as large as in other models.
    gains={"q_proj": 0.5, "k_proj": 0.5, "gate_proj": 0.5, "up_proj": 0.5, "conv1d": 4.0},
)

SPECS: dict[str, Spec] = {
    "qwen3.5-text": _qwen3_5(like="save_pretrained", architecture="Qwen3_5ForCausalLM"),
    "qwen3.5-layers": _qwen3_5(
        like="save_pretrained",
        architecture="Qwen3_5ForCausalLM",
        config={**CONFIG, "tie_word_embeddings": False, "attention_bias": True},
        tiny={**TINY, "layer_types": ["full_attention", "linear_attention"] * 2, "linear_conv_kernel_dim": 2},
    ),
    "qwen3.5-bare": _qwen3_5(like="save_pretrained", architecture="Qwen3_5TextModel", dtype="F32"),
    "qwen3.5-classifier": _qwen3_5(
        like="save_pretrained",
        architecture="Qwen3_5TextForSequenceClassification",
        config={**CONFIG, **labels(count=3)},
    ),
}
