"""What each kind of mmproj is in transformers: its model, its names, and the configs that follow from its metadata."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...errors import ConfigError, UnsupportedError
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
TANH, QUICK, ERF = "gelu_pytorch_tanh", "quick_gelu", "gelu"  # llama.cpp computes the third as the first


class Parts(NamedTuple):
    """The objects of config.json without text_config, and of preprocessor_config.json."""

    config: dict[str, Any]
    images: dict[str, Any]


@dataclass(frozen=True)
class Projector:
    """A kind of mmproj.

    tower: the encoder's name in transformers, and names those of the tensors besides its layers'.  texts: the decoder's
    name, and text_type its model_type.  token: what stands for an image's vector in a prompt.  spare: how tokens begin
    that nobody writes, the last of which stands for it where the vocabulary has no such token.
    """

    model_type: str
    architecture: str
    tower: str
    names: dict[str, str]
    texts: str
    text_type: str
    token: str
    configs: Callable[[Metadata], Parts]
    spare: str | None = None
    norm_from_1: str = "none"  # the end of the names of norms that are 1 more than transformers'

    def names_of(self, is_swapped: bool) -> Names:
        """The table of names.  is_swapped: the file calls a layer's first matrix `ffn_down`, its second `ffn_up`."""
        layer = {**_LAYER, **({"ffn_up": "mlp.fc2", "ffn_down": "mlp.fc1"} if is_swapped else {})}
        whole = {
            "v.patch_embd": f"{self.tower}.embeddings.patch_embedding",
            "v.position_embd": f"{self.tower}.embeddings.position_embedding",
            "v.post_ln": f"{self.tower}.post_layernorm",
            **self.names,
        }
        from_1 = self.norm_from_1 != "none"
        return Names(whole, layer, f"{self.tower}.encoder.layers", norms_from_1=from_1, norm_end=self.norm_from_1)


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


def _idefics3(m: Metadata) -> Parts:
    _require_gelu(m, "idefics3")
    vision = _vision(m, TANH)
    images = {
        "image_processor_type": "Idefics3ImageProcessor",
        "size": {"longest_edge": m.integer("vision.preproc_image_size")},
        "max_image_size": {"longest_edge": vision["image_size"]},
        **_colours(m),
    }
    return Parts({"vision_config": vision, "scale_factor": m.integer("vision.projector.scale_factor")}, images)


def _gemma3(m: Metadata) -> Parts:
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


def _llava(m: Metadata) -> Parts:
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


# By `clip.projector_type`.
PROJECTORS = {
    "idefics3": Projector(
        model_type="idefics3",
        architecture="Idefics3ForConditionalGeneration",
        tower="model.vision_model",
        names={"mm.model.fc": "model.connector.modality_projection.proj"},
        texts="model.text_model.",
        text_type="llama",
        token="<image>",
        configs=_idefics3,
    ),
    "gemma3": Projector(
        model_type="gemma3",
        architecture="Gemma3ForConditionalGeneration",
        tower="model.vision_tower",
        names={
            "mm.input_projection": "model.multi_modal_projector.mm_input_projection",
            "mm.soft_emb_norm": "model.multi_modal_projector.mm_soft_emb_norm",
        },
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
        tower="model.vision_tower",
        names={
            "v.pre_ln": "model.vision_tower.pre_layrnorm",
            "mm.0": "model.multi_modal_projector.linear_1",
            "mm.2": "model.multi_modal_projector.linear_2",
        },
        texts="model.language_model.",
        text_type="llama",
        token="<image>",
        configs=_llava,
        spare="<unk>",
    ),
}
