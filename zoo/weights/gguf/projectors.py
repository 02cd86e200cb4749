"""What each kind of mmproj is in transformers: its model, its names, and the configs that follow from its metadata."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ...errors import ConfigError, UnsupportedError
from .header import TensorEntry
from .metadata import Metadata
from .names import Names

_LAYER = {
    "ln1": "layer_norm1",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_out": "self_attn.out_proj",
    "ln2": "layer_norm2",
    "ffn_up": "mlp.fc1",
    "ffn_down": "mlp.fc2",
}
# Queries, keys and values have one matrix in transformers, whose parts these names are.
_QWEN_LAYER = {
    "ln1": "norm1",
    "attn_qkv": "attn.qkv",
    **{f"attn_{part}": f"attn.qkv:{part}" for part in "qkv"},
    "attn_out": "attn.proj",
    "ln2": "norm2",
    "ffn_up": "mlp.fc1",
    "ffn_down": "mlp.fc2",
}
_QWEN_GATED = {"ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
_QWEN = {"v.post_ln": "model.visual.merger.ln_q"}
_QWEN |= {f"mm.{i}": f"model.visual.merger.mlp.{i}" for i in (0, 2)}
WINDOW, QWEN_EPS = 112, 1e-6  # pixels of a window's side, which no file has, and the epsilon of all norms
TANH, QUICK, ERF = "gelu_pytorch_tanh", "quick_gelu", "gelu"  # llama.cpp computes the third as the first


class Parts(NamedTuple):
    """The objects of config.json without text_config, and of preprocessor_config.json."""

    config: dict[str, Any]
    images: dict[str, Any]


@dataclass(frozen=True)
class Projector:
    """A kind of mmproj.

    names, layer, layers: as in `Names`, for the encoder.  texts: the decoder's name, and text_type its model_type in a
    file of its own.  token: what stands for an image's vector in a prompt.  spare: how tokens begin that nobody writes,
    the last of which stands for it where the vocabulary has no such token.  of_text: what the decoder's config has
    besides, by the metadata of the texts.
    """

    model_type: str
    architecture: str
    names: Mapping[str, str]
    layers: str
    texts: str
    text_type: str
    token: str
    configs: Callable[[Metadata, Mapping[str, TensorEntry]], Parts]
    layer: Mapping[str, str] = field(default_factory=lambda: _LAYER)
    exact: Mapping[str, str] = field(default_factory=dict)  # whole names of tensors that do not end as others do
    spare: str | None = None
    norm_from_1: str = "none"  # the end of the names of norms that are 1 more than transformers'
    of_text: Callable[[Metadata], dict[str, Any]] = lambda m: {}

    def names_of(self, is_swapped: bool) -> Names:
        """The table of names.  is_swapped: the file calls a layer's first matrix `ffn_down`, its second `ffn_up`."""
        layer = dict(self.layer)
        if is_swapped:
            layer |= {"ffn_up": layer["ffn_down"], "ffn_down": layer["ffn_up"]}
        from_1 = self.norm_from_1 != "none"
        return Names(self.names, layer, self.layers, norms_from_1=from_1, norm_end=self.norm_from_1)


def _of_tower(tower: str) -> dict[str, str]:
    """The names of an encoder like CLIP's, besides its layers'."""
    return {
        "v.patch_embd": f"{tower}.embeddings.patch_embedding",
        "v.position_embd": f"{tower}.embeddings.position_embedding",
        "v.post_ln": f"{tower}.post_layernorm",
    }


def _vision(m: Metadata, activation: str) -> dict[str, Any]:
    return {
        "hidden_size": m.integer("vision.embedding_length"),
        "intermediate_size": m.integer("vision.feed_forward_length"),
        "num_hidden_layers": m.integer("vision.block_count"),
        "num_attention_heads": m.integer("vision.attention.head_count"),
        "layer_norm_eps": m.number("vision.attention.layer_norm_epsilon"),
        "image_size": m.integer("vision.image_size"),
        "patch_size": m.integer("vision.patch_size"),
        "hidden_act": activation,
    }


def _colours(m: Metadata) -> dict[str, Any]:
    return {
        "image_mean": m.numbers("vision.image_mean").tolist(),
        "image_std": m.numbers("vision.image_std").tolist(),
    }


def _require_gelu(m: Metadata, name: str) -> None:
    if not m.flag("use_gelu", False) or m.flag("use_silu", False):
        raise UnsupportedError(f"clip.use_gelu = False is not implemented for {name}")


def _idefics3(m: Metadata, tensors: Mapping[str, TensorEntry]) -> Parts:
    _require_gelu(m, "idefics3")
    vision = _vision(m, TANH)
    images = {
        "image_processor_type": "Idefics3ImageProcessor",
        "size": {"longest_edge": m.integer("vision.preproc_image_size")},
        "max_image_size": {"longest_edge": vision["image_size"]},
        **_colours(m),
    }
    return Parts({"vision_config": vision, "scale_factor": m.integer("vision.projector.scale_factor")}, images)


def _gemma3(m: Metadata, tensors: Mapping[str, TensorEntry]) -> Parts:
    """Gemma 3's: squares of 4 x 4 patches become one vector, unless the file has another number."""
    _require_gelu(m, "gemma3")
    vision, pool = _vision(m, TANH) | {"vision_use_head": False}, m.integer("vision.projector.scale_factor", 4)
    size, patch = vision["image_size"], vision["patch_size"]
    if not patch or not pool or size // patch < pool:
        raise ConfigError(
            f"clip.vision.projector.scale_factor = {pool} and patch_size = {patch}, and an image has {size} pixels"
        )
    count = (size // patch // pool) ** 2
    images = {
        "image_processor_type": "Gemma3ImageProcessor",
        "size": {"height": size, "width": size},
        "image_seq_length": count,
        **_colours(m),
    }
    return Parts({"vision_config": vision, "mm_tokens_per_image": count}, images)


def _llava(m: Metadata, tensors: Mapping[str, TensorEntry]) -> Parts:
    """LLaVA 1.5's: a file has the layers up to the one that is read, and no others."""
    if m.flag("use_silu", False):
        raise UnsupportedError("clip.use_silu = True is not implemented for llava")
    vision = _vision(m, ERF if m.flag("use_gelu", False) else QUICK)
    depth, found = vision["num_hidden_layers"], m.numbers("vision.feature_layer", None)
    layers = [depth] if found is None else found.tolist()
    if layers != [depth]:
        raise UnsupportedError(f"clip.vision.feature_layer = {layers[:8]} is not implemented, only [{depth}] is")
    images = {
        "image_processor_type": "CLIPImageProcessor",
        "size": {"shortest_edge": vision["image_size"]},
        "crop_size": {"height": vision["image_size"], "width": vision["image_size"]},
        **_colours(m),
    }
    return Parts({"vision_config": vision, "vision_feature_layer": depth}, images)


def _qwen(m: Metadata, vision: dict[str, Any]) -> Parts:
    if (epsilon := m.number("vision.attention.layer_norm_epsilon")) != QWEN_EPS:
        raise UnsupportedError(
            f"clip.vision.attention.layer_norm_epsilon = {epsilon} is not implemented, only {QWEN_EPS} is"
        )
    vision |= {
        "depth": m.integer("vision.block_count"),
        "num_heads": m.integer("vision.attention.head_count"),
        "patch_size": (patch := m.integer("vision.patch_size")),
        "spatial_merge_size": (merged := m.integer("vision.spatial_merge_size", 2)),
    }
    m.integer("vision.image_size", None)  # of the image that llama.cpp warms up with
    images = {
        "image_processor_type": "Qwen2VLImageProcessor",
        "min_pixels": m.integer("vision.image_min_pixels", 4 * (patch * merged) ** 2),
        "max_pixels": m.integer("vision.image_max_pixels", 16384 * (patch * merged) ** 2),
        "patch_size": patch,
        "merge_size": merged,
        **_colours(m),
    }
    return Parts({"vision_config": vision}, images)


def _qwen2_vl(m: Metadata, tensors: Mapping[str, TensorEntry]) -> Parts:
    """The MLP's width is that of its tensors: files have the decoder's width, or 0, in its place."""
    if m.flag("use_silu", False) or m.flag("use_gelu", False):
        raise UnsupportedError("another activation than quick_gelu is not implemented for qwen2_vl")
    m.integer("vision.feed_forward_length", None)
    width, inner = m.integer("vision.embedding_length"), tensors.get("v.blk.0.ffn_up.weight")
    if not width or inner is None or max(inner.shape, default=0) % width:
        raise ConfigError(f"clip.vision.embedding_length = {width} does not divide the MLP's width, v.blk.0.ffn_up's")
    vision = {"embed_dim": width, "hidden_size": m.integer("vision.projection_dim")}
    vision["mlp_ratio"] = max(inner.shape) // width
    return _qwen(m, vision)


def _qwen2_5_vl(m: Metadata, tensors: Mapping[str, TensorEntry]) -> Parts:
    """Every layer whose number is a multiple of `n_wa_pattern`, counted from 1, has no windows."""
    if not m.flag("use_silu", False):
        raise UnsupportedError("clip.use_silu = False is not implemented for qwen2_5_vl")
    if not (every := m.integer("vision.n_wa_pattern")):
        raise UnsupportedError("clip.vision.n_wa_pattern = 0 is not implemented")
    if (depth := m.integer("vision.block_count")) > len(tensors):
        raise ConfigError(f"clip.vision.block_count = {depth}, and the file has {len(tensors)} tensors")
    vision = {
        "hidden_size": m.integer("vision.embedding_length"),
        "intermediate_size": m.integer("vision.feed_forward_length"),
        "out_hidden_size": m.integer("vision.projection_dim"),
        "fullatt_block_indexes": list(range(every - 1, depth, every)),
        "window_size": m.integer("vision.window_size", WINDOW),
    }
    return _qwen(m, vision)


def _sections(m: Metadata) -> dict[str, Any]:
    """The positions of a Qwen2-VL's decoder: how many frequencies turn by time, height and width."""
    found = m.numbers("rope.dimension_sections").tolist()
    return {"rope_scaling": {"type": "mrope", "mrope_section": found[:3]}}


_QWEN2_VL = Projector(
    model_type="qwen2_vl",
    architecture="Qwen2VLForConditionalGeneration",
    names=_QWEN,
    exact={
        f"v.patch_embd.weight{end}": f"model.visual.patch_embed.proj:{i}.weight" for i, end in enumerate(("", ".1"))
    },
    layers="model.visual.blocks",
    layer=_QWEN_LAYER,
    texts="model.language_model.",
    text_type="qwen2",
    token="<|image_pad|>",
    configs=_qwen2_vl,
    of_text=lambda m: {"model_type": "qwen2_vl_text", **_sections(m)},
)
# By `clip.projector_type`.
PROJECTORS = {
    "idefics3": Projector(
        model_type="idefics3",
        architecture="Idefics3ForConditionalGeneration",
        names={**_of_tower("model.vision_model"), "mm.model.fc": "model.connector.modality_projection.proj"},
        layers="model.vision_model.encoder.layers",
        texts="model.text_model.",
        text_type="llama",
        token="<image>",
        configs=_idefics3,
    ),
    "gemma3": Projector(
        model_type="gemma3",
        architecture="Gemma3ForConditionalGeneration",
        names={
            **_of_tower("model.vision_tower"),
            "mm.soft_emb_norm": "model.multi_modal_projector.mm_soft_emb_norm",
        },
        exact={"mm.input_projection.weight": "model.multi_modal_projector.mm_input_projection_weight"},
        layers="model.vision_tower.encoder.layers",
        texts="model.language_model.",
        text_type="gemma3_text",
        token="<image_soft_token>",
        configs=_gemma3,
        spare="<unused",
        norm_from_1="mm_soft_emb_norm.weight",
    ),
    "mlp": Projector(
        model_type="llava",
        architecture="LlavaForConditionalGeneration",
        names={
            **_of_tower("model.vision_tower"),
            "v.pre_ln": "model.vision_tower.pre_layrnorm",
            "mm.0": "model.multi_modal_projector.linear_1",
            "mm.2": "model.multi_modal_projector.linear_2",
        },
        exact={"v.class_embd": "model.vision_tower.embeddings.class_embedding"},
        layers="model.vision_tower.encoder.layers",
        texts="model.language_model.",
        text_type="llama",
        token="<image>",
        configs=_llava,
        spare="<unk>",
    ),
    "qwen2vl_merger": _QWEN2_VL,
    "qwen2.5vl_merger": replace(
        _QWEN2_VL,
        model_type="qwen2_5_vl",
        architecture="Qwen2_5_VLForConditionalGeneration",
        layer={**_QWEN_LAYER, **_QWEN_GATED},
        configs=_qwen2_5_vl,
        of_text=lambda m: {"model_type": "qwen2_5_vl_text", **_sections(m)},
    ),
}
