"""From a GGUF file's metadata to the object of a config.json, in transformers' names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...errors import ConfigError, UnsupportedError
from ...registry import FAMILIES, config_class
from .header import Header, TensorEntry
from .metadata import Metadata

POOLINGS = {0: None, 1: "mean", 2: "cls", 3: "lasttoken", 4: "rank"}
# Facts about a file, or about how it was made, that change nothing in what the model computes.
_UNUSED_KEYS = (
    "tensor_data_layout",
    "vocab_size",
    "rope.scaling.finetuned",
    "pooling_type",
    "classifier.output_labels",
)


def config_of(header: Header, architecture: str, factors: np.ndarray | None = None) -> dict[str, Any]:
    """The object for config.json.  factors (K / 2,): the file's `rope_freqs.weight`, by which frequencies are divided.

    ConfigError names a key that is missing or wrong, UnsupportedError one that asks for what is not implemented: an
    unknown key of the architecture may change the result.
    """
    m = Metadata(header.metadata, architecture)
    config = {"bert": _bert, "mamba2": _mamba2}.get(architecture, _decoder)(m, header.tensors)
    vocabulary = _rows(header.tensors, "token_embd.weight", 0)
    config |= {
        "vocab_size": vocabulary,
        "hidden_size": m.integer("embedding_length"),
        "num_hidden_layers": m.integer("block_count"),
    }
    width, heads = m.integer("feed_forward_length"), m.integer("attention.head_count")
    if architecture != "mamba2":  # whose layers have neither: the numbers are 0
        config |= {"intermediate_size": width, "num_attention_heads": heads}
    config["pad_token_id"] = token_id(m, "padding", vocabulary)
    if factors is not None and not (factors == 1).all():
        config["rope_scaling"] = _llama3(config, factors, m.integer("rope.scaling.original_context_length", None))
    unknown = [key for key in m.unread_keys() if key.removeprefix(architecture + ".") not in _UNUSED_KEYS]
    if unknown:
        raise UnsupportedError(
            f"{unknown[0]} = {str(header.metadata[unknown[0]])[:80]} is not implemented for {architecture}"
        )
    config_class(config["model_type"]).from_dict(config)  # whose error names the file, as this is called
    return config


def token_id(m: Metadata, role: str, below: int) -> int | None:
    """`tokenizer.ggml.<role>_token_id`; None where it is absent, or an id of no token (some writers' "none")."""
    value = m.integer(f"tokenizer.ggml.{role}_token_id", None)
    return value if value is not None and value < below else None


def _rows(tensors: Mapping[str, TensorEntry], name: str, default: int | None) -> int:
    if name not in tensors:
        if default:
            return default
        raise ConfigError(f"the file has no tensor {name!r}, whose shape the config is read from")
    return tensors[name].shape[0] if tensors[name].shape else 0


def _decoder(m: Metadata, tensors: Mapping[str, TensorEntry]) -> dict[str, Any]:
    """The config of the architectures that descend from Llama."""
    own, heads, width = m.prefix, m.integer("attention.head_count"), m.integer("embedding_length")
    if not heads:
        raise ConfigError(f"{own}.attention.head_count is 0")
    size = m.integer("attention.key_length", width // heads)
    if not size:
        raise ConfigError(
            f"{own}.attention.key_length is 0, or the heads are more than {own}.embedding_length = {width}"
        )
    _require_value(m, "attention.value_length", size)
    rotated = m.integer("rope.dimension_count", size)
    if rotated != size and own not in PARTLY_ROTATED:
        raise UnsupportedError(f"{own}.rope.dimension_count = {rotated} is not implemented, only {size} is")
    _require_value(m, "attention.key_length_swa", size)
    _require_value(m, "attention.value_length_swa", size)
    if own in EXPERT_MODEL_TYPES and m.integer("expert_count", 0):
        experts, kind = _mixtral(m), EXPERT_MODEL_TYPES[own]
    else:
        experts, kind = EXPERTS[own](m) if own in EXPERTS else {}, MODEL_TYPES.get(own, own)
    for name in ("expert_count", "expert_used_count") if not experts else ():
        _require_value(m, name, 0)
    if not m.flag("attention.causal", True):
        raise UnsupportedError(f"{own}.attention.causal = False is not implemented")
    positions = m.integer("context_length")
    window = m.integer("attention.sliding_window", None)
    if window and window < positions and own not in WINDOW_ARCHITECTURES:
        raise UnsupportedError(f"{own}.attention.sliding_window = {window} is not implemented")
    if "rope_factors_long.weight" in tensors:
        raise UnsupportedError("rope_factors_long.weight, of longrope, is not implemented")
    vocabulary = _rows(tensors, "token_embd.weight", None)
    return {
        "model_type": kind,
        "architectures": [FAMILIES[kind].architecture("ForCausalLM")],
        "num_key_value_heads": m.integer("attention.head_count_kv", heads),
        "head_dim": size,
        "hidden_act": "silu",
        "max_position_embeddings": positions,
        **(
            {"layer_norm_eps": m.number("attention.layer_norm_epsilon")}
            if own in LAYER_NORMS
            else {"rms_norm_eps": m.number("attention.layer_norm_rms_epsilon")}
        ),
        "rope_theta": m.number("rope.freq_base", 10000.0),
        "rope_scaling": _scaling(m),
        "attention_bias": "blk.0.attn_q.bias" in tensors and own not in ("qwen2", "qwen2vl"),
        "mlp_bias": "blk.0.ffn_up.bias" in tensors,
        "tie_word_embeddings": "output.weight" not in tensors,
        "bos_token_id": token_id(m, "bos", vocabulary),
        "eos_token_id": token_id(m, "eos", vocabulary),
        **({} if own not in WINDOW_ARCHITECTURES else {"sliding_window": window or None}),
        **({} if rotated == size else {"partial_rotary_factor": rotated / size}),
        **experts,
        **(_gemma3(m, size, width // heads) if own == "gemma3" else {}),
        **(SETTINGS[own](m, tensors) if own in SETTINGS else {}),
    }


# llama.cpp's name of an architecture -> transformers' model_type, if it is another.
MODEL_TYPES = {"gemma3": "gemma3_text", "qwen3moe": "qwen3_moe", "command-r": "cohere", "phi2": "phi"}
MODEL_TYPES |= {"hunyuan-dense": "hunyuan_v1_dense", "gpt-oss": "gpt_oss", "qwen2vl": "qwen2"}
MODEL_TYPES |= {"falcon-h1": "falcon_h1"}
# The same for files with experts.
EXPERT_MODEL_TYPES = {"llama": "mixtral"}
WINDOW_ARCHITECTURES = (
    "gemma2",
    "gemma3",
    "phi3",
    "gpt-oss",
)  # the architectures with layers of which a token sees some
PARTLY_ROTATED = (
    "phi3",
    "phi2",
    "glm4",
    "stablelm",
    "nemotron",
)  # the architectures that rotate a part of a head's features
LAYER_NORMS = ("command-r", "stablelm", "phi2", "nemotron")  # the architectures that have no root mean square norm


def _stablelm(m: Metadata, tensors: Mapping[str, TensorEntry]) -> dict[str, Any]:
    if "blk.0.attn_q_norm.weight" in tensors:
        raise UnsupportedError("blk.0.attn_q_norm.weight, of a stablelm with norms of queries, is not implemented")
    share = m.integer("embedding_length") // m.integer("attention.head_count")
    size = m.integer("attention.key_length", share)
    return {
        "head_dim": None if size == share else size,
        "use_qkv_bias": "blk.0.attn_q.bias" in tensors,
        "use_parallel_residual": m.flag("use_parallel_residual", True),
    }


def _gemma2(m: Metadata, tensors: Mapping[str, TensorEntry]) -> dict[str, Any]:
    """Gemma 2's settings; the model of 27B, with 46 layers, has another scale, which llama.cpp has without metadata."""
    share = m.integer("embedding_length") // m.integer("attention.head_count")
    size = m.integer("attention.key_length", share)
    return {
        "query_pre_attn_scalar": float(share if m.integer("block_count") == 46 else size),
        "attn_logit_softcapping": m.number("attn_logit_softcapping", 50.0),
        "final_logit_softcapping": m.number("final_logit_softcapping", 30.0),
    }


# Architecture -> the settings that it alone has.
def _qwen2vl(m: Metadata, tensors: Mapping[str, TensorEntry]) -> dict[str, Any]:
    """A text alone has a Qwen2's positions: those in time, height and width are the same."""
    m.numbers("rope.dimension_sections", None)
    return {}


SETTINGS: dict[str, Callable[[Metadata, Mapping[str, TensorEntry]], dict[str, Any]]] = {
    "gemma": lambda m, tensors: {"hidden_act": "gelu_pytorch_tanh"},
    "phi2": lambda m, tensors: {"hidden_act": "gelu_new"},
    "arcee": lambda m, tensors: {"hidden_act": "relu2"},
    "nemotron": lambda m, tensors: {"hidden_act": "relu2", "norm_eps": m.number("attention.layer_norm_epsilon")},
    "ernie4_5": lambda m, tensors: {"use_bias": "blk.0.attn_q.bias" in tensors},
    "exaone4": lambda m, tensors: {
        "sliding_window": None,
        "sliding_window_pattern": None,
        "layer_types": ["full_attention"] * m.integer("block_count"),
    },
    "command-r": lambda m, tensors: {
        "logit_scale": m.number("logit_scale"),
        "use_qk_norm": "blk.0.attn_q_norm.weight" in tensors,
    },
    "stablelm": _stablelm,
    "gemma2": _gemma2,
    "qwen2vl": _qwen2vl,
    "gpt-oss": lambda m, tensors: {"rope_scaling": _without_rounding(_scaling(m))},
}


def _without_rounding(scaling: dict[str, Any] | None) -> dict[str, Any] | None:
    """gpt-oss's yarn, whose ramp ends between features."""
    return scaling if scaling is None else {**scaling, "truncate": False}


def _mixtral(m: Metadata) -> dict[str, Any]:
    """The experts of a llama, which are Mixtral's."""
    return {"num_local_experts": m.integer("expert_count"), "num_experts_per_tok": m.integer("expert_used_count")}


def _experts(m: Metadata) -> dict[str, Any]:
    """Qwen3's: every layer has experts, whose shares llama.cpp divides by their sum."""
    return {
        "num_experts": m.integer("expert_count"),
        "num_experts_per_tok": m.integer("expert_used_count"),
        "moe_intermediate_size": m.integer("expert_feed_forward_length"),
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    }


def _olmoe(m: Metadata) -> dict[str, Any]:
    """OLMoE's: experts of the width of an MLP, whose shares are not divided by their sum; heads share the width."""
    return {
        "head_dim": None,
        "num_experts": m.integer("expert_count"),
        "num_experts_per_tok": m.integer("expert_used_count"),
        "norm_topk_prob": False,
    }


def _gpt_oss(m: Metadata) -> dict[str, Any]:
    """gpt-oss's, whose width is said as that of an MLP too."""
    width = m.integer("feed_forward_length")
    _require_value(m, "expert_feed_forward_length", width)
    return _mixtral(m)


EXPERTS: dict[str, Callable[[Metadata], dict[str, Any]]] = {"qwen3moe": _experts, "olmoe": _olmoe, "gpt-oss": _gpt_oss}


def _gemma3(m: Metadata, size: int, share: int) -> dict[str, Any]:
    """Gemma 3's settings that llama.cpp has without metadata; the model of 27B, with 62 layers, has another scale."""
    return {
        "rope_local_base_freq": m.number("rope.freq_base_swa", 10000.0),
        "sliding_window_pattern": m.integer("attention.sliding_window_pattern", 6),
        "query_pre_attn_scalar": float(share if m.integer("block_count") == 62 else size),
        "final_logit_softcapping": m.number("final_logit_softcapping", None),
    }


def _require_value(m: Metadata, name: str, wanted: int) -> None:
    found = m.integer(name, wanted)
    if found != wanted:
        raise UnsupportedError(f"{m.key(name)} = {found} is not implemented, only {wanted} is")


def _scaling(m: Metadata) -> dict[str, Any] | None:
    kind = m.text("rope.scaling.type", "linear" if "rope.scale_linear" in m else "none")
    factor = m.number("rope.scaling.factor", m.number("rope.scale_linear", 1.0))
    original = m.integer("rope.scaling.original_context_length", None)
    attention = m.number("rope.scaling.attn_factor", 1.0)
    m.number("rope.scaling.yarn_log_multiplier", 0.0)
    fast, slow = m.number("rope.scaling.yarn_beta_fast", 32.0), m.number("rope.scaling.yarn_beta_slow", 1.0)
    for name, wanted in (("yarn_log_multiplier", 0.0), ("yarn_ext_factor", 1.0), ("yarn_attn_factor", 1.0)):
        if (found := m.number(f"rope.scaling.{name}", wanted)) != wanted:
            raise UnsupportedError(f"{m.key('rope.scaling.' + name)} = {found} is not implemented, only {wanted} is")
    if attention != 1:
        raise UnsupportedError(f"{m.prefix}.rope.scaling.attn_factor = {attention} is not implemented, only 1 is")
    if kind not in ("none", "linear", "yarn"):
        raise UnsupportedError(
            f"{m.prefix}.rope.scaling.type = {kind!r} is not implemented, only none, linear, yarn are"
        )
    if kind == "yarn":
        if original is None:
            raise ConfigError(
                f"the metadata has no '{m.prefix}.rope.scaling.original_context_length', which yarn needs"
            )
        more = {"beta_fast": fast, "beta_slow": slow}
        return {"rope_type": "yarn", "factor": factor, "original_max_position_embeddings": original, **more}
    return {"rope_type": "linear", "factor": factor} if kind == "linear" and factor != 1 else None


# What Llama 3.1 and all after it have.
_LLAMA3 = {"rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0}


def _llama3(config: dict[str, Any], factors: np.ndarray, original: int | None) -> dict[str, Any]:
    """The scaling whose divided frequencies these are: a file has the numbers, and not what they follow from."""
    if config.get("rope_scaling") is not None:
        raise UnsupportedError("both rope_freqs.weight and llama.rope.scaling.type are not implemented")
    size = config["head_dim"] // 2
    if factors.shape != (size,) or not np.isfinite(factors).all() or factors.min(initial=1) < 1:
        raise ConfigError(f"rope_freqs.weight is of shape {factors.shape}, expected ({size},) and numbers from 1 on")
    plain = _frequencies(config, None)
    for factor in dict.fromkeys([float(factors.max()), 8.0, 32.0, 16.0, 4.0, 2.0]):
        scaling = {**_LLAMA3, "factor": factor, "original_max_position_embeddings": original or 8192}
        if np.allclose(plain / _frequencies(config, scaling), factors, rtol=1e-4, atol=0):
            return scaling
    raise UnsupportedError(
        "rope_freqs.weight is not Llama 3's scaling (low_freq_factor 1, high_freq_factor 4, of 8192 tokens), and no "
        "other is implemented"
    )


def _frequencies(config: dict[str, Any], scaling: dict[str, Any] | None) -> np.ndarray:
    made: Any = config_class("llama").from_dict({**config, "rope_scaling": scaling})
    return np.array(made.rope().frequencies(0))


def _mamba2(m: Metadata, tensors: Mapping[str, TensorEntry]) -> dict[str, Any]:
    vocabulary, inner = _rows(tensors, "token_embd.weight", None), m.integer("ssm.inner_size")
    width, heads = m.integer("embedding_length"), m.integer("ssm.time_step_rank")
    for name, count in (("embedding_length", width), ("ssm.time_step_rank", heads)):
        if not count or inner % count:
            raise ConfigError(f"{m.key(name)} = {count} does not divide {m.key('ssm.inner_size')} = {inner}")
    m.integer("context_length")
    return {
        "model_type": "mamba2",
        "architectures": ["Mamba2ForCausalLM"],
        "num_heads": heads,
        "head_dim": inner // heads,
        "expand": inner // width,
        "state_size": m.integer("ssm.state_size"),
        "n_groups": m.integer("ssm.group_count"),
        "conv_kernel": m.integer("ssm.conv_kernel"),
        "use_bias": False,
        "use_conv_bias": "blk.0.ssm_conv1d.bias" in tensors,
        "layer_norm_epsilon": m.number("attention.layer_norm_rms_epsilon"),
        "tie_word_embeddings": "output.weight" not in tensors,
        "bos_token_id": token_id(m, "bos", vocabulary),
        "eos_token_id": token_id(m, "eos", vocabulary),
    }


def _falcon_h1(m: Metadata, tensors: Mapping[str, TensorEntry]) -> dict[str, Any]:
    """The state beside the attention; the multipliers are in the weights already."""
    return {
        "mlp_bias": False,
        "mamba_d_ssm": m.integer("ssm.inner_size"),
        "mamba_n_heads": m.integer("ssm.time_step_rank"),
        "mamba_n_groups": m.integer("ssm.group_count"),
        "mamba_d_state": m.integer("ssm.state_size"),
        "mamba_d_conv": m.integer("ssm.conv_kernel"),
        "mamba_conv_bias": "blk.0.ssm_conv1d.bias" in tensors,
        "mamba_rms_norm": "blk.0.ssm_norm.weight" in tensors,
        "mamba_norm_before_gate": False,  # as llama.cpp computes, whatever the checkpoint's config.json said
    }


SETTINGS["falcon-h1"] = _falcon_h1


def _bert(m: Metadata, tensors: Mapping[str, TensorEntry]) -> dict[str, Any]:
    if m.flag("attention.causal", False):
        raise UnsupportedError("bert.attention.causal = True is not implemented")
    if "position_embd.weight" not in tensors:
        raise UnsupportedError("a bert without position_embd.weight is not implemented")
    pooling = m.integer("pooling_type", 0)
    if pooling not in POOLINGS:
        raise UnsupportedError(f"bert.pooling_type = {pooling} is not implemented, only 0 to 4 are")
    labels = m.texts("classifier.output_labels", None)
    ranks = POOLINGS[pooling] == "rank"
    if ranks and labels is None:
        labels = [f"LABEL_{i}" for i in range(_rows(tensors, "cls.output.weight", None))]
    return {
        "model_type": "bert",
        "architectures": ["BertForSequenceClassification" if ranks else "BertModel"],
        **({"id2label": {str(i): label for i, label in enumerate(labels)}} if ranks else {}),
        "hidden_act": "gelu",
        "max_position_embeddings": _rows(tensors, "position_embd.weight", m.integer("context_length")),
        "type_vocab_size": _rows(tensors, "token_types.weight", 2),
        "layer_norm_eps": m.number("attention.layer_norm_epsilon"),
    }
