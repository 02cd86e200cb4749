"""Checkpoints of further decoders that descend from Llama: mixtures of experts, and families of the years after it."""

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

_GPT_OSS = {"vocab_size": 201088, "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 24}
_GPT_OSS |= {"num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "max_position_embeddings": 131072}
_GPT_OSS |= {"num_local_experts": 32, "num_experts_per_tok": 4, "swiglu_limit": 7.0, "sliding_window": 128}
_GPT_OSS |= {"rms_norm_eps": 1e-5, "rope_theta": 150000, "attention_bias": True, "tie_word_embeddings": False}
_GPT_OSS |= {"layer_types": ["sliding_attention", "full_attention"] * 12, "eos_token_id": 200002}
_YARN = {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096}
_GPT_OSS |= {"rope_scaling": {**_YARN, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False}}

_OLMO = {"vocab_size": 50304, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16}
_OLMO |= {"num_attention_heads": 16, "num_key_value_heads": 16, "max_position_embeddings": 2048, "clip_qkv": None}
_OLMO |= {"rope_theta": 10000.0, "attention_bias": False, "eos_token_id": 50279, "pad_token_id": 1}
_OLMO |= {"tie_word_embeddings": True}

_LFM2 = {"vocab_size": 65536, "hidden_size": 1024, "intermediate_size": 6656, "num_hidden_layers": 16}
_LFM2 |= {"num_attention_heads": 16, "num_key_value_heads": 8, "max_position_embeddings": 128000, "norm_eps": 1e-5}
_LFM2 |= {"block_auto_adjust_ff_dim": True, "block_ffn_dim_multiplier": 1.0, "block_multiple_of": 256}
_LFM2 |= {"conv_L_cache": 3, "conv_bias": False, "full_attn_idxs": [2, 5, 8, 10, 12, 14], "rope_theta": 1000000.0}
_LFM2 |= {"tie_embedding": True, "bos_token_id": 1, "eos_token_id": 7, "pad_token_id": 0}

_COHERE = {"vocab_size": 256000, "hidden_size": 8192, "intermediate_size": 22528, "num_hidden_layers": 40}
_COHERE |= {"num_attention_heads": 64, "num_key_value_heads": 64, "max_position_embeddings": 8192}
_COHERE |= {"layer_norm_eps": 1e-5, "logit_scale": 0.0625, "rope_theta": 8000000.0, "use_qk_norm": False}
_COHERE |= {"attention_bias": False, "bos_token_id": 5, "eos_token_id": 255001, "pad_token_id": 0}
_PHI = {"vocab_size": 51200, "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 32}
_PHI |= {
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "max_position_embeddings": 2048,
    "hidden_act": "gelu_new",
}
_PHI |= {"layer_norm_eps": 1e-5, "rope_theta": 10000.0, "partial_rotary_factor": 0.4, "qk_layernorm": False}
_PHI |= {"embd_pdrop": 0.0, "resid_pdrop": 0.1, "bos_token_id": 50256, "eos_token_id": 50256}
_OLMO3 = {"vocab_size": 100278, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32}
_OLMO3 |= {"num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 65536}
_OLMO3 |= {
    "rope_theta": 500000,
    "sliding_window": 4096,
    "layer_types": (["sliding_attention"] * 3 + ["full_attention"]) * 8,
}
_OLMO3 |= {
    "rope_scaling": {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 8192, "beta_fast": 32}
}
_OLMO3 |= {"eos_token_id": 100257, "pad_token_id": 100277}
_HELIUM = {"vocab_size": 48000, "hidden_size": 2560, "intermediate_size": 7040, "num_hidden_layers": 24}
_HELIUM |= {"num_attention_heads": 20, "num_key_value_heads": 20, "head_dim": 128, "max_position_embeddings": 4096}
_HELIUM |= {"rms_norm_eps": 1e-8, "rope_theta": 100000.0, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 3}
_ERNIE = {"vocab_size": 103424, "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 18}
_ERNIE |= {"num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 128, "max_position_embeddings": 131072}
_ERNIE |= {"rms_norm_eps": 1e-5, "rope_theta": 500000.0, "use_bias": False, "bos_token_id": 1, "eos_token_id": 2}
_SEED = {"vocab_size": 155136, "hidden_size": 5120, "intermediate_size": 27648, "num_hidden_layers": 64}
_SEED |= {"num_attention_heads": 80, "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 524288}
_SEED |= {"rope_theta": 10000000.0, "attention_bias": True, "attention_out_bias": False, "residual_dropout": 0.1}
_SEED |= {"bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1}

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
_gpt_oss = partial(
    _spec,
    model_type="gpt_oss",
    prefix="GptOss",
    base=_GPT_OSS,
    # A bound that gates reach.
    small={**_TINY_EXPERTS, "head_dim": 16, "intermediate_size": 48, "sliding_window": 5, "swiglu_limit": 0.6}
    | {"layer_types": ["sliding_attention", "full_attention"] * 2},
    gains={"mlp.router": 4.5},
)
_olmo = partial(_spec, model_type="olmo", prefix="Olmo", base=_OLMO)
_lfm2 = partial(
    _spec,
    model_type="lfm2",
    prefix="Lfm2",
    base=_LFM2,
    small={"block_multiple_of": 16, "full_attn_idxs": [2], "pad_token_id": 0},
)
_qwen_moe = partial(
    _spec,
    model_type="qwen2_moe",
    prefix="Qwen2Moe",
    base=_QWEN,
    small={"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 48},
    gains={"mlp.gate": 4.5},
)
_cohere = partial(_spec, model_type="cohere", prefix="Cohere", base=_COHERE)
_phi = partial(_spec, model_type="phi", prefix="Phi", base=_PHI, small={"partial_rotary_factor": 0.5})
_olmo3 = partial(
    _spec,
    model_type="olmo3",
    prefix="Olmo3",
    base=_OLMO3,
    small={"sliding_window": 6, "layer_types": ["sliding_attention", "full_attention"] * 2},
)
_helium = partial(_spec, model_type="helium", prefix="Helium", base=_HELIUM, small={"head_dim": 8})
_ernie = partial(_spec, model_type="ernie4_5", prefix="Ernie4_5", base=_ERNIE, small={"head_dim": 16})
_seed = partial(_spec, model_type="seed_oss", prefix="SeedOss", base=_SEED, small={"head_dim": 16})
_WINDOWS = {"sliding_window": 6, "sliding_window_pattern": 2, "layer_types": None}
_PARALLEL = {"use_parallel_residual": True, "qk_layernorm": True, "use_qkv_bias": False}

SPECS: dict[str, Spec] = {
    "gemma-2b": _gemma("google/gemma-2b"),
    **_heads(_gemma, "gemma", "bare", "classifier", "tagger"),
    "GLM-4-9B-0414": _glm4("zai-org/GLM-4-9B-0414"),
    **_heads(_glm4, "glm4", "bare", "classifier", "tagger"),
    "stablelm-2-1_6b": _stablelm("stabilityai/stablelm-2-1_6b", full=True),
    "stablelm-2-12b": _stablelm("stabilityai/stablelm-2-12b", config=_PARALLEL),
    **_heads(_stablelm, "stablelm", "bare", "classifier", "tagger"),
    "EXAONE-4.0-1.2B": _exaone4("LGAI-EXAONE/EXAONE-4.0-1.2B", full=True),
    "exaone4-windows": _exaone4("LGAI-EXAONE/EXAONE-4.0-32B", config={"tie_word_embeddings": False}, tiny=_WINDOWS),
    **_heads(_exaone4, "exaone4"),
    "gpt-oss-20b": _gpt_oss("openai/gpt-oss-20b"),
    **_heads(_gpt_oss, "gpt-oss", "bare", "classifier", "tagger"),
    "OLMo-1B-hf": _olmo("allenai/OLMo-1B-hf", dtype="F32", full=True),
    "olmo-clipped": _olmo("allenai/OLMo-7B-hf", config={"clip_qkv": 0.8, "tie_word_embeddings": False}),
    **_heads(_olmo, "olmo", "bare", "classifier"),
    "LFM2-350M": _lfm2("LiquidAI/LFM2-350M", full=True),
    "lfm2-bare": _lfm2(
        "save_pretrained",
        "Model",
        config={"conv_bias": True, "conv_L_cache": 4, "block_auto_adjust_ff_dim": False},
        tiny={"layer_types": ["conv", "full_attention"] * 2},
        dtype="F32",
    ),
    "c4ai-command-r-v01": _cohere("CohereLabs/c4ai-command-r-v01"),
    "c4ai-command-r-plus": _cohere("CohereLabs/c4ai-command-r-plus", config={"use_qk_norm": True}),
    **_heads(_cohere, "cohere", "bare"),
    "phi-2": _phi("microsoft/phi-2", dtype="F16"),
    "phi-norms": _phi("save_pretrained", config={"qk_layernorm": True, "tie_word_embeddings": False}),
    **_heads(_phi, "phi", "bare", "classifier", "tagger"),
    "Olmo-3-7B-Instruct": _olmo3("allenai/Olmo-3-7B-Instruct", tiny={"rope_scaling": None}),
    "olmo3-yarn": _olmo3("allenai/Olmo-3-7B-Instruct"),
    **_heads(_olmo3, "olmo3", "bare", "classifier"),
    "helium-1-2b": _helium("kyutai/helium-1-2b", full=True),
    **_heads(_helium, "helium", "bare", "classifier", "tagger"),
    "ERNIE-4.5-0.3B-PT": _ernie("baidu/ERNIE-4.5-0.3B-PT", full=True),
    **_heads(_ernie, "ernie4_5", "bare"),
    "Seed-OSS-36B-Instruct": _seed("ByteDance-Seed/Seed-OSS-36B-Instruct"),
    **_heads(_seed, "seed-oss"),
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
