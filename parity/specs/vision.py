"""Images: ViT, DeiT, BEiT and DiT checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .common import Size, Spec, labels


@dataclass(frozen=True)
class VisionSpec(Spec):
    """processor: what preprocessor_config.json says; its sizes are those of the full size.

    small: what the config says at tiny size, besides TINY's values.
    index: whether the file holds the indices of its relative positions, as old ones do.
    """

    processor: Mapping[str, Any] = field(default_factory=dict)
    small: Mapping[str, Any] = field(default_factory=dict)
    index: bool = False


COMMON = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "initializer_range": 0.02,
    "layer_norm_eps": 1e-12,
    "image_size": 224,
    "patch_size": 16,
    "num_channels": 3,
    "transformers_version": "4.30.0",
}
_BEIT = {
    "vocab_size": 8192,
    "use_mask_token": False,
    "use_absolute_position_embeddings": False,
    "use_relative_position_bias": False,
    "use_shared_relative_position_bias": False,
    "layer_scale_init_value": 0.1,
    "drop_path_rate": 0.1,
    "use_mean_pooling": True,
    "out_indices": [3, 5, 7, 11],
    "pool_scales": [1, 2, 3, 6],
    "use_auxiliary_head": True,
    "auxiliary_loss_weight": 0.4,
    "auxiliary_channels": 256,
    "auxiliary_num_convs": 1,
    "auxiliary_concat_input": False,
    "semantic_loss_ignore_index": 255,
}
FAMILIES: dict[str, dict[str, Any]] = {
    "vit": {"qkv_bias": True, "encoder_stride": 16},
    "deit": {"qkv_bias": True, "encoder_stride": 16},
    "beit": _BEIT,
}
TINY = {
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 72,
    "image_size": 48,
    "patch_size": 8,
}

_HALF = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "do_resize": True, "do_normalize": True}
_IMAGENET = {**_HALF, "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
_VIT_IMAGES = {**_HALF, "size": 224}
_VIT_IMAGES_NOW = {
    **_HALF,
    "image_processor_type": "ViTImageProcessor",
    "do_rescale": True,
    "rescale_factor": 0.00392156862745098,
    "resample": 2,
    "size": {"height": 224, "width": 224},
}
_DEIT_IMAGES = {
    **_IMAGENET,
    "feature_extractor_type": "DeiTFeatureExtractor",
    "size": 256,
    "resample": 3,
    "do_center_crop": True,
    "crop_size": 224,
}
_BEIT_IMAGES = {
    **_HALF,
    "feature_extractor_type": "BeitFeatureExtractor",
    "size": 224,
    "resample": 2,
    "do_center_crop": False,
    "crop_size": 224,
    "reduce_labels": False,
}
_ADE_IMAGES = {**_BEIT_IMAGES, "size": 640, "crop_size": 640, "reduce_labels": True}


def grid_of(c: Mapping[str, Any]) -> tuple[int, int]:
    """How many patches an image has, from top to bottom and from left to right."""
    size = c["image_size"]
    height, width = size if isinstance(size, list) else (size, size)
    return height // c["patch_size"], width // c["patch_size"]


def _vision(like: str, cls: str, **more: Any) -> VisionSpec:
    kind = cls[:4].lower().removesuffix("f").removesuffix("m")  # ViTModel, ViTFor..., DeiT..., Beit...
    processor = {"vit": _VIT_IMAGES, "deit": _DEIT_IMAGES, "beit": _BEIT_IMAGES}[kind]
    return VisionSpec(like, kind, cls, **{"processor": processor, **more})


_RELATIVE = {"use_relative_position_bias": True}
_ABSOLUTE = {"use_absolute_position_embeddings": True}
_SHARED = {"use_shared_relative_position_bias": True, "use_mask_token": True}
_SEVEN, _THOUSAND = labels(7), labels(1000)

SPECS: dict[str, VisionSpec] = {
    "vit-base-patch16-224": _vision(
        "google/vit-base-patch16-224",
        "ViTForImageClassification",
        processor=_VIT_IMAGES_NOW,
        config=_THOUSAND,
        small=_SEVEN,
    ),
    "vit-base-patch16-224-in21k": _vision("google/vit-base-patch16-224-in21k", "ViTModel", pooler=True, format="bin"),
    "dino-vits8": _vision(
        "facebook/dino-vits8",
        "ViTModel",
        processor={**_IMAGENET, "feature_extractor_type": "ViTFeatureExtractor", "size": 224, "resample": 3},
        config={"hidden_size": 384, "num_attention_heads": 6, "intermediate_size": 1536, "patch_size": 8},
        small={"patch_size": 4},
        format="stream",
    ),
    "vit-mim": _vision("save_pretrained", "ViTForMaskedImageModeling", small={"encoder_stride": 8}),
    "vit-oblong": _vision(
        "save_pretrained",
        "ViTModel",
        processor={**_VIT_IMAGES_NOW, "size": {"height": 160, "width": 288}},
        config={"image_size": [160, 288], "qkv_bias": False, "hidden_act": "gelu_new"},
        small={"image_size": [32, 56]},
        dtype="F16",
    ),
    "vit-outliers": _vision("save_pretrained", "ViTForImageClassification", config=_SEVEN, massive=1),
    "deit-base-patch16-224": _vision(
        "facebook/deit-base-patch16-224",
        "ViTForImageClassification",
        processor=_DEIT_IMAGES,
        config=_THOUSAND,
        small=_SEVEN,
        format="bin",
    ),
    "deit-base-distilled-patch16-224": _vision(
        "facebook/deit-base-distilled-patch16-224",
        "DeiTForImageClassificationWithTeacher",
        config=_THOUSAND,
        small=_SEVEN,
    ),
    "deit-bare": _vision("save_pretrained", "DeiTModel", pooler=True),
    "deit-classifier": _vision("save_pretrained", "DeiTForImageClassification", config=_SEVEN),
    "deit-mim": _vision("save_pretrained", "DeiTForMaskedImageModeling", small={"encoder_stride": 8}, format="sharded"),
    "beit-base-patch16-224": _vision(
        "microsoft/beit-base-patch16-224",
        "BeitForImageClassification",
        pooler=True,
        config={**_RELATIVE, **_THOUSAND},
        small=_SEVEN,
        index=True,
    ),
    "beit-base-patch16-224-pt22k": _vision(
        "microsoft/beit-base-patch16-224-pt22k",
        "BeitForMaskedImageModeling",
        config=_SHARED,
        small={"vocab_size": 60},
        index=True,
        format="bin",
    ),
    "beit-cls-token": _vision(
        "save_pretrained",
        "BeitModel",
        config={**_RELATIVE, **_ABSOLUTE, "use_mean_pooling": False, "layer_scale_init_value": 0.0},
        dtype="BF16",
    ),
    "beit-pyramid": _vision(
        "save_pretrained",
        "BeitBackbone",
        config={**_RELATIVE, "add_fpn": True, "reshape_hidden_states": True},
        small={"num_hidden_layers": 4, "out_indices": [0, 2, 3, 4]},
    ),
    "beit-base-finetuned-ade-640-640": _vision(
        "microsoft/beit-base-finetuned-ade-640-640",
        "BeitForSemanticSegmentation",
        processor=_ADE_IMAGES,
        config={**_RELATIVE, **labels(150), "image_size": 640},
        small={**labels(6), "num_hidden_layers": 4, "image_size": 64, "out_indices": [1, 2, 3, 4]},
        index=True,
    ),
    "dit-base": _vision(
        "microsoft/dit-base",
        "BeitForMaskedImageModeling",
        config={**_ABSOLUTE, "use_mask_token": True},
        small={"vocab_size": 60},
    ),
    "dit-base-finetuned-rvlcdip": _vision(
        "microsoft/dit-base-finetuned-rvlcdip",
        "BeitForImageClassification",
        pooler=True,
        config={**_ABSOLUTE, **labels(16)},
    ),
}
FULL = ("vit-base-patch16-224", "deit-base-distilled-patch16-224", "beit-base-finetuned-ade-640-640")


def config_of(spec: VisionSpec, size: Size) -> dict[str, Any]:
    head = {"architectures": [spec.architecture], "model_type": spec.model_type}
    config = {**head, **COMMON, **FAMILIES[spec.model_type], **spec.config}
    if size == "full":
        return config
    if spec.model_type == "beit":
        config["out_indices"] = [0, 1, 2, 3]
    return {**config, **TINY, **spec.small}


def processor_of(spec: VisionSpec, config: Mapping[str, Any]) -> dict[str, Any]:
    """The content of preprocessor_config.json: the sizes that it has follow those of the config's images."""
    patch = config["patch_size"]
    full = {**COMMON, **spec.config}
    sizes = {key: spec.processor[key] for key in ("size", "crop_size") if key in spec.processor}
    if full["image_size"] == config["image_size"]:
        return dict(spec.processor)
    height, width = (patch * n for n in grid_of(config))
    for key, value in sizes.items():
        if isinstance(value, dict):
            sizes[key] = {"height": height, "width": width}
        else:  # DeiT's images are resized to 256, of which 224 are cut out
            sizes[key] = height * value // full["image_size"]
    return {**spec.processor, **sizes}


def indices(spec: VisionSpec, config: Mapping[str, Any]) -> list[str]:
    """The names under which the file holds `relative_index`, without the body's prefix."""
    name = "relative_position_bias.relative_position_index"
    if not spec.index:
        return []
    if config["use_shared_relative_position_bias"]:
        return [f"encoder.{name}"]
    layers = range(config["num_hidden_layers"])
    return [f"encoder.layer.{i}.attention.attention.{name}" for i in layers]
