"""DeepSeek-V3 checkpoints, of the sizes of Moonlight."""

from __future__ import annotations

from functools import partial

from .common import Spec, labels

CONFIG = {"vocab_size": 163840, "hidden_size": 2048, "intermediate_size": 11264, "moe_intermediate_size": 1408}
CONFIG |= {"num_hidden_layers": 27, "num_attention_heads": 16, "num_key_value_heads": 16, "n_shared_experts": 2}
CONFIG |= {"n_routed_experts": 64, "routed_scaling_factor": 2.446, "kv_lora_rank": 512, "q_lora_rank": None}
CONFIG |= {"qk_rope_head_dim": 64, "v_head_dim": 128, "qk_nope_head_dim": 128, "n_group": 1, "topk_group": 1}
CONFIG |= {"num_experts_per_tok": 6, "first_k_dense_replace": 1, "norm_topk_prob": True, "scoring_func": "sigmoid"}
CONFIG |= {"topk_method": "noaux_tc", "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 50000.0}
CONFIG |= {"attention_bias": False, "tie_word_embeddings": False, "bos_token_id": 163584, "eos_token_id": 163585}
TINY = {"vocab_size": 500, "hidden_size": 64, "intermediate_size": 112, "moe_intermediate_size": 48}
TINY |= {"num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 4, "n_routed_experts": 8}
TINY |= {"kv_lora_rank": 24, "qk_rope_head_dim": 8, "v_head_dim": 12, "qk_nope_head_dim": 16}
TINY |= {"num_experts_per_tok": 3, "max_position_embeddings": 256, "bos_token_id": 2, "eos_token_id": 3}
TINY |= {"pad_token_id": 0}
GROUPS = {"n_group": 4, "topk_group": 2, "q_lora_rank": 20, "attention_bias": True}
YARN = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "mscale": 0.8, "mscale_all_dim": 1.0}

_deepseek = partial(Spec, model_type="deepseek_v3", config=CONFIG, tiny=TINY, dtype="BF16", gains={"mlp.gate": 4.5})

SPECS: dict[str, Spec] = {
    "Moonlight-16B-A3B": _deepseek(like="moonshotai/Moonlight-16B-A3B", architecture="DeepseekV3ForCausalLM"),
    "deepseek-groups": _deepseek(
        like="save_pretrained",
        architecture="DeepseekV3ForCausalLM",
        tiny={**TINY, **GROUPS, "rope_scaling": YARN, "rope_interleave": False, "norm_topk_prob": False},
    ),
    "deepseek-bare": _deepseek(
        like="save_pretrained", architecture="DeepseekV3Model", tiny={**TINY, **GROUPS}, dtype="F32"
    ),
    "deepseek-classifier": _deepseek(
        like="save_pretrained",
        architecture="DeepseekV3ForSequenceClassification",
        config={**CONFIG, **labels(count=3)},
    ),
    "deepseek-tagger": _deepseek(
        like="save_pretrained",
        architecture="DeepseekV3ForTokenClassification",
        config={**CONFIG, **labels(count=3)},
    ),
}
