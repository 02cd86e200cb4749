"""Images: ViT, DeiT, BEiT and DiT checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .common import Shapes, Size, Spec, classifier, dense, labels, no_head, norm


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


def body(c: Mapping[str, Any], pooler: bool) -> Shapes:
    D, F, p = c["hidden_size"], c["intermediate_size"], c["patch_size"]
    h, w = grid_of(c)
    is_beit = c["model_type"] == "beit"
    special = ["cls_token"] + ["distillation_token"] * (c["model_type"] == "deit")
    for name in special + ["mask_token"] * _has_mask_token(c):
        yield f"embeddings.{name}", (1, 1, D)
    if not is_beit or c["use_absolute_position_embeddings"]:
        yield "embeddings.position_embeddings", (1, h * w + len(special), D)
    yield "embeddings.patch_embeddings.projection.weight", (D, c["num_channels"], p, p)
    yield "embeddings.patch_embeddings.projection.bias", (D,)
    table = "relative_position_bias.relative_position_bias_table"
    distances = (2 * h - 1) * (2 * w - 1) + 3, c["num_attention_heads"]
    if is_beit and c["use_shared_relative_position_bias"]:
        yield f"encoder.{table}", distances
    for i in range(c["num_hidden_layers"]):
        layer = f"encoder.layer.{i}"
        for part in ("query", "key", "value"):
            yield f"{layer}.attention.attention.{part}.weight", (D, D)
            if part != "key" if is_beit else c["qkv_bias"]:
                yield f"{layer}.attention.attention.{part}.bias", (D,)
        yield from dense(f"{layer}.attention.output.dense", D, D)
        yield from norm(f"{layer}.layernorm_before", D)
        yield from norm(f"{layer}.layernorm_after", D)
        yield from dense(f"{layer}.intermediate.dense", F, D)
        yield from dense(f"{layer}.output.dense", D, F)
        if is_beit and c["use_relative_position_bias"]:
            yield f"{layer}.attention.attention.{table}", distances
        if is_beit and c["layer_scale_init_value"] > 0:
            yield f"{layer}.lambda_1", (D,)
            yield f"{layer}.lambda_2", (D,)
    own_norm = c["architectures"][0] == "BeitForMaskedImageModeling"  # a head's, which stands for the body's
    if not (is_beit and c["use_mean_pooling"]) and not own_norm:
        yield from norm("layernorm", D)
    if pooler:
        yield from norm("pooler.layernorm", D) if is_beit else dense("pooler.dense", D, D)


def _has_mask_token(c: Mapping[str, Any]) -> bool:
    return c.get("use_mask_token", c["architectures"][0].endswith("ForMaskedImageModeling"))


def _teacher(c: Mapping[str, Any]) -> Shapes:
    yield from dense("cls_classifier", len(c["id2label"]), c["hidden_size"])
    yield from dense("distillation_classifier", len(c["id2label"]), c["hidden_size"])


def _pixels(c: Mapping[str, Any]) -> Shapes:
    count = c["encoder_stride"] ** 2 * c["num_channels"]
    yield "decoder.0.weight", (count, c["hidden_size"], 1, 1)
    yield "decoder.0.bias", (count,)


def _visual_tokens(c: Mapping[str, Any]) -> Shapes:
    yield from norm("layernorm", c["hidden_size"])
    yield from dense("lm_head", c["vocab_size"], c["hidden_size"])


def _batch_norm(name: str, size: int) -> Shapes:
    for part in ("weight", "bias", "running_mean", "running_var"):
        yield f"{name}.{part}", (size,)


def _pyramid(c: Mapping[str, Any]) -> Shapes:
    D = c["hidden_size"]
    for name in ("fpn1.0", "fpn1.3", "fpn2.0"):
        yield f"{name}.weight", (D, D, 2, 2)
        yield f"{name}.bias", (D,)
    yield from _batch_norm("fpn1.1", D)


def _segmentation(c: Mapping[str, Any]) -> Shapes:
    D, E, L = c["hidden_size"], c["auxiliary_channels"], len(c["id2label"])
    yield from _pyramid(c)
    scales = range(len(c["pool_scales"]))
    blocks = [(f"decode_head.psp_modules.{i}.1", D, D, 1) for i in scales]
    blocks.append(("decode_head.bottleneck", D, D + len(scales) * D, 3))
    for i in range(3):
        blocks += [(f"decode_head.lateral_convs.{i}", D, D, 1), (f"decode_head.fpn_convs.{i}", D, D, 3)]
    blocks += [("decode_head.fpn_bottleneck", D, 4 * D, 3), ("auxiliary_head.convs.0", E, D, 3)]
    for name, d_out, d_in, kernel in blocks:
        yield f"{name}.conv.weight", (d_out, d_in, kernel, kernel)
        yield from _batch_norm(f"{name}.bn", d_out)
    for name, width in (("decode_head.classifier", D), ("auxiliary_head.classifier", E)):
        yield f"{name}.weight", (L, width, 1, 1)
        yield f"{name}.bias", (L,)


def _vision(like: str, cls: str, head: Any, **more: Any) -> VisionSpec:
    kind = cls[:4].lower().removesuffix("f").removesuffix("m")  # ViTModel, ViTFor..., DeiT..., Beit...
    bare = head is no_head or cls.endswith("Backbone")
    processor = {"vit": _VIT_IMAGES, "deit": _DEIT_IMAGES, "beit": _BEIT_IMAGES}[kind]
    return VisionSpec(like, kind, cls, head, **{"prefix": "" if bare else f"{kind}.", "processor": processor, **more})


_RELATIVE = {"use_relative_position_bias": True}
_ABSOLUTE = {"use_absolute_position_embeddings": True}
_SHARED = {"use_shared_relative_position_bias": True, "use_mask_token": True}
_SEVEN, _THOUSAND = labels(7), labels(1000)

SPECS: dict[str, VisionSpec] = {
    "vit-base-patch16-224": _vision(
        "google/vit-base-patch16-224",
        "ViTForImageClassification",
        classifier,
        processor=_VIT_IMAGES_NOW,
        config=_THOUSAND,
        small=_SEVEN,
    ),
    "vit-base-patch16-224-in21k": _vision(
        "google/vit-base-patch16-224-in21k", "ViTModel", no_head, pooler=True, format="bin"
    ),
    "dino-vits8": _vision(
        "facebook/dino-vits8",
        "ViTModel",
        no_head,
        processor={**_IMAGENET, "feature_extractor_type": "ViTFeatureExtractor", "size": 224, "resample": 3},
        config={"hidden_size": 384, "num_attention_heads": 6, "intermediate_size": 1536, "patch_size": 8},
        small={"patch_size": 4},
        format="stream",
    ),
    "vit-mim": _vision("save_pretrained", "ViTForMaskedImageModeling", _pixels, small={"encoder_stride": 8}),
    "vit-oblong": _vision(
        "save_pretrained",
        "ViTModel",
        no_head,
        processor={**_VIT_IMAGES_NOW, "size": {"height": 160, "width": 288}},
        config={"image_size": [160, 288], "qkv_bias": False, "hidden_act": "gelu_new"},
        small={"image_size": [32, 56]},
        dtype="F16",
    ),
    "deit-base-patch16-224": _vision(
        "facebook/deit-base-patch16-224",
        "ViTForImageClassification",
        classifier,
        processor=_DEIT_IMAGES,
        config=_THOUSAND,
        small=_SEVEN,
        format="bin",
    ),
    "deit-base-distilled-patch16-224": _vision(
        "facebook/deit-base-distilled-patch16-224",
        "DeiTForImageClassificationWithTeacher",
        _teacher,
        config=_THOUSAND,
        small=_SEVEN,
    ),
    "deit-bare": _vision("save_pretrained", "DeiTModel", no_head, pooler=True),
    "deit-classifier": _vision("save_pretrained", "DeiTForImageClassification", classifier, config=_SEVEN),
    "deit-mim": _vision(
        "save_pretrained", "DeiTForMaskedImageModeling", _pixels, small={"encoder_stride": 8}, format="sharded"
    ),
    "beit-base-patch16-224": _vision(
        "microsoft/beit-base-patch16-224",
        "BeitForImageClassification",
        classifier,
        pooler=True,
        config={**_RELATIVE, **_THOUSAND},
        small=_SEVEN,
        index=True,
    ),
    "beit-base-patch16-224-pt22k": _vision(
        "microsoft/beit-base-patch16-224-pt22k",
        "BeitForMaskedImageModeling",
        _visual_tokens,
        config=_SHARED,
        small={"vocab_size": 60},
        index=True,
        format="bin",
    ),
    "beit-cls-token": _vision(
        "save_pretrained",
        "BeitModel",
        no_head,
        config={**_RELATIVE, **_ABSOLUTE, "use_mean_pooling": False, "layer_scale_init_value": 0.0},
        dtype="BF16",
    ),
    "beit-pyramid": _vision(
        "save_pretrained",
        "BeitBackbone",
        _pyramid,
        config={**_RELATIVE, "add_fpn": True, "reshape_hidden_states": True},
        small={"num_hidden_layers": 4, "out_indices": [0, 2, 3, 4]},
    ),
    "beit-base-finetuned-ade-640-640": _vision(
        "microsoft/beit-base-finetuned-ade-640-640",
        "BeitForSemanticSegmentation",
        _segmentation,
        processor=_ADE_IMAGES,
        config={**_RELATIVE, **labels(150), "image_size": 640},
        small={**labels(6), "num_hidden_layers": 4, "image_size": 64, "out_indices": [1, 2, 3, 4]},
        index=True,
    ),
    "dit-base": _vision(
        "microsoft/dit-base",
        "BeitForMaskedImageModeling",
        _visual_tokens,
        config={**_ABSOLUTE, "use_mask_token": True},
        small={"vocab_size": 60},
    ),
    "dit-base-finetuned-rvlcdip": _vision(
        "microsoft/dit-base-finetuned-rvlcdip",
        "BeitForImageClassification",
        classifier,
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
    """The names under which the file holds `relative_index`."""
    name = "relative_position_bias.relative_position_index"
    if not spec.index:
        return []
    if config["use_shared_relative_position_bias"]:
        return [f"{spec.prefix}encoder.{name}"]
    layers = range(config["num_hidden_layers"])
    return [f"{spec.prefix}encoder.layer.{i}.attention.attention.{name}" for i in layers]
