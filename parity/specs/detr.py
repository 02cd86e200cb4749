"""DETR: the checkpoints on the hub have timm's names for the backbone, those of transformers 4 for the layers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..pictures import page
from .common import Loaded, labels
from .table import _COMMON, _FIRST, _GAINS, _RESNET18, _RESNET50, _TINY, _TINY50, TableSpec, load_reference

if TYPE_CHECKING:
    from PIL import Image

    from zoo.images import ImageProcessor


@dataclass(frozen=True, kw_only=True)
class DetrSpec(TableSpec):
    @staticmethod
    def pictures(config: Any, processor: ImageProcessor, seed: int) -> Sequence[Image.Image]:
        return [page()]

    @staticmethod
    def load_reference(model_class: Any, folder: Path, config: Mapping[str, Any], dtype: Any) -> Loaded:
        import transformers

        return load_reference(model_class, transformers.DetrConfig, folder, config, dtype, file_name)


def file_name(name: str) -> str:
    """The name in the files of a tensor in the memory of transformers 5."""
    name = name.replace("backbone.model.", "backbone.conv_encoder.model.").replace("_attn.o_proj.", "_attn.out_proj.")
    name = re.sub(r"(?<!backbone\.)position_embedding\.", "backbone.position_embedding.", name)
    for part, own in _MASK_HEAD.items():
        name = name.replace(part, own)
    return name.replace(".mlp.fc", ".fc")


# Parts of the names in memory that files have as in facebook's first code.
_BLOCKS = ("conv1", "conv2", *(f"fpn_stages.{i}.refine" for i in range(3)))
_MASK_HEAD = {f"mask_head.{name}.conv": f"mask_head.lay{i}" for i, name in enumerate(_BLOCKS, 1)}
_MASK_HEAD |= {f"mask_head.{name}.norm": f"mask_head.gn{i}" for i, name in enumerate(_BLOCKS, 1)}
_MASK_HEAD |= {f"mask_head.fpn_stages.{i}.fpn_adapter": f"mask_head.adapter{i + 1}" for i in range(3)}
_MASK_HEAD |= {"mask_head.output_conv": "mask_head.out_lay", "bbox_attention.q_proj": "bbox_attention.q_linear"}
_MASK_HEAD |= {"bbox_attention.k_proj": "bbox_attention.k_linear"}

# 91 numbers, 11 of which COCO has no name for.
_COCO = {**labels(*("N/A" if i % 8 == 0 else f"thing {i}" for i in range(91))), "num_queries": 100}
_DETR = {**_COMMON, **_COCO, "eos_coefficient": 0.1, "classifier_dropout": 0.0, "dilation": False}
_OWN_NET = {"use_timm_backbone": False, "backbone": None, "backbone_config": {**_RESNET18, **_RESNET50}}
_SMALL = {**_TINY, **labels(*("N/A" if i % 8 == 0 else f"thing {i}" for i in range(11))), "num_queries": 25}
_EIGHTS = {"d_model": 64, "encoder_attention_heads": 8}  # the norms of a mask have up to eight groups of channels
_SHARP_GAINS = {**_GAINS, "out_lay": 2, "class_labels_classifier": 6}  # for masks to compare
_SMALL_OWN = {**_SMALL, "backbone_config": {**_RESNET18, **_RESNET50, **_TINY50}}


def _detr(
    like: str, config: Mapping[str, Any], tiny: Mapping[str, Any], head: str = "ForObjectDetection", **more: Any
) -> DetrSpec:
    return DetrSpec(
        like=like,
        model_type="detr",
        architecture=f"Detr{head}",
        config={**_DETR, **config},
        tiny=tiny,
        processor={**_FIRST, "max_size": 1333},
        **{"gains": _GAINS, **more},
    )


SPECS: dict[str, DetrSpec] = {
    "detr-resnet-50": _detr("facebook/detr-resnet-50, revision no_timm", _OWN_NET, _SMALL_OWN),
    "detr-resnet-50-timm": _detr("facebook/detr-resnet-50", {"backbone": "resnet50"}, _SMALL, timm=True, full=True),
    "detr-learned-positions": _detr("save_pretrained", {**_OWN_NET, "position_embedding_type": "learned"}, _SMALL_OWN),
    "detr-resnet-50-panoptic": _detr(
        "facebook/detr-resnet-50-panoptic",
        {"backbone": "resnet50"},
        _SMALL | _EIGHTS,
        "ForSegmentation",
        timm=True,
        format="bin",
        gains=_SHARP_GAINS,
    ),
    "detr-segmentation": _detr(
        "save_pretrained", _OWN_NET, _SMALL_OWN | _EIGHTS, "ForSegmentation", gains=_SHARP_GAINS
    ),
    "detr-bare": _detr("save_pretrained", _OWN_NET, _SMALL_OWN, "Model"),
}
