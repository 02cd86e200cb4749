"""Conditional DETR: the Hub's checkpoints have timm's names for the backbone, those of transformers 4 for the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from . import detr
from .common import Loaded
from .table import _FIRST, _GAINS, load_reference

_SIDES = {"self_attn": "sa", "encoder_attn": "ca"}
_PROJECTION = re.compile(r"(decoder\.layers\.\d+\.)(self_attn|encoder_attn)\.(q_pos_sine|[qk]_content|[qk]_pos|v)_proj")


@dataclass(frozen=True, kw_only=True)
class ConditionalSpec(detr.DetrSpec):
    not_compared: ClassVar[tuple[str, ...]] = ("reference_points",)  # no input changes them

    @staticmethod
    def load_reference(model_class: Any, folder: Path, config: Mapping[str, Any], dtype: Any) -> Loaded:
        import transformers

        return load_reference(model_class, transformers.ConditionalDetrConfig, folder, config, dtype, file_name)


def file_name(name: str) -> str:
    """The name in the files of a tensor in the memory of transformers 5."""

    def short_name(found: re.Match[str]) -> str:
        return f"{found[1]}{_SIDES[found[2]]}_{found[3].replace('_', '', 1)}_proj"

    return detr.file_name(_PROJECTION.sub(short_name, name))


_LOSSES = {"class_cost": 2, "cls_loss_coefficient": 2, "focal_alpha": 0.25, "bbox_cost": 5, "giou_cost": 2}
_FULL_CONFIG = {**detr._DETR, **_LOSSES, "num_queries": 300}
_SHARP_GAINS = {**_GAINS, "content_proj": 1.7, "bbox_predictor.layers.2": 4}


def _conditional(
    like: str, config: Mapping[str, Any], tiny: Mapping[str, Any], head: str = "ForObjectDetection", **more: Any
) -> ConditionalSpec:
    return ConditionalSpec(
        like=like,
        model_type="conditional_detr",
        architecture=f"ConditionalDetr{head}",
        config={**_FULL_CONFIG, **config},
        tiny=tiny,
        processor={**_FIRST, "feature_extractor_type": "ConditionalDetrFeatureExtractor", "max_size": 1333},
        gains=_SHARP_GAINS,
        **more,
    )


SPECS: dict[str, ConditionalSpec] = {
    "conditional-detr-resnet-50": _conditional(
        "microsoft/conditional-detr-resnet-50", {"backbone": "resnet50"}, detr._SMALL, timm=True, full=True
    ),
    "conditional-detr-own-net": _conditional("save_pretrained", detr._OWN_NET, detr._SMALL_OWN),
    "conditional-detr-learned-positions": _conditional(
        "save_pretrained", {**detr._OWN_NET, "position_embedding_type": "learned"}, detr._SMALL_OWN, "Model"
    ),
}
