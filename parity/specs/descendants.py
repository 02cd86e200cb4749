"""Checkpoints of further decoders that descend from Llama: Gemma, GLM-4, StableLM, EXAONE, and mixtures of experts."""

from __future__ import annotations

from functools import partial

from .common import Spec
from .like_llama import _heads, _spec

_GEMMA = {"vocab_size": 256000, "hidden_size": 2048, "intermediate_size": 16384, "num_hidden_layers": 18}
_GEMMA |= {"num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 256, "max_position_embeddings": 8192}
_GEMMA |= {"hidden_act": "gelu", "hidden_activation": None, "attention_bias": False, "rope_theta": 10000.0}
_GEMMA |= {"bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0}
_GLM4 = {"vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 13696, "num_hidden_layers": 40}
_GLM4 |= {"num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, "max_position_embeddings": 32768}
_GLM4 |= {"rms_norm_eps": 1e-5, "rope_theta": 10000.0, "attention_bias": True, "partial_rotary_factor": 0.5}
_GLM4 |= {"eos_token_id": [151329, 151336, 151338], "pad_token_id": 151329, "tie_word_embeddings": False}
_STABLELM = {"vocab_size": 100352, "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 24}
_STABLELM |= {"num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 4096}
_STABLELM |= {"layer_norm_eps": 1e-5, "rope_theta": 10000, "partial_rotary_factor": 0.25, "use_qkv_bias": True}
_STABLELM |= {"qk_layernorm": False, "use_parallel_residual": False, "bos_token_id": 100257, "eos_token_id": 100257}
_EXAONE4 = {"vocab_size": 102400, "hidden_size": 2048, "intermediate_size": 4096, "num_hidden_layers": 30}
_EXAONE4 |= {"num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "max_position_embeddings": 65536}
_EXAONE4 |= {"rope_theta": 1000000, "sliding_window": None, "sliding_window_pattern": None}
_EXAONE4 |= {"layer_types": ["full_attention"] * 30, "tie_word_embeddings": True}
_EXAONE4 |= {"bos_token_id": 1, "eos_token_id": 361, "pad_token_id": 0}
_MIXTRAL = {"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32}
_MIXTRAL |= {"num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 32768}
_MIXTRAL |= {"rms_norm_eps": 1e-5, "rope_theta": 1000000.0, "sliding_window": None, "num_local_experts": 8}
_MIXTRAL |= {"num_experts_per_tok": 2, "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": False}
_QWEN = {"vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 24}
_QWEN |= {"num_attention_heads": 16, "num_key_value_heads": 16, "max_position_embeddings": 8192, "num_experts": 60}
_QWEN |= {"rope_theta": 1000000.0, "num_experts_per_tok": 4, "moe_intermediate_size": 1408, "norm_topk_prob": False}
_QWEN |= {"shared_expert_intermediate_size": 5632, "decoder_sparse_step": 1, "use_sliding_window": False}
_QWEN |= {"sliding_window": 32768, "max_window_layers": 21, "bos_token_id": 151643, "eos_token_id": 151643}

_gemma = partial(
    _spec,
    model_type="gemma",
    prefix="Gemma",
    base=_GEMMA,
    small={"head_dim": 16},
    # The norms' factors are 1 + weight, about 2: scores would be four times as large as in other models.
    gains={"q_proj": 0.5, "k_proj": 0.5, "gate_proj": 0.5, "up_proj": 0.5},
)
_glm4 = partial(_spec, model_type="glm4", prefix="Glm4", base=_GLM4, small={"head_dim": 8})
_stablelm = partial(_spec, model_type="stablelm", prefix="StableLm", base=_STABLELM)
_exaone4 = partial(
    _spec,
    model_type="exaone4",
    prefix="Exaone4",
    base=_EXAONE4,
    small={"head_dim": 16, "layer_types": ["full_attention"] * 4},
)
_TINY_EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}
_mixtral = partial(
    _spec, model_type="mixtral", prefix="Mixtral", base=_MIXTRAL, small=_TINY_EXPERTS, gains={".gate": 4.5}
)
_qwen_moe = partial(
    _spec,
    model_type="qwen2_moe",
    prefix="Qwen2Moe",
    base=_QWEN,
    small={"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 48},
    gains={"mlp.gate": 4.5},
)
_WINDOWS = {"sliding_window": 6, "sliding_window_pattern": 2, "layer_types": None}
_PARALLEL = {"use_parallel_residual": True, "qk_layernorm": True, "use_qkv_bias": False}

SPECS: dict[str, Spec] = {
    "gemma-2b": _gemma("google/gemma-2b", full=True),
    **_heads(_gemma, "gemma", "bare", "classifier", "tagger"),
    "GLM-4-9B-0414": _glm4("zai-org/GLM-4-9B-0414"),
    **_heads(_glm4, "glm4", "bare", "classifier", "tagger"),
    "stablelm-2-1_6b": _stablelm("stabilityai/stablelm-2-1_6b", full=True),
    "stablelm-2-12b": _stablelm("stabilityai/stablelm-2-12b", config=_PARALLEL),
    **_heads(_stablelm, "stablelm", "bare", "classifier", "tagger"),
    "EXAONE-4.0-1.2B": _exaone4("LGAI-EXAONE/EXAONE-4.0-1.2B", full=True),
    "exaone4-windows": _exaone4("LGAI-EXAONE/EXAONE-4.0-32B", config={"tie_word_embeddings": False}, tiny=_WINDOWS),
    **_heads(_exaone4, "exaone4"),
    "Mixtral-8x7B-v0.1": _mixtral("mistralai/Mixtral-8x7B-v0.1"),
    "mixtral-windows": _mixtral("save_pretrained", tiny={"sliding_window": 5}),
    **_heads(_mixtral, "mixtral"),
    "Qwen1.5-MoE-A2.7B": _qwen_moe("Qwen/Qwen1.5-MoE-A2.7B"),
    "qwen2-moe-windows": _qwen_moe(
        "save_pretrained",
        tiny={"use_sliding_window": True, "sliding_window": 6, "max_window_layers": 3, "mlp_only_layers": [1]},
    ),
    **_heads(_qwen_moe, "qwen2-moe"),
}
