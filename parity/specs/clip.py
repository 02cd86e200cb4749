"""CLIP, SigLIP and SigLIP 2 checkpoints: an encoder of texts and one of images, together and each alone."""

from __future__ import annotations

from functools import partial
from typing import Any

from .common import Spec, labels

_LAYERS = {"num_hidden_layers": 12, "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5, "attention_dropout": 0.0}
_TEXT = {**_LAYERS, "vocab_size": 49408, "hidden_size": 512, "intermediate_size": 2048, "num_attention_heads": 8}
_TEXT |= {"max_position_embeddings": 77, "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1}
_VISION = {**_LAYERS, "hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12}
_VISION |= {"image_size": 224, "patch_size": 32, "num_channels": 3}
_TINY = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 72}
_TINY_TEXT = {**_TINY, "vocab_size": 900, "max_position_embeddings": 40}
_TINY_VISION = {**_TINY, "hidden_size": 40, "image_size": 24, "patch_size": 8}
_IMAGES = {"feature_extractor_type": "CLIPFeatureExtractor", "do_resize": True, "size": 224, "resample": 3}
_IMAGES |= {"do_center_crop": True, "crop_size": 224, "do_normalize": True}
_IMAGES |= {"image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]}

_SIGLIP = {"hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-6, "hidden_size": 768, "intermediate_size": 3072}
_SIGLIP |= {"num_attention_heads": 12}
_SIGLIP_TEXT = {**_TEXT, **_SIGLIP, "vocab_size": 32000, "max_position_embeddings": 64}
_SIGLIP_VISION = {**_VISION, **_SIGLIP, "patch_size": 16}
_SIGLIP_IMAGES = {"image_processor_type": "SiglipImageProcessor", "do_resize": True, "do_rescale": True}
_SIGLIP_IMAGES |= {"size": {"height": 224, "width": 224}, "resample": 3, "rescale_factor": 0.00392156862745098}
_SIGLIP_IMAGES |= {"do_normalize": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}


def _two_towers(
    like: str, architecture: str, text: dict[str, Any], vision: dict[str, Any], same: bool = False, **more: Any
) -> Spec:
    """same: the vectors of both sides are as wide as their states, which then have one width."""
    outer: dict[str, Any] = {} if same else {"projection_dim": 512, "logit_scale_init_value": 2.6592}
    small = {} if same else {"projection_dim": 32}
    width = {"hidden_size": 48} if same else {}
    tiny = {
        "text_config": {**text, **_TINY_TEXT},
        "vision_config": {**vision, **_TINY_VISION, **width},
        **small,
    }
    return Spec(
        like=like,
        model_type="siglip" if same else "clip",
        architecture=architecture,
        config={**outer, "text_config": text, "vision_config": vision, **more.pop("outer", {})},
        tiny={**tiny, **more.pop("small", {})},
        **{"processor": _SIGLIP_IMAGES if same else _IMAGES, "tokenizer": "wordpiece, json", **more},
    )


_clip = partial(_two_towers, text=_TEXT, vision=_VISION)
_siglip = partial(_two_towers, text=_SIGLIP_TEXT, vision=_SIGLIP_VISION, same=True)
_SEVEN: dict[str, Any] = {"outer": labels(count=1000), "small": labels(count=7)}


def _one_tower(architecture: str, config: dict[str, Any], **more: Any) -> Spec:
    kind = "siglip" if architecture.startswith("Siglip") else "clip"
    side = "text" if "Text" in architecture else "vision"
    sources = {
        "text": {"tokenizer": "wordpiece, json"},
        "vision": {"processor": _IMAGES if kind == "clip" else _SIGLIP_IMAGES},
    }
    return Spec(
        like="save_pretrained",
        model_type=f"{kind}_{side}_model",
        architecture=architecture,
        config={"projection_dim": 512, **config} if kind == "clip" else config,
        tiny=(_TINY_TEXT if side == "text" else _TINY_VISION) | ({"projection_dim": 32} if kind == "clip" else {}),
        **{**sources[side], **more},
    )


SPECS: dict[str, Spec] = {
    "clip-vit-base-patch32": _clip("openai/clip-vit-base-patch32", "CLIPModel", full=True),
    "clip-end": _clip("save_pretrained", "CLIPModel", text={**_TEXT, "eos_token_id": 4}, format="sharded"),
    "clip-classifier": _clip(
        "save_pretrained", "CLIPForImageClassification", **_SEVEN, inert=(*Spec.inert, "post_layernorm")
    ),
    "clip-text": _one_tower("CLIPTextModel", {**_TEXT, "eos_token_id": 4}),
    "clip-text-projection": _one_tower("CLIPTextModelWithProjection", {**_TEXT, "eos_token_id": 4}),
    "clip-vision": _one_tower("CLIPVisionModel", _VISION),
    "clip-vision-projection": _one_tower("CLIPVisionModelWithProjection", _VISION, dtype="F16"),
    "siglip-base-patch16-224": _siglip("google/siglip-base-patch16-224", "SiglipModel", full=True),
    "siglip-classifier": _siglip(
        "save_pretrained",
        "SiglipForImageClassification",
        vision={**_SIGLIP_VISION, "vision_use_head": False},
        **_SEVEN,
    ),
    "siglip-text": _one_tower("SiglipTextModel", {**_SIGLIP_TEXT, "projection_size": 20}),
    "siglip-vision": _one_tower("SiglipVisionModel", {**_SIGLIP_VISION, "vision_use_head": False}),
}
