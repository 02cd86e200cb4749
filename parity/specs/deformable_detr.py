"""Deformable DETR: the Hub's checkpoints have timm's names for the backbone, those of transformers 4 for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from . import detr
from .common import Loaded
from .table import _FIRST, load_reference


@dataclass(frozen=True, kw_only=True)
class DeformableSpec(detr.DetrSpec):
    not_compared: ClassVar[tuple[str, ...]] = (
        *("init_reference_points", "intermediate_hidden_states", "intermediate_reference_points"),
        *("enc_outputs_class", "enc_outputs_coord_logits"),
    )

    @staticmethod
    def seen_features(config: Any, pixel_mask: np.ndarray) -> np.ndarray:
        """Those that are no padding: the sines of a row or column of padding alone are of millions of radians, and are
        what float32 rounds them to.
        """
        (Y, X), outputs, parts = pixel_mask.shape[1:], config.resnet.outputs, []
        for i in range(config.num_feature_levels):
            halved = outputs[i] if i < len(outputs) else outputs[-1] + 1 + i - len(outputs)
            stride = 2 ** (halved + 1 + config.resnet.downsample_in_first_stage)
            rows, columns = (np.arange(-(-n // stride)) * n // -(-n // stride) for n in (Y, X))
            parts.append(pixel_mask[:, rows][:, :, columns].reshape(len(pixel_mask), -1) > 0)
        return np.concatenate(parts, 1)

    @staticmethod
    def load_reference(model_class: Any, folder: Path, config: Mapping[str, Any], dtype: Any) -> Loaded:
        import transformers

        config_class = transformers.DeformableDetrConfig
        return load_reference(model_class, config_class, folder, config, dtype, detr.file_name, several=True)


_CONFIG: dict[str, Any] = {**detr._DETR, "num_queries": 300, "encoder_ffn_dim": 1024, "decoder_ffn_dim": 1024}
_CONFIG |= {"num_feature_levels": 4, "encoder_n_points": 4, "decoder_n_points": 4, "return_intermediate": True}
_CONFIG |= {"two_stage": False, "two_stage_num_proposals": 300, "with_box_refine": False, "class_cost": 1}
_CONFIG |= {"bbox_cost": 5, "giou_cost": 2, "focal_alpha": 0.25, "mask_loss_coefficient": 1, "dice_loss_coefficient": 1}
for _name in ("num_hidden_layers", "scale_embedding", "classifier_dropout"):
    _CONFIG.pop(_name)
_TINY: dict[str, Any] = {**detr._SMALL, "d_model": 64, "encoder_n_points": 2, "decoder_n_points": 3}
_TINY |= {"two_stage_num_proposals": 25}
_TINY.pop("num_hidden_layers")
_OWN_NET: dict[str, Any] = {"use_timm_backbone": False, "backbone": None}
_STAGES = {"out_features": ["stage2", "stage3", "stage4"]}
_NET = {**detr._RESNET18, **detr._RESNET50, **_STAGES}
_SMALL_NET = {**_NET, **detr._TINY50}
# Queries differ, the points of attention are some way apart, and there are objects to compare.
_GAINS = {"q_proj": 1.7, "k_proj": 1.7, "sampling_offsets": 2, "sampling_offsets.bias": 40, "attention_weights": 2}
_GAINS |= {f"class_embed.{i}": 3 for i in range(7)} | {"reference_points": 2}


def _deformable(
    like: str, config: Mapping[str, Any], tiny: Mapping[str, Any], head: str = "ForObjectDetection", **more: Any
) -> DeformableSpec:
    return DeformableSpec(
        like=like,
        model_type="deformable_detr",
        architecture=f"DeformableDetr{head}",
        config={**_CONFIG, **config},
        tiny={**_TINY, **tiny},
        processor={**_FIRST, "feature_extractor_type": "DeformableDetrFeatureExtractor", "max_size": 1333},
        gains=_GAINS,
        inert=(r"\.(key|k|k_proj|k_lin)\.bias$", r"decoder\.class_embed\.[01]\."),  # of training alone
        **more,
    )


_REFINEMENT = {"with_box_refine": True}
_TWO_STAGES = {**_REFINEMENT, "two_stage": True}
_ONE_LEVEL = {"num_feature_levels": 1, "backbone_config": {**_NET, "out_features": ["stage4"]}}
SPECS: dict[str, DeformableSpec] = {
    "deformable-detr": _deformable("SenseTime/deformable-detr", {"backbone": "resnet50"}, {}, timm=True, full=True),
    "deformable-detr-with-box-refine": _deformable(
        "SenseTime/deformable-detr-with-box-refine",
        {"backbone": "resnet50", **_REFINEMENT},
        {},
        timm=True,
        format="bin",
    ),
    "deformable-detr-with-box-refine-two-stage": _deformable(
        "SenseTime/deformable-detr-with-box-refine-two-stage", {"backbone": "resnet50", **_TWO_STAGES}, {}, timm=True
    ),
    "deformable-detr-own-net": _deformable(
        "save_pretrained", {**_OWN_NET, "backbone_config": _NET}, {"backbone_config": _SMALL_NET}
    ),
    "deformable-detr-single-scale": _deformable(
        "SenseTime/deformable-detr-single-scale, with transformers' backbone",
        {**_OWN_NET, **_ONE_LEVEL},
        {"backbone_config": {**_SMALL_NET, "out_features": ["stage4"]}},
    ),
    "deformable-detr-learned-positions": _deformable(
        "save_pretrained",
        {**_OWN_NET, "backbone_config": _NET, "position_embedding_type": "learned", **_REFINEMENT},
        {"backbone_config": _SMALL_NET},
        "Model",
    ),
}
