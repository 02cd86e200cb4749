"""Falcon-H1 checkpoints."""

from __future__ import annotations

import math
from functools import partial

from .common import Spec

CONFIG = {"vocab_size": 32784, "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 36, "head_dim": 64}
CONFIG |= {"num_attention_heads": 8, "num_key_value_heads": 2, "hidden_act": "silu", "rms_norm_eps": 1e-5}
CONFIG |= {"max_position_embeddings": 16384, "rope_theta": 100000000000.0, "rope_scaling": None}
CONFIG |= {"attention_bias": False, "mlp_bias": False, "projectors_bias": False, "tie_word_embeddings": False}
CONFIG |= {"mamba_d_ssm": 1536, "mamba_n_heads": 24, "mamba_d_head": 64, "mamba_n_groups": 1, "mamba_d_state": 128}
CONFIG |= {"mamba_d_conv": 4, "mamba_expand": 2, "mamba_chunk_size": 128, "mamba_conv_bias": True}
CONFIG |= {"mamba_proj_bias": False, "mamba_norm_before_gate": False, "mamba_rms_norm": False, "mamba_use_mlp": True}
CONFIG |= {"embedding_multiplier": 5.656854249492381, "lm_head_multiplier": 0.0390625, "key_multiplier": 0.390625}
CONFIG |= {"attention_in_multiplier": 1.0, "attention_out_multiplier": 0.9375, "ssm_in_multiplier": 1.25}
CONFIG |= {"ssm_out_multiplier": 0.23570226039551587, "mlp_multipliers": [0.8838834764831844, 0.5859375]}
CONFIG |= {"ssm_multipliers": [0.3535533905932738, 0.25, 0.3535533905932738, 0.5, 0.3535533905932738]}
CONFIG |= {"bos_token_id": 1, "eos_token_id": 11, "pad_token_id": 0}
TINY = {"vocab_size": 500, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "head_dim": 16}
TINY |= {"num_attention_heads": 6, "mamba_d_ssm": 96, "mamba_n_heads": 6, "mamba_d_head": 16, "mamba_d_state": 20}
TINY |= {"max_position_embeddings": 256, "mamba_chunk_size": 8, "rope_theta": 10000.0, "eos_token_id": 3}
MORE = {"time_step_limit": [0.0, math.inf], "attention_bias": True, "mlp_bias": True, "projectors_bias": True}
MORE |= {"attention_in_multiplier": 1.3, "mamba_d_ssm": None, "mamba_d_head": "auto"}
NORM = {"mamba_rms_norm": True, "mamba_n_groups": 2}

_falcon_h1 = partial(Spec, model_type="falcon_h1", tiny=TINY, gains={"conv1d": 4.0, "mamba.D": 30.0})

SPECS: dict[str, Spec] = {
    "Falcon-H1-0.5B-Instruct": _falcon_h1(
        like="tiiuae/Falcon-H1-0.5B-Instruct",
        architecture="FalconH1ForCausalLM",
        config=CONFIG,
        dtype="BF16",
        full=True,
    ),
    "falcon-h1-norms": _falcon_h1(
        like="tiiuae/Falcon-H1-34B-Instruct", architecture="FalconH1ForCausalLM", config={**CONFIG, **NORM}
    ),
    "falcon-h1-biases": _falcon_h1(
        like="save_pretrained",
        architecture="FalconH1ForCausalLM",
        config={**CONFIG, **NORM, "mamba_norm_before_gate": True, "tie_word_embeddings": True, "mamba_proj_bias": True},
        tiny={**TINY, **MORE, "mamba_n_heads": 8, "mamba_conv_bias": False},
    ),
    "falcon-h1-bare": _falcon_h1(like="save_pretrained", architecture="FalconH1Model", config=CONFIG, format="sharded"),
}
