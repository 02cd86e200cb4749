"""Each family refuses the values of config.json that change the result and that it does not implement."""

from __future__ import annotations

import pytest

from zoo.errors import ConfigError, UnsupportedError
from zoo.registry import config_class

REFUSED = [
    ("deberta-v2", {"relative_attention": True, "pos_att_type": "c2p"}, UnsupportedError),
    ("deberta-v2", {"conv_kernel_size": 4}, ConfigError),
    ("dinov3_vit", {"num_attention_heads": 64}, ConfigError),
    ("distilbert", {"n_heads": 5}, ConfigError),
    ("dinov2", {"mlp_ratio": 0}, ConfigError),
    ("electra", {"summary_type": "mean"}, UnsupportedError),
    ("electra", {"summary_use_proj": False}, UnsupportedError),
    ("electra", {"embedding_size": 0}, ConfigError),
    ("gpt2", {"add_cross_attention": True}, UnsupportedError),
    ("gpt_neox", {"num_key_value_heads": 8}, UnsupportedError),
    ("gpt_neox", {"rotary_pct": 1.5}, ConfigError),
    ("mistral", {"layer_types": ["full_attention"]}, UnsupportedError),
    ("qwen2", {"layer_types": ["full_attention"]}, ConfigError),
    ("qwen3", {"num_hidden_layers": 1, "layer_types": ["sliding"]}, ConfigError),
    ("smollm3", {"no_rope_layers": [1, 0]}, ConfigError),
    ("cohere2", {"use_qk_norm": True}, UnsupportedError),
    ("cohere2", {"rotary_pct": 0.5}, UnsupportedError),
    ("cohere2", {"sliding_window_pattern": 0}, ConfigError),
    ("gemma", {"use_bidirectional_attention": True}, UnsupportedError),
    ("glm4", {"partial_rotary_factor": 0}, ConfigError),
    ("stablelm", {"layer_norm_eps": 0.0}, ConfigError),
    ("exaone4", {"sliding_window_pattern": "LLLG", "sliding_window": 4096}, UnsupportedError),
    ("exaone4", {"sliding_window": None}, UnsupportedError),
    ("mixtral", {"num_experts_per_tok": 9}, ConfigError),
    ("qwen2_moe", {"num_experts_per_tok": 61}, ConfigError),
    ("cohere", {"layer_norm_eps": 0}, ConfigError),
    ("olmo3", {"rope_parameters": {"rope_type": "default"}}, ConfigError),
    ("olmo3", {"rope_parameters": {"full_attention": 3}}, ConfigError),
    ("helium", {"head_dim": 64}, ConfigError),
    ("seed_oss", {"residual_dropout": 1.5}, ConfigError),
    ("phi", {"resid_pdrop": -1.0}, ConfigError),
    ("layoutlmv3", {"has_spatial_attention_bias": False}, UnsupportedError),
    ("layoutlmv3", {"shape_size": 64}, ConfigError),
    ("layoutlmv3", {"rel_pos_bins": 2}, ConfigError),
    ("layoutlmv3", {"max_2d_position_embeddings": 2048}, ConfigError),
    ("roberta-prelayernorm", {"is_decoder": True}, UnsupportedError),
    ("eurobert", {"clf_pooling": "mean"}, UnsupportedError),
    ("eurobert", {"classifier_pooling": "cls"}, UnsupportedError),
    ("convnextv2", {"depths": [3, 3]}, ConfigError),
    ("mbart", {"normalize_before": False}, UnsupportedError),
    ("mbart", {"decoder_start_token_id": 50265}, ConfigError),
    ("pegasus", {"encoder_attention_heads": 1, "decoder_attention_heads": 1, "d_model": 15}, ConfigError),
    ("m2m_100", {"pad_token_id": None}, ConfigError),
    ("olmo2", {"clip_qkv": 8.0}, UnsupportedError),
    ("granite", {"logits_scaling": 0.0}, ConfigError),
    ("starcoder2", {"norm_type": "rms_norm"}, UnsupportedError),
    ("resnet", {"layer_type": "wide"}, UnsupportedError),
    ("convnext", {"depths": [3, 3]}, ConfigError),
    ("nomic_bert", {"moe_every_n_layers": 2}, UnsupportedError),
    ("mpnet", {"relative_attention_num_buckets": 64}, ConfigError),
    ("mpnet", {"pad_token_id": 0}, ConfigError),
    ("falcon", {"alibi": True}, UnsupportedError),
    ("falcon", {"num_ln_in_parallel_attn": 2}, UnsupportedError),
    ("falcon", {"new_decoder_architecture": True, "parallel_attn": False}, UnsupportedError),
    ("gptj", {"rotary_dim": 512}, ConfigError),
    ("codegen", {"n_head": 2}, ConfigError),
    ("gpt_neo", {"attention_types": [[["global"], 3]]}, ConfigError),
    ("gpt_neo", {"attention_types": [[["banded"], 24]]}, ConfigError),
    ("gpt_bigcode", {"scale_attn_by_inverse_layer_idx": True}, UnsupportedError),
    ("hunyuan_v1_dense", {"rope_scaling": {"type": "dynamic", "alpha": -1.0}}, ConfigError),
    ("nemotron", {"norm_eps": 0.0}, ConfigError),
    ("olmoe", {"clip_qkv": 8.0}, UnsupportedError),
    ("ministral", {"layer_types": ["full_attention"]}, ConfigError),
    ("gemma2", {"use_bidirectional_attention": True}, UnsupportedError),
    ("gemma2", {"attn_logit_softcapping": 0.0}, ConfigError),
    ("ernie", {"is_decoder": True}, UnsupportedError),
    ("megatron-bert", {"is_decoder": True}, UnsupportedError),
    ("xlm-roberta-xl", {"is_decoder": True}, UnsupportedError),
    ("ijepa", {"patch_size": 500}, ConfigError),
    ("mobilebert", {"use_bottleneck": False}, UnsupportedError),
    ("mobilebert", {"normalization_type": "layer_norm"}, UnsupportedError),
    ("mobilebert", {"embedding_size": 512}, ConfigError),
    ("unispeech", {"add_adapter": True}, UnsupportedError),
    # What fuzzing found
    ("deberta-v2", {"relative_attention": True, "share_att_key": True, "pos_att_type": [["c2p"]]}, ConfigError),
    ("rt_detr_v2", {"hidden_expansion": 1e308}, ConfigError),
    ("rt_detr", {"backbone_config": {"out_indices": [2, {}, 4]}}, ConfigError),
    ("swin", {"mlp_ratio": 1e308}, ConfigError),
    ("gte", {"rope_scaling": {"rope_type": "linear", "factor": 1e308}}, ConfigError),
]


@pytest.mark.parametrize(("model_type", "fields", "error"), REFUSED, ids=lambda value: str(value)[:40])
def test_a_value_that_is_not_implemented_is_refused(model_type, fields, error):
    cls = config_class(model_type)
    cls.from_dict({"model_type": model_type})
    with pytest.raises(error, match=f"{list(fields)[-1]}|^factor|^alpha"):
        cls.from_dict({"model_type": model_type, **fields})
