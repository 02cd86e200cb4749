"""PP-DocLayout: RT-DETR over an HGNetV2, for the regions of a page."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .common import Spec, labels
from .pp_ocr import TINY_HGNET
from .rt_detr import CONFIG as RT_DETR
from .rt_detr import GAINS, TINY, RTDetrSpec

TINY_EDGE = 128


@dataclass(frozen=True, kw_only=True)
class LayoutSpec(RTDetrSpec):
    not_compared: ClassVar[tuple[str, ...]] = (
        *RTDetrSpec.not_compared,
        *("initial_reference_points", "intermediate_predicted_corners"),
    )

    def unread_tensors(self, config: Mapping[str, Any], names: Collection[str]) -> Iterator[tuple[str, np.ndarray]]:
        for name, array in Spec.unread_tensors(self, config, names):
            if ".backbone." not in name:  # whose norms are fixed and have no counter
                yield name, array

    def processor_of(self, config: Mapping[str, Any]) -> dict[str, Any]:
        edge = TINY_EDGE if config["d_model"] == TINY["d_model"] else 800
        return {**self.processor, "size": {"height": edge, "width": edge}}


_REGIONS = ("abstract", "algorithm", "aside_text", "chart", "content", "display_formula", "doc_title", "figure_title")
_REGIONS += ("footer", "footer_image", "footnote", "formula_number", "header", "header_image", "image")
_REGIONS += ("inline_formula", "number", "paragraph_title", "reference", "reference_content", "seal", "table", "text")
LABELS = labels(*_REGIONS, "vertical_text", "vision_footnote")

_UNREAD_FIELDS = ("auxiliary_loss", "backbone", "backbone_kwargs", "eos_coefficient", "use_pretrained_backbone")
_UNREAD_FIELDS += ("use_timm_backbone", "with_box_refine")
_RT_DETR_FIELDS = {name: value for name, value in RT_DETR.items() if name not in _UNREAD_FIELDS}
_NET: dict[str, Any] = {"model_type": "hgnet_v2", "arch": "L", "freeze_stem_only": True, "freeze_at": 0}
_NET |= {"freeze_norm": True, "lr_mult_list": [0, 0.05, 0.05, 0.05, 0.05]}
_NET_V3 = {**_NET, "return_idx": [0, 1, 2, 3], "out_features": ["stage1", "stage2", "stage3", "stage4"]}
V3: dict[str, Any] = {**_RT_DETR_FIELDS, **LABELS, "backbone_config": _NET_V3, "x4_feat_dim": 128, "num_prototypes": 32}
V3 |= {"mask_feature_channels": [64, 64], "mask_enhanced": True, "label_noise_ratio": 0.4, "box_noise_scale": 0.4}
V3 |= {"global_pointer_head_size": 64, "gp_dropout_value": 0.1, "tie_word_embeddings": True}
_TINY = {**TINY, **labels("text", "table", "image", "doc_title", "footer", "header")}
_TINY |= {"encoder_in_channels": [24, 32, 48], "decoder_layers": 2}
TINY_V3: dict[str, Any] = {**_TINY, "backbone_config": {**_NET_V3, **TINY_HGNET}, "x4_feat_dim": 16}
TINY_V3 |= {"num_prototypes": 8, "mask_feature_channels": [12, 10], "global_pointer_head_size": 8}

_PROCESSOR = {"do_normalize": True, "do_rescale": True, "do_resize": True, "image_mean": [0, 0, 0], "resample": 3}
_PROCESSOR |= {"image_processor_type": "PPDocLayoutV3ImageProcessor", "image_std": [1, 1, 1]}
_PROCESSOR |= {"rescale_factor": 0.00392156862745098}

# The norms of an HGNetV2 and of the masks' features let little through.
_GAINS = {**GAINS, "stem1.convolution": 2, "aggregation.1.convolution": 3, "enc_bbox_head.layers.2": 3}
_GAINS |= {"decoder_global_pointer.dense": 60, "decoder_order_head.1": 3}  # beside -1e4, the others' logit


def _v3(tiny: Mapping[str, Any], **more: Any) -> LayoutSpec:
    return LayoutSpec(
        like="PaddlePaddle/PP-DocLayoutV3_safetensors",
        model_type="pp_doclayout_v3",
        architecture="PPDocLayoutV3ForObjectDetection",
        config=V3,
        tiny={**TINY_V3, **tiny},
        processor=_PROCESSOR,
        gains=_GAINS,
        inert=(*Spec.inert, r"denoising_class_embed", r"decoder_order_head\.0\."),  # of training alone
        **more,
    )


SPECS: dict[str, LayoutSpec] = {
    "pp-doclayout-v3": _v3({}, full=True),
    "pp-doclayout-v3-no-mask": _v3({"mask_enhanced": False, "hidden_expansion": 0.5}, format="sharded"),
}
