"""Granite checkpoints."""

from __future__ import annotations

from functools import partial

from .common import Spec

CONFIG = {"vocab_size": 49155, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 40}
CONFIG |= {"num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5}
CONFIG |= {"rope_theta": 10000.0, "rope_scaling": None, "hidden_act": "silu", "tie_word_embeddings": True}
CONFIG |= {"attention_bias": False, "mlp_bias": False, "attention_dropout": 0.1, "initializer_range": 0.02}
CONFIG |= {"embedding_multiplier": 12.0, "attention_multiplier": 0.015625, "residual_multiplier": 0.22}
CONFIG |= {"logits_scaling": 8.0, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
TINY = {"vocab_size": 500, "hidden_size": 64, "intermediate_size": 112, "num_hidden_layers": 3}
TINY |= {"num_attention_heads": 8, "num_key_value_heads": 2, "max_position_embeddings": 256}

_granite = partial(Spec, model_type="granite", config=CONFIG, tiny=TINY)

SPECS: dict[str, Spec] = {
    "granite-3.1-2b-instruct": _granite(
        like="ibm-granite/granite-3.1-2b-instruct", architecture="GraniteForCausalLM", dtype="BF16"
    ),
    "granite-bare": _granite(like="save_pretrained", architecture="GraniteModel", format="sharded"),
    "granite-untied": _granite(
        like="save_pretrained",
        architecture="GraniteForCausalLM",
        config={**CONFIG, "tie_word_embeddings": False, "attention_bias": True, "mlp_bias": True},
    ),
}
