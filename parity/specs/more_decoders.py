"""Checkpoints of further decoders: relatives of Llama, of GPT-2 and of GPT-J."""

from __future__ import annotations

from functools import partial
from typing import Any

from .common import Spec, labels
from .like_llama import _spec

_GLM = {"vocab_size": 59264, "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 28}
_GLM |= {"num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 128, "max_position_embeddings": 8192}
_GLM |= {"rms_norm_eps": 1e-5, "rope_theta": 10000.0, "attention_bias": False, "partial_rotary_factor": 0.5}
_GLM |= {"eos_token_id": [59246, 59253, 59255], "pad_token_id": 59246, "tie_word_embeddings": True}
_ARCEE = {"vocab_size": 128004, "hidden_size": 2560, "intermediate_size": 18432, "num_hidden_layers": 36}
_ARCEE |= {"num_attention_heads": 20, "num_key_value_heads": 4, "head_dim": 128, "max_position_embeddings": 65536}
_ARCEE |= {"hidden_act": "relu2", "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "attention_bias": False}
_ARCEE |= {"mlp_bias": False, "bos_token_id": 128000, "eos_token_id": 128001, "tie_word_embeddings": False}
_NEMOTRON = {"vocab_size": 256000, "hidden_size": 3072, "intermediate_size": 9216, "num_hidden_layers": 32}
_NEMOTRON |= {"num_attention_heads": 24, "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 4096}
_NEMOTRON |= {"hidden_act": "relu2", "norm_eps": 1e-5, "rope_theta": 10000, "partial_rotary_factor": 0.5}
_NEMOTRON |= {"attention_bias": False, "mlp_bias": False, "bos_token_id": 2, "eos_token_id": 3}
_HUNYUAN = {"vocab_size": 120818, "hidden_size": 1024, "intermediate_size": 3584, "num_hidden_layers": 24}
_HUNYUAN |= {"num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 262144}
_HUNYUAN |= {"rms_norm_eps": 1e-5, "rope_theta": 10000.0, "attention_bias": False, "mlp_bias": False}
_HUNYUAN |= {"rope_scaling": {"type": "dynamic", "alpha": 1000.0, "factor": 1.0}, "tie_word_embeddings": True}
_HUNYUAN |= {"bos_token_id": 120000, "eos_token_id": 120020, "pad_token_id": 120002}
_OLMOE = {"vocab_size": 50304, "hidden_size": 2048, "intermediate_size": 1024, "num_hidden_layers": 16}
_OLMOE |= {"num_attention_heads": 16, "num_key_value_heads": 16, "max_position_embeddings": 4096, "num_experts": 64}
_OLMOE |= {"num_experts_per_tok": 8, "norm_topk_prob": False, "clip_qkv": None, "rope_theta": 10000.0}
_OLMOE |= {"rms_norm_eps": 1e-5, "attention_bias": False, "eos_token_id": 50279, "pad_token_id": 1}
_MINISTRAL = {"vocab_size": 131072, "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36}
_MINISTRAL |= {"num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "rms_norm_eps": 1e-5}
_MINISTRAL |= {"max_position_embeddings": 32768, "rope_theta": 100000000.0, "sliding_window": 32768}
_MINISTRAL |= {"layer_types": (["full_attention"] + ["sliding_attention"] * 3) * 9, "tie_word_embeddings": False}
_MINISTRAL |= {"bos_token_id": 1, "eos_token_id": 2}
_FALCON = {"vocab_size": 65024, "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71}
_FALCON |= {"layer_norm_epsilon": 1e-5, "alibi": False, "bias": False, "multi_query": True, "parallel_attn": True}
_FALCON |= {"new_decoder_architecture": False, "hidden_dropout": 0.0, "bos_token_id": 11, "eos_token_id": 11}
_BIGCODE = {"vocab_size": 49152, "n_embd": 2048, "n_head": 16, "n_layer": 24, "n_positions": 8192, "n_inner": 8192}
_BIGCODE |= {"activation_function": "gelu_pytorch_tanh", "multi_query": True, "layer_norm_epsilon": 1e-5}
_BIGCODE |= {"bos_token_id": 0, "eos_token_id": 0}
_NEO = {"vocab_size": 50257, "hidden_size": 768, "num_layers": 12, "num_heads": 12, "max_position_embeddings": 2048}
_NEO |= {"attention_types": [[["global", "local"], 6]], "window_size": 256, "activation_function": "gelu_new"}
_NEO |= {"attention_dropout": 0.0, "layer_norm_epsilon": 1e-5, "bos_token_id": 50256, "eos_token_id": 50256}
_GPTJ = {"vocab_size": 50400, "n_embd": 4096, "n_head": 16, "n_layer": 28, "n_positions": 2048, "rotary_dim": 64}
_GPTJ |= {"activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": False}
_GPTJ |= {"bos_token_id": 50256, "eos_token_id": 50256}
_BLOOM = {"vocab_size": 250880, "hidden_size": 1024, "n_layer": 24, "n_head": 16, "layer_norm_epsilon": 1e-5}
_BLOOM |= {"apply_residual_connection_post_layernorm": False, "hidden_dropout": 0.0, "attention_dropout": 0.0}
_BLOOM |= {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 3, "seq_length": 2048, "slow_but_exact": False}
_MPT = {"vocab_size": 50432, "d_model": 4096, "n_heads": 32, "n_layers": 32, "max_seq_len": 2048}
_MPT |= {"expansion_ratio": 4, "no_bias": True, "learned_pos_emb": True, "logit_scale": None}
_MPT |= {"attn_config": {"alibi": True, "alibi_bias_max": 8, "attn_type": "multihead_attention", "attn_pdrop": 0}}
_CODEGEN = {**_GPTJ, "vocab_size": 51200, "n_embd": 1024, "n_layer": 20, "rotary_dim": 32}

_glm = partial(_spec, model_type="glm", prefix="Glm", base=_GLM, small={"head_dim": 8})
_arcee = partial(_spec, model_type="arcee", prefix="Arcee", base=_ARCEE, small={"head_dim": 8})
_nemotron = partial(
    _spec,
    model_type="nemotron",
    prefix="Nemotron",
    base=_NEMOTRON,
    small={"head_dim": 8},
    # The norms' factors are 1 + weight, about 2: scores would be four times as large as in other models.
    gains={"q_proj": 0.5, "k_proj": 0.5, "up_proj": 0.5},
)
_hunyuan = partial(_spec, model_type="hunyuan_v1_dense", prefix="HunYuanDenseV1", base=_HUNYUAN, small={"head_dim": 8})
_olmoe = partial(
    _spec,
    model_type="olmoe",
    prefix="Olmoe",
    base=_OLMOE,
    small={"num_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 48},
    gains={"mlp.gate": 4.5},
)
_ministral = partial(
    _spec,
    model_type="ministral",
    prefix="Ministral",
    base=_MINISTRAL,
    small={"head_dim": 8, "sliding_window": 5, "layer_types": ["full_attention", "sliding_attention"] * 2},
)
_GEMMA2 = {"vocab_size": 256000, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26}
_GEMMA2 |= {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 8192}
_GEMMA2 |= {"hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh", "rope_theta": 10000.0}
_GEMMA2 |= {"query_pre_attn_scalar": 256, "sliding_window": 4096, "attn_logit_softcapping": 50.0}
_GEMMA2 |= {"final_logit_softcapping": 30.0, "bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0}
_gemma2 = partial(
    _spec,
    model_type="gemma2",
    prefix="Gemma2",
    base=_GEMMA2,
    # A cap that scores come near to.
    small={"head_dim": 16, "sliding_window": 5, "query_pre_attn_scalar": 16, "attn_logit_softcapping": 4.0},
    gains={"q_proj": 0.5, "k_proj": 0.5, "gate_proj": 0.5, "up_proj": 0.5},
)
_falcon = partial(_spec, model_type="falcon", prefix="Falcon", base=_FALCON)
_TOKENS = {"vocab_size": 500, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": None}
_SMALL = {**_TOKENS, "n_embd": 64, "n_head": 8, "n_layer": 3, "n_positions": 96, "n_inner": None, "rotary_dim": 4}
_SMALL_NEO = {**_TOKENS, "hidden_size": 64, "num_layers": 4, "num_heads": 8, "max_position_embeddings": 96}
_SMALL_NEO |= {"attention_types": [[["global", "local"], 2]], "window_size": 6}


def _like_gpt(
    like: str, head: str, *, prefix: str, base: Any, small: Any, config: Any = None, tiny: Any = None, **more: Any
) -> Spec:
    tiny = {**small, **({"pad_token_id": 0} if config and "id2label" in config else {}), **(tiny or {})}
    return Spec(like=like, architecture=prefix + head, config={**base, **(config or {})}, tiny=tiny, **more)


_bigcode = partial(_like_gpt, model_type="gpt_bigcode", prefix="GPTBigCode", base=_BIGCODE, small=_SMALL)
_neo = partial(
    _like_gpt,
    model_type="gpt_neo",
    prefix="GPTNeo",
    base=_NEO,
    small=_SMALL_NEO,
    gains={"q_proj": 0.4, "k_proj": 0.4},  # their products are not scaled
)
_gptj = partial(_like_gpt, model_type="gptj", prefix="GPTJ", base=_GPTJ, small=_SMALL)
_codegen = partial(_like_gpt, model_type="codegen", prefix="CodeGen", base=_CODEGEN, small=_SMALL)
_SMALL_BLOOM = {**_TOKENS, "hidden_size": 72, "n_head": 6, "n_layer": 3}
_bloom = partial(_like_gpt, model_type="bloom", prefix="Bloom", base=_BLOOM, small=_SMALL_BLOOM)
_SMALL_MPT = {**_TOKENS, "d_model": 72, "n_heads": 6, "n_layers": 3, "max_seq_len": 96}
_mpt = partial(_like_gpt, model_type="mpt", prefix="Mpt", base=_MPT, small=_SMALL_MPT)
_CLASSIFIER = {"config": {**labels(count=3), "pad_token_id": 0}, "tiny": {"pad_token_id": 0}}
_LABELS = {**labels(count=3), "pad_token_id": 0}
_GROUPS = {"new_decoder_architecture": True, "num_kv_heads": 8, "num_attention_heads": 128, "hidden_size": 8192}
_TINY_GROUPS = {"num_attention_heads": 8, "num_kv_heads": 2}

SPECS: dict[str, Spec] = {
    "bloom-560m": _bloom("bigscience/bloom-560m", "ForCausalLM", full=True),
    "bloom-bare": _bloom("save_pretrained", "Model"),
    "bloom-classifier": _bloom(
        "save_pretrained",
        "ForSequenceClassification",
        config={**_LABELS, "apply_residual_connection_post_layernorm": True},
    ),
    "mpt-7b": _mpt("mosaicml/mpt-7b", "ForCausalLM", dtype="BF16"),
    "mpt-bare": _mpt(
        "save_pretrained",
        "Model",
        config={"attn_config": {"clip_qkv": 1.5, "softmax_scale": 0.2}},
        tiny={"n_heads": 8},
    ),
    "mpt-classifier": _mpt("save_pretrained", "ForSequenceClassification", config=_LABELS),
    "mpt-tagger": _mpt("save_pretrained", "ForTokenClassification", config=labels(count=9)),
    "mpt-squad2": _mpt("save_pretrained", "ForQuestionAnswering"),
    "glm-edge-1.5b-chat": _glm("zai-org/glm-edge-1.5b-chat", full=True),
    "glm-bare": _glm("save_pretrained", "Model", dtype="F32"),
    "glm-classifier": _glm("save_pretrained", "ForSequenceClassification", **_CLASSIFIER),
    "AFM-4.5B": _arcee("arcee-ai/AFM-4.5B"),
    "arcee-bare": _arcee("save_pretrained", "Model", dtype="F32"),
    "arcee-classifier": _arcee("save_pretrained", "ForSequenceClassification", **_CLASSIFIER),
    "Nemotron-Mini-4B-Instruct": _nemotron("nvidia/Nemotron-Mini-4B-Instruct"),
    "nemotron-bare": _nemotron("save_pretrained", "Model", dtype="F32"),
    "nemotron-classifier": _nemotron("save_pretrained", "ForSequenceClassification", **_CLASSIFIER),
    "Hunyuan-0.5B-Instruct": _hunyuan("tencent/Hunyuan-0.5B-Instruct", full=True),
    "hunyuan-bare": _hunyuan("save_pretrained", "Model", dtype="F32"),
    "hunyuan-classifier": _hunyuan("save_pretrained", "ForSequenceClassification", **_CLASSIFIER),
    "OLMoE-1B-7B-0125": _olmoe("allenai/OLMoE-1B-7B-0125"),
    "olmoe-bare": _olmoe("save_pretrained", "Model", dtype="F32"),
    "Ministral-8B-Instruct-2410": _ministral("mistralai/Ministral-8B-Instruct-2410"),
    "ministral-bare": _ministral("save_pretrained", "Model", dtype="F32"),
    "gemma-2-2b": _gemma2("google/gemma-2-2b"),
    "gemma2-bare": _gemma2("save_pretrained", "Model", tiny={"attn_logit_softcapping": None}, dtype="F32"),
    "gemma2-classifier": _gemma2("save_pretrained", "ForSequenceClassification", **_CLASSIFIER),
    "falcon-7b": _falcon("tiiuae/falcon-7b"),
    "falcon-40b": _falcon("tiiuae/falcon-40b", config=_GROUPS, tiny=_TINY_GROUPS),
    "falcon-bare": _falcon(
        "save_pretrained", "Model", config={"multi_query": False, "parallel_attn": False, "bias": True}, dtype="F32"
    ),
    "falcon-classifier": _falcon("save_pretrained", "ForSequenceClassification", **_CLASSIFIER),
    "starcoderbase-1b": _bigcode("bigcode/starcoderbase-1b", "ForCausalLM", full=True),
    "gpt-bigcode-bare": _bigcode("save_pretrained", "Model", config={"multi_query": False}),
    "gpt-bigcode-classifier": _bigcode("save_pretrained", "ForSequenceClassification", config=_LABELS),
    "gpt-neo-125m": _neo("EleutherAI/gpt-neo-125m", "ForCausalLM", full=True),
    "gpt-neo-bare": _neo("save_pretrained", "Model"),
    "gpt-neo-classifier": _neo("save_pretrained", "ForSequenceClassification", config=_LABELS),
    "gpt-j-6b": _gptj("EleutherAI/gpt-j-6b", "ForCausalLM", dtype="F16"),
    "gptj-bare": _gptj("save_pretrained", "Model"),
    "codegen-350M-mono": _codegen("Salesforce/codegen-350M-mono", "ForCausalLM", full=True),
    "codegen-bare": _codegen("save_pretrained", "Model"),
}
