"""PP-DocLayout: RT-DETR over an HGNetV2, for the regions of a page."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

import numpy as np

from .common import Loaded, Spec, labels
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

_ORDER: dict[str, Any] = {"has_relative_attention_bias": False, "has_spatial_attention_bias": True, "hidden_size": 512}
_ORDER |= {
    "coordinate_size": 171,
    "shape_size": 170,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "num_classes": 20,
}
_ORDER |= {"attention_probs_dropout_prob": 0.1, "intermediate_size": 2048, "layer_norm_eps": 1e-5, "vocab_size": 4}
_ORDER |= {
    "max_2d_position_embeddings": 1024,
    "max_position_embeddings": 514,
    "max_rel_2d_pos": 256,
    "max_rel_pos": 128,
}
_ORDER |= {"num_attention_heads": 8, "num_hidden_layers": 6, "rel_2d_pos_bins": 64, "rel_pos_bins": 32}
_ORDER |= {"relation_bias_embed_dim": 16, "relation_bias_theta": 10000, "relation_bias_scale": 100}
_ORDER |= {"start_token_id": 0, "pad_token_id": 1, "end_token_id": 2, "pred_token_id": 3, "type_vocab_size": 1}
_ORDER |= {"global_pointer_head_size": 64, "gp_dropout_value": 0.0, "initializer_range": 0.01}
_NET_V2 = {**_NET, "return_idx": [1, 2, 3], "out_features": ["stage2", "stage3", "stage4"]}
V2: dict[str, Any] = {**_RT_DETR_FIELDS, **LABELS, "backbone_config": _NET_V2, "reading_order_config": _ORDER}
V2 |= {"class_thresholds": [0.5] * 5 + [0.4] * 2 + [0.5] * 8 + [0.4, 0.5, 0.4, 0.5, 0.5, 0.45, 0.5, 0.4, 0.4, 0.5]}
V2 |= {"class_order": [4, 2, 14, 1, 5, 7, 8, 6, 11, 11, 9, 13, 10, 10, 1, 2, 3, 0, 2, 2, 12, 1, 2, 15, 6]}
_TINY_ORDER = {**_ORDER, "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 40, "num_hidden_layers": 2}
_TINY_ORDER |= {"coordinate_size": 10, "shape_size": 6, "num_classes": 5, "max_position_embeddings": 30}
_TINY_ORDER |= {"relation_bias_embed_dim": 4, "global_pointer_head_size": 8, "relation_bias_scale": 3}
TINY_V2: dict[str, Any] = {**_TINY, "backbone_config": {**_NET_V2, **TINY_HGNET}, "reading_order_config": _TINY_ORDER}
TINY_V2 |= {"class_thresholds": [0.97, 0.96, 0.955, 0.965, 0.94, 0.97], "class_order": [4, 0, 1, 3, 2, 0]}

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


@dataclass(frozen=True, kw_only=True)
class OrderSpec(LayoutSpec):
    def file_name(self, name: str) -> str:
        return name.replace(".LayerNorm.", ".norm.")

    @staticmethod
    def load_reference(model_class: Any, folder: Path, config: Mapping[str, Any], dtype: Any) -> Loaded:
        """torch's sort of what is found and what is not mixes both up, otherwise by each kind of CPU: zoo keeps their
        order."""
        model, info = LayoutSpec.load_reference(model_class, folder, config, dtype)
        forward = model.forward

        def in_order(*args: Any, **named: Any) -> Any:
            import torch

            with mock.patch("torch.argsort", partial(torch.argsort, stable=True)):
                return forward(*args, **named)

        model.forward = in_order
        return model, info


_GAINS_V2 = {**GAINS, "stem1.convolution": 2, "aggregation.1.convolution": 3, "relative_head.dense": 30}
_GAINS_V2 |= {"relative_head.dense.bias": 20}


def _v2(tiny: Mapping[str, Any], **more: Any) -> OrderSpec:
    return OrderSpec(
        like="PaddlePaddle/PP-DocLayoutV2_safetensors",
        model_type="pp_doclayout_v2",
        architecture="PPDocLayoutV2ForObjectDetection",
        config=V2,
        tiny={**TINY_V2, **tiny},
        processor={**_PROCESSOR, "image_processor_type": "PPDocLayoutV2ImageProcessor"},
        gains=_GAINS_V2,
        # Of training alone, and the same for all keys of a head.
        inert=(*Spec.inert, r"denoising_class_embed", r"class_embed\.0\.", r"pos_proj\.bias"),
        **more,
    )


SPECS: dict[str, LayoutSpec] = {
    "pp-doclayout-v2": _v2({}, full=True),
    "pp-doclayout-v3": _v3({}, full=True),
    "pp-doclayout-v3-no-mask": _v3({"mask_enhanced": False, "hidden_expansion": 0.5}, format="sharded"),
}
