"""Command R7B checkpoints."""

from __future__ import annotations

from functools import partial

from .common import Spec

CONFIG = {"vocab_size": 256000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32}
CONFIG |= {"num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 8192}
CONFIG |= {"layer_norm_eps": 1e-5, "logit_scale": 0.25, "sliding_window": 4096, "sliding_window_pattern": 4}
CONFIG |= {"rope_theta": 50000.0, "rope_scaling": None, "hidden_act": "silu", "attention_bias": False}
CONFIG |= {"attention_dropout": 0.0, "bos_token_id": 5, "eos_token_id": 255001, "pad_token_id": 0}
CONFIG |= {"position_embedding_type": "rope_gptj", "rotary_pct": 1.0, "use_parallel_block": True}
CONFIG |= {"use_gated_activation": True, "use_embedding_sharing": True, "layer_switch": 4, "initializer_range": 0.02}
TINY = {"vocab_size": 500, "hidden_size": 64, "intermediate_size": 112, "num_hidden_layers": 4, "sliding_window": 5}
TINY |= {"num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 256}
TINY |= {"eos_token_id": 1}

_cohere2 = partial(Spec, model_type="cohere2", config=CONFIG, tiny=TINY)
_LISTED_CONFIG = {"layer_types": ["sliding_attention", "full_attention"] * 16}

SPECS: dict[str, Spec] = {
    "command-r7b": _cohere2(
        like="CohereForAI/c4ai-command-r7b-12-2024", architecture="Cohere2ForCausalLM", dtype="BF16"
    ),
    "cohere2-bare": _cohere2(like="save_pretrained", architecture="Cohere2Model", format="sharded"),
    "cohere2-listed": _cohere2(
        like="save_pretrained",
        architecture="Cohere2ForCausalLM",
        config={**CONFIG, **_LISTED_CONFIG, "tie_word_embeddings": False, "attention_bias": True},
        tiny={**TINY, "layer_types": ["sliding_attention", "full_attention"] * 2},
    ),
}
