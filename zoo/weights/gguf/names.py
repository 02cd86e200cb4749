"""llama.cpp's names of tensors, and transformers' names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ...errors import UnsupportedError, nearest

EXPERT = "*"  # the number of an expert, in a name whose tensor is those of all


@dataclass(frozen=True)
class Names:
    """One architecture: patterns of llama.cpp's names, N for a layer's number, and transformers' names.

    rotated: the layers' tensors whose rows llama.cpp has in another order (see `rows_of_halves`).
    """

    whole: Mapping[str, str]
    layer: Mapping[str, str]
    layers: str  # the layers' name in transformers: "model.layers"
    rotated: tuple[str, ...] = ()
    norms_from_1: bool = False  # the weights of norms, by the end of their names, are 1 more than transformers'
    norm_end: str = "norm.weight"
    ignored: tuple[str, ...] = ()  # in the config already
    bare: Mapping[str, str] = field(default_factory=dict)  # the layers' tensors whose names are no stem with a kind

    def to_transformers(self, name: str) -> str | None:
        """transformers' name for one of llama.cpp's; None where there is none."""
        match = re.fullmatch(r"blk\.(0|[1-9][0-9]{0,5})\.(.+)", name)
        if match and match[2] in self.bare:
            return f"{self.layers}.{match[1]}.{self.bare[match[2]]}"
        if match := re.fullmatch(r"blk\.(0|[1-9][0-9]{0,5})\.(.+)\.(weight|bias)", name):
            inner = self.layer.get(match[2])
            return None if inner is None else f"{self.layers}.{match[1]}.{inner}.{match[3]}"
        stem, _, kind = name.rpartition(".")
        found = self.whole.get(stem)
        return None if found is None or kind not in ("weight", "bias") else f"{found}.{kind}"

    def to_gguf(self, name: str) -> str | None:
        """llama.cpp's name for one of transformers'; None where there is none."""
        stem, _, kind = name.rpartition(".")
        if match := re.fullmatch(rf"{re.escape(self.layers)}\.([0-9]+)\.(.+)", stem):
            return next((f"blk.{match[1]}.{k}.{kind}" for k, v in self.layer.items() if v == match[2]), None)
        return next((f"{k}.{kind}" for k, v in self.whole.items() if v == stem), None)

    def is_rotated(self, name: str) -> bool:
        """Return True if llama.cpp has the rows of its tensor `name` in another order."""
        return name.startswith("blk.") and name.rpartition(".")[0].rpartition(".")[2] in self.rotated


_LLAMA = Names(
    whole={"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"},
    layer={
        "attn_norm": "input_layernorm",
        "attn_q": "self_attn.q_proj",
        "attn_k": "self_attn.k_proj",
        "attn_v": "self_attn.v_proj",
        "attn_output": "self_attn.o_proj",
        "ffn_norm": "post_attention_layernorm",
        "ffn_gate": "mlp.gate_proj",
        "ffn_up": "mlp.up_proj",
        "ffn_down": "mlp.down_proj",
    },
    layers="model.layers",
    ignored=("rope_freqs.weight",),
)
_NORMS = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
# Of Mixtral, which llama.cpp calls a llama.
_MIXTRAL = {
    "ffn_gate_inp": "block_sparse_moe.gate",
    "ffn_gate_exps": f"block_sparse_moe.experts.{EXPERT}.w1",
    "ffn_up_exps": f"block_sparse_moe.experts.{EXPERT}.w3",
    "ffn_down_exps": f"block_sparse_moe.experts.{EXPERT}.w2",
}
_EXPERTS = {f"ffn_{kind}_exps": f"mlp.experts.{EXPERT}.{kind}_proj" for kind in ("gate", "up", "down")}
_POST_NORMS = {"post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm"}
# Of a layer's state, as Mamba2 has it, by the state's name in a layer.
_STATE = {"ssm_in": "in_proj", "ssm_conv1d": "conv1d", "ssm_norm": "norm", "ssm_out": "out_proj"}
_BARE_STATE = {"ssm_a": "A_log", "ssm_d": "D", "ssm_dt.bias": "dt_bias"}
_FUSED_PROJECTIONS = {"attn_qkv": "self_attn.qkv_proj", "ffn_up": "mlp.gate_up_proj"}

NAMES: dict[str, Names] = {
    "llama": replace(_LLAMA, layer={**_LLAMA.layer, **_MIXTRAL}, rotated=("attn_q", "attn_k")),
    "smollm3": replace(_LLAMA, rotated=("attn_q", "attn_k")),
    "qwen2": _LLAMA,
    "qwen2vl": _LLAMA,
    "qwen3": replace(_LLAMA, layer={**_LLAMA.layer, **_NORMS}),
    "qwen3moe": replace(_LLAMA, layer={**_LLAMA.layer, **_NORMS, **_EXPERTS, "ffn_gate_inp": "mlp.gate"}),
    "olmo2": replace(_LLAMA, layer={**_LLAMA.layer, **_NORMS, **_POST_NORMS}),
    "gemma3": replace(
        _LLAMA,
        layer={**_LLAMA.layer, **_NORMS, **_POST_NORMS, "ffn_norm": "pre_feedforward_layernorm"},
        norms_from_1=True,
    ),
    "gemma": replace(_LLAMA, norms_from_1=True),
    "gemma2": replace(
        _LLAMA,
        layer={**_LLAMA.layer, **_POST_NORMS, "ffn_norm": "pre_feedforward_layernorm"},
        norms_from_1=True,
    ),
    "exaone4": replace(_LLAMA, layer={**_LLAMA.layer, **_NORMS, **_POST_NORMS}),
    "glm4": replace(
        _LLAMA,
        layer={
            **_LLAMA.layer,
            "post_attention_norm": "post_self_attn_layernorm",
            "ffn_up": "mlp.gate_up_proj",
            "post_ffw_norm": "post_mlp_layernorm",
        },
    ),
    "arcee": replace(_LLAMA, rotated=("attn_q", "attn_k")),
    "nemotron": replace(_LLAMA, norms_from_1=True),
    "hunyuan-dense": replace(
        _LLAMA,
        layer={
            **_LLAMA.layer,
            "attn_q_norm": "self_attn.query_layernorm",
            "attn_k_norm": "self_attn.key_layernorm",
        },
    ),
    "olmoe": replace(_LLAMA, layer={**_LLAMA.layer, **_NORMS, **_EXPERTS, "ffn_gate_inp": "mlp.gate"}),
    "gpt-oss": replace(
        _LLAMA,
        layer={
            **_LLAMA.layer,
            **_EXPERTS,
            "attn_sinks": "self_attn.sinks",
            "ffn_gate_inp": "mlp.router",
            "post_attention_norm": "post_attention_layernorm",
        },
    ),
    "seed_oss": replace(_LLAMA, layer={**_LLAMA.layer, "post_attention_norm": "post_attention_layernorm"}),
    "ernie4_5": _LLAMA,
    "command-r": replace(_LLAMA, layer={**_LLAMA.layer, **_NORMS}),
    "stablelm": _LLAMA,
    "phi2": replace(
        _LLAMA,
        whole={**_LLAMA.whole, "output_norm": "model.final_layernorm"},
        layer={
            **_LLAMA.layer,
            "attn_output": "self_attn.dense",
            "ffn_up": "mlp.fc1",
            "ffn_down": "mlp.fc2",
        },
    ),
    "phi3": replace(_LLAMA, layer={**_LLAMA.layer, **_FUSED_PROJECTIONS}),
    "mamba2": Names(
        whole={"token_embd": "backbone.embeddings", "output_norm": "backbone.norm_f", "output": "lm_head"},
        layer={"attn_norm": "norm", **{name: f"mixer.{own}" for name, own in _STATE.items()}},
        layers="backbone.layers",
        bare={name: f"mixer.{own}" for name, own in _BARE_STATE.items()},
    ),
    "falcon-h1": replace(
        _LLAMA,
        whole={**_LLAMA.whole, "output_norm": "model.final_layernorm"},
        layer={
            **{name: own.replace("mlp.", "feed_forward.") for name, own in _LLAMA.layer.items()},
            "ffn_norm": "pre_ff_layernorm",
            **{name: f"mamba.{own}" for name, own in _STATE.items()},
        },
        bare={
            "ffn_norm": "pre_ff_layernorm.weight",  # without a kind in llama.cpp too
            **{name: f"mamba.{own}" for name, own in _BARE_STATE.items()},
        },
    ),
    "bert": Names(
        whole={
            "token_embd": "bert.embeddings.word_embeddings",
            "position_embd": "bert.embeddings.position_embeddings",
            "token_types": "bert.embeddings.token_type_embeddings",
            "token_embd_norm": "bert.embeddings.LayerNorm",
            "cls": "bert.pooler.dense",
            "cls.output": "classifier",
        },
        layer={
            "attn_q": "attention.self.query",
            "attn_k": "attention.self.key",
            "attn_v": "attention.self.value",
            "attn_output": "attention.output.dense",
            "attn_output_norm": "attention.output.LayerNorm",
            "ffn_up": "intermediate.dense",
            "ffn_down": "output.dense",
            "layer_output_norm": "output.LayerNorm",
        },
        layers="bert.encoder.layer",
    ),
}


def names_of(architecture: object) -> Names:
    """The names of an architecture; UnsupportedError if `general.architecture` is not one that zoo has."""
    if architecture == "clip":
        raise UnsupportedError(
            "general.architecture is 'clip': this is the encoder of images beside a GGUF file of texts (an mmproj): "
            "load that file, MODEL.gguf, which is read with mmproj-MODEL.gguf where both lie in one folder"
        )
    if not isinstance(architecture, str) or architecture not in NAMES:
        guess = nearest(architecture, NAMES) if isinstance(architecture, str) else ""
        found = repr(architecture[:100]) if isinstance(architecture, str) else "not stated"
        raise UnsupportedError(
            f"general.architecture is {found}, which is not implemented, only {', '.join(NAMES)} are{guess}"
        )
    return NAMES[architecture]
