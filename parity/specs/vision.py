"""ViT, DeiT, BEiT and DiT checkpoints."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .common import Spec, labels, pair
from .text import BASE
from .text import TINY as TINY_BASE


@dataclass(frozen=True, kw_only=True)
class VisionSpec(Spec):
    """index: whether the file has the indices of its relative positions, as old ones do."""

    index: bool = False

    def unread_tensors(self, config: Mapping[str, Any], names: Collection[str]) -> Iterator[tuple[str, np.ndarray]]:
        yield from super().unread_tensors(config, names)
        if not self.index:
            return
        (height, width), patch = pair(config["image_size"]), config["patch_size"]
        index, name = _relative_index(height // patch, width // patch), "relative_position_bias.relative_position_index"
        if config["use_shared_relative_position_bias"]:
            yield f"{self.prefix}encoder.{name}", index
        else:
            for i in range(config["num_hidden_layers"]):
                yield f"{self.prefix}encoder.layer.{i}.attention.attention.{name}", index


def _relative_index(h: int, w: int) -> np.ndarray:
    """(h w + 1, h w + 1): for each pair of patches the row of the bias table; the last three are the class token's."""
    y, x = (axis.ravel() for axis in np.mgrid[:h, :w])
    down, right = y[:, None] - y + h - 1, x[:, None] - x + w - 1
    rows = (2 * h - 1) * (2 * w - 1)
    index = np.full((h * w + 1, h * w + 1), rows + 1)
    index[1:, 1:] = down * (2 * w - 1) + right
    index[0] = rows
    index[0, 0] = rows + 2
    return index


_COMMON = {**BASE, "hidden_act": "gelu", "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
_COMMON |= {"initializer_range": 0.02, "layer_norm_eps": 1e-12, "image_size": 224, "patch_size": 16}
_COMMON |= {"num_channels": 3, "transformers_version": "4.30.0"}
VIT = {**_COMMON, "qkv_bias": True, "encoder_stride": 16}
BEIT = {**_COMMON, "vocab_size": 8192, "use_mask_token": False, "use_absolute_position_embeddings": False}
BEIT |= {"use_relative_position_bias": False, "use_shared_relative_position_bias": False, "drop_path_rate": 0.1}
BEIT |= {"layer_scale_init_value": 0.1, "use_mean_pooling": True, "out_indices": [3, 5, 7, 11]}
BEIT |= {"pool_scales": [1, 2, 3, 6], "use_auxiliary_head": True, "auxiliary_loss_weight": 0.4}
BEIT |= {"auxiliary_channels": 256, "auxiliary_num_convs": 1, "auxiliary_concat_input": False}
BEIT |= {"semantic_loss_ignore_index": 255}
TINY = {**TINY_BASE, "image_size": 48, "patch_size": 8}

_HALVES = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "do_resize": True, "do_normalize": True}
_IMAGENET = {**_HALVES, "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
_RESCALE = {**_HALVES, "do_rescale": True, "rescale_factor": 0.00392156862745098, "resample": 2}
_VIT_NOW = {**_RESCALE, "image_processor_type": "ViTImageProcessor", "size": {"height": 224, "width": 224}}
_DINO = {**_IMAGENET, "feature_extractor_type": "ViTFeatureExtractor", "size": 224, "resample": 3}
_CENTER_CROP = {"do_center_crop": True, "crop_size": 224}
_DEIT = {**_IMAGENET, **_CENTER_CROP, "feature_extractor_type": "DeiTFeatureExtractor", "size": 256, "resample": 3}
_BEIT = {**_HALVES, **_CENTER_CROP, "feature_extractor_type": "BeitFeatureExtractor", "size": 224, "resample": 2}
_BEIT |= {"do_center_crop": False, "reduce_labels": False}
_ADE = {**_BEIT, "size": 640, "crop_size": 640, "reduce_labels": True}


def _vision(
    like: str,
    head: str,
    config: Mapping[str, Any] | None = None,
    tiny: Mapping[str, Any] | None = None,
    *,
    prefix: str,
    base: Mapping[str, Any],
    **options: Any,
) -> VisionSpec:
    """config, tiny: changes of `base` and of TINY."""
    absent = () if head == "ForMaskedImageModeling" else ("mask_token",)
    small = {**TINY, **({"out_indices": [0, 1, 2, 3]} if "out_indices" in base else {}), **(tiny or {})}
    full = {**base, **(config or {})}
    return VisionSpec(like=like, architecture=prefix + head, absent=absent, config=full, tiny=small, **options)


_vit = partial(_vision, model_type="vit", prefix="ViT", base=VIT, processor={**_HALVES, "size": 224})
_deit = partial(_vision, model_type="deit", prefix="DeiT", base=VIT, processor=_DEIT)
_beit = partial(_vision, model_type="beit", prefix="Beit", base=BEIT, processor=_BEIT)

_RELATIVE_BIAS = {"use_relative_position_bias": True}
_ABSOLUTE_POSITIONS = {"use_absolute_position_embeddings": True, "use_mask_token": True}
_SHARED_BIAS = {"use_shared_relative_position_bias": True, "use_mask_token": True}
_FIRST_TOKEN = {"use_mean_pooling": False, "layer_scale_init_value": 0.0, "use_absolute_position_embeddings": True}
_SMALL = {"hidden_size": 384, "num_attention_heads": 6, "intermediate_size": 1536, "patch_size": 8}
_SEVEN, _THOUSAND = labels(count=7), labels(count=1000)

SPECS: dict[str, VisionSpec] = {
    "vit-base-patch16-224": _vit(
        "google/vit-base-patch16-224", "ForImageClassification", _THOUSAND, _SEVEN, processor=_VIT_NOW, full=True
    ),
    "vit-base-patch16-224-in21k": _vit("google/vit-base-patch16-224-in21k", "Model", pooler=True, format="bin"),
    "dino-vits8": _vit("facebook/dino-vits8", "Model", _SMALL, {"patch_size": 4}, processor=_DINO, format="stream"),
    "vit-mim": _vit("save_pretrained", "ForMaskedImageModeling", tiny={"encoder_stride": 8}),
    "vit-oblong": _vit(
        "save_pretrained",
        "Model",
        {"image_size": [160, 288], "qkv_bias": False, "hidden_act": "gelu_new"},
        {"image_size": [32, 56]},
        processor={**_VIT_NOW, "size": {"height": 160, "width": 288}},
        dtype="F16",
    ),
    "vit-outliers": _vit("save_pretrained", "ForImageClassification", _SEVEN, massive=1),
    "deit-base-patch16-224": _vit(
        "facebook/deit-base-patch16-224", "ForImageClassification", _THOUSAND, _SEVEN, processor=_DEIT, format="bin"
    ),
    "deit-base-distilled-patch16-224": _deit(
        "facebook/deit-base-distilled-patch16-224", "ForImageClassificationWithTeacher", _THOUSAND, _SEVEN, full=True
    ),
    "deit-bare": _deit("save_pretrained", "Model", pooler=True),
    "deit-classifier": _deit("save_pretrained", "ForImageClassification", _SEVEN),
    "deit-mim": _deit("save_pretrained", "ForMaskedImageModeling", tiny={"encoder_stride": 8}, format="sharded"),
    "beit-base-patch16-224": _beit(
        "microsoft/beit-base-patch16-224",
        "ForImageClassification",
        {**_RELATIVE_BIAS, **_THOUSAND},
        _SEVEN,
        pooler=True,
        index=True,
    ),
    "beit-base-patch16-224-pt22k": _beit(
        "microsoft/beit-base-patch16-224-pt22k",
        "ForMaskedImageModeling",
        _SHARED_BIAS,
        {"vocab_size": 60},
        index=True,
        format="bin",
    ),
    "beit-cls-token": _beit("save_pretrained", "Model", {**_RELATIVE_BIAS, **_FIRST_TOKEN}, dtype="BF16"),
    "beit-pyramid": _beit(
        "save_pretrained",
        "Backbone",
        {**_RELATIVE_BIAS, "add_fpn": True, "reshape_hidden_states": True},
        {"num_hidden_layers": 4, "out_indices": [0, 2, 3, 4]},
    ),
    "beit-base-finetuned-ade-640-640": _beit(
        "microsoft/beit-base-finetuned-ade-640-640",
        "ForSemanticSegmentation",
        {**_RELATIVE_BIAS, **labels(count=150), "image_size": 640},
        {**labels(count=6), "num_hidden_layers": 4, "image_size": 64, "out_indices": [1, 2, 3, 4]},
        processor=_ADE,
        inert=(r"^auxiliary_head\.",),  # of training alone
        index=True,
        full=True,
    ),
    "dit-base": _beit("microsoft/dit-base", "ForMaskedImageModeling", _ABSOLUTE_POSITIONS, {"vocab_size": 60}),
    "dit-base-finetuned-rvlcdip": _beit(
        "microsoft/dit-base-finetuned-rvlcdip",
        "ForImageClassification",
        {"use_absolute_position_embeddings": True, **labels(count=16)},
        pooler=True,
    ),
}
