"""RT-DETR and RT-DETR v2."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..pictures import page
from .common import Spec, labels

if TYPE_CHECKING:
    from PIL import Image

    from zoo.images import ImageProcessor

EDGE, TINY_EDGE = 640, 128


@dataclass(frozen=True, kw_only=True)
class RTDetrSpec(Spec):
    not_compared: ClassVar[tuple[str, ...]] = (
        *("intermediate_hidden_states", "init_reference_points", "encoder_last_hidden_state"),
        *("enc_outputs_class", "enc_outputs_coord_logits", "intermediate_logits", "intermediate_reference_points"),
    )

    def unread_tensors(self, config: Mapping[str, Any], names: Collection[str]) -> Iterator[tuple[str, np.ndarray]]:
        yield from super().unread_tensors(config, names)
        for name in names:
            if self.model_type == "rt_detr_v2" and name.endswith("sampling_offsets.weight"):
                points = config["decoder_n_points"]
                scale = np.full(points * config["num_feature_levels"], 1 / points, np.float32)
                yield name.replace("sampling_offsets.weight", "n_points_scale"), scale

    def processor_of(self, config: Mapping[str, Any]) -> dict[str, Any]:
        edge = TINY_EDGE if config["d_model"] == TINY["d_model"] else EDGE
        return {**self.processor, "size": {"height": edge, "width": edge}}

    @staticmethod
    def pictures(config: Any, processor: ImageProcessor, seed: int) -> Sequence[Image.Image]:
        return [page()]


CONFIG: dict[str, Any] = {"activation_dropout": 0.0, "activation_function": "silu", "anchor_image_size": None}
CONFIG |= {"attention_dropout": 0.0, "auxiliary_loss": True, "backbone": None, "batch_norm_eps": 1e-5, "d_model": 256}
CONFIG |= {"box_noise_scale": 1.0, "decoder_activation_function": "relu", "decoder_attention_heads": 8}
CONFIG |= {"decoder_ffn_dim": 1024, "decoder_in_channels": [256] * 3, "decoder_layers": 6, "decoder_n_points": 4}
CONFIG |= {
    "disable_custom_kernels": True,
    "dropout": 0.0,
    "encode_proj_layers": [2],
    "encoder_activation_function": "gelu",
}
CONFIG |= {"encoder_attention_heads": 8, "encoder_ffn_dim": 1024, "encoder_hidden_dim": 256, "encoder_layers": 1}
CONFIG |= {"encoder_in_channels": [512, 1024, 2048], "eos_coefficient": 0.0001, "eval_size": None}
CONFIG |= {"feat_strides": [8, 16, 32], "freeze_backbone_batch_norms": True, "hidden_expansion": 1.0}
CONFIG |= {"is_encoder_decoder": True, "label_noise_ratio": 0.5, "layer_norm_eps": 1e-5, "learn_initial_query": False}
CONFIG |= {"normalize_before": False, "num_denoising": 100, "num_feature_levels": 3, "num_queries": 300}
CONFIG |= {"positional_encoding_temperature": 10000, "use_pretrained_backbone": False, "use_timm_backbone": False}
CONFIG |= {"with_box_refine": True, "backbone_kwargs": None, **labels(count=80)}
_RESNET: dict[str, Any] = {"model_type": "rt_detr_resnet", "depths": [3, 4, 6, 3], "downsample_in_bottleneck": False}
_RESNET |= {"downsample_in_first_stage": False, "embedding_size": 64, "hidden_act": "relu", "layer_type": "bottleneck"}
_RESNET |= {"hidden_sizes": [256, 512, 1024, 2048], "num_channels": 3, "out_features": ["stage2", "stage3", "stage4"]}
_RESNET |= {"out_indices": [2, 3, 4]}
R50 = {**CONFIG, "backbone_config": _RESNET}
# The smallest of them has no bottlenecks, fewer layers and half of the width between its convolutions.
_RESNET18 = {**_RESNET, "depths": [2, 2, 2, 2], "hidden_sizes": [64, 128, 256, 512], "layer_type": "basic"}
R18 = {**CONFIG, "backbone_config": _RESNET18, "encoder_in_channels": [128, 256, 512], "decoder_layers": 3}
R18 |= {"hidden_expansion": 0.5}
V2 = {"decoder_method": "default", "decoder_n_levels": 3, "decoder_offset_scale": 0.5}

TINY: dict[str, Any] = {"d_model": 32, "encoder_hidden_dim": 32, "encoder_ffn_dim": 48, "decoder_ffn_dim": 40}
TINY |= {
    "decoder_layers": 3,
    "decoder_attention_heads": 4,
    "encoder_attention_heads": 2,
    "decoder_in_channels": [32] * 3,
}
TINY |= {"num_queries": 20, "decoder_n_points": 2, "encoder_in_channels": [24, 32, 40], **labels(count=6)}
_SMALL = {"embedding_size": 16, "hidden_sizes": [16, 24, 32, 40], "depths": [1, 2, 1, 1]}

# The regions of a page, by which tables.md finds tables.
_REGIONS = ("Caption", "Footnote", "Formula", "List-item", "Page-footer", "Page-header", "Picture", "Section-header")
_REGIONS += ("Table", "Text", "Title", "Document Index", "Code", "Checkbox-Selected", "Checkbox-Unselected", "Form")
LAYOUT = labels(*_REGIONS, "Key-Value Region")

_PROCESSOR = {"do_convert_annotations": True, "do_normalize": False, "do_pad": False, "do_rescale": True}
_PROCESSOR |= {"do_resize": True, "format": "coco_detection", "image_mean": [0.485, 0.456, 0.406], "pad_size": None}
_PROCESSOR |= {"image_processor_type": "RTDetrImageProcessor", "image_std": [0.229, 0.224, 0.225], "resample": 2}
_PROCESSOR |= {"rescale_factor": 0.00392156862745098}

# The points of attention are some way apart, and there are objects to compare.
GAINS = {"sampling_offsets": 2, "class_embed.0": 2, "class_embed.1": 2, "class_embed.2": 2, "attention_weights": 2}
GAINS |= {"sampling_offsets.bias": 40, "self_attn.q_proj.bias": 10}


def _rt_detr(
    like: str,
    config: Mapping[str, Any],
    version: str = "V2",
    regions: Mapping[str, Any] | None = None,
    head: str = "ForObjectDetection",
    **more: Any,
) -> RTDetrSpec:
    return RTDetrSpec(
        like=like,
        model_type="rt_detr_v2" if version else "rt_detr",
        architecture=f"RTDetr{version}{head}",
        config={**config, **(V2 if version else {})},
        tiny={**TINY, **(regions or {}), "backbone_config": {**config["backbone_config"], **_SMALL}},
        processor=_PROCESSOR,
        gains=GAINS,
        inert=(r"\.(key|k|k_proj|k_lin)\.bias$", r"denoising_class_embed", r"class_embed\.[01]\."),  # of training alone
        **more,
    )


SPECS: dict[str, RTDetrSpec] = {
    "rtdetr_v2_r50vd": _rt_detr("PekingU/rtdetr_v2_r50vd", R50, full=True),
    "rtdetr_v2_r18vd": _rt_detr("PekingU/rtdetr_v2_r18vd", R18),
    "docling-layout-heron": _rt_detr("docling-project/docling-layout-heron", {**R50, **LAYOUT}, regions=LAYOUT),
    "rtdetr_r50vd": _rt_detr("PekingU/rtdetr_r50vd", R50, "", full=True),
    "rtdetr_v2_bare": _rt_detr("save_pretrained", R18, head="Model"),
    "rtdetr_bare": _rt_detr("save_pretrained", R18, "", head="Model"),
}
