"""Mask2Former: the Hub's checkpoints have the backbone's names of transformers 4."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..modules import PREFIX
from . import swin
from .common import Loaded, Spec, labels
from .swin import index_tensors


@dataclass(frozen=True, kw_only=True)
class Mask2FormerSpec(Spec):
    """index: whether the file has the indices of its relative positions."""

    index: bool = False
    not_compared: ClassVar[tuple[str, ...]] = ("auxiliary_logits",)

    def file_name(self, name: str) -> str:
        return re.sub(r"(pixel_level_module\.encoder)\.swin\.", r"\1.", name)

    def unread_tensors(self, config: Mapping[str, Any], names: Collection[str]) -> Iterator[tuple[str, np.ndarray]]:
        yield from super().unread_tensors(config, names)
        if self.architecture.endswith("ForUniversalSegmentation"):
            weights = np.ones(len(config["id2label"]) + 1, np.float32)
            weights[-1] = config["no_object_weight"]
            yield "criterion.empty_weight", weights
        if self.index:
            window = config["backbone_config"]["window_size"]
            yield from index_tensors(window, [self.file_name(name) for name in names])

    def processor_of(self, config: Mapping[str, Any]) -> dict[str, Any]:
        edge = 96 if config["hidden_dim"] == TINY["hidden_dim"] else 384
        return {**self.processor, "size": {"height": edge, "width": edge}}

    @staticmethod
    def load_reference(model_class: Any, folder: Path, config: Mapping[str, Any], dtype: Any) -> Loaded:
        """Files have no norm after the backbone's last stage, which is not called."""
        model, info = Spec.load_reference(model_class, folder, config, dtype)
        missing = [name for name in info["missing_keys"] if ".swin.layernorm." not in name]
        return model, {**info, "missing_keys": missing}

    @staticmethod
    def from_stages(
        found: dict[str, np.ndarray], arrays: Mapping[str, np.ndarray], config: Mapping[str, Any]
    ) -> dict[str, np.ndarray]:
        """Queries come before images in the decoder's layers of transformers."""
        layers = f"{PREFIX}model.transformer_module.decoder.layers"
        return {name: x.swapaxes(0, 1) if name.startswith(layers) and x.ndim == 3 else x for name, x in found.items()}


_SWIN = {**swin.CONFIG, "model_type": "swin", "out_features": ["stage1", "stage2", "stage3", "stage4"]}
_SWIN |= {"drop_path_rate": 0.3, "out_indices": [1, 2, 3, 4]}
_TINY_SWIN = {**_SWIN, **swin.TINY, "depths": [2, 1, 1, 1], "num_heads": [2, 2, 4, 4], "embed_dim": 16}
_TINY_SWIN |= {"hidden_size": 128, "num_layers": 4}
_RESNET: dict[str, Any] = {"model_type": "resnet", "num_channels": 3, "embedding_size": 64, "hidden_act": "relu"}
_RESNET |= {"hidden_sizes": [256, 512, 1024, 2048], "depths": [3, 4, 6, 3], "layer_type": "bottleneck"}
_RESNET |= {"out_features": ["stage1", "stage2", "stage3", "stage4"]}
_TINY_RESNET = {**_RESNET, "embedding_size": 12, "hidden_sizes": [16, 24, 32, 40], "depths": [1, 2, 1, 1]}
CONFIG: dict[str, Any] = {"activation_function": "relu", "backbone": None, "backbone_config": _SWIN}
CONFIG |= {"class_weight": 2.0, "common_stride": 4, "decoder_layers": 10, "dice_weight": 5.0, "dim_feedforward": 2048}
CONFIG |= {"dropout": 0.0, "encoder_feedforward_dim": 1024, "encoder_layers": 6, "enforce_input_projection": False}
CONFIG |= {"feature_size": 256, "feature_strides": [4, 8, 16, 32], "hidden_dim": 256, "ignore_value": 255}
CONFIG |= {"importance_sample_ratio": 0.75, "init_std": 0.02, "init_xavier_std": 1.0, "mask_feature_size": 256}
CONFIG |= {"mask_weight": 5.0, "no_object_weight": 0.1, "num_attention_heads": 8, "num_hidden_layers": 10}
CONFIG |= {"num_queries": 100, "output_auxiliary_logits": None, "oversample_ratio": 3.0, "pre_norm": False}
CONFIG |= {"train_num_points": 12544, "use_auxiliary_loss": True, **labels(count=80)}
TINY: dict[str, Any] = {"feature_size": 32, "mask_feature_size": 24, "hidden_dim": 40, "num_attention_heads": 4}
TINY |= {"encoder_feedforward_dim": 48, "dim_feedforward": 56, "encoder_layers": 2, "decoder_layers": 5}
TINY |= {"num_queries": 20, "num_hidden_layers": 5, "backbone_config": _TINY_SWIN, **labels(count=6)}

_PROCESSOR = {"image_processor_type": "Mask2FormerImageProcessor", "do_resize": True, "do_rescale": True}
_PROCESSOR |= {"do_normalize": True, "ignore_index": 255, "num_labels": 80, "reduce_labels": False, "resample": 2}
_PROCESSOR |= {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225], "size_divisor": 32}
_PROCESSOR |= {"rescale_factor": 0.00392156862745098, "_max_size": 1333}
# The attention of queries is not so sharp that rounding is amplified, and there are objects to compare.  Rounding may
# move a feature into a mask or out of it, so that what attention within masks adds is small.
GAINS = {"sampling_offsets": 0.5, "sampling_offsets.bias": 20, "attention_weights": 0.5, "in_proj_weight": 0.1}
GAINS |= {"cross_attn.out_proj": 0.1, "self_attn.q_proj": 0.1, "class_predictor": 4, "mask_projection.bias": 25}


def _mask2former(
    like: str,
    config: Mapping[str, Any],
    tiny: Mapping[str, Any],
    head: str = "ForUniversalSegmentation",
    **more: Any,
) -> Mask2FormerSpec:
    return Mask2FormerSpec(
        like=like,
        model_type="mask2former",
        architecture=f"Mask2Former{head}",
        config={**CONFIG, **config},
        tiny={**TINY, **tiny},
        processor=_PROCESSOR,
        gains=GAINS,
        **more,
    )


SPECS: dict[str, Mask2FormerSpec] = {
    "mask2former-swin-tiny-coco-instance": _mask2former(
        "facebook/mask2former-swin-tiny-coco-instance", {}, {}, index=True, full=True
    ),
    "mask2former-resnet-50": _mask2former(
        "save_pretrained", {"backbone_config": _RESNET, "pre_norm": True}, {"backbone_config": _TINY_RESNET}
    ),
    "mask2former-bare": _mask2former("save_pretrained", {"common_stride": 8}, {"hidden_dim": 32}, "Model"),
}
